"""Schedules: from the number of a step (0, 1, …), a number or a Variable, to the learning rate."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from .. import ops
from .checks import check_number, check_steps

Rate = float | Callable[[Any], Any]


def exponential(rate: float, factor: float) -> Rate:
    """``rate * factor ** count``.

    >>> schedule = exponential(0.4, 0.5)
    >>> [float(schedule(count)) for count in (0, 1, 2)]
    [0.4, 0.2, 0.1]
    """
    check_number("rate", rate)
    return lambda count: rate * ops.pow(factor, count)


def step_decay(rate: float, every: int, factor: float = 0.1) -> Rate:
    """Times ``factor`` after every ``every`` steps.

    >>> schedule = step_decay(0.4, every=2, factor=0.5)
    >>> [float(schedule(count)) for count in (0, 1, 2, 4)]
    [0.4, 0.4, 0.2, 0.1]
    """
    check_number("rate", rate)
    check_steps("every", every)
    return lambda count: rate * ops.pow(factor, ops.floor(count / every))


def linear(rate: float, steps: int, end: float = 0.0) -> Rate:
    """In a straight line from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = linear(0.4, steps=4)
    >>> [float(schedule(count)) for count in (0, 2, 4, 9)]
    [0.4, 0.2, 0.0, 0.0]
    """
    check_number("rate", rate)
    check_steps("steps", steps)
    return lambda count: rate + (end - rate) * ops.minimum(count / steps, 1.0)


def cosine(rate: float, steps: int, end: float = 0.0) -> Rate:
    """Half a wave of the cosine from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = cosine(0.1, steps=10)
    >>> [round(float(schedule(count)), 3) for count in (0, 5, 10, 20)]
    [0.1, 0.05, 0.0, 0.0]
    """

    check_number("rate", rate)
    check_steps("steps", steps)

    def schedule(count: Any) -> Any:
        way = ops.minimum(count / steps, 1.0)
        return end + (rate - end) * 0.5 * (1.0 + ops.cos(pi * way))

    return schedule


def warmup(rate: Rate, steps: int) -> Rate:
    """Up to a rate, or to a schedule, in a straight line over the first ``steps`` steps.

    >>> schedule = warmup(0.4, steps=4)
    >>> [round(float(schedule(count)), 3) for count in (0, 1, 3, 9)]
    [0.1, 0.2, 0.4, 0.4]
    """

    if not callable(rate):
        check_number("rate", rate)
    check_steps("steps", steps)

    def schedule(count: Any) -> Any:
        full = rate(count) if callable(rate) else rate
        return full * ops.minimum((count + 1.0) / steps, 1.0)

    return schedule
