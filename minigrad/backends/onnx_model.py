"""export_onnx: a Program as an ONNX file, its backward part included.

The schedule is carried out once, on `Symbol`s, and what it leaves behind is the graph.  The feeds
are its inputs, the fetched variables its outputs, parameters are stored in it.

Most calls of NumPy have an operator of the same meaning (`onnx_ufuncs.ini`); the others are put
together from such. A few kernels stay whole, because ONNX has the very operator (`Conv`, `Erf`).
Sequences are unrolled, branches become `If`, while loops `Loop`.
"""

import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ..atomic import replacing
from ..compiler.memory import start_values
from ..compiler.program_passes import climb, limited_depth
from ..compiler.schedule import Branch, Call, Loop
from ..errors import read_tables, wrong
from ..ops.shape import Shape, axis_tuple
from ..ops.windows import pair
from ..primitives.arguments import Args, Attrs, ByName, Function, Listed
from ..static.program.operator import names_of
from ..static.program.program import Program
from ..static.run.executor import data_of, fed_shapes
from .replay import Replay, entering, index_arrays, mapped, numbered

OPERATORS = read_tables(Path(__file__).with_name("onnx_ufuncs.ini"))


@dataclass(frozen=True)
class Symbol:
    """A value in the graph; without a name, what a value will be like."""

    name: str
    shape: Shape
    dtype: Any

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))

    def of(self, shape: Iterable[int], dtype=None) -> "Symbol":
        """What is like this, in another shape."""
        return Symbol("", tuple(shape), np.dtype(dtype or self.dtype))


#: functions ONNX has not, in functions of NumPy that it has; near 0, log1p and expm1 lose what NumPy's would keep
COMPOSED: dict[str, Function] = {
    "not_equal": lambda x, y: np.logical_not(np.equal(x, y)),
    "log1p": lambda x: np.log(1.0 + x),
    "expm1": lambda x: np.exp(x) - 1.0,
    "log2": lambda x: np.log(x) / math.log(2.0),
    "log10": lambda x: np.log(x) / math.log(10.0),
    "isfinite": lambda x: np.less(np.absolute(x), np.inf),
    "isinf": lambda x: np.equal(np.absolute(x), np.inf),
    "isnan": lambda x: np.not_equal(x, x),
    "logaddexp": lambda x, y: np.maximum(x, y) + np.log1p(np.exp(-np.absolute(x - y))),
    "remainder": lambda x, y: x - np.floor(x / y) * y,
    "floor_divide": lambda x, y: np.floor(x / y),
    "multiply.accumulate": lambda x, axis=0, **_: np.stack(
        [*accumulate(np.moveaxis(x, axis, 0), operator.mul)], axis=axis
    ),
    "stack": lambda parts, axis=0: np.concatenate([np.expand_dims(p, axis) for p in parts], axis),
    "tril": lambda x, k=0: np.where(np.tril(np.ones(x.shape[-2:], bool), k), x, 0),
    "triu": lambda x, k=0: np.where(np.triu(np.ones(x.shape[-2:], bool), k), x, 0),
}


composed = entering(COMPOSED)


@composed
def arctan2(y, x):
    turned = np.where(y < 0, -np.pi, np.pi)
    angle = np.arctan(y / x) + np.where(x < 0, turned, 0.0)
    return np.where(np.logical_and(x == 0, y == 0), 0.0, angle)


@composed
def clip(x, low, high):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@composed
def round(x, decimals=0):
    return np.rint(x * 10.0**decimals) / 10.0**decimals if decimals else np.rint(x)


#: functions that give the elements another shape, or the axes another order
SHAPES = np.reshape, np.expand_dims, np.squeeze
ORDERS = np.transpose, np.swapaxes, np.moveaxis
#: ufuncs that are composed for floating-point numbers only
WHOLE_NUMBERS = ("np.remainder", "np.floor_divide")


# -- functions of several nodes: the graph, what the result is like, then what the function gets ----------


def _place(op, g, out, x, axis=None, keepdims=False):
    if axis is None:
        index = g.node(op, [g.reshape(x, [x.size])], x.of((), np.int64), axis=0, keepdims=0)
        return g.reshape(index, out.shape)
    return g.node(op, [x], out, axis=axis, keepdims=int(keepdims))


