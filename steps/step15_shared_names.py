# %% [markdown]
# # Step 15. Shared names and zeros
#
# **Goal.** Repair the two cases in which names betray us: a gradient that two operators write, and
# a gradient that nobody writes.
#
# **Time.** 25 minutes
#
# **Needs.** step 14

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# In step 14 every variable was read once. Real networks share everywhere: the same weight in two
# layers, the same input on two paths, `x * x`. Boxes have coped with that since step 5. Can names?
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

# %% [markdown]
# The table gets three rows. In `*x` the star means that the slot `x` takes any number of names.
# `sum` adds a list of arrays. `split` cuts an array into two halves, and its gradient glues two
# gradients together. `sum` and `fill_zeros_like` have no gradient: they appear in backward
# networks only.

# %%
# to run this cell again, run the table above it first
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

# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# ## The damage
#
# $y = x_1 W + x_2 W$ with $x_1 = 2$, $x_2 = 5$, $W = 3$. By calculus the derivative with
# respect to $W$ is $x_1 + x_2 = 7$. This is the backward network as step 14 makes it:

# %% tags=["active-ipynb", "mistake", "picture-F"]
# def shared_net():
#     return NetOp([Operator("mul", {"x": "x1", "y": "W"}, {"out": "y1"}),
#                   Operator("mul", {"x": "x2", "y": "W"}, {"out": "y2"}),
#                   Operator("add", {"x": "y1", "y": "y2"}, {"out": "y"})], type="shared")
#
#
# shared = shared_net()
# raw = mirror(shared, no_grad=set(), known={"y@GRAD"})
# print(raw)
#
# mg.draw((shared, raw))

# %% [markdown]
# This is the first of the two figures in the design document. On the right, `W@GRAD` is written
# twice. The picture shows both versions, but a scope has one place per name.
#
# **Predict, then run.** Which of the two numbers, 5 or 2, survives?

# %% tags=["active-ipynb", "mistake"]
# scope = Scope({"x1": 2.0, "x2": 5.0, "W": 3.0, "y@GRAD": 1.0})
# shared.run(scope)
# for op in raw.ops:
#     op.run(scope)
#     print(f"{str(op):58} W@GRAD = {scope.get('W@GRAD', '—')}")

# %% [markdown]
# The second writer overwrote the first, as in step 5. There the box learned to add. A name cannot
# add: whoever writes it replaces its value. So two values need **two names**.
#
# ## First repair: rename
#
# Give every writer a name of its own. The document appends a number; we count in the order of
# production.

# %% tags=["active-ipynb"]
# assert scope["W@GRAD"] == 2.0           # 7 is right
#
# renamed = mirror(shared, no_grad=set(), known={"y@GRAD"})
# renamed.ops[1].outputs["y_grad"] = ["W@GRAD@RENAME@0"]
# renamed.ops[2].outputs["y_grad"] = ["W@GRAD@RENAME@1"]
#
# scope = Scope({"x1": 2.0, "x2": 5.0, "W": 3.0, "y@GRAD": 1.0})
# shared.run(scope)
# renamed.run(scope)
# print(scope["W@GRAD@RENAME@0"], scope["W@GRAD@RENAME@1"])
# print("W@GRAD" in scope)

# %% [markdown]
# Nothing is lost any more. But now nobody writes `W@GRAD`, the name that everybody will ask for.
#
# ## Second repair: add
#
# One more operator brings the parts together. It is called `sum`.

# %% tags=["active-ipynb"]
# parts = ["W@GRAD@RENAME@0", "W@GRAD@RENAME@1"]
# added = NetOp([*renamed.ops, Operator("sum", {"x": parts}, {"out": "W@GRAD"})], "shared_grad")
# added.run(scope)
# print(added.ops[-1], "  ->  ", scope["W@GRAD"])
# assert scope["W@GRAD"] == 7.0

# %% tags=["active-ipynb", "picture-B"]
# mg.draw(((shared, added), scope))

