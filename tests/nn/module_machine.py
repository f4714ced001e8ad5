"""Random histories of modules, beside a model that knows each Tensor's kind by heart.

In the model a module is a flat dictionary: path → kind (parameter or buffer), frozen or not, value, gradient.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import MinigradError


class Net(nn.Module):
    """Parameters, buffers and layers of both kinds, one parameter shared."""

    def __init__(self, seed: int) -> None:
        self.first = nn.Linear(2, 3, seed=seed)
        self.norm = nn.BatchNorm(3)
        self.more = [nn.Linear(3, 3, seed=seed + 1), {"drop": nn.Dropout(0.5, seed=seed)}]
        self.shared = self.first.bias
        self.count = mg.tensor(0)
        self.scale = mg.tensor(2.0, name="scale")

    def forward(self, x: Any) -> Any:
        h = self.more[1]["drop"](self.norm(self.first(x)))
        return self.more[0](mg.tanh(h)) * self.scale + self.shared


PARAMETERS = (
    "first.weight", "first.bias", "norm.weight", "norm.bias", "more.0.weight", "more.0.bias",
)  # fmt: skip
BUFFERS = ("norm.running_mean", "norm.running_var", "count", "scale")


@dataclass
class Entry:
    """What the model knows of one Tensor."""

    value: np.ndarray[Any, Any]
    parameter: bool
    frozen: bool = False
    grad: Any = None

    @property
    def trains(self) -> bool:
        return self.parameter and not self.frozen


class Model:
    """One module as the model sees it; an optimizer of it, plain descent, by paths."""

    def __init__(self, net: Net) -> None:
        at = dict(net.named_tensors())
        self.entries = {p: Entry(np.array(at[p].detach()), p in PARAMETERS) for p in at}
        self.training = True
        self.optimized: list[str] | None = None
        self.decay = 0.0


class History:
    """Modules and their models side by side."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        net = Net(seed % 7)
        self.pairs: list[tuple[Net, Model]] = [(net, Model(net))]
        self.optimizers: dict[int, optim.Optimizer] = {}
        self.log: list[str] = []

    def play(self, steps: int) -> None:
        """Do random things; compare after each."""
        for _ in range(steps):
            command = self.draw.choice(COMMANDS)
            index = self.draw.randrange(len(self.pairs))
            self.log.append(f"{command.__name__} {index}")
            command(self, index, *self.pairs[index])
            for net, model in self.pairs:
                self.compare(net, model)

    def compare(self, net: Net, model: Model) -> None:
        """Kinds, values, gradients, switches; and what is found by each way of asking."""
        where = f"after {self.log[-12:]}"
        tensors = dict(net.named_tensors())
        assert sorted(tensors) == sorted([*PARAMETERS, *BUFFERS]), where
        trained = [p for p in tensors if model.entries[p].trains]
        assert [p for p, _ in net.named_parameters()] == trained, where
        assert [id(p) for p in net.parameters()] == [id(tensors[p]) for p in trained], where
        assert {m.training for m in net.modules()} == {model.training}, where
        for path, at in tensors.items():
            entry = model.entries[path]
            assert at.requires_grad == entry.trains, f"{path} {where}"
            assert at.dtype == entry.value.dtype, f"{path} {where}"
            same = np.allclose(at.detach().numpy(), entry.value, rtol=1e-5, atol=1e-7)
            assert same, f"{path} is {at}, not {entry.value} {where}"
            assert (at.grad is None) == (entry.grad is None), f"gradient of {path} {where}"
            if entry.grad is not None:
                assert np.allclose(at.grad.numpy(), entry.grad), f"gradient of {path} {where}"
        assert net.shared is net.first.bias, where

    # -- commands --------------------------------------------------------------------------

    def freeze(self, index: int, net: Net, model: Model) -> None:
        net.requires_grad_(False)
        for entry in model.entries.values():
            entry.frozen = entry.parameter

    def thaw(self, index: int, net: Net, model: Model) -> None:
        net.requires_grad_()
        for entry in model.entries.values():
            entry.frozen = False

    def freeze_a_part(self, index: int, net: Net, model: Model) -> None:
        part = self.draw.choice(("first", "norm"))
        wanted = self.draw.random() < 0.5
        getattr(net, part).requires_grad_(wanted)
        for path, entry in model.entries.items():
            if path.startswith(part) and entry.parameter:
                entry.frozen = not wanted

    def freeze_one(self, index: int, net: Net, model: Model) -> None:
        path = self.draw.choice(PARAMETERS)
        wanted = self.draw.random() < 0.5
        dict(net.named_tensors())[path].requires_grad_(wanted)
        model.entries[path].frozen = not wanted

    def switch(self, index: int, net: Net, model: Model) -> None:
        model.training = self.draw.random() < 0.5
        net.train(model.training)

    def forward(self, index: int, net: Net, model: Model) -> None:
        """Only running statistics change, and only in training."""
        dtype = model.entries["first.weight"].value.dtype
        x = np.array([[self.draw.uniform(-1, 1) for _ in range(2)] for _ in range(4)], dtype)
        net(mg.tensor(x))
        if model.training:
            values = {p: e.value for p, e in model.entries.items()}
            h = x @ values["first.weight"] + values["first.bias"]
            mean, var = model.entries["norm.running_mean"], model.entries["norm.running_var"]
            mean.value = (0.9 * mean.value + 0.1 * h.mean(0)).astype(dtype)
            var.value = (0.9 * var.value + 0.1 * h.var(0, ddof=1)).astype(dtype)

    def backward(self, index: int, net: Net, model: Model) -> None:
        """A loss whose gradient is known: the sum of squares of all that trains."""
        parameters = net.parameters()
        if parameters:
            mg.add_n([(p * p).sum() for p in parameters]).backward()
        for entry in model.entries.values():
            if entry.trains:
                new = 2 * entry.value
                entry.grad = new if entry.grad is None else entry.grad + new

    def zero_grad(self, index: int, net: Net, model: Model) -> None:
        """Those of frozen parameters stay."""
        net.zero_grad()
        for entry in model.entries.values():
            entry.grad = None if entry.trains else entry.grad

    def optimize(self, index: int, net: Net, model: Model) -> None:
        model.optimized = [p for p, _ in net.named_parameters()]
        model.decay = self.draw.choice([0.0, 0.5])  # without it, steps are of another kind
        try:
            self.optimizers[index] = optim.SGD(net, lr=0.125, weight_decay=model.decay)
        except MinigradError:
            assert not model.optimized
            model.optimized = None
        else:
            assert model.optimized

    def step(self, index: int, net: Net, model: Model) -> None:
        """What has been frozen since, or has no gradient, stays."""
        if model.optimized is None:
            return
        self.optimizers[index].step()
        for path in model.optimized:
            entry = model.entries[path]
            if entry.trains and entry.grad is not None:
                rate, decay = np.asarray([0.125, model.decay], entry.value.dtype)
                entry.value = entry.value - rate * (entry.grad + decay * entry.value)

    def copied(self, index: int, net: Net, model: Model) -> None:
        """A copy trains, freezes and thaws by itself; pickles hold no gradients."""
        if len(self.pairs) > 3:
            return
        pickled = self.draw.random() < 0.5
        twin = pickle.loads(pickle.dumps(net)) if pickled else copy.deepcopy(net)
        entries = copy.deepcopy(model)
        entries.optimized = None
        if pickled:
            for entry in entries.entries.values():
                entry.grad = None
        self.pairs.append((twin, entries))

    def load(self, index: int, net: Net, model: Model) -> None:
        """Values move from module to module; kinds, switches and gradients do not."""
        source, other = self.draw.choice(self.pairs)
        net.load_state_dict(source.state_dict())
        for path, entry in model.entries.items():
            entry.value = other.entries[path].value.astype(entry.value.dtype)

    def refuse(self, index: int, net: Net, model: Model) -> None:
        """What does not fit changes nothing."""
        state: dict[str, Any] = {p: v + 1 for p, v in net.state_dict().items()}
        path = self.draw.choice((*PARAMETERS, *BUFFERS))
        broken = self.draw.choice(("missing", "shape", "text", "unknown"))
        if broken == "missing":
            del state[path]
        elif broken == "unknown":
            state[path + "x"] = state[path]
        else:
            state[path] = np.zeros((5, 5)) if broken == "shape" else "values"
        try:
            net.load_state_dict(state)
        except MinigradError:
            return
        raise AssertionError(f"{broken} {path} was taken")

    def astype(self, index: int, net: Net, model: Model) -> None:
        dtype = np.dtype(self.draw.choice(("float32", "float64")))
        net.astype(dtype)
        for entry in model.entries.values():
            if entry.value.dtype.kind == "f":
                entry.value, entry.grad = entry.value.astype(dtype), None

    def replace(self, index: int, net: Net, model: Model) -> None:
        """A new buffer in place of an old one is a buffer."""
        net.scale = mg.tensor(np.asarray(self.draw.uniform(1, 2), net.scale.dtype), name="scale")
        model.entries["scale"] = Entry(np.array(net.scale), parameter=False)


COMMANDS: list[Callable[..., None]] = [
    History.freeze, History.thaw, History.freeze_a_part, History.freeze_one, History.switch,
    History.forward, History.backward, History.backward, History.zero_grad, History.optimize,
    History.step, History.step, History.copied, History.load, History.refuse, History.astype,
    History.replace,
]  # fmt: skip


def seeded_history(seed: int) -> None:
    """One history.  Errors: `AssertionError` that tells the last commands."""
    History(seed).play(40)
