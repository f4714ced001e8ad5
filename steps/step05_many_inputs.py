# %% [markdown]
# # Step 5. Many inputs, and the same box twice
#
# **Goal.** Functions of two inputs, `+` and `*`, and a gradient that is right when a variable is
# used more than once. (Where that variable was itself computed, it takes step 6, too.)
#
# **Time.** 25 minutes
#
# **Needs.** steps 1 to 4

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# **Part B, steps 5 to 9: real graphs.** We go on with the engine of steps 1 to 4: a variable with a
# creator, a function with input and output, and the walk as a loop. Steps 5 and 6 are the heart of
# the matter. Steps 7 to 9 may wait.
#
# | step | the question |
# |---|---|
# | 5 | What if a variable is used twice? |
# | 6 | Which function runs next? |
# | 7 | How long does a graph live? |
# | 8 | How do formulas look like formulas, and who checks every gradient? |
# | 9 | What if the boxes hold arrays? |
#
# So far every graph was a chain. Addition needs two inputs, and then it is a real graph: paths part,
# and paths meet.
#
# ## The variable
#
# From here on `# new` stands where a class that you know has changed. Read those lines, skip the rest.
# Here they are in three places:
#
# * `backward` serves *all* inputs of a function. (`Square` and `Exp` still return one gradient, not a
#   tuple, so two lines make a tuple of it. `strict=True` complains when there are not as many
#   gradients as inputs.)
# * `__add__` and `__mul__` are the operators `+` and `*`, for two new functions.
# * `cleargrad` makes a box forget its gradient. The section before the exercises shows why.
#
# The question of this step stands in `backward`: `accumulate(x, gx)`, "x gets the gradient gx". You will
# write it. Until then it does what step 4 did: it assigns.

# %% tags=["active-ipynb"]
# def accumulate(x, gx):
#     x.grad = gx

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

    def cleargrad(self):
        self.grad = None  # new

    def backward(self):
        """Add to the gradient of every variable behind this one."""
        if self.creator is None:
            raise RuntimeError(
                "this Variable is a leaf: no function made it, so there is nothing to walk. "
                "Call backward() on the result of a computation")
        if self.grad is None:
            self.grad = np.ones_like(self.data)
        functions = [self.creator]
        while functions:
            f = functions.pop()
            gxs = f.backward(f.output.grad)  # new
            if not isinstance(gxs, tuple):
                gxs = (gxs,)
            for x, gx in zip(f.inputs, gxs, strict=True):
                accumulate(x, gx)  # new
                if x.creator is not None:
                    functions.append(x.creator)

    def __add__(self, other):  # new
        return Add()(self, other)

    def __mul__(self, other):  # new
        return Mul()(self, other)


# %% [markdown]
# ## A function of many inputs
#
# The star collects all inputs into a tuple. `forward` gets their arrays, one by one.
# `self.input` stays, for functions that have only one: so `Square` and `Exp` need no change.

# %%
class Function:
    """From one or more boxes to a new box, linked both ways, and a gradient back for each input."""

    def __call__(self, *inputs):  # new
        if hasattr(self, "input"):
            raise RuntimeError(
                f"this {type(self).__name__} was called before, and a second call would break "
                f"its links: make a new one for each call, {type(self).__name__}()(x)")
        y = self.forward(*[x.data for x in inputs])  # new
        output = Variable(np.asarray(y))
        output.set_creator(self)
        self.inputs, self.input = inputs, inputs[0]  # new
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
# ## Add and Mul
#
# `backward` returns a tuple now: one gradient per input, in the order of the inputs.
#
# * $y = x_0 + x_1$: push one input by a little, and $y$ moves by the same amount. The gradient is
#   handed on, to both.
# * $y = x_0 \cdot x_1$: push $x_0$, and $y$ moves $x_1$ times as much. Each input gets the
#   **other** one as its factor.

# %%
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
# **Predict, then run.** $z = x^2 + y^2$ at $x = 2$, $y = 3$. Three numbers: the value and two
# gradients.

# %% tags=["active-ipynb"]
# x = Variable(np.array(2.0))
# y = Variable(np.array(3.0))
# z = square(x) + square(y)
# z.backward()
#
# print(z.data, x.grad, y.grad)

# %% [markdown]
# The value is $4 + 9$, and the slopes are $2x$ and $2y$.

# %% tags=["active-ipynb"]
# assert (z.data, x.grad, y.grad) == (13, 4, 6)

# %% [markdown]
# The next graph will stay with us to the end of the course: $e = (a + b) \cdot d$ with $a = 2$, $b
# = 3$, $d = 4$.

# %% tags=["active-ipynb", "picture-F"]
# a = Variable(np.array(2.0))
# b = Variable(np.array(3.0))
# d = Variable(np.array(4.0))
# c = a + b
# e = c * d
#
# print(e.data)
# mg.draw(e)