# %% [markdown]
# This is the second figure of the document. And 7 is right.
#
# It is the **add** of step 5, `x.grad + gx`, and of `AccumulateGrad`. There it hides in an assignment.
# Here it is a visible operator, like every other computation.
#
# ## Where does the sum go?
#
# We appended it at the end. Is that always right? In the diamond of step 6, $a = x^2$ goes two ways,
# $b = a^2$ and $c = a^2$, and $y = b + c$. At $x = 2$ the derivative is 64.
#
# **Predict, then run.** The two parts of `a@GRAD` are summed at the very end. What does
# `square_grad` for `x` find?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# def square(x, out):
#     return Operator("square", {"x": x}, {"out": out})
#
#
# diamond = NetOp([square("x", "a"), square("a", "b"), square("a", "c"),
#                  Operator("add", {"x": "b", "y": "c"}, {"out": "y"})], type="diamond")
# late = mirror(diamond, no_grad=set(), known={"y@GRAD"})
# late.ops[1].outputs["x_grad"] = ["a@GRAD@RENAME@0"]
# late.ops[2].outputs["x_grad"] = ["a@GRAD@RENAME@1"]
# parts = ["a@GRAD@RENAME@0", "a@GRAD@RENAME@1"]
# late.ops.append(Operator("sum", {"x": parts}, {"out": "a@GRAD"}))
# scope = Scope({"x": 2.0, "y@GRAD": 1.0})
# diamond.run(scope)
# late.run(scope)

# %% [markdown]
# `W` was a leaf: nobody inside the network reads its gradient. `a` is in the middle, and its
# gradient is read on the way. So the sum belongs **directly behind the last writer**. There all
# parts exist, and no reader has come yet: in the reversed order, the operator that *made* `a` comes
# after all those that *read* it.
#
# Now in code. `places` lists every operator of a nest in the order of running, with the network it
# stands in.

# %%
def places(net):
    """(home, op) for every operator that computes, in order; home is the net it stands in."""
    waiting = [(net, op) for op in reversed(net.ops)]
    while waiting:
        home, op = waiting.pop()
        if isinstance(op, NetOp):
            waiting += [(op, inner) for inner in reversed(op.ops)]
        else:
            yield home, op


# %% [markdown]
# **15e. The engine: add_up.** The first half collects the writers of every name: the network they
# stand in (`home`), the operator, and the place where the name is written, `listed[position]`. Write
# the second half. Every name with more than one writer, except `EMPTY`, which nobody reads, is
# repaired:
#
# * writer number `k` writes `name@RENAME@k` in the place of `name`;
# * a `sum`, as above, stands directly behind the last writer, in the network of the last writer.

# %% tags=["exercise", "ex-15e", "engine"]
def add_up(net):
    """Give every writer of a shared name a name of its own; add the parts behind the last one."""
    writers = {}
    for home, op in places(net):
        for listed in op.outputs.values():
            for position, name in enumerate(listed):
                writers.setdefault(name, []).append((home, op, listed, position))
    ### BEGIN SOLUTION
    for name, found in writers.items():
        if name == EMPTY or len(found) == 1:
            continue
        parts = [f"{name}@RENAME@{k}" for k in range(len(found))]
        for part, (_, _, listed, position) in zip(parts, found, strict=True):
            listed[position] = part
        home, last, _, _ = found[-1]
        home.ops.insert(home.ops.index(last) + 1, Operator("sum", {"x": parts}, {"out": name}))
    ### END SOLUTION


# check("15e", add_up, places, NetOp, Operator)

# %% [markdown]
# <!-- solution 15e -->

# %% tags=["active-ipynb"]
# repaired = mirror(diamond, no_grad=set(), known={"y@GRAD"})
# add_up(repaired)
# print(repaired)
#
# repaired.run(scope)
# print(scope["x@GRAD"])
# assert scope["x@GRAD"] == 64.0

