# %% [markdown]
# # Step 7. Lifetime and switches
#
# **Goal.** Know how long a graph lives and who keeps it alive, and switch recording off where
# nobody needs a gradient.
#
# **Time.** 20 minutes
#
# **Needs.** step 6

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import contextlib
import weakref

import numpy as np

# %% tags=["active-ipynb"]
# import gc
#
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# The gradients are right. Now look at the memory. Training makes thousands of graphs, a new one for
# every update. Each should vanish when nobody needs it. Do ours?
#
# The step has two halves. First: who keeps a graph alive? Then: what need not be kept at all?
#
# ## A mistake we made in step 3
#
# Python frees an object as soon as the last reference to it goes. `y.creator` is such a reference,
# and so is `f.output`. Together they make a circle. Here it is with two plain objects.
#
# How can we see whether `y` is gone, without holding it ourselves? Through a *weak reference*: it
# does not keep its object alive. Call it, and you get the object, or `None` if that is gone. (Python's
# garbage collector is off meanwhile, so that nobody tidies up behind our back.)
#
# **Predict, then run.** All names are deleted. Is `y` gone?

# %% tags=["active-ipynb", "mistake"]
# class Thing:
#     """An object with links."""
#
#
# gc.disable()
# y, f = Thing(), Thing()
# y.creator = f
# f.output = y                    # and back: a circle
#
# probe = weakref.ref(y)
# del y, f
# print("gone" if probe() is None else "still there")

# %% [markdown]
# We can no longer reach it, and still it is there: `y` holds `f`, and `f` holds `y`. The garbage
# collector looks for such circles only now and then. Until it comes, every array of every graph stays in
# memory.

# %% tags=["active-ipynb"]
# assert probe() is not None

# %% [markdown]
# ## The repair: one of the two links is weak
#
# Which one? From `y` we want to find everything behind it, so `y.creator` has to hold on. The link
# back to the output becomes weak.
#
# **Predict, then run.** One line is different. Is `y` gone now?

# %% tags=["active-ipynb"]
# y, f = Thing(), Thing()
# y.creator = f
# f.output = weakref.ref(y)       # the only change
# assert f.output() is y
#
# probe = weakref.ref(y)
# del y, f
# print("gone" if probe() is None else "still there")
# assert probe() is None
# gc.enable()

# %% [markdown]
# In the engine that takes two lines. `Function.__call__` makes the weak link, and `Variable.backward`
# calls it when it needs the output:
#
# ```python
# self.output = weakref.ref(output)
# ```
#
# ```python
# output = f.output()
# ```
#
# The rest of both classes can wait. They are folded below, and a few more lines in them are for the
# second half.

# %% tags=["folded"]
class Variable:
    """A box for one array, its gradient, and the function that made it."""

    def __init__(self, data):
        if not isinstance(data, np.ndarray):
            raise TypeError(
                f"a Variable holds a NumPy array, not the {type(data).__name__} {data!r}: "
                f"write Variable(np.array({data!r}))")
        self.data = data
        self.grad = None
        self.creator = None

    def set_creator(self, function):
        self.creator = function

    def cleargrad(self):
        self.grad = None

    def backward(self, order=None, retain_grad=False):  # new
        """Add to the gradient of every leaf behind this one; keep those in between on request."""
        if self.creator is None:
            raise RuntimeError(
                "this Variable is a leaf: no function made it, or recording was off (no_grad), "
                "so there is nothing to walk. Call backward() on the result of a computation")
        if self.grad is None:
            self.grad = np.ones_like(self.data)
        for f in (order or by_generation)(self):
            output = f.output()  # new: a weak reference: call it to get the variable
            gxs = f.backward(output.grad)
            if not isinstance(gxs, tuple):
                gxs = (gxs,)
            for x, gx in zip(f.inputs, gxs, strict=True):
                accumulate(x, gx)
            if not retain_grad:  # new
                output.cleargrad()

    def __add__(self, other):
        return Add()(self, other)

    def __mul__(self, other):
        return Mul()(self, other)


# %% tags=["folded"]
class Config:
    """The switches of the engine."""

    recording = True


