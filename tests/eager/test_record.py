"""Recording: what a node saves and knows, for lists, several outputs and subclasses of Tensor."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import AnomalyError, GradError, ProgramError, ShapeError
from minigrad.primitives.registry import REGISTRY
from tests.pieces import leaf


@pytest.mark.parametrize("changed", [0, 1])
def test_a_change_of_one_value_of_a_list_that_was_saved_is_noticed(changed):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    values = [x * 1.0, y * 1.0]
    out = mg.einsum("i,i->", *values)
    values[changed].add_(1.0)
    with pytest.raises(GradError, match="Einsum.* saved x(.|\n)*changed in place afterwards"):
        out.backward()


def test_a_subclass_of_tensor_is_a_tensor_to_every_op():
    class Mine(mg.Tensor):
        pass

    x = Mine([1.0, 2.0], requires_grad=True)
    for function, by_x in [
        (lambda v: v * 3.0, [3.0, 3.0]),
        (lambda v: mg.concat([v, v * v]), [3.0, 5.0]),
        (lambda v: mg.exp(v) * 0.0 + 2.0 * v, [2.0, 2.0]),
        (lambda v: v * mg.tensor([[1.0, 2.0], [3.0, 4.0]]), [4.0, 6.0]),
        (lambda v: mg.ones([3, 1]) * v + v, [6.0, 6.0]),
        (lambda v: mg.linear(v, leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([0.0, 0.0])), [3.0, 7.0]),
        (lambda v: mg.linear(mg.ones([1, 2]), leaf([[1.0, 2.0], [3.0, 4.0]]), v), [1.0, 1.0]),
    ]:
        x.grad = None
        out = function(x)
        assert out.grad_fn.where().startswith("test_record.py")
        mg.sum(out).backward()
        assert x.grad.tolist() == by_x


def test_parts_of_memory_that_a_user_holds_are_saved_as_copies():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1.0
    held = y.data  # which its user may change
    first, second = mg.unbind(y)
    out = (first * second).sum()
    held[:] = 100.0
    try:
        out.backward()
    except GradError:
        return
    assert x.grad.tolist() == [[3.0, 4.0], [1.0, 2.0]]


def test_an_array_in_a_list_may_change_afterwards():
    x, held = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    out = mg.einsum("i,i->", x, held)
    held[:] = 100.0
    out.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_a_leaf_in_a_list_lives_as_long_as_its_graph():
    x, seen = leaf(1.0), []
    temporary = leaf(2.0)
    temporary.register_post_accumulate_grad_hook(lambda t: seen.append(float(t.grad)))
    out = mg.stack([temporary, x]).sum()
    del temporary
    out.backward()
    assert (float(x.grad), seen) == (1.0, [1.0])


def test_a_rule_may_read_a_list_of_results_and_the_shape_of_a_slot_with_a_longer_name():
    made = mg.primitive(lambda my_x: [np.exp(my_x), np.sin(my_x)], type="pair", list_output=True)

    def rule(out, out_grad, my_x_shape):
        assert my_x_shape == (2,)
        return (
            out_grad[0] * out[0] + out_grad[1] * out[1]
        )  # the second is wrong on purpose: sin, not cos

    made.grad(my_x=rule)
    try:
        x = leaf([0.5, 1.0])
        one, two = made(x)
        (one * 2.0 + two * 3.0).sum().backward()
        wanted = 2.0 * np.exp([0.5, 1.0]) + 3.0 * np.sin([0.5, 1.0])
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-15)
        (g,) = mg.grad(made(x)[0].sum(), x, create_graph=True)
        np.testing.assert_allclose(mg.grad(g.sum(), x)[0].numpy(), np.exp([0.5, 1.0]), rtol=1e-15)
    finally:
        REGISTRY.pop(made.primitive.type)


def test_a_walk_meets_every_node_of_lists():
    x = leaf([1.0, 2.0])
    (mg.sum(mg.stack([x * 2.0, x])) + mg.sum(mg.unbind(x)[0])).backward()
    assert x.grad.tolist() == [4.0, 3.0]


MADE_OF_OTHERS = [
    lambda x: mg.concat([x, x]), lambda x: mg.einsum("i,i->", x, x), lambda x: mg.tensordot(x, x, 1), lambda x: mg.kron(x, x),
    lambda x: mg.clip(x, 0.0, 1.0), lambda x: mg.astype(x, "float32"), lambda x: x[[0]], lambda x: mg.setitem(x, 1.0, 0),
    lambda x: mg.layer_norm(x), lambda x: mg.embedding([0], x), lambda x: mg.nan_to_num(x), lambda x: mg.split(x)[0],
    lambda x: mg.cross(mg.repeat(x, [1, 2]), mg.ones([3])), lambda x: mg.dropout(x, 0.5, seed=0), lambda x: x.clone(),
    lambda x: mg.mse(x, [1.0, 2.0]), lambda x: mg.conv1d(x.reshape(1, 1, 2), mg.ones([1, 1, 1])), lambda x: x + 1.0,
    lambda x: x.reshape(2, 1), lambda x: x.T, lambda x: x.permute_dims(0), lambda x: x.broadcast_to(3, 2), lambda x: mg.norm(x),
]  # fmt: skip


@pytest.mark.parametrize("make", MADE_OF_OTHERS)
def test_every_node_knows_the_line_of_its_user_behind_the_functions_of_the_package(make):
    out = make(leaf([1.0, 2.0]))  # THE LINE
    nodes = [out.grad_fn]
    for node in nodes:
        nodes += [
            n for n, _ in node.next_functions if n is not None and n.name() != "AccumulateGrad"
        ]
    assert {n.where().split(":")[0] for n in nodes} == {"test_record.py"}
    assert not any("THE LINE" in n.where() for n in nodes), "the caller of the lambda"


def test_a_result_without_gradient_has_none_though_its_neighbour_has():
    made = mg.primitive(
        lambda x: (np.exp(x), x * 2.0), type="with_rest", outputs=("out", "rest"), nondiff=("rest",)
    )
    made.grad(x=lambda out, out_grad: out_grad * out)
    try:
        x = leaf([0.5, 1.0])
        out, rest = made(x)
        assert (out.requires_grad, rest.requires_grad) == (True, False)
        (g,) = mg.grad(out.sum(), x, create_graph=True)
        np.testing.assert_allclose(mg.grad(g.sum(), x)[0].numpy(), np.exp([0.5, 1.0]), rtol=1e-15)
    finally:
        REGISTRY.pop(made.primitive.type)


def test_switches_are_seen_by_list_ops_too():
    x, packed = leaf([1.0, 2.0]), []
    with mg.saved_tensors_hooks(lambda v: packed.append(1) or v, lambda v: v):
        out, _ = mg.topk(x, k=1)
    assert packed
    out.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]
    with mg.detect_anomaly(), np.errstate(all="ignore"), pytest.raises(AnomalyError):
        mg.concat([x, np.array([np.nan])])


def test_a_number_among_saved_values_does_not_widen_a_second_derivative():
    x = mg.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    for y in (x * 2.0, x**3.0, x / 2.0):
        (g,) = mg.grad((y * x).sum(), x, create_graph=True)
        (h,) = mg.grad(g.sum(), x)
        assert (g.dtype, h.dtype) == (np.float32, np.float32)


def test_hooks_see_tensors_one_for_each_place_and_none_where_there_is_none():
    x, c, seen = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0]), []
    out = c * x
    out.register_hook(lambda g: seen.append(type(g)))
    out.grad_fn.register_hook(
        lambda grads, given: seen.append((grads[0], type(grads[1]), len(given)))
    )
    out.grad_fn.register_prehook(lambda given: seen.append([type(g) for g in given]))
    out.sum().backward()
    assert seen == [mg.Tensor, [mg.Tensor], (None, mg.Tensor, 1)]
    seen.clear()
    first, second = mg.unbind(x * 1.0)
    first.grad_fn.register_hook(
        lambda grads, given: seen.append([None if g is None else g.tolist() for g in given])
    )
    (second * 5.0).backward()
    assert len(seen[0]) == 2 and seen[0][1] == 5.0


def test_two_gradients_that_are_kept_share_no_memory():
    x = leaf([1.0, 2.0])
    one = x + 1.0
    two = one + 1.0
    for t in (one, two):
        t.retain_grad()
    two.backward(np.ones(2))
    one.grad[0] = 7.0
    assert (two.grad.tolist(), x.grad.tolist()) == ([1.0, 1.0], [1.0, 1.0])


def test_what_a_tensor_says_of_its_gradient():
    x = leaf([3.0])
    y = x * 2.0
    y.requires_grad = True  # which it does
    with pytest.raises(GradError, match="follows from its inputs"):
        y.requires_grad = False
    assert not (x.retains_grad or y.retains_grad)
    y.register_hook(lambda g: None)
    assert not y.retains_grad
    x.zero_grad(set_to_none=False)
    assert x.grad is None
    y.backward()
    x.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0]
    x.zero_grad()
    assert x.grad is None


def test_nodes_have_the_name_of_their_primitive_or_the_title_it_was_given():
    x = leaf([3.0])
    names = [t.grad_fn.name() for t in (mg.concat([x]), mg.logsumexp(x), mg.max(x), mg.abs(x))]
    assert names == ["CatBackward0", "LogsumexpBackward0", "MaxBackward0", "AbsBackward0"]
    assert type(mg.concat([x]).grad_fn) is type(mg.concat([x, x]).grad_fn)
    for _ in range(2):  # a name that is given again has nodes of its own
        made = mg.primitive(lambda x: x * 2.0, type="strange_twin")
        made.grad(x=lambda out_grad: out_grad * 2.0)
        try:
            y = made(x)
            assert (y.grad_fn.name(), y.grad_fn.primitive) == (
                "StrangeTwinBackward0",
                made.primitive,
            )
        finally:
            REGISTRY.pop(made.primitive.type)


def test_a_list_that_is_no_array_is_refused_in_the_name_of_the_op():
    with pytest.raises(ShapeError, match="equally long"):
        mg.add([[1], [1, 2]], leaf(1.0))


def test_a_node_tells_its_edges_and_what_it_saved():
    x, y = leaf([3.0]), leaf([4.0])
    sine, product, scaled = mg.sin(x).grad_fn, (x * y).grad_fn, (x * 2.0).grad_fn
    parts = mg.unbind(mg.exp(x))
    behind = (parts[0] * y[0]).grad_fn
    shown = [
        [(n and n.name(), k) for n, k in node.next_functions]
        for node in (sine, product, scaled, behind)
    ]
    end = ("AccumulateGrad", 0)
    assert shown == [
        [end],
        [end, end],
        [end, (None, 0)],
        [("UnbindBackward0", 0), ("GetitemBackward0", 0)],
    ]
    assert {n: v.tolist() for n, v in product.saved.items()} == {"x": [3.0], "y": [4.0]}
    assert set(scaled.saved) == {"y"} and set(sine.saved) == {"x"}


def test_the_node_where_backward_began_remembers_what_passed_there():
    x = leaf([3.0])
    y = (x * x).sum()
    assert y.grad_fn.remembered().keys() == {"values"}
    y.backward()
    found = y.grad_fn.remembered()
    assert found.keys() >= {"gradients", "saved", "seeds", "values"}
    assert sorted(g.item() for g in found["gradients"].values()) == [1.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("elements", "kept"), [(1, True), (1024, True), (1025, False), (100_000, False)]
)
def test_a_list_that_was_saved_is_let_go_of_unless_it_is_small(elements, kept):
    """16 kilobytes are kept for pictures and `mg.why`: two lists of 1024 numbers."""
    x = leaf(np.ones(elements))
    out = mg.einsum("i,i->", x, x)
    node = out.grad_fn
    out.backward(retain_graph=True)
    assert not node.freed
    out.backward()
    assert node.freed and isinstance(node._saved_x, list) == kept
    assert node.next_functions[0][0].where() == "a leaf"
    with pytest.raises(GradError, match="a second time"):
        out.backward()


def test_a_variable_of_a_program_decides_wherever_it_stands():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2])
        for made in (
            mg.add(np.ones(2), x),
            mg.where(x > 0.0, np.ones(2), x),
            mg.concat([np.ones(2), x]),
        ):
            assert isinstance(made, static.Variable)
        for mixed in (lambda t: mg.add(t, x), lambda t: mg.concat([t, x])):
            with pytest.raises(ProgramError, match="Tensor"):
                mixed(leaf([1.0, 2.0]))


def test_lists_leave_no_graph_where_none_is_wanted():
    x = leaf([1.0, 2.0])
    with mg.no_grad():
        assert mg.concat([x, x]).grad_fn is None
    assert mg.concat([mg.ones([1]), mg.ones([2])]).grad_fn is None
    assert mg.concat([mg.ones([1]), x]).grad_fn is not None
