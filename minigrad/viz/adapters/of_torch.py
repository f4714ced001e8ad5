"""Pictures of PyTorch's graphs: `of_grad_fn`, with parameters named by their paths and a frame for every module."""

from typing import Any

from ..graph.format import format_shape
from .frames import Path, frames_of_modules
from .names import Names
from .of_grad_fn import Drawing
from .torch_facts import has_formula, largest_modules, tensor_names, title


def of_torch(roots: list[Any], names: Names, values: bool | str = True) -> Drawing:
    """The drawing of what is behind Tensors of PyTorch, or behind nodes of its backward graph."""
    names.also(tensor_names(names.variables))
    drawing = Drawing(roots, names, values)
    for step in drawing.steps.values():
        for number, place in step.results.items():
            # a value that nobody holds any more has a shape still: its node knows it
            about = step.fn._input_metadata[number]
            dtype = str(about.dtype).removeprefix("torch.")
            place.node.lines = place.node.lines or (f"{format_shape(about.shape)} {dtype}",)
    unknown = {title(fn) for fn in drawing.steps if not has_formula(fn)}
    if unknown:
        drawing.graph.notes.append(f"no formula is known of {', '.join(sorted(unknown)[:6])}")
    titles = {}  # of the modules that hold others: frames on both sides
    paths: dict[int, Path] = {}  # id of a parameter → the module that holds it
    for prefix, module in largest_modules(names.variables):
        for path, inner in module.named_modules():
            at = (prefix, *path.split(".")) if path else (prefix,)
            for parameter in inner.parameters(recurse=False):
                paths.setdefault(id(parameter), at)
            kind = type(inner).__name__
            lists = kind == "ModuleList" or (kind == "ModuleDict" and not at[-1].isdigit())
            if len(at) > 1 and [*inner.children()] and not lists:
                titles[at] = f"{'.'.join(at)}: {kind}"
    homes = {leaf.node.id: paths[key] for key, leaf in drawing.leaves.items() if key in paths}
    frames_of_modules(drawing.graph, homes, titles)
    return drawing
