"""Layers for sequences: with memory, where a state goes from step to step; and attention.

Sequences are [steps, batch, inputs] (or ``batch_first``); the states of all steps are [steps, batch, hidden].  Layers
may stand on each other (``num_layers``) and read both ways (``bidirectional``).  The products with the inputs are made
once for all steps, only those with the state stand in the loop.  On Tensors the
loop runs as Python, on Variables it becomes one ``recurrent`` operator of the Program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..eager.tensor import Tensor
from ..errors import DTypeError, describe, refusal
from ..static import static_rnn
from . import init
from .layers import Linear
from .module import Module, as_value


class Recurrent(Module):
    """What RNN, LSTM and GRU share: weights for ``gates`` blocks of ``hidden`` columns."""

    gates = 1
    states = 1

    def __init__(
        self,
        inputs: int,
        hidden: int,
        bias: bool = True,
        seed: init.Seed = 0,
        dtype: Any = float,
        num_layers: int = 1,
        bidirectional: bool = False,
        batch_first: bool = False,
    ) -> None:
        init.sizes(type(self).__name__, inputs=inputs, hidden=hidden, num_layers=num_layers)
        flags = {"bias": bias, "bidirectional": bidirectional, "batch_first": batch_first}
        init.switches(type(self).__name__, **flags)
        draw, wide, ways = init.generator(seed), self.gates * hidden, 1 + bidirectional
        self.inputs, self.hidden, self.batch_first = inputs, hidden, batch_first
        self.num_layers, self.bidirectional = num_layers, bidirectional
        self.weight_x = init.fan_in((inputs, wide), hidden, draw, dtype)
        self.weight_h = init.fan_in((hidden, wide), hidden, draw, dtype)
        self.bias = init.fan_in((wide,), hidden, draw, dtype) if bias else None
        self._add_weights(bias, draw, dtype)
        self.others = [  # layer by layer, in each the one that goes backwards last
            type(self)(inputs if k < ways else ways * hidden, hidden, bias, draw, dtype)
            for k in range(1, num_layers * ways)
        ]

    def _add_weights(self, bias: bool, draw: Any, dtype: Any) -> None:
        """What a layer has besides."""

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next states, from the products of the input and the states; the first is the output."""
        raise NotImplementedError

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        """(states of all steps, last state); ``state`` is the first one, zeros by default.

        The state of an LSTM is the pair (h, c).  Of several layers or ways a state is [layers * ways, batch, hidden],
        and the states of both ways stand side by side.  Errors: `ShapeError`.
        """
        x = as_value(x)
        if len(x.shape) != 3 or x.shape[2] != self.inputs:
            axes = "batch, steps" if self.batch_first else "steps, batch"
            name = f"{type(self).__name__}({self.inputs}, {self.hidden})"
            raise refusal(
                f"{name} takes [{axes}, {self.inputs}], not {describe(x)}",
                f"the axes are {axes}, and the last one is as wide as the layer's inputs",
            )
        x = ops.swapaxes(x, axis1=0, axis2=1) if self.batch_first else x
        layers, ways = [self, *self.others], 1 + self.bidirectional
        firsts, lasts = self._states(x, state, len(layers)), []
        for k in range(0, len(layers), ways):
            outputs = []
            for j in range(ways):
                backwards = x if not j else ops.flip(x, axis=0)
                out, last = layers[k + j]._run(backwards, firsts[k + j])
                outputs.append(out if not j else ops.flip(out, axis=0))
                lasts.append(last)
            x = outputs[0] if ways == 1 else ops.concat(outputs, axis=2)
        states = [s[0] if len(layers) == 1 else ops.stack(s) for s in zip(*lasts, strict=True)]
        x = ops.swapaxes(x, axis1=0, axis2=1) if self.batch_first else x
        return x, states[0] if self.states == 1 else tuple(states)

    def _states(self, x: Any, state: Any, count: int) -> list[Any]:
        """The first states of each layer; None for zeros."""
        if state is None:
            return [None] * count
        parts = list(state) if isinstance(state, list | tuple) else [state]
        wanted = (*((count,) if count > 1 else ()), x.shape[1], self.hidden)
        if len(parts) != self.states or any(tuple(np.shape(s)) != wanted for s in parts):
            shown = ", ".join(map(describe, parts))
            raise refusal(
                f"the state of this {type(self).__name__} is {self.states} × {list(wanted)}, not {shown}",
                "the last state of an earlier call" + (", the pair (h, c)" * (self.states == 2)),
            )
        return [parts] if count == 1 else [[s[k] for s in parts] for k in range(count)]

    def _run(self, x: Any, first: Any) -> tuple[Any, list[Any]]:
        """One layer in one direction."""
        fed = ops.linear(x, self.weight_x, self.bias)
        if first is None:
            first = [ops.zeros_like(ops.sum(fed, axis=0)[:, : self.hidden])] * self.states
        return (self._walk if isinstance(x, Tensor) else self._write)(fed, first)

    def _walk(self, fed: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        outputs = []
        for row in ops.unbind(fed) if len(fed) else ():
            states = list(self.step(row, *states))
            outputs.append(states[0])
        return ops.stack(outputs) if outputs else fed[:, :, : self.hidden], states

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

    def _add_weights(self, bias: bool, draw: Any, dtype: Any) -> None:
        self.bias_n = init.fan_in((self.hidden,), self.hidden, draw, dtype) if bias else None

    def step(self, fed: Any, *states: Any) -> Sequence[Any]:
        """The next state."""
        (h,) = states
        of_state = ops.split(ops.linear(h, self.weight_h), num_or_sections=3, axis=1)
        of_input = ops.split(fed, num_or_sections=3, axis=1)
        r, z = (ops.sigmoid(of_input[k] + of_state[k]) for k in (0, 1))
        inner = of_state[2] if self.bias_n is None else of_state[2] + self.bias_n
        n = ops.tanh(of_input[2] + r * inner)
        return [n + z * (h - n)]


# -- attention: every place of a sequence looks at all others ------------------------------


NEVER = -1e30  #: a score so low that its weight is 0


class MultiHeadAttention(Module):
    """``softmax(q @ k.T / sqrt(width of a head)) @ v``, in several heads: [batch, steps, width] → the same.

    ``mask`` is true where a place (rows) may look (columns): [steps, steps], or anything that
    broadcasts to [batch, heads, steps, steps]; ``causal`` lets every place look back only.

    >>> import minigrad as mg
    >>> MultiHeadAttention(8, heads=2)(mg.zeros([3, 5, 8])).shape
    (3, 5, 8)
    """

    def __init__(
        self, width: int, heads: int = 1, bias: bool = True, seed: init.Seed = 0, dtype: Any = float
    ) -> None:
        init.sizes("MultiHeadAttention", width=width, heads=heads)
        if width % heads:
            what = f"{width} columns do not divide into {heads} heads"
            raise refusal(
                f"MultiHeadAttention({width}, heads={heads}): {what}", "heads that divide the width"
            )
        init.switches("MultiHeadAttention", bias=bias)
        draw = init.generator(seed)
        self.width, self.heads = width, heads
        self.query, self.key, self.value, self.out = (
            Linear(width, width, bias, draw, dtype) for _ in range(4)
        )

    def forward(
        self, query: Any, key: Any = None, value: Any = None, mask: Any = None, causal: bool = False
    ) -> Any:
        """What each place of ``query`` collects from ``value``; ``key`` and ``value`` default to it."""
        key = query if key is None else key
        value = key if value is None else value
        query, key, value = map(as_value, (query, key, value))
        for sequence in (query, key, value):
            if len(sequence.shape) != 3 or sequence.shape[2] != self.width:
                raise refusal(
                    f"MultiHeadAttention({self.width}) takes [batch, steps, "
                    f"{self.width}], not {describe(sequence)}",
                    "the batch is axis 0, the places are axis 1, the last axis is the width",
                )
        q, k, v = (
            self._heads(layer(x))
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = ops.matmul(q, ops.swapaxes(k, axis1=-1, axis2=-2))
        scores = scores * (self.width // self.heads) ** -0.5
        if causal:
            seen = np.tri(query.shape[1], key.shape[1], dtype=bool)
            mask = seen if mask is None else ops.logical_and(mask, seen)
        if mask is not None:
            _check_mask(mask, scores)
            scores = ops.where(mask, scores, NEVER)
        mixed = ops.swapaxes(ops.matmul(ops.softmax(scores, axis=-1), v), axis1=1, axis2=2)
        return self.out(ops.reshape(mixed, shape=(*query.shape[:2], self.width)))

    def _heads(self, x: Any) -> Any:
        """[batch, steps, width] → [batch, heads, steps, width of a head]."""
        apart = (*x.shape[:2], self.heads, self.width // self.heads)
        return ops.swapaxes(ops.reshape(x, shape=apart), axis1=1, axis2=2)


def _check_mask(mask: Any, scores: Any) -> None:
    """One truth value for every score, or something that broadcasts to that."""
    dtype = np.dtype(getattr(mask, "dtype", None) or np.asarray(mask).dtype)
    if dtype.kind == "f":  # elsewhere such a mask is added to the scores, and 0 lets look
        raise refusal(
            f"a mask {describe(mask)}: true is where a place may look",
            "mask.astype(bool), or mask == 0 where it was to be added",
            DTypeError,
        )
    pairs = zip(reversed(np.shape(mask)), reversed(scores.shape), strict=False)
    if np.ndim(mask) > 4 or any(-1 not in (m, n) and m not in (1, n) for m, n in pairs):
        raise refusal(
            f"a mask {describe(mask)} for scores [batch, heads, rows, columns] = {list(scores.shape)}",
            "one bool for each row (place of query) and column (place of key)",
        )
