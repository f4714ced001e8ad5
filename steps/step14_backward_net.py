# %% [markdown]
# # Step 14. A network is an operator
#
# **Goal.** Put operators into networks, networks into networks, and get the whole backward network
# with one call.
#
# **Time.** 25 minutes
#
# **Needs.** step 13

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# In step 13 one call gave the gradient operator of *one* operator. We had to reverse a list of them
# ourselves, and we could not put one list into another and ask for its gradient.
#
# The idea of this step is one sentence: **a network is an operator, too.** Then `backward(network)` can
# be to a network what `build_grad_op(op)` is to an operator.
#
# First what we bring along, folded.

# %%
import inspect
from collections import namedtuple

import numpy as np

# %% tags=["active-ipynb"]
# from types import SimpleNamespace
#
# import minigrad as mg
# from minigrad.course import check, why

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

# %% [markdown]
# The table gets three rows, for layers with matrices. `rowwise_add` adds the row `b` to every row of
# `x`.

# %%
# to run this cell again, run the table above it first
register("matmul", lambda x, y: x @ y,
         "matmul_grad", lambda x, y, out_grad: (out_grad @ y.T, x.T @ out_grad))
register("rowwise_add", lambda x, b: x + b,
         "rowwise_add_grad", lambda out_grad: (out_grad, out_grad.sum(axis=0)))
register("sigmoid", lambda x: 1 / (1 + np.exp(-x)),
         "sigmoid_grad", lambda out, out_grad: out_grad * out * (1 - out))

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

# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# ## NetOp: an operator that holds operators
#
# What makes something an operator? It has a `type`. It has input names and output names. It can
# `run`. A network can have all three:
#
# * it **runs** by running its operators in order;
# * its **inputs** are the names that it reads and does not write itself;
# * its **outputs** are the names that it writes. Those that nobody inside reads again leave the
#   network: slot `out`. The others are only passed on inside: slot `inner`.
#
# (A dictionary stands where you would expect a set: its keys keep their order. And what is `inner` in a
# nested network is `inner` in the network around it, too.)

# %%
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


# %% [markdown]
# Our running example as a network:

# %% tags=["active-ipynb"]
# net = NetOp([Operator("add", {"x": "a", "y": "b"}, {"out": "c"}),
#              Operator("mul", {"x": "c", "y": "d"}, {"out": "e"})], type="(a + b) * d")
# print(net)
# print(net.inputs, net.outputs)
#
# scope = Scope(a=2.0, b=3.0, d=4.0)
# net.run(scope)
# print(scope)
# assert scope["e"] == 20.0

# %% [markdown]
# And now a network of networks. `affine` is a layer on single numbers: $out = w \cdot x + b$.
# The function returns *one* operator. Whoever uses it need not know that two are inside.

# %% tags=["active-ipynb"]
# def affine(x, w, b, out):
#     """out = w * x + b, as one operator."""
#     return NetOp([Operator("mul", {"x": x, "y": w}, {"out": out + "_part"}),
#                   Operator("add", {"x": out + "_part", "y": b}, {"out": out})], type="affine")
#
#
# two_layers = NetOp([affine("x", "w1", "b1", "h"), affine("h", "w2", "b2", "y")], "two_layers")
# print(two_layers)

# %% [markdown]
# **Predict, then run.** Which names does `two_layers` read from outside? Which name leaves it?

# %% tags=["active-ipynb"]
# print(two_layers.inputs["x"])
# print(two_layers.outputs["out"])

# %% [markdown]
# Five names come in. Only `y` leaves: `h` and the two parts are read again inside.

# %% tags=["active-ipynb", "picture-F"]
# assert two_layers.inputs["x"] == ["x", "w1", "b1", "w2", "b2"]
# assert two_layers.outputs["out"] == ["y"]
#
# mg.draw(two_layers)