# %% [markdown]
# Step through it. After which step is `a@GRAD` there?

# %% tags=["active-ipynb", "interactive"]
# mg.play(((diamond, repaired), scope))

# %% [markdown]
# After `sum`, and not before: the two parts alone are not `a@GRAD`.
#
# Notice what `add_up` counts: *places where a name is written*, not operators.
#
# **Predict, then run.** What does it do with `mul(x, x)`? One operator writes `x@GRAD` twice.

# %% tags=["active-ipynb"]
# twice = NetOp([mirror(Operator("mul", {"x": "x", "y": "x"}, {"out": "y"}), set(), {"y@GRAD"})])
# add_up(twice)
# print(twice)

# %% [markdown]
# Two parts from one operator, and a sum behind it.
#
# **Press repair.** Once, and again. Above each picture stands what the scope holds.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore, presses
#
#
# def figure(repair):
#     """The published figures, from what the passes really do."""
#     stage = min(len(repair), 2)
#     net = mirror(shared, set(), {"y@GRAD"})
#     if stage:
#         add_up(net)
#     if stage == 1:
#         net.ops.pop()                                   # renamed, and nothing added yet
#     scope = Scope({"x1": 2.0, "x2": 5.0, "W": 3.0, "y@GRAD": 1.0})
#     shared.run(scope)
#     net.run(scope)
#     held = [f"{name} = {value}" for name, value in scope.items() if name.startswith("W@")]
#     title = ["1. overwritten", "2. renamed: nothing is lost", "3. renamed and added"][stage]
#     return [title + "\nthe scope holds  " + "   ".join(held), mg.draw((shared, net))]
#
#
# explore(figure, repair=presses("repair"))

# %% [markdown]
# **Half-way.** Rest here, if you like. That was too many writers; the other case is none.
#
# ## The other case: a gradient that nobody writes
#
# `split` cuts `x` into two halves, `a` and `b`. We use only `a`:

# %% tags=["active-ipynb"]
# halves = NetOp([Operator("split", {"x": "x"}, {"out": ["a", "b"]}), square("a", "y")], "halves")
# raw = mirror(halves, no_grad=set(), known={"y@GRAD"})
# print(raw)

# %% [markdown]
# **Predict, then run.** `split_grad` glues `a@GRAD` and `b@GRAD` together. Who writes `b@GRAD`?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# scope = Scope({"x": np.array([1.0, 2.0, 3.0, 4.0]), "y@GRAD": np.ones(2)})
# halves.run(scope)
# raw.run(scope)

# %% [markdown]
# Nobody. `y` does not depend on `b`, so its gradient is zero. But "zero" is not "missing":
# `split_grad` needs an array of the right shape at that place. In C++ it would have read memory
# that was never initialised, which is worse than our error.
#
# So a second repair: an operator that makes zeros in the shape of `b`, right before they are
# needed. Their name is `b@ZERO`.

# %%
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


# %% tags=["active-ipynb"]
# fill_zeros(raw, given={"y@GRAD"})
# print(raw)
# raw.run(scope)
# print(scope["x@GRAD"])
# assert scope["x@GRAD"].tolist() == [2.0, 4.0, 0.0, 0.0]
#
# mg.draw(((halves, raw), scope))

# %% [markdown]
# ## backward, complete
#
# Three passes: mirror, fill zeros, add up. (The lines with `written` and `again` are explained below
# this cell. The last line: a single operator that needed no repair comes back as it is, without a network
# around it.)

# %%
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
# *Reading* a name twice is fine now. *Writing* a name twice in the forward network is not: the second value
# hides the first, and a gradient operator that comes later reads the wrong one. The framework whose
# document we follow computed a wrong gradient here, without a word. Ours looks through the names that are
# `written`, and refuses.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# backward(NetOp([square("x", "v"), square("v", "v")]))

