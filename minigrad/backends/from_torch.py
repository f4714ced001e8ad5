"""from_torch: a function or a module of PyTorch becomes a Program, through ``torch.export``.

torch gives the forward graph, without changes in place; every operation in it is written in ops of
this package (`aten`).  From there on it is a Program like any other: `append_backward` makes its
gradient, `draw` and `play` show it, `compile` runs it.
"""

import contextlib
import inspect
import io
import math
import operator
import re
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from .. import ops as mg
from ..errors import describe, read_tables, wrong
from ..ops import astype
from ..ops.index import along, slices_at, split_index
from ..ops.index import scatter as scattered
from ..ops.losses import reduced
from ..primitives.arguments import Args, Function, Listed
from ..static.program.program import Program, data, program_guard
from ..static.program.variable import Variable
from .replay import entering

_names = read_tables(Path(__file__).with_name("aten.ini"))
_DROPS = "a probability: model.eval() turns it off"

TABLE: dict[str, Function] = {
    name: getattr(mg, name) for names in _names["same"].values() for name in names.split()
}
TABLE |= {name: getattr(mg, to) for name, to in _names["renamed"].items()}
op = entering(TABLE)  # a function under its own name


def _axes(dim) -> Any:
    return None if dim == () else dim


def _reduced(function, x, dim=None, keepdim=False):
    return function(x, _axes(dim), keepdim)


TABLE |= {name: partial(_reduced, getattr(mg, to)) for name, to in _names["along"].items()}


def _scaled(x, alpha: float) -> Any:
    return x if alpha == 1 else x * alpha


def _whole(indices) -> Any:
    """An index of all axes: None stands for all of one."""
    return tuple(slice(None) if i is None else i for i in indices)


def _lacks(asked, what):
    if asked:
        raise NotImplementedError(what)


