# %% [markdown]
# # Step 17. Program, Block, Op, Variable
#
# **Goal.** Write a computation down before running it; let a function write the backward part.
#
# **Time.** 30 minutes
#
# **Needs.** step 15: operators with slots and names, networks, `x@GRAD`

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# ## Part E: programs
#
# The networks of steps 13 to 15 are words: operators that name what they read and write. But three
# things were left to us. Nobody knew a shape before the network ran. The backward part was a
# *second* network, to be run after the first. And the seed was a number that we put there by hand.
#
# A **program** is such a network that knows all this itself. It keeps two things apart:
#
# | | what it is | what it holds |
# |---|---|---|
# | **description** | a `Program`: blocks of ops and variables | names and shapes. No number. |
# | **execution** | `run`: the ops, from top to bottom | a *scope*: name → array |
#
# So a program is described once and run a million times, on another machine if you like.
#
# Part E has four steps, 17 to 20. The first three go on with your code of step 15. (You need nothing of
# step 16: what step 19 uses of it is told there.)
#
# First what we bring along, folded: the scope, the registry, `Operator` (**op** for short from here on),
# `build_grad_op`, `NetOp`.
# (`add_up` waits for step 18.)

# %%
import inspect
from collections import namedtuple

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why
# from minigrad.course.explore import explore

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

# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# The table gets four rows. `reduce_sum` and `mean` make one number out of many: a loss. `fill_constant`
# reads nothing and has no gradient: it will be our seed.

# %%
# to run this cell again, run the table above it first
register("sub", lambda x, y: x - y,
         "sub_grad", lambda out_grad: (out_grad, -out_grad))
register("reduce_sum", lambda x: np.sum(x),
         "reduce_sum_grad", lambda x, out_grad: np.full(np.shape(x), out_grad))
register("mean", lambda x: np.mean(x),
         "mean_grad", lambda x, out_grad: np.full(np.shape(x), out_grad / np.size(x)))
register("fill_constant", lambda *, shape, value: np.full(shape, value))

# %% [markdown]
# ## Variable: what is known about a name
#
# A **Variable** holds a name and a shape. Its value is not among them: values live in a scope.
# `persistable` marks a parameter, which lives on from run to run. `stop_gradient` waits for the next
# step.

# %%
class Variable:
    """What a block knows about a name before anything runs."""

    def __init__(self, block, name, shape=(), persistable=False, stop_gradient=False):
        self.block, self.name, self.shape, self.dtype = block, name, tuple(shape), "float64"
        self.persistable, self.stop_gradient = persistable, stop_gradient

    def __repr__(self):
        flags = [flag for flag in ("persistable", "stop_gradient") if getattr(self, flag)]
        return f"{self.name}{list(self.shape)}" + "".join(f" {flag}" for flag in flags)


# %% [markdown]
# ## Block: a network that knows its variables
#
# A **Block** is a `NetOp`: ops in order, which run in order. What is new is its variables. A name
# that it does not know is looked up in its parent, like a variable of an outer function. Block 0 has none:
# its parent is -1. (`forward_block` waits for step 19.)
#
# `append_op` writes one op and creates its output variable.
#
# **Predict.** How can it know the shape of the output, when there are no numbers yet?

# %%
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


# %% [markdown]
# By a trick: it runs the op once on ones, looks at the shape of what comes out, and throws the
# numbers away. (What an op without a grad op makes is marked `stop_gradient`.)
#
# ## Program
#
# A **Program** is a list of blocks. Until step 19 there is only one. To run it is to run block 0, in
# a scope that begins with a copy of the given values.

# %%
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


# %% [markdown]
# ## A description
#
# Our old friend, $e = (a + b) \cdot d$.
#
# **Predict, then run.** After this cell, where in memory is the number 20?

# %% tags=["active-ipynb", "picture-F"]
# def product():
#     program = Program()
#     block = program.blocks[0]
#     for name in "abd":
#         block.create_var(name, persistable=True)
#     block.append_op("add", "a", "b", out="c")
#     block.append_op("mul", "c", "d", out="e")
#     return program
#
#
# program = product()
# print(program)
# mg.draw(program)

# %% [markdown]
# Nowhere. Nobody has said yet what `a` is. The variable `e` knows its shape, and that is all.

# %% [markdown]
# ## An execution
#
# One description, two executions:

