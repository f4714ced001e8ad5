"""What each operation of PyTorch (ATen) is in ops of this package: one function per operation.

A function takes what the operation takes, in its order: Variables, arrays and numbers; torch's dtypes come
as NumPy's names.  Most operations of one or two values are one op here (`aten.ini`).  What torch
takes apart into these needs no row of its own, unless a gradient or a reader would lose by it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import numpy as np

from .. import ops as mg

_names = ConfigParser()
_names.read(Path(__file__).with_name("aten.ini"), encoding="utf-8")
_REDUCTIONS = ("none", "mean", "sum")

TABLE: dict[str, Callable[..., Any]] = {
    name: getattr(mg, to)
    for name, to in [*((n, n) for n in _names["same"]["names"].split()), *_names["renamed"].items()]
}


def op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its name, without a trailing ``_``."""
    TABLE[function.__name__.removesuffix("_")] = function
    return function


def _axes(dim: Any) -> Any:
    return None if dim is None or dim == [] else tuple(dim) if isinstance(dim, list) else dim


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False, *, dtype=None: function(
        x, axis=_axes(dim), keepdims=keepdim
    )


TABLE |= {name: _along(getattr(mg, to)) for name, to in _names["along"].items()}


def _scaled(x: Any, alpha: float) -> Any:
    return x if alpha == 1 else x * alpha


#: operations that are one expression here: what each takes, and what it is
TABLE |= {
    "add": lambda x, y, *, alpha=1: mg.add(x, _scaled(y, alpha)),
    "sub": lambda x, y, *, alpha=1: mg.sub(x, _scaled(y, alpha)),
    "rsqrt": lambda x: mg.reciprocal(mg.sqrt(x)),
    "exp2": lambda x: mg.exp(x * math.log(2.0)),
    "softplus": lambda x, beta=1, threshold=20: mg.softplus(x * beta) / beta,
    "leaky_relu": lambda x, slope=0.01: mg.leaky_relu(x, negative_slope=float(slope)),
    "clamp": lambda x, min=None, max=None: mg.clip(x, min=min, max=max),
    "hardtanh": lambda x, low=-1, high=1: mg.clip(x, min=float(low), max=float(high)),
    "cumsum": lambda x, dim, *, dtype=None: mg.cumsum(x, axis=dim),
    "_softmax": lambda x, dim, half: mg.softmax(x, axis=dim),
    "_log_softmax": lambda x, dim, half: mg.log_softmax(x, axis=dim),
    "topk": lambda x, k, dim=-1, largest=True, sorted=True: mg.topk(
        x, k=k, axis=dim, largest=largest
    ),
    "einsum": lambda equation, operands: mg.einsum(equation.replace(" ", ""), *operands),
    "addmm": lambda b, x, y, *, beta=1, alpha=1: _scaled(b, beta) + _scaled(mg.matmul(x, y), alpha),
    "view": lambda x, size: mg.reshape(x, shape=tuple(size)),
    "permute": lambda x, dims: mg.permute_dims(x, axes=tuple(dims)),
    "unsqueeze": lambda x, dim: mg.expand_dims(x, axis=dim),
    "repeat": lambda x, repeats: mg.tile(x, repetitions=tuple(repeats)),
    "stack": lambda tensors, dim=0: mg.stack(*tensors, axis=dim),
    "select": lambda x, dim, index: x[*[slice(None)] * (dim % len(x.shape)), index],
    "index_select": lambda x, dim, index: mg.take(x, index, axis=dim),
    "index": lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
    "flip": lambda x, dims: mg.flip(x, axis=tuple(dims)),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: mg.diagonal(
        x, offset=offset, axis1=dim1, axis2=dim2
    ),
    "_to_copy": lambda x, *, dtype=None, **where: x if dtype is None else mg.astype(x, dtype),
    "fill": lambda x, value: mg.full(x.shape, value, dtype=x.dtype),
    "full_like": lambda x, value, **how: np.full(x.shape, value, how.get("dtype") or x.dtype),
    "copy": lambda x, y, non_blocking=False: mg.broadcast_to(y, shape=tuple(x.shape)),
    "native_dropout": lambda x, p, train: (mg.dropout(x, p=p) if train else x, None),
    "mse_loss": lambda x, y, reduction=1: mg.mse(x, y, reduction=_REDUCTIONS[reduction]),
}


@op
def div(x, y, *, rounding_mode=None):
    out = mg.div(x, y)
    if rounding_mode is None:
        return out
    return mg.floor(out) if rounding_mode == "floor" else mg.sign(out) * mg.floor(mg.abs(out))


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
def var(x, dim=None, *, correction=1, keepdim=False):
    degrees = 1 if correction is None else correction
    return mg.var(x, axis=_axes(dim), correction=degrees, keepdims=keepdim)


@op
def max(x, dim=None, keepdim=False):
    top = mg.max(x, axis=dim, keepdims=keepdim)
    return top if dim is None else (top, mg.argmax(x, axis=dim, keepdims=keepdim))


@op
def min(x, dim=None, keepdim=False):
    low = mg.min(x, axis=dim, keepdims=keepdim)
    return low if dim is None else (low, mg.argmin(x, axis=dim, keepdims=keepdim))


@op
def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return mg.norm(x, ord=ord, axis=_axes(dim), keepdims=keepdim)


