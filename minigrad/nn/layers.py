"""Layers without memory: dense, convolution, pooling, embedding, dropout; layers in a row; activations; norms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import ops
from ..atomic import set_all
from ..eager.tensor import Tensor, tensor
from ..errors import MinigradError, describe, refusal
from . import init
from .module import Module, as_value, replaced


class Linear(Module):
    """``x @ weight + bias``: ``x`` [..., inputs] → [..., outputs]; ``weight`` [inputs, outputs].

    >>> import minigrad as mg
    >>> Linear(3, 2)(mg.zeros([5, 3])).shape
    (5, 2)
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, seed: init.Seed = 0, dtype: Any = float
    ) -> None:
        init.sizes("Linear", inputs=inputs, outputs=outputs)
        init.switches("Linear", bias=bias)
        draw = init.generator(seed)
        self.inputs, self.outputs = inputs, outputs
        self.weight = init.fan_in((inputs, outputs), inputs, draw, dtype)
        self.bias = init.fan_in((outputs,), inputs, draw, dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """One product and one sum."""
        return ops.linear(x, self.weight, self.bias)


class FunctionLayer(Module):
    """A function of `ops` as a module; it is called with the attributes that ``options`` names."""

    function: Callable[..., Any]
    options: tuple[str, ...] = ()

    def forward(self, x: Any) -> Any:
        """The function of ``x``."""
        return self.function(x, **self._options())

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.options}


