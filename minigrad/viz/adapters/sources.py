"""Which adapter draws what, by what an object can do rather than by its class."""

from collections.abc import Mapping
from typing import Any

from ..graph.graph import Graph
from .frames import is_module, of_module
from .names import Names
from .of_error import of_error
from .of_grad_fn import of_explanation, of_grad_fn
from .of_net import is_net, of_net
from .of_nodes import function_like, of_links, of_run, outputs_of, variable_like
from .of_program import is_program, of_program
from .of_torch import of_torch
from .torch_facts import kind_of
from .watching import watch


def graph_behind(x, detail: str, values: bool | str, names: Names) -> Graph:
    """The neutral graph of anything; the first adapter that fits draws it.

    Raises `TypeError` for something without a graph.
    """
    thing, scope = parted(x)
    program = getattr(thing, "program", thing)  # a variable or a block stands for the program
    several = [*x] if isinstance(x, (list, tuple)) and x else [x]
    at = values_in(scope)
    whole = getattr(getattr(x, "view", x), "whole", x)  # of a Picture
    if isinstance(whole, Graph):
        return whole
    if isinstance(x, BaseException):
        return of_error(x, names)
    if isinstance(x, watch):
        return of_run(x, names)
    if is_program(program):
        return of_program(program, at, detail, record_of(x))
    if is_net(thing):
        return of_net(thing, at)
    if all(kind_of(v) in ("tensor", "node") for v in several):
        return of_torch(several, names, values).graph
    if getattr(x, "roots", ()) and hasattr(x, "paths"):
        return of_explanation(x, names)
    if all(hasattr(v, "next_functions") or hasattr(v, "grad_fn") for v in several):
        return of_grad_fn(several, names, values)
    if all(variable_like(v) or function_like(v) for v in several):
        return of_links([v for each in several for v in outputs_of(each)], names)
    if is_module(x):
        return of_module(x)
    if all(is_program(getattr(v, "program", None)) for v in several):
        return of_program(several[0].program, None, detail)
    raise TypeError(
        f"nothing to draw in {type(x).__name__!r}: draw takes a variable or tensor (or a list of "
        "them), a function of the graph, a watched run, an error that was raised, a net, a "
        "program, a Graph or a module"
    )


def parted(x) -> tuple[Any, Any]:
    """What to draw, and the values by name, or the scope, that are given with it."""
    both = isinstance(x, tuple) and len(x) == 2 and held_by(x[1]) is not None
    return x if both else (x, None)


def held_by(scope) -> Mapping[str, Any] | None:
    """Name → value of one scope alone, a mapping or an object with ``values``; None for something else."""
    held = scope if isinstance(scope, Mapping) else getattr(scope, "values", None)
    return held if isinstance(held, Mapping) else None


def values_in(scope) -> dict[str, Any]:
    """Name → value as a scope finds it: its own, then its parents'."""
    values: dict[str, Any] = {}
    while scope is not None:
        values = {**(held_by(scope) or {}), **values}
        scope = getattr(scope, "parent", None)
    return values


def record_of(x) -> Any:
    """What a run of a program did, where the scope that was given with the program knows it."""
    thing, scope = parted(x)
    record = getattr(scope, "record", None)
    program = getattr(thing, "program", thing)
    return record if getattr(record, "program", None) is program else None
