"""Windows that move over images [batch, channels, height, width]: how many fit, and all of them as columns."""

import math

import numpy as np

from ..primitives.registry import primitive
from .reduce import reduce_sum
from .shape import expand_dims, shape_attr, squeeze

__all__ = ["avg_pool2d", "conv1d", "conv2d", "conv_transpose2d", "max_pool2d"]


def pair(value):
    """A number for height and width, or one for each."""
    if isinstance(value, int | np.integer):
        return value, value
    both = tuple(value) if isinstance(value, tuple | list) else ()
    if len(both) != 2 or not all(isinstance(n, int | np.integer) for n in both):
        raise ValueError(
            f"{value!r} is neither a whole number nor one for height and one for width; "
            "repair: padding=dilation * (kernel_size - 1) // 2 keeps the size, for windows of odd size and stride 1"
        )
    return both


def output_size(size, kernel, stride, padding, dilation):
    """How many windows fit along each axis."""
    if min(*kernel, *stride, *dilation) < 1 or min(padding) < 0:
        raise ValueError(
            f"window {list(kernel)}, stride {list(stride)} and dilation {list(dilation)} count from 1, "
            f"padding {list(padding)} from 0; repair: leave them out for 1 and 0; x[:, :, 1:-1, 1:-1] cuts a border off"
        )
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]
    if min(counts) < 1:
        raise ValueError(
            f"a window of {list(kernel)} does not fit into {list(size)} with padding "
            f"{list(padding)}; repair: a smaller window, or more padding"
        )
    return counts


def framed(shape, padding):
    """The shape of images with a border around height and width, and where they stand in it."""
    (p, q), (n, c, h, w) = padding, shape
    return (n, c, h + 2 * p, w + 2 * q), (..., slice(p, p + h), slice(q, q + w))


def padded(x, padding, value=0):
    """``x`` with a border around height and width."""
    if not any(padding):
        return x
    shape, inside = framed(x.shape, padding)
    out = np.full(shape, value, x.dtype)
    out[inside] = x
    return out


