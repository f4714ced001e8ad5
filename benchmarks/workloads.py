"""The workloads: their data and parameters, the same numbers in every process.

    W1    MLP 784-128-64-10, batch 32, relu, cross-entropy, SGD step
    W1s   MLP 8-16-16-1, batch 16, tanh, mean squared error, SGD step (all overhead)
    W1b   MLP 784-512-512-10, batch 256
    W2    micrograd's demo: an MLP 2-16-16-1 of single numbers, 100 points, hinge loss (65,000 nodes)
    W4    one variable used 1,000 times; W4w 10,000 times
    W5    CNN 28×28, 3×3 filters 1→8→16, each with relu and 2×2 pooling, linear, batch 16, cross-entropy
    W6e   Elman network, 50 steps, 64 hidden, batch 16, cross-entropy at the end
    W6l   LSTM of the same size
    W8    Hessian-vector product of W1 with tanh; W8s of W1s

W3 (a chain of 1,000,000 sines), W9 (importing) and W10 (the capstone's GPT) are functions of ``extra.py``.  `models.py` writes each loss down once, for all
libraries; `by_hand.py` has the gradients in plain NumPy, `floor.py` the fastest NumPy we know.

Parameters are float32 (W2: float64): ``[W1, b1, W2, b2, …]`` with ``W`` of shape (in, out), ``[Wx, Wh, b, Wo, bo]`` with the gates of an LSTM
in the order i, f, g, o, or ``[K1, c1, K2, c2, W, b]`` with filters of shape (out, in, 3, 3).
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

F = np.float32
LEARNING_RATE = F(1e-3)

#: name → sizes, batch, activation, loss
MLPS: dict[str, tuple[list[int], int, str, str]] = {
    "W1": ([784, 128, 64, 10], 32, "relu", "cross_entropy"),
    "W1s": ([8, 16, 16, 1], 16, "tanh", "mse"),
    "W1b": ([784, 512, 512, 10], 256, "relu", "cross_entropy"),
    "W8": ([784, 128, 64, 10], 32, "tanh", "cross_entropy"),
    "W8s": ([8, 16, 16, 1], 16, "tanh", "mse"),
}
USES = {"W4": 1_000, "W4w": 10_000}
STEPS, BATCH, HIDDEN, CLASSES = 50, 16, 64, 10
NAMES = ["W1", "W1s", "W1b", "W4", "W4w", "W5", "W6e", "W6l", "W8", "W8s", "W2"]


@dataclass
class Workload:
    """Data of one workload; every peer gets a fresh copy.

    ``x`` is an array or a list of them, ``y`` the targets, ``start`` the first state of a recurrent network, ``v`` the direction of a
    Hessian-vector product; ``updates`` says whether a step ends with a step of SGD.
    """

    name: str
    model: str
    params: list[np.ndarray]
    x: Any = None
    y: Any = None
    start: Any = None
    v: list[np.ndarray] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def updates(self) -> bool:
        return self.v is None and self.model not in ("fan_out", "neurons")


def make(name: str) -> Workload:
    """The data of a workload."""
    r = np.random.RandomState(0)
    if name in MLPS:
        return _mlp(name, r)
    if name in USES:
        factors = [float(v) for v in r.randn(USES[name]).astype(F)]
        return Workload(name, "fan_out", [r.randn(1000).astype(F)], facts={"factors": factors})
    if name == "W5":
        return _cnn(name, r)
    if name in ("W6e", "W6l"):
        return _recurrent(name, r)
    if name == "W2":
        return _neurons(name, r)
    raise KeyError(name)


def _mlp(name: str, r: np.random.RandomState) -> Workload:
    sizes, n, act, loss = MLPS[name]
    gain = 2.0 if act == "relu" else 1.0
    params = []
    for a, b in zip(sizes, sizes[1:]):
        params += [(r.randn(a, b) * np.sqrt(gain / a)).astype(F), (r.randn(b) * 0.1).astype(F)]
    y = r.randn(n, sizes[-1]).astype(F) if loss == "mse" else r.randint(0, sizes[-1], n)
    x = r.randn(n, sizes[0]).astype(F)
    v = [r.randn(*p.shape).astype(F) for p in params] if name.startswith("W8") else None
    return Workload(name, "mlp", params, x, y, v=v, facts={"act": act, "loss": loss})


def _cnn(name: str, r: np.random.RandomState) -> Workload:
    scales = {(8, 1, 3, 3): 1 / 3, (8,): 0.1, (16, 8, 3, 3): 1 / np.sqrt(72), (16,): 0.1, (784, 10): 1 / 28, (10,): 0.1}
    params = [(r.randn(*shape) * s).astype(F) for shape, s in scales.items()]
    return Workload(name, "cnn", params, r.randn(BATCH, 1, 28, 28).astype(F), r.randint(0, CLASSES, BATCH))


def _recurrent(name: str, r: np.random.RandomState) -> Workload:
    wide, s = (4 if name == "W6l" else 1) * HIDDEN, 1 / np.sqrt(HIDDEN)
    shapes = [(HIDDEN, wide), (HIDDEN, wide), (wide,), (HIDDEN, CLASSES), (CLASSES,)]
    params = [(r.randn(*shape) * (s if len(shape) == 2 else 0.1)).astype(F) for shape in shapes]
    x = list(r.randn(STEPS, BATCH, HIDDEN).astype(F))
    start = np.zeros((BATCH, HIDDEN), F)
    return Workload(name, "lstm" if name == "W6l" else "elman", params, x, r.randint(0, CLASSES, BATCH), start)


def _neurons(name: str, r: np.random.RandomState) -> Workload:
    """Two half moons; every weight is a parameter of its own, neuron by neuron: weights, then the bias."""
    angle, sizes = np.linspace(0, np.pi, 50), [2, 16, 16, 1]
    moons = [np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)]
    points = np.concatenate(moons) + r.randn(100, 2) * 0.1
    params = [np.array(v) for a, b in zip(sizes, sizes[1:]) for _ in range(b) for v in [*r.uniform(-1, 1, a), 0.0]]
    facts = {"sizes": sizes, "alpha": 1e-4, "points": points.tolist(), "signs": [-1.0] * 50 + [1.0] * 50}
    return Workload(name, "neurons", params, facts=facts)
