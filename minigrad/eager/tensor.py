"""Tensor: an array that remembers how it was made.

A Tensor holds its array, its gradient, and one arrow into the backward graph (``grad_fn``).
Methods and operators are the package's functions, from the one table in ``primitives/values.py``;
what only a Tensor has is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..atomic import Changes, set_all
from ..errors import DTypeError, GradError, MinigradError, ShapeError, describe, refusal, unmasked
from ..errors.other_libraries import TABLES, knows_others
from ..ops.index import setitem
from ..ops.shape import Array, broadcast_to
from ..primitives.arguments import Args, Attrs
from ..primitives.dispatch import EAGER
from ..primitives.registry import Primitive
from ..primitives.values import Operators, of_numpy, ufunc_on_values
from .grad_fn import AccumulateGrad, HookHandle, Hooks, Node, no_graph_reason, place_of
from .inplace import augment, change, last_change
from .mode import MODE

__minigrad_ops__ = True  # frames of this module are never "the user's line"
_new, _ndarray = object.__new__, np.ndarray


@knows_others("a Tensor", TABLES["Tensor"])
class Tensor(Operators):
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
            self.requires_grad = requires_grad

    # -- what it is ------------------------------------------------------------------------

    @property
    def data(self) -> Array:
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
            what = "this Tensor requires grad: its data must be floating-point, not "
            raise refusal(what + describe(array), "x.data = array.astype(x.dtype)", DTypeError)
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
        alike = isinstance(value, Tensor) and value.dtype == self.dtype
        if value is not None and not (alike and value.shape == self.shape):
            what = f"the gradient of {describe(self)} cannot be {describe(value)}"
            what += ", an array" * isinstance(value, np.ndarray)
            advice = "a Tensor of the shape and the dtype of its value, or None"
            raise refusal(what, advice, ShapeError if alike else DTypeError)
        self._grad = value

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
        return last_change(self._data)[1]

    # -- copies ----------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        _, values, slots = self.__reduce__()
        made = memo[id(self)] = Tensor(*values)
        made._grad = None if self.grad is None else wrap(np.array(self.grad._data))
        if slots:
            made._cut = "frozen"
        return made

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            what = f"only leaves can be stored or copied, {describe(self)} is part of a graph"
            raise refusal(what, "x.detach()", GradError)
        slots = (None, {"_cut": "frozen"}) if self._frozen else None
        return (Tensor, (np.asarray(self._data), self.requires_grad, None, self.name), slots)

    def apply_primitive(self, primitive: Primitive, args: Args, attrs: Attrs) -> Any:
        """Apply a primitive to Tensors; the fast functions do this without coming here.

        >>> from minigrad.primitives.registry import REGISTRY
        >>> tensor(2.0).apply_primitive(REGISTRY["exp"], (tensor(0.0),), {})
        tensor(1.)
        """
        return EAGER["apply"](primitive, args, attrs)

    # -- its place in the graph ----------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Tensor; may be set on leaves.

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> x.requires_grad, (x * 2).requires_grad, x.detach().requires_grad
        (True, True, False)
        """
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        set_all(self._flow_changes(wanted))

    @property
    def _frozen(self) -> bool:
        """Whether this is a leaf that required grad until ``requires_grad_(False)``."""
        return self._node is None and getattr(self, "_cut", None) == "frozen"

    def _flow_changes(self, wanted: bool) -> Changes:
        """The attributes that turn the flow of gradients on or off, for `set_all`."""
        if not isinstance(wanted, bool | np.bool_):  # elsewhere a dtype stands here
            what = f"requires_grad is {describe(wanted)}"
            raise refusal(what, "True or False; dtype=… and name=… by name", DTypeError)
        if wanted == self.requires_grad:
            return []
        if not self.is_leaf:
            what = "requires_grad of a non-leaf follows from its inputs"
            raise refusal(what, "use x.detach() to cut the graph", GradError)
        if not wanted:
            return [(self, "_node", None), (self, "_cut", "frozen")]
        if self._data.dtype.kind != "f":
            what = f"only real floating-point Tensors can require grad, not {describe(self)}"
            advice = "pass dtype=float, or write the numbers as 1.0 instead of 1"
            if self._data.dtype.kind == "c":
                advice = "keep the real and the imaginary part in two Tensors: x.real and x.imag of the array"
            raise refusal(what, advice, DTypeError)
        return [(self, "_node", AccumulateGrad(self))]

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` and return self.

        >>> from minigrad import tensor
        >>> tensor([1.0]).requires_grad_()
        tensor([1.], requires_grad=True)
        """
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no op made this Tensor (as far as gradients are concerned).

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self._node is None or self._node.__class__ is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The backward node that made this Tensor; None for a leaf.

        >>> from minigrad import tensor
        >>> x = tensor(1.0, requires_grad=True)
        >>> (x * 2).grad_fn.name()
        'MulBackward0'
        """
        return None if self.is_leaf else place_of(self._node)[0]

    @property
    def output_nr(self) -> int:
        """Which output of its grad_fn this Tensor is.

        >>> from minigrad import tensor
        >>> [part.output_nr for part in tensor([1.0, 2.0], requires_grad=True).unbind()]
        [0, 1]
        """
        return place_of(self._node)[1]

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its ``.grad``.

        >>> from minigrad import tensor
        >>> y = tensor(1.0, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        hooks = getattr(self.grad_fn, "hooks", None)
        return hooks is not None and hooks.retained.get(self.output_nr) is self

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Compute the gradients of this output and add them to the ``.grad`` of every leaf; see
        `minigrad.backward`.

        >>> from minigrad import tensor
        >>> x = tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        seeds = None if gradient is None else [gradient]
        EAGER["backward"](self, seeds, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Keep the ``.grad`` of this non-leaf, too.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> (y * y).backward()
        >>> y.grad
        tensor(12.)
        """
        if self._node is None:
            raise self._unreached("retain_grad()")
        if not self.is_leaf:
            self._hook_table.retained[self.output_nr] = self

    def register_hook(self, hook: Callable[[Tensor], Any]) -> HookHandle:
        """Call ``hook(grad)`` when the gradient of this Tensor is complete; what it returns
        replaces the gradient.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).backward()
        >>> x.grad
        tensor(20.)
        """
        if self._node is None:
            raise self._unreached("register_hook()")
        hooks = self._hook_table
        return hooks.add(hooks.tensor.setdefault(self.output_nr, {}), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle:
        """Call ``hook(leaf)`` after the gradient was added to ``.grad``; leaves only.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * 2).backward()
        tensor(2.)
        """
        if self._node.__class__ is not AccumulateGrad:
            what = "register_post_accumulate_grad_hook() is for leaves that require grad"
            raise refusal(what, "use register_hook() here", GradError)
        return HookHandle(self._hook_table.accumulated, hook)

    def _unreached(self, call: str) -> MinigradError:
        what = f"{call} on {describe(self)}, which does not require grad: no gradient will ever reach it\n"
        what += f"  why: {no_graph_reason(self)}"
        advice = "create the inputs with requires_grad=True, before they are used"
        return refusal(what, advice, GradError)

    @property
    def _hook_table(self) -> Hooks:
        return (self.grad_fn or self._node)._hooks()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradient; None by default, else zeros.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> (x * 2).backward()
        >>> x.zero_grad()
        >>> x.grad is None
        True
        """
        old = self.grad  # as a Tensor: `_grad` may still be an array
        self._grad = None if set_to_none or old is None else wrap(np.zeros_like(old._data))

    def detach(self) -> Tensor:
        """The same value without a graph; shares memory.

        >>> from minigrad import tensor
        >>> x = tensor(3.0, requires_grad=True)
        >>> (x * x.detach()).backward()
        >>> x.grad
        tensor(3.)
        """
        made = wrap(self._data)
        made._exposed = self._exposed
        made._cut = "detach"  # for mg.why
        return made

    def detach_(self) -> Any:
        """Cut this Tensor off its graph.

        >>> from minigrad import tensor
        >>> (tensor(3.0, requires_grad=True) * 2).detach_()
        tensor(6.)
        """
        self._node, self._cut = None, "detach"
        return self

    # -- changes in place ----------------------------------------------------------------------

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

    def zero_(self) -> Tensor:
        """Set every element to zero, in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).zero_()
        tensor([0., 0.])
        """
        return change(self, lambda t: wrap(np.zeros_like(t._data)))  # type: ignore[no-any-return]

    def copy_(self, other: Any) -> Tensor:
        """Take over another Tensor's values, in place.

        >>> from minigrad import tensor
        >>> tensor([1.0, 2.0]).copy_([3.0, 4.0])
        tensor([3., 4.])
        """
        return change(self, _assigned, other)  # type: ignore[no-any-return]

    def __setitem__(self, index, value) -> None:
        change(self, setitem, value, index=index)

    # -- its values: arrays, numbers, text -----------------------------------------------------

    def numpy(self) -> Array:
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
        return self._one("item")

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
            what = f"{what}() of {describe(self)} is ambiguous: it has {self._data.size} elements"
            advice = "index one element (x[0]) or reduce (x.sum(), x.any(), x.all())"
            if what.startswith("bool"):
                advice = "x.all() or x.any(); (x > 0) & (x < 2) for `and`; `x is None`, `x is y`"
            raise refusal(what, advice, DTypeError)
        return self._data.item()

    def __array__(self, dtype=None, copy: bool | None = None) -> Array:
        self._refuse_if_graph("NumPy")
        return np.array(self._data, dtype)

    def _refuse_if_graph(self, what: str, here: str = "mg.exp(x) instead of np.exp(x)") -> None:
        if self._node is not None:
            raise refusal(
                f"{what} on a Tensor that requires grad would cut the graph silently",
                f"x.detach().numpy() if that is meant; else the function of minigrad ({here})",
                GradError,
            )

    def __array_ufunc__(self, ufunc, method: str, *inputs, **kwargs) -> Any:
        return ufunc_on_values(ufunc, method, inputs, kwargs, Tensor)

    @property
    def _mask(self) -> Any:
        """What `numpy.ma` looks for before it takes the values: there is none."""
        self._refuse_if_graph("numpy.ma", "m.filled(0.0) * x, with a number in the gaps")
        raise AttributeError("_mask")

    def __array_function__(self, function, types, args, kwargs) -> Any:
        """A NumPy function, on the values: refused where that would cut a graph."""

        def refuse(tensor: Tensor) -> None:
            if function not in (np.shape, np.ndim, np.size):
                home = function.__module__.replace("numpy", "np")
                name = function.__name__
                tensor._refuse_if_graph(f"{home}.{name}", of_numpy(name))

        return function(*_values(args, refuse), **_values(kwargs, refuse))

    def __len__(self) -> int:
        if not self._data.ndim:
            what = "a Tensor without axes has no length and cannot be iterated over: it holds one number"
            raise refusal(what, "use it as it is, or x.item()", DTypeError)
        return len(self._data)

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[k] for k in range(len(self))])

    def __contains__(self, value) -> bool:
        return bool((self._data == value).any())

    def __repr__(self) -> str:
        tail = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn is not None:
            tail = f", grad_fn=<{self.grad_fn.name()}>"
        return f"tensor({self._body('tensor(')}{tail})"

    def _body(self, prefix: str) -> str:
        array = np.asarray(self._data)
        text = np.array2string(array, precision=4, separator=", ", prefix=prefix, threshold=1000)
        default = self._data.dtype in (np.float64, np.int64, np.bool_)
        return text if default and self._data.size else f"{text}, dtype={self._data.dtype}"

    def __format__(self, spec: str) -> str:
        return format(self._one("format"), spec) if spec else str(self)


class Count(int):
    """A number of elements, which says what to write where it is called as in other libraries: ``x.size(0)``."""

    def __call__(self, axis: int | None = None) -> Any:
        advice = "x.shape" if axis is None else f"x.shape[{axis}]"
        raise refusal(f"x.size is a number, {int(self)}, and no method", advice, DTypeError)


def _array(data, dtype) -> Array:
    data = data._data if isinstance(data, Tensor) else plain_list(data)
    unmasked(data)
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


def plain_list(data) -> Any:
    """Nested lists with the Tensors in them replaced by their values; refused where that would cut a graph."""
    return _values(data, _refuse_in_list)


def _refuse_in_list(tensor: Tensor) -> None:
    if tensor._node is not None and MODE.get().grad:
        raise refusal(
            "an array made of a list that holds Tensors which require grad would cut their graph silently",
            "mg.stack([…]) keeps the graph; x.detach() of each, if only the values are meant",
            GradError,
        )


def wrap(data, node=None) -> Tensor:
    """A Tensor around an array, without a copy."""
    made = _new(Tensor)
    made._data = data
    made._node = node
    made._grad = None
    made._exposed = False
    if data.__class__ is not _ndarray and not isinstance(data, np.generic):
        made._data = np.asarray(data)
    return made


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


EAGER["leaf"] = tensor


def _assigned(tensor, other) -> Tensor:
    """The values of another in the shape of a Tensor, which has no part in them."""
    values = other if isinstance(other, Operators) else wrap(other)
    return broadcast_to(values, shape=tensor.shape)  # type: ignore[no-any-return]


def _augmented(function) -> Any:
    """The method of a sign like ``+=``."""
    return lambda self, other: augment(self, function, other)


for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
    setattr(Tensor, f"__i{_name}__", _augmented(getattr(Operators, f"__{_name}__")))


def _values(given, refuse: Callable[[Tensor], None]) -> Any:
    """Nested lists and dictionaries with arrays in place of Tensors, unless one of these is refused."""
    if isinstance(given, Tensor):
        refuse(given)
        return given._data
    if isinstance(given, dict):
        return {k: _values(v, refuse) for k, v in given.items()}
    if isinstance(given, list | tuple):
        return (list if isinstance(given, list) else tuple)([_values(v, refuse) for v in given])
    return given
