"""The bugs of the capstone: one change in the backward part of any program."""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad import static

from ...primitives.arguments import ByName, Slots

#: One bug that could be planted: the operator, its new inputs, its new attrs, what it does then.
Bug = tuple[int, Slots, ByName, str]


class Hunt:
    """A program with one bug in its backward part; ``guess`` tells whether an operator is it."""

    def __init__(self, program, number: int, story: str) -> None:
        self.program = program
        self._number, self._story = number, story

    def guess(self, number: int) -> str:
        """What there is to say about a guess.

        Errors: `TypeError` where it is no whole number, `IndexError` where the program has no such
        operator.
        """
        ops = self.program.global_block().ops
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(
                f"a guess is the number of an operator, from 0 to {len(ops) - 1}, not {number!r}: "
                "write hunt.guess(12) for the one that the picture calls #12"
            )
        if not 0 <= number < len(ops):
            raise IndexError(f"the program has the operators 0 to {len(ops) - 1}, not {number}")
        op = ops[number]
        if number == self._number:
            return f"Found. Operator {number}, {op.type}: {self._story}"
        does = "is forward, and forward is right" if op.role == "forward" else "does what it should"
        return f"No. Operator {number}, {op.type}, {does}."

    def __repr__(self) -> str:
        return "<a program with one bug; guess(number) tells whether you found it>"


def plant(program, feed: ByName, wanted: Sequence[str], seed: int) -> Hunt:
    """Change one operator of the backward part so that a wanted gradient comes out wrong.

    Which operator and how depends on the seed only; the program itself is changed.
    Errors: `ValueError` for a program without backward part, or with nothing that matters in it.
    """
    right = gradients(program, feed, wanted)
    candidates = list(bugs(program.global_block()))
    random.Random(seed).shuffle(candidates)
    for number, inputs, attrs, story in candidates:
        op = program.global_block().ops[number]
        before = op.inputs, op.attrs
        op.inputs, op.attrs = inputs, attrs
        program.changed()
        now = gradients(program, feed, wanted)
        if not all(map(partial(np.allclose, rtol=1e-6, atol=1e-9), right, now)):  # but for rounding
            return Hunt(program, number, story)
        op.inputs, op.attrs = before
        program.changed()
    raise ValueError(
        "no bug can be hidden here: give a program with a backward part, and the "
        "names of the gradients that it makes"
    )


def gradients(program, feed: ByName, wanted: Sequence[str]) -> list[Any]:
    """The wanted gradients after one run."""
    names = [f"{name}@GRAD" for name in wanted]
    return static.Executor().run(program, feed=feed, fetch_list=names)


def bugs(block) -> Iterator[Bug]:
    """Every bug that could be planted in a block."""
    forward = [op for op in block.ops if op.role == "forward"]
    values = dict.fromkeys(name for op in forward for name in (*op.input_names, *op.output_names))
    for number, op in enumerate(block.ops):
        if op.role == "forward":
            continue
        if op.type == "fill_constant":
            story = "backward begins with 2 instead of 1."
            yield number, op.inputs, {**op.attrs, "value": 2.0}, story
        elif op.type == "sum":
            first, last = op.input_names[0], op.input_names[-1]
            story = f"it adds {first} in place of {last}."
            yield number, {"x": [*op.input_names[:-1], first]}, op.attrs, story
        else:
            for slot, names in op.inputs.items():
                if slot.endswith("_grad") or len(names) != 1:
                    continue
                shape = block.var(names[0]).shape
                for other in values:
                    if other != names[0] and block.var(other).shape == shape:
                        story = f"it reads {other} where {names[0]} belongs."
                        yield number, {**op.inputs, slot: [other]}, op.attrs, story
