# %% [markdown]
# # Capstone. Your own function in five pictures
#
# **Goal.** Bring a function or a small network of your own, see its backward graph in every
# engine, step through it, and hunt a planted bug.
#
# **Time.** 45 minutes, or as long as you like
#
# **Needs.** step 20

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# The ladder is climbed. This page has no exercises and no new idea. It has one cell that is yours,
# and tools that take whatever you put there.

# %%
import numpy as np

import minigrad as mg
from minigrad import static
from minigrad.primitives.registry import REGISTRY
from minigrad.static import net

# %% [markdown]
# ## Your cell
#
# Change it. Use the functions of `mg` and Python's operators; the result must be one number. Each
# value is an array, and the name in `VALUES` must be the name of the parameter. `WANTED` says
# which gradients you want.
#
# Then choose *Run all cells below*.

# %% tags=["active-ipynb"]
# def mine(x, w, b):
#     """A layer, a bend, and the weights themselves as a penalty."""
#     h = mg.tanh(mg.matmul(x, w) + b)
#     return mg.mean(h ** 2) + 0.1 * mg.sum(w * w)
#
#
# VALUES = {
#     "x": np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]]),
#     "w": np.array([[0.8, -0.3], [0.1, 0.6]]),
#     "b": np.array([0.2, -0.1]),
# }
# WANTED = ["w", "b"]

# %% [markdown]
# ## Written down
#
# Called with *variables* instead of arrays, your function computes nothing. Every operation writes
# a line. This is your function as a program. What you want a gradient of is a parameter, all the
# rest is data.

# %%
def written(function, values, wanted):
    """The program a function writes when it is called with variables, and its result."""
    strangers = set(wanted) - set(values)
    if strangers:
        raise ValueError(f"WANTED names {', '.join(sorted(strangers))}; VALUES has no such name")
    program = static.Program()
    with static.program_guard(program):
        variables = {name: static.parameter(name, value) if name in wanted
                     else static.data(name, np.shape(value)) for name, value in values.items()}
        result = function(**variables)
    unused = set(values) - {name for op in program.global_block().ops for name in op.input_names}
    if unused:
        raise ValueError(f"your function does not use {', '.join(sorted(unused))}: "
                         "take it out of VALUES, WANTED and the parameters")
    if not isinstance(result, static.Variable) or np.prod(result.shape) != 1:
        raise ValueError(f"your function has to return one number, not {result!r}: "
                         "end it with mg.sum or mg.mean")
    return program, result


def feed_of(values, wanted):
    """What is given to a run: the data, not the parameters."""
    return {name: value for name, value in values.items() if name not in wanted}


# %% tags=["active-ipynb"]
# VALUES = {name: np.array(value, dtype=float) for name, value in VALUES.items()}
# program, result = written(mine, VALUES, WANTED)
# print(program)

# %% [markdown]
# ## The engines
#
# Of the five engines only the first is missing here, backward by hand: that would be yours to
# write. In its place stands the judge of step 1. Four engines follow, and the fifth picture is
# text: the program's own listing.
#
# **Linked nodes** replay the program, one object for each operation. They are the same forty lines
# as in step 20. Two things are new: a number that stands in the program itself is a constant, and
# where shapes were stretched, the gradient is summed back (step 9).

# %%
class Variable:
    """A box that knows the function that filled it."""

    def __init__(self, data, creator=None):
        self.data = data
        self.grad = None
        self.creator = creator


