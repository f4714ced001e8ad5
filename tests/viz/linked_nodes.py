"""A tiny engine of linked nodes and a tiny grad_fn graph, for tests of the pictures."""

from __future__ import annotations

import random
import weakref

import numpy as np


class Variable:
    """An array, its gradient, and the function that made it."""

    def __init__(self, data, name=None):
        self.data, self.name = np.asarray(data, dtype=float), name
        self.grad = self.creator = None

    def __add__(self, other):
        return Add()(self, other)

    def __mul__(self, other):
        return Mul()(self, other)


class Function:
    """Makes links when it is called; its outputs are held weakly on request."""

    weak = False

    def __call__(self, *inputs):
        results = self.forward(*[v.data for v in inputs])
        made = [Variable(r) for r in (results if isinstance(results, tuple) else (results,))]
        for v in made:
            v.creator = self
        self.inputs = inputs
        self.outputs = [weakref.ref(v) if self.weak else v for v in made]
        return made[0] if len(made) == 1 else made


class Square(Function):
    def forward(self, x):
        y = x**2
        return y

    def backward(self, gy):
        x = self.inputs[0].data
        gx = 2 * x * gy
        return gx


class Exp(Function):
    def forward(self, x):
        y = np.exp(x)
        return y

    def backward(self, gy):
        x = self.inputs[0].data
        return np.exp(x) * gy


class Add(Function):
    def forward(self, x0, x1):
        return x0 + x1

    def backward(self, gy):
        return gy, gy


class Mul(Function):
    def forward(self, x0, x1):
        return x0 * x1

    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy * x1, gy * x0


class Halves(Function):
    """Two outputs, and a backward that is not a plain formula."""

    def forward(self, x):
        return x / 2, x / 2

    def backward(self, g0, g1):
        if g0 is None:
            return g1 / 2
        return (g0 + g1) / 2


def functions_behind(root):
    """Every function behind a variable, producers first."""
    seen, order, pending = set(), [], [(root.creator, False)]
    while pending:
        function, ready = pending.pop()
        if function is None or (not ready and function in seen):
            continue
        if ready:
            order.append(function)
            continue
        seen.add(function)
        pending += [(function, True), *((v.creator, False) for v in function.inputs)]
    return order


def backward(root, overwrite=False):
    """Fill gradients: adding up, or, as a first engine would, assigning."""
    root.grad = np.ones_like(root.data)
    for function in reversed(functions_behind(root)):
        outputs = [o() if isinstance(o, weakref.ref) else o for o in function.outputs]
        gxs = function.backward(*[o.grad for o in outputs])
        for v, g in zip(function.inputs, gxs if isinstance(gxs, tuple) else (gxs,), strict=True):
            v.grad = g if v.grad is None or overwrite else v.grad + g


def random_variable(seed, most=14):
    """The root of a random graph: chains, reuse, several leaves, sometimes one twice in a call."""
    draw = random.Random(seed)
    values = [Variable(draw.uniform(-1, 1), f"x{i}") for i in range(draw.randint(1, 4))]
    for _ in range(draw.randint(1, most)):
        kind = draw.choice([Square, Exp, Add, Mul])
        count = 2 if kind in (Add, Mul) else 1
        values.append(kind()(*[draw.choice(values[-6:]) for _ in range(count)]))
    return values[-1]


# A grad_fn graph -----------------------------------------------------------------------------


class Tensor:
    """An array with the node of the backward graph that belongs to it."""

    def __init__(self, data, requires_grad=False, grad_fn=None, name=None, output_nr=0):
        self.data, self.grad, self.name = np.asarray(data, dtype=float), None, name
        self.requires_grad = requires_grad or grad_fn is not None
        self.grad_fn, self.output_nr = grad_fn, output_nr
        self.accumulator = AccumulateGrad(self) if requires_grad and grad_fn is None else None

    def edge(self):
        if self.grad_fn is not None:
            return self.grad_fn, self.output_nr
        return (self.accumulator, 0)

    def __add__(self, other):
        return Tensor(self.data + other.data, grad_fn=AddBackward0(self, other))

    def __mul__(self, other):
        return Tensor(self.data * other.data, grad_fn=MulBackward0(self, other, x=self, y=other))


class Node:
    """One operation seen from behind."""

    def __init__(self, *inputs, **saved):
        self.next_functions = tuple(t.edge() for t in inputs)
        self.saved = saved

    def name(self):
        return type(self).__name__


class AddBackward0(Node):
    """z = x + y"""

    def backward(self, grad, **saved):
        return grad, grad


class MulBackward0(Node):
    """z = x * y"""

    def backward(self, grad, x, y):
        return grad * y, grad * x


class UnbindBackward0(Node):
    """Two results."""


class AccumulateGrad(Node):
    """Adds to the gradient of a leaf."""

    def __init__(self, variable):
        super().__init__()
        self.variable = variable


def unbind(tensor):
    node = UnbindBackward0(tensor)
    return tuple(Tensor(part, grad_fn=node, output_nr=i) for i, part in enumerate(tensor.data))


def random_tensor(seed, most=12):
    """The root of a random grad_fn graph, with constants among the inputs."""
    draw = random.Random(seed)
    leaves = [Tensor(draw.uniform(-1, 1), True, name=f"x{i}") for i in range(draw.randint(1, 4))]
    values = [*leaves, Tensor(3.0, name="k")]
    result = leaves[0]
    for _ in range(draw.randint(1, most)):
        one, other = draw.choice(values[-5:]), draw.choice([result, *leaves])
        result = one + other if draw.random() < 0.5 else one * other
        values.append(result)
    return result
