"""The checkers of step 2, and the mistakes that they know."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("2b")
def exp_square_exp(gradient, Variable, Exp, Square):
    for value in (0.1, -0.5, 0.3):
        x = Variable(np.array(value))
        expected = 2 * np.exp(2 * value) * np.exp(np.exp(2 * value))
        walked: list[tuple[str, float]] = []
        with ExitStack() as watching:
            for cls in (Exp, Square):
                watching.enter_context(patch.object(cls, "backward", noted(cls, walked)))
            observed = gradient(x)
        close(f"the gradient at {value}", observed, expected)
        if x.grad is None:
            raise Mismatch("x.grad", None, "the gradient you returned")
        close(f"x.grad at {value}", x.grad, expected)
        same("the list of backward calls", [name for name, _ in walked], ["Exp", "Square", "Exp"])
        a = np.exp(value)
        close(
            "the inputs of the functions walked back", [at for _, at in walked], [a * a, a, value]
        )


def noted(cls, walked):
    """The backward of a class; each call leaves the class and the remembered input in ``walked``."""
    backward = cls.backward

    def watched(self, gy):
        walked.append((cls.__name__, float(self.input.data)))
        return backward(self, gy)

    return watched
