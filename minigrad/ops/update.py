"""Updates: one step of an optimizer, from a parameter and what is remembered about it to their new values.

A Program runs them in place on persistable variables; none has a gradient.
"""

import math

import numpy as np

from ..primitives.registry import primitive


@primitive(outputs=("param_out",), nondiff=("param", "grad", "learning_rate"))
def sgd(param, grad, learning_rate):
    """``param - learning_rate * grad``."""
    step = np.multiply(learning_rate, grad)
    if step.size > 1 and step.dtype is param.dtype:  # a number may stand for the gradient
        return np.subtract(param, step, step)
    return _like(param, param - step)


@primitive(outputs=("param_out", "velocity_out"))
def momentum(param, grad, velocity, learning_rate, *, mu=0.9, use_nesterov=False):
    """``velocity = mu * velocity + grad``; the parameter follows it, or looks ahead."""
    velocity = mu * velocity + grad
    step = grad + mu * velocity if use_nesterov else velocity
    return _like(param, param - learning_rate * step), _like(param, velocity)


@primitive(outputs=("param_out", "moment_out"))
def adagrad(param, grad, moment, learning_rate, *, epsilon=1e-10):
    """``moment = moment + grad²``; steps shrink where gradients have been large."""
    moment = moment + grad * grad
    new = param - learning_rate * grad / (np.sqrt(moment) + epsilon)
    return _like(param, new), _like(param, moment)


@primitive(outputs=("param_out", "mean_square_out"))
def rmsprop(param, grad, mean_square, learning_rate, *, rho=0.99, epsilon=1e-8):
    """``mean_square = rho * mean_square + (1 - rho) * grad²``; steps relative to its root."""
    mean_square = rho * mean_square + (1 - rho) * grad * grad
    new = param - learning_rate * grad / (np.sqrt(mean_square) + epsilon)
    return _like(param, new), _like(param, mean_square)


@primitive(outputs=("param_out", "moment1_out", "moment2_out", "step_out"))
def adam(
    param,
    grad,
    moment1,
    moment2,
    step,
    learning_rate,
    *,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    weight_decay=0.0,
):
    """Adam with bias correction; ``step`` counts from 0, ``weight_decay`` is decoupled (AdamW)."""
    step = step + 1
    moment1 = beta1 * moment1 + (1 - beta1) * grad
    moment2 = beta2 * moment2 + (1 - beta2) * grad * grad
    mean = moment1 / _share_seen(beta1, step)
    scale = np.sqrt(moment2 / _share_seen(beta2, step))
    decayed = param * (1 - learning_rate * weight_decay) if weight_decay else param
    new = _like(param, decayed - learning_rate * mean / (scale + epsilon))
    return new, _like(param, moment1), _like(param, moment2), step


def _share_seen(beta, step):
    """``1 - beta**step``; for float32, too, where beta itself is rounded and nearly 1."""
    return -np.expm1(step * math.log(beta)) if beta else 1.0


def _like(param, value):
    """A parameter keeps its dtype, and stays an array if it is one number."""
    return np.asarray(value, param.dtype)
