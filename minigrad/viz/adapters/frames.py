"""Modules: nodes put into nested frames by the paths of their modules, and a module before it is called."""

import math

from ..graph.format import explain_value, format_value
from ..graph.graph import Graph, Links, Node
from .inside import arrays

Path = tuple[str, ...]
Homes = dict[str, Path]  # node → its module
Titles = dict[Path, str]


def put_into_frames(graph: Graph, paths: Homes, titles: Titles) -> None:
    """Each node, by its id, into the innermost frame around its path, its twin beside it; ``titles`` names
    the paths that have a frame.
    """
    frames = {}
    for name, path in paths.items():
        for each in [graph.nodes[n] for n in (name, graph.nodes[name].twin) if n]:
            for depth in range(len(path)):
                at = path[: depth + 1]
                if at not in titles:
                    continue
                key = (at, each.side)
                if key not in frames:
                    inner = {"side": each.side, "parent": each.region, "folds": True}
                    frames[key] = graph.region(titles[at], **inner).id
                each.region = frames[key]


def frames_of_modules(graph: Graph, homes: Homes, titles: Titles) -> None:
    """A frame for every module, by the ``homes`` of parameters, each by the id of its node.

    An operation that reads a parameter belongs to the module that holds it, one between two such
    operations to the module that holds both.
    """
    links = Links(graph)
    for name, path in homes.items():  # what ran several times, as the cell of an RNN, folds better
        if len(links.after[name]) > 2:
            for depth in range(len(path)):
                titles.pop(path[: depth + 1], None)
    ops = [node for node in graph if node.kind == "op"]
    paths = _paths(ops, links, homes, titles)
    for node in graph:
        if node.kind == "accumulate" and node.twin is None:  # stands before a gradient
            value = links.after[node.id][0].twin
            if value in paths:
                paths[node.id] = paths[value]
    put_into_frames(graph, paths, titles)


def _paths(ops: list[Node], links: Links, homes: Homes, titles: Titles) -> dict[str, Path]:
    """The module of every operation, by its parameters or by those around it, and of what it reads and gives."""
    own = []
    for op in ops:
        held = [homes[n.id] for n in links.before[op.id] if n.id in homes]
        own.append(held[0] if held else ())
    following = list(own)
    for k in reversed(range(len(ops) - 1)):
        following[k] = own[k] or following[k + 1]
    paths: dict[str, Path] = {}
    before: Path = ()
    for op, path, after in zip(ops, own, following, strict=True):
        read = links.before[op.id]
        if path:
            before = path
        else:
            path = before
            while path != after[: len(path)]:
                path = path[:-1]
            deeper = (before[:depth] for depth in range(len(path) + 1, len(before)))
            inner = next((each for each in deeper if each in titles), ())
            makers = [maker for n in read for maker in links.before[n.id]]
            if inner and any(paths.get(m.id, ())[: len(inner)] == inner for m in makers):
                path = inner
        paths[op.id] = path
        for n in read:
            if n.kind == "data":
                paths[n.id] = path
        for n in links.after[op.id]:
            if n.kind == "value":
                paths[n.id] = path
    return paths | homes


# ---- A module as a picture: its parameters, in a frame for every layer, with what their gradients are ----


def is_module(x) -> bool:
    """Whether x knows its parameters by name."""
    return callable(getattr(x, "named_parameters", None)) and not isinstance(x, type)


def of_module(module) -> Graph:
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
            lines=(format_value(tensor), f"grad {format_value(grad)}"),
            region=region,
            tooltip=f"{path}: {explain_value(tensor)}\ngradient: {explain_value(grad)}",
            data=arrays(tensor, grad),
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
    return graph
