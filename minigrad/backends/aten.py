"""What each operation of PyTorch (ATen) is in ops of this package: one function per operation.

A function takes what the operation takes, in its order: Variables, arrays and numbers; torch's dtypes come
as NumPy's names.  Most operations of one or two values are called the same on both sides (`SAME`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops as mg

#: operations with the same name and the same arguments in the same places
SAME = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos",
    "cosh", "div", "erf", "exp", "expm1", "floor", "isinf", "isnan", "log", "log10", "log1p",
    "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum",
    "minimum", "mul", "neg", "pow", "reciprocal", "relu", "round", "sigmoid", "sign", "silu",
    "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "where", "outer", "dot", "isfinite",
    "logaddexp",
]  # fmt: skip

#: other names for one or two values
RENAMED = {
    "mm": "matmul", "bmm": "matmul", "mv": "matmul", "bitwise_not": "logical_not", "bitwise_and": "logical_and",
    "bitwise_or": "logical_or", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less",
    "le": "less_equal", "clone": "assign", "alias": "assign", "contiguous": "assign", "lift_fresh_copy": "assign",
    "detach": "detach", "remainder": "mod", "linalg_inv_ex": "inv", "det": "det", "logdet": "logdet",
}  # fmt: skip

_REDUCTIONS = ("none", "mean", "sum")

TABLE: dict[str, Callable[..., Any]] = {}


def op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its name, without a trailing ``_``."""
    TABLE[function.__name__.removesuffix("_")] = function
    return function


TABLE.update({name: getattr(mg, name) for name in SAME})
TABLE.update({name: getattr(mg, to) for name, to in RENAMED.items() if hasattr(mg, to)})


def _axes(dim: Any) -> Any:
    return None if dim is None or dim == [] else tuple(dim) if isinstance(dim, list) else dim


def _scaled(x: Any, alpha: float) -> Any:
    return x if alpha == 1 else x * alpha


