"""Optimizers: what all do, steps and states; and each, the update primitive it runs, its attrs, what it remembers."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import cos, inf, pi
from typing import Any

import numpy as np

from .. import ops
from ..atomic import set_all
from ..eager.tensor import Tensor, wrap
from ..errors import (
    REPAIRS,
    ArgumentError,
    DTypeError,
    GradError,
    MinigradError,
    ShapeError,
    describe,
    did_you_mean,
    refusal,
    wrong,
)
from ..errors.calls import CheckedConstructors
from ..errors.other_libraries import TABLES, knows_others, meant
from ..ops.shape import Array
from ..primitives.arguments import ByName, Listed
from ..primitives.registry import REGISTRY

__all__ = [
    "SGD", "Adagrad", "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR",
    "MultiStepLR", "Optimizer", "RMSprop", "StepLR", "clip_by_global_norm", "clip_by_norm",
    "clip_by_value", "cosine", "exponential", "linear", "step_decay", "warmup",
]  # fmt: skip

_REAL = int | float | np.floating | np.integer
#: numbers of steps, which are above 0
_STEPS = ("steps", "every", "step_size", "total_iters", "T_max")
#: shares of what was before, which are below 1
_SHARES = ("momentum", "mu", "beta1", "beta2", "rho")
_ADVICE = {
    "lr": "0.01, or a schedule: lr=optim.cosine(0.01, steps=1000)",
    "rate": "0.1; an optimizer is given the schedule: SGD(model, lr=optim.cosine(0.1, steps=1000))",
    "weight_decay": "0.0001",
    "epsilon": "1e-8",
    **dict.fromkeys(_SHARES, "0.9"),
    **dict.fromkeys(_STEPS, "1000"),
}


def check_numbers(**numbers) -> None:
    """Real numbers in the ranges that their names have.  Errors: `ArgumentError` that quotes the first other one."""
    for name, value in numbers.items():
        below, wanted = inf, "of at least 0"
        if name in _STEPS:
            wanted = "of steps above 0"
        elif name in _SHARES:
            below, wanted = 1, "of at least 0 and below 1"
        real = isinstance(value, _REAL) and not isinstance(value, bool)
        if not real or not 0 <= value < below or (name in _STEPS and not value):
            what = f"{name} is {describe(value)}: give a number {wanted}"
            raise refusal(what, f"{name}={_ADVICE.get(name, '1.0')}", ArgumentError)


def check_options(options: Mapping[str, Any]) -> None:
    """The numbers among the options of an optimizer; a rate may be a schedule.  Errors: `ArgumentError`."""
    known = {n: v for n, v in options.items() if n in _ADVICE and not (n == "lr" and callable(v))}
    check_numbers(**known)


#: options of a group by the names that constructors have for them
_NAMES = {"momentum": "mu", "nesterov": "use_nesterov"}


def leaves(parameters) -> list[Tensor]:
    """The Tensors of a module or a list; none for None.  Errors: `GradError`."""
    if parameters is None:
        return []
    whole = hasattr(parameters, "parameters") and not isinstance(parameters, type)
    values = parameters.parameters() if whole else parameters
    if not isinstance(values, Iterable) or isinstance(values, type | Tensor):
        what = f"parameters are Tensors or a module, not {describe(parameters)}"
        advice = "a list of Tensors" if isinstance(values, Tensor) else _repair(parameters)
        raise refusal(what, advice, GradError)
    tensors = list(values.items() if isinstance(values, Mapping) else values)
    for p in tensors:
        if not isinstance(p, Tensor) or not p.is_leaf or not p.requires_grad:
            what = f"a parameter is a leaf Tensor that requires grad, not {describe(p)}"
            raise refusal(what, _repair(p), GradError)
    if not tensors:
        advice = "a module, or a list; a generator gives its values once"
        if whole:
            advice = (
                "a module with layers as attributes; frozen ones thaw by model.requires_grad_()"
            )
        raise refusal("there are no parameters to train: the list is empty", advice, GradError)
    return list(dict.fromkeys(tensors))


def _repair(p) -> str:
    """What was meant by something that is no parameter."""
    if isinstance(p, Tensor) and not p.is_leaf:
        return "the Tensors it was computed from; training changes what no op made"
    if isinstance(p, Tensor):
        return "mg.tensor(…, requires_grad=True), nn.Parameter(…), or layer.requires_grad_()"
    if hasattr(p, "block"):
        return (
            "optim.SGD(lr=0.1).minimize(loss), without parameters: this is a Variable of a program"
        )
    if isinstance(p, type):
        return f"a module made of it: {p.__name__}(…)"
    if hasattr(p, "parameters"):
        return "one module that holds them, or [*a.parameters(), *b.parameters()]"
    return "model.parameters(), called: Tensors without names; or a module; of arrays nn.Parameter(values)"


def fitting_state(
    owner: str, own: Mapping[str, Any], state, error: type[MinigradError] = ShapeError
) -> dict[str, Array]:
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
        if array.shape != held.shape or not np.can_cast(array.dtype, held.dtype, "same_kind"):
            what = f"{name!r} is {describe(array)} in the state, expected {describe(held)}"
            turned = held.shape != array.shape == held.shape[::-1]
            hint = " (weights of PyTorch are transposed: weight.T)" * turned
            raise refusal(what, f"the same parameters in the same sizes{hint}", error)
        values[name] = array.astype(held.dtype)
    return values


Rate = float | Callable[[Any], Any]
Clip = Callable[[Listed], Listed]


def exponential(rate: float, factor: float) -> Rate:
    """``rate * factor ** count``.

    >>> schedule = exponential(0.4, 0.5)
    >>> [float(schedule(count)) for count in (0, 1, 2)]
    [0.4, 0.2, 0.1]
    """
    check_numbers(rate=rate)
    return lambda count: rate * ops.pow(factor, count)


def step_decay(rate: float, every: int, factor: float = 0.1) -> Rate:
    """Times ``factor`` after every ``every`` steps.

    >>> schedule = step_decay(0.4, every=2, factor=0.5)
    >>> [float(schedule(count)) for count in (0, 1, 2, 4)]
    [0.4, 0.4, 0.2, 0.1]
    """
    check_numbers(rate=rate, every=every)
    return lambda count: rate * ops.pow(factor, ops.floor(count / every))


def linear(rate: float, steps: int, end: float = 0.0) -> Rate:
    """In a straight line from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = linear(0.4, steps=4)
    >>> [float(schedule(count)) for count in (0, 2, 4, 9)]
    [0.4, 0.2, 0.0, 0.0]
    """
    check_numbers(rate=rate, steps=steps)
    return lambda count: rate + (end - rate) * ops.minimum(count / steps, 1.0)


def cosine(rate: float, steps: int, end: float = 0.0) -> Rate:
    """Half a wave of the cosine from ``rate`` to ``end`` in ``steps`` steps, then constant.

    >>> schedule = cosine(0.1, steps=10)
    >>> [round(float(schedule(count)), 3) for count in (0, 5, 10, 20)]
    [0.1, 0.05, 0.0, 0.0]
    """
    check_numbers(rate=rate, steps=steps)
    half = (rate - end) * 0.5
    return lambda count: end + half * (1.0 + ops.cos(pi * ops.minimum(count / steps, 1.0)))


def warmup(rate: Rate, steps: int) -> Rate:
    """Up to a rate, or to a schedule, in a straight line over the first ``steps`` steps.

    >>> schedule = warmup(0.4, steps=4)
    >>> [round(float(schedule(count)), 3) for count in (0, 1, 3, 9)]
    [0.1, 0.2, 0.4, 0.4]
    """
    if not callable(rate):
        check_numbers(rate=rate)
    check_numbers(steps=steps)
    full = rate if callable(rate) else lambda count: rate
    return lambda count: full(count) * ops.minimum((count + 1.0) / steps, 1.0)


# -- schedulers: the same as objects, which set the rates of an optimizer -----------------------


class LambdaLR(CheckedConstructors):
    """Sets each group's rate to its first one times ``lr_lambda(count)``; ``step()`` counts on, once an epoch or step.

    ``lr_lambda`` may be a list, one function for each group.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = LambdaLR(optimizer, lambda count: 1 / (1 + count))
    >>> scheduler.step()
    >>> optimizer.lr, scheduler.get_last_lr()
    (0.2, [0.2])
    """

    eta_min: float = 0  # where a factor of 0 leads

    def __init__(self, optimizer: Any, lr_lambda: Any) -> None:
        groups = getattr(optimizer, "param_groups", None)
        if groups is None:
            what = f"a scheduler sets the rates of an optimizer, not of {describe(optimizer)}"
            raise refusal(what, "optim.StepLR(optimizer, step_size=30)", DTypeError)
        functions = lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda] * len(groups)
        if len(functions) != len(groups) or not all(map(callable, functions)):
            what = f"lr_lambda is {describe(lr_lambda)}, and there are {len(groups)} groups"
            raise refusal(what, "a function, or a list with one for each group", ArgumentError)
        if any(callable(group["lr"]) for group in groups):
            what = "this optimizer has a schedule already: its lr is a function"
            raise refusal(what, "lr=0.1, a number", ArgumentError)
        self.optimizer = optimizer
        self.lr_lambdas = list(functions)
        self.last_epoch = 0
        self.base_lrs = [group["lr"] for group in groups]
        self._set()

    def step(self) -> None:
        """Count on and set the rates."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self) -> list[float]:
        """The rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> ByName:
        """The count and the first rates: ``nn.save`` can store it."""
        return {"last_epoch": np.array(self.last_epoch), "base_lrs": np.array(self.base_lrs, float)}

    def load_state_dict(self, state: Any) -> None:
        """Go on where another scheduler of the same kind stopped."""
        values = fitting_state(type(self).__name__, self.state_dict(), state)
        self.last_epoch = int(values["last_epoch"])
        self.base_lrs = values["base_lrs"].tolist()
        self._set()

    def _set(self) -> None:
        least = self.eta_min
        functions = zip(self.base_lrs, self.lr_lambdas, strict=True)
        rates = [least + (base - least) * f(self.last_epoch) for base, f in functions]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


class StepLR(LambdaLR):
    """Times ``gamma`` after every ``step_size`` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> scheduler.step()
    >>> optimizer.lr
    0.2
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        check_numbers(step_size=step_size)
        super().__init__(optimizer, lambda count: gamma ** (count // step_size))


class MultiStepLR(LambdaLR):
    """Times ``gamma`` at each count of ``milestones``.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = MultiStepLR(optimizer, milestones=[1, 5], gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, milestones: Any, gamma: float = 0.1) -> None:
        counts = [int(m) for m in milestones]
        super().__init__(optimizer, lambda count: gamma ** sum(m <= count for m in counts))


class ExponentialLR(LambdaLR):
    """Times ``gamma`` at every step.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, gamma: float) -> None:
        check_numbers(gamma=gamma)
        super().__init__(optimizer, lambda count: gamma**count)


class LinearLR(LambdaLR):
    """From ``start_factor`` to ``end_factor`` times the rate in a straight line of ``total_iters`` steps.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = LinearLR(optimizer, start_factor=0.25, end_factor=0.75, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        check_numbers(total_iters=total_iters)
        rise = end_factor - start_factor
        super().__init__(optimizer, lambda k: start_factor + rise * min(k / total_iters, 1.0))


class CosineAnnealingLR(LambdaLR):
    """Along a cosine to ``eta_min`` in ``T_max`` steps, and back in as many.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.tensor(1.0, requires_grad=True)], lr=0.4)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.2]
    """

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0) -> None:
        check_numbers(T_max=T_max)
        self.eta_min = eta_min
        super().__init__(optimizer, lambda count: (1 + cos(pi * count / T_max)) / 2)


@knows_others("this {}", TABLES["Optimizer"])
class Optimizer(CheckedConstructors):
    """Base of all optimizers.  ``parameters``: Tensors, a module, groups, or None (for Programs).

    A group is a dictionary of ``params`` and of the options that it has for itself: ``{"params": head, "lr": 0.1}``.
    ``param_groups`` holds all of them with all options, and what is changed there counts from the next step on.

    ``lr`` is a number or a schedule, a function from the number of the step (0, 1, …) to the rate;
    ``weight_decay`` adds that share of the parameter to its gradient; ``clip`` is one of the clips.

    Attributes for Programs: ``type`` (the update primitive), ``attrs``, ``memory`` (slot of the
    primitive → "zeros" like the parameter, or a first number), ``rate(count)``.  Where the primitive itself takes a
    ``weight_decay``, the optimizer is ``decoupled``.

    >>> import minigrad as mg
    >>> class Sign(Optimizer):                            # steps of one length
    ...     def step(self):
    ...         for p in self.parameters:
    ...             p.data = p.data - self.rate(self.count) * np.sign(p.grad.numpy())
    >>> w = mg.tensor([1.0, -3.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> Sign([w], lr=0.5).step()
    >>> w.tolist()
    [0.5, -2.5]
    """

    type = "sgd"
    memory: Mapping[str, Any] = {}
    decoupled = False

    def __init__(
        self,
        parameters: Any = None,
        lr: Rate = 0.01,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
        **attrs: Any,
    ) -> None:
        if clip is not None and not callable(clip):
            what = f"clip is {describe(clip)}, no function"
            raise refusal(what, "clip=optim.clip_by_norm(1.0)", ArgumentError)
        self.clip, self.count = clip, 0
        self._own = [*attrs, *["weight_decay"] * self.decoupled]
        self._defaults = {"lr": lr, "weight_decay": weight_decay, **attrs}
        check_options(self._defaults)
        self.parameters: list[Tensor] = []
        self.param_groups: list[ByName] = []
        self.state: dict[Tensor, list[Array]] = {}  # what is remembered, slot by slot
        groups: Any = [{"params": parameters}]
        if isinstance(parameters, list | tuple) and any(isinstance(g, dict) for g in parameters):
            groups = parameters
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more parameters, with options of their own: ``{"params": layer, "lr": 0.1}``.

        >>> import minigrad as mg
        >>> v, w = (mg.tensor(1.0, requires_grad=True) for _ in range(2))
        >>> optimizer = SGD([v], lr=0.1)
        >>> optimizer.add_param_group({"params": [w], "lr": 0.5})
        >>> (v * w).backward()
        >>> optimizer.step()
        >>> v.item(), w.item()
        (0.9, 0.5)

        Errors: `GradError` for what is no group, or trained already.
        """
        advice = '[{"params": model.body}, {"params": model.head, "lr": 0.1}]'
        defaults = self._defaults
        if not isinstance(group, Mapping) or "params" not in group:
            given = [*group] if isinstance(group, Mapping) else describe(group)
            what = f"a group of parameters is a dictionary with 'params', not {given}"
            raise refusal(what, advice, GradError)
        options = {_NAMES.get(name, name): v for name, v in group.items()}
        known = [n for n in (*_NAMES, *defaults) if _NAMES.get(n, n) in defaults]
        for name in group:
            if name not in ("params", *known):
                what = f"a group of parameters has no {name!r}{did_you_mean(meant(name, known) or name, known)}"
                if name in _NAMES:
                    advice = "momentum=0.9 for all groups"
                raise refusal(what, f"an option that all groups have: {advice}", ArgumentError)
        options["params"] = params = leaves(group["params"])
        if twice := [p for p in params if p in self.state]:
            what = f"{twice[0].name or describe(twice[0])} stands in two groups of parameters"
            raise refusal(what, "each parameter in one group", GradError)
        whole = {"params": params, **defaults, **options}
        check_options(whole)
        state = {p: self.first_memory(p) for p in params}
        groups = (self, "param_groups", [*self.param_groups, whole])
        parameters = (self, "parameters", [*self.parameters, *params])
        set_all([groups, parameters, (self, "state", self.state | state)])

    def first_memory(self, p: Any) -> list[Array]:
        """What is remembered of a parameter before the first step, slot by slot."""
        return [
            np.zeros(p.shape, p.dtype) if first == "zeros" else np.asarray(first, p.dtype)
            for first in self.memory.values()
        ]

    @property
    def lr(self) -> Any:
        """The learning rate, or the schedule, of the first group; set, it is that of all groups."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, value: Any) -> None:
        for group in self.param_groups:
            group["lr"] = value

    @property
    def attrs(self) -> ByName:
        """The attrs of the update primitive, for the first group."""
        return {name: self.param_groups[0][name] for name in self._own}

    @property
    def weight_decay(self) -> float:
        """What the gradients of the first group get of their parameters."""
        return 0.0 if self.decoupled else self.param_groups[0]["weight_decay"]

    def rate(self, count: Any) -> Any:
        """The learning rate of a step."""
        return self.lr(count) if callable(self.lr) else self.lr

    def step(self) -> None:
        """Update every parameter that has a gradient; all of them or, at an error, none."""
        if not self.parameters:
            what = "this optimizer has no parameters"
            raise refusal(what, "give them, as in SGD(model, lr=0.1)", GradError)
        kernel, count, state = REGISTRY[self.type].kernel, self.count, self.state
        clipped = self._clipped(self.clip) if self.clip else None
        changes = []  # parameter, its new array, what it had
        remembered = {}
        for group in self.param_groups:
            rate = group["lr"]
            decay = 0.0 if self.decoupled else group["weight_decay"]
            rate = float(rate(count) if callable(rate) else rate)
            dtype = None
            update = partial(kernel, **{name: group[name] for name in self._own})
            for p in group["params"]:
                slope, value = p._grad, p._data
                if slope is None or p._node is None:
                    continue
                if clipped:
                    slope = clipped[p]
                if slope.__class__ is Tensor:  # an array was left by backward, and fits
                    slope = _fitting(slope, p)
                if value.dtype is not dtype:  # as in a Program: an array of the parameter's dtype
                    dtype = value.dtype
                    lr = np.asarray(rate, dtype)
                if decay:
                    slope = slope + decay * value
                if self.memory:
                    new, *remembered[p] = update(value, slope, *state[p], lr)
                else:
                    new = update(value, slope, lr)
                changes.append((p, new, value, p._exposed))
        try:
            for p, new, _, _ in changes:
                p._data = new  # a new array: graphs keep the old one
                p._exposed = False
            self.state = state | remembered
            self.count = count + 1
        except BaseException:
            for p, _, value, exposed in changes:
                p._data, p._exposed = value, exposed
            self.state, self.count = state, count
            raise

    def _clipped(self, clip: Clip) -> dict[Tensor, Any]:
        """The clipped gradients of all parameters that have one."""
        trained = [p for p in self.parameters if p._grad is not None and p.requires_grad]
        grads = [wrap(_fitting(p.grad, p)) for p in trained]
        return dict(zip(trained, clip(grads) if grads else [], strict=True))

    def zero_grad(self) -> None:
        """Forget all gradients."""
        set_all([(p, "_grad", None) for p in self.parameters])

    def minimize(self, loss: Any, parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Append backward and update operators to the program of ``loss``; returns the (parameter,
        gradient) pairs of `static.append_backward`."""
        from ..static.backward.minimize import minimize

        self._check_one_group()
        return minimize(self, loss, parameter_list=parameter_list, no_grad_set=no_grad_set)

    def apply_gradients(self, pairs: Any) -> None:
        """Append update operators for (parameter, gradient) pairs: `minimize` without its backward part."""
        from ..static.backward.minimize import apply_gradients

        self._check_one_group()
        apply_gradients(self, pairs)

    def _check_one_group(self) -> None:
        if len(self.param_groups) > 1:
            what = "a Program knows no groups of parameters"
            advice = "for each group an optimizer: SGD(lr=0.1).apply_gradients(pairs[:2])"
            raise wrong(what, advice)

    def state_dict(self) -> dict[str, Array]:
        """What is remembered, by name: ``nn.save`` can store it."""
        named = {"count": np.array(self.count)}
        for k, remembered in enumerate(self.state.values()):
            for slot, value in zip(self.memory, remembered, strict=True):
                named[f"{slot}.{k}"] = np.array(value)
        return named

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another optimizer of the same kind stopped.

        Errors: `ShapeError` for missing, unknown or unfitting entries; then nothing has changed.
        """
        own = self.state_dict()
        if isinstance(state, Mapping) and "count" in state and _kind(state) != _kind(own):
            what = f"this is the state of {_kind(state)}, and the optimizer is {self!r}"
            raise refusal(what, "an optimizer of that kind; this one starts anew without a state")
        values = fitting_state(repr(self), own, state)
        remembered = {
            p: [values[f"{slot}.{k}"] for slot in self.memory] for k, p in enumerate(self.state)
        }
        set_all([(self, "count", int(values["count"])), (self, "state", remembered)])

    def __repr__(self) -> str:
        facts = {"lr": self.lr if not callable(self.lr) else "a schedule", **self.attrs}
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in facts.items())})"


def _kind(state: Mapping[str, Any]) -> str:
    """What kind of optimizer remembers this."""
    slots = {name.partition(".")[0] for name in state}
    return next(kind for slot, kind in REPAIRS["remembered"].items() if slot in slots)


def _fitting(grad, p: Tensor) -> Array:
    """The array of a gradient.  Errors: `GradError` where the parameter has another shape."""
    array: Array = grad._data
    if array.shape != p._data.shape:
        raise refusal(
            f"the gradient of {p.name or 'a parameter'} is {describe(grad)}, the parameter {describe(p)}",
            "optimizer.zero_grad() where a parameter is given other data, then backward again",
            GradError,
        )
    return array


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
        check_numbers(momentum=momentum)
        if not isinstance(nesterov, bool | np.bool_):  # elsewhere another option stands here
            what = f"nesterov is {describe(nesterov)}"
            raise refusal(what, "True or False; options by name", ArgumentError)
        if nesterov and not momentum:
            raise refusal("nesterov looks ahead along the velocity", "momentum=0.9", ArgumentError)
        attrs: ByName = {}
        if momentum:
            self.type, self.memory = "momentum", {"velocity": "zeros"}
            attrs = {"mu": momentum, "use_nesterov": nesterov}
        super().__init__(parameters, lr, weight_decay, clip, **attrs)


class Adagrad(Optimizer):
    """Steps that shrink where the squares of the gradients, summed since the start, have become large.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic
    optimization, 2011.

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

    decoupled = True

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
        super().__init__(parameters, lr, beta1, beta2, epsilon, weight_decay, clip)


# -- clips: what happens to gradients before a step ----------------------------------------


def clip_by_value(limit: float) -> Clip:
    """Every element between ``-limit`` and ``limit``.

    >>> import minigrad as mg
    >>> clip_by_value(1.0)([mg.tensor([3.0, -0.5])])
    [tensor([ 1. , -0.5])]
    """
    check_numbers(limit=limit)
    return lambda grads: [g.clip(-limit, limit) for g in grads]


def clip_by_norm(limit: float) -> Clip:
    """Every gradient of a parameter at most ``limit`` long, its direction kept.

    >>> import minigrad as mg
    >>> clip_by_norm(5.0)([mg.tensor([6.0, 8.0]), mg.tensor([0.0, 1.0])])
    [tensor([3., 4.]), tensor([0., 1.])]
    """
    clip = clip_by_global_norm(limit)
    return lambda grads: [clip([g])[0] for g in grads]


def clip_by_global_norm(limit: float) -> Clip:
    """All gradients together at most ``limit`` long, their direction kept.

    >>> import minigrad as mg
    >>> clip_by_global_norm(1.0)([mg.tensor([3.0]), mg.tensor([4.0])])
    [tensor([0.6]), tensor([0.8])]
    """
    check_numbers(limit=limit)

    def clip(grads: Listed) -> Listed:
        length = ops.add_n(*((g * g).sum() for g in grads)).sqrt()
        factor = limit / ops.maximum(length, limit)
        return [g * factor for g in grads]

    return clip
