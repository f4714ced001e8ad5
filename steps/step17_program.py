# %% [markdown]
# # Step 17. Program, Block, Op, Variable
#
# **Goal.** Write a computation down before running it; let a function write the backward part.
#
# **Time.** 35 minutes
#
# **Needs.** step 15: operators with slots and names, `x@GRAD`

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# ## Part E: programs
#
# Until now, describing a computation and doing it were one thing, or nearly: a network held names,
# but it had to be run to find out a shape. Now we separate the two for good:
#
# | | what it is | what it holds |
# |---|---|---|
# | **description** | a `Program`: blocks of ops and variables | names, shapes, types. No number. |
# | **execution** | `run`: walks the ops from top to bottom | a *scope*: name → array |
#
# Large systems work like this: describe once, run a million times, on another machine if you like.
# `torch.compile` does it, too; you will see its program beside yours.
#
# This part has four steps, 17 to 20, and a new file. The ideas are those of steps 13 to 15. What
# changes is this:
#
# | you know | now | what is new |
# |---|---|---|
# | `register` | `OPS` | one rule per *input*, so that a gradient nobody wants costs nothing |
# | `Operator` | `Op` | holds names only; `compute` does the work |
# | `build_grad_op` | `make_grad_op` | it notes which op it belongs to |
# | `NetOp` | `Block` | has variables, and a parent |

# %%
import inspect
from collections import ChainMap

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why
# from minigrad.course.explore import explore

# %% [markdown]
# ## The table of ops
#
# One entry per op type: a **kernel** that computes it, and **one gradient rule per input**. The
# parameter names are the slots. A rule reads inputs (`x`), the output (`out`), or its gradient
# (`out_grad`). It names only what it needs: `exp` reads its output and never its input, `add`
# reads no value at all.

# %%
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


# %% [markdown]
# **Predict, then run.** What does the rule of `mul` for `x` read? And what does it make of `y = 4`
# and `out_grad = 10`?

# %% tags=["active-ipynb"]
# print(OPS["mul"].kernel(3.0, 4.0))
# rule = OPS["mul"].rules["x"]
# print(parameters(rule), rule(y=4.0, out_grad=10.0))

# %% [markdown]
# It reads `y`, the other factor, and the gradient that arrives. The product is $10 \cdot 4$.

# %% [markdown]
# ## The four records
#
# A **Variable** says what is known about a name; its value is not among it. `persistable` marks a
# parameter, which lives on from run to run. `stop_gradient` waits for the next step.

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
# An **Op** is one line of a program: a type, and which names stand in which slot. That decides what
# is computed. `role` and `forward_op` are for the reader: on which side it stands, and which op a
# grad op belongs to.

# %%
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


# %% [markdown]
# How numbers come to an op, if there are any: fetch an array for each name, call the kernel. For a
# grad op the kernel is the rules themselves, one for each gradient it writes.

# %%
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


# %% [markdown]
# A **Block** is a list of ops and the variables they speak of. A name that it does not know is looked
# up in its parent, like a variable of an outer function. Block 0 has none: its parent is -1.
# (`forward_block` waits for step 19.) `append_op` writes a line and creates its output variable. It
# finds the shape by a trick: it lets the kernel run once on ones.

# %%
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
# `run_block` walks from top to bottom: read arrays from the scope, compute, write arrays into the
# scope.
#
# `run` keeps what it was given apart from what it makes: a fresh dictionary in front of the given
# one.

# %%
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


# %% [markdown]
# One description, two executions:

# %% tags=["active-ipynb"]
# values = {"a": 2.0, "b": 3.0, "d": 4.0}
# print(run(program, values)["e"], run(program, {"a": 1.0, "b": 1.0, "d": 7.0})["e"])

# %% [markdown]
# Forget a value, and the executor says which op missed it:

# %% tags=["active-ipynb", "raises-exception"]
# run(program, {"a": 2.0, "b": 3.0})

