"""mg.why: the paths of a gradient with what each gave, or the exact reason why there is none."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static
from minigrad.errors import DTypeError
from minigrad.static import net


def leaf(value=2.0, name="x"):
    return mg.tensor(value, requires_grad=True, name=name)


def detached_in_place():
    y = leaf() * 2
    return y.detach_()


def without_grad():
    with mg.no_grad():
        return leaf() * 2


REASONS = {
    "a constant": (lambda: mg.tensor(1.0), "does not require grad"),
    "integers": (lambda: mg.tensor([1, 2]), "it holds int64 numbers"),
    "no_grad": (without_grad, "computed under no_grad()"),
    "detach": (lambda: (leaf() * 2).detach(), "made by detach()"),
    "detach_": (detached_in_place, "made by detach()"),
    "a comparison": (lambda: leaf() > 1, "made by greater_than, which has no gradient"),
    "argmax": (lambda: mg.argmax(leaf([1.0, 2.0])), "made by arg_max, which has no gradient"),
    "the indices of topk": (lambda: mg.topk(leaf([1.0, 2.0]), k=1)[1], "made by topk, which"),
    "a constant like it": (lambda: mg.zeros_like(leaf()), "made by fill_zeros_like, which"),
    "whole numbers": (lambda: leaf().astype("int64"), "made by discretize, which has no gradient"),
}


@pytest.mark.parametrize(("make", "reason"), REASONS.values(), ids=REASONS)
def test_a_value_without_graph_says_why(make, reason):
    assert reason in mg.why(make()).reason


def test_a_value_off_the_path_says_so():
    x, w = leaf(), leaf(name="w")
    y = x * 2
    used = w * 3
    y.backward()
    assert "not on a path to the output: MulBackward0" in mg.why(w).reason
    assert "does not require grad" in mg.why(x, mg.tensor(1.0)).reason
    assert mg.why(w, used).paths


def test_before_any_backward_the_output_is_needed():
    x = leaf()
    y = x * x
    assert "gone" in mg.why(x).reason or "no backward has run" in mg.why(x).reason
    assert float(mg.why(x, y).total) == 4.0


@pytest.mark.parametrize("retain", [False, True])
def test_every_path_is_followed_alone_and_the_contributions_add_up(retain):
    x = leaf(2.0)
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
    x = leaf([0.5, 0.75])
    y = f(x)
    y.backward()
    found = mg.why(x)
    total = sum(np.asarray(p) for _, p in found.paths)
    np.testing.assert_allclose(total, x.grad.numpy(), rtol=1e-14)
    np.testing.assert_allclose(found.total.numpy(), x.grad.numpy(), rtol=1e-14)
    assert found.note == ""


def test_many_paths_are_grouped_by_their_last_step():
    x = leaf(1.0)
    y = x * 1
    for _ in range(10):
        y = y + y
    y.backward()
    found = mg.why(x)
    assert float(found.total) == 1024.0
    assert len(found.paths) == 1
    assert "from 1 use(s) of it, a path to each:" in str(found)


def test_a_hook_or_an_earlier_backward_is_named_where_grad_differs():
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert ".grad is 12.: a hook, another output or an earlier backward" in mg.why(x).note


def test_a_leaf_that_was_not_asked_for_says_why_its_grad_is_none():
    x, w = leaf(), leaf(3.0, "w")
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

    x = leaf()
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

    x = leaf(3.0)
    y = Square.apply(x)
    y.backward()
    assert "retain_graph=True" in mg.why(x).note
    z = Square.apply(x)
    z.backward(retain_graph=True)
    assert float(mg.why(x).total) == 6.0


def test_with_create_graph_it_answers_too():
    x = leaf(3.0)
    y = x**3
    y.backward(create_graph=True)
    assert float(mg.why(x).total) == 27.0


def test_what_is_explained_and_from_where_must_be_values():
    with pytest.raises(DTypeError, match=r"no Tensor and no Variable in 3[\s\S]*mg.why\(x, y\)"):
        mg.why(3)
    with pytest.raises(DTypeError, match="from is a Tensor, not 5"):
        mg.why(leaf(), 5)


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


def test_a_net_names_the_operators_that_make_each_gradient():
    fc = net.NetOp(
        [
            net.Operator("matmul", {"x": "x", "y": "W"}, {"out": "z"}),
            net.Operator("sigmoid", {"x": "z"}, {"out": "y"}),
        ],
        "fc",
    )
    found = mg.why(net.Backward(fc, no_grad={"x"}))
    assert str(found[1]) == "the gradient of W is made by:\n  #1 matmul_grad → W@GRAD"


class Square:
    def __init__(self, *inputs):
        self.inputs = inputs


class Variable:
    def __init__(self, creator=None, grad=None):
        self.data, self.creator, self.grad = 0.0, creator, grad


def test_a_variable_of_linked_nodes_is_explained_by_its_links():
    x = Variable()
    y = Variable(Square(Variable(Square(x))))
    assert "pass the output" in mg.why(x).reason
    assert "backward has not come to it by Square → Square[0]" in mg.why(x, y).reason
    assert "no path leads" in mg.why(Variable(), y).reason
    x.grad = 4.0
    assert str(mg.why(x, y)).splitlines()[0] == "the gradient of it is 4., from 1 path(s):"
    assert "pass the output" in mg.why(x).note