@op
def sort(x, dim=-1, descending=False):
    how = {"axis": dim, "descending": descending}
    return mg.sort(x, **how), mg.argsort(x, **how)


# -- matrices


@op
def linear(x, w, b=None):
    out = mg.matmul(x, mg.swapaxes(w, axis1=-1, axis2=-2))
    return out if b is None else out + b


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
def slice_scatter(x, y, dim=0, start=None, end=None, step=1):
    part = slice(*slice(start, end, step).indices(x.shape[dim]))
    return mg.setitem(x, y, (*[slice(None)] * (dim % len(x.shape)), part))


@op
def gather(x, dim, index, *, sparse_grad=False):
    sizes = [list(v.shape) for v in (x, index)]
    if sizes[0][:dim] + sizes[0][dim:][1:] != sizes[1][:dim] + sizes[1][dim:][1:]:
        raise NotImplementedError("an index with other sizes than the input")
    return mg.take_along_axis(x, index, axis=dim)


@op
def constant_pad_nd(x, pad, value=0.0):
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    if any(n < 0 for pair in pairs for n in pair):
        raise NotImplementedError("negative padding")
    return mg.pad(x, pad_width=[(0, 0)] * (len(x.shape) - len(pairs)) + pairs, value=value)


@op
def detach(x):
    out = mg.assign(x)
    out.stop_gradient = True
    return out


# -- layers


def _pair(value: Any) -> Any:
    return value if isinstance(value, int) else value[0] if len(value) == 1 else tuple(value)


@op
def convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    how = {"stride": _pair(stride), "padding": _pair(padding), "dilation": _pair(dilation)}
    if len(w.shape) > 4 or (transposed and len(w.shape) != 4):
        raise NotImplementedError(f"{len(w.shape) - 2} dimensions{', transposed' * transposed}")
    if transposed:
        how["output_padding"] = _pair(output_padding)
        return mg.conv_transpose2d(x, w, b, **how, groups=groups)
    return (mg.conv2d if len(w.shape) == 4 else mg.conv1d)(x, w, b, **how, groups=groups)


def _windows(kernel_size: Any, stride: Any, padding: Any) -> dict[str, Any]:
    step = _pair(stride) if stride else None
    return {"kernel_size": _pair(kernel_size), "stride": step, "padding": _pair(padding)}


@op
def max_pool2d_with_indices(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode or _pair(dilation) not in (1, (1, 1)):
        raise NotImplementedError("ceil_mode or dilation")
    return mg.max_pool2d(x, **_windows(kernel_size, stride, padding)), None


@op
def avg_pool2d(x, kernel_size, stride=(), padding=0, ceil_mode=False, borders=True, divisor=None):
    if ceil_mode or divisor is not None or not (borders or _pair(padding) in (0, (0, 0))):
        raise NotImplementedError("ceil_mode, count_include_pad=False or divisor_override")
    return mg.avg_pool2d(x, **_windows(kernel_size, stride, padding))


@op
def _adaptive_avg_pool2d(x, output_size):
    if any(x.shape[k - 2] % n for k, n in enumerate(output_size)):
        raise NotImplementedError("parts of several sizes")
    kernel = tuple(x.shape[k - 2] // n for k, n in enumerate(output_size))
    return mg.avg_pool2d(x, kernel_size=kernel)


@op
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if padding_idx != -1:  # its row gets no gradient
        keep = np.arange(weight.shape[0])[:, None] != padding_idx
        weight = mg.where(keep, weight, mg.mul(weight, 0.0))
    return mg.embedding(indices, weight)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    out = x if weight is None else x * weight
    return out if bias is None else out + bias


@op
def native_layer_norm(x, shape, weight, bias, eps):
    out = mg.normalize(x, axis=tuple(range(-len(shape), 0)), eps=eps)
    return _affine(out, weight, bias), None, None


@op
def native_group_norm(x, weight, bias, n, channels, size, groups, eps):
    parts = mg.reshape(x, shape=(n, groups, -1))
    out = mg.reshape(mg.normalize(parts, axis=-1, eps=eps), shape=tuple(x.shape))
    wide = (1, -1, *[1] * (len(x.shape) - 2))
    rows = (v if v is None else mg.reshape(v, shape=wide) for v in (weight, bias))
    return _affine(out, *rows), None, None


@op
def _native_batch_norm_legit_functional(x, weight, bias, mean, var, training, momentum, eps):
    mean, var = (None, None) if training else (mean, var)
    return mg.batch_norm(x, weight, bias, mean, var, eps=eps), None, None, None, None


@op
def _native_batch_norm_legit_no_training(x, weight, bias, mean, var, momentum, eps):
    return mg.batch_norm(x, weight, bias, mean, var, eps=eps), None, None


# -- losses


@op
def cross_entropy_loss(x, target, weight=None, reduction=1, ignore_index=-100, smoothing=0.0):
    if weight is not None or smoothing or ignore_index >= 0:
        raise NotImplementedError("weight, label_smoothing or ignore_index")
    axis = 1 if len(x.shape) > 1 else 0
    return mg.cross_entropy(x, target, axis=axis, reduction=_REDUCTIONS[reduction])


@op
def binary_cross_entropy(x, y, weight=None, reduction=1):
    if weight is not None:
        raise NotImplementedError("weight")
    return mg.binary_cross_entropy(x, y, reduction=_REDUCTIONS[reduction])
