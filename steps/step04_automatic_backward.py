# %% [markdown]
# # Step 4. Backward by itself
#
# **Goal.** One call, `y.backward()`, walks any chain, however long, and bad input gets an answer
# that helps.
#
# **Time.** 15 minutes
#
# **Needs.** step 3

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# In step 3 we wrote the same three lines three times. Now the variable does it by itself. Going
# from the result back to the inputs is called **reverse mode**. (*Forward mode* carries slopes
# along with the values instead. It needs one run per input; reverse mode needs one walk for all of
# them.)
#
# First we try the obvious way, and it fails. Then you write the one that works: from this step on
# **you write the heart of the engine**, one function in most steps.
#
# (`__init__` and `Function.__call__` have gained guards. We meet them further down.)

# %%
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


# %%
class Function:
    """From one box to a new box, linked both ways, and a gradient back."""

    def __call__(self, input):
        if hasattr(self, "input"):
            raise RuntimeError(
                f"this {type(self).__name__} was called before, and a second call would break "
                f"its links: make a new one for each call, {type(self).__name__}()(x)")
        x = input.data
        y = self.forward(x)
        output = Variable(np.asarray(y))
        output.set_creator(self)
        self.input = input
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


# %% [markdown]
# ## First try: recursion
#
# "Do the three lines for me. Then let my input do the same." That is a recursive function, and it
# is beautiful.

# %% tags=["active-ipynb"]
# def backward_recursive(v):
#     f = v.creator
#     if f is not None:
#         x = f.input
#         x.grad = f.backward(v.grad)
#         backward_recursive(x)
#
#
# x = Variable(np.array(0.5))
# y = Square()(Exp()(Square()(x)))
# y.grad = np.array(1.0)
# backward_recursive(y)
# print(x.grad)
# assert f"{x.grad}" == "3.297442541400256"

# %% [markdown]
# ## The mistake in it
#
# A chain of 3 functions works. Let us make a chain of 5,000. A network with a loop in it gets
# there easily.
#
# `AddOne` is a function with the simplest of all gradients: $y = x + 1$, so $gx = gy$. Every
# gradient is 1.
#
# **Predict, then run.** What will be printed?

# %% tags=["active-ipynb", "mistake"]
# class AddOne(Function):
#     """y = x + 1"""
#
#     def forward(self, x):
#         return x + 1
#
#     def backward(self, gy):
#         return gy
#
#
# def long_chain(length):
#     x = y = Variable(np.array(0.0))
#     for _ in range(length):
#         y = AddOne()(y)
#     return x, y
#
#
# x, y = long_chain(5_000)
# y.grad = np.array(1.0)
# try:
#     backward_recursive(y)
# except RecursionError as error:
#     print("RecursionError:", error)
# print("y is", y.data, "and the gradient of x is", x.grad)
# mg.draw(y)

# %% [markdown]
# Every function of the chain needs a Python call inside a Python call, and Python stops at a depth
# of one or a few thousand. The forward pass was fine. Backward died on the way, and `x` has no
# gradient. The picture folds five thousand functions into one box. Look at `x.grad`: a dash, not a
# number.
#
# ## The repair: a loop, and you write it
#
# Keep a list of functions that still have to run. Take one, do the three lines, put the next one
# in.
#
# **4e. The engine: the walk.** Write the loop of `backward`. What is given: a leaf is refused,
# and the seed is written, so you begin with the creator of `self`. When your loop passes its check,
# the rest of this notebook runs on it. Until then it runs on ours.

# %% tags=["exercise", "ex-4e", "engine"]
def backward(self):
    """Fill the gradient of every variable between this one and the leaf."""
    if self.creator is None:
        raise RuntimeError(
            "this Variable is a leaf: no function made it, so there is nothing to walk. "
            "Call backward() on the result of a computation")
    if self.grad is None:
        self.grad = np.ones_like(self.data)
    ### BEGIN SOLUTION
    functions = [self.creator]
    while functions:
        f = functions.pop()                     # 1. who made it?
        x = f.input                             # 2. from what?
        x.grad = f.backward(f.output.grad)      # 3. pass the gradient on
        if x.creator is not None:
            functions.append(x.creator)
    ### END SOLUTION


