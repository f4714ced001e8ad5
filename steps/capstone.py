# %% [markdown]
# # Capstone. A GPT on your engine
#
# **Goal.** Train a small GPT on the engine you wrote, then on the package, and see it invent names.
# Bring a function of your own, and hunt a planted bug.
#
# **Time.** 75 minutes, or as long as you like
#
# **Needs.** step 20

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# The first half of this page puts your engine to work on what everybody talks about. The second half
# has one cell that is yours, and tools that take whatever you put there.

# %%
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np

import minigrad as mg
import steps.step09_arrays as engine
from minigrad import optim, static
from minigrad.primitives.registry import REGISTRY
from minigrad.static import net
from steps.step14_backward_net import NetOp

# %% [markdown]
# ## The engine of step 9, and your parts in it
#
# The engine is that of step 9. `accumulate` (5e), the order (6e) and `sum_to_shape` (9e) are yours,
# where they have passed: every number below goes through them.

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine(engine)

# %% [markdown]
# Two functions are missing. By now you could write them in your sleep.

# %%
class Log(engine.Function):
    """y = log(x)"""

    def forward(self, x):
        return np.log(x)

    def backward(self, gy):
        return gy / self.inputs[0].data


class Relu(engine.Function):
    """y = x where x is positive, else 0"""

    def forward(self, x):
        return np.maximum(x, 0.0)

    def backward(self, gy):
        return gy * (self.inputs[0].data > 0)


YOURS = SimpleNamespace(exp=engine.exp, log=lambda x: Log()(x), relu=lambda x: Relu()(x))

# %% [markdown]
# ## Attention, with numbers
#
# The one new idea of a GPT first, in its smallest form: three places, two numbers each. Each place has a
# question (`query`), a label (`key`) and something to offer (`value`). How well a question fits a label is
# their product. A place may look at itself and at the places before it: `hidden` takes the others away.
#
# **Predict, then run.** What does the first place get? And whose offer counts most for the third?

# %% tags=["active-ipynb"]
# query = key = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
# value = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
# hidden = np.triu(np.full((3, 3), -1e9), 1)
#
# fits = query @ key.T + hidden
# weights = np.exp(fits) / np.exp(fits).sum(axis=1, keepdims=True)
# print(weights.round(2))
# print((weights @ value).round(2))

# %% [markdown]
# The first place sees only itself, so it gets its own offer. The third fits itself best, 0.58, and the other
# two equally well. The weights in each row add up to 1: what a place gets is a weighted mean of what it
# sees.
#
# The model has four such *heads* side by side, and learns how to make questions, labels and offers.
#
# ## The model
#
# It reads a name letter by letter and says how likely each letter is to come next. The dot begins
# a name and ends it. This is the architecture of Andrej Karpathy's *microgpt*: one layer, 16
# numbers per letter, 4 heads, RMSNorm (`norm` below), no biases, relu. We build it in four pieces.
#
# **What goes in.** A letter is a row with a single 1 in it. `x` holds the letters that are read, `y` the ones
# that follow them.

# %%
LETTERS, BLOCK, WIDTH, HEADS = ".abcdefghijklmnopqrstuvwxyz", 16, 16, 4


def example(name):
    """What goes in and what should come out: a row with a 1 per letter; y is divided by how many."""
    x, y = np.zeros((2, BLOCK, len(LETTERS)))
    rows = np.eye(len(LETTERS))[[LETTERS.index(letter) for letter in f".{name}."]]
    x[:len(rows) - 1], y[:len(rows) - 1] = rows[:-1], rows[1:] / (len(rows) - 1)
    return x, y


# %% [markdown]
# **Predict, then run.** In the name "al", which letter is to be guessed after the dot, and which one last?

# %% tags=["active-ipynb"]
# x, y = example("al")
# for read, follows in zip(x[:3], y[:3]):
#     print(LETTERS[read.argmax()], "→", LETTERS[follows.argmax()])

# %% [markdown]
# **The parameters**: matrices, by name. `x @ p["letters"]` picks a row of 16 numbers for each letter. Each place
# has such a row, too, and the two are added.

