"""Schedules: from the number of a step (0, 1, …), a number or a Variable, to the learning rate."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi
from typing import Any

import numpy as np

from .. import ops
from ..errors import ArgumentError, DTypeError, describe, refusal
from ..errors.calls import checked_constructor
from .checks import check_number, fitting_state

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
    check_number("every", every)
    return lambda count: rate * ops.pow(factor, ops.floor(count / every))


def linear(rate: float, steps: int, end: float = 0.0) -> Rate:
    """In a straight line from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = linear(0.4, steps=4)
    >>> [float(schedule(count)) for count in (0, 2, 4, 9)]
    [0.4, 0.2, 0.0, 0.0]
    """
    check_number("rate", rate)
    check_number("steps", steps)
    return lambda count: rate + (end - rate) * ops.minimum(count / steps, 1.0)


def cosine(rate: float, steps: int, end: float = 0.0) -> Rate:
    """Half a wave of the cosine from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = cosine(0.1, steps=10)
    >>> [round(float(schedule(count)), 3) for count in (0, 5, 10, 20)]
    [0.1, 0.05, 0.0, 0.0]
    """

    check_number("rate", rate)
    check_number("steps", steps)

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
    check_number("steps", steps)

    def schedule(count: Any) -> Any:
        full = rate(count) if callable(rate) else rate
        return full * ops.minimum((count + 1.0) / steps, 1.0)

    return schedule


# -- schedulers: the same as objects, which set the rates of an optimizer -----------------------


class LambdaLR:
    """Sets each group's rate to its first one times ``lr_lambda(count)``; ``step()`` counts on, once an epoch or step.

    ``lr_lambda`` may be a list, one function for each group.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = LambdaLR(optimizer, lambda count: 1 / (1 + count))
    >>> scheduler.step()
    >>> optimizer.lr, scheduler.get_last_lr()
    (0.2, [0.2])
    """

    def __init__(self, optimizer: Any, lr_lambda: Any) -> None:
        groups = getattr(optimizer, "param_groups", None)
        if groups is None:
            what = f"a scheduler sets the rates of an optimizer, not of {describe(optimizer)}"
            raise refusal(what, "optim.StepLR(optimizer, step_size=30)", DTypeError)
        functions = lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda] * len(groups)
        if len(functions) != len(groups) or not all(map(callable, functions)):
            what = f"lr_lambda is {describe(lr_lambda)}, and there are {len(groups)} groups"
            raise refusal(what, "a function, or a list with one for each group", ArgumentError)
        if any(callable(group["lr"]) for group in groups):
            what = "this optimizer has a schedule already: its lr is a function"
            raise refusal(what, "lr=0.1, a number", ArgumentError)
        self.optimizer, self.lr_lambdas, self.last_epoch = optimizer, list(functions), 0
        self.base_lrs = [group["lr"] for group in groups]
        self._set()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        checked_constructor(cls)

    def rate(self, base: float, factor: Callable[[int], float]) -> float:
        """The rate of a group, from its first one, at the present count."""
        return base * factor(self.last_epoch)

    def step(self) -> None:
        """Count on and set the rates."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self) -> list[float]:
        """The rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The count and the first rates: ``nn.save`` can store it."""
        return {"last_epoch": np.array(self.last_epoch), "base_lrs": np.array(self.base_lrs, float)}

    def load_state_dict(self, state: Any) -> None:
        """Go on where another scheduler of the same kind stopped."""
        values = fitting_state(type(self).__name__, self.state_dict(), state)
        self.last_epoch = int(values["last_epoch"])
        self.base_lrs = values["base_lrs"].tolist()
        self._set()

    def _set(self) -> None:
        rates = [self.rate(b, f) for b, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


class StepLR(LambdaLR):
    """Times ``gamma`` after every ``step_size`` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> scheduler.step()
    >>> optimizer.lr
    0.2
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        check_number("step_size", step_size)
        super().__init__(optimizer, lambda count: gamma ** (count // step_size))


class MultiStepLR(LambdaLR):
    """Times ``gamma`` at each count of ``milestones``.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = MultiStepLR(optimizer, milestones=[1, 5], gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, milestones: Any, gamma: float = 0.1) -> None:
        counts = [int(m) for m in milestones]
        super().__init__(optimizer, lambda count: gamma ** sum(m <= count for m in counts))


class ExponentialLR(LambdaLR):
    """Times ``gamma`` at every step.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, gamma: float) -> None:
        check_number("gamma", gamma)
        super().__init__(optimizer, lambda count: gamma**count)


class LinearLR(LambdaLR):
    """From ``start_factor`` to ``end_factor`` times the rate in a straight line of ``total_iters`` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = LinearLR(optimizer, start_factor=0.25, end_factor=0.75, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        check_number("total_iters", total_iters)
        rise = end_factor - start_factor
        super().__init__(optimizer, lambda k: start_factor + rise * min(k / total_iters, 1.0))


class CosineAnnealingLR(LambdaLR):
    """Along a cosine to ``eta_min`` in ``T_max`` steps, and back in as many.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0) -> None:
        check_number("T_max", T_max)
        self.eta_min = eta_min
        super().__init__(optimizer, lambda count: (1 + cos(pi * count / T_max)) / 2)

    def rate(self, base: float, factor: Callable[[int], float]) -> float:
        """Down to ``eta_min`` instead of 0."""
        return self.eta_min + (base - self.eta_min) * factor(self.last_epoch)
