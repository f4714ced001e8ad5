# %% [markdown]
# # Step 8. Operators, names, gradcheck
#
# **Goal.** Write formulas as you would on paper, with numbers and arrays on either side, and check
# the gradient of every argument.
#
# **Time.** 20 minutes
#
# **Needs.** step 7

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import contextlib
import weakref

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# The engine is complete; what it lacks is comfort. `x * x + y` works, but `2 * x`, `1 - x`, `x / y`
# and `x ** 3` do not. We add four functions, the operators that call them, and two helpers.
#
# ## A number is a box, too
#
# In `2 * x` the 2 is not a Variable. So `Function.__call__` now begins by putting everything into
# boxes, with the help of a small function:
#
# ```python
# inputs = tuple(as_variable(x) for x in inputs)
# ```

# %%
def as_variable(x):
    """x itself, or a box around a number or an array."""
    return x if isinstance(x, Variable) else Variable(np.asarray(x))


# %% tags=["carried"]
class Config:
    """The switches of the engine."""

    recording = True


@contextlib.contextmanager
def no_grad():
    """Make no links inside a with block; afterwards the switch is as before, whatever happened."""
    before = Config.recording
    Config.recording = False
    try:
        yield
    finally:
        Config.recording = before


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
# ## The operators
#
# Python asks the left side first: `x - 1` is `x.__sub__(1)`. In `1 - x` the number does not know what
# to do, so Python asks the right side: `x.__rsub__(1)`.
#
# ```python
# def __sub__(self, other):
#     return Sub()(self, other)
#
# def __rsub__(self, other):
#     return Sub()(other, self)
# ```
#
# The other operators are made the same way. The class is folded below. Two more things in it are
# new. A variable has a `name`, and `print` shows what is in it. And `backward` clears what an
# earlier walk left in between, which was exercise 7c. (It leaves out the first function, whose
# output is the result itself, with the seed.)
#
# ```python
# for f in functions[1:]:
#     f.output().cleargrad()
# ```

# %% tags=["folded"]
class Variable:
    """A box for one array, its gradient, its name, and the function that made it."""

    __array_ufunc__ = None          # NumPy, keep your hands off: array * variable is our business

    def __init__(self, data, name=None):  # new
        if not isinstance(data, np.ndarray):
            raise TypeError(
                f"a Variable holds a NumPy array, not the {type(data).__name__} {data!r}: "
                f"write Variable(np.array({data!r}))")
        self.data = data
        self.name = name  # new
        self.grad = None
        self.creator = None

    def __repr__(self):  # new
        text = np.array2string(self.data, separator=", ", prefix="Variable(")
        return f"Variable({text})" if self.name is None else f"Variable({text}, name={self.name!r})"

    def set_creator(self, function):
        self.creator = function

    def cleargrad(self):
        self.grad = None

    def backward(self, order=None, retain_grad=False):
        """Add to the gradient of every leaf behind this one; keep those in between on request."""
        if self.creator is None:
            raise RuntimeError(
                "this Variable is a leaf: no function made it, or recording was off (no_grad), "
                "so there is nothing to walk. Call backward() on the result of a computation")
        if self.grad is None:
            self.grad = np.ones_like(self.data)
        functions = list((order or by_generation)(self))
        for f in functions[1:]:  # new
            f.output().cleargrad()              # nothing is left from an earlier walk
        for f in functions:
            output = f.output()                 # a weak reference: call it to get the variable
            gxs = f.backward(output.grad)
            if not isinstance(gxs, tuple):
                gxs = (gxs,)
            for x, gx in zip(f.inputs, gxs, strict=True):
                accumulate(x, gx)
            if not retain_grad:
                output.cleargrad()

    def __neg__(self):  # new
        return Neg()(self)

    def __add__(self, other):
        return Add()(self, other)

    def __radd__(self, other):  # new
        return Add()(other, self)

    def __sub__(self, other):  # new
        return Sub()(self, other)

    def __rsub__(self, other):  # new
        return Sub()(other, self)

    def __mul__(self, other):
        return Mul()(self, other)

    def __rmul__(self, other):  # new
        return Mul()(other, self)

    def __truediv__(self, other):  # new
        return Div()(self, other)

    def __rtruediv__(self, other):  # new
        return Div()(other, self)

    def __pow__(self, exponent):  # new
        if isinstance(exponent, Variable):
            raise TypeError(
                "the exponent has to be a number; exercise 8a writes Power, for a Variable")
        return Pow(exponent)(self)


