"""What is known before the program runs is worked out now.

    an op that changes nothing (``reshape`` to the same shape, ``mul`` by 1)   its input
    a slot ``shape_like`` of a known shape                                     the attr ``shape``
    an op on constants                                                         ``fill_constant``
    a constant array beside an array of the result's shape                     a number
    two factors, one a power of two                                            one factor

Every rule keeps all bits of the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import frexp
from typing import Any

import numpy as np

from ...primitives.registry import Primitive
from ...static.program.block import Block
from ...static.program.op_info import find_info
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.run.kernels import like_value, run_kernel
from .names import (
    forget_unused,
    held_names,
    never_written,
    replace_in_readers,
    replace_inputs,
    written_once,
)

_SAME_SHAPE = frozenset({"reshape", "broadcast_to", "unbroadcast", "expand_reduced"})
#: rows stay rows: kernels whose result lies in memory as their inputs do
_AS_THEIR_INPUTS = frozenset(
    {"reshape", "expand_dims", "squeeze", "assign", "concat"}
    | {"reduce_sum", "unbroadcast", "expand_reduced"}
)
_ALWAYS_ROWS = frozenset({"matmul", "matmul_nt", "matmul_tn", "linear", "fill_constant"})
_NEUTRAL = {"mul": (1, "xy"), "div": (1, "y")}
_LIMIT = 1_000_000  #: elements of a result that is worked out to see whether they are all alike


def fold(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which everything known is worked out; ``keep`` names variables that must stay.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); y = w * w; pairs = static.append_backward(y)
    >>> from minigrad.compiler.program_passes import decompose
    >>> [op.type for op in fold(decompose(prog), ["w@GRAD"]).global_block().ops]
    ['mul', 'fill_constant', 'sum']
    """
    made = program.clone()
    held = held_names(made) | {*keep, *made.outputs}
    given = never_written(made)
    for block in made.blocks:
        _Folding(block, held, given).run()
    made.history.append("fold")
    forget_unused(made, set(keep))
    return made


