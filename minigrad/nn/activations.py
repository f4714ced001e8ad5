"""Activations as modules, for `Sequential`; the functions (`mg.relu`, …) may stand there, too."""

from __future__ import annotations

from typing import Any

from .. import ops
from .module import Module


class Identity(Module):
    """What comes in: a place where a layer may stand later.

    >>> import minigrad as mg
    >>> Identity()(mg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def forward(self, x: Any) -> Any:
        """``x``."""
        return x


class ReLU(Module):
    """``max(x, 0)``.

    >>> import minigrad as mg
    >>> ReLU()(mg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, x: Any) -> Any:
        """`mg.relu`."""
        return ops.relu(x)


class LeakyReLU(Module):
    """``x`` where it is positive, else ``negative_slope * x``.

    >>> import minigrad as mg
    >>> LeakyReLU(0.5)(mg.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        """`mg.leaky_relu`."""
        return ops.leaky_relu(x, negative_slope=self.negative_slope)


class ELU(Module):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import minigrad as mg
    >>> ELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        """`mg.elu`."""
        return ops.elu(x, alpha=self.alpha)


class GELU(Module):
    """``x * Φ(x)``, with the distribution function Φ of the standard normal.

    >>> import minigrad as mg
    >>> GELU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    def forward(self, x: Any) -> Any:
        """`mg.gelu`."""
        return ops.gelu(x)


class SiLU(Module):
    """``x * sigmoid(x)``, also called swish.

    >>> import minigrad as mg
    >>> SiLU()(mg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, x: Any) -> Any:
        """`mg.silu`."""
        return ops.silu(x)


class Softplus(Module):
    """``log(1 + exp(x))``, a smooth relu.

    >>> import minigrad as mg
    >>> Softplus()(mg.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    def forward(self, x: Any) -> Any:
        """`mg.softplus`."""
        return ops.softplus(x)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    >>> import minigrad as mg
    >>> Sigmoid()(mg.tensor([0.0, 2.0]))
    tensor([0.5   , 0.8808])
    """

    def forward(self, x: Any) -> Any:
        """`mg.sigmoid`."""
        return ops.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import minigrad as mg
    >>> Tanh()(mg.tensor([0.0, 2.0]))
    tensor([0.   , 0.964])
    """

    def forward(self, x: Any) -> Any:
        """`mg.tanh`."""
        return ops.tanh(x)


class Softmax(Module):
    """Positive numbers that sum to 1 along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> Softmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[0.5, 0.5]])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """`mg.softmax`."""
        return ops.softmax(x, axis=self.axis)


class LogSoftmax(Module):
    """``log(softmax(x))`` along an axis, the last one if none is named.

    >>> import minigrad as mg
    >>> LogSoftmax()(mg.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """`mg.log_softmax`."""
        return ops.log_softmax(x, axis=self.axis)
