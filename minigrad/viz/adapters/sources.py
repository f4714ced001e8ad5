"""Which adapter draws what, by what an object can do rather than by its class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..graph.graph import Graph
from .names import Names
from .of_grad_fn import of_explanation, of_grad_fn
from .of_net import is_net, of_net
from .of_nodes import function_like, of_links, of_run, outputs_of, variable_like
from .of_program import is_program, of_program
from .of_scope import all_values, is_module, is_registry, is_scope, of_module, of_registry, of_scope
from .of_torch import of_torch
from .torch_facts import kind_of
from .watching import watch

Source = Callable[[Any, str, bool | str, Names], Graph]


def source_of(x: Any) -> Source:
    """The function (x, detail, values, names) → Graph for x.

    Raises `TypeError` for something without a graph.
    """
    for fits, source in _SOURCES:
        if fits(x):
            return source
    raise TypeError(
        f"nothing to draw in {type(x).__name__!r}: draw takes a variable or tensor (or a list of "
        "them), a function of the graph, a watched run, a net, a program or a Graph, a module, a "
        "scope, or a registry of ops"
    )


def _drawn(x: Any) -> bool:
    return isinstance(x, Graph) or isinstance(getattr(x, "graph", None), Graph)


def _several(x: Any) -> Any:
    return x if isinstance(x, (list, tuple)) else [x]


def _whole(x: Any) -> Any:
    """A variable or a block of a program stands for the program."""
    return getattr(x, "program", x)


def _with_scope(x: Any) -> bool:
    """A pair (program or net, values by name or a scope)."""
    if not (isinstance(x, tuple) and len(x) == 2):
        return False
    return isinstance(x[1], Mapping) or is_scope(x[1])


def _first(x: Any) -> Any:
    return x[0] if _with_scope(x) else x


def _scope(x: Any, values: bool | str) -> Mapping[str, Any] | None:
    """The values by name that are given with what to draw: those of a scope with all its parents."""
    if not (values and _with_scope(x)):
        return None
    return x[1] if isinstance(x[1], Mapping) else all_values(x[1])


def record_of(x: Any) -> Any:
    """What a run of a program did, where the scope that was given with the program knows it."""
    record = getattr(x[1], "record", None) if isinstance(x, tuple) and len(x) == 2 else None
    return record if getattr(record, "program", None) is _whole(_first(x)) else None


def _is_grad_fn(x: Any) -> bool:
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    return hasattr(first, "next_functions") or hasattr(first, "grad_fn")


def _is_torchs(x: Any) -> bool:
    several = _several(x)
    return bool(several) and all(kind_of(v) in ("tensor", "node") for v in several)


def _is_linked(x: Any) -> bool:
    several = _several(x)
    return bool(several) and all(variable_like(v) or function_like(v) for v in several)


def _are_variables(x: Any) -> bool:
    """Variables of one program: the program is drawn."""
    several = isinstance(x, (list, tuple)) and len(x) > 0
    return several and all(is_program(_whole(getattr(v, "program", None))) for v in x)


def _named(x: Any) -> dict[str, Any]:
    """A primitive as a registry of one."""
    return {str(getattr(x, "type", None) or type(x).__name__): x}


#: whether it fits, and what draws it: the first that fits does
_SOURCES: tuple[tuple[Callable[[Any], bool], Source], ...] = (
    (_drawn, lambda x, *_: x if isinstance(x, Graph) else x.graph),
    (lambda x: isinstance(x, watch), lambda x, _, values, names: of_run(x, names, bool(values))),
    (
        lambda x: is_program(_whole(_first(x))),
        lambda x, detail, values, _: of_program(
            _whole(_first(x)), _scope(x, values), detail, record_of(x) if values else None
        ),
    ),
    (lambda x: is_net(_first(x)), lambda x, _, values, *rest: of_net(_first(x), _scope(x, values))),
    (_is_torchs, lambda x, _, values, names: of_torch(_several(x), names, values)),
    (
        lambda x: getattr(x, "start", None) is not None and hasattr(x, "paths"),
        lambda x, _, __, names: of_explanation(x, names),
    ),
    (_is_grad_fn, lambda x, _, values, names: of_grad_fn(_several(x), names, values)),
    (
        _is_linked,
        lambda x, _, values, names: of_links(
            [v for thing in _several(x) for v in outputs_of(thing)], names, bool(values)
        ),
    ),
    (is_scope, lambda x, *_: of_scope(x)),
    (is_registry, lambda x, *_: of_registry(x)),
    (is_module, lambda x, _, values, *rest: of_module(x, bool(values))),
    (_are_variables, lambda x, detail, *_: of_program(x[0].program, None, detail)),
    (lambda x: is_registry(_named(x)), lambda x, *_: of_registry(_named(x))),
)
