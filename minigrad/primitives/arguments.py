"""The arguments of a call: which are inputs and which attrs, by position and by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, ValuesView
from typing import Any

from ..errors.calls import call_error

Args = tuple[Any, ...]  #: the values of a call, by position
ByName = dict[str, Any]  #: name → value
Attrs = dict[str, Any]  #: attr → value
Names = tuple[str, ...]
Slots = dict[str, list[str]]  #: slot → the names of an operator in a Program
Values = dict[str, list[Any]]  #: slot → values
Function = Callable[..., Any]


class Value:
    """Something a primitive can be applied to that is not an array: a Tensor or a Variable."""

    __slots__ = ()
    priority = 0  #: where two kinds of Values meet in a call, the higher one answers

    def apply_primitive(self, primitive: Any, args: Args, attrs: Attrs) -> Any:
        """Apply a primitive to arguments of which at least one is of this engine."""
        raise NotImplementedError


def as_list(value: Any) -> list[Any]:
    """A list or tuple as a list, one thing as a list of it.

    >>> as_list((1, 2)), as_list(3)
    ([1, 2], [3])
    """
    return list(value) if isinstance(value, list | tuple) else [value]


#: what stands for several values where a list is asked for
LISTED = (list, tuple, Iterator, ValuesView)


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()  #: default of an attr that has none


class Arguments:
    """The part of a `Primitive` that concerns calls."""

    __slots__ = ()
    kernel: Function
    inputs: Names
    attrs: Attrs
    list_input: str | None
    optional: frozenset[str]

    def bind(self, args: Args, attrs: Attrs) -> tuple[Args, Attrs]:
        """Sort the arguments of a call into inputs and attrs: a list slot may be given a list, attrs by position.

        An ``axis`` in a list stays a list: whether that is one, NumPy says in the kernel.
        """
        if not (attrs or self.attrs or self.list_input) and len(args) == len(self.inputs):
            for a in args:
                if a is None:
                    break
            else:
                return args, {}  # the usual call of an operator like mul
        if self.list_input and args and isinstance(args[0], LISTED):
            args, extra = tuple(args[0]), args[1:]
        else:
            n = len(args) if self.list_input else len(self.inputs)
            args, extra = args[:n], args[n:]
            if not self.list_input:
                if twice := [i for i in self.inputs[: len(args)] if i in attrs]:
                    raise self.call_error(len(args), twice[0])
                named = tuple(attrs.get(i) for i in self.inputs[len(args) :])
                attrs = {k: v for k, v in attrs.items() if k not in self.inputs}
                args += named
        given = dict(zip(self.attrs, extra, strict=False))
        unknown = [k for k in attrs if k not in self.attrs or k in given]
        if unknown or len(extra) > len(self.attrs):
            raise self.call_error(len(self.inputs) + len(extra), *unknown[:1])
        bound = {**self.attrs, **given, **attrs}
        axis = bound.get("axis")
        bound = {k: frozen(v) for k, v in bound.items()}
        if type(axis) is list:
            bound["axis"] = [*axis]
        missing = [k for k, v in bound.items() if v is REQUIRED]
        missing += [
            n
            for n, a in zip(self.inputs, args, strict=False)
            if a is None and n not in self.optional and n != self.list_input
        ]
        if missing:
            raise self.call_error([*self.inputs, *self.attrs].index(missing[0]))
        return args, bound

    def call_error(self, count: int, unknown: str | None = None) -> Exception:
        """What to raise for a call with ``count`` values, or with an unknown keyword."""
        inputs = [f"*{n}" if n == self.list_input else n for n in self.inputs]
        parameters = [f"{n}=None" if n in self.optional else n for n in inputs]
        parameters += [a if d is REQUIRED else f"{a}={d!r}" for a, d in self.attrs.items()]
        return call_error(self.called, parameters, count, unknown)

    @property
    def called(self) -> str:
        """The name of its function, as users call it: ``sum`` for reduce_sum."""
        return self.kernel.__name__.removeprefix("reduce_")

    def slot_names(self, count: int) -> list[str]:
        """The slot of each of ``count`` arguments; a list slot takes all from its place on."""
        names = list(self.inputs)
        if not self.list_input:
            return names
        return names[:-1] + [names[-1]] * (count - len(names) + 1)


def frozen(value: Any) -> Any:
    """An attr as nobody can change it afterwards: lists and arrays become tuples.

    >>> frozen([[1, 2], 3])
    ((1, 2), 3)
    """
    if isinstance(value, list | tuple):
        return tuple(frozen(v) for v in value)
    if isinstance(value, Value) or not getattr(value, "ndim", 0):
        return value
    return frozen(value.tolist())
