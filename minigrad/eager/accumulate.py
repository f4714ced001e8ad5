"""The last step of backward: what arrived at a leaf becomes its ``.grad``; all leaves or none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, describe, refusal
from .grad_fn import Leaf
from .tensor import Tensor, wrap


def commit(new: list[tuple[Tensor, Any]], hooks: list[Any]) -> None:
    """Set the new gradients, then call the hooks behind them, each with what it is to see; all or nothing."""
    before = [(t, t._grad) for t, _ in new]
    try:
        for tensor, value in new:
            tensor._grad = value
        for hook, seen in hooks:
            if hook(*seen) is not None and len(seen) > 1:
                what = "a hook of an AccumulateGrad returned something, and there are no grad_inputs it could replace"
                raise refusal(
                    what,
                    "return nothing; register_prehook changes what is added to .grad",
                    GradError,
                )
    except BaseException:
        for tensor, old in before:
            tensor._grad = old
        raise


def accumulated(tensor: Tensor, g: Any, own: bool, create: bool) -> Any:
    """The new ``.grad`` of a leaf, a Tensor or an array, in memory of its own, in the leaf's shape and dtype."""
    old = tensor.grad
    if create or isinstance(g, Tensor):
        g = g if isinstance(g, Tensor) else wrap(np.array(g))
        fitted(tensor, g._data, False)
        if old is not None:
            return old + g
        return g * 1.0 if g._node.__class__ is Leaf else wrap(np.array(g._data), g._node)
    g = fitted(tensor, g, own)
    if old is None:
        return wrap(g)
    return wrap(np.asarray(old._data + g)) if old._node is None else old + wrap(g)


def fitted(tensor: Tensor, g: Any, own: bool) -> Any:
    """A gradient in its leaf's shape and dtype and in memory nobody else holds."""
    data = tensor._data
    if g.shape != data.shape:
        what = (
            f"a gradient of shape {list(g.shape)} arrived at {describe(tensor)}{named(tensor)}: "
            "one of the rules on the way has a wrong shape"
        )
        advice = "a gradient has the shape of its input; @mg.elementwise sums over broadcast axes"
        raise refusal(what, f"{advice}; mg.gradcheck(op, inputs) finds the op")
    if g.dtype != data.dtype:
        if g.dtype.kind == "c":
            raise DTypeError(
                f"a complex gradient arrived at the real {describe(tensor)}{named(tensor)}; "
                "minigrad differentiates real functions only"
            )
        return np.array(g, data.dtype)
    return g if own else np.array(g)


def named(tensor: Tensor) -> str:
    return f" ({tensor.name})" if tensor.name else ""
