# %% [markdown]
# # Step 19. Sub-blocks
#
# **Goal.** Differentiate loops and branches: ops that hold a block get grad ops that hold one.
#
# **Time.** 35 minutes
#
# **Needs.** step 18

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# A program so far is a straight line. But how often a loop goes round, and which branch is taken, is
# known only when numbers flow. The backward part is written *before* that.
#
# The way out: an op may hold a **block**. `while` runs its block again and again, `if_else` runs one
# of two. And the grad op of such an op holds a *grad block*: **one** `while` gets **one** `while_grad`,
# however often it goes round. Its work fits into two sentences. *Forward keeps the values of every round.
# Backward goes through the rounds in reverse: one gradient is handed from round to round, another one is
# added up.*
#
# First the loop, then the branch. One round of a loop is called a **step**, and its scope a **step scope**.

# %%
import inspect
from collections import namedtuple
from copy import copy

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why
# from minigrad.course.explore import explore

# %% [markdown]
# First what we bring along from step 18, folded. One definition has changed: as in step 16, **a scope
# may have a parent**. What it does not hold itself, it looks up there. It writes only into itself.

# %% tags=["folded"]
class Scope(dict):
    """Names and their values; what is not here is looked up in the parent."""

    parent = None

    def __missing__(self, name):
        if self.parent is not None:
            return self.parent[name]
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
def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    needed = {name.removesuffix(GRAD) for seed in seeds for name in names(seed.outputs)}
    ops = list(seeds)
    for op in reversed(block.ops):
        if needed & set(names(op.outputs)) and find(op.type).grad:
            needed |= set(names(op.inputs))
            ops.append(make_grad_op(op))
    target_block.ops += ops

# %% tags=["carried"]
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
    return result, dropped


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
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# The table gets three small rows. Counting and comparing have no gradient.

# %%
# to run this cell again, run the table above it first
register("assign", lambda x: x,
         "assign_grad", lambda out_grad: out_grad)
register("increment", lambda x: x + 1)
register("less_than", lambda x, y: x < y)

# %% [markdown]
# ## First half: the loop
#
# ### A loop, written down
#
# $y = x \cdot w \cdot w \cdots w$, with $n$ factors $w$. In Python:

# %% tags=["active-ipynb"]
# x, w, n = 2.0, 3.0, 3
# s, i, more = x, 0, 0 < n
# while more:
#     s, i, more = s * w, i + 1, i + 1 < n
# print(s)

# %% [markdown]
# Three values are **carried** from step to step: `s`, `i`, `more`. `w` and `n` come from outside and
# stay what they are: they are **shared** by all steps.
#
# The body is a block of its own, with block 0 as its parent. It never writes a name twice: it *reads*
# `s` and *writes* `s_next`. The `while` op says what becomes what: `carry = {"s": "s_next", …}`.
#
# Such an op cannot have a row in the table: a kernel makes arrays out of arrays, but a `while` must run a
# *block*. So it is an operator of its own kind, a `BlockOp`. The numbers of its blocks are its attributes.
# All that the table says of it is that it has a grad op. (`run_steps` and `run_steps_grad`, which do the
# work, come below.)

# %%
for kind in ("while", "if_else"):
    OPS[kind] = OpInfo(kernel=None, inputs=None, outputs=None, grad=f"{kind}_grad")


class BlockOp(Operator):
    """An operator that holds blocks: while, if_else, and their grad ops."""

    def __init__(self, type, inputs, outputs, attrs, program):
        self.type, self.inputs, self.outputs, self.attrs = type, inputs, outputs, attrs
        self.program = program

    def held_blocks(self):
        """Its blocks, by the attributes that hold their numbers."""
        return {key: self.program.blocks[self.attrs[key]]
                for key in ("sub_block", "else_block") if key in self.attrs}

    def run(self, scope):
        run_held = run_steps_grad if self.type.endswith("_grad") else run_steps
        results = run_held(self, scope, self.program.blocks)
        for name, value in zip(names(self.outputs), results, strict=True):
            if name != EMPTY:
                scope[name] = value


# %% [markdown]
# Two helpers, folded, which you can use without reading them: `declare` creates several variables at
# once, `hold` appends an op that holds blocks.

