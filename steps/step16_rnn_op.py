# %% [markdown]
# # Step 16. RnnOp: a network over time
#
# **Goal.** Run one small network once per element of a sequence, and get the gradient of the whole
# run, for any length.
#
# **Time.** 25 minutes
#
# **Needs.** step 15 (this step is off the critical path: 17 does not need it)

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# A recurrent network reads a sequence element by element and keeps a *state*:
#
# $$h_t = W \cdot h_{t-1} + x_t$$
#
# With the tools of step 15 we could write one copy of that formula per element. But then 4 elements are
# one network, and 5 elements another. What we want is *one* operator for every length, 0 and 1
# included. (One run of the small network is a **step**, here and in step 19.)
#
# First what we bring along, folded.

# %%
import inspect
from collections import namedtuple

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

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

# %% [markdown]
# The table gets one row.

# %%
# to run this cell again, run the table above it first
register("tanh", lambda x: np.tanh(x),
         "tanh_grad", lambda out, out_grad: (1 - out * out) * out_grad)

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
# ## Two small changes
#
# **A scope may have a parent.** What it does not hold itself, it looks up there. It writes only
# into itself. Each step will get a small scope of its own, and all of them find `W` in the same
# parent.

# %%
class Scope(dict):
    """Names and their values; what is not here is looked up in the parent."""

    parent = None

    def __missing__(self, name):
        if self.parent is not None:
            return self.parent[name]
        raise NameError(f"{name!r} has no value in this scope; it holds: {', '.join(self)}")


# %% tags=["active-ipynb"]
# outer = Scope(W=0.5)
# inner = Scope(x=1.0)
# inner.parent = outer
# print(inner["W"], inner["x"])
# inner["W"] = 99.0                       # written here, not there
# print(outer["W"])
# assert outer["W"] == 0.5

# %% [markdown]
# **An operator that holds a step net has its own kind of gradient operator.** These are two new lines at
# the top of `build_grad_op`. The class they name, `RnnGradOp`, comes below.

# %%
def build_grad_op(op):
    """The operator that takes the gradients of op's outputs to the gradients of its inputs."""
    if hasattr(op, "stepnet"):
        return RnnGradOp(op)
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
# The three passes of `backward` come along unchanged.

# %% tags=["carried"]
def mirror(op, no_grad, known):
    """The backward side of op; `known` collects the gradients that somebody writes."""
    wanted = [name for name in names(op.inputs) if name not in no_grad]
    reached = [name for name in names(op.outputs) if name + GRAD in known]
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

# %% tags=["carried"]
def fill_zeros(net, given):
    """Put zeros where an operator reads a gradient that nobody has written."""
    known = set(given)
    for home, op in list(places(net)):
        for listed in op.inputs.values():
            for position, name in enumerate(listed):
                if name.endswith(GRAD) and name not in known:
                    variable, zero = name.removesuffix(GRAD), name.removesuffix(GRAD) + "@ZERO"
                    listed[position] = zero
                    fill = Operator("fill_zeros_like", {"x": variable}, {"out": zero})
                    home.ops.insert(home.ops.index(op), fill)
        known.update(names(op.outputs))

# %% tags=["carried"]
def backward(op, no_grad=()):
    """The operator that takes the gradients of op's outputs to the gradients of its inputs."""
    strangers = set(no_grad) - {*names(op.inputs), *names(op.outputs)}
    if strangers:
        raise ValueError(f"no_grad names {sorted(strangers)}: {op.type!r} has no such variable")
    written = [name for _, inner in places(NetOp([op])) for name in names(inner.outputs)]
    again = {name for name in written if written.count(name) > 1 or name in names(op.inputs)}
    if again:
        raise ValueError(f"{sorted(again)} gets a second value in {op.type!r}, and a grad op may "
                         f"need the first one; write to a new name")
    given = {name + GRAD for name in op.outputs["out"] if name not in no_grad}
    made = mirror(op, set(no_grad), set(given))
    net = made if isinstance(made, NetOp) else NetOp([made], made.type)
    fill_zeros(net, given)
    add_up(net)
    return made if net.ops == [made] else net

# %% [markdown]
# ## One step as a network
#
# The *step net* is the formula for one element. It reads the element `x` and the state before,
# `h_pre`. It writes the state after, `h`. And it reads `W`, which is the same in all steps.

# %% tags=["active-ipynb"]
# def linear_step():
#     return NetOp([Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "decayed"}),
#                   Operator("add", {"x": "decayed", "y": "x"}, {"out": "h"})], type="step")
#
#
# print(linear_step())
# mg.draw(linear_step())

