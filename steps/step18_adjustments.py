# %% [markdown]
# # Step 18. The adjustments
#
# **Goal.** Make the list of grad ops right, pass by pass: add up, prune, fill zeros, create.
#
# **Time.** 25 minutes
#
# **Needs.** step 17

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# Step 17 is right on a straight line: every variable is read once, every gradient is wanted, every
# output is used. Real networks are not like that. Three things go wrong, and one is forgotten:
#
# 1. a variable is read **twice**: its gradient is written twice;
# 2. a gradient is **not wanted**: work is done for nothing;
# 3. an output is **not used**: its gradient is read and never written;
# 4. the gradients are **names without variables**.
#
# You repaired the first three in steps 14 and 15, for networks in networks. A block is a flat list.
# There each repair is a **pass**: it goes over the grad ops and leaves better ones. The traversal of
# step 17 stays as it is; the passes come behind it.

# %%
import inspect
from collections import namedtuple
from copy import copy

import numpy as np

# %% tags=["active-ipynb"]
# import difflib
#
# import minigrad as mg
# from minigrad.course import check, why
# from minigrad.course.explore import explore

# %% [markdown]
# First what we bring along, folded: all of step 17, and `add_up` of step 15.

# %% tags=["carried"]
class Scope(dict):
    """Names and their values: the only place where numbers live."""

    def __missing__(self, name):
        raise NameError(f"{name!r} has no value in this scope; it holds: {', '.join(self)}")

# %% tags=["carried"]
GRAD = "@GRAD"              # w@GRAD is the name of the gradient of w
EMPTY = "@EMPTY@"           # the name that stands for "nothing here"

OpInfo = namedtuple("OpInfo", "kernel inputs outputs grad")
OPS = {}                    # the OpInfoMap of the documents: type -> OpInfo


def register(type, kernel, grad_type=None, grad_kernel=None, outputs=("out",)):
    """Write one op into the registry, and its grad op with it."""
    if type in OPS:
        raise ValueError(f"the op type {type!r} is registered already; choose another name")
    parameters = inspect.signature(kernel).parameters.values()
    slots = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    OPS[type] = OpInfo(kernel, slots, list(outputs), grad_type)
    if grad_type:
        register(grad_type, grad_kernel, outputs=[slot + "_grad" for slot in slots])


def find(type):
    """The record of an op type."""
    if type not in OPS:
        raise LookupError(f"unknown op type {type!r}; known: {', '.join(OPS)}")
    return OPS[type]

# %% tags=["carried"]
OPS.clear()                 # so that this cell can be run again

register("add", lambda x, y: x + y,
         "add_grad", lambda out_grad: (out_grad, out_grad))
register("mul", lambda x, y: x * y,
         "mul_grad", lambda x, y, out_grad: (out_grad * y, out_grad * x))
register("square", lambda x: x ** 2,
         "square_grad", lambda x, out_grad: 2 * x * out_grad)
register("exp", lambda x: np.exp(x),
         "exp_grad", lambda out, out_grad: out * out_grad)
register("power", lambda x, *, n: x ** n,
         "power_grad", lambda x, out_grad, *, n: n * x ** (n - 1) * out_grad)
register("matmul", lambda x, y: x @ y,
         "matmul_grad", lambda x, y, out_grad: (out_grad @ y.T, x.T @ out_grad))
register("rowwise_add", lambda x, b: x + b,
         "rowwise_add_grad", lambda out_grad: (out_grad, out_grad.sum(axis=0)))
register("sigmoid", lambda x: 1 / (1 + np.exp(-x)),
         "sigmoid_grad", lambda out, out_grad: out_grad * out * (1 - out))
register("split", lambda x: np.split(x, 2),
         "split_grad", lambda *out_grad: np.concatenate(out_grad))
register("sum", lambda *x: sum(x))
register("fill_zeros_like", lambda x: np.zeros_like(x))
register("sub", lambda x, y: x - y,
         "sub_grad", lambda out_grad: (out_grad, -out_grad))
register("reduce_sum", lambda x: np.sum(x),
         "reduce_sum_grad", lambda x, out_grad: np.full(np.shape(x), out_grad))
register("mean", lambda x: np.mean(x),
         "mean_grad", lambda x, out_grad: np.full(np.shape(x), out_grad / np.size(x)))