#: operations that are one expression here: what each takes, and what it is
TABLE |= {
    "add": lambda x, y, *, alpha=1: mg.add(x, _scaled(y, alpha)),
    "sub": lambda x, y, *, alpha=1: mg.sub(x, _scaled(y, alpha)),
    "rsqrt": lambda x: mg.reciprocal(mg.sqrt(x)),
    "exp2": lambda x: mg.exp(x * math.log(2.0)),
    "hardsigmoid": lambda x: TABLE["hardtanh"](x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * TABLE["hardsigmoid"](x),
    "elu": lambda x, alpha=1, scale=1: _scaled(mg.elu(x, float(alpha)), scale),
    "celu": lambda x, alpha=1: mg.where(x > 0, x, mg.elu(x / alpha, float(alpha))),
    "softplus": lambda x, beta=1, threshold=20: mg.where(
        x * beta > threshold, x, mg.softplus(x * beta) / beta
    ),
    "linalg_vector_norm": lambda x, ord=2, dim=None, keepdim=False: mg.norm(
        x, ord, _axes(dim), keepdim
    ),
    "_softmax": lambda x, dim, half: mg.softmax(x, dim),
    "_log_softmax": lambda x, dim, half: mg.log_softmax(x, dim),
    "topk": lambda x, k, dim=-1, largest=True, sorted=True: mg.topk(x, k, dim, largest),
    "sort": lambda x, dim=-1, descending=False, *, stable=True: (
        mg.sort(x, dim, descending),
        mg.argsort(x, dim, descending),
    ),
    "linalg_solve_triangular": lambda a, b, *, upper: mg.solve(
        (mg.triu if upper else mg.tril)(a), b
    ),
    "trunc": lambda x: mg.sign(x) * mg.floor(mg.abs(x)),
    "einsum": lambda equation, operands, **path: mg.einsum(equation.replace(" ", ""), *operands),
    "binary_cross_entropy": lambda x, target, weight=None, reduction=1: reduced(
        mg.binary_cross_entropy(x, target, "none") * (1 if weight is None else weight),
        ("none", "mean", "sum")[reduction],
    ),
    "_cdist_forward": lambda x, y, p, mode: mg.norm(x[..., None, :] - y[..., None, :, :], p, -1),
    "linear": lambda x, w, b=None: mg.linear(x, mg.swapaxes(w, -1, -2), b),
    "addmm": lambda b, x, y, *, beta=1, alpha=1: _scaled(b, beta) + _scaled(mg.matmul(x, y), alpha),
    "cat": lambda tensors, dim=0: mg.concat([x for x in tensors if x.shape != (0,)], dim),
    "squeeze.dims": lambda x, dims: mg.squeeze(x, tuple(d for d in dims if x.shape[d] == 1)),
    "select": lambda x, dim, index: x[slices_at(index, dim, x.ndim)],
    "gather": lambda x, dim, index: x[along(index, index.shape, dim)],
    "index_select": lambda x, dim, index: mg.take(x, index, dim),
    "index": lambda x, indices: x[_whole(indices)],
    "_to_copy": lambda x: x,
    "full_like": lambda x, value: np.full(x.shape, value),
    "copy": lambda x, y, non_blocking=False: mg.broadcast_to(y, x.shape),
    "native_layer_norm": lambda x, shape, weight, bias, eps: mg.layer_norm(
        x, weight, bias, tuple(range(-len(shape), 0)), eps
    ),
    "_native_batch_norm_legit_no_training": lambda x, weight, bias, mean, var, momentum, eps: (
        mg.batch_norm(x, weight, bias, mean, var, eps=eps)
    ),
    "native_dropout": lambda x, p, train: (x, _lacks(p * train, _DROPS)),
}
TABLE["addmv"] = TABLE["addmm"]


@op
def div(x, y, *, rounding_mode=None):
    if rounding_mode == "floor":
        return mg.floor_divide(x, y)
    out = mg.div(x, y)
    return out if rounding_mode is None else TABLE["trunc"](out)


def _spread(function, x, dim=None, *, correction=1, keepdim=False):
    return function(x, _axes(dim), 1 if correction is None else correction, keepdim)


def _spread_and_mean(function, x, dim=None, *, keepdim=False, **how):
    return _spread(function, x, dim, keepdim=keepdim, **how), mg.mean(x, _axes(dim), keepdim)


for _spread_name, _function in (("var", mg.var), ("std", mg.std)):
    TABLE[f"{_spread_name}.correction"] = partial(_spread, _function)
    TABLE[f"{_spread_name}_mean.correction"] = partial(_spread_and_mean, _function)


def _clamp(x, min=None, max=None):
    """At bounds that are Tensors it has the slope 1, where `mg.clip` has the ties of `maximum`."""
    x = x if min is None else mg.where(x < min, min, x)
    return x if max is None else mg.where(x > max, max, x)


TABLE["clamp.Tensor"] = _clamp


@op
def hardtanh(x, low=-1, high=1):
    """At both bounds it is flat, and `mg.clip` is not."""
    return mg.where(x <= low, float(low), mg.where(x >= high, float(high), x))


@op
def gelu(x, *, approximate="none"):
    if approximate == "none":
        return mg.gelu(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + mg.tanh(inner))


def _extreme(value, place, x, dim=None, keepdim=False):
    """Along an axis the gradient goes to the first of several; of all elements they share it."""
    if dim is None:
        return value(x)
    at = place(x, dim, True)
    out = mg.take_along_axis(x, at, dim)
    return (out, at) if keepdim else (mg.squeeze(out, dim), mg.squeeze(at, dim))


TABLE["max"] = partial(_extreme, mg.max, mg.argmax)
TABLE["min"] = partial(_extreme, mg.min, mg.argmin)


# -- matrices


@op
def scaled_dot_product_attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None
):
    _lacks(dropout_p, _DROPS)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = mg.matmul(q, mg.swapaxes(k, -1, -2)) * scale
    if is_causal:
        attn_mask = np.tril(np.ones(scores.shape[-2:], bool))
    if attn_mask is None:
        return mg.matmul(mg.softmax(scores, -1), v)
    if attn_mask.dtype != bool:
        scores, attn_mask = scores + attn_mask, attn_mask > -np.inf
    lowest = float(np.finfo(scores.dtype).min)  # -inf would make NaN of a row that sees nothing
    shares = mg.softmax(mg.where(attn_mask, scores, lowest), -1)
    return mg.matmul(mg.where(attn_mask, shares, 0.0), v)


@op
def _linalg_solve_ex(a, b, *, check_errors=False):
    if b.ndim == a.ndim - 1:  # vectors
        return mg.solve(a, b[..., None])[..., 0]
    return mg.solve(a, b)


@op
def linalg_cholesky_ex(a, *, upper=False, check_errors=False):
    out = mg.cholesky(a)
    return mg.swapaxes(out, -1, -2) if upper else out


