"""What labels say: values in at most five digits, names of at most 28 characters, nothing
invisible.
"""

import re
import unicodedata
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

NOT_YET = "—"  # not computed yet: never 0
LONGEST_NAME = 28
LONGEST_LINE = 60
WIDEST = 26  # letters that stand in one row of a box; longer texts wrap
MANY = 1_000_000  # beyond this, numbers are not looked at for a tooltip
_PLAIN = (np.ndarray, np.generic, int, float, complex, str, bytes, type(None))
_CELLS, _BARS = 8, "▁▂▃▄▅▆▇█"
FEW = 4  # arrays of up to this many elements are shown element by element
SOME = 64  # and of up to this many in a tooltip
MOST_CELLS = 4096  # elements of an array that a picture keeps; of a larger one none

#: where a text may go on in a new row: after a space, an index, a product; else within a name
_BETWEEN = re.compile(r"(?<=[ ·)\]])(?<!= )(?![)\],:])")
_WITHIN = re.compile(r"(?<=[_.@/])(?=[^\W\d])|(?<=[a-z])(?=[A-Z])")


def visible(text: object) -> str:
    """The text with every control, direction and unassigned character made visible.

    >>> visible("a\\nb\\x00")
    'a␊b␀'
    """
    shown = str(text)
    if shown.isprintable():  # nothing in it hides
        return shown
    return "".join(map(_visible, shown))


def _visible(char: str) -> str:
    joins_emoji = char == "\u200d"
    if char.isprintable() or joins_emoji or unicodedata.category(char) == "Zs":
        return char
    code = ord(char)
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def shorten(text: object, limit: int = LONGEST_NAME) -> str:
    """The visible text, cut in the middle when it is longer than ``limit``.

    >>> shorten("encoder_layer_12_attention_weights")
    'encoder_layer…ention_weights'
    """
    shown = visible(text)
    head = (limit - 1) // 2
    if len(shown) > limit:
        shown = f"{shown[:head]}…{shown[head + 1 - limit :]}"
    return shown


def wrapped(text: str, width: int = WIDEST) -> list[str]:
    """A text in rows of at most ``width`` letters, of which 名 counts twice; a result stays beside its sign.

    >>> wrapped("[0] g·learning_rate_scale = 0.25")
    ['[0] g·learning_rate_scale', '= 0.25']
    """
    if _columns(text) <= width:
        return [text]
    rows = [""]
    for piece in _BETWEEN.split(text):
        for part in _WITHIN.split(piece) if _columns(piece.rstrip()) > width else [piece]:
            if rows[-1] and _columns((rows[-1] + part).rstrip()) > width:
                rows.append("")
            rows[-1] += part
            while (columns := _columns(rows[-1].rstrip())) > width:
                first = width * len(rows[-1].rstrip()) // columns
                rows[-1:] = [rows[-1][:first], rows[-1][first:]]
    return [row.strip() for row in rows if row.strip()] or [text]


def _columns(text: str) -> int:
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide


def unwrap(value) -> Any:
    """The array inside a Variable or a Tensor, of PyTorch's, too, or the value itself."""
    if hasattr(value, "resolve_conj"):
        value = value.detach().cpu()
        value = value.to_dense() if value.is_sparse else value
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        return value.resolve_conj().numpy()
    for _ in range(4):  # a gradient may be a Variable that holds an array
        if isinstance(value, _PLAIN):
            break
        inner = getattr(value, "_data", None)  # looking must not count as a use of .data
        inner = getattr(value, "data", value) if inner is None else inner
        if inner is value:
            break
        value = inner
    return value


def format_number(number) -> str:
    """One number in at most five significant digits.

    >>> format_number(3.297442541400256), format_number(20.0), format_number(True)
    ('3.2974', '20', 'True')
    """
    number = number.item() if isinstance(number, np.generic) else number
    if isinstance(number, int) and abs(number) < 10**7:
        return str(number)
    if np.iscomplexobj(number):
        return f"{complex(number):.4g}"
    return f"{float(number):.5g}"


