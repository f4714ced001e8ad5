"""Tensor: an array that remembers how it was made.

A Tensor holds its array, its gradient, and one arrow into the backward graph (``grad_fn``).  Methods and operators are
the package's functions, from the one table in ``primitives/values.py``; what only a Tensor has is in ``tensor_*.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, MinigradError, ShapeError, describe, refusal
from ..primitives.registry import HOOKS, Primitive
from .inplace import version_of
from .mode import MODE
from .tensor_backward import BackwardMethods
from .tensor_inplace import InPlaceMethods
from .tensor_values import ValueMethods

_new, _ndarray = object.__new__, np.ndarray


class Tensor(BackwardMethods, InPlaceMethods, ValueMethods):
    """An array with a gradient: ``mg.tensor([1., 2.], requires_grad=True)``.

    Attributes: ``data`` (the array), ``grad`` (a Tensor or None), ``grad_fn`` (the node that made it, None for a leaf),
    ``requires_grad``, ``is_leaf``, ``shape``, ``dtype``, ``ndim``, ``size``, ``name``.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_cut", "_data", "_exposed", "_grad", "_name", "_node", "_viewed")
    _data: Any
    _node: Any
    _exposed: bool
    _name: str | None
    # why there is no graph, for mg.why: a mode, detach, frozen, or an op without gradient
    _cut: str | Primitive
    _viewed: bool  # whether an op with a graph made a view of it; unset if not
    _grad: Any  # a Tensor, or the array that backward left; `grad` makes a Tensor of it

    def __init__(
        self, data: Any, requires_grad: bool = False, dtype: Any = None, name: str | None = None
    ) -> None:
        self._data = _array(data, dtype)
        self._node, self._grad, self._exposed, self._name = None, None, False, name
        if requires_grad:
            self.requires_grad = True

    # -- what it is ------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The array itself.  Writing into it is seen by this Tensor, and never by a graph that
        saved the old value.

        >>> tensor([1.0, 2.0]).data
        array([1., 2.])
        """
        if not self._exposed or self._data.__class__ is not np.ndarray:
            self._data, self._exposed = np.array(self._data), True
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        array = _array(value, None)
        if self._node is not None and array.dtype.kind != "f":
            raise refusal(
                f"this Tensor requires grad: its data must be floating-point, not {describe(array)}",
                "x.data = array.astype(x.dtype)",
                DTypeError,
            )
        self._grad = self.grad  # what backward left as an array was made for the old value
        self._data, self._exposed = array, False

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward added up here; None until then.

        >>> x = tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        if self._grad.__class__ is _ndarray:
            self._grad = wrap(self._grad)
        return self._grad  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise refusal(
                f"x.grad is a Tensor or None, not {describe(value)}",
                "x.grad = mg.tensor(...)",
                DTypeError,
            )
        if value.shape != self.shape or value.dtype != self.dtype:
            kind = ShapeError if value.shape != self.shape else DTypeError
            raise refusal(
                f"the gradient of {describe(self)} cannot be {describe(value)}",
                "a gradient has the shape and the dtype of its value",
                kind,
            )

    @property
    def name(self) -> str | None:
        """A name for pictures and messages; None if it has none.

        >>> tensor(1.0, name="w").name
        'w'
        """
        return getattr(self, "_name", None)

    @name.setter
    def name(self, value: str | None) -> None:
        self._name = value

    @property
    def shape(self) -> Any:
        """The shape, a tuple.

        >>> tensor([[1.0, 2.0]]).shape
        (1, 2)
        """
        return self._data.shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype.

        >>> tensor([1.0, 2.0]).dtype
        dtype('float64')
        """
        return self._data.dtype

    @property
    def ndim(self) -> Any:
        """The number of axes.

        >>> tensor([[1.0, 2.0]]).ndim
        2
        """
        return self._data.ndim

    @property
    def size(self) -> Any:
        """The number of elements.

        >>> tensor([[1.0, 2.0]]).size
        2
        """
        return Count(self._data.size)

    @property
    def _version(self) -> int:
        return version_of(self._data)

    # -- copies ----------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise refusal(
                f"only leaves can be copied deeply, {describe(self)} is part of a graph",
                "x.detach().clone() copies the values",
                GradError,
            )
        made = Tensor(self._data, self.requires_grad, name=self.name)
        made._grad = None if self.grad is None else wrap(np.array(self.grad._data))
        if self._frozen:
            made._cut = "frozen"
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise refusal(
                f"only leaves can be stored or copied, {describe(self)} is part of a graph",
                "x.detach()",
                GradError,
            )
        slots = (None, {"_cut": "frozen"}) if self._frozen else None
        return (Tensor, (np.asarray(self._data), self.requires_grad, None, self.name), slots)

    def apply_primitive(
        self, primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]
    ) -> Any:
        """Apply a primitive to Tensors; the specialised functions do this without coming here.

        >>> from minigrad.primitives.registry import REGISTRY
        >>> tensor(2.0).apply_primitive(REGISTRY["exp"], (tensor(0.0),), {})
        tensor(1.)
        """
        from .record import apply_generic

        return apply_generic(primitive, args, attrs)