# %% [markdown]
# ## The grad op of an op
#
# The four processes of step 13. The rules say what must be read; the slots say under which names.
# Nothing is computed here either.

# %%
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


# %% tags=["active-ipynb"]
# add, mul = program.blocks[0].ops
# print(make_grad_op(mul))
# print(make_grad_op(add))

# %% [markdown]
# ## A mistake: grad ops in forward order
#
# Two grad ops are needed. Walk over the ops, append the grad op of each:
#
# **Predict, then run.** Which op will complain, and about which name?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# wrong = product()
# block = wrong.blocks[0]
# one = {"shape": (), "value": 1.0}
# block.ops.append(Op("fill_constant", {}, {"out": ["e@GRAD"]}, one, role="backward"))
# for op in block.ops[:2]:
#     block.ops.append(make_grad_op(op))
# print(wrong)
# run(wrong, values)

# %% [markdown]
# `add_grad` waits for `c@GRAD`, which `mul_grad` makes *below* it. The picture of this program
# shows it: `c@GRAD` enters `add_grad` from nowhere.

# %% tags=["active-ipynb", "mistake"]
# mg.draw(wrong)

# %% [markdown]
# Gradients spread from the end to the beginning. So the traversal goes in **reverse**.
#
# It begins with the **seed**, the op that writes the first gradient. From there it keeps a growing
# set of *needed* names, at first only the loss. An op counts when it makes something needed. Then
# its inputs are needed too. A metric behind the loss, or a branch that leads elsewhere, gets no
# grad op.
#
# The grad ops go into `target_block`. Today that is the same block: **forward and backward are one
# program**.
#
# **17e. The engine: append_backward_ops.** Write the traversal. An op without rules, such as
# `fill_constant`, has no grad op: `OPS[op.type].rules` is empty. A seed writes `loss@GRAD`; what it
# writes, without the `@GRAD`, is the first needed name.

# %% tags=["exercise", "ex-17e", "engine"]
def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    ### BEGIN SOLUTION
    needed = {name.removesuffix("@GRAD") for seed in seeds for name in seed.writes}
    ops = list(seeds)
    for op in reversed(block.ops):
        if needed & set(op.writes) and OPS[op.type].rules:
            needed |= set(op.reads)
            ops.append(make_grad_op(op))
    target_block.ops += ops
    ### END SOLUTION


# check("17e", append_backward_ops, Program, Op)

# %% [markdown]
# <!-- solution 17e -->

# %% [markdown]
# `append_backward` is what everyone calls. Users of such a system write no backward at all: they
# describe the forward, and this function does the rest. Only whoever adds an *op* writes a rule,
# once, in the table.
#
# 1. check the loss: it must be a scalar, since we start with *one* number, 1.0;
# 2. make the seed, an op that fills `loss@GRAD` with 1.0;
# 3. append it and the grad ops;
# 4. create the variables that the new ops write, each in the shape of its forward variable;
# 5. return the pairs (parameter, gradient), which an optimizer goes through.

# %%
def append_backward(loss, parameter_list=None):
    """Append the backward part of a scalar loss to its block; return the pairs."""
    block, start = loss.block, len(loss.block.ops)
    if loss.shape != ():
        raise ValueError(f"the loss must be a scalar, and {loss.name!r} has shape {loss.shape}: "
                         "append a mean or a reduce_sum")
    if grad_name(loss.name) in block.vars:
        raise ValueError(f"the backward part of {loss.name!r} is already there: build anew")
    one = {"shape": (), "value": 1.0}
    seed = Op("fill_constant", {}, {"out": [grad_name(loss.name)]}, one, role="backward")
    append_backward_ops(block, block, [seed])
    for op in block.ops[start:]:
        for name in op.writes:
            if name not in block.vars:
                block.create_var(name, block.var(name.removesuffix("@GRAD")).shape)
    for name in parameter_list or ():
        if grad_name(name) not in block.vars:
            raise ValueError(f"{name!r} has no gradient: it does not lead to {loss.name!r}")
    wanted = parameter_list or [v.name for v in block.vars.values() if v.persistable]
    return [(block.var(name), block.var(grad_name(name))) for name in wanted
            if grad_name(name) in block.vars]