def format_value(value) -> str:
    """A value as a label shows it: a number, up to four elements, else the shape and dtype.

    >>> format_value(None), format_value(np.array([1.0, 2.5])), format_value(np.zeros((2, 3)))
    ('—', '[1, 2.5]', '[2,3] float64')
    """
    value = unwrap(value)
    if value is None:
        return NOT_YET
    array = numeric(value)
    if array is None:
        return shorten(f"str {value}" if isinstance(value, str) else type(value).__name__)
    few = 0 < array.size <= FEW
    return _elements(array) if few else f"{format_shape(array.shape)} {array.dtype}"


def format_shape(shape) -> str:
    """A shape in brackets: ``[2,3]``, ``[]`` for one number."""
    return f"[{','.join(map(str, shape))}]"


def explain_value(value) -> str:
    """A value as a tooltip tells it: shape, dtype, and its numbers or their statistics.

    >>> explain_value(np.arange(6.0))
    'float64 [6], min 0, mean 2.5, max 5, ‖·‖ 7.42: [0, 1, 2, 3, 4, 5]'
    """
    value = unwrap(value)
    if value is None:
        return "not computed yet"
    array = numeric(value)
    if array is None:
        name = type(value).__name__
        written = isinstance(value, (str, bytes))
        return shorten(f"{name}: {visible(value)[:200]}", 80) if written else name
    head = f"{array.dtype} {format_shape(array.shape)}"
    if array.size == 0:
        return f"{head}, empty"
    if array.size == 1:
        return f"{head}, {array.item()!r}"
    if array.size > MANY:
        return head
    told = f"{head}, {_statistics(array)}"
    return f"{told}: {_elements(array)}" if array.size <= SOME else told


def strip(value) -> str:
    """An array that is not shown element by element, as a strip of cells, low to high, and its norm.

    >>> strip(np.arange(6.0))
    '▁▂▄▅▇█ ‖7.42‖'
    """
    array = numeric(value)
    if array is None or not FEW < array.size <= MANY or array.dtype.kind == "c":
        return ""
    numbers = array.astype(float).ravel()
    if not np.isfinite(numbers).all():
        return ""
    cells = np.array([part.mean() for part in np.array_split(numbers, min(numbers.size, _CELLS))])
    low = cells.min()
    wide = np.ptp(cells) or 1.0
    bars = "".join(_BARS[round(7 * float(share))] for share in (cells - low) / wide)
    return f"{bars} ‖{norm(numbers):.3g}‖"


def norm(numbers: Array) -> float:
    """The root of the sum of squares, by this thread alone: the threads of a BLAS wait for each other."""
    return float(np.sqrt(np.square(np.abs(numbers).astype(float)).sum()))


def same_value(one, other) -> bool:
    """Are two values equal up to rounding?  Never raises."""
    one, other = numeric(one), numeric(other)
    if one is None or other is None or one.shape != other.shape:
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def numeric(value) -> Array | None:
    """The array of numbers that a value is or holds, if it does."""
    value = unwrap(value)
    if not isinstance(value, (np.ndarray, np.generic, int, float, complex, list, tuple)):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        return None
    return array if array.dtype.kind in "biufc" else None


def _elements(array: Array) -> str:
    if array.ndim == 0:
        return format_number(array[()])
    return f"[{', '.join(map(_elements, array))}]"


def _statistics(array: Array) -> str:
    if array.dtype.kind == "c":
        return f"largest absolute value {format_number(np.abs(array).max())}"
    numbers = array.astype(float)
    bad = np.count_nonzero(~np.isfinite(numbers))
    if bad:
        return f"{bad} of {numbers.size} not finite"
    low, mean, high = map(format_number, (numbers.min(), numbers.mean(), numbers.max()))
    return f"min {low}, mean {mean}, max {high}, ‖·‖ {norm(numbers):.3g}"


# ---- Arrays for the details of a node, where every element can be pointed at ----


def cells(value) -> Array | None:
    """The elements of an array that no label shows one by one, as a copy: a picture keeps nothing
    of the user's.  None for anything else.

    >>> cells(np.arange(10_000)), cells(np.float32(2)), cells(np.arange(6)).size
    (None, None, 6)
    """
    array = numeric(value)
    return array.copy() if array is not None and FEW < array.size <= MOST_CELLS else None
