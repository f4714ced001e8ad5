# %% [markdown]
# # Step 18. The adjustments
#
# **Goal.** Make the list of grad ops right, pass by pass: add up, prune, fill zeros, create.
#
# **Time.** 35 minutes
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
# The traversal of step 17 stays as it is. Behind it come **passes**: each is a function from a list
# of grad ops to a better list.

# %%
import inspect
from collections import ChainMap, Counter
from copy import copy

import numpy as np

# %% tags=["active-ipynb"]
# import difflib
#
# import minigrad as mg
# from minigrad.course import check
# from minigrad.course.explore import explore

# %% [markdown]
# Carried over from step 17: the table of ops, the four records, the executor, the traversal.

# %% tags=["carried"]
def parameters(function):
    """The names of a function's parameters, in order: the slots it reads."""
    return list(inspect.signature(function).parameters)


class OpInfo:
    """What is known about a type of op: a kernel, its output slots, one gradient rule per input."""

    def __init__(self, kernel, outputs=("out",), **rules):
        self.kernel, self.outputs, self.rules = kernel, outputs, rules


def spread(x, out_grad):
    """The gradient of a sum: every element of x gets the same."""
    return np.full(np.shape(x), out_grad)


OPS = {
    "add": OpInfo(lambda x, y: x + y, x=lambda out_grad: out_grad, y=lambda out_grad: out_grad),
    "sub": OpInfo(lambda x, y: x - y, x=lambda out_grad: out_grad, y=lambda out_grad: -out_grad),
    "mul": OpInfo(lambda x, y: x * y,
                  x=lambda y, out_grad: out_grad * y, y=lambda x, out_grad: out_grad * x),
    "matmul": OpInfo(lambda x, y: x @ y,
                     x=lambda y, out_grad: out_grad @ y.T, y=lambda x, out_grad: x.T @ out_grad),
    "square": OpInfo(lambda x: x ** 2, x=lambda x, out_grad: out_grad * 2 * x),
    "exp": OpInfo(lambda x: np.exp(x), x=lambda out, out_grad: out_grad * out),
    "reduce_sum": OpInfo(lambda x: np.sum(x), x=spread),
    "mean": OpInfo(lambda x: np.mean(x), x=lambda x, out_grad: spread(x, out_grad / np.size(x))),
    "fill_constant": OpInfo(lambda *, shape, value: np.full(shape, value)),
}


# %% tags=["carried"]
class Variable:
    """What a block knows about a name before anything runs."""

    def __init__(self, block, name, shape=(), persistable=False, stop_gradient=False):
        self.block, self.name, self.shape, self.dtype = block, name, tuple(shape), "float64"
        self.persistable, self.stop_gradient = persistable, stop_gradient

    def __repr__(self):
        flags = [flag for flag in ("persistable", "stop_gradient") if getattr(self, flag)]
        return f"{self.name}{list(self.shape)}" + "".join(f" {flag}" for flag in flags)


class Op:
    """One line of a block: a type, and lists of names by slot."""

    def __init__(self, type, inputs, outputs, attrs=None, role="forward", forward_op=None):
        self.type, self.inputs, self.outputs, self.attrs = type, inputs, outputs, attrs or {}
        self.role, self.forward_op = role, forward_op

    @property
    def reads(self):
        return [name for names in self.inputs.values() for name in names]

    @property
    def writes(self):
        return [name for names in self.outputs.values() for name in names]

    def __repr__(self):
        lists = {slot: names[0] if len(names) == 1 else f"[{', '.join(names)}]"
                 for slot, names in self.inputs.items()}
        arguments = [f"{name}={value}" for name, value in (lists | self.attrs).items()]
        return f"{', '.join(self.writes)} = {self.type}({', '.join(arguments)})"


def compute(op, scope):
    """The arrays one op makes out of the arrays in the scope, in the order of ``op.writes``."""
    arrays = {slot: [scope[name] for name in names] for slot, names in op.inputs.items()}
    if op.type in OPS:
        listed = [array for slot in arrays.values() for array in slot]
        made = OPS[op.type].kernel(*listed, **op.attrs)
        return made if isinstance(made, tuple) else (made,)
    rules = OPS[op.type.removesuffix("_grad")].rules
    wanted = [rules[slot.removesuffix("_grad")] for slot in op.outputs]
    return [rule(*[arrays[slot][0] for slot in parameters(rule)]) for rule in wanted]


