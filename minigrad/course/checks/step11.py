"""The checkers of step 11."""

import math
import weakref
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ..check import checker
from ..judge import Mismatch, Wrong, close, same


def row(what, operation, Tensor, value, slope, *, points):
    """Value, gradient for a seed that is not 1, and what the node keeps."""
    for point in points:
        x = Tensor(point, requires_grad=True)
        out = operation(x)
        same(f"what the node of {what} keeps", sorted(out.grad_fn.saved), ["out"])
        close(f"{what} at {point}", float(out.data), value(point))
        out.backward(3.0)
        close(f"the gradient of 3 * {what} at {point}", float(x.grad.data), 3 * slope(point))


@checker("11e")
def what_to_save(what_to_save, Tensor, Saved):
    x, y, out = (Tensor(number) for number in (2.0, 3.0, 5.0))
    values = {"x": x, "y": y, "out": out}
    for wanted, expected, formulas in (
        ("x", ["y"], {"x": "grad * y", "y": "grad * out"}),
        ("x", ["x"], {"x": "grad / x"}),
        ("x", ["out"], {"x": "grad * out", "y": "grad * x"}),
        ("x", ["x"], {"x": "grad * cos(x)"}),
        ("xy", [], {"x": "grad", "y": "-grad"}),
        ("xy", ["x", "y"], {"x": "grad * y", "y": "grad * x"}),
        ("x", ["y"], {"x": "grad * y", "y": "grad * x"}),
        ("y", ["x"], {"x": "grad * y", "y": "grad * x"}),
        ("xy", ["out", "y"], {"x": "grad / y", "y": "-grad * out / y"}),
        ("x", ["x"], {"x": "grad * n * x ** (n - 1)"}),
    ):
        node = SimpleNamespace(
            formulas={slot: compile(text, slot, "eval") for slot, text in formulas.items()},
            next_functions=tuple((object() if s in wanted else None, 0) for s in formulas),
        )
        out.grad_fn = node
        what = f"kept for {', '.join(formulas.values())}, where {' and '.join(wanted)} "
        what += f"{'wants a gradient' if len(wanted) == 1 else 'want gradients'},"
        saved = what_to_save(node, [values[slot] for slot in formulas], out)
        if not isinstance(saved, dict):
            raise Mismatch(
                f"what is {what}", saved, "a dictionary from names to Saved(value, node)"
            )
        same(f"the list of names {what}", sorted(saved), expected)
        for name, each in saved.items():
            if not isinstance(each, Saved):
                raise Mismatch(f"what is kept as {name}", type(each).__name__, "Saved")
            if each.data is not values[name].data:
                raise Mismatch(f"the value kept as {name}", each.data, values[name].data)
            if name == "out" and not isinstance(each.tensor, weakref.ref):
                raise Wrong(
                    "the node holds its own result, and the result holds the node: a circle"
                )


@checker("11a")
def sqrt(sqrt, Tensor):
    row("sqrt(x)", sqrt, Tensor, math.sqrt, lambda x: 0.5 / math.sqrt(x), points=(0.25, 1.0, 9))


@checker("11b")
def lean_tanh(tanh, Tensor):
    row("tanh(x)", tanh, Tensor, math.tanh, lambda x: 1 - math.tanh(x) ** 2, points=(-0.5, 0, 2))


@checker("11c")
def both_errors(functions, Tensor):
    for function, words in zip(functions, ("a second time", "changed in place"), strict=True):
        name, calls = function.__name__, list[str]()
        methods = {each: noted(getattr(Tensor, each), calls) for each in ("backward", "add_")}
        with patch.multiple(Tensor, **methods):
            try:
                function(Tensor(0.5, requires_grad=True))
            except NotImplementedError:  # a RuntimeError too: nothing written yet
                raise
            except RuntimeError as error:
                said, by_hand = str(error), not calls or calls[-1] != "an error of backward"
            else:
                said = "no error"
        did = f"after calls of {', '.join(calls)}" if calls else "without a call of backward"
        if words not in said:
            raise Mismatch(f"what {name}(x) comes to, {did}", said, f"an error that says {words!r}")
        if by_hand:
            raise Wrong(f"{name}(x) raises the error by hand, expected one of backward itself")


def noted(method: Any, calls: list[str]) -> Any:
    """The same method; each call and each error is noted."""

    def call(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(" ".join([method.__name__, *options]))
        try:
            return method(self, *args, **options)
        except RuntimeError:
            calls.append(f"an error of {method.__name__}")
            raise

    return call
