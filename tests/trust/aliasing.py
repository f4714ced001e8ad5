"""Histories of views and changes in place, played on a model in which memory is really shared.

The model holds two NumPy arrays for a Tensor, its values and their slopes along one direction of the leaves.  A view is
a view of both, so a change of one is a change of all that share its memory.  Whatever the engine accepts has the values
of the model, and the gradients that its slopes ask for; what it refuses changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.errors import GradError

LIMIT = 1e4  #: larger values are not used any more


@dataclass(eq=False)
class Twin:
    """A Tensor beside its values and slopes."""

    tensor: Any
    values: Any
    slopes: Any


VIEWS: list[tuple[str, Callable[[Any], Any]]] = [
    ("[...]", lambda x: x[...]),
    ("[::-1]", lambda x: x[::-1]),
    ("[1:]", lambda x: x[1:]),
    ("[:2]", lambda x: x[:2]),
    ("[None][0]", lambda x: x[None][0]),
    ("reshape", lambda x: x.reshape((*x.shape, 1))[..., 0]),
]

#: name → new value from the old one and the operand; slopes of it from values and slopes
RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda x, y: x + y, lambda x, dx, y, dy: dx + dy),
    "sub": (lambda x, y: x - y, lambda x, dx, y, dy: dx - dy),
    "mul": (lambda x, y: x * y, lambda x, dx, y, dy: dx * y + x * dy),
    "div": (lambda x, y: x / y, lambda x, dx, y, dy: dx / y - x * dy / y**2),
    "pow": (lambda x, y: x**2, lambda x, dx, y, dy: 2 * x * dx),
    "copy": (lambda x, y: y + 0 * x, lambda x, dx, y, dy: dy + 0 * x),
    "zero": (lambda x, y: 0 * x, lambda x, dx, y, dy: 0 * x),
}


def _i(method: str) -> Callable[[Any, Any], Any]:
    return lambda t, o: getattr(t, method)(o)


def _augmented(text: str) -> Callable[[Any, Any], Any]:
    """``t OP= o`` as a user writes it, so that the engine sees the instruction behind it."""
    names: dict[str, Any] = {}
    exec(f"def act(t, o):\n    {text}\n    return t", names)
    return names["act"]  # type: ignore[no-any-return]


#: (what is done to the Tensor, its rule, the part of it that changes)
CHANGES: list[tuple[str, Callable[[Any, Any], Any], str, Any]] = [
    ("add_", _i("add_"), "add", ...),
    ("sub_", _i("sub_"), "sub", ...),
    ("mul_", _i("mul_"), "mul", ...),
    ("div_", _i("div_"), "div", ...),
    ("copy_", _i("copy_"), "copy", ...),
    ("zero_", lambda t, o: t.zero_(), "zero", ...),
    ("+=", _augmented("t += o"), "add", ...),
    ("-=", _augmented("t -= o"), "sub", ...),
    ("*=", _augmented("t *= o"), "mul", ...),
    ("/=", _augmented("t /= o"), "div", ...),
    ("**=", _augmented("t **= 2"), "pow", ...),
    ("[...] =", _augmented("t[...] = o"), "copy", ...),
    ("[::-1] =", _augmented("t[::-1] = o"), "copy", slice(None, None, -1)),
    ("[:2] =", _augmented("t[:2] = o"), "copy", slice(2)),
    ("[[1, 0]] =", _augmented("t[[1, 0]] = o"), "copy", [1, 0]),
    ("[1:] *=", _augmented("t[1:] *= o"), "mul", slice(1, None)),
    ("[:1] +=", _augmented("t[:1] += o"), "add", slice(1)),
    ("[mask] =", _augmented("t[t > 0] = o"), "copy", "mask"),
]


class History:
    """One random history."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.log: list[str] = []
        self.leaves = [self.leaf(True), self.leaf(True)]
        self.twins = [*self.leaves, self.leaf(False)]
        self.compared = 0

    def leaf(self, wanted: bool) -> Twin:
        values = self.rng.uniform(-2, 2, 4)
        slopes = self.rng.uniform(-1, 1, 4) * wanted
        return Twin(mg.tensor(values, requires_grad=wanted), values, slopes)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def one(self) -> Twin:
        fitting = [t for t in self.twins if np.all(np.abs(t.values) < LIMIT)] or self.leaves
        return self.pick(*fitting[-8:])

    def operand(self, shape: Any) -> Any:
        """A Twin that fits a shape, or a number."""
        fitting = [t for t in self.twins if np.shape(t.values) in (shape, (1,))]
        fitting = [t for t in fitting if np.all(np.abs(t.values) < LIMIT)]
        return self.pick(*fitting, 0.5) if fitting else 2.0

    # -- steps -----------------------------------------------------------------------------

    def op(self) -> None:
        x = self.one()
        y, name = self.operand(np.shape(x.values)), self.pick("add", "sub", "mul")
        value, slope = RULES[name]
        other, v, d = (y.tensor, y.values, y.slopes) if isinstance(y, Twin) else (y, y, 0.0)
        with mg.set_grad_enabled(quiet := self.rng.random() > 0.1):
            new = value(x.tensor, other)
        slopes = slope(x.values, x.slopes, v, d) * quiet
        self.twins.append(Twin(new, value(x.values, v), slopes))
        self.log.append(f"{name} → {len(self.twins) - 1}")

    def view(self) -> None:
        x = self.one()
        name, view = self.pick(*VIEWS)
        with mg.set_grad_enabled(aware := self.rng.random() > 0.1):
            new = view(x.tensor)
        slopes = view(x.slopes) if aware else np.zeros_like(view(x.slopes))
        self.twins.append(Twin(new, view(x.values), slopes))
        self.log.append(f"{self.twins.index(x)}{name} → {len(self.twins) - 1}")

    def detach(self) -> None:
        x = self.one()
        self.twins.append(Twin(x.tensor.detach(), x.values[...], np.zeros_like(x.slopes)))
        self.log.append(f"detach {self.twins.index(x)} → {len(self.twins) - 1}")

    def forget(self) -> None:
        if len(self.twins) > 4:
            self.twins.pop(self.rng.integers(3, len(self.twins)))
            self.log.append("forget")

    def change(self) -> None:
        x = self.one()
        name, act, rule, part = self.pick(*CHANGES)
        part = x.values > 0 if isinstance(part, str) else part
        if isinstance(part, list) and len(x.values) < 2:
            return
        shape = np.shape(x.values[part])
        y = 0.5 if isinstance(part, np.ndarray) else self.operand(shape)
        other, v, d = (y.tensor, y.values, y.slopes) if isinstance(y, Twin) else (y, y, 0.0)
        if name in ("div_", "/=") and np.any(np.abs(v) < 0.1):
            return
        aware = self.rng.random() > 0.15
        self.log.append(
            f"{self.twins.index(x)} {name} {self.twins.index(y) if isinstance(y, Twin) else y}"
            f"{'' if aware else ' no_grad'}"
        )
        try:
            with mg.set_grad_enabled(aware):
                x.tensor = act(x.tensor, other)
        except GradError:
            self.log.append("refused")
            return
        value, slope = RULES[rule]
        new = value(x.values[part], v), slope(x.values[part], x.slopes[part], v, d)
        x.values[part] = new[0]
        if aware:
            x.slopes[part] = new[1]

    # -- comparisons -----------------------------------------------------------------------

    def compare(self) -> None:
        """Values are those of the model; what has no graph has no slope."""
        for k, t in enumerate(self.twins):
            where = f"value {k} after {self.log}"
            np.testing.assert_allclose(
                t.tensor.detach().numpy(), t.values, rtol=1e-9, atol=1e-9, err_msg=where
            )
            assert t.tensor.requires_grad or not np.any(t.slopes), f"the graph of {where} is cut"

    def differentiate(self) -> None:
        """Gradients give the slopes, wherever backward is not refused."""
        leaves = [t.tensor for t in self.leaves]
        for k, t in enumerate(self.twins):
            if not t.tensor.requires_grad or not np.all(np.abs(t.values) < LIMIT):
                continue
            weights = self.rng.uniform(-1, 1, np.shape(t.values))
            try:
                grads = mg.grad(
                    mg.sum(t.tensor * weights), leaves, retain_graph=True, allow_unused=True
                )
            except GradError as error:
                if "in place" not in str(error):
                    raise
                continue
            pairs = zip(grads, self.leaves, strict=True)
            ours = sum(float(np.sum(g._data * at.slopes)) for g, at in pairs if g is not None)
            np.testing.assert_allclose(
                ours,
                np.sum(weights * t.slopes),
                rtol=1e-7,
                atol=1e-6,
                err_msg=f"gradient of {k} after {self.log}",
            )
            self.compared += 1


STEPS = [History.op] * 4 + [History.view] * 4 + [History.change] * 6
STEPS += [History.detach, History.forget]


def seeded_history(seed: int, steps: int = 14) -> int:
    """One history; how many gradients were compared.  Errors: `AssertionError`."""
    history = History(seed)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            history.pick(*STEPS)(history)
            history.compare()
        history.differentiate()
    return history.compared