def _reduced(op, g, out, x, axis=0, *_, keepdims=False, **__):
    if not x.size:
        raise g.lacks("ONNX has no reduction over no elements")
    if out.dtype == bool:  # ONNX orders no truth values
        x = g.cast(g.cast(x, bool), np.int32)
    inputs = [x, g.integers(axis_tuple(axis, x.ndim))]
    return g.node(op, inputs, x.of(out.shape), keepdims=int(keepdims), noop_with_empty_axes=1)


FUNCTIONS: ByName = {name: partial(_reduced, op) for name, op in OPERATORS["reduce"].items()} | {
    "concatenate": lambda g, out, parts, axis=0: g.alike(
        "Concat", parts, out, axis=axis % out.ndim
    ),
    "argmax": partial(_place, "ArgMax"),
    "argmin": partial(_place, "ArgMin"),
    "floor_divide": lambda g, out, x, y: g.node(  # ONNX divides whole numbers towards zero
        "Div", [g.node("Sub", [x, g.node("Mod", [x, y], out)], out), y], out
    ),
    "add.accumulate": lambda g, out, x, axis=0, **_: g.node(
        "CumSum", [x, np.int64(axis % x.ndim)], out
    ),
}


function = entering(FUNCTIONS)


@function
def where(g, out, condition, x, y):
    return g.node("Where", [g.cast(condition, bool), *(g.cast(v, out.dtype) for v in (x, y))], out)


@function
def matmul(g, out, x, y):
    if out.dtype == bool:
        raise g.lacks("its MatMul takes no truth values")
    if np.ndim(y) != 1:
        return g.alike("MatMul", [x, y], out)
    # as a matrix: ONNX Runtime 1.32 multiplies a transposed matrix by a vector wrongly
    column = g.reshape(g.cast(y), [y.size, 1])
    return g.reshape(
        g.alike("MatMul", [x, column], column.of((*out.shape, 1), out.dtype)), out.shape
    )


FUNCTIONS["dot"] = matmul


@function
def take(g, out, x, indices, axis=None):
    x = g.reshape(x, [x.size]) if axis is None else x
    inputs = [x, g.cast(indices, np.int64)]
    return g.node("Gather", inputs, out, axis=(axis or 0) % x.ndim)


@function
def take_along_axis(g, out, x, indices, axis):
    axis %= x.ndim
    wide = x.of((*out.shape[:axis], x.shape[axis], *out.shape[axis + 1 :]))
    inputs = [g.fitted(x, wide), g.fitted(indices, x.of(out.shape, np.int64))]
    return g.node("GatherElements", inputs, out, axis=axis)


# -- kernels that stay whole: the graph, what the result is like, then what the kernel is given ------------


def _sorted(which, g, out, x, *, axis=-1, descending=False):
    """The values, or where they were."""
    both = [x, x.of(x.shape, np.int64)]
    return topk(g, both, x, k=x.shape[axis], axis=axis, largest=descending)[which]


COUNTERPARTS: dict[str, Function] = {
    name: lambda g, out, x, op=op, **attrs: g.alike(op, [x], out, **attrs)
    for name, op in OPERATORS["kernels"].items()
} | {"sort": partial(_sorted, 0), "argsort": partial(_sorted, 1)}


counterpart = entering(COUNTERPARTS)


@counterpart
def gelu(g, out, x):
    error = g.alike("Erf", [g.alike("Mul", [x, 0.5**0.5], out)], out)
    share = g.alike("Add", [0.5, g.alike("Mul", [0.5, error], out)], out)
    return g.alike("Mul", [x, share], out)


@counterpart
def spread(g, out, x, *, shape, source, target):
    unique = "".join(dict.fromkeys(target))
    sizes = dict(zip(target, shape, strict=True))
    places = np.array(np.einsum(f"{target}->{unique}", numbered(shape)))
    x = g.reshape(x, [sizes[c] if c in source else 1 for c in unique])
    return g.placed(g.fitted(0, out), places, x)


@counterpart
def topk(g, out, x, *, k, axis=-1, largest=True):
    if x.dtype == bool:  # ONNX orders no truth values
        x = g.cast(x, np.int32)
        out = [x.of(out[0].shape), out[1]]
    return g.nodes_of("TopK", [x, g.integers([k])], out, axis=axis, largest=int(largest))


