"""What a call is given: the kinds of values, lists of them, and attrs that nobody changes afterwards."""

from collections.abc import Callable, Iterator, ValuesView
from typing import Any

import numpy as np

Args = tuple[Any, ...]  #: the values of a call, by position
ByName = dict[str, Any]  #: name → value
Attrs = dict[str, Any]  #: attr → value
Names = tuple[str, ...]
Slots = dict[str, list[str]]  #: slot → the names of an operator in a Program
Listed = list[Any]  #: values, nodes or gradients in a row
Values = dict[str, Listed]  #: slot → values
Function = Callable[..., Any]


class Value:
    """Something a primitive can be applied to that is not an array: a Tensor or a Variable."""

    __slots__ = ()
    priority = 0  #: where two kinds of Values meet in a call, the higher one answers

    def apply_primitive(self, primitive, args: Args, attrs: Attrs) -> Any:
        """Apply a primitive to arguments of which at least one is of this engine."""
        raise NotImplementedError


def as_list(value) -> Listed:
    """A list or tuple as a list, one thing as a list of it.

    >>> as_list((1, 2)), as_list(3)
    ([1, 2], [3])
    """
    return list(value) if isinstance(value, list | tuple) else [value]


def dtype_of(value) -> np.dtype[Any]:
    """The dtype of a value, or of what NumPy makes of it.

    >>> dtype_of([1, 2.5])
    dtype('float64')
    """
    return np.dtype(value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype)


def as_value(value) -> Any:
    """What has a shape as it is, lists and numbers as arrays.

    >>> as_value([1, 2])
    array([1, 2])
    """
    return value if hasattr(value, "shape") else np.asarray(value)


#: what stands for several values where a list is asked for
LISTED = (list, tuple, Iterator, ValuesView)


class Mark:
    """Stands where there is no value, and says why.

    >>> REQUIRED
    required
    """

    def __init__(self, said: str) -> None:
        self.said = said

    def __repr__(self) -> str:
        return self.said


REQUIRED = Mark("required")  #: default of an attr that has none


def frozen(value) -> Any:
    """An attr as nobody can change it afterwards: lists and arrays become tuples.

    >>> frozen([[1, 2], 3])
    ((1, 2), 3)
    """
    if isinstance(value, list | tuple):
        return tuple(frozen(v) for v in value)
    if isinstance(value, Value) or not getattr(value, "ndim", 0):
        return value
    return frozen(value.tolist())