register("fill_constant", lambda *, shape, value: np.full(shape, value))

# %% tags=["carried"]
def names(slots):
    """All names in a map of slots, in order."""
    return [name for listed in slots.values() for name in listed]


def fill_slots(type, slots, given):
    """The given names as lists, in the order of the registry."""
    if set(given) != set(slots):
        raise ValueError(f"{type!r} has the slots {', '.join(slots)}, not {', '.join(given)}")
    return {slot: given[slot].split() if isinstance(given[slot], str) else list(given[slot])
            for slot in slots}


class Operator:
    """One operation, written down: a type, names by slot, attributes."""

    def __init__(self, type, inputs, outputs, attrs=None):
        info = find(type)
        self.type = type
        self.inputs = fill_slots(type, info.inputs, inputs)
        self.outputs = fill_slots(type, info.outputs, outputs)
        self.attrs = dict(attrs or {})

    def run(self, scope):
        """Read the inputs by name, compute, write the outputs by name."""
        values = [scope[name] for name in names(self.inputs)]
        results = find(self.type).kernel(*values, **self.attrs)
        if not isinstance(results, (tuple, list)):
            results = [results]
        for name, value in zip(names(self.outputs), results, strict=True):
            if name != EMPTY:
                scope[name] = value

    def __repr__(self):
        def text(listed):
            return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
        made = [text(listed) for listed in self.outputs.values()]
        given = [f"{slot}={text(listed)}" for slot, listed in self.inputs.items()]
        given += [f"{key}={value!r}" for key, value in self.attrs.items()]
        return f"{', '.join(made)} = {self.type}({', '.join(given)})"

# %% tags=["carried"]
def build_grad_op(op):
    """The operator that takes the gradients of op's outputs to the gradients of its inputs."""
    grad_type = find(op.type).grad                              # 1. the type
    if grad_type is None:
        raise LookupError(f"{op.type!r} has no gradient operator: {op}")
    forward = {**op.inputs, **op.outputs}
    reads = find(grad_type).inputs                              # 2. copy what the rule reads
    inputs = {slot: forward[slot] for slot in reads if slot in forward}
    for slot, listed in op.outputs.items():                     # 3. add the gradients
        inputs[slot + "_grad"] = [name + GRAD for name in listed]
    outputs = {}
    for slot, listed in op.inputs.items():
        outputs[slot + "_grad"] = [name + GRAD for name in listed]
    return Operator(grad_type, inputs, outputs, op.attrs)       # 4. build

# %% tags=["carried"]
class NetOp(Operator):
    """A network: an operator that holds operators, in the order in which they run."""

    def __init__(self, ops, type="net"):
        self.type, self.ops, self.attrs = type, list(ops), {}

    @property
    def inputs(self):
        """What the net reads and nobody in it has written before."""
        written, needed = set(), {}
        for op in self.ops:
            needed |= {name: None for name in names(op.inputs) if name not in written}
            written |= set(names(op.outputs))
        return {"x": list(needed)}

    @property
    def outputs(self):
        """What the net writes: names that leave it, and names that are read in it again."""
        written, read = {}, set()
        for op in self.ops:
            written |= dict.fromkeys(names(op.outputs))
            read |= {*names(op.inputs), *op.outputs.get("inner", [])}
        written.pop(EMPTY, None)
        return {"out": [name for name in written if name not in read],
                "inner": [name for name in written if name in read]}

    def run(self, scope):
        for op in self.ops:
            op.run(scope)

    def __repr__(self):
        lines = [str(op).replace("\n", "\n    ") for op in self.ops]
        return "\n    ".join([f"{self.type}:", *lines])

# %% tags=["carried"]
def places(net):
    """(home, op) for every operator that computes, in order; home is the net it stands in."""
    waiting = [(net, op) for op in reversed(net.ops)]
    while waiting:
        home, op = waiting.pop()
        if isinstance(op, NetOp):
            waiting += [(op, inner) for inner in reversed(op.ops)]
        else:
            yield home, op


