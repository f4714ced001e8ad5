"""The values of a Tensor, out of the graph: as arrays, numbers and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, GradError, describe, refusal
from ..errors.other_libraries import VALUES, missing
from ..primitives.values import Operators, ufunc_on_values

if TYPE_CHECKING:
    from .tensor import Tensor


class ValueMethods(Operators):
    """The part of `Tensor` that shows what it holds."""

    __slots__ = ()
    _data: Any
    _node: Any

    def __dir__(self) -> list[str]:
        return [n for n in object.__dir__(self) if n not in VALUES]

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only array; of a Tensor without graph (else
        ``detach().numpy()``).

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).numpy()
        array([1., 2.])
        """
        self._refuse_if_graph("numpy()")
        view = np.asarray(self._data).view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """The one element as a Python number.

        >>> from minigrad import tensor
        >>> tensor([[7.5]]).item()
        7.5
        """
        if self._data.size != 1:
            raise refusal(
                f"item() needs one element, {describe(self)} has {self._data.size}",
                "use tolist(), or index first",
                DTypeError,
            )
        return self._data.item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers.

        >>> from minigrad import tensor
        >>> tensor([[1.0, 2.0]]).tolist()
        [[1.0, 2.0]]
        """
        return self._data.tolist()

    def __float__(self) -> float:
        return float(self._one("float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __index__(self) -> int:
        number = self._one("index")
        if isinstance(number, float | complex):
            raise refusal(f"{describe(self)} is no index: it holds {number}", "int(x)", DTypeError)
        return number.__index__()  # type: ignore[no-any-return]

    def _one(self, what: str) -> Any:
        if self._data.size != 1:
            raise refusal(
                f"{what}() of {describe(self)} is ambiguous: it has {self._data.size} elements",
                "index one element (x[0]) or reduce (x.sum(), x.any(), x.all())",
                DTypeError,
            )
        return self._data.item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._refuse_if_graph("NumPy")
        return np.array(self._data, dtype)

    def _refuse_if_graph(self, what: str) -> None:
        if self._node is not None:
            raise refusal(
                f"{what} on a Tensor that requires grad would cut the graph silently",
                "x.detach().numpy() if that is meant; else the function of minigrad "
                "(mg.exp(x) instead of np.exp(x))",
                GradError,
            )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .tensor import Tensor

        return ufunc_on_values(ufunc, method, inputs, kwargs, Tensor)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A NumPy function, on the values: refused where that would cut a graph."""
        return function(*_values(args, function), **_values(kwargs, function))

    def __len__(self) -> int:
        if not self._data.ndim:
            raise refusal(
                "a Tensor without axes has no length and cannot be iterated over: it holds one "
                "number",
                "use it as it is, or x.item()",
                DTypeError,
            )
        return len(self._data)

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[k] for k in range(len(self))])

    def __contains__(self, value: Any) -> bool:
        return bool((self._data == value).any())

    def __repr__(self) -> str:
        return f"tensor({self._body('tensor(')}{self._tail()})"

    def _body(self, prefix: str) -> str:
        text = np.array2string(
            np.asarray(self._data), precision=4, separator=", ", prefix=prefix, threshold=1000
        )
        default = self._data.dtype in (np.float64, np.int64, np.bool_)
        return text if default and self._data.size else f"{text}, dtype={self._data.dtype}"

    def _tail(self) -> str:
        if self.grad_fn is not None:
            return f", grad_fn=<{self.grad_fn.name()}>"
        return ", requires_grad=True" if self.requires_grad else ""

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self._data.size != 1:
            raise refusal(
                f"the format {spec!r} is for one number, not for {describe(self)}",
                "format one element (x[0]), or print x.detach().numpy().round(2)",
                DTypeError,
            )
        return format(self._data.item(), spec)


class _Elsewhere:
    """A name of another library.  A ``__getattr__`` would do, and make every look at any attribute slower."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        raise missing("a Tensor", self.name, VALUES, tensor)


for _name in VALUES:
    setattr(ValueMethods, _name, _Elsewhere(_name))


def _values(given: Any, function: Any) -> Any:
    """The arguments of a NumPy function with arrays in place of Tensors."""
    if isinstance(given, ValueMethods):
        if function not in (np.shape, np.ndim, np.size):
            given._refuse_if_graph(f"np.{function.__name__}")
        return given._data
    if isinstance(given, dict):
        return {k: _values(v, function) for k, v in given.items()}
    if type(given) in (list, tuple):
        return type(given)(_values(v, function) for v in given)
    return given
