# %% [markdown]
# # Step 1. Boxes, functions, a numerical judge
#
# **Goal.** Compute with small functions that go from box to box, and measure a slope without
# knowing any calculus rule.
#
# **Time.** 15 minutes
#
# **Needs.** Python, and what a derivative is

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# By the end of this course you will be able to read, and change, the engine behind
# `loss.backward()`. We build it in small steps: each adds a few short definitions.
#
# **Part A, steps 1 to 4: linked nodes.** You need Python with classes, and the chain rule of school
# calculus. NumPy helps, but every call is explained by what it prints. Steps 1 to 6 fill an
# afternoon.
#
# | step | the question |
# |---|---|
# | 1 | What is a graph made of, and how do we know that a gradient is right? |
# | 2 | What does one function do on the way back? |
# | 3 | How does a result know where it came from? |
# | 4 | How does the walk run by itself? |
#
# How to work:
#
# * Run the cells from the top, with Shift + Enter. **Predict, then run**: say your answer first.
#   Such a cell shows nothing before you run it.
# * Under *A mistake* something goes wrong on purpose. The repair follows.
# * The code behind a slider or a button is folded. Run the cell as it is, or click the bar to its
#   left to read it.
# * In the exercises, replace the line that raises `"your turn"` and run the cell.
#   `check` prints one green line, or, after a wrong answer, a red one with a hint.
# * If a cell never ends, press the square ■ in the bar above, and correct it.
#
# Today there is no backward yet. We make the two things a graph consists of, **boxes** and
# **functions**, and a **judge**: a slow and simple way to measure a derivative. Every gradient in
# this course will have to face that judge.

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# ## A box
#
# A number such as `0.5` has no room for anything else: we cannot write its gradient on it.
# So we put it in a box. The box has one field today. In the next step it gets a second one.
#
# Into a box we put a NumPy array, here `np.array(0.5)`, an array with one number in it.
# Later the same boxes will hold larger ones.

# %%
class Variable:
    """A box for one array."""

    def __init__(self, data):
        self.data = data


# %% tags=["active-ipynb"]
# x = Variable(np.array(0.5))
# print(x.data)
#
# x.data = np.array(3.0)          # the content changes, the box stays the same
# print(x.data)

# %% [markdown]
# ## A function takes a box and returns a new box
#
# Two jobs, two methods:
#
# * `__call__` does the packing: take the array out of one box, put the result into a new one.
#   It is the same for every function.
# * `forward` does the mathematics, on bare arrays. Every function brings its own.

# %%
class Function:
    """From one box to a new box."""

    def __call__(self, input):
        x = input.data
        y = self.forward(x)
        return Variable(y)

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no forward(x) of its own")


# %% [markdown]
# Two functions are enough for a long time.

# %%
class Square(Function):
    """y = x²"""

    def forward(self, x):
        return x ** 2


class Exp(Function):
    """y = eˣ"""

    def forward(self, x):
        return np.exp(x)


# %% [markdown]
# **Predict, then run.** What is in the box `y`? Which type has `y`?

# %% tags=["active-ipynb"]
# x = Variable(np.array(10.0))
# y = Square()(x)
# print(y.data)
# print(type(y).__name__)

# %% [markdown]
# The new box is a new object. The old one is untouched.

# %% tags=["active-ipynb"]
# assert y is not x
# assert x.data == 10.0

# %% [markdown]
# `Function` itself only packs. It cannot compute anything, and says so.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# Function()(x)

# %% [markdown]
# ## Functions in a row
#
# A box comes out, so it can go into the next function. The three functions below stay with us for
# four steps:
#
# $$x \xrightarrow{A} a \xrightarrow{B} b \xrightarrow{C} y \qquad y = \left(e^{x^2}\right)^2$$
#
# **Predict, then run.** Is $y$ at $x = 0.5$ nearer to 1 or to 2?

# %% tags=["active-ipynb"]
# A, B, C = Square(), Exp(), Square()
#
# x = Variable(np.array(0.5))
# a = A(x)
# b = B(a)
# y = C(b)
# print(y.data)

