"""Read handwritten digits with a dense network or a convolutional one.

python examples/digits.py --model cnn --engine compiled --plot losses.png
"""

from __future__ import annotations

from typing import Any

from training import command, train, used

import minigrad as mg
from minigrad import data, nn, optim


def mlp() -> nn.Module:
    """64 pixels → 64 hidden units → 10 scores."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64, seed=0), mg.relu, nn.Linear(64, 10, seed=1)
    )


def cnn() -> nn.Module:
    """Two layers of filters, each followed by pooling, then 10 scores."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1, seed=0),
        mg.relu,
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1, seed=1),
        mg.relu,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10, seed=2),
    )


def main(model: str = "mlp", steps: int = 600, engine: str = "eager") -> tuple[list[float], str]:
    """Read handwritten digits; a fifth of them is held back to test with."""
    network = {"mlp": mlp, "cnn": cnn}[model]().astype("float32")
    training, test = data.split(data.digits())
    batches = data.DataLoader(prepared(training), batch_size=64, drop_last=True).forever()
    optimizer = optim.Adam(network, lr=optim.cosine(0.01, steps))
    losses = train(network, loss_of, batches, steps, optimizer, engine)
    return losses, f"accuracy on unseen digits: {accuracy(network, test):.1%}"


def prepared(digits: data.Labelled) -> tuple[Any, Any]:
    """Images as [examples, 1 channel, 8, 8] in single precision, and their labels."""
    return digits.images[:, None].astype("float32"), digits.labels


def loss_of(network: nn.Module, images: Any, labels: Any) -> Any:
    """Mean cross entropy."""
    return mg.cross_entropy(network(images), labels)


def accuracy(network: nn.Module, digits: data.Labelled) -> float:
    """The share of digits that is read right."""
    images, labels = prepared(digits)
    return float((used(network, images).argmax(axis=1) == labels).mean())


if __name__ == "__main__":
    command(main, steps=600, model=("mlp", "cnn"))
