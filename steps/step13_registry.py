# %% [markdown]
# # Step 13. Operators by name
#
# **Goal.** Describe a computation with names only, and build the gradient operator of any operator
# from that description.
#
# **Time.** 30 minutes
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
# Until now everything was made of **objects** that point to each other. From here on everything is
# made of **names**, and backward is not walked but **written down**. Why? What is written down can be
# saved, changed, and run elsewhere. `torch.compile` writes backward down, too, as steps 17 and 18 will
# show. We follow the clearest account there is: the design documents of
# PaddlePaddle's engine of 2017 ("the documents").
#
# The mathematics does not change. We take $e = (a + b) \cdot d$ with $a = 2$, $b = 3$, $d = 4$. Four
# things are new, and they come one by one: a **scope** (names and values), a **registry** (what `mul`
# means), an **operator** (one line of text), and its **gradient operator** (one more line of text).

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
# Step 10 in twenty lines, folded: just enough for `+` and `*`.

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
# Now a wish: save this graph to a file, and run it tomorrow, on another machine and other numbers.
#
# **Predict, then run.** What will the file contain?

# %% tags=["active-ipynb", "mistake"]
# try:
#     print(json.dumps(e.grad_fn))
# except TypeError as error:
#     print("TypeError:", error)

# %% [markdown]
# Nothing. An arrow between two objects is a place in the memory of *this* process. And the numbers are
# mixed into the graph: 5 is inside `c`, so other numbers need a new graph. Two changes repair this.
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
# Remember this message. It comes whenever something is read before it was written.
#
# ## The registry: what a word means
#
# We are going to write `e = mul(x=c, y=d)`. That is only text. What `mul` *means* must stand somewhere
# else: in a global map, the **registry** (`OpInfoMap` in the documents). One row gives two words their
# meaning:
#
# | word | reads | computes |
# |---|---|---|
# | `mul` | `x`, `y` | `x * y` |
# | `mul_grad` | `x`, `y`, `out_grad` | the gradients of `x` and `y`: `y * out_grad` and `x * out_grad` |
#
# The first is the formula, the second the gradient rule. A rule gets `out_grad`, the gradient of the
# output, and whatever else it names. It returns the gradients of the inputs, in order.
#
# Both are Python functions, and **the parameters of a function are its slots**: the places for what it
# reads. Nobody has to declare them. (Parameters behind a `*` are *attributes*, plain numbers such as an
# exponent.) So the record of a word has four entries: its function (the `kernel`), its input slots,
# its output slots, and the word for its gradient operator, if it has one.

# %%
GRAD = "@GRAD"              # w@GRAD is the name of the gradient of w
EMPTY = "@EMPTY@"           # the name that stands for "nothing here": step 14

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
# Here is the whole mathematics of this step, a row per operator:

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
# ## Operator: one line of the description
#
# An operator is a type, the names in its input slots, the names in its output slots, and attributes.
# A slot is like the *parameter* of a function: every `mul` has `x` and `y`. A name is like the
# *argument* of a call: this `mul` reads `c` and `d`. (A slot holds a *list* of names, nearly always
# a list of one.)
#
# Look for numbers in this class, and for other operators. There are none. (Of the helpers, `names` lists
# all names in a map of slots, and `fill_slots` brings what is given into the order of the registry.)

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
# Let us rewrite the object graph. Every `grad_fn` becomes an operator, every edge a name. Objects need
# no names, so we have to *give* them.

# %% tags=["active-ipynb"]
# ops = [Operator("add", {"x": "a", "y": "b"}, {"out": "c"}),
#        Operator("mul", {"x": "c", "y": "d"}, {"out": "e"})]
# print(*ops, sep="\n")

# %% [markdown]
# Two nodes, two operators. **Only the way an arrow is stored has changed**: there it is a reference;
# here two operators mention the same word, `c`.

# %% tags=["active-ipynb", "picture-F"]
# def together(title, ops):
#     """Several operators as one thing to draw (a net of our own comes in step 14)."""
#     return SimpleNamespace(type=title, inputs={}, outputs={}, attrs={}, ops=ops)
#
#
# display(mg.draw(e, direction="TB"))
# mg.draw(together("(a + b) * d", ops))

# %% [markdown]
# The second picture has no number: nothing has been computed yet. And it has no backward half: step
# 10 made one while it computed. We shall *generate* ours.
#
# To compute, run the operators one after the other in a scope.

# %% tags=["active-ipynb"]
# scope = Scope(a=2.0, b=3.0, d=4.0)
# for op in ops:
#     op.run(scope)
#     print(f"{str(op):20} {scope}")
# assert scope["e"] == e.data == 20.0

# %% [markdown]
# **Half-way.** Rest here, if you like; exercise 13b needs no more than this. So far a computation is
# written down and run. The second half writes down its gradient.
#
# ## The gradient operator: four steps
#
# `mul` has a gradient operator (**grad op** for short), `mul_grad`. What does it read, what does it
# write? The documents answer with a table:
#
# | | forward operator | grad op |
# |---|---|---|
# | `inputs` | inputs | inputs, outputs, gradients of the outputs |
# | `outputs` | outputs | gradients of the inputs |
#
# `BuildGradOp` makes it in four steps (the documents say *processes*). We do each of them by hand for
# `e = mul(x=c, y=d)`.
#
# **First step.** Look up the type of the grad op.

