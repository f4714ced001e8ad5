"""Executor: creates the variables of a program in a scope and runs its operators in order.

Persistable variables live in the executor's own scope, all others in a scope made for the run.  A
run is a transaction: what it writes to persistable variables is set when it has succeeded.

What a program is fed stands below: every way of running one asks there.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from ...errors import MinigradError, did_you_mean, unmasked, wrong
from ...grad_names import CONSTANT
from ...ops.shape import Array, DType, Shape
from ...primitives.arguments import Args, ByName, as_list
from ..program.operator import name_of, names_of, several
from ..program.program import Program
from ..program.variable import Variable
from .interpreter import Record, Run, Scope, outer_reads
from .limits import MEMORY, STEP_LIMIT


class Executor:
    """Runs programs; keeps the persistable variables between runs in ``scope``.

    >>> from minigrad import static
    >>> import minigrad as mg, numpy as np
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [2]); y = mg.exp(x).sum()
    >>> static.Executor().run(prog, feed={"x": np.zeros(2)}, fetch_list=[y])
    [array(2.)]

    A program is kept as text, its trained values as arrays, the optimizer's memory among them:

    >>> import tempfile
    >>> prog, one = static.Program(), static.Executor()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     pairs = static.minimize(mg.optim.SGD(lr=0.25), (w * w).sum())
    >>> _ = one.run(prog)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mg.nn.save(one.scope.values, folder + "/trained.npz")
    ...     again, other = static.Program.from_json(prog.to_json()), static.Executor()
    ...     other.scope.values.update(mg.nn.load(folder + "/trained.npz"))
    >>> other.run(again, fetch_list="w"), one.run(prog, fetch_list="w")
    ([array([0.25, 0.5 ])], [array([0.25, 0.5 ])])
    """

    def __init__(self) -> None:
        self.scope = Scope()

    def run(
        self,
        program: Program,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        step_limit: int = STEP_LIMIT,
        check_finite: bool = False,
        scope: Scope | None = None,
        memory_limit: int = MEMORY,
    ) -> list[Any]:
        """Run a program; returns the fetched values as arrays of their own.

        ``fetch_list`` may name any variable: gradients too, and variables inside loops, which give one value per step;
        a single one counts as a list of one.
        ``check_finite`` names the first operator that makes a NaN or an infinity.  ``scope`` (a fresh Scope)
        receives the values of the run, for looking at.  ``step_limit`` bounds the steps of each loop,
        ``memory_limit`` the bytes of all values together: what would be larger is not made.

        Errors: `ProgramError` before the first operator runs, for unknown or missing feeds and
        fetches; an error on the way leaves all parameters as they were.
        """
        fetch = names_of(program, fetch_list, "fetch_list")
        fed = fed_arrays(program, {} if feed is None else feed)
        # no other program's constants replace its own
        constants = {n: v for n, v in program.initial.items() if n.startswith(CONSTANT + "_")}
        there = {*self.scope.values, *constants}
        missing = {n: v for n, v in program.initial.items() if n not in there}
        # what has no value is found before the first operator runs
        root = program.global_block()
        known = {*there, *missing, *fed}
        check_all_fed(program, known, fetch)
        for name in (*outer_reads(root.ops), *(n for n in fetch if n not in root.written)):
            if name not in known and name in root.vars and root.vars[name].persistable:
                raise not_set(name)
        updates = Scope(self.scope)
        updates.values = _copies(missing)
        local = Scope() if scope is None else scope
        local.parent, local.block = updates, root.idx
        local.values.update(constants | fed)
        keep = scope is not None or any(n not in root.vars for n in fetch)
        if scope is not None:
            scope.record = Record(program)
        run = Run(program, updates, step_limit, check_finite, keep, memory_limit, local.record)
        try:
            with np.errstate(all="ignore" if check_finite else None):
                run.block(local)
            results = [_fetched(name, local) for name in fetch]
        except MemoryError:  # where not even the words of a better error had room
            raise wrong(
                "this machine has no memory left for the values of this run",
                "smaller shapes, or a lower Executor.run(…, memory_limit=…)",
            ) from None
        new = _copies(updates.values)
        self.scope.values.update(new)  # a whole dictionary in one call: no signal comes between
        return results


def _copies(values: ByName) -> ByName:
    """Arrays of the executor's own, contiguous as feeds are."""
    return {name: np.array(value, order="C") for name, value in values.items()}


