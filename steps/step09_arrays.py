# %% [markdown]
# # Step 9. Arrays
#
# **Goal.** Let whole arrays flow, keep every gradient in the shape of its value, and fit a line to
# data.
#
# **Time.** 25 minutes
#
# **Needs.** step 8

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
# Our boxes have always held arrays, mostly of one number. `Square`, `Exp`, `+` and `*` work element by
# element, so they work on arrays of any shape. One law rules them all:
#
# > **A gradient has the shape of its value.**
#
# For each number in `x` there is one in `x.grad`. It says how much the result moves when *that* number
# is pushed. We add five functions, the methods that call them, and one helper, which you will write.
# First what we bring along, folded.

# %% tags=["carried"]
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

# %% tags=["folded"]
class Variable:
    """A box for one array, its gradient, its name, and the function that made it."""

    __array_ufunc__ = None          # NumPy, keep your hands off: array * variable is our business

    def __init__(self, data, name=None):
        if not isinstance(data, np.ndarray):
            raise TypeError(
                f"a Variable holds a NumPy array, not the {type(data).__name__} {data!r}: "
                f"write Variable(np.array({data!r}))")
        self.data = data
        self.name = name
        self.grad = None
        self.creator = None

    def __repr__(self):
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
        for f in functions[1:]:
            f.output().cleargrad()              # nothing is left from an earlier walk
        for f in functions:
            output = f.output()                 # a weak reference: call it to get the variable
            gxs = f.backward(output.grad)
            if not isinstance(gxs, tuple):
                gxs = (gxs,)
            for x, gx in zip(f.inputs, gxs, strict=True):
                gx = sum_to_shape(gx, x.data.shape)  # new
                accumulate(x, gx)
            if not retain_grad:
                output.cleargrad()

    def __neg__(self):
        return Neg()(self)

    def __add__(self, other):
        return Add()(self, other)

    def __radd__(self, other):
        return Add()(other, self)

    def __sub__(self, other):
        return Sub()(self, other)

    def __rsub__(self, other):
        return Sub()(other, self)

    def __mul__(self, other):
        return Mul()(self, other)

    def __rmul__(self, other):
        return Mul()(other, self)

    def __truediv__(self, other):
        return Div()(self, other)

    def __rtruediv__(self, other):
        return Div()(other, self)

    def __pow__(self, exponent):
        if isinstance(exponent, Variable):
            raise TypeError(
                "the exponent has to be a number; exercise 8a writes Power, for a Variable")
        return Pow(exponent)(self)

    def __matmul__(self, other):  # new
        return MatMul()(self, other)

    def __rmatmul__(self, other):  # new
        return MatMul()(other, self)

    def sum(self, axis=None, keepdims=False):  # new
        return Sum(axis, keepdims)(self)

    def reshape(self, *shape):  # new
        return Reshape(shape)(self)

    def broadcast_to(self, *shape):  # new
        return BroadcastTo(shape)(self)

    @property
    def T(self):  # new
        return Transpose()(self)


# %% tags=["carried"]
class Function:
    """From one or more boxes to a new box, linked both ways, and a gradient back for each input."""

    def __call__(self, *inputs):
        if hasattr(self, "input"):
            raise RuntimeError(
                f"this {type(self).__name__} was called before, and a second call would break "
                f"its links: make a new one for each call, {type(self).__name__}()(x)")
        inputs = tuple(as_variable(x) for x in inputs)
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


# %% tags=["carried"]
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


# %% [markdown]
# ## A mistake: nothing complains
#
# Here is the walk of step 8, without the helper. `b` is a row of three numbers, added to both rows
# of `x`. Then we make one training step: `b` minus a little of its gradient.
#
# **Predict, then run.** What shape does `b` have afterwards?

# %% tags=["active-ipynb", "mistake"]
# def backward_of_step_8(y):
#     """The walk without the helper."""
#     y.grad = np.ones_like(y.data)
#     for f in by_generation(y):
#         gxs = f.backward(f.output().grad)
#         for x, gx in zip(f.inputs, gxs if isinstance(gxs, tuple) else (gxs,)):
#             x.grad = gx if x.grad is None else x.grad + gx
#
#
# x = Variable(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
# b = Variable(np.array([10.0, 20.0, 30.0]))
# y = x + b
# backward_of_step_8(y)
#
# picture = mg.draw(y)
#
# print("b", b.data.shape, "b.grad", b.grad.shape)
# b.data = b.data - 0.1 * b.grad
# print("b after one step", b.data.shape)
# picture