def add_up(net):
    """Give every writer of a shared name a name of its own; add the parts behind the last one."""
    writers = {}
    for home, op in places(net):
        for listed in op.outputs.values():
            for position, name in enumerate(listed):
                writers.setdefault(name, []).append((home, op, listed, position))
    for name, found in writers.items():
        if name == EMPTY or len(found) == 1:
            continue
        parts = [f"{name}@RENAME@{k}" for k in range(len(found))]
        for part, (_, _, listed, position) in zip(parts, found, strict=True):
            listed[position] = part
        home, last, _, _ = found[-1]
        home.ops.insert(home.ops.index(last) + 1, Operator("sum", {"x": parts}, {"out": name}))

# %% tags=["carried"]
class Variable:
    """What a block knows about a name before anything runs."""

    def __init__(self, block, name, shape=(), persistable=False, stop_gradient=False):
        self.block, self.name, self.shape, self.dtype = block, name, tuple(shape), "float64"
        self.persistable, self.stop_gradient = persistable, stop_gradient

    def __repr__(self):
        flags = [flag for flag in ("persistable", "stop_gradient") if getattr(self, flag)]
        return f"{self.name}{list(self.shape)}" + "".join(f" {flag}" for flag in flags)


class Block(NetOp):
    """A network that knows its variables, and the index of the block around it."""

    def __init__(self, program, idx, parent=-1, forward_block=-1):
        super().__init__([], "block")
        self.program, self.idx = program, idx
        self.parent, self.forward_block = parent, forward_block
        self.vars = {}

    def create_var(self, name, shape=(), **flags):
        if name in self.vars:
            raise ValueError(f"block {self.idx} already has a variable {name!r}: choose another")
        self.vars[name] = Variable(self, name, shape, **flags)
        return self.vars[name]

    def var(self, name):
        block = self
        while name not in block.vars:
            if block.parent == -1:
                raise KeyError(f"no variable {name!r} in block {self.idx} or above: create it")
            block = self.program.blocks[block.parent]
        return block.vars[name]

    def append_op(self, type, *inputs, out, **attrs):
        """Append ``out = type(*inputs)``; return the output variable, or a list of several."""
        info = find(type)
        op = Operator(type, dict(zip(info.inputs, inputs, strict=True)), {"out": out}, attrs)
        ones = Scope({name: np.ones(self.var(name).shape) for name in inputs})
        op.run(ones)                        # only to see the shapes
        self.ops.append(op)
        created = [self.create_var(name, np.shape(ones[name]), stop_gradient=info.grad is None)
                   for name in names(op.outputs)]
        return created[0] if len(created) == 1 else created


class Program:
    """A list of blocks; block 0 is the root."""

    def __init__(self):
        self.blocks = []
        self.create_block()

    def create_block(self, parent=-1, forward_block=-1):
        self.blocks.append(Block(self, len(self.blocks), parent, forward_block))
        return self.blocks[-1]

    def __repr__(self):
        lines = []
        for block in self.blocks:
            lines.append(f"block {block.idx} (parent {block.parent})")
            lines += [f"  #{number} {op}" for number, op in enumerate(block.ops)]
        return "\n".join(lines)


def run(program, values):
    """Execute block 0 on the given values; return the scope with all that was made."""
    scope = Scope(values)
    program.blocks[0].run(scope)
    return scope

# %% tags=["carried"]
def make_grad_op(op):
    """The grad op of an op, with a note which op it belongs to."""
    grad_op = build_grad_op(op)
    grad_op.forward_op = op
    return grad_op


def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    needed = {name.removesuffix(GRAD) for seed in seeds for name in names(seed.outputs)}
    ops = list(seeds)
    for op in reversed(block.ops):
        if needed & set(names(op.outputs)) and find(op.type).grad:
            needed |= set(names(op.inputs))
            ops.append(make_grad_op(op))
    target_block.ops += ops

# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# Four helpers for looking, folded. `raw` is the list of step 17, seed first. `summed` is the same list
# after `add_up`. `with_grads` puts a list behind the forward ops, so that we can run and draw it.
# `diff` shows what a pass did: `-` gone, `+` new.