#: operations that are one expression here: what each takes, and what it is
TABLE |= {
    "add": lambda x, y, *, alpha=1: mg.add(x, _scaled(y, alpha)),
    "sub": lambda x, y, *, alpha=1: mg.sub(x, _scaled(y, alpha)),
    "rsub": lambda x, y, alpha=1: y - _scaled(x, alpha),
    "floor_divide": lambda x, y: mg.floor_divide(x, y),
    "rsqrt": lambda x: mg.reciprocal(mg.sqrt(x)),
    "exp2": lambda x: mg.exp(x * math.log(2.0)),
    "log_sigmoid_forward": lambda x: (-mg.softplus(-x), None),
    "clamp": lambda x, min=None, max=None: mg.clip(x, min=min, max=max),
    "clamp_min": lambda x, min: mg.clip(x, min=min),
    "hardtanh": lambda x, min_val=-1, max_val=1: mg.clip(x, min=float(min_val), max=float(max_val)),
    "hardswish": lambda x: x * hardsigmoid(x),
    "masked_fill": lambda x, mask, value: mg.where(mask, value, x),
    "amax": lambda x, dim=None, keepdim=False: mg.max(x, axis=_axes(dim), keepdims=keepdim),
    "amin": lambda x, dim=None, keepdim=False: mg.min(x, axis=_axes(dim), keepdims=keepdim),
    "argmax": lambda x, dim=None, keepdim=False: mg.argmax(x, axis=dim, keepdims=keepdim),
    "cumsum": lambda x, dim, *, dtype=None: mg.cumsum(x, axis=dim),
    "logsumexp": lambda x, dim, keepdim=False: mg.logsumexp(x, axis=_axes(dim), keepdims=keepdim),
    "einsum": lambda equation, operands: mg.einsum(equation.replace(" ", ""), *operands),
    "permute": lambda x, dims: mg.permute_dims(x, axes=tuple(dims)),
    "t": lambda x: mg.permute_dims(x) if len(x.shape) == 2 else x,
    "transpose": lambda x, dim0, dim1: mg.swapaxes(x, axis1=dim0, axis2=dim1),
    "unsqueeze": lambda x, dim: mg.expand_dims(x, axis=dim),
    "flatten": lambda x, start_dim=0, end_dim=-1: mg.flatten(x, start=start_dim, end=end_dim),
    "repeat": lambda x, repeats: mg.tile(x, repetitions=tuple(repeats)),
    "stack": lambda tensors, dim=0: mg.stack(*tensors, axis=dim),
    "unbind": lambda x, dim=0: mg.unbind(x, axis=dim),
    "chunk": lambda x, chunks, dim=0: split(x, -(-x.shape[dim] // chunks), dim),
    "select": lambda x, dim, index: x[*[slice(None)] * (dim % len(x.shape)), index],
    "index_select": lambda x, dim, index: mg.take(x, index, axis=dim),
    "flip": lambda x, dims: mg.flip(x, axis=tuple(dims)),
    "tril": lambda x, diagonal=0: mg.tril(x, k=diagonal),
    "triu": lambda x, diagonal=0: mg.triu(x, k=diagonal),
    "_to_copy": lambda x, *, dtype=None, **where: x if dtype is None else mg.astype(x, dtype),
    "fill": lambda x, value: mg.full(x.shape, value, dtype=x.dtype),
    "copy": lambda x, y, non_blocking=False: mg.broadcast_to(y, shape=tuple(x.shape)),
    "zeros_like": lambda x, **options: full_like(x, 0, **options),
    "ones_like": lambda x, **options: full_like(x, 1, **options),
    "max_pool2d_with_indices": lambda x, *args, **attrs: (max_pool2d(x, *args, **attrs), None),
    "native_dropout": lambda x, p, train: (mg.dropout(x, p=p) if train else x, None),
    "dropout": lambda x, p, train: mg.dropout(x, p=p) if train else x,
    "mse_loss": lambda x, y, reduction=1: mg.mse(x, y, reduction=_REDUCTIONS[reduction]),
    "l1_loss": lambda x, y, reduction=1: _reduced(mg.abs(x - y), reduction),
}  # fmt: skip


@op
def div(x, y, *, rounding_mode=None):
    out = mg.div(x, y)
    if rounding_mode is None:
        return out
    return mg.floor(out) if rounding_mode == "floor" else mg.sign(out) * mg.floor(mg.abs(out))


@op
def softplus(x, beta=1, threshold=20):
    return mg.softplus(x) if beta == 1 else mg.softplus(x * beta) / beta


@op
def gelu(x, *, approximate="none"):
    if approximate == "none":
        return mg.gelu(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + mg.tanh(inner))


@op
def elu(x, alpha=1, scale=1, input_scale=1):
    return _scaled(mg.elu(_scaled(x, input_scale), alpha=float(alpha)), scale)


@op
def leaky_relu(x, negative_slope=0.01):
    return mg.leaky_relu(x, negative_slope=float(negative_slope))


@op
def hardsigmoid(x):
    return mg.clip(x + 3.0, min=0.0, max=6.0) / 6.0


@op
def sum(x, dim=None, keepdim=False, *, dtype=None):
    return mg.sum(x, axis=_axes(dim), keepdims=keepdim)


@op
def mean(x, dim=None, keepdim=False, *, dtype=None):
    return mg.mean(x, axis=_axes(dim), keepdims=keepdim)


@op
def var(x, dim=None, *, correction=1, keepdim=False):
    return mg.var(x, axis=_axes(dim), correction=1 if correction is None else correction, keepdims=keepdim)  # fmt: skip


@op
def std(x, dim=None, *, correction=1, keepdim=False):
    return mg.std(x, axis=_axes(dim), correction=1 if correction is None else correction, keepdims=keepdim)  # fmt: skip


@op
def max(x, dim=None, keepdim=False):
    top = mg.max(x, axis=dim, keepdims=keepdim)
    return top if dim is None else (top, mg.argmax(x, axis=dim, keepdims=keepdim))


@op
def min(x, dim=None, keepdim=False):
    low = mg.min(x, axis=dim, keepdims=keepdim)
    return low if dim is None else (low, mg.argmin(x, axis=dim, keepdims=keepdim))


@op
def prod(x, dim=None, keepdim=False, *, dtype=None):
    return mg.prod(x, axis=dim, keepdims=keepdim)


@op
def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return mg.norm(x, ord=ord, axis=_axes(dim), keepdims=keepdim)


@op
def softmax(x, dim, dtype=None):
    return mg.softmax(x, axis=dim)


@op
def log_softmax(x, dim, dtype=None):
    return mg.log_softmax(x, axis=dim)


TABLE |= {"_softmax": TABLE["softmax"], "_log_softmax": TABLE["log_softmax"]}


@op
def topk(x, k, dim=-1, largest=True, sorted=True):
    return mg.topk(x, k=k, axis=dim, largest=largest)


@op
def sort(x, dim=-1, descending=False):
    return mg.sort(x, axis=dim, descending=descending), mg.argsort(
        x, axis=dim, descending=descending
    )


# -- matrices


@op
def linear(x, w, b=None):
    out = mg.matmul(x, mg.swapaxes(w, axis1=-1, axis2=-2))
    return out if b is None else out + b


@op
def addmm(b, x, y, *, beta=1, alpha=1):
    return _scaled(b, beta) + _scaled(mg.matmul(x, y), alpha)


TABLE["baddbmm"] = addmm


@op
def scaled_dot_product_attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    if enable_gqa:
        raise NotImplementedError("enable_gqa=True")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = mg.matmul(q, mg.swapaxes(k, axis1=-1, axis2=-2)) * scale
    if is_causal:
        attn_mask = np.tril(np.ones((q.shape[-2], k.shape[-2]), bool))
    if attn_mask is not None and np.dtype(attn_mask.dtype).kind == "b":
        scores = mg.where(attn_mask, scores, -np.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    shares = mg.softmax(scores, axis=-1)
    return mg.matmul(mg.dropout(shares, p=dropout_p) if dropout_p else shares, v)


# -- shapes


@op
def view(x, size):
    return mg.reshape(x, shape=tuple(size))


TABLE |= {"reshape": TABLE["view"], "_unsafe_view": TABLE["view"]}


@op
def squeeze(x, dim=None):
    dims = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = tuple(d for d in dims if x.shape[d] == 1)
    return mg.squeeze(x, axis=gone) if gone else x


@op
def expand(x, size, *, implicit=False):
    given = [1] * (len(size) - len(x.shape)) + list(x.shape)
    shape = tuple(g if s == -1 else s for g, s in zip(given, size, strict=True))
    return mg.broadcast_to(x, shape=shape)


@op
def cat(tensors, dim=0):
    return mg.concat(*(x for x in tensors if tuple(x.shape) != (0,)), axis=dim)


@op
def split_with_sizes(x, sizes, dim=0):
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice_(x, dim, a, b) for a, b in itertools.pairwise(ends)]


@op
def split(x, size, dim=0):
    return [slice_(x, dim, a, a + size) for a in range(0, x.shape[dim], size)]


@op
def slice_(x, dim=0, start=None, end=None, step=1):
    size = x.shape[dim]
    part = slice(*slice(start, end, step).indices(size))
    return x if part == slice(0, size, 1) else x[(*[slice(None)] * (dim % len(x.shape)), part)]


@op
def index(x, indices):
    return x[tuple(slice(None) if i is None else i for i in indices)]


@op
def gather(x, dim, index, *, sparse_grad=False):
    sizes = [list(v.shape) for v in (x, index)]
    if sizes[0][:dim] + sizes[0][dim:][1:] != sizes[1][:dim] + sizes[1][dim:][1:]:
        raise NotImplementedError("an index with other sizes than the input")
    return mg.take_along_axis(x, index, axis=dim)


@op
def roll(x, shifts, dims=()):
    pairs = list(zip(shifts, dims, strict=True)) if dims else [(shifts[0], None)]
    for shift, axis in pairs:
        x = mg.roll(x, shift=shift, axis=axis)
    return x


@op
def diagonal(x, offset=0, dim1=0, dim2=1):
    return mg.diagonal(x, offset=offset, axis1=dim1, axis2=dim2)


@op
def constant_pad_nd(x, pad, value=0.0):
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    if any(n < 0 for pair in pairs for n in pair):
        raise NotImplementedError("negative padding")
    return mg.pad(x, pad_width=[(0, 0)] * (len(x.shape) - len(pairs)) + pairs, value=value)


@op
def pad(x, pad, mode="constant", value=None):
    if mode != "constant":
        raise NotImplementedError(f"mode={mode!r}")
    return constant_pad_nd(x, pad, 0.0 if value is None else value)


@op
def to(x, dtype, *more):
    return mg.astype(x, dtype) if isinstance(dtype, str) else x


@op
def full_like(x, value, **options):
    return np.full(tuple(x.shape), value, options.get("dtype") or x.dtype)


@op
def select_scatter(x, y, dim, index):
    return mg.setitem(x, y, (*[slice(None)] * (dim % len(x.shape)), index))


@op
def slice_scatter(x, y, dim=0, start=None, end=None, step=1):
    part = slice(*slice(start, end, step).indices(x.shape[dim]))
    return mg.setitem(x, y, (*[slice(None)] * (dim % len(x.shape)), part))


# -- layers


def _pair(value: Any) -> Any:
    return value if isinstance(value, int) else value[0] if len(value) == 1 else tuple(value)


@op
def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    conv = mg.conv2d if len(w.shape) == 4 else mg.conv1d
    if padding in ("valid", "same"):
        spans = [_each(dilation, k) * (n - 1) for k, n in enumerate(w.shape[2:])]
        if padding == "same" and any(s % 2 for s in spans):
            raise NotImplementedError(
                "padding='same' of a kernel that reaches an even number of places"
            )
        padding = [s // 2 if padding == "same" else 0 for s in spans]
    attrs = {"stride": _pair(stride), "padding": _pair(padding), "dilation": _pair(dilation)}
    return conv(x, w, b, **attrs, groups=groups)


def _each(value: Any, k: int) -> int:
    return value if isinstance(value, int) else value[k if len(value) > 1 else 0]


TABLE["conv1d"] = conv2d


@op
def conv_transpose2d(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return mg.conv_transpose2d(
        x, w, b, stride=_pair(stride), padding=_pair(padding), output_padding=_pair(output_padding),
        dilation=_pair(dilation), groups=groups,
    )  # fmt: skip


@op
def convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    if len(w.shape) > 4 or (transposed and len(w.shape) != 4):
        raise NotImplementedError(f"{len(w.shape) - 2} dimensions{', transposed' * transposed}")
    if transposed:
        return conv_transpose2d(x, w, b, stride, padding, output_padding, groups, dilation)
    return conv2d(x, w, b, stride, padding, dilation, groups)


@op
def max_pool2d(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode or _pair(dilation) not in (1, (1, 1)):
        raise NotImplementedError("ceil_mode or dilation")
    stride = _pair(stride) if stride else None
    return mg.max_pool2d(x, kernel_size=_pair(kernel_size), stride=stride, padding=_pair(padding))


@op
def avg_pool2d(
    x,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    plain = count_include_pad or _pair(padding) in (0, (0, 0))
    if ceil_mode or not plain or divisor_override is not None:
        raise NotImplementedError("ceil_mode, count_include_pad=False or divisor_override")
    stride = _pair(stride) if stride else None
    return mg.avg_pool2d(x, kernel_size=_pair(kernel_size), stride=stride, padding=_pair(padding))


@op
def adaptive_avg_pool2d(x, output_size):
    sizes = [n if n is not None else x.shape[k - 2] for k, n in enumerate(output_size)]
    if any(x.shape[k - 2] % n for k, n in enumerate(sizes)):
        raise NotImplementedError("parts of several sizes")
    kernel = tuple(x.shape[k - 2] // n for k, n in enumerate(sizes))
    if sizes == [1, 1]:
        return mg.mean(x, axis=(-2, -1), keepdims=True)
    return mg.avg_pool2d(x, kernel_size=kernel)


TABLE["_adaptive_avg_pool2d"] = adaptive_avg_pool2d


@op
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if padding_idx != -1:  # its row gets no gradient
        keep = np.arange(weight.shape[0])[:, None] != padding_idx
        weight = mg.where(keep, weight, mg.mul(weight, 0.0))
    return mg.embedding(indices, weight)


@op
def layer_norm(x, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    out = mg.normalize(x, axis=tuple(range(-len(shape), 0)), eps=eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@op
def native_layer_norm(x, shape, weight, bias, eps):
    return layer_norm(x, shape, weight, bias, eps), None, None


@op
def rms_norm(x, shape, weight=None, eps=None):
    squares = mg.mean(x * x, axis=tuple(range(-len(shape), 0)), keepdims=True)
    out = x / mg.sqrt(squares + (float(np.finfo(x.dtype).eps) if eps is None else eps))
    return out if weight is None else out * weight


@op
def group_norm(x, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    parts = mg.reshape(x, shape=(x.shape[0], groups, -1))
    out = mg.reshape(mg.normalize(parts, axis=-1, eps=eps), shape=tuple(x.shape))
    wide = (1, -1, *[1] * (len(x.shape) - 2))
    out = out if weight is None else out * mg.reshape(weight, shape=wide)
    return out if bias is None else out + mg.reshape(bias, shape=wide)


@op
def _native_batch_norm_legit_functional(x, weight, bias, mean, var, training, momentum, eps):
    stored = (None, None) if training else (mean, var)
    return mg.batch_norm(x, weight, bias, stored[0], stored[1], eps=eps), None, None, None, None


@op
def _native_batch_norm_legit_no_training(x, weight, bias, mean, var, momentum, eps):
    return mg.batch_norm(x, weight, bias, mean, var, eps=eps), None, None


@op
def batch_norm(x, weight, bias, mean, var, training, momentum, eps, cudnn_enabled):
    return _native_batch_norm_legit_functional(x, weight, bias, mean, var, training, momentum, eps)[0]  # fmt: skip


# -- losses


def _reduced(losses: Any, reduction: int) -> Any:
    return (losses, mg.mean(losses), mg.sum(losses))[reduction] if reduction else losses


@op
def cross_entropy_loss(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):  # fmt: skip
    if weight is not None or label_smoothing or ignore_index >= 0:
        raise NotImplementedError("weight, label_smoothing or ignore_index")
    axis = 1 if len(x.shape) > 1 else 0
    return mg.cross_entropy(x, target, axis=axis, reduction=_REDUCTIONS[reduction])


@op
def nll_loss_nd(x, target, weight=None, reduction=1, ignore_index=-100):
    if weight is not None or ignore_index >= 0:
        raise NotImplementedError("weight or ignore_index")
    return mg.nll(x, target, axis=1 if len(x.shape) > 1 else 0, reduction=_REDUCTIONS[reduction])


@op
def nll_loss_forward(x, target, weight, reduction, ignore_index):
    return nll_loss_nd(x, target, weight, reduction, ignore_index), None


@op
def huber_loss(x, y, reduction=1, delta=1.0):
    return mg.huber(x, y, delta=delta, reduction=_REDUCTIONS[reduction])


@op
def smooth_l1_loss(x, y, reduction=1, beta=1.0):
    return mg.huber(x, y, delta=beta, reduction=_REDUCTIONS[reduction]) / beta


@op
def binary_cross_entropy(x, y, weight=None, reduction=1):
    if weight is not None:
        raise NotImplementedError("weight")
    return mg.binary_cross_entropy(x, y, reduction=_REDUCTIONS[reduction])


@op
def binary_cross_entropy_with_logits(x, y, weight=None, pos_weight=None, reduction=1):
    if weight is not None or pos_weight is not None:
        raise NotImplementedError("weight or pos_weight")
    return mg.binary_cross_entropy_with_logits(x, y, reduction=_REDUCTIONS[reduction])


@op
def detach(x):
    out = mg.assign(x)
    out.stop_gradient = True
    return out
