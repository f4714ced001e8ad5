"""Random sessions with the eager engine, played on the naive tape at the same time.

A session is a list of numbers; each decides something (which command, which value, which flag).  So the same player
serves a seeded generator, which is fast, and Hypothesis, which shrinks what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.eager.inplace import memory_of
from minigrad.errors import GradError
from tests.trust.naive_tape import Refused, Tape

LIMIT = 1e6  #: values beyond are not used any more: rounding would decide


class Session:
    """One engine and one tape side by side; ``pairs`` are the values both know."""

    def __init__(self, choices: Iterable[int]) -> None:
        self.choices = iter(choices)
        self.tape = Tape()
        self.pairs: list[tuple[Any, int]] = []
        self.handles: list[tuple[Any, int, int]] = []
        self.log: list[str] = []
        self.calm = next(self.choices, 0) % 2 == 0  # without hooks backward takes its short way
        for value in (0.7, np.array([0.3, -0.4, 1.1]), np.array([0.2, 0.8, -0.5]), -0.6):
            self.leaf(value, True)
        self.leaf(np.array([0.5, 0.9, -0.2]), False)

    def pick(self, n: int) -> int:
        return next(self.choices) % n

    def one(self, fits: Callable[[Any], bool] = lambda x: True) -> tuple[Any, int] | None:
        fitting = [
            p for p in self.pairs if fits(p[0]) and np.all(np.abs(self.tape.values[p[1]]) < LIMIT)
        ]
        return fitting[-1 - self.pick(min(len(fitting), 12))] if fitting else None

    def leaf(self, value: Any, wanted: bool) -> None:
        t = mg.tensor(value, requires_grad=wanted)
        self.pairs.append((t, self.tape.number(value, wanted)))

    def play(self, steps: int) -> None:
        """Play until the choices end."""
        with suppress(StopIteration):
            for _ in range(steps):
                COMMANDS[self.pick(len(COMMANDS))](self)
                self.compare()

    def compare(self) -> None:
        """Whatever both know is the same on both sides."""
        for t, number in self.pairs:
            tape = self.tape
            where = f"value {number} after {self.log[-8:]}"
            assert t.requires_grad == tape.wanted[number], where
            assert t.is_leaf == (number in tape.leaves), where
            same(t, tape.values[number], where)
            g = tape.grads[number]
            assert (t.grad is None) == (g is None), f"gradient of {where}"
            if g is not None:
                same(t.grad, tape.values[g], f"gradient of {where}")

        self.compare_memory()

    def compare_memory(self) -> None:
        """A gradient has memory of its own."""
        owners = [id(memory_of(t._data)) for t, _ in self.pairs]
        grads = [id(memory_of(t.grad._data)) for t, _ in self.pairs if t.grad is not None]
        assert len(set(grads)) == len(grads), f"two gradients share memory after {self.log[-8:]}"
        assert not set(grads) & set(owners), f"a gradient is a value's memory {self.log[-8:]}"

    # -- commands --------------------------------------------------------------------------

    def both(self, act: Callable[[], Any], model: Callable[[], Any], text: str) -> Any:
        """Do the same on both sides; what the tape refuses, the engine refuses, and nothing changes."""
        self.log.append(text)
        kept = dict(self.tape.grads)
        try:
            expected = model()
        except Refused as refusal:
            self.tape.grads = kept | {k: v for k, v in self.tape.grads.items() if k not in kept}
            for number in kept:
                self.tape.grads[number] = kept[number]
            try:
                act()
            except GradError:
                return None
            raise AssertionError(f"{text}: not refused, but {refusal}") from None
        return act(), expected

    def operation(self) -> None:
        name = list(OPERATIONS)[self.pick(len(OPERATIONS))]
        arity, function = OPERATIONS[name]
        shape = (lambda x: x.ndim == 1) if name == "unbind" else (lambda x: x.ndim == 0)
        fits = shape if name in ("unbind", "spread", "stack") else (lambda x: True)
        chosen = [self.one(fits) for _ in range(arity)]
        if any(c is None for c in chosen):
            return
        quiet = self.pick(8) == 0
        self.log.append(f"{name}{[c[1] for c in chosen]}{' no_grad' if quiet else ''}")
        with mg.set_grad_enabled(not quiet):
            found = function(*(c[0] for c in chosen))
        self.tape.recording = not quiet
        numbers = self.tape.apply(name, *(c[1] for c in chosen))
        self.tape.recording = True
        if name == "unbind":
            self.pairs += zip(found, numbers, strict=True)
        else:
            self.pairs.append((found, numbers))

    def new_leaf(self) -> None:
        self.log.append("leaf")
        value = [0.2, -0.8, 0.5][self.pick(3)]
        self.leaf(value if self.pick(2) else np.array([value, 0.1, -value]), self.pick(4) > 0)

    def detach(self) -> None:
        t, number = self.one()
        self.log.append(f"detach {number}")
        made = self.tape.number(self.tape.values[number])
        self.tape.view(made, number, np.array)
        self.pairs.append((t.detach(), made))

    def walk_flags(self) -> tuple[Any, bool, bool, bool]:
        """Roots, retain, create."""
        roots = [
            self.one(lambda x: x.requires_grad and x.ndim == 0)
            for _ in range(1 + (self.pick(4) == 0))
        ]
        create = self.pick(4) == 0
        return roots, create or self.pick(2) == 0, create, any(r is None for r in roots)

    def some_inputs(self) -> list[Any]:
        found = [self.one(lambda x: x.requires_grad) for _ in range(1 + self.pick(2))]
        return list({n: (t, n) for t, n in found}.values())

    def backward(self) -> None:
        roots, retain, create, none = self.walk_flags()
        if none:
            return
        inputs = self.some_inputs() if self.pick(3) == 0 else None
        numbers = None if inputs is None else [n for _, n in inputs]
        self.both(
            lambda: mg.backward(
                [t for t, _ in roots],
                retain_graph=retain,
                create_graph=create,
                inputs=None if inputs is None else [t for t, _ in inputs],
            ),
            lambda: self.tape.backward([n for _, n in roots], retain, create, numbers),
            f"backward {[n for _, n in roots]} {retain=} {create=} inputs={numbers}",
        )

    def grad(self) -> None:
        roots, retain, create, none = self.walk_flags()
        if none:
            return
        inputs = self.some_inputs()
        if self.pick(4) == 0:  # the same one twice
            inputs.append(inputs[0])
        done = self.both(
            lambda: mg.grad(
                [t for t, _ in roots],
                [t for t, _ in inputs],
                retain_graph=retain,
                create_graph=create,
                allow_unused=True,
            ),
            lambda: self.tape.walk([n for _, n in roots], [n for _, n in inputs], retain, create),
            f"grad {[n for _, n in roots]} {retain=} {create=} of {[n for _, n in inputs]}",
        )
        for g, (_, number) in zip(done[0] if done else (), inputs, strict=False):
            expected = done[1].get(number)
            assert (g is None) == (expected is None), self.log[-8:]
            if g is not None:
                same(g, self.tape.values[expected], f"grad of {number} after {self.log[-8:]}")
                if create:
                    self.pairs.append((g, expected))

    def hook(self) -> None:
        if self.calm:
            return
        found = self.one(lambda x: x.requires_grad)
        factor = [1.0, 2.0, -0.5][self.pick(3)]
        t, number = found
        self.log.append(f"hook {number} * {factor}")
        self.handles.append((t.register_hook(lambda g: g * factor), number, len(self.handles)))
        self.tape.hooks.setdefault(number, []).append(factor)

    def unhook(self) -> None:
        if self.calm:
            return
        if self.handles:
            handle, number, _ = self.handles.pop(0)
            self.log.append(f"unhook {number}")
            handle.remove()
            self.tape.hooks[number].pop(0)

    def retain(self) -> None:
        if self.calm:
            return
        t, number = self.one(lambda x: x.requires_grad)
        self.log.append(f"retain_grad {number}")
        t.retain_grad()
        if number not in self.tape.leaves:
            self.tape.retained.add(number)

    def forget(self) -> None:
        t, number = self.one(lambda x: x.requires_grad)
        self.log.append(f"zero_grad {number}")
        t.zero_grad()
        self.tape.grads[number] = None

    def in_place(self) -> None:
        t, number = self.one(lambda x: x.is_leaf and x.requires_grad)
        self.log.append(f"add_ {number}")
        with mg.no_grad():
            t.add_(0.25)
        self.tape.change(number, self.tape.values[number] + 0.25)


def same(t: Any, expected: np.ndarray, where: str) -> None:
    assert t.shape == expected.shape, where
    error = np.abs(t.detach().numpy() - expected)
    assert np.all(error <= 1e-8 * np.maximum(1, np.abs(expected))), (
        f"{where}: {t} is not {expected}"
    )


OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "neg": (1, lambda x: -x),
    "sin": (1, mg.sin),
    "tanh": (1, mg.tanh),
    "sum": (1, mg.sum),
    "spread": (1, lambda x: mg.broadcast_to(x, shape=(3,))),
    "stack": (3, lambda *xs: mg.stack(list(xs))),
    "unbind": (1, mg.unbind),
}

#: how often each command is drawn follows from how often it stands here
COMMANDS: list[Callable[[Session], None]] = [
    *[Session.operation] * 12,
    *[Session.backward] * 3,
    *[Session.grad] * 2,
    Session.new_leaf,
    Session.detach,
    Session.hook,
    Session.unhook,
    Session.retain,
    Session.forget,
    Session.in_place,
]


def seeded_session(seed: int, steps: int = 40) -> None:
    """One session from a seed."""
    numbers = np.random.default_rng(seed).integers(0, 1 << 30, 20 * steps)
    Session(numbers.tolist()).play(steps)
