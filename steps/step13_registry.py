# %% [markdown]
# # Step 13. Operators by name
#
# **Goal.** Describe a computation with names only, and build the gradient operator of any operator
# from that description.
#
# **Time.** 35 minutes
#
# **Needs.** step 6 (step 10 helps)

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# ## Part D: what you need, and where to come in
#
# You need Python, the chain rule, and to have seen one backward pass work: step 6 is enough. If you
# come from a framework and have never looked inside, read step 10 first. Steps 13, 14 and 15 belong
# together and lead to part E. Step 16, loops, may be left out.
#
# ## The cliff
#
# This is the cliff of the course. Until now everything was made of **objects** that point to each
# other. From here on everything is made of **names**, and backward is not walked but **written down**.
# Why? Because `torch.compile` does exactly this, and because it has been done before: we follow the
# design documents of PaddlePaddle's engine of 2017 ("the documents"), the clearest account there is.
#
# The mathematics does not change at all. We take $e = (a + b) \cdot d$ with $a = 2$, $b = 3$, $d = 4$,
# and write it both ways, side by side. Only four things are new: a **scope** (names and values), a
# **registry** (what `mul` means), an **operator** (one line of text), and its **gradient operator**
# (one more line of text). At the end there is a dictionary.

# %%
import inspect
from collections import namedtuple

import numpy as np

# %% tags=["active-ipynb"]
# import json
# from types import SimpleNamespace
#
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# ## This side of the cliff: objects
#
# Here is step 10 in twenty lines (folded), just enough for `+` and `*`.

# %% tags=["active-ipynb", "carried"]
# class Node:
#     def __init__(self, label, *next_functions, variable=None):
#         self.label, self.next_functions, self.variable = label, next_functions, variable
#
#     def name(self):
#         return self.label
#
#     def __repr__(self):
#         return f"<{self.label}>"
#
#
# class Tensor:
#     def __init__(self, data, grad_fn=None):
#         self.data, self.grad, self.grad_fn = data, None, grad_fn
#         self.requires_grad = True
#         self.node = grad_fn or Node("AccumulateGrad", variable=self)
#
#     def __add__(self, other):
#         node = Node("AddBackward0", (self.node, 0), (other.node, 0))
#         return Tensor(self.data + other.data, node)
#
#     def __mul__(self, other):
#         node = Node("MulBackward0", (self.node, 0), (other.node, 0))
#         return Tensor(self.data * other.data, node)

# %% tags=["active-ipynb"]
# a, b, d = Tensor(2.0), Tensor(3.0), Tensor(4.0)
# c = a + b
# e = c * d
# print(e.data, e.grad_fn, e.grad_fn.next_functions)
# mg.draw(e)

# %% [markdown]
# Now a wish. Save this graph to a file, send it to another machine, and run it there tomorrow on
# other numbers.
#
# **Predict, then run.** What will the file contain?

# %% tags=["active-ipynb", "mistake"]
# try:
#     print(json.dumps(e.grad_fn))
# except TypeError as error:
#     print("TypeError:", error)

# %% [markdown]
# Nothing. An arrow between two objects is a place in the memory of *this* process. And the numbers are
# mixed into the graph: 5 is inside `c`, so other numbers need a new graph. Two changes repair both.
#
# 1. Instead of pointing to an object, write its **name**. A name can be written to a file.
# 2. Keep the numbers out of the description. Put them all into one place, a **scope**.
#
# ## A scope: names and their values
#
# A scope is a dictionary. We only want a better message when a name is not there.

# %%
class Scope(dict):
    """Names and their values: the only place where numbers live."""

    def __missing__(self, name):
        raise NameError(f"{name!r} has no value in this scope; it holds: {', '.join(self)}")


# %% tags=["active-ipynb"]
# scope = Scope(a=2.0, b=3.0, d=4.0)
# print(scope["a"])

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# scope["c"]