# %% [markdown]
# Our numbers: $W = 0.5$, the first state $h_0 = 1$, the sequence $1, 2, 3, 4$.
#
# ## A mistake: one scope for all steps
#
# The obvious thing is a loop: put the element and the state into the scope, run the step net, take `h`,
# go on. Backward, run the gradient of the step net as many times.
#
# **Predict, then run.** By calculus the derivative of the last state with respect to $h_0$
# is $0.5^4 = 0.0625$, and with respect to $W$ it is $6.25$. Which of the two will come out wrong?

# %% tags=["active-ipynb", "mistake"]
# step_net = linear_step()
# step_grad = backward(step_net)
# print(step_grad)
#
# scope = Scope(W=0.5, h=1.0)
# for element in (1.0, 2.0, 3.0, 4.0):
#     scope.update(x=element, h_pre=scope["h"])
#     step_net.run(scope)
# print("last state  ", scope["h"])
#
# scope["h@GRAD"] = 1.0
# total = 0.0
# for _ in range(4):
#     step_grad.run(scope)
#     total += scope["W@GRAD"]
#     scope["h@GRAD"] = scope["h_pre@GRAD"]
# print("for h0      ", scope["h_pre@GRAD"])
# print("for W       ", total)

# %% [markdown]
# The gradient for $W$. `mul_grad` reads `h_pre`, and each step has overwritten it: backward, all four
# steps used the *last* one, 4.375. In a loop every name is written many times, and the gradient needs
# the old values.

# %% tags=["active-ipynb"]
# assert total == 4.375 * (1 + 0.5 + 0.25 + 0.125)

# %% [markdown]
# ## The repair: step scopes
#
# Every step gets a scope of its own, and the operator keeps them all, in order. Their parent is
# the scope outside.
#
# `RnnOp` reads a sequence (slot `x`), a first state (slot `start`) and whatever else the step net
# asks for (slot `shared`). It writes two things: all states in one array, `hs` below, and the last
# state, `hT`. And it leaves the list of its step scopes under the name `hs@SCOPES`.

# %%
class RnnOp(Operator):
    """Run a step net once per element of a sequence; the state goes from step to step.

    The step net reads `x` and `h_pre` and writes `h`; what else it reads is shared by all steps.
    """

    memories = (("h_pre", "h"),)        # what a step reads, and the step before wrote: for pictures

    def __init__(self, stepnet, sequence, start, states, last):
        reads = stepnet.inputs["x"]
        if not {"x", "h_pre"} <= {*reads} or stepnet.outputs["out"] != ["h"]:
            raise ValueError(f"a step net reads x and h_pre and leaves h, but this one reads "
                             f"{', '.join(reads)} and leaves {', '.join(stepnet.outputs['out'])}")
        self.type, self.attrs, self.stepnet = "rnn", {}, stepnet
        shared = [name for name in reads if name not in ("x", "h_pre")]
        self.inputs = {"x": [sequence], "start": [start], "shared": shared}
        self.outputs = {"out": [states, last]}

    def run(self, scope):
        (sequence,), (start,), (states, last) = (
            self.inputs["x"], self.inputs["start"], self.outputs["out"])
        state, steps = scope[start], []
        for element in scope[sequence]:
            step = Scope(x=element, h_pre=state)
            step.parent = scope
            self.stepnet.run(step)
            state = step["h"]
            steps.append(step)
        scope[states] = np.reshape([step["h"] for step in steps], (len(steps), *np.shape(state)))
        scope[last] = state
        scope[states + "@SCOPES"] = steps


# %% tags=["active-ipynb"]
# rnn = RnnOp(linear_step(), sequence="xs", start="h0", states="hs", last="hT")
# print(rnn)
#
# scope = Scope(W=0.5, h0=1.0, xs=np.array([1.0, 2.0, 3.0, 4.0]))
# rnn.run(scope)
# print(scope["hs"], scope["hT"])
# assert scope["hs"].tolist() == [1.5, 2.75, 4.375, 6.1875]

# %% [markdown]
# The four step scopes are still there. Each remembers its own `h_pre`, and none has a `W` of its
# own.

# %% tags=["active-ipynb"]
# for t, step in enumerate(scope["hs@SCOPES"]):
#     print(t, {name: float(value) for name, value in step.items()})