# %% tags=["folded"]
class Function:
    """From one or more boxes to a new box, linked both ways, and a gradient back for each input."""

    def __call__(self, *inputs):
        if hasattr(self, "input"):
            raise RuntimeError(
                f"this {type(self).__name__} was called before, and a second call would break "
                f"its links: make a new one for each call, {type(self).__name__}()(x)")
        inputs = tuple(as_variable(x) for x in inputs)  # new
        y = self.forward(*[x.data for x in inputs])
        output = Variable(np.asarray(y))
        if Config.recording:
            output.set_creator(self)
            self.inputs, self.input = inputs, inputs[0]
            makers = [x.creator for x in inputs if x.creator is not None]
            self.generation = 1 + max((f.generation for f in makers), default=0)
            self.output = weakref.ref(output)
        return output

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no forward(x) of its own")

    def backward(self, gy):
        raise NotImplementedError(f"{type(self).__name__} has no backward(gy) of its own")


# %% [markdown]
# ## Four functions
#
# Each gradient can be read off the formula. For $x_0 / x_1$ the two slopes are $1/x_1$ and
# $-x_0/x_1^2$. `Pow` has a constant, the exponent. It is no input and gets no gradient.

# %%
class Neg(Function):
    """y = -x"""

    def forward(self, x):
        return -x

    def backward(self, gy):
        return -gy


class Sub(Function):
    """y = x0 - x1"""

    def forward(self, x0, x1):
        return x0 - x1

    def backward(self, gy):
        return gy, -gy


class Div(Function):
    """y = x0 / x1"""

    def forward(self, x0, x1):
        return x0 / x1

    def backward(self, gy):
        x0, x1 = self.inputs[0].data, self.inputs[1].data
        return gy / x1, -gy * x0 / x1 ** 2


class Pow(Function):
    """y = xᶜ"""

    def __init__(self, c):
        self.c = c

    def forward(self, x):
        return x ** self.c

    def backward(self, gy):
        x = self.input.data
        return self.c * x ** (self.c - 1) * gy


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

# %% [markdown]
# **Predict, then run.** Which of these six results would have failed in step 7?

# %% tags=["active-ipynb"]
# x = Variable(np.array(3.0), name="x")
# print(x, 2 * x, 1 - x, 1 / x, x ** 3, -x, sep="\n")

# %% tags=["active-ipynb"]
# v = Variable(np.array([1.0, 2.0, 3.0]))
# print(v * 2, np.array([10.0, 20.0, 30.0]) - v, sep="\n")

# %% [markdown]
# All but the first: step 7 knew only `+` and `*`, and only between two variables. (`print(x)` did
# work, but showed an address instead of a number.)
#
# ## A mistake: NumPy takes over
#
# In the very last result, `np.array(...) - v`, the array stood on the **left**, and NumPy did not
# know what a Variable is.
# Here is a small class like ours, with an operator for the right-hand side.
#
# **Predict, then run.** How many objects come out?

# %% tags=["active-ipynb", "mistake"]
# class Shy:
#     """A class with a right-hand operator, and nothing that tells NumPy to ask for it."""
#
#     def __rmul__(self, other):
#         return f"{other} times me"
#
#
# print(np.array([1.0, 2.0]) * Shy())

# %% [markdown]
# An array of two objects: NumPy multiplied each of its numbers by the whole thing. For variables
# this would be two separate graphs. One line in `Variable` prevents it:
#
# ```python
# __array_ufunc__ = None
# ```
#
# With it NumPy steps back, and Python asks our `__rmul__`.

# %% tags=["active-ipynb"]
# v = Variable(np.array([1.0, 2.0]))
# y = np.array([10.0, 20.0]) * v
# print(y)
# assert isinstance(y, Variable)

# %% [markdown]
# ## The judge looks at every argument
#
# `numerical_diff` looks at one argument. A function of two arguments has two gradients, and each
# of them can be wrong. (In an array, the judge pushes all numbers at once here. That is enough as
# long as every function works number by number. Step 9 pushes them one at a time.)

# %%
def gradcheck(f, *inputs, rtol=1e-4, atol=1e-6):
    """Compare the gradient of every input with the judge: True, or an error that names one."""
    for x in inputs:
        x.cleargrad()
    f(*inputs).backward()
    for i, x in enumerate(inputs):
        judged = numerical_diff(lambda v, i=i: f(*inputs[:i], v, *inputs[i + 1:]), x)
        if x.grad is None or not np.allclose(x.grad, judged, rtol, atol):
            raise AssertionError(
                f"argument {i}: backward says {x.grad}, the judge says {judged}")
    return True


# %% [markdown]
# Here is a `Div` with a sign forgotten in its second gradient. A check of the first argument finds
# nothing.