# %% tags=["active-ipynb", "folded"]
# def declare(block, names, **flags):
#     for name in names.split():
#         block.create_var(name, **flags)
#
#
# def hold(block, type, condition, state, **held):
#     """Append a while or an if_else. state: inner name -> (start, following, name afterwards)."""
#     reads = dict.fromkeys(name for inner in held.values() for name in inner.inputs["x"])
#     own = {name for inner in held.values() for name in inner.vars}
#     starts, following, ends = zip(*state.values())
#     scopes = block.create_var(f"step_scopes_{len(block.ops)}", stop_gradient=True)
#     attrs = {name: inner.idx for name, inner in held.items()}
#     attrs |= {"condition": condition, "carry": dict(zip(state, following))}
#     inputs = {"x": list(starts), "shared": [name for name in reads if name not in own]}
#     if condition not in state:
#         inputs["condition"] = [condition]
#     outputs = {"out": list(ends), "step_scopes": [scopes.name]}
#     block.ops.append(BlockOp(type, inputs, outputs, attrs, block.program))
#     for name, start, end in zip(state, starts, ends):
#         flag = held["sub_block"].var(name).stop_gradient
#         block.create_var(end, block.var(start).shape, stop_gradient=flag)
#     return block.var(ends[0])

# %% [markdown]
# Here is our loop. Its body has three ops. In the call of `hold`, `state` tells the story of each carried
# value in three names: `s` starts as `x`, a step makes `s_next` of it, and after the loop it is called `y`.

# %% tags=["active-ipynb", "picture-F"]
# def power():
#     main = Program().blocks[0]
#     declare(main, "x w", persistable=True)
#     declare(main, "n zero", stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = main.program.create_block(parent=0)
#     declare(body, "s")
#     declare(body, "i more", stop_gradient=True)
#     body.append_op("mul", "s", "w", out="s_next")
#     body.append_op("increment", "i", out="i_next")
#     body.append_op("less_than", "i_next", "n", out="more_next")
#     return hold(main, "while", "more", sub_block=body, state={
#         "s": ("x", "s_next", "y"), "i": ("zero", "i_next", "count"),
#         "more": ("any", "more_next", "rest")})
#
#
# y = power()
# print(y.block.program)
# mg.draw(y.block.program)

# %% [markdown]
# Line #1 is the loop. It reads the starts (`x`) and what is shared. It makes the values afterwards, and the
# list `step_scopes_1`.
#
# ### The loop, forward
#
# One step first, by hand. It gets a scope of its own, whose parent is the scope outside. The carried values
# are put in at its start.
#
# **Predict, then run.** With $x = 2$, $w = 3$, $n = 3$: what does the first step write, and where?

# %% tags=["active-ipynb"]
# values = {"x": 2.0, "w": 3.0, "n": 3, "zero": 0}
# step = Scope(s=2.0, i=0, more=True)
# step.parent = Scope(values)
# y.block.program.blocks[1].run(step)
# print(step)

# %% [markdown]
# `s_next`, `i_next` and `more_next`, all into its own scope. The shared values, `w` and `n`, it found
# outside. The next step begins with these three, under the names `s`, `i` and `more`, in a new scope.
#
# `run_steps` does that for as many steps as there are. It keeps the step scopes: they are an output of
# the op, like any other. (The branch of the second half uses the same function: an `if_else` makes one
# step, and may run its `else_block`.)

# %%
def run_steps(op, scope, blocks):
    """Run held blocks step by step: while the condition holds, or, for an if_else, one step."""
    carry, condition = op.attrs["carry"], op.attrs["condition"]
    now, steps = [scope[name] for name in op.inputs["x"]], []
    while op.type == "while" or not steps:      # an if_else: until there is one step
        step = Scope(zip(carry, now, strict=True))
        step.parent = scope
        held = "sub_block" if step[condition] else "else_block"
        if held not in op.attrs:            # a while has no else_block: the loop ends
            break
        if len(steps) == 10_000:
            raise RuntimeError(f"{op.type} made 10000 steps: does {condition!r} ever become false?")
        blocks[op.attrs[held]].run(step)
        steps.append(step)
        now = [step[name] for name in carry.values()]
    return [*now, steps]


# %% tags=["active-ipynb"]
# scope = run(y.block.program, values)
# for number, step in enumerate(scope["step_scopes_1"]):
#     print(f"step {number}:", dict(sorted(step.items())))
# print("y =", scope["y"])
# assert scope["y"] == 2 * 3 ** 3