class Block:
    """Ops in order, variables by name, and the index of the parent block."""

    def __init__(self, program, idx, parent=-1, forward_block=-1):
        self.program, self.idx = program, idx
        self.parent, self.forward_block = parent, forward_block
        self.vars, self.ops = {}, []

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

    def append_op(self, type, *names, out, **attrs):
        """Append ``out = type(*names)``; return the output variable, or a list of several."""
        if type not in OPS:
            raise ValueError(f"no op type {type!r}; there are {', '.join(OPS)}")
        info = OPS[type]
        slots = [slot for slot in parameters(info.kernel) if slot not in attrs]
        op = Op(type, {slot: [name] for slot, name in zip(slots, names, strict=True)},
                {slot: [name] for slot, name in zip(info.outputs, out.split(), strict=True)}, attrs)
        made = compute(op, {name: np.ones(self.var(name).shape) for name in names})
        created = [self.create_var(name, np.shape(array), stop_gradient=not info.rules)
                   for name, array in zip(op.writes, made, strict=True)]
        self.ops.append(op)
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


# %% tags=["carried"]
def run_block(block, scope):
    """Execute the ops of a block from first to last on a scope, name → array."""
    for number, op in enumerate(block.ops):
        for name in op.reads:
            if name not in scope:
                raise RuntimeError(f"#{number} {op.type} reads {name!r}, which nobody wrote or fed")
        scope.update(zip(op.writes, compute(op, scope), strict=True))


def run(program, values):
    """Execute block 0 on the given values; return the scope: what was made, then what was given."""
    scope = ChainMap({}, values)
    run_block(program.blocks[0], scope)
    return scope


# %% tags=["carried"]
def grad_name(name):
    return f"{name}@GRAD"


def make_grad_op(op):
    """The op that turns gradients of op's outputs into gradients of op's inputs."""
    rules = OPS[op.type].rules
    out_grads = {f"{slot}_grad": [grad_name(n) for n in names]
                 for slot, names in op.outputs.items()}
    known = {**op.inputs, **op.outputs, **out_grads}
    reads = {slot for rule in rules.values() for slot in parameters(rule)}
    writes = {f"{slot}_grad": [grad_name(n) for n in op.inputs[slot]] for slot in rules}
    inputs = {slot: names for slot, names in known.items() if slot in reads}
    return Op(f"{op.type}_grad", inputs, writes, role="backward", forward_op=op)


def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    needed = {name.removesuffix("@GRAD") for seed in seeds for name in seed.writes}
    ops = list(seeds)
    for op in reversed(block.ops):
        if needed & set(op.writes) and OPS[op.type].rules:
            needed |= set(op.reads)
            ops.append(make_grad_op(op))
    target_block.ops += ops


# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# The table gets three more entries: an op that adds up any number of arrays, an op that makes
# zeros, and `split`, which has two outputs.

# %%
OPS.update({
    "sum": OpInfo(lambda *x: sum(x)),
    "fill_zeros_like": OpInfo(lambda x: np.zeros_like(x)),
    "split": OpInfo(lambda x: tuple(np.split(x, 2)), outputs=("first", "second"),
                    x=lambda first_grad, second_grad: np.concatenate([first_grad, second_grad])),
})

# %% [markdown]
# Three helpers for looking. `raw` is the list of step 17, seed first, in a block of its own.
# `with_grads` puts such a list behind the forward ops, so that we can run and draw it. `diff` shows
# what a pass did: `-` gone, `+` new.

# %% tags=["active-ipynb"]
# def raw(loss):
#     one = {"shape": (), "value": 1.0}
#     seed = Op("fill_constant", {}, {"out": [grad_name(loss.name)]}, one, role="backward")
#     target = Program().blocks[0]
#     append_backward_ops(loss.block, target, [seed])
#     return target.ops
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
# Half of it: the trap of step 13, and the repair is that of step 15. Every writer gets a name of its
# own, `w@GRAD@RENAME@0`, `@1`, and a `sum` adds the parts up.
#
# Step 15 put the `sum` behind the last writer. Fluid puts it **before the first reader**, and where
# nobody reads, as with a parameter, at the end. Nobody asks for the sum between these two places, so
# both are right. On a flat list one walk is enough for it:

# %%
def add_up_repeated_outputs(ops):
    """Name the parts of a gradient written several times; add them up before the first reader."""
    times = Counter(name for op in ops for name in op.writes)
    parts = {name: [] for name in times if times[name] > 1}
    result = []

    def part(name):
        if name not in parts:
            return name
        parts[name].append(f"{name}@RENAME@{len(parts[name])}")
        return parts[name][-1]

    def add_up(name):
        result.append(Op("sum", {"x": parts.pop(name)}, {"out": [name]}, role="backward"))

    for op in ops:
        for name in op.reads:
            if name in parts:
                add_up(name)
        op = copy(op)
        op.outputs = {slot: [part(name) for name in names] for slot, names in op.outputs.items()}
        result.append(op)
    for name in list(parts):
        add_up(name)
    return result


