# %% [markdown]
# # Step 10. grad_fn, next_functions, AccumulateGrad
#
# **Goal.** Understand every word of `tensor(20., grad_fn=<MulBackward0>)`: build the backward
# graph while the forward runs, and walk it.
#
# **Time.** 30 minutes
#
# **Needs.** step 6, or only Python and the chain rule: this step stands alone

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %% [markdown]
# ## Part C: what you need, and where to come in
#
# You need Python's classes and the chain rule, and you should have seen a graph of operations. If you
# come from a framework and want to know what `loss.backward()` does, begin here: nothing is carried
# over. Steps 10 and 11 belong together. Step 12 may wait.
#
# ## A second graph
#
# In the steps before, one graph did two jobs: backward went through the same objects as forward, in
# the other direction. PyTorch does it differently. While the forward runs, a **second graph** is
# built, whose nodes know one thing only: the way back. When you print a tensor, you see the door to
# that graph:
#
# ```
# tensor(20., grad_fn=<MulBackward0>)
# ```
#
# First we build that graph and walk through the door by hand. Then, after a rest, you write the engine
# that walks for you.

# %%
import weakref
from contextlib import contextmanager

import numpy as np

# %% tags=["active-ipynb"]
# import minigrad as mg
# from minigrad.course import check, why

# %% [markdown]
# ## A tensor
#
# A tensor is an array with a few notes on it:
#
# ```python
# self.data = np.asarray(data, dtype=float)
# self.requires_grad = requires_grad or grad_fn is not None
# self.grad = None
# self.grad_fn = grad_fn
# ```
#
# * `requires_grad`: does anybody want a gradient here?
# * `grad`: the gradient, once a backward has arrived. It is a tensor too.
# * `grad_fn`: the node of the backward graph that belongs to the operation that made me. A tensor
#   that you create has none: it is a **leaf**.
#
# (Folded: the class. Two more notes in it come further down: `accumulator` with the edges of a leaf,
# `output_nr` with operations of several outputs. The rest is its text, the operators `+` and `*`, and
# `as_tensor`, which makes a constant of a plain number.)

# %% tags=["folded"]
class Tensor:
    """An array that knows the way back to the leaves it was computed from."""

    __array_ufunc__ = None              # NumPy leaves `array * tensor` to this class

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

    def backward(self, grad=None):
        """Send a gradient from here to every leaf; a single number needs none given."""
        walk(gradient_edge(self), seed(self, grad))


def as_tensor(value):
    """A tensor as it is; anything else becomes a constant."""
    return value if isinstance(value, Tensor) else Tensor(value)


# %% tags=["active-ipynb"]
# a = Tensor(2., requires_grad=True)
# b = Tensor(3., requires_grad=True)
# d = Tensor(4., requires_grad=True)
# print(a, a.is_leaf, a.grad_fn)

# %% [markdown]
# ## A node of the backward graph
#
# A node stands for one operation on the way back:
#
# * `next_functions` says where gradients have to go *next*, in the order of backward;
# * `saved` holds the tensors that its formula will need;
# * it is **called** with the gradient of the operation's output, and returns the gradients of its
#   inputs: the *pull*.
#
# It is made from the inputs of the operation, for the edges, and, by name, from what it has to save.
# (The function `gradient_edge` comes next, and the engine, which needs the `output_shapes`, later.)

# %%
class Node:
    """One operation on the way back: gradients of its outputs in, gradients of its inputs out."""

    def __init__(self, *inputs, **saved):
        self.next_functions = tuple(gradient_edge(each) for each in inputs)
        self.saved = saved              # name -> Tensor
        self.output_shapes = ()

    def __call__(self, *grads):
        return self.backward(*grads, **self.saved)

    def name(self):
        return type(self).__name__

    def __repr__(self):
        return f"<{self.name()}>"


# %% [markdown]
# Our example has two operations. Plus passes the gradient on and needs to remember nothing. Times
# needs both factors. They are kept as *tensors*, and the formula is written with tensors. Remember
# that for step 12.

# %%
class AddBackward0(Node):
    """z = x + y"""

    def backward(self, grad):
        return grad, grad


class MulBackward0(Node):
    """z = x * y"""

    def backward(self, grad, x, y):
        return grad * y, grad * x


# %% [markdown]
# ## An edge
#
# Where does the gradient of a tensor have to go? There are three cases:
#
# 1. nobody wants it: to `None`;
# 2. the tensor was computed: to its `grad_fn`;
# 3. the tensor is a leaf: the path ends here, and the gradient must be **added** to `.grad`. That
#    is the job of a special node, `AccumulateGrad`. It keeps the leaf as `.variable`.
#
# An edge is this answer: a pair *(node or None, index)*. The index is nearly always 0. You will see
# what it is for.