# %% [markdown]
# No error. Three numbers quietly became six. From here on the program computes something else.
#
# ## The repair: add what was copied
#
# NumPy stretches small arrays to fit large ones: *broadcasting*. A number that was copied to several
# places got a gradient in each of them. Used several times means **add** (step 5). So the way back
# from stretching is a sum.
#
# **9e. The engine: sum_to_shape.** Write it. Broadcasting does two things: it puts new axes in
# front, and it stretches axes of length 1. The first lines are given: they deal with an array that was
# not stretched, and with a gradient that cannot belong to this shape.
#
# Let `g` have the rows `[1. 2. 3.]` and `[10. 20. 30.]`. Then
# `sum_to_shape(g, (3,))` is `[11. 22. 33.]`: a row that was used for both rows.
# `sum_to_shape(g, (2, 1))` is `[[6.] [60.]]`: a column that was used for three columns. And
# `sum_to_shape(g, ())` is `66.`: one number that was used everywhere.
# (In NumPy, `array.sum(axis=(0, 2))` sums over axes 0 and 2 at once. Their lengths are gone then;
# `keepdims=True` keeps them, as 1.)

# %% tags=["exercise", "ex-9e", "engine"]
def sum_to_shape(array, shape):
    """Undo broadcasting: sum an array over the axes along which `shape` had been stretched."""
    array = np.asarray(array)
    if array.shape == shape:
        return array
    if np.broadcast_shapes(array.shape, shape) != array.shape:
        raise ValueError(
            f"a gradient of shape {array.shape} does not belong to a value of shape {shape}")
    ### BEGIN SOLUTION
    extra = array.ndim - len(shape)         # axes that were put in front
    stretched = [extra + i for i, n in enumerate(shape) if n == 1]      # axes of length 1
    return array.sum(axis=(*range(extra), *stretched)).reshape(shape)
    ### END SOLUTION


# check("9e", sum_to_shape, Variable)

# %% [markdown]
# <!-- solution 9e -->
#
# The walk calls it for every gradient, in one place, so that `Add`, `Sub`, `Mul` and `Div` stay as they
# are:
#
# ```python
# gx = sum_to_shape(gx, x.data.shape)
# accumulate(x, gx)
# ```
#
# Now the gradient comes back in the shape of `b`. Each number was used for two rows, so each gets
# 1 + 1.

# %% tags=["active-ipynb"]
# x = Variable(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
# b = Variable(np.array([10.0, 20.0, 30.0]))
# y = x + b
# y.backward()
# print(b.grad)
# assert b.grad.shape == b.data.shape
# mg.draw(y)

# %% [markdown]
# ## Stretched, and summed back
#
# **Choose two shapes.** A solid cell is a number of the small array. A dashed cell is a copy of it,
# with the same name. The gradients of a number and of its copies are added.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import FORWARD, explore, figure
#
# SHAPES = {str(shape): shape for shape in [(2,), (), (3,), (1, 3), (2, 1), (2, 3)]}
#
#
# def stretched(left, right):
#     """Two operands as NumPy stretches them, and the sums of the way back."""
#     shapes = [SHAPES[left], SHAPES[right]]
#     try:
#         result = np.broadcast_shapes(*shapes)
#     except ValueError:
#         return f"{left} and {right} do not fit: an axis must be equal, or 1, or missing"
#     plot, axes = figure(7, 3)
#     rows, columns = (1, 1, *result)[-2:]
#     words = []
#     for side, (shape, name) in enumerate(zip(shapes, "xy")):
#         numbers = np.broadcast_to(np.arange(np.prod(shape, dtype=int)).reshape(shape), result)
#         for (row, column), number in np.ndenumerate(numbers.reshape(rows, columns)):
#             again = number in numbers.ravel()[:row * columns + column]
#             corner = column + side * (columns + 1.5), -row
#             axes.add_patch(plot_cell(corner, again))
#             axes.annotate(f"{name}{number}", (corner[0] + 0.5, corner[1] + 0.5), ha="center",
#                           va="center", color="#808080")
#         padded = (1,) * (len(result) - len(shape)) + shape
#         summed = [str(axis) for axis, n in enumerate(result) if n != padded[axis]]
#         back = f"sum its gradient over axis {', '.join(summed)}" if summed else "no sum needed"
#         words.append(f"{name}: {shape} → {result}, {back}")
#     axes.set(xlim=(-0.2, 2 * columns + 1.7), ylim=(-rows + 0.8, 1.2), aspect="equal",
#              title="\n".join(words))
#     axes.set_axis_off()
#     plot.set_label("; ".join(words))
#     x, y = (Variable(np.ones(shape)) for shape in shapes)
#     (x * y).backward()
#     assert (x.grad.shape, y.grad.shape) == tuple(shapes)
#     return plot
#
#
# def plot_cell(corner, again):
#     """A solid cell for a number, a dashed one for its copies."""
#     from matplotlib.patches import Rectangle
#
#     fill, line = ("11", "--") if again else ("55", "-")
#     return Rectangle(corner, 0.94, 0.94, facecolor=FORWARD + fill, edgecolor=FORWARD,
#                      linestyle=line)
#
#
# explore(stretched, left=[*reversed(SHAPES)], right=["(3,)", *(s for s in SHAPES if s != "(3,)")])

