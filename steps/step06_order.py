# %% [markdown]
# # Step 6. Order
#
# **Goal.** Know why the order of the backward calls matters, see the wrong ones go wrong, and
# build the right one.
#
# **Time.** 20 minutes
#
# **Needs.** step 5

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# In a chain there is only one way back. In a graph the paths part and meet again, and someone has to
# decide **which function runs next**. You will see wrong answers first, then write the right one, and
# then put four orders side by side.
#
# Two things have changed in the engine, a line or two each. They are folded for now: you will see each
# of them when it is needed.

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

    def backward(self, order=None):  # new
        """Add to the gradient of every variable behind this one, in an order of functions."""
        if self.creator is None:
            raise RuntimeError(
                "this Variable is a leaf: no function made it, so there is nothing to walk. "
                "Call backward() on the result of a computation")
        if self.grad is None:
            self.grad = np.ones_like(self.data)
        for f in (order or by_generation)(self):  # new
            gxs = f.backward(f.output.grad)
            if not isinstance(gxs, tuple):
                gxs = (gxs,)
            for x, gx in zip(f.inputs, gxs, strict=True):
                accumulate(x, gx)

    def __add__(self, other):
        return Add()(self, other)

    def __mul__(self, other):
        return Mul()(self, other)


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
        output.set_creator(self)
        self.inputs, self.input = inputs, inputs[0]
        makers = [x.creator for x in inputs if x.creator is not None]  # new
        self.generation = 1 + max((f.generation for f in makers), default=0)  # new
        self.output = output
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


# %% tags=["carried"]
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

# %% [markdown]
# ## The diamond
#
# One path from `x` to `a`. Two paths from `a` to `y`.
#
# $$a = x^2, \qquad y = a^2 + a^2 = 2 x^4, \qquad \frac{dy}{dx} = 8 x^3$$
#
# At $x = 2$ that is **64**. Remember this number.

# %% tags=["active-ipynb", "picture-F"]
# def diamond(x):
#     a = square(x)
#     return square(a) + square(a)
#
#
# x = Variable(np.array(2.0))
# y = diamond(x)
# a = y.creator.inputs[0].creator.input           # it has no name out here, but links lead to it
# mg.draw(y)

# %% [markdown]
# ## A mistake: the stack of step 5
#
# Step 5 kept the waiting functions on a stack: last in, first out (LIFO). To try other orders as well,
# `backward` now takes one: a function that lists the functions behind `y`, the first to run first.
#
# ```python
# for f in (order or by_generation)(self):
# ```
#
# The stack of step 5 is such an order. Below it has the name `lifo`.
#
# **Predict, then run.** How often will the first square, the one that made `a`, run backward?

# %% tags=["active-ipynb", "mistake"]
# def lifo(y):
#     """The order of step 5: whoever was put on the stack last runs next."""
#     order, stack = [], [y.creator]
#     while stack:
#         f = stack.pop()
#         order.append(f)
#         stack.extend(x.creator for x in f.inputs if x.creator is not None)
#     return order
#
#
# with mg.watch(Function) as run:
#     x = Variable(np.array(2.0))
#     a = square(x)
#     y = square(a) + square(a)
#     y.backward(order=lifo)
#
# print(x.grad)
# mg.draw(run)

# %% [markdown]
# 96 instead of 64. Look at the right column. (*reads a* stands for a dotted arrow that would be long.)
# The square that made `a` ran **twice**. Its slope at 2 is 4:
#
# * first too early: only one of two gradients had arrived at `a.grad`, 8. It passed on
#   $8 \cdot 4 = 32$.
# * then again, with both: 16. It passed on $16 \cdot 4 = 64$.
#
# $32 + 64 = 96$. The half-finished 8 was counted twice.
#
# ## The repair: wait for all users
#
# Here is the answer in one sentence:
#
# > A function may run backward only when *all* functions that use its output have run.
#
# Before that, the gradient of its output is not complete. It would pass on a half-finished number.
#
# Before we can put functions into an order, we need them all: every function behind `y`, **once**.
# The dictionary remembers who was there, so nobody is visited twice.

