"""Control flow as operators that hold blocks: cond, while_loop, static_rnn, switch, per-row if_else.

A loop is written without overwriting: the body reads the *carried* values of its step and computes
the *next* ones, under new names; the executor hands them on.  What a block reads from outside is
listed in the slot ``params``, so a loop looks to its surroundings like any op with inputs and
outputs, and nests to any depth.

    while       x: start values · params → out: final values · scopes: one per step
                sub_block: the body; cond_block: the condition, evaluated in the scope of the step
    cond        pred · params → out · scopes;  sub_block: if true; else_block: if false
    recurrent   seq: sequences, cut along axis 0 · x: start states · params → stacked · out · scopes
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...errors import describe, wrong
from ...grad_names import EMPTY, SCOPES
from ...ops import merge_rows, select_rows
from ...ops.index import getitem, setitem
from ...ops.shape import DType, Shape, fits
from ...primitives.arguments import Attrs, Function, Listed, Slots, as_list
from ...primitives.registry import REGISTRY
from .block import Block, is_cut_off
from .infer import Variables, common
from .operator import Operator, outputs_of
from .program import default_program
from .variable import Variable


class Type(NamedTuple):
    """What is known of a result before it is there."""

    shape: Shape
    dtype: DType


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """If building fails, the program is as it was before the call."""
    with default_program().transaction():
        yield


@all_or_nothing()
def while_loop(cond: Function, body: Function, loop_vars: Sequence[Any]) -> list[Variable]:
    """Repeat ``body`` while ``cond`` holds; both take the loop variables, ``body`` returns their next values.

    Returns the final values.  Shapes and dtypes must stay the same from step to step.  A loop of no
    step at all returns its start values.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     i, s = static.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s * 2.0), [0, 1.0])
    >>> static.Executor().run(prog, fetch_list=[s])
    [array(32.)]
    """
    program = default_program()
    outer = program.current_block()
    starts = _variables(outer, loop_vars)
    if not starts:
        what = "while_loop needs at least one loop variable"
        raise wrong(what, "loop_vars=[0], which counts the steps")
    block = program.create_block()
    carried = [handed_in(block, v, v.shape) for v in starts]
    with program.block_guard(block):
        next_ = own_names(block, next_values(block, body(*carried), starts, "the loop body"))
    cond_block = program.create_block(block.idx)
    with program.block_guard(cond_block):
        pred = _one_bool(cond_block, cond(*carried), "while_loop goes on while one bool holds")
    attrs: Attrs = {
        "sub_block": block.idx, "cond_block": cond_block.idx,
        "carried": _names(carried), "next": _names(next_), "cond": pred.name,
    }  # fmt: skip
    inputs = {"x": _names(starts), "params": captured([block, cond_block], [pred.name])}
    return append_control(outer, "while", inputs, attrs, out=starts)["out"]


def _one_bool(block: Block, value, what: str) -> Variable:
    pred = block.program.as_variable(value, block)
    if pred.dtype.kind != "b" or any(n != 1 for n in pred.shape):
        what = f"{what}, not {pred!r}"
        raise wrong(what, "compare first (x > 0), or use static.if_else for one decision per row")
    return pred


@all_or_nothing()
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` or ``false_fn()``, decided when the program runs; both must return the same structure.

    Only the branch taken runs; the gradient of the other is zero.  Errors: `ProgramError`.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [])
    ...     y = static.cond(x > 0, lambda: x * 2.0, lambda: -x)
    >>> static.Executor().run(prog, feed={"x": -3.0}, fetch_list=[y])
    [array(3.)]
    """
    outer = default_program().current_block()
    pred = _one_bool(outer, pred, "cond decides on one bool")
    true, kind, yes = _branch(outer, true_fn)
    false, other, no = _branch(outer, false_fn)
    _check_structures("cond", (kind, yes), (other, no))
    types = []
    for k, (a, b) in enumerate(zip(yes, no, strict=True)):
        if not same_types(a, b):
            raise wrong(
                f"the branches of cond return different types for value {k}: {a!r} and {b!r}",
                "one shape and dtype for both: reshape, broadcast_to or astype in one of them",
            )
        types.append(Type(common(a.shape, b.shape), a.dtype))
    attrs: Attrs = {
        "sub_block": true.idx, "else_block": false.idx, "true_out": _names(yes), "false_out": _names(no),
    }  # fmt: skip
    inputs = {"pred": [pred.name], "params": captured([true, false])}
    outs = append_control(outer, "cond", inputs, attrs, out=types)["out"]
    return outs[0] if kind is None else kind(outs)


def _branch(outer: Block, function: Callable[[], Any]) -> tuple[Block, type | None, list[Variable]]:
    """The block of a branch, how it packs its results, and the results."""
    program = outer.program
    block = program.create_block()
    with program.block_guard(block):
        kind, values = _unpacked(function())
        return block, kind, own_names(block, _variables(block, values))


Packed = tuple[type | None, Listed]


