"""Layers without memory: dense, convolution, pooling, embedding, dropout; layers in a row; activations; norms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from .. import ops
from ..atomic import set_all
from ..eager.tensor import Tensor, tensor
from ..errors import DTypeError, describe, refusal
from ..primitives.arguments import Function, Listed, Names, as_list, dtype_of
from ..static import static_rnn
from . import init
from .init import Seed
from .module import Module, as_value, program_of, replaced

__all__ = [
    "ELU", "GELU", "GRU", "LSTM", "RNN", "AvgPool2d", "BatchNorm", "Conv2d", "ConvTranspose2d",
    "Dropout", "Embedding", "Flatten", "Identity", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax",
    "MaxPool2d", "MultiHeadAttention", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh",
]  # fmt: skip


class Linear(Module):
    """``x @ weight + bias``: ``x`` [..., inputs] → [..., outputs]; ``weight`` [inputs, outputs].

    >>> import minigrad as mg
    >>> Linear(3, 2)(mg.zeros([5, 3])).shape
    (5, 2)
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, seed: Seed = 0, dtype: Any = float
    ) -> None:
        init.check("Linear", inputs=inputs, outputs=outputs, bias=bias)
        draw = init.generator(seed)
        self.inputs, self.outputs = inputs, outputs
        self.weight = init.fan_in((inputs, outputs), inputs, draw, dtype)
        self.bias = init.fan_in((outputs,), inputs, draw, dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """One product and one sum."""
        return ops.linear(x, self.weight, self.bias)


@dataclass_transform(eq_default=False)
class FunctionLayer(Module):
    """A function of `ops` as a module: what a class declares, its constructor and the function take by name."""

    function: ClassVar[Function]
    __match_args__: ClassVar[Names]

    def __init_subclass__(cls, **options) -> None:
        dataclass(cls, repr=False, eq=False)
        super().__init_subclass__(**options)

    def forward(self, x: Any) -> Any:
        """The function of ``x``."""
        options = {name: getattr(self, name) for name in self.__match_args__}
        return type(self).function(x, **options)  # no method: asked of the class


class Filters(Module):
    """What both convolutions share: ``weight``, filters over some channels each, and a bias for each filter."""

    function: ClassVar[Any]
    transposed = False

    def __init__(
        self,
        channels: int,
        filters: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        seed: Seed = 0,
        dtype: Any = float,
    ) -> None:
        layer = type(self).__name__
        init.check(layer, channels=channels, filters=filters, groups=groups, bias=bias)
        if channels % groups or filters % groups:
            what = f"{channels} channels and {filters} filters do not divide into {groups} groups"
            advice = "sizes that groups divides, or groups=1"
            raise refusal(f"{layer}(groups={groups}): {what}", advice)
        size = (kernel_size, kernel_size) if np.ndim(kernel_size) == 0 else tuple(kernel_size)
        for n in size:
            init.check(layer, kernel_size=n)
        if len(size) != 2:
            what = f"{layer}(kernel_size={kernel_size!r}): images have height and width"
            raise refusal(what, "kernel_size=3, or kernel_size=(3, 5)")
        whole, shared = (channels, filters) if self.transposed else (filters, channels)
        draw = init.generator(seed)
        inputs = shared // groups * int(np.prod(size))
        self.channels, self.filters, self.kernel_size, self.stride = channels, filters, size, stride
        self.padding, self.dilation, self.groups = padding, dilation, groups
        self.weight = init.fan_in((whole, shared // groups, *size), inputs, draw, dtype)
        self.bias = init.fan_in((filters,), inputs, draw, dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """[batch, filters, height, width]; the last two as stride and padding say."""
        function = type(self).function
        options = {name: getattr(self, name) for name in function.primitive.attrs}
        return function(x, self.weight, self.bias, **options)


class Conv2d(Filters):
    """Filters that slide over images: ``x`` [batch, channels, height, width]; ``weight`` [filters,
    channels / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> Conv2d(1, 8, kernel_size=3, padding=1)(mg.zeros([2, 1, 8, 8])).shape
    (2, 8, 8, 8)
    """

    function = ops.conv2d


class ConvTranspose2d(Filters):
    """`Conv2d` transposed, to make images larger: ``weight`` [channels, filters / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> ConvTranspose2d(8, 4, kernel_size=2, stride=2)(mg.zeros([2, 8, 4, 4])).shape
    (2, 4, 8, 8)
    """

    transposed = True
    function = ops.conv_transpose2d

    def __init__(
        self,
        channels: int,
        filters: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        seed: Seed = 0,
        dtype: Any = float,
    ) -> None:
        super().__init__(
            channels, filters, kernel_size, stride, padding, dilation, groups, bias, seed, dtype
        )
        self.output_padding = output_padding


class Pool(FunctionLayer):
    """What both kinds of pooling share: how large windows are, how far they move, the border."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0


class MaxPool2d(Pool):
    """The largest element of every window.

    >>> import minigrad as mg
    >>> MaxPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    function = ops.max_pool2d


class AvgPool2d(Pool):
    """The mean of every window; padding counts as zeros.

    >>> import minigrad as mg
    >>> AvgPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    function = ops.avg_pool2d


class Flatten(Module):
    """All axes but the first in one: [batch, a, b] → [batch, a * b].

    >>> import minigrad as mg
    >>> Flatten()(mg.zeros([2, 3, 4])).shape
    (2, 12)
    """

    def forward(self, x: Any) -> Any:
        """[batch, …] → [batch, the rest]."""
        return ops.flatten(x, start=1)


class Embedding(Module):
    """A row of numbers for every word: integers [...] → [..., width].

    >>> Embedding(10, 4)([1, 2, 2]).shape
    (3, 4)
    """

    def __init__(self, words: int, width: int, seed: Seed = 0, dtype: Any = float) -> None:
        init.check("Embedding", words=words, width=width)
        self.words, self.width = words, width
        self.weight = init.normal((words, width), seed, dtype)

    def forward(self, indices: Any) -> Any:
        """The rows at the indices."""
        return ops.embedding(indices, self.weight)


class Dropout(Module):
    """In training, zero elements with probability ``p`` and scale the others; else nothing.

    The masks come from the seed: a new one for every call, the same sequence for the same seed.
    A Program keeps the seed as a variable and moves it on with every run.

    >>> import minigrad as mg
    >>> layer = Dropout(0.5, seed=0)
    >>> sorted(set(layer(mg.ones([100])).tolist())), layer.eval()(mg.ones([2])).tolist()
    ([0.0, 2.0], [1.0, 1.0])
    """

    def __init__(self, p: float = 0.5, seed: Seed = 0) -> None:
        if not 0 <= p < 1:
            what = f"Dropout(p={p!r}): the probability is at least 0 and below 1"
            raise refusal(what, "the share that is dropped: Dropout(p=0.5)")
        self.p = p
        self._draw = init.generator(seed)

    def forward(self, x: Any) -> Any:
        """``x`` with gaps in training, ``x`` itself in use."""
        program = program_of([x])
        seed = self._draw
        if program is not None and self.training and self.p:
            first = np.array(seed.integers(2**62))
            seed = program.add_persistable(program.unique_name("seed"), first, trainable=False)
            _descend(program.current_block(), seed, {"grad": -1, "learning_rate": 1})
            seed = ops.assign(seed)  # of this step of a loop
        return ops.dropout(x, p=self.p, seed=seed, training=self.training)


def _descend(block, value, attrs: Mapping[str, Any], **inputs) -> None:
    """``value = value - learning_rate * grad`` in every run: the update of plain gradient descent."""
    slots = {"param": value, **inputs}
    block.append_op("sgd", slots, {"param_out": value}, attrs, role="optimize")


class Sequential(Module):
    """Modules and functions, one after the other.

    >>> import minigrad as mg
    >>> double = Sequential(mg.relu, lambda x: 2 * x)
    >>> double(mg.tensor([-1.0, 3.0]))
    tensor([0., 6.])
    >>> len(double), len(double[:1])
    (2, 1)
    """

    def __init__(self, *layers: Function) -> None:
        for layer in layers:
            if not callable(layer) or isinstance(layer, type):
                what = f"Sequential holds modules and functions, not {describe(layer)}"
                advice = "Sequential(*layers) of a list; mg.relu, not mg.relu(x): it will be called later"
                if isinstance(layer, type):
                    advice = f"{layer.__name__}(), a layer of it"
                raise refusal(what, advice)
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """Through all layers in order."""
        for layer in self.layers:
            x = layer(x)
        return x

    def __getitem__(self, index: int | slice) -> Any:
        """One layer, or a Sequential of some, which are shared."""
        return Sequential(*self.layers[index]) if isinstance(index, slice) else self.layers[index]

    def __iter__(self) -> Iterator[Function]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)


# -- activations: the functions (mg.relu, …) may stand in a Sequential, too ----------------


class Identity(Module):
    """What comes in: a place where a layer may stand later.

    >>> import minigrad as mg
    >>> Identity()(mg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def forward(self, x: Any) -> Any:
        """``x``."""
        return x


class ReLU(FunctionLayer):
    """``max(x, 0)``.

    >>> import minigrad as mg
    >>> ReLU()(mg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    function = ops.relu


class LeakyReLU(FunctionLayer):
    """``x`` where it is positive, else ``negative_slope * x``.

    >>> import minigrad as mg
    >>> LeakyReLU(0.5)(mg.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ])
    """

    function = ops.leaky_relu
    negative_slope: float = 0.01


class ELU(FunctionLayer):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import minigrad as mg
    >>> ELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """

    function = ops.elu
    alpha: float = 1.0


class GELU(FunctionLayer):
    """``x * Φ(x)``, with the distribution function Φ of the standard normal.

    >>> import minigrad as mg
    >>> GELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    function = ops.gelu


class SiLU(FunctionLayer):
    """``x * sigmoid(x)``, also called swish.

    >>> import minigrad as mg
    >>> SiLU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    function = ops.silu


class Softplus(FunctionLayer):
    """``log(1 + exp(x))``, a smooth relu.

    >>> import minigrad as mg
    >>> Softplus()(mg.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    function = ops.softplus


class Sigmoid(FunctionLayer):
    """``1 / (1 + exp(-x))``.

    >>> import minigrad as mg
    >>> Sigmoid()(mg.tensor([0.0, 2.0]))
    tensor([0.5   , 0.8808])
    """

    function = ops.sigmoid


class Tanh(FunctionLayer):
    """The hyperbolic tangent.

    >>> import minigrad as mg
    >>> Tanh()(mg.tensor([0.0, 2.0]))
    tensor([0.   , 0.964])
    """

    function = ops.tanh


class Softmax(FunctionLayer):
    """Positive numbers that sum to 1 along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> Softmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[0.5, 0.5]])
    """

    function = ops.softmax
    axis: int = -1


class LogSoftmax(FunctionLayer):
    """``log(softmax(x))`` along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> LogSoftmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    function = ops.log_softmax
    axis: int = -1


# -- layers that normalise: over a batch, or over every example for itself -----------------


class LayerNorm(Module):
    """Every row over its last axis: mean 0, variance 1, then scaled and shifted.

    >>> import minigrad as mg
    >>> LayerNorm(2, eps=0.0)(mg.tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, width: int, eps: float = 1e-5, dtype: Any = float) -> None:
        init.check("LayerNorm", width=width)
        self.width, self.eps = width, eps
        self.weight = init.constant((width,), 1.0, dtype)
        self.bias = init.constant((width,), 0.0, dtype)

    def forward(self, x: Any) -> Any:
        """[..., width] → [..., width]."""
        x = as_value(x)
        if x.shape[-1:] != (self.width,):
            raise refusal(
                f"LayerNorm({self.width}) normalises a last axis of {self.width}, not {describe(x)}",
                "LayerNorm(width of the last axis)",
            )
        return ops.layer_norm(x, self.weight, self.bias, eps=self.eps)


class BatchNorm(Module):
    """Every channel (axis 1) over the batch and all other axes: [batch, channels, ...].

    Training uses the statistics of the batch and keeps running ones, ``momentum`` of the new and
    the rest of the old; use (``eval``) takes the running ones.  In a Program, training appends
    operators that update the running statistics; the program for use is made after ``eval()`` and
    run with the same Executor (``clone(for_test=True)`` refuses).  The running variance is the
    unbiased one.

    >>> import minigrad as mg
    >>> norm = BatchNorm(1, eps=0.0)
    >>> norm(mg.tensor([[1.0], [3.0]])).tolist(), norm.running_mean.tolist()
    ([[-1.0], [1.0]], [0.2])
    """

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, dtype: Any = float
    ) -> None:
        init.check("BatchNorm", channels=channels)
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
        if x.shape[1:2] != (self.channels,):
            raise refusal(
                f"BatchNorm({self.channels}) takes [batch, {self.channels}, ...], not {describe(x)}",
                "BatchNorm(size of axis 1); channels are axis 1",
            )
        known = {}
        if self.training:
            self._remember(x)
        else:
            known = {"mean": self.running_mean, "var": self.running_var}
        return ops.batch_norm(x, self.weight, self.bias, eps=self.eps, **known)

    def _remember(self, x) -> None:
        """Move what runs towards the statistics of this batch: in a Program, in every run."""
        if not isinstance(x, Tensor):
            with x.block.program.role_guard("optimize"):
                for running, now in self._statistics(x):
                    gap = running - now
                    _descend(gap.block, running, {"learning_rate": self.momentum}, grad=gap)
            return
        if x.size < 2 * self.channels:
            what = f"one value per channel has no variance: {describe(x)}"
            raise refusal(what, "a larger batch, or eval()")
        changes: Listed = []
        for running, now in self._statistics(x._data):
            new = (1 - self.momentum) * running._data + self.momentum * now
            new = new.astype(running.dtype, copy=False)
            changes += replaced(running, new, running.grad)
        set_all(changes)

    def _statistics(self, x) -> Iterator[tuple[Any, Any]]:
        axes = (0, *range(2, len(x.shape)))
        yield self.running_mean, ops.mean(x, axis=axes)
        yield self.running_var, ops.var(x, axis=axes, correction=1)


class Recurrent(Module):
    """What RNN, LSTM and GRU share: weights for ``gates`` blocks of ``hidden`` columns."""

    gates = 1
    states = 1
    more_biases: Names = ()  # of one block each

    def __init__(
        self,
        inputs: int,
        hidden: int,
        bias: bool = True,
        seed: Seed = 0,
        dtype: Any = float,
        num_layers: int = 1,
        bidirectional: bool = False,
        batch_first: bool = False,
    ) -> None:
        layer = type(self).__name__
        init.check(layer, inputs=inputs, hidden=hidden, num_layers=num_layers, bias=bias)
        init.check(layer, bidirectional=bidirectional, batch_first=batch_first)
        draw = init.generator(seed)
        wide = self.gates * hidden
        ways = 1 + bidirectional
        self.inputs, self.hidden, self.batch_first = inputs, hidden, batch_first
        self.num_layers, self.bidirectional = num_layers, bidirectional
        self.weight_x = init.fan_in((inputs, wide), hidden, draw, dtype)
        self.weight_h = init.fan_in((hidden, wide), hidden, draw, dtype)
        self.bias = init.fan_in((wide,), hidden, draw, dtype) if bias else None
        for name in self.more_biases:
            setattr(self, name, init.fan_in((hidden,), hidden, draw, dtype) if bias else None)
        self.others = [  # layer by layer, in each the one that goes backwards last
            type(self)(inputs if k < ways else ways * hidden, hidden, bias, draw, dtype)
            for k in range(1, num_layers * ways)
        ]

    def step(self, fed: Any, *states: Any) -> Listed:
        """The next states, from the products of the input and the states; the first is the output."""
        raise NotImplementedError

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        """(states of all steps, last state); ``state`` is the first one, zeros by default.

        The state of an LSTM is the pair (h, c).  Of several layers or ways a state is [layers *
        ways, batch, hidden], and the states of both ways stand side by side.  Errors: `ShapeError`.
        """
        x = as_value(x)
        if x.shape[2:] != (self.inputs,):
            axes = "batch, steps" if self.batch_first else "steps, batch"
            name = f"{type(self).__name__}({self.inputs}, {self.hidden})"
            raise refusal(
                f"{name} takes [{axes}, {self.inputs}], not {describe(x)}",
                f"the axes are {axes}, and the last one is as wide as the layer's inputs",
            )
        x = x.swapaxes(0, 1) if self.batch_first else x
        layers = [self, *self.others]
        ways = 1 + self.bidirectional
        firsts = self._states(x, state, len(layers))
        lasts = []
        for k in range(0, len(layers), ways):
            outputs = []
            for j in range(ways):
                out, last = layers[k + j]._run(x.flip(0) if j else x, firsts[k + j])
                outputs.append(out.flip(0) if j else out)
                lasts.append(last)
            x = outputs[0] if ways == 1 else ops.concat(outputs, axis=2)
        states = [s[0] if len(layers) == 1 else ops.stack(s) for s in zip(*lasts, strict=True)]
        x = x.swapaxes(0, 1) if self.batch_first else x
        return x, states[0] if self.states == 1 else tuple(states)

    def _states(self, x, state, count: int) -> Listed:
        """The first states of each layer; None for zeros."""
        if state is None:
            return [None] * count
        parts = as_list(state)
        one = (x.shape[1], self.hidden)
        wanted = (count, *one) if count > 1 else one
        if len(parts) != self.states or any(np.shape(s) != wanted for s in parts):
            shown = ", ".join(map(describe, parts))
            raise refusal(
                f"the state of this {type(self).__name__} is {self.states} × {list(wanted)}, not {shown}",
                "the last state of an earlier call" + (", the pair (h, c)" * (self.states == 2)),
            )
        return [parts] if count == 1 else [[s[k] for s in parts] for k in range(count)]

    def _run(self, x, states) -> tuple[Any, Listed]:
        """One layer in one direction."""
        fed = ops.linear(x, self.weight_x, self.bias)
        if states is None:
            states = [ops.zeros_like(fed.sum(0)[:, : self.hidden])] * self.states
        if not isinstance(x, Tensor):

            def step(row, *before) -> tuple[Listed, Listed]:
                after = self.step(row, *before)
                return after[:1], after

            (whole,), last = static_rnn(step, [fed], states)
            return whole, last
        outputs = []
        for row in fed.unbind():
            states = self.step(row, *states)
            outputs.append(states[0])
        return ops.stack(outputs) if outputs else fed[:, :, : self.hidden], states


class RNN(Recurrent):
    """``h = tanh(x @ weight_x + h @ weight_h + bias)``.

    >>> import minigrad as mg
    >>> outputs, last = RNN(3, 4)(mg.zeros([5, 2, 3]))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (2, 4))
    """

    def step(self, fed: Any, *states: Any) -> Listed:
        """The next state."""
        return [ops.linear(states[0], self.weight_h, fed).tanh()]


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

    def step(self, fed: Any, *states: Any) -> Listed:
        """The next state and the next cell."""
        h, c = states
        i, f, g, o = ops.linear(h, self.weight_h, fed).split(4, axis=1)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        c = f * c + i * g.tanh()
        return [o * c.tanh(), c]


class GRU(Recurrent):
    """Gated recurrent unit; the blocks of its weights are reset gate, update gate and new state.

    ``n = tanh(x_n + r * (h @ weight_n + bias_n))`` and ``h = n + z * (h - n)``.

    >>> import minigrad as mg
    >>> outputs, last = GRU(3, 4)(mg.zeros([5, 2, 3]))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (2, 4))
    """

    gates = 3
    more_biases = ("bias_n",)
    bias_n: Tensor | None

    def step(self, fed: Any, *states: Any) -> Listed:
        """The next state."""
        (h,) = states
        r_h, z_h, n_h = ops.linear(h, self.weight_h).split(3, axis=1)
        r_x, z_x, n_x = fed.split(3, axis=1)
        r = (r_x + r_h).sigmoid()
        z = (z_x + z_h).sigmoid()
        if self.bias_n is not None:
            n_h = n_h + self.bias_n
        n = (n_x + r * n_h).tanh()
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
        self, width: int, heads: int = 1, bias: bool = True, seed: Seed = 0, dtype: Any = float
    ) -> None:
        init.check("MultiHeadAttention", width=width, heads=heads, bias=bias)
        if width % heads:
            what = f"{width} columns do not divide into {heads} heads"
            raise refusal(
                f"MultiHeadAttention({width}, heads={heads}): {what}", "heads that divide the width"
            )
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
            if sequence.shape[2:] != (self.width,):
                raise refusal(
                    f"MultiHeadAttention({self.width}) takes [batch, steps, "
                    f"{self.width}], not {describe(sequence)}",
                    "the batch is axis 0, the places are axis 1, the last axis is the width",
                )
        q = self._heads(self.query(query))
        k = self._heads(self.key(key))
        v = self._heads(self.value(value))
        scores = q @ k.mT * (self.width // self.heads) ** -0.5
        if causal:
            seen = np.tri(query.shape[1], key.shape[1], dtype=bool)
            mask = seen if mask is None else ops.logical_and(mask, seen)
        if mask is not None:
            if dtype_of(mask).kind == "f":  # elsewhere it is added to the scores, and 0 lets look
                raise refusal(
                    f"a mask {describe(mask)}: true is where a place may look",
                    "mask.astype(bool), or mask == 0 where it was to be added",
                    DTypeError,
                )
            scores = ops.where(mask, scores, NEVER)
        mixed = (scores.softmax() @ v).swapaxes(1, 2)
        return self.out(mixed.reshape(*query.shape[:2], self.width))

    def _heads(self, x) -> Any:
        """[batch, steps, width] → [batch, heads, steps, width of a head]."""
        return x.reshape(*x.shape[:2], self.heads, self.width // self.heads).swapaxes(1, 2)
