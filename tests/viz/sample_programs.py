"""Tiny duck-typed programs and nets for the picture tests: what an adapter may rely on."""

from __future__ import annotations

import random
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


def _listed(slots):
    """``{"x": "a"}`` as ``{"x": ["a"]}``."""
    return {k: [v] if isinstance(v, str) else list(v) for k, v in slots.items()}


@dataclass(eq=False)
class Block:
    idx: int = 0
    parent: int = -1
    ops: list[Op] = field(default_factory=list)
    vars: dict[str, Var] = field(default_factory=dict)

    def var(self, name, shape=(), **flags):
        self.vars[name] = Var(name, tuple(shape), **flags)

    def op(self, type, inputs, outputs, forward_op=None, role=None, reads=None, **attrs):
        back = forward_op is not None or any(
            "@GRAD" in n for v in _listed(outputs).values() for n in v
        )
        made = Op(
            type,
            _listed(inputs),
            _listed(outputs),
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

    def op(type, inputs, outputs):
        return Op(type, _listed(inputs), _listed(outputs))

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


# ---- random programs ---------------------------------------------------------------------------


def random_program(seed: int) -> Program:
    """A program with fan-out, renames, sums, zeros, blocked values and, sometimes, a loop.

    The backward part is written by the plainest builder one can think of: gradient parts are
    collected per name, added up before their reader; what nobody made is zero.
    """
    rng = random.Random(seed)
    p = Program()
    block = p.blocks[0]
    names = _leaves(rng, block)
    forward = [_step(rng, block, names, i) for i in range(rng.randint(2, 12))]
    if rng.random() < 0.3:
        forward.append(_loop(p, block, names))
    ends = forward[-1].outputs["out"][:1]
    block.var("loss")
    forward.append(block.op("reduce_sum", {"x": ends}, {"out": "loss"}, role="loss"))
    if rng.random() < 0.85:
        _backward(rng, p, block, forward)
    return p


def _leaves(rng, block):
    block.var("w", (2, 2), persistable=True)
    block.var("x", (2, 2), stop_gradient=True)
    if rng.random() < 0.5:
        block.var("v", (2, 2))
        return ["w", "x", "v"]
    return ["w", "x"]


def _step(rng, block, names, i):
    kind = rng.choice(["relu", "mul", "add", "split", "square", "assign"])
    count = 2 if kind in ("mul", "add") else 1
    ins = [rng.choice(names) for _ in range(count)]
    again = kind == "assign" and i > 2 and rng.random() < 0.4  # a name written once more
    outs = (
        [f"t{i}a", f"t{i}b"] if kind == "split" else [rng.choice(names[-2:]) if again else f"t{i}"]
    )
    if outs[0] in ("w", "x", "v"):
        outs = [f"t{i}"]
    for name in outs:
        block.var(name, (2, 2), stop_gradient=all(block.vars[n].stop_gradient for n in ins))
    names += [n for n in outs if n not in names]
    return block.op(kind, dict(zip("xy", ins, strict=False)), {"out": outs})


def _loop(p, block, names):
    body = p.block(0)
    last = names[-1]
    body.var("inner", (2, 2))
    body.op("mul", {"x": last, "y": "w"}, {"out": "inner"})
    body.op("assign", {"x": "inner"}, {"out": last})
    block.var("scopes_step_scopes")
    return block.op(
        "while",
        {"x": [last, "w"]},
        {"out": [last], "step_scopes": "scopes_step_scopes"},
        sub_block=body.idx,
    )


def _backward(rng, p, block, forward):
    """One grad op per op that the loss depends on, in reverse."""
    parts: dict[str, list[str]] = {}
    block.op("fill_constant", {}, {"out": "loss@GRAD"}, value=1.0)
    parts["loss"] = ["loss@GRAD"]
    for op in reversed(forward):
        outs = [n for n in op.outputs["out"]]
        if not any(parts.get(n) for n in outs):
            wanted = [n for n in op.inputs.get("x", []) if not block.vars[n].stop_gradient]
            if wanted:
                p.pruned.append((f"{op.type}_grad", "the loss does not depend on it", op))
            continue
        gradients = [_gradient(block, n, parts) for n in outs]
        _grad_op(rng, p, block, op, gradients, parts)
    for name in ("w", "v"):
        if len(parts.get(name, ())) > 1:
            _gradient(block, name, parts)


def _gradient(block, name, parts):
    """The name of one whole gradient: made, added up, or zero."""
    mine = parts.pop(name, [])
    whole = f"{name}@GRAD"
    block.var(whole, block.vars[name].shape)
    if not mine:
        block.op("fill_zeros_like", {"x": name}, {"out": whole})
    elif len(mine) > 1:
        block.op("sum", {"xs": mine}, {"out": whole})
    return whole


def _grad_op(rng, p, block, op, gradients, parts):
    outs = {}
    for slot, names in op.inputs.items():
        made = []
        for name in names:
            if block.vars[name].stop_gradient:
                made.append("@EMPTY@")
                continue
            mine = parts.setdefault(name, [])
            if mine and mine[0] == f"{name}@GRAD":
                _rename(block, name, mine, [*outs.values(), made])
            part = f"{name}@GRAD" if not mine else f"{name}@GRAD@RENAME@{len(mine)}"
            mine.append(part)
            block.var(part, (2, 2))
            made.append(part)
        outs[f"{slot}_grad"] = made
    if all(n == "@EMPTY@" for names in outs.values() for n in names):
        p.pruned.append((f"{op.type}_grad", "everything it writes is blocked", op))
        return
    saved = dict(op.inputs) if op.type in ("mul", "square") else {}
    extra = {"sub_block": _grad_block(p, op)} if op.type == "while" else {}
    made = block.op(f"{op.type}_grad", saved | {"out_grad": gradients}, outs, op, role="backward")
    made.attrs.update(extra)


def _rename(block, name, mine, current):
    """The first part had the whole name until a second one came, perhaps from the same op."""
    mine[0] = f"{name}@GRAD@RENAME@0"
    block.var(mine[0], (2, 2))
    earlier = [names for op in reversed(block.ops) for names in op.outputs.values()]
    for names in [*current, *earlier]:
        if f"{name}@GRAD" in names:
            names[names.index(f"{name}@GRAD")] = mine[0]
            return


def _grad_block(p, op):
    back = p.block(0)
    mul, move = p.blocks[op.attrs["sub_block"]].ops
    last = move.outputs["out"][0]
    for name in ("inner@GRAD", f"{last}@GRAD", "w@GRAD"):
        back.var(name, (2, 2))
    back.op("assign", {"x": f"{last}@GRAD"}, {"out": "inner@GRAD"}, move)
    back.op(
        "mul_grad",
        {"x": last, "y": "w", "out_grad": "inner@GRAD"},
        {"x_grad": f"{last}@GRAD", "y_grad": "w@GRAD"},
        mul,
    )
    return back.idx


def deep_net(depth: int) -> Net:
    """Nets in nets in nets."""
    net = Op("relu", {"x": ["a"]}, {"out": ["b"]})
    for i in range(depth):
        net = Net(f"level{i}", [net])
    return net


def big_program(count: int) -> Program:
    """A straight line of matmul, add, relu, and its backward part."""
    program = Program()
    block = program.blocks[0]
    forward = []
    for i in range(count // 2):
        kind = ("matmul", "add", "relu")[i % 3]
        block.var(f"w{i}", (2, 2), persistable=True)
        ins = {"x": f"h{i}"} if kind == "relu" else {"x": f"h{i}", "y": f"w{i}"}
        forward.append(block.op(kind, ins, {"out": f"h{i + 1}"}))
    block.op("fill_constant", {}, {"out": f"h{count // 2}@GRAD"}, value=1.0)
    for i, op in reversed(list(enumerate(forward))):
        outs = {"x_grad": f"h{i}@GRAD"}
        if "y" in op.inputs:
            outs["y_grad"] = f"w{i}@GRAD"
        block.op(f"{op.type}_grad", {"out_grad": f"h{i + 1}@GRAD", **op.inputs}, outs, op)
    return program
