"""Pictures of PyTorch's graphs: `of_grad_fn`, with parameters named by their paths and a frame for every module.

A graph does not know which module an operation ran in.  Its parameters do: an operation that reads one belongs to
the module that holds it, one between two such operations to the module that holds both.
"""

from __future__ import annotations

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
    nodes = {id(n): n for n in drawing.walk.order}
    for key, node in drawing.tensors.drawn.items():
        if key[0] == "tensor" and not node.lines and drawing.values:
            about = nodes[key[1]]._input_metadata[key[2]]
            node.lines = (f"{format_shape(about.shape)} {str(about.dtype).removeprefix('torch.')}",)


def _leave_out_what_is_not_there(drawing: Drawing) -> None:
    """A convolution without bias has a slot for it all the same."""
    gone = set()
    for fn in drawing.walk.order:
        for name, value in drawing.tensors.inputs.get(id(fn), {}).items():
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
            path = places[id(fn)]
            self._move(tensors.ops[id(fn)], path, "forward")
            self._move(self.drawing.nodes[id(fn)], path, "backward")
            for value in tensors.inputs[id(fn)].values():
                if value.kind == "data" and value.id in self.graph.nodes:
                    self._move(value, path, "forward")
            for number in tensors.read.get(id(fn), ()):
                made = tensors.drawn.get(("tensor", id(fn), number))
                if made is not None and made.kind == "value":
                    self._move(made, path, "forward")
                for held in (self.drawing.between, self.drawing.arrives):
                    if (id(fn), number) in held:
                        self._move(held[id(fn), number], path, "backward")
        for fn in filter(accumulates, walk.order):
            path = self.paths.get(id(fn.variable), ())
            self._move(self.drawing.nodes[id(fn)], path, "backward")
            self._move(tensors.drawn["leaf", id(fn.variable)], path, "forward")

    def _drop_repeated(self, fns: list[Any]) -> None:
        """No frames for modules that ran several times, as the cell of an RNN: repeats fold better."""
        readers: dict[int, int] = {}
        for fn in fns:
            for to, _ in self.drawing.walk.next(fn):
                if to is not None and accumulates(to):
                    readers[id(to.variable)] = readers.get(id(to.variable), 0) + 1
        often = [self.paths[k] for k, times in readers.items() if times > 2 and k in self.paths]
        for path in often:
            for depth in range(1, len(path) + 1):
                self.titles.pop(path[:depth], None)

    def _places(self, fns: list[Any]) -> dict[int, Path]:
        """The module of every operation, by its parameters or by those around it."""
        own = [self._own(fn) for fn in fns]
        following: list[Path] = [()] * len(fns)
        after: Path = ()
        for k in range(len(fns) - 1, -1, -1):
            after = own[k] or after
            following[k] = after
        places: dict[int, Path] = {}
        before: Path = ()
        for fn, mine, after in zip(fns, own, following, strict=True):
            before = mine or before
            shared = _common(before, after)
            inner = next(
                (
                    p
                    for d in range(len(shared) + 1, len(before))
                    if (p := before[:d]) in self.titles
                ),
                (),
            )
            reads = [
                places.get(id(to), ()) for to, _ in self.drawing.walk.next(fn) if to is not None
            ]
            ends = bool(inner) and any(p[: len(inner)] == inner for p in reads)
            places[id(fn)] = mine or (inner if ends else shared)
        return places

    def _own(self, fn: Any) -> Path:
        held = [
            to.variable
            for to, _ in self.drawing.walk.next(fn)
            if to is not None and accumulates(to)
        ]
        return next((self.paths[id(v)] for v in held if id(v) in self.paths), ())

    def _move(self, node: Node, path: Path, side: str) -> None:
        held = next((path[:d] for d in range(len(path), 0, -1) if path[:d] in self.titles), None)
        if held is not None:
            node.region = self._region(held, side)

    def _region(self, path: Path, side: str) -> str:
        if (path, side) not in self.regions:
            outer = next(
                (path[:d] for d in range(len(path) - 1, 0, -1) if path[:d] in self.titles), None
            )
            base = self.drawing.region if side == "backward" else self.drawing.tensors.region
            parent = self._region(outer, side) if outer is not None else base
            frame = self.graph.region(self.titles[path], side=side, parent=parent, folds=True)
            self.regions[path, side] = frame.id
        return self.regions[path, side]


def _common(one: Path, other: Path) -> Path:
    both = [a == b for a, b in zip(one, other, strict=False)]
    return one[: both.index(False) if False in both else len(both)]