# %% tags=["active-ipynb", "folded"]
# def raw(loss):
#     one = {"shape": (), "value": 1.0}
#     seed = Operator("fill_constant", {}, {"out": loss.name + GRAD}, one)
#     target = Program().blocks[0]
#     append_backward_ops(loss.block, target, [seed])
#     return target.ops
#
#
# def summed(loss):
#     net = NetOp(raw(loss))
#     add_up(net)
#     return net.ops
#
#
# def with_grads(loss, ops):
#     shown = Program()
#     shown.blocks[0].vars = loss.block.vars
#     shown.blocks[0].ops = [*loss.block.ops, *ops]
#     return shown
#
#
# def diff(before, after):
#     lines = difflib.ndiff([str(op) for op in before], [str(op) for op in after])
#     return "\n".join(line for line in lines if not line.startswith("?"))

# %% [markdown]
# ## 1. A variable is read twice
#
# Two ops share the weight: $h = x\,w$, $y = h\,w$. So $y = x\,w^2$, and $\mathrm{d}y/\mathrm{d}w =
# 2\,x\,w$.
#
# **Predict, then run.** At $x = 3$, $w = 5$ the gradient is 30. What will `w@GRAD` be after the
# program has run?

# %% tags=["active-ipynb", "mistake"]
# def shared():
#     block = Program().blocks[0]
#     block.create_var("x", stop_gradient=True)
#     block.create_var("w", persistable=True)
#     block.append_op("mul", "x", "w", out="h")
#     return block.append_op("mul", "h", "w", out="y")
#
#
# y = shared()
# values = {"x": 3.0, "w": 5.0}
# program = with_grads(y, raw(y))
# print(program)
# scope = run(program, values)
# print("w@GRAD =", scope["w@GRAD"])
# mg.draw(program)

# %% [markdown]
# Half of it: the damage of step 15. The repair is that of step 15, too: `add_up`. It takes a network, and a
# list of grad ops makes one. Every writer gets a name of its own, `w@GRAD@RENAME@0`, `@1`, and behind the
# last of them a `sum` adds the parts up.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# added = summed(y)
# print(diff(raw(y), added))
# program = with_grads(y, added)
# scope = run(program, values)
# print("w@GRAD =", scope["w@GRAD"])
# assert scope["w@GRAD"] == 30
# mg.draw((program, scope))

# %% [markdown]
# ## 2. A gradient is not wanted
#
# Data needs no gradient: it is marked `stop_gradient=True`.
#
# **Predict, then run.** Which of these grad ops do work that nobody will ever look at?

# %% tags=["active-ipynb", "mistake"]
# def towers():
#     block = Program().blocks[0]
#     block.create_var("x", (3,), stop_gradient=True)
#     block.create_var("z", (3,), stop_gradient=True)
#     block.create_var("w", (3,), persistable=True)
#     block.append_op("mul", "x", "w", out="h")
#     block.append_op("square", "h", out="s")
#     block.append_op("exp", "z", out="c")
#     block.append_op("mul", "s", "c", out="m")
#     return block.append_op("reduce_sum", "m", out="loss")
#
#
# loss = towers()
# for op in raw(loss):
#     print(op)

# %% [markdown]
# `exp_grad` does: it makes nothing but `z@GRAD`. So does half of the last op, which makes `x@GRAD`. Both
# `x` and `z` are data.
#
# Two rules say which grad ops can go, the two of `mirror` in step 14:
#
# 1. **nobody wants what it writes**: all its outputs are in the no-gradient set, the
#    names whose gradient is not wanted;
# 2. **only zeros come in**: none of the gradients it reads is made by anyone. A grad op passes
#    gradients on. Zeros in, zeros out. (The seed, `fill_constant`, reads no gradient: it stays.)
#
# The second rule cascades: what a dropped op would have written counts as zero for the next one.
# An op that stays may still write a gradient that nobody wants. That one goes to `@EMPTY@`.
#
# ## 3. An output is not used
#
# What if *some* of the gradients an op reads are missing, and others are there? `split` cuts an
# array into two halves. This program uses the first one only.
#
# **Predict, then run.** Which name will be missing?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# def half():
#     block = Program().blocks[0]
#     block.create_var("w", (4,), persistable=True)
#     block.append_op("split", "w", out="a b")
#     block.append_op("square", "a", out="s")
#     return block.append_op("reduce_sum", "s", out="loss")
#
#
# loss = half()
# run(with_grads(loss, raw(loss)), {"w": np.array([1.0, 2.0, 3.0, 4.0])})