# %% [markdown]
# That message will be our guide today. It appears whenever something is read before it was written.
#
# ## The registry: what a word means
#
# We are going to write `e = mul(x=c, y=d)`. That is only text, and somewhere it must say what `mul`
# *means*: in one global map, the `OpInfoMap` of the documents. A record has four entries:
#
# * `kernel`: the Python function that computes;
# * `inputs`: the names of its input **slots**, such as `x` and `y`;
# * `outputs`: the names of its output slots;
# * `grad`: the type of its gradient operator, such as `mul_grad`.
#
# Why one map and not one class per operator? Because the core stays small: it can look up, run and
# turn round *any* record. Whoever invents an operator brings its record along, and nothing else
# changes.
#
# Nobody has to declare the slots: **the parameters of a kernel are its slots**. `def mul(x, y)` has
# the slots `x` and `y`. Keyword-only parameters are attributes, not slots.

# %%
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


# %% [markdown]
# Here is the whole mathematics of this step, one row per operator: the formula, and below it the
# gradient rule. A rule gets the gradient of the output, `out_grad`, and whatever else it names. It
# returns the gradients of the inputs, in their order.

# %%
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
# **Predict, then run.** Five rows were registered. How many records are there?

# %% tags=["active-ipynb"]
# print(len(OPS), "records\n")
# for kind, info in OPS.items():
#     reads, writes = ", ".join(info.inputs), ", ".join(info.outputs)
#     print(f"{kind:12} {reads:16} -> {writes:16} grad: {info.grad}")
# assert OPS["mul_grad"].inputs == ["x", "y", "out_grad"]
# assert OPS["mul_grad"].outputs == ["x_grad", "y_grad"]

# %% [markdown]
# Ten. A gradient operator is an operator like any other: it has a kernel and slots, and it can run.
#
# A second meaning for a known word is refused. Otherwise every saved graph that says `mul` would
# silently compute something else from now on.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# register("mul", lambda x, y: x @ y)

# %% [markdown]
# ## Operator: one line of the description
#
# An operator is a type, the names in its input slots, the names in its output slots, and
# attributes. Slots and names are two kinds of words. A slot is like the *parameter* of a function:
# every `mul` has `x` and `y`. A name is like the *argument* of a call: this `mul` reads `c` and `d`.
# A slot holds a *list* of names, nearly always a list of one.
#
# Look for numbers in this class, and for other operators. There are none.

# %%
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


# %% tags=["active-ipynb"]
# op = Operator("mul", {"x": "c", "y": "d"}, {"out": "e"})
# print(op)
# print(op.inputs, op.outputs)

# %% [markdown]
# ## Both sides on one screen
#
# Let us export the object graph. Every `grad_fn` becomes an operator, every edge a name. Objects need no
# names, so somebody has to *give* them.

# %% tags=["active-ipynb"]
# WORD = {"AddBackward0": "add", "MulBackward0": "mul"}
# NAME = {tensor.node: name for name, tensor in [("a", a), ("b", b), ("c", c), ("d", d), ("e", e)]}
#
#
# def export(root):
#     """The graph behind a grad_fn as operators, first things first (every node used once)."""
#     ops, waiting = [], [root]
#     while waiting:
#         node = waiting.pop(0)
#         if node.next_functions:
#             x, y = (next_node for next_node, index in node.next_functions)
#             word, out = WORD[node.name()], NAME[node]
#             ops.insert(0, Operator(word, {"x": NAME[x], "y": NAME[y]}, {"out": out}))
#             waiting += [x, y]
#     return ops
#
#
# ops = export(e.grad_fn)
# print("objects                                            names")
# for node, op in zip([c.grad_fn, e.grad_fn], ops):
#     print(f"{node!r:17}{str(node.next_functions):60}{op}")

# %% [markdown]
# Two nodes, two operators. **The shape of the forward part is the same. Only the way an arrow is stored
# has changed.** In the first picture an arrow is a reference. In the second, two operators mention the
# same word, `c`.

# %% tags=["active-ipynb", "picture-F"]
# def together(title, ops):
#     """Several operators as one thing to draw (a net of our own comes in step 14)."""
#     return SimpleNamespace(type=title, inputs={}, outputs={}, attrs={}, ops=ops)
#
#
# display(mg.draw(e, direction="TB"))
# mg.draw(together("(a + b) * d", ops))

