"""Which adapter draws what, by what an object can do rather than by its class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minigrad.viz.graph import Graph
from minigrad.viz.names import Names

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


def _graph(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    return x if isinstance(x, Graph) else x.graph


def _is_run(x: Any) -> bool:
    from minigrad.viz.watching import watch

    return isinstance(x, watch)


def _run(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_nodes import of_run

    return of_run(x, names, bool(values))


def _is_program(x: Any) -> bool:
    from minigrad.viz.of_program import is_program

    return is_program(_whole(x[0] if _with_scope(x) else x))


def _program(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_program import of_program

    program, scope = _parted(x)
    return of_program(_whole(program), scope if values else None, detail)


def _whole(x: Any) -> Any:
    """A variable or a block of a program stands for the program."""
    return getattr(x, "program", x)


def _is_net(x: Any) -> bool:
    from minigrad.viz.of_net import is_net

    return is_net(x[0] if _with_scope(x) else x)


def _net(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_net import of_net

    net, scope = _parted(x)
    return of_net(net, scope if values else None)


def _with_scope(x: Any) -> bool:
    """A pair (program or net, values by name or a scope)."""
    if not (isinstance(x, tuple) and len(x) == 2):
        return False
    return isinstance(x[1], Mapping) or _is_scope(x[1])


def _parted(x: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """What to draw, and its values by name: those of a scope with all its parents."""
    from minigrad.viz.of_scope import all_values

    if not _with_scope(x):
        return x, None
    return x[0], x[1] if isinstance(x[1], Mapping) else all_values(x[1])


def _is_grad_fn(x: Any) -> bool:
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    return (
        hasattr(type(first), "next_functions")
        or hasattr(first, "next_functions")
        or hasattr(first, "grad_fn")
    )


def _grad_fn(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_grad_fn import of_grad_fn

    return of_grad_fn(x if isinstance(x, (list, tuple)) else [x], names, values)


def _is_linked(x: Any) -> bool:
    from minigrad.viz.links import function_like, variable_like

    several = x if isinstance(x, (list, tuple)) else [x]
    return bool(several) and all(variable_like(v) or function_like(v) for v in several)


def _linked(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.links import outputs_of
    from minigrad.viz.of_nodes import of_links

    several = x if isinstance(x, (list, tuple)) else [x]
    return of_links([v for thing in several for v in outputs_of(thing)], names, bool(values))


def _is_scope(x: Any) -> bool:
    from minigrad.viz.of_scope import is_scope

    return is_scope(x)


def _scope(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_scope import of_scope

    return of_scope(x)


def _is_registry(x: Any) -> bool:
    from minigrad.viz.of_scope import is_registry

    return is_registry(x)


def _registry(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_scope import of_registry

    return of_registry(x)


def _is_module(x: Any) -> bool:
    from minigrad.viz.of_module import is_module

    return is_module(x)


def _module(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    from minigrad.viz.of_module import of_module

    return of_module(x, bool(values))


def _is_variables(x: Any) -> bool:
    """Variables of one program: the program is drawn."""
    several = isinstance(x, (list, tuple)) and len(x) > 0
    return several and all(_is_program(getattr(v, "program", None)) for v in x)


def _variables(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    return _program(x[0].program, detail, values, names)


def _is_primitive(x: Any) -> bool:
    return _is_registry({"": x})


def _primitive(x: Any, detail: str, values: bool | str, names: Names) -> Graph:
    return _registry({str(getattr(x, "type", None) or type(x).__name__): x}, detail, values, names)


_SOURCES: tuple[tuple[Callable[[Any], bool], Source], ...] = (
    (_drawn, _graph),
    (_is_run, _run),
    (_is_program, _program),
    (_is_net, _net),
    (_is_grad_fn, _grad_fn),
    (_is_linked, _linked),
    (_is_scope, _scope),
    (_is_registry, _registry),
    (_is_module, _module),
    (_is_variables, _variables),
    (_is_primitive, _primitive),
)