# %% [markdown]
# One detail before we use it. In `halves` nobody reads `b`, so `b` leaves the network just as `y`
# does, and `backward` takes `b@GRAD` from outside just as `y@GRAD`. Whoever has no gradient to
# give for `b` says so with `no_grad`.

# %% tags=["active-ipynb"]
# print(backward(halves))
# print(backward(halves, no_grad={"b"}))

# %% [markdown]
# And now the numbers of steps 5 and 6, on the new machine.

# %% tags=["active-ipynb"]
# def slope(net, x, out="y"):
#     scope = Scope({"x": x, out + GRAD: 1.0})
#     net.run(scope)
#     backward(net).run(scope)
#     return scope["x@GRAD"]
#
#
# def add(x, y, out):
#     return Operator("add", {"x": x, "y": y}, {"out": out})
#
#
# doublings = NetOp([add(f"v{k}", f"v{k}", f"v{k + 1}") for k in range(1, 50)])
# doublings.ops.insert(0, add("x", "x", "v1"))
#
# print("x + x         ", slope(NetOp([add("x", "x", "y")]), 3.0))
# print("(x + x) + x   ", slope(NetOp([add("x", "x", "t"), add("t", "x", "y")]), 3.0))
# print("diamond at 2  ", slope(diamond, 2.0))
# print("50 doublings  ", slope(doublings, 1.0, out="v50"))
# assert slope(NetOp([add("x", "x", "y")]), 3.0) == 2
# assert slope(NetOp([add("x", "x", "t"), add("t", "x", "y")]), 3.0) == 3
# assert slope(diamond, 2.0) == 64
# assert slope(doublings, 1.0, out="v50") == 2 ** 50

# %% [markdown]
# Sharing across networks works too. Here `W` is used in two layers, each in its own network.
# The two writers stand in different frames, and the sum stands behind the last of them.

# %% tags=["active-ipynb"]
# def layer(x, out):
#     return NetOp([Operator("mul", {"x": x, "y": "W"}, {"out": out + "_part"}),
#                   Operator("sigmoid", {"x": out + "_part"}, {"out": out})], type="fc")
#
#
# tied = NetOp([layer("x", "h"), layer("h", "y")], type="tied")
# tied_grad = backward(tied, no_grad={"x"})
# scope = Scope({"x": 2.0, "W": 3.0, "y@GRAD": 1.0})
# tied.run(scope)
# tied_grad.run(scope)
# mg.draw(((tied, tied_grad), scope))

# %% [markdown]
# The judge moves the one weight that both layers read:

# %% tags=["active-ipynb"]
# def y_at(W):
#     scope = Scope({"x": 2.0, "W": W})
#     tied.run(scope)
#     return scope["y"]
#
#
# measured = (y_at(3.0 + 1e-5) - y_at(3.0 - 1e-5)) / 2e-5
# print(f"W@GRAD {scope['W@GRAD']:.6f}   judge {measured:.6f}")
# assert abs(scope["W@GRAD"] - measured) < 1e-9

# %% [markdown]
# ## Exercises
#
# **15a.** Three users of `W`: write a function that builds $y = x_1 W + x_2 W + x_3 W$ as a
# `NetOp`. Then, for $x_1 = 2$, $x_2 = 5$, $x_3 = 11$, $W = 3$, predict the values of
# `W@GRAD@RENAME@0`, `@1` and `@2` in *your* network: a list of three numbers. Mind the order of
# production. The names are `x1`, `x2`, `x3`, `W` and `y`.

# %% tags=["active-ipynb", "exercise", "ex-15a"]
# def three_users():
#     """y = x1 W + x2 W + x3 W"""
#     ### BEGIN SOLUTION
#     ops = [Operator("mul", {"x": f"x{k}", "y": "W"}, {"out": f"y{k}"}) for k in (1, 2, 3)]
#     return NetOp([*ops, add("y1", "y2", "t"), add("t", "y3", "y")])
#     ### END SOLUTION
#
#
# ### BEGIN SOLUTION
# parts = [11.0, 5.0, 2.0]
# ### END SOLUTION
#
# check("15a", three_users, parts, Scope, backward, places)