# -- shapes


@op
def expand(x, size, *, implicit=False):
    given = [1] * (len(size) - x.ndim) + [*x.shape]
    return mg.broadcast_to(x, [g if s == -1 else s for g, s in zip(given, size, strict=True)])


def _slice(x, dim=0, start=None, end=None, step=1):
    size = x.shape[dim]
    part = slice(*slice(start, end, step).indices(size))
    return x if part == slice(0, size, 1) else x[slices_at(part, dim, x.ndim)]


TABLE["slice"] = _slice


def _first(x, sizes) -> Any:
    """The first elements along each axis."""
    return x if tuple(x.shape) == tuple(sizes) else x[tuple(map(slice, sizes))]


@op
def scatter(x, dim, index, y):
    y = _first(y, index.shape) if np.ndim(y) else y
    return mg.setitem(x, y, along(index, index.shape, dim))


@op
def scatter_add(x, dim, index, y):
    return index_put(x, along(index, index.shape, dim), _first(y, index.shape), True)


@op
def scatter_reduce(x, dim, index, y, reduce, *, include_self=True):
    _lacks(reduce != "sum" or not include_self, f"{reduce=}, {include_self=}")
    return scatter_add(x, dim, index, y)


@op
def index_put(x, indices, y, accumulate=False):
    index = _whole(indices)
    (axis, first), *others = [(k, i) for k, i in enumerate(indices) if i is not None]
    if first.dtype == bool and np.ndim(y) == 0 and not others and not accumulate:
        rest = [1] * (x.ndim - axis - first.ndim)
        return mg.where(mg.reshape(first, (*first.shape, *rest)), y, x)
    if not accumulate:
        return mg.setitem(x, y, index)
    _lacks(first.dtype == bool, "a mask and accumulate=True")
    template, arrays = split_index(index)
    at = tuple(i if isinstance(i, slice) else np.zeros(i.shape, int) for i in index)
    y = mg.broadcast_to(y, np.broadcast_to(0, x.shape)[at].shape)
    return x + scattered(y, *arrays, shape=x.shape, template=template)


@op
def unfold(x, dim, size, step):
    first = np.arange(0, x.shape[dim] - size + 1, step)[:, None]
    return mg.moveaxis(mg.take(x, first + np.arange(size), dim), dim % x.ndim + 1, -1)


@op
def constant_pad_nd(x, pad, value=0.0):
    given = [*zip(pad[::2], pad[1::2], strict=True)]  # the last axis first
    pairs = [(0, 0)] * (x.ndim - len(given)) + given[::-1]
    if min(pad, default=0) < 0:  # that cuts off
        left = []
        for size, (before, after) in zip(x.shape, pairs, strict=True):
            left.append(slice(max(-before, 0), size + min(after, 0)))
        x = x[tuple(left)]
    return mg.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], value)


@op
def detach(x):
    out = mg.assign(x)
    out.stop_gradient = True
    return out


# -- layers


def _pair(value) -> Any:
    return value if isinstance(value, int) or len(value) != 1 else value[0]


@op
def convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    _lacks(w.ndim > 4, f"{w.ndim - 2} dimensions")
    if w.ndim == 3:
        x, w = x[:, :, None], w[:, :, None]
        how = (1, *stride), (0, *padding), (1, *dilation), transposed, (0, *output_padding)
        return convolution(x, w, b, *how, groups)[:, :, 0]
    stride, padding, more, dilation = map(_pair, (stride, padding, output_padding, dilation))
    if transposed:
        return mg.conv_transpose2d(x, w, b, stride, padding, more, dilation, groups)
    return mg.conv2d(x, w, b, stride, padding, dilation, groups)


def _windows(kernel_size, stride, padding) -> Listed:
    return [_pair(kernel_size), _pair(stride) if stride else None, _pair(padding)]