# %% [markdown]
# ### One step backwards
#
# Backward, the last step comes first. By hand again. We know the gradient of what a step handed on,
# `s_next`, and its body is one `mul`. So two lines do it:
#
# * `s@GRAD = s_next@GRAD · w` is the gradient of what the step got. The step before goes on with it.
# * `w@GRAD = s_next@GRAD · s` is this step's part of the gradient of what is shared.
#
# **Predict, then run.** $y = x\,w^3$ at $x = 2, w = 3$. What are the three parts of `w@GRAD`? What
# is their sum?

# %% tags=["active-ipynb"]
# gradient, parts = 1.0, []
# for step in reversed(scope["step_scopes_1"]):
#     parts.append(gradient * step["s"])
#     gradient = gradient * step["w"]           # overwritten: handed to the step before
# print("parts of w@GRAD:", parts, "sum:", sum(parts))
# print("x@GRAD:", gradient)

# %% [markdown]
# Three equal parts: $3 \cdot x\,w^2$. This is where the $n$ of the power rule comes from.
#
# **Predict, then run.** Suppose we keep the last step scope only: is the sum too small or too large?

# %% tags=["active-ipynb", "mistake"]
# gradient, parts = 1.0, []
# for step in [scope["step_scopes_1"][-1]] * 3:
#     parts.append(gradient * step["s"])
#     gradient = gradient * step["w"]
# print("parts of w@GRAD:", parts, "sum:", sum(parts))
# assert sum(parts) == 234

# %% [markdown]
# 234 instead of 54: every step saw the last `s`. So a scope cannot be thrown away when its step is
# over: backward comes back and reads it.
#
# **Predict, then run.** The gradient of `s` is *overwritten*, the parts of `w@GRAD` are *added up*.
# Will the other way round give the same?

# %% tags=["active-ipynb", "mistake"]
# shared, carried = 0.0, 1.0
# for step in reversed(scope["step_scopes_1"]):
#     shared = carried * step["s"]                  # overwritten
#     carried = carried + carried * step["w"]       # added up
# print("w@GRAD:", shared, " x@GRAD:", carried)
# assert (shared, carried) == (32, 64)

# %% [markdown]
# No: 54 and 27 are right. `s` is another value in every step, so each gradient belongs to that value
# alone. `w` is one value for all steps, so all parts belong to it.
#
# **Rest here**, if you like: the idea is complete. What follows lets the program write it down.
#
# ### The grad block
#
# Our two lines are the same in every step. So they become a block that runs once per step: the **grad
# block**. `append_backward_ops` fills it as it filled block 0: first a seed, then
# the grad op of each op of the body, last one first.
#
# What is the seed? In block 0 it was the number 1. Here the gradient of `s_next` comes in from outside, in
# every step another number. Outside the loop its name is `y@GRAD`. So the seed is an `assign`, which copies
# from one name to the other: `s_next@GRAD = assign(x=y@GRAD)`.
#
# (`append_backward_ops` asks `make_grad_op`, folded, for the grad ops. For an op that holds blocks this now
# asks `make_steps_grad_op`, which comes below.)

# %% tags=["folded"]
def make_grad_op(op):
    """The grad op of an op, with a note which op it belongs to."""
    grad_op = make_steps_grad_op(op) if isinstance(op, BlockOp) else build_grad_op(op)
    grad_op.forward_op = op
    return grad_op


# %% [markdown]
# **Predict, then run.** One op of the body has a gradient, and one seed is needed. Which two lines
# stand in the grad block? And which two gradients does it find in the last step, for `y@GRAD` = 1?

# %% tags=["active-ipynb"]
# y = power()
# program = y.block.program
# grad_block = program.create_block(forward_block=1)
# seed = Operator("assign", {"x": "y@GRAD"}, {"out": "s_next@GRAD"})
# append_backward_ops(program.blocks[1], grad_block, [seed])
# print(*grad_block.ops, sep="\n")
#
# last = run(program, values)["step_scopes_1"][-1]
# last["y@GRAD"] = 1.0
# grad_block.run(last)
# print({name: float(last[name]) for name in ("s@GRAD", "w@GRAD")})
# assert (last["s@GRAD"], last["w@GRAD"]) == (3, 18)

