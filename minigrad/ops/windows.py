"""Windows that move over images [batch, channels, height, width]: how many fit, and all of them as columns."""

from __future__ import annotations

import numpy as np


def pair(value):
    """A number for height and width, or one for each."""
    if isinstance(value, int | np.integer):
        return value, value
    both = tuple(value) if isinstance(value, tuple | list) else ()
    if len(both) != 2 or not all(isinstance(n, int | np.integer) for n in both):
        advice = _WORDS.get(value) if isinstance(value, str) else None
        raise ValueError(
            f"{value!r} is neither a whole number nor one for height and one for width; "
            f"repair: {advice or 'pad(x, pad_width) makes borders of any widths'}"
        )
    return both


#: what other libraries call a padding → the number it stands for
_WORDS = {
    "same": "dilation * (kernel_size - 1) // 2, for windows of odd size and stride 1",
    "valid": "padding=0",
}


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


def padded(x, padding, value=0):
    """``x`` with a border around height and width."""
    (p, q), (h, w) = padding, x.shape[2:]
    if not p and not q:
        return x
    out = np.full((*x.shape[:2], h + 2 * p, w + 2 * q), value, x.dtype)
    out[:, :, p : p + h, q : q + w] = x
    return out


def columns_of(x, kernel, stride, padding, dilation):
    """All windows, [batch, channels, window height, window width, rows, cols]; their number."""
    rows, cols = output_size(x.shape[2:], kernel, stride, padding, dilation)
    x = padded(x, padding)
    n, c, h, w = x.strides
    strides = (n, c, h * dilation[0], w * dilation[1], h * stride[0], w * stride[1])
    windows = np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *kernel, rows, cols), strides, writeable=False
    )
    return windows, (rows, cols)


def add_columns(columns, shape, stride, padding, dilation):
    """Add every window back to its place."""
    (p, q), (h, w) = padding, shape[2:]
    kernel, count = columns.shape[2:4], columns.shape[4:]
    out = np.zeros((*shape[:2], h + 2 * p, w + 2 * q), columns.dtype)
    for (i, j), place in windows(kernel, count, stride, dilation):
        out[place] += columns[:, :, i, j]
    return out[:, :, p : p + h, q : q + w]


def windows(kernel, count, stride, dilation=(1, 1)):
    """For each place (i, j) in a window: the slice of the image that stands there."""
    for i, j in np.ndindex(*kernel):
        starts = i * dilation[0], j * dilation[1]
        steps = zip(starts, stride, count, strict=True)
        yield (
            (i, j),
            (slice(None), slice(None), *[slice(a, a + s * (n - 1) + 1, s) for a, s, n in steps]),
        )