Variable.backward = backward
# check("4e", Variable, Square, Exp)

# %% [markdown]
# <!-- solution 4e -->
#
# The last line but one makes the function a method of `Variable`. The chain on which the recursion
# died:

# %% tags=["active-ipynb"]
# x, y = long_chain(5_000)
# y.backward()
# print(x.grad)
# assert x.grad == 1

# %% [markdown]
# In a chain there is never more than one function to do. Later, when graphs branch, there will
# be several. Then the question "which one first?" becomes interesting. That is step 6.
#
# **Move the slider.** The chain becomes ten times longer with each stop. *Too deep*: the
# recursion hit the limit of this kernel.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import GRADIENT, LEAF, explore, figure
#
#
# def survives(walk, length):
#     """Whether the walk brings a gradient through a chain of this length."""
#     x, y = long_chain(length)
#     y.grad = np.array(1.0)
#     try:
#         walk(y)
#     except RecursionError:
#         return False
#     return bool(x.grad == 1)
#
#
# def race(zeros):
#     """Both walks on chains of 10, 100, … up to the slider."""
#     lengths = [10 ** k for k in range(1, zeros + 1)]
#     plot, axes = figure()
#     for row, walk in enumerate([backward_recursive, Variable.backward]):
#         done = [survives(walk, length) for length in lengths]
#         axes.scatter(lengths, [row] * len(lengths), s=160, marker="o",
#                      color=[LEAF if fine else GRADIENT for fine in done])
#         for length, fine in zip(lengths, done):
#             axes.annotate("arrives" if fine else "too deep", (length, row + 0.2), ha="center",
#                           color=LEAF if fine else GRADIENT)
#     axes.set(xscale="log", xlim=(3, 3e4), ylim=(-0.6, 1.6), yticks=[0, 1],
#              yticklabels=["recursion", "loop"], xlabel="functions in the chain")
#     plot.set_label(f"recursion and loop on chains of up to {lengths[-1]} functions")
#     return plot
#
#
# explore(race, zeros=(1, 4, 3))

# %% [markdown]
# ## No seed to write
#
# `y.grad = np.array(1.0)` was the same line every time, so `backward` does it.
# `np.ones_like(self.data)` also has the right shape and dtype.
#
# ## Functions that read like functions
#
# `Square()(x)` makes a function object and calls it, and the object must be a new one each time
# (remember exercise 3c). Two tiny wrappers do both.

# %%
def square(x):
    """x²"""
    return Square()(x)


def exp(x):
    """eˣ"""
    return Exp()(x)


# %% [markdown]
# Now the whole of steps 1 to 3 is three lines. The boxes in the middle have no names any more, so
# the picture numbers them: `%1`, `%2`.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# x = Variable(np.array(0.5))
# y = square(exp(square(x)))
# y.backward()
#
# print(x.grad)
# assert f"{x.grad}" == "3.297442541400256"
# mg.draw(y)

# %% [markdown]
# ## Watch it go
#
# The player shows the calls in the order in which they ran. Use the buttons or the arrow keys.

# %% tags=["active-ipynb"]
# with mg.watch(Function) as run:
#     x = Variable(np.array(0.5))
#     y = square(exp(square(x)))
#     y.backward()
#
# mg.play(run)

# %% [markdown]
# ## Three errors that help
#
# **A number is not an array.** The most common slip. Without the guard it would go through, and
# fail much later, far away from its cause.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# Variable(0.5)

# %% [markdown]
# The guard has a surprising consequence. NumPy turns a 0-dimensional array into a plain number
# whenever it computes:

