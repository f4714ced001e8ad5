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
# The way out: an op may hold a **block**. `while` runs its block again and again, `if_else` runs
# one of two. And the grad op of such an op holds the *grad block* of that block.
#
# The step has two halves, and a good place to rest between them: first the loop, then the branch.
# One run of a loop's body is a **step**, as in step 16, and its scope is a **step scope**.

# %%
import inspect
from collections import ChainMap, Counter
from copy import copy

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why
# from minigrad.course.explore import explore

# %% [markdown]
# Carried over from step 18:

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


# %% tags=["carried"]
OPS.update({
    "sum": OpInfo(lambda *x: sum(x)),
    "fill_zeros_like": OpInfo(lambda x: np.zeros_like(x)),
    "split": OpInfo(lambda x: tuple(np.split(x, 2)), outputs=("first", "second"),
                    x=lambda first_grad, second_grad: np.concatenate([first_grad, second_grad])),
})


# %% tags=["carried"]
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
    return result, dropped


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
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# Three more small ops. Counting and comparing have no gradient, so they have no rules.

# %%
OPS.update({
    "assign": OpInfo(lambda x: x, x=lambda out_grad: out_grad),
    "increment": OpInfo(lambda x: x + 1),
    "less_than": OpInfo(lambda x, y: x < y),
})

# %% [markdown]
# ## First half: the loop
#
# ### Described
#
# $y = x \cdot w \cdot w \cdots w$, with $n$ factors $w$. In Python:
#
# ```python
# s, i, more = x, 0, 0 < n
# while more:
#     s, i, more = s * w, i + 1, i + 1 < n
# ```
#
# Three values are **carried** from step to step: `s`, `i`, `more`. `w` and `n` come from outside and
# stay what they are: they are **shared** by all steps.
#
# The body is a block of its own, with block 0 as its parent. It never writes a name twice: it
# *reads* `s` and *writes* `s_next`. The `while` op says what becomes what: `carry = {"s":
# "s_next", …}`.
#
# `hold` is a helper for writing such ops. `state` says for each carried value: where it starts,
# what it becomes, what it is called afterwards.

# %% tags=["active-ipynb", "picture-F"]
# def hold(block, type, condition, state, **blocks):
#     """Append a while or an if_else. state: inner name -> (start, following, name afterwards)."""
#     inside = [op for held in blocks.values() for op in held.ops]
#     own = {name for held in blocks.values() for name in held.vars}
#     shared = dict.fromkeys(name for op in inside for name in op.reads if name not in own)
#     starts, following, ends = zip(*state.values())
#     scopes = block.create_var(f"step_scopes_{len(block.ops)}", stop_gradient=True)
#     attrs = {name: held.idx for name, held in blocks.items()}
#     attrs |= {"condition": condition, "carry": dict(zip(state, following))}
#     inputs = {"x": list(starts), "shared": list(shared)}
#     if condition not in state:
#         inputs["condition"] = [condition]
#     outputs = {"out": list(ends), "step_scopes": [scopes.name]}
#     block.ops.append(Op(type, inputs, outputs, attrs))
#     for name, start, end in zip(state, starts, ends):
#         flag = blocks["sub_block"].var(name).stop_gradient
#         block.create_var(end, block.var(start).shape, stop_gradient=flag)
#     return block.var(ends[0])
#
#
# def power():
#     program = Program()
#     main = program.blocks[0]
#     main.create_var("x", persistable=True)
#     main.create_var("w", persistable=True)
#     main.create_var("n", stop_gradient=True)
#     main.create_var("zero", stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = program.create_block(parent=0)
#     body.create_var("s")
#     body.create_var("i", stop_gradient=True)
#     body.create_var("more", stop_gradient=True)
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
# ### Executed
#
# **Predict, then run.** `compute` asks the table for a kernel. Which one does it have for
# `while`?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# OPS["while"].kernel

# %% [markdown]
# None, and there cannot be one: a kernel makes arrays out of arrays, and a `while` must run a
# *block*. Each step gets a scope of its own, a **step scope**, in front of the outer one:
#
# * carried values are put in fresh;
# * shared values are found by looking up;
# * what the body writes stays in the step scope.
#
# The step scopes are kept. They are an output of the op, like any other.
#
# The condition chooses the block of the next step: `sub_block` or `else_block`. A `while` has no
# `else_block`. So when its condition is false, there is nothing to run, and the loop ends.