# %% [markdown]
# ## The gradient of a network: first attempt
#
# Make the gradient operators in reverse order and put them into a network. That is how step 13 did
# it by hand.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# NetOp([build_grad_op(op) for op in reversed(two_layers.ops)])

# %% [markdown]
# Of course: the table has no row `affine`, and nobody wants to write one by hand. But the thing with
# the type `affine` is a network. We can ask for *its* gradient by the same rule. So two rules suffice.
#
# * **Op**: return its gradient operator at once.
# * **NetOp**: ask every operator inside, last one first, and put the answers into a network.
#
# The second rule calls itself. So the answer is nested like the question.

# %% tags=["active-ipynb"]
# def first_attempt(op):
#     if isinstance(op, NetOp):
#         return NetOp([first_attempt(inner) for inner in reversed(op.ops)], op.type + "_grad")
#     return build_grad_op(op)
#
#
# print(first_attempt(two_layers))

# %% [markdown]
# That works. But `x` is data: nobody needs `x@GRAD`. And perhaps we want to train the second layer
# only. We need a second argument: `no_grad`, the names whose gradient is not wanted.
#
# **Half-way.** Rest here, if you like. The second half is about what need not be computed.
#
# ## Leaving out: second attempt
#
# The rule in the design document is short: when all outputs of an operator are in the no-gradient
# set, its answer is a `NOP`, an operator that does nothing. Our NOP is an empty network. Let us
# take the rule literally.

# %% tags=["active-ipynb"]
# def second_attempt(op, no_grad):
#     if isinstance(op, NetOp):
#         inside = [second_attempt(inner, no_grad) for inner in reversed(op.ops)]
#         return NetOp(inside, op.type + "_grad")
#     grad_op = build_grad_op(op)
#     if all(name in no_grad for name in names(op.outputs)):
#         return NetOp([], "nop")
#     return grad_op
#
#
# frozen = second_attempt(two_layers, {"h"})          # no gradient for h: the first layer is frozen
# print(frozen)

# %% [markdown]
# **Predict, then run.** The gradient stops at `h`. What will the two operators of the first layer do?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# scope = Scope(x=1.0, w1=2.0, b1=0.5, w2=3.0, b2=-1.0)
# two_layers.run(scope)
# scope["y@GRAD"] = 1.0
# frozen.run(scope)

# %% tags=["active-ipynb", "mistake"]
# mg.draw(((two_layers, frozen), scope))

# %% [markdown]
# Look at `h_part@GRAD`. An arrow leaves it and none arrives. `add_grad` became a NOP, so nobody writes
# that name, and `mul_grad` waits for it in vain. One NOP must make the next ones.
#
# So do not only look names up in a list. Ask what really happens: **which gradients does somebody
# write?** We keep them in a set, `known`, while we walk. An operator gets a NOP
#
# * when none of its outputs has a known gradient: nothing comes in, so nothing can go out;
# * or when none of its inputs wants a gradient: nobody would read the result.
#
# ## A name for nothing
#
# One thing is left: `h@GRAD` was computed although nobody wants it. Its `mul_grad` cannot become a NOP,
# for it makes `w2@GRAD`, too. What shall we write into the slot of `h@GRAD`? In step 10 a constant
# gave the edge `(None, 0)`. A slot holds words, so there is a word for nothing, `@EMPTY@`. What is
# written to it is thrown away: `Operator.run` has had a line for that since step 13.
#
# **Predict, then run.** Which names does the scope hold afterwards?

# %% tags=["active-ipynb"]
# half = Operator("mul_grad", {"x": "c", "y": "d", "out_grad": "e@GRAD"},
#                 {"x_grad": "c@GRAD", "y_grad": EMPTY})
# scope = Scope({"c": 5.0, "d": 4.0, "e@GRAD": 1.0})
# half.run(scope)
# print(scope)
# assert "@EMPTY@" not in scope

