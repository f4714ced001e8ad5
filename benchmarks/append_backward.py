"""Time to write the backward part of programs of 100 to 20,000 operators, and to verify the result.

    python benchmarks/append_backward.py [sizes]

Five programs: a chain of sines, layers that take ten matrices and biases in turn, layers with parameters of their own, one variable
read by all, a shared parameter.
Times are process times, the best of three; the last column relates append_backward to a plain Python loop on the same
machine, so that runs on different machines can be compared.
"""

from __future__ import annotations

import gc
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


def sines(count: int) -> Any:
    """A chain of sines."""
    h = static.parameter("x", np.full(4, 0.5))
    for _ in range(count):
        h = mg.sin(h)
    return h.sum()


def tied(count: int) -> Any:
    """Layers, three operators each, that take ten matrices and biases in turn."""
    pairs = [(static.parameter(f"w{k}", np.ones((8, 8))), static.parameter(f"b{k}", np.ones(8))) for k in range(10)]
    h = static.data("x", [4, 8])
    for k in range(count // 3):
        w, b = pairs[k % 10]
        h = mg.tanh(mg.matmul(h, w) + b)
    return h.sum()


def layers(count: int) -> Any:
    """Layers with a matrix and a bias each, three operators per layer."""
    h = static.data("x", [-1, 4])
    for k in range(count // 3):
        w, b = static.parameter(f"w{k}", np.ones((4, 4))), static.parameter(f"b{k}", np.ones(4))
        h = mg.tanh(mg.matmul(h, w) + b)
    return h.sum()


def fan_out(count: int) -> Any:
    """One variable that half of the operators read."""
    x = static.parameter("x", np.full(4, 0.5))
    total = mg.sin(x)
    for _ in range(count // 2):
        total = total + mg.sin(x)
    return total.sum()


def shared(count: int) -> Any:
    """A chain that multiplies by one parameter again and again."""
    h, w = static.data("x", [4]), static.parameter("w", np.full(4, 0.5))
    for _ in range(count // 2):
        h = mg.tanh(h * w)
    return h.sum()


def measure(network: Callable[[int], Any], count: int) -> tuple[float, float, float]:
    """Microseconds: building and append_backward per forward operator, verify per operator."""
    times = []
    for _ in range(REPEAT):
        program = static.Program()
        made: list[Any] = []
        with static.program_guard(program):
            build = seconds(lambda made=made: made.append(network(count)))
            gc.collect()
            forward = len(program.global_block().ops)
            backward = seconds(lambda made=made: static.append_backward(made[0]))
        check = seconds(lambda program=program: static.verify(program))
        times.append((build / forward, backward / forward, check / len(program.global_block().ops)))
    return tuple(min(column) * 1e6 for column in zip(*times, strict=True))  # type: ignore[return-value]


def loop() -> float:
    """Nanoseconds per turn of an empty loop that adds."""

    def turn() -> None:
        total = 0
        for k in range(300_000):
            total += k

    return min(seconds(turn) for _ in range(REPEAT)) / 300_000 * 1e9


def main(sizes: list[int]) -> None:
    """Print one line per program and size."""
    print(
        "program   operators    build  append_backward  verify     (µs per operator)  turns of a loop"
    )
    for network in (sines, tied, layers, fan_out, shared):
        for count in sizes:
            build, backward, check = measure(network, count)
            turns = backward * 1000 / loop()
            row = f"{network.__name__:8s} {count:10,d} {build:8.1f} {backward:16.1f} {check:7.1f}"
            print(f"{row} {turns:37.0f}", flush=True)


if __name__ == "__main__":
    main([int(a.replace(",", "")) for a in sys.argv[1:]] or [100, 1_000, 10_000, 20_000])
