"""The tour of docs/tour.md is the way that values really take: every stop is called, in its order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import static

PACKAGE = Path(mg.__file__).parent
TOUR = (PACKAGE.parent / "docs" / "tour.md").read_text(encoding="utf-8")
STOP = re.compile(r"^\d+\. `([\w/]+\.py)` · `([\w.<>]+)`", re.MULTILINE)


def stops(walk: str) -> list[tuple[str, str]]:
    """(file, function) of each stop of a walk, in order."""
    section = TOUR.split(f"## {walk}", 1)[1].split("\n## ", 1)[0]
    return [(match[1], match[2]) for match in STOP.finditer(section)]


def calls(function: Callable[[], object]) -> list[tuple[str, str]]:
    """(file, qualified name) of every function of the package that runs, in order."""
    seen = []

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            seen.append((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def through_mul():
    """A fresh primitive, so that nothing of it was prepared by another test."""

    @mg.elementwise
    def times(x, y):
        return np.multiply(x, y)

    times.grad(x=lambda y, out_grad: out_grad * y, y=lambda x, out_grad: out_grad * x)
    x = mg.tensor(3.0, requires_grad=True)
    times(x, mg.tensor(2.0)).backward()
    mg.primitives.REGISTRY.pop("times")
    assert x.grad.item() == 2.0


def through_append_backward():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2, 3])
        w = static.parameter("w", np.ones((3, 1)))
        loss = mg.mean(mg.matmul(x, w) * mg.matmul(x, w))
        static.append_backward(loss)
    feed = {"x": np.ones((2, 3))}
    static.Executor().run(program, feed=feed, fetch_list=["w@GRAD"])
    static.compile(program, feed=feed, fetch=["w@GRAD"])(**feed)


@pytest.mark.parametrize(
    ("walk", "function"),
    [("x through mul", through_mul), ("loss through append_backward", through_append_backward)],
)
def test_every_stop_of_a_walk_is_called_in_its_order(walk, function):
    seen = calls(function)
    listed = stops(walk)
    assert len(listed) >= 8
    place = 0
    for stop in listed:
        assert stop in seen[place:], f"{stop} is not called, or not after the stop before it"
        place = seen.index(stop, place) + 1