# %% [markdown]
# The outputs of one `mul_grad` are the two lines that we computed by hand, and 18 is the first of the three
# parts.
#
# ### The grad op
#
# A grad op has to hold this block. `make_steps_grad_op` makes both: for each block that the op holds, a grad
# block as above, whose number becomes an attribute of the grad op. (A block may hold such an op itself:
# then `append_backward_ops` comes back to this function. It is a recursion.)
#
# `flows` lists the carried values that have a gradient: here `s`, not `i` and `more`. For each of them there
# is one seed. The slots of the grad op are
#
# | reads | | writes | |
# |---|---|---|---|
# | `out_grad` | gradients of what the loop made: `y@GRAD` | `x_grad` | gradients of where it started: `x@GRAD` |
# | `step_scopes`, `shared` | what forward kept | `shared_grad` | the sums: `w@GRAD` |

# %%
def make_steps_grad_op(op):
    """The grad op of an op that holds blocks; it holds one grad block for each of them."""
    body = op.held_blocks()["sub_block"]
    flows = [(name, start, end) for name, start, end in
             zip(op.attrs["carry"], op.inputs["x"], op.outputs["out"], strict=True)
             if not body.var(name).stop_gradient]
    attrs = op.attrs | {"carry": {name: op.attrs["carry"][name] for name, _, _ in flows}}
    for key, block in op.held_blocks().items():
        grad_block = op.program.create_block(forward_block=block.idx)
        attrs[key] = grad_block.idx
        seeds = [Operator("assign", {"x": end + GRAD}, {"out": attrs["carry"][name] + GRAD})
                 for name, _, end in flows]
        append_backward_ops(block, grad_block, seeds)
    inputs = {"shared": op.inputs["shared"], "step_scopes": op.outputs["step_scopes"],
              "out_grad": [end + GRAD for _, _, end in flows]}
    outputs = {"x_grad": [start + GRAD for _, start, _ in flows],
               "shared_grad": [name + GRAD for name in op.inputs["shared"]]}
    return BlockOp(f"{op.type}_grad", inputs, outputs, attrs, op.program)


# %% tags=["active-ipynb"]
# y = power()
# print(make_steps_grad_op(y.block.ops[-1]))

# %% [markdown]
# (It still writes `n@GRAD`, which nobody wants. That is a matter for the passes.)
#
# ### The passes go into the grad blocks
#
# A pass of step 18 saw all there was to see: one block. A grad block is only a part. It reads `y@GRAD`, and no
# op in it writes that: the grad op will put it there.
#
# **Predict, then run.** Rule 2 of step 18 drops an op when only zeros come in, and a gradient that nobody
# writes is a zero. What does it leave of our two lines?

# %% tags=["active-ipynb", "mistake"]
# kept, dropped = remove_no_grad_branch(grad_block.ops, no_grad=set())
# print("kept:", kept)
# for op, reason in dropped:
#     print(reason, "  ", op)

# %% [markdown]
# Nothing. `assign` goes because of `y@GRAD`, and then `mul_grad` because of `assign`. So the pass has to be
# told what is **given** from outside:

# %% tags=["active-ipynb"]
# print(*remove_no_grad_branch(grad_block.ops, no_grad=set(), given=["y@GRAD"])[0], sep="\n")

# %% [markdown]
# And who says what is **not wanted**? For a name that the block shares with the outside, such as `n`, the
# outside does. For a name of its own, such as `s`, the block itself does, by `stop_gradient`. (Exercise 19b
# shows why.)
#
# That is all that `adjust` of step 18 has to learn. When it is done with a block, it goes into the grad
# blocks that its ops hold. Each of them gets its parent, the names that are not wanted, and what is given.

# %%
def adjust(block, start, no_grad, given=()):
    """Run the passes over the grad ops of block, from number start on; return their gradients."""
    add_up(block)
    block.ops[start:] = remove_no_grad_branch(block.ops[start:], no_grad, given)[0]
    for op in [op for op in block.ops[start:] if isinstance(op, BlockOp)]:
        for grad_block in op.held_blocks().values():
            grad_block.parent = block.idx
            own = block.program.blocks[grad_block.forward_block].vars
            stopped = {v.name for v in own.values() if v.stop_gradient}
            adjust(grad_block, 0, no_grad - set(own) | stopped, op.inputs["out_grad"])
    return append_backward_vars(block, start)