# %%
def run_steps(op, scope, blocks):
    """Run a held block step by step, each step in a scope of its own; return ``op.writes``.

    ``while`` goes on as long as the condition holds; ``if_else`` makes one step in one block.
    """
    carry, condition = op.attrs["carry"], op.attrs["condition"]
    now, steps = [scope[name] for name in op.inputs["x"]], []
    while op.type == "while" or not steps:
        step = scope.new_child(dict(zip(carry, now, strict=True)))
        held = "sub_block" if step[condition] else "else_block"
        if held not in op.attrs:
            break
        if len(steps) == 10_000:
            raise RuntimeError(f"{op.type} made 10000 steps: does {condition!r} ever become false?")
        run_block(blocks[op.attrs[held]], step)
        steps.append(step)
        now = [step[name] for name in carry.values()]
    return [*now, steps]


# %% [markdown]
# `run_block` asks whether an op holds a block. It has one more branch for the grad ops that we make
# further down.

# %%
def run_block(block, scope):
    """Execute the ops of a block from first to last on a scope, name → array."""
    for number, op in enumerate(block.ops):
        for name in op.reads:
            if name not in scope:
                raise RuntimeError(f"#{number} {op.type} reads {name!r}, which nobody wrote or fed")
        if "sub_block" in op.attrs:
            run_held = run_steps_grad if op.type.endswith("_grad") else run_steps
            made = run_held(op, scope, block.program.blocks)
        else:
            made = compute(op, scope)
        scope.update(zip(op.writes, made, strict=True))
        scope.pop("@EMPTY@", None)          # nobody wants it


# %% tags=["active-ipynb"]
# values = {"x": 2.0, "w": 3.0, "n": 3, "zero": 0}
# scope = run(y.block.program, values)
# for number, step in enumerate(scope["step_scopes_1"]):
#     print(f"step {number}:", dict(sorted(step.maps[0].items())))
# print("y =", scope["y"])
# assert scope["y"] == 2 * 3 ** 3

# %% [markdown]
# The same description runs for every `n`. A loop that never ends says so:

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# run(y.block.program, values | {"n": np.inf})

# %% [markdown]
# ### One step backwards
#
# Backward, the last step comes first. We know the gradient of what a step handed on (`s_next`), and
# we want two things:
#
# * the gradient of what it got (`s`): to be handed to the step before;
# * the gradient of what it shared (`w`): every step has a part in it.
#
# By hand first. The body is one `mul`, so `s@GRAD = s_next@GRAD · w` and `w@GRAD = s_next@GRAD ·
# s`.
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
# **Predict, then run.** Why keep all the step scopes? Suppose we keep the last one only: is the sum
# too small or too large?

# %% tags=["active-ipynb", "mistake"]
# gradient, parts = 1.0, []
# for step in [scope["step_scopes_1"][-1]] * 3:
#     parts.append(gradient * step["s"])
#     gradient = gradient * step["w"]
# print("parts of w@GRAD:", parts, "sum:", sum(parts))
# assert sum(parts) == 234

# %% [markdown]
# 234 instead of 54: every step saw the last `s`. So a scope cannot be thrown away when its block
# ends, as a function's would be. Backward comes later and reads it.
#
# **Predict, then run.** The gradient of `s` is *overwritten*, the parts of `w@GRAD` are *added up*.
# What comes out if it is the other way round?

# %% tags=["active-ipynb", "mistake"]
# shared, carried = 0.0, 1.0
# for step in reversed(scope["step_scopes_1"]):
#     shared = carried * step["s"]                  # overwritten
#     carried = carried + carried * step["w"]       # added up
# print("w@GRAD:", shared, " x@GRAD:", carried)
# assert (shared, carried) == (32, 64)

# %% [markdown]
# Both wrong: 54 and 27 are right. `s` is another value in every step, so each gradient belongs to
# that value alone. `w` is one value for all steps, so all parts belong to it.
#
# ### The grad op holds the grad block
#
# `make_steps_grad_op` is where the recursion begins. For each block the op holds:
#
# 1. create a new block, the grad block;
# 2. fill it with `append_backward_ops`, the function that called us;
# 3. note its number in the grad op.
#
# What is the seed of a grad block? The gradient of the loop's output, `y@GRAD`, comes in. It is the
# gradient of what a step handed on. So the seed is an `assign`: `s_next@GRAD = assign(x=y@GRAD)`.
#
# Carried values without gradient (`i`, `more`) are left out.

