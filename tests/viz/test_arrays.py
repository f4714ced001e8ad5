"""Arrays in the details of a node: every element of those that are not large."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static
from minigrad.viz.fold import View
from minigrad.viz.graph.format import cells
from minigrad.viz.graph.graph import Graph
from minigrad.viz.render.html import arrays_of

RNG = np.random.default_rng(0)


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text))) if text else {}


def held(picture):
    """(name of the node, word) → what the browser is told of an array."""
    nodes = picture.graph.nodes
    found = unpacked(arrays_of(picture.view))
    return {(nodes[n].name, each["word"]): each for n, arrays in found.items() for each in arrays}


def numbers(told):
    return np.array(told["numbers"].split(), float)


def test_values_and_gradients_are_told_element_by_element():
    w = mg.tensor(RNG.normal(size=(4, 6)), requires_grad=True, name="w")
    loss = (w * w).sum()
    loss.backward()
    told = held(mg.draw(loss))
    assert np.allclose(numbers(told["w", "value"]), w.data.ravel(), rtol=5e-3)
    assert np.allclose(numbers(told["AccumulateGrad", "value"]), w.grad.data.ravel(), rtol=5e-3)
    assert told["w", "value"]["shape"] == [4, 6]
    assert told["w", "value"]["wide"] == 6  # a matrix keeps its rows


def test_a_parameter_of_a_module_has_both():
    layer = nn.Linear(3, 5)
    layer(mg.tensor(RNG.normal(size=(2, 3)))).sum().backward()
    assert {word for name, word in held(mg.draw(layer)) if name == "weight"} == {
        "value",
        "gradient",
    }


def test_the_values_of_a_program_are_those_of_its_run():
    program, scope = static.Program(), static.Scope()
    with static.program_guard(program):
        x = static.data("x", (3, 4))
        h = mg.tanh(x * static.parameter("w", np.full(4, 0.5)))
        static.append_backward(h.sum())
    feed = RNG.normal(size=(3, 4))
    static.Executor().run(program, {"x": feed}, [h], scope=scope)
    told = held(mg.draw((program, scope)))
    assert np.allclose(numbers(told[h.name, "value"]), np.tanh(feed * 0.5).ravel(), rtol=5e-3)
    assert not held(mg.draw(program))


def test_a_picture_keeps_no_array_of_the_user():
    array = np.arange(12.0)
    found = cells(array)
    array[:] = 0
    assert found[5] == 5


@pytest.mark.parametrize(
    "value",
    [
        None,
        2.0,
        "word",
        np.zeros(0),
        np.zeros(4),
        np.zeros(4097),
        np.array(["a"] * 9),
        [[1, 2], [3]],
    ],
)
def test_what_is_small_or_large_or_no_array_has_no_map(value):
    assert cells(value) is None


def test_numbers_that_are_not_finite_integers_and_truths_are_told():
    graph = Graph()
    for array in ([np.nan, np.inf, -np.inf, 0, 1], [2**40, 1, 2, 3, 4], [True, False] * 3):
        graph.node("value", "x", data={"arrays": [("value", cells(np.array(array)))]})
    first, second, third = unpacked(arrays_of(View(graph))).values()
    assert first[0]["numbers"] == "nan inf -inf 0 1"
    assert second[0]["numbers"] == "1099511627776 1 2 3 4"
    assert third[0]["numbers"] == "1 0 1 0 1 0"


def test_a_page_holds_few_numbers_however_many_arrays_there_are():
    graph = Graph()
    for _ in range(300):
        graph.node("value", "x", data={"arrays": [("value", cells(RNG.normal(size=(60, 60))))]})
    assert len(arrays_of(View(graph))) < 250_000
