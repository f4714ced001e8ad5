"""The peers: one class each, ``Peer(workload)`` with ``grads()`` and ``step()``.

Each lends its vocabulary to `models.py`.  A peer whose library is not installed raises ImportError, and the benchmark says so.
"""
from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import models
import numpy as np
from by_hand import by_hand
from floor import Floor
from workloads import LEARNING_RATE, Workload


class ByHand:
    """NumPy without a library, allocating as it goes."""

    def __init__(self, w: Workload) -> None:
        self.w = w

    def grads(self) -> list[Any]:
        return by_hand(self.w)

    def step(self) -> None:
        grads = by_hand(self.w)
        if self.w.updates:
            for p, g in zip(self.w.params, grads):
                p -= LEARNING_RATE * g


def fold(cell: Any, state: Any, xs: Any) -> Any:
    """The last state of a recurrent network."""
    for x in xs:
        state = cell(state, x)
    return state


class Library:
    """What the libraries share: values made of the data once, the loss of `models.py`."""

    ops: Any

    def __init__(self, w: Workload) -> None:
        self.w = w
        self.params = [self.parameter(p) for p in w.params]
        self.x = [self.value(x) for x in w.x] if isinstance(w.x, list) else self.value(w.x)
        self.y, self.start = self.value(w.y), self.value(w.start)
        self.v = None if w.v is None else [self.value(v) for v in w.v]

    def parameter(self, array: Any) -> Any:
        return array

    def value(self, array: Any) -> Any:
        return array

    def loss(self, params: Any = None) -> Any:
        params = self.params if params is None else params
        return models.loss(self.w, self.ops, params, self.x, self.y, self.start)


class MinigradEager(Library):
    """minigrad, one op at a time."""

    def __init__(self, w: Workload) -> None:
        import minigrad as mg

        self.mg, self.ops = mg, self.vocabulary()
        super().__init__(w)
        self.optimizer = mg.optim.SGD(self.params, float(LEARNING_RATE))

    @staticmethod
    def vocabulary() -> Any:
        import minigrad as mg

        return SimpleNamespace(
            linear=mg.linear, matmul=mg.matmul, relu=mg.relu, tanh=mg.tanh, sigmoid=mg.sigmoid,
            split4=lambda z: mg.split(z, num_or_sections=4, axis=1),
            conv=lambda x, k, c: mg.conv2d(x, k, c, padding=1), pool=lambda x: mg.max_pool2d(x, kernel_size=2),
            rows=lambda x: mg.flatten(x, start=1), total=mg.sum, mse=mg.mse, cross_entropy=mg.cross_entropy, fold=fold,
        )  # fmt: skip

    def parameter(self, array: Any) -> Any:
        return self.mg.tensor(array, requires_grad=True)

    def value(self, array: Any) -> Any:
        return None if array is None else self.mg.tensor(array)

    def grads(self) -> list[Any]:
        self.backward()
        return [np.array(g.numpy()) for g in (self.found if self.v else [p.grad for p in self.params])]

    def backward(self) -> None:
        mg = self.mg
        if self.v:
            firsts = mg.grad(self.loss(), self.params, create_graph=True)
            self.found = mg.grad(firsts, self.params, self.v)
            return
        self.optimizer.zero_grad()
        self.loss().backward()

    def step(self) -> None:
        self.backward()
        if self.w.updates:
            self.optimizer.step()


