"""A module as a picture: its parameters, in a frame for every layer, with what their gradients are.

A module is anything with ``named_parameters()``, whose names say where they lie: ``0.weight``.
"""

from __future__ import annotations

from typing import Any

from .format import explain_value, format_value
from .graph import Graph


def is_module(x: Any) -> bool:
    """Whether x knows its parameters by name."""
    return callable(getattr(x, "named_parameters", None)) and not isinstance(x, type)


def of_module(module: Any, values: bool = True) -> Graph:
    """The picture of a module before it is called; call it and draw the result for its graph."""
    graph = Graph(title=type(module).__name__, direction="TB")
    frames = {"": graph.region(type(module).__name__).id}
    total = 0
    for path, tensor in module.named_parameters():
        place, _, name = path.rpartition(".")
        grad = getattr(tensor, "grad", None)
        graph.node(
            "leaf" if getattr(tensor, "requires_grad", True) else "data",
            name,
            lines=(format_value(tensor), f"grad {format_value(grad)}") if values else (),
            region=_frame(graph, module, frames, place),
            tooltip=f"{path}: {explain_value(tensor)}\ngradient: {explain_value(grad)}",
        )
        total += getattr(tensor, "size", 0)
    graph.notes.append(
        f"{total:,} numbers in {len(graph.nodes)} parameters; "
        "call the module and draw what it returns to see its graph"
    )
    graph.steps = [n.tooltip.splitlines()[0] for n in graph.nodes.values()]
    return graph


def _frame(graph: Graph, module: Any, frames: dict[str, str], path: str) -> str:
    """The frame of a layer, inside the frames of those that hold it."""
    at, known = module, ""
    for key in path.split(".") if path else ():
        outer, known = frames[known], f"{known}.{key}".lstrip(".")
        at = at[int(key)] if key.isdigit() and hasattr(at, "__getitem__") else getattr(at, key, at)
        if known not in frames and not is_module(at):
            frames[known] = outer  # a list of layers
        elif known not in frames:
            label = f"{known}: {type(at).__name__}"
            frames[known] = graph.region(label, parent=outer).id
    return frames[known]
