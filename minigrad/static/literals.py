"""Attrs as plain data (numbers, strings, lists) and back: what text and JSON store.

What JSON has no form for is a list that starts with a tag: ``["slice", 0, 3, None]``, ``["array", "int64", [2], [0, 1]]``.
"""
from __future__ import annotations

from typing import Any

import numpy as np

_TAGS = ("slice", "tuple", "array", "ellipsis", "dtype")


def to_plain(value: Any) -> Any:
    """Plain data for an attr.  Errors: `TypeError` for what has no plain form.

    >>> to_plain((slice(0, 3), ...))
    ['tuple', ['slice', 0, 3, None], ['ellipsis']]
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, slice):
        return ["slice", to_plain(value.start), to_plain(value.stop), to_plain(value.step)]
    if value is Ellipsis:
        return ["ellipsis"]
    if isinstance(value, tuple):
        return ["tuple", *(to_plain(v) for v in value)]
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.name, list(value.shape), value.reshape(-1).tolist()]
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | float | int | bool)):
        return ["dtype", np.dtype(value).name]
    if isinstance(value, list):
        return [to_plain(v) for v in value]
    raise TypeError(f"an attr of type {type(value).__name__} cannot be stored")


def from_plain(value: Any) -> Any:
    """The attr that `to_plain` stored."""
    if not isinstance(value, list):
        return value
    if not value or value[0] not in _TAGS:
        return [from_plain(v) for v in value]
    tag, rest = value[0], value[1:]
    if tag == "slice":
        return slice(*(from_plain(v) for v in rest))
    if tag == "ellipsis":
        return Ellipsis
    if tag == "tuple":
        return tuple(from_plain(v) for v in rest)
    if tag == "dtype":
        return np.dtype(rest[0])
    dtype, shape, data = rest
    return np.array(data, np.dtype(dtype)).reshape(shape)