# %% tags=["active-ipynb", "mistake"]
# class CarelessDiv(Div):
#     def backward(self, gy):
#         x0, x1 = self.inputs[0].data, self.inputs[1].data
#         return gy / x1, gy * x0 / x1 ** 2
#
#
# a, b = Variable(np.array(3.0)), Variable(np.array(2.0))
# print(gradcheck(lambda a: CarelessDiv()(a, b), a))

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# gradcheck(lambda a, b: CarelessDiv()(a, b), a, b)

# %% [markdown]
# Now check all of ours, every argument of every function.

# %% tags=["active-ipynb"]
# a, b = Variable(np.array([3.0, -1.5])), Variable(np.array([2.0, 0.5]))
# for f in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
#           lambda a, b: -a * b ** 3, lambda a, b: exp(a) - square(b),
#           lambda a, b: 2 / b - 3 * a + 1):
#     print(gradcheck(f, a, b))

# %% [markdown]
# **Half-way.** Rest here, if you like; exercises 8a and 8b need no more than this. What is left is easy on
# the eye: names, and a walk downhill.
#
# ## Names
#
# The picture takes the names from **your** variables. A name that you give yourself wins.

# %% tags=["active-ipynb", "picture-F"]
# x = Variable(np.array(1.0))
# y = Variable(np.array(1.0))
# z = 0.26 * (x ** 2 + y ** 2) - 0.48 * x * y
# mg.draw(z)

# %% [markdown]
# This is the *Matyas* function, a classic test for optimizers.
#
# **Predict, then run.** The formula stays the same when `x` and `y` change places. What does that
# tell you about the gradients?

# %% tags=["active-ipynb", "picture-B"]
# z.backward(retain_grad=True)
# print(f"{x.grad:.4f} {y.grad:.4f}")
# mg.draw(z)

# %% [markdown]
# The same formula after a swap, and the same values of `x` and `y`: so the gradients are equal.

# %% tags=["active-ipynb"]
# assert np.allclose([x.grad, y.grad], 0.04)

# %% [markdown]
# Even the numbers 0.26 and 0.48 got a gradient, because they sit in boxes. Nobody asked for it.
# Step 10 will save that work.

# %% [markdown]
# ## Downhill
#
# The Rosenbrock function is a long curved valley. Its lowest point is at $(1, 1)$. We walk against
# the gradient in small steps. This is how a network is trained.
#
# The walls of the valley are steep: at the start the slope is 400. So the rate is small.

# %% tags=["active-ipynb"]
# def rosenbrock(x0, x1):
#     return 100 * (x1 - x0 ** 2) ** 2 + (1 - x0) ** 2
#
#
# def descend(f, start, rate=0.001, steps=1000):
#     """The points on the way down."""
#     x0, x1 = (Variable(np.array(float(s))) for s in start)
#     path = [start]
#     for _ in range(steps):
#         x0.cleargrad()
#         x1.cleargrad()
#         f(x0, x1).backward()
#         x0.data = np.asarray(x0.data - rate * x0.grad)
#         x1.data = np.asarray(x1.data - rate * x1.grad)
#         path.append((float(x0.data), float(x1.data)))
#     return path
#
#
# x0, x1 = Variable(np.array(0.0)), Variable(np.array(2.0))
# rosenbrock(x0, x1).backward()
# print("gradient at (0, 2):", x0.grad, x1.grad)
# assert (x0.grad, x1.grad) == (-2, 400)
#
# path = descend(rosenbrock, (0.0, 2.0))
# print("after 1000 steps: {:.3f} {:.3f}".format(*path[-1]))
# assert rosenbrock(*path[-1]) < 0.2 < 400 < rosenbrock(*path[0])

# %% [markdown]
# (`rosenbrock` knows nothing about variables. It takes plain numbers just as well.)
#
# **Move the start** to another place. Where is it fast, and where does it crawl? (The rate is smaller
# here, 0.0004, so that the way down the wall can be seen.)

# %% tags=["active-ipynb", "interactive"]
# from ipywidgets import FloatSlider
#
# from minigrad.course.explore import GRADIENT, LEAF, explore, figure
#
#
# def downhill(start_0, start_1, steps):
#     """The valley from above, and the path that our gradients take."""
#     path = np.array(descend(rosenbrock, (start_0, start_1), 0.0004, steps))
#     plot, axes = figure(6.4, 4.2)
#     grid_0, grid_1 = np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-1, 3, 201))
#     height = np.log10(1 + rosenbrock(grid_0, grid_1))
#     axes.contour(grid_0, grid_1, height, levels=14, colors="#808080", linewidths=0.8)
#     axes.plot(path[:, 0], path[:, 1], "-", color=GRADIENT)
#     axes.plot(*path[0], "o", color=GRADIENT)
#     axes.plot(1, 1, "*", markersize=14, color=LEAF)
#     axes.set(xlabel="x0", ylabel="x1", xlim=(-2, 2), ylim=(-1, 3),
#              title=f"after {steps} steps: {path[-1, 0]:.3f}, {path[-1, 1]:.3f}")
#     plot.set_label(f"the way down from ({start_0}, {start_1}): after {steps} steps at "
#                    f"({path[-1, 0]:.3f}, {path[-1, 1]:.3f}); the lowest point is (1, 1)")
#     return plot
#
#
# start_0 = FloatSlider(-0.5, min=-2, max=2, step=0.25, description="start x0")
# start_1 = FloatSlider(2.5, min=-1, max=3, step=0.25, description="start x1")
# explore(downhill, start_0=start_0, start_1=start_1, steps=(1, 2000, 1000))

