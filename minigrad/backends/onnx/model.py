"""export_onnx: a Program as an ONNX file, its backward part included.

The functional source of the program runs once on `Symbol`s, and what it leaves behind is the graph.  The feeds are its
inputs, the fetched variables its outputs, parameters are stored in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from ...atomic import replacing
from ...compiler.memory import start_values
from ...compiler.program_passes import limited_depth
from ...errors import ProgramError, refusal
from ...static.program.arguments import names_of
from ...static.program.program import Program
from ...static.run.feeds import data_of, fed_shapes
from ..functional import functional_source
from ..lowering import lowered
from .graph import Graph, info, names_read
from .space import OnnxSpace
from .symbol import Symbol

OPSET = 18


def onnx_model(program: Program, feed: Any, fetch: Any, executor: Any) -> Any:
    """The checked `onnx.ModelProto` of a program for feeds of these shapes."""
    names = names_of(program, fetch, "fetch", root=True)
    shapes = fed_shapes(program, feed)
    for name, shape in shapes.items():
        if -1 in shape:
            raise refusal(
                f"the sizes of {name!r} {list(shape)} must be known to write a graph",
                f"feed={{{name!r}: (…)}}, an array or a shape",
                ProgramError,
            )
    graph = Graph()
    data = data_of(program)
    feeds = [Symbol(graph, graph.unique(n), shapes[n], v.dtype) for n, v in data.items()]
    start = start_values(program, executor)
    parameters = {
        n: Symbol(graph, graph.initializer(n, v), v.shape, v.dtype) for n, v in start.items()
    }
    with limited_depth():
        _, step, *_ = functional_source(lowered(program, shapes, names), names)
    _, results = step(OnnxSpace(graph), parameters, *feeds)
    outputs = [_output(graph, n, v) for n, v in zip(names, results, strict=True)]
    nodes = graph.needed([o.name for o in outputs])
    read = {name for node in nodes for name in names_read(node)}
    graph_proto = helper.make_graph(
        nodes,
        "program",
        [info(f.name, f) for f in feeds if f.name in read],
        [info(o.name, o) for o in outputs],
        list(graph.initializers.values()),
    )
    model = helper.make_model(
        graph_proto,
        producer_name="minigrad",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _output(graph: Graph, name: str, value: Any) -> Symbol:
    """A result under the name of its variable; of a parameter that is updated, the new value is ``w_out``."""
    own = graph.unique(name if name not in graph.taken else f"{name}_out")
    graph.nodes.append(helper.make_node("Identity", [value.name], [own], f"fetch/{own}"))
    return Symbol(graph, own, value.shape, value.dtype)


def write_model(model: Any, path: str | Path) -> None:
    """Write a model to a file."""
    with replacing(path) as file:
        onnx.save_model(model, file)