# %% [markdown]
# Two edges go into `Add`. So two edges come out of `Add.backward`.
#
# **Predict, then run.** Which of the three gradients are equal, and why?

# %% tags=["active-ipynb"]
# e.backward()
# print(a.grad, b.grad, d.grad)
# mg.draw(e)

# %% [markdown]
# `a` and `b`: `Add` hands the same number on to both, and that number is $d = 4$. `d` gets the
# other factor, $a + b = 5$.

# %% tags=["active-ipynb"]
# assert (e.data, a.grad, b.grad, d.grad) == (20, 4, 4, 5)

# %% [markdown]
# ## A mistake: assign the gradient
#
# In step 4 the walk said `x.grad = …`. It *assigned*. Here is that walk again, for many inputs.
#
# **Predict, then run.** What does it make of $y = x + x$? The derivative of $2x$ is 2.

# %% tags=["active-ipynb", "mistake"]
# def backward_overwrite(y):
#     """The walk of step 4: it assigns."""
#     y.grad = np.ones_like(y.data)
#     functions = [y.creator]
#     while functions:
#         f = functions.pop()
#         gxs = f.backward(f.output.grad)
#         for x, gx in zip(f.inputs, gxs if isinstance(gxs, tuple) else (gxs,)):
#             x.grad = gx
#             if x.creator is not None:
#                 functions.append(x.creator)
#
#
# x = Variable(np.array(3.0))
# y = x + x
# backward_overwrite(y)
# print(x.grad)
# mg.draw(y)

# %% [markdown]
# One arrow of 1 arrived at `x.grad`, then another arrow of 1. The second wrote over the first.
#
# ## The repair: add
#
# If $x$ is used twice, a small push of $x$ reaches $y$ by **two** paths, and the pushes add up. So
# the gradients that come back by all paths add up, too.
#
# The obvious way to write that is `+=`. Here it walks over $y = (a + b) + a$.
#
# **Predict, then run.** The gradients of `a` and `b` should be 2 and 1. Are they?

# %% tags=["active-ipynb", "mistake"]
# def accumulate_in_place(x, gx):
#     if x.grad is None:
#         x.grad = gx
#     else:
#         x.grad += gx
#
#
# a, b = Variable(np.array(1.0)), Variable(np.array(1.0))
# t = a + b
# y = t + a
#
# y.grad = np.array(1.0)
# for f in (y.creator, t.creator):
#     for x, gx in zip(f.inputs, f.backward(f.output.grad)):
#         accumulate_in_place(x, gx)
#
# print("a", a.grad, "b", b.grad, "and even y", y.grad)

# %% [markdown]
# `Add` hands on the *same array* to everybody. `+=` changes that array in place, for all of them.
#
# **5e. The engine: accumulate.** Write the version that leaves the arrays of others alone. When it
# passes, `backward` uses it from here on.

# %% tags=["exercise", "ex-5e", "engine"]
def accumulate(x, gx):
    """Add gx to x.grad without changing an array that somebody else holds."""
    ### BEGIN SOLUTION
    x.grad = gx if x.grad is None else x.grad + gx
    ### END SOLUTION


# check("5e", accumulate, Variable)

# %% [markdown]
# <!-- solution 5e -->
#
# Again $y = x + x$, with your version:

# %% tags=["active-ipynb"]
# x = Variable(np.array(3.0))
# y = x + x
# y.backward()
# print(x.grad)
# assert x.grad == 2

# %% tags=["active-ipynb", "picture-B"]
# x = Variable(np.array(3.0))
# t = x + x
# y = t + x
# y.backward()
#
# print(x.grad)
# assert x.grad == 3
# mg.draw(y)

# %% [markdown]
# Three arrows meet at `x.grad`, and 1 + 1 + 1 is 3.
#
# **Switch the rule.** Choose an expression, look at `overwrite` and at `add`, and compare with the
# judge of step 1.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore
#
# EXPRESSIONS = {
#     "x + x": lambda x: x + x,
#     "(x + x) + x": lambda x: (x + x) + x,
#     "x * x": lambda x: x * x,
#     "x * x + exp(x)": lambda x: x * x + exp(x),
#     "exp(x * x)": lambda x: exp(x * x),
# }
#
#
# def rule_on(expression, rule):
#     """The graph of an expression at x = 1.5 after one backward, and the judge's opinion."""
#     f = EXPRESSIONS[expression]
#     x = Variable(np.array(1.5))
#     y = f(x)
#     if rule == "add":
#         y.backward()
#     else:
#         backward_overwrite(y)
#     judged = numerical_diff(f, x)
#     verdict = "right" if abs(judged - x.grad) < 1e-6 * abs(judged) else "WRONG"
#     return [mg.draw(y, names={"x": x, "y": y}),
#             f"{rule}: x.grad = {x.grad:.4f}, the judge says {judged:.4f}: {verdict}"]
#
#
# explore(rule_on, expression=list(EXPRESSIONS), rule=["overwrite", "add"])

