"""Layers with memory: a state goes from step to step.

Sequences are [steps, batch, inputs]; the states of all steps are [steps, batch, hidden].  The products
with the inputs are made once for all steps, only those with the state stand in the loop.  On Tensors the
loop runs as Python, on Variables it becomes one ``recurrent`` operator of the Program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..eager.tensor import Tensor, tensor
from ..errors import describe, refusal
from ..static import static_rnn
from . import init
from .module import Module, as_value


class Recurrent(Module):
    """What RNN, LSTM and GRU share: weights for ``gates`` blocks of ``hidden`` columns."""

    gates = 1
    states = 1

    def __init__(
        self, inputs: int, hidden: int, bias: bool = True, seed: init.Seed = 0, dtype: Any = float
    ) -> None:
        init.sizes(type(self).__name__, inputs=inputs, hidden=hidden)
        init.switches(type(self).__name__, bias=bias)
        draw, wide = init.generator(seed), self.gates * hidden
        self.inputs, self.hidden = inputs, hidden
        self.weight_x = init.fan_in((inputs, wide), hidden, draw, dtype)
        self.weight_h = init.fan_in((hidden, wide), hidden, draw, dtype)
        self.bias = init.fan_in((wide,), hidden, draw, dtype) if bias else None

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next states, from the products of the input and the states; the first is the output."""
        raise NotImplementedError

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        """(states of all steps, last state); ``state`` is the first one, zeros by default.

        The state of an LSTM is the pair (h, c).  Errors: `ShapeError`.
        """
        x = as_value(x)
        if len(x.shape) != 3 or x.shape[2] != self.inputs:
            raise refusal(
                f"{type(self).__name__}({self.inputs}, {self.hidden}) takes [steps, "
                f"batch, {self.inputs}], not {describe(x)}",
                "steps are axis 0, the batch is axis 1, the last axis is as wide as the layer's inputs",
            )
        fed = ops.linear(x, self.weight_x, self.bias)
        first = self._start(fed, state)
        outputs, last = (self._walk if isinstance(x, Tensor) else self._write)(fed, first)
        return outputs, last[0] if self.states == 1 else tuple(last)

    def _start(self, fed: Any, state: Any) -> list[Any]:
        if state is None:
            zero: Any = (
                tensor(np.zeros((fed.shape[1], self.hidden), fed.dtype))
                if isinstance(fed, Tensor)
                else ops.zeros_like(ops.sum(fed, axis=0)[:, : self.hidden])
            )
            return [zero] * self.states
        first = list(state) if isinstance(state, list | tuple) else [state]
        wanted = (fed.shape[1], self.hidden)
        if len(first) != self.states or any(tuple(np.shape(s)) != wanted for s in first):
            shown = ", ".join(map(describe, first))
            raise refusal(
                f"the state of this {type(self).__name__} is {self.states} × "
                f"{list(wanted)}, not {shown}",
                "the last state of an earlier call" + (", the pair (h, c)" * (self.states == 2)),
            )
        return first

    def _walk(self, fed: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        outputs = []
        for row in ops.unbind(fed) if len(fed) else ():
            states = list(self.step(row, *states))
            outputs.append(states[0])
        empty = tensor(np.zeros((0, fed.shape[1], self.hidden), fed.dtype))
        return ops.stack(outputs) if outputs else empty, states

    def _write(self, fed: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        def step(row: Any, *before: Any) -> tuple[list[Any], list[Any]]:
            after = list(self.step(row, *before))
            return [after[0]], after

        (outputs,), last = static_rnn(step, [fed], states)
        return outputs, last


class RNN(Recurrent):
    """``h = tanh(x @ weight_x + h @ weight_h + bias)``.

    >>> import minigrad as mg
    >>> outputs, last = RNN(3, 4)(mg.zeros([5, 2, 3]))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (2, 4))
    """

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next state."""
        (h,) = states
        return [ops.tanh(ops.linear(h, self.weight_h, fed))]


class LSTM(Recurrent):
    """Long short-term memory; the blocks of its weights are input, forget, cell and output gate.

    ``c = f * c + i * g`` and ``h = o * tanh(c)``; its state is the pair (h, c).

    >>> import minigrad as mg
    >>> outputs, (h, c) = LSTM(3, 4)(mg.zeros([5, 2, 3]))
    >>> outputs.shape, c.shape
    ((5, 2, 4), (2, 4))
    """

    gates = 4
    states = 2

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next state and the next cell."""
        h, c = states
        parts = ops.split(ops.linear(h, self.weight_h, fed), num_or_sections=4, axis=1)
        i, f, o = (ops.sigmoid(parts[k]) for k in (0, 1, 3))
        c = f * c + i * ops.tanh(parts[2])
        return [o * ops.tanh(c), c]


class GRU(Recurrent):
    """Gated recurrent unit; the blocks of its weights are reset gate, update gate and new state.

    ``n = tanh(x_n + r * (h @ weight_n + bias_n))`` and ``h = n + z * (h - n)``.

    >>> import minigrad as mg
    >>> outputs, last = GRU(3, 4)(mg.zeros([5, 2, 3]))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (2, 4))
    """

    gates = 3

    def __init__(
        self, inputs: int, hidden: int, bias: bool = True, seed: init.Seed = 0, dtype: Any = float
    ) -> None:
        draw = init.generator(seed)
        super().__init__(inputs, hidden, bias, draw, dtype)
        self.bias_n = init.fan_in((hidden,), hidden, draw, dtype) if bias else None

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next state."""
        (h,) = states
        of_state = ops.split(ops.linear(h, self.weight_h), num_or_sections=3, axis=1)
        of_input = ops.split(fed, num_or_sections=3, axis=1)
        r, z = (ops.sigmoid(of_input[k] + of_state[k]) for k in (0, 1))
        inner = of_state[2] if self.bias_n is None else of_state[2] + self.bias_n
        n = ops.tanh(of_input[2] + r * inner)
        return [n + z * (h - n)]
