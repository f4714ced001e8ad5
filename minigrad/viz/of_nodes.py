"""Pictures of linked nodes: variables, the functions that made them, and the gradients that came
back.

Two sources, one drawing. `of_run` reads what `watch` saw; `of_links` follows ``creator`` links.
Both give calls: a function with its inputs and outputs, forward, and with its gradients, backward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .graph import Graph
from .linked_gradients import Gradients
from .linked_values import Values
from .links import Back, Call, back_of, calls_behind, linked_call, named_values
from .names import Names
from .summary import MOST, summary
from .watching import watch


def of_run(run: watch, names: Names, values: bool = True) -> Graph:
    """What really ran while `watch` was on."""
    names.also(run.names)
    calls, backs, latest = [], [], {}
    for event, snapshot in zip(run.events, run.snapshots, strict=True):
        if event.kind == "forward":
            call = Call(event.function, event.inputs, event.outputs)
            call.values = named_values(call, snapshot.inputs, snapshot.outputs)
            latest[id(event.function)] = call
            calls.append(call)
        else:
            made = latest.get(id(event.function)) or linked_call(event.function)
            backs.append(Back(made, snapshot.inputs, snapshot.outputs))
    graph = _drawn(Values(names, values), calls, backs)
    if not backs:
        graph.notes.append("backward: nothing to walk yet")
    return graph


def of_links(roots: Iterable[Any], names: Names, values: bool = True) -> Graph:
    """The graph behind one or several variables: forward by ``creator`` links, backward mirrored.

    A gradient that is not computed yet is an em dash.
    """
    roots = list(roots)
    calls = calls_behind(roots)
    if len(calls) > MOST:
        kinds = [type(call.function).__name__ for call in calls]
        made = {id(v) for call in calls for v in call.outputs}
        leaves = {id(v): v for call in calls for v in call.inputs if id(v) not in made}
        backward = [f"{kind}.backward" for kind in kinds]
        return summary(kinds, backward, [names(v) for v in leaves.values()], [names(roots[0])])
    grads = {id(v): getattr(v, "grad", None) for c in calls for v in (*c.inputs, *c.outputs)}
    backs = [back_of(call, grads) for call in reversed(calls)]
    return _drawn(Values(names, values, roots), calls, backs)


def _drawn(forward: Values, calls: list[Call], backs: list[Back]) -> Graph:
    """Forward in the order of calls, backward in the order of theirs."""
    forward.draw(calls)
    Gradients(forward).draw(backs)
    graph = forward.graph
    graph.title = ", ".join([n.name for n in graph.nodes.values() if n.kind == "output"][:3])
    return graph
