"""Primitives: what an operation is, and what it is called with.

registry      a kernel and one gradient rule per input; how it is called; the table of all of them
arguments     what a call is given: values, lists of them, attrs
dispatch      who answers a call: a kernel, the eager engine, the static one
values        operators and methods, once for every kind of value
"""

from .registry import REGISTRY, Primitive, elementwise, primitive

__all__ = ["REGISTRY", "Primitive", "elementwise", "primitive"]
