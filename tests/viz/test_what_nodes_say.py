"""Nodes of Tensor graphs: names for data, numbers for values in between, formulas with numbers put in."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg


def leaf(value, name):
    return mg.tensor(value, requires_grad=True, name=name)


def nodes(root, **options):
    return {n.name: n for n in mg.draw(root, **options).graph.nodes.values()}


def worked(root):
    graph = mg.draw(root).graph
    backward = [n for n in graph.nodes.values() if n.side == "backward"]
    return [slot.worked() for n in backward for slot in n.data.get("slots", ())]


def test_forward_steps_are_told_with_numbers_put_in():
    x, w = leaf(2.0, "x"), leaf(3.0, "w")
    y = mg.tanh(x * w - 5)
    y.name = "y"
    told = [event.formula for event in mg.play(y).events]
    assert told[:3] == [
        "%1 = x·w = 2·3 = 6",
        "%2 = %1 − 5 = 6 − 5 = 1",
        "y = tanh(%2) = tanh(1) = 0.76159",
    ]


def test_values_in_between_have_numbers_though_nobody_holds_them():
    b, y, x = leaf(3.0, "b"), leaf(100.0, "y"), leaf(2.0, "x")
    rate = mg.tensor(7.0)
    z = b * rate + y * x**2
    for ran in (False, True):
        if ran:
            z.backward()
        shown = nodes(z)
        assert {n: shown[n].lines for n in ("%1", "%2", "%3")} == {
            "%1": ("21",), "%2": ("4",), "%3": ("400",)
        }  # fmt: skip
        assert shown["rate"].lines == ("7",)


def test_a_number_is_called_by_itself_wherever_it_stands():
    x = leaf(2.0, "x")
    y = mg.tanh(x * 3 + 1) - 0.5
    names = nodes(y)
    assert {"3", "1", "0.5"} <= names.keys()
    assert names["%1"].lines == ("6",)
    assert names["%2"].lines == ("7",)


def test_data_no_rule_keeps_is_called_as_it_was_written():
    x, batch = leaf(np.ones((2, 3)), "x"), mg.tensor(np.ones((2, 3)))
    target = np.array([0, 2])
    loss = mg.cross_entropy(x + batch, target)
    loss.backward()
    names = nodes(loss)
    assert {"batch", "target"} <= names.keys()
    assert names["target"].lines == ("[0, 2]",)
    assert not any("constant" in name for name in names)


def test_a_value_that_changed_in_place_is_not_computed_with():
    x, w = leaf(2.0, "x"), leaf(3.0, "w")
    y = (x + w) * 1.0
    with mg.no_grad():
        w.add_(10.0)
    assert nodes(y)["%1"].lines == ()


def test_a_missing_bias_is_no_node():
    x = leaf(np.ones((1, 2)), "x")
    graph = mg.draw(mg.linear(x, np.ones((2, 2)))).graph
    assert len([n for n in graph.nodes.values() if n.kind == "data"]) == 1


def test_several_gradients_of_a_leaf_are_told_one_by_one():
    x = leaf(3.0, "x")
    y = x * x + 2 * x
    y.backward()
    (end,) = (n for n in mg.draw(y).graph.nodes.values() if n.name == "AccumulateGrad")
    assert end.lines[0] == "x.grad = 8"
    assert end.lines[1] in ("+= 2 + 3 + 3", "+= 3 + 3 + 2")


def test_formulas_are_told_with_numbers_put_in():
    a = leaf(2.0, "a")
    e = mg.tanh(a)
    e.name = "e"
    e.backward()
    result = f"{1 - np.tanh(2) ** 2:.5g}"
    assert worked(e) == [f"g·(1 − e²) = 1·(1 − 0.96403²) = {result}"]


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: x**2, "[0] 2·x·g = 2·3·1 = 6"),
        (lambda x: -x, "−g = -1"),
        (lambda x: 1 / x, "[1] −g·z / x = −1·0.33333 / 3 = -0.11111"),
        (lambda x: x / 4, "[0] g / 4 = 1 / 4 = 0.25"),
    ],
)
def test_a_slot_in_numbers(function, line):
    x = leaf(3.0, "x")
    z = function(x)
    z.name = "z"
    z.backward()
    assert worked(z) == [line]


def test_a_slot_nobody_wants_is_not_there():
    x = leaf(3.0, "x")
    z = x**2
    (power,) = (n for n in mg.draw(z).graph.nodes.values() if n.name == "PowBackward0")
    assert power.ports == (("[0] 2·x·g", "out"),)


def test_names_are_the_users_however_long():
    x = leaf(3.0, "a_name_of_more_than_eight_letters")
    y = leaf(2.0, "y")
    z = x * y
    (times,) = (n for n in mg.draw(z).graph.nodes.values() if n.name == "MulBackward0")
    assert [text for text, _ in times.ports] == [
        "[0] g·y",
        "[1] g·a_name_of_more_than_eight_letters",
    ]


def test_every_operand_of_a_list_has_its_formula():
    x, y = leaf([[1.0]], "x"), leaf([[2.0]], "y")
    shown = nodes(mg.einsum("ij,jk->ik", x, y))["EinsumBackward0"]
    assert [text for text, _ in shown.ports] == ["[0] einsum(g, y)", "[1] einsum(g, x)"]


class Odd(mg.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gy):
        Odd.calls += 1
        return gy


def test_a_function_says_that_its_rule_is_its_own():
    x = leaf(2.0, "x")
    y = Odd.apply(x * 1.0)
    y.backward()
    before = Odd.calls
    assert "Odd.backward(g) = 1" in [line for n in nodes(y).values() for line in n.lines]
    assert Odd.calls == before  # what it gave is remembered: nothing of the user's runs again


def test_behind_a_function_the_numbers_go_on():
    x = leaf(2.0, "x")
    y = Odd.apply(x * 4.0)
    y.backward()
    assert "[0] g·4 = 1·4 = 4" in worked(y)


def test_a_tensor_that_is_called_like_a_number_keeps_its_own_value():
    x = mg.tensor([2.0, 3.0], requires_grad=True, name="0")
    (op,) = (node for node in mg.draw(x * x).graph if node.kind == "op")
    assert op.data["slots"][0].worked() == "%1 = 0·0 = [2, 3]·[2, 3] = [4, 9]"