# %%
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


# %% [markdown]
# A leaf has **one** AccumulateGrad, however often it is used. The leaf holds it by a *weak reference*, which
# looks at an object without keeping it alive. (Otherwise leaf and node would keep each other.)
#
# **Predict, then run.** Where does the gradient of the leaf `a` go, and where that of a constant?

# %% tags=["active-ipynb"]
# print(gradient_edge(a))
# print(gradient_edge(Tensor(7.)))

# %% [markdown]
# ## The backward node is made during forward
#
# `add` and `mul` compute their result *and* make its backward node at once. `results` puts the two
# together. It leaves the node out when no input wants a gradient, or when recording is off.
#
# (Who would switch that off? You will soon see. `with record(False):` does it for a block, like `no_grad`
# in step 7. It is folded.)

# %% tags=["folded"]
MODE = {"record": True}


@contextmanager
def record(on):
    """Whether the operations inside leave a grad_fn; put back at the end, after an error too."""
    before, MODE["record"] = MODE["record"], on
    try:
        yield
    finally:
        MODE["record"] = before


# %%
def results(node, *arrays):
    """The tensors of these arrays, each with the way back through `node`."""
    node.output_shapes = tuple(np.shape(array) for array in arrays)
    wanted = MODE["record"] and any(target is not None for target, _ in node.next_functions)
    return tuple(Tensor(array, grad_fn=node if wanted else None, output_nr=i)
                 for i, array in enumerate(arrays))


def add(x, y):
    x, y = as_tensor(x), as_tensor(y)
    return results(AddBackward0(x, y), x.data + y.data)[0]


def mul(x, y):
    x, y = as_tensor(x), as_tensor(y)
    return results(MulBackward0(x, y, x=x, y=y), x.data * y.data)[0]


# %% [markdown]
# **Predict, then run.** What stands behind the number?

# %% tags=["active-ipynb"]
# c = a + b
# e = c * d
# print(e)

# %% [markdown]
# No backward has run. The backward graph is there all the same: it grew while 20 was computed.

# %% tags=["active-ipynb"]
# assert repr(e) == "tensor(20., grad_fn=<MulBackward0>)"

# %% [markdown]
# ## Through the door

# %% tags=["active-ipynb"]
# print(e.grad_fn.next_functions)

# %% [markdown]
# Two inputs, two edges: `c` was computed, `d` is a leaf. Go on, one link at a time.

# %% tags=["active-ipynb"]
# add_node = e.grad_fn.next_functions[0][0]
# print(add_node)
# print(add_node.next_functions)

# %% [markdown]
# Which leaf is it? Ask the node for its `variable`.

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# add_node.variable

# %% [markdown]
# The wrong link. `c` is a result, not a leaf. Only an `AccumulateGrad` has a `variable`. Take the
# other one.

# %% tags=["active-ipynb"]
# d_node = e.grad_fn.next_functions[1][0]
# print(d_node.variable)
# assert d_node.variable is d             # not a copy: the very tensor
# assert d_node.next_functions == ()      # the end of the way

# %% [markdown]
# Here is all of it: on the left **F**, the forward graph, on the right **B**, the backward graph, each node
# beside the operation it belongs to. The orange arrows that leave a node of B are the edges of its
# `next_functions`, and nothing else. (Dotted: a value that is saved. Green: the leaf of an
# `AccumulateGrad`.) No gradient has a number yet.

# %% tags=["active-ipynb", "picture-F", "picture-B"]
# mg.draw(e)

# %% [markdown]
# ## Walk by hand
#
# A node can be called. The gradient of `e` with respect to itself is 1.
#
# **Predict, then run.** Which two numbers come out?

# %% tags=["active-ipynb", "mistake"]
# print(e.grad_fn(Tensor(1.)))

# %% [markdown]
# $\partial e/\partial c = d = 4$ and $\partial e/\partial d = c = 5$: right. But look at what stands
# behind each number. The formula `grad * y` is a multiplication of tensors, and `y` is our `d`, which requires a
# gradient. So the *gradient* has a `grad_fn` now: backward has built more backward graph.
#
# One day you will want that: step 12 is about nothing else. Today it only costs memory, so we switch
# recording off while we walk.

