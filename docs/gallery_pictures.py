"""The pictures of the gallery: one small function each, made by the package's own engines.

The first line of a function's documentation is its caption, its name the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, static
from minigrad.static import net
from minigrad.viz.graph.graph import Graph

PICTURES: list[Callable[[], Any]] = []


def picture(make: Callable[[], Any]) -> Callable[[], Any]:
    """Put a function into the gallery."""
    PICTURES.append(make)
    return make


# ---- linked nodes -------------------------------------------------------------------------------


class Box:
    """A value, its gradient and the function that made it: what the first steps build."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.grad: Any = None
        self.creator: Any = None


class Function:
    """Computes, and remembers what it read and made."""

    def __call__(self, *inputs: Box) -> Box:
        output = Box(self.forward(*[b.data for b in inputs]))
        output.creator, self.inputs, self.outputs = self, inputs, [output]
        return output


class Square(Function):
    def forward(self, x: Any) -> Any:
        return x**2

    def backward(self, gy: Any) -> Any:
        x = self.inputs[0].data
        return 2 * x * gy


class Exp(Function):
    def forward(self, x: Any) -> Any:
        return np.exp(x)

    def backward(self, gy: Any) -> Any:
        x = self.inputs[0].data
        return np.exp(x) * gy


class Add(Function):
    def forward(self, x0: Any, x1: Any) -> Any:
        return x0 + x1

    def backward(self, gy: Any) -> Any:
        return gy, gy


def chain(start: Box) -> Box:
    """Backward along the ``creator`` links of a chain."""
    end = start
    while end.creator is not None:
        f = end.creator
        f.inputs[0].grad = f.backward(end.grad)
        end = f.inputs[0]
    return start


@picture
def linked_nodes() -> Any:
    """Linked nodes: every value knows the function that made it, and backward follows the links."""
    x = Box(0.5)
    a = Square()(x)
    b = Exp()(a)
    y = Square()(b)
    y.grad = np.array(1.0)
    chain(y)
    return mg.draw(y, names={"x": x, "a": a, "b": b, "y": y})


@picture
def not_yet() -> Any:
    """Before backward: a gradient that is not known yet is a dash, never a zero."""
    x = Box(0.5)
    y = Square()(Exp()(x))
    return mg.draw(y, names={"x": x, "y": y})


@picture
def used_twice() -> Any:
    """A value that is used twice: its gradient comes by two ways and is added up."""
    x = Box(3.0)
    a = Square()(x)
    y = Add()(a, a)
    return mg.draw(y, names={"x": x, "a": a, "y": y})


# ---- Tensors ------------------------------------------------------------------------------------


@picture
def first() -> Any:
    """A Tensor's graph after backward: the grad_fn nodes, their slots, and what each slot gave."""
    a, b, d = (mg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    c = a + b
    e = c * d
    e.backward()
    return mg.draw(e, names={"a": a, "b": b, "c": c, "d": d, "e": e})


@picture
def gradients_between() -> Any:
    """Gradients of the values in between, each on the rank of its value; two parts meet in a sum."""
    a, b = (mg.tensor(v, requires_grad=True, name=n) for n, v in (("a", 2.0), ("b", 3.0)))
    h = a * b
    k = h + a
    y = k * h
    y.backward()
    return mg.draw(y, values="grad")


@picture
def saved_values() -> Any:
    """Before backward: dotted lines lead from saved values to the nodes that will read them."""
    x = mg.tensor([0.5, -1.0], requires_grad=True)
    h = mg.tanh(x)
    loss = (h * h).sum()
    return mg.draw(loss, names={"x": x, "h": h, "loss": loss})


@picture
def several_outputs() -> Any:
    """One node with several outputs: lines say which output they belong to."""
    x = mg.tensor([[4.0, 1.0], [2.0, 3.0]], requires_grad=True)
    a, b = mg.split(x, 2)
    y = (a * b).sum()
    return mg.draw(y, names={"x": x, "a": a, "b": b, "y": y})


# ---- programs -----------------------------------------------------------------------------------


def shared_program() -> tuple[static.Program, Any]:
    """One weight used by two layers, and its backward part."""
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", (2,)), static.parameter("w", np.array([0.5, 2.0]))
        loss = (mg.tanh(x * w) * w).sum()
        static.append_backward(loss)
    return prog, loss


@picture
def program() -> Any:
    """A program and its generated backward: w is read twice, so two parts are renamed and summed."""
    return mg.draw(shared_program()[0])


@picture
def program_with_values() -> Any:
    """The same program after a run: the values of the scope stand beside the names."""
    prog, loss = shared_program()
    scope = static.Scope()
    static.Executor().run(prog, {"x": np.array([1.0, -0.5])}, [loss], scope=scope)
    return mg.draw((prog, scope))


@picture
def zeros_and_pruned() -> Any:
    """Zeros for a gradient nobody makes, and the grad ops that were not made, each with its reason."""
    prog = static.Program()
    with static.program_guard(prog):
        x, z = static.parameter("x", np.ones(4)), static.data("z", (2,))
        a, _ = mg.split(x, 2)
        static.append_backward((a * mg.relu(z)).sum())
    return mg.draw(prog, detail="pruned")


@picture
def while_loop() -> Any:
    """A loop: its body is a block of its own, its gradient runs the steps backwards."""
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", ()), static.parameter("w", np.array(0.5))
        _, s = static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [0, x])
        static.append_backward(mg.square(s))
    return mg.draw(prog)