# %% tags=["active-ipynb"]
# op = ops[1]
# kind = find(op.type).grad
# print(op, " needs ", kind)

# %% [markdown]
# **Second step.** Start two maps, `inputs` and `outputs`. Copy all slots of the forward operator into
# `inputs`.

# %% tags=["active-ipynb"]
# inputs, outputs = {**op.inputs, **op.outputs}, {}
# print("inputs ", inputs)

# %% [markdown]
# **Third step.** Add the gradients: those of the outputs are read, those of the inputs are written.
# The gradient of the variable `c` is the variable with the name `c@GRAD`. That is the whole trick.
# (`out_grad` is a slot, `e@GRAD` the name that stands in it here.)

# %% tags=["active-ipynb"]
# for slot, listed in op.outputs.items():
#     inputs[slot + "_grad"] = [name + GRAD for name in listed]
# for slot, listed in op.inputs.items():
#     outputs[slot + "_grad"] = [name + GRAD for name in listed]
# print("inputs ", inputs)
# print("outputs", outputs)

# %% [markdown]
# **Fourth step.** Build the operator from the type, the two maps and the attributes.
#
# **Predict, then run.** The registry knows the slots of `mul_grad`. Will it accept ours?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# Operator(kind, inputs, outputs, op.attrs)

# %% [markdown]
# Refused: the second step copied too much. `mul_grad` computes `out_grad * y` and `out_grad * x`, and never
# looks at `out`. If it listed `e` all the same, `e` would have to stay in memory until the backward
# pass is done, for nothing.
#
# So the second step may copy only the slots that the gradient needs. Which ones? **The parameters of the
# rule say it.**

# %% tags=["active-ipynb"]
# reads = find(kind).inputs
# print(kind, "reads", reads)
# inputs = {slot: listed for slot, listed in inputs.items() if slot in reads}
# print(Operator(kind, inputs, outputs, op.attrs))

# %% [markdown]
# **13e. The engine: build_grad_op.** You have done the four steps by hand for one operator. Write
# the function that does them for any operator. (Some types have no gradient: for them `find(…).grad` is
# `None`, and the function raises a `LookupError`. These lines are given.)

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
# Three operators and their grad ops. Which of its forward slots does each grad op keep?

# %% tags=["active-ipynb"]
# exp_op = Operator("exp", {"x": "u"}, {"out": "v"})
# cube = Operator("power", {"x": "u"}, {"out": "v"}, {"n": 3})
# for op in (ops[1], exp_op, cube):
#     print(f"{str(op):24}{build_grad_op(op)}")
# assert build_grad_op(cube).attrs == {"n": 3}
# assert build_grad_op(cube).attrs is not cube.attrs

# %% [markdown]
# `mul` keeps its inputs, `exp` its output, `power` its input, and the attribute that its rule needs.
# None of them keeps everything.

# %% [markdown]
# **Choose an operator, then go through the four steps.** Watch the two maps fill.

# %% tags=["active-ipynb", "interactive"]
# from ipywidgets import ToggleButtons
#
# from minigrad.course.explore import explore
#
# EXAMPLES = {"mul": ops[1], "add": ops[0], "power": cube, "exp": exp_op}
# STEPS = ["1 look up", "2 copy", "3 add gradients", "4 build"]
#
#
# def so_far(operator, step):
#     """What BuildGradOp has made after one of its steps, read off the finished operator."""
#     op, done = EXAMPLES[operator], int(step[0])
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
# step = ToggleButtons(options=STEPS, value=STEPS[-1], description="step")
# explore(so_far, operator=list(EXAMPLES), step=step)

# %% [markdown]
# ## Backward, by name
#
# One grad op per operator. The **seed** is a value for `e@GRAD`: 1.
#
# **Predict, then run.** In which **order** must the grad ops run? Try that of the forward pass.

# %% tags=["active-ipynb"]
# grad_ops = [build_grad_op(op) for op in ops]
# print(*grad_ops, sep="\n")

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# scope["e" + GRAD] = 1.0
# for grad_op in grad_ops:
#     grad_op.run(scope)

# %% [markdown]
# `add_grad` reads `c@GRAD`, which `mul_grad` has not written yet. So: reverse.

# %% tags=["active-ipynb", "picture-B"]
# backward_ops = grad_ops[::-1]
# for grad_op in backward_ops:
#     grad_op.run(scope)
#     print(grad_op)
# print([scope[name + GRAD] for name in "abd"])
# assert [scope[name + GRAD] for name in "abd"] == [4.0, 4.0, 5.0]
#
# mg.draw(((together("(a + b) * d", ops), together("its gradient", backward_ops)), scope))

# %% [markdown]
# 4, 4, 5, as in step 5. On the left the forward description, on the right the backward one, and in
# every bubble the value that the scope holds for that name.
#
# And the wish from the beginning? A description is words in lists. It goes into a file, and runs
# elsewhere on other numbers.

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
