"""Optimizers: each is the update primitive it runs, its attrs, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, describe, refusal
from .number import check_number
from .optimizer import Optimizer
from .schedules import Rate


class SGD(Optimizer):
    """``p = p - lr * grad``; with ``momentum`` the gradients are summed to a velocity.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = SGD([w], lr=0.1, momentum=0.5)
    >>> for _ in range(2):
    ...     w.grad = mg.tensor([1.0])
    ...     optimizer.step()
    >>> w.tolist()                                        # 1 - 0.1 * 1 - 0.1 * 1.5
    [0.75]
    """

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        clip: Any = None,
    ) -> None:
        check_number("momentum", momentum, below=1)
        if not isinstance(nesterov, bool | np.bool_):  # elsewhere another option stands here
            what = f"nesterov is {describe(nesterov)}"
            raise refusal(what, "True or False; options by name", ArgumentError)
        if nesterov and not momentum:
            raise refusal("nesterov looks ahead along the velocity", "momentum=0.9", ArgumentError)
        attrs: dict[str, Any] = {"mu": momentum, "use_nesterov": nesterov} if momentum else {}
        if momentum:
            self.type, self.memory = "momentum", {"velocity": "zeros"}
        super().__init__(parameters, lr, weight_decay, clip, **attrs)


class Adagrad(Optimizer):
    """Steps that shrink where the squares of the gradients, summed since the start, have become large.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic optimization, 2011.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = Adagrad([w], lr=0.3)
    >>> for _ in range(3):
    ...     w.grad = mg.tensor([1.0])
    ...     optimizer.step()
    >>> w                                                 # 1 - 0.3 * (1 + 1/√2 + 1/√3)
    tensor([0.3147], requires_grad=True)
    """

    type = "adagrad"
    memory: Mapping[str, Any] = {"moment": "zeros"}

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.01,
        epsilon: float = 1e-10,
        weight_decay: float = 0.0,
        clip: Any = None,
    ) -> None:
        check_number("epsilon", epsilon)
        super().__init__(parameters, lr, weight_decay, clip, epsilon=epsilon)


class RMSprop(Optimizer):
    """Steps relative to the running root mean square of the gradients.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 100.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> RMSprop([w], lr=0.1, rho=0.0).step()              # steps of one length, whatever the slope
    >>> w
    tensor([ 0.9, 99.9], requires_grad=True)
    """

    type = "rmsprop"
    memory: Mapping[str, Any] = {"mean_square": "zeros"}

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.01,
        rho: float = 0.99,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        clip: Any = None,
    ) -> None:
        check_number("rho", rho, below=1)
        check_number("epsilon", epsilon)
        super().__init__(parameters, lr, weight_decay, clip, rho=rho, epsilon=epsilon)


class Adam(Optimizer):
    """Running mean and mean square of the gradients, both corrected for their start at 0.

    Source: Kingma and Ba, Adam: a method for stochastic optimization, 2015.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0, 100.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> Adam([w], lr=0.1).step()                          # the first step has length lr
    >>> w
    tensor([ 0.9, 99.9], requires_grad=True)
    """

    type = "adam"
    memory: Mapping[str, Any] = {"moment1": "zeros", "moment2": "zeros", "step": 0.0}

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        clip: Any = None,
    ) -> None:
        check_number("beta1", beta1, below=1)
        check_number("beta2", beta2, below=1)
        check_number("epsilon", epsilon)
        super().__init__(
            parameters, lr, weight_decay, clip, beta1=beta1, beta2=beta2, epsilon=epsilon
        )


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself, beside the step.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2019.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> w.grad = mg.tensor([0.0])
    >>> AdamW([w], lr=0.1, weight_decay=0.5).step()       # no gradient, only decay
    >>> w
    tensor([0.95], requires_grad=True)
    """

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        clip: Any = None,
    ) -> None:
        check_number("weight_decay", weight_decay)
        super().__init__(parameters, lr, beta1, beta2, epsilon, clip=clip)
        self.attrs["weight_decay"] = weight_decay  # the primitive's own