# %% [markdown]
# `b` leads nowhere, so the loss does not change with it: its gradient is zero. But *zero* is a
# value, and somebody has to make it. A system that hands out uninitialised memory would compute
# with whatever lies there.
#
# So an op that stays gets its missing gradients from `fill_zeros_like`, right before it. (In step
# 15 the zeros were called `b@ZERO`. Here they get the name of the gradient itself, `b@GRAD`, so that
# whoever reads it later finds it, too.) Rules 1 and 2 and the zeros are one pass.

# %% [markdown]
# **18e. The engine: remove_no_grad_branch.** The first half is here. For each op it finds
#
# * `outputs`: what the op writes, with `EMPTY` for every name that is not wanted, and the names that
#   are `wanted`;
# * `gradients`: the gradients it reads, and which of them are `missing`, since nobody made them.
#
# Write the second half:
#
# 1. By rule 1 or rule 2 the op goes. Note why, with `dropped.append((op, reason))`. The reason is
#    `"nobody wants what it writes"` or `"only zeros come in"`.
# 2. Any other op stays. For each of its missing gradients append to `result` an
#    `Operator("fill_zeros_like", {"x": the forward name}, {"out": the gradient})`.
#    (`w@GRAD@RENAME@1` is a part of the gradient of `w`: its forward name is `w`.)
# 3. Then append the op itself: a `copy(op)` with the `outputs` found above.
# 4. What these ops write is `made` from now on.

# %% tags=["exercise", "ex-18e", "engine"]
def remove_no_grad_branch(ops, no_grad, given=()):
    """Drop grad ops by two rules and fill missing gradients with zeros; return (ops, dropped).

    ``no_grad`` holds forward names, ``given`` gradients that are there before the first op.
    """
    unwanted = {name + GRAD for name in no_grad}
    made, result, dropped = set(given), [], []
    for op in ops:
        outputs = {slot: [EMPTY if name.split("@RENAME")[0] in unwanted else name
                          for name in listed] for slot, listed in op.outputs.items()}
        wanted = [name for name in names(outputs) if name != EMPTY]
        gradients = [name for name in names(op.inputs) if GRAD in name]
        missing = [name for name in gradients if name not in made]
        ### BEGIN SOLUTION
        if not wanted:
            dropped.append((op, "nobody wants what it writes"))
            continue
        if gradients and len(missing) == len(gradients):
            dropped.append((op, "only zeros come in"))
            continue
        for name in missing:
            forward = name.split(GRAD)[0]
            result.append(Operator("fill_zeros_like", {"x": forward}, {"out": name}))
        result.append(copy(op))
        result[-1].outputs = outputs
        made |= {*missing, *wanted}
        ### END SOLUTION
    return result, dropped


# check("18e", remove_no_grad_branch, Operator)

# %% [markdown]
# <!-- solution 18e -->

# %% [markdown]
# First the towers:

# %% tags=["active-ipynb"]
# loss = towers()
# pruned, dropped = remove_no_grad_branch(raw(loss), no_grad={"x", "z"})
# print(diff(raw(loss), pruned))
# program = with_grads(loss, pruned)
# program.pruned = [(op.type, reason, op.forward_op) for op, reason in dropped]     # for the picture
# mg.draw(program, detail="pruned")

# %% [markdown]
# `exp_grad` went by rule 1. The last `mul_grad` throws one of its two gradients away. (It computes it
# all the same: a rule of step 13 returns the gradients of all its inputs at once. In the package there
# is one rule per input, so what nobody wants costs nothing.)
#
# Now block `s` as well: "no gradient through `s`".
#
# **Predict, then run.** How many of the five grad ops are left? Which rule drops which?

# %% tags=["active-ipynb"]
# pruned, dropped = remove_no_grad_branch(raw(loss), no_grad={"x", "z", "s"})
# for op, reason in dropped:
#     print(f"{op.type}: {reason}")
# print("left:", *pruned, sep="\n    ")

# %% [markdown]
# Two are left after the seed. Rule 1 took `exp_grad` again. Rule 2 took two: `square_grad`, which reads no
# gradient but `s@GRAD`, and the last `mul_grad`, which reads none but the one that `square_grad` would
# have written.
#
# The rules look at one op after the other, from the loss on. So `c@GRAD` is still made, though the
# op that would have read it is gone.

# %% [markdown]
# The half-used `split` gets its zeros:

