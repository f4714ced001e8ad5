"""The checkers of step 8."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("8a")
def power(Power, Variable, gradcheck):
    for base, exponent in ((2.0, 3.0), (0.5, -1.5), (1.5, 0.25)):
        a, b = Variable(np.array(base)), Variable(np.array(exponent))
        function = Power()
        y = function(a, b)
        close(f"{base} ** {exponent}", y.data, base**exponent)
        slopes = exponent * base ** (exponent - 1), base**exponent * np.log(base)
        gxs = function.backward(np.array(-2.0))
        if not isinstance(gxs, tuple) or len(gxs) != 2:
            raise Mismatch("what backward returns", gxs, "a tuple of two gradients")
        for i, slope in enumerate(slopes):
            close(f"gradient {i} of {base} ** {exponent} for gy = -2", gxs[i], -2 * slope)
        gradcheck(lambda a, b: Power()(a, b), a, b)


@checker("8b")
def three_tanhs(ways, Variable, functions_behind):
    names = ("Tanh", "tanh_by_two_exps", "tanh_by_one_exp")
    for name, way in zip(names, ways, strict=True):
        for value in (-2.0, 0.0, 0.5, 1.0):
            x = Variable(np.array(value))
            y = way(x)
            if not isinstance(y, Variable):
                raise Mismatch(f"what {name} returns", type(y).__name__, "Variable")
            close(f"{name} at {value}", y.data, np.tanh(value))
            y = y * 3  # so that gy is 3
            y.backward()
            if x.grad is None:
                raise Mismatch(f"the gradient of {name}", None, "a number")
            close(
                f"three times the gradient of {name} at {value}",
                x.grad,
                3 * (1 - np.tanh(value) ** 2),
            )
    made = [
        [type(f).__name__ for f in functions_behind(way(Variable(np.array(0.5))))] for way in ways
    ]
    same("the number of functions of the first way", len(made[0]), 1)
    if (count := made[1].count("Exp")) not in (1, 2):
        raise Mismatch("the number of Exp in the second way", count, "2 at most, and not none")
    same("the number of Exp in the third way", made[2].count("Exp"), 1)