# %% [markdown]
# ## Functions that change the shape
#
# | forward | backward |
# |---|---|
# | `sum`: many to few | copy the gradient back to everybody who was summed |
# | `broadcast_to`: few to many | sum (they are a mirrored pair) |
# | `reshape`: same numbers, other shape | the old shape |
# | `T`: rows become columns | `T` again |

# %%
class Sum(Function):
    """y = the sum of x along axes"""

    def __init__(self, axis, keepdims):
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x):
        return x.sum(axis=self.axis, keepdims=self.keepdims)

    def backward(self, gy):
        if self.axis is not None and not self.keepdims:
            gy = np.expand_dims(gy, self.axis)
        return np.broadcast_to(gy, self.input.data.shape)


class BroadcastTo(Function):
    """y = x, stretched to a shape"""

    def __init__(self, shape):
        self.shape = shape

    def forward(self, x):
        return np.broadcast_to(x, self.shape)

    def backward(self, gy):
        return sum_to_shape(gy, self.input.data.shape)


class Reshape(Function):
    """y = the numbers of x in another shape"""

    def __init__(self, shape):
        self.shape = shape

    def forward(self, x):
        return x.reshape(self.shape)

    def backward(self, gy):
        return gy.reshape(self.input.data.shape)


class Transpose(Function):
    """y = xᵀ"""

    def forward(self, x):
        return x.T

    def backward(self, gy):
        return gy.T


# %% [markdown]
# **Predict, then run.** Each row is summed, and then squared. What shape does `x.grad` have, and
# which numbers are in it?

# %% tags=["active-ipynb"]
# x = Variable(np.array([[1.0, 2.0], [3.0, 4.0]]))
# square(x.sum(axis=1)).sum().backward()
# print(x.grad)
# assert x.grad.tolist() == [[6, 6], [14, 14]]

# %% [markdown]
# The sums are 3 and 7, and their gradients 6 and 14. Each is copied to the two numbers of its row.
#
# **Half-way.** Rest here, if you like. The second half has the matrix product, a judge for arrays,
# and a first model.

# %% [markdown]
# ## The matrix product
#
# Take one row of two numbers, times a matrix of two columns:
#
# $$\begin{pmatrix} x_1 & x_2 \end{pmatrix}
#   \begin{pmatrix} a & b \\ c & d \end{pmatrix}
#   = \begin{pmatrix} x_1 a + x_2 c & \; x_1 b + x_2 d \end{pmatrix}$$
#
# $x_1$ stands in both results, in the first times $a$, in the second times $b$. So if the gradients
# $g_1$ and $g_2$ come in, $x_1$ gets $g_1 a + g_2 b$: the row of gradients times the *first row* of the
# matrix, which is the first column of $W^T$. And $b$ stands in one result only, the second, times
# $x_1$. It gets $x_1 g_2$. Each number of $W$ gets the $x$ of its row times the $g$ of its column.
#
# With more rows in $x$ the same happens in each row, and $W$, which serves all of them, gets the sum.
# For $y = x W$ with shapes $(n, o) = (n, i)(i, o)$ that is:
#
# * $gx = gy\, W^T$, of shape $(n, o)(o, i) = (n, i)$;
# * $gW = x^T gy$, of shape $(i, n)(n, o) = (i, o)$.
#
# The shapes help you remember which one is transposed (but not where all matrices are square).
#
# Written out, all slopes of $y$ form a huge matrix, the *Jacobian*, with a row for each number of
# $y$ and a column for each of $x$. `backward` never builds it: it computes $gy$
# times that matrix, and nothing else.

