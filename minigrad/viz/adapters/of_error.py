"""The forward pass up to the operation that failed, as its error remembers it."""

import linecache
import re
from traceback import walk_tb
from types import FrameType
from typing import Any

from ..graph.graph import Graph
from .names import Names, caller_variables
from .of_grad_fn import Drawing
from .of_torch import of_torch
from .torch_facts import kind_of
from .wiring import dropped_op


def of_error(error: BaseException, names: Names) -> Graph:
    """What failed, the Tensors that met there, and how they were computed.

    Raises `TypeError` for an error that met no Tensor.
    """
    frames = [*walk_tb(error.__traceback__)]
    for frame, _ in frames:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("minigrad", "torch"):
            names.also(caller_variables(frame))
    for frame, number in reversed(frames):
        line = linecache.getline(frame.f_code.co_filename, number).strip()
        if met := _met(frame, line):
            break
    else:
        raise TypeError(f"nothing to draw in {type(error).__name__!r}: it met no Tensor")
    drawing = of_torch(met, names) if kind_of(met[0]) else Drawing(met, names, True)
    graph = drawing.graph
    graph.nodes = {node.id: node for node in graph if node.side == "forward"}
    for node in graph:
        node.twin = None
        if node.kind == "output":
            node.kind = "value"
    graph.edges = [e for e in graph.edges if {e.tail, e.head} <= graph.nodes.keys()]
    graph.regions = {r.id: r for r in graph.regions.values() if r.side == "forward"}
    what = str(error).partition("\n")[0]
    what = what.partition(" is not possible: ")[2] or what
    graph.title = f"{type(error).__name__}: {what}"
    if _parameters(frame):
        line = type(frame.f_locals["self"]).__name__
    box = dropped_op(graph, line or frame.f_code.co_name, f"failed: {what}", "r0")
    for place in filter(None, map(drawing.place, met)):
        graph.edge(place.node, box)
    return graph


def _met(frame: FrameType, line: str) -> list[Any]:
    """The Tensors that a line of a function names, and those of its module; without a line all it knows."""
    words = {*re.findall(r"\w+", line)}
    known = [x for name, x in frame.f_locals.items() if name in words or not words]
    known += _parameters(frame)
    met = [x for x in known if hasattr(x, "grad_fn") and not isinstance(x, type)]
    return [*{id(x): x for x in met}.values()]


def _parameters(frame: FrameType) -> list[Any]:
    """What a method of a module of PyTorch's has of its own."""
    owner: Any = frame.f_locals.get("self")
    return [*owner._parameters.values()] if kind_of(owner) == "module" else []
