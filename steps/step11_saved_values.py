# %% [markdown]
# # Step 11. Saved values: memory, not intelligence
#
# **Goal.** Know what a backward node keeps, why, how many bytes that costs, when it is freed, and
# what happens when somebody changes it.
#
# **Time.** 25 minutes
#
# **Needs.** step 10

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# How does `MulBackward0` know the derivative of a product? It does not. In step 10 we wrote
# `(grad * y, grad * x)` into a class, and the node kept `x` and `y`. It has a formula and a
# memory. There is no intelligence in it.
#
# So let us stop writing classes. A formula is *data*. We put them all into one table, a row per
# operation:
#
# ```
# sin    grad * cos(x)
# mul    grad * y             grad * x
# ```
#
# And then we can ask the table questions. What has to be kept, for instance?
#
# **Predict.** Which values must the node of `sin` keep until backward, and which the node of `mul`? And
# that of `x + y`? Write it down now. The answer comes in the middle of this step.

# %%
import weakref
from contextlib import contextmanager

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# ## A formula is a text
#
# Python can turn a text into code, and run that code later with the values it is given. `compile` and
# `eval` do that. And the code knows which names stand in it.
#
# **Predict, then run.** Which names are they?

# %% tags=["active-ipynb"]
# code = compile("grad * cos(x)", "sin", "eval")
# print(code.co_names)
# print(eval(code, {"grad": 2., "cos": np.cos, "x": 0.}))
# assert code.co_names == ("grad", "cos", "x")

# %% [markdown]
# `grad` arrives during backward, `cos` is a function, and `x` is a value that somebody must have kept.
# So the text itself says what to keep.
#
# Now what we bring along from step 10, folded. Three things in it have grown by a few lines: a tensor knows
# `-`, `/` and `**`, too; a node keeps its values as `Saved(tensor, node)`, and hands them to its formula
# when it is called; and `walk` takes one more argument. Each line that matters will be shown when we
# need it.

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

    def __neg__(self):  # new
        return neg(self)

    def __sub__(self, other):  # new
        return sub(self, other)

    def __rsub__(self, other):  # new
        return sub(other, self)

    def __truediv__(self, other):  # new
        return div(self, other)

    def __rtruediv__(self, other):  # new
        return div(other, self)

    def __pow__(self, n):  # new
        return power(self, n=n)

    def add_(self, number):  # new
        """Add a number to every element, in place."""
        self.data += np.asarray(number, dtype=float)
        self.version += 1
        return self

    def backward(self, grad=None, retain_graph=False):  # new
        """Send a gradient from here to every leaf; a single number needs none given."""
        walk(gradient_edge(self), seed(self, grad), retain_graph)


# %% tags=["folded"]
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


# %% tags=["folded"]
class Node:
    """One operation on the way back: gradients of its outputs in, gradients of its inputs out."""

    def __init__(self, *inputs, **saved):
        self.next_functions = tuple(gradient_edge(each) for each in inputs)
        self.saved = saved              # name -> Saved
        self.output_shapes = ()

    def __call__(self, *grads):
        if self.saved is None:  # new
            raise RuntimeError(f"backward through {self} a second time: what it kept was freed by "
                               "the first; call that one with retain_graph=True")
        values = {name: kept.unpack(name, self) for name, kept in self.saved.items()}  # new
        return self.backward(*grads, **values)

    def name(self):
        return type(self).__name__

    def __repr__(self):
        return f"<{self.name()}>"


# %% tags=["carried"]
def as_tensor(value):
    """A tensor as it is; anything else becomes a constant."""
    return value if isinstance(value, Tensor) else Tensor(value)


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


# %% tags=["folded"]
def walk(edge, grad, retain_graph=False):
    """Follow next_functions from this edge to every leaf, and call each node once."""
    root = edge[0]
    missing = count_edges(root)
    arrived, ready = {}, [root]
    with record(False):
        deliver(arrived, edge, grad)
        while ready:
            node = ready.pop()
            grads = [Tensor(np.zeros(shape)) if got is None else got
                     for got, shape in zip(arrived.pop(node), node.output_shapes, strict=True)]
            for target, part in zip(node.next_functions, node(*grads), strict=True):
                if target[0] is None:
                    continue
                deliver(arrived, target, part)
                missing[target[0]] -= 1
                if missing[target[0]] == 0:
                    ready.append(target[0])
            if node.saved and not retain_graph:
                node.saved = None


