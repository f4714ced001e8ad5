"""Pictures of the package's own Tensors: formulas from the rules, numbers from the last backward."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import minigrad as mg
from minigrad.primitives.registry import REGISTRY
from minigrad.viz.adapters.formula import rule_formula, written
from minigrad.viz.player import Player
from tests.viz.replayed import frame


def example():
    a, b, d = (mg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    c = a + b
    e = c * d
    return e, {"a": a, "b": b, "c": c, "d": d, "e": e}


def slots(picture):
    return {
        n.name: [text for text, _ in n.ports] or list(n.lines)
        for n in picture.graph.nodes.values()
        if n.kind == "grad_op"
    }


def test_before_backward_there_are_formulas_in_the_names_of_the_tensors_and_no_number():
    e, names = example()
    assert slots(mg.draw(e, names=names)) == {
        "MulBackward0": ["[0] g·d", "[1] g·c"],
        "AddBackward0": ["[0] g", "[1] g"],
    }


def test_after_backward_every_slot_says_what_it_gave():
    e, names = example()
    e.backward()
    picture = mg.draw(e, names=names)
    assert slots(picture) == {
        "MulBackward0": ["[0] g·d = 4", "[1] g·c = 5"],
        "AddBackward0": ["[0] g = 4", "[1] g = 4"],
    }
    assert [n.lines for n in picture.graph.nodes.values() if n.kind == "seed"] == [("1 (seed)",)]


def test_the_numbers_are_the_gradients_of_the_values_in_between():
    x = mg.tensor(0.5, requires_grad=True)
    h = mg.tanh(x)
    y = h * h * h
    y.backward()
    (text,) = slots(mg.draw(y))["TanhBackward0"]
    slope = 3 * np.tanh(0.5) ** 2 * (1 - np.tanh(0.5) ** 2)
    assert float(text.rpartition("= ")[2]) == pytest.approx(slope, rel=1e-4)


def test_a_backward_that_began_elsewhere_gives_no_numbers():
    e, names = example()
    other, _ = example()
    other.backward()
    assert "4" not in "".join(slots(mg.draw(e, names=names))["MulBackward0"])


def test_drawing_changes_nothing():
    e, names = example()
    e.backward()
    mg.draw(e, names=names)
    assert [float(names[n].grad) for n in "abd"] == [4.0, 4.0, 5.0]
    with pytest.raises(mg.MinigradError, match="freed"):
        e.backward()


def test_hooks_are_not_called_by_a_drawing():
    e, names = example()
    calls = []
    names["c"].register_hook(lambda g: calls.append(1))
    e.backward()
    mg.draw(e, names=names)
    assert calls == [1]


def test_large_saved_values_are_not_computed_again():
    x = mg.tensor(np.ones(5000), requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    given = y.grad_fn.remembered()["gradients"]
    assert [n.name() for n, _ in given] == ["SumBackward0"]


def test_one_large_value_does_not_take_the_numbers_of_the_others():
    x, w = (mg.tensor(v, requires_grad=True) for v in (np.ones(5000), 2.0))
    y = (x * x).sum() * w
    y.backward()
    nodes = mg.draw(y, names={"w": w}).graph.nodes.values()
    said = {text for n in nodes for text in (*n.lines, *(port for port, _ in n.ports))}
    assert {"[0] g·w = 2", "[1] g·%2 = 5000", "1 (seed)", "[0] g·x"} <= said


def test_a_player_takes_the_numbers_back_and_shows_them_as_formula():
    e, names = example()
    e.backward()
    player = mg.play(e, names=names)
    film: Player = player
    (mul,) = (n.id for n in player.graph.nodes.values() if n.name == "MulBackward0")
    assert frame(film, 0).texts[mul] == ["[0] g·d = —", "[1] g·c = —"]
    assert frame(film, len(player.events)).texts[mul] == ["[0] g·d = 4", "[1] g·c = 5"]
    assert "[0] g·d = 1·4 = 4  [1] g·c = 1·5 = 5" in [event.formula for event in player.events]


def test_rules_read_as_they_are_written():
    formulas = {
        (p.type, s): rule_formula(p, s) for p in REGISTRY.values() for s in p.differentiable
    }
    texts = {key: written(formula) for key, formula in formulas.items() if formula is not None}
    assert texts["mul", "x"] == "g·y"
    assert texts["tanh", "x"] == "g·(1 − out²)"
    assert texts["relu", "x"] == "g·(out > 0)"
    assert texts["div", "y"] == "−g·out / y"
    assert texts["conv2d", "w"] == "x ⋆ g"
    assert (texts["matmul", "x"], texts["matmul", "y"]) == ("g @ yᵀ", "xᵀ @ g")


def test_a_formula_names_nothing_that_its_primitive_does_not_know():
    more = {"g", "n", "k", "pi", "others", "mask", "self"}
    for p in REGISTRY.values():
        for slot in p.differentiable:
            expression = rule_formula(p, slot)
            calls = {id(n.func) for n in ast.walk(expression) if isinstance(n, ast.Call)}
            names = {
                n.id for n in ast.walk(expression) if isinstance(n, ast.Name) and id(n) not in calls
            }
            assert names <= {*p.inputs, *p.outputs, *p.attrs, *more}, (p.type, slot)


def test_numbers_are_those_of_all_outputs_that_backward_began_at():
    x = mg.tensor(2.0, requires_grad=True, name="x")
    a = x * 3.0
    b, c = a + x, a * 2.0
    mg.backward([b, c])
    drawn = mg.draw([b, c], values="grad").graph
    numbers = {n.name: n.lines[0] for n in drawn.nodes.values() if n.kind in ("gradient", "seed")}
    assert numbers == {"b.grad": "1 (seed)", "c.grad": "1 (seed)", "a.grad": "3"}
    alone = mg.draw(c, values="grad").graph  # of a what c brings is no gradient that was
    assert {n.lines for n in alone.nodes.values() if n.name == "a.grad"} == {("—",)}