# %% tags=["active-ipynb"]
# values = {"a": 2.0, "b": 3.0, "d": 4.0}
# print(run(program, values)["e"], run(program, {"a": 1.0, "b": 1.0, "d": 7.0})["e"])

# %% [markdown]
# **Half-way.** Rest here, if you like. A program is described and run. The second half writes its backward
# part:
#
# | you knew | now | what is new |
# |---|---|---|
# | a name | `Variable` | what is known about a name before anything runs |
# | `NetOp` | `Block` | it knows its variables, and the block around it |
# | `backward(net)` | `append_backward(loss)` | it starts from one loss, and writes into the same block |
#
# ## The backward part: first attempt
#
# `build_grad_op` of step 13 makes the grad op of an op. We add a note for the reader, and for pictures:
# which op it belongs to. Nothing is computed here either.

# %%
def make_grad_op(op):
    """The grad op of an op, with a note which op it belongs to."""
    grad_op = build_grad_op(op)
    grad_op.forward_op = op
    return grad_op


# %% tags=["active-ipynb"]
# add, mul = program.blocks[0].ops
# print(make_grad_op(mul))
# print(make_grad_op(add))

# %% [markdown]
# Steps 14 and 15 put the grad ops into a second network. Why a second one? A grad op is an op like
# any other, so it can stand in the *same* block, behind the forward ops. So can the seed: it is a
# `fill_constant` that writes 1 under the name `e@GRAD`.
#
# The order is **reversed**, as it always was. But a program may hold more than a network did. Here the
# loss is `e`, and behind it stands `m`, a metric that somebody wants to look at.
#
# **Predict, then run.** Append the grad op of each op, last op first. Which op will complain, and about
# which name?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# wrong = product()
# block = wrong.blocks[0]
# block.append_op("square", "e", out="m")
# block.ops.append(Operator("fill_constant", {}, {"out": "e@GRAD"}, {"shape": (), "value": 1.0}))
# for op in block.ops[2::-1]:                     # the three forward ops, last one first
#     block.ops.append(make_grad_op(op))
# print(wrong)
# run(wrong, values)

# %% [markdown]
# `square_grad`, line #4, waits for `m@GRAD`. Nobody writes it, and nobody should: the loss does not
# change with `m`. (Worse, it would overwrite the seed.) In the picture `m@GRAD` comes from nowhere.

# %% tags=["active-ipynb", "mistake"]
# mg.draw(wrong)

# %% [markdown]
# ## Only what leads to the loss
#
# The backward of a network began with gradients of *everything* that left it. A program has one **loss**,
# and perhaps many ops that have nothing to do with it: a metric behind the loss, a branch that leads elsewhere. They
# get no grad op. So we keep a growing set of *needed* names, at first only the loss. An op counts when
# it makes something needed. Then its inputs are needed too.
#
# The grad ops go into `target_block`. Today that is the same block: **forward and backward are one
# program**.
#
# **17e. The engine: append_backward_ops.** Write the traversal:
#
# * A seed writes `loss@GRAD`; what it writes, without the `@GRAD`, is the first needed name.
# * Go through the ops of `block`, last one first. `names(op.outputs)` are all the names that an op writes.
# * An op without a gradient, such as `fill_constant`, gets no grad op: `find(op.type).grad` is `None`. The
#   way back ends there, so its inputs are not needed either.
# * For any other op that counts, `make_grad_op` makes the grad op.
# * Append the seeds first, then the grad ops.

# %% tags=["exercise", "ex-17e", "engine"]
def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    ### BEGIN SOLUTION
    needed = {name.removesuffix(GRAD) for seed in seeds for name in names(seed.outputs)}
    ops = list(seeds)
    for op in reversed(block.ops):
        if needed & set(names(op.outputs)) and find(op.type).grad:
            needed |= set(names(op.inputs))
            ops.append(make_grad_op(op))
    target_block.ops += ops
    ### END SOLUTION


# check("17e", append_backward_ops, Program, Operator)

# %% [markdown]
# <!-- solution 17e -->

# %% [markdown]
# `append_backward` is what everyone calls. Users of such a system write no backward at all: they
# describe the forward, and this function **writes down** the rest. Only whoever adds an *op* writes
# a rule, once, in the table.
#
# 1. check the loss: it must be a scalar, since we start with *one* number, 1.0;
# 2. make the **seed**, an op that fills `loss@GRAD` with 1.0;
# 3. append it and the grad ops, in the reversed **order**;
# 4. create the variables that the new ops write, each in the shape of its forward variable;
# 5. return the pairs (parameter, gradient), which an optimizer goes through.

