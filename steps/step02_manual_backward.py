# %% [markdown]
# # Step 2. Backward by hand
#
# **Goal.** Teach each function to pass a gradient back, and walk the chain from its end to its beginning, one
# call at a time.
#
# **Time.** 15 minutes
#
# **Needs.** step 1, the chain rule

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# The judge of step 1 needs two runs for every input, and it never gives all the digits.
# The chain rule needs neither. For $y = C(B(A(x)))$ it says
#
# $$\frac{dy}{dx} = \frac{dy}{dy} \cdot \frac{dy}{db} \cdot \frac{db}{da} \cdot \frac{da}{dx}$$
#
# Look at the factors. Each one belongs to **one** function. $dy/db$ is a matter of `C` alone.
# So every function can do its own part, without knowing the others.
#
# We multiply from the left: begin with $dy/dy = 1$ at the output and walk **back** to the input.
#
# ## The box gets a second field

# %%
class Variable:
    """A box for one array and its gradient."""

    def __init__(self, data):
        self.data = data
        self.grad = None


# %% [markdown]
# `x.grad` will hold $dy/dx$. It is `None` as long as nobody has computed it. It is not 0: zero
# would be an answer.
#
# ## A function remembers its input
#
# The slope of $x^2$ is $2x$. So on the way back `Square` has to know which $x$ it saw on the way
# forward. `__call__` keeps the box. That is one new line.
#
# `backward(gy)` is the other half of a function. It gets $gy$, the gradient of its output, and
# returns $gx$, the gradient of its input. Arrays in, array out, as in `forward`. Elsewhere such a
# half is called a **VJP**, a vector-Jacobian product: the gradient that comes in, times the slope.

# %%
class Function:
    """From one box to a new box, and a gradient back."""

    def __call__(self, input):
        x = input.data
        y = self.forward(x)
        self.input = input
        return Variable(y)

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no forward(x) of its own")

    def backward(self, gy):
        raise NotImplementedError(f"{type(self).__name__} has no backward(gy) of its own")


# %% [markdown]
# ## A mistake: only my own slope
#
# The slope of $x^2$ is $2x$, so let `backward` return $2x$. That looks right.
#
# **Predict, then run.** The judge said 3.29744. What will arrive at `x`?

# %% tags=["active-ipynb", "mistake"]
# class OwnSlopeSquare(Function):
#     def forward(self, x):
#         return x ** 2
#
#     def backward(self, gy):
#         return 2 * self.input.data
#
#
# class OwnSlopeExp(Function):
#     def forward(self, x):
#         return np.exp(x)
#
#     def backward(self, gy):
#         return np.exp(self.input.data)
#
#
# A, B, C = OwnSlopeSquare(), OwnSlopeExp(), OwnSlopeSquare()
# x = Variable(np.array(0.5))
# with mg.watch(Function) as run:
#     a = A(x)
#     b = B(a)
#     y = C(b)
#     y.grad = np.array(1.0)
#     b.grad = C.backward(y.grad)
#     a.grad = B.backward(b.grad)
#     x.grad = A.backward(a.grad)
#
# print(x.grad)
# mg.draw(run)

# %% [markdown]
# Only 1.0, the slope of `A`, whose `backward` ran last. Follow the right column of the picture: every
# call threw away what came in from below. The chain rule is a **product**. `backward` has to
# multiply by what it gets.
#
# ## The repair: times `gy`

# %%
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
# Nothing else changes. The judge of step 1 is still here. Cells that are carried over from the last
# step without a change are folded: click on one to open it.

# %% tags=["carried"]
def numerical_diff(f, x, eps=1e-4):
    """The slope of f at the box x, measured from both sides."""
    left = f(Variable(x.data - eps))
    right = f(Variable(x.data + eps))
    return (right.data - left.data) / (2 * eps)


# %% [markdown]
# ## Forward
#
# The same chain as before. The picture shows the functions called so far. The right column does not
# exist yet.