class _Folding:
    """What is known about the names of one block."""

    def __init__(self, block: Block, held: set[str], given: set[str]) -> None:
        self.block, self.held = block, held
        self.once = written_once(block)
        self.fixed = self.once | given
        self.same: dict[str, str] = {}
        self.constant: dict[str, Operator] = {}
        self.makers: dict[str, Operator] = {}
        self.rows = set(given)  # arrays that lie row by row in memory, as data do
        # constants that are one number in memory: no order of their own
        self.loose: set[str] = set()

    def run(self) -> None:
        kept = []
        for op in self.block.ops:
            replace_inputs(op, self.same)
            info = find_info(op.type)
            if info is not None and info.forward is not None and not info.is_grad:
                op = self.folded(op, info.forward)
                self.remember(op, info.forward)
                source = self.passed_on(op)
                if source is not None:
                    self.same[op.output_names[0]] = source
                    continue
            kept.append(op)
        self.block.ops = kept
        if self.same:
            replace_in_readers(self.block, self.same)

    def folded(self, op: Operator, p: Primitive) -> Operator:
        self.shapes_as_attrs(op)
        constant = self.as_constant(op, p)
        if constant is not None:
            return constant
        if p.broadcasts:
            self.numbers(op, p)
            self.one_factor(op)
        return op

    def remember(self, op: Operator, p: Primitive) -> None:
        in_rows = self.makes_rows(op, p)
        for name in op.output_names:
            if in_rows:
                self.rows.add(name)
            if name in self.once:
                self.makers[name] = op
                if op.type == "fill_constant":
                    self.constant[name] = op

    def makes_rows(self, op: Operator, p: Primitive) -> bool:
        """Whether the result lies row by row; where operands differ, NumPy takes rows."""
        if op.type in _ALWAYS_ROWS:
            return True
        if op.type in _AS_THEIR_INPUTS:
            return all(map(self.in_rows, op.input_names))
        if not p.broadcasts:
            return False
        shape = self.block.var(op.output_names[0]).shape
        full = (n for n in op.input_names if self.block.var(n).shape == shape)
        return any(n in self.rows and n not in self.loose for n in full)

    def in_rows(self, name: str) -> bool:
        """Whether a result that this array decides lies row by row."""
        return self.has_no_order(name) or name in self.rows

    def has_no_order(self, name: str) -> bool:
        """Whether elements stand along one axis at most, or are one number in memory."""
        return name in self.loose or sum(n != 1 for n in self.block.var(name).shape) < 2

    # -- the rules -------------------------------------------------------------------------

    def passed_on(self, op: Operator) -> str | None:
        """The input that the operator only hands on, if its output's name is free to go."""
        if len(op.output_names) != 1 or len(op.input_names) != 1:
            return None
        (name,), (out,) = op.input_names, op.output_names
        if out in self.held or out not in self.once or name not in self.fixed:
            return None
        var, made = self.block.var(name), self.block.var(out)
        if var.shape != made.shape or var.dtype != made.dtype or -1 in var.shape:
            return name if op.type == "assign" else None
        same = op.type in _SAME_SHAPE or op.type in ("assign", "cast", "discretize")
        return name if same or _is_neutral(op) else None

    def shapes_as_attrs(self, op: Operator) -> None:
        for slot in [s for s in op.inputs if s.endswith("_like")]:
            attr, shapes = (
                slot.removesuffix("_like"),
                [self.block.var(n).shape for n in op.inputs[slot]],
            )
            if not any(-1 in shape for shape in shapes):
                del op.inputs[slot]
                op.attrs[attr] = like_value(attr, shapes)

    def as_constant(self, op: Operator, p: Primitive) -> Operator | None:
        """``fill_constant`` for an operator whose result is one value in every place."""
        if op.type == "fill_constant" or p.list_output or len(p.outputs) > 1:
            return None
        var = self.block.var(op.output_names[0])
        if -1 in var.shape or int(np.prod(var.shape)) > _LIMIT or var.dtype.kind not in "fiub":
            return None
        if op.type in ("fill_zeros_like", "fill_ones_like"):
            if not self.in_rows(op.input_names[0]):
                self.loose.add(var.name)
            return _filled(op, var, float(op.type == "fill_ones_like"))
        if not op.inputs or not all(n in self.constant for n in op.input_names):
            return None
        slots = {s: [self.value(n) for n in names] for s, names in op.inputs.items()}
        with np.errstate(all="ignore"):
            (result,) = map(np.asarray, run_kernel(p, slots, op.attrs))
        if not result.size or not (result == result.flat[0]).all():
            return None
        if not any(result.strides):
            self.loose.add(op.output_names[0])
        return _filled(op, var, result.flat[0].item())

    def value(self, name: str) -> np.ndarray[Any, Any]:
        """A constant as it lies in memory where the program is interpreted."""
        attrs = self.constant[name].attrs
        shape, value = attrs.get("shape", ()), attrs.get("value", 0.0)
        full = np.full(
            (1,) * len(shape) if name in self.loose else shape, value, attrs.get("dtype", "float64")
        )
        return np.broadcast_to(full, shape)

    def numbers(self, op: Operator, p: Primitive) -> None:
        """A constant array becomes a number, where the other operand has the shape and dtype of the result.

        And its order in memory, too: sums over several axes go through memory as it lies.
        """
        if len(p.inputs) != 2 or len(op.input_names) != 2:
            return
        out = self.block.var(op.output_names[0])
        for slot, other in (p.inputs, p.inputs[::-1]):
            (name,), array = op.inputs[slot], self.block.var(op.inputs[other][0])
            filled = self.constant.get(name)
            if filled is None or array.dtype != self.block.var(name).dtype:
                continue
            order = self.has_no_order(name) or self.in_rows(op.inputs[other][0])
            if (
                order
                and array.shape == out.shape
                and -1 not in out.shape
                and array.dtype.kind == "f"
            ):
                del op.inputs[slot]
                op.attrs = {**op.attrs, slot: filled.attrs["value"]}
                return

    def one_factor(self, op: Operator) -> None:
        """``(x * 2) * c`` is ``x * 2c``: exact, as a power of two only moves the exponent."""
        factor = _factor(op)
        inner = self.makers.get(op.input_names[0]) if factor is not None else None
        if inner is None or factor is None or (other := _factor(inner)) is None:
            return
        source = inner.input_names[0]
        if source not in self.fixed or self.block.var(source).dtype.kind != "f":
            return
        if self.block.var(source).dtype != self.block.var(op.output_names[0]).dtype:
            return
        if _is_power_of_two(factor) or _is_power_of_two(other):
            op.inputs = {"x": [source]}
            op.attrs = {"y": factor * other}


def _filled(op: Operator, var: Any, value: Any) -> Operator:
    attrs = {"shape": var.shape, "value": value, "dtype": var.dtype.name}
    return Operator("fill_constant", {}, op.outputs, attrs, op.role, op.forward_op).at(op)


def _factor(op: Operator) -> float | None:
    """The number of an operator ``x * number``."""
    if op.type != "mul" or len(op.input_names) != 1:
        return None
    slot = "y" if "x" in op.inputs else "x"
    value = op.attrs.get(slot)
    return float(value) if isinstance(value, int | float) else None


def _is_power_of_two(value: float) -> bool:
    return (
        value != 0
        and np.isfinite(value)
        and abs(frexp(value)[0]) == 0.5
        and abs(np.log2(abs(value))) < 64
    )


def _is_neutral(op: Operator) -> bool:
    number, slots = _NEUTRAL.get(op.type, (None, ""))
    values = [op.attrs.get(s) for s in slots if s not in op.inputs]
    return any(not isinstance(v, np.ndarray) and v == number for v in values)