# %% [markdown]
# ## A node from the table
#
# `TableNode` is the only class left for all operations of the table. Its `backward` puts the kept values
# into the formulas, one for each input. An input that wants no gradient gets `None`. (`eval` looks a name
# up among the values first, and then, as with `cos`, among the functions of this notebook: `globals()`.)

# %%
class TableNode(Node):
    """A node of the table: `formulas`, one for each input, and `attrs`, such as an exponent."""

    def backward(self, grad, **values):
        values = {"grad": grad, **values, **self.attrs}
        wanted = zip(self.next_functions, self.formulas.values(), strict=True)
        return [eval(code, globals(), values) if target else None for (target, _), code in wanted]


# %% [markdown]
# ## The table
#
# `define` makes a row: a name, the forward, and a formula for each input. It returns the operation. A
# formula may use the inputs by name, the result as `out`, and the gradient that arrives as `grad`.
#
# Each row gets a node class of its own, such as `SinBackward0`. `type(name, parents, body)` makes one
# without a `class` statement.

# %%
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


# %% [markdown]
# Forward and backward now stand on one line. Read the rows slowly: this is all the calculus that our
# engine knows.

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
tanh = define("tanh", np.tanh, x="grad * (1 - tanh(x) * tanh(x))")
power = define("pow", lambda x, n: x ** n, x="grad * n * x ** (n - 1)")

# %% [markdown]
# ## What has to be kept?
#
# One function is still missing, `what_to_save`. The easy answer: everything. Then no formula can lack a
# value.

# %% tags=["active-ipynb"]
# def what_to_save(node, inputs, out):
#     values = dict(zip(node.formulas, inputs), out=out)
#     return {name: Saved(value, node) for name, value in values.items()}
#
#
# def kept(tensor):
#     return sorted(tensor.grad_fn.saved)

# %% [markdown]
# **Predict, then run.** A plus, of two arrays of a million numbers each. How many bytes does its
# node hold on to, and how many of them will its formulas read?

# %% tags=["active-ipynb", "mistake"]
# u, v = (Tensor(np.ones(1_000_000), requires_grad=True) for _ in "uv")
# total = u + v
# print(kept(total), sum(saved.data.nbytes for saved in total.grad_fn.saved.values()), "bytes")
# print(TABLE["add"])

# %% [markdown]
# 24 million bytes, and the formulas of plus read none of them: the gradient goes through as it is.
# A network of a hundred layers would run out of memory for values that nobody looks at.
#
# **11e. The engine: what to save.** `node.formulas` holds one compiled formula for each input, by
# name; `node.next_functions` holds the edges of the same inputs, in the same order. An input whose
# edge leads nowhere, `(None, 0)`, wants no gradient: nobody will ask for its formula. (The names in a
# compiled formula are its `co_names`.)
#
# Return a dictionary from names to `Saved(value, node)`. It holds the inputs (by their names) and
# the result (as `out`) that a wanted formula reads, and no more.

# %% tags=["exercise", "ex-11e", "engine"]
def what_to_save(node, inputs, out):
    """What the wanted formulas of a node will read: name -> Saved."""
    values = dict(zip(node.formulas, inputs, strict=True), out=out)
    ### BEGIN SOLUTION
    reads = set()
    for (target, _), code in zip(node.next_functions, node.formulas.values(), strict=True):
        if target is not None:
            reads |= set(code.co_names)
    return {name: Saved(value, node) for name, value in values.items() if name in reads}
    ### END SOLUTION


# check("11e", what_to_save, Tensor, Saved)

# %% [markdown]
# <!-- solution 11e -->
#
# Does the example of step 10 still work? Nothing may have changed for its user.

# %% tags=["active-ipynb"]
# a, b, d = (Tensor(number, requires_grad=True) for number in (2., 3., 4.))
# c = a + b
# e = c * d
# print(e, e.grad_fn.next_functions)
# e.backward()
# assert [t.grad.data for t in (a, b, d)] == [4, 4, 5]

# %% [markdown]
# **Predict, then run.** For each line: which names does the node keep?

# %% tags=["active-ipynb"]
# x, y = Tensor(0.5, requires_grad=True), Tensor(4., requires_grad=True)
# print("x + y    ", kept(x + y))
# print("x * y    ", kept(x * y))
# print("sin(x)   ", kept(sin(x)))
# print("exp(x)   ", kept(exp(x)))
# print("x * 3    ", kept(x * 3))

