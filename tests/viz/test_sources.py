"""What can be drawn and played: everything of the package; the rest is refused in plain words."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static
from minigrad.viz.render import layout


def program():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [3]), static.parameter("w", np.ones(3))
        loss = (mg.tanh(x) * w).sum()
        static.append_backward(loss)
    return prog, loss, w


def tensor():
    return mg.tanh(mg.tensor(np.ones(2), requires_grad=True, name="x")).sum()


KINDS = {
    "a Tensor": tensor,
    "a leaf": lambda: mg.tensor(1.0, requires_grad=True, name="x"),
    "a node": lambda: tensor().grad_fn,
    "a list of Tensors": lambda: [tensor(), tensor()],
    "a list of nodes": lambda: [tensor().grad_fn],
    "a Module": lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)),
    "a layer": lambda: nn.Linear(3, 4),
    "a Program": lambda: program()[0],
    "a Variable": lambda: program()[1],
    "a list of Variables": lambda: list(program()[1:]),
    "a Block": lambda: program()[0].global_block(),
    "an Operator": lambda: program()[0].global_block().ops[0],
    "a picture": lambda: mg.draw(tensor()),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))
def test_it_is_drawn_and_played(make):
    thing = make()
    picture = mg.draw(thing)
    assert picture.graph.nodes
    assert (picture.svg is not None) == layout.available()
    assert len(str(mg.play(thing)).splitlines()) > 1


def test_a_module_shows_its_parameters_by_layer_and_what_they_hold():
    layer = nn.Sequential(nn.Linear(2, 1))
    graph = mg.draw(layer).graph
    assert [r.label for r in graph.regions.values()][-1] == "layers.0: Linear"
    assert {n.name: n.lines[1] for n in graph.nodes.values()} == {
        "weight": "grad —",
        "bias": "grad —",
    }
    layer(mg.tensor(np.ones((1, 2)))).sum().backward()
    lines = {n.name: n.lines[1] for n in mg.draw(layer).graph.nodes.values()}
    assert lines["bias"] == "grad [1]"
    assert "—" not in lines["weight"]


@pytest.mark.parametrize(
    "thing",
    [3, "x", None, np.ones(3), {}, [], np.sin, int, {1}, object(), [1, 2], [tensor(), 3], (3, {})],
)
def test_anything_else_is_refused_with_its_type_and_what_can_be_drawn(thing):
    wanted = f"nothing to draw in '{type(thing).__name__}': draw takes .*tensor.*program(.|\n)*mg.draw.loss"
    for show in (mg.draw, mg.play):
        with pytest.raises(TypeError, match=wanted):
            show(thing)


def test_a_place_that_is_not_there_is_named(tmp_path):
    for show in (mg.draw, mg.play):
        with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
            show(tensor()).save(tmp_path / "nowhere" / "x.html")
    with pytest.raises(FileNotFoundError, match="there is no folder 'nowhere'.*make it first"):
        mg.draw(tensor()).save("nowhere/x.svg")
