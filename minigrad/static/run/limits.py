"""How large results may become, found before memory is asked for; and how long loops may run.

Most operators give no more than they take.  Those that may give more have a line here:
broadcasting, products, and what an attr asks for.  A program of a stranger is so stopped before it
takes all memory, and a typing error, too.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from ...errors import ProgramError, told
from ...ops.linalg import explicit
from ...ops.shape import Inputs, Shape
from ...ops.windows import framed, pair, transposed_shape
from ...primitives.arguments import Attrs
from ...primitives.registry import Primitive

MEMORY = 2**31  #: bytes of all values of a run together, and of one value while a program is built
HELD = 128  #: bytes of Python's for each value: the array itself, its name's place in a scope
STEP_LIMIT = 1_000_000  #: of one loop

Shapes = dict[str, list[Shape]]


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


def _products(op_type: str, s: Shapes, attrs: Attrs) -> int:
    """The largest product, of matrices or of stacks of them; a factor that is not read makes none."""
    sizes = [1]
    for a, i, b, j in _PRODUCTS[op_type]:
        if a in s and b in s:
            (x,), (y,) = s[a], s[b]
            column = y if len(y) > 1 else (*y, 1)
            sizes.append(broadcast_size([x[:-2], y[:-2]]) * (1, *x)[i] * column[j])
    return max(sizes)


def _einsum(s: Shapes, attrs: Attrs) -> int:
    terms, out = explicit(attrs["subscripts"], [*map(len, s["x"])])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, s["x"], strict=True):
        for letter, n in zip(term, shape, strict=True):
            sizes[letter] = max(n, sizes.get(letter, 1))
    return math.prod(sizes[letter] for letter in out)


def _asked(attrs: Attrs, name: str = "shape") -> int:
    sizes = np.maximum(np.array(attrs.get(name, ()), dtype=object), 1)
    return math.prod(np.ravel(sizes))


def _pad(s: Shapes, attrs: Attrs) -> int:
    width = attrs.get("pad_width", 0)
    pairs = np.broadcast_to(width, (len(s["x"][0]), 2)).tolist()
    return math.prod(n + a + b for n, (a, b) in zip(s["x"][0], pairs, strict=True))


def _take(s: Shapes, attrs: Attrs) -> int:
    (x,) = s["x"]
    axis = attrs.get("axis")
    rest = 1 if axis is None else math.prod(x) // max(x[axis], 1)
    return rest * math.prod(s["indices"][0])


def _padded(s: Shapes, attrs: Attrs) -> int:
    """An image with its padding, of which windows are seen."""
    (x,) = s["x"]
    return math.prod(framed(x, pair(attrs.get("padding", 0)))[0])


def _transposed(s: Shapes, attrs: Attrs) -> int:
    """What a transposed convolution gives, before its padding is cut off."""
    x, w = (np.broadcast_to(0, s[slot][0]) for slot in "xw")
    how = attrs.get("stride", 1), 0, attrs.get("dilation", 1), attrs.get("output_padding", 0)
    return math.prod(transposed_shape(x, w, attrs.get("groups", 1), *how))


def _indexed(s: Shapes, attrs: Attrs, masks: Sequence[bool] = ()) -> int:
    """What arrays of indices ask for: a piece of ``x`` for each place that they have together.

    ``masks`` says of each array in the slot whether it is one: a mask has a place for each of its elements.
    """
    (x,), shapes = s["x"], list[Shape]()
    waiting: Any = zip_longest(s.get("index", ()), masks, fillvalue=False)
    basic: list[Any] = []
    for part in attrs["template" if "template" in attrs else "index"]:
        if isinstance(part, str):
            shape, mask = next(waiting)
        elif isinstance(part, list | np.ndarray):
            array = np.asarray(part)
            shape, mask = array.shape, array.dtype.kind == "b"
        else:
            basic.append(part)
            continue
        shapes.append((math.prod(shape),) if mask else shape)
        basic += [0] * (len(shape) if mask else 1)
    piece = np.broadcast_to(0, x)[tuple(basic)]
    return broadcast_size(shapes) * piece.size if shapes else 0


def _parts(s: Shapes, attrs: Attrs) -> int:
    """Every part of a split is an array, however few elements it has."""
    number = attrs.get("num_or_sections", 2)
    return HELD // 8 * (number if isinstance(number, int) else len(number))


LARGER: dict[str, Callable[..., int]] = {
    **{product: partial(_products, product) for product in _PRODUCTS},
    "einsum": _einsum, "fill_constant": lambda s, attrs: _asked(attrs), "pad": _pad,
    "tile": lambda s, attrs: math.prod(s["x"][0]) * _asked(attrs, "repetitions"),
    "take": _take, "conv2d": _padded, "avg_pool2d": _padded, "max_pool2d": _padded, "max_pick": _padded,
    "max_unpool": _padded, "conv_transpose2d": _transposed, "getitem": _indexed, "gather": _indexed, "split": _parts,
}  # fmt: skip


def result_size(
    op_type: str, p: Primitive, shapes: Shapes, attrs: Attrs, masks: Sequence[bool] = ()
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
    op_type: str, p: Primitive, types: Inputs, attrs: Attrs, room: int, where: str = ""
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
    what = f"{op_type}({shown}) would give {size} elements of {item} bytes, and there is room for {room} bytes"
    advice = "smaller shapes" + ", or Executor.run(…, memory_limit=…)" * bool(where)
    raise ProgramError(told(what, advice, where or None))
