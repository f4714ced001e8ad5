"""A puzzle: put the operators of a backward part in order, and leave the wrong ones out.

>>> puzzle = Parsons(lambda x, w: (x * w) * w)
>>> print(puzzle)                                                       # doctest: +ELLIPSIS
a  ...
>>> puzzle(puzzle.answer).verdict
'✓ every gradient is right'
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad import static

from .judge import one_line


class Tried(NamedTuple):
    """What became of an order: a sentence, and the program to look at."""

    verdict: str
    program: Any

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        return mg.draw(self.program)._repr_mimebundle_()


class Parsons:
    """The backward part of a function of x and w, shuffled, with operators that do not belong."""

    def __init__(self, function: Callable[..., Any], seed: int = 0) -> None:
        self.program = static.Program()
        with static.program_guard(self.program):
            x, w = (static.parameter(name, np.array([2.0, 3.0])) for name in "xw")
            static.append_backward(mg.sum(function(x, w)))
        ops = self.program.global_block().ops
        right = [op for op in ops if op.role == "backward"]
        self._all = [*right, *_wrong(right)]
        random.Random(seed).shuffle(self._all)
        self.answer = "".join(ascii_lowercase[self._all.index(op)] for op in right)
        self._expected = self._run(self.program)

    def __str__(self) -> str:
        return "\n".join(f"{ascii_lowercase[i]}  {op}" for i, op in enumerate(self._all))

    def __call__(self, letters: str) -> Tried:
        """Put the chosen operators behind the forward part, run it, and say what comes of it.

        Raises ValueError for a letter that the puzzle does not have.
        """
        letters = letters.replace(" ", "")
        known = ascii_lowercase[: len(self._all)]
        if strange := set(letters) - set(known):
            raise ValueError(f"no line {min(strange)!r}: the letters are {known}")
        program = self.program.clone()
        block = program.global_block()
        chosen = [copy.copy(self._all[known.index(letter)]) for letter in letters]
        block.ops = [*(op for op in block.ops if op.role != "backward"), *chosen]
        program.changed()
        return Tried(self._verdict(program), program)

    def _verdict(self, program: Any) -> str:
        try:
            found = self._run(program)
        except Exception as error:
            return f"✗ {one_line(str(error).partition(chr(10))[0])}"
        wrong = [
            name for name, value in self._expected.items() if not np.allclose(found[name], value)
        ]
        return f"✗ {' and '.join(wrong)} is wrong" if wrong else "✓ every gradient is right"

    def _run(self, program: Any) -> dict[str, Any]:
        names = ["x@GRAD", "w@GRAD"]
        return dict(zip(names, static.Executor().run(program, fetch_list=names), strict=True))


def _wrong(right: list[Any]) -> Iterator[Any]:
    """Operators that look as if they belonged: a sum without a part, a factor in the place of the other."""
    for op in right:
        for slot, names in op.inputs.items():
            wrong = copy.copy(op)
            if op.type == "sum":
                wrong.inputs = {slot: names[:-1]}
            elif slot in ("x", "y") and op.type.endswith("_grad") and len(op.inputs) == 3:
                wrong.inputs = {**op.inputs, slot: op.inputs["y" if slot == "x" else "x"]}
            else:
                continue
            if str(wrong) != str(op):
                yield wrong
                break