class Count(int):
    """A number of elements, which says what to write where it is called as in other libraries: ``x.size(0)``."""

    def __call__(self, axis: int | None = None) -> Any:
        advice = "x.shape" if axis is None else f"x.shape[{axis}]"
        raise refusal(f"x.size is a number, {int(self)}, and no method", advice, DTypeError)


def _array(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    if isinstance(data, Tensor):
        data = data._data
    elif isinstance(data, list | tuple):
        data = _plain(data)
    if isinstance(data, np.ma.MaskedArray):
        raise masked(data)
    try:
        array = np.array(data, dtype)
    except (ValueError, TypeError) as error:
        raise refusal(
            f"a Tensor needs numbers in a regular grid, not {describe(data)}: {error}",
            "make all rows equally long, and name a dtype that NumPy knows",
            DTypeError,
        ) from error
    if array.dtype.kind not in "fiubc":
        raise refusal(
            f"a Tensor holds numbers, not {array.dtype} ({describe(data)})",
            "pass a number, an array, or lists of numbers (list(x) for a generator)",
            DTypeError,
        )
    return array


def masked(data: Any) -> MinigradError:
    """The error for a masked array."""
    return refusal(
        f"a masked array ({describe(data)}) would lose its mask",
        "x.filled(0.0) puts a number in the gaps; a product with ~x.mask keeps them out of a sum",
        DTypeError,
    )


def _plain(data: Any) -> Any:
    """Nested lists with the Tensors in them replaced by their values; refused where that would cut a graph."""
    if isinstance(data, list | tuple):
        return [_plain(d) for d in data]
    if not isinstance(data, Tensor):
        return data
    if data._node is not None and MODE.get().grad:
        raise refusal(
            "a Tensor made of a list that holds Tensors which require grad would cut their graph silently",
            "mg.stack([…]) keeps the graph; x.detach() of each, if only the values are meant",
            GradError,
        )
    return data._data


def wrap(data: Any, node: Any = None) -> Tensor:
    """A Tensor around an array, without a copy."""
    made = _new(Tensor)
    made._data = data
    made._node = node
    made._grad = None
    made._exposed = False
    if data.__class__ is not _ndarray and not isinstance(data, np.generic):
        made._data = np.asarray(data)
    return made


Tensor._wrap = staticmethod(wrap)  # type: ignore[attr-defined]  # for the methods in other files


def tensor(
    data: Any, requires_grad: bool = False, dtype: Any = None, name: str | None = None
) -> Tensor:
    """Make a leaf Tensor from numbers, lists or an array; the data is copied.

    Dtypes follow NumPy: floats are float64.  Errors: `DTypeError` for what is no grid of numbers, and for
    ``requires_grad`` on integers.

    >>> tensor([[1.0, 2.0]], requires_grad=True)
    tensor([[1., 2.]], requires_grad=True)
    """
    return Tensor(data, requires_grad, dtype, name)


HOOKS["tensor"] = tensor  # creation functions (zeros, arange, …) make leaves with it