# %% [markdown]
# * Plus keeps nothing. The gradient goes through as it is.
# * Times keeps both factors, sine its input.
# * The exponential keeps its *result*: $e^x$ is its own derivative, and it was just computed. (That
#   result holds the node as its `grad_fn`. To avoid a circle, `Saved` holds it weakly.)
# * `x * 3` keeps only `y`, the 3. Nobody wants the gradient of the 3, so nobody needs `x`.
#
# Look at `sin` once more. The node of $\sin x$ holds one number, 0.5. When the gradient comes, it
# multiplies by $\cos 0.5$. The dotted line in the picture is the memory.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# z = sin(x)
# print(TABLE["sin"], z.grad_fn.saved["x"].data)
# mg.draw(z)

# %% tags=["active-ipynb"]
# z.backward()
# print(x.grad)
# assert x.grad.data == np.cos(0.5)

# %% [markdown]
# ## Memory, not intelligence
#
# The engine believes what the table says. Here is a row with a wrong formula.

# %% tags=["active-ipynb", "mistake"]
# bad_sin = define("badsin", np.sin, x="grad * sin(x)")
# x = Tensor(0.5, requires_grad=True)
# bad_sin(x).backward()
# print(x.grad)

# %% [markdown]
# No complaint. 0.4794 is the sine itself, not its slope. The engine cannot know better. The judge
# of step 1 can: it runs only the *forward*, a little to the right and to the left, and measures the
# slope. How far is each of these rows off?

# %% tags=["active-ipynb", "interactive"]
# def judge(operation, *numbers, eps=1e-6, **attrs):
#     """The largest distance between a gradient of the table and a central difference."""
#     leaves = [Tensor(number, requires_grad=True) for number in numbers]
#     operation(*leaves, **attrs).backward()
#     errors = []
#     for i, leaf in enumerate(leaves):
#         up, down = ([*numbers[:i], numbers[i] + h, *numbers[i + 1:]] for h in (eps, -eps))
#         slope = (operation(*up, **attrs).data - operation(*down, **attrs).data) / (2 * eps)
#         errors.append(abs(leaf.grad.data - slope))
#     return max(errors)
#
#
# print(f"{judge(sin, 0.7):.0e}", f"{judge(mul, 0.7, 1.3):.0e}", f"{judge(bad_sin, 0.7):.0e}")

# %% tags=["active-ipynb"]
# for operation in (add, sub, mul, div):
#     assert judge(operation, 0.7, 1.3) < 1e-8
# for operation in (neg, sin, cos, exp, log, tanh):
#     assert judge(operation, 0.7) < 1e-8
# assert judge(power, 0.7, n=3) < 1e-8
# assert judge(bad_sin, 0.7) > 0.1        # found

# %% [markdown]
# **Half-way.** Rest here, if you like; exercises 11a and 11b are about the table. The second half asks
# how long a value is kept, and what happens when somebody changes it.
#
# ## Freed after backward
#
# Kept values cost memory. So `walk` lets go of what a node kept, as soon as the node has run:
#
# ```python
# if node.saved and not retain_graph:
#     node.saved = None
# ```
#
# A function that follows `next_functions` can count the bytes. An array that two nodes keep counts
# once.
#
# **Predict, then run.** How many bytes are kept before backward? (An array has 1000 numbers of 8 bytes.)

# %% tags=["active-ipynb"]
# def bytes_kept(tensor):
#     """The size of all different arrays that the nodes behind a tensor keep."""
#     arrays = {}
#     for node in count_edges(tensor.grad_fn):
#         for value in (node.saved or {}).values():
#             arrays[id(value.data)] = value.data.nbytes
#     return sum(arrays.values())
#
#
# w = Tensor(np.full(1000, 0.1), requires_grad=True)
# h = exp(sin(w) * w)
# print(bytes_kept(h), "bytes before backward")
# h.backward(np.ones(1000))
# print(bytes_kept(h), "bytes after")

# %% [markdown]
# Three arrays: `w`, its sine, and the result. After backward: none. The nodes and the edges are still
# there. Only the memory is gone, and no dotted line is left.

# %% tags=["active-ipynb", "picture-B"]
# mg.draw(h)

# %% [markdown]
# **Predict, then run.** So what does a second backward do?

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# h.backward(np.ones(1000))

# %% [markdown]
# A node without its memory says so. With `retain_graph=True` the first backward frees nothing.

