"""A puzzle: put the operators of a backward part in order, and leave the wrong ones out.

>>> puzzle = Parsons(lambda x, w: (x * w) * w)
>>> print(puzzle)                                                       # doctest: +ELLIPSIS
a  ...
>>> puzzle.verdict(puzzle.ordered(puzzle.answer))
'✓ every gradient is right'
"""

import copy
import random
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

from ..primitives.arguments import Function, Listed
from .checks.capstone import gradients
from .judge import one_line


class Parsons:
    """The backward part of a function of x and w, shuffled, with operators that do not belong."""

    def __init__(self, function: Function, seed: int = 0) -> None:
        self.program, right = with_backward(function, {"x": [0.2, 0.3], "w": [0.5, 0.7]})
        self._expected = gradients(self.program, {}, "xw")
        ops = list(right)
        for number, op in enumerate(right):
            # what looks as if it belonged: a sum without a part, a factor in the place of the other; else a copy
            wrong = copy.copy(op)
            if op.type == "sum":
                wrong.inputs = {"x": op.inputs["x"][:-1]}
            elif [*op.inputs] == ["x", "y", "out_grad"]:
                wrong.inputs = {**op.inputs, "x": op.inputs["y"]}
            program = self._with([*right[:number], wrong, *right[number + 1 :]])
            if self.verdict(program).startswith("✗"):
                ops.append(wrong)
        random.Random(seed).shuffle(ops)
        self._lines = dict(zip(ascii_lowercase, ops, strict=False))
        self.answer = "".join(ascii_lowercase[ops.index(op)] for op in right)

    def __str__(self) -> str:
        return "\n".join(f"{letter}  {op}" for letter, op in self._lines.items())

    def __call__(self, letters: str) -> Any:
        """Say what comes of this order, and draw it.

        Raises ValueError for a letter that the puzzle does not have.
        """
        letters = letters.replace(" ", "")
        program = self.ordered(letters)
        verdict = self.verdict(program) if letters else "○ your turn: the letters, in order"
        if verdict[0] == "✓" and sorted(letters) != sorted(self.answer):
            verdict = "✗ every gradient is right, and one line does not belong"
        print(verdict)
        return mg.draw(program)

    def ordered(self, letters: str) -> Any:
        """The program with the chosen operators behind its forward part."""
        if strange := set(letters).difference(self._lines):
            known = "".join(self._lines)
            raise ValueError(f"no line {min(strange)!r}: the letters are {known}")
        return self._with([self._lines[letter] for letter in letters])

    def _with(self, backward: Listed) -> Any:
        program = self.program.clone()
        block = program.global_block()
        forward = [op for op in block.ops if op.role != "backward"]
        block.ops = [*forward, *map(copy.copy, backward)]
        program.changed()
        return program

    def verdict(self, program) -> str:
        """What comes of running it: every gradient right, one wrong, or an operator that cannot run."""
        try:
            computed = gradients(program, {}, "xw")
        except Exception as error:
            return f"✗ {one_line(str(error).partition(chr(10))[0])}"
        found = zip("xw", computed, self._expected, strict=True)
        wrong = [f"{name}@GRAD" for name, one, other in found if not np.allclose(one, other)]
        return f"✗ wrong: {' and '.join(wrong)}" if wrong else "✓ every gradient is right"


def with_backward(
    function: Function, parameters: Mapping[str, Sequence[float]]
) -> tuple[Any, Listed]:
    """A program that sums what a function gives, and the operators of its backward part."""
    with static.program_guard(static.Program()) as program:
        leaves = (static.parameter(name, np.array(value)) for name, value in parameters.items())
        static.append_backward(mg.sum(function(*leaves)))
    return program, [op for op in program.global_block().ops if op.role == "backward"]
