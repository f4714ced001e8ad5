# %% [markdown]
# # Step 3. Creator links
#
# **Goal.** Let the boxes and functions remember each other while they compute, so that the way
# back can be found from the result alone.
#
# **Time.** 15 minutes
#
# **Needs.** step 2

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# In step 2 the way back was in *your* head: first `C`, then `B`, then `A`. Lose one of those names
# and you are stuck.
#
# So where could the way back be stored? Ask what the two kinds of objects know about each other:
#
# * a function knows its **input** and its **output**,
# * a variable knows its **creator**: the function that made it. If nobody made it, a user gave it.
#   Then the creator is `None`.
#
# Two links back, box → function → box, and you can walk.
#
# ## The variable remembers its creator

# %%
class Variable:
    """A box for one array, its gradient, and the function that made it."""

    def __init__(self, data):
        self.data = data
        self.grad = None
        self.creator = None

    def set_creator(self, function):
        self.creator = function


# %% [markdown]
# ## The function makes the links
#
# When? At the only moment when input, function and output are together: while the function is
# being called.

# %%
class Function:
    """From one box to a new box, linked both ways, and a gradient back."""

    def __call__(self, input):
        x = input.data
        y = self.forward(x)
        output = Variable(y)
        output.set_creator(self)
        self.input = input
        self.output = output
        return output

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no forward(x) of its own")

    def backward(self, gy):
        raise NotImplementedError(f"{type(self).__name__} has no backward(gy) of its own")


# %% [markdown]
# The mathematics does not change.

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
def numerical_diff(f, x, eps=1e-4):
    """The slope of f at the box x, measured from both sides."""
    left = f(Variable(x.data - eps))
    right = f(Variable(x.data + eps))
    return (right.data - left.data) / (2 * eps)


# %% [markdown]
# ## Who made you?
#
# **Predict, then run.** How many links lead from `y` back to `x`?

# %% tags=["active-ipynb"]
# A, B, C = Square(), Exp(), Square()
#
# x = Variable(np.array(0.5))
# a = A(x)
# b = B(a)
# y = C(b)
#
# here, path = y, "y"
# while here is not x:
#     here, path = here.creator, f"{path}.creator"
#     print(f"{path} is {type(here).__name__}")
#     here, path = here.input, f"{path}.input"
#     print(f"{path} holds {here.data}")
#
# assert y.creator == C
# assert y.creator.input == b
# assert y.creator.input.creator == B
# assert y.creator.input.creator.input == a
# assert y.creator.input.creator.input.creator == A
# assert y.creator.input.creator.input.creator.input == x

# %% [markdown]
# Six, `creator` and `input` in turn. Each leads to *the very same object*, not to a copy. And `x` is
# where it ends: nobody made it. Such a variable is called a **leaf**.

# %% tags=["active-ipynb"]
# assert y.creator is C
# assert x.creator is None

# %% [markdown]
# The links are enough to draw the whole graph. From now on the picture needs nothing but `y`.
# Its right column shows the calls that a walk *would* make. A dash stands for a gradient that nobody
# has computed yet.

# %% tags=["active-ipynb", "picture-F"]
# mg.draw(y)

# %% [markdown]
# ## When were these links made?
#
# Nobody declared a graph. The links came into being **while the numbers flowed**. This is
# *define-by-run*, and what it makes is a *dynamic computation graph*. Python's own `while` or `if`
# decides what the graph looks like, and each run makes a new graph.
#
# **Predict, then run.** How many functions are in the graph that starts at 1.5? And at 5?

# %% tags=["active-ipynb"]
# def grow(x):
#     """Square it until it is above 10."""
#     while x.data < 10:
#         x = Square()(x)
#     return x
#
#
# for start in (1.5, 5.0):
#     z, made = grow(Variable(np.array(start))), []
#     while z.creator is not None:
#         made.append(type(z.creator).__name__)
#         z = z.creator.input
#     print(start, made)

# %% [markdown]
# ## A mistake: out of the box and back
#
# Someone wants to change a number in the middle, takes the array out of the box and packs it again.
# The values are right. What about the links?

# %% tags=["active-ipynb", "mistake"]
# A, B, C = Square(), Exp(), Square()
# x = Variable(np.array(0.5))
# a = A(x)
# b = Variable(B(a).data)         # out of the box, into a new box
# y = C(b)
#
# print(y.data)
# print(y.creator.input.creator)
# mg.draw(y)

# %% [markdown]
# The value is correct, and the graph is cut: it begins at `b`. Nobody made that new box. No walk
# from `y` will ever find `x`.
#
# The repair: stay in the boxes from beginning to end. (Sometimes a cut is what you want. Then it has
# a name, `detach`.)

# %% tags=["active-ipynb"]
# A, B, C = Square(), Exp(), Square()
# x = Variable(np.array(0.5))
# y = C(B(A(x)))
# mg.draw(y)