@counterpart
def einsum(g, out, *operands, subscripts):
    return g.alike("Einsum", operands, out, equation=subscripts)


@counterpart
def dropout(g, out, x, seed, *, p=0.5):
    if not p:
        return x
    raise g.lacks("its masks come from NumPy's generator", "export program.clone(for_test=True)")


@counterpart
def conv2d(g, out, x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    return g.node(
        "Conv",
        [x, w] if b is None else [x, w, b],
        out,
        kernel_shape=w.shape[2:],
        group=groups,
        strides=pair(stride),
        pads=pair(padding) * 2,
        dilations=pair(dilation),
    )


@counterpart
def max_pool2d(g, out, x, *, kernel_size, stride=None, padding=0):
    kernel = pair(kernel_size)
    strides = kernel if stride is None else pair(stride)
    pads = pair(padding) * 2
    return g.node("MaxPool", [x], out, kernel_shape=kernel, strides=strides, pads=pads)


def is_whole(primitive, args: Args) -> bool:
    """Whether a kernel stays one call: runtimes have Conv in single precision only, MaxPool for no whole numbers."""
    if primitive.type == "conv2d":
        return all(a.dtype == np.float32 for a in args if a is not None)
    if primitive.type == "max_pool2d":
        return bool(args[0].dtype.kind == "f")
    return primitive.type in COUNTERPARTS


class Graph(Replay):
    """The schedule as nodes and initializers, in order; `node` adds one and gives its result."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        super().__init__(program, fetch, is_whole)
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, TensorProto] = {}
        self.taken: set[str] = set()
        self.known: dict[Any, Symbol] = {}

    def unique(self, stem: str) -> str:
        """A name nobody has."""
        name, k = stem, 2
        while name in self.taken:
            name, k = f"{stem}_{k}", k + 1
        self.taken.add(name)
        return name

    def named(self, stem: str, like) -> Symbol:
        """A value of this shape and dtype, under a name nobody has."""
        return Symbol(self.unique(stem), like.shape, like.dtype)

    def node(self, op: str, inputs: Iterable[Any], like, **attrs) -> Symbol:
        """The result, of this shape and dtype, of one ONNX operator."""
        return self.nodes_of(op, inputs, [like], **attrs)[0]

    def nodes_of(self, op: str, inputs: Iterable[Any], likes, **attrs) -> list[Symbol]:
        """The results of one ONNX operator."""
        stem = f"{self.op.type}/{op}" if self.op else op
        made = [self.named(stem, like) for like in likes]
        sources = [self.cast(i).name for i in inputs]
        names = [v.name for v in made]
        self.nodes.append(helper.make_node(op, sources, names, names[0], **attrs))
        return made

    def alike(self, op: str, inputs: Iterable[Any], like, **attrs) -> Symbol:
        """The result of an operator that wants its inputs in the dtype of the result."""
        return self.node(op, [self.cast(i, like.dtype) for i in inputs], like, **attrs)

    def cast(self, value, dtype=None) -> Symbol:
        """A Symbol: as it is, or an array or number as an initializer; cast to ``dtype``."""
        if isinstance(value, Symbol):
            if dtype is None or value.dtype == dtype:
                return value
            to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            return self.node("Cast", [value], value.of(value.shape, dtype), to=to)
        array = np.asarray(value, dtype)
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self.known:
            self.known[key] = self.stored(self.unique("constant"), array)
        return self.known[key]

    def integers(self, values: Iterable[Any]) -> Symbol:
        """Whole numbers: a shape, or places."""
        return self.cast(list(values), np.int64)

    def stored(self, name: str, array) -> Symbol:
        """An array that is stored in the file."""
        self.taken.add(name)
        array = np.array(array, order="C")
        self.initializers[name] = numpy_helper.from_array(array, name)
        return Symbol(name, array.shape, array.dtype)

    # -- nodes, none where nothing changes -----------------------------------------------------

    def fitted(self, value, like) -> Symbol:
        """In a shape and dtype."""
        x = self.cast(value, like.dtype)
        if x.shape == like.shape:
            return x
        return self.node("Expand", [x, self.integers(like.shape)], like)

    def reshape(self, x: Symbol, shape: Iterable[int]) -> Symbol:
        """The same elements in another shape."""
        like = x.of(shape)
        if x.shape == like.shape:
            return x
        zero = int(0 in like.shape)  # else a size 0 means that of x
        return self.node("Reshape", [x, self.integers(like.shape)], like, allowzero=zero)

    def transpose(self, x: Symbol, order: list[int]) -> Symbol:
        """The axes in another order."""
        if order == list(range(x.ndim)):
            return x
        return self.node("Transpose", [x], x.of(x.shape[a] for a in order), perm=order)

    def sliced(self, x: Symbol, index) -> Symbol:
        """What numbers and slices leave of each axis; all axes stay."""
        parts = [p for p in (index if isinstance(index, tuple) else (index,)) if p is not None]
        if Ellipsis in parts:
            k = parts.index(Ellipsis)
            parts[k : k + 1] = [slice(None)] * (x.ndim - len(parts) + 1)
        for axis, part in enumerate(parts):
            every = np.arange(x.shape[axis])
            rows = np.ravel(every[part])
            if not np.array_equal(rows, every):
                like = x.of((*x.shape[:axis], len(rows), *x.shape[axis + 1 :]))
                x = self.node("Gather", [x, self.integers(rows)], like, axis=axis)
        return x

    def picked(self, x: Symbol, places) -> Symbol:
        """The elements at places of the flat value."""
        places = self.cast(places)
        return self.node("Gather", [self.reshape(x, [x.size]), places], x.of(places.shape))

    def placed(self, x: Symbol, places, value, **how) -> Symbol:
        """With a value at places of the flat value; ``reduction="add"`` adds it."""
        places = self.cast(places)
        value = self.fitted(value, x.of(places.shape))
        flat = [self.reshape(v, [v.size]) for v in (x, places, value)]
        return self.reshape(self.node("ScatterElements", flat, flat[0], **how), x.shape)

    # -- calls -----------------------------------------------------------------------------

    def call(self, call: Call) -> None:
        """A function that ONNX has not is taken apart into those it has.  Errors: `ProgramError` names the operator."""
        parts = COMPOSED.get(call.path.removeprefix("np."))
        if parts is None or (call.path in WHOLE_NUMBERS and call.out.dtype.kind in "iu"):
            super().call(call)
            return
        calls: Listed = []
        with self.recorder.into(calls):
            self.recorder.op = self.op
            result = parts(*call.args, **call.kwargs)
        self.items(calls)
        self.set([call.out], [self.value(result)])

    def lacks(
        self,
        why: str,
        repair: str = "other ops; or static.compile(program), which takes every op",
    ) -> Exception:
        """ONNX has nothing for what the operator does: why, and what to do instead."""
        return wrong(f"{self.op.type} has no counterpart in ONNX: {why}", repair)

    def refuse_masks(self, values: Iterable[Any]) -> None:
        """Errors: `ProgramError` if one of some index arrays is a mask."""
        if any(getattr(value, "dtype", None) == np.dtype(bool) for value in values):
            what = "how many elements a mask chooses is not known while a graph is written"
            raise self.lacks(what, "use where instead")

    def function(self, path: str, args, kwargs: Attrs, out) -> Any:
        """The operator of the same meaning, or the nodes that come to it."""
        name = path.removeprefix("np.")
        if name in ("roll", "tile"):
            x, *how = args
            return self.picked(x, getattr(np, name)(numbered(x.shape), *how, **kwargs))
        if name in FUNCTIONS:
            return FUNCTIONS[name](self, out, *args, **kwargs)
        if op := OPERATORS["compare"].get(name):  # ONNX orders no truth values
            if args[0].dtype == bool:
                args = [self.cast(a, np.int32) for a in args]
            return self.node(op, args, out)
        if op := OPERATORS["logic" if out.dtype == bool else "same"].get(name):
            return self.alike(op, args, out)
        raise self.lacks(f"ONNX has no counterpart of {path}")

    def opaque(self, call: Call, args, attrs: Attrs) -> Any:
        """A kernel as a whole."""
        if call.path not in COUNTERPARTS:
            self.refuse_masks(args)
            looks = "a kernel looks at a value, and there is none while a graph is written"
            raise self.lacks(OPERATORS["none"].get(call.path, looks))
        return COUNTERPARTS[call.path](self, call.out, *args, **attrs)

    # -- indices and views --------------------------------------------------------------------

    def item(self, x, index) -> Symbol:
        """``x[index]``, with arrays in the index."""
        x = self.cast(x)
        return self.picked(x, self.looked_up(x.shape, index))

    def replaced(self, x: Symbol, index, value, add: bool = False) -> Symbol:
        """With a value at places, or added there, where an index may repeat."""
        how = {"reduction": "add"} if add else {}
        return self.placed(x, self.looked_up(x.shape, index), value, **how)

    def looked_up(self, shape, index) -> Symbol:
        """Where an index with arrays points to in the flat value: what is fixed, and for each array its stride."""
        self.refuse_masks(index if isinstance(index, tuple) else [index])
        base, arrays = index_arrays(numbered(shape), index, Symbol)
        total = self.cast(base)
        for part, axis, which in arrays:
            part, size = self.cast(part, np.int64), max(shape[axis], 1)
            part = self.node("Mod", [part, np.int64(size)], part)
            stride = math.prod(shape[axis + 1 :])
            part = self.node("Mul", [part, np.int64(stride)], part)
            total = self.node("Add", [total, self.picked(part, which)], total)
        return total

    def look(self, call: Call, x: Symbol) -> Symbol:
        """A view as a value."""
        function = call.function
        if function is operator.getitem:
            return self.reshape(self.sliced(x, call.args[1]), call.out.shape)
        if function in SHAPES:
            return self.reshape(x, call.out.shape)
        if function in ORDERS:
            return self.transpose(x, axes_of(call, x.ndim))
        if function is np.broadcast_to:
            return self.fitted(x, call.out)
        return self.picked(x, self.places(call))

    def put(self, call: Call, x: Symbol, value: Symbol) -> Symbol:
        """The value that a view looks at, with what the view is now."""
        if call.function in SHAPES:
            return self.reshape(value, x.shape)
        if call.function in ORDERS:
            return self.transpose(value, np.argsort(axes_of(call, x.ndim)).tolist())
        return self.placed(x, self.places(call), value)

    # -- loops and branches ----------------------------------------------------------------------

    @contextmanager
    def into(self, nodes: list[NodeProto]) -> Iterator[None]:
        """Nodes made meanwhile belong to an inner graph."""
        before, self.nodes = self.nodes, nodes
        try:
            yield
        finally:
            self.nodes = before

    def inner(self, name: str, nodes, inputs: list[Symbol], outputs: list[Symbol]) -> Any:
        """Nodes as the body of a loop or a side of a branch; it makes its results itself."""
        with self.into(nodes):
            own = [self.node("Identity", [v], v) for v in outputs]
        return helper.make_graph(nodes, self.unique(name), [*map(info, inputs)], [*map(info, own)])

    def loop(self, loop: Loop) -> None:
        """``recurrent``, forwards and back, step by step; ``while`` is a `Loop`."""
        if loop.go_on is not None:
            self.while_loop(loop)
            return
        back = loop.backward
        frames = self.value(loop.frames) if back else {}
        steps = range(len(frames) if back else loop.slices[0][0].shape[0])
        state = self.starts(loop)
        rows = {}
        for k in reversed(steps) if back else steps:
            slices = [take(self, part, self.value(seq), k, 0) for seq, part in loop.slices]
            state, (stacked, frame) = self.step(loop, state, (frames.get(k), slices))
            rows[k] = [self.reshape(v, (1, *v.shape)) for v in stacked]
            if not back:
                frames[k] = frame
        self.finish(loop, state)
        for place, (_, stack) in enumerate(loop.stacked):
            column = [rows[k][place] for k in steps]
            self.set([stack], [self.alike("Concat", column, stack, axis=0) if column else 0])
        self.values[loop.frames] = frames

    def while_loop(self, loop: Loop) -> None:
        """A `Loop` without a limit, which keeps nothing for a gradient."""
        if loop.frames is not None:
            raise self.unbounded(loop)
        starts = self.starts(loop)
        goes_on = self.test(loop, starts)
        carried = [self.named("carried", start) for start in starts]
        count, before = self.named("count", np.int64()), self.named("goes_on", goes_on)
        nodes: list[NodeProto] = []
        with self.into(nodes):
            after, _ = self.step(loop, carried)
            again = self.test(loop, after)
        body = self.inner("step", nodes, [count, before, *carried], [again, *after])
        ends = self.nodes_of("Loop", [count.of(()), goes_on, *starts], carried, body=body)
        self.finish(loop, ends)

    def flag(self, array) -> Symbol:
        """A single truth value."""
        return self.reshape(self.cast(self.value(array), bool), ())

    def branch(self, branch: Branch) -> None:
        """An `If`, whose sides see everything around them; both give what either of them saves."""
        pred = self.flag(branch.pred)
        sides: Listed = []
        frames: dict[int, Any] = {}
        for k, saved in enumerate(self.saved(branch)):
            nodes: list[NodeProto] = []
            with self.into(nodes):
                self.items(branch.bodies[k])
                results = [self.like(r[k], r[2]) for r in branch.results]
            frame = self.frame(saved)
            frames |= frame
            sides.append((nodes, results, frame))
        graphs = {}
        names = "then_branch", "else_branch"
        for name, (nodes, results, frame) in zip(names, sides, strict=True):
            with self.into(nodes):
                lacking = {k: v for k, v in frames.items() if k not in frame}
                own = frames | mapped(lacking, lambda v: self.fitted(0, v)) | frame
            mapped(own, results.append)
            graphs[name] = self.inner(name, nodes, [], results)
        if not results:
            return
        outs = iter(self.nodes_of("If", [pred], results, **graphs))
        self.set([r[2] for r in branch.results], [next(outs) for _ in branch.results])
        if not branch.backward:
            self.values[branch.frames] = mapped(frames, lambda _: next(outs))

    # -- the file --------------------------------------------------------------------------------

    def output(self, name: str, value: Symbol) -> Symbol:
        """A result under the name of its variable; of a parameter that is updated, the new value is ``w_out``."""
        own = self.named(name if name not in self.taken else f"{name}_out", value)
        node = helper.make_node("Identity", [value.name], [own.name], f"fetch/{own.name}")
        self.nodes.append(node)
        return own

    def needed(self, outputs: list[Symbol]) -> tuple[list[NodeProto], set[str]]:
        """The nodes the outputs depend on, and all names that are read."""
        read, nodes = {v.name for v in outputs}, []
        for node in reversed(self.nodes):
            if not read.isdisjoint(node.output):
                nodes.append(node)
                read.update(names_read(node))
        return nodes[::-1], read


def names_read(node: NodeProto) -> Iterator[str]:
    """What a node reads, inner graphs included."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from names_read(inner)


def info(value: Symbol) -> ValueInfoProto:
    """Name, dtype and shape, as ONNX declares them."""
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, dtype, value.shape)


