"""What an optimizer is given to train: the leaves, each once, or what is wrong and the repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..eager.tensor import Tensor
from ..errors import GradError, describe, refusal


def leaves(parameters: Any) -> list[Tensor]:
    """The Tensors of a module or a list; none for None.  Errors: `GradError`."""
    if parameters is None:
        return []
    if isinstance(parameters, Tensor):
        raise refusal("parameters is one Tensor", "a list of Tensors, or a module", GradError)
    whole = hasattr(parameters, "parameters") and not isinstance(parameters, type)
    given = parameters.parameters() if whole else parameters
    if not isinstance(given, Iterable) or isinstance(given, type):
        what = f"parameters are Tensors or a module, not {_shown(parameters)}"
        raise refusal(what, _call(parameters), GradError)
    found: dict[int, Tensor] = {}
    for p in given.items() if isinstance(given, Mapping) else given:
        if not isinstance(p, Tensor) or not p.is_leaf or not p.requires_grad:
            what = f"a parameter is a leaf Tensor that requires grad, not {_shown(p)}"
            raise refusal(what, _repair(p), GradError)
        found[id(p)] = p
    if not found:
        advice = "a module, or a list; a generator gives its values once"
        if whole:
            advice = (
                "a module with layers as attributes; frozen ones thaw by model.requires_grad_()"
            )
        raise refusal("there are no parameters to train: the list is empty", advice, GradError)
    return list(found.values())


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else describe(value)


def _call(value: Any) -> str:
    """What was meant by something that gives no values."""
    if isinstance(value, type):
        return f"a module made of it: {value.__name__}(…)"
    return "model.parameters(), called, or the model" if callable(value) else "SGD(model, lr=0.1)"


def _repair(p: Any) -> str:
    """What was meant by something that is no parameter."""
    if isinstance(p, Tensor):
        if not p.is_leaf:
            return "the Tensors it was computed from; training changes what no op made"
        return "mg.tensor(…, requires_grad=True), nn.Parameter(…), or layer.requires_grad_()"
    if hasattr(p, "parameters"):
        return (
            "one module that holds them, nn.Sequential(a, b), or [*a.parameters(), *b.parameters()]"
        )
    if isinstance(p, tuple):
        return "model.parameters(), which gives them without names"
    if isinstance(p, dict):
        return "one optimizer for each group of parameters"
    return "nn.Parameter(values) makes a Tensor that training changes"