# %% tags=["active-ipynb"]
# program = product()
# pairs = append_backward(program.blocks[0].var("e"))
# print(program)
# print()
# for parameter, gradient in pairs:
#     print(parameter, "->", gradient)

# %% [markdown]
# Two forward ops, one seed, two grad ops. Still nothing has been computed. The executor needs no
# change for this: it walks from top to bottom, as before.

# %% tags=["active-ipynb", "picture-B"]
# scope = run(program, values)
# print({name: float(scope[name]) for name in ("e", "a@GRAD", "b@GRAD", "d@GRAD")})
# assert (scope["a@GRAD"], scope["b@GRAD"], scope["d@GRAD"]) == (4, 4, 5)
# mg.draw((program, scope))

# %% [markdown]
# Read the right side from below: seed, `mul_grad`, `add_grad`. Each stands beside the op it
# belongs to. This is not a drawing *of* the backward pass: the boxes are lines #2 to #4 of the
# program, and these lines ran.

# %% [markdown]
# ## Build once, run often
#
# A line through three points. The program is built once. Each pass through the loop only runs
# it again, with other weights. The pairs say what to update.

# %% tags=["active-ipynb"]
# fit = Program()
# block = fit.blocks[0]
# block.create_var("x", (3, 2))
# block.create_var("t", (3, 1))
# block.create_var("w", (2, 1), persistable=True)
# block.append_op("matmul", "x", "w", out="p")
# block.append_op("sub", "p", "t", out="r")
# block.append_op("square", "r", out="s")
# pairs = append_backward(block.append_op("mean", "s", out="loss"))
# length = len(block.ops)
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
# assert len(block.ops) == length == 9
# assert np.allclose(values["w"], [[2], [1]], atol=1e-4)

# %% [markdown]
# ## Watch it being written
#
# **Move the slider.** The cursor `>` climbs up the forward ops; below the line, the grad ops pile
# up. How far apart do an op and its grad op stand in the list?

# %% tags=["active-ipynb", "interactive"]
# def cursor(position):
#     ops = fit.blocks[0].ops
#     forward = [op for op in ops if op.role == "forward"]
#     shown = Program()
#     shown.blocks[0].vars = fit.blocks[0].vars
#     shown.blocks[0].ops = ops[:len(forward) + 1 + position]
#     mark = len(forward) - position
#     lines = [f"{'>' if n == mark else ' '} #{n} {op}" for n, op in enumerate(shown.blocks[0].ops)]
#     lines.insert(len(forward), "  " + "-" * 40)
#     return ["\n".join(lines), mg.draw(shown)]
#
#
# explore(cursor, position=(0, 4, 2))

# %% tags=["active-ipynb"]
# print(cursor(2)[0])

# %% [markdown]
# First op, last grad op: the list is mirrored. `#0` belongs to `#8`, `#3` to `#5`.

# %% [markdown]
# Did you notice `t@GRAD`? It is computed, and nobody asked for it. Step 18 removes such ops, and
# adds up gradients that are written twice.
#
# ## Exercises
#
# **17a.** Write a function that appends the backward part and returns the new lines, as strings.

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
# of `v` gets the gradient 1, and returns the new variable. For a `v` called `v`, call it `v_total`.

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
# But `torch.compile` needs one, and makes what this part builds: a program for the forward pass and
# one for the backward pass, before anything is optimised. AOTAutograd, the part that does it, can
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
# In Paddle's static engine Fluid this is the program you have just built: blocks of ops
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
# | the table of ops | `minigrad.primitives.registry:REGISTRY` |
# | make_grad_op | `minigrad.static.backward.grad_ops:make_grad_ops` |
# | append_backward | `minigrad.static.backward.append_backward:append_backward` |
# | run | `minigrad.static.run.executor:Executor` |