# %% tags=["active-ipynb"]
# loss = half()
# pruned, _ = remove_no_grad_branch(raw(loss), no_grad=set())
# print(diff(raw(loss), pruned))
# program = with_grads(loss, pruned)
# scope = run(program, {"w": np.array([1.0, 2.0, 3.0, 4.0])})
# print("w@GRAD =", scope["w@GRAD"])
# assert scope["w@GRAD"].tolist() == [2, 4, 0, 0]
# mg.draw((program, scope))

# %% [markdown]
# **Half-way.** Rest here, if you like. Three adjustments change what is computed; the fourth only gives
# names a home.
#
# ## 4. Names without variables
#
# The new ops write `w@GRAD`. No block knows this name:

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# program.blocks[0].var("w@GRAD")

# %% [markdown]
# Our `run` is kind and asks for no variables. A real one allocates memory from them, and an
# optimizer wants to look up a shape. So the last pass goes over the block once more, from number
# `start` on, where the grad ops begin. (`home` is where the forward names are known. Until step 19
# that is the block itself.)

# %%
def append_backward_vars(block, start):
    """Create what the ops from number ``start`` on write; return {forward name: gradient name}."""
    gradients, blocks = {}, block.program.blocks
    home = block if block.forward_block == -1 else blocks[block.forward_block]
    for op in block.ops[start:]:
        for name in names(op.outputs):
            if name == EMPTY:
                continue
            forward = name.split(GRAD)[0]
            gradients[forward] = forward + GRAD
            if name not in block.vars:
                block.create_var(name, home.var(forward).shape)
    return gradients


# %% [markdown]
# ## All of it
#
# The traversal, then `adjust`: the passes, one after the other. (`add_up` may look at the whole block:
# each forward name is written only once.) `append_backward` collects the no-gradient set.

# %%
def adjust(block, start, no_grad, given=()):
    """Run the passes over the grad ops of block, from number start on; return their gradients."""
    add_up(block)
    block.ops[start:] = remove_no_grad_branch(block.ops[start:], no_grad, given)[0]
    return append_backward_vars(block, start)


def append_backward(loss, parameter_list=None, no_grad_set=()):
    """Append the backward part of a scalar loss to its block; return the pairs."""
    block, start = loss.block, len(loss.block.ops)
    if loss.shape != ():
        raise ValueError(f"the loss must be a scalar, and {loss.name!r} has shape {loss.shape}: "
                         "append a mean or a reduce_sum")
    if loss.name + GRAD in block.vars:
        raise ValueError(f"the backward part of {loss.name!r} is already there: build anew")
    no_grad = {block.var(name).name for name in no_grad_set}
    no_grad |= {v.name for v in block.vars.values() if v.stop_gradient}
    one = {"shape": (), "value": 1.0}
    seed = Operator("fill_constant", {}, {"out": loss.name + GRAD}, one)
    append_backward_ops(block, block, [seed])
    gradients = adjust(block, start, no_grad)
    for name in parameter_list or ():
        if name not in gradients:
            raise ValueError(f"{name!r} has no gradient: it does not lead to {loss.name!r}")
    wanted = parameter_list or [v.name for v in block.vars.values() if v.persistable]
    return [(block.var(name), block.var(gradients[name])) for name in wanted if name in gradients]


# %% tags=["active-ipynb"]
# y = shared()
# start = len(y.block.ops)
# pairs = append_backward(y)
# print(y.block.program)
# print(pairs)
# print([name for name in y.block.vars if "@" in name])
# assert run(y.block.program, {"x": 3.0, "w": 5.0})["w@GRAD"] == 30

# %% [markdown]
# The pass created five variables, and `x@GRAD` is not among them.

# %% [markdown]
# ## Pass by pass
#
# One program that needs everything. `w` is split, one half is used twice, the other not at all;
# and a branch comes from data.

# %% tags=["active-ipynb"]
# def everything():
#     block = Program().blocks[0]
#     block.create_var("w", (4,), persistable=True)
#     block.create_var("z", (2,), stop_gradient=True)
#     block.append_op("split", "w", out="a b")
#     block.append_op("mul", "a", "a", out="m")
#     block.append_op("exp", "z", out="c")
#     block.append_op("mul", "m", "c", out="n")
#     return block.append_op("reduce_sum", "n", out="loss")