# %% tags=["folded"]
class Function:
    """From one or more boxes to a new box, linked both ways, and a gradient back for each input."""

    def __call__(self, *inputs):
        if hasattr(self, "input"):
            raise RuntimeError(
                f"this {type(self).__name__} was called before, and a second call would break "
                f"its links: make a new one for each call, {type(self).__name__}()(x)")
        y = self.forward(*[x.data for x in inputs])
        output = Variable(np.asarray(y))
        if Config.recording:  # new
            output.set_creator(self)
            self.inputs, self.input = inputs, inputs[0]
            makers = [x.creator for x in inputs if x.creator is not None]
            self.generation = 1 + max((f.generation for f in makers), default=0)
            self.output = weakref.ref(output)  # new
        return output

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no forward(x) of its own")

    def backward(self, gy):
        raise NotImplementedError(f"{type(self).__name__} has no backward(gy) of its own")


# %% tags=["carried"]
class Square(Function):
    """y = x²"""

    def forward(self, x):
        return x ** 2

    def backward(self, gy):
        x = self.input.data
        return 2 * x * gy


class Exp(Function):
    """y = eˣ"""

    def forward(self, x):
        return np.exp(x)

    def backward(self, gy):
        x = self.input.data
        return np.exp(x) * gy


class Add(Function):
    """y = x0 + x1"""

    def forward(self, x0, x1):
        return x0 + x1

    def backward(self, gy):
        return gy, gy


class Mul(Function):
    """y = x0·x1"""

    def forward(self, x0, x1):
        return x0 * x1

    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return x1 * gy, x0 * gy


# %% tags=["carried"]
def square(x):
    """x²"""
    return Square()(x)


def exp(x):
    """eˣ"""
    return Exp()(x)


# %% tags=["carried"]
def numerical_diff(f, x, eps=1e-4):
    """The slope of f at the box x, measured from both sides."""
    left = f(Variable(np.asarray(x.data - eps)))
    right = f(Variable(np.asarray(x.data + eps)))
    return (right.data - left.data) / (2 * eps)


# %% tags=["carried"]
def functions_behind(y):
    """Every function behind y, each once, in no useful order."""
    found, todo = {}, [y]
    while todo:
        f = todo.pop().creator
        if f is not None and f not in found:
            found[f] = True
            todo.extend(f.inputs)
    return list(found)


def by_generation(y):
    """The functions behind y, the youngest generation first."""
    return sorted(functions_behind(y), key=lambda f: f.generation, reverse=True)


# %% tags=["carried"]
def accumulate(x, gx):
    """Add gx to x.grad without changing an array that somebody else holds."""
    x.grad = gx if x.grad is None else x.grad + gx


# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# ## Strong and weak arrows

# %% tags=["active-ipynb", "picture-F"]
# x = Variable(np.array(3.0))
# a = x * x
# y = a * x
# assert y.creator.output() is y
# assert a.creator.output() is a
# mg.draw(y)

# %% [markdown]
# Every function points to its output weakly: the dotted blue arrows. Everything else is held by `y`,
# down to the leaves.
#
# **Predict, then run.** We delete `y`. Which of these three are gone?

# %% tags=["active-ipynb"]
# gc.disable()
# probes = {"a": weakref.ref(a), "Mul that made y": weakref.ref(y.creator), "y": weakref.ref(y)}
# del y
# for name, probe in probes.items():
#     print(name, "is gone" if probe() is None else "is still there")
# gc.enable()
# assert [probe() is None for probe in probes.values()] == [False, True, True]

# %% [markdown]
# The graph falls like a row of dominoes. `a` stays, because *we* still hold it by its name.
#
# **Half-way.** This is a good place to rest. If you like, do exercise 7a first: it is about this half.
#
# ## The gradients in between
#
# The second half: what need not be kept? A gradient in the middle is as large as its variable, and
# usually one wants only those of the leaves. So `backward` clears it as soon as it has been passed on,
# unless you say `retain_grad=True`:
#
# ```python
# if not retain_grad:
#     output.cleargrad()
# ```
#
# **Predict, then run.** Which of the three have a gradient afterwards?

# %% tags=["active-ipynb"]
# y = a * x
# y.backward()
# print("x", x.grad, " a", a.grad, " y", y.grad)
# assert x.grad == 27 and a.grad is None and y.grad is None

# %% [markdown]
# The leaf only. Ask for the others, and they stay:

# %% tags=["active-ipynb", "picture-B"]
# x.cleargrad()
# y.backward(retain_grad=True)
# print("x", x.grad, " a", a.grad, " y", y.grad)
# assert (x.grad, a.grad, y.grad) == (27, 3, 1)
# mg.draw(y)

# %% [markdown]
# ## A mistake: what was kept is counted again
#
# The gradient of $y = x^3$ at 3 is 27.
#
# **Predict, then run.** Clear `x`, walk again. Is it 27 again?