# %%
def make_steps_grad_op(op, target_block):
    """The grad op of an op that holds blocks; it holds one grad block for each of them."""
    program = target_block.program
    body = program.blocks[op.attrs["sub_block"]]
    flows = [(name, start, end) for name, start, end in
             zip(op.attrs["carry"], op.inputs["x"], op.outputs["out"], strict=True)
             if not body.var(name).stop_gradient]
    attrs = op.attrs | {"carry": {name: op.attrs["carry"][name] for name, _, _ in flows}}
    for held in [key for key in ("sub_block", "else_block") if key in op.attrs]:
        block = program.blocks[op.attrs[held]]
        grad_block = program.create_block(parent=target_block.idx, forward_block=block.idx)
        attrs[held] = grad_block.idx
        seeds = [Op("assign", {"x": [grad_name(end)]}, {"out": [grad_name(attrs["carry"][name])]},
                    role="backward") for name, _, end in flows]
        append_backward_ops(block, grad_block, seeds)
    return Op(f"{op.type}_grad",
              {"shared": op.inputs["shared"], "step_scopes": op.outputs["step_scopes"],
               "out_grad": [grad_name(end) for _, _, end in flows]},
              {"x_grad": [grad_name(start) for _, start, _ in flows],
               "shared_grad": [grad_name(name) for name in op.inputs["shared"]]},
              attrs, role="backward", forward_op=op)


# %% [markdown]
# `append_backward_ops` and `adjust` each learn one thing: if an op holds a block, go into it.
#
# A name that a block declares itself hides the same name outside. So for such a name the `no_grad`
# of the outer block does not count; its own `stop_gradient` does. The gradients that a grad block
# gets from its op are `given`.

# %%
def append_backward_ops(block, target_block, seeds):
    """Append the seeds, then the grad op of each op of block that leads to them, last op first."""
    needed = {name.removesuffix("@GRAD") for seed in seeds for name in seed.writes}
    ops = list(seeds)
    for op in reversed(block.ops):
        if not needed & set(op.writes):
            continue
        if "sub_block" in op.attrs:
            needed |= set(op.reads)
            ops.append(make_steps_grad_op(op, target_block))
        elif OPS[op.type].rules:
            needed |= set(op.reads)
            ops.append(make_grad_op(op))
    target_block.ops += ops


def adjust(block, start, no_grad, given=()):
    """Run the passes over the grad ops of block, from number start on; return their gradients."""
    ops = add_up_repeated_outputs(block.ops[start:])
    block.ops[start:] = remove_no_grad_branch(ops, no_grad, given)[0]
    blocks = block.program.blocks
    for op in block.ops[start:]:
        for held in [key for key in ("sub_block", "else_block") if key in op.attrs]:
            grad_block = blocks[op.attrs[held]]
            own = blocks[grad_block.forward_block].vars
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
# y = power()
# append_backward(y)
# print(y.block.program)

# %% [markdown]
# Block 2 is the grad block. Look at its head: its **parent** is block 0, the block that holds the
# grad op. Its **forward block** is block 1: a second link, for looking up the shape of `s`.

# %% tags=["active-ipynb"]
# for block in y.block.program.blocks:
#     print(f"block {block.idx}: parent {block.parent}, forward block {block.forward_block}")
# assert [block.parent for block in y.block.program.blocks] == [-1, 0, 0]
# assert y.block.program.blocks[2].forward_block == 1

# %% [markdown]
# ### The loop, backwards
#
# What we did by hand, with the grad block instead of our two lines. Each step backwards runs *in
# the step scope of that step*. There it finds its `s`, and there it leaves its gradients. Only what
# was written there counts (`made`), not what a look-up would find further out.
#
# `flowing` is **overwritten** from step to step, `total` is **added up**.
#
# **19e. The engine: the loop in reverse.** `steps` are the step scopes in the order of the forward
# pass. For each of them, last one first:
#
# 1. put the gradients that flow into it, under the names `op.inputs["out_grad"]`, with
#    `step.update(...)`;
# 2. run its grad block. A step whose condition holds ran `sub_block`, any other `else_block`:
#    `blocks[op.attrs[...]]` is the grad block of that one;
# 3. collect what the grad block wrote, `made = step.maps[0]`. A carried value whose gradient is not
#    in it gets zeros in the shape of `step[name]`; a shared one gets nothing added.

