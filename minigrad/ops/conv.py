"""Convolutions, ``x`` of shape [batch, channels, height, width].

The windows of ``x`` are laid out as columns with the width innermost, so a convolution is one stack
of matrix products.  Convolution, the gradient of its input and the gradient of its filters are a
closed family of three bilinear primitives: derivatives of any order are made of them.
"""

from __future__ import annotations

import numpy as np

from ..primitives.registry import primitive
from .infer import shape_attr
from .reduce import reduce_sum
from .shape import expand_dims, squeeze
from .windows import add_columns, columns_of, output_size, pair


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
    x, w = np.asarray(x), np.asarray(w)
    _check(x, w, groups)
    how = pair(stride), pair(padding), pair(dilation)
    columns, (rows, cols) = columns_of(x, w.shape[2:], *how)
    n, filters = len(x), w.reshape(groups, len(w) // groups, -1)
    columns = columns.reshape(n, groups, filters.shape[2], rows * cols)
    out = np.matmul(filters, columns).reshape(n, len(w), rows, cols)
    return out if b is None else out + np.reshape(b, (-1, 1, 1))


@primitive(infer=shape_attr)
def conv2d_input(x, w, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """Spread values ``x`` over the windows they came from: the way back to the input."""
    x, w, shape = np.asarray(x), np.asarray(w), tuple(shape)
    _fits(x, shape, w.shape, stride, padding, dilation)
    filters = np.swapaxes(w.reshape(groups, len(w) // groups, -1), 1, 2)
    values = x.reshape(len(x), groups, filters.shape[2], *x.shape[2:])
    if pair(stride) == (1, 1):
        return _shifted(filters, values, shape, w.shape[2:], pair(padding), pair(dilation))
    places = x.shape[2] * x.shape[3]  # -1 could be anything where the batch is empty
    columns = np.matmul(filters, values.reshape(*values.shape[:3], places))
    columns = columns.reshape(len(x), shape[1], *w.shape[2:], *x.shape[2:])
    return add_columns(columns, shape, pair(stride), pair(padding), pair(dilation))


@primitive(infer=shape_attr)
def conv2d_weight(x, y, *, shape, stride=1, padding=0, dilation=1, groups=1):
    """Products of the windows of ``x`` with values ``y``: the way back to the filters."""
    x, y, shape = np.asarray(x), np.asarray(y), tuple(shape)
    _fits(y, x.shape, shape, stride, padding, dilation)
    columns, _ = columns_of(x, shape[2:], pair(stride), pair(padding), pair(dilation))
    n, places = len(x), y.shape[2] * y.shape[3]
    columns = columns.reshape(n, groups, shape[1] * shape[2] * shape[3], places)
    values = y.reshape(n, groups, shape[0] // groups, places)
    return np.add.reduce(np.matmul(values, np.swapaxes(columns, 2, 3)), axis=0).reshape(shape)


conv2d.grad(
    x=lambda w, out_grad, x_shape, stride, padding, dilation, groups: conv2d_input(
        out_grad, w, shape=x_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda x, out_grad, w_shape, stride, padding, dilation, groups: conv2d_weight(
        x, out_grad, shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda out_grad: reduce_sum(out_grad, axis=(0, 2, 3)),
)
conv2d.primitive.formula(x="convolve(g, w)", w="correlate(x, g)", b="sum(g)")
conv2d_input.grad(
    x=lambda w, out_grad, stride, padding, dilation, groups: conv2d(
        out_grad, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda x, out_grad, w_shape, stride, padding, dilation, groups: conv2d_weight(
        out_grad, x, shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)
conv2d_input.primitive.formula(x="correlate(g, w)", w="correlate(g, x)")
conv2d_weight.grad(
    x=lambda y, out_grad, x_shape, stride, padding, dilation, groups: conv2d_input(
        y, out_grad, shape=x_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    y=lambda x, out_grad, stride, padding, dilation, groups: conv2d(
        x, out_grad, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)
conv2d_weight.primitive.formula(x="convolve(y, g)", y="correlate(x, g)")


@primitive
def conv_transpose2d(x, w, b=None, *, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """`conv2d` transposed: filters ``w`` [channels, out / groups, height, width], ``b`` [out].

    >>> import minigrad as mg
    >>> mg.conv_transpose2d(mg.ones([1, 1, 2, 2]), mg.ones([1, 1, 2, 2]))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    x, w = np.asarray(x), np.asarray(w)
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != len(w) or len(w) % groups:
        raise ValueError(
            f"x needs [batch, {w.shape[0]}, height, width] for filters {list(w.shape)}; "
            f"repair: w is [channels of x, channels of the result / groups, height, width]"
        )
    shape = transposed_shape(x, w, groups, stride, padding, dilation, output_padding)
    out = conv2d_input(
        x, w, shape=shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    return out if b is None else out + np.reshape(b, (-1, 1, 1))


def transposed_shape(x, w, groups, *how):
    """The shape of a `conv_transpose2d`; ``how``: stride, padding, dilation, output padding."""
    sides = zip(x.shape[2:], w.shape[2:], *map(pair, how), strict=True)
    sides = list(sides)
    size = [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in sides]
    if any(extra >= max(s, 1) for _, _, s, _, _, extra in sides):
        raise ValueError(
            f"output_padding={how[-1]} is not smaller than stride={how[0]}; "
            "repair: a smaller one; pad(result, pad_width) adds rows and columns of zeros"
        )
    if min(size) < 1:
        raise ValueError(f"the result would be {size} large; repair: a smaller padding")
    return (len(x), w.shape[1] * groups, *size)


conv_transpose2d.grad(
    x=lambda w, out_grad, stride, padding, dilation, groups: conv2d(
        out_grad, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda x, out_grad, w_shape, stride, padding, dilation, groups: conv2d_weight(
        out_grad, x, shape=w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    b=lambda out_grad: reduce_sum(out_grad, axis=(0, 2, 3)),
)
conv_transpose2d.primitive.formula(x="correlate(g, w)", w="correlate(g, x)", b="sum(g)")


def conv1d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Slide filters ``w`` [out, channels / groups, length] over ``x`` [batch, channels, length].

    >>> import minigrad as mg
    >>> mg.conv1d(mg.tensor([[[1.0, 2.0, 3.0]]]), mg.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -1.]]])
    """
    wide = conv2d(
        expand_dims(x, axis=2),
        expand_dims(w, axis=2),
        b,
        stride=(1, stride),
        padding=(0, padding),
        dilation=(1, dilation),
        groups=groups,
    )
    return squeeze(wide, axis=2)


def _check(x, w, groups):
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != w.shape[1] * groups or len(w) % groups:
        raise ValueError(
            f"x of shape {list(x.shape)} and filters of shape {list(w.shape)} do not fit in "
            f"{groups} group(s); repair: x is [batch, channels, height, width], "
            f"w is [out, channels / groups, height, width]{_order(x.shape, w.shape[1:2], groups)}"
        )


def _order(shape, width, groups):
    """What makes images of them, where one step is enough."""
    channels = [n * groups for n in width]
    if len(shape) == 3 and channels == [1]:
        return "; x.expand_dims(1) adds the axis of the channel"
    last = len(shape) == 4 and channels == [shape[3]]
    return "; x.permute_dims(0, 3, 1, 2) puts the channels second" if last else ""


def _fits(values, shape, filters, stride, padding, dilation):
    """Values must stand one for one behind the windows of an image of ``shape``."""
    how = pair(stride), pair(padding), pair(dilation)
    count = output_size(shape[2:], filters[2:], *how)
    if values.ndim != 4 or list(values.shape[2:]) != count:
        raise ValueError(
            f"values of shape {list(values.shape)} do not stand behind {count} windows; "
            f"repair: one value for each: [batch, channels, {count[0]}, {count[1]}]"
        )


def _shifted(filters, values, shape, kernel, padding, dilation):
    """The way back to the input for windows that move by one.

    With rows as long as those of the image, a place in the window is a shift of everything at once.
    """
    (p, q), (h, w), (rows, cols) = padding, shape[2:], values.shape[3:]
    tall, wide = h + 2 * p, w + 2 * q
    long = np.zeros((*values.shape[:4], wide), values.dtype)
    long[..., :cols] = values
    columns = np.matmul(filters, long.reshape(*long.shape[:3], rows * wide))
    columns = columns.reshape(*shape[:2], *kernel, rows * wide)
    beyond = (kernel[1] - 1) * dilation[1]
    out = np.zeros((*shape[:2], tall * wide + beyond), columns.dtype)
    for i, j in np.ndindex(*kernel):
        start = i * dilation[0] * wide + j * dilation[1]
        out[:, :, start : start + rows * wide] += columns[:, :, i, j]
    image = out[:, :, : tall * wide].reshape(*shape[:2], tall, wide)
    return image[:, :, p : p + h, q : q + w]