# %% [markdown]
# There are two differences. The second picture has no number: nothing has been computed yet. And
# it has no backward half: step 10 made one while it computed. We shall *generate* ours.
#
# A description is not a computation. To compute, run the operators one after the other in a scope.

# %% tags=["active-ipynb"]
# scope = Scope(a=2.0, b=3.0, d=4.0)
# for op in ops:
#     op.run(scope)
#     print(f"{str(op):20} {scope}")
# assert scope["e"] == e.data == 20.0

# %% [markdown]
# Other numbers? Another scope. The description stays.

# %% tags=["active-ipynb"]
# other = Scope(a=1.0, b=2.0, d=10.0)
# for op in ops:
#     op.run(other)
# print(other["e"])
# assert other["e"] == 30.0

# %% [markdown]
# ## The gradient operator: four processes
#
# `mul` has a grad op, `mul_grad`. What does it read, what does it write? The documents answer with
# a table, which we shall print from a real operator in a moment:
#
# | | forward operator | backward operator |
# |---|---|---|
# | `inputs` | inputs | inputs, outputs, gradients of the outputs |
# | `outputs` | outputs | gradients of the inputs |
#
# (Most operators have exactly one gradient operator. One that only fills in a constant has none.)
#
# `BuildGradOp` makes it in four processes. We do each of them by hand for `e = mul(x=c, y=d)`.
#
# **Process 1.** Look up the type of the grad op.

# %% tags=["active-ipynb"]
# op = ops[1]
# kind = find(op.type).grad
# print(op, " needs ", kind)

# %% [markdown]
# **Process 2.** Start two maps, `inputs` and `outputs`. Copy the slots of the forward operator
# into `inputs`.

# %% tags=["active-ipynb"]
# inputs = {**op.inputs, **op.outputs}
# outputs = {}
# print("inputs ", inputs)
# print("outputs", outputs)

# %% [markdown]
# **Process 3.** Add the gradients: those of the outputs are read, those of the inputs are written.
# The gradient of the variable `c` is the variable with the name `c@GRAD`. That is the whole trick.
# (`out_grad` is a slot of every grad op, `e@GRAD` is the name that stands in it here.)

# %% tags=["active-ipynb"]
# for slot, listed in op.outputs.items():
#     inputs[slot + "_grad"] = [name + GRAD for name in listed]
# for slot, listed in op.inputs.items():
#     outputs[slot + "_grad"] = [name + GRAD for name in listed]
# print("inputs ", inputs)
# print("outputs", outputs)

# %% [markdown]
# **Process 4.** Build the operator from the type, the two maps and the attributes.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# Operator(kind, inputs, outputs, op.attrs)

# %% [markdown]
# Refused. We copied too much in process 2. `mul_grad` computes `out_grad * y` and `out_grad * x`, and
# never looks at `out`. If the grad op listed `e` all the same, `e` would have to stay in memory until
# the backward pass is done, for nothing.
#
# So process 2 copies the slots that the gradient needs, and no others. Which ones? **The parameters of
# the rule say it**: nobody has to declare it.

# %% tags=["active-ipynb"]
# reads = find(kind).inputs
# print(kind, "reads", reads)
# inputs = {slot: listed for slot, listed in inputs.items() if slot in reads}
# print(Operator(kind, inputs, outputs, op.attrs))

# %% [markdown]
# **13e. The engine: build_grad_op.** You have done the four processes by hand for one operator.
# Write the function that does them for any. An operator whose type has no gradient, `find(…).grad`
# is `None`, raises a `LookupError` that names it: the first lines are given.