# %% tags=["active-ipynb", "mistake"]
# x.cleargrad()
# y.backward(retain_grad=True)
# print("x", x.grad, " a", a.grad, " y", y.grad)
# mg.draw(y)

# %% [markdown]
# It is 45. We cleared the leaf, but not what lies between:
#
# * `y = a * x` gave 9 to `x`, as it should, and 3 to `a`. But the old 3 still lay there: $3 + 3 = 6$.
# * `a = x * x` passed on the 6, not the 3: $6 \cdot 3$ for each of its two inputs, which are both `x`.
#
# $9 + 18 + 18 = 45$. You will repair this in exercise 7c, and in step 8 the repair moves into
# `backward`.
#
# ## Recording off
#
# To use a trained model you need values only. Links cost memory even when nobody will walk them, so
# `Function.__call__` makes them only while a switch says so:
#
# ```python
# class Config:
#     recording = True
# ```
#
# ```python
# if Config.recording:
#     output.set_creator(self)
# ```
#
# We can set the switch by hand.

# %% tags=["active-ipynb"]
# x = Variable(np.array(2.0))
# Config.recording = False
# y = square(x)
# Config.recording = True
# print(y.data, y.creator)
# assert y.creator is None
# assert square(x).creator is not None

# %% [markdown]
# ## A mistake: the switch that stays off
#
# The value is there, and no creator. Now something goes wrong while the switch is off.
#
# **Predict, then run.** The error is caught. What is the gradient of `x` afterwards?

# %% tags=["active-ipynb", "mistake"]
# try:
#     Config.recording = False
#     square("two")                   # a slip: this is no Variable
#     Config.recording = True
# except AttributeError as error:
#     print("AttributeError:", error)
#
# x = Variable(np.array(2.0))
# try:
#     square(x).backward()
# except RuntimeError as error:
#     print("RuntimeError:", error)
# print(x.grad)

# %% [markdown]
# There is none. The line that switches it on again was never reached. The slip was caught long ago, but
# the engine records nothing any more, for the rest of the day.
#
# The repair is `finally`: it runs whether there was an error or not. It restores what was *before*, so
# one block may stand inside another. And `contextmanager` makes a `with` of it: what stands before
# `yield` runs at the beginning of the block, `finally` at the end.

# %%
@contextlib.contextmanager
def no_grad():
    """Make no links inside a with block; afterwards the switch is as before, whatever happened."""
    before = Config.recording
    Config.recording = False
    try:
        yield
    finally:
        Config.recording = before


# %% tags=["active-ipynb"]
# Config.recording = True
# try:
#     with no_grad():
#         square("two")
# except AttributeError as error:
#     print("AttributeError:", error)
# print("recording:", Config.recording)

# %% [markdown]
# ## A loss that grows
#
# `loss = loss + x * x`, a hundred times. How many variables are alive after each step of this loop,
# and after `del loss`? (*Strong* links are those of our steps 3 to 6.)
#
# **Switch.** With which settings is anything left after `del loss`?

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import GRADIENT, explore, figure
#
#
# def living(steps, links, recording):
#     """The number of living variables after each step, and after the loss is deleted."""
#     alive, counts = weakref.WeakSet(), []
#     x, loss = Variable(np.array(1.0)), Variable(np.array(0.0))
#     gc.disable()
#     with contextlib.nullcontext() if recording == "on" else no_grad():
#         for _ in range(steps):
#             term = x * x
#             loss = loss + term
#             alive.update([term, loss])
#             if links == "strong" and recording == "on":
#                 term.creator.strong, loss.creator.strong = term, loss
#             counts.append(len(alive))
#     del term, loss
#     counts.append(len(alive))
#     gc.enable()
#     return counts
#
#
# def memory(steps, links, recording):
#     """A plot of it."""
#     counts = living(steps, links, recording)
#     plot, axes = figure()
#     axes.plot(range(1, steps + 1), counts[:-1], "-")
#     axes.plot(steps + 1, counts[-1], "o", markersize=12, color=GRADIENT)
#     axes.annotate("after del loss", (steps + 1, counts[-1]), (-12, 12),
#                   textcoords="offset points", ha="right", color=GRADIENT)
#     axes.set(xlabel="steps", ylabel="living variables", ylim=(-12, 230), xlim=(0, 106),
#              title=f"{counts[-2]} at the end, {counts[-1]} after del loss")
#     plot.set_label(f"{links} links, recording {recording}: {counts[-2]} living variables "
#                    f"at the end, {counts[-1]} after del loss")
#     return plot
#
#
# explore(memory, steps=(1, 100, 90), links=["strong", "weak"], recording=["on", "off"])

