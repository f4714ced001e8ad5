"""Train a model with any of four engines: the same model, loss and optimizer each time.

eager       Tensors: compute, walk backwards, step
executor    a Program with its backward and its updates, run operator by operator
compiled    the same Program as generated NumPy source
jax         the same Program as one function under jax.jit (needs JAX: pip install jax)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import data, nn, optim, static

ENGINES = ("eager", "executor", "compiled", "jax")


def train(
    model: nn.Module,
    loss_of: Callable[..., Any],
    batches: Iterator[Any],
    steps: int,
    optimizer: optim.Optimizer,
    engine: str = "eager",
) -> list[float]:
    """Train for a number of steps; returns the loss of every step.

    ``loss_of(model, *batch)`` gives the loss; ``batches`` gives one tuple of arrays per step, all of
    the same shapes.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}: give one of {', '.join(ENGINES)}")
    first = next(batches)
    step, finish = (_eager if engine == "eager" else _static)(
        model, loss_of, first, optimizer, engine
    )
    losses = []
    for k in data.progress(range(steps), engine):
        losses.append(float(step(*(first if k == 0 else next(batches)))))
    finish()
    return losses


Steps = tuple[Callable[..., Any], Callable[[], None]]


def _eager(model: Any, loss_of: Any, first: Any, optimizer: Any, engine: str) -> Steps:
    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, lambda: None


def _static(model: Any, loss_of: Any, first: Any, optimizer: Any, engine: str) -> Steps:
    program, executor = static.Program(), static.Executor()
    names = [f"batch{k}" for k in range(len(first))]
    with static.program_guard(program):
        given = [static.data(n, a.shape, a.dtype) for n, a in zip(names, first, strict=True)]
        loss = loss_of(model, *given)
        optimizer.minimize(loss)
    run = None
    if engine != "executor":
        run = static.compile(program, fetch=loss, backend="jax" if engine == "jax" else "numpy")

    def step(*batch: Any) -> Any:
        feed = dict(zip(names, batch, strict=True))
        return run(**feed) if run else executor.run(program, feed, [loss])[0]

    def finish() -> None:
        trained = run.parameters if run else executor.scope
        model.load_state_dict({n: np.asarray(trained[n]) for n in model.state_dict()})

    return step, finish


def smooth(losses: list[float], over: int = 20) -> list[float]:
    """The mean of the last ``over`` losses, for every step."""
    total = np.cumsum([0.0, *losses])
    return [
        (total[k + 1] - total[max(k + 1 - over, 0)]) / min(k + 1, over) for k in range(len(losses))
    ]


def save_curve(losses: list[float], path: str) -> None:
    """The losses as a picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(losses, color="0.8", label="loss of a batch")
    axes.plot(smooth(losses), label="mean of 20 batches")
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def command(main: Callable[..., Any], steps: int, **choices: tuple[str, ...]) -> None:
    """Run an example from the command line: ``--steps``, ``--engine``, ``--plot``, and its choices."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--engine", choices=ENGINES, default="eager")
    parser.add_argument(
        "--backend", choices=("jax",), dest="engine", help="--backend jax is --engine jax"
    )
    parser.add_argument(
        "--plot", "--curve", metavar="FILE", help="write the curve of the losses, e.g. losses.png"
    )
    for name, values in choices.items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    given = vars(parser.parse_args())
    plot, start = given.pop("plot"), time.perf_counter()
    losses, words = main(**given)
    print(f"loss {np.mean(losses[:10]):.3f} → {np.mean(losses[-10:]):.3f} in {len(losses)} steps")
    print(f"{words}  ({given['engine']}, {time.perf_counter() - start:.1f} s)")
    if plot:
        save_curve(losses, plot)


def used(model: nn.Module, *inputs: Any) -> np.ndarray[Any, Any]:
    """What a trained model gives, without a graph."""
    with mg.no_grad():
        made = model.eval()(*inputs).numpy()
    model.train()
    return made