# %% [markdown]
# Those it held, and `c@GRAD`.
#
# **14e. The engine: mirror.** Write it, with `first_attempt` as a model:
#
# 1. The answer is a `NOP`, `NetOp([], "nop")`, when no input is `wanted`, or when no output is `reached` by a
#    known gradient. (The first two lines find both.)
# 2. A network asks every operator inside, last one first, with the same `no_grad` and `known`.
#    Its answer is a network of the type `op.type + "_grad"`.
# 3. Any other operator has a gradient operator. Where that one would write the gradient of a name
#    in `no_grad`, it writes `EMPTY`. What it writes is known from now on. (Return the operator that
#    `build_grad_op` has made, not a copy: step 16 makes one of another kind.)

# %% tags=["exercise", "ex-14e", "engine"]
def mirror(op, no_grad, known):
    """The backward side of op; `known` collects the gradients that somebody writes."""
    wanted = [name for name in names(op.inputs) if name not in no_grad]
    reached = [name for name in names(op.outputs) if name + GRAD in known]
    ### BEGIN SOLUTION
    if not wanted or not reached:
        return NetOp([], "nop")
    if isinstance(op, NetOp):
        inside = [mirror(inner, no_grad, known) for inner in reversed(op.ops)]
        return NetOp(inside, op.type + "_grad")
    grad_op = build_grad_op(op)
    for listed in grad_op.outputs.values():
        listed[:] = [EMPTY if name.removesuffix(GRAD) in no_grad else name for name in listed]
    known.update(names(grad_op.outputs))
    return grad_op
    ### END SOLUTION


# check("14e", mirror, NetOp, Operator)

# %% [markdown]
# <!-- solution 14e -->
#
# Whoever calls it gives the gradients of what leaves the network. They are the first known ones.

# %%
def backward(op, no_grad=()):
    """The operator that takes the gradients of op's outputs to the gradients of its inputs."""
    strangers = set(no_grad) - {*names(op.inputs), *names(op.outputs)}
    if strangers:
        raise ValueError(f"no_grad names {sorted(strangers)}: {op.type!r} has no such variable")
    known = {name + GRAD for name in op.outputs["out"] if name not in no_grad}
    return mirror(op, set(no_grad), known)


# %% [markdown]
# The same freeze again. Both operators of the first layer are NOPs now, and the whole inner
# network with them.

# %% tags=["active-ipynb"]
# frozen = backward(two_layers, no_grad={"h"})
# print(frozen)
#
# scope = Scope({"x": 1.0, "w1": 2.0, "b1": 0.5, "w2": 3.0, "b2": -1.0, "y@GRAD": 1.0})
# two_layers.run(scope)
# frozen.run(scope)
# print(scope["w2@GRAD"], scope["b2@GRAD"])
# assert scope["w2@GRAD"] == scope["h"] == 2.5
# assert "w1@GRAD" not in scope and "h@GRAD" not in scope

# %% [markdown]
# A name that is nowhere in the network is most likely a typo. Silence would cost you an afternoon.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# backward(two_layers, no_grad={"w_1"})

# %% [markdown]
# ## The rule for one operator has not changed
#
# For a single operator `backward` gives its gradient operator at once, or a NOP.

# %% tags=["active-ipynb"]
# op = Operator("mul", {"x": "c", "y": "d"}, {"out": "e"})
# print(backward(op))
# print(backward(op, no_grad={"d"}))
# print(backward(op, no_grad={"c", "d"}))         # all inputs: nobody wants the results
# print(backward(op, no_grad={"e"}))              # all outputs: nothing comes in
# assert str(backward(op)) == str(build_grad_op(op))

# %% [markdown]
# ## The whole picture
#
# The running example first. 4, 4, 5.

# %% tags=["active-ipynb"]
# scope = Scope({"a": 2.0, "b": 3.0, "d": 4.0, "e@GRAD": 1.0})
# net.run(scope)
# backward(net).run(scope)
# print([scope[name] for name in ("a@GRAD", "b@GRAD", "d@GRAD")])
# assert [scope[name] for name in ("a@GRAD", "b@GRAD", "d@GRAD")] == [4.0, 4.0, 5.0]

