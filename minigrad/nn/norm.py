"""Layers that normalise: over a batch, or over every example for itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..atomic import set_all
from ..eager.tensor import Tensor, tensor
from ..errors import describe, refusal
from . import init
from .module import Module, as_value, replaced


class LayerNorm(Module):
    """Every row over its last axis: mean 0, variance 1, then scaled and shifted.

    >>> import minigrad as mg
    >>> LayerNorm(2, eps=0.0)(mg.tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, width: int, eps: float = 1e-5, dtype: Any = float) -> None:
        init.sizes("LayerNorm", width=width)
        self.width, self.eps = width, eps
        self.weight = init.constant((width,), 1.0, dtype)
        self.bias = init.constant((width,), 0.0, dtype)

    def forward(self, x: Any) -> Any:
        """[..., width] → [..., width]."""
        x = as_value(x)
        if not x.shape or x.shape[-1] != self.width:
            raise refusal(
                f"LayerNorm({self.width}) normalises a last axis of {self.width}, not {describe(x)}",
                "LayerNorm(width of the last axis)",
            )
        return ops.layer_norm(x, self.weight, self.bias, eps=self.eps)


class BatchNorm(Module):
    """Every channel (axis 1) over the batch and all other axes: [batch, channels, ...].

    Training uses the statistics of the batch and keeps running ones, ``momentum`` of the new and the
    rest of the old; use (``eval``) takes the running ones.  In a Program, training appends operators
    that update the running statistics; the program for use is made after ``eval()`` and run with the
    same Executor (``clone(for_test=True)`` refuses).  The running variance is the unbiased one.

    >>> import minigrad as mg
    >>> norm = BatchNorm(1, eps=0.0)
    >>> norm(mg.tensor([[1.0], [3.0]])).tolist(), norm.running_mean.tolist()
    ([[-1.0], [1.0]], [0.2])
    """

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, dtype: Any = float
    ) -> None:
        init.sizes("BatchNorm", channels=channels)
        if not isinstance(momentum, int | float | np.floating) or not 0 <= momentum <= 1:
            what = f"BatchNorm(momentum={momentum!r}): the share of the new is from 0 to 1"
            raise refusal(what, "momentum=0.1")
        self.channels, self.eps, self.momentum = channels, eps, momentum
        self.weight = init.constant((channels,), 1.0, dtype)
        self.bias = init.constant((channels,), 0.0, dtype)
        self.running_mean = tensor(np.zeros(channels), dtype=dtype)
        self.running_var = tensor(np.ones(channels), dtype=dtype)

    def forward(self, x: Any) -> Any:
        """The same shape."""
        x = as_value(x)
        if len(x.shape) < 2 or x.shape[1] != self.channels:
            raise refusal(
                f"BatchNorm({self.channels}) takes [batch, {self.channels}, ...], not {describe(x)}",
                "BatchNorm(size of axis 1); channels are axis 1",
            )
        if not self.training:
            return ops.batch_norm(
                x, self.weight, self.bias, self.running_mean, self.running_var, eps=self.eps
            )
        self._remember(x)
        return ops.batch_norm(x, self.weight, self.bias, eps=self.eps)

    def _remember(self, x: Any) -> None:
        axes = tuple(k for k in range(len(x.shape)) if k != 1)
        if isinstance(x, Tensor):
            count = x.size // self.channels
            if count < 2:
                raise refusal(
                    f"one value per channel has no variance: {describe(x)}",
                    "a larger batch, or eval()",
                )
            changes: list[tuple[Any, str, Any]] = []
            for running, now in (
                (self.running_mean, ops.mean(x._data, axis=axes)),
                (self.running_var, ops.var(x._data, axis=axes, correction=1)),
            ):
                new = (1 - self.momentum) * running._data + self.momentum * now
                changes += replaced(running, new.astype(running.dtype, copy=False))
            set_all(changes)
            return
        with x.block.program.role_guard("optimize"):
            _move_towards(self.running_mean, ops.mean(x, axis=axes), self.momentum)
            _move_towards(self.running_var, ops.var(x, axis=axes, correction=1), self.momentum)


def _move_towards(running: Any, new: Any, share: float) -> None:
    """``running = running - share * (running - new)``: the update of plain gradient descent."""
    gap = ops.sub(running, new)
    gap.block.append_op(
        "sgd",
        inputs={"param": [running.name], "grad": [gap.name]},
        outputs={"param_out": [running.name]},
        attrs={"learning_rate": share},
    )