# %% [markdown]
# **Move the slider** back to the raw list, and pass by pass forward again. Then block `m`. Which
# lines vanish?

# %% tags=["active-ipynb", "interactive"]
# def passes(number, blocked):
#     loss = everything()
#     no_grad = {"z"} | ({blocked} - {"nothing"})
#     lists = [[], raw(loss)]
#     lists.append(summed(loss))
#     pruned, dropped = remove_no_grad_branch(lists[2], no_grad)
#     lists.append(pruned)
#     title = ["raw", "added up", "pruned, zeros filled"][number - 1]
#     program = with_grads(loss, lists[number])
#     gone = dropped if number == 3 else []
#     program.pruned = [(op.type, reason, getattr(op, "forward_op", None)) for op, reason in gone]
#     words = title + "\n\n" + diff(lists[number - 1], lists[number])
#     return [words, mg.draw(program, detail="pruned")]
#
#
# explore(passes, number=(1, 3, 3), blocked=["nothing", "c", "m"])

# %% tags=["active-ipynb"]
# for number in (2, 3):
#     print(passes(number, "nothing")[0], end="\n\n")

# %% [markdown]
# With `m` blocked, everything behind it goes by rule 2: the second `mul_grad`, the `sum`,
# `split_grad`, and with it the zeros.

# %% tags=["active-ipynb", "folded"]
# kept, dropped = remove_no_grad_branch(summed(everything()), {"z", "m"})
# assert [op.type for op, reason in dropped if "zeros" in reason] == ["mul_grad", "sum", "split_grad"]
# assert "fill_zeros_like" not in [op.type for op in kept]

# %% [markdown]
# ## The same in `torch.compile`
#
# Before `torch.compile` optimises anything, its part *AOTAutograd* writes forward and backward into
# one program, the *joint graph*. It traces the function once with stand-ins for the numbers, and
# every gradient rule writes its lines behind those of the forward. (Folded: how its lines were
# recorded.)

# %% tags=["active-ipynb", "folded"]
# import importlib.util
#
#
# def joint_graph(f, *numbers):
#     """AOTAutograd's joint graph as lines; the last number wants a gradient."""
#     import torch
#     from functorch.compile import aot_function, default_partition
#
#     lines = []
#
#     def noted(graph, inputs, **options):
#         lines.extend(f"{node.name} = {node.target.__name__.split('.')[0]}"
#                      f"({', '.join(map(str, node.args))})"
#                      for node in graph.graph.nodes if node.op == "call_function")
#         return default_partition(graph, inputs, **options)
#
#     tensors = [torch.tensor(n, requires_grad=n is numbers[-1]) for n in numbers]
#     aot_function(f, lambda g, _: g, lambda g, _: g, partition_fn=noted)(*tensors).backward()
#     return lines
#
#
# theirs = ["mul = mul(primals_1, primals_2)",         # recorded with PyTorch 2.13.0
#           "mul_1 = mul(mul, primals_2)",
#           "mul_2 = mul(tangents_1, mul)",
#           "mul_3 = mul(tangents_1, primals_2)",
#           "mul_4 = mul(mul_3, primals_1)",
#           "add = add(mul_2, mul_4)"]
# if importlib.util.find_spec("torch"):
#     assert joint_graph(lambda x, w: x * w * w, 3.0, 5.0) == theirs

# %% [markdown]
# `primals` are the inputs, `tangents` the seeds.
#
# **Predict, then run.** For $y = x\,w^2$, where only $w$ wants a gradient: how many lines does PyTorch's
# backward have, and which of yours (under *All of it*) does each belong to?

# %% tags=["active-ipynb"]
# mine = {0: [0], 1: [1], 2: [], 3: [2, 3], 4: [4], 5: [5]}        # my op -> their lines
# for number, op in enumerate(y.block.ops):
#     there = " and ".join(theirs[line] for line in mine[number]) or "(tangents_1 is given)"
#     print(f"{op!s:72}{there}")

# %% [markdown]
# Four, and operator by operator it is your program. Where a `mul_grad` of ours writes two gradients, PyTorch
# writes two products. The one for $x$ goes to `@EMPTY@` here and is not written at all there. Its `add`
# is our `sum`. With both halves in view, `torch.compile` then decides which values are kept for the
# backward pass, and which are cheaper to compute again.

