"""Attrs as plain data (numbers, strings, lists) and back: what text and JSON store.

What JSON has no form for is a list that starts with a tag: ``["slice", 0, 3, None]``,
``["array", "int64", [2], [0, 1]]``.
Text keeps tuples as they are.
"""

import math
from typing import Any

import numpy as np

from ...errors import ProgramFormatError

MAX_DEPTH = 16  #: of lists in an attr
LIMIT = 2**30  #: bytes that what is read may take, and that an array may declare
_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
DTYPES = frozenset(_DTYPES.split())

_TAGS = ("slice", "tuple", "array", "ellipsis", "dtype", "float", "list")
_NOT_FINITE = ("nan", "inf", "-inf")


def to_plain(value, tuples: bool = False) -> Any:
    """Plain data for an attr; ``tuples`` stay, for a text.  Errors: `TypeError` for what has no plain form.

    >>> to_plain((slice(0, 3), ...)), to_plain((slice(0, 3), 1), tuples=True)
    (['tuple', ['slice', 0, 3, None], ['ellipsis']], (['slice', 0, 3, None], 1))
    """
    if isinstance(value, tuple | list):
        plain = [to_plain(v, tuples) for v in value]
        if isinstance(value, tuple):
            return tuple(plain) if tuples else ["tuple", *plain]
        return ["list", *plain] if plain and plain[0] in _TAGS else plain
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else ["float", str(value)]
    if isinstance(value, slice):
        return ["slice", *map(to_plain, (value.start, value.stop, value.step))]
    if value is Ellipsis:
        return ["ellipsis"]
    if isinstance(value, np.ndarray) and value.dtype.name in DTYPES:
        return ["array", value.dtype.name, list(value.shape), to_plain(value.reshape(-1).tolist())]
    if isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, np.generic | float | int)
    ):
        return ["dtype", np.dtype(value).name]
    raise TypeError(f"an attr of type {type(value).__name__} cannot be stored")


def from_plain(value, depth: int = 0) -> Any:
    """The attr that `to_plain` stored.  Errors: `ValueError` for what it never makes."""
    if depth > MAX_DEPTH:
        raise ValueError(f"attrs nest deeper than {MAX_DEPTH}")
    if isinstance(value, tuple):
        return tuple(from_plain(v, depth + 1) for v in value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        if not (-(2**63) <= value < 2**64 if isinstance(value, int) else math.isfinite(value)):
            raise ValueError(f"{value} is no number for an attr")
        return value
    if not isinstance(value, list):
        raise ValueError(f"an attr cannot hold a {type(value).__name__}")
    if not value or value[0] not in _TAGS:
        return [from_plain(v, depth + 1) for v in value]
    match value:
        case ["tuple" | "list" as tag, *rest]:
            parts = [from_plain(v, depth + 1) for v in rest]
            return tuple(parts) if tag == "tuple" else parts
        case ["ellipsis"]:
            return Ellipsis
        case ["slice", *rest] if len(rest) == 3 and all(v is None or type(v) is int for v in rest):
            return slice(*rest)
        case ["dtype", name] if name in DTYPES:
            return np.dtype(name)
        case ["float", text] if text in _NOT_FINITE:
            return float(text)
        case ["array", dtype, shape, data] if dtype in DTYPES:
            return _array(dtype, shape, data)
    raise ValueError(f"{value!r:.80} is no {value[0]}")


def _array(dtype: str, shape, data) -> Any:
    check_shape(shape)
    if not isinstance(data, list) or len(data) != math.prod(shape):
        raise ValueError("an array has another number of elements than its shape says")
    values = [from_plain(v) for v in data]
    if not all(isinstance(v, bool | int | float) for v in values):
        raise ValueError("an array holds numbers")
    return np.array(values, dtype).reshape(shape)


def check_shape(shape, smallest: int = 0, itemsize: int = 8, limit: int = LIMIT) -> None:
    """Errors: `ValueError` unless this is a list of sizes, of an array within the limit."""
    listed = isinstance(shape, list) and len(shape) <= 32
    if not listed or not all(type(n) is int and n >= smallest for n in shape):
        raise ValueError(f"{shape!r:.80} is no shape")
    size = math.prod(max(n, 1) for n in shape) * itemsize
    if size > limit:
        raise ValueError(
            f"shape {shape!r:.80} has {size:.3g} bytes, the limit is {limit} (limit=…)"
        )


def declare(
    block,
    limit: int,
    name: str,
    kind: str,
    dtype: str,
    shape: list[int],
    stop: bool | None,
    derived_stop: bool,
) -> None:
    """A variable that a stored program declares; its ``stop_gradient`` as set (``stop``) and as derived."""
    persistable = kind in ("param", "const")
    check_shape(shape, 0 if persistable else -1, np.dtype(dtype).itemsize, limit)
    block.create_var(
        name, shape, dtype, persistable=persistable, trainable=kind == "param", is_data=kind == "data",
        stop_gradient=stop, derived_stop=derived_stop,
    )  # fmt: skip


def check_memory(size: int, limit: int) -> None:
    """Errors: `ProgramFormatError` for a text whose values would take more than the limit."""
    if size > limit:
        raise ProgramFormatError(
            f"this may take {size} bytes, the limit is {limit}: give another limit=…"
        )
