"""Teach a small transformer to sort.

    python examples/sorting.py --engine compiled --plot losses.png

Every place of the output must find out, by attention to all digits of the input, which digit belongs there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from training import command, train, used

import minigrad as mg
from minigrad import nn, optim

LENGTH, DIGITS, WIDTH = 8, 10, 32


class Block(nn.Module):
    """Attention, then a dense layer of its own for every place; both are added to what comes in."""

    def __init__(self, width: int, heads: int, draw: np.random.Generator) -> None:
        self.look = nn.MultiHeadAttention(width, heads, seed=draw)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width, seed=draw), mg.gelu, nn.Linear(4 * width, width, seed=draw)
        )

    def forward(self, x: Any) -> Any:
        """[texts, places, width] → the same."""
        x = x + self.look(self.first(x))
        return x + self.think(self.second(x))


class Sorter(nn.Module):
    """Digits [rows, places] → scores [rows, places, digits] of the sorted row."""

    def __init__(self, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.digit = nn.Embedding(DIGITS, WIDTH, seed=draw)
        self.place = nn.Parameter(draw.normal(size=(LENGTH, WIDTH)))
        self.blocks = [Block(WIDTH, 4, draw) for _ in range(2)]
        self.scores = nn.Linear(WIDTH, DIGITS, seed=draw)

    def forward(self, rows: Any) -> Any:
        """All places at once."""
        x = self.digit(rows) + self.place
        for block in self.blocks:
            x = block(x)
        return self.scores(x)


def rows(seed: int, count: int) -> Iterator[tuple[Any, Any]]:
    """Batches of random rows, and the same rows sorted."""
    draw = np.random.default_rng(seed)
    while True:
        given = draw.integers(DIGITS, size=(count, LENGTH))
        yield given, np.sort(given, axis=1)


def main(steps: int = 600, engine: str = "eager") -> tuple[list[float], str]:
    """Sort rows of eight digits with a transformer of two blocks."""
    sorter = Sorter().astype("float32")
    schedule = optim.warmup(optim.cosine(0.003, steps), max(steps // 20, 1))
    losses = train(sorter, loss_of, rows(1, 32), steps, optim.AdamW(sorter, lr=schedule), engine)
    given, expected = next(rows(2, 500))
    found = used(sorter, given).argmax(axis=2)
    right = float((found == expected).mean())
    return losses, f"{given[0]} → {found[0]}\nplaces that are right in unseen rows: {right:.1%}"


def loss_of(sorter: nn.Module, given: Any, expected: Any) -> Any:
    """Mean cross entropy over all places."""
    return mg.cross_entropy(sorter(given), expected)


if __name__ == "__main__":
    command(main, steps=600)