# %% tags=["active-ipynb", "picture-F", "picture-B"]
# added = add_up_repeated_outputs(raw(y))
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
# `exp_grad`, which makes `z@GRAD`, and half of the last op, which makes `x@GRAD`.
#
# Two rules say which grad ops can go:
#
# 1. **nobody wants what it writes**: all its outputs are in the no-gradient set, the
#    names whose gradient is not wanted;
# 2. **only zeros come in**: none of the gradients it reads is made by anyone. A grad op passes
#    gradients on. Zeros in, zeros out. (The seed, `fill_constant`, reads no gradient: it stays.)
#
# The second rule cascades: what a dropped op would have written counts as zero for the next one.
# And an op that stays writes only what is wanted.
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
#
# An unwanted output loses its slot. In a slot that holds a *list* of names the others must keep
# their places, so the unwanted one is written as `@EMPTY@`, the name for "nothing". Step 19 needs
# this.

# %% [markdown]
# **18e. The engine: remove_no_grad_branch.** The first half is here. For each op it finds
#
# * `outputs`: what the op writes, without slots that nobody wants;
# * `gradients`: the gradients it reads, and which of them are `missing`, since nobody made them.
#
# Write the second half. By rule 1 or rule 2 the op goes, and a line says why: `dropped.append((type
# of the op, reason, op.forward_op))`, with the reason in the words above. An op that stays gets its
# missing gradients right before it, made by `Op("fill_zeros_like", {"x": [the forward name]},
# {"out": [the gradient]}, role="backward")`. Then comes the op itself, a `copy(op)` with the
# `outputs` found above. What they write is `made` from now on.

# %% tags=["exercise", "ex-18e", "engine"]
def remove_no_grad_branch(ops, no_grad, given=()):
    """Drop grad ops by two rules and fill missing gradients with zeros; return (ops, dropped).

    ``no_grad`` holds forward names, ``given`` gradients that are there before the first op.
    """
    unwanted = {grad_name(name) for name in no_grad}
    made, result, dropped = set(given), [], []
    for op in ops:
        outputs = {slot: ["@EMPTY@" if name.split("@RENAME")[0] in unwanted else name
                          for name in names] for slot, names in op.outputs.items()}
        outputs = {slot: names for slot, names in outputs.items() if set(names) != {"@EMPTY@"}}
        gradients = [name for name in op.reads if "@GRAD" in name]
        missing = [name for name in gradients if name not in made]
        ### BEGIN SOLUTION
        if not outputs:
            dropped.append((op.type, "nobody wants what it writes", op.forward_op))
            continue
        if gradients and len(missing) == len(gradients):
            dropped.append((op.type, "only zeros come in", op.forward_op))
            continue
        for name in missing:
            zeros = {"x": [name.split("@GRAD")[0]]}
            result.append(Op("fill_zeros_like", zeros, {"out": [name]}, role="backward"))
        result.append(copy(op))
        result[-1].outputs = outputs
        made |= set(missing) | set(result[-1].writes)
        ### END SOLUTION
    return result, dropped


# check("18e", remove_no_grad_branch, Op)

# %% [markdown]
# <!-- solution 18e -->

# %% [markdown]
# First the towers:

# %% tags=["active-ipynb"]
# loss = towers()
# pruned, dropped = remove_no_grad_branch(raw(loss), no_grad={"x", "z"})
# print(diff(raw(loss), pruned))
# program = with_grads(loss, pruned)
# program.pruned = dropped
# mg.draw(program, detail="pruned")

# %% [markdown]
# `exp_grad` went by rule 1. The last `mul_grad` has lost one of its two outputs.
#
# Now block `s` as well: "no gradient through `s`".
#
# **Predict, then run.** How many of the five grad ops are left? Which rule drops which?

# %% tags=["active-ipynb"]
# pruned, dropped = remove_no_grad_branch(raw(loss), no_grad={"x", "z", "s"})
# for type, reason, _ in dropped:
#     print(f"{type}: {reason}")
# print("left:", [op.type for op in pruned])

# %% [markdown]
# Two are left behind the seed, and rule 2 took two: `square_grad` reads nothing but `s@GRAD`, and
# the last `mul_grad` reads nothing but what `square_grad` would have written.
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
# ## 4. Names without variables
#
# The new ops write `w@GRAD`. No block knows this name:

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# program.blocks[0].var("w@GRAD")

# %% [markdown]
# Our executor is kind and asks for no variables. A real one allocates memory from them, and an
# optimizer wants to look up a shape. So the last pass goes over the block once more, from number
# `start` on, where the grad ops begin. (`home` is where the forward names are known. Until step 19
# that is the block itself.)

