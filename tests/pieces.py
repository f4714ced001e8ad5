"""Small pieces that many tests share."""

import minigrad as mg


def leaf(value=2.0, **how):
    return mg.tensor(value, requires_grad=True, **how)


class Twice(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


class Stop(mg.Function):
    """A function that gives no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return None