# %% tags=["active-ipynb"]
# assert descend(rosenbrock, (-0.5, 2.5), 0.0004, 2000)[-1][0] < 0   # the star is at 1
# assert round(descend(rosenbrock, (-0.5, 2.5), 0.004, 3)[-1][0]) == -4604

# %% [markdown]
# Down the wall it is fast. Along the valley it crawls. The gradient does point along the valley,
# but it is short there, and a rate ten times as large is no way out: on the steep wall it overshoots, and
# the third step lands at $x_0 = -4604$. From where the sliders began, even 2000 steps do not reach the
# star.
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
# x = Variable(np.array(3.0))
# y = x * x * x
# for _ in range(2):
#     x.cleargrad()
#     y.backward(retain_grad=True)
#     assert x.grad == 27

# %% [markdown]
# ## Exercises
#
# **8a.** Variable ** Variable. For $y = x_0^{x_1}$ the two slopes are $x_1 x_0^{x_1 - 1}$ and
# $x_0^{x_1} \ln x_0$, for $x_0 > 0$.

# %% tags=["active-ipynb", "exercise", "ex-8a"]
# class Power(Function):
#     """y = x0 to the power of x1"""
#
#     def forward(self, x0, x1):
#         ### BEGIN SOLUTION
#         return x0 ** x1
#         ### END SOLUTION
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         x0, x1 = self.inputs[0].data, self.inputs[1].data
#         return x1 * x0 ** (x1 - 1) * gy, x0 ** x1 * np.log(x0) * gy
#         ### END SOLUTION
#
#
# check("8a", Power, Variable, gradcheck)

# %% [markdown]
# **8b.** tanh, three ways. One function with a rule of its own (the slope is $1 - y^2$), and two
# formulas from functions that you have:
#
# $$\tanh x = \frac{e^x - e^{-x}}{e^x + e^{-x}} = 1 - \frac{2}{e^{2x} + 1}$$
#
# All three have to agree, in value and gradient. Each formula is written out: neither function calls the
# other. Call `exp` as rarely as you can: at most two times in the second way, once in the third.

# %% tags=["active-ipynb", "exercise", "ex-8b"]
# class Tanh(Function):
#     """y = tanh(x)"""
#
#     def forward(self, x):
#         ### BEGIN SOLUTION
#         return np.tanh(x)
#         ### END SOLUTION
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         y = self.output().data
#         return (1 - y * y) * gy
#         ### END SOLUTION
#
#
# def tanh_by_two_exps(x):
#     ### BEGIN SOLUTION
#     up, down = exp(x), exp(-x)
#     return (up - down) / (up + down)
#     ### END SOLUTION
#
#
# def tanh_by_one_exp(x):
#     ### BEGIN SOLUTION
#     return 1 - 2 / (exp(2 * x) + 1)
#     ### END SOLUTION
#
#
# check("8b", (lambda x: Tanh()(x), tanh_by_two_exps, tanh_by_one_exp), Variable, functions_behind)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.tensor(1., dtype=torch.float64, requires_grad=True)
# y = torch.tensor(1., dtype=torch.float64, requires_grad=True)
# z = 0.26 * (x ** 2 + y ** 2) - 0.48 * x * y
# z.backward()
# x.grad, y.grad
# # (tensor(0.0400, dtype=torch.float64), tensor(0.0400, dtype=torch.float64))
# torch.autograd.gradcheck(lambda x, y: x / y, (x, y))        # True
# ```
#
# ```python
# x = paddle.to_tensor(1., dtype="float64", stop_gradient=False)
# y = paddle.to_tensor(1., dtype="float64", stop_gradient=False)
# z = 0.26 * (x ** 2 + y ** 2) - 0.48 * x * y
# z.backward()
# x.grad.item(), y.grad.item()        # (0.040000000000000036, 0.040000000000000036)
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | Python's signs, once for every kind of value | `minigrad.primitives.values:Value` |
# | `Neg`, `Sub`, `Div` | `minigrad.ops.elementwise:div` |
# | gradcheck of every argument | `minigrad.check:gradcheck` |