class Function:
    """One use of an operation of the table, with its constants."""

    def __init__(self, primitive, slots, attrs):
        self.primitive = primitive
        self.slots = slots                          # slot -> box
        self.inputs = tuple(slots.values())
        self.constants = {**primitive.attrs, **attrs}
        arguments = [slots[slot].data if slot in slots else self.constants[slot]
                     for slot in primitive.inputs]
        attrs = {name: self.constants[name] for name in primitive.attrs}
        self.output = Variable(primitive.kernel(*arguments, **attrs), self)

    def backward(self, out_grad):
        """The gradient of each box, by the rules of the table; None where it has none."""
        known = {**self.constants, "out": self.output.data, "out_grad": out_grad}
        for slot, box in self.slots.items():
            known |= {slot: box.data, f"{slot}_shape": np.shape(box.data),
                      f"{slot}_dtype": np.asarray(box.data).dtype}
        found = {}
        for rule in self.primitive.wanted_rules(set(self.slots)):
            made = rule.function(*(known[name] for name in rule.reads))
            found |= zip(rule.inputs, made if rule.joint else [made], strict=True)
        return [self.fitted(found.get(slot), box) for slot, box in self.slots.items()]

    def fitted(self, grad, box):
        """Summed back to the shape of the box, where the operation stretched it."""
        if grad is None or not self.primitive.broadcasts:
            return grad
        extra = np.ndim(grad) - np.ndim(box.data)
        grad = np.sum(grad, axis=tuple(range(extra)))
        thin = tuple(i for i, n in enumerate(np.shape(box.data)) if n == 1 != np.shape(grad)[i])
        return np.sum(grad, axis=thin, keepdims=True) if thin else grad


def by_links(program, result, values):
    """Replay a program with linked nodes; returns the boxes by name."""
    boxes = {name: Variable(np.asarray(value)) for name, value in values.items()}
    for op in program.global_block().ops:
        primitive = REGISTRY.get(op.type)
        if primitive is None or primitive.list_input or len(op.output_names) != 1:
            raise ValueError(f"linked nodes cannot replay {op.type!r}: on this page an operation "
                             "has a fixed number of inputs and one result")
        named = type(op.type.title().replace("_", ""), (Function,), {})
        slots = {slot: boxes[name] for slot, (name,) in op.inputs.items()}
        boxes[op.output_names[0]] = named(primitive, slots, op.attrs).output
    boxes[result.name].grad = np.ones_like(boxes[result.name].data)
    for op in reversed(program.global_block().ops):
        box = boxes[op.output_names[0]]
        if box.grad is None:                        # nobody downstream uses it
            continue
        parts = box.creator.backward(box.grad)
        for each, part in zip(box.creator.inputs, parts, strict=True):
            if part is not None:
                each.grad = part if each.grad is None else each.grad + part
    return boxes


# %% [markdown]
# The other three do not need your function in pieces.

# %%
def by_grad_fn(function, values, wanted):
    """Call the function with tensors; returns the result and the tensors by name."""
    tensors = {name: mg.tensor(value, requires_grad=name in wanted, name=name)
               for name, value in values.items()}
    result = function(**tensors)
    result.backward(retain_graph=True)
    return result, tensors


def by_net(program, result, values, wanted):
    """The same operators as a net, and the net of its gradient; both run in one scope."""
    forward = net.NetOp([net.Operator(op.type, op.inputs, op.outputs, op.attrs)
                         for op in program.global_block().ops])
    backward = net.Backward(forward, no_grad=set(values) - set(wanted))
    scope = net.Scope(values)
    forward.run(scope)
    scope[f"{result.name}@GRAD"] = np.ones_like(scope[result.name])
    backward.run(scope)
    return (forward, backward), scope


def by_program(function, values, wanted):
    """The program with its backward part, and every value after one run."""
    program, result = written(function, values, wanted)
    static.append_backward(result)
    names = list(program.global_block().vars)
    found = static.Executor().run(program, feed=feed_of(values, wanted), fetch_list=names)
    return program, dict(zip(names, found, strict=True))


def by_judge(function, values, name, eps=1e-6):
    """Central differences of the function for every number of one value."""
    slopes = np.zeros_like(values[name])
    for place in np.ndindex(slopes.shape):
        ends = []
        for step in (eps, -eps):
            moved = {**values, name: values[name].copy()}
            moved[name][place] += step
            ends.append(function(**{each: mg.tensor(value) for each, value in moved.items()}).item())
        slopes[place] = (ends[0] - ends[1]) / (2 * eps)
    return slopes


