"""Learn to write sonnets, character by character.

python examples/sonnets.py --engine compiled --plot losses.png
"""

from __future__ import annotations

from typing import Any

import numpy as np
from training import command, train, used

import minigrad as mg
from minigrad import data, nn, optim

LENGTH = 32  # characters that are read in one go


class Writer(nn.Module):
    """Reads characters and gives the scores of the next one, after each of them."""

    def __init__(self, characters: int, hidden: int = 96, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.letters = nn.Embedding(characters, 32, seed=draw)
        self.memory = nn.LSTM(32, hidden, seed=draw)
        self.scores = nn.Linear(hidden, characters, seed=draw)

    def forward(self, text: Any) -> Any:
        """Characters [steps, texts] → scores [steps, texts, characters]."""
        return self.scores(self.memory(self.letters(text))[0])

    def write(self, start: Any, count: int, seed: int = 0, boldness: float = 0.5) -> list[int]:
        """Continue a text: one character after the other is drawn and read again."""
        draw, written, state = np.random.default_rng(seed), list(start), None
        fresh = np.asarray(start)[:, None]
        with mg.no_grad():
            for _ in range(count):
                outputs, state = self.memory(self.letters(fresh), state)
                weights = mg.softmax(self.scores(outputs[-1, 0]) / boldness).numpy().astype(float)
                written.append(int(draw.choice(len(weights), p=weights / weights.sum())))
                fresh = np.array([written[-1:]])
        return written


def main(steps: int = 300, engine: str = "eager") -> tuple[list[float], str]:
    """Learn six sonnets of Shakespeare; shows what the network writes by itself."""
    text = data.sonnets()
    alphabet = data.Alphabet(text)
    writer = Writer(len(alphabet)).astype("float32")
    pieces = data.windows(alphabet.encode(text), LENGTH, every=3)
    batches = data.DataLoader(pieces, batch_size=32, drop_last=True).forever()
    steps_first = (tuple(part.T.copy() for part in batch) for batch in batches)
    optimizer = optim.Adam(
        writer, lr=optim.cosine(0.01, steps), clip=optim.clip_by_global_norm(1.0)
    )
    losses = train(writer, loss_of, steps_first, steps, optimizer, engine)
    long = data.windows(alphabet.encode(text), 100, every=100)
    right = float((used(writer, long.given.T).argmax(axis=2) == long.following.T).mean())
    sample = alphabet.decode(writer.write(alphabet.encode("Shall I "), 160))
    return losses, f"{sample}\n\nnext characters it knows: {right:.0%}"


def loss_of(writer: nn.Module, given: Any, following: Any) -> Any:
    """Mean cross entropy of the next character."""
    return mg.cross_entropy(writer(given), following)


if __name__ == "__main__":
    command(main, steps=300)
