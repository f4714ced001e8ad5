"""Scope trees, and modules that were not called, as pictures.

A scope holds names and values and looks further in its parent.  It may be a mapping, an object with
``values`` or ``vars``, or a chain of maps; a parent is found in ``parent``, children in ``kids`` or
``children``.  Values that are lists of scopes (the step scopes of a loop) are drawn inside.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ...grad_names import is_gradient
from ..graph.format import explain_value, format_value
from ..graph.graph import Graph
from .frames import put_into_frames
from .inside import arrays, value

FEW_STEPS = 4  # step scopes of a loop that are drawn; the rest is counted


# ---- scopes ------------------------------------------------------------------------------------


def is_scope(x: Any) -> bool:
    """Whether x holds names and values and has a parent to ask."""
    if isinstance(x, ChainMap):
        return True
    return hasattr(x, "parent") and not hasattr(x, "ops") and names_of(x) is not None


def names_of(scope: Any) -> Mapping[str, Any] | None:
    """Name → value of one scope alone, without its parents; None for something else."""
    if isinstance(scope, ChainMap):
        return scope.maps[0]
    if isinstance(scope, Mapping):
        return scope
    held = getattr(scope, "values", None)
    held = held if isinstance(held, Mapping) else getattr(scope, "vars", None)
    return held if isinstance(held, Mapping) else None


def of_scope(scope: Any) -> Graph:
    """The picture of a scope with all its parents and children, each a frame inside the outer."""
    graph = Graph(title="Scopes")
    chain = [scope, *parents(scope)][::-1]
    outer, depth = None, 0
    for depth, level in enumerate(chain):
        label = "scope" if len(chain) == 1 else "global scope" if depth == 0 else "local scope"
        outer = frame(graph, level, label, outer)
    waiting = [(child, outer, label) for child, label in inner_scopes(scope)]
    for level, parent, label in waiting:  # grows while it is walked
        region = frame(graph, level, label, parent)
        waiting += [(child, region, words) for child, words in inner_scopes(level)]
    graph.steps = [f"{n.name} = {', '.join(n.lines)}" for n in graph.nodes.values()]
    return graph


def parents(scope: Any) -> list[Any]:
    """From the nearest to the outermost; a scope that is its own ancestor ends the walk."""
    if isinstance(scope, ChainMap):
        return [SimpleNamespace(values=level) for level in scope.maps[1:]]
    found: list[Any] = []
    at = getattr(scope, "parent", None)
    while at is not None and all(at is not known for known in (scope, *found)):
        found.append(at)
        at = getattr(at, "parent", None)
    return found


def all_values(scope: Any) -> dict[str, Any]:
    """Name → value as a scope finds it: its own, then its parents'."""
    found: dict[str, Any] = {}
    for level in reversed([scope, *parents(scope)]):
        found |= names_of(level) or {}
    return found


def frame(graph: Graph, scope: Any, label: str, outer: str | None) -> str:
    """One scope: a frame with its values."""
    region = graph.region(label, parent=outer, strong=outer is not None)
    for name, held in (names_of(scope) or {}).items():
        steps = step_list(held)
        kind = "scopes" if steps else "gradient" if is_gradient(str(name)) else "value"
        fields = {"lines": (f"{len(steps)} steps",)} if steps else value(held)
        graph.node(kind, str(name), region=region.id, **fields)
    return region.id


def inner_scopes(scope: Any) -> list[tuple[Any, str]]:
    """(scope, label) of the children and of the step scopes that lie in a scope."""
    kids = getattr(scope, "kids", None) or getattr(scope, "children", None) or ()
    found = [(kid, "local scope") for kid in kids if names_of(kid) is not None]
    for name, held in (names_of(scope) or {}).items():
        steps = step_list(held)
        found += [(step, f"{name}: step {i}") for i, step in enumerate(steps[:FEW_STEPS])]
    return found


def step_list(value: Any) -> list[Any]:
    """A value that is a list of scopes; an empty list for any other value."""
    listed = isinstance(value, list | tuple) and bool(value)
    return list(value) if listed and all(names_of(v) is not None for v in value) else []


# ---- A module as a picture: its parameters, in a frame for every layer, with what their gradients are ----


def is_module(x: Any) -> bool:
    """Whether x knows its parameters by name."""
    return callable(getattr(x, "named_parameters", None)) and not isinstance(x, type)


def of_module(module: Any, values: bool = True) -> Graph:
    """The picture of a module before it is called; call it and draw the result for its graph."""
    graph = Graph(title=type(module).__name__)
    region = graph.region(type(module).__name__).id
    paths, titles = {}, {}
    total = 0
    for path, tensor in module.named_parameters():
        *place, name = path.split(".")
        grad = getattr(tensor, "grad", None)
        node = graph.node(
            "leaf" if getattr(tensor, "requires_grad", True) else "data",
            name,
            lines=(format_value(tensor), f"grad {format_value(grad)}") if values else (),
            region=region,
            tooltip=f"{path}: {explain_value(tensor)}\ngradient: {explain_value(grad)}",
            data=arrays(tensor, grad) if values else {},
        )
        paths[node.id], at = tuple(place), module
        for depth, key in enumerate(place, 1):
            listed = key.isdigit() and hasattr(at, "__getitem__")
            at = at[int(key)] if listed else getattr(at, key, at)
            if is_module(at):  # and no list of layers
                titles[*place[:depth],] = f"{'.'.join(place[:depth])}: {type(at).__name__}"
        total += math.prod(tensor.shape)
    put_into_frames(graph, paths, titles)
    graph.notes.append(
        f"{total:,} numbers in {len(graph.nodes)} parameters; "
        "call the module and draw what it returns to see its graph"
    )
    graph.steps = [n.tooltip.splitlines()[0] for n in graph.nodes.values()]
    return graph
