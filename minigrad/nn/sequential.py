"""Sequential: layers in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import MinigradError, describe, refusal
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


def _no_layer(given: Any) -> MinigradError:
    """The error for what can stand in no row of layers."""
    shown, advice = describe(given), "mg.relu, not mg.relu(x): it will be called on what comes in"
    if isinstance(given, type):
        shown, advice = f"the class {given.__name__}", f"{given.__name__}(), a layer of it"
    elif isinstance(given, list | tuple | dict):
        advice = (
            "Sequential(*layers.values())" if isinstance(given, dict) else "Sequential(*layers)"
        )
    return refusal(f"Sequential holds modules and functions, not {shown}", advice)