# %% tags=["active-ipynb"]
# x = Tensor(3., requires_grad=True)
# y = x * x
# y.backward(retain_graph=True)
# y.backward()
# print(x.grad)                           # 6 + 6: gradients add up
# assert x.grad.data == 12

# %% [markdown]
# ## Changed in place
#
# The dangerous case is a value that changes *between* forward and backward. We write straight into the
# array, and the tensor does not notice.
#
# **Predict, then run.** The derivative of $\sin h$ at $h = 0.5$ is $\cos 0.5 = 0.8776$. What
# arrives?

# %% tags=["active-ipynb", "mistake"]
# x = Tensor(0.5, requires_grad=True)
# h = x * 1
# y = sin(h)
# h.data += 1                             # nobody counts this
# y.backward()
# print(x.grad)

# %% [markdown]
# The cosine of 1.5, the number that is there *now*. A wrong gradient, and no word about it: the worst
# kind of error.

# %% tags=["active-ipynb"]
# assert x.grad.data == np.cos(1.5)       # wrong, and no one has noticed

# %% [markdown]
# Somebody has to count the changes. The method `add_` changes a tensor in place, as we did, and counts.
# (PyTorch marks such methods with a trailing underscore, too.)
#
# ```python
# self.data += np.asarray(number, dtype=float)
# self.version += 1
# ```
#
# `Saved` notes the version that its tensor had, and compares when the formula asks for it:
#
# ```python
# if tensor.version != self.version:
#     raise RuntimeError(
#         f"{node} needs {name} as it was at version {self.version}, but it was changed in "
#         f"place and is at version {tensor.version}: use a new tensor instead")
# ```

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# x = Tensor(0.5, requires_grad=True)
# h = x * 1
# y = sin(h)
# h.add_(1)
# y.backward()

# %% [markdown]
# `x` is the name in the row of `sin`, `grad * cos(x)`. Here it stands for our `h`. The repair: make
# a new tensor. The old one stays as the node needs it.

# %% tags=["active-ipynb"]
# x = Tensor(0.5, requires_grad=True)
# h = x * 1
# y = sin(h)
# h = h + 1                               # a new tensor; the node of y still has the old one
# y.backward()
# print(x.grad)
# assert x.grad.data == np.cos(0.5)

# %% [markdown]
# Is changing in place always an error?
#
# **Predict, then run.** The same with `exp`. Does it complain, is it wrong, or is it right?

# %% tags=["active-ipynb"]
# x = Tensor(0.5, requires_grad=True)
# h = x * 1
# y = exp(h)
# h.add_(1)
# y.backward()
# print(x.grad.data == np.exp(0.5))
# assert x.grad.data == np.exp(0.5)

# %% [markdown]
# Right, and no complaint: `exp` keeps its *result* and does not look at `h` again. A change in place does
# harm only where the value was kept.
#
# ## Explore: keep the result, or compute it again?
#
# The exponential could also be written with its input: `grad * exp(x)`. The gradient is the same, the
# memory is not.
#
# **Move the slider and switch.** In a chain of layers `h = exp(h * w)`, what does a layer cost with
# either row? (Point at a node of B to see what it keeps.)

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore
#
# exp_again = define("expagain", np.exp, x="grad * exp(x)")
#
#
# def chain(layers, keep):
#     step = exp if keep == "result" else exp_again
#     h, w = Tensor(np.ones(1000)), Tensor(np.full(1000, -0.5), requires_grad=True)
#     for _ in range(layers):
#         h = step(h * w)
#     nodes = [node for node in count_edges(h.grad_fn) if node.saved]
#     lines = [f"{node.name():18} keeps {', '.join(sorted(node.saved))}" for node in nodes]
#     return [mg.draw(h), "\n".join([*lines, f"{bytes_kept(h)} bytes in all"])]
#
#
# explore(chain, layers=(1, 6, 2), keep=["result", "input"])

# %% tags=["active-ipynb"]
# assert [[int(chain(layers, keep)[1].split()[-4]) // 8000 for layers in (2, 3, 4)]
#         for keep in ("result", "input")] == [[4, 5, 6], [5, 7, 9]]

# %% [markdown]
# With `result` each layer keeps one array, with `input` two. The next product keeps `h` anyway, and `h` is
# the result of `exp`: keeping the *result* costs nothing more. The *input* is one more array per layer. To
# keep less and to compute it again on the way back is called *checkpointing*.

