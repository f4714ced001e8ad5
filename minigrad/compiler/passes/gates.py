"""The gates of a cell at once: sigmoid and tanh of the parts of one array are one tanh of the whole.

``sigmoid(z) = tanh(z / 2) / 2 + 1 / 2``, so where parts of z go through either, ``tanh(z * a) * a + b`` is all of them,
with rows a and b that hold 1/2 for sigmoids, 1 and 0 for tanh.  The slopes are ``a² - (out - b)²``.  An LSTM has four
such gates; one call on memory without gaps costs less than four on its columns.  The last bits differ (those of
1/2, where a sigmoid is near 0), hence for ``exact=False``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...static.program.block import Block
from ...static.program.operator import Operator
from ...static.program.program import Program
from ...static.program.variable import Variable
from ..program_passes.names import forget_unused, held_names, written_once
from .stack_alike import SMALL


def fuse_gates(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which the gates are made together; ``keep`` names variables that must stay.

    >>> import minigrad as mg
    >>> def cell(z):
    ...     a, b = mg.split(z, 2, axis=1)
    ...     return mg.sigmoid(a) * mg.tanh(b)
    >>> made = fuse_gates(mg.trace(cell, mg.ones([4, 6])))
    >>> [op.type for op in made.global_block().ops]
    ['mul', 'tanh', 'mul', 'add', 'split', 'mul']
    """
    fused = program.clone()
    held = held_names(fused) | set(keep)
    for block in fused.blocks:
        _Gates(block, held).run()
    forget_unused(fused, set(keep))
    return fused