# %% tags=["exercise", "ex-13e", "engine"]
def build_grad_op(op):
    """The operator that takes the gradients of op's outputs to the gradients of its inputs."""
    grad_type = find(op.type).grad                              # 1. the type
    if grad_type is None:
        raise LookupError(f"{op.type!r} has no gradient operator: {op}")
    ### BEGIN SOLUTION
    forward = {**op.inputs, **op.outputs}
    reads = find(grad_type).inputs                              # 2. copy what the rule reads
    inputs = {slot: forward[slot] for slot in reads if slot in forward}
    for slot, listed in op.outputs.items():                     # 3. add the gradients
        inputs[slot + "_grad"] = [name + GRAD for name in listed]
    outputs = {}
    for slot, listed in op.inputs.items():
        outputs[slot + "_grad"] = [name + GRAD for name in listed]
    return Operator(grad_type, inputs, outputs, op.attrs)       # 4. build
    ### END SOLUTION


# check("13e", build_grad_op, Operator)

# %% [markdown]
# <!-- solution 13e -->

# %% [markdown]
# Here is the table of the documents, read off two operators that were really built. `mul` keeps
# its inputs, `exp` keeps its output. Neither keeps both.

# %% tags=["active-ipynb"]
# for op in (ops[1], Operator("exp", {"x": "u"}, {"out": "v"})):
#     grad_op = build_grad_op(op)
#     print(f"{'':12}{op.type:28}{grad_op.type}")
#     print(f"{'inputs':12}{', '.join(names(op.inputs)):28}{', '.join(names(grad_op.inputs))}")
#     print(f"{'outputs':12}{', '.join(names(op.outputs)):28}{', '.join(names(grad_op.outputs))}\n")

# %% [markdown]
# And attributes are copied, because the rule needs them too.

# %% tags=["active-ipynb"]
# cube = Operator("power", {"x": "u"}, {"out": "v"}, {"n": 3})
# print(cube)
# print(build_grad_op(cube))
# assert build_grad_op(cube).attrs == {"n": 3}
# assert build_grad_op(cube).attrs is not cube.attrs

# %% [markdown]
# **Choose an operator, then go through the four processes.** Watch the two maps fill.

# %% tags=["active-ipynb", "interactive"]
# from ipywidgets import ToggleButtons
#
# from minigrad.course.explore import explore
#
# EXAMPLES = {"mul": ops[1], "add": ops[0], "power": cube,
#             "exp": Operator("exp", {"x": "u"}, {"out": "v"})}
# PROCESSES = ["1 look up", "2 copy", "3 add gradients", "4 build"]
#
#
# def so_far(operator, process):
#     """What BuildGradOp has made after one of its processes, read off the finished operator."""
#     op, done = EXAMPLES[operator], int(process[0])
#     grad_op = build_grad_op(op)
#     copied = {slot: op.inputs.get(slot) or op.outputs[slot]
#               for slot in grad_op.inputs if not slot.endswith("_grad")}
#     lines = [
#         f"forward  {op}",
#         f"type     {grad_op.type}",
#         f"inputs   {[{}, {}, copied, grad_op.inputs, grad_op.inputs][done]}",
#         f"outputs  {grad_op.outputs if done >= 3 else {}}",
#         f"attrs    {grad_op.attrs if done == 4 else ''}",
#     ]
#     return ["\n".join(lines), mg.draw((op, grad_op) if done == 4 else op)]
#
#
# process = ToggleButtons(options=PROCESSES, value=PROCESSES[-1], description="process")
# explore(so_far, operator=list(EXAMPLES), process=process)

# %% [markdown]
# ## Backward, by name
#
# One grad op per operator. The **seed** is a value for `e@GRAD`: 1. In which **order** do we run the
# grad ops?
#
# **Predict, then run.** Try the order of the forward pass first.

# %% tags=["active-ipynb"]
# grad_ops = [build_grad_op(op) for op in ops]
# print(*grad_ops, sep="\n")

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# scope["e" + GRAD] = 1.0
# for grad_op in grad_ops:
#     grad_op.run(scope)

# %% [markdown]
# `add_grad` reads `c@GRAD`, and nobody has written it yet. It is written by `mul_grad`. So:
# reverse.

# %% tags=["active-ipynb", "picture-B"]
# backward_ops = grad_ops[::-1]
# for grad_op in backward_ops:
#     grad_op.run(scope)
#     print(grad_op)
# for name in "abd":
#     print(f"{name + GRAD} = {scope[name + GRAD]}")
# assert [scope[name + GRAD] for name in "abd"] == [4.0, 4.0, 5.0]
#
# mg.draw(((together("(a + b) * d", ops), together("its gradient", backward_ops)), scope))