# %% tags=["active-ipynb"]
# with record(False):
#     to_c, to_d = e.grad_fn(Tensor(1.))
#     to_a, to_b = add_node(to_c)
# print(to_c, to_d)
# print(to_a, to_b)
# assert (to_a.data, to_b.data, to_d.data) == (4, 4, 5)

# %% [markdown]
# **Half-way.** You have made the graph and walked it. Take a rest here; exercise 10b needs no more than
# this.
#
# ## First try: follow every path
#
# The engine is to do what you just did: take a node, call it, send each part along its edge, until
# nothing is left.

# %% tags=["active-ipynb", "mistake"]
# def walk_every_path(node, grad):
#     calls, todo = 0, [(node, grad)]
#     while todo:
#         node, grad = todo.pop()
#         calls += 1
#         for (target, _), part in zip(node.next_functions, node(grad), strict=True):
#             if target is not None:
#                 todo.append((target, part))
#     return calls
#
#
# with record(False):
#     print(walk_every_path(e.grad_fn, Tensor(1.)), "calls")
# print(a.grad, b.grad, d.grad)

# %% [markdown]
# Right: 5 calls for 5 nodes. Now double a number ten times: 11 nodes.
#
# **Predict, then run.** How many calls?

# %% tags=["active-ipynb", "mistake"]
# x = Tensor(1., requires_grad=True)
# y = x
# for _ in range(10):
#     y = y + y
#
# with record(False):
#     calls = walk_every_path(y.grad_fn, Tensor(1.))
# print(x.grad, calls, "calls")

# %% [markdown]
# 1024 is right, after a call for every path. Two edges lead from each addition to the one before it, and
# we went on *at once*, with half of a gradient. So we walked every **path**. Fifty doublings have
# $2^{50}$.

# %% tags=["active-ipynb"]
# assert calls == 2047 == 2 ** 11 - 1

# %% [markdown]
# ## The repair: wait until everything has arrived
#
# A node waits until *all* its gradients have arrived. Then it is called once, with their sum. How many
# will arrive? As many as there are edges that point at it. Count them first, by following
# `next_functions`.

# %%
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


# %% [markdown]
# **Predict, then run.** A leaf that is used twice: how many nodes are there, and how many gradients does
# each wait for?

# %% tags=["active-ipynb"]
# print((a * a).grad_fn.next_functions)
# print(count_edges((a * a).grad_fn))
# first, second = (node for node, _ in (a * a).grad_fn.next_functions)
# assert first is second
# assert first is c.grad_fn.next_functions[0][0]      # the same as in c = a + b

# %% [markdown]
# Two edges to one `AccumulateGrad`, so it waits for two. The root waits for nothing: there we begin.
#
# ## Why the second number?
#
# One thing is missing before you write the walk. Each edge has said `0` so far. An operation with
# several *results* needs more. `unbind` is one: it takes an array apart. Its results share one
# node, and each of them knows its number, `output_nr`. (Folded. The backward of `unbind` is `stack`,
# which puts the pieces together again.)
#
# ```python
# return results(UnbindBackward0(x), *(row.copy() for row in x.data))
# ```

# %% tags=["folded"]
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


# %% tags=["active-ipynb"]
# x = Tensor([5., 7.], requires_grad=True)
# p, q = unbind(x)
# y = q * 3
# print(q, q.output_nr)
# print(y.grad_fn.next_functions)
# assert p.grad_fn is q.grad_fn           # one operation, one node, two outputs

# %% [markdown]
# `(<UnbindBackward0>, 1)`: the gradient of `q` goes to **slot** 1 of the node. A node has a slot for each
# result of its operation. `p` is not used, so nothing will arrive at slot 0.
#
# ## Your walk
#
# Two helpers are folded. `deliver(arrived, edge, grad)` adds a gradient to what has `arrived` at the slot
# of its edge. (Most of it is the error for a shape that does not fit.) `seed` is the gradient that backward
# starts with: 1 for a single number.

# %% tags=["folded"]
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


# %% [markdown]
# **10e. The engine: walk.** `walk` keeps three things: how many gradients are still `missing` at each
# node, what has `arrived`, and which nodes are `ready`, because nothing is missing any more. Write the
# loop. As long as a node is ready:
#
# 1. Take the node, and take what has `arrived` at it out of the table: a list with one gradient per
#    slot. Where nothing arrived, the slot holds `None`, and the node wants a zero,
#    `Tensor(np.zeros(shape))`, with the shape from `node.output_shapes`.
# 2. Call the node with them. It returns one part for each of its `next_functions`.
# 3. `deliver` each part along its edge, except where the edge leads nowhere, `(None, 0)`. The node at
#    the end of the edge now waits for one gradient fewer. If it was the last one, that node is ready.