# %%
class MatMul(Function):
    """y = x @ w"""

    def forward(self, x, w):
        if x.ndim != 2 or w.ndim != 2:
            raise ValueError(
                f"@ takes two matrices here, not the shapes {x.shape} and {w.shape}: reshape first")
        return x @ w

    def backward(self, gy):
        x, w = self.inputs[0].data, self.inputs[1].data
        return gy @ w.T, x.T @ gy


# %% [markdown]
# ## The judge, number by number
#
# In an array every number has its own slope. So the judge pushes one number at a time, and looks
# at the **sum** of the result. (Why the sum? `backward` starts with a seed of ones: each number of
# the result counts once.) Two runs for each number: now you see why nobody trains networks like
# that.

# %%
def numerical_diff(f, x, eps=1e-4):
    """The slope of the sum of f, for each number in the box x, measured from both sides."""
    slope = np.empty(x.data.shape)
    for i in np.ndindex(x.data.shape):
        push = np.zeros(x.data.shape)
        push[i] = eps
        left = f(Variable(np.asarray(x.data - push)))
        right = f(Variable(np.asarray(x.data + push)))
        slope[i] = (right.data - left.data).sum() / (2 * eps)
    return slope


# %% tags=["carried"]
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

# %% tags=["active-ipynb"]
# x = Variable(np.array([[1.0, -2.0, 3.0], [0.5, 5.0, -1.0]]))
# w = Variable(np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]]))
# b = Variable(np.array([0.1, 0.2]))
# for f in (lambda x: x.sum(), lambda x: square(x).sum(axis=0),
#           lambda x: square(x).sum(axis=1, keepdims=True), lambda x: square(x.reshape(3, 2)),
#           lambda x: x.T @ x, lambda x: x / x.sum(axis=1, keepdims=True)):
#     print(gradcheck(f, x))
# print(gradcheck(lambda x, w, b: square(x @ w + b), x, w, b))
# assert gradcheck(lambda b: square(b.broadcast_to(4, 2)).sum(axis=1), b)

# %% [markdown]
# ## A line through points
#
# Data: 100 points around the line $5 + 2x$ (with noise between 0 and 1, so rather around $5.5 +
# 2x$). Model: $\hat y = x W + b$. Loss: the mean of the squared distances. That is linear
# regression, and it is the smallest network of all.
#
# Once more the whole picture: forward on the left, backward on the right.

# %% tags=["active-ipynb", "picture-F"]
# random = np.random.RandomState(0)
# x = Variable(random.rand(100, 1), name="x")
# y = Variable(5 + 2 * x.data + random.rand(100, 1), name="y")
#
# W = Variable(np.zeros((1, 1)))
# b = Variable(np.zeros(1))
#
#
# def mean_squared_error(prediction, truth):
#     distance = prediction - truth
#     return (distance ** 2).sum() / distance.data.size
#
#
# loss = mean_squared_error(x @ W + b, y)
# mg.draw(loss)

# %% [markdown]
# `b` has shape `(1,)` and is added to 100 rows. On the way back 100 gradients become one.
#
# **Predict, then run.** At the beginning, are the gradients of `W` and `b` positive or negative?
# (The line starts at 0, the points lie above.)

# %% tags=["active-ipynb", "picture-B"]
# loss.backward(retain_grad=True)
# print(f"{W.grad.item():.4f} {b.grad.item():.4f}")
# assert (W.grad.shape, b.grad.shape) == (W.data.shape, b.data.shape)
# mg.draw(loss)

# %% [markdown]
# Both are negative: a larger `W` or `b` would make the loss smaller. We step *against* the
# gradient, so both grow.