# %%
def append_backward(loss, parameter_list=None):
    """Append the backward part of a scalar loss to its block; return the pairs."""
    block, start = loss.block, len(loss.block.ops)
    if loss.shape != ():
        raise ValueError(f"the loss must be a scalar, and {loss.name!r} has shape {loss.shape}: "
                         "append a mean or a reduce_sum")
    if loss.name + GRAD in block.vars:
        raise ValueError(f"the backward part of {loss.name!r} is already there: build anew")
    one = {"shape": (), "value": 1.0}
    seed = Operator("fill_constant", {}, {"out": loss.name + GRAD}, one)
    append_backward_ops(block, block, [seed])
    for op in block.ops[start:]:
        for name in names(op.outputs):
            if name not in block.vars:
                block.create_var(name, block.var(name.removesuffix(GRAD)).shape)
    for name in parameter_list or ():
        if name + GRAD not in block.vars:
            raise ValueError(f"{name!r} has no gradient: it does not lead to {loss.name!r}")
    wanted = parameter_list or [v.name for v in block.vars.values() if v.persistable]
    return [(block.var(name), block.var(name + GRAD)) for name in wanted
            if name + GRAD in block.vars]


# %% tags=["active-ipynb"]
# program = product()
# pairs = append_backward(program.blocks[0].var("e"))
# print(program)
# print()
# for parameter, gradient in pairs:
#     print(parameter, "->", gradient)

# %% [markdown]
# Two forward ops, one seed, two grad ops. Still nothing has been computed. And `run` needs no change:
# it goes from top to bottom, as before.

# %% tags=["active-ipynb", "picture-B"]
# scope = run(program, values)
# print({name: float(scope[name]) for name in ("e", "a@GRAD", "b@GRAD", "d@GRAD")})
# assert (scope["a@GRAD"], scope["b@GRAD"], scope["d@GRAD"]) == (4, 4, 5)
# mg.draw((program, scope))

# %% [markdown]
# Read the right side from below: seed, `mul_grad`, `add_grad`. Each stands beside the op it belongs
# to. The boxes are lines #2 to #4 of the program, and these lines ran.

# %% [markdown]
# ## Build once, run often
#
# A line through three points. The program is built once. Each step of the training only runs it
# again, with other weights. The pairs say what to update.

# %% tags=["active-ipynb"]
# fit = Program()
# block = fit.blocks[0]
# block.create_var("x", (3, 2))
# block.create_var("t", (3, 1))
# block.create_var("w", (2, 1), persistable=True)
# block.append_op("matmul", "x", "w", out="p")
# block.append_op("sub", "p", "t", out="r")
# block.append_op("square", "r", out="s")
# loss = block.append_op("mean", "s", out="loss")
# forward = len(block.ops)
# pairs = append_backward(loss)
#
# values = {"x": np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]),
#           "t": np.array([[1.0], [3.0], [5.0]]),
#           "w": np.zeros((2, 1))}
# for update in range(101):
#     scope = run(fit, values)
#     if update in (0, 10, 100):
#         print(f"after {update} updates: loss {scope['loss']:.4f}")
#     for parameter, gradient in pairs:
#         values[parameter.name] = values[parameter.name] - 0.3 * scope[gradient.name]
# print("slope and height:", values["w"].ravel().round(2))
# assert len(block.ops) == 9
# assert np.allclose(values["w"], [[2], [1]], atol=1e-4)

# %% [markdown]
# ## Watch it being written
#
# **Move the slider.** The cursor `>` climbs up the forward ops; below the line, the grad ops pile
# up. How far apart do an op and its grad op stand in the list?

# %% tags=["active-ipynb", "interactive"]
# def cursor(position):
#     ops = fit.blocks[0].ops
#     shown = Program()
#     shown.blocks[0].vars = fit.blocks[0].vars
#     shown.blocks[0].ops = ops[:forward + 1 + position]
#     mark = forward - position
#     lines = [f"{'>' if n == mark else ' '} #{n} {op}" for n, op in enumerate(shown.blocks[0].ops)]
#     lines.insert(forward, "  " + "-" * 40)
#     return ["\n".join(lines), mg.draw(shown)]
#
#
# explore(cursor, position=(0, 4, 2))

# %% [markdown]
# First op, last grad op: the list is mirrored. `#0` belongs to `#8`, `#3` to `#5`.