# %% [markdown]
# **Do they agree on your function?** The engines to $10^{-12}$, the judge as well as it can.

# %% tags=["active-ipynb"]
# boxes = by_links(program, result, VALUES)
# loss, tensors = by_grad_fn(mine, VALUES, WANTED)
# nets, scope = by_net(program, result, VALUES, WANTED)
# whole, found = by_program(mine, VALUES, WANTED)
#
# for name in WANTED:
#     columns = {"linked nodes": boxes[name].grad, "grad_fn": tensors[name].grad.numpy(),
#                "net": scope[f"{name}@GRAD"], "program": found[f"{name}@GRAD"]}
#     truth = by_judge(mine, VALUES, name)
#     for engine, gradient in columns.items():
#         assert np.max(np.abs(gradient - columns["program"])) < 1e-12, (name, engine)
#         assert np.allclose(gradient, truth, rtol=1e-5, atol=1e-7), (name, engine)
#     print(f"{name}: four engines and the judge agree")

# %% [markdown]
# If the judge disagrees with all four: your function may have a kink where you stand (`abs` at 0,
# for example), or the values may be so large that `eps` is too small. The valley of step 1 again.
#
# ## Five pictures

# %% tags=["active-ipynb", "interactive", "picture-F", "picture-B"]
# from minigrad.course.explore import explore
#
#
# def show(engine):
#     if engine == "linked nodes":
#         return mg.draw(boxes[result.name], names=boxes, direction="TB")
#     if engine == "grad_fn":
#         return mg.draw(loss, names={**tensors, "result": loss}, direction="TB")
#     if engine == "net":
#         return mg.draw(nets)
#     return mg.draw((whole, found)) if engine == "program" else str(whole)
#
#
# explore(show, engine=["program", "grad_fn", "linked nodes", "net", "listing"])

# %% [markdown]
# ## Step through
#
# Press *forward*, or use the arrow keys. The player asks you for the next value before it shows
# it.

# %% tags=["active-ipynb", "interactive"]
# mg.play((whole, found), prediction=True)

# %% [markdown]
# ## Why is this gradient what it is?
#
# `mg.why` follows the paths by which a gradient came, with the contribution of each. Their sum is
# the gradient.

# %% tags=["active-ipynb"]
# print(mg.why(tensors[WANTED[0]]))

# %% [markdown]
# ## The hunt
#
# `plant` changes the backward part of your program in one place. It may let an operator read
# another value, drop a part of a sum, or begin with a wrong number. The result of the forward
# stays right.
#
# 1. Run the cell. It says which gradients are wrong now. That is your first clue.
# 2. Look at the picture. Follow the wrong gradients back to where they part from the right ones.
# 3. Call `hunt.guess(number)` with the number of the operator, such as `hunt.guess(12)`.
#
# Another `seed` hides another bug.

# %% tags=["active-ipynb"]
# from minigrad.course.checks.capstone import plant
#
# feed = feed_of(VALUES, WANTED)
# hunt = plant(by_program(mine, VALUES, WANTED)[0], feed, WANTED, seed=1)
# names = [f"{name}@GRAD" for name in WANTED]
# for name, gradient in zip(names, static.Executor().run(hunt.program, feed=feed, fetch_list=names),
#                           strict=True):
#     print(name, "is right" if np.allclose(gradient, found[name]) else "is wrong")
# mg.draw(hunt.program)

# %% tags=["active-ipynb"]
# print(hunt.guess(0))

# %% [markdown]
# ## Where to go from here
#
# * The pages in `docs/`: how the engines were designed, and why.
# * Read the package. You know every idea in it: `minigrad/primitives/registry.py` first, then
#   `minigrad/eager/`, then `minigrad/static/`.
# * Read the big ones. `torch/csrc/autograd/engine.cpp` is your `walk` of step 10. `backward.py` in
#   Paddle's `base` folder is your step 18.
