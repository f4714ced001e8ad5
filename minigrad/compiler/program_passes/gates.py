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
from .names import Rewriting, forget_unused, held_names, written_once

#: operators that read a sigmoid and see no difference: as a tanh, sigmoid(-20) may be 0, which a logarithm would tell
BLIND = ("mul", "add", "sub", "sigmoid", "mul_grad", "add_grad", "sub_grad", "sigmoid_grad")


def fuse_gates(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which the gates are made together; ``keep`` names variables that must stay.

    >>> import minigrad as mg
    >>> def cell(z):
    ...     a, b = mg.split(z, 2, axis=1)
    ...     return mg.sigmoid(a) * mg.tanh(b)
    >>> fused = fuse_gates(mg.trace(cell, mg.ones([4, 6])))
    >>> [op.type for op in fused.global_block().ops]
    ['mul', 'tanh', 'mul', 'add', 'split', 'mul']
    """
    fused = program.clone()
    held = held_names(fused) | set(keep)
    for block in fused.blocks:
        gates = _Gates(block, held)
        for split in [op for op in block.ops if op.type == "split"]:
            gates.join(split)
    forget_unused(fused, set(keep))
    return fused


class _Gates(Rewriting):
    """The gates of one block."""

    def __init__(self, block: Block, held: set[str]) -> None:
        super().__init__(block)
        self.free = written_once(block) - held

    def activation(self, part: str) -> Operator | None:
        """The sigmoid or tanh that reads a part, if nothing else does but its gradient."""
        readers = self.readers.get(part, []) if part in self.free else []
        if len(readers) != 1 or readers[0].type not in ("sigmoid", "tanh"):
            return None
        out = readers[0].output_names[0]
        blind = all(op.type in BLIND for op in self.readers.get(out, []))
        own = self.makers.get(out) is readers[0] and (blind or readers[0].type == "tanh")
        return readers[0] if own else None

    def join(self, split: Operator) -> None:
        """Let the whole go through one tanh before it is split."""
        z = self.block.var(split.inputs["x"][0])
        acts = [act for n in split.outputs["out"] if (act := self.activation(n)) is not None]
        last = len(z.shape) > 1 and split.attrs.get("axis", 0) in (-1, len(z.shape) - 1)
        if not last or z.dtype.kind != "f" or not 1 < len(acts) == len(split.outputs["out"]):
            return
        sizes = [self.shape(n)[-1] for n in split.outputs["out"]]

        def row(sigmoid: float, tanh: float) -> Any:
            """A number for each column, by what its part goes through."""
            values = [sigmoid if act.type == "sigmoid" else tanh for act in acts]
            return np.repeat(np.array(values, z.dtype), sizes)

        a, b = row(0.5, 1.0), row(0.5, 0.0)
        half = self.add(acts[0], "mul", {"x": [z.name]}, {"y": a}, z.shape)
        turned = self.add(acts[0], "tanh", {"x": half.output_names}, {}, z.shape)
        scaled = self.add(acts[0], "mul", {"x": turned.output_names}, {"y": a}, z.shape)
        whole = self.add(acts[0], "add", {"x": scaled.output_names}, {"y": b}, z.shape)
        split.inputs = {"x": whole.output_names}
        split.outputs = {"out": [n for act in acts for n in act.output_names]}
        self.replace(split, [half, turned, scaled, whole, split], acts)
        self.join_gradients(acts, whole.output_names, row(0.25, 1.0), b)

    def join_gradients(self, acts: list[Operator], whole: list[str], top: Any, b: Any) -> None:
        """The gradients of the activations are joined first, and multiplied by all slopes then."""
        slopes = [slope for act in acts if (slope := self.slope(act)) is not None]
        joints = {id(op): op for s in slopes for op in self.readers.get(s.output_names[0], [])}
        if len(slopes) < len(acts) or len(joints) != 1:
            return
        (joint,) = joints.values()
        names = [s.output_names[0] for s in slopes]
        if joint.type != "concat" or joint.inputs["x"] != names or joint not in self.block.ops:
            return
        shape, out = self.shape(joint.output_names[0]), joint.outputs
        distance = self.add(joint, "sub", {"x": whole}, {"y": b}, shape)
        factors = {"x": distance.output_names, "y": distance.output_names}
        square = self.add(joint, "mul", factors, {}, shape)
        steep = self.add(joint, "sub", {"y": square.output_names}, {"x": top}, shape)
        inputs = {"x": [s.inputs["out_grad"][0] for s in slopes]}
        joined = self.add(joint, "concat", inputs, joint.attrs, shape)
        factors = {"x": joined.output_names, "y": steep.output_names}
        last = self.add(joint, "mul", factors, {}, shape)
        last.outputs = out
        self.replace(joint, [distance, square, steep, joined, last], [joint, *slopes])

    def slope(self, act: Operator) -> Operator | None:
        """The gradient of an activation, if it is free to go."""
        kind, out = f"{act.type}_grad", act.output_names
        slopes = [op for op in self.readers.get(out[0], []) if op.type == kind]
        single = len(slopes) == 1 and slopes[0].inputs.get("out") == out
        return slopes[0] if single and slopes[0].output_names[0] in self.free else None

    def replace(self, at: Operator, operators: list[Operator], gone: list[Operator]) -> None:
        """Put operators in the place of one, and take others away."""
        k = self.block.ops.index(at)
        self.block.ops[k : k + 1] = operators
        dropped = {id(op) for op in gone}
        self.block.ops = [op for op in self.block.ops if id(op) not in dropped]
