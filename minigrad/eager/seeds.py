"""Where backward starts: the seeds of its outputs, and the edges of what it is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, describe, refusal, user_line
from ..primitives.arguments import as_list
from ..primitives.registry import Primitive
from .accumulate import named
from .grad_fn import Leaf, no_graph_reason
from .tensor import Tensor, wrap

#: seeds of outputs that are one number: to find one is faster than to make one
_UNITS: dict[type, Any] = {t: t(1) for t in (np.float32, np.float64)}


def edge_of(tensor: Any, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise refusal(
            f"{what} must be Tensors, not {describe(tensor)}",
            "the Tensors that the output was computed from",
            DTypeError,
        )
    edge = tensor._node
    if edge is None:
        raise refusal(
            f"one of the {what}{named(tensor)} does not require grad",
            "create it with requires_grad=True",
            GradError,
        )
    return edge.accumulator(tensor) if edge.__class__ is Leaf else edge


def seeds(outputs: list[Any], given: Any, create_graph: bool) -> list[Any]:
    seeds = [None] * len(outputs) if given is None else as_list(given)
    if len(seeds) != len(outputs):
        raise refusal(
            f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given",
            "a list with one for each output; None for an output that is one number",
            GradError,
        )
    made = []
    for out, seed in zip(outputs, seeds, strict=True):
        unit = unit_seed(out) if seed is None and out.__class__ is Tensor else None
        if unit is not None:
            made.append(wrap(np.asarray(unit)) if create_graph else unit)
            continue
        if not isinstance(out, Tensor):
            raise refusal(
                f"backward starts from a Tensor, not from {describe(out)}",
                "the result of an op on Tensors; numpy(), item() and float() lose the graph",
                DTypeError,
            )
        if out._node is None:
            raise GradError(no_graph(out))
        if out._data.dtype.kind != "f":
            raise refusal(
                f"backward from {describe(out)} is not defined: only real floating-point outputs "
                "have "
                f"gradients here",
                "start from a real number",
                DTypeError,
            )
        if seed is None:
            if out._data.size != 1:
                raise refusal(
                    f"backward() needs a seed: {describe(out)} has {out._data.size} elements, and "
                    "only a scalar, a single number, has a gradient by itself",
                    f"reduce it first (y.sum().backward()), or pass gradient=… of shape "
                    f"{list(out.shape)}",
                    GradError,
                )
            array: Any = np.ones(out.shape, out._data.dtype)
        else:
            array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
            if array.dtype.kind not in "fiub":
                raise refusal(
                    f"the seed {describe(array)} must hold real numbers",
                    f"gradient=… of shape {list(out.shape)}",
                    DTypeError,
                )
            if array.shape != out.shape:
                raise refusal(
                    f"the seed {describe(array)} must have the shape of the output, "
                    f"{list(out.shape)}",
                    f"gradient=… of shape {list(out.shape)}",
                )
            array = array.astype(out._data.dtype, copy=False)
        made.append(
            (seed if isinstance(seed, Tensor) else wrap(np.array(array))) if create_graph else array
        )
    return made


def unit_seed(out: Tensor) -> Any:
    """The seed of an output that is one real number; None for others."""
    data = out._data
    if out._node is None:
        return None
    unit = _UNITS.get(data.__class__)
    if unit is not None:
        return unit
    if data.size != 1 or data.dtype.kind != "f":
        return None
    return np.ones_like(data) if data.ndim else data.dtype.type(1)


def no_graph(out: Tensor) -> str:
    repair = (
        "create the inputs with requires_grad=True, compute outside no_grad(), without detach()"
    )
    if isinstance(getattr(out, "_cut", None), Primitive):
        repair = "an op that has one; an op of your own gets it by op.grad(x=lambda …)"
    return (
        f"backward() found no graph: {describe(out)}{named(out)} has no grad_fn and does not "
        "require grad.\n"
        f"  why: {no_graph_reason(out)}\n  at {user_line()}\n  repair: {repair}"
    )