class Filters(FunctionLayer):
    """What both convolutions share: ``weight``, filters over some channels each, and a bias for each filter."""

    transposed = False
    options: tuple[str, ...] = ("stride", "padding", "dilation", "groups")

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
        seed: init.Seed = 0,
        dtype: Any = float,
    ) -> None:
        size = _window(type(self).__name__, channels, filters, groups, kernel_size)
        init.switches(type(self).__name__, bias=bias)
        whole, shared = (channels, filters) if self.transposed else (filters, channels)
        draw, inputs = init.generator(seed), shared // groups * int(np.prod(size))
        self.channels, self.filters, self.kernel_size, self.stride = channels, filters, size, stride
        self.padding, self.dilation, self.groups = padding, dilation, groups
        self.weight = init.fan_in((whole, shared // groups, *size), inputs, draw, dtype)
        self.bias = init.fan_in((filters,), inputs, draw, dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """[batch, filters, height, width]; the last two as stride and padding say."""
        return self.function(x, self.weight, self.bias, **self._options())


class Conv2d(Filters):
    """Filters that slide over images: ``x`` [batch, channels, height, width]; ``weight`` [filters,
    channels / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> Conv2d(1, 8, kernel_size=3, padding=1)(mg.zeros([2, 1, 8, 8])).shape
    (2, 8, 8, 8)
    """

    function = staticmethod(ops.conv2d)


class ConvTranspose2d(Filters):
    """`Conv2d` transposed, to make images larger: ``weight`` [channels, filters / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> ConvTranspose2d(8, 4, kernel_size=2, stride=2)(mg.zeros([2, 8, 4, 4])).shape
    (2, 4, 8, 8)
    """

    transposed = True
    function = staticmethod(ops.conv_transpose2d)
    options = (*Filters.options, "output_padding")

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
        seed: init.Seed = 0,
        dtype: Any = float,
    ) -> None:
        super().__init__(
            channels, filters, kernel_size, stride, padding, dilation, groups, bias, seed, dtype
        )
        self.output_padding = output_padding


def _window(
    layer: str, channels: int, filters: int, groups: int, kernel_size: Any
) -> tuple[int, ...]:
    """The size of a filter, after all sizes are checked."""
    init.sizes(layer, channels=channels, filters=filters, groups=groups)
    if channels % groups or filters % groups:
        what = f"{channels} channels and {filters} filters do not divide into {groups} groups"
        raise refusal(f"{layer}(groups={groups}): {what}", "sizes that groups divides, or groups=1")
    size = (kernel_size, kernel_size) if np.ndim(kernel_size) == 0 else tuple(kernel_size)
    for n in size:
        init.sizes(layer, kernel_size=n)
    if len(size) != 2:
        what = f"{layer}(kernel_size={kernel_size!r}): images have height and width"
        raise refusal(what, "kernel_size=3, or kernel_size=(3, 5)")
    return size


class Pool(FunctionLayer):
    """What both kinds of pooling share: how large windows are, how far they move, the border."""

    options = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding


class MaxPool2d(Pool):
    """The largest element of every window.

    >>> import minigrad as mg
    >>> MaxPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    function = staticmethod(ops.max_pool2d)


class AvgPool2d(Pool):
    """The mean of every window; padding counts as zeros.

    >>> import minigrad as mg
    >>> AvgPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    function = staticmethod(ops.avg_pool2d)


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

    def __init__(self, words: int, width: int, seed: init.Seed = 0, dtype: Any = float) -> None:
        init.sizes("Embedding", words=words, width=width)
        self.words, self.width = words, width
        self.weight = init.normal((words, width), 1.0, seed, dtype)

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

    def __init__(self, p: float = 0.5, seed: init.Seed = 0) -> None:
        if not 0 <= p < 1:
            what = f"Dropout(p={p!r}): the probability is at least 0 and below 1"
            raise refusal(what, "the share that is dropped: Dropout(p=0.5)")
        self.p = p
        self._draw = init.generator(seed)

    def forward(self, x: Any) -> Any:
        """``x`` with gaps in training, ``x`` itself in use."""
        program = getattr(getattr(x, "block", None), "program", None)
        seed = self._draw
        if program is not None and self.training and self.p:
            seed = _moving_seed(program, int(self._draw.integers(2**62)))
        return ops.dropout(x, p=self.p, seed=seed, training=self.training)


def _moving_seed(program: Any, first: int) -> Any:
    """A persistable whole number that every run of the program makes one larger."""
    seed = program.add_persistable(program.unique_name("seed"), np.array(first), trainable=False)
    program.current_block().append_op(
        "sgd",
        inputs={"param": [seed.name]},
        outputs={"param_out": [seed.name]},
        attrs={"grad": -1, "learning_rate": 1},
        role="optimize",
    )
    return seed


class Sequential(Module):
    """Modules and functions, one after the other.

    >>> import minigrad as mg
    >>> double = Sequential(mg.relu, lambda x: 2 * x)
    >>> double(mg.tensor([-1.0, 3.0]))
    tensor([0., 6.])
    >>> len(double), len(double[:1])
    (2, 1)
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for layer in layers:
            if not callable(layer) or isinstance(layer, type):
                raise _no_layer(layer)
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """Through all layers in order."""
        for layer in self.layers:
            x = layer(x)
        return x

    def __getitem__(self, index: int | slice) -> Any:
        """One layer, or a Sequential of some, which are shared."""
        return Sequential(*self.layers[index]) if isinstance(index, slice) else self.layers[index]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)


def _no_layer(layer: Any) -> MinigradError:
    """The error for what can stand in no row of layers."""
    shown, advice = describe(layer), "mg.relu, not mg.relu(x): it will be called on what comes in"
    if isinstance(layer, type):
        shown, advice = f"the class {layer.__name__}", f"{layer.__name__}(), a layer of it"
    elif isinstance(layer, list | tuple | dict):
        advice = (
            "Sequential(*layers.values())" if isinstance(layer, dict) else "Sequential(*layers)"
        )
    return refusal(f"Sequential holds modules and functions, not {shown}", advice)


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

    function = staticmethod(ops.relu)


class LeakyReLU(FunctionLayer):
    """``x`` where it is positive, else ``negative_slope * x``.

    >>> import minigrad as mg
    >>> LeakyReLU(0.5)(mg.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ])
    """

    function = staticmethod(ops.leaky_relu)
    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope


class ELU(FunctionLayer):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import minigrad as mg
    >>> ELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """

    function = staticmethod(ops.elu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class GELU(FunctionLayer):
    """``x * Φ(x)``, with the distribution function Φ of the standard normal.

    >>> import minigrad as mg
    >>> GELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    function = staticmethod(ops.gelu)


class SiLU(FunctionLayer):
    """``x * sigmoid(x)``, also called swish.

    >>> import minigrad as mg
    >>> SiLU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    function = staticmethod(ops.silu)


class Softplus(FunctionLayer):
    """``log(1 + exp(x))``, a smooth relu.

    >>> import minigrad as mg
    >>> Softplus()(mg.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    function = staticmethod(ops.softplus)


class Sigmoid(FunctionLayer):
    """``1 / (1 + exp(-x))``.

    >>> import minigrad as mg
    >>> Sigmoid()(mg.tensor([0.0, 2.0]))
    tensor([0.5   , 0.8808])
    """

    function = staticmethod(ops.sigmoid)


class Tanh(FunctionLayer):
    """The hyperbolic tangent.

    >>> import minigrad as mg
    >>> Tanh()(mg.tensor([0.0, 2.0]))
    tensor([0.   , 0.964])
    """

    function = staticmethod(ops.tanh)


class Softmax(FunctionLayer):
    """Positive numbers that sum to 1 along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> Softmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[0.5, 0.5]])
    """

    function = staticmethod(ops.softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class LogSoftmax(FunctionLayer):
    """``log(softmax(x))`` along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> LogSoftmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    function = staticmethod(ops.log_softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


# -- layers that normalise: over a batch, or over every example for itself -----------------


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