@op
def max_pool2d_with_indices(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    _lacks(ceil_mode or _pair(dilation) not in (1, (1, 1)), "ceil_mode or dilation")
    return mg.max_pool2d(x, *_windows(kernel_size, stride, padding))


@op
def avg_pool2d(x, kernel_size, stride=(), padding=0, ceil_mode=False, borders=True, divisor=None):
    _lacks(ceil_mode or divisor is not None, "ceil_mode or divisor_override")
    windows = _windows(kernel_size, stride, padding)
    out = mg.avg_pool2d(x, *windows)
    if borders:
        return out
    return out / mg.avg_pool2d(np.ones((1, 1, *x.shape[-2:]), x.dtype), *windows)


@op
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if padding_idx != -1:  # its row gets no gradient
        keep = np.arange(weight.shape[0])[:, None] != padding_idx
        weight = mg.where(keep, weight, detach(weight))
    return mg.embedding(indices, weight)


@op
def native_group_norm(x, weight, bias, n, channels, size, groups, eps):
    parts = mg.reshape(x, (n, groups, -1))
    out = mg.reshape(mg.normalize(parts, -1, eps), x.shape)
    wide = (1, -1, *[1] * (x.ndim - 2))
    out = out if weight is None else out * mg.reshape(weight, wide)
    return out if bias is None else out + mg.reshape(bias, wide)


@op
def _native_batch_norm_legit(x, weight, bias, *how):
    """In training the running averages, if there are any, are not read."""
    _lacks(not how[-3], "training=False")
    return mg.batch_norm(x, weight, bias, eps=how[-1])


TABLE["_native_batch_norm_legit_functional"] = _native_batch_norm_legit

#: settings of torch that say nothing here
_SETTINGS = "memory_format", "layout", "device", "pin_memory", "non_blocking"
_UNKNOWN = object()  # what an operation without a counterpart gives


def from_torch(function: Any, *examples: Any) -> Program:
    """The Program of what a module or a function of PyTorch computes from Tensors like the examples.

    Shapes and dtypes are those of the examples.  Parameters (of the module; of modules and Tensors
    that the function uses) become parameters of their names, buffers become constants: running
    averages are not changed. The program's ``inputs`` and ``outputs`` list what is fed and
    returned.

    Errors: `ProgramError`, which names all operations that have no counterpart here, and where
    torch.export cannot write the function down.

    >>> import minigrad as mg
    >>> program = from_torch(torch.nn.Linear(2, 1), torch.ones(3, 2))      # doctest: +SKIP
    >>> [op.type for op in program.global_block().ops]                     # doctest: +SKIP
    ['swapaxes', 'linear']
    """
    torch = sys.modules.get("torch")
    if torch is None or not callable(function):
        raise wrong(
            f"from_torch takes a module or a function of PyTorch, not {describe(function)}",
            "static.from_torch(model, x); mg.trace(function, x) takes ours",
        )
    for x in examples:
        if not isinstance(x, torch.Tensor):
            raise wrong(
                f"the examples of from_torch are Tensors of PyTorch, not {describe(x)}",
                "torch.ones(2, 3), or close over it: lambda x: f(x, 2)",
            )
    # torch.export takes one that comes twice for one input
    copies = tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in examples)
    return _Translation(torch, _exported(torch, function, copies)).program


def _exported(torch, function, examples: Args) -> Any:
    """The graph of a function: functional, and with no operation that can be taken apart into known ones."""
    module = function if isinstance(function, torch.nn.Module) else _called(torch, function)
    with _quiet():
        try:
            with _own_functions(torch) as own:
                exported = torch.export.export(module, examples, strict=False)
            _detach_unrecorded(torch, exported)
            # with those that torch takes apart, though not for an export
            parts = dict(torch.export.default_decompositions().items())
            apart = _names["apart"]["operations"].split()
            for target, how in torch._decomp.decomposition_table.items():
                if _name(target) in apart:
                    parts[target] = how
            kept = {*TABLE, "multilabel_margin_loss"}  # torch takes the latter apart wrongly
            parts = {target: how for target, how in parts.items() if _name(target) not in kept}
            exported = exported.run_decompositions(parts)
        except Exception as error:
            told = _first_line(error)
            where = _users_line(str(error).partition("call raised this error:")[2])
            usual = "model(x) must run; inside it, no .item(), and torch.where in place of an if"
            known = _names["torch.export"].items()
            raise wrong(
                f"torch.export cannot write this function down: {told}{where}",
                next((advice for words, advice in known if words in told), usual),
            ) from error
    if own:
        raise wrong(
            f"torch.export writes down the forward of {', '.join(own)} and loses its backward",
            "plain operations in its place, or torch.no_grad() around it if no gradient is wanted",
        )
    return exported


def _first_line(error: Exception) -> str:
    return next(filter(None, str(error).splitlines()), type(error).__name__)