# %% tags=["exercise", "ex-10e", "engine"]
def walk(edge, grad):
    """Follow next_functions from this edge to every leaf, and call each node once."""
    root = edge[0]
    missing = count_edges(root)
    arrived, ready = {}, [root]
    with record(False):
        deliver(arrived, edge, grad)
        ### BEGIN SOLUTION
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
        ### END SOLUTION


# check("10e", walk, Tensor, Node)

# %% [markdown]
# <!-- solution 10e -->
#
# `walk` knows nodes and edges, and no tensor of the forward. Fifty doublings take an instant.

# %% tags=["active-ipynb"]
# t = s = Tensor(1., requires_grad=True)
# for _ in range(50):
#     s = s + s
# s.backward()
# print(t.grad.data == 2 ** 50)
# assert t.grad.data == 2 ** 50

# %% [markdown]
# And our example. The picture shows what arrived at each leaf.

# %% tags=["active-ipynb", "picture-B"]
# a.grad = b.grad = d.grad = None         # forget what we did by hand
# e.backward()
# print(a.grad, b.grad, d.grad)
# assert [t.grad.data for t in (a, b, d)] == [4, 4, 5]
# mg.draw(e)

# %% [markdown]
# **Predict, then run.** Now $y = 3 q$ from above, where `p` is not used at all. What is `x.grad`?

# %% tags=["active-ipynb"]
# y.backward()
# print(x.grad)
# mg.draw(y)

# %% [markdown]
# Nothing arrived at slot 0, so the engine put a zero there. (In step 15 it returns as
# `fill_zeros_like`. The dashed bubble is the constant 3. It has no name of its own, so the picture says
# which input it is: the `y` of `mul`.)

# %% tags=["active-ipynb"]
# assert list(x.grad.data) == [0, 3]

# %% [markdown]
# Is the index all that keeps `p` and `q` apart? We set it to 0 and walk again.
#
# **Predict, then run.** Where does the 3 arrive now?

# %% tags=["active-ipynb", "mistake"]
# unbind_node, _ = y.grad_fn.next_functions[0]
# y.grad_fn.next_functions = ((unbind_node, 0), (None, 0))
#
# x.grad = None
# y.backward()
# print(x.grad)
# assert list(x.grad.data) == [3, 0]      # the gradient of q has landed on p

# %% [markdown]
# The forward was not touched, and the result is wrong. That is the proof: **the engine walks these
# edges and nothing else.**
#
# ## The words
#
# These are the eight things that any such engine does, and the words we use for them from here on:
#
# | word | what happens | in steps 1 to 9 | here |
# |---|---|---|---|
# | **make node** | an operation leaves something behind | the function object | a `Node` |
# | **link** | it notes where its inputs came from | `inputs`, `creator` | `next_functions` |
# | **order** | users run before makers | `by_generation` | `count_edges` |
# | **seed** | the gradient of the result: 1 | `np.ones_like` | `seed` |
# | **pull** | gradients of the outputs in, of the inputs out | `f.backward(gy)` | `node(grad)` |
# | **add** | gradients that meet are added | `accumulate` | `deliver`, `AccumulateGrad` |
# | **free** | what nobody needs is let go | weak links | step 11 |
# | **write down** | backward itself becomes a list of operations | | part D |

# %% [markdown]
# ## Explore
#
# Each button goes one link further. The path is Python. Find the way to `b`. Then go one link too far.

# %% tags=["active-ipynb", "interactive"]
# from minigrad.course.explore import explore, presses
#
#
# NAMES = {"a": a, "b": b, "c": c, "d": d, "e": e}
#
#
# def shown(here):
#     """The picture, with the place where we are marked."""
#     picture = mg.draw(e, names=NAMES)
#     leaf = next((name for name in "abd" if NAMES[name] is getattr(here, "variable", here)), None)
#     title = "AccumulateGrad" if hasattr(here, "variable") else leaf or repr(here).strip("<>")
#     for node in picture.graph.nodes.values():
#         if node.name == title and (leaf in (None, title) or node.lines[0].startswith(leaf)):
#             node.state = "active"
#     return picture
#
#
# def follow(links):
#     path, here = "e.grad_fn", e.grad_fn
#     lines = [f"{path}  →  {here}"]
#     for link in links:
#         path += ".variable" if link == "variable" else f".next_functions{link}[0]"
#         try:
#             here = here.variable if link == "variable" else here.next_functions[int(link[1])][0]
#         except (AttributeError, IndexError) as error:
#             lines.append(f"{path}  →  {type(error).__name__}: {error}")
#             break
#         lines.append(f"{path}  →  {here}")
#     if getattr(here, "next_functions", None):
#         lines.append(f"\nnext_functions: {here.next_functions}")
#     return [shown(here), "\n".join(lines)]
#
#
# explore(follow, links=presses("[0]", "[1]", "variable"))