# %% [markdown]
# Did you notice `t@GRAD`? It is computed, and nobody asked for it. Step 18 removes such ops, and
# adds up gradients that are written twice.

# %% tags=["active-ipynb", "folded"]
# assert [block.ops[number].forward_op for number in (8, 5)] == [block.ops[0], block.ops[3]]
# assert "t@GRAD" in scope

# %% [markdown]
# ## Exercises
#
# **17a.** Write a function that appends the backward part and returns the new lines, as a list of
# texts.

# %% tags=["active-ipynb", "exercise", "ex-17a"]
# def appended(loss):
#     """Append the backward part of loss; return the new ops as texts, in order."""
#     ### BEGIN SOLUTION
#     before = len(loss.block.ops)
#     append_backward(loss)
#     return [str(op) for op in loss.block.ops[before:]]
#     ### END SOLUTION
#
#
# check("17a", appended, Program)

# %% [markdown]
# **17b.** `parameter_list` chooses which pairs come back: of parameters, or of variables in between.
# (It chooses pairs, not ops: the same grad ops are appended.) It refuses a name that does not lead
# to the loss. Use it, run the program, and return the gradient for that one name.

# %% tags=["active-ipynb", "exercise", "ex-17b"]
# def slope(loss, name, values):
#     """The gradient of loss with respect to the variable of this name, at the given values."""
#     ### BEGIN SOLUTION
#     [(_, gradient)] = append_backward(loss, parameter_list=[name])
#     return run(loss.block.program, values)[gradient.name]
#     ### END SOLUTION
#
#
# check("17b", slope, Program)

# %% [markdown]
# **17c.** A loss that is not a scalar is refused:

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# square = Program()
# square.blocks[0].create_var("x", (3,), persistable=True)
# append_backward(square.blocks[0].append_op("square", "x", out="y"))

# %% [markdown]
# Write `scalar(v)`: it appends one op that turns `v` into a scalar, in such a way that every element
# of `v` gets the gradient 1, and returns the new variable. It is named after the old one: for a
# variable `w` it is `w_total`.

# %% tags=["active-ipynb", "exercise", "ex-17c"]
# def scalar(v):
#     """Append the op that adds up the elements of v; return its output variable."""
#     ### BEGIN SOLUTION
#     return v.block.append_op("reduce_sum", v.name, out=f"{v.name}_total")
#     ### END SOLUTION
#
#
# check("17c", scalar, Program)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# `loss.backward()` needs no description: its graph is the trace of an execution, as in step 10.
# There, too, the loss must be a scalar, unless you pass the gradient to start from. Recorded with
# PyTorch 2.13.0:
#
# ```python
# >>> x = torch.ones(3, requires_grad=True)
# >>> (x ** 2).backward()
# RuntimeError: grad can be implicitly created only for scalar outputs
# ```
#
# But `torch.compile` needs a description, and makes what this part builds: a program for the forward
# pass and one for the backward pass, before anything is optimised. AOTAutograd, the part that does it, can
# print them. For $y = x_1 W + x_2 W$, where only $W$ wants a gradient, this is the backward
# program:
#
# ```python
# def forward(self, primals_1, primals_2, tangents_1):
#     mul_2 = torch.ops.aten.mul.Tensor(tangents_1, primals_2)
#     mul_3 = torch.ops.aten.mul.Tensor(tangents_1, primals_1)
#     add_1 = torch.ops.aten.add.Tensor(mul_2, mul_3)
#     return (None, None, add_1)
# ```
#
# Two grad ops, last op first, and their sum, as in step 15. `primals` are the saved inputs $x_1$
# and $x_2$, `tangents_1` is the seed, and `None` stands where we would write `@EMPTY@`.
#
# In Fluid, Paddle's static engine, this is the program you have just built: blocks of ops
# over named variables, grad ops in the same block. Its slots are called `X`, `Y`, `Out`,
# `Out@GRAD`.
#
# ```python
# pairs = fluid.backward.append_backward(loss, parameter_list=None, no_grad_set=None)
# # the optimizer's minimize(loss) calls it, then appends one update op per pair
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | Program, Block, Op, Variable | `minigrad.static.program.program:Program` |
# | make_grad_op | `minigrad.static.backward.grad_ops:grad_ops_of` |
# | append_backward | `minigrad.static.backward.append_backward:append_backward` |
# | run | `minigrad.static.run.executor:Executor` |
