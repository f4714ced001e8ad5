"""Checks of numbers that optimizers, clips and schedules share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, describe, refusal

#: name → a value that makes sense
ADVICE = {
    "lr": "0.01, or a schedule: lr=optim.cosine(0.01, steps=1000)",
    "rate": "0.1; an optimizer is given the schedule: SGD(model, lr=optim.cosine(0.1, steps=1000))",
    "weight_decay": "0.0001",
    "momentum": "0.9", "beta1": "0.9", "beta2": "0.999", "rho": "0.99", "epsilon": "1e-8", "limit": "1.0",
}  # fmt: skip


def check_steps(name: str, value: Any) -> None:
    """A number above 0.  Errors: `ArgumentError` that quotes it."""
    if not _real(value) or not value > 0:
        raise refusal(
            f"{name} is {describe(value)}: give a number of steps above 0",
            f"{name}=1000",
            ArgumentError,
        )


def check_number(name: str, value: Any, below: float = float("inf")) -> None:
    """A real number from 0 on.  Errors: `ArgumentError` that quotes it."""
    if not _real(value) or not 0 <= value < below:
        end = "" if below == float("inf") else f" and below {below}"
        what = f"{name} is {describe(value)}: give a number of at least 0{end}"
        raise refusal(what, f"{name}={ADVICE.get(name, '0.1')}", ArgumentError)


def _real(value: Any) -> bool:
    number = isinstance(value, int | float | np.floating | np.integer)
    return number and not isinstance(value, bool)