# %% [markdown]
# 4, 4, 5, as in step 5. Left the description of the forward pass, right the description of the
# backward pass, and in every bubble the value that the scope holds for that name.
#
# And the wish from the beginning? A description is words in lists. It goes into a file.

# %% tags=["active-ipynb"]
# text = json.dumps([vars(op) for op in ops + backward_ops])
# print(text[:104], "…")
#
# loaded = [Operator(**record) for record in json.loads(text)]      # on the other machine, tomorrow
# other = Scope({"a": 1.0, "b": 2.0, "d": 10.0, "e@GRAD": 1.0})
# for op in loaded:
#     op.run(other)
# print(other["e"], other["a@GRAD"], other["d@GRAD"])
# assert (other["a@GRAD"], other["d@GRAD"]) == (10.0, 3.0)

# %% [markdown]
# The backward pass was saved with the forward pass. It is not a walk any more. It is a list of
# operators like the other one.
#
# ## Nothing has a name too
#
# In step 10 a constant gave the edge `(None, 0)`. A slot cannot hold `None`, it holds words. So there
# is a word for nothing, `@EMPTY@`. What is written to it is thrown away.

# %% tags=["active-ipynb"]
# half = Operator("mul_grad", {"x": "c", "y": "d", "out_grad": "e@GRAD"},
#                 {"x_grad": "c@GRAD", "y_grad": EMPTY})
# scope = Scope({"c": 5.0, "d": 4.0, "e@GRAD": 1.0})
# half.run(scope)
# print(half)
# print(scope)
# assert "@EMPTY@" not in scope

# %% [markdown]
# ## A trap for later
#
# Names bring back a mistake of step 5 in a new form. Two operators below use the same weight:
# $y = x_1 W + x_2 W$ with $x_1 = 2$, $x_2 = 5$, $W = 3$.
# By calculus the derivative for $W$ is $x_1 + x_2 = 7$.
#
# **Predict, then run.** What will stand under `W@GRAD`?

# %% tags=["active-ipynb", "mistake"]
# shared = [Operator("mul", {"x": "x1", "y": "W"}, {"out": "y1"}),
#           Operator("mul", {"x": "x2", "y": "W"}, {"out": "y2"}),
#           Operator("add", {"x": "y1", "y": "y2"}, {"out": "y"})]
# scope = Scope({"x1": 2.0, "x2": 5.0, "W": 3.0, "y@GRAD": 1.0})
# for op in shared:
#     op.run(scope)
# shared_grad = [build_grad_op(op) for op in reversed(shared)]
# for grad_op in shared_grad:
#     grad_op.run(scope)
#     print(f"{str(grad_op):58} W@GRAD: {scope.get('W@GRAD', 'not written yet')}")
#
# mg.draw((together("shared", shared), together("its gradient", shared_grad)))

# %% [markdown]
# Two writers, one name. The picture draws `W@GRAD` twice, but the scope has one place for it: the
# second writer overwrote the first, as in step 5. A box could add; a name cannot. Step 15 has the
# repair. Remember the number 7.

# %% tags=["active-ipynb"]
# assert scope["y"] == 21.0
# assert scope["W@GRAD"] == 2.0           # wrong: 7 is right

