"""What no test of `mg.why` looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import DTypeError
from minigrad.explain.explanation import Explanation
from minigrad.explain.paths import MOST_PATHS
from minigrad.primitives.registry import REGISTRY
from tests.trust.pieces import Stop, Twice, leaf


def ways(found):
    return [" → ".join(path) for path, _ in found.paths]


def given(found):
    return [np.asarray(p).tolist() for _, p in found.paths]


def test_paths_are_followed_one_by_one_up_to_the_limit_and_grouped_beyond():
    for count in (MOST_PATHS, MOST_PATHS + 1):
        x = leaf(1.0)
        y = x * 1.0
        for _ in range(count - 1):
            y = y + x
        found = mg.why(x, y)
        assert "path(s):" in str(found) if count == MOST_PATHS else "use(s) of it" in str(found)
        assert len(found.paths) == count
        assert float(found.total) == count


def test_paths_through_the_newest_operations_come_first():
    x = leaf(2.0)
    old, new = mg.sin(x), mg.exp(x)
    first = [w.split(" → ")[1] for w in ways(mg.why(x, old + new))]
    assert first == [w.split(" → ")[1] for w in ways(mg.why(x, new + old))]
    assert first == ["ExpBackward0[0]", "SinBackward0[0]"]


def test_slots_are_shown_on_the_whole_path_only_where_two_would_read_alike():
    x = leaf(3.0)
    once = x * 2.0
    assert ways(mg.why(x, once + 1.0)) == ["AddBackward0 → MulBackward0[0]"]
    assert sorted(ways(mg.why(x, once + once))) == [
        "AddBackward0[0] → MulBackward0[0]",
        "AddBackward0[1] → MulBackward0[0]",
    ]


def test_an_output_explains_itself():
    x = leaf([1.0, 2.0])
    y = mg.sum(x * x)
    y.backward(retain_graph=True)
    found = mg.why(y, y)
    assert ways(found) == ["the output itself"]
    assert float(found.total) == 1.0
    assert "retain_grad()" in found.note
    assert ways(mg.why(x, x)) == ["the output itself"]
    assert mg.why(x, x).total.tolist() == [1.0, 1.0]
    assert ".grad is [2., 4.]" in mg.why(x, x).note


def test_an_output_of_several_is_explained_by_its_own_uses():
    x = leaf([1.0, 2.0])
    a, b = mg.unbind(x * 1.0)
    y = a * 3.0 + b * 5.0
    assert given(mg.why(a, y)) == [3.0]
    assert given(mg.why(b, y)) == [5.0]
    assert given(mg.why(x, y)) == [[0.0, 5.0], [3.0, 0.0]]
    assert given(mg.why(b, b)) == [1.0]


def test_what_the_other_outputs_of_an_operation_would_give_is_left_out():
    x = leaf([3.0, 1.0, 2.0])
    values, _ = mg.topk(x * 2.0, k=2)
    found = mg.why(x, values)
    assert given(found) == [[2.0, 0.0, 2.0]]


def test_a_hook_groups_the_paths_and_is_in_the_numbers():
    x = leaf(2.0)
    h = x * x
    h.register_hook(lambda g: g * 10.0)
    y = h + h
    y.backward()
    found = mg.why(x)
    assert "from 2 use(s) of it" in str(found)
    assert given(found) == [40.0, 40.0]
    assert ways(found) == ["AddBackward0 → MulBackward0[0]", "AddBackward0 → MulBackward0[1]"]


def test_a_function_of_the_users_groups_the_paths_too():
    x = leaf(2.0)
    h = Twice.apply(x)
    found = mg.why(x, h * h)
    assert found.grouped
    assert given(found) == [16.0]
    assert ways(found) == ["MulBackward0 → TwiceBackward[0]"]


def test_a_path_that_gives_nothing_is_left_out():
    x = leaf([3.0])
    found = mg.why(x, Stop.apply(x * 2.0) + x * 5.0)
    assert given(found) == [[5.0]]


def test_a_rule_that_gives_one_input_nothing_is_no_path():
    made = mg.primitive(lambda x, y: x * 0.0 + y, type="only_the_second")
    made.grad(lambda out_grad: (None, out_grad))
    try:
        x = leaf(3.0)
        assert given(mg.why(x, made(x, x * 5.0))) == [5.0]
    finally:
        REGISTRY.pop(made.primitive.type)


def test_a_constant_beside_the_way_is_no_path():
    x = leaf(3.0)
    found = mg.why(x, mg.tensor(2.0) * x + mg.tensor(1.0))
    assert ways(found) == ["AddBackward0 → MulBackward0[1]"]
    assert given(found) == [2.0]


def test_the_seed_of_the_last_backward_is_in_the_numbers():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.backward([1.0, 10.0])
    assert given(mg.why(x)) == [[3.0, 30.0]]
    assert mg.why(x).note == ""


def test_the_last_output_of_several_is_where_backward_started():
    x = leaf([1.0, 2.0])
    a, b = mg.unbind(x * 3.0)
    b.backward()
    assert given(mg.why(x)) == [[0.0, 3.0]]
    assert a.grad is None


def test_an_output_that_is_gone_is_named_with_and_without_a_gradient():
    x, w = leaf(2.0), leaf(1.0)
    (x * x).backward()
    found = mg.why(x)
    assert float(found.total) == 4.0
    assert str(found) == (
        "the gradient of it is 4.\n"
        "  (the output the last backward started from is gone; pass yours: mg.why(x, y))"
    )
    assert "the output the last backward started from is gone" in mg.why(w).reason


def test_a_gradient_of_something_else_in_between_is_not_taken_for_its_backward():
    x = leaf(2.0)
    y = x * x
    y.backward()
    mg.grad(x * 3.0, x)  # its output is gone; y is not
    assert "the output the last backward started from is gone; pass yours" in mg.why(x).note
    assert float(mg.why(x, y).total) == 4.0


def test_backward_from_a_leaf_starts_nowhere():
    x = leaf(2.0)
    x.backward()
    assert "the output the last backward started from is gone" in mg.why(x).note
    assert "no backward has run through it yet" in mg.why(leaf(1.0)).reason


def test_a_note_says_why_there_is_no_grad_and_only_after_backward():
    x = leaf(2.0)
    y = x * x
    assert mg.why(x, y).note == ""
    y.backward(retain_graph=True)
    x.grad = None
    assert "zero_grad() forgets them" in mg.why(x).note
    assert mg.why(x, y).note == ""


def test_gradients_that_are_nan_agree():
    x = leaf(2.0)
    y = x * float("nan")
    y.backward()
    assert mg.why(x).note == ""
    assert "nan" in str(mg.why(x))


def test_why_within_a_hook_leaves_the_walk_as_it_was():
    x = leaf(2.0)
    a = x * 3.0
    y = a * x
    said = []

    def hook(g):
        handle.remove()  # `why` would call it, too
        said.append(float(mg.why(x, y).total))

    handle = a.register_hook(hook)
    y.backward()
    assert said == [12.0]
    assert float(x.grad) == 12.0


def test_why_looks_back_at_what_is_not_finite_in_anomaly_mode_too():
    x = leaf(2.0)
    x.register_hook(lambda g: g)  # so that the walk runs once more
    y = x * float("inf")
    with mg.detect_anomaly():
        assert given(mg.why(x, y)) == [float("inf")]


def test_a_larger_graph_is_grouped_by_uses_with_a_way_to_each():
    x = leaf(1.0)
    y = x * 2.0
    for _ in range(6):
        y = y + y
    z = y + x * 5.0
    found = mg.why(x, z)
    assert sorted(zip(given(found), ways(found), strict=True)) == [
        (5.0, "AddBackward0 → MulBackward0[0]"),
        (128.0, " → ".join(["AddBackward0"] * 7 + ["MulBackward0[0]"])),
    ]
    assert float(found.total) == 133.0


def test_values_that_are_forgotten_are_a_question_mark():
    x = leaf(np.ones(300))
    y = mg.sum(mg.exp(x))
    y.backward()
    text = str(mg.why(x))
    assert "?  by  SumBackward0 → ExpBackward0[0]" in text
    assert "from 1 use(s) of it" in text
    assert text.startswith("the gradient of it is float64[300], sum 815.48")


@pytest.mark.parametrize(
    ("total", "text"),
    [
        (np.arange(8.0), "[0., 1., 2., 3., 4., 5., 6., 7.]"),
        (np.ones(9), "float64[9], sum 9"),
        (np.ones((3, 4), np.float32) / 3, "float32[3, 4], sum 4"),
        (np.array(1 / 3), "0.33333"),
    ],
)
def test_large_gradients_are_shown_by_their_sum(total, text):
    assert str(Explanation("w", total)) == f"the gradient of w is {text}"


def test_a_notebook_shows_the_text():
    one, several = mg.why(mg.tensor(1.0)), mg.why([mg.tensor(1.0), mg.tensor(2)])
    for found in (one, several):
        assert found._repr_mimebundle_() == {"text/plain": str(found)}
        assert repr(found) == str(found)
    assert str(several).count("has no gradient") == 2
    assert len(str(several).splitlines()) == 2


def test_what_holds_values_is_explained_value_by_value():
    layer = nn.Linear(1, 1)
    optimizer = mg.optim.SGD(layer, lr=0.1)
    x = leaf(1.0)
    for holder, count in ((optimizer, 2), (layer, 2), ((x, x), 2), ({"x": x, "n": 3}, 1)):
        assert len(mg.why(holder)) == count


def test_an_array_has_no_gradient_to_explain():
    with pytest.raises(DTypeError, match=r"no Tensor and no Variable in float64\[2\]"):
        mg.why(np.ones(2))
