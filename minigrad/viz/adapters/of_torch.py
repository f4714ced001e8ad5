"""Pictures of PyTorch's graphs: `of_grad_fn`, with parameters named by their paths and a frame for every module.

A graph does not know which module an operation ran in.  Its parameters do: an operation that reads one belongs to
the module that holds it, one between two such operations to the module that holds both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..graph.format import format_shape
from ..graph.graph import Graph, Node
from .names import Names
from .of_grad_fn import Drawing, accumulates, title_of
from .torch_facts import has_formula, of_kind, tensor_names

Path = tuple[str, ...]


def of_torch(roots: Iterable[Any], names: Names, values: bool | str = True) -> Graph:
    """The graph behind Tensors of PyTorch, or behind nodes of its backward graph."""
    modules = of_kind(names.variables, "module")
    names.also(tensor_names(names.variables))
    drawing = Drawing(roots, names, values)
    graph = drawing.graph
    _tell_shapes(drawing)
    _leave_out_what_is_not_there(drawing)
    unknown = {title_of(n) for n in drawing.walk.order if not has_formula(n)}
    if unknown:
        graph.notes.append(f"no formula is known of {', '.join(sorted(unknown)[:6])}")
    _Frames(drawing, modules).draw()
    return graph


def _tell_shapes(drawing: Drawing) -> None:
    """Values that nobody holds any more have a shape still: their node knows it."""
    for key, node in drawing.tensors.drawn.items():
        if key[0] == "tensor" and not node.lines and drawing.values:
            about = key[1]._input_metadata[key[2]]
            node.lines = (f"{format_shape(about.shape)} {str(about.dtype).removeprefix('torch.')}",)


def _leave_out_what_is_not_there(drawing: Drawing) -> None:
    """A convolution without bias has a slot for it all the same."""
    gone = set()
    for fn in drawing.walk.order:
        for name, value in drawing.tensors.inputs.get(fn, {}).items():
            sizes = getattr(fn, f"_saved_{name}_sym_sizes_opt", True)
            gone |= {value.id} if value.kind == "data" and sizes in (None, (0,), ()) else set()
    graph = drawing.graph
    graph.edges = [e for e in graph.edges if e.tail not in gone]
    for name in gone:
        del graph.nodes[name]


class _Frames:
    """The modules that hold others, as frames on both sides."""

    def __init__(self, drawing: Drawing, modules: Mapping[str, Any]) -> None:
        self.drawing, self.graph = drawing, drawing.graph
        self.titles: dict[Path, str] = {}  # of every module that gets a frame
        self.paths: dict[int, Path] = {}  # id of a parameter → the module that holds it
        for prefix, module in sorted(modules.items(), key=lambda m: -len([*m[1].modules()])):
            self._look_at(prefix, module)
        self.regions: dict[tuple[Path, str], str] = {}

    def _look_at(self, prefix: str, module: Any) -> None:
        for path, inner in module.named_modules():
            at = (prefix, *path.split(".")) if path else (prefix,)
            fresh = [p for p in inner.parameters(recurse=False) if id(p) not in self.paths]
            self.paths |= {id(p): at for p in fresh}
            lists = type(inner).__name__ in ("ModuleList", "ModuleDict")
            if len(at) > 1 and [*inner.children()] and not lists:
                self.titles[at] = f"{'.'.join(at)}: {type(inner).__name__}"

    def draw(self) -> None:
        """Move every node of the picture into the frame of its module."""
        walk, tensors = self.drawing.walk, self.drawing.tensors
        fns = [n for n in reversed(walk.order) if not accumulates(n)]
        self._drop_repeated(fns)
        places = self._places(fns)
        for fn in fns:
            path = places[fn]
            self._move(tensors.ops[fn], path, "forward")
            self._move(self.drawing.nodes[fn], path, "backward")
            for value in tensors.inputs[fn].values():
                if value.kind == "data" and value.id in self.graph.nodes:
                    self._move(value, path, "forward")
            for number in tensors.read.get(fn, ()):
                made = tensors.drawn.get(("tensor", fn, number))
                if made is not None and made.kind == "value":
                    self._move(made, path, "forward")
                for held in (self.drawing.between, self.drawing.arrives):
                    if (fn, number) in held:
                        self._move(held[fn, number], path, "backward")
        for fn in filter(accumulates, walk.order):
            path = self.paths.get(id(fn.variable), ())
            self._move(self.drawing.nodes[fn], path, "backward")
            self._move(tensors.drawn["leaf", id(fn.variable)], path, "forward")

    def _drop_repeated(self, fns: list[Any]) -> None:
        """No frames for modules that ran several times, as the cell of an RNN: repeats fold better."""
        readers = Counter(parameter for fn in fns for parameter in self._read_by(fn))
        for path in [self.paths[p] for p, times in readers.items() if times > 2]:
            for depth in range(1, len(path) + 1):
                self.titles.pop(path[:depth], None)

    def _read_by(self, fn: Any) -> list[int]:
        """The parameters of modules that an operation reads, in the order of its inputs."""
        read = [to for to, _ in self.drawing.walk.next(fn) if to is not None and accumulates(to)]
        return [id(to.variable) for to in read if id(to.variable) in self.paths]

    def _places(self, fns: list[Any]) -> dict[Any, Path]:
        """The module of every operation, by its parameters or by those around it."""
        own: list[Path] = []
        for fn in fns:
            parameters = self._read_by(fn)
            own.append(self.paths[parameters[0]] if parameters else ())
        following = list(own)
        for k in range(len(fns) - 2, -1, -1):
            following[k] = own[k] or following[k + 1]
        places: dict[Any, Path] = {}
        before: Path = ()
        for fn, mine, after in zip(fns, own, following, strict=True):
            before = mine or before
            shared = _common(before, after)
            inner = self._outermost(before, len(shared))
            reads = [places.get(to, ()) for to, _ in self.drawing.walk.next(fn)]
            ends = bool(inner) and any(p[: len(inner)] == inner for p in reads)
            places[fn] = mine or (inner if ends else shared)
        return places

    def _framed(self, path: Path) -> Path:
        """The innermost module around a path that has a frame; empty if none has."""
        while path and path not in self.titles:
            path = path[:-1]
        return path

    def _outermost(self, path: Path, depth: int) -> Path:
        """The outermost module around a path that has a frame, deeper than ``depth``."""
        for d in range(depth + 1, len(path)):
            if path[:d] in self.titles:
                return path[:d]
        return ()

    def _move(self, node: Node, path: Path, side: str) -> None:
        if held := self._framed(path):
            node.region = self._region(held, side)

    def _region(self, path: Path, side: str) -> str:
        if (path, side) not in self.regions:
            outer = self._framed(path[:-1])
            base = self.drawing.region if side == "backward" else self.drawing.tensors.region
            parent = self._region(outer, side) if outer else base
            frame = self.graph.region(self.titles[path], side=side, parent=parent, folds=True)
            self.regions[path, side] = frame.id
        return self.regions[path, side]


def _common(one: Path, other: Path) -> Path:
    both = [a == b for a, b in zip(one, other, strict=False)]
    return one[: both.index(False) if False in both else len(both)]
