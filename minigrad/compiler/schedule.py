"""The schedule: what a program comes to in calls of NumPy, in order.

Vocabulary
    Array       a value of the schedule: shape and dtype, no elements.  ``root`` is the Array whose memory it looks at
                (itself, unless it is a view); ``like``, zeros (or a parameter) that lie in memory as it will
    Call        one call of a NumPy function: its arguments, the Array it makes
    kind        "compute" the function takes ``out=``; "fresh" it makes an array of its own; "view" it looks at
                memory of its first argument; "fill" a new array of one value; "write" it changes its first argument;
                "store" it copies a value into a parameter; "check" a condition without which the kernel raises an error
    Loop, Branch  control flow around calls
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..primitives.arguments import Args, Attrs, Listed, Names

if TYPE_CHECKING:
    from ..static.program.operator import Operator
    from .memory import Memory


class Unrecordable(Exception):  # no ValueError: those are what kernels raise
    """A kernel asked for something that is known only when the program runs."""


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of the schedule.  Kernels that are called on Arrays leave `Call`s in the recorder they belong to."""

    __slots__ = ("fixed", "like", "name", "recorder", "roots")
    __array_priority__ = 1000
    roots: tuple[Array, ...]

    def __init__(
        self,
        recorder,
        like,
        name: str = "",
        roots: tuple[Array, ...] = (),
        fixed: bool = False,
        near: Iterable[Array] = (),
    ) -> None:
        """``roots`` of a view, what it looks at; ``near``, what else it may share its memory with."""
        # a number has no memory that a view of it could share
        self.like = np.asarray(like) if isinstance(like, np.generic) else like
        self.recorder = recorder
        self.name = name
        self.fixed = fixed
        self.roots = roots or (self, *[r for a in near for r in a.roots])

    shape = property(lambda self: self.like.shape)
    dtype = property(lambda self: self.like.dtype)
    ndim = property(lambda self: self.like.ndim)
    size = property(lambda self: self.like.size)
    T = property(np.transpose)

    @property
    def is_root(self) -> bool:
        """Whether it has memory of its own."""
        return all(root is self for root in self.roots)

    def shares(self, other: Array) -> bool:
        """Whether both may look at the same memory."""
        return any(a is b for a in self.roots for b in other.roots)

    __hash__ = object.__hash__  # ``==`` is recorded like any other operator

    def __array_ufunc__(self, ufunc, method: str, *args, **kwargs) -> Any:
        return self.recorder.ufunc(ufunc, method, args, kwargs)

    def __array_function__(self, function, types, args, kwargs) -> Any:
        return self.recorder.call(function, args, kwargs)

    def __getitem__(self, index) -> Any:
        return self.recorder.getitem(self, index)

    def __setitem__(self, index, value) -> None:
        self.recorder.setitem(self, index, value)

    def __len__(self) -> int:
        return len(self.like)

    def reshape(self, *shape) -> Any:
        """A view in another shape, or a copy where there is none."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def dot(self, other) -> Any:
        """``np.dot``."""
        return np.dot(self, other)

    def astype(self, dtype, copy: bool = True) -> Any:
        """In another dtype; the Array itself if that changes nothing, and no copy is wanted."""
        if dtype == self.dtype and not copy:
            return self
        out = Array(self.recorder, np.zeros_like(self.like, dtype))
        return self.recorder.add("fresh", np.ndarray.astype, (self, out.dtype), out)

    def __bool__(self) -> bool:
        return bool(self.recorder.check(self))

    def __float__(self) -> float:
        raise Unrecordable("a number from an array")

    __int__ = __index__ = __float__

    def __array__(self, *args, **kwargs) -> Any:
        raise Unrecordable("elements of an array")

    def __repr__(self) -> str:
        return f"<{self.name or 'array'}: {self.dtype}{list(self.shape)}>"


class Values(Array):
    """What a grad op reads of its forward op: a list with the Arrays of each step, or those of the branch that ran."""

    __slots__ = ("filled", "item", "names")

    def __init__(self, recorder, item, names) -> None:
        """``item``, the loop or branch that fills the list; ``names``, of its blocks; ``filled``, as it is there."""
        super().__init__(recorder, None, "frames")
        self.item = item
        self.names = names
        self.filled = self


_SPELLINGS: dict[Any, str] = {
    operator.getitem: "[]",
    operator.setitem: "[]=",
    np.ndarray.astype: ".astype",
    np.lib.stride_tricks.sliding_window_view: "np.lib.stride_tricks.sliding_window_view",
}


def spelling(function) -> str:
    """How source writes a function: "np.add", "np.add.reduce".  Errors: `Unrecordable` where NumPy has no such name."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"{spelling(owner)}.{function.__name__}"
    if function in _SPELLINGS:
        return _SPELLINGS[function]
    name = function.__name__
    if getattr(np, name, None) is not function:
        raise Unrecordable(f"np.{name}")
    return f"np.{name}"