# %% [markdown]
# ## Exercises
#
# **11a.** Put the square root into the table. Use a formula that keeps the result and not the
# input.

# %% tags=["active-ipynb", "exercise", "ex-11a"]
# ### BEGIN SOLUTION
# sqrt = define("sqrt", np.sqrt, x="grad / (2 * out)")
# ### END SOLUTION
#
# check("11a", sqrt, Tensor)

# %% [markdown]
# **11b.** The row of `tanh` is wasteful: it keeps its input, and computes the hyperbolic tangent
# twice more on the way back. Write a row that keeps only the result. ($\tanh' x = 1 - \tanh^2 x$)

# %% tags=["active-ipynb", "exercise", "ex-11b"]
# ### BEGIN SOLUTION
# lean_tanh = define("tanh", np.tanh, x="grad * (1 - out * out)")
# ### END SOLUTION
#
# check("11b", lean_tanh, Tensor)

# %% [markdown]
# **11c.** Provoke both errors. Each function gets a leaf. The first runs into a second backward,
# the second changes a kept value in place. You may use any operation of the table.

# %% tags=["active-ipynb", "exercise", "ex-11c"]
# def twice(x):
#     """Raises the error of a second backward."""
#     ### BEGIN SOLUTION
#     y = x * x
#     y.backward()
#     y.backward()
#     ### END SOLUTION
#
#
# def changed(x):
#     """Raises the error of a kept value that was changed in place."""
#     ### BEGIN SOLUTION
#     y = exp(x)
#     y.add_(1)
#     y.backward()
#     ### END SOLUTION
#
#
# check("11c", (twice, changed), Tensor)

# %% [markdown]
# **In order.** Below lies the backward part of $y = \tanh(x \cdot w) \cdot x$, in a heap, and
# some lines do not belong. A line is one call of a node, with the saved values that it reads:
# `tanh_0@GRAD` is the gradient of what `tanh` made. (At the end `reduce_sum` makes one number of the
# result. What meets at `x` has the names `…@RENAME@0` and `…@RENAME@1` until `sum` adds it.) Say the
# letters in the order in which they must run, such as `puzzle("cab")`. It is run, drawn, and judged.

# %% tags=["active-ipynb"]
# from minigrad.course.parsons import Parsons
#
# puzzle = Parsons(lambda x, w: mg.tanh(x * w) * x)
# print(puzzle)

# %% tags=["active-ipynb"]
# puzzle("")

# %% [markdown]
# ## In PyTorch / in Paddle
#
# PyTorch's table is a file named `derivatives.yaml`. A program reads it and writes the C++
# classes; what a class keeps follows from the names in its formulas. Its row for the sine reads
# `self: grad * self.cos().conj()`; for real numbers `conj` changes nothing.
#
# Recorded with PyTorch 2.13.0 (messages shortened):
#
# ```python
# >>> x = torch.tensor(0.5, requires_grad=True)
# >>> torch.sin(x).grad_fn._saved_self
# tensor(0.5000, requires_grad=True)
# >>> torch.tanh(x).grad_fn._saved_result
# tensor(0.4621, grad_fn=<TanhBackward0>)
# >>> (x * 3.0).grad_fn._saved_self           # not needed, so not kept
# None
# >>> y = x * x
# >>> y.backward()
# >>> y.backward()
# RuntimeError: Trying to backward through the graph a second time (or directly access saved
# tensors after they have already been freed). … Specify retain_graph=True if you need to …
# >>> h = x * 1
# >>> y = torch.sin(h)
# >>> h.add_(1)
# >>> y.backward()
# RuntimeError: one of the variables needed for gradient computation has been modified by an
# inplace operation: [torch.FloatTensor []], which is output 0 of Add, is at version 1;
# expected version 0 instead. …
# ```
#
# Paddle's static programs have no such memory: a grad operator *names* the values it reads, and
# the executor keeps them until it has run. The names that a formula uses return there as the
# inputs of the grad operator (step 13).
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | the table: an operation and its formulas | `minigrad.primitives.registry:primitive` |
# | `sin`, `exp`, `tanh` | `minigrad.ops.elementwise:tanh` |
# | nodes and what they keep | `minigrad.eager.grad_fn:Node` |
# | the walk that frees | `minigrad.eager.backward:backward` |
# | the judge for every row | `minigrad:gradcheck` |