# %% [markdown]
# ## Exercises
#
# **18a.** Predict the op list. The weight is shared by two ops of different kinds. Write down the
# *types* of the ops that `append_backward` appends, in order, as a list of texts. Then check.

# %% tags=["active-ipynb"]
# def residual():
#     block = Program().blocks[0]
#     block.create_var("x", (3,), stop_gradient=True)
#     block.create_var("w", (3,), persistable=True)
#     block.append_op("mul", "x", "w", out="p")
#     block.append_op("square", "p", out="q")
#     block.append_op("add", "q", "w", out="r")
#     return block.append_op("reduce_sum", "r", out="loss")

# %% tags=["active-ipynb", "exercise", "ex-18a"]
# ### BEGIN SOLUTION
# predicted = ["fill_constant", "reduce_sum_grad", "add_grad", "square_grad", "mul_grad", "sum"]
# ### END SOLUTION
#
# check("18a", predicted, residual, append_backward)

# %% [markdown]
# **18b.** In the same network, find a `no_grad_set` that removes **exactly two** ops from that
# list and leaves `w` a gradient. Write a set of names. There is more than one answer. (Count only what
# goes. A `fill_zeros_like` may come in its place: the `sum` was written before ops were dropped, and still
# reads all its parts. It is wasted work, and Fluid does the same.)

# %% tags=["active-ipynb", "exercise", "ex-18b"]
# ### BEGIN SOLUTION
# blocked = {"q"}
# ### END SOLUTION
#
# check("18b", blocked, residual, append_backward)

# %% [markdown]
# **18c.** Take the zeros out and see what breaks. The function gets a program with its backward part.
# It removes every `fill_zeros_like`, runs the program, and returns the text of the error, or `None`
# when nothing breaks. (A scope raises a `NameError` for a name that it does not hold.)

# %% tags=["active-ipynb", "exercise", "ex-18c"]
# def without_zeros(program, values):
#     """What the scope complains about when the zeros are gone."""
#     ### BEGIN SOLUTION
#     block = program.blocks[0]
#     block.ops = [op for op in block.ops if op.type != "fill_zeros_like"]
#     try:
#         run(program, values)
#     except NameError as error:
#         return str(error)
#     return None
#     ### END SOLUTION
#
#
# check("18c", without_zeros, half, everything, shared, append_backward)

# %% [markdown]
# **In order.** Below lies the backward part of $y = e^{x \cdot w} \cdot w + w$, in a heap, and
# some lines do not belong. The lines are what `append_backward` of the package generates. Say the
# letters in the order in which they must run, such as `puzzle("cab")`. It is run, drawn, and
# judged.

# %% tags=["active-ipynb"]
# from minigrad.course.parsons import Parsons
#
# puzzle = Parsons(lambda x, w: mg.exp(x * w) * w + w)
# print(puzzle)

# %% tags=["active-ipynb"]
# puzzle("")

# %% [markdown]
# ## In PyTorch / in Paddle
#
# PyTorch meets the same three cases while it walks. Recorded with PyTorch 2.13.0:
#
# ```python
# >>> x, w = torch.tensor(3.), torch.tensor(5., requires_grad=True)
# >>> (x * w * w).backward()
# >>> w.grad, x.grad                    # added up; nobody wanted the second one
# (tensor(30.), None)
# >>> w = torch.tensor([1., 2., 3., 4.], requires_grad=True)
# >>> a, b = w.split(2)
# >>> (a ** 2).sum().backward()
# >>> w.grad                            # b was not used: zeros
# tensor([2., 4., 0., 0.])
# ```
#
# In Fluid the passes are called `_addup_repetitive_outputs_`, `_remove_no_grad_branch_` and
# `_append_backward_vars_`. The names of the parts are the ones you have seen. Later releases of
# Paddle add the block: `w@GRAD@RENAME@block0@0`.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | append_backward, with `no_grad_set` | `minigrad.static.backward.append_backward:append_backward` |
# | which ops count | `minigrad.static.backward.op_path:find_op_path` |
# | rename and add up | `minigrad.static.backward.passes:add_up_repeated_gradients` |
# | fill zeros | `minigrad.static.backward.passes:fill_missing_gradients` |