@dataclass(slots=True, eq=False)
class Call:
    """One call of a function; ``path`` is how the source writes it; ``into`` where the result goes."""

    kind: str
    function: Any
    args: Args
    out: Any = None  # an Array, a list of them, or None
    kwargs: Attrs = field(default_factory=dict)
    op: Operator | None = None
    into: Array | None = None
    ignores: Names = ()  # floating-point errors the kernel silences
    path: str = ""

    def __post_init__(self) -> None:
        self.path = self.path or spelling(self.function)

    def reads(self) -> list[Array]:
        """The Arrays among the arguments."""
        return arrays_in((self.args, self.kwargs))

    @property
    def changed(self) -> Array | None:
        """The Array it writes into after that was made."""
        return self.args[0] if self.kind in ("write", "store") else self.into

    def touches(self) -> list[Array]:
        """What it reads, and the view it writes into."""
        return arrays_in((self.args, self.kwargs, self.into))


@dataclass(slots=True, eq=False)
class Control:
    """Calls that an operator runs as often as it likes."""

    op: Operator

    kind, out, changed, ignores = "", None, None, ()  # as a Call has them
    backward = property(lambda self: self.op.type.endswith("_grad"))

    def touches(self) -> list[Array]:
        """All Arrays it names, inside and outside."""
        return arrays_in([getattr(self, each.name) for each in fields(self)])


@dataclass(slots=True, eq=False)
class Loop(Control):
    """``while``, ``recurrent`` and their grad ops: a body that is repeated."""

    body: Listed
    test: Listed = field(default_factory=list)  # the calls that find out whether to go on
    go_on: Array | None = None
    #: `Values`: the list of saved values, made or (backward) walked
    frames: Any = None
    #: what a step puts on the list; backward: pairs (value, its name here)
    saved: Listed = field(default_factory=list)
    #: start, at the beginning of a step, next, final
    carried: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    #: a sequence, its slice
    slices: list[tuple[Array, Array]] = field(default_factory=list)
    #: the value of a step, all of them
    stacked: list[tuple[Array, Array]] = field(default_factory=list)
    #: the value of a step, the sum, what is like it
    totals: list[tuple[Array, Array, Array]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Branch(Control):
    """``cond`` and its grad op: two bodies of which one runs."""

    pred: Array
    bodies: tuple[Listed, Listed]
    results: list[tuple[Any, Any, Array]]  # value if true, value if false, result
    frames: Any = None  # `Values`: what the branch that ran has saved
    saved: tuple[Listed, Listed] = field(default_factory=lambda: ([], []))


@dataclass(slots=True)
class Schedule:
    """Calls in order, and what goes in and comes out."""

    memory: Memory
    items: Listed = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    #: persistable variables, and slabs of them
    state: dict[str, Array] = field(default_factory=dict)
    fetched: list[Array] = field(default_factory=list)
    #: a parameter in a slab → the slab, and where its gradient is
    gradients: dict[Array, tuple[Array, Array]] = field(default_factory=dict)


def arrays_in(value) -> list[Array]:
    """The Arrays in nested lists, tuples, dicts and slices, and those that items name."""
    if isinstance(value, Array):
        return [value]
    if isinstance(value, Call | Control):
        return value.touches()
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    elif not isinstance(value, list | tuple):
        return []
    return [a for v in value for a in arrays_in(v)]


def replace_arrays(value, change) -> Any:
    """A nested value with every Array ``a`` replaced by ``change(a)``; items are changed in place."""
    if isinstance(value, Array):
        return change(value)
    if isinstance(value, Call | Control):
        for each in fields(value):
            setattr(value, each.name, replace_arrays(getattr(value, each.name), change))
        return value
    if isinstance(value, dict):
        return {k: replace_arrays(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([replace_arrays(v, change) for v in value])
    if isinstance(value, slice):
        return slice(*replace_arrays((value.start, value.stop, value.step), change))
    return value


def substitute(item, same: dict[Array, Array]) -> None:
    """Let an item use other Arrays: ``same`` maps an Array to the one that stands for it."""

    def change(array: Array) -> Array:
        array = same.get(array, array)
        if not same.keys().isdisjoint(array.roots):
            roots = [s for r in array.roots for s in (change(r).roots if r in same else (r,))]
            array.roots = tuple(dict.fromkeys(roots))
        return array

    if same:
        replace_arrays(item, change)


# -- what items make, change and hand on --------------------------------------------------


def is_elementwise(call: Call) -> bool:
    """Whether each element of the result depends on the same element of the operands only."""
    function = call.function
    return call.kind == "compute" and isinstance(function, np.ufunc) and function.signature is None


def changed_memory(items: Iterable[Any]) -> set[Array]:
    """The Arrays whose memory calls change after it was made."""
    changed: set[Array] = set()
    for item in items:
        if isinstance(item, Loop):
            changed |= changed_memory(item.test + item.body)
        elif isinstance(item, Branch):
            changed |= changed_memory(chain(*item.bodies))
        elif item.changed is not None:
            changed.update(item.changed.roots)
    return changed


def makers_of(items: Listed) -> dict[Array, Call]:
    """An Array → the call that makes it."""
    return {a: item for item in items for a in arrays_in(item.out)}