# %% tags=["active-ipynb"]
# losses = []
# for _ in range(100):
#     loss = mean_squared_error(x @ W + b, y)
#     losses.append(float(loss.data))
#     W.cleargrad()
#     b.cleargrad()
#     loss.backward()
#     W.data = W.data - 0.1 * W.grad
#     b.data = b.data - 0.1 * b.grad
#
# print(f"W {W.data.item():.6f}   b {b.data.item():.6f}   loss {losses[-1]:.4f}")
# assert f"{W.data.item():.6f} {b.data.item():.6f}" == "2.118074 5.466089"

# %% tags=["active-ipynb"]
# from minigrad.course.explore import GRADIENT, explore, figure
#
# plot, axes = figure()
# axes.plot(x.data, y.data, ".")
# axes.plot([0, 1], [b.data.item(), b.data.item() + W.data.item()], "-", color=GRADIENT)
# axes.set(xlabel="x", ylabel="y", title=f"{W.data.item():.3f} x + {b.data.item():.3f}")
# plot.set_label("one hundred points and the line that was found")
# explore(lambda: plot)

# %% [markdown]
# You have written an engine that trains a model. Everything else is more functions.
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
# **9a.** `SumTo` is the mirror of `BroadcastTo`: forward it sums to a shape, backward it stretches.

# %% tags=["active-ipynb", "exercise", "ex-9a"]
# class SumTo(Function):
#     """y = x, summed to a shape that broadcasts to the shape of x"""
#
#     def __init__(self, shape):
#         self.shape = shape
#
#     def forward(self, x):
#         ### BEGIN SOLUTION
#         return sum_to_shape(x, self.shape)
#         ### END SOLUTION
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         return np.broadcast_to(gy, self.input.data.shape)
#         ### END SOLUTION
#
#
# check("9a", SumTo, Variable, gradcheck)

# %% [markdown]
# **9b.** Write `mean(x, axis=None)` from what is there. No new class.

# %% tags=["active-ipynb", "exercise", "ex-9b"]
# def mean(x, axis=None):
#     """The mean of a Variable, of all its numbers or along one axis."""
#     ### BEGIN SOLUTION
#     total = x.sum(axis=axis)
#     return total * (total.data.size / x.data.size)
#     ### END SOLUTION
#
#
# check("9b", mean, Variable, gradcheck)

# %% [markdown]
# **9c.** The affine layer `y = x @ W + b` with `n` rows, `i` inputs and `o` outputs. `b` is one row
# for all, of shape `(o,)`. Return a dictionary with the shape on every edge, forward and backward.
#
# The keys are `"x"`, `"W"`, `"b"`, `"x @ W"`, `"y"`, and for the way back `"gy"`,
# `"gradient of x @ W"`, `"gb"`, `"gW"`, `"gx"`.

# %% tags=["active-ipynb", "exercise", "ex-9c"]
# def shapes(n, i, o):
#     """The shape of every value and every gradient of an affine layer."""
#     ### BEGIN SOLUTION
#     return {
#         "x": (n, i), "W": (i, o), "b": (o,), "x @ W": (n, o), "y": (n, o),
#         "gy": (n, o), "gradient of x @ W": (n, o), "gb": (o,), "gW": (i, o), "gx": (n, i),
#     }
#     ### END SOLUTION
#
#
# check("9c", shapes, Variable)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# The same law of shapes. One thing is stricter: only a result of *one* number gets its seed by
# itself. Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.ones(2, 3)
# b = torch.ones(3, requires_grad=True)
# (x + b).backward()
# # RuntimeError: grad can be implicitly created only for scalar outputs
# (x + b).sum().backward()
# b.grad                  # tensor([2., 2., 2.])
# ```
#
# Paddle takes ones as the seed for any shape, as we do.
#
# ```python
# x = paddle.ones([2, 3])
# b = paddle.ones([3])
# b.stop_gradient = False
# (x + b).backward()
# b.grad.numpy()          # [2. 2. 2.]
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the sums that bring a gradient back | `minigrad.ops.shape:unbroadcast` |
# | `sum` | `minigrad.ops.reduce:reduce_sum` |
# | `reshape`, `T`, `broadcast_to` | `minigrad.ops.shape:reshape` |
# | the matrix product | `minigrad.ops.linalg:matmul` |
# | the descent | `minigrad.optim:SGD` |
