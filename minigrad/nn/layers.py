"""Layers without memory: dense, convolution, pooling, embedding, dropout; and layers in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import ops
from ..errors import MinigradError, describe, refusal
from . import init
from .module import Module


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


class Filters(Module):
    """What both convolutions share: ``weight``, filters over some channels each, and a bias for each filter."""

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

    def _how(self) -> dict[str, Any]:
        names = ("stride", "padding", "dilation", "groups")
        return {name: getattr(self, name) for name in names}


class Conv2d(Filters):
    """Filters that slide over images: ``x`` [batch, channels, height, width]; ``weight`` [filters,
    channels / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> Conv2d(1, 8, kernel_size=3, padding=1)(mg.zeros([2, 1, 8, 8])).shape
    (2, 8, 8, 8)
    """

    def forward(self, x: Any) -> Any:
        """[batch, filters, height, width]; the last two as stride and padding say."""
        return ops.conv2d(x, self.weight, self.bias, **self._how())


class ConvTranspose2d(Filters):
    """`Conv2d` transposed, to make images larger: ``weight`` [channels, filters / groups, ``*kernel_size``].

    >>> import minigrad as mg
    >>> ConvTranspose2d(8, 4, kernel_size=2, stride=2)(mg.zeros([2, 8, 4, 4])).shape
    (2, 4, 8, 8)
    """

    transposed = True

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

    def forward(self, x: Any) -> Any:
        """[batch, filters, height, width]; the last two as stride and padding say."""
        how = {**self._how(), "output_padding": self.output_padding}
        return ops.conv_transpose2d(x, self.weight, self.bias, **how)


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


class Pool(Module):
    """What both kinds of pooling share: how large windows are, how far they move, the border."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def _how(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("kernel_size", "stride", "padding")}


class MaxPool2d(Pool):
    """The largest element of every window.

    >>> import minigrad as mg
    >>> MaxPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width] → the same with fewer rows and columns."""
        return ops.max_pool2d(x, **self._how())


class AvgPool2d(Pool):
    """The mean of every window; padding counts as zeros.

    >>> import minigrad as mg
    >>> AvgPool2d(2)(mg.zeros([1, 1, 8, 8])).shape
    (1, 1, 4, 4)
    """

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width] → the same with fewer rows and columns."""
        return ops.avg_pool2d(x, **self._how())


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