# %%
def functions_behind(y):
    """Every function behind y, each once, in no useful order."""
    found, todo = {}, [y]
    while todo:
        f = todo.pop().creator
        if f is not None and f not in found:
            found[f] = True
            todo.extend(f.inputs)
    return list(found)


# %% [markdown]
# Which of them comes first? A number tells, which every function notes on the way forward: its
# *generation*. A function that takes only leaves has generation 1. Every other one has 1 more than the
# highest generation among the makers of its inputs:
#
# ```python
# makers = [x.creator for x in inputs if x.creator is not None]
# self.generation = 1 + max((f.generation for f in makers), default=0)
# ```
#
# So a user always has a higher number than the function whose output it uses.

# %% tags=["active-ipynb"]
# for f in functions_behind(diamond(Variable(np.array(2.0)))):
#     print("generation", f.generation, type(f).__name__)

# %% [markdown]
# **6e. The engine: the order.** In which order must these four run backward? Write
# `by_generation`. When it passes, `backward` uses it from here on.

# %% tags=["exercise", "ex-6e", "engine"]
def by_generation(y):
    """The functions behind y, each once, each after all functions that use its output."""
    ### BEGIN SOLUTION
    return sorted(functions_behind(y), key=lambda f: f.generation, reverse=True)
    ### END SOLUTION


# check("6e", by_generation, Variable, square)

# %% [markdown]
# <!-- solution 6e -->
#
# And the diamond, in this order:

# %% tags=["active-ipynb", "picture-B"]
# with mg.watch(Function) as run:
#     x = Variable(np.array(2.0))
#     a = square(x)
#     y = square(a) + square(a)
#     y.backward()
#
# print(x.grad)
# assert x.grad == 64
# mg.draw(run)

# %% [markdown]
# ## Four orders side by side
#
# Recursion is the other order people try first: run a function, then everything behind its first
# input, then everything behind its second. And if you also assign instead of adding (step 5), you get
# yet another wrong number.

# %% tags=["active-ipynb"]
# def recursive(y):
#     """Run the maker of y, then do the same for each input."""
#     order = [y.creator]
#     for x in y.creator.inputs:
#         if x.creator is not None:
#             order += recursive(x)
#     return order
#
#
# def walk(y, order, overwrite=False):
#     """Variable.backward with any order, and with the mistake of step 5 on request."""
#     y.grad = np.ones_like(y.data)
#     for f in order(y):
#         gxs = f.backward(f.output.grad)
#         for x, gx in zip(f.inputs, gxs if isinstance(gxs, tuple) else (gxs,)):
#             x.grad = gx if overwrite or x.grad is None else x.grad + gx
#
#
# WAYS = {
#     "right": (by_generation, False),
#     "LIFO": (lifo, False),
#     "recursive, add": (recursive, False),
#     "recursive, overwrite": (recursive, True),
# }

# %% [markdown]
# **Predict, then run.** Which of these three graphs does a wrong order get right?

# %% tags=["active-ipynb"]
# def doubled_twice(a):
#     b = a + a
#     return b + b
#
#
# GRAPHS = {
#     "x + x": (lambda x: x + x, 1.0),
#     "diamond": (diamond, 2.0),
#     "b = a + a, c = b + b": (doubled_twice, 1.0),
# }
#
#
# def gradient(graph, way):
#     f, value = GRAPHS[graph]
#     x = Variable(np.array(value))
#     walk(f(x), *WAYS[way])
#     return int(x.grad)
#
#
# print(" " * 21, *(f"{way:>{len(way) + 1}}" for way in WAYS))
# for graph in GRAPHS:
#     print(f"{graph:21}", *(f"{gradient(graph, way):{len(way) + 1}}" for way in WAYS))

# %% [markdown]
# `x + x` is too simple: every order that adds gets it right. A test with only that graph would find
# nothing. It takes a *computed* variable that is used twice to tell the orders apart.