class _Gates:
    """The gates of one block."""

    def __init__(self, block: Block, held: set[str]) -> None:
        self.block, self.once = block, written_once(block)
        self.free = self.once - held
        self.readers: dict[str, list[Operator]] = {}
        for other in block.program.blocks:
            for op in other.ops:
                for name in op.input_names:
                    self.readers.setdefault(name, []).append(op)
        self.makers = {n: op for op in block.ops for n in op.output_names}
        self.rows: dict[Any, np.ndarray[Any, Any]] = {}  # one array for equal rows

    def run(self) -> None:
        for split in [op for op in self.block.ops if op.type == "split"]:
            acts = [self.activation(n) for n in split.outputs["out"]]
            if self.fits(split) and len(acts) > 1 and all(acts):
                self.join(split, acts)

    def fits(self, split: Operator) -> bool:
        z = self.block.find_var(split.inputs["x"][0])
        if z is None or -1 in z.shape or z.dtype.kind != "f" or len(z.shape) < 2:
            return False
        return split.attrs.get("axis", 0) in (-1, len(z.shape) - 1)

    def activation(self, part: str) -> Any:
        """The sigmoid or tanh that reads a part, if nothing else does but its gradient."""
        readers = self.readers.get(part, [])
        plain = len(readers) == 1 and readers[0].type in ("sigmoid", "tanh") and part in self.free
        own = plain and readers[0] in self.block.ops and readers[0].output_names[0] in self.once
        return (
            readers[0] if own and (readers[0].type == "tanh" or self.is_gate(readers[0])) else None
        )

    def is_gate(self, sigmoid: Operator) -> bool:
        """Whether it is only multiplied and added.  As a tanh, sigmoid(-20) may be 0: its logarithm would tell."""
        readers = self.readers.get(sigmoid.output_names[0], [])
        return all(
            op.type.removesuffix("_grad") in ("mul", "add", "sub", "sigmoid") for op in readers
        )

    def row(self, split: Operator, acts: list[Operator], sigmoid: float, tanh: float) -> Any:
        """A number for each column, by what its part goes through."""
        sizes = [self.block.var(n).shape[-1] for n in split.outputs["out"]]
        dtype = self.block.var(split.outputs["out"][0]).dtype
        values = [sigmoid if a.type == "sigmoid" else tanh for a in acts]
        shape = self.block.var(split.outputs["out"][0]).shape[:-1]
        key = dtype, shape, *sizes, *values
        if key not in self.rows:
            row = np.repeat(np.array(values, dtype), sizes)
            # an operand of equal shape is twice as fast
            small = int(np.prod(shape)) * row.size <= SMALL
            self.rows[key] = np.tile(row, (*shape, 1)) if small else row
        return self.rows[key]

    def join(self, split: Operator, acts: list[Operator]) -> None:
        a, b = self.row(split, acts, 0.5, 1.0), self.row(split, acts, 0.5, 0.0)
        z = split.inputs["x"][0]
        operators: list[Operator] = []
        half = self.add(operators, acts[0], "mul", {"x": [z]}, {"y": a}, z)
        turned = self.add(operators, acts[0], "tanh", {"x": [half]}, {}, z)
        scaled = self.add(operators, acts[0], "mul", {"x": [turned]}, {"y": a}, z)
        whole = self.add(operators, acts[0], "add", {"x": [scaled]}, {"y": b}, z)
        at = self.block.ops.index(split)
        self.block.ops[at:at] = operators
        split.inputs, split.outputs = (
            {"x": [whole]},
            {"out": [n for op in acts for n in op.output_names]},
        )
        self.block.ops = [op for op in self.block.ops if not any(op is act for act in acts)]
        self.join_gradients(acts, whole, self.row(split, acts, 0.25, 1.0), b)

    def join_gradients(self, acts: list[Operator], whole: str, top: Any, b: Any) -> None:
        """The gradients of the activations are joined first, and multiplied by all slopes then."""
        slopes = [self.slope(act) for act in acts]
        if not all(slopes):
            return
        joints = {id(op): op for s in slopes for op in self.readers.get(s.output_names[0], [])}
        joint = next(iter(joints.values())) if len(joints) == 1 else None
        if joint is None or joint.type != "concat" or joint not in self.block.ops:
            return
        if joint.inputs["x"] != [s.output_names[0] for s in slopes]:
            return
        operators: list[Operator] = []
        (out,) = joint.output_names
        joined = self.new(out)
        distance = self.add(operators, joint, "sub", {"x": [whole]}, {"y": b}, whole)
        square = self.add(operators, joint, "mul", {"x": [distance], "y": [distance]}, {}, whole)
        steep = self.add(operators, joint, "sub", {"y": [square]}, {"x": top}, whole)
        joint.inputs, joint.outputs = (
            {"x": [s.inputs["out_grad"][0] for s in slopes]},
            {"out": [joined]},
        )
        last = Operator("mul", {"x": [joined], "y": [steep]}, {"out": [out]}, {}, joint.role)
        at = self.block.ops.index(joint)
        self.block.ops[at : at + 1] = [*operators, joint, _standing_for(joint, last)]
        self.block.ops = [op for op in self.block.ops if not any(op is s for s in slopes)]

    def slope(self, act: Operator) -> Any:
        """The gradient of an activation, if it is free to go."""
        kind, (out,) = f"{act.type}_grad", act.output_names
        slopes = [
            op for op in self.readers.get(out, []) if op.type == kind and op in self.block.ops
        ]
        single = len(slopes) == 1 and slopes[0].inputs.get("out") == [out]
        return slopes[0] if single and slopes[0].output_names[0] in self.free else None

    def add(
        self,
        operators: list[Operator],
        origin: Operator,
        kind: str,
        inputs: Any,
        attrs: Any,
        like: str,
    ) -> str:
        """One more operator; returns the name of what it makes."""
        name = self.new(like)
        op = Operator(kind, inputs, {"out": [name]}, attrs, origin.role)
        operators.append(_standing_for(origin, op))
        return name

    def new(self, like: str) -> str:
        var = self.block.find_var(like)
        assert var is not None
        name = self.block.program.unique_name(like)
        self.block.vars[name] = Variable.like(self.block, name, var)
        return name


def _standing_for(origin: Operator, op: Operator) -> Operator:
    """The operator, which messages and comments call by another one's name."""
    op.forward_op = origin.forward_op
    return op.at(origin)