# %% tags=["carried"]
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
# y = power()
# append_backward(y)
# print(y.block.program)
# assert [block.parent for block in y.block.program.blocks] == [-1, 0, 0]
# assert y.block.program.blocks[2].forward_block == 1

# %% [markdown]
# `n@GRAD` has become `@EMPTY@`. Block 2 is the grad block. Its head says which block is its **parent**: block 0, which
# holds the grad op. It has a second link, its **forward block**, block 1: there it looks up the shape of
# `s`.
#
# ### The loop, backwards
#
# What we did by hand, with the grad block instead of our two lines. Each step backwards runs *in
# the step scope of that step*. There it finds its `s`, and there it leaves its gradients.
#
# Two dictionaries go along. `flowing` holds the gradients of the carried values: it is **overwritten** from
# step to step. `total` holds those of the shared values: it is **added up**.
#
# **19e. The engine: the loop in reverse.** `steps` are the step scopes in the order of the forward
# pass. For each of them, last one first:
#
# 1. with `step.update(...)`, put the values of `flowing` into the step, under the names
#    `op.inputs["out_grad"]` (in the same order);
# 2. run the right grad block with `.run(step)`. A step whose condition holds, `step[condition]`, ran its
#    `sub_block`, any other its `else_block`. `blocks[op.attrs["sub_block"]]` is the grad block of the first;
# 3. read what the grad block wrote into the step, under `name + GRAD`. A carried value whose gradient is
#    not there gets zeros in the shape of `step[name]`; to a shared one nothing is added.
#
# Only what was written into this step counts: `step.get(name, otherwise)` looks nowhere else, while
# `step[name]` asks the parent, too.

# %% tags=["exercise", "ex-19e", "engine"]
def run_steps_grad(op, scope, blocks):
    """Run the grad block of each step, last step first; return the outputs.

    Gradients of carried values are overwritten from step to step, those of shared values added up.
    """
    carry, condition = op.attrs["carry"], op.attrs["condition"]
    flowing = {name: scope[end] for name, end in zip(carry, op.inputs["out_grad"], strict=True)}
    total = {name: np.zeros(np.shape(scope[name])) for name in op.inputs["shared"]}
    steps = scope[op.inputs["step_scopes"][0]]
    ### BEGIN SOLUTION
    for step in reversed(steps):
        step.update(zip(op.inputs["out_grad"], flowing.values(), strict=True))
        held = "sub_block" if step[condition] else "else_block"
        blocks[op.attrs[held]].run(step)
        flowing = {name: step.get(name + GRAD, np.zeros(np.shape(step[name]))) for name in flowing}
        total = {name: total[name] + step.get(name + GRAD, 0.0) for name in total}
    ### END SOLUTION
    return [*flowing.values(), *total.values()]


# check("19e", run_steps_grad, run, append_backward, power, hold, Program)

# %% [markdown]
# <!-- solution 19e -->

# %% tags=["active-ipynb", "picture-B"]
# scope = run(y.block.program, values)
# print({name: float(scope[name]) for name in ("y", "x@GRAD", "w@GRAD")})
# assert (scope["x@GRAD"], scope["w@GRAD"]) == (27, 54)
# mg.draw(y.block.program)

# %% [markdown]
# Above, block 0 with its two sides; below, the loop body and one step backwards. Along the thick lines
# `s_next` becomes the next step's `s`, and the gradient goes round the other way. A dashed name with the
# words *block 0*, like `w`, is looked up there.
#
# **Press play.** The same program, op by op and step by step. (*fit* shows the whole picture.)

# %% tags=["active-ipynb", "interactive"]
# mg.play((y.block.program, scope))

# %% [markdown]
# ### No step at all
#
# **Predict, then run.** With $n = 0$ the body never runs, neither forward nor backward. What is
# `x@GRAD`? Is there a `w@GRAD`, and what is it?

# %% tags=["active-ipynb"]
# scope = run(y.block.program, values | {"n": 0})
# print({name: float(scope[name]) for name in ("y", "x@GRAD", "w@GRAD")})