class MinigradCompiled(Library):
    """minigrad, the same function written into a Program and compiled; data is fed at every call."""

    exact, backend = True, "numpy"

    def __init__(self, w: Workload) -> None:
        from minigrad import static

        if w.model == "neurons":
            raise NotImplementedError("65,000 operators on single numbers are no work for it")
        self.static, self.ops, self.w = static, MinigradEager.vocabulary(), w
        self.feed = {"x": np.array(w.x), "y": w.y, "start": w.start}
        self.feed |= {f"v{k}": v for k, v in enumerate(w.v or ())}
        self.feed = {name: np.asarray(a) for name, a in self.feed.items() if a is not None and np.ndim(a)}
        self.run_grads = self.compiled(self.gradients)
        self.run_step = self.compiled(self.update if w.updates else self.gradients_and_loss)

    def compiled(self, extend: Any) -> Any:
        """The program of the loss, extended by a method below, as a step."""
        static, program = self.static, self.static.Program()
        with static.program_guard(program):
            self.params = [static.parameter(f"p{k}", p) for k, p in enumerate(self.w.params)]
            fed = {name: static.data(name, a.shape, a.dtype) for name, a in self.feed.items()}
            self.x, self.y, self.start = (fed.get(name) for name in ("x", "y", "start"))
            if isinstance(self.w.x, list):
                self.x = [self.x[t] for t in range(len(self.w.x))]
            self.v = [fed[f"v{k}"] for k in range(len(self.w.v or ()))]
            fetch = extend(self.loss())
        return static.compile(program, fetch=fetch, exact=self.exact, backend=self.backend)

    def gradients(self, loss: Any) -> Any:
        found = self.static.gradients(loss, self.params)
        return self.static.gradients(found, self.params, self.v) if self.v else found

    def gradients_and_loss(self, loss: Any) -> Any:
        return self.gradients(loss) if self.v else [loss, *self.gradients(loss)]

    def update(self, loss: Any) -> Any:
        self.static.SGD(None, float(LEARNING_RATE)).minimize(loss)
        return [loss]

    def grads(self) -> list[Any]:
        return [np.array(g) for g in self.run_grads(**self.feed)]

    def step(self) -> None:
        self.run_step(**self.feed)


class MinigradInexact(MinigradCompiled):
    """The same with sums in another order where that is faster."""

    exact = False


class MinigradC(MinigradInexact):
    """The same Program as C."""

    backend = "c"


class Torch(Library):
    """PyTorch, eager."""

    def __init__(self, w: Workload) -> None:
        import torch
        from torch.nn import functional as f

        torch.set_num_threads(1)
        self.torch = torch
        self.ops = SimpleNamespace(
            linear=lambda x, a, b: torch.addmm(b, x, a), matmul=torch.matmul, relu=torch.relu, tanh=torch.tanh, sigmoid=torch.sigmoid,
            split4=lambda z: z.chunk(4, dim=1), conv=lambda x, k, c: f.conv2d(x, k, c, padding=1), pool=lambda x: f.max_pool2d(x, 2),
            rows=lambda x: x.flatten(1), total=torch.sum, mse=f.mse_loss, cross_entropy=f.cross_entropy, fold=fold,
        )  # fmt: skip
        super().__init__(w)
        self.optimizer = torch.optim.SGD(self.params, float(LEARNING_RATE))

    def parameter(self, array: Any) -> Any:
        return self.torch.tensor(array, requires_grad=True)

    def value(self, array: Any) -> Any:
        return None if array is None else self.torch.tensor(array)

    def backward(self) -> None:
        if self.v:
            firsts = self.torch.autograd.grad(self.loss(), self.params, create_graph=True)
            self.found = self.torch.autograd.grad(firsts, self.params, self.v)
            return
        for p in self.params:
            p.grad = None
        self.loss().backward()

    def grads(self) -> list[Any]:
        self.backward()
        return [g.numpy().copy() for g in (self.found if self.v else [p.grad for p in self.params])]

    def step(self) -> None:
        self.backward()
        if self.w.updates:
            self.optimizer.step()


