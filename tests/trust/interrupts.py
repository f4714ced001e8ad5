"""Real signals at random moments of everything that changes state: all of it is old, or all of it is new.

A path is what is done, and the state that it changes.  Each trial puts the old state back, sets a timer, does it, and
looks at the state when the signal has come, or has not.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, optim, static

State = list[tuple[Any, str]]  #: (object, name of an attribute)


@dataclass
class Path:
    """``act`` changes the attributes ``places``, or the arrays of ``memory``, which live where they are."""

    act: Callable[[], Any]
    places: State = field(default_factory=list)
    memory: list[np.ndarray[Any, Any]] = field(default_factory=list)

    def read(self) -> tuple[list[Any], list[Any]]:
        """The state, to be put back later."""
        values = [getattr(holder, name, None) for holder, name in self.places]
        return [_copy(v) for v in values], [a.copy() for a in self.memory]

    def put(self, state: tuple[list[Any], list[Any]]) -> None:
        """Make the state what it was."""
        for (holder, name), value in zip(self.places, state[0], strict=True):
            setattr(holder, name, _copy(value))
        for array, value in zip(self.memory, state[1], strict=True):
            array[...] = value


def _copy(value: Any) -> Any:
    """Containers anew; what they hold is never changed where it is."""
    if isinstance(value, dict):
        return {name: _copy(v) for name, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, mg.Tensor | np.ndarray) and isinstance(b, mg.Tensor | np.ndarray):
        a, b = np.asarray(getattr(a, "_data", a)), np.asarray(getattr(b, "_data", b))
        return a.dtype == b.dtype and np.array_equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    plain = isinstance(a, int | float | str) or a is None
    return a == b if plain else True  # what a leaf holds: there, or not


# -- what changes state --------------------------------------------------------------------


def _model() -> nn.Module:
    layers = [nn.Linear(3, 3, seed=k) for k in range(3)]
    return nn.Sequential(*layers, nn.BatchNorm(3), nn.Dropout(0.5))


def _tensors(model: nn.Module, *names: str) -> State:
    return [(at, name) for _, at in model.named_tensors() for name in names]


def _step(make: Callable[[nn.Module], optim.Optimizer]) -> Path:
    model = _model()
    optimizer = make(model)
    for p in model.parameters():
        p.grad = mg.tensor(np.full(p.shape, 0.5))
    places = [*_tensors(model, "_data", "_exposed"), (optimizer, "state"), (optimizer, "count")]
    return Path(optimizer.step, places)


def _loaded() -> Path:
    model = _model()
    state = {path: value + 1.0 for path, value in model.state_dict().items()}
    return Path(lambda: model.load_state_dict(state), _tensors(model, "_data", "_exposed"))


def _optimizer_loaded() -> Path:
    optimizer = optim.Adam(_model())
    state = {name: value + 1 for name, value in optimizer.state_dict().items()}
    places: State = [(optimizer, "state"), (optimizer, "count")]
    return Path(lambda: optimizer.load_state_dict(state), places)


def _module(act: Callable[[nn.Module], Any], *names: str) -> Path:
    model = _model()
    for p in model.parameters():
        p.grad = mg.tensor(np.ones(p.shape))
    places = _tensors(model, *names) if names else [(m, "training") for m in model.modules()]
    return Path(lambda: act(model), places)


def _statistics() -> Path:
    layer, x = nn.BatchNorm(3), mg.tensor(np.arange(12.0).reshape(4, 3))
    return Path(lambda: layer(x), [(layer.running_mean, "_data"), (layer.running_var, "_data")])


def _backward() -> Path:
    model, x = _model().eval(), mg.tensor(np.ones((2, 3)))
    return Path(lambda: model(x).sum().backward(), _tensors(model, "_grad"))


class _Anew:
    """What is made anew for each trial: to put its state back makes another one."""

    def __init__(self, make: Callable[[], Any], look: Callable[[Any], list[Any]]) -> None:
        self.make, self.look, self.subject = make, look, make()

    @property
    def state(self) -> list[Any]:
        return self.look(self.subject)

    @state.setter
    def state(self, old: list[Any]) -> None:
        self.subject = self.make()


def _in_place(change: Callable[[Any], Any]) -> Path:
    """A Tensor with a graph, that keeps its gradient: values, version and graph go together."""

    def make() -> Any:
        y = mg.tensor([1.0, 2.0, 3.0], requires_grad=True) + 0.0
        y.retain_grad()
        return y

    anew = _Anew(make, lambda y: [y.tolist(), y._version, y.grad_fn.name(), y.retains_grad])
    return Path(lambda: change(anew.subject), [(anew, "state")])


def _put(y: Any, value: Any) -> None:
    y[0:2] = value


def _walk(hooked: bool, **options: Any) -> Path:
    """Gradients that add up, by the walk with hooks or with a graph of its own."""

    def make() -> Any:
        leaves = [mg.tensor([0.1 * k, 0.5], requires_grad=True) for k in range(6)]
        for leaf in leaves:
            leaf.grad = mg.tensor([1.0, 1.0])
        h = leaves[0]
        for leaf in leaves[1:]:
            h = mg.tanh(h * leaf) + leaf
        if hooked:
            h.register_hook(lambda g: g * 2)
        return h.sum(), leaves

    anew = _Anew(make, lambda made: [leaf.grad.tolist() for leaf in made[1]])
    return Path(lambda: anew.subject[0].backward(**options), [(anew, "state")])


def _training() -> static.Program:
    program = static.Program()
    with static.program_guard(program):
        h = static.data("x", [2, 3])
        for k in range(3):
            w = static.parameter(f"w{k}", np.full((3, 3), 0.5))
            h = mg.tanh(h @ w)
        optim.Adam(lr=0.1).minimize(mg.mean(h * h))
    return program


def _run(begun: bool) -> Path:
    program, executor, feed = _training(), static.Executor(), {"x": np.ones((2, 3))}
    if begun:
        executor.run(program, feed)
    return Path(lambda: executor.run(program, feed), [(executor.scope, "values")])


def _compiled() -> Path:
    feed = {"x": np.ones((2, 3))}
    step = static.compile(_training(), feed=feed, fetch=[])
    return Path(lambda: step(**feed), memory=list(step.parameters.values()))


PATHS: dict[str, Callable[[], Path]] = {
    "a step of SGD": lambda: _step(lambda m: optim.SGD(m, lr=0.1)),
    "a step with momentum": lambda: _step(lambda m: optim.SGD(m, lr=0.1, momentum=0.9)),
    "a step of Adam": lambda: _step(lambda m: optim.Adam(m, lr=0.1)),
    "a step of Adam, clipped": lambda: _step(
        lambda m: optim.Adam(m, lr=0.1, clip=optim.clip_by_global_norm(0.1))
    ),
    "the state of a module": _loaded,
    "the state of an optimizer": _optimizer_loaded,
    "freezing": lambda: _module(lambda m: m.requires_grad_(False), "_node"),
    "eval": lambda: _module(lambda m: m.eval()),
    "astype": lambda: _module(lambda m: m.astype("float32"), "_data", "_grad"),
    "zero_grad": lambda: _module(lambda m: m.zero_grad(), "_grad"),
    "running statistics": _statistics,
    "backward": _backward,
    "backward with hooks": lambda: _walk(True),
    "backward with a graph": lambda: _walk(False, create_graph=True),
    "mul_": lambda: _in_place(lambda y: y.mul_(10.0)),
    "add_ of itself": lambda: _in_place(lambda y: y.add_(y)),
    "copy_": lambda: _in_place(lambda y: y.copy_(y * 2)),
    "a part": lambda: _in_place(lambda y: _put(y, 7.0)),
    "a part from a view": lambda: _in_place(lambda y: _put(y, y[1:])),
    "the first run of a program": lambda: _run(begun=False),
    "a run of a program": lambda: _run(begun=True),
    "a compiled step": _compiled,
}


# -- trials --------------------------------------------------------------------------------

_armed = False


def _stop(*_: object) -> None:
    if _armed:
        raise KeyboardInterrupt


@contextmanager
def signals() -> Iterator[None]:
    """The timer raises KeyboardInterrupt while something is tried, and never after."""
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupted(act: Callable[[], Any], delay: float) -> bool:
    """Do something; whether a signal stopped it."""
    global _armed
    try:
        try:
            _armed = True
            signal.setitimer(signal.ITIMER_REAL, delay)
            act()
        finally:
            _armed = False
    except KeyboardInterrupt:
        _armed = False
        return True
    return False


def trials(name: str, count: int, seed: int = 0) -> dict[str, int]:
    """How many of the trials that were interrupted left the state old, new or half."""
    path, draw = PATHS[name](), random.Random(f"{name} {seed}")
    results = {"interrupted": 0, "old": 0, "new": 0, "half": 0}
    old = path.read()
    for _ in range(3):  # what is made on first use is there, then
        path.put(old)
        path.act()
    new, latest = path.read(), 1e-4
    assert not _same(old, new), f"{name} changes nothing"
    with signals():
        while results["interrupted"] < count:
            path.put(old)
            context = copy_context()  # whether ops are recorded is state, too
            hit = interrupted(partial(context.run, path.act), draw.uniform(1e-6, latest))
            latest = max(latest * (1.05 if hit else 0.9), 2e-6)  # so that two of three come in time
            if hit:
                results["interrupted"] += 1
                now = path.read()
                kind = "old" if _same(now, old) else "new" if _same(now, new) else "half"
                results[kind if context.run(mg.is_grad_enabled) else "half"] += 1
    return results


def seeded_interrupts(seed: int) -> None:
    """Some trials of one path.  Errors: `AssertionError` if one was left half-done."""
    name = list(PATHS)[seed % len(PATHS)]
    results = trials(name, 200, seed)
    assert not results["half"], f"{name}: {results}"