def axes_of(call: Call, ndim: int) -> list[int]:
    """The order in which a call puts the axes: the k-th has the length k + 2."""
    like = np.broadcast_to(0, tuple(range(2, ndim + 2)))
    return [n - 2 for n in call.function(like, *call.args[1:], **call.kwargs).shape]


OPSET = 18


def onnx_model(program: Program, path, feed, fetch, executor) -> Any:
    """The checked `onnx.ModelProto` of a program for feeds of these shapes; written to a ``path``."""
    names = names_of(program, fetch, "fetch", root=True)
    shapes = fed_shapes(program, feed)
    for name, shape in shapes.items():
        if -1 in shape:
            what = f"the sizes of {name!r} {list(shape)} must be known to write a graph"
            raise wrong(what, f"feed={{{name!r}: (…)}}, an array or a shape")
    with limited_depth():
        *_, primitives = climb(program, shapes, names)
        graph = Graph(primitives, names)
        feeds = {}
        for name, var in data_of(program).items():
            feeds[name] = Symbol(graph.unique(name), shapes[name], var.dtype)
        start = start_values(program, executor)
        parameters = {name: graph.stored(name, value) for name, value in start.items()}
        _, results = graph(parameters, feeds)
    outputs = [graph.output(n, v) for n, v in zip(names, results, strict=True)]
    nodes, read = graph.needed(outputs)
    inputs = [info(v) for v in feeds.values() if v.name in read]
    stored = [tensor for name, tensor in graph.initializers.items() if name in read]
    whole = helper.make_graph(nodes, "program", inputs, [*map(info, outputs)], stored)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(whole, producer_name="minigrad", opset_imports=[opset], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        with replacing(path) as file:
            onnx.save_model(model, file)
    return model
