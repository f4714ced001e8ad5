"""What a program is fed: by which names, as which arrays, of which shapes, and what is missing.

Every way of running a program asks here, so what one of them takes or refuses, all do, in the same words.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from ...errors import MinigradError, did_you_mean, wrong
from ...ops.shape import Array, DType, Shape
from ...primitives.arguments import Args, ByName
from ..program.arguments import name_of, several
from ..program.program import Program
from ..program.variable import Variable


def data_of(program: Program) -> dict[str, Variable]:
    """The variables that are fed."""
    return {v.name: v for v in program.global_block().vars.values() if v.is_data}


def feed_of_call(program: Program, given: Args, named: ByName) -> ByName:
    """The feed of a step that is called with names, with one dict, or with both.  Errors: `ProgramError`."""
    if not given:
        return named
    if len(given) > 1 or not isinstance(given[0], Mapping):
        names = ", ".join(f"{name!r}: …" for name in data_of(program))
        raise wrong("feeds are given by name", f"step({{{names}}})")
    return {name_of(key, "feed"): value for key, value in given[0].items()} | named


def fed_arrays(program: Program, feed: Any, kept: Any = ()) -> ByName:
    """The feeds as arrays of the declared dtypes; an array of a class in ``kept`` stays what it is.

    They are contiguous: where an array lies decides in which order it is added up, which is to be the same wherever
    the program runs.  Errors: `ProgramError`.
    """
    arrays = {}
    for key, value in feed.items():
        var = _data(program, key)
        array = value if isinstance(value, kept) else _array(var, value)
        _check_fits(var, array.shape, array.dtype)
        arrays[var.name] = array if array.dtype == var.dtype else array.astype(var.dtype)
    return arrays


def fed_shapes(program: Program, feed: Any) -> dict[str, Shape]:
    """The shape of every variable that is fed, with -1 where neither its declaration nor ``feed`` says a size.

    ``feed`` holds arrays or shapes, or only names.  Errors: `ProgramError`.
    """
    shapes = {name: var.shape for name, var in data_of(program).items()}
    if not isinstance(feed, Mapping):
        for name in several(feed):
            _data(program, name)
        return shapes
    for key, value in feed.items():
        var = _data(program, key)
        if _is_shape(value, len(var.shape)):
            shape, dtype = tuple(value), var.dtype
        else:
            array = _array(var, value)
            shape, dtype = array.shape, array.dtype
        _check_fits(var, shape, dtype)
        shapes[var.name] = shape
    return shapes


def check_all_fed(program: Program, fed: Container[str], fetch: list[str]) -> None:
    """Whatever operators of any block read, or the caller fetches, is fed.  Errors: `ProgramError`."""
    unfed = [var for name, var in data_of(program).items() if name not in fed]
    if unfed:
        read = {n for block in program.blocks for op in block.ops for n in op.input_names}
        for var in unfed:
            if var.name in read or var.name in fetch:
                raise not_fed(var)


def not_fed(var: Variable) -> MinigradError:
    """What to raise if nobody feeds what the program reads."""
    advice = f"feed {{{var.name!r}: …}} with shape {list(var.shape)}"
    return wrong(f"the program reads {var.name!r}, but it was not fed", advice)


def not_set(name: str) -> MinigradError:
    """What to raise for a parameter without a start value."""
    advice = f"give static.parameter an init, or set executor.scope.values[{name!r}]"
    return wrong(f"the parameter {name!r} has no value", advice)


def _data(program: Program, key: Any) -> Variable:
    name = name_of(key, "feed")
    var = program.global_block().vars.get(name)
    if var is None or not var.is_data:
        what = f"feed names {name!r}, which is no data of this program"
        raise wrong(what + did_you_mean(name, data_of(program)))
    return var


def _array(var: Variable, value: Any) -> Array:
    try:
        return np.asarray(getattr(value, "_data", value), order="C")
    except MinigradError:
        raise  # a Variable says itself that it has no value
    except (TypeError, ValueError) as error:
        what = f"feed {var.name!r} is no array: {error}"
        advice = "an array, a Tensor, or lists whose rows have equal lengths"
        raise wrong(what, advice) from None


def _check_fits(var: Variable, shape: Shape, dtype: DType) -> None:
    declared = var.shape
    if shape != declared and (
        len(shape) != len(declared)
        or any(n not in (-1, m) for n, m in zip(declared, shape, strict=True))
    ):
        advice = f"feed shape {list(declared)}, or declare static.data({var.name!r}, {list(shape)})"
    elif dtype != var.dtype and not np.can_cast(dtype, var.dtype, "same_kind"):
        advice = f"feed an array of {var.dtype}: array.astype({var.dtype.name!r})"
    else:
        return
    what = f"feed {var.name!r} is {dtype}{list(shape)}, the program expects {var.dtype}{list(declared)}"
    raise wrong(what, advice)


def _is_shape(value: Any, ndim: int) -> bool:
    """Whether whole numbers, one per axis, were given in an array's place."""
    is_numbers = isinstance(value, list | tuple) and all(type(n) is int for n in value)
    return is_numbers and len(value) == ndim
