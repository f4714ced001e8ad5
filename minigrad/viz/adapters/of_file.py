"""Models of ONNX: their operators and weights become a program, which `of_program` draws."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..graph.format import explain_value
from ..graph.graph import Graph
from .inside import arrays
from .of_program import of_program

_MOST = 50_000  # operators: more take longer than ten seconds


def is_model(x: Any) -> bool:
    """Whether x is the path of a file, or a model of ONNX."""
    path = isinstance(x, str | os.PathLike) and bool(Path(x).suffix)
    return path or hasattr(getattr(x, "graph", None), "initializer")


def of_file(x: Any) -> Graph:
    """The picture of a model: its operators with their attributes, its weights element by element.

    Raises `ImportError` without the package onnx, `OSError` for a file of another kind, one that
    is broken, and one that is too large.
    """
    path = Path(x) if isinstance(x, str | os.PathLike) else None
    name = path.name if path else "model"
    if path and path.suffix.lower() != ".onnx":
        raise OSError(f"cannot draw {name!r}: the model files that are read end in .onnx")
    if path and find_spec("onnx") is None:
        raise ImportError(f'drawing {name!r} needs onnx: pip install "minigrad[onnx]"')
    import onnx

    program = SimpleNamespace(blocks=[], weights={}, size=0)
    try:
        model = onnx.load(path) if path else x
        _read(program, model.graph)
    except OSError:
        raise
    except Exception as error:  # a broken file breaks its reader in many ways
        raise OSError(f"cannot draw {name!r}: {error}") from error
    graph = of_program(program)
    graph.title = f"{name}: {program.size} operators, {len(program.weights)} weights"
    made = f"{model.producer_name} {model.producer_version}".strip()
    sets = (f"{each.domain or 'opset'} {each.version}" for each in model.opset_import)
    facts = [f"made by {made}" if made else "", f"ONNX IR {model.ir_version}", *sets]
    graph.notes.append(", ".join(filter(None, facts)))
    for node in graph.nodes.values():
        if node.name in program.weights:
            node.tooltip += f" | {explain_value(program.weights[node.name])}"
            node.data |= arrays(program.weights[node.name])
        if "place" in node.data:
            block, number = node.data["place"]
            attrs = program.blocks[block].ops[number].attrs
            node.tooltip = "\n".join([node.tooltip, *(f"{k} = {v}" for k, v in attrs.items())])
    return graph


def _read(program: Any, graph: Any, parent: Any = None) -> Any:
    """One graph of ONNX as a block, and as blocks those that its operators hold."""
    from onnx import helper, numpy_helper

    program.size += len(graph.node)
    if not graph.node or program.size > _MOST:
        raise ValueError(f"a picture holds 1 to {_MOST:,} operators, this model {program.size:,}")
    block = SimpleNamespace(idx=len(program.blocks), parent=parent, ops=[], vars={})
    program.blocks.append(block)
    for info in (*graph.input, *graph.value_info, *graph.output):
        kind = info.type.tensor_type
        shape = [axis.dim_param or axis.dim_value for axis in kind.shape.dim]
        var = block.vars[info.name] = SimpleNamespace(stop_gradient=info in graph.input)
        var.shape = shape if kind.HasField("shape") else None
        var.dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type) if kind.elem_type else ""
    for held in graph.initializer:
        array = program.weights[held.name] = numpy_helper.to_array(held)
        block.vars[held.name] = SimpleNamespace(
            shape=array.shape, dtype=array.dtype, persistable=True
        )
    ends = {info.name for info in graph.output if parent is None}
    for node in graph.node:
        op = SimpleNamespace(type=node.op_type, attrs={})
        op.inputs, op.outputs = {"x": [n for n in node.input if n]}, {"out": [*node.output]}
        op.role = "loss" if ends & {*node.output} else "forward"
        for attr in node.attribute:
            value = helper.get_attribute_value(attr)
            if hasattr(value, "initializer"):
                op.attrs[f"{attr.name}_block"] = _read(program, value, block)
            elif hasattr(value, "data_type"):
                op.attrs[attr.name] = explain_value(numpy_helper.to_array(value))
            else:
                op.attrs[attr.name] = value.decode() if isinstance(value, bytes) else value
        block.ops.append(op)
    return block