# %% tags=["active-ipynb"]
# assert [[gradient(graph, way) for way in WAYS] for graph in GRAPHS] == [
#     [2, 2, 2, 1], [64, 96, 96, 32], [4, 8, 8, 1]]

# %% [markdown]
# The judge has no opinion about orders. It only knows numbers.

# %% tags=["active-ipynb"]
# judged = numerical_diff(diamond, Variable(np.array(2.0)))
# print(round(float(judged), 3))
# assert abs(judged - 64) < 1e-4

# %% [markdown]
# **Choose an order and move the slider.** One backward call at a time, on the diamond. Watch
# `a.grad`, and when the square behind it runs.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore
#
#
# def walk_on_the_diamond(order, calls):
#     """The first backward calls of an order on the diamond, drawn from the calls really made."""
#     function, overwrite = WAYS[order]
#     with mg.watch(Function) as run:
#         x = Variable(np.array(2.0))
#         a = square(x)
#         b = square(a)
#         c = square(a)
#         y = b + c
#         walk(y, lambda y: function(y)[:calls], overwrite)
#     names = {"x": x, "a": a, "b": b, "c": c, "y": y}
#     made = {v.creator: name for name, v in names.items() if v.creator is not None}
#     whole = function(y)
#     said = [f"{i}. the {type(f).__name__} that made {made[f]}"
#             for i, f in enumerate(whole[:calls], 1)]
#     end = "end" if calls >= len(whole) else "not finished"
#     said.append(f"a.grad = {a.grad}, x.grad = {x.grad} ({end})")
#     return [mg.draw(run, names=names), "\n".join(said)]
#
#
# orders = ["LIFO", *(way for way in WAYS if way != "LIFO")]
# explore(walk_on_the_diamond, order=orders, calls=(0, 5, 3))

# %% [markdown]
# ## Wrong orders are slow, too
#
# Double a number 50 times: $y = 2^{50} x$. The graph has 50 functions. The right order visits each
# one once.

# %% tags=["active-ipynb"]
# def doubled(x, times):
#     for _ in range(times):
#         x = x + x
#     return x
#
#
# x = Variable(np.array(1.0))
# y = doubled(x, 50)
# y.backward()
# print(x.grad == 2.0 ** 50, len(functions_behind(y)))
# assert x.grad == 2.0 ** 50

# %% [markdown]
# The stack visits a function once for every *path* that leads to it, and the number of paths doubles
# each time.
#
# **Predict, then run.** How many visits for 3, 6, 10 doublings? And how long would 50 take?

# %% tags=["active-ipynb"]
# for times in (3, 6, 10):
#     print(times, "doublings:", len(lifo(doubled(Variable(np.array(1.0)), times))), "visits")

# %% [markdown]
# Every doubling doubles the visits: $2^n - 1$. At a million visits per second, 50 doublings would
# take more than 35 years.

# %% tags=["active-ipynb"]
# assert [len(lifo(doubled(Variable(np.array(1.0)), n))) for n in (3, 6, 10)] == [7, 63, 1023]
# print(f"{(2 ** 50 - 1) / 1e6 / (365 * 24 * 3600):.1f} years")

# %% [markdown]
# ## Other right orders: the tape
#
# Any order that obeys the rule gives the same gradients. The simplest one is a **tape**, also
# called a *Wengert list*: write down every function when it runs forward, then read the list
# backwards. Users come later than makers, so reading backwards meets the users first.
#
# `mg.watch` has kept such a list all along.

# %% tags=["active-ipynb"]
# with mg.watch(Function) as tape:
#     x = Variable(np.array(2.0))
#     y = diamond(x)
#
# recorded = [function for kind, function, *_ in tape.events]
# y.backward(order=lambda y: reversed(recorded))
# print(x.grad)
# assert x.grad == 64

