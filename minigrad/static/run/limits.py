"""How large results may become, found before memory is asked for; and how long loops may run.

Most operators give no more than they take.  Those that may give more have a line here:
broadcasting, products, and what an attr asks for.  A program of a stranger is so stopped before it
takes all memory, and a typing error, too.
"""

import math
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any

import numpy as np

from ...errors import ProgramError, told
from ...ops.linalg import explicit
from ...ops.shape import Shape
from ...ops.windows import framed, pair, transposed_shape
from ...primitives.arguments import Attrs, Values
from ...primitives.registry import Primitive
from ..program.operator import Operator, op_info

MEMORY = 2**31  #: bytes of all values of a run together, and of one value while a program is built
HELD = 128  #: bytes of Python's for each value: the array itself, its name's place in a scope
STEP_LIMIT = 1_000_000  #: of one loop


def broadcast_size(shapes: Iterable[Shape]) -> int:
    """The number of elements of values that are broadcast together, whether they fit or not.

    >>> broadcast_size([(3, 1), (4,)])
    12
    """
    return math.prod(max(1, *sizes) for sizes in zip_longest(*map(reversed, shapes), fillvalue=1))


#: products that an operator makes: a factor and the axis of it that stays, the other and its axis
_PRODUCTS = {
    "matmul": [("x", -2, "y", -1)],
    "matmul_nt": [("x", -2, "y", -2)],
    "matmul_tn": [("x", -1, "y", -1)],
    "matmul_grad": [("out_grad", -2, "y", -2), ("x", -1, "out_grad", -1)],
    "linear": [("x", -2, "w", -1)],
}


def _product(op_type: str, s: Values) -> int:
    """The largest product, of matrices or of stacks of them; a factor that is not read makes none."""
    sizes = [1]
    for a, i, b, j in _PRODUCTS[op_type]:
        if a in s and b in s:
            x, y = s[a][0].shape, s[b][0].shape
            column = y if len(y) > 1 else (*y, 1)
            sizes.append(broadcast_size([x[:-2], y[:-2]]) * (1, *x)[i] * column[j])
    return max(sizes)


def _einsum(s: Values, attrs: Attrs) -> int:
    shapes = [x.shape for x in s["x"]]
    terms, out = explicit(attrs["subscripts"], [*map(len, shapes)])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, n in zip(term, shape, strict=True):
            sizes[letter] = max(n, sizes.get(letter, 1))
    return math.prod(sizes[letter] for letter in out)


def _asked(s: Values, attrs: Attrs, name: str = "shape") -> int:
    sizes = np.maximum(np.array(attrs.get(name, ()), dtype=object), 1)
    return math.prod(np.ravel(sizes))


def _tile(s: Values, attrs: Attrs) -> int:
    shape: Shape = s["x"][0].shape
    return math.prod(shape) * _asked(s, attrs, "repetitions")


def _pad(s: Values, attrs: Attrs) -> int:
    shape = s["x"][0].shape
    pairs = np.broadcast_to(attrs["pad_width"], (len(shape), 2)).tolist()
    return math.prod(n + a + b for n, (a, b) in zip(shape, pairs, strict=True))


def _take(s: Values, attrs: Attrs) -> int:
    shape, axis = s["x"][0].shape, attrs.get("axis")
    rest = 1 if axis is None else math.prod(shape) // max(shape[axis], 1)
    size: int = rest * math.prod(s["indices"][0].shape)
    return size


def _padded(s: Values, attrs: Attrs) -> int:
    """An image with its padding, of which windows are seen."""
    return math.prod(framed(s["x"][0].shape, pair(attrs.get("padding", 0)))[0])


def _transposed(s: Values, attrs: Attrs) -> int:
    """What a transposed convolution gives, before its padding is cut off."""
    x, w = (np.broadcast_to(0, s[slot][0].shape) for slot in "xw")
    how = attrs.get("stride", 1), 0, attrs.get("dilation", 1), attrs.get("output_padding", 0)
    return math.prod(transposed_shape(x, w, attrs.get("groups", 1), *how))


def _indexed(s: Values, attrs: Attrs) -> int:
    """What arrays of indices ask for: a piece of ``x`` for each place that they have together.

    A mask has a place for each of its elements.
    """
    shapes, basic = list[Shape](), list[Any]()
    waiting = iter(s.get("index", ()))
    for part in attrs["template" if "template" in attrs else "index"]:
        if not isinstance(part, str | list | np.ndarray):
            basic.append(part)
            continue
        array = next(waiting) if isinstance(part, str) else np.asarray(part)
        if array.dtype.kind == "b":
            shapes.append((math.prod(array.shape),))
            basic += [0] * len(array.shape)
        else:
            shapes.append(array.shape)
            basic.append(0)
    piece = np.broadcast_to(0, s["x"][0].shape)[tuple(basic)]
    return broadcast_size(shapes) * piece.size if shapes else 0


def _parts(s: Values, attrs: Attrs) -> int:
    """Every part of a split is an array, however few elements it has."""
    number = attrs.get("num_or_sections", 2)
    return HELD // 8 * (number if isinstance(number, int) else len(number))


LARGER: dict[str, Callable[[Values, Attrs], int]] = {
    "einsum": _einsum, "fill_constant": _asked, "pad": _pad, "tile": _tile, "take": _take,
    "conv2d": _padded, "avg_pool2d": _padded, "max_pool2d": _padded, "max_pick": _padded,
    "max_unpool": _padded, "conv_transpose2d": _transposed, "getitem": _indexed, "gather": _indexed, "split": _parts,
}  # fmt: skip


def result_size(op_type: str, p: Primitive, values: Values, attrs: Attrs) -> int:
    """The number of elements an operator will give, or fewer: what cannot be told counts as nothing.

    ``values``, by slot: whatever has a shape and a dtype.
    """
    if p.broadcasts:
        return broadcast_size(v.shape for listed in values.values() for v in listed)
    try:
        if op_type in _PRODUCTS:
            return _product(op_type, values)
        if op_type in LARGER:
            return LARGER[op_type](values, attrs)
        if p.infer is not None and op_type == p.type and "shape" in attrs:
            return _asked(values, attrs)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, StopIteration):
        pass  # the operator itself says what does not fit
    return 0


def endless(limit: int) -> str:
    """What is said of a loop that goes on."""
    return f"a while loop did not end within {limit} steps"


def check_room(op: Operator, values: Values, room: int | None = None) -> None:
    """Errors: `ProgramError` where the result of an operator is more bytes than there is room for.

    ``values``, by slot: whatever has a shape and a dtype; ``room``: of a run, whose limit can be raised.
    """
    size = result_size(op.type, op_info(op.type).forward, values, op.attrs)
    dtypes = [v.dtype for listed in values.values() for v in listed]
    item = max((d.itemsize if d.kind == "f" else 8 for d in dtypes), default=8)
    most = MEMORY if room is None else room
    if size * item <= most:
        return
    shown = ", ".join(f"{slot}: {list(v.shape)}" for slot, listed in values.items() for v in listed)
    what = f"{op.type}({shown}) would give {size} elements of {item} bytes, and there is room for {most} bytes"
    advice, line = "smaller shapes", None
    if room is not None:
        advice, line = f"{advice}, or Executor.run(…, memory_limit=…)", op.source_line or None
    raise ProgramError(told(what, advice, line))