# %% [markdown]
# **15b.** Write the backward operators of the following network by hand, in the order in which
# they run, as a list: `[a, b] = split(x)`, then `y = exp(b)`. This time the *first* half is not
# used.

# %% tags=["active-ipynb", "exercise", "ex-15b"]
# ### BEGIN SOLUTION
# by_hand = [
#     Operator("exp_grad", {"out": "y", "out_grad": "y@GRAD"}, {"x_grad": "b@GRAD"}),
#     Operator("fill_zeros_like", {"x": "a"}, {"out": "a@ZERO"}),
#     Operator("split_grad", {"out_grad": ["a@ZERO", "b@GRAD"]}, {"x_grad": "x@GRAD"}),
# ]
# ### END SOLUTION
#
# check("15b", by_hand, Scope, Operator, NetOp)

# %% [markdown]
# **15c.** The `+=` of step 5 is this add. Show it: run gradient operators that were *not*
# repaired, and accumulate. `run_adding(ops, scope)` runs each operator's kernel and, for every
# output name, adds the result to what the scope holds, or stores it if the scope holds nothing.
# Careful with `mul(x, x)`, and with arrays that two names share: `add_grad` hands the same array
# to both.

# %% tags=["active-ipynb", "exercise", "ex-15c"]
# def run_adding(ops, scope):
#     """Run gradient operators; a name that has a value gets the new one added."""
#     for op in ops:
#         results = find(op.type).kernel(*[scope[name] for name in names(op.inputs)], **op.attrs)
#         if not isinstance(results, tuple):
#             results = (results,)
#         ### BEGIN SOLUTION
#         for name, value in zip(names(op.outputs), results, strict=True):
#             scope[name] = scope[name] + value if name in scope else value
#         ### END SOLUTION
#
#
# check("15c", run_adding, Scope, Operator, NetOp, build_grad_op, backward)

# %% [markdown]
# **In order.** Below lies the backward part of $y = (x \cdot w) \cdot w$, in a heap, and some
# lines do not belong. The lines are grad operators, as in this step. (At the end `reduce_sum` makes
# one number of the result: its line comes first.) Say the letters in the order in which they must
# run, such as `puzzle("cab")`. It is run, drawn, and judged.

# %% tags=["active-ipynb"]
# from minigrad.course.parsons import Parsons
#
# puzzle = Parsons(lambda x, w: (x * w) * w)
# print(puzzle)

# %% tags=["active-ipynb"]
# puzzle("")

# %% [markdown]
# ## In PyTorch / in Paddle
#
# PyTorch adds where two edges meet, and it makes zeros where an output was not used. None of this
# can be seen from outside. (Recorded with PyTorch 2.13.0.)
#
# ```python
# x1, x2 = torch.tensor(2.), torch.tensor(5.)
# W = torch.tensor(3., requires_grad=True)
# y = x1 * W + x2 * W
# y.backward()
# print(y, W.grad)               # tensor(21., grad_fn=<AddBackward0>) tensor(7.)
#
# x = torch.tensor([1., 2., 3., 4.], requires_grad=True)
# a, b = torch.split(x, 2)
# (a * a).sum().backward()
# print(x.grad)                  # tensor([2., 4., 0., 0.])
# ```
#
# In PaddlePaddle's program both are operators that you can print, with these names (recorded in
# the document of the Fluid design): the parts `w@GRAD@RENAME@0`, `w@GRAD@RENAME@1`, the operator
# `sum`, the operator `fill_zeros_like`.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `backward` of nets | `minigrad.nets.backward:Backward` |
# | the same repairs for programs | `minigrad.static.backward.append_backward:append_backward` |
# | `sum`, the op that adds a list | `minigrad.ops:add_n` |