# %% [markdown]
# A step scope cannot be thrown away when its step is over: **the backward pass comes back to it.**
#
# **Half-way.** Rest here, if you like. So far the loop runs forward, and remembers.
#
# ## The gradient operator
#
# The step net is a network, so `backward(stepnet)` is known: one step backwards. The gradient of
# an `RnnOp` is an operator that holds this backward net and runs it once per step, *last step
# first*.
#
# Four things happen in each step:
#
# 1. the gradient of `h` is what comes from outside for this state, plus what comes back from the
#   step after;
# 2. the backward step net runs in the scope of its step: there it finds the old values;
# 3. the gradient of `h_pre` goes on to the step before;
# 4. the gradient of every shared name is **added** to a running sum. Each step wrote its own
#   `W@GRAD` into its own scope; to take only the last one would be the mistake of step 15 once
#   more.
#
# **16e. The engine: all steps, backwards.** `step_grad` is the backward step net, `steps` are the
# step scopes in the order of the forward pass, and `states_grad[t]` is the gradient that comes from
# outside for the state after step `t`. `state_grad` is what comes from outside for the *last*
# state, through the output `hT`. `totals` holds a zero for every shared name.
#
# Return three things: the gradients of the elements, first element first; the gradient of the first
# state; and `totals`, with the sums. In the scope of a step the names are `h@GRAD`, `h_pre@GRAD`,
# `x@GRAD`, and `W@GRAD` for a shared `W`. What must come back when there are no steps?

# %% tags=["exercise", "ex-16e", "engine"]
def steps_back(step_grad, steps, states_grad, state_grad, totals):
    """Gradients of the elements and of the first state, and the sums for what is shared."""
    ### BEGIN SOLUTION
    elements_grad = []
    for step, from_outside in zip(reversed(steps), reversed(states_grad), strict=True):
        step["h" + GRAD] = from_outside + state_grad
        step_grad.run(step)
        state_grad = step["h_pre" + GRAD]
        elements_grad.insert(0, step["x" + GRAD])
        totals = {name: total + step[name + GRAD] for name, total in totals.items()}
    return elements_grad, state_grad, totals
    ### END SOLUTION


# check("16e", steps_back, RnnOp, NetOp, Operator, Scope, backward)

# %% [markdown]
# <!-- solution 16e -->
#
# The operator around it takes values out of the scope, and puts the gradients in. Its output slots are
# those of `RnnOp`'s inputs: `x`, `start`, `shared`. So `results` come in this order, too.

# %%
class RnnGradOp(Operator):
    """Run the backward step net over the step scopes, last step first."""

    memories = RnnOp.memories

    def __init__(self, rnn):
        self.type, self.attrs, self.stepnet = "rnn_grad", {}, backward(rnn.stepnet)
        states = rnn.outputs["out"][0]
        self.inputs = {"x": list(rnn.inputs["x"]), "shared": list(rnn.inputs["shared"]),
                       "scopes": [states + "@SCOPES"],
                       "out_grad": [name + GRAD for name in rnn.outputs["out"]]}
        self.outputs = {slot + "_grad": [name + GRAD for name in listed]
                        for slot, listed in rnn.inputs.items()}

    def run(self, scope):
        states_grad, state_grad = (scope[name] for name in self.inputs["out_grad"])
        steps = scope[self.inputs["scopes"][0]]
        totals = {name: np.zeros_like(scope[name]) for name in self.inputs["shared"]}
        elements_grad, state_grad, totals = steps_back(self.stepnet, steps, states_grad, state_grad,
                                                       totals)
        elements_grad = np.reshape(elements_grad, np.shape(scope[self.inputs["x"][0]]))
        results = [elements_grad, state_grad, *totals.values()]
        for name, value in zip(names(self.outputs), results, strict=True):
            if name != EMPTY:
                scope[name] = value


# %% [markdown]
# The `RnnOp` is an operator like any other now. We put it into a network, take the last state as
# the result, and call `backward`. Nobody uses the other states, `hs`, and nobody gives a gradient for
# them. So `backward` fills in zeros, as in step 15.

# %% tags=["active-ipynb"]
# net = NetOp([RnnOp(linear_step(), "xs", "h0", "hs", "hT")], type="rnn_net")
# net_grad = backward(net, no_grad={"hs"})
# print(net_grad)
#
# scope = Scope({"W": 0.5, "h0": 1.0, "xs": np.array([1.0, 2.0, 3.0, 4.0]), "hT@GRAD": 1.0})
# net.run(scope)
# net_grad.run(scope)
# print(scope["W@GRAD"], scope["h0@GRAD"], scope["xs@GRAD"])
# assert scope["W@GRAD"] == 6.25
# assert scope["h0@GRAD"] == 0.0625

