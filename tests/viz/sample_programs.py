"""Tiny duck-typed programs and nets for the picture tests: what an adapter may rely on, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Var:
    name: str
    shape: tuple = ()
    dtype: str = "float64"
    persistable: bool = False
    stop_gradient: bool = False


@dataclass(eq=False)
class Op:
    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any] = field(default_factory=dict)
    role: str = "forward"
    forward_op: Op | None = None


@dataclass(eq=False)
class Block:
    idx: int = 0
    parent: int = -1
    ops: list[Op] = field(default_factory=list)
    vars: dict[str, Var] = field(default_factory=dict)

    def var(self, name, shape=(), **flags):
        self.vars[name] = Var(name, tuple(shape), **flags)

    def op(self, type, inputs, outputs, forward_op=None, role=None, reads=None, **attrs):
        wrap = lambda slots: {k: [v] if isinstance(v, str) else list(v) for k, v in slots.items()}  # noqa: E731
        back = forward_op is not None or any(
            "@GRAD" in n for v in wrap(outputs).values() for n in v
        )
        made = Op(
            type,
            wrap(inputs),
            wrap(outputs),
            attrs,
            role or ("backward" if back else "forward"),
            forward_op,
        )
        if reads is not None:
            made.reads = reads
        self.ops.append(made)
        return made


@dataclass(eq=False)
class Program:
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    pruned: list[tuple] = field(default_factory=list)

    def block(self, parent=0):
        self.blocks.append(Block(len(self.blocks), parent))
        return self.blocks[-1]


@dataclass(eq=False)
class Net:
    """An operator that holds operators."""

    type: str
    ops: list
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


def shared_w() -> Program:
    """w is read by two matmuls: two renamed parts and one sum; then one step of SGD."""
    p = Program()
    b = p.blocks[0]
    b.var("w", (2, 2), persistable=True)
    b.var("x", (-1, 2), stop_gradient=True)
    b.var("label", (-1, 2), stop_gradient=True)
    for n in ("h", "h2", "p", "d", "sq"):
        b.var(n, (-1, 2))
        b.var(n + "@GRAD", (-1, 2))
    for n in ("loss", "loss@GRAD"):
        b.var(n, ())
    for n in ("w@GRAD", "w@GRAD@RENAME@0", "w@GRAD@RENAME@1"):
        b.var(n, (2, 2))
    f = [
        b.op("matmul", {"x": "x", "y": "w"}, {"out": "h"}),
        b.op("relu", {"x": "h"}, {"out": "h2"}),
        b.op("matmul", {"x": "h2", "y": "w"}, {"out": "p"}),
        b.op("subtract", {"x": "p", "y": "label"}, {"out": "d"}),
        b.op("square", {"x": "d"}, {"out": "sq"}),
        b.op("mean", {"x": "sq"}, {"out": "loss"}, role="loss"),
    ]
    b.op("fill_constant", {}, {"out": "loss@GRAD"}, value=1.0)
    b.op("mean_grad", {"x": "sq", "out_grad": "loss@GRAD"}, {"x_grad": "sq@GRAD"}, f[5], reads=[])
    b.op("square_grad", {"x": "d", "out_grad": "sq@GRAD"}, {"x_grad": "d@GRAD"}, f[4])
    b.op("subtract_grad", {"out_grad": "d@GRAD"}, {"x_grad": "p@GRAD"}, f[3])
    b.op(
        "matmul_grad",
        {"x": "h2", "y": "w", "out_grad": "p@GRAD"},
        {"x_grad": "h2@GRAD", "y_grad": "w@GRAD@RENAME@0"},
        f[2],
    )
    b.op("relu_grad", {"out": "h2", "out_grad": "h2@GRAD"}, {"x_grad": "h@GRAD"}, f[1])
    b.op("matmul_grad", {"x": "x", "out_grad": "h@GRAD"}, {"y_grad": "w@GRAD@RENAME@1"}, f[0])
    b.op("sum", {"xs": ["w@GRAD@RENAME@0", "w@GRAD@RENAME@1"]}, {"out": "w@GRAD"})
    return p


def with_sgd() -> Program:
    p = shared_w()
    b = p.blocks[0]
    b.var("lr", (), stop_gradient=True, persistable=True)
    b.op("sgd", {"param": "w", "grad": "w@GRAD", "lr": "lr"}, {"out": "w"}, role="optimize")
    return p


def while_loop() -> Program:
    """s = x; while i < 3: t = s * w; i += 1; s = t;   loss = reduce_sum(s)."""
    p = Program()
    b, body = p.blocks[0], p.block(0)
    back = p.block(0)
    b.var("x", (2,))
    b.var("w", (2,), persistable=True)
    for n in ("s", "s@GRAD", "x@GRAD", "w@GRAD"):
        b.var(n, (2,))
    for n in ("i", "n"):
        b.var(n, (), dtype="int64", stop_gradient=True)
    b.var("cond", (), dtype="bool", stop_gradient=True)
    b.var("loss")
    b.var("loss@GRAD")
    b.var("step_scopes")
    body.var("t", (2,))
    for n in ("t@GRAD", "s@GRAD", "w@GRAD"):
        back.var(n, (2,))
    b.op("fill_constant", {}, {"out": "i"}, value=0)
    b.op("fill_constant", {}, {"out": "n"}, value=3)
    assign = b.op("assign", {"x": "x"}, {"out": "s"})
    b.op("less_than", {"x": "i", "y": "n"}, {"out": "cond"})
    loop = b.op(
        "while",
        {"x": ["s", "w", "i", "n"], "condition": "cond"},
        {"out": ["s", "i", "cond"], "step_scopes": "step_scopes"},
        sub_block=1,
    )
    total = b.op("reduce_sum", {"x": "s"}, {"out": "loss"}, role="loss")
    mul = body.op("mul", {"x": "s", "y": "w"}, {"out": "t"})
    body.op("increment", {"x": "i"}, {"out": "i"})
    move = body.op("assign", {"x": "t"}, {"out": "s"})
    body.op("less_than", {"x": "i", "y": "n"}, {"out": "cond"})
    b.op("fill_constant", {}, {"out": "loss@GRAD"}, value=1.0)
    b.op(
        "reduce_sum_grad",
        {"x": "s", "out_grad": "loss@GRAD"},
        {"x_grad": "s@GRAD"},
        total,
        reads=[],
    )
    b.op(
        "while_grad",
        {"step_scopes": "step_scopes", "out_grad": "s@GRAD"},
        {"x_grad": ["s@GRAD", "w@GRAD", "@EMPTY@", "@EMPTY@"]},
        loop,
        sub_block=2,
    )
    b.op("assign", {"x": "s@GRAD"}, {"out": "x@GRAD"}, assign)
    back.op("assign", {"x": "s@GRAD"}, {"out": "t@GRAD"}, move)
    back.op(
        "mul_grad",
        {"x": "s", "y": "w", "out_grad": "t@GRAD"},
        {"x_grad": "s@GRAD", "y_grad": "w@GRAD"},
        mul,
    )
    return p


def zeros_and_pruned() -> Program:
    """A split of which one half is unused, times a value that wants no gradient."""
    p = Program()
    b = p.blocks[0]
    b.var("x", (4,))
    b.var("z", (2,), stop_gradient=True)
    b.var("c", (2,), stop_gradient=True)
    for n in ("a", "b", "m"):
        b.var(n, (2,))
        b.var(n + "@GRAD", (2,))
    b.var("loss")
    b.var("x@GRAD", (4,))
    split = b.op("split", {"x": "x"}, {"out": ["a", "b"]}, axis=0)
    mul = b.op("mul", {"x": "a", "y": "c"}, {"out": "m"})
    b.ops.insert(1, relu := b.op("relu", {"x": "z"}, {"out": "c"}))
    b.ops.pop()
    total = b.op("reduce_sum", {"x": "m"}, {"out": "loss"}, role="loss")
    b.op("fill_constant", {}, {"out": "loss@GRAD"}, value=1.0)
    b.op(
        "reduce_sum_grad",
        {"x": "m", "out_grad": "loss@GRAD"},
        {"x_grad": "m@GRAD"},
        total,
        reads=[],
    )
    b.op("mul_grad", {"y": "c", "out_grad": "m@GRAD"}, {"x_grad": "a@GRAD"}, mul)
    b.op("fill_zeros_like", {"x": "b"}, {"out": "b@GRAD"})
    b.op("concat", {"xs": ["a@GRAD", "b@GRAD"]}, {"out": "x@GRAD"}, split, axis=0)
    p.pruned.append(("relu_grad", "z and c are in no_grad_set", relu))
    return p


def nested_net() -> tuple[Net, Net]:
    """Two fully connected layers that share W, and the net that Backward makes of them."""
    op = lambda t, i, o: Op(
        t,
        {k: [v] if isinstance(v, str) else v for k, v in i.items()},
        {k: [v] if isinstance(v, str) else v for k, v in o.items()},
    )
    m1, s1 = (
        op("mul", {"X": "X", "Y": "W"}, {"Out": "h1"}),
        op("sigmoid", {"X": "h1"}, {"Out": "y1"}),
    )
    m2, s2 = (
        op("mul", {"X": "y1", "Y": "W"}, {"Out": "h2"}),
        op("sigmoid", {"X": "h2"}, {"Out": "Out"}),
    )
    forward = Net("mlp", [Net("fc1", [m1, s1]), Net("fc2", [m2, s2])])
    b2 = Net(
        "fc2_grad",
        [
            op("sigmoid_grad", {"Out": "Out", "Out@GRAD": "Out@GRAD"}, {"X@GRAD": "h2@GRAD"}),
            op(
                "mul_grad",
                {"X": "y1", "Y": "W", "Out@GRAD": "h2@GRAD"},
                {"X@GRAD": "y1@GRAD", "Y@GRAD": "W@GRAD@RENAME@0"},
            ),
        ],
    )
    b1 = Net(
        "fc1_grad",
        [
            op("sigmoid_grad", {"Out": "y1", "Out@GRAD": "y1@GRAD"}, {"X@GRAD": "h1@GRAD"}),
            op("mul_grad", {"X": "X", "Out@GRAD": "h1@GRAD"}, {"Y@GRAD": "W@GRAD@RENAME@1"}),
        ],
    )
    add = op("add", {"X": ["W@GRAD@RENAME@0", "W@GRAD@RENAME@1"]}, {"Out": "W@GRAD"})
    return forward, Net("mlp_grad", [b2, b1, add])