# %% tags=["exercise", "ex-19e", "engine"]
def run_steps_grad(op, scope, blocks):
    """Run the grad block of each step, last step first; return ``op.writes``.

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
        run_block(blocks[op.attrs[held]], step)
        made = step.maps[0]
        flowing = {name: made.get(grad_name(name), np.zeros(np.shape(step[name])))
                   for name in flowing}
        total = {name: total[name] + made.get(grad_name(name), 0.0) for name in total}
    ### END SOLUTION
    results = {"x_grad": flowing, "shared_grad": total}
    return [gradient for slot in op.outputs for gradient in results[slot].values()]


# check("19e", run_steps_grad, run, append_backward, power, hold, Program)

# %% [markdown]
# <!-- solution 19e -->

# %% tags=["active-ipynb", "picture-B"]
# scope = run(y.block.program, values)
# print({name: float(scope[name]) for name in ("y", "x@GRAD", "w@GRAD")})
# assert (scope["x@GRAD"], scope["w@GRAD"]) == (27, 54)
# mg.draw(y.block.program)

# %% [markdown]
# Four frames. Above, block 0 with its two sides; below, the loop body and one step backwards. The
# thick lines are the hand-over: `s_next` becomes the next step's `s`; the gradient goes round the
# other way. A dashed name with the words *block 0*, like `w`, is looked up in block 0.
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
# The gradient goes straight through: `y` *is* `x`. And `w@GRAD` is zero, not missing. An optimizer
# that goes through the pairs finds what it was promised.

# %% [markdown]
# **Move the slider.** The table shows the step scopes: one row per step, with the gradients that
# the grad block left there. Read the gradients from the bottom up. Below is the program with its
# values.

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

# %% tags=["active-ipynb"]
# print(steps(4)[0])

# %% [markdown]
# ## Second half: the branch
#
# `if_else` holds two blocks and makes exactly one step, in one of them. Nothing else is new: the
# functions above do it already.
#
# $y = x \cdot w$ if $x$ is positive, else $y = x^2$.

# %% tags=["active-ipynb"]
# def branch():
#     program = Program()
#     main = program.blocks[0]
#     main.create_var("x", persistable=True)
#     main.create_var("w", persistable=True)
#     main.create_var("zero", stop_gradient=True)
#     main.append_op("less_than", "zero", "x", out="positive")
#     yes, no = program.create_block(parent=0), program.create_block(parent=0)
#     for block in (yes, no):
#         block.create_var("v")
#     yes.append_op("mul", "v", "w", out="result")
#     no.append_op("square", "v", out="result")
#     return hold(main, "if_else", "positive", {"v": ("x", "result", "y")},
#                 sub_block=yes, else_block=no)
#
#
# y = branch()
# append_backward(y)
# print(y.block.program)
# mg.draw(y.block.program)

# %% [markdown]
# Two forward blocks, two grad blocks. Which of them runs is seen at run time.
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
#     program = Program()
#     main = program.blocks[0]
#     main.create_var("x", persistable=True)
#     for name in ("n", "zero", "one"):
#         main.create_var(name, stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = program.create_block(parent=0)
#     body.create_var("p")
#     body.create_var("i", stop_gradient=True)
#     body.create_var("more", stop_gradient=True)
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
#     program = Program()
#     main = program.blocks[0]
#     main.create_var("x", persistable=True)
#     main.create_var("w", persistable=True)
#     for name in ("n", "zero", "limit"):
#         main.create_var(name, stop_gradient=True)
#     main.append_op("less_than", "zero", "n", out="any")
#     body = program.create_block(parent=0)                 # block 1: the loop body
#     body.create_var("s")
#     body.create_var("i", stop_gradient=True)
#     body.create_var("more", stop_gradient=True)
#     body.append_op("less_than", "s", "limit", out="small")
#     low, high = program.create_block(parent=1), program.create_block(parent=1)    # 2 and 3
#     for block in (low, high):
#         block.create_var("v")
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
# `loss.backward()` needs none of this: Python's own `for` and `if` run, and the graph of step 10
# records what was computed, unrolled. The numbers are the same. Recorded with PyTorch 2.13.0:
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
# | the grad op that holds grad blocks | `minigrad.static.backward.sub_blocks:control_grad_op` |
# | scopes with a parent | `minigrad.static.run.executor:Scope` |