# %%
def append_backward_vars(block, start):
    """Create what the ops from number ``start`` on write; return {forward name: gradient name}."""
    gradients, blocks = {}, block.program.blocks
    home = block if block.forward_block == -1 else blocks[block.forward_block]
    for op in block.ops[start:]:
        for name in op.writes:
            if name == "@EMPTY@":
                continue
            forward = name.split("@GRAD")[0]
            gradients[forward] = grad_name(forward)
            if name not in block.vars:
                block.create_var(name, home.var(forward).shape)
    return gradients


# %% [markdown]
# ## All of it
#
# The traversal, then `adjust`: the passes, one after the other. `append_backward` collects the
# no-gradient set.

# %%
def adjust(block, start, no_grad, given=()):
    """Run the passes over the grad ops of block, from number start on; return their gradients."""
    ops = add_up_repeated_outputs(block.ops[start:])
    block.ops[start:] = remove_no_grad_branch(ops, no_grad, given)[0]
    return append_backward_vars(block, start)


def append_backward(loss, parameter_list=None, no_grad_set=()):
    """Append the backward part of a scalar loss to its block; return the pairs."""
    block, start = loss.block, len(loss.block.ops)
    if loss.shape != ():
        raise ValueError(f"the loss must be a scalar, and {loss.name!r} has shape {loss.shape}: "
                         "append a mean or a reduce_sum")
    if grad_name(loss.name) in block.vars:
        raise ValueError(f"the backward part of {loss.name!r} is already there: build anew")
    no_grad = {block.var(name).name for name in no_grad_set}
    no_grad |= {v.name for v in block.vars.values() if v.stop_gradient}
    one = {"shape": (), "value": 1.0}
    seed = Op("fill_constant", {}, {"out": [grad_name(loss.name)]}, one, role="backward")
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
# ## The same in `torch.compile`
#
# Before `torch.compile` optimises anything, its part *AOTAutograd* writes forward and backward into
# one program, the *joint graph*. It traces the function once with stand-ins for the numbers, and
# every gradient rule writes its lines behind those of the forward. `primals` are the inputs,
# `tangents` the seeds.
#
# **Predict, then run.** For $y = x\,w^2$, where only $w$ wants a gradient: how many lines will
# PyTorch's backward have, and which of yours does each belong to?

# %% tags=["active-ipynb"]
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
#
# mine = {0: [0], 1: [1], 2: [], 3: [2, 3], 4: [4], 5: [5]}        # my op -> their lines
# for number, op in enumerate(y.block.ops):
#     there = " and ".join(theirs[line] for line in mine[number]) or "(tangents_1 is given)"
#     print(f"{op!s:72}{there}")

# %% [markdown]
# Operator by operator, it is your program. Where a `mul_grad` of ours writes two gradients, PyTorch
# writes two products; the one for $x$ was pruned on both sides. Its `add` is our `sum`. What
# `torch.compile` does next, it does with both halves in view: it decides which values are kept for
# the backward, and which are cheaper to compute again.

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
#     lists.append(add_up_repeated_outputs(lists[1]))
#     pruned, dropped = remove_no_grad_branch(lists[2], no_grad)
#     lists.append(pruned)
#     title = ["raw", "added up", "pruned, zeros filled"][number - 1]
#     program = with_grads(loss, lists[number])
#     program.pruned = dropped if number == 3 else []
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
# list and leaves `w` a gradient. Write a set of names. There is more than one answer. (What stands
# there instead is wasted: sums are made before ops are dropped. Fluid does the same.)

# %% tags=["active-ipynb", "exercise", "ex-18b"]
# ### BEGIN SOLUTION
# blocked = {"q"}
# ### END SOLUTION
#
# check("18b", blocked, residual, append_backward)

# %% [markdown]
# **18c.** Take the zeros out and see what breaks. The function gets a program with its backward part.
# It removes every `fill_zeros_like`, runs the program, and returns the text of the error, or `None`
# when nothing breaks.

# %% tags=["active-ipynb", "exercise", "ex-18c"]
# def without_zeros(program, values):
#     """What the executor complains about when the zeros are gone."""
#     ### BEGIN SOLUTION
#     block = program.blocks[0]
#     block.ops = [op for op in block.ops if op.type != "fill_zeros_like"]
#     try:
#         run(program, values)
#     except RuntimeError as error:
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
# | rename and add up | `minigrad.static.backward.fan_in:add_up_repeated_gradients` |
# | fill zeros | `minigrad.static.backward.fan_in:fill_missing_gradients` |