# %% [markdown]
# Then the two layers. On the left the networks, on the right the backward networks, every frame
# opposite its twin. The gradients with a double line are the result: nobody inside reads them again.

# %% tags=["active-ipynb", "picture-B"]
# scope = Scope({"x": 1.0, "w1": 2.0, "b1": 0.5, "w2": 3.0, "b2": -1.0, "y@GRAD": 1.0})
# two_layers.run(scope)
# two_layers_grad = backward(two_layers, no_grad={"x"})
# two_layers_grad.run(scope)
# print(two_layers_grad.outputs["out"])
# assert sorted(two_layers_grad.outputs["out"]) == ["b1@GRAD", "b2@GRAD", "w1@GRAD", "w2@GRAD"]
#
# mg.draw(((two_layers, two_layers_grad), scope))

# %% [markdown]
# **Step through it** with the buttons, or with the keys ← and →. Which operator runs right after
# the seed?

# %% tags=["active-ipynb", "interactive"]
# mg.play(((two_layers, two_layers_grad), scope))

# %% [markdown]
# `add_grad` of the second layer: the last operator of the forward pass is the first on the way
# back.
#
# The judge of step 1 agrees: move one number a little, run the forward network, look at `y`.

# %% tags=["active-ipynb"]
# START = {"x": 1.0, "w1": 2.0, "b1": 0.5, "w2": 3.0, "b2": -1.0}
#
#
# def y_with(**moved):
#     scope = Scope(START | moved)
#     two_layers.run(scope)
#     return scope["y"]
#
#
# for name in ("w1", "b1", "w2", "b2"):
#     slope = (y_with(**{name: START[name] + 1e-4}) - y_with(**{name: START[name] - 1e-4})) / 2e-4
#     print(f"{name}@GRAD  {scope[name + GRAD]:.4f}   judge {slope:.4f}")
#     assert abs(scope[name + GRAD] - slope) < 1e-8

# %% [markdown]
# How much does a name in `no_grad` save? Count the gradient operators that are left.

# %% tags=["active-ipynb"]
# def survivors(op):
#     """How many operators are left to run."""
#     return sum(map(survivors, op.ops)) if isinstance(op, NetOp) else 1
#
#
# print(survivors(two_layers), survivors(backward(two_layers)), survivors(frozen))

# %% [markdown]
# **Fold a network to one box, and switch names into `no_grad`.** Several names at once: hold Ctrl
# (or ⌘) while clicking. Which name kills most of the gradient operators? Which one kills only one?

# %% tags=["active-ipynb", "interactive"]
# import ipywidgets
#
# from minigrad.course.explore import explore
#
#
# def as_box(op):
#     """An inner network as it looks from outside: a type, inputs, outputs."""
#     if not isinstance(op, NetOp) or not op.ops:
#         return op
#     return SimpleNamespace(type=op.type, inputs=op.inputs, attrs={},
#                            outputs={"out": op.outputs["out"]})
#
#
# def look(view, no_grad):
#     grad_net = backward(two_layers, no_grad)
#     both = [two_layers, grad_net]
#     if view == "folded":
#         both = [NetOp([as_box(op) for op in each.ops], each.type) for each in both]
#     return [f"{survivors(grad_net)} of {survivors(two_layers)} gradient operators are left",
#             mg.draw(tuple(both))]
#
#
# explore(look, view=["unfolded", "folded"], no_grad=ipywidgets.SelectMultiple(
#     options=["x", "w1", "b1", "h_part", "h", "w2", "b2", "y_part"], value=["x"], rows=8,
#     description="no_grad"))

# %% tags=["active-ipynb"]
# assert survivors(backward(two_layers, {"h_part"})) == 3