# %% tags=["active-ipynb", "picture-F"]
# A, B, C = Square(), Exp(), Square()
#
# x = Variable(np.array(0.5))
# with mg.watch(Function) as run:
#     a = A(x)
#     b = B(a)
#     y = C(b)
#
# mg.draw(run)

# %% [markdown]
# ## Backward, one call at a time
#
# The start is the **seed**, $dy/dy = 1$. Then `C`, `B`, `A`: the functions of the forward pass, in
# reverse.
#
# `with run:` goes on with the same picture.
#
# **Predict, then run.** `b` is $e^{0.25} = 1.284$. What does `C.backward(1.0)` return?

# %% tags=["active-ipynb", "picture-B"]
# with run:
#     y.grad = np.array(1.0)
#     b.grad = C.backward(y.grad)
#     a.grad = B.backward(b.grad)
#     x.grad = A.backward(a.grad)
#
# print("b.grad", b.grad)
# print("a.grad", a.grad)
# print("x.grad", x.grad)
# mg.draw(run, legend=True)

# %% [markdown]
# `C.backward(1.0)` is $2 \cdot 1.284 \cdot 1 = 2.568$.
#
# The right column is **B**, drawn from the three calls that you just made. Read it from the bottom up.
# Each gradient stands beside its variable, each backward call beside its function. A dashed line
# connects the two halves of one function. A dotted arrow is a value that backward reads: the input
# that the function has remembered. A double line marks a *leaf*: a variable that no function made,
# here `x`.
#
# That `a.grad` and `x.grad` are equal is a coincidence: the slope of `A` at 0.5 is $2 \cdot 0.5 = 1$.

# %% tags=["active-ipynb"]
# assert f"{x.grad}" == "3.297442541400256"

# %% [markdown]
# All digits, and no `eps`. The judge agrees, as far as it can see.

# %% tags=["active-ipynb"]
# measured = numerical_diff(lambda x: C(B(A(x))), x)
# print(measured)
# assert abs(measured - 3.297442541400256) < 1e-6

# %% [markdown]
# Careful: the judge *called* `A`, `B` and `C` again. They now remember other inputs.
# So we make new functions whenever we compute again.
#
# **Press the buttons.** Each one makes one backward call and fills one gradient. Press C, B, A.
# Then start again and try another order.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore, presses
#
#
# def backward_in_order(pressed):
#     """The run after backward calls in the order of the buttons pressed."""
#     A, B, C = Square(), Exp(), Square()
#     x = Variable(np.array(0.5))
#     with mg.watch(Function) as run:
#         a = A(x)
#         b = B(a)
#         y = C(b)
#         y.grad = np.array(1.0)
#         step = {"C": (C, y, b), "B": (B, b, a), "A": (A, a, x)}
#         said = "y.grad is 1. Which backward call comes first?"
#         for letter in pressed:
#             function, output, input = step[letter]
#             try:
#                 input.grad = function.backward(output.grad)
#                 said = f"{letter}.backward({output.grad:.4f}) returned {input.grad:.4f}"
#             except TypeError as error:
#                 said = f"{letter}.backward({output.grad}) failed: {error}"
#                 break
#     return [mg.draw(run, names={"x": x, "a": a, "b": b, "y": y}), said]
#
#
# explore(backward_in_order, pressed=presses("C", "B", "A"))

# %% [markdown]
# ## What is still bad
#
# Another graph needs other lines. Here are only two functions, and still the walk has to be written
# again. Swap two of its lines, or forget one, and the result is wrong.

# %% tags=["active-ipynb"]
# D, E = Exp(), Square()
# x = Variable(np.array(0.5))
# c = D(x)
# z = E(c)
#
# z.grad = np.array(1.0)
# c.grad = E.backward(z.grad)
# x.grad = D.backward(c.grad)
#
# judged = numerical_diff(lambda x: Square()(Exp()(x)), x)
# print(x.grad, judged)
# assert abs(x.grad - judged) < 1e-6