# %% [markdown]
# **Press the button.** Each press follows one link. The picture shows what still lies ahead.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore, presses
#
#
# def who_made_you(pressed):
#     """The place that so many links lead to, and the graph that is left from there."""
#     x = Variable(np.array(0.5))
#     a = Square()(x)
#     b = Exp()(a)
#     y = Square()(b)
#     path, variable, here = "y", y, "a Variable, the result"
#     for _ in pressed:
#         if path.endswith("creator"):
#             path, variable, here = f"{path}.input", variable.creator.input, "a Variable"
#         elif variable.creator is not None:
#             path, here = f"{path}.creator", f"the function {type(variable.creator).__name__}"
#     if variable is x:
#         here = "x, a leaf. Its creator is None: the walk ends here"
#     return [mg.draw(variable, names={"x": x, "a": a, "b": b, "y": y}), f"{path} is {here}"]
#
#
# explore(who_made_you, pressed=presses("who made you?"))

# %% [markdown]
# ## The walk
#
# Put the seed on `y`. Then three lines: get the function, get its input, call `backward`.

# %% tags=["active-ipynb"]
# y.grad = np.array(1.0)
#
# C = y.creator                   # 1. who made it?
# b = C.input                     # 2. from what?
# b.grad = C.backward(y.grad)     # 3. pass the gradient on
# print(b.grad)

# %% [markdown]
# The same three lines, one box further back:

# %% tags=["active-ipynb"]
# B = b.creator
# a = B.input
# a.grad = B.backward(b.grad)
# print(a.grad)

# %% [markdown]
# And once more. **Predict, then run**: which number do you expect?

# %% tags=["active-ipynb"]
# A = a.creator
# x = A.input
# x.grad = A.backward(a.grad)
# print(x.grad)
# assert f"{x.grad}" == "3.297442541400256"
# assert x.creator is None

# %% [markdown]
# The same number as in step 2. But nobody had to know the order: the links said it.

# %% tags=["active-ipynb", "picture-B"]
# mg.draw(y)

# %% [markdown]
# Three times the same three lines: that calls for a loop, and it is the next step.
#
# ## Exercises
#
# **3a.** How deep does a variable lie? Count the functions between `v` and the leaf that it came
# from.

# %% tags=["active-ipynb", "exercise", "ex-3a"]
# def depth(v):
#     """How many functions lie between v and the leaf it came from."""
#     ### BEGIN SOLUTION
#     count = 0
#     while v.creator is not None:
#         count += 1
#         v = v.creator.input
#     return count
#     ### END SOLUTION
#
#
# check("3a", depth, Variable, Square)

# %% [markdown]
# **3b.** Say the chain in words. For the `y` above: `"Square of Exp of Square of a leaf"`. For a
# leaf: `"a leaf"`.

# %% tags=["active-ipynb", "exercise", "ex-3b"]
# def in_words(v):
#     """The functions that made v, the last one first."""
#     ### BEGIN SOLUTION
#     words = []
#     while v.creator is not None:
#         words.append(type(v.creator).__name__)
#         v = v.creator.input
#     return " of ".join([*words, "a leaf"])
#     ### END SOLUTION
#
#
# check("3b", in_words, Variable, Square, Exp)

# %% [markdown]
# **3c.** One `Function` object, used twice, breaks the links. Show it: return `x`, `a`, `y` where
# $a = x^2$ and $y = a^2$ come from **one** `Square` object. Then look where the walk from `y`
# goes.

# %% tags=["active-ipynb", "exercise", "ex-3c"]
# def used_twice():
#     """x, a and y of a chain of two squares, made by a single Square object."""
#     ### BEGIN SOLUTION
#     square = Square()
#     x = Variable(np.array(3.0))
#     a = square(x)
#     y = square(a)
#     return x, a, y
#     ### END SOLUTION
#
#
# check("3c", used_twice, Square)

# %% [markdown]
# The second call overwrote `input`. The creator of `a` is that same object, so from `a` the walk
# leads to `a` again, round and round. `x` is lost.

# %% tags=["active-ipynb"]
# square = Square()
# a = square(Variable(np.array(3.0)))
# y = square(a)
# print(y.data, y.creator.input is a, a.creator.input is a)
# assert y.creator.input is a
# assert a.creator.input is a
# assert y.data == 81

# %% [markdown]
# The value was right all along; only the links were wrong. So every call needs a new object. The
# next step takes care of that.
#
# ## In PyTorch / in Paddle
#
# The creator is called `grad_fn` there. It is an object of its own that knows only the way back:
# the second half of our function. A tensor that you made yourself has none. Recorded with torch
# 2.13.0 and paddle 3.3.1 (addresses left out):
#
# ```python
# x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
# y = torch.exp(x ** 2) ** 2
# y.grad_fn                                   # <PowBackward0 object>
# y.grad_fn.next_functions[0][0]              # <ExpBackward0 object>
# x.grad_fn                                   # None
# ```
#
# ```python
# x = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)
# y = paddle.exp(x ** 2) ** 2
# y.grad_fn.name()                            # 'PowGradNode'
# x.is_leaf, y.is_leaf                        # (True, False)
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | creator, here `grad_fn` | `minigrad.eager.tensor:Tensor` |
# | the links between functions | `minigrad.eager.grad_fn:Node` |
# | cutting a graph on purpose: `detach` | `minigrad.eager.tensor:Tensor` |