# %% [markdown]
# `h_part` kills only one: it is made by the first operator of the network, and nothing stands before
# that. The other question is exercise 14c.
#
# One thing can still be improved. Freeze `w1`, `b1` and `x`: the first layer needs no gradient any more,
# and still the second one computes `h@GRAD`, which nobody reads. The walk goes from back to front, so at
# the second layer it does not know yet what the first one will say. `append_backward` in the package
# looks from both sides, and computes only what somebody asked for.

# %% [markdown]
# ## Exercises
#
# **14a.** Write the layer of a real network, `fc`: a matrix product, a bias added to every row,
# and a sigmoid. $out = \sigma(x \cdot w + b)$. The rows are in the table above: `matmul` with the
# slots `x` and `y`, `rowwise_add` with `x` and `b`, `sigmoid` with `x`. Return one operator of type
# `"fc"`. Its results on the way need names of their own in every layer, as in `affine`.

# %% tags=["active-ipynb", "exercise", "ex-14a"]
# def fc(x, w, b, out):
#     """A fully connected layer as one operator."""
#     ### BEGIN SOLUTION
#     return NetOp([
#         Operator("matmul", {"x": x, "y": w}, {"out": out + "_product"}),
#         Operator("rowwise_add", {"x": out + "_product", "b": b}, {"out": out + "_sum"}),
#         Operator("sigmoid", {"x": out + "_sum"}, {"out": out}),
#     ], type="fc")
#     ### END SOLUTION
#
#
# check("14a", fc, NetOp, Scope, backward)

# %% [markdown]
# **14b.** Nesting is for people. Write `flatten(net)`: a network without networks in it, with the
# same operators in the same order, whatever the depth. NOPs vanish. The check compares
# `flatten(backward(nest))` with `backward(flatten(nest))`: a nest has the gradients of the flat
# network.

# %% tags=["active-ipynb", "exercise", "ex-14b"]
# def flatten(net):
#     """The operators of a network, and of the networks in it, in one network."""
#     ### BEGIN SOLUTION
#     ops = []
#     for op in net.ops:
#         ops += flatten(op).ops if isinstance(op, NetOp) else [op]
#     return NetOp(ops, net.type)
#     ### END SOLUTION
#
#
# check("14b", flatten, NetOp, Operator, backward)

# %% [markdown]
# **14c.** Choose the names for `no_grad` so that *exactly one* gradient operator of `two_layers`
# is left, and that one writes `b2@GRAD` and nothing else. Write a set of names. There is more than one
# answer; the shortest has one name.

# %% tags=["active-ipynb", "exercise", "ex-14c"]
# ### BEGIN SOLUTION
# lonely = {"y_part"}
# ### END SOLUTION
#
# check("14c", lonely, NetOp, Operator, backward)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# A module that holds modules is the same idea, for people. The graph that PyTorch records is flat:
# the nesting is gone. (Recorded with PyTorch 2.13.0.)
#
# ```python
# net = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid())
# print(net)
# # Sequential(
# #   (0): Linear(in_features=3, out_features=2, bias=True)
# #   (1): Sigmoid()
# # )
# net(torch.ones(1, 3)).grad_fn                       # <SigmoidBackward0 …>
# net[0].weight.requires_grad_(False)                 # their word for no_grad
# ```
#
# PaddlePaddle's first design had exactly our function (recorded in the document):
#
# ```cpp
# std::unique_ptr<OperatorBase> Backward(const OperatorBase& forwardOp,
#                                        const std::unordered_set<std::string>& no_grad_vars);
# ```
#
# There `mul` was the matrix product, and `fc` was a `NetOp` of `mul`, `rowwise_add` and `sigmoid`.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `NetOp` | `minigrad.nets.backward:NetOp` |
# | `backward` | `minigrad.nets.backward:Backward` |
# | `matmul` | `minigrad.ops.linalg:matmul` |
