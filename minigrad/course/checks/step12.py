"""The checkers of step 12."""

import numpy as np

from ..check import checker
from ..judge import close


def saddle(x, y):
    """A function whose second derivatives are 2y, 2x and 6y."""
    return x**2 * y + y**3


@checker("12b")
def hvp(hvp, rosenbrock):
    close(
        "H v of Rosenbrock at (-1, 2) with v = (1, -2)",
        hvp(rosenbrock, [-1.0, 2.0], [1.0, -2.0]),
        np.array([402.0 - 800, 400.0 - 400]),
    )
    close(
        "H v of x²y + y³ at (3, 5) with v = (2, 1)",
        hvp(saddle, [3.0, 5.0], [2.0, 1.0]),
        np.array([26.0, 42.0]),
    )
    calls = []

    def counted(*inputs):
        calls.append(inputs)
        return saddle(*inputs)

    hvp(counted, [3.0, 5.0], [2.0, 1.0])
    close("the number of times f was evaluated", len(calls), 1)
    walks: list[int] = []

    def watched(*inputs):
        total = sum(inputs[1:], inputs[0])
        node = total.grad_fn  # every walk to the inputs passes here
        node.backward = seen(node.backward, walks)
        return total**3

    close(
        "H v of (x + y + z)³ at (1, 2, 3) with v = (1, 0, -2)",
        hvp(watched, [1.0, 2.0, 3.0], [1.0, 0.0, -2.0]),
        np.full(3, -36.0),
    )
    close("the number of walks for 3 numbers", len(walks), 2)


def seen(backward, walks):
    """The same function; each call leaves a mark in walks."""

    def marked(*grads, **saved):
        walks.append(len(walks))
        return backward(*grads, **saved)

    return marked