# %% [markdown]
# In the next two steps the variables learn where they came from. Then one walk serves every chain.
#
# ## Exercises
#
# **2a.** Write `Sin`, with both halves. The slope of $\sin x$ is $\cos x$. Remember the mistake
# above.

# %% tags=["active-ipynb", "exercise", "ex-2a"]
# class Sin(Function):
#     """y = sin(x)"""
#
#     def forward(self, x):
#         ### BEGIN SOLUTION
#         return np.sin(x)
#         ### END SOLUTION
#
#     def backward(self, gy):
#         ### BEGIN SOLUTION
#         x = self.input.data
#         return np.cos(x) * gy
#         ### END SOLUTION
#
#
# check("2a", Sin, Variable)

# %% [markdown]
# **2b.** Compute $y = e^{(e^x)^2}$ and walk back, by hand. Set `x.grad` and return it.
# How many function objects do you need?

# %% tags=["active-ipynb", "exercise", "ex-2b"]
# def exp_square_exp(x):
#     """The gradient of exp(square(exp(x))) at the box x, by three backward calls."""
#     ### BEGIN SOLUTION
#     A, B, C = Exp(), Square(), Exp()
#     a = A(x)
#     b = B(a)
#     C(b)
#     b.grad = C.backward(np.array(1.0))
#     a.grad = B.backward(b.grad)
#     x.grad = A.backward(a.grad)
#     return x.grad
#     ### END SOLUTION
#
#
# check("2b", exp_square_exp, Variable, Exp, Square)

# %% [markdown]
# Three objects: the two `Exp` remember different inputs, so one object cannot serve both.
#
# **2c.** Someone calls `A` before `C` and `B`. Read the last line of the error. Which value is the
# `NoneType`?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# A, B, C = Square(), Exp(), Square()
# x = Variable(np.array(0.5))
# a = A(x)
# b = B(a)
# y = C(b)
#
# y.grad = np.array(1.0)
# x.grad = A.backward(a.grad)

# %% [markdown]
# Put your explanation into code. `first_to_fail("CAB")` is `"A"`: after `C` there is a `b.grad`,
# but `A` needs `a.grad`. For an order that works it is `None`.

# %% tags=["active-ipynb", "exercise", "ex-2c"]
# def first_to_fail(order):
#     """The first letter of an order of A, B, C whose gradient is not there yet, or None."""
#     ### BEGIN SOLUTION
#     needs = {"C": "y", "B": "b", "A": "a"}
#     makes = {"C": "b", "B": "a", "A": "x"}
#     known = {"y"}
#     for letter in order:
#         if needs[letter] not in known:
#             return letter
#         known.add(makes[letter])
#     return None
#     ### END SOLUTION
#
#
# check("2c", first_to_fail)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# There is no backward call to write, but the gradients in between are the same. `retain_grad` asks
# PyTorch to keep them. Recorded with torch 2.13.0 and paddle 3.3.1:
#
# ```python
# x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
# a = x ** 2
# b = torch.exp(a)
# y = b ** 2
# a.retain_grad()
# b.retain_grad()
# y.backward()
# b.grad.item()           # 2.568050833375483
# a.grad.item()           # 3.297442541400256
# x.grad.item()           # 3.297442541400256
# ```
#
# ```python
# x = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)
# a = x ** 2
# b = paddle.exp(a)
# y = b ** 2
# a.retain_grads()
# b.retain_grads()
# y.backward()
# b.grad.item(), a.grad.item(), x.grad.item()
# # (2.568050833375483, 3.297442541400256, 3.297442541400256)
# ```
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the second field, `.grad` | `minigrad.eager.tensor:Tensor` |
# | `forward` and `backward` of one function, your own | `minigrad.eager.function:Function` |
# | the backward half of `Exp` and `Square` | `minigrad.ops.elementwise:exp` |
