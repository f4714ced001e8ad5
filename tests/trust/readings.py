"""The readings of a function: each takes a function and arrays, and returns its value and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

Found = tuple[np.ndarray, list[np.ndarray]]


def eager(function: Callable[..., Any], args: Any) -> Found:
    """Backward over the graph that the call leaves behind."""
    leaves = [mg.tensor(a, requires_grad=True) for a in args]
    out = function(*leaves)
    if out.requires_grad:
        out.backward()
    return out.detach().numpy(), [gradient(x) for x in leaves]


def gradient(x: Any) -> np.ndarray:
    return np.zeros(x.shape, x.dtype) if x.grad is None else x.grad.numpy()


def eager_graph(function: Callable[..., Any], args: Any) -> Found:
    """The same rules read on Tensors: gradients that have a graph themselves."""
    leaves = [mg.tensor(a, requires_grad=True) for a in args]
    out = function(*leaves)
    grads = mg.grad(out, leaves, create_graph=True, materialize_grads=True)
    return out.detach().numpy(), [g.detach().numpy() for g in grads]


def with_gradients(function: Callable[..., Any], args: Any) -> tuple[Any, list[str]]:
    """The traced program with its gradients appended, and the names to fetch."""
    return gradients_of(mg.trace(function, *args))


def gradients_of(prog: Any) -> tuple[Any, list[str]]:
    """A program with the gradients of its output appended, and the names to fetch."""
    block = prog.global_block()
    with static.program_guard(prog):
        inputs = [block.var(n) for n in prog.inputs]
        grads = static.gradients([block.var(n) for n in prog.outputs], inputs)
    return prog, [*prog.outputs, *(g.name if g is not None else "" for g in grads)]


def fetched(run: Callable[..., Any], prog: Any, names: list[str], args: Any) -> Found:
    feed = dict(zip(prog.inputs, args, strict=True))
    found = iter(run(prog, feed=feed, fetch_list=[n for n in names if n]))
    values = [next(found) if n else None for n in names]
    grads = zip(values[1:], args, strict=True)
    return values[0], [np.zeros_like(a) if g is None else g for g, a in grads]


def interpreted(function: Callable[..., Any], args: Any) -> Found:
    """The program, run operator by operator."""
    return run_program(*with_gradients(function, args), args)


def run_program(prog: Any, names: list[str], args: Any) -> Found:
    return fetched(static.Executor().run, prog, names, args)


def decomposed(function: Callable[..., Any], args: Any) -> Found:
    """The program with every grad op written out in primitives."""
    prog, names = with_gradients(function, args)
    return fetched(static.Executor().run, static.decompose(prog), names, args)


def generated(function: Callable[..., Any], args: Any) -> Found:
    """The program as generated source."""
    return run_source(*with_gradients(function, args), args)


def run_source(prog: Any, names: list[str], args: Any) -> Found:
    def run(prog: Any, feed: Any, fetch_list: list[str]) -> list[Any]:
        return static.compile(prog, feed=feed, fetch=fetch_list)(**feed)

    return fetched(run, prog, names, args)


def numerical(function: Callable[..., Any], args: Any) -> Found:
    """Central differences of fourth order; they know nothing of rules."""
    grads = [np.zeros_like(a) for a in args]
    for k, a in enumerate(args):
        for place in np.ndindex(*a.shape):
            grads[k][place] = slope(function, args, k, place)
    return value_of(function, args), grads


def value_of(function: Callable[..., Any], args: Any) -> np.ndarray:
    with mg.no_grad():
        out = function(*(mg.tensor(a) for a in args))
    return np.asarray(out.numpy() if isinstance(out, mg.Tensor) else out)


def slope(function: Callable[..., Any], args: Any, k: int, place: Any, step: float = 1e-3) -> float:
    total = 0.0
    for times, weight in ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12)):
        moved = [a.copy() for a in args]
        moved[k][place] += times * step
        total += weight * float(value_of(function, moved))
    return total / step