@contextlib.contextmanager
def _own_functions(torch) -> Iterator[dict[str, None]]:
    """The Functions of the user's that run inside, where a graph is recorded."""
    names: dict[str, None] = {}
    function = torch.autograd.Function
    apply = vars(function)["apply"]

    def noted(cls, *args, **keywords) -> Any:
        if torch.is_grad_enabled() and not cls.__module__.startswith("torch."):
            names[cls.__name__] = None
        return apply.__func__(cls, *args, **keywords)

    function.apply = classmethod(noted)
    try:
        yield names
    finally:
        function.apply = apply


def _detach_unrecorded(torch, exported) -> None:
    """Detach what runs under ``torch.no_grad()``: the next decomposition forgets it."""
    graphs = [m.graph for m in exported.graph_module.modules() if hasattr(m, "graph")]
    for node in [n for graph in graphs for n in graph.nodes]:
        if str(node.target) == "wrap_with_set_grad_enabled" and node.args[0] is False:
            for value in [*node.users]:
                with node.graph.inserting_after(value):
                    cut = node.graph.call_function(torch.ops.aten.detach.default)
                value.replace_all_uses_with(cut, propagate_meta=True)
                cut.args = (value,)
            node.graph.owning_module.recompile()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns of its own code, and prints the graph of what it cannot write down."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _called(torch, function) -> Any:
    """A function as a module that holds the modules and leaves that the function uses, by their names."""

    def forward(*args) -> Any:
        return function(*args)

    called = torch.nn.Module()
    called.forward = forward
    with contextlib.suppress(TypeError, ValueError):  # of functions that are not Python's
        forward.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        used = inspect.getclosurevars(inspect.unwrap(function))
        owner = {"self": getattr(function, "__self__", None)}
        for name, value in {**used.globals, **used.nonlocals, **owner}.items():
            if isinstance(value, torch.nn.Module):
                called._modules[name] = value
            elif isinstance(value, torch.nn.Parameter):
                called._parameters[name] = value
    return called