def _unpacked(returned) -> Packed:
    """How a branch packs its results (None: one bare value), and the results."""
    kind = next((t for t in (tuple, list) if isinstance(returned, t)), None)
    return (list, []) if returned is None else (kind, as_list(returned))


def _variables(block: Block, values) -> list[Variable]:
    return [block.program.as_variable(v, block) for v in as_list(values)]


def _names(values: Sequence[Variable]) -> list[str]:
    return [v.name for v in values]


def _check_structures(name: str, *branches: Packed) -> None:
    """Errors: `ProgramError` for two branches whose results do not go together."""
    if len({(kind, len(values)) for kind, values in branches}) == 1:
        return
    shown = [f"a {k.__name__} of {len(values)}" if k else "one value" for k, values in branches]
    what = f"the branches of {name} return different structures: {' and '.join(shown)}"
    raise wrong(what, "return the same number of values from both")


def switch(cases: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any]) -> Any:
    """The first case whose condition holds: ``switch([(x > 0, f), (x < 0, g)], default=h)``.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [])
    ...     y = static.switch([(x > 0, lambda: x * 1.0), (x < 0, lambda: x * -1.0)], default=lambda: x + 9.0)
    >>> [static.Executor().run(prog, {"x": v}, [y])[0].item() for v in (-2.0, 0.0, 3.0)]
    [2.0, 9.0, 3.0]
    """
    if not cases:
        return default()
    (pred, function), *rest = cases
    return cond(pred, function, lambda: switch(rest, default))


@all_or_nothing()
def if_else(mask: Any, true_fn: Function, false_fn: Function, *rows: Any) -> Any:
    """Per row: the rows where ``mask`` holds go through ``true_fn``, the others through ``false_fn``.

    Both take the chosen rows of each of ``rows``; their results are put together in the order of
    the mask.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [3])
    ...     y = static.if_else(x > 0, lambda rows: rows * 10.0, lambda rows: rows * 0.0, x)
    >>> static.Executor().run(prog, {"x": [1.0, -2.0, 3.0]}, [y])
    [array([10., -0., 30.])]
    """
    program = default_program()
    mask = program.as_variable(mask, program.current_block())
    if mask.dtype.kind != "b" or len(mask.shape) != 1:
        what = f"if_else takes one bool per row, not {mask!r}"
        raise wrong(what, "mask=x > 0 with x of shape [rows]; static.cond for one decision")
    no = ~mask
    kind, parts = _unpacked(true_fn(*(select_rows(r, mask) for r in rows)))
    other, parts_no = _unpacked(false_fn(*(select_rows(r, no) for r in rows)))
    _check_structures("if_else", (kind, parts), (other, parts_no))
    for value in (*parts, *parts_no):
        if not getattr(value, "shape", ()):
            what = f"the branches of if_else return rows, not {describe(value)}"
            raise wrong(what, "a row for each that came in: rows * 0.0 + 1.0")
    merged = [merge_rows(mask, a, b) for a, b in zip(parts, parts_no, strict=True)]
    return merged[0] if kind is None else kind(merged)


@all_or_nothing()
def static_rnn(
    step: Function, inputs: Sequence[Any], states: Sequence[Any]
) -> tuple[list[Variable], list[Variable]]:
    """Run ``step(*slices, *states) -> (outputs, next_states)`` along axis 0 of the inputs.

    Returns the outputs of all steps, stacked along a new axis 0, and the final states.  An empty
    sequence gives empty outputs and the start states.  Errors: `ProgramError`.

    >>> import numpy as np
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1])
    ...     (sums,), (last,) = static.static_rnn(lambda x, s: ([s + x], [s + x]), [x], [0.0])
    >>> static.Executor().run(prog, feed={"x": np.array([1.0, 2.0, 3.0])}, fetch_list=[sums, last])
    [array([1., 3., 6.]), array(6.)]
    """
    program = default_program()
    outer = program.current_block()
    seqs = _variables(outer, inputs)
    if not seqs or any(not v.shape for v in seqs):
        what = "static_rnn needs sequences: Variables with time as axis 0"
        raise wrong(what, "inputs=[x] with x of shape [steps, …]")
    if len({v.shape[0] for v in seqs} - {-1}) > 1:
        what = f"the sequences of static_rnn have different lengths: {seqs}"
        raise wrong(what, "cut or fill them up to one length")
    starts = _variables(outer, states)
    block = program.create_block()
    carried = [handed_in(block, v, v.shape) for v in starts]
    slices = [handed_in(block, v, v.shape[1:]) for v in seqs]
    with program.block_guard(block):
        returned = step(*slices, *carried)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise wrong(
                f"the step of static_rnn returns (outputs, next_states), not {describe(returned)}",
                "return [out, …], [state, …]",
            )
        outs = _variables(block, returned[0])
        named = own_names(block, [*outs, *next_values(block, returned[1], starts, "the step")])
        outs, next_ = named[: len(outs)], named[len(outs) :]
    attrs: Attrs = {
        "sub_block": block.idx, "steps": _names(slices),
        "carried": _names(carried), "next": _names(next_), "step_out": _names(outs),
    }  # fmt: skip
    names = {"seq": _names(seqs), "x": _names(starts), "params": captured([block])}
    stacked = [Type((seqs[0].shape[0], *v.shape), v.dtype) for v in outs]
    results = append_control(outer, "recurrent", names, attrs, stacked=stacked, out=starts)
    return results["stacked"], results["out"]


