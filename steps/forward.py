# %% [markdown]
# # Beside the path. Forward mode, and JAX's way
#
# **Goal.** Carry slopes along with the values, see what that costs, and get reverse mode back by
# reading a list from the end.
#
# **Time.** 15 minutes
#
# **Needs.** step 6 (no other step needs this page)

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# Every step of this course computes forward and then walks back. There is another way: let each
# number bring its slope along. Then there is nothing to walk, nothing to keep, no graph. Why does
# nobody train networks like that? And why does JAX begin with it all the same?

# %%
from collections import defaultdict

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg

# %% [markdown]
# ## A number and its slope
#
# A `Dual` is a value and how fast it moves. When two move, their sum moves with both slopes. Their
# product moves by the product rule.

# %%
class Dual:
    """A value, and how fast it moves."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        return Dual(self.value * other.value,
                    self.slope * other.value + self.value * other.slope)

    def sin(self):
        return Dual(np.sin(self.value), np.cos(self.value) * self.slope)


def jvp(f, values, direction):
    """The value of f, and its slope when the inputs move in a direction."""
    y = f(*map(Dual, values, direction))
    return y.value, y.slope


# %% tags=["active-ipynb"]
# def f(a, b, d):
#     return (a + b) * d
#
#
# print(jvp(f, (2.0, 3.0, 4.0), (1.0, 0.0, 0.0)))

# %% [markdown]
# 20, and the slope 4: the example of step 5, without a single link. The inputs move in a
# *direction*, here along `a` alone.
#
# Put all slopes of a function into a table, one row per output and one column per input: that is
# its *Jacobian*. One run of forward mode gives this table times a direction, a **JVP**
# (*Jacobian-vector product*). Reverse mode gives a **VJP** (*vector-Jacobian product*): a gradient
# that comes in at the outputs, times the table. Neither ever builds the table.
#
# **Predict, then run.** We want all three gradients. How many runs does forward mode need? And for
# a network of a million parameters?

# %% tags=["active-ipynb", "mistake"]
# for name, direction in zip("abd", np.eye(3)):
#     print(name, jvp(f, (2.0, 3.0, 4.0), direction)[1])

# %% [markdown]
# One run per input. A loss has a million inputs and one output, so reverse mode needs one walk where
# forward mode needs a million runs. For one input and many outputs it is the other way round: a
# simulation with one knob, say.
#
# | | forward mode (JVP) | reverse mode (VJP) |
# |---|---|---|
# | one pass gives | all outputs, along one direction | one output, for all inputs |
# | passes for a full gradient | one per input | one per output |
# | what is kept | nothing | what the rules read (step 11) |
#
# ## A list of lines
#
# Look at the two rules above once more. However bent `f` is, slopes only get multiplied by numbers
# and added. Take $p = x \cdot w$ at $x = 3$, $w = 5$. If `x` moves by 1, `p` moves by 5; if `w`
# moves by 1, `p` moves by 3. Two lines say it all:
#
# ```
# p += 5 * x
# p += 3 * w
# ```
#
# Here each letter stands for a slope. So let us run `f` and write down nothing but such lines, each
# as `(out, factor, input)`. JAX calls this to *linearise* a function. The slope of an input takes
# the input's name, and the slope of each result gets a new name, `s0`, `s2`, …, after the number of lines
# written so far.

# %%
class Traced:
    """A number whose slope has a name; operations append lines for their slopes."""

    def __init__(self, value, name, lines):
        self.value, self.name, self.lines = value, name, lines

    def __add__(self, other):
        new = self.fresh()
        self.lines += [(new, 1.0, self.name), (new, 1.0, other.name)]
        return Traced(self.value + other.value, new, self.lines)

    def __mul__(self, other):
        new = self.fresh()
        self.lines += [(new, other.value, self.name), (new, self.value, other.name)]
        return Traced(self.value * other.value, new, self.lines)

    def sin(self):
        new = self.fresh()
        self.lines += [(new, np.cos(self.value), self.name)]
        return Traced(np.sin(self.value), new, self.lines)

    def fresh(self):
        return f"s{len(self.lines)}"


def linearise(f, **values):
    """The value of f, the name of its slope, and the lines that lead there."""
    lines = []
    y = f(*(Traced(value, name, lines) for name, value in values.items()))
    return y.value, y.name, lines


def push(lines, slopes):
    """Run the lines from first to last on the slopes that are given by name."""
    slopes = defaultdict(float, slopes)
    for out, factor, each in lines:
        slopes[out] += factor * slopes[each]
    return slopes


# %% tags=["active-ipynb"]
# def g(x, w):
#     return x * w * w.sin()
#
#
# y, name, lines = linearise(g, x=3.0, w=5.0)
# for line in lines:
#     print("{} += {:7.4f} * {}".format(*line))
# print(push(lines, {"w": 1.0})[name], "is", jvp(g, (3.0, 5.0), (0.0, 1.0))[1])

# %% [markdown]
# The first two lines are those from above (`p` is called `s0`). The sine is gone, and so is every product of two
# unknowns: what is left is a program of numbers times slopes. Run from the top, it is forward mode.
#
# ## Read it from the end
#
# `p += 5 * x` says: if `x` moves by 1, `p` moves by 5. Then a gradient of 1 at `p` is a gradient of
# 5 at `x`: read from right to left, the line is `x += 5 * p`. So turn every line round, and begin
# with the last one.

# %%
def transpose(lines):
    """The lines from last to first, each from its output to its input."""
    return [(each, factor, out) for out, factor, each in reversed(lines)]


# %% [markdown]
# **Predict, then run.** We start with a slope of 1 at the *result* and push it through the turned
# lines. What stands at `x` and at `w` in the end?

# %% tags=["active-ipynb"]
# gradients = push(transpose(lines), {name: 1.0})
# print(gradients["x"], gradients["w"])
#
# # the judge: the package, whose Tensors are the Variables of step 6 under PyTorch's name
# x, w = (mg.tensor(number, requires_grad=True) for number in (3.0, 5.0))
# y = x * w * mg.sin(w)
# y.backward()
# assert np.allclose([gradients["x"], gradients["w"]], [x.grad.item(), w.grad.item()])

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# mg.draw(y)

# %% [markdown]
# Both gradients, in one run. Find the five turned lines in the picture: on the right, each stands as
# a formula, a factor times what comes in.
#
# **Reverse mode is forward mode, linearised and transposed.** `+=` is
# the accumulation of step 5, the order is that of step 6, the factors are the saved values of step
# 11. Nobody wrote a rule for going backwards: in JAX an operation has a rule for its slope, and
# only the few linear ones, such as `+` and *times a number*, know how to be turned round.
#
# The two modes meet in one equation. Move the inputs in any direction $v$, weigh the outputs with
# any $u$: $u \cdot (J v) = (u J) \cdot v$. This test needs no finite differences, and it finds every
# mistake in turning round. It cannot see a factor that is wrong in *both* directions: for that there
# is the judge.

# %% tags=["active-ipynb"]
# random = np.random.default_rng(0)
# for _ in range(100):
#     u, v = random.normal(), dict(zip("xw", random.normal(size=2)))
#     forward, back = push(lines, v)[name], push(transpose(lines), {name: u})
#     assert np.isclose(u * forward, sum(back[each] * v[each] for each in v))

# %% [markdown]
# ## In JAX
#
# Recorded with JAX 0.10.2 (types left out): the lines of $3\,w \sin w$ at $w = 5$, and the same
# turned round. `a`, `b`, `c` are the kept numbers.
#
# ```python
# >>> y, slope = jax.linearize(lambda w: 3. * w * jnp.sin(w), 5.)
# >>> jax.make_jaxpr(slope)(1.)
# { lambda a b c; d. let
#     e = mul 3.0 d
#     f = mul d a
#     g = mul e b
#     h = mul c f
#     i = add_any g h
#   in (i,) }
# >>> turned = jax.linear_transpose(slope, 1.)
# >>> jax.make_jaxpr(turned)(1.)
# { lambda a b c; d. let
#     e = mul a d
#     f = mul d b
#     g = mul e c
#     h = mul 3.0 f
#     i = add_any g h
#   in (i,) }
# ```
#
# `lax.scan` is JAX's loop for reverse mode: its number of steps is known, so what each step keeps can
# be stacked. Its `while_loop` has forward mode only: nobody knows how many steps there will be, so it
# keeps nothing of them. (Step 19 shows another way.)
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | a slope along a direction | `minigrad.functional:jvp` |
# | a gradient times the Jacobian | `minigrad.functional:vjp` |
