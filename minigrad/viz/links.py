"""Calls of functions, and how to find them by the links that linked nodes keep."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .format import unwrap
from .formula import backward_formula, input_names


@dataclass(slots=True)
class Call:
    """One function applied once: its variables, and their arrays at that time."""

    function: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    values: dict[str, Any] = field(default_factory=dict)
    weak: bool = False  # the function refers to its outputs weakly


@dataclass(slots=True)
class Back:
    """One call of ``backward``: the gradients that went in and, where known, came out."""

    call: Call
    gys: tuple[Any, ...]
    gxs: tuple[Any, ...] | None


def variable_like(thing: Any) -> bool:
    """Does it hold data and a gradient?"""
    return hasattr(thing, "data") and hasattr(thing, "grad")


def function_like(thing: Any) -> bool:
    """Is it a function object of linked nodes?"""
    return callable(getattr(thing, "backward", None)) and callable(getattr(thing, "forward", None))


def outputs_of(thing: Any) -> list[Any]:
    """A variable itself, or what a function made."""
    return [thing] if variable_like(thing) else list(linked_call(thing).outputs)


def calls_behind(roots: list[Any]) -> list[Call]:
    """Every function behind the roots, producers first; a cycle is entered once."""
    done: dict[int, Call] = {}
    order: list[Call] = []
    pending: list[tuple[Any, bool]] = [
        (getattr(v, "creator", None), False) for v in reversed(roots)
    ]
    while pending:
        function, ready = pending.pop()
        if function is None:
            continue
        if ready:
            order.append(done[id(function)])
        elif id(function) not in done:
            call = done[id(function)] = linked_call(function)
            pending.append((function, True))
            pending += [(getattr(v, "creator", None), False) for v in reversed(call.inputs)]
    return order


def linked_call(function: Any) -> Call:
    """The call that a function object remembers: the last one."""
    inputs = _all(getattr(function, "inputs", None), getattr(function, "input", None))
    held = _all(getattr(function, "outputs", None), getattr(function, "output", None))
    outputs = tuple(v for v in (_strong(o) for o in held) if v is not None)
    call = Call(function, inputs, outputs, weak=any(isinstance(o, weakref.ref) for o in held))
    call.values = named_values(call, tuple(map(unwrap, inputs)), tuple(map(unwrap, outputs)))
    return call


def _all(several: Any, one: Any) -> tuple[Any, ...]:
    if several is not None:
        return tuple(several) if isinstance(several, (tuple, list)) else (several,)
    return () if one is None else (one,)


def _strong(reference: Any) -> Any:
    return reference() if isinstance(reference, weakref.ref) else reference


def back_of(call: Call, grads: Mapping[int, Any]) -> Back:
    """What the walk computes, or will: from the gradients the variables hold."""
    gys = tuple(unwrap(grads[id(v)]) for v in call.outputs)
    formula = backward_formula(call.function)
    known = call.values | named_gradients(call.function, gys)
    ready = bool(gys) and all(g is not None for g in gys)
    return Back(call, gys, formula.compute(known) if formula and ready else None)


def named_values(call: Call, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> dict[str, Any]:
    """The arrays of a call under the names that formulas use."""
    values = dict(zip(input_names(call.function), inputs, strict=False))
    return values | ({"y": outputs[0]} if len(outputs) == 1 else {})


def named_gradients(function: Any, gys: tuple[Any, ...]) -> dict[str, Any]:
    """The gradients that go in, under the parameter names of ``backward``."""
    code = getattr(inspect.unwrap(type(function).backward), "__code__", None)
    if code is None:
        return {}
    return dict(zip(code.co_varnames[1 : code.co_argcount], gys, strict=False))
