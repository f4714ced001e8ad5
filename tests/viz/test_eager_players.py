"""Players of Tensor graphs against a tracer of their own: the order of steps, every value, every gradient."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from tests.viz.replayed import frame

FORWARD = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, lambda a, b, r: (1.0, 1.0)),
    "sub": (lambda a, b: a - b, lambda a, b: a - b, lambda a, b, r: (1.0, -1.0)),
    "mul": (lambda a, b: a * b, lambda a, b: a * b, lambda a, b, r: (b, a)),
    "tanh": (lambda a, b: mg.tanh(a), lambda a, b: np.tanh(a), lambda a, b, r: (1 - r * r, None)),
}


def traced(seed):
    """A random graph, and what a plain list of its operations says: names, values, gradients."""
    rng = np.random.default_rng(seed)
    start = [float(v) for v in rng.uniform(0.5, 1.5, 3)]
    tensors = [mg.tensor(v, requires_grad=True, name=f"p{k}") for k, v in enumerate(start)]
    leaves, numbers, tape = list(tensors), list(start), []
    for k in range(int(rng.integers(3, 9))):
        op = ["add", "sub", "mul", "tanh"][rng.integers(4)]
        i, j = len(tensors) - 1 if k else 0, int(rng.integers(len(tensors)))
        ours, plain, slopes = FORWARD[op]
        tensors.append(ours(tensors[i], tensors[j]))
        numbers.append(float(plain(numbers[i], numbers[j])))
        tape.append((op, i, j, len(numbers) - 1, slopes(numbers[i], numbers[j], numbers[-1])))
    grads = [0.0] * len(numbers)
    grads[-1] = 1.0
    for _, i, j, out, (left, right) in reversed(tape):
        grads[i] += grads[out] * left
        if right is not None:
            grads[j] += grads[out] * right
    return tensors[-1], leaves, tape, numbers, grads


def last_number(text):
    return float(text.rpartition("= ")[2])


@pytest.mark.parametrize("seed", range(60))
def test_a_player_steps_through_what_ran_in_its_order_with_its_numbers(seed):
    root, leaves, tape, numbers, grads = traced(seed)
    root.backward()
    player = mg.play(root)
    events = player.events
    forward = [e for e in events if e.kind == "forward"]
    assert [e.text.split()[1] for e in forward] == [op for op, *_ in tape]
    for event, (*_, out, _slopes) in zip(forward, tape, strict=True):
        assert last_number(event.formula) == pytest.approx(numbers[out], rel=2e-4, abs=1e-9)
    backward = [e.text.split()[1] for e in events if e.kind == "backward"]
    assert backward == [f"{op.capitalize()}Backward0" for op, *_ in reversed(tape)]
    told = {
        e.formula.partition(" = ")[0]: float(e.formula.split("  ")[0].rpartition("= ")[2])
        for e in events
        if e.text.startswith("Add up")
    }
    used = {k for _, i, j, _, (_, right) in tape for k in (i, *((j,) if right is not None else ()))}
    assert told.keys() == {f"p{k}.grad" for k in used if k < len(leaves)}
    for k, leaf in enumerate(leaves):
        if leaf.grad is not None:
            assert told[f"p{k}.grad"] == pytest.approx(grads[k], rel=2e-4, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_no_frame_tells_a_value_before_it_was_computed(seed):
    root, *_ = traced(seed)
    root.backward()
    film = mg.play(root)
    for number in range(len(film.events) + 1):
        states, texts = frame(film, number)
        pending = {n for n, state in states.items() if state == "pending"}
        for node in pending & texts.keys():
            assert texts[node] == [text for _, text in film.live[node]]
