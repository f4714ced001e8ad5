"""Clips: from the gradients of all parameters to smaller ones.  Tensors and Variables alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ops
from .checks import check_number


def clip_by_value(limit: float) -> Callable[[list[Any]], list[Any]]:
    """Every element between ``-limit`` and ``limit``.

    >>> import minigrad as mg
    >>> clip_by_value(1.0)([mg.tensor([3.0, -0.5])])
    [tensor([ 1. , -0.5])]
    """
    check_number("limit", limit)
    return lambda grads: [ops.clip(g, min=-limit, max=limit) for g in grads]


def clip_by_norm(limit: float) -> Callable[[list[Any]], list[Any]]:
    """Every gradient of a parameter at most ``limit`` long, its direction kept.

    >>> import minigrad as mg
    >>> clip_by_norm(5.0)([mg.tensor([6.0, 8.0]), mg.tensor([0.0, 1.0])])
    [tensor([3., 4.]), tensor([0., 1.])]
    """
    check_number("limit", limit)
    return lambda grads: [g * (limit / ops.maximum(_length([g]), limit)) for g in grads]


def clip_by_global_norm(limit: float) -> Callable[[list[Any]], list[Any]]:
    """All gradients together at most ``limit`` long, their direction kept.

    >>> import minigrad as mg
    >>> clip_by_global_norm(1.0)([mg.tensor([3.0]), mg.tensor([4.0])])
    [tensor([0.6]), tensor([0.8])]
    """
    check_number("limit", limit)

    def clip(grads: list[Any]) -> list[Any]:
        factor = limit / ops.maximum(_length(grads), limit)
        return [g * factor for g in grads]

    return clip


def _length(grads: list[Any]) -> Any:
    return ops.sqrt(ops.add_n(*(ops.sum(g * g) for g in grads)))