def _fetched(name: str, scope: Scope) -> Any:
    """The value of a fetched name; inside loops one value per step, innermost list first."""
    value = scope.find(name)
    if value is None:
        value = _in_steps(name, scope)
    if value is None:
        what = f"{name!r} has no value in this run: no operator that ran writes it"
        raise wrong(what, "fetch what the loop or the cond returns")
    return np.array(value) if isinstance(value, np.ndarray | np.generic) else value


def _in_steps(name: str, scope: Scope) -> Any:
    """The value of a name in the blocks that ran inside a scope: a list with one entry per step of a loop."""
    if name in scope.values:
        return np.array(scope.values[name])
    for value in scope.values.values():
        inside = [_in_steps(name, s) for s in as_list(value) if isinstance(s, Scope)]
        values = [v for v in inside if v is not None]
        if values:
            return values if isinstance(value, list) else values[0]
    return None


# -- What a program is fed: by which names, as which arrays, of which shapes, and what is missing
#
# Every way of running a program asks here, so what one of them takes or refuses, all do, in the same words.


def data_of(program: Program) -> dict[str, Variable]:
    """The variables that are fed."""
    return {v.name: v for v in program.global_block().vars.values() if v.is_data}


def feed_of_call(program: Program, given: Args, named: ByName) -> ByName:
    """The feed of a step that is called with one dict, and with names perhaps.  Errors: `ProgramError`."""
    if len(given) > 1 or not isinstance(given[0], Mapping):
        names = ", ".join(f"{name!r}: …" for name in data_of(program))
        raise wrong("feeds are given by name", f"step({{{names}}})")
    return {name_of(key, "feed"): value for key, value in given[0].items()} | named


def fed_arrays(program: Program, feed, kept=()) -> ByName:
    """The feeds as arrays of the declared dtypes; an array of a class in ``kept`` stays what it is.

    They are contiguous: where an array lies decides in which order it is added up, which is to be
    the same wherever the program runs.  Errors: `ProgramError`.
    """
    arrays = {}
    for key, value in feed.items():
        var = _data(program, key)
        array = value if isinstance(value, kept) else _array(var, value)
        _check_fits(var, array.shape, array.dtype)
        arrays[var.name] = array if array.dtype == var.dtype else array.astype(var.dtype)
    return arrays


def fed_shapes(program: Program, feed) -> dict[str, Shape]:
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
        is_numbers = isinstance(value, list | tuple) and all(type(n) is int for n in value)
        if is_numbers and len(value) == len(var.shape):  # one per axis, in an array's place
            shapes[var.name] = tuple(value)
            _check_fits(var, shapes[var.name], var.dtype)
        else:
            shapes[var.name] = fed_arrays(program, {key: value})[var.name].shape
    return shapes


def check_all_fed(program: Program, fed: Container[str], fetch: list[str]) -> None:
    """Whatever operators of any block read, or the caller fetches, is fed.  Errors: `ProgramError`."""
    unfed = [var for name, var in data_of(program).items() if name not in fed]
    if unfed:
        read = {n for block in program.blocks for op in block.ops for n in op.input_names}
        for var in unfed:
            if var.name in read or var.name in fetch:
                raise wrong(
                    f"the program reads {var.name!r}, but it was not fed",
                    f"feed {{{var.name!r}: …}} with shape {list(var.shape)}",
                )


def not_set(name: str) -> MinigradError:
    """What to raise for a parameter without a start value."""
    return wrong(
        f"the parameter {name!r} has no value",
        f"give static.parameter an init, or set executor.scope.values[{name!r}]",
    )


def _data(program: Program, key) -> Variable:
    name = name_of(key, "feed")
    var = program.global_block().vars.get(name)
    if var is None or not var.is_data:
        what = f"feed names {name!r}, which is no data of this program"
        raise wrong(what + did_you_mean(name, data_of(program)))
    return var


def _array(var: Variable, value) -> Array:
    try:
        return np.asarray(getattr(unmasked(value), "_data", value), order="C")
    except MinigradError:
        raise  # a Variable says itself that it has no value
    except (TypeError, ValueError) as error:
        what = f"feed {var.name!r} is no array: {error}"
        raise wrong(what, "an array, a Tensor, or lists whose rows have equal lengths") from None


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