def columns_of(x, filters, groups, stride, padding, dilation):
    """All windows of filters of a shape, one in a column: [batch, groups, places in a window, windows]."""
    x = padded(x, padding)
    size = [(k - 1) * d + 1 for k, d in zip(filters[2:], dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, (2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    rows, cols = windows.shape[2:4]
    columns = np.transpose(windows, (0, 1, 4, 5, 2, 3))
    return columns.reshape(len(x), groups, math.prod(filters[1:]), rows * cols)


def windows(kernel, count, stride, dilation=(1, 1)):
    """For each place in a window, row by row: the slice of the image that stands there."""
    down, right = (
        [slice(i * d, i * d + s * (n - 1) + 1, s) for i in range(k)]
        for k, n, s, d in zip(kernel, count, stride, dilation, strict=True)
    )
    return [(..., rows, cols) for rows in down for cols in right]


# -- convolutions --------------------------------------------------------------------------


@primitive
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    """Slide filters ``w`` [out, channels / groups, height, width] over ``x``; add ``b`` [out].

    >>> import minigrad as mg
    >>> mg.conv2d(mg.ones([1, 1, 3, 3]), mg.ones([1, 1, 2, 2]), padding=1)
    tensor([[[[1., 2., 2., 1.],
              [2., 4., 4., 2.],
              [2., 4., 4., 2.],
              [1., 2., 2., 1.]]]])
    """
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != w.shape[1] * groups or len(w) % groups:
        raise ValueError(
            f"x of shape {list(x.shape)} and filters of shape {list(w.shape)} do not fit in "
            f"{groups} group(s); repair: x is [batch, channels, height, width], "
            f"w is [out, channels / groups, height, width]"
        )
    how = pair(stride), pair(padding), pair(dilation)
    count = output_size(x.shape[2:], w.shape[2:], *how)
    filters = w.reshape(groups, len(w) // groups, -1)
    columns = columns_of(x, w.shape, groups, *how)
    out = np.matmul(filters, columns).reshape(len(x), len(w), *count)
    return out if b is None else out + np.reshape(b, (-1, 1, 1))


@primitive(infer=shape_attr)
def conv2d_input(x, w, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """Spread values ``x`` over the windows they came from: the way back to the input."""
    stride, padding, dilation = _fits(x, shape, w.shape, stride, padding, dilation)
    kernel, count = w.shape[2:], x.shape[2:]
    filters = w.reshape(groups, len(w) // groups, -1)
    values = x.reshape(len(x), *filters.shape[:2], math.prod(count))
    columns = np.matmul(np.swapaxes(filters, 1, 2), values)
    columns = columns.reshape(len(x), shape[1], math.prod(kernel), *count)
    wide, inside = framed(shape, padding)
    out = np.zeros(wide, columns.dtype)
    for k, place in enumerate(windows(kernel, count, stride, dilation)):
        out[place] += columns[:, :, k]
    return out[inside]


@primitive(infer=shape_attr)
def conv2d_weight(x, y, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """Products of the windows of ``x`` with values ``y``: the way back to the filters."""
    how = _fits(y, x.shape, shape, stride, padding, dilation)
    columns = columns_of(x, shape, groups, *how)
    values = y.reshape(len(x), groups, shape[0] // groups, columns.shape[3])
    return np.add.reduce(np.matmul(values, np.swapaxes(columns, 2, 3)), axis=0).reshape(shape)


def _bias_rule(out_grad):
    return reduce_sum(out_grad, (0, 2, 3))


conv2d.grad(
    x=(conv2d_input, "out_grad, w, x_shape, stride, padding, dilation, groups", "convolve(g, w)"),
    w=(conv2d_weight, "x, out_grad, w_shape, stride, padding, dilation, groups", "correlate(x, g)"),
    b=_bias_rule,
).formula(b="sum(g)")


def _slid(w, out_grad, stride, padding, dilation, groups):
    return conv2d(out_grad, w, None, stride, padding, dilation, groups)


_PRODUCTS = conv2d_weight, "out_grad, x, w_shape, stride, padding, dilation, groups"
conv2d_input.grad(x=_slid, w=_PRODUCTS).formula(x="correlate(g, w)", w="correlate(g, x)")
conv2d_weight.grad(
    x=(conv2d_input, "y, out_grad, x_shape, stride, padding, dilation, groups"),
    y=lambda x, out_grad, stride, padding, dilation, groups: conv2d(
        x, out_grad, None, stride, padding, dilation, groups
    ),
).formula(x="convolve(y, g)", y="correlate(x, g)")


@primitive
def conv_transpose2d(x, w, b=None, *, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """`conv2d` transposed: filters ``w`` [channels, out / groups, height, width], ``b`` [out].

    >>> import minigrad as mg
    >>> mg.conv_transpose2d(mg.ones([1, 1, 2, 2]), mg.ones([1, 1, 2, 2]))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != len(w) or len(w) % groups:
        raise ValueError(
            f"x needs [batch, {w.shape[0]}, height, width] for filters {list(w.shape)}; "
            f"repair: w is [channels of x, channels of the result / groups, height, width]"
        )
    shape = transposed_shape(x, w, groups, stride, padding, dilation, output_padding)
    out = conv2d_input(x, w, shape, stride, padding, dilation, groups)
    return out if b is None else out + np.reshape(b, (-1, 1, 1))


def transposed_shape(x, w, groups, *how):
    """The shape of a `conv_transpose2d`; ``how``: stride, padding, dilation, output padding."""
    size = []
    sides = zip(x.shape[2:], w.shape[2:], *map(pair, how), strict=True)
    for n, k, s, p, d, extra in sides:
        if extra >= max(s, 1):
            raise ValueError(
                f"output_padding={how[-1]} is not smaller than stride={how[0]}; "
                "repair: a smaller one; pad(result, pad_width) adds rows and columns of zeros"
            )
        size.append((n - 1) * s - 2 * p + d * (k - 1) + extra + 1)
    if min(size) < 1:
        raise ValueError(f"the result would be {size} large; repair: a smaller padding")
    return (len(x), w.shape[1] * groups, *size)


conv_transpose2d.grad(x=_slid, w=_PRODUCTS, b=_bias_rule).formula(
    x="correlate(g, w)", w="correlate(g, x)", b="sum(g)"
)


def conv1d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Slide filters ``w`` [out, channels / groups, length] over ``x`` [batch, channels, length].

    >>> import minigrad as mg
    >>> mg.conv1d(mg.tensor([[[1.0, 2.0, 3.0]]]), mg.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -1.]]])
    """
    how = (1, stride), (0, padding), (1, dilation)
    return squeeze(conv2d(expand_dims(x, 2), expand_dims(w, 2), b, *how, groups), 2)


def _fits(values, shape, filters, *how):
    """Stride, padding and dilation in pairs, if values stand one for one behind the windows of an image."""
    how = [pair(n) for n in how]
    count = output_size(shape[2:], filters[2:], *how)
    if values.ndim != 4 or list(values.shape[2:]) != count:
        raise ValueError(f"values {list(values.shape)} do not stand behind {count} windows")
    return how


# -- pooling: slice by slice ---------------------------------------------------------------


@primitive
def max_pool2d(x, *, kernel_size, stride=None, padding=0):
    """The largest element of every window; at a tie the first one gets the gradient.

    >>> import minigrad as mg
    >>> mg.max_pool2d(mg.arange(16.0).reshape(1, 1, 4, 4), kernel_size=2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
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
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide, inside = framed(x.shape, border)
    sides = zip(pair(kernel_size), pair(kernel_size if stride is None else stride), strict=True)
    out, apart = np.zeros(wide, y.dtype), all(size <= step for size, step in sides)
    for place, hit in _winners(x, top, places, border):
        if apart:
            np.multiply(y, hit, out=out[place])
        else:
            out[place] += y * hit
    return out[inside]


@primitive(nondiff=("x", "top"))
def max_pick(y, x, top, *, kernel_size, stride=None, padding=0):
    """The elements of ``y`` where each window of ``x`` has its first largest element ``top``."""
    places, border = plan(x.shape, kernel_size, stride, padding)
    values, out = padded(y, border), np.zeros(top.shape, y.dtype)
    for place, hit in _winners(x, top, places, border):
        out += values[place] * hit
    return out


max_pool2d.grad(x=(max_unpool, "out_grad, x, out, kernel_size, stride, padding", "unpool(g, x)"))
max_unpool.grad(y=(max_pick, "out_grad, x, top, kernel_size, stride, padding", "pick(g, x)"))
max_pick.grad(y=(max_unpool, "out_grad, x, top, kernel_size, stride, padding", "unpool(g, x)"))


@primitive
def avg_pool2d(x, *, kernel_size, stride=None, padding=0):
    """The mean of every window; padding counts as zeros.

    >>> import minigrad as mg
    >>> mg.avg_pool2d(mg.arange(16.0).reshape(1, 1, 4, 4), kernel_size=2)
    tensor([[[[ 2.5,  4.5],
              [10.5, 12.5]]]])
    """
    places, border = plan(x.shape, kernel_size, stride, padding)
    x = padded(x, border)
    total = np.array(x[places[0]])
    for place in places[1:]:
        total += x[place]
    return total / len(places)


@primitive(infer=shape_attr)
def avg_unpool(x, *, shape, kernel_size, stride=None, padding=0):
    """Spread each value evenly over its window: the gradient of `avg_pool2d`."""
    places, border = plan(shape, kernel_size, stride, padding)
    wide, inside = framed(shape, border)
    share = np.true_divide(x, len(places))
    out = np.zeros(wide, share.dtype)
    for place in places:
        out[place] += share
    return out[inside]


avg_pool2d.grad(x=(avg_unpool, "out_grad, x_shape, kernel_size, stride, padding", "spread(g) / n"))
avg_unpool.grad(x=(avg_pool2d, "out_grad, kernel_size, stride, padding", "window_sums(g) / n"))


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
    return windows(kernel, count, step), border


def _winners(x, top, places, border):
    """For each place in a window: where it, and no earlier one, holds the largest element."""
    x = padded(x, border, lowest(x.dtype))
    free = np.ones(top.shape, bool)
    for place in places:
        hit = (x[place] == top) & free
        np.greater(free, hit, out=free)  # free, and no hit
        yield place, hit


def lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else 0