# %% tags=["active-ipynb"]
# print(type(np.array(3.0)).__name__, "->", type(np.array(3.0) ** 2).__name__)

# %% [markdown]
# So our own functions would trip over the guard. That is why `__call__` now says `np.asarray(y)`.
# The judge needs the same repair.

# %%
def numerical_diff(f, x, eps=1e-4):
    """The slope of f at the box x, measured from both sides."""
    left = f(Variable(np.asarray(x.data - eps)))
    right = f(Variable(np.asarray(x.data + eps)))
    return (right.data - left.data) / (2 * eps)


# %% tags=["active-ipynb"]
# print(numerical_diff(square, Variable(np.array(2.0))))
# measured = numerical_diff(lambda x: square(exp(square(x))), x)
# assert abs(measured - x.grad) < 1e-6

# %% [markdown]
# **A leaf has nothing to walk.** It is the end of the way, not the beginning.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# x.backward()

# %% [markdown]
# **A function object is used up by one call.** In step 3 this gave a graph that ran in a circle.
# Now it is an error.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# S = Square()
# S(S(x))

# %% [markdown]
# ## Exercises
#
# **4a.** From recursion to loop. This function lists the functions behind `v` in the order in which
# they ran, by recursion:
#
# ```python
# def in_order(v):
#     return [] if v.creator is None else in_order(v.creator.input) + [type(v.creator).__name__]
# ```
#
# Write it as a loop that survives a chain of 20,000. Mind the order: the walk meets the last
# function first.

# %% tags=["active-ipynb", "exercise", "ex-4a"]
# def in_order(v):
#     """The names of the functions between the leaf and v, the first to run first; any length."""
#     ### BEGIN SOLUTION
#     names = []
#     while v.creator is not None:
#         names.append(type(v.creator).__name__)
#         v = v.creator.input
#     return names[::-1]
#     ### END SOLUTION
#
#
# check("4a", in_order, Variable, Square, Exp)

# %% [markdown]
# **4b.** Write `gradient(f, value)`. It takes a function `f` from box to box and a plain number,
# and returns the gradient of `f` at that number. `f` may run only once: use `backward`.

# %% tags=["active-ipynb", "exercise", "ex-4b"]
# def gradient(f, value):
#     """The gradient of f at a number."""
#     ### BEGIN SOLUTION
#     x = Variable(np.array(value))
#     f(x).backward()
#     return x.grad
#     ### END SOLUTION
#
#
# check("4b", gradient, square, exp)

# %% [markdown]
# **4c.** A helpful message says *what was given* and *how to repair it*. Write
# `advice(thing)`: it returns a text for two slips, and raises nothing.
#
# * `thing` is a float: the text contains that float and `np.array`.
# * `thing` is a leaf Variable: the text contains `leaf` and `backward()`.
#
# For a Variable that can be walked back from, return `None`.

# %% tags=["active-ipynb", "exercise", "ex-4c"]
# def advice(thing):
#     """What to tell someone who calls backward() on this thing, or None."""
#     ### BEGIN SOLUTION
#     if isinstance(thing, float):
#         return f"{thing} is a float: put it in a box, Variable(np.array({thing}))"
#     if thing.creator is None:
#         return "this is a leaf: call backward() on the result of a computation"
#     return None
#     ### END SOLUTION
#
#
# check("4c", advice, Variable, square)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# The same three lines, and the same number. A tensor that needs no gradient is refused there, too.
# Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
# y = torch.exp(x ** 2) ** 2
# y.backward()
# x.grad.item()           # 3.297442541400256
#
# torch.tensor(0.5).backward()
# # RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
# ```
#
# ```python
# x = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)
# y = paddle.exp(x ** 2) ** 2
# y.backward()
# x.grad.item()           # 3.297442541400256
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `y.backward()` | `minigrad.eager.tensor:Tensor` |
# | the walk, a loop as well | `minigrad.eager.backward:backward` |
# | the judge | `minigrad.check:gradcheck` |
