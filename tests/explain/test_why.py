"""mg.why: the paths of a gradient with what each gave, or the exact reason why there is none."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static
from minigrad.errors import DTypeError
from minigrad.explain.paths import MOST_PATHS, Explanation
from minigrad.primitives.registry import REGISTRY
from tests.pieces import Stop, Twice, leaf
from tests.work import calls


def named_leaf(value=2.0, name="x"):
    return mg.tensor(value, requires_grad=True, name=name)


def detached_in_place():
    y = named_leaf() * 2
    return y.detach_()


def without_grad():
    with mg.no_grad():
        return named_leaf() * 2


REASONS = {
    "a constant": (lambda: mg.tensor(1.0), "does not require grad"),
    "integers": (lambda: mg.tensor([1, 2]), "it holds int64 numbers"),
    "no_grad": (without_grad, "computed under no_grad()"),
    "detach": (lambda: (named_leaf() * 2).detach(), "made by detach()"),
    "detach_": (detached_in_place, "made by detach()"),
    "a comparison": (lambda: named_leaf() > 1, "made by greater_than, which has no gradient"),
    "argmax": (lambda: mg.argmax(named_leaf([1.0, 2.0])), "made by arg_max, which has no gradient"),
    "the indices of topk": (lambda: mg.topk(named_leaf([1.0, 2.0]), k=1)[1], "made by topk, which"),
    "a constant like it": (lambda: mg.zeros_like(named_leaf()), "made by fill_zeros_like, which"),
    "whole numbers": (
        lambda: named_leaf().astype("int64"),
        "made by discretize, which has no gradient",
    ),
}


@pytest.mark.parametrize(("make", "reason"), REASONS.values(), ids=REASONS)
def test_a_value_without_graph_says_why(make, reason):
    assert reason in mg.why(make()).reason


def test_a_value_off_the_path_says_so():
    x, w = named_leaf(), named_leaf(name="w")
    y = x * 2
    used = w * 3
    y.backward()
    assert "not on a path to the output: MulBackward0" in mg.why(w).reason
    assert "does not require grad" in mg.why(x, mg.tensor(1.0)).reason
    assert mg.why(w, used).paths


def test_arguments_that_stand_the_wrong_way_round_are_turned():
    w = named_leaf(name="w")
    h = w * w
    loss = h * 3.0
    loss.backward()
    told = mg.why(loss, w)
    assert told.repair == "mg.why(w, loss)"
    assert mg.why(loss, h).repair == "mg.why(h, loss)"
    assert mg.why(w, loss).paths
    assert "not on a path" in mg.why(h * 2.0).reason  # nobody has named an output


def test_a_gradient_that_was_asked_for_at_a_value_on_the_way_is_explained():
    w = named_leaf(name="w")
    h = w * w
    y = h * 3.0
    y.backward(inputs=[h], retain_graph=True)
    assert float(mg.why(h, y).total) == 3.0
    assert mg.why(h, y).note == ""


def test_before_any_backward_the_output_is_needed():
    (named_leaf() * 2.0).backward()  # of an output that is gone, whatever ran before
    x = named_leaf()
    y = x * x
    assert "gone" in mg.why(x).reason or "no backward has run" in mg.why(x).reason
    assert float(mg.why(x, y).total) == 4.0


@pytest.mark.parametrize("retain", [False, True])
def test_every_path_is_followed_alone_and_the_contributions_add_up(retain):
    x = named_leaf(2.0)
    h = x * x
    z = h * h + h
    z.backward(retain_graph=retain)
    found = mg.why(x)
    assert len(found.paths) == 6
    assert sorted(float(p) for _, p in found.paths) == [2.0, 2.0, 8.0, 8.0, 8.0, 8.0]
    assert float(found.total) == float(x.grad) == 36.0
    names = [" → ".join(path) for path, _ in found.paths]
    assert len(set(names)) == 6
    assert "AddBackward0[0] → MulBackward0[1] → MulBackward0[0]" in names
    assert "AddBackward0[1] → MulBackward0[0]" in names


GRAPHS = {
    "unbind": lambda x: (lambda a, b: a * b + a.sin())(*mg.unbind(x)),
    "one output of several": lambda x: mg.unbind(x * x)[1],
    "concat": lambda x: (mg.concat([x, x * x, mg.exp(x)]) ** 2).sum(),
    "broadcast": lambda x: (mg.ones([3, 2]) * x * x).sum(),
    "softmax": lambda x: (mg.softmax(x) * x).sum(),
    "matmul": lambda x: x @ mg.tensor([[1.0, 2.0], [3.0, 4.0]]) @ x,
    "in place": lambda x: _doubled(x * 1).prod(),
    "shared thrice": lambda x: (x * x * x).sum(),
    "split": lambda x: mg.split(x * 3)[0].sum() * mg.split(x)[1].sum(),
    "topk": lambda x: mg.topk(x * x, k=2)[0].prod(),
    "checkpoint": lambda x: mg.checkpoint(lambda a: (a.exp() * a).sum(), x),
    "where": lambda x: mg.where(x > 0.6, x * x, x).sum(),
}


def _doubled(y):
    return y.mul_(2.0)


@pytest.mark.parametrize("f", GRAPHS.values(), ids=GRAPHS)
def test_contributions_add_up_to_the_gradient(f):
    x = named_leaf([0.5, 0.75])
    y = f(x)
    y.backward()
    found = mg.why(x)
    total = sum(np.asarray(p) for _, p in found.paths)
    np.testing.assert_allclose(total, x.grad.numpy(), rtol=1e-14)
    np.testing.assert_allclose(found.total.numpy(), x.grad.numpy(), rtol=1e-14)
    assert found.note == ""


def test_many_paths_are_grouped_by_their_last_step():
    x = named_leaf(1.0)
    y = x * 1
    for _ in range(10):
        y = y + y
    y.backward()
    found = mg.why(x)
    assert float(found.total) == 1024.0
    assert len(found.paths) == 1
    assert "from 1 use of it, a path to each:" in str(found)


def test_a_hook_or_an_earlier_backward_is_named_where_grad_differs():
    x = named_leaf([3.0, 1.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert ".grad is 2 times that: 2 backward passes added up without zero_grad()" in mg.why(x).note
    z = named_leaf(3.0)
    (z * z * z).backward()
    assert "earlier backward passes were added to it without zero_grad()" in mg.why(z, z * 1.0).note


def test_a_leaf_that_was_not_asked_for_says_why_its_grad_is_none():
    x, w = named_leaf(), named_leaf(3.0, "w")
    y = x * w
    y.backward(inputs=[w], retain_graph=True)
    assert "backward(inputs=…) leaves others alone" in mg.why(x).note


def test_a_rule_that_gave_none_is_the_reason():
    class Nothing(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = named_leaf()
    y = Nothing.apply(x) * 3
    y.backward()
    assert "a rule on the way from MulBackward0 to it gave None" in mg.why(x).reason


def test_freed_values_of_a_function_are_not_known_any_more():
    class Square(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = named_leaf(3.0)
    y = Square.apply(x)
    y.backward()
    assert "retain_graph=True" in mg.why(x).note
    z = Square.apply(x)
    z.backward(retain_graph=True)
    assert float(mg.why(x).total) == 6.0


def test_with_create_graph_it_answers_too():
    x = named_leaf(3.0)
    y = x**3
    y.backward(create_graph=True)
    assert float(mg.why(x).total) == 27.0


def test_what_is_explained_and_from_where_must_be_values():
    with pytest.raises(DTypeError, match=r"no Tensor and no Variable in 3[\s\S]*mg.why\(x, y\)"):
        mg.why(3)
    with pytest.raises(DTypeError, match="from is a Tensor, not 5"):
        mg.why(named_leaf(), 5)


# -- larger things -------------------------------------------------------------------------


def test_a_module_and_a_program_are_explained_parameter_by_parameter():
    layer = nn.Linear(2, 1)
    loss = layer(mg.ones([3, 2])).sum()
    loss.backward()
    text = str(mg.why(layer))
    assert "the gradient of weight is [[3.], [3.]]" in text
    assert "the gradient of bias is [3.]" in text
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", 1.0), static.parameter("v", 2.0)
        static.append_backward(mg.exp(w) * 3)
    assert v.name in str(mg.why(program))
    assert "the gradient of w is w@GRAD" in str(mg.why(program))
    assert [e.name for e in mg.why([w, v])] == [e.name for e in mg.why({"w": w, "v": v})]


class Square:
    def __init__(self, *inputs):
        self.inputs = inputs


class Variable:
    def __init__(self, creator=None, grad=None):
        self.data, self.creator, self.grad = 0.0, creator, grad


# -- paths, one by one and grouped -------------------------------------------------------


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
        assert "paths:" in str(found) if count == MOST_PATHS else "uses of it" in str(found)
        assert len(found.paths) == MOST_PATHS
        assert ("… and 1 more" in str(found)) == (count > MOST_PATHS)
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


def test_a_hook_does_not_run_again_and_is_named_where_grad_differs():
    x, calls = leaf(2.0), []
    h = x * x
    h.register_hook(lambda g: calls.append(g) or g * 10.0)
    y = h + h
    y.backward()
    found = mg.why(x)
    assert given(found) == [2.0] * 4 and len(calls) == 1
    assert "(.grad is 80.: a hook of yours changed it)" in found.note


def test_paths_through_a_function_of_the_users_are_followed():
    x = leaf(2.0)
    h = Twice.apply(x)
    found = mg.why(x, h * h)
    assert given(found) == [8.0, 8.0]
    assert ways(found) == [
        "MulBackward0[1] → TwiceBackward[0]",
        "MulBackward0[0] → TwiceBackward[0]",
    ]


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
        "the gradient of x is 4.\n"
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
    assert mg.why(x).note == "  it is NaN: made first by MulBackward0[0], which got 1 and gave nan"
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
        (128.0, "AddBackward0 → … → MulBackward0[0]"),
    ]
    assert float(found.total) == 133.0


def test_values_that_are_forgotten_are_a_question_mark():
    x = leaf(np.ones(3000))
    y = mg.sum(mg.exp(x))
    y.backward()
    text = str(mg.why(x))
    assert "?  by  SumBackward0 → ExpBackward0[0]" in text
    assert "from 1 use of it" in text
    assert text.startswith("the gradient of x is float64[3000], sum 8154.8")


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


def test_how_gradients_are_known_is_said_once_for_a_module():
    model = nn.Sequential(nn.Linear(3, 2), mg.exp, nn.Linear(2, 1))
    out = model(mg.tensor(np.ones((3000, 3)))).sum()
    out.backward()
    assert str(mg.why(model)).count("how much each gave is known with") == 1


def test_an_array_has_no_gradient_to_explain():
    with pytest.raises(DTypeError, match=r"no Tensor and no Variable in float64\[2\]"):
        mg.why(np.ones(2))


def test_a_value_without_a_name_is_called_by_the_callers_variable_or_by_its_place_in_a_module():
    weight = leaf(2.0)
    weight.name = None
    y = weight * weight
    y.backward()
    assert str(mg.why(weight, y)).startswith("the gradient of weight is 4., from 2 paths:")
    model = mg.nn.Sequential(mg.nn.Linear(2, 1), mg.nn.ReLU())
    assert [each.name for each in mg.why(model)] == ["layers.0.weight", "layers.0.bias"]


def test_an_output_that_does_not_depend_on_it_asks_to_be_computed_from_it():
    x, w = leaf([1.0, 2.0]), leaf(3.0)
    with mg.no_grad():
        y = (x * 2).sum()
    for output in y, (x.detach() * w).sum():
        assert mg.why(x, output).repair.startswith("compute it from x: detach(), no_grad()")


def test_saved_values_that_were_changed_in_place_are_not_taken_for_those_of_backward():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with mg.no_grad():
        x -= 0.1 * x.grad
    for told in mg.why(x), mg.why(x, y):
        assert [gave for _, gave in told.paths] == [None, None]
        assert told.total.tolist() == [2.0, 4.0]
        assert "MulBackward0 saved 'x', which was changed in place since: how much" in str(told)
    assert "+=" not in str(mg.draw(y).describe())
    x.zero_grad()
    assert mg.why(x).reason.startswith(".grad is None")


def test_values_changed_in_place_before_backward_are_the_reason():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    y += 1
    told = mg.why(x, z)
    assert (
        told.reason == "MulBackward0 saved 'x', which was changed in place since: backward() fails"
    )
    assert "h = h +" in told.repair


def test_a_large_graph_that_gave_its_gradients_away_is_not_taken_for_a_rule_that_gave_none():
    x = leaf(np.ones(5000))
    y = (x * x).sum()
    y.backward()
    x.zero_grad()
    assert mg.why(x, y).reason.startswith(".grad is None: grad() returns gradients")


@pytest.mark.parametrize(
    ("values", "function", "repair"),
    [
        ([0.0], lambda x: x * 1e200 * 1e200, "smaller weights"),
        ([0.0], lambda x: x**2, ""),
        ([0.0], lambda x: x * 0.0, "a factor is 0"),
        (np.ones((0, 3)), lambda x: x * 2, ""),
    ],
)
def test_a_repair_is_that_of_what_went_wrong(values, function, repair):
    x = leaf(values)
    with np.errstate(all="ignore"):
        told = mg.why(x, function(x).sum())
    assert told.repair.startswith(repair)
    assert bool(told.repair) == bool(repair)


@pytest.mark.parametrize("seed", range(40))
def test_a_backward_from_several_outputs_is_explained_as_a_whole(seed):
    rng = np.random.default_rng(seed)
    values = [mg.tensor(rng.normal(), requires_grad=True) for _ in range(3)]
    for _ in range(rng.integers(2, 9)):
        a, b = (values[k] for k in rng.integers(len(values), size=2))
        values.append([a * b, a + b, mg.sin(a) - b][rng.integers(3)])
        values[-1].retain_grad()
    outputs = [values[k] for k in rng.integers(3, len(values), size=3)]
    mg.backward(outputs, rng.normal(size=3).tolist(), retain_graph=bool(rng.integers(2)))
    for value in values:
        told = mg.why(value)
        if value.grad is None:
            assert told.reason, told
        else:
            np.testing.assert_allclose(told.total.numpy(), value.grad.numpy(), rtol=1e-12)
            parts = [float(np.asarray(gave)) for _, gave in told.paths]
            assert told.count or np.isclose(sum(parts), value.grad.item(), rtol=1e-12), told


def test_a_value_that_many_operations_read_is_explained_for_bounded_work():
    x = leaf(1.0)
    y = x * 1.0
    for _ in range(300):
        y = y + x * 2.0
    assert calls(lambda: mg.why(x, y)) < 1_000_000
