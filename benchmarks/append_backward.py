"""Time to write the backward part of programs of 100 to 20,000 operators, beside the eager engine.

    python benchmarks/append_backward.py [sizes]

Times are process times, the best of three; the last column relates them to a plain Python loop on the same machine, so
that runs on different machines can be compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

REPEAT = 3


def seconds(action: Callable[[], Any]) -> float:
    """The process time of a call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def network(x: Any, w: Any, count: int) -> Any:
    """A chain of ``count`` operators that share a weight."""
    h = x
    for _ in range(count // 2):
        h = mg.tanh(h * w)
    return h.sum()


def built(count: int) -> tuple[static.Program, Any]:
    """The program of the chain."""
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [4]), static.parameter("w", np.full(4, 0.5))
        return program, network(x, w, count)


def measure(count: int) -> tuple[float, float, float, float]:
    """Microseconds per operator: building, append_backward, eager forward, eager backward."""
    times = []
    for _ in range(REPEAT):
        made: list[Any] = []
        build = seconds(lambda made=made: made.extend(built(count)))
        program, loss = made
        with static.program_guard(program):
            backward = seconds(lambda loss=loss: static.append_backward(loss))
        x, w = mg.tensor(np.ones(4)), mg.tensor(np.full(4, 0.5), requires_grad=True)
        out: list[Any] = []
        forward = seconds(lambda x=x, w=w, out=out: out.append(network(x, w, count)))
        times.append((build, backward, forward, seconds(out[0].backward)))
    return tuple(min(column) / count * 1e6 for column in zip(*times, strict=True))  # type: ignore[return-value]


def loop() -> float:
    """Nanoseconds per turn of an empty loop that adds."""

    def turn() -> None:
        total = 0
        for k in range(300_000):
            total += k

    return min(seconds(turn) for _ in range(REPEAT)) / 300_000 * 1e9


def main(sizes: list[int]) -> None:
    """Print one line per size."""
    print(
        "   operators     build  append_backward  eager forward  eager backward     (µs per operator)  turns of a loop"
    )
    for count in sizes:
        build, backward, forward, eager = measure(count)
        turns = backward * 1000 / loop()
        print(
            f"{count:12,d}  {build:8.1f}  {backward:15.1f}  {forward:13.1f}  {eager:14.1f}  {turns:41.0f}"
        )


if __name__ == "__main__":
    main([int(a.replace(",", "")) for a in sys.argv[1:]] or [100, 1_000, 10_000, 20_000])
