"""Whose memory a gradient is: no two gradients, seeds, hooks or values share it."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, GradError
from minigrad.primitives.registry import REGISTRY
from tests.pieces import Stop, leaf


@pytest.mark.parametrize(
    "pass_on", [lambda x: x + 1.0, lambda x: mg.reshape(x, shape=(2, 1)), lambda x: x * 1.0]
)
@pytest.mark.parametrize("root", ["above", "the leaf", "a node"])
def test_a_seed_that_is_handed_on_stays_as_it_was(pass_on, root):
    """In the long walk; the gradient by x begins as the seed, or as a view of it, and grows."""
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: None)
    late = pass_on(x * 3.0)
    early = pass_on(x)
    out = early + late
    seed, other = np.ones(out.shape), np.ones(2)
    roots = {"above": [], "the leaf": [x], "a node": [pass_on(x)]}[root]
    seeds = [np.ones(r.shape) for r in roots]
    mg.backward([*roots, out], [*seeds, seed])
    assert x.grad.tolist() == [4.0 + len(roots)] * 2
    assert all(s.tolist() == np.ones(s.shape).tolist() for s in (*seeds, seed, other))
    assert not any(np.shares_memory(x.grad._data, s) for s in (*seeds, seed))


def test_a_node_that_is_a_root_and_on_the_way_to_another_leaves_its_seed_alone():
    x = leaf([1.0, 2.0])
    h = x * 1.0
    seed = np.ones(2)
    mg.backward([h, h * 2.0], [seed, np.ones(2)])
    assert x.grad.tolist() == [3.0, 3.0]
    assert seed.tolist() == [1.0, 1.0]


def test_a_gradient_does_not_share_memory_with_what_a_hook_returned():
    x, returned = leaf([1.0, 2.0]), mg.tensor([5.0, 6.0])
    x.register_hook(lambda g: returned)
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]
    assert not np.shares_memory(x.grad._data, returned._data)


class Twins(mg.Function):
    """x + y, whose backward gives one new array to both."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        both = g * 2.0
        return both, both


def test_one_array_for_two_inputs_of_a_function_is_added_to_in_neither():
    x, y = leaf([1.0]), leaf([1.0])
    a, b = x * 1.0, y * 1.0
    old = a * 3.0
    (old + Twins.apply(a, b)).backward(np.ones(1))
    assert (x.grad.tolist(), y.grad.tolist()) == ([5.0], [2.0])


def test_one_array_for_both_inputs_of_a_primitive_is_added_to_in_neither():
    def kernel(x, y):
        return x + y

    made = mg.primitive(kernel, type="twins")

    def rule(out_grad):
        both = out_grad * 2.0
        return both, both

    made.grad(rule)
    try:
        x, y = leaf([1.0]), leaf([1.0])
        a, b = x * 1.0, y * 1.0
        a.register_hook(lambda g: None)
        old = a * 3.0
        (old + made(a, b)).backward(np.ones(1))
        assert (x.grad.tolist(), y.grad.tolist()) == ([5.0], [2.0])
    finally:
        REGISTRY.pop(made.primitive.type)


def test_gradients_that_are_returned_share_no_memory_with_the_seed_nor_with_each_other():
    x, y, seed = leaf([1.0, 2.0]), leaf([3.0, 4.0]), np.ones(2)
    by_x, by_y = mg.grad(x + y, [x, y], seed)
    by_x[0] = by_y[1] = 7.0
    assert (by_x.tolist(), by_y.tolist()) == ([7.0, 1.0], [1.0, 7.0])
    assert seed.tolist() == [1.0, 1.0]


class Triplets(mg.Function):
    """x + y + z; backward gives one array to x and z, and what it is told to y."""

    @staticmethod
    def forward(ctx, x, y, z, by_y):
        ctx.by_y = by_y
        return x + y + z

    @staticmethod
    def backward(ctx, g):
        both = g * 2.0
        return both, None if ctx.by_y is None else g * ctx.by_y, both, None


@pytest.mark.parametrize("by_y", [None, 7.0])
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("hooked", [True, False])
def test_a_gradient_may_be_missing_or_given_twice_or_not_wanted(by_y, wanted, hooked):
    x, z = leaf([1.0]), leaf([1.0])
    y = mg.tensor([1.0], requires_grad=wanted)
    a, b, c = x * 1.0, y * 1.0, z * 1.0
    if hooked:  # then it is the long walk
        a.register_hook(lambda g: None)
    old = a * 3.0
    made = Triplets.apply(a, b, c, by_y)
    (old + made + b * 5.0).backward(np.ones(1))
    assert (x.grad.tolist(), z.grad.tolist()) == ([5.0], [2.0])
    assert y.grad.tolist() == [5.0 + (by_y or 0.0)] if wanted else y.grad is None


