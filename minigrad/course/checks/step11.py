"""The checkers of step 11."""

import math
import traceback
from functools import partial

from ..check import checker
from ..judge import Mismatch, Wrong, close, raises, same


def row(what, operation, Tensor, value, slope, *, points):
    """Value, gradient for a seed that is not 1, and what the node keeps."""
    for point in points:
        x = Tensor(point, requires_grad=True)
        out = operation(x)
        same(f"what the node of {what} keeps", sorted(out.grad_fn.saved), ["out"])
        close(f"{what} at {point}", float(out.data), value(point))
        out.backward(3.0)
        close(f"the gradient of 3 * {what} at {point}", float(x.grad.data), 3 * slope(point))


@checker("11a", hint="the slope of the root is 1 / (2 * root), and the root is called out")
def sqrt(sqrt, Tensor):
    row("sqrt(x)", sqrt, Tensor, math.sqrt, lambda x: 0.5 / math.sqrt(x), points=(0.25, 1.0, 9))


@checker("11b", hint="in the formula of the table, replace tanh(x) by the name of the result")
def lean_tanh(tanh, Tensor):
    row("tanh(x)", tanh, Tensor, math.tanh, lambda x: 1 - math.tanh(x) ** 2, points=(-0.5, 0, 2))


@checker(
    "11c",
    hint="both need a node that keeps something: x * x keeps its factors, exp(x) its result; "
    "only add_ counts a change",
)
def both_errors(functions, Tensor):
    for function, words in zip(functions, ("a second time", "changed in place"), strict=True):
        name = function.__name__
        x = Tensor(0.5, requires_grad=True)
        error = raises(f"{name}(x)", RuntimeError, partial(function, x))
        if isinstance(error, NotImplementedError):  # a RuntimeError too: nothing written yet
            raise error
        if words not in str(error):
            raise Mismatch(f"the error of {name}(x)", str(error), f"an error that says {words!r}")
        frames = traceback.walk_tb(error.__traceback__)
        if not any(frame.f_code is Tensor.backward.__code__ for frame, _ in frames):
            raise Wrong(
                f"the error of {name}(x) is raised by hand, expected one of backward itself"
            )