# %% [markdown]
# Here is the picture of what ran. `mg.watch` looks over the shoulder of the functions while they
# are called. Nothing is drawn by hand, so the picture cannot lie.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# with mg.watch(Function) as run:
#     a = A(x)
#     b = B(a)
#     y = C(b)
#
# mg.draw(run)

# %% [markdown]
# Three functions, four boxes, each with its value. This is **F**, the *forward graph*. (`x` is
# grey: it was given, and nobody asks for its gradient yet.)
#
# Every step of this course has a second picture, **B**, the *backward graph*. Today it is empty:
# there is nothing to walk yet.

# %% tags=["active-ipynb"]
# assert f"{y.data}" == "1.648721270700128"
# print([type(function).__name__ for kind, function, *_ in run.events if kind == "forward"])
# print([type(function).__name__ for kind, function, *_ in run.events if kind == "backward"])

# %% [markdown]
# ## The judge: a slope from two values
#
# How fast does $f$ change at $x$? Go a little to the left, go a little to the right, and divide
# the rise by the run:
#
# $$f'(x) \approx \frac{f(x + \varepsilon) - f(x - \varepsilon)}{2\,\varepsilon}$$
#
# This is the *central difference*. It needs no rule of calculus. It only calls $f$ twice.

# %%
def numerical_diff(f, x, eps=1e-4):
    """The slope of f at the box x, measured from both sides."""
    left = f(Variable(x.data - eps))
    right = f(Variable(x.data + eps))
    return (right.data - left.data) / (2 * eps)


# %% [markdown]
# Calculus says that the derivative of $x^2$ at 2 is 4. What does the judge say?

# %% tags=["active-ipynb"]
# x = Variable(np.array(2.0))
# slope = numerical_diff(Square(), x)
# print(slope)
# assert abs(slope - 4) < 1e-11

# %% [markdown]
# Nearly. The 0.000000000004 too much is rounding: a computer keeps about 16 digits.
#
# The judge does not mind whether `f` is one function or many in a row. Here is the whole chain.

# %% tags=["active-ipynb"]
# def chain(x):
#     return C(B(A(x)))
#
#
# x = Variable(np.array(0.5))
# slope = numerical_diff(chain, x)
# print(slope)
# assert abs(slope - 3.2974426293330694) < 1e-11

# %% [markdown]
# Remember that number: **3.29744**. By the chain rule the true derivative is
# $4\,x\,y = 2 \cdot 1.648721270700128$.
# The next step will reach it exactly, without measuring.
#
# ## A mistake: "smaller is more exact"
#
# A smaller `eps` looks better. So take the smallest number that comes to mind.
#
# **Predict, then run.** How many correct digits will this slope have?

# %% tags=["active-ipynb", "mistake"]
# for eps in (1e-4, 1e-14, 1e-17):
#     print(f"eps = {eps:.0e}   slope = {numerical_diff(chain, x, eps):.4f}")

# %% [markdown]
# The last one is 0: near 0.5 the numbers a computer knows lie about 1e-16 apart.
# `0.5 + 1e-17` *is* `0.5`, so the left value and the right value are the same.

# %% tags=["active-ipynb"]
# assert 0.5 + 1e-17 == 0.5
# assert numerical_diff(chain, x, 1e-17) == 0

# %% [markdown]
# Two errors pull in opposite directions:
#
# * **truncation**: the curve is not a straight line. This error grows with `eps`.
# * **rounding**: the two values share their first digits, and the subtraction cancels them. What
#   is left is divided by a tiny number. This error grows when `eps` shrinks.
#
# The error is the distance to the true value, $4\,x\,y$, with all its digits.

# %% tags=["active-ipynb"]
# EXACT = 3.297442541400256
#
#
# def error(exponent):
#     """How far the judge is off with eps = 10 to this exponent."""
#     return abs(numerical_diff(chain, Variable(np.array(0.5)), 10.0 ** exponent) - EXACT)
#
#
# print(f"{error(-4):.0e}  {error(-14):.0e}")