# %% tags=["active-ipynb"]
# assert living(100, "strong", "on")[-2:] == [200, 200]
# assert living(100, "weak", "on")[-2:] == [200, 0]
# assert living(100, "weak", "off")[-2:] == [2, 0]

# %% [markdown]
# With one setting only: strong links, and recording on. With weak links the history goes at once, and
# with recording off there is none.
#
# While you hold `loss`, its whole history lives. That is no leak: backward will need it. To add up
# losses for a printout, add numbers, not variables.
#
# The numbers of the last steps still stand.

# %% tags=["active-ipynb"]
# x = Variable(np.array(0.5))
# square(exp(square(x))).backward()
# assert f"{x.grad}" == "3.297442541400256"
#
# a, b, d = (Variable(np.array(v)) for v in (2.0, 3.0, 4.0))
# e = (a + b) * d
# e.backward()
# assert (e.data, a.grad, b.grad, d.grad) == (20, 4, 4, 5)
# print(x.grad, a.grad, b.grad, d.grad)
#
# x = Variable(np.array(2.0))
# a = square(x)
# (square(a) + square(a)).backward()
# assert x.grad == 64

# %% [markdown]
# ## Exercises
#
# **7a.** Break the cycle. `link` ties two plain objects together: `v.creator` is `f`, and
# `f.output()` is `v`. When no name for them is left, both have to vanish at once, without the garbage
# collector.

# %% tags=["active-ipynb", "exercise", "ex-7a"]
# def link(v, f):
#     """v remembers f, and f finds v, without keeping it alive."""
#     ### BEGIN SOLUTION
#     v.creator = f
#     f.output = weakref.ref(v)
#     ### END SOLUTION
#
#
# check("7a", link)

# %% [markdown]
# **7b.** One `with` for every switch: `using_config("recording", False)` sets an attribute of
# `Config` for the length of a block. Errors and nesting must be safe.

# %% tags=["active-ipynb", "exercise", "ex-7b"]
# @contextlib.contextmanager
# def using_config(name, value):
#     """Config.<name> is value inside the block, and as before afterwards."""
#     ### BEGIN SOLUTION
#     before = getattr(Config, name)
#     setattr(Config, name, value)
#     try:
#         yield
#     finally:
#         setattr(Config, name, before)
#     ### END SOLUTION
#
#
# check("7b", using_config, Config)

# %% [markdown]
# **7c.** 27, not 45. Write `fresh_backward(y)`: it keeps the gradients in between
# (`retain_grad=True`), and it is right however often it is called. Clear everything behind `y`
# first; `functions_behind(y)` helps. (You need not clear `y` itself: its gradient is the seed.)

# %% tags=["active-ipynb", "exercise", "ex-7c"]
# def fresh_backward(y):
#     """Gradients of everything behind y, nothing left over from before."""
#     ### BEGIN SOLUTION
#     for f in functions_behind(y):
#         for x in f.inputs:
#             x.cleargrad()
#     y.backward(retain_grad=True)
#     ### END SOLUTION
#
#
# check("7c", fresh_backward, Variable, square)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# Gradients in between are not kept. And the second walk is refused: what a function had saved for
# backward is freed after the first one (step 11 comes to that). Recorded with torch 2.13.0 and
# paddle 3.3.1:
#
# ```python
# x = torch.tensor(3., requires_grad=True)
# a = x * x
# y = a * x
# y.backward()
# x.grad, a.grad          # (tensor(27.), None), with a warning for a.grad
# y.backward()
# # RuntimeError: Trying to backward through the graph a second time (…)
#
# with torch.no_grad():
#     z = x * x
# z.requires_grad, z.grad_fn          # (False, None)
# ```
#
# ```python
# x = paddle.to_tensor(3., stop_gradient=False)
# a = x * x
# y = a * x
# y.backward()
# x.grad.item(), a.grad               # (27.0, None)
# y.backward()
# # SystemError: … You calculate backward twice for the same subgraph without setting
# # retain_graph=True. …
#
# with paddle.no_grad():
#     z = x * x
# z.stop_gradient                     # True
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the switch | `minigrad.eager.mode:no_grad` |
# | keeping a gradient in between: `retain_grad` | `minigrad.eager.tensor:Tensor` |
