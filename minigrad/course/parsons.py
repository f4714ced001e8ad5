"""A puzzle: put the operators of a backward part in order, and leave the wrong ones out.

>>> puzzle = Parsons(lambda x, w: (x * w) * w)
>>> print(puzzle)                                                       # doctest: +ELLIPSIS
a  ...
>>> puzzle.verdict(puzzle.ordered(puzzle.answer))
'✓ every gradient is right'
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from string import ascii_lowercase
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

from .judge import one_line


class Parsons:
    """The backward part of a function of x and w, shuffled, with operators that do not belong."""

    def __init__(self, function: Callable[..., Any], seed: int = 0) -> None:
        self.program = static.Program()
        with static.program_guard(self.program):
            x = static.parameter("x", np.array([0.2, 0.3]))
            w = static.parameter("w", np.array([0.5, 0.7]))
            static.append_backward(mg.sum(function(x, w)))
        ops = self.program.global_block().ops
        right = [op for op in ops if op.role == "backward"]
        strangers: list[Any] = []
        self._expected = self._run(self.program)
        self._all = list(right)
        for number, wrong in _wrong(right):
            self._all = [*right[:number], wrong, *right[number + 1 :]]
            if self.verdict(self.ordered(ascii_lowercase[: len(right)])).startswith("✗"):
                strangers.append(wrong)
        self._all = [*right, *strangers]
        random.Random(seed).shuffle(self._all)
        self.answer = "".join(ascii_lowercase[self._all.index(op)] for op in right)

    def __str__(self) -> str:
        return "\n".join(f"{ascii_lowercase[i]}  {op}" for i, op in enumerate(self._all))

    def __call__(self, letters: str) -> Any:
        """Say what comes of this order, and draw it.

        Raises ValueError for a letter that the puzzle does not have.
        """
        program = self.ordered(letters)
        print(self.verdict(program) if letters else "○ your turn: the letters, in order")
        return mg.draw(program)

    def ordered(self, letters: str) -> Any:
        """The program with the chosen operators behind its forward part."""
        letters = letters.replace(" ", "")
        known = ascii_lowercase[: len(self._all)]
        if strange := set(letters) - set(known):
            raise ValueError(f"no line {min(strange)!r}: the letters are {known}")
        program = self.program.clone()
        block = program.global_block()
        chosen = [copy.copy(self._all[known.index(letter)]) for letter in letters]
        block.ops = [*(op for op in block.ops if op.role != "backward"), *chosen]
        program.changed()
        return program

    def verdict(self, program: Any) -> str:
        """What comes of running it: every gradient right, one wrong, or an operator that cannot run."""
        try:
            gradients = self._run(program)
        except Exception as error:
            return f"✗ {one_line(str(error).partition(chr(10))[0])}"
        expected = self._expected
        wrong = [name for name in expected if not np.allclose(gradients[name], expected[name])]
        return f"✗ {' and '.join(wrong)} is wrong" if wrong else "✓ every gradient is right"

    def _run(self, program: Any) -> dict[str, Any]:
        names = ["x@GRAD", "w@GRAD"]
        return dict(zip(names, static.Executor().run(program, fetch_list=names), strict=True))


def _wrong(right: list[Any]) -> Iterator[tuple[int, Any]]:
    """Operators that look as if they belonged: a sum without a part, a factor in the place of the other."""
    for number, op in enumerate(right):
        for slot, names in op.inputs.items():
            wrong = copy.copy(op)
            if op.type == "sum":
                wrong.inputs = {slot: names[:-1]}
            elif slot in ("x", "y") and op.type.endswith("_grad") and len(op.inputs) == 3:
                wrong.inputs = {**op.inputs, slot: op.inputs["y" if slot == "x" else "x"]}
            else:
                continue
            if str(wrong) != str(op):
                yield number, wrong
                break