# %% [markdown]
# **Move the slider.** Where is the bottom of the valley?

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import GRADIENT, explore, figure
#
# EXPONENTS = range(-15, 0)
#
#
# def valley(exponent):
#     plot, axes = figure()
#     axes.loglog([10.0 ** k for k in EXPONENTS], [error(k) for k in EXPONENTS], "o-")
#     axes.loglog(10.0 ** exponent, error(exponent), "o", markersize=14, color=GRADIENT)
#     axes.set(xlabel="eps", ylabel="error of the slope",
#              title=f"eps = 1e{exponent}: error {error(exponent):.0e}")
#     plot.set_label("the error against eps: high at both ends, a valley between")
#     return plot
#
#
# explore(valley, exponent=(-15, -1, -4))

# %% [markdown]
# The bottom lies near 1e-6. Right of it truncation rules, and the points lie on a straight line.
# Left of it rounding rules. Rounding is partly luck, so there the points jump up and down.
#
# The valley is why the judge is only a judge. It needs two evaluations of `f` *for every input*,
# and it never gives all the digits. A network with a million weights would need two million runs
# for one step of training. Backward needs one walk. That is the next step.

# %% tags=["active-ipynb"]
# assert error(-4) < error(-1)
# assert error(-4) < error(-14)

# %% [markdown]
# ## Exercises
#
# **1a.** Write the function `Cube`, $y = x^3$. Only `forward` is missing.

# %% tags=["active-ipynb", "exercise", "ex-1a"]
# class Cube(Function):
#     """y = x³"""
#
#     def forward(self, x):
#         ### BEGIN SOLUTION
#         return x ** 3
#         ### END SOLUTION
#
#
# check("1a", Cube, Variable)

# %% [markdown]
# **1b.** A cheaper judge looks at one side only, the *forward difference* $\dfrac{f(x +
# \varepsilon) - f(x)}{\varepsilon}$. Write it. As in `numerical_diff`, `f` goes from box to box,
# `x` is a box, and the slope is a plain number. What does it say for $x^2$ at 2? And how many more
# digits does the central difference give, with the same `eps`?

# %% tags=["active-ipynb", "exercise", "ex-1b"]
# def forward_diff(f, x, eps=1e-4):
#     """The slope of f at the box x, measured from the right side only."""
#     ### BEGIN SOLUTION
#     here = f(x)
#     right = f(Variable(x.data + eps))
#     return (right.data - here.data) / eps
#     ### END SOLUTION
#
#
# check("1b", forward_diff, Variable)

# %% [markdown]
# For $x^2$ at 2 with `eps = 1e-4` it says 4.0001. The central difference says 4.000000000004. That
# is seven more digits, for the same two runs. ($x^2$ is a lucky case: measured from both sides, it
# has no truncation error. For `chain` it is four more digits.) The forward difference is cheaper
# only when there are many inputs: all of them share the one run of $f(x)$.
#
# **1c.** Find one `eps` below 1e-8 and one above 1e-3, each so bad that the slope of `chain` at
# 0.5 misses the true value by more than 0.01. Use the slider, or `error`: `error(-2)`
# belongs to `eps = 1e-2`.

# %% tags=["active-ipynb", "exercise", "ex-1c"]
# ### BEGIN SOLUTION
# too_small = 1e-15
# too_large = 0.1
# ### END SOLUTION
#
# check("1c", too_small, too_large)

# %% [markdown]
# ## Where this path comes from
#
# Steps 1 to 9 follow *DeZero*, a framework that Koki Goto builds in his book *Deep Learning
# from Scratch 3*: boxes and functions, creators, generations. DeZero follows Chainer, and so did
# PyTorch.
#
# ## In PyTorch / in Paddle
#
# The same chain. The box is called a tensor, and functions are called without making an object
# first. What the lines print stands beside them (recorded with torch 2.13.0 and paddle 3.3.1).
#
# ```python
# x = torch.tensor(0.5, dtype=torch.float64)
# y = torch.exp(x ** 2) ** 2
# y                       # tensor(1.6487, dtype=torch.float64)
# y.item()                # 1.648721270700128
# ```
#
# ```python
# x = paddle.to_tensor(0.5, dtype="float64")
# y = paddle.exp(x ** 2) ** 2
# y.item()                # 1.648721270700128
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the box | `minigrad.eager.tensor:Tensor` |
# | a function with its name and its rule | `minigrad.primitives.registry:primitive` |
# | `Exp` | `minigrad.ops.elementwise:exp` |
# | the judge | `minigrad.check:gradcheck` |
