"""Pooling over windows of images [batch, channels, height, width]: slice by slice."""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .infer import shape_attr
from .windows import output_size, padded, pair, windows


@primitive
def max_pool2d(x, *, kernel_size, stride=None, padding=0):
    """The largest element of every window; at a tie the first one gets the gradient.

    >>> import minigrad as mg
    >>> mg.max_pool2d(mg.arange(16.0).reshape(1, 1, 4, 4), kernel_size=2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    x = np.asarray(x)
    places, border = plan(x.shape, kernel_size, stride, padding)
    x = padded(x, border, lowest(x.dtype))
    if len(places) == 1:
        return np.array(x[places[0]])
    out = np.maximum(x[places[0]], x[places[1]])
    for place in places[2:]:
        np.maximum(out, x[place], out=out)
    return out


@primitive(nondiff=("x", "top"))
def max_unpool(y, x, top, *, kernel_size, stride=None, padding=0):
    """Zeros with ``y`` where each window of ``x`` has its first largest element ``top``."""
    x = np.asarray(x)
    places, (p, q) = plan(x.shape, kernel_size, stride, padding)
    wide = padded(x, (p, q), lowest(x.dtype))
    out, apart = np.zeros(wide.shape, np.asarray(y).dtype), _apart(kernel_size, stride)
    for place, hit in _winners(wide, places, top):
        if apart:
            np.multiply(y, hit, out=out[place])
        else:
            out[place] += y * hit
    return out[:, :, p : p + x.shape[2], q : q + x.shape[3]]


@primitive(nondiff=("x", "top"))
def max_pick(y, x, top, *, kernel_size, stride=None, padding=0):
    """The elements of ``y`` where each window of ``x`` has its first largest element ``top``."""
    x, y = np.asarray(x), np.asarray(y)
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide, values = padded(x, border, lowest(x.dtype)), padded(y, border)
    out = np.zeros(np.shape(top), y.dtype)
    for place, hit in _winners(wide, places, top):
        out += values[place] * hit
    return out


max_pool2d.grad(
    x=lambda x, out, out_grad, kernel_size, stride, padding: max_unpool(
        out_grad, x, out, kernel_size=kernel_size, stride=stride, padding=padding
    )
)
max_pool2d.primitive.formula(x="unpool(g, x)")
max_unpool.grad(
    y=lambda x, top, out_grad, kernel_size, stride, padding: max_pick(
        out_grad, x, top, kernel_size=kernel_size, stride=stride, padding=padding
    )
)
max_unpool.primitive.formula(y="pick(g, x)")
max_pick.grad(
    y=lambda x, top, out_grad, kernel_size, stride, padding: max_unpool(
        out_grad, x, top, kernel_size=kernel_size, stride=stride, padding=padding
    )
)
max_pick.primitive.formula(y="unpool(g, x)")


@primitive
def avg_pool2d(x, *, kernel_size, stride=None, padding=0):
    """The mean of every window; padding counts as zeros.

    >>> import minigrad as mg
    >>> mg.avg_pool2d(mg.arange(16.0).reshape(1, 1, 4, 4), kernel_size=2)
    tensor([[[[ 2.5,  4.5],
              [10.5, 12.5]]]])
    """
    x = np.asarray(x)
    places, border = plan(x.shape, kernel_size, stride, padding)
    x = padded(x, border)
    total = np.array(x[places[0]])
    for place in places[1:]:
        total += x[place]
    return total / len(places)


@primitive(infer=shape_attr)
def avg_unpool(x, *, shape, kernel_size, stride=None, padding=0):
    """Spread each value evenly over its window: the gradient of `avg_pool2d`."""
    places, (p, q) = plan(shape, kernel_size, stride, padding)
    share = np.true_divide(x, len(places))
    out = np.zeros((*shape[:2], shape[2] + 2 * p, shape[3] + 2 * q), share.dtype)
    for place in places:
        out[place] += share
    return out[:, :, p : p + shape[2], q : q + shape[3]]


avg_pool2d.grad(
    x=lambda out_grad, x_shape, kernel_size, stride, padding: avg_unpool(
        out_grad, shape=x_shape, kernel_size=kernel_size, stride=stride, padding=padding
    )
)
avg_pool2d.primitive.formula(x="spread(g) / n")
avg_unpool.grad(
    x=lambda out_grad, kernel_size, stride, padding: avg_pool2d(
        out_grad, kernel_size=kernel_size, stride=stride, padding=padding
    )
)
avg_unpool.primitive.formula(x="window_sums(g) / n")


def plan(shape, kernel_size, stride, padding):
    """The slices of a padded image, one per place in the window, and the padding."""
    if len(shape) != 4:
        raise ValueError(
            f"images are [batch, channels, height, width], not {list(shape)}; repair: "
            "x.expand_dims(0) adds the axis of the batch, x.expand_dims(1) that of the channel"
        )
    kernel, border = pair(kernel_size), pair(padding)
    step = kernel if stride is None else pair(stride)
    if any(2 * p > k for p, k in zip(border, kernel, strict=True)):
        raise ValueError(
            f"padding {list(border)} must be at most half of the window {list(kernel)}; "
            f"repair: padding={min(kernel) // 2}, or pad(x, pad_width) first"
        )
    count = output_size(shape[2:], kernel, step, border, (1, 1))
    return [place for _, place in windows(kernel, count, step)], border


def _winners(x, places, top):
    """For each place in a window: where it, and no earlier one, holds the largest element."""
    free = np.ones(np.shape(top), bool)
    for place in places:
        hit = (x[place] == top) & free
        np.greater(free, hit, out=free)  # free, and no hit
        yield place, hit


def _apart(kernel_size, stride):
    """Whether no two windows overlap."""
    pairs = zip(pair(kernel_size), pair(kernel_size if stride is None else stride), strict=True)
    return all(size <= step for size, step in pairs)


def lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else 0
