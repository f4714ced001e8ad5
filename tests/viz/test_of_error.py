"""A forward pass that failed is drawn up to the error."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.viz import draw


def error_of(run):
    with pytest.raises(Exception) as caught:
        run()
    return caught.value


def test_what_failed_stands_behind_what_it_was_given():
    x = mg.ones([3], requires_grad=True, name="x")
    h = mg.exp(x)
    picture = draw(error_of(lambda: h + mg.ones([4])))
    assert "  h = exp(x)  " in picture.text
    (failed,) = (n for n in picture.graph.nodes.values() if n.kind == "pruned")
    assert failed.name == "add"
    assert failed.lines[0].startswith("failed: operands could not be broadcast")
    given = [picture.graph.nodes[e.tail].name for e in picture.graph.edges if e.head == failed.id]
    assert given[0] == "h"
    assert len(given) == 2
    assert {n.side for n in picture.graph.nodes.values()} == {"forward"}
    assert picture.svg


def test_a_model_is_drawn_up_to_the_layer_that_does_not_fit():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(7, 2))
    graph = draw(error_of(lambda: model(mg.ones([3, 4])))).graph
    assert [n.name for n in graph.nodes.values() if n.kind == "op"] == ["addmm", "tanh"]
    (failed,) = (n for n in graph.nodes.values() if n.kind == "pruned")
    given = {graph.nodes[e.tail].name for e in graph.edges if e.head == failed.id}
    assert (failed.name, given) == ("linear", {"%2", "layers.2.weight", "layers.2.bias"})
    assert graph.title.startswith("ShapeError: shapes (3,8) and (7,2) not aligned")


def test_an_error_of_ones_own_shows_what_its_line_names():
    def check(a, unused):
        if a.shape != (2,):
            raise ValueError(f"not two: {a.shape}")

    y = mg.ones([3], requires_grad=True, name="y") * 2.0
    graph = draw(error_of(lambda: check(y, mg.ones([9], name="unused")))).graph
    assert "unused" not in {n.name for n in graph.nodes.values()}
    assert any(n.name.startswith("raise ValueError(") for n in graph.nodes.values())


def test_the_class_that_a_line_names_is_no_tensor():
    kind, y = mg.Tensor, mg.ones([3], requires_grad=True, name="y")
    graph = draw(error_of(lambda: kind.reshape(y, (2, 2)))).graph
    assert [n.name for n in graph.nodes.values() if n.kind == "leaf"] == ["y"]
    graph = draw(error_of(lambda: int(kind is None) / (y is None))).graph
    assert [n.name for n in graph.nodes.values() if n.kind == "leaf"] == ["y"]


def test_an_error_without_tensors_has_no_picture():
    with pytest.raises(TypeError, match="it met no Tensor"):
        draw(error_of(lambda: 1 / 0))
