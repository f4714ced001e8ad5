"""export_onnx: a Program as an ONNX file, its backward part included.

The program runs once, as a pure function, on `Symbol`s, and what it leaves behind is the graph.  The feeds are its
inputs, the fetched variables its outputs, parameters are stored in it.

Kernels run retargeted, on `OnnxNumPy`.  A few have a counterpart: where ONNX has the very operator (`Conv`, `Erf`),
or where a kernel looks at values.  Sequences are unrolled as on NumPy, branches become `If`, while loops become `Loop`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...atomic import replacing
from ...compiler.memory import start_values
from ...compiler.program_passes import limited_depth
from ...compiler.tracer import Retarget
from ...errors import ProgramError, refusal
from ...primitives.registry import REGISTRY
from ...static.program.arguments import names_of
from ...static.program.program import Program
from ...static.run.feeds import data_of, fed_shapes
from ..functional import Function, NumpySpace, Values
from ..lowering import lowered
from .kernels import COUNTERPARTS
from .numpy_names import OnnxNumPy
from .symbol import Graph, NoCounterpart, Symbol, info, names_read

OPSET = 18
Body = Callable[..., Any]


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
    feeds = {n: Symbol(graph, graph.unique(n), shapes[n], v.dtype) for n, v in data.items()}
    start = start_values(program, executor)
    parameters = {
        n: Symbol(graph, graph.initializer(n, v), v.shape, v.dtype) for n, v in start.items()
    }
    with limited_depth():
        step = Function(lowered(program, shapes, names), names)
        _, results = step(OnnxSpace(graph), parameters, feeds)
    outputs = [_output(graph, n, v) for n, v in zip(names, results, strict=True)]
    nodes = graph.needed([o.name for o in outputs])
    read = {name for node in nodes for name in names_read(node)}
    graph_proto = helper.make_graph(
        nodes,
        "program",
        [info(f.name, f) for f in feeds.values() if f.name in read],
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


class OnnxSpace(NumpySpace):
    """Every primitive by its type, as a function that writes nodes into a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.numpy = graph, OnnxNumPy(graph)
        self.retarget = Retarget(
            self.numpy, lambda p, inputs, attrs: getattr(self, p.type)(*inputs, **attrs)
        )

    def __getattr__(self, type: str) -> Callable[..., Any]:
        p = REGISTRY[type]
        own = COUNTERPARTS.get(type)

        def call(*args: Any, **attrs: Any) -> Any:
            before, self.graph.scope = self.graph.scope, type
            try:
                out = own(*args, **attrs) if own else NotImplemented
                if out is NotImplemented:
                    out = self.retarget.of(p.kernel)(*args, **attrs)
            except NoCounterpart as error:
                if before:
                    raise  # the op of the program says it, not one inside its kernel
                what = f"{type} has no counterpart in ONNX: {error}"
                raise refusal(what, error.repair, ProgramError) from None
            finally:
                self.graph.scope = before
            several = p.several
            return [self.graph.symbol(v) for v in out] if several else self.graph.symbol(out)

        return call

    def cond(self, pred: Any, yes: Body, no: Body) -> Values:
        """An `If`, whose branches see everything around them."""
        branches = {}
        for name, branch in (("then_branch", yes), ("else_branch", no)):
            with self.graph.inner() as nodes:
                results = self._own([self.graph.symbol(v) for v in branch()])
            outputs = [info(v.name, v) for v in results]
            branches[name] = helper.make_graph(nodes, self.graph.unique(name), [], outputs)
        if not results:
            return ()
        names = [self.graph.unique("If") for _ in results]
        asked = self.graph.symbol(pred, bool).reshape(()).name
        self.graph.nodes.append(helper.make_node("If", [asked], names, names[0], **branches))
        return tuple(
            Symbol(self.graph, n, v.shape, v.dtype) for n, v in zip(names, results, strict=True)
        )

    def while_loop(self, test: Body, step: Body, starts: Values, save: bool) -> Any:
        """A `Loop` without a limit."""
        if save:
            raise ProgramError(
                "the gradient of a while loop reads the values of every step, which an ONNX Loop does not keep.\n"
                "  repair: static.static_rnn, whose steps are written out"
            )
        goes_on = self.graph.symbol(test(starts), bool).reshape(())
        carried = tuple(
            Symbol(self.graph, self.graph.unique("carried"), s.shape, s.dtype) for s in starts
        )
        count, before = (self.graph.unique(n) for n in ("count", "goes_on"))
        with self.graph.inner() as nodes:
            after = [
                self.graph.symbol(v, c.dtype)
                for v, c in zip(step(carried)[0], carried, strict=True)
            ]
            again = self.graph.symbol(test(tuple(after)), bool).reshape(())
            results = self._own([again, *after])
        inputs = [
            info(count, np.int64()),
            info(before, np.bool_()),
            *(info(c.name, c) for c in carried),
        ]
        body = helper.make_graph(
            nodes, self.graph.unique("step"), inputs, [info(v.name, v) for v in results]
        )
        names = [self.graph.unique("Loop") for _ in starts]
        sources = ["", goes_on.name, *(self.graph.symbol(s).name for s in starts)]
        self.graph.nodes.append(helper.make_node("Loop", sources, names, names[0], body=body))
        ends = (
            Symbol(self.graph, n, c.shape, c.dtype) for n, c in zip(names, carried, strict=True)
        )
        return tuple(ends), None

    def _own(self, values: list[Symbol]) -> list[Symbol]:
        """Results an inner graph has made itself."""
        return [v.node("Identity") for v in values]