def _name(target) -> str:
    """``addmm`` for ``aten.addmm.default``; ``max.other`` where the table tells it from the rest."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return str(target)
    name = schema.name.partition("::")[2]
    full = f"{name}.{schema.overload_name}"
    return full if full in TABLE else name


class _Translation:
    """One pass over the exported graph: a node's value is a Variable, or a Tensor of torch while it is constant."""

    def __init__(self, torch, exported) -> None:
        self.torch, self.exported = torch, exported
        self.program = Program()
        self.values: dict[Any, Any] = {}
        self.stored = exported.state_dict | exported.constants
        self.buffers: dict[int, str] = {}  # of constants that have a name
        self.unknown: dict[Any, str] = {}  # operations without a counterpart
        signature, nodes = exported.graph_signature, {n.name: n for n in exported.graph.nodes}
        self.specs = {spec.arg.name: spec for spec in signature.input_specs}
        # neither None nor a number, and no update of a buffer
        outputs = [nodes[n] for n in signature.user_outputs if n in nodes]
        exported.graph.output_node().args = (outputs,)
        exported.graph.eliminate_dead_code(lambda n: n.op in ("placeholder", "output"))
        *needed, _ = exported.graph.nodes
        with program_guard(self.program):
            for node in needed:
                value = self._placeholder if node.op == "placeholder" else self._call
                self.values[node] = value(node)
            if self.unknown:
                self._refuse(self.unknown)
            results = [self._variable(self.values[n], False) for n in outputs]
        self.program.outputs = [v.name for v in results]
        self.program.inputs = [n for n in signature.user_inputs if isinstance(n, str)]

    def _refuse(self, unknown: dict[Any, str]) -> None:
        lines = {n: _users_line(n.meta.get("stack_trace") or "") for n in unknown}
        told = {f"\n  aten.{_name(n.target)}{why}{lines[n]}": n for n, why in unknown.items()}
        raise wrong(
            f"these operations of the function have no counterpart here:{''.join(told)}",
            "write them in operations that mg has, or leave that part in PyTorch",
        )

    def _placeholder(self, node) -> Any:
        spec = self.specs[node.name]
        value = self.stored.get(spec.target)
        if spec.kind.name == "BUFFER":
            self.buffers[id(value)] = spec.target
        elif spec.kind.name == "PARAMETER" or (value is not None and value.requires_grad):
            # the first of a shared weight
            name = next(n for n, v in self.stored.items() if v is value)
            return self._persistable(name, value, value.requires_grad)
        if value is not None:
            return value
        example = node.meta["val"]
        return data(node.name, example.shape, _dtype(example.dtype))

    def _persistable(self, name: str, value, trained: bool) -> Variable:
        known = self.program.global_block().find_var(name)
        if known is None:
            known = self.program.add_persistable(name, _array(value), trained)
        return known

    def _call(self, node) -> Any:
        if node.op == "get_attr":
            return getattr(self.exported.graph_module, node.target)
        name, known = _name(node.target), self.torch.fx.node.map_arg
        args, kwargs = known([node.args, node.kwargs], self.values.__getitem__)
        inputs = [self.values[n] for n in node.all_input_nodes]
        lost = any(v is _UNKNOWN for v in inputs)
        is_random = self.torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if not (lost or is_random or any(isinstance(v, Variable) for v in inputs)):
            with self.torch.no_grad(), _quiet():  # once; or it is one of several results
                result = node.target(*args, **kwargs)
            if result is None:
                self._refuse({node.args[0]: f" for its result number {args[1] + 1}"})
            return result
        if name not in TABLE and node.target is not operator.getitem:
            self.unknown[node] = ": what is random comes in as an input" if is_random else ""
        if lost or name not in TABLE:
            return _UNKNOWN
        if name.startswith("bitwise_") and node.meta["val"].dtype != self.torch.bool:
            self._refuse({node: " with integers"})
        args = self._plain(args)
        kwargs = {k: self._plain(v) for k, v in kwargs.items() if k not in _SETTINGS}
        dtype = kwargs.pop("dtype", None)  # what it computes in
        if dtype is not None and name != "full_like":
            args = astype(args[0], _dtype(dtype)), *args[1:]
        try:
            result = TABLE[name](*args, **kwargs)
        except NotImplementedError as error:
            self._refuse({node: f" with {error}"})
        except Exception as error:
            self._refuse({node: f" ({_first_line(error)})"})
        expected = node.meta["val"]
        if isinstance(result, np.ndarray):  # only a shape was asked for
            return self.torch.as_tensor(result, dtype=expected.dtype)
        return self._checked(node, result, expected)

    def _checked(self, node, result, expected) -> Any:
        """The result in torch's dtype, or the first of several; a shape that differs is a defect here, and said."""
        if isinstance(expected, list | tuple):
            results = result if isinstance(result, list | tuple) else [result]
            return [self._checked(node, *pair) for pair in zip_longest(results, expected)]
        if result is None:  # nobody asks for it
            return None
        try:
            shape = [int(n) for n in expected.shape]
        except Exception:
            self._refuse({node: " where its size depends on values"})
        if [*result.shape] != shape:
            raise wrong(
                f"aten.{_name(node.target)} gives {list(result.shape)} here and {shape} in PyTorch",
                "leave this operation in PyTorch",
            )
        dtype = _dtype(expected.dtype)
        return result if result.dtype == dtype else astype(result, dtype)

    def _plain(self, value) -> Any:
        """What an op of this package takes: no Tensors of torch."""
        if isinstance(value, self.torch.Tensor):
            return self._variable(value)
        if isinstance(value, list | tuple):
            return tuple(map(self._plain, value))
        return value

    def _variable(self, value, numbers: bool = True) -> Any:
        """A constant of torch as one here, under its name if it has one, or as a number."""
        if isinstance(value, Variable):
            return value
        if name := self.buffers.get(id(value)):
            return self._persistable(name, value, False)
        array = _array(value)
        if array.ndim == 0 and numbers:
            return array.item()
        return self.program.constant(array)


def _array(tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.array(tensor.numpy())


def _dtype(dtype) -> str:
    return str(dtype).removeprefix("torch.").replace("bfloat16", "float32")


def _users_line(trace: str) -> str:
    """The last line of the trace that is neither torch's nor ours: none in functions outside of a module."""
    lines = re.findall(r'File "(.*)", line (\d+).*\n\s*(.*)', trace)
    others = (sys.modules["torch"].__path__[0], __file__, "<eval_with_key>")
    own = [line for line in lines if not line[0].startswith(others)]
    if not own:
        return ""
    file, number, text = own[-1]
    return f", at {Path(file).name}:{number}: {text}"