def create_array(capacity: int, shape: Iterable[int] = (), dtype: Any = "float64") -> Variable:
    """An array of ``capacity`` places, zeros of this shape.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     squares = static.create_array(4)
    ...     _, squares = static.while_loop(
    ...         lambda i, a: i < 4, lambda i, a: (i + 1, static.array_write(a, i, i * i * 1.0)), [0, squares])
    >>> static.Executor().run(prog, fetch_list=[squares])
    [array([0., 1., 4., 9.])]
    """
    attrs = {"shape": (capacity, *shape), "dtype": np.dtype(dtype).name}
    block = default_program().current_block()
    return block.append_primitive(REGISTRY["fill_constant"], (), attrs)  # type: ignore[no-any-return]


def array_write(array: Variable, index: Any, value: Any) -> Variable:
    """The array with ``value`` at a place.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     squares = static.array_write(static.create_array(3), 1, 4.0)
    >>> static.Executor().run(prog, fetch_list=[squares])
    [array([0., 4., 0.])]
    """
    return setitem(array, value, index)  # type: ignore[no-any-return]


def array_read(array: Variable, index: Any) -> Variable:
    """What stands at a place.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     place = static.array_read(static.array_write(static.create_array(3), 1, 4.0), 1)
    >>> static.Executor().run(prog, fetch_list=[place])
    [array(4.)]
    """
    return getitem(array, index)  # type: ignore[no-any-return]


def array_length(array: Variable) -> int:
    """The number of places.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     static.array_length(static.create_array(3))
    3
    """
    return len(array)


def handed_in(block: Block, v: Variable, shape: Shape) -> Variable:
    """What a step sees of a value of the loop: a variable of the body that nothing in it has to write."""
    name = block.program.unique_name(f"{v.name}@step")
    block.written.add(name)
    return block.create_var(name, shape, v.dtype, derived_stop=v.dtype.kind != "f")


def same_types(a: Variable, b: Variable) -> bool:
    """Whether two Variables can take turns."""
    return a.dtype == b.dtype and fits(a.shape, b.shape)


def next_values(block: Block, given, starts: list[Variable], what: str) -> list[Variable]:
    """What a step hands on, checked against what the loop started from."""
    values = as_list(given)
    if len(values) != len(starts):
        what = f"{what} returns {len(values)} value(s) for {len(starts)} loop variable(s)"
        raise wrong(what, "return the next value of every loop variable, in their order")
    results = []
    for k, (start, value) in enumerate(zip(starts, values, strict=True)):
        if isinstance(value, int | float):
            value = np.asarray(value, start.dtype)
        result = block.program.as_variable(value, block)
        if not same_types(start, result):
            raise wrong(
                f"{what} changes loop variable {k}: it starts as {start!r} and goes on as {result!r}",
                "shape and dtype must stay the same from step to step (astype, reshape, or a better "
                "start value)",
            )
        results.append(result)
    return results


def own_names(block: Block, values: list[Variable]) -> list[Variable]:
    """Give every result a name of its own, made in this block: gradients then have one place each."""
    produced = set(outputs_of(block.ops))
    out = []
    for v in values:
        if v.name not in produced:
            v = block.append_primitive(REGISTRY["assign"], (v,), {})
        produced.discard(v.name)  # another result of this value is a copy
        out.append(v)
    return out


def captured(blocks: list[Block], also: Sequence[str] = ()) -> list[str]:
    """The outer names that these blocks read, in order of first use."""
    local = {EMPTY, *(n for b in blocks for n in b.vars)}
    reads = [n for b in blocks for op in b.ops for n in op.input_names]
    return [n for n in dict.fromkeys([*reads, *also]) if n not in local]


def append_control(
    outer: Block, op_type: str, inputs: Slots, attrs: Attrs, **types: Iterable[Type | Variable]
) -> Variables:
    """Append the operator; ``types``: what its outputs have the shape and dtype of, by slot."""
    unique = outer.program.unique_name
    stop = is_cut_off(outer, inputs)
    results: Variables = {}
    for slot, listed in types.items():
        results[slot] = [
            outer.create_var(
                unique(op_type), t.shape, t.dtype, derived_stop=stop or t.dtype.kind != "f"
            )
            for t in listed
        ]
    scopes = outer.create_var(unique(op_type + SCOPES), (), np.int64, derived_stop=True)
    outputs = {s: _names(vs) for s, vs in results.items()}
    outputs["scopes"] = [scopes.name]
    op = Operator(op_type, inputs, outputs, attrs, outer.program.role)
    outer._append(op)
    return results