@picture
def cond() -> Any:
    """A branch: two blocks, of which one runs, and their two blocks backwards."""
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", ()), static.parameter("w", np.array(0.5))
        y = static.cond(x > 0, lambda: x * w, lambda: w + x)
        static.append_backward(mg.square(y))
    return mg.draw(prog)


def long_program() -> static.Program:
    """Ten thousand operations in a row."""
    prog = static.Program()
    with static.program_guard(prog):
        h, w = static.data("x", (2,)), static.parameter("w", np.ones(2))
        for _ in range(5000):
            h = mg.tanh(h * w)
        h.sum()
    return prog


@picture
def folded() -> Any:
    """Ten thousand operations: what repeats is drawn once, and the picture says what it folded."""
    return mg.draw(long_program())


@picture
def expanded() -> Any:
    """The same program, opened where one value is made: the rest stays folded."""
    return mg.draw(long_program(), expand="tanh_17")


@picture
def closed_frames() -> Any:
    """Very many sub-blocks: each is closed into the operator that holds it, then the rest folds."""
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [3]), static.parameter("w", np.ones(3))
        y = w * x
        for _ in range(60):
            y = static.cond(y.sum() > 0, lambda y=y: mg.tanh(y), lambda y=y: mg.sin(y) * w)
        static.append_backward(y.sum())
    return mg.draw(prog)


@picture
def module() -> Any:
    """A module: its parameters by layer, with what their gradients are."""
    return mg.draw(nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 1)))


def search() -> Any:
    """A loop of 1,000 steps, folded; type a name to see where it is. In a notebook a click opens."""
    w = mg.tensor(np.full((3, 3), 0.1), requires_grad=True, name="w")
    h = mg.tensor(np.ones(3))
    named = {}
    for i in range(1000):
        h = named[f"h{i}"] = mg.tanh(h @ w + 0.5)
    return mg.draw((h * h).sum(), names=named)


# ---- nets ---------------------------------------------------------------------------------------


def layer(name: str, x: str, y: str) -> net.NetOp:
    """A small net: multiply by W, then a sigmoid."""
    return net.NetOp(
        [
            net.Operator("mul", {"x": x, "y": "W"}, {"out": f"{y}_z"}),
            net.Operator("sigmoid", {"x": f"{y}_z"}, {"out": y}),
        ],
        name,
    )


@picture
def nested_nets() -> Any:
    """Nets within nets: the backward net is nested as the forward one is, in reverse."""
    mlp = net.NetOp([layer("fc1", "x", "h"), layer("fc2", "h", "y")], "mlp")
    return mg.draw((mlp, net.Backward(mlp, no_grad={"x"})))


@picture
def rnn_op() -> Any:
    """An operator that runs a step net once per element of a sequence, and its grad op."""
    step = net.NetOp(
        [
            net.Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "z"}),
            net.Operator("add", {"x": "x", "y": "z"}, {"out": "h"}),
        ],
        "step",
    )
    rnn = net.RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"})
    return mg.draw((rnn, net.Backward(rnn)))


@picture
def legend() -> Any:
    """The legend: what every shape, border, colour and line means."""
    return mg.draw(Graph(title="Legend"), legend=True)


def player() -> Any:
    """The player of the first picture: forward, the seed, then every node backwards."""
    a, b, d = (mg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    c = a + b
    e = c * d
    e.backward()
    return mg.play(e, names={"a": a, "b": b, "c": c, "d": d, "e": e})


def squared() -> Any:
    """The player of the README: one operation, and two gradients to be added."""
    x = mg.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward()
    return mg.play(y, names={"x": x, "y": y})
