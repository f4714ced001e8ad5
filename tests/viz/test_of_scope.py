"""Scope trees and the registry as pictures."""

from __future__ import annotations

from collections import ChainMap, namedtuple

import numpy as np
import pytest

from minigrad.viz.adapters.of_scope import FEW_STEPS, is_registry, is_scope
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
Rules = namedtuple("Rules", "kernel rules")


def kernel(x, y):
    return x * y


def test_the_registry_is_a_table_of_types_their_grad_ops_and_what_those_read():
    table = {
        "mul": Info(kernel, ["x", "y"], ["out"], "mul_grad"),
        "mul_grad": Info(kernel, ["x", "y", "out_grad"], ["x_grad", "y_grad"], None),
        "less": Info(kernel, ["x", "y"], ["out"], None),
    }
    graph = draw(table).graph
    assert only(graph, "mul_grad").reads == ("x", "y", "out_grad")
    assert only(graph, "less").lines[-1] == "no gradient"
    assert only(graph, "mul").twin == only(graph, "mul_grad").id
    assert graph.steps == ["mul has mul_grad, which reads x, y, out_grad"]


def test_the_names_of_rules_say_what_a_gradient_reads():
    rules = {"x": lambda y, out_grad: y, "y": lambda x, out_grad: x}
    graph = draw({"mul": Rules(kernel, rules)}).graph
    assert only(graph, "mul_grad").reads == ("x", "y", "out_grad")
    assert only(graph, "mul").lines == ("x, y",)


def test_the_table_of_the_package_can_be_drawn():
    import minigrad  # noqa: F401  fills the table
    from minigrad.primitives.registry import REGISTRY

    assert is_registry(REGISTRY)
    graph = draw({t: REGISTRY[t] for t in ("exp", "mul", "matmul")}).graph
    assert only(graph, "exp_grad").reads == ("out", "out_grad")


@pytest.mark.parametrize("other", [{}, {"a": 1}, [1], "mul", np.zeros(2)])
def test_other_things_are_neither_scopes_nor_registries(other):
    assert not is_scope(other)
    assert not is_registry(other)
