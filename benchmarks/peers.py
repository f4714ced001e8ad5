"""The peers: one class each, ``Peer(workload)`` with ``grads()`` and ``step()``.

A peer whose library is not installed raises ImportError, and the benchmark says so.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from workloads import LEARNING_RATE, MLPS, Workload, by_hand


class ByHand:
    """NumPy without a library, allocating as it goes: the base of all ratios."""

    def __init__(self, w: Workload) -> None:
        self.w = w

    def grads(self) -> list[Any]:
        return by_hand(self.w)

    def step(self) -> None:
        for p, g in zip(self.w.params, by_hand(self.w)):
            p -= LEARNING_RATE * g


class MinigradEager:
    """minigrad, one op at a time."""

    def __init__(self, w: Workload) -> None:
        import minigrad as mg

        self.mg, self.w = mg, w
        self.params = [mg.tensor(p, requires_grad=True) for p in w.params]
        self.x = None if w.x is None else mg.tensor(w.x)
        self.y = None if w.y is None else mg.tensor(w.y)
        if w.name == "W6e":
            self.xs = [mg.tensor(x) for x in w.x]
            self.start = mg.tensor(np.zeros((w.x.shape[1], 64), np.float32))
        self.optimizer = mg.optim.SGD(self.params, float(LEARNING_RATE))

    def loss(self) -> Any:
        mg, p = self.mg, self.params
        if self.w.name in MLPS:
            h, layers = self.x, len(p) // 2
            for k in range(layers):
                h = mg.linear(h, p[2 * k], p[2 * k + 1])
                if k < layers - 1:
                    h = mg.relu(h) if self.w.facts["act"] == "relu" else mg.tanh(h)
            return mg.mse(h, self.y) if self.w.facts["loss"] == "mse" else mg.cross_entropy(h, self.y)
        if self.w.name == "W4":
            total = None
            for c in self.w.facts["factors"]:
                total = p[0] * c if total is None else total + p[0] * c
            return total.sum()
        wx, wh, b, wo, bo = p
        h = self.start
        for x in self.xs:
            h = mg.tanh(x @ wx + h @ wh + b)
        return mg.cross_entropy(h @ wo + bo, self.y)

    def grads(self) -> list[Any]:
        for p in self.params:
            p.grad = None
        self.loss().backward()
        return [np.array(p.grad.numpy()) for p in self.params]

    def step(self) -> None:
        for p in self.params:
            p.grad = None
        self.loss().backward()
        self.optimizer.step()


class MinigradCompiled(MinigradEager):
    """minigrad, the same function traced into a Program and compiled."""

    def __init__(self, w: Workload) -> None:
        super().__init__(w)
        from minigrad import static

        if w.name == "W4":
            raise NotImplementedError("folds to nothing")
        names = {id(p): f"p{k}" for k, p in enumerate(self.params)}
        for p in self.params:
            p.name = names[id(p)]
        prog = self.mg.trace(lambda: self.loss())
        with static.program_guard(prog):
            loss = prog.global_block().var(prog.outputs[0])
            pairs = static.append_backward(loss)
        self.run_grads = static.compile(prog, fetch=[g for _, g in sorted(pairs, key=lambda pg: pg[0].name)])
        trained = self.mg.trace(lambda: self.loss())
        with static.program_guard(trained):
            self.mg.optim.SGD(self.params, float(LEARNING_RATE)).minimize(trained.global_block().var(trained.outputs[0]))
        self.run_step = static.compile(trained, fetch=[trained.outputs[0]])

    def grads(self) -> list[Any]:
        return list(self.run_grads())

    def step(self) -> None:
        self.run_step()


class Torch:
    """PyTorch, eager."""

    def __init__(self, w: Workload) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.w = torch, w
        self.params = [torch.tensor(p, requires_grad=True) for p in w.params]
        self.x = None if w.x is None else torch.tensor(w.x)
        self.y = None if w.y is None else torch.tensor(w.y)
        self.optimizer = torch.optim.SGD(self.params, float(LEARNING_RATE))

    def loss(self) -> Any:
        torch, p = self.torch, self.params
        fun = torch.nn.functional
        if self.w.name in MLPS:
            h, layers = self.x, len(p) // 2
            for k in range(layers):
                h = torch.addmm(p[2 * k + 1], h, p[2 * k])
                if k < layers - 1:
                    h = torch.relu(h) if self.w.facts["act"] == "relu" else torch.tanh(h)
            return fun.mse_loss(h, self.y) if self.w.facts["loss"] == "mse" else fun.cross_entropy(h, self.y)
        if self.w.name == "W4":
            total = None
            for c in self.w.facts["factors"]:
                total = p[0] * c if total is None else total + p[0] * c
            return total.sum()
        wx, wh, b, wo, bo = p
        h = torch.zeros(self.x.shape[1], 64)
        for x in self.x:
            h = torch.tanh(x @ wx + h @ wh + b)
        return fun.cross_entropy(h @ wo + bo, self.y)

    def grads(self) -> list[Any]:
        for p in self.params:
            p.grad = None
        self.loss().backward()
        return [p.grad.numpy().copy() for p in self.params]

    def step(self) -> None:
        for p in self.params:
            p.grad = None
        self.loss().backward()
        self.optimizer.step()


class Autograd:
    """HIPS autograd: tracing with NumPy wrappers."""

    def __init__(self, w: Workload) -> None:
        import autograd
        import autograd.numpy as anp

        self.np, self.w = anp, w
        self.grad = autograd.grad(self.loss)

    def loss(self, p: Any) -> Any:
        anp, w = self.np, self.w
        if w.name in MLPS:
            h, layers = w.x, len(p) // 2
            for k in range(layers):
                h = anp.dot(h, p[2 * k]) + p[2 * k + 1]
                if k < layers - 1:
                    h = anp.maximum(h, np.float32(0)) if w.facts["act"] == "relu" else anp.tanh(h)
            return anp.mean((h - w.y) ** 2) if w.facts["loss"] == "mse" else self.cross_entropy(h)
        if w.name == "W4":
            total = None
            for c in w.facts["factors"]:
                total = p[0] * c if total is None else total + p[0] * c
            return anp.sum(total)
        wx, wh, b, wo, bo = p
        h = np.zeros((w.x.shape[1], 64), np.float32)
        for x in w.x:
            h = anp.tanh(anp.dot(x, wx) + anp.dot(h, wh) + b)
        return self.cross_entropy(anp.dot(h, wo) + bo)

    def cross_entropy(self, z: Any) -> Any:
        anp = self.np
        z = z - anp.max(z, axis=1, keepdims=True)
        log_p = z - anp.log(anp.sum(anp.exp(z), axis=1, keepdims=True))
        return -anp.mean(log_p[np.arange(len(self.w.y)), self.w.y])

    def grads(self) -> list[Any]:
        return [np.asarray(g) for g in self.grad(self.w.params)]

    def step(self) -> None:
        for p, g in zip(self.w.params, self.grad(self.w.params)):
            p -= LEARNING_RATE * g


class DeZero:
    """DeZero, the engine the first steps of the course resemble."""

    def __init__(self, w: Workload) -> None:
        np.int = int  # type: ignore[attr-defined]  # the release uses a name that NumPy has dropped
        import dezero
        import dezero.functions as fun

        self.f, self.w = fun, w
        self.params = [dezero.Parameter(p) for p in w.params]

    def loss(self) -> Any:
        f, p, w = self.f, self.params, self.w
        if w.name in MLPS:
            h, layers = w.x, len(p) // 2
            for k in range(layers):
                h = f.linear(h, p[2 * k], p[2 * k + 1])
                if k < layers - 1:
                    h = f.relu(h) if w.facts["act"] == "relu" else f.tanh(h)
            return f.mean_squared_error(h, w.y) if w.facts["loss"] == "mse" else f.softmax_cross_entropy(h, w.y)
        if w.name == "W4":
            total = None
            for c in w.facts["factors"]:
                total = p[0] * c if total is None else total + p[0] * c
            return f.sum(total)
        wx, wh, b, wo, bo = p
        h = np.zeros((w.x.shape[1], 64), np.float32)
        for x in w.x:
            h = f.tanh(f.linear(x, wx, b) + f.linear(h, wh))
        return f.softmax_cross_entropy(f.linear(h, wo, bo), w.y)

    def grads(self) -> list[Any]:
        for p in self.params:
            p.cleargrad()
        self.loss().backward()
        return [np.array(p.grad.data) for p in self.params]

    def step(self) -> None:
        self.grads()
        for p in self.params:
            p.data -= LEARNING_RATE * p.grad.data


PEERS = {"by hand": ByHand, "minigrad eager": MinigradEager, "minigrad compiled": MinigradCompiled,
         "PyTorch": Torch, "autograd": Autograd, "DeZero": DeZero}