# %% [markdown]
# Both are right: 6.25 and 0.0625. Here is what each step contributed to `W@GRAD`. The sum runs
# over time.

# %% tags=["active-ipynb"]
# contributions = [float(step["W@GRAD"]) for step in scope["hs@SCOPES"]]
# print(contributions, "sum", sum(contributions))
# print("the last writer alone would say", contributions[0])
# assert sum(contributions) == 6.25

# %% [markdown]
# The picture shows the operators, and below them the two step nets that they hold. The thick
# arrows are the state that goes from step to step: forward on the left, backward on the right. The
# dashed `W` in the step net is not another `W`: it is looked up outside.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# mg.draw(((net, net_grad), scope))

# %% [markdown]
# ## The judge: the unrolled network
#
# For a *known* length there is the other way: write the step net down T times. Every inner name
# gets the number of its step. `W` keeps its name, so it is shared by all copies, and step 15 takes
# care of it. (Folded: `unroll`, which does that.)

# %% tags=["active-ipynb", "folded"]
# def unroll(rnn, T):
#     """The same computation as one long net: one copy of the step net per step."""
#     copies = []
#     for t in range(T):
#         local = {name: f"{name}[{t}]" for name in ["x", *names(rnn.stepnet.outputs)]}
#         local["h_pre"] = f"h[{t - 1}]" if t else rnn.inputs["start"][0]
#         ops = []
#         for _, op in places(rnn.stepnet):
#             inputs, outputs = ({slot: [local.get(name, name) for name in listed]
#                                 for slot, listed in slots.items()}
#                                for slots in (op.inputs, op.outputs))
#             ops.append(Operator(op.type, inputs, outputs, op.attrs))
#         copies.append(NetOp(ops, f"step {t}"))
#     return NetOp(copies, "unrolled")

# %% tags=["active-ipynb"]
# long = unroll(rnn, 4)
# long_grad = backward(long)
# print(long)
# print(long_grad)

# %% [markdown]
# `W@GRAD` has four writers, so there are four parts and a `sum` of four.
#
# Run both ways, forward and backward. (Folded: two functions that do, and return the last state and
# the gradients of `W` and `h0`.)

# %% tags=["active-ipynb", "folded"]
# def folded_run(xs, W=0.5, h0=1.0, stepnet=linear_step):
#     net = NetOp([RnnOp(stepnet(), "xs", "h0", "hs", "hT")])
#     scope = Scope({"W": W, "h0": h0, "xs": np.array(xs), "hT@GRAD": 1.0})
#     net.run(scope)
#     backward(net, {"hs"}).run(scope)
#     return scope["hT"], scope["W@GRAD"], scope["h0@GRAD"]
#
#
# def unrolled_run(xs, W=0.5, h0=1.0, stepnet=linear_step):
#     long = unroll(RnnOp(stepnet(), "xs", "h0", "hs", "hT"), len(xs))
#     last = f"h[{len(xs) - 1}]"
#     scope = Scope({"W": W, "h0": h0, last + GRAD: 1.0})
#     scope.update({f"x[{t}]": x for t, x in enumerate(xs)})
#     long.run(scope)
#     backward(long).run(scope)
#     return scope[last], scope["W@GRAD"], scope["h0@GRAD"]

# %% [markdown]
# **Predict, then run.** Will the two agree to the last digit, for T = 0, 1 and 4?

# %% tags=["active-ipynb"]
# for xs in ([], [1.0], [1.0, 2.0, 3.0, 4.0]):
#     print(f"T = {len(xs)}   RnnOp   ", *map(float, folded_run(xs)))
#     if xs:
#         print("        unrolled", *map(float, unrolled_run(xs)))

# %% [markdown]
# They agree. And the `RnnOp` can do what no unrolled network can: **T = 0**. An unrolled network
# of no steps has no operators, so nobody writes its gradients. The `RnnOp` knows the right answer:
# the last state *is* the first state, so the gradient of `h0` is 1. And `W` was not used, so its
# gradient is 0: *zero, not missing*.

# %% tags=["active-ipynb"]
# for xs in ([1.0], [1.0, 2.0, 3.0, 4.0]):
#     assert folded_run(xs) == unrolled_run(xs)
# assert tuple(map(float, folded_run([]))) == (1.0, 0.0, 1.0)

# %% [markdown]
# The same for a step that is not linear, $h_t = \tanh(W h_{t-1} + x_t)$:

