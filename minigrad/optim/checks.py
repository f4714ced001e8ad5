"""What an optimizer is given: numbers, parameters, a state; or what is wrong with it and the repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..errors import (
    ArgumentError,
    GradError,
    MinigradError,
    ShapeError,
    describe,
    did_you_mean,
    refusal,
)

#: numbers of steps, which are above 0
_STEPS = ("steps", "every", "step_size", "total_iters", "T_max")
#: shares of what was before, which are below 1
_SHARES = ("momentum", "mu", "beta1", "beta2", "rho")
#: name → a value that makes sense
ADVICE = {
    "lr": "0.01, or a schedule: lr=optim.cosine(0.01, steps=1000)",
    "rate": "0.1; an optimizer is given the schedule: SGD(model, lr=optim.cosine(0.1, steps=1000))",
    "weight_decay": "0.0001",
    "momentum": "0.9",
    "mu": "0.9",
    "beta1": "0.9",
    "beta2": "0.999",
    "rho": "0.99",
    "epsilon": "1e-8",
    "limit": "1.0",
    **dict.fromkeys(_STEPS, "1000"),
}


def check_number(name: str, value: Any) -> None:
    """A real number in the range that the name has.  Errors: `ArgumentError` that quotes it."""
    real = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
    if name in _STEPS:
        fits, wanted = real and value > 0, "of steps above 0"
    elif name in _SHARES:
        fits, wanted = real and 0 <= value < 1, "of at least 0 and below 1"
    else:
        fits, wanted = real and 0 <= value < float("inf"), "of at least 0"
    if not fits:
        what = f"{name} is {describe(value)}: give a number {wanted}"
        raise refusal(what, f"{name}={ADVICE.get(name, '0.1')}", ArgumentError)


def check_options(options: Mapping[str, Any]) -> None:
    """Numbers from 0 on, those that share out below 1; a rate may be a schedule.  Errors: `ArgumentError`."""
    for name, value in options.items():
        if name in ADVICE and not (name == "lr" and callable(value)):
            check_number(name, value)


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


def leaves(parameters: Any) -> list[Tensor]:
    """The Tensors of a module or a list; none for None.  Errors: `GradError`."""
    if parameters is None:
        return []
    whole = hasattr(parameters, "parameters") and not isinstance(parameters, type)
    values = parameters.parameters() if whole else parameters
    if not isinstance(values, Iterable) or isinstance(values, type | Tensor):
        what = f"parameters are Tensors or a module, not {_shown(parameters)}"
        advice = "a list of Tensors" if isinstance(values, Tensor) else _repair(parameters)
        raise refusal(what, advice, GradError)
    tensors: dict[int, Tensor] = {}
    for p in values.items() if isinstance(values, Mapping) else values:
        if not isinstance(p, Tensor) or not p.is_leaf or not p.requires_grad:
            what = f"a parameter is a leaf Tensor that requires grad, not {_shown(p)}"
            raise refusal(what, _repair(p), GradError)
        tensors[id(p)] = p
    if not tensors:
        advice = "a module with layers as attributes; frozen ones thaw by model.requires_grad_()"
        advice = advice if whole else "a module, or a list; a generator gives its values once"
        raise refusal("there are no parameters to train: the list is empty", advice, GradError)
    return list(tensors.values())


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else describe(value)


def _repair(p: Any) -> str:
    """What was meant by something that is no parameter."""
    if isinstance(p, type):
        return f"a module made of it: {p.__name__}(…)"
    if isinstance(p, Tensor):
        made = "the Tensors it was computed from; training changes what no op made"
        leaf = "mg.tensor(…, requires_grad=True), nn.Parameter(…), or layer.requires_grad_()"
        return leaf if p.is_leaf else made
    if hasattr(p, "parameters"):
        return (
            "one module that holds them, nn.Sequential(a, b), or [*a.parameters(), *b.parameters()]"
        )
    if isinstance(p, tuple | dict):
        return 'model.parameters(), which gives them without names; groups: [{"params": …}, …]'
    if callable(p):
        return "model.parameters(), called, or the model"
    return "SGD(model, lr=0.1); nn.Parameter(values) makes a Tensor that training changes"


def fitting_state(
    owner: str, own: Mapping[str, Any], state: Any, error: type[MinigradError] = ShapeError
) -> dict[str, np.ndarray[Any, Any]]:
    """A state to take over, each value of the dtype that its owner has.  Errors: ``error``."""
    if not isinstance(state, Mapping):
        what = f"a state is a mapping from names to arrays, not {describe(state)}"
        raise refusal(what, "load_state_dict(nn.load(path))", error)
    for name in state:
        if name not in own:
            what = f"{owner} has no {name!r}{did_you_mean(name, own)}"
            advice = "state.pop(name), or rename it: state[new] = state.pop(old)"
            raise refusal(what, advice, error)
    values = {}
    for name, held in own.items():
        if name not in state:
            what = f"the state has no {name!r}{did_you_mean(name, state)}"
            advice = "the state of one of the same kind; {**model.state_dict(), **state} keeps what the model has"
            raise refusal(what, advice, error)
        array = np.asarray(getattr(state[name], "_data", state[name]))
        number = array.dtype.kind in "fiub" and np.can_cast(array.dtype, held.dtype, "same_kind")
        if array.shape != held.shape or not number:
            what = f"{name!r} is {describe(array)} in the state, expected {describe(held)}"
            turned = held.shape != array.shape == held.shape[::-1]
            hint = " (weights of PyTorch are transposed: weight.T)" * turned
            raise refusal(what, f"the same parameters in the same sizes{hint}", error)
        values[name] = array.astype(held.dtype)
    return values