# %% [markdown]
# The gradient goes straight through: `y` *is* `x`. And `w@GRAD` is zero, not missing: whoever trains this
# program finds a gradient for each parameter.

# %% [markdown]
# **Move the slider.** One row per step scope, with the gradients that the grad block left there. Read
# these from the bottom up.

# %% tags=["active-ipynb", "interactive"]
# def steps(n):
#     program = power().block.program
#     append_backward(program.blocks[0].var("y"))
#     scope = run(program, {"x": 2.0, "w": 3.0, "n": n, "zero": 0})
#     lines = ["step      s   s_next   s_next@GRAD   s@GRAD   w@GRAD"]
#     for number, step in enumerate(scope["step_scopes_1"]):
#         row = [step[name] for name in ("s", "s_next", "s_next@GRAD", "s@GRAD", "w@GRAD")]
#         lines.append("{:4}{:7g}{:9g}{:14g}{:9g}{:9g}".format(number, *row))
#     names = ("y", "x@GRAD", "w@GRAD")
#     lines.append(", ".join(f"{name} = {scope[name]:g}" for name in names))
#     return ["\n".join(lines), mg.draw((program, scope))]
#
#
# explore(steps, n=(0, 6, 3))

# %% [markdown]
# ## Second half: the branch
#
# `if_else` holds two blocks, and its condition chooses one of them, for exactly one step. The functions
# above do that already. $y = x \cdot w$ if $x$ is positive, else $y = x^2$:

# %% tags=["active-ipynb"]
# def branch():
#     main = Program().blocks[0]
#     declare(main, "x w", persistable=True)
#     declare(main, "zero", stop_gradient=True)
#     main.append_op("less_than", "zero", "x", out="positive")
#     yes, no = (main.program.create_block(parent=0) for _ in range(2))
#     for block in (yes, no):
#         declare(block, "v")
#     yes.append_op("mul", "v", "w", out="result")
#     no.append_op("square", "v", out="result")
#     return hold(main, "if_else", "positive", {"v": ("x", "result", "y")},
#                 sub_block=yes, else_block=no)
#
#
# y = branch()
# append_backward(y)
# mg.draw(y.block.program)

# %% [markdown]
# Two forward blocks, two grad blocks. Which of them runs is decided at run time.
#
# ## Exercises
#
# **19a.** Both branches. With $w = 5$: what are `(x@GRAD, w@GRAD)` at $x = 3$, and what at $x =
# -3$? Predict, write the two pairs down, then check.

# %% tags=["active-ipynb", "exercise", "ex-19a"]
# ### BEGIN SOLUTION
# at_3 = (5.0, 3.0)
# at_minus_3 = (-6.0, 0.0)
# ### END SOLUTION
#
# check("19a", at_3, at_minus_3, branch, append_backward, run)

# %% [markdown]
# One of the four numbers is zero. Why is it not missing? Because `total` in `run_steps_grad` begins
# with zeros for every shared name, whichever block runs.
#
# **19b.** $x^n$ by a loop. Write the body: it gets a block that has the carried variables `p` (the
# product so far, starts at 1), `i` and `more`, and it must write `p_next`, `i_next`, `more_next`.
# The names `x` and `n` are known from outside.

# %% tags=["active-ipynb"]
# def power_of_x(write_body):
#     main = Program().blocks[0]
#     declare(main, "x", persistable=True)
#     declare(main, "n zero one", stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = main.program.create_block(parent=0)
#     declare(body, "p")
#     declare(body, "i more", stop_gradient=True)
#     write_body(body)
#     return hold(main, "while", "more", sub_block=body, state={
#         "p": ("one", "p_next", "y"), "i": ("zero", "i_next", "count"),
#         "more": ("any", "more_next", "rest")})

# %% tags=["active-ipynb", "exercise", "ex-19b"]
# def write_body(body):
#     """Append the ops of one step: multiply, count, compare."""
#     ### BEGIN SOLUTION
#     body.append_op("mul", "p", "x", out="p_next")
#     body.append_op("increment", "i", out="i_next")
#     body.append_op("less_than", "i_next", "n", out="more_next")
#     ### END SOLUTION
#
#
# check("19b", write_body, power_of_x, append_backward, run)