# %% tags=["active-ipynb"]
# def tanh_step():
#     ops = [Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "decayed"}),
#            Operator("add", {"x": "decayed", "y": "x"}, {"out": "sum"}),
#            Operator("tanh", {"x": "sum"}, {"out": "h"})]
#     return NetOp(ops, type="step")
#
#
# xs = [0.5, -0.3, 0.8, 0.1]
# folded, unrolled = (run(xs, stepnet=tanh_step) for run in (folded_run, unrolled_run))
# up, down = (folded_run(xs, W=0.5 + eps, stepnet=tanh_step)[0] for eps in (1e-5, -1e-5))
# print(f"RnnOp {folded[1]:.8f}   unrolled {unrolled[1]:.8f}   judge {(up - down) / 2e-5:.8f}")
# assert folded == unrolled
# assert abs(folded[1] - (up - down) / 2e-5) < 1e-9

# %% [markdown]
# **Move T**, and switch between the folded and the unrolled description. One of the two pictures
# keeps its shape for every T; only the values in it change.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore
#
#
# def over_time(T, view):
#     xs = [float(t + 1) for t in range(T)]
#     if view == "folded":
#         net, no_grad = NetOp([rnn], type="rnn_net"), {"hs"}
#     else:
#         net, no_grad = unroll(rnn, T), ()
#     if not net.ops:
#         return "T = 0: no steps, no operators, no picture"
#     scope = Scope({"W": 0.5, "h0": 1.0, "xs": np.array(xs)})
#     scope.update({f"x[{t}]": x for t, x in enumerate(xs)})
#     scope.update({"hT@GRAD": 1.0, f"h[{T - 1}]@GRAD": 1.0})
#     grads = backward(net, no_grad)
#     net.run(scope)
#     grads.run(scope)
#     said = f"T = {T}   W@GRAD = {scope['W@GRAD']}   h0@GRAD = {scope['h0@GRAD']}"
#     return [said, mg.draw(((net, grads), scope))]
#
#
# explore(over_time, T=(0, 6, 3), view=["folded", "unrolled"])

# %% [markdown]
# ## Exercises
#
# **16a.** T = 4 against the unrolled network, by hand. For the linear step, `parts(W, h0, xs)`
# returns the values of `W@GRAD@RENAME@0`, `@1`, … of the unrolled network, for any length. Plain
# Python, no operators. Step $t$ contributes the state *before* it, times how much the last state
# moves when the state *after* it moves by 1.

# %% tags=["active-ipynb", "exercise", "ex-16a"]
# def parts(W, h0, xs):
#     """What each step adds to the gradient of W, in order of production."""
#     ### BEGIN SOLUTION
#     states = [h0]
#     for x in xs:
#         states.append(W * states[-1] + x)
#     T = len(xs)
#     return [states[t] * W ** (T - 1 - t) for t in reversed(range(T))]
#     ### END SOLUTION
#
#
# check("16a", parts)

# %% [markdown]
# **16b.** For the linear step, the gradient of the last state with respect to the first is a simple
# formula of `W` and `T`. Which one? Then look at it for W = 0.5 and for W = 2, with T = 50. Would you
# like to train such a network?

# %% tags=["active-ipynb", "exercise", "ex-16b"]
# def start_gradient(W, T):
#     """How much the last state changes when the first state changes."""
#     ### BEGIN SOLUTION
#     return W ** T
#     ### END SOLUTION
#
#
# check("16b", start_gradient)

# %% [markdown]
# With $W = 0.5$ the first state is forgotten: $0.5^{50}$ is about $10^{-15}$. With $W = 2$ it
# drowns everything else: $2^{50}$ is about $10^{15}$. People say that the gradient *vanishes* or
# *explodes*: this is why long recurrent networks are hard to train.

# %% [markdown]
# ## In PyTorch / in Paddle
#
# In PyTorch a loop is a Python loop. The graph it leaves is the unrolled one, as long as the
# sequence. (Recorded with PyTorch 2.13.0.)
#
# ```python
# W = torch.tensor(0.5, requires_grad=True)
# h0 = torch.tensor(1.0, requires_grad=True)
# h = h0
# for x in (1., 2., 3., 4.):
#     h = h * W + x
# h.backward()
# print(h, W.grad, h0.grad)
# # tensor(6.1875, grad_fn=<AddBackward0>) tensor(6.2500) tensor(0.0625)
# ```
#
# PaddlePaddle of 2017 had this operator, `RnnOp`: a step net, and `Backward` called recursively
# for it (so says its design document). Its successor is the `while` operator with a sub-block,
# step 19.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `RnnOp` | `minigrad.nets.backward:RnnOp` |
# | a loop in a program | `minigrad.static:while_loop` |