# %% [markdown]
# Why not always a tape? It also holds functions that have nothing to do with `y`, and it has to be
# thrown away at the right time. With links the graph belongs to `y` and dies with it. That is the
# next step.
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

# %% [markdown]
# ## Exercises
#
# **6a.** Find the generation without `f.generation`: how many functions lie on the **longest** way
# from `v` to a leaf? Use the links only: the check takes the generations away. (Recursion is
# allowed. The graphs are small.)

# %% tags=["active-ipynb", "exercise", "ex-6a"]
# def longest_way(v):
#     """The number of functions on the longest way from v back to a leaf."""
#     ### BEGIN SOLUTION
#     if v.creator is None:
#         return 0
#     return 1 + max(longest_way(x) for x in v.creator.inputs)
#     ### END SOLUTION
#
#
# check("6a", longest_way, Variable, square)

# %% [markdown]
# **6b.** A *topological sort* needs no generation. Count for each function how many times its
# output is used. Start with the maker of `y`. When a function has run, count down the makers of
# its inputs. A function whose count reaches zero is ready.
#
# Write it as a loop: chains may be 20,000 long. Any valid order passes. As in 6a, the check takes
# the generations away.

# %% tags=["active-ipynb", "exercise", "ex-6b"]
# def topological(y):
#     """The functions behind y, each once, each after all functions that use its output."""
#     ### BEGIN SOLUTION
#     uses = {}
#     for f in functions_behind(y):
#         for x in f.inputs:
#             uses[x.creator] = uses.get(x.creator, 0) + 1
#     order, ready = [], [y.creator]
#     while ready:
#         f = ready.pop()
#         order.append(f)
#         for x in f.inputs:
#             uses[x.creator] -= 1
#             if uses[x.creator] == 0 and x.creator is not None:
#                 ready.append(x.creator)
#     return order
#     ### END SOLUTION
#
#
# check("6b", topological, Variable, square)

# %% [markdown]
# **6c.** What is the *smallest* expression for which `lifo` is wrong? Build it from `x` with as
# few functions as possible.

# %% tags=["active-ipynb", "exercise", "ex-6c"]
# def smallest(x):
#     """A result computed from x whose gradient is wrong under LIFO."""
#     ### BEGIN SOLUTION
#     b = x + x
#     return b + b
#     ### END SOLUTION
#
#
# check("6c", smallest, Variable)

# %% [markdown]
# **In order.** Below lies the backward part of another diamond: $a = x \cdot w$, $y = a \cdot a$, in
# a heap, and some lines do not belong. A line is one call of `backward`, or a `sum`: `mul_0` is $a$,
# `mul_1` is $y$, and the two gradients that meet at $a$ are called `…@RENAME@0` and `…@RENAME@1` until
# `sum` adds them. Say the letters in the order in which they must run, such as `puzzle("cab")`. It is
# run, drawn, and judged.

# %% tags=["active-ipynb"]
# from minigrad.course.parsons import Parsons
#
# puzzle = Parsons(lambda x, w: (a := x * w) * a)
# print(puzzle)

# %% tags=["active-ipynb"]
# puzzle("")

# %% [markdown]
# ## In PyTorch / in Paddle
#
# PyTorch numbers its backward nodes while the forward pass runs. A node runs when all its users
# have run, the newest first. Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.tensor(2., requires_grad=True)
# a = x ** 2
# y = a ** 2 + a ** 2
# y.backward()
# x.grad                              # tensor(64.)
#
# x = torch.tensor(1., dtype=torch.float64, requires_grad=True)
# y = x
# for _ in range(50):
#     y = y + y
# y.backward()
# x.grad.item() == 2 ** 50            # True
# ```
#
# ```python
# x = paddle.to_tensor(2., stop_gradient=False)
# a = x ** 2
# y = a ** 2 + a ** 2
# y.backward()
# x.grad.item()                       # 64.0
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the order of the walk | `minigrad.eager.backward:backward` |
# | for programs: the list of operators, backwards | `minigrad.static.backward.append_backward:append_backward` |