# %%
def starts(seed):
    """The parameters before training, by name."""
    shapes = {"letters": (len(LETTERS), WIDTH), "scores": (WIDTH, len(LETTERS)),
              "places": (BLOCK, WIDTH), "wide": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH)}
    for i in range(HEADS):
        shapes |= {f"{name}{i}": (WIDTH, WIDTH // HEADS) for name in ("query", "key", "value")}
        shapes[f"mix{i}"] = (WIDTH // HEADS, WIDTH)
    random = np.random.default_rng(seed)
    return {name: random.normal(0, 0.08, shape) for name, shape in shapes.items()}


# %% [markdown]
# **The first row of numbers** for each letter is its *embedding*. `norm` keeps rows from growing on
# their way through the model.

# %%
def norm(x):
    """Each row scaled so that the mean of its squares is 1."""
    return x * ((x * x).sum(axis=1, keepdims=True) * (1 / WIDTH) + 1e-5) ** -0.5


def embedding(x, p, ops):
    return norm(x @ p["letters"] + p["places"])


# %% [markdown]
# **Attention**: four heads, as above, each with matrices of its own. `MASK` hides the places that follow: a
# letter may not look at what it is supposed to guess.

# %%
MASK = np.triu(np.full((BLOCK, BLOCK), -1e9), 1)


def share(scores, ops):
    """Scores as parts of 1, row by row."""
    e = ops.exp(scores)
    return e / e.sum(axis=1, keepdims=True)


def attention(h, p, ops):
    x = norm(h)
    for i in range(HEADS):
        query, key, value = (x @ p[f"{name}{i}"] for name in ("query", "key", "value"))
        fits = query @ key.T * (WIDTH // HEADS) ** -0.5 + MASK
        h = h + share(fits, ops) @ value @ p[f"mix{i}"]
    return h


# %% [markdown]
# **Thinking**: each place for itself, in 64 numbers. Like attention it *adds* to what was there
# (`h + …`), so the gradient always has a short way back: `+` hands it on unchanged.
#
# At the end stand scores for 27 letters, and the loss.

# %%
def thinking(h, p, ops):
    return h + ops.relu(norm(h) @ p["wide"]) @ p["narrow"]


def loss_of(p, x, y, ops):
    """How surprised the model is by the letters y, on average."""
    h = thinking(attention(embedding(x, p, ops), p, ops), p, ops)
    return -(ops.log(share(h @ p["scores"], ops)) * y).sum()


# %% [markdown]
# An optimizer: *Adam*. It remembers for each number what its gradient was on average, and how large
# it was, and steps by the mean divided by the size. Both averages begin at 0, so early on they are too
# small: after one step the mean is only 0.15 of the gradient. Dividing by `1 - one ** t` makes up for it.

# %%
def adam(boxes, means, t, lr=0.01, one=0.85, two=0.99):
    """Step number t of all boxes, along running means of gradients, in units of their size."""
    for i, box in enumerate(boxes):
        mean, square = means.get(i, (0.0, 0.0))
        mean, square = one * mean + (1 - one) * box.grad, two * square + (1 - two) * box.grad ** 2
        means[i], size = (mean, square), np.sqrt(square / (1 - two ** t)) + 1e-8
        box.data, box.grad = box.data - lr * mean / (1 - one ** t) / size, None


def by_yours(data, seed=0):
    """The losses while your engine trains."""
    p, means, losses = {k: engine.Variable(v) for k, v in starts(seed).items()}, {}, []
    for t, name in enumerate(data, 1):
        loss = loss_of(p, *example(name), YOURS)
        loss.backward()
        adam(p.values(), means, t)
        losses.append(float(loss.data))
    return losses


# %% [markdown]
# **Predict, then run.** 27 letters, and the model knows nothing yet. How surprised is it? (The
# surprise by something of probability $p$ is $-\log p$.)

# %% tags=["active-ipynb"]
# from minigrad.data import names
#
# DATA = [str(name) for name in np.random.default_rng(1).permutation(names())]
# print(len(DATA), "names:", ", ".join(DATA[:8]), "…")
# losses = by_yours(DATA[:50])
# print("first", round(losses[0], 4), "  log 27 =", round(np.log(27), 4))
# print("mean of the last ten", round(np.mean(losses[-10:]), 4))

# %% [markdown]
# Your engine trains a GPT: 4,192 parameters, 84 functions in the graph of each name, and
# `backward` walks them in an order that you wrote.
#
# ## The same model in the package
#
# Eagerly, with tensors. Not a line of the model changes: it never asked what it computes with.

# %%
def by_tensors(data, seed=0):
    """The losses while the eager engine trains."""
    p = {name: mg.tensor(value, requires_grad=True) for name, value in starts(seed).items()}
    optimizer, losses = optim.Adam(list(p.values()), lr=0.01, beta1=0.85, beta2=0.99), []
    for name in data:
        optimizer.zero_grad()
        loss = loss_of(p, *map(mg.tensor, example(name)), mg)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# And written down: the same function, called once with variables, writes a program. Its backward
# part is generated, then all of it is compiled to one NumPy function.

# %%
def written_down(seed=0, backend="numpy"):
    """The program of one training step, compiled."""
    program = static.Program()
    with static.program_guard(program):
        x, y = (static.data(name, [BLOCK, len(LETTERS)]) for name in "xy")
        p = {name: static.parameter(name, value) for name, value in starts(seed).items()}
        loss = loss_of(p, x, y, mg)
        optim.Adam(lr=0.01, beta1=0.85, beta2=0.99).minimize(loss)
    return static.compile(program, fetch=[loss], backend=backend)


def by_program(data, step):
    """The losses while a compiled program trains."""
    return [float(step(**dict(zip("xy", example(name), strict=True)))[0]) for name in data]


# %% tags=["active-ipynb"]
# step = written_down()
# three = np.array([losses, by_tensors(DATA[:50]), by_program(DATA[:50], step)])
# print(three[:, [0, 1, 49]].T)
# print("largest difference in 50 steps:", np.ptp(three, axis=0).max())
# assert np.ptp(three, axis=0).max() < 1e-12

# %% [markdown]
# Three engines, one course of training, to twelve digits. The program goes on, for the rest of the
# names and twice through all of them. It takes a few seconds.

# %% tags=["active-ipynb"]
# more = by_program(DATA[50:] + DATA * 2, step)
# print("mean loss of the first 50 names", round(np.mean(losses), 2))
# print("mean loss of the last 500 names", round(np.mean(more[-500:]), 2))

# %% [markdown]
# The same program can be compiled to C: forward, backward and Adam in one function that decides
# nothing while it runs. It trains several times as fast. That needs a C compiler. Where there is
# none, in a browser for example, you get a sentence that says so.

# %%
def by_c(data):
    """The losses while the program trains as C; a sentence where it cannot be compiled."""
    try:
        return by_program(data, written_down(backend="c"))
    except mg.MinigradError as error:
        return str(error).splitlines()[0]


# %% tags=["active-ipynb"]
# fast = by_c(DATA[:50])
# print(fast if isinstance(fast, str) else np.allclose(fast, losses, rtol=0, atol=1e-9))

# %% [markdown]
# ## It invents names
#
# Begin with the dot, ask for the chances of the next letter, roll the dice, go on with what comes,
# until it is a dot. On your engine again, with the parameters that the program found.

# %%
def invent(p, random, boldness=0.5):
    """A new name, letter by letter."""
    word = "."
    while len(word) < BLOCK:
        with engine.no_grad():
            x, _ = example(word[1:])
            h = thinking(attention(embedding(x, p, YOURS), p, YOURS), p, YOURS)
            chance = share(h @ p["scores"], YOURS).data[len(word) - 1] ** (1 / boldness)
        letter = random.choice(list(LETTERS), p=chance / chance.sum())
        if letter == ".":
            break
        word += letter
    return word[1:]


# %% tags=["active-ipynb", "varies"]
# p = {name: engine.Variable(value) for name, value in step.parameters.items()}
# random = np.random.default_rng(7)
# print(", ".join(invent(p, random) for _ in range(24)))

# %% [markdown]
# Some are real, most are new, and nearly all of them sound like names. Nobody told the model what
# a vowel is. It was told how to lower one number, a little, a few thousand times. The gradients that
# you know how to make did the rest.
#
# ## Forward and backward in one picture
#
# The program has some 80 operators, and the generated backward part 90 more. Each layer is one box
# here, with the arrows between layers; parameters are left out.

# %%
LAYERS = {"embedding": embedding, "attention": attention, "thinking": thinking}


def layered(seed=0):
    """The model as a net of one net per layer, and the net of its gradient."""
    program, ends = static.Program(), []
    with static.program_guard(program):
        h, y = (static.data(name, [BLOCK, len(LETTERS)]) for name in "xy")
        p = {name: static.parameter(name, value) for name, value in starts(seed).items()}
        for layer in LAYERS.values():
            h = layer(h, p, mg)
            ends.append(len(program.global_block().ops))
        -(mg.log(share(h @ p["scores"], mg)) * y).sum()         # calling it writes its operators
    ops = [net.Operator(op.type, op.inputs, op.outputs, op.attrs)
           for op in program.global_block().ops]
    spans = zip([*LAYERS, "loss"], [0, *ends], [*ends, len(ops)], strict=True)
    forward = net.NetOp([net.NetOp(ops[a:b], name) for name, a, b in spans], "GPT")
    return forward, net.Backward(forward, no_grad=set(forward.inputs["x"]) - set(p)), set(p)


def as_boxes(layers, hidden):
    """A net of nets with one box for each inner one, and without some names."""
    def seen(names):
        names = [name for name in names if not name.startswith("const")]
        return [name for name in names if name.removesuffix("@GRAD") not in hidden]

    return NetOp([SimpleNamespace(type=f"{op.type}, {len(op.ops)} operators", attrs={},
                                  inputs={"x": seen(op.inputs["x"])},
                                  outputs={"out": seen(op.outputs["out"])})
                  for op in layers.ops], layers.type)


# %% tags=["active-ipynb", "picture-F", "picture-B"]
# forward, backward, parameters = layered()
# mg.draw((as_boxes(forward, parameters), as_boxes(backward, parameters)))

# %% [markdown]
# Attention is most of it. Each box on the right stands opposite its twin, and begins with the
# gradient that the one below has made. That picture is this whole course.

# %% [markdown]
# # Your own function in five pictures
#
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
    if not wanted:
        raise ValueError("WANTED is empty: name a value whose gradient you want, such as 'w'")
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
# **Linked nodes** replay the program, one object for each operation, as in step 20. (Folded. Two things are
# new: a number in the program itself is a constant, and where shapes were stretched, the gradient is
# summed back, as in step 9.)

# %% tags=["folded"]
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


def by_backward_part(function, values, wanted):
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
# whole, found = by_backward_part(mine, VALUES, WANTED)
#
# for name in WANTED:
#     columns = {"linked nodes": boxes[name].grad, "grad_fn": tensors[name].grad.numpy(),
#                "net": scope[f"{name}@GRAD"], "program": found[f"{name}@GRAD"]}
#     truth = by_judge(mine, VALUES, name)
#     for column, gradient in columns.items():
#         assert np.max(np.abs(gradient - columns["program"])) < 1e-12, (name, column)
#         assert np.allclose(gradient, truth, rtol=1e-5, atol=1e-7), (name, column)
#     print(f"{name}: four engines and the judge agree")

# %% [markdown]
# If the judge disagrees with all four: your function may have a kink where you stand (`abs` at 0,
# for example), or the values may be so large that `eps` is too small. The valley of step 1 again.
#
# ## The same in C
#
# A program is text, so it can be said in another language. On the left is your program with its
# backward part, on the right its C. A comment in the C names the line that the code below it belongs to.
# Operators of one shape share their loops. (As in step 20: where a line begins with `y_grad=`, only the
# gradient for slot `y` is wanted. A comment such as `# no mul_grad of #3` says that operator number 3,
# counted from 0, needs no grad operator, and why.)

# %%
def beside(left, right):
    """Two texts as two columns."""
    rows = list(zip_longest(left.splitlines(), right.splitlines(), fillvalue=""))
    width = max(len(a) for a, _ in rows) + 2
    return "\n".join(f"{a:<{width}}{b}" for a, b in rows)


# %% tags=["active-ipynb"]
# text = static.to_c(whole, fetch=[f"{name}@GRAD" for name in WANTED], exact=False)
# print(beside(str(whole), text[text.index("int step"):]))

# %% [markdown]
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
# pass stays right.
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
# hunt = plant(by_backward_part(mine, VALUES, WANTED)[0], feed, WANTED, seed=1)
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
