"""What an optimizer is given: numbers, parameters, a state; or what is wrong with it and the repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..errors import ArgumentError, GradError, describe, did_you_mean, refusal

#: name → a value that makes sense
ADVICE = {
    "lr": "0.01, or a schedule: lr=optim.cosine(0.01, steps=1000)",
    "rate": "0.1; an optimizer is given the schedule: SGD(model, lr=optim.cosine(0.1, steps=1000))",
    "weight_decay": "0.0001",
    "momentum": "0.9", "mu": "0.9", "beta1": "0.9", "beta2": "0.999", "rho": "0.99", "epsilon": "1e-8", "limit": "1.0",
}  # fmt: skip


def check_steps(name: str, value: Any) -> None:
    """A number above 0.  Errors: `ArgumentError` that quotes it."""
    if not _real(value) or not value > 0:
        raise refusal(
            f"{name} is {describe(value)}: give a number of steps above 0",
            f"{name}=1000",
            ArgumentError,
        )


def check_number(name: str, value: Any, below: float = float("inf")) -> None:
    """A real number from 0 on.  Errors: `ArgumentError` that quotes it."""
    if not _real(value) or not 0 <= value < below:
        end = "" if below == float("inf") else f" and below {below}"
        what = f"{name} is {describe(value)}: give a number of at least 0{end}"
        raise refusal(what, f"{name}={ADVICE.get(name, '0.1')}", ArgumentError)


def check_options(options: Mapping[str, Any]) -> None:
    """Numbers from 0 on, those that share out below 1; a rate may be a schedule.  Errors: `ArgumentError`."""
    for name, value in options.items():
        if name in ADVICE and not (name == "lr" and callable(value)):
            check_number(
                name, value, 1 if name in ("mu", "rho", "beta1", "beta2") else float("inf")
            )


#: options of a group by the names that constructors have for them
_NAMES = {"momentum": "mu", "nesterov": "use_nesterov"}


def group_of(
    group: Mapping[str, Any], defaults: Mapping[str, Any], trained: list[Tensor]
) -> dict[str, Any]:
    """A group of parameters with all its options.  Errors: `GradError` for what is no group, or trained already."""
    advice = '[{"params": model.body}, {"params": model.head, "lr": 0.1}]'
    if not isinstance(group, Mapping) or "params" not in group:
        what = f"a group of parameters is a dictionary with 'params', not {describe(group)}"
        raise refusal(what, advice, GradError)
    options = {_NAMES.get(name, name): value for name, value in group.items() if name != "params"}
    for name in options:
        if name not in defaults:
            known = [n for n in ("momentum", "nesterov", *defaults) if _NAMES.get(n, n) in defaults]
            what = f"a group of parameters has no {name!r}{did_you_mean(name, known)}"
            raise refusal(what, f"an option that all groups have: {advice}", ArgumentError)
    params = leaves(group["params"])
    if twice := [p for p in params if any(p is q for q in trained)]:
        what = f"{twice[0].name or describe(twice[0])} stands in two groups of parameters"
        raise refusal(what, "each parameter in one group", GradError)
    whole = {"params": params, **defaults, **options}
    check_options(whole)
    return whole


def _real(value: Any) -> bool:
    number = isinstance(value, int | float | np.floating | np.integer)
    return number and not isinstance(value, bool)


def leaves(parameters: Any) -> list[Tensor]:
    """The Tensors of a module or a list; none for None.  Errors: `GradError`."""
    if parameters is None:
        return []
    if isinstance(parameters, Tensor):
        raise refusal("parameters is one Tensor", "a list of Tensors, or a module", GradError)
    whole = hasattr(parameters, "parameters") and not isinstance(parameters, type)
    values = parameters.parameters() if whole else parameters
    if not isinstance(values, Iterable) or isinstance(values, type):
        what = f"parameters are Tensors or a module, not {_shown(parameters)}"
        raise refusal(what, _call(parameters), GradError)
    tensors: dict[int, Tensor] = {}
    for p in values.items() if isinstance(values, Mapping) else values:
        if not isinstance(p, Tensor) or not p.is_leaf or not p.requires_grad:
            what = f"a parameter is a leaf Tensor that requires grad, not {_shown(p)}"
            raise refusal(what, _repair(p), GradError)
        tensors[id(p)] = p
    if not tensors:
        advice = "a module, or a list; a generator gives its values once"
        if whole:
            advice = (
                "a module with layers as attributes; frozen ones thaw by model.requires_grad_()"
            )
        raise refusal("there are no parameters to train: the list is empty", advice, GradError)
    return list(tensors.values())


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
        return '[{"params": …, "lr": 0.1}, …]: a list of groups'
    return "nn.Parameter(values) makes a Tensor that training changes"


def check_state(optimizer: str, expected: Mapping[str, Any], state: Any) -> None:
    """Compare a state with the optimizer's own.  Errors: `ShapeError` that names the entry."""
    if not isinstance(state, Mapping):
        what = f"a state is a mapping from names to arrays, not {describe(state)}"
        raise refusal(what, "optimizer.load_state_dict(nn.load(path))")
    for name in sorted({*expected, *state}):
        if name not in expected or name not in state:
            known, what = (expected, "unknown") if name not in expected else (state, "missing")
            hint = did_you_mean(name, known)
            advice = "the state of an optimizer of the same kind: optimizer.state_dict()"
            raise refusal(f"{what} entry {name!r} in the state of {optimizer}{hint}", advice)
        value = np.asarray(state[name])
        if value.shape != expected[name].shape or value.dtype.kind not in "fiub":
            what = f"{name!r} is {describe(value)}, expected {describe(expected[name])}"
            raise refusal(what, "the same parameters in the same order")