class Autograd(Library):
    """HIPS autograd: tracing with NumPy wrappers."""

    def __init__(self, w: Workload) -> None:
        import autograd
        import autograd.numpy as anp

        if w.model == "cnn":
            raise NotImplementedError("its convolution is SciPy's, of float64")

        def cross_entropy(z: Any, classes: Any) -> Any:
            z = z - anp.max(z, axis=1, keepdims=True)
            log_p = z - anp.log(anp.sum(anp.exp(z), axis=1, keepdims=True))
            return -anp.mean(log_p[np.arange(len(classes)), classes])

        half, zero = np.float32(0.5), np.float32(0)
        self.ops = SimpleNamespace(
            linear=lambda x, a, b: anp.dot(x, a) + b, matmul=anp.dot, relu=lambda x: anp.maximum(x, zero), tanh=anp.tanh,
            sigmoid=lambda x: anp.tanh(x * half) * half + half, split4=lambda z: [z[:, k : k + z.shape[1] // 4] for k in range(0, z.shape[1], z.shape[1] // 4)],
            total=anp.sum, mse=lambda h, y: anp.mean((h - y) ** 2), cross_entropy=cross_entropy, fold=fold,
        )  # fmt: skip
        super().__init__(w)
        self.gradient = autograd.grad(self.loss)
        if w.v is not None:
            first = self.gradient
            self.gradient = autograd.grad(lambda p: sum(anp.sum(g * v) for g, v in zip(first(p), w.v)))  # type: ignore[arg-type]

    def grads(self) -> list[Any]:
        return [np.asarray(g) for g in self.gradient(self.params)]

    def step(self) -> None:
        grads = self.gradient(self.params)
        if self.w.updates:
            for p, g in zip(self.params, grads):
                p -= LEARNING_RATE * g


class DeZero(Library):
    """DeZero, the engine the first steps of the course resemble."""

    def __init__(self, w: Workload) -> None:
        np.int = int  # type: ignore[attr-defined]  # the release uses a name that NumPy has dropped
        import dezero
        import dezero.functions as f

        if w.name in ("W2", "W4w"):
            raise NotImplementedError("takes minutes: it sorts its list of functions at every one")
        if w.name == "W8":
            raise NotImplementedError("its cross-entropy has no second derivative")
        self.dezero = dezero

        def mse(h: Any, y: Any) -> Any:
            d = h - y
            return f.sum(d * d) * np.float32(1 / d.data.size)

        self.ops = SimpleNamespace(
            linear=f.linear, matmul=f.matmul, relu=f.relu, tanh=f.tanh, sigmoid=f.sigmoid,
            split4=lambda z: [z[:, k : k + z.shape[1] // 4] for k in range(0, z.shape[1], z.shape[1] // 4)],
            conv=lambda x, k, c: f.conv2d(x, k, c, 1, 1), pool=lambda x: f.pooling(x, 2, 2), rows=lambda x: f.reshape(x, (x.shape[0], -1)),
            total=f.sum, mse=mse, cross_entropy=f.softmax_cross_entropy, fold=fold,
        )  # fmt: skip
        super().__init__(w)

    def parameter(self, array: Any) -> Any:
        return self.dezero.Parameter(array)

    def value(self, array: Any) -> Any:
        return array if array is None or array.dtype.kind == "i" else self.dezero.Variable(array)

    def backward(self, loss: Any, **options: Any) -> list[Any]:
        for p in self.params:
            p.cleargrad()
        loss.backward(**options)
        return [p.grad for p in self.params]

    def run(self) -> list[Any]:
        if self.v is None:
            return self.backward(self.loss())
        firsts = self.backward(self.loss(), create_graph=True)
        return self.backward(sum(self.ops.total(g * v) for g, v in zip(firsts, self.v)))

    def grads(self) -> list[Any]:
        return [np.array(g.data) for g in self.run()]

    def step(self) -> None:
        grads = self.run()
        if self.w.updates:
            for p, g in zip(self.params, grads):
                p.data -= LEARNING_RATE * g.data


class Jax(Library):
    """JAX, traced and compiled by XLA (jit)."""

    def __init__(self, w: Workload) -> None:
        import jax
        import jax.numpy as jnp

        if w.model in ("neurons", "fan_out"):
            raise NotImplementedError("folds it, or compiles for minutes")
        self.jax, self.jnp = jax, jnp

        def conv(x: Any, k: Any, c: Any) -> Any:
            return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")) + c[:, None, None]

        def pool(x: Any) -> Any:
            return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        self.ops = SimpleNamespace(
            linear=lambda x, a, b: x @ a + b, matmul=jnp.matmul, relu=jax.nn.relu, tanh=jnp.tanh, sigmoid=jax.nn.sigmoid,
            split4=lambda z: jnp.split(z, 4, axis=1), conv=conv, pool=pool, rows=lambda x: x.reshape(len(x), -1), total=jnp.sum,
            mse=lambda h, y: jnp.mean((h - y) ** 2),
            cross_entropy=lambda z, t: -jnp.mean(jax.nn.log_softmax(z)[jnp.arange(len(t)), t]),
            fold=lambda cell, state, xs: jax.lax.scan(lambda s, x: (cell(s, x), None), state, jnp.stack(xs))[0],
        )  # fmt: skip
        super().__init__(w)
        slope, v = jax.grad(self.loss), self.v
        self.gradient = jax.jit(slope if v is None else lambda p: jax.jvp(slope, (p,), (v,))[1])
        self.update = jax.jit(lambda p: [a - LEARNING_RATE * g for a, g in zip(p, slope(p))])

    def parameter(self, array: Any) -> Any:
        return self.jnp.asarray(array)

    def value(self, array: Any) -> Any:
        return None if array is None else self.jnp.asarray(array)

    def grads(self) -> list[Any]:
        return [np.asarray(g) for g in self.gradient(self.params)]

    def step(self) -> None:
        if not self.w.updates:
            self.jax.block_until_ready(self.gradient(self.params))
            return
        self.params = self.jax.block_until_ready(self.update(self.params))


class CasADi(Library):
    """CasADi: its expressions, and the C that it generates, compiled by cc; all of it in double precision, no BLAS."""

    def __init__(self, w: Workload) -> None:
        import casadi as ca

        if w.model in ("cnn", "neurons"):
            raise NotImplementedError("no expressions of its own for it")
        if w.name in ("W6e", "W6l", "W8"):
            raise NotImplementedError("cc takes minutes for its C")
        self.ca, self.w = ca, w
        self.kind = ca.SX if w.name == "W1s" else ca.MX  # single numbers, or matrices: texts of megabytes take cc minutes
        self.symbols: list[Any] = []
        self.data: list[Any] = []

        def cross_entropy(z: Any, hot: Any) -> Any:
            return ca.sum1(ca.log(ca.sum2(ca.exp(z))) - ca.sum2(z * hot)) / z.shape[0]

        self.ops = SimpleNamespace(
            linear=lambda x, a, b: x @ a + ca.repmat(b.T, x.shape[0], 1), matmul=lambda x, a: x @ a, relu=lambda x: ca.fmax(x, 0), tanh=ca.tanh,
            sigmoid=lambda z: 1 / (1 + ca.exp(-z)), split4=lambda z: ca.horzsplit(z, z.shape[1] // 4), total=lambda z: ca.sum1(ca.sum2(z)),
            mse=lambda h, y: ca.sumsqr(h - y) / y.numel(), cross_entropy=cross_entropy, fold=fold,
        )  # fmt: skip
        hot = None if w.y is None else np.eye(w.params[-1].size)[w.y] if w.y.dtype.kind == "i" else w.y
        super().__init__(replace(w, y=hot))
        loss = self.loss()
        grads = [ca.gradient(loss, p) for p in self.params]
        if self.v:
            grads = [ca.gradient(sum(ca.dot(g, v) for g, v in zip(grads, self.v)), p) for p in self.params]
        updates = [p - float(LEARNING_RATE) * g for p, g in zip(self.params, grads)]
        self.run_grads, self.found = self.compiled("grads", grads)
        self.run_step, self.updated = self.compiled("update", updates if w.updates else grads)

    def parameter(self, array: Any) -> Any:
        self.data.append(np.array(array, np.float64).ravel("F"))
        self.symbols.append(self.kind.sym(f"v{len(self.symbols)}", *array.shape))
        return self.symbols[-1]

    def value(self, array: Any) -> Any:
        return None if array is None else self.parameter(array)

    def compiled(self, name: str, outputs: list[Any]) -> Any:
        """A call of the compiled C, and the arrays that it fills."""
        folder = tempfile.mkdtemp(prefix="casadi-")
        generator = self.ca.CodeGenerator(f"{name}.c")
        generator.add(self.ca.Function(name, self.symbols, [self.ca.densify(o) for o in outputs]))
        generator.generate(f"{folder}/")
        library = f"{folder}/{name}.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, f"{folder}/{name}.c", "-lm"], check=True)
        buffer, run = self.ca.external(name, library).buffer()
        results = [np.zeros(p.size) for p in self.w.params]
        for k, array in enumerate(self.data):
            buffer.set_arg(k, memoryview(array))
        for k, array in enumerate(results):
            buffer.set_res(k, memoryview(array))
        self.buffers = [*getattr(self, "buffers", ()), buffer]
        return run, results

    def grads(self) -> list[Any]:
        self.run_grads()
        return [g.reshape(p.shape, order="F") for g, p in zip(self.found, self.w.params)]

    def step(self) -> None:
        self.run_step()
        if self.w.updates:
            for p, new in zip(self.data, self.updated):
                p[:] = new


PEERS = {"floor": Floor, "by hand": ByHand, "minigrad eager": MinigradEager, "minigrad compiled": MinigradCompiled,
         "minigrad compiled inexact": MinigradInexact, "minigrad in C": MinigradC,
         "PyTorch": Torch, "JAX jit": Jax, "autograd": Autograd, "DeZero": DeZero, "CasADi": CasADi}
