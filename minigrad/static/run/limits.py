"""How large results may become, found before memory is asked for; and how long loops may run.

Most operators give no more than they take.  Those that may give more have a line here: broadcasting, products, and what
an attr asks for.  A program of a stranger is so stopped before it takes all memory, and a typing error, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat, zip_longest
from typing import Any

import numpy as np

from ...errors import ProgramError, user_line
from ...ops.windows import pair
from ...primitives.registry import Primitive

MEMORY = 2**31  #: bytes of all values of a run together, and of one value while a program is built
HELD = 128  #: bytes of Python's for each value: the array itself, its name's place in a scope
STEP_LIMIT = 1_000_000  #: of one loop

Shape = tuple[int, ...]
Shapes = dict[str, list[Shape]]


def broadcast_size(shapes: Iterable[Shape]) -> int:
    """The number of elements of values that are broadcast together, whether they fit or not.

    >>> broadcast_size([(3, 1), (4,)])
    12
    """
    return math.prod(max(1, *sizes) for sizes in zip_longest(*map(reversed, shapes), fillvalue=1))


def _product(a: Shape, b: Shape, rows: int, columns: int) -> int:
    """Matrices with these sizes as rows and columns, one for each pair that broadcasting makes."""
    return broadcast_size([a[:-2], b[:-2]]) * rows * columns


def _at(shape: Shape, axis: int) -> int:
    return shape[axis] if len(shape) >= -axis else 1


def _matmul(s: Shapes, attrs: dict[str, Any]) -> int:
    (x,), (y,) = s["x"], s["y"]
    return _product(x, y, _at(x, -2), _at(y, -1) if len(y) > 1 else 1)


def _matmul_grad(s: Shapes, attrs: dict[str, Any]) -> int:
    (g,), sizes = s["out_grad"], [1]
    if "y" in s:  # which is read for the gradient of x, and the other way round
        (y,) = s["y"]
        sizes.append(_product(g, y, _at(g, -2), _at(y, -2)))
    if "x" in s:
        (x,) = s["x"]
        sizes.append(_product(x, g, _at(x, -1), _at(g, -1)))
    return max(sizes)


def _product_along(rows: int, columns: int) -> Callable[..., int]:
    """Of products with one factor turned: the axis of each that stays."""
    return lambda s, attrs: _product(
        s["x"][0], s["y"][0], _at(s["x"][0], rows), _at(s["y"][0], columns)
    )


def _linear(s: Shapes, attrs: dict[str, Any]) -> int:
    (x,), (w,) = s["x"], s["w"]
    return math.prod(x[:-1]) * _at(w, -1)


def _einsum(s: Shapes, attrs: dict[str, Any]) -> int:
    terms, _, out = str(attrs.get("subscripts", "")).replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms.split(","), s["x"], strict=False):
        head, _, tail = term.partition("...")
        ends = *zip(head, shape, strict=False), *zip(tail[::-1], shape[::-1], strict=False)
        for letter, n in ends:
            sizes[letter] = max(n, sizes.get(letter, 1))
    return math.prod(sizes.get(letter, 1) for letter in out)


def _asked(attrs: dict[str, Any], name: str = "shape") -> int:
    value = attrs.get(name, ())
    return math.prod(
        max(n, 1) for n in np.ravel(np.asarray(value or (), dtype=object)) if type(n) is int
    )


def _tile(s: Shapes, attrs: dict[str, Any]) -> int:
    return math.prod(s["x"][0]) * _asked(attrs, "repetitions")


def _pad(s: Shapes, attrs: dict[str, Any]) -> int:
    width = attrs.get("pad_width", 0)
    pairs = np.broadcast_to(np.asarray(width), (len(s["x"][0]), 2)).tolist()
    return math.prod(n + a + b for n, (a, b) in zip(s["x"][0], pairs, strict=True))


def _take(s: Shapes, attrs: dict[str, Any]) -> int:
    (x,) = s["x"]
    axis = attrs.get("axis")
    rest = 1 if axis is None else math.prod(x) // max(x[axis], 1)
    return rest * math.prod(s["indices"][0])


def _padded(s: Shapes, attrs: dict[str, Any]) -> int:
    """An image with its padding, of which windows are seen."""
    (x,) = s["x"]
    height, width = pair(attrs.get("padding", 0))
    return math.prod((*x[:-2], x[-2] + 2 * abs(height), x[-1] + 2 * abs(width)))


def _transposed(s: Shapes, attrs: dict[str, Any]) -> int:
    """What a transposed convolution gives, before its padding is cut off."""
    (x,), (w,) = s["x"], s["w"]
    pairs = (pair(attrs.get(a, d)) for a, d in _CONV.items())
    sizes = [
        abs(n) * abs(stride) + abs(dilation) * k + abs(more)
        for n, k, stride, dilation, more in zip(x[-2:], w[-2:], *pairs, strict=True)
    ]
    return math.prod((x[0], w[1], attrs.get("groups", 1), *sizes))


_CONV = {"stride": 1, "dilation": 1, "output_padding": 0}


def _indexed(s: Shapes, attrs: dict[str, Any], masks: Sequence[bool] = ()) -> int:
    """What arrays of indices ask for: a piece of ``x`` for each place that they have together.

    ``masks`` says of each array in the slot whether it is one: a mask has a place for each of its elements.
    """
    (x,), shapes = s["x"], list[Shape]()
    waiting = zip(s.get("index", ()), chain(masks, repeat(False)), strict=False)
    basic: list[Any] = []
    for part in attrs["template" if "template" in attrs else "index"]:
        if isinstance(part, str | list | np.ndarray):
            shape, mask = next(waiting) if isinstance(part, str) else _shape_and_mask(part)
            shapes.append((math.prod(shape),) if mask else shape)
            basic += [0] * (len(shape) if mask else 1)
        else:
            basic.append(part)
    piece = np.broadcast_to(0, x)[tuple(basic)]
    return broadcast_size(shapes) * piece.size if shapes else 0


def _shape_and_mask(part: Any) -> tuple[Shape, bool]:
    array = np.asarray(part)
    return array.shape, array.dtype.kind == "b"


def _parts(s: Shapes, attrs: dict[str, Any]) -> int:
    """Every part of a split is an array, however few elements it has."""
    number = attrs.get("num_or_sections", 2)
    return HELD // 8 * (number if isinstance(number, int) else len(number))


LARGER: dict[str, Callable[..., int]] = {
    "matmul": _matmul, "matmul_nt": _product_along(-2, -2), "matmul_tn": _product_along(-1, -1), "linear": _linear,
    "einsum": _einsum,
    "matmul_grad": _matmul_grad, "fill_constant": lambda s, attrs: _asked(attrs), "tile": _tile, "pad": _pad,
    "take": _take, "conv2d": _padded, "avg_pool2d": _padded, "max_pool2d": _padded, "max_pick": _padded,
    "max_unpool": _padded, "conv_transpose2d": _transposed, "getitem": _indexed, "gather": _indexed, "split": _parts,
}  # fmt: skip


def result_size(
    op_type: str, p: Primitive, shapes: Shapes, attrs: dict[str, Any], masks: Sequence[bool] = ()
) -> int:
    """The number of elements an operator will give, or fewer: what cannot be told counts as nothing.

    ``masks``: which values of the slot ``index`` are arrays of truth values.
    """
    if p.broadcasts:
        return broadcast_size(s for listed in shapes.values() for s in listed)
    larger = LARGER.get(op_type)
    try:
        if larger is not None:
            return larger(shapes, attrs, masks) if larger is _indexed else larger(shapes, attrs)
        if p.infer is not None and op_type == p.type and "shape" in attrs:
            return _asked(attrs)
    except (KeyError, ValueError, TypeError, IndexError):
        pass  # the operator itself says what does not fit
    return 0


def endless(limit: int) -> str:
    """What is said of a loop that goes on."""
    return f"a while loop did not end within {limit} steps"


def check_room(
    op_type: str,
    p: Primitive,
    types: dict[str, list[tuple[Shape, np.dtype[Any]]]],
    attrs: dict[str, Any],
    room: int,
    where: str = "",
) -> None:
    """Errors: `ProgramError` where the result of an operator is more bytes than there is room for.

    ``types``: shape and dtype of its values by slot; ``where``: its line, in a run (whose limit can be raised); while
    building it is the user's.
    """
    shapes = {s: [shape for shape, _ in listed] for s, listed in types.items()}
    masks = [dtype.kind == "b" for _, dtype in types.get("index", ())]
    size = result_size(op_type, p, shapes, attrs, masks)
    dtypes = [dtype for listed in types.values() for _, dtype in listed]
    item = max((d.itemsize if d.kind == "f" else 8 for d in dtypes), default=8)
    if size * item <= room:
        return
    shown = ", ".join(f"{slot}: {list(s)}" for slot, listed in shapes.items() for s in listed)
    raise ProgramError(
        f"{op_type}({shown}) would give {size} elements of {item} bytes, and there is room for {room} bytes"
        f"\n  at {where or user_line()}\n  repair: smaller shapes"
        + (", or Executor.run(…, memory_limit=…)" if where else "")
    )