# %% [markdown]
# ## Exercises
#
# **10a.** Write `leaves(tensor)`: the list of all leaves a tensor depends on, each once, found
# through `next_functions` alone. A leaf that requires a gradient depends on itself. No recursion,
# please: a backward graph can be 100 000 nodes deep.

# %% tags=["active-ipynb", "exercise", "ex-10a"]
# def leaves(tensor):
#     """All leaves that a gradient sent from this tensor would reach, each once."""
#     ### BEGIN SOLUTION
#     if tensor.grad_fn is None:
#         return [tensor] if tensor.requires_grad else []
#     found, seen, todo = [], set(), [tensor.grad_fn]
#     while todo:
#         node = todo.pop()
#         if node is None or node in seen:
#             continue
#         seen.add(node)
#         if isinstance(node, AccumulateGrad):
#             found.append(node.variable)
#         todo.extend(target for target, _ in node.next_functions)
#     return found
#     ### END SOLUTION
#
#
# check("10a", leaves, Tensor)

# %% [markdown]
# **10b.** Without running it: `x` is a leaf and `y = x * (x + 2)`. Write the names of these four
# as texts without the `<` and `>`, in this order, and `None` (no text) where an edge leads nowhere.
#
# 1. `y.grad_fn`
# 2. `y.grad_fn.next_functions[0][0]`
# 3. `y.grad_fn.next_functions[1][0]`
# 4. `y.grad_fn.next_functions[1][0].next_functions[1][0]`

# %% tags=["active-ipynb", "exercise", "ex-10b"]
# ### BEGIN SOLUTION
# names = ["MulBackward0", "AccumulateGrad", "AddBackward0", None]
# ### END SOLUTION
#
# check("10b", names, Tensor)

# %% [markdown]
# **10c.** Write `crossed(x)`. It takes a leaf with two elements $p, q$ and returns a single tensor
# whose `grad_fn` has exactly these edges: index 1 first, then index 0, both to the same node. (Its
# value is up to you.)

# %% tags=["active-ipynb", "exercise", "ex-10c"]
# def crossed(x):
#     """A tensor whose next_functions are ((node, 1), (node, 0))."""
#     ### BEGIN SOLUTION
#     p, q = unbind(x)
#     return q * p
#     ### END SOLUTION
#
#
# check("10c", crossed, Tensor)

# %% [markdown]
# ## In PyTorch / in Paddle
#
# The same lines, recorded with PyTorch 2.13.0 (addresses left out):
#
# ```python
# >>> a, b, d = (torch.tensor(v, requires_grad=True) for v in (2., 3., 4.))
# >>> c = a + b
# >>> e = c * d
# >>> e
# tensor(20., grad_fn=<MulBackward0>)
# >>> e.grad_fn.next_functions
# ((<AddBackward0 object>, 0), (<AccumulateGrad object>, 0))
# >>> e.grad_fn.next_functions[0][0].variable
# AttributeError: 'AddBackward0' object has no attribute 'variable'
# >>> e.grad_fn.next_functions[1][0].variable is d
# True
# >>> (a * 3).grad_fn.next_functions
# ((<AccumulateGrad object>, 0), (None, 0))
# >>> p, q = torch.tensor([5., 7.], requires_grad=True).unbind()
# >>> (q * 3).grad_fn.next_functions
# ((<UnbindBackward0 object>, 1), (None, 0))
# ```
#
# The 0 in `MulBackward0` counts the variants of an operation. And PyTorch's engine waits as ours
# does: it counts the edges before it starts (there the counts are called *dependencies*).
#
# Paddle's dynamic mode (2.x) has the same parts under other names: a `GradNode` for each
# operation, edges to the next nodes, and `GradNodeAccumulation` at each leaf. Its older *static*
# mode has no such objects. There the backward graph is made of operators with names. That is part
# D.
#
# ## Where it lives
#
# | concept | in the package |
# |---|---|
# | a tensor | `minigrad:Tensor` |
# | nodes, edges, saved values | `minigrad.eager.grad_fn:Node` |
# | the end of the way | `minigrad.eager.grad_fn:AccumulateGrad` |
# | the walk | `minigrad.eager.backward:backward` |
# | recording off | `minigrad:no_grad` |