def test_a_retained_gradient_shares_memory_with_nothing():
    x, seed = leaf([1.0, 2.0]), np.ones(2)
    h = x + 1.0
    h.retain_grad()
    h.backward(seed)
    h.grad[0] = 7.0
    assert (x.grad.tolist(), seed.tolist()) == ([1.0, 1.0], [1.0, 1.0])


def test_a_seed_that_is_a_leaf_is_a_gradient_of_its_own_that_leads_back_to_it():
    x, seed = leaf([1.0]), leaf([3.0])
    (x + 1.0).backward(seed, create_graph=True)
    assert x.grad is not seed and x.grad.tolist() == [3.0]
    assert mg.grad((x.grad * x.grad).sum(), seed)[0].tolist() == [6.0]


def test_a_gradient_that_began_as_a_leaf_has_a_place_of_its_own_in_the_graph():
    x, seed = leaf([1.0]), leaf([3.0])
    (x + 1.0).backward(seed, create_graph=True)
    assert not x.grad.is_leaf
    (x.grad * x.grad).sum().backward()
    assert seed.grad.tolist() == [6.0]


def test_a_gradient_with_a_graph_keeps_it_when_one_without_is_added():
    x = leaf([3.0])
    (x * x * x).sum().backward(create_graph=True)
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [29.0]
    assert mg.grad(x.grad.sum(), x)[0].tolist() == [18.0]


def test_what_was_freed_is_said_even_if_it_changed_afterwards():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with mg.no_grad():
        x.add_(1.0)
    with pytest.raises(GradError, match="a second time, but its saved values"):
        y.backward()


def test_a_complex_number_is_no_place_to_start_from():
    z = leaf(2.0) * 1j
    for seed in (None, np.array(1j)):
        with pytest.raises(DTypeError, match="only real floating-point outputs have gradients"):
            mg.backward(z, seed)


def test_a_list_op_in_the_usual_walk_adds_to_what_is_there_and_leaves_it_alone():
    """Gradients that come first, in place, to memory of others, and through a list op that none comes to."""

    x = leaf([1.0, 2.0])
    y = x * 1.0
    first = mg.stack([y, y, x]) * np.array([[1.0], [10.0], [100.0]])
    unread = Stop.apply(mg.stack([x, x]))
    seeded = mg.concat([y, y])
    (mg.sum(first) + mg.sum(unread) + mg.sum(seeded * 1.0) + mg.sum(y * 7.0)).backward()
    assert x.grad.tolist() == [120.0, 120.0]
    seed = np.ones((2, 2))
    mg.stack([x, x]).backward(seed)
    assert (x.grad.tolist(), seed.tolist()) == ([122.0, 122.0], [[1.0, 1.0]] * 2)


def test_changes_in_place_of_parts_and_of_what_cannot_be_written_to():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 1.0
    view = y[:1]
    with pytest.raises(GradError, match=r"float64\[2\] has views"):
        y.add_(1.0)
    with pytest.raises(GradError, match=r"float64\[1\] is a view of another Tensor"):
        view.add_(1.0)
    base = mg.zeros([3])
    base[1:] += w
    base.sum().backward()
    assert (base.tolist(), w.grad.tolist()) == ([0.0, 3.0, 4.0], [1.0, 1.0])
    wide = mg.broadcast_to(mg.tensor([1.0]), (3,))
    assert wide.add_(1.0).tolist() == [2.0] * 3


def test_a_part_that_keeps_its_gradient_keeps_that_of_the_value_it_has_now():
    class Pair(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0, x * 2.0

        @staticmethod
        def backward(ctx, g, h):
            return g + h * 2.0

    x = leaf(3.0)
    one, two = Pair.apply(x)
    for part in (one, two):
        part.retain_grad()
        part.mul_(5.0)
        assert part.retains_grad
    (one * 7.0 + two * 11.0).backward()
    assert [float(v.grad) for v in (one, two, x)] == [7.0, 11.0, 5.0 * 7.0 + 2.0 * 5.0 * 11.0]


def test_a_hook_can_be_removed_at_the_end_of_a_block_and_freed_values_say_so():
    x = leaf(3.0)
    seen = []
    with x.register_hook(lambda g: seen.append(float(g))) as handle:
        (x * 2.0).backward()
    (x * 2.0).backward()
    handle.remove()
    assert seen == [2.0]
    big = leaf(np.ones(10_000))
    out = (big * big).sum()
    node = out.grad_fn.next_functions[0][0]
    out.backward()
    assert repr(node._saved_x) == "<freed by backward>"
