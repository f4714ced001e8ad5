"""Pictures of PyTorch's graphs: `of_grad_fn`, with parameters named by their paths and a frame for every module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..graph.format import format_shape
from .frames import Path, frames_of_modules
from .names import Names
from .of_grad_fn import Drawing, title_of
from .torch_facts import has_formula, of_kind, tensor_names


def of_torch(roots: Iterable[Any], names: Names, values: bool | str = True) -> Drawing:
    """The drawing of what is behind Tensors of PyTorch, or behind nodes of its backward graph."""
    modules = of_kind(names.variables, "module")
    names.also(tensor_names(names.variables))
    drawing = Drawing(roots, names, values)
    _tell_shapes(drawing)
    unknown = {title_of(n) for n in drawing.walk.order if not has_formula(n)}
    if unknown:
        drawing.graph.notes.append(f"no formula is known of {', '.join(sorted(unknown)[:6])}")
    _frames(drawing, modules)
    return drawing


def _tell_shapes(drawing: Drawing) -> None:
    """Values that nobody holds any more have a shape still: their node knows it."""
    for key, node in drawing.drawn.items():
        if key[0] == "tensor" and not node.lines:
            about = key[1]._input_metadata[key[2]]
            node.lines = (f"{format_shape(about.shape)} {str(about.dtype).removeprefix('torch.')}",)


def _frames(drawing: Drawing, modules: Mapping[str, Any]) -> None:
    """The modules that hold others, as frames on both sides."""
    titles: dict[Path, str] = {}
    paths: dict[int, Path] = {}  # id of a parameter → the module that holds it
    for prefix, module in sorted(modules.items(), key=lambda m: -len([*m[1].modules()])):
        for path, inner in module.named_modules():
            at = (prefix, *path.split(".")) if path else (prefix,)
            for parameter in inner.parameters(recurse=False):
                paths.setdefault(id(parameter), at)
            lists = type(inner).__name__ in ("ModuleList", "ModuleDict")
            if len(at) > 1 and [*inner.children()] and not lists:
                titles[at] = f"{'.'.join(at)}: {type(inner).__name__}"
    drawn = drawing.drawn.items()
    homes = {n.id: paths[key[1]] for key, n in drawn if key[0] == "leaf" and key[1] in paths}
    frames_of_modules(drawing.graph, homes, titles)
