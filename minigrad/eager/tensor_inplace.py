"""In-place methods and operators of a Tensor; `inplace.py` says what they mean for a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops.shape import broadcast_to
from ..primitives.values import Operators
from .inplace import augment, change

if TYPE_CHECKING:
    from .tensor import Tensor


class InPlaceMethods(Operators):
    """The part of `Tensor` that changes it."""

    __slots__ = ()

    def add_(self, other: Any) -> Tensor:
        """Add in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).add_(10.0)
        tensor([11., 12.])
        """
        return change(self, Operators.__add__, other)  # type: ignore[no-any-return]

    def sub_(self, other: Any) -> Tensor:
        """Subtract in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).sub_(1.0)
        tensor([0., 1.])
        """
        return change(self, Operators.__sub__, other)  # type: ignore[no-any-return]

    def mul_(self, other: Any) -> Tensor:
        """Multiply in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).mul_(10.0)
        tensor([10., 20.])
        """
        return change(self, Operators.__mul__, other)  # type: ignore[no-any-return]

    def div_(self, other: Any) -> Tensor:
        """Divide in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).div_(2.0)
        tensor([0.5, 1. ])
        """
        return change(self, Operators.__truediv__, other)  # type: ignore[no-any-return]

    def __iadd__(self, other: Any) -> Tensor:
        return augment(self, Operators.__add__, other)  # type: ignore[no-any-return]

    def __isub__(self, other: Any) -> Tensor:
        return augment(self, Operators.__sub__, other)  # type: ignore[no-any-return]

    def __imul__(self, other: Any) -> Tensor:
        return augment(self, Operators.__mul__, other)  # type: ignore[no-any-return]

    def __itruediv__(self, other: Any) -> Tensor:
        return augment(self, Operators.__truediv__, other)  # type: ignore[no-any-return]

    def __ipow__(self, other: Any) -> Tensor:
        return augment(self, Operators.__pow__, other)  # type: ignore[no-any-return]

    def __imod__(self, other: Any) -> Tensor:
        return augment(self, Operators.__mod__, other)  # type: ignore[no-any-return]

    def __ifloordiv__(self, other: Any) -> Tensor:
        return augment(self, Operators.__floordiv__, other)  # type: ignore[no-any-return]

    def zero_(self) -> Tensor:
        """Set every element to zero, in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).zero_()
        tensor([0., 0.])
        """
        return change(self, lambda t: t._wrap(np.zeros_like(t._data)))  # type: ignore[no-any-return]

    def copy_(self, other: Any) -> Tensor:
        """Take over another Tensor's values, in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).copy_([3.0, 4.0])
        tensor([3., 4.])
        """
        return change(self, _assigned, other)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        from ..ops.index import setitem

        change(self, setitem, value, index=index)


def _assigned(tensor: Any, other: Any) -> Tensor:
    """The values of another in the shape of a Tensor, which has no part in them."""
    values = other if isinstance(other, Operators) else tensor._wrap(np.asarray(other))
    return broadcast_to(values, shape=tensor.shape)  # type: ignore[no-any-return]
