"""Sequential: layers in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ShapeError, describe
from .module import Module


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
            if not callable(layer):
                raise ShapeError(f"Sequential holds modules and functions, not {describe(layer)}")
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