# %% [markdown]
# Did you notice? `p` starts at `one`, which is data and wants no gradient. Inside the loop `p`
# needs one all the same: `x` flows through it from step to step. This is why the body has
# variables of its own, and why gradient names are **local to their grad block**.
#
# **19c.** The parent of each block. After `append_backward`, a branch inside a loop is seven blocks.
# Write down the parent of each as a dictionary, from the number of the block to the number of its
# parent: `{0: -1, …}`. Then print the program and compare.

# %% tags=["active-ipynb"]
# def nested():
#     main = Program().blocks[0]
#     declare(main, "x w", persistable=True)
#     declare(main, "n zero limit", stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = main.program.create_block(parent=0)                 # block 1: the loop body
#     declare(body, "s")
#     declare(body, "i more", stop_gradient=True)
#     body.append_op("less_than", "s", "limit", out="small")
#     low, high = (main.program.create_block(parent=1) for _ in range(2))      # blocks 2 and 3
#     for block in (low, high):
#         declare(block, "v")
#     low.append_op("mul", "v", "w", out="result")
#     high.append_op("sub", "v", "w", out="result")
#     hold(body, "if_else", "small", {"v": ("s", "result", "s_next")},
#          sub_block=low, else_block=high)
#     body.append_op("increment", "i", out="i_next")
#     body.append_op("less_than", "i_next", "n", out="more_next")
#     return hold(main, "while", "more", sub_block=body, state={
#         "s": ("x", "s_next", "y"), "i": ("zero", "i_next", "count"),
#         "more": ("any", "more_next", "rest")})

# %% tags=["active-ipynb", "exercise", "ex-19c"]
# ### BEGIN SOLUTION
# parents = {0: -1, 1: 0, 2: 1, 3: 1, 4: 0, 5: 4, 6: 4}
# ### END SOLUTION
#
# check("19c", parents, nested, append_backward)

# %% [markdown]
# The judge of step 1 decides. A branch inside a loop, `w` read in both branches, against
# a measured slope:

# %% tags=["active-ipynb"]
# y = nested()
# append_backward(y)
# values = {"x": 2.0, "w": 1.5, "n": 6, "zero": 0, "limit": 5.0}
# scope = run(y.block.program, values)
#
#
# def value(w):
#     return run(y.block.program, values | {"w": w})["y"]
#
#
# slope = (value(1.5 + 1e-6) - value(1.5 - 1e-6)) / 2e-6
# print("s in each step:", [float(step["s"]) for step in scope["step_scopes_1"]])
# print(f"w@GRAD = {scope['w@GRAD']:.6f}, measured {slope:.6f}")
# assert np.isclose(scope["w@GRAD"], slope, rtol=1e-8)

# %% tags=["active-ipynb"]
# mg.draw(y.block.program)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# `loss.backward()` needs none of this: its graph is the loop unrolled. The numbers are the same.
# Recorded with PyTorch 2.13.0:
#
# ```python
# >>> x, w = torch.tensor(2., requires_grad=True), torch.tensor(3., requires_grad=True)
# >>> y = x
# >>> for _ in range(3):
# ...     y = y * w
# >>> y.backward()
# >>> x.grad, w.grad
# (tensor(27.), tensor(54.))
# ```
#
# With `range(0)` it prints `(tensor(1.), None)`: what did not run is not in the graph, so `w` has
# no gradient at all. A program has promised one, and gives zero.
#
# A compiled program cannot contain Python's `if`. There PyTorch has an op that holds two blocks,
# and its gradient holds two grad blocks:
#
# ```python
# >>> x = torch.tensor(3., requires_grad=True)
# >>> torch.cond(x > 0, lambda x: x * x, lambda x: -x, (x,)).backward()
# >>> x.grad
# tensor(6.)
# ```
#
# In Fluid the ops are called `while` and `conditional_block`; the step scopes are an output of the
# op, `StepScopes`, as here. Its design document makes the forward block the parent of the grad
# block; the released versions have the two links you have seen. A body there may overwrite a
# variable, and a grad op that still needs the old value gets the new one, without a word. Here a
# body never writes a name twice.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `while` | `minigrad.static:while_loop` |
# | `if_else` | `minigrad.static:cond` |
# | the grad op that holds grad blocks | `minigrad.static.backward.grad_ops:grad_ops_of` |
# | scopes with a parent | `minigrad.static.run.executor:Scope` |
