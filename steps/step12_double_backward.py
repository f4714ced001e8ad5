# %% [markdown]
# # Step 12. The gradient of the gradient
#
# **Goal.** Differentiate a gradient: second, third, sixth derivatives, Newton's method, Hessians,
# with one switch and one new function.
#
# **Time.** 20 minutes
#
# **Needs.** step 11

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# In step 10 something odd happened. We called a node by hand, and the gradient came out as
# `tensor(4., grad_fn=<MulBackward0>)`. The formula `grad * y` is a product of tensors, so it was
# recorded like any other product. We switched recording off while the engine walks.
#
# Today we leave it on. Then a gradient is a result like any other: it has a `grad_fn`, so it can be
# differentiated. Nothing else is needed, for the formulas were written with tensors from the start.

# %%
import weakref
from contextlib import contextmanager

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# `Tensor.backward` gets one more argument, `create_graph`, and passes it on. (And the complaint about a
# second backward names the new switch.) The rest is what you know, folded: tensors, nodes,
# kept values, edges, slots, the maker of the table.
#
# ```python
# walk(gradient_edge(self), seed(self, grad), retain_graph, create_graph)
# ```

# %% tags=["folded"]
class Tensor:
    """An array that knows the way back to the leaves it was computed from."""

    __array_ufunc__ = None              # NumPy leaves `array * tensor` to this class
    version = 0                         # how often the array was changed in place

    def __init__(self, data, requires_grad=False, grad_fn=None, output_nr=0):
        self.data = np.asarray(data, dtype=float)
        self.requires_grad = requires_grad or grad_fn is not None
        self.grad = None
        self.grad_fn = grad_fn
        self.output_nr = output_nr
        self.accumulator = None         # for a leaf: its AccumulateGrad, held weakly

    @property
    def is_leaf(self):
        return self.grad_fn is None

    def __repr__(self):
        number = np.array2string(self.data, precision=4, separator=", ")
        if self.grad_fn is not None:
            return f"tensor({number}, grad_fn={self.grad_fn})"
        return f"tensor({number}{', requires_grad=True' if self.requires_grad else ''})"

    def __add__(self, other):
        return add(self, other)

    def __mul__(self, other):
        return mul(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return neg(self)

    def __sub__(self, other):
        return sub(self, other)

    def __rsub__(self, other):
        return sub(other, self)

    def __truediv__(self, other):
        return div(self, other)

    def __rtruediv__(self, other):
        return div(other, self)

    def __pow__(self, n):
        return power(self, n=n)

    def add_(self, number):
        """Add a number to every element, in place."""
        self.data += np.asarray(number, dtype=float)
        self.version += 1
        return self

    def backward(self, grad=None, retain_graph=None, create_graph=False):  # new
        """Send a gradient from here to every leaf; a single number needs none given."""
        walk(gradient_edge(self), seed(self, grad), retain_graph, create_graph)


# %% tags=["folded"]
def as_tensor(value):
    """A tensor as it is; anything else becomes a constant."""
    return value if isinstance(value, Tensor) else Tensor(value)


class Saved:
    """A tensor kept for a formula, and the version it had."""

    def __init__(self, tensor, node):
        own = tensor.grad_fn is node
        self.data, self.version = tensor.data, tensor.version
        self.tensor = weakref.ref(tensor) if own else lambda: tensor

    def unpack(self, name, node):
        """The tensor as the formula needs it."""
        tensor = self.tensor()
        if tensor is None:                          # the own result, and nobody else holds it
            return Tensor(self.data, grad_fn=node)
        if tensor.version != self.version:
            raise RuntimeError(
                f"{node} needs {name} as it was at version {self.version}, but it was changed in "
                f"place and is at version {tensor.version}: use a new tensor instead")
        return tensor


class Node:
    """One operation on the way back: gradients of its outputs in, gradients of its inputs out."""

    def __init__(self, *inputs, **saved):
        self.next_functions = tuple(gradient_edge(each) for each in inputs)
        self.saved = saved              # name -> Saved
        self.output_shapes = ()

    def __call__(self, *grads):
        if self.saved is None:
            raise RuntimeError(f"backward through {self} a second time: what it kept was freed by "
                               "the first; call that one with create_graph=True, or backward() "
                               "with retain_graph=True")
        values = {name: kept.unpack(name, self) for name, kept in self.saved.items()}
        return self.backward(*grads, **values)

    def name(self):
        return type(self).__name__

    def __repr__(self):
        return f"<{self.name()}>"


def gradient_edge(tensor):
    """Where the gradient of this tensor has to go: (node or None, output index)."""
    if not tensor.requires_grad:
        return (None, 0)
    if tensor.grad_fn is not None:
        return (tensor.grad_fn, tensor.output_nr)
    node = tensor.accumulator and tensor.accumulator()
    if node is None:                    # the first use of this leaf
        node = AccumulateGrad(tensor)
        tensor.accumulator = weakref.ref(node)
    return (node, 0)


class AccumulateGrad(Node):
    """The end of the way: adds what arrives to the .grad of its leaf."""

    def __init__(self, variable):
        super().__init__()
        self.variable = variable
        self.output_shapes = (variable.data.shape,)

    def backward(self, grad):
        zero = Tensor(np.zeros_like(grad.data))     # 0 + grad is a new array, shared by nobody
        self.variable.grad = (zero if self.variable.grad is None else self.variable.grad) + grad
        return ()


MODE = {"record": True}


@contextmanager
def record(on):
    """Whether the operations inside leave a grad_fn; put back at the end, after an error too."""
    before, MODE["record"] = MODE["record"], on
    try:
        yield
    finally:
        MODE["record"] = before


def results(node, *arrays):
    """The tensors of these arrays, each with the way back through `node`."""
    node.output_shapes = tuple(np.shape(array) for array in arrays)
    wanted = MODE["record"] and any(target is not None for target, _ in node.next_functions)
    return tuple(Tensor(array, grad_fn=node if wanted else None, output_nr=i)
                 for i, array in enumerate(arrays))


def count_edges(root):
    """How many edges point at each node that can be reached from the root."""
    counts, todo = {root: 0}, [root]
    while todo:
        for target, _ in todo.pop().next_functions:
            if target is None:
                continue
            if target not in counts:
                counts[target] = 0
                todo.append(target)
            counts[target] += 1
    return counts


def seed(tensor, grad=None):
    """The gradient that backward starts with: 1 for a single number."""
    if not tensor.requires_grad:
        raise RuntimeError(f"backward() from {tensor}: it depends on no tensor that requires_grad")
    if grad is None and tensor.data.size != 1:
        shape = tensor.data.shape
        raise RuntimeError(f"backward() from a tensor of shape {shape}: say how much each element "
                           f"counts, for example backward(np.ones({shape}))")
    return Tensor(np.ones_like(tensor.data)) if grad is None else as_tensor(grad)


def deliver(arrived, edge, grad):
    """Add a gradient to what has arrived at the slot of its edge."""
    node, slot = edge
    expected = node.output_shapes[slot]
    if grad.data.shape != expected:
        raise ValueError(f"a gradient of shape {grad.data.shape} for a value of shape {expected} "
                         f"at {node}: here + and * take two tensors of one shape")
    slots = arrived.setdefault(node, [None] * len(node.output_shapes))
    slots[slot] = grad if slots[slot] is None else slots[slot] + grad


# %% tags=["carried"]
class UnbindBackward0(Node):
    """p, q, … = the elements of x along its first axis"""

    def backward(self, *grads):
        return (stack(*grads),)


class StackBackward0(Node):
    """x = p, q, … along a new first axis"""

    def backward(self, grad):
        return unbind(grad)


def unbind(x):
    return results(UnbindBackward0(x), *(row.copy() for row in x.data))


def stack(*rows):
    return results(StackBackward0(*rows), np.stack([row.data for row in rows]))[0]


class TableNode(Node):
    """A node of the table: `formulas`, one for each input, and `attrs`, such as an exponent."""

    def backward(self, grad, **values):
        values = {"grad": grad, **values, **self.attrs}
        wanted = zip(self.next_functions, self.formulas.values(), strict=True)
        return [eval(code, globals(), values) if target else None for (target, _), code in wanted]


TABLE = {}


def define(name, forward, **formulas):
    """A new operation: its forward, and for each input the formula of its gradient."""
    compiled = {slot: compile(text, name, "eval") for slot, text in formulas.items()}
    kind = type(f"{name.title()}Backward0", (TableNode,), {
        "__doc__": f"out = {name}({', '.join(formulas)})",
        "formulas": compiled, "formula_texts": formulas})       # the texts are for pictures
    TABLE[name] = formulas

    def operation(*inputs, **attrs):
        inputs = [as_tensor(each) for each in inputs]
        node = kind(*inputs)
        node.attrs = attrs
        (out,) = results(node, forward(*(each.data for each in inputs), **attrs))
        if out.grad_fn is node:                     # recorded: it will be asked for gradients
            node.saved = what_to_save(node, inputs, out)
        return out

    return operation


def what_to_save(node, inputs, out):
    """What the wanted formulas of a node will read: name -> Saved."""
    values = dict(zip(node.formulas, inputs, strict=True), out=out)
    reads = set()
    for (target, _), code in zip(node.next_functions, node.formulas.values(), strict=True):
        if target is not None:
            reads |= set(code.co_names)
    return {name: Saved(value, node) for name, value in values.items() if name in reads}


# %% [markdown]
# Where a function of yours has passed its check in an earlier step, this notebook goes on with it:

# %% tags=["active-ipynb"]
# from minigrad.course import use_mine
#
# use_mine()

# %% [markdown]
# The table. Two rows are better than in step 11: `tanh` keeps its result (your exercise 11b), and `pow`
# has one more case. You will see what it is good for.

# %%
add = define("add", np.add, x="grad", y="grad")
sub = define("sub", np.subtract, x="grad", y="-grad")
mul = define("mul", np.multiply, x="grad * y", y="grad * x")
div = define("div", np.divide, x="grad / y", y="-grad * out / y")
neg = define("neg", np.negative, x="-grad")
sin = define("sin", np.sin, x="grad * cos(x)")
cos = define("cos", np.cos, x="-grad * sin(x)")
exp = define("exp", np.exp, x="grad * out")
log = define("log", np.log, x="grad / x")
tanh = define("tanh", np.tanh, x="grad * (1 - out * out)")
power = define("pow", lambda x, n: x ** n, x="grad * n * x ** (n - 1) if n else grad * 0")

# %% [markdown]
# ## One switch
#
# In `walk`, which is folded, `record(False)` has become
#
# ```python
# with record(create_graph):
# ```
#
# Kept values must stay when there is more to come. So `create_graph=True` also means
# `retain_graph=True`, unless you say otherwise:
#
# ```python
# retain_graph = create_graph if retain_graph is None else retain_graph
# ```

# %% tags=["folded"]
def walk(edge, grad, retain_graph=None, create_graph=False, wanted=()):
    """Follow next_functions from this edge, and call each node once.

    Gradients end in the .grad of the leaves, or are returned when `wanted` names edges.
    """
    root = edge[0]
    retain_graph = create_graph if retain_graph is None else retain_graph
    missing = count_edges(root)
    arrived, ready, found = {}, [root], {}
    with record(create_graph):
        deliver(arrived, edge, grad)
        while ready:
            node = ready.pop()
            grads = [Tensor(np.zeros(shape)) if got is None else got
                     for got, shape in zip(arrived.pop(node), node.output_shapes, strict=True)]
            found.update({each: grads[each[1]] for each in wanted if each[0] is node})
            if wanted and isinstance(node, AccumulateGrad):
                continue
            for target, part in zip(node.next_functions, node(*grads), strict=True):
                if target[0] is None:
                    continue
                deliver(arrived, target, part)
                missing[target[0]] -= 1
                if missing[target[0]] == 0:
                    ready.append(target[0])
            if node.saved and not retain_graph:
                node.saved = None
    return [found.get(each) for each in wanted]


# %% [markdown]
# ## The derivative of a derivative
#
# $y = x^4 - 2x^2$, so $y' = 4x^3 - 4x$ and $y'' = 12x^2 - 4$. At $x = 2$ that is 24 and 44.
#
# The first try is what you would type without knowing anything: take the gradient, call `backward`
# on it.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# x = Tensor(2., requires_grad=True)
# y = x ** 4 - 2 * x ** 2
# y.backward()
# print(x.grad)
# x.grad.backward()

# %% [markdown]
# The number is right, but there is no way back from it: recording was off. Now with the switch.

# %% tags=["active-ipynb"]
# x = Tensor(2., requires_grad=True)
# y = x ** 4 - 2 * x ** 2
# y.backward(create_graph=True)
# gx = x.grad
# print(gx)

# %% [markdown]
# A `grad_fn`. The gradient is a result now.
#
# **Predict, then run.** We call `backward` on it. The second derivative is 44. What does `x.grad`
# say?

# %% tags=["active-ipynb", "mistake"]
# gx.backward()
# print(x.grad)

# %% [markdown]
# 68 is 24 + 44. Gradients *accumulate*, and the first one was still there. Clear before you walk
# again.

# %% tags=["active-ipynb"]
# assert x.grad.data == 24 + 44
#
# x = Tensor(2., requires_grad=True)
# y = x ** 4 - 2 * x ** 2
# y.backward(create_graph=True)
# gx = x.grad
# x.grad = None                           # this line was missing
# gx.backward()
# print(x.grad)
# assert (gx.data, x.grad.data) == (24, 44)

# %% [markdown]
# ## A gradient as a value
#
# Clearing is easy to forget. And `x.grad` now holds a graph that leads to `x` itself: a circle. Both
# problems go away when the gradient is *returned* instead of stored.
#
# For that the walk can be told which edges are `wanted`. (An edge is a pair: a node, and the number of a
# slot.) It notes what arrives there, returns it, and touches no `.grad`:
#
# ```python
# found.update({each: grads[each[1]] for each in wanted if each[0] is node})
# ```
#
# The new function is called `grad`, as in PyTorch. It asks for the edges of its inputs. (Inside a formula
# of the table the word `grad` still means the gradient that comes in.)

# %%
def grad(y, *inputs, grad_output=None, create_graph=False, allow_unused=False):
    """The derivative of y with respect to each input, as a new tensor; no .grad is touched."""
    edges = [gradient_edge(each) for each in inputs]
    found = walk(gradient_edge(y), seed(y, grad_output), None, create_graph, edges)
    for number, each in enumerate(found):
        if each is None and not allow_unused:
            raise RuntimeError(f"{y} does not depend on input {number}, {inputs[number]}")
    return found[0] if len(found) == 1 else found


# %% tags=["active-ipynb"]
# x = Tensor(2., requires_grad=True)
# y = x ** 4 - 2 * x ** 2
# gx = grad(y, x, create_graph=True)
# gxx = grad(gx, x)
# print(gx, gxx)
# assert (gx.data, gxx.data) == (24, 44)
# assert x.grad is None

# %% [markdown]
# Look at the graph of a gradient. $y = \sin x$ has the gradient `grad * cos(x)`: a product and a
# cosine. Those are the nodes of the next backward. **F** below is what the first backward
# computed, **B** is what it left behind. (The dashed bubble is the seed of the first backward: the 1
# came in as `grad`, the first factor of the product, and is kept as the `x` of `mul`.)

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# x = Tensor(0.5, requires_grad=True)
# y = sin(x)
# gx = grad(y, x, create_graph=True)
# print(gx.grad_fn, gx.grad_fn.next_functions)
# mg.draw(gx)

# %% [markdown]
# Differentiate four times, and the sine is back.

# %% tags=["active-ipynb"]
# y = sin(x)
# for order in range(1, 5):
#     y = grad(y, x, create_graph=True)
#     print(order, y)
# assert abs(y.data - np.sin(0.5)) < 1e-15

# %% [markdown]
# **Half-way.** Rest here, if you like. That was the whole mechanism; now come the places where it ends, and
# what it is good for.
#
# ## When a derivative ends
#
# The derivatives of $x^2$ are $2x$, $2$, $0$. At $x = 0$ they are 0, 2, 0. In step 11 the row of
# the power was shorter. Here it is again, under another name.
#
# **Predict, then run.** Which of the three goes wrong?

# %% tags=["active-ipynb", "mistake"]
# old_power = define("oldpow", lambda x, n: x ** n, x="grad * n * old_power(x, n=n - 1)")
#
# x = Tensor(0., requires_grad=True)
# y = old_power(x, n=2.)
# with np.errstate(divide="ignore", invalid="ignore"):
#     for order in (1, 2, 3):
#         y = grad(y, x, create_graph=True)
#         print(order, y)

# %% [markdown]
# The rule says $2 \cdot 1 \cdot 0 \cdot x^{-1}$. On paper the zero wins. A computer takes $0^{-1}$
# first: infinity. And zero times infinity is *not a number*.
#
# So the row got a case: for the exponent 0 the value does not depend on `x`, and the gradient is
# zero.

# %% tags=["active-ipynb"]
# assert np.isnan(y.data)
#
# x = Tensor(0., requires_grad=True)
# y = x ** 2
# for order in (1, 2, 3):
#     y = grad(y, x, create_graph=True)
#     print(order, y)
# assert y.data == 0

# %% [markdown]
# The last zero is a constant: it has no `grad_fn`, and there is nothing left to differentiate.

# %% tags=["active-ipynb", "raises-exception"]
# grad(y, x)

# %% [markdown]
# ## Newton's method
#
# Gradient descent knows the slope. Newton's method knows the curvature too:
# $x \leftarrow x - y'/y''$. From 2 to the minimum of $x^4 - 2x^2$ at 1, to the last digit, in
# seven steps.

# %% tags=["active-ipynb"]
# x = Tensor(2., requires_grad=True)
# for step in range(7):
#     y = x ** 4 - 2 * x ** 2
#     gx = grad(y, x, create_graph=True)
#     gxx = grad(gx, x)
#     x = Tensor(x.data - gx.data / gxx.data, requires_grad=True)
#     print(step + 1, f"{float(x.data):.9f}")
# assert abs(x.data - 1) < 1e-15

# %% [markdown]
# ## Explore: what each order costs
#
# The hyperbolic tangent can be differentiated as often as you like. But each derivative is a graph
# made by walking a graph.
#
# `derivative` walks as often as you say.

# %% tags=["active-ipynb"]
# def derivative(order, numbers):
#     x = Tensor(numbers, requires_grad=True)
#     y = tanh(x)
#     for _ in range(order):
#         y = grad(y, x, grad_output=np.ones_like(numbers), create_graph=True)
#     return y
#
#
# def nodes(order):
#     return len(count_edges(derivative(order, 1.).grad_fn))

# %% [markdown]
# **Predict, then move the slider.** How many nodes does the graph of the sixth derivative have?

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore, figure
#
#
# def curves(order):
#     numbers = np.linspace(-3, 3, 121)
#     plot, axes = figure()
#     for k in range(order):
#         axes.plot(numbers, derivative(k, numbers).data, color="0.6", linewidth=1)
#     axes.plot(numbers, derivative(order, numbers).data, linewidth=2.5)
#     axes.set(xlabel="x", title=f"tanh, derivative of order {order}: {nodes(order)} nodes")
#     plot.set_label(f"tanh and its derivatives up to order {order}")
#     return plot
#
#
# explore(curves, order=(0, 6, 2))

# %% tags=["active-ipynb"]
# sizes = [nodes(order) for order in range(7)]
# print(sizes)
# assert all(more > 2 * fewer for fewer, more in zip(sizes[2:], sizes[3:]))
# print(f"{float(derivative(6, 1.).data):.9f}")
# assert abs(derivative(6, 1.).data - 13.6240754413121) < 1e-10

# %% [markdown]
# From the third on, each order more than doubles the graph, although the function stays as simple
# as it was. That is why nobody trains with sixth derivatives.
#
# The matrix of all second derivatives is called the **Hessian**. Often only its product with a
# vector is needed (exercise 12b). That needs second derivatives, but never the whole matrix.
#
# ## Exercises
#
# **12a.** Write `hessian(f, *numbers)`: the matrix of all second derivatives of a function of
# several numbers, as a NumPy array. For Rosenbrock's function $(1-x)^2 + 100\,(y - x^2)^2$ at $(-1,
# 2)$ it is $\begin{pmatrix}402 & 400\\400 & 200\end{pmatrix}$. First take all slopes, then
# differentiate each of them: that is a row. Two things to know:
#
# * All rows walk the same graph. Each walk frees what it has read, unless it is told
#   `create_graph=True`.
# * The slopes of $x^2 + y^3$ depend on one input each. Where a slope does not depend on an input, `grad`
#   refuses, as in PyTorch; with `allow_unused=True` it gives `None` there. (A slope that depends on *no*
#   input, a constant such as that of $x + y^2$ with respect to $x$, is refused all the same. The check has none.)

# %% tags=["active-ipynb", "exercise", "ex-12a"]
# def rosenbrock(x, y):
#     return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2
#
#
# def hessian(f, *numbers):
#     """The matrix of the second derivatives of f."""
#     ### BEGIN SOLUTION
#     leaves = [Tensor(number, requires_grad=True) for number in numbers]
#     slopes = grad(f(*leaves), *leaves, create_graph=True)
#     rows = [grad(slope, *leaves, create_graph=True, allow_unused=True) for slope in slopes]
#     return np.array([[0. if each is None else each.data for each in row] for row in rows])
#     ### END SOLUTION
#
#
# check("12a", hessian, rosenbrock)

# %% [markdown]
# **12b.** Write `hvp(f, numbers, vector)`: the product of the Hessian with a vector, in *two*
# walks, however many numbers there are. (Multiply the gradient by the vector. That is one number.
# Differentiate it.) Return a NumPy array.

# %% tags=["active-ipynb", "exercise", "ex-12b"]
# def hvp(f, numbers, vector):
#     """The Hessian of f times a vector, without the Hessian."""
#     ### BEGIN SOLUTION
#     leaves = [Tensor(number, requires_grad=True) for number in numbers]
#     slopes = grad(f(*leaves), *leaves, create_graph=True)
#     along = sum(slope * v for slope, v in zip(slopes, vector))
#     return np.array([each.data for each in grad(along, *leaves)])
#     ### END SOLUTION
#
#
# check("12b", hvp, rosenbrock)

# %% [markdown]
# **12c.** This function uses `backward` twice. It returns 68 for $x^4 - 2x^2$ at 2, where 44 is
# right. Mend it.

# %% tags=["active-ipynb", "exercise", "ex-12c"]
# def second_derivative(f, number):
#     """The second derivative of f at a number, by two calls of backward."""
#     x = Tensor(number, requires_grad=True)
#     f(x).backward(create_graph=True)
#     slope = x.grad
#     ### BEGIN SOLUTION
#     x.grad = None
#     ### END SOLUTION
#     slope.backward()
#     return x.grad.data
#
#
# check("12c", second_derivative)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# The same words. Recorded with PyTorch 2.13.0:
#
# ```python
# >>> x = torch.tensor(2., requires_grad=True)
# >>> y = x ** 4 - 2 * x ** 2
# >>> (gx,) = torch.autograd.grad(y, x, create_graph=True)
# >>> gx
# tensor(24., grad_fn=<AddBackward0>)
# >>> torch.autograd.grad(gx, x)
# (tensor(44.),)
# >>> y = x ** 4 - 2 * x ** 2
# >>> y.backward(create_graph=True)           # x.grad is 24
# UserWarning: Using backward() with create_graph=True will create a reference cycle …
# >>> x.grad.backward()
# >>> x.grad                                  # not cleared
# tensor(68., grad_fn=<CopyBackwards>)
# ```
#
# The third derivative of `x ** 2` at 0 is `tensor(0.)` there too: the rule of its power has the
# same extra case. The graphs of `tanh` are smaller (212 nodes for the sixth derivative), because
# the whole formula of `tanh` is one operation there.
#
# In Paddle the function is `paddle.grad(outputs, inputs, create_graph=True)`.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | gradients as values | `minigrad:grad` |
# | the walk | `minigrad.eager.backward:backward` |
# | the matrix of exercise 12a | `minigrad:hessian` |
# | the product of exercise 12b | `minigrad:hvp` |
# | the judge of second derivatives | `minigrad:gradgradcheck` |
