"""All primitives and the functions made of them, under the names users call."""
from __future__ import annotations

from ..registry import REGISTRY
from ..values import install
from . import activations, compare, elementwise, fill, index, linalg, power, reduce, scan, shape, statistics

_PUBLIC_NAMES = {"reduce_sum": "sum", "less_than": "less", "sum": "add_n"}
for _p in list(REGISTRY.values()):
    globals()[_PUBLIC_NAMES.get(_p.type, _p.function.__name__)] = _p.function
__all__ = [_PUBLIC_NAMES.get(_p.type, _p.function.__name__) for _p in REGISTRY.values()]

install(globals())
