"""Scope trees as pictures."""

from __future__ import annotations

from collections import ChainMap, namedtuple

import numpy as np
import pytest

from minigrad.viz.adapters.of_scope import FEW_STEPS, is_scope
from minigrad.viz.picture import draw


class Scope:
    def __init__(self, parent=None, **values):
        self.parent, self.values = parent, values


def only(graph, name):
    (found,) = [n for n in graph.nodes.values() if n.name == name]
    return found


def test_a_scope_stands_inside_the_frame_of_its_parent():
    outer = Scope(w=np.array([1.0, 2.0]))
    graph = draw(Scope(outer, **{"h": 3.0, "w@GRAD": np.zeros((9, 9))})).graph
    world, local = graph.regions.values()
    assert (world.label, local.label, local.parent) == ("global scope", "local scope", world.id)
    assert only(graph, "w").region == world.id
    assert only(graph, "h").lines == ("3",)
    assert only(graph, "w@GRAD").kind == "gradient"


def test_step_scopes_are_drawn_inside_the_first_few_of_them():
    scope = Scope(steps=[Scope(h=float(i)) for i in range(9)])
    graph = draw(scope).graph
    assert only(graph, "steps").lines == ("9 steps",)
    assert sum(r.label.startswith("steps: step") for r in graph.regions.values()) == FEW_STEPS


def test_a_chain_of_maps_is_a_scope_tree():
    graph = draw(ChainMap({"h": 1.0}, {"w": 2.0})).graph
    assert [r.label for r in graph.regions.values()] == ["global scope", "local scope"]


def test_a_scope_that_is_its_own_ancestor_is_drawn_once():
    scope = Scope(a=1.0)
    scope.parent = Scope(scope, b=2.0)
    assert len(draw(scope).graph.regions) == 2


def test_thousands_of_scopes_in_each_other_need_no_recursion():
    scope = Scope(a=1.0)
    for _ in range(3000):
        scope = Scope(scope)
    assert len(draw(scope, detail="full").graph.regions) == 3001


Info = namedtuple("Info", "kernel inputs outputs grad")


@pytest.mark.parametrize("other", [{}, {"a": 1}, [1], "mul", np.zeros(2)])
def test_other_things_are_no_scopes(other):
    assert not is_scope(other)