# %% [markdown]
# ## The dictionary
#
# | | objects, steps 3–9 | objects, steps 10–12 | names, from here on |
# |---|---|---|---|
# | | `Variable` with `.data` | `Tensor` with `.data` | a name; its value is in a `Scope` |
# | **make node** | the `Function` object, `y.creator` | `y.grad_fn` | the grad op, `<type>_grad` |
# | **link** | `creator.input` | `grad_fn.next_functions` | the names in the slots |
# | **order** | by generation | by counted edges | the operators, reversed |
# | **seed** | `y.grad = 1` | `backward(gradient)` | a value for `y@GRAD` |
# | **pull** | `f.backward(gy)` | calling the node | `grad_op.run(scope)` |
# | what it reads | fields of `self` | `saved` | input slots `x`, `y`, `out` of the grad op |
# | **add** | `accumulate` | `deliver`, `AccumulateGrad` | the operator `sum` (step 15) |
# | | `x.grad` | `x.grad` | the value of `x@GRAD` |
# | a leaf | a variable without creator | `AccumulateGrad` | a name that no operator writes |
# | nothing there | | the edge `(None, 0)` | `@EMPTY@` |
# | **free** | weak links | after the pull | the executor, after the last reader |
# | **write down** | | | all of it, before anything runs |
#
# One idea runs through all three columns: *behind every operation stands its gradient operation,
# connected the other way round.* `creator` = `grad_fn` = grad op.

# %% [markdown]
# ## Exercises
#
# **13a.** Register a new operator `scale`: $out = factor \cdot x$, where `factor` is an
# *attribute*. Its gradient operator is `scale_grad`. Which slots does it have to read? Write the
# call inside the function, so that the check can run it on a clean registry.

# %% tags=["active-ipynb", "exercise", "ex-13a"]
# def add_scale():
#     """Register scale and scale_grad."""
#     ### BEGIN SOLUTION
#     register("scale", lambda x, *, factor: factor * x,
#              "scale_grad", lambda out_grad, *, factor: factor * out_grad)
#     ### END SOLUTION
#
#
# check("13a", add_scale, OPS, Operator, Scope, build_grad_op)

# %% [markdown]
# **13b.** Which forward slots does each gradient need? Write its rule with `+`, `-`, `*`, `/` and
# numbers only: no second `exp`. Replace every question mark by the slots of the shortest list,
# separated by blanks; an empty string means none. Where two lists are equally short, either is
# right.
#
# ```python
# needed = {
#     "add":  "?",        # out = x + y
#     "mul":  "?",        # out = x * y
#     "neg":  "?",        # out = -x
#     "exp":  "?",        # out = e to the x
#     "log":  "?",        # out = log(x)
#     "tanh": "?",        # out = tanh(x)
#     "sqrt": "?",        # out = square root of x
#     "div":  "?",        # out = x / y
# }
# ```

# %% tags=["active-ipynb", "exercise", "ex-13b"]
# ### BEGIN SOLUTION
# needed = {
#     "add": "",              # out = x + y
#     "mul": "x y",           # out = x * y
#     "neg": "",              # out = -x
#     "exp": "out",           # out = e to the x
#     "log": "x",             # out = log(x)
#     "tanh": "out",          # out = tanh(x)
#     "sqrt": "out",          # out = square root of x
#     "div": "y out",         # out = x / y
# }
# ### END SOLUTION
#
# check("13b", needed)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# PyTorch computes with objects, but it can write the same expression with names. `torch.fx`
# (recorded with PyTorch 2.13.0):
#
# ```python
# def f(a, b, d):
#     return (a + b) * d
#
# print(torch.fx.symbolic_trace(f).graph)
# # graph():
# #     %a : [num_users=1] = placeholder[target=a]
# #     %b : [num_users=1] = placeholder[target=b]
# #     %d : [num_users=1] = placeholder[target=d]
# #     %add : [num_users=1] = call_function[target=operator.add](args = (%a, %b), kwargs = {})
# #     %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, %d), kwargs = {})
# #     return mul
# ```
#
# PaddlePaddle's operators were names from the beginning (recorded in its design document of 2017).
# `REGISTER_OP` took the facts of our `register`, in the same order; `MulOpMaker` declared the slots,
# which we read off the kernel.
#
# ```cpp
# REGISTER_OP(mul, MulOp, MulOpMaker, mul_grad, MulOpGrad);
# OperatorBase* bwd_op = BuildGradOp(const OperatorBase* fwd_op);
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | one row: formula and gradient rules | `minigrad.primitives.registry:primitive` |
# | the registry | `minigrad.primitives.registry:REGISTRY` |
# | `Operator` | `minigrad.nets.backward:Operator` |
# | `build_grad_op` | `minigrad.nets.backward:build_grad_op` |