# %% [markdown]
# ## What adding costs: clear before you start again
#
# Now a gradient stays and waits for more. Use the same `x` in a second computation.
#
# **Predict, then run.** The derivative of $x + x$ is still 2.

# %% tags=["active-ipynb", "mistake"]
# x = Variable(np.array(3.0))
# y = x + x
# y.backward()
#
# z = x + x
# z.backward()
# print(x.grad)

# %% [markdown]
# 2 from yesterday and 2 from today. Tell the box to forget:

# %% tags=["active-ipynb"]
# x.cleargrad()
# z = x + x
# z.backward()
# print(x.grad)
# assert x.grad == 2

# %% [markdown]
# Adding is not only a nuisance. To get the gradient of two losses together, run backward on both
# and do not clear.
#
# And the old chain? It still gives the old number.

# %% tags=["active-ipynb"]
# x = Variable(np.array(0.5))
# square(exp(square(x))).backward()
# print(x.grad)
# assert f"{x.grad}" == "3.297442541400256"

# %% [markdown]
# ## Exercises
#
# **5a.** Write `Sub`, $y = x_0 - x_1$, and `Div`, $y = x_0 / x_1$. Both arguments get a gradient.

# %% tags=["active-ipynb", "exercise", "ex-5a"]
# class Sub(Function):
#     """y = x0 - x1"""
#
#     def forward(self, x0, x1):
#         return x0 - x1
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         return gy, -gy
#         ### END SOLUTION
#
#
# class Div(Function):
#     """y = x0 / x1"""
#
#     def forward(self, x0, x1):
#         return x0 / x1
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         x0, x1 = self.inputs[0].data, self.inputs[1].data
#         return gy / x1, -gy * x0 / x1 ** 2
#         ### END SOLUTION
#
#
# check("5a", (Sub, Div), Variable)

# %% [markdown]
# **5b.** One box `x`, and a list of functions from box to box, such as `square`. Return the list of
# their gradients at `x`, all of them right. `x.grad` may hold something old already.

# %% tags=["active-ipynb", "exercise", "ex-5b"]
# def gradients_in_turn(x, functions):
#     """The gradient of each function at the box x, as a list."""
#     ### BEGIN SOLUTION
#     found = []
#     for f in functions:
#         x.cleargrad()
#         f(x).backward()
#         found.append(x.grad)
#     return found
#     ### END SOLUTION
#
#
# check("5b", gradients_in_turn, Variable)

# %% [markdown]
# **In order.** In a heap below lies the backward part of $y = e^{x^2} \cdot w$: a line is one call of
# `backward`, and one line does not belong. This is how to read them:
#
# * `exp_0` is what `exp` gave, and `exp_0@GRAD` its gradient. Left of the `=` stands what is written.
# * `exp_grad` is the `backward` of `exp`. In the brackets stands what it reads: its own result,
#   because $e^x$ is its own slope, and the gradient that comes in.
# * `mul_grad` is the `backward` of `*`: each factor gets the *other* one, times what comes in.
# * `reduce_sum_grad` passes the seed on: the result is summed up to one number first.
#
# Say the letters in the order in which they must run, such as `puzzle("cab")`. It is run, drawn, and
# judged.

# %% tags=["active-ipynb"]
# from minigrad.course.parsons import Parsons
#
# puzzle = Parsons(lambda x, w: mg.exp(mg.square(x)) * w)
# print(puzzle)

# %% tags=["active-ipynb"]
# puzzle("")

# %% [markdown]
# ## In PyTorch / in Paddle
#
# Both add, and both leave the clearing to you (`optimizer.zero_grad()`, `optimizer.clear_grad()`).
# Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.tensor(3., requires_grad=True)
# (x + x).backward()
# x.grad                  # tensor(2.)
# (x + x).backward()
# x.grad                  # tensor(4.)
#
# a, b, d = (torch.tensor(v, requires_grad=True) for v in (2., 3., 4.))
# e = (a + b) * d         # tensor(20., grad_fn=<MulBackward0>)
# e.backward()
# a.grad, b.grad, d.grad  # (tensor(4.), tensor(4.), tensor(5.))
# ```
#
# ```python
# x = paddle.to_tensor(3., stop_gradient=False)
# (x + x).backward()
# x.grad.item()           # 2.0
# (x + x).backward()
# x.grad.item()           # 4.0
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | `+`, `*` for every kind of value | `minigrad.primitives.values:Value` |
# | `Add`, `Mul` | `minigrad.ops.elementwise:mul` |
# | the place where gradients of a leaf add up | `minigrad.eager.grad_fn:AccumulateGrad` |
