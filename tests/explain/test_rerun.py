"""Looking back: what went through every edge of the last backward, told without running hooks again."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradError
from tests.pieces import leaf


def told(y):
    return y.grad_fn.remembered()


def shown(found):
    """The gradients as (node, slot, what it gave)."""
    return [(n.name(), k, g.tolist()) for (n, k), g in found["gradients"].items()]


def test_what_went_through_every_edge_is_told_in_the_order_of_the_walk():
    x = leaf([3.0])
    y = mg.exp(x * 2.0)
    y.backward([10.0])
    found = told(y)
    grad = 10.0 * np.exp(6.0)
    assert shown(found) == [("ExpBackward0", 0, [grad]), ("MulBackward0", 0, [2.0 * grad])]
    assert [seed.tolist() for seed in found["seeds"].values()] == [[10.0]]
    saved = {
        n.name(): {k: np.asarray(v).tolist() for k, v in s.items()}
        for n, s in found["saved"].items()
    }
    assert saved["ExpBackward0"] == {"out": [np.exp(6.0)]}


def test_the_gradients_of_all_outputs_of_an_operation_are_told():
    x = leaf([1.0, 2.0])
    a, b = mg.unbind(x * 3.0)
    b.backward()
    assert shown(told(b)) == [
        ("UnbindBackward0", 0, [0.0, 1.0]),
        ("MulBackward0", 0, [0.0, 3.0]),
    ]
    assert a.grad is None


def test_lists_tell_what_each_of_their_values_got():
    x, y = leaf([1.0]), leaf([2.0])
    z = mg.concat([x, y])
    z.backward([3.0, 4.0])
    assert shown(told(z)) == [("CatBackward0", 0, [3.0]), ("CatBackward0", 1, [4.0])]


def test_only_the_node_where_the_last_backward_began_tells():
    x = leaf(2.0)
    h = x * x
    y = h * 3.0
    y.backward(retain_graph=True)
    assert told(h).keys() == {"values"}
    assert "gradients" in told(y)
    (x * 1.0).backward()
    assert told(y).keys() == {"values"}


def test_hooks_do_not_run_again():
    x, seen = leaf(2.0), []
    h = x * x
    h.register_hook(lambda g: seen.append(float(g)))
    y = h * 3.0
    y.backward(retain_graph=True)
    assert shown(told(y)) == [("MulBackward0", 0, 3.0)]  # what arrives at the hook, and no more
    assert seen == [3.0]


@pytest.mark.parametrize(("count", "remembered"), [(2048, True), (2049, False)])
@pytest.mark.parametrize("retain", [False, True])
def test_values_up_to_16_kilobytes_are_remembered(count, remembered, retain):
    x = leaf(np.ones(count))
    large_value = mg.sum(mg.exp(x) * 2.0)
    large_value.backward(retain_graph=retain)
    names = [name for name, _, _ in shown(told(large_value))]
    assert names == ["SumBackward0", "MulBackward0", *["ExpBackward0"] * remembered]


def test_a_large_seed_is_told_with_what_it_gave():
    x = leaf(np.ones(1000))
    y = x * 3.0
    y.backward(np.ones(1000))
    assert shown(told(y)) == [("MulBackward0", 0, [3.0] * 1000)]


def test_looking_back_does_not_bring_freed_values_back():
    x = leaf(2.0)
    y = x * x
    y.backward()
    assert told(y) != {}
    assert float(mg.why(x).total) == 4.0
    with pytest.raises(GradError, match="a second time"):
        y.backward()
