"""Autodiff on one page: primitives, an eager engine, and programs whose backward is generated.

A primitive is a NumPy function and one rule per input; a rule's parameters say what it reads.  The
same rule serves three readers: on arrays it computes, on Tensors it leaves a graph, and a grad
operator of a program runs it later.

    x = Tensor(2.0)                                  # eager: the graph is made while numbers flow
    backward(exp(x) * x)
    print(x.grad)                                    # 22.16716829679195

    program = trace(lambda x: exp(x) * x, 2.0)       # static: written down first, run later
    append_backward(program.block, {program.output: "ones"}, program.inputs)
    print(program)                                   # the forward part, and its backward part

Blocks of loops and branches get grad blocks: ``python one_page.py`` shows one.
"""

from __future__ import annotations

from collections import ChainMap
from itertools import count

import numpy as np

# -- values and primitives ---------------------------------------------------------------------


class Value:
    """A number of either engine: Python's operators become calls of primitives."""

    __array_ufunc__ = None  # NumPy leaves `array * value` to us
    ndim = property(lambda x: len(x.shape))
    __add__ = lambda x, y: add(x, y)
    __radd__ = lambda x, y: add(y, x)
    __sub__ = lambda x, y: add(x, neg(y))
    __rsub__ = lambda x, y: add(y, neg(x))
    __mul__ = lambda x, y: mul(x, y)
    __rmul__ = lambda x, y: mul(y, x)
    __truediv__ = lambda x, y: mul(x, power(y, -1.0))
    __rtruediv__ = lambda x, y: mul(y, power(x, -1.0))
    __pow__ = lambda x, y: power(x, y)
    __matmul__ = lambda x, y: matmul(x, y)
    __neg__ = lambda x: neg(x)
    __gt__ = lambda x, y: greater(x, y)
    __lt__ = lambda x, y: greater(y, x)
    __getitem__ = lambda x, index: getitem(x, index=index)


class Primitive:
    """A NumPy function and one rule per input; a call is answered by program, graph or NumPy."""

    def __init__(self, type, kernel, **rules):
        self.type, self.kernel, self.rules, self.slots = type, kernel, rules, list(rules)

    def __call__(self, *inputs, **attrs):
        if any(isinstance(x, Variable) for x in inputs):
            return record_operator(self, inputs, attrs)
        if any(isinstance(x, Tensor) for x in inputs):
            return record_node(self, inputs, attrs)
        return self.kernel(*inputs, **attrs)

    def gradient(self, slot, inputs, attrs, out, out_grad):
        """One rule, read on whatever the values are; what broadcasting repeated is summed."""
        known = dict(zip(self.slots, inputs), **attrs, out=out, out_grad=out_grad)
        code = self.rules[slot].__code__
        grad = self.rules[slot](*(known[name] for name in code.co_varnames[: code.co_argcount]))
        shape = np.shape(known[slot])
        return grad if np.shape(grad) == shape else sum_to(grad, shape=shape)


# -- the eager engine: a call leaves a node, backward walks the nodes, newest first ---------------


class Tensor(Value):
    """An array, its gradient, and the call that made it: (primitive, inputs, attrs)."""

    clock = count()

    def __init__(self, data, made_by=None):
        self.data, self.grad, self.made_by = np.asarray(data), None, made_by
        self.number = next(self.clock)

    shape = property(lambda self: self.data.shape)
    __float__ = lambda self: float(self.data)


def data_of(x):
    return x.data if isinstance(x, Tensor) else x


def record_node(primitive, inputs, attrs):
    return Tensor(primitive.kernel(*map(data_of, inputs), **attrs), (primitive, inputs, attrs))


def backward(loss, create_graph=False):
    """Fill ``.grad`` of every leaf; with ``create_graph`` gradients can be differentiated again."""
    read = (lambda x: x) if create_graph else data_of
    gradients, reached, waiting = {loss: read(Tensor(np.ones(loss.shape)))}, {loss}, [loss]
    while waiting:  # everything that the loss was made from
        inputs = waiting.pop().made_by
        fresh = {x for x in inputs[1] if isinstance(x, Tensor)} - reached if inputs else set()
        reached |= fresh
        waiting += fresh
    for tensor in sorted(reached, key=lambda t: -t.number):  # a user is newer than what it uses
        out_grad = gradients.pop(tensor, None)
        if out_grad is None:
            continue
        if tensor.made_by is None:
            tensor.grad = out_grad if tensor.grad is None else tensor.grad + out_grad
            continue
        primitive, inputs, attrs = tensor.made_by
        values = [read(x) for x in inputs]
        for slot, x in zip(primitive.slots, inputs):
            if isinstance(x, Tensor) and primitive.rules[slot]:
                grad = primitive.gradient(slot, values, attrs, read(tensor), out_grad)
                gradients[x] = gradients[x] + grad if x in gradients else grad


# -- the static engine: a program is text first, and runs later ---------------------------------

BLOCKS = []  # the blocks being written, innermost last
NUMBERS = count()


class Variable(Value):
    """A name in a block; ``example`` shows the shape that it will have."""

    def __init__(self, name, example):
        self.name, self.example = name, np.asarray(example)

    shape = property(lambda self: self.example.shape)


class Operator:
    """``outputs = type(inputs, attrs)``, by name; operators of control flow hold blocks."""

    def __init__(self, type, inputs, outputs, attrs=None, run=None, blocks=()):
        self.type, self.inputs, self.outputs = type, inputs, outputs
        self.attrs, self.run, self.blocks = attrs or {}, run, blocks

    def __repr__(self):
        return f"{', '.join(self.outputs)} = {self.type}({', '.join(map(str, self.inputs))})"


class Block(list):
    """Operators in order."""

    def lines(self, depth=0):
        for op in self:
            yield "  " * depth + repr(op)
            for block in op.blocks:
                yield from block.lines(depth + 1)

    def run(self, scope):
        for op in self:
            results = op.run(scope, *(scope[name] for name in op.inputs))
            scope.update(zip(op.outputs, results))
        return scope


class Program:
    """A block, what it is fed, and its result."""

    def __init__(self, block, inputs, output):
        self.block, self.inputs, self.output = block, inputs, output

    def __repr__(self):
        return "\n".join(self.block.lines())

    def run(self, *arrays):
        """The scope after a run: every name with its value."""
        feed = dict(zip(self.inputs, map(np.asarray, arrays)), ones=1.0)
        return self.block.run(ChainMap({}, feed))


def new_name(stem):
    return f"{stem}_{next(NUMBERS)}"


def named(x):
    """The Variable of a value; numbers and arrays become operators without inputs."""
    if isinstance(x, Variable):
        return x
    constant = Variable(new_name("constant"), x)
    BLOCKS[-1].append(Operator("constant", [], [constant.name], run=lambda scope: [x]))
    return constant


def record_operator(primitive, inputs, attrs):
    inputs = [named(x) for x in inputs]
    example = primitive.kernel(*(x.example for x in inputs), **attrs)
    out = Variable(new_name(primitive.type), example)
    run = lambda scope, *arrays: [primitive.kernel(*arrays, **attrs)]
    BLOCKS[-1].append(Operator(primitive.type, [x.name for x in inputs], [out.name], attrs, run))
    return out


def written(function, *variables):
    """Call a function on Variables: the block of its operators, and the names of its results."""
    BLOCKS.append(Block())
    try:
        results = function(*variables)
        results = results if isinstance(results, (list, tuple)) else [results]
        return BLOCKS[-1], [assign(named(x)) for x in results]
    finally:
        BLOCKS.pop()


def trace(function, *arrays):
    variables = [Variable(f"x{k}", a) for k, a in enumerate(arrays)]
    block, [output] = written(function, *variables)
    return Program(block, [x.name for x in variables], output.name)


# -- append_backward: grad operators behind the operators, in reverse ---------------------------


def append_backward(block, seeds, wanted):
    """Write the gradients of ``wanted`` behind a block; ``seeds``: output → name of its gradient.

    Returns {name: name of its gradient} for all that is reached.
    """
    path, reached = [], set(wanted)
    for op in block:
        if reached & {*op.inputs, *free_names(op)}:
            path.append(op)
            reached.update(op.outputs)
    parts = {name: [seed] for name, seed in seeds.items()}  # name → gradients that have arrived
    for op in reversed(path):
        if any(name in parts for name in op.outputs):
            out_grads = [summed(block, name, parts) or zeros(block, name) for name in op.outputs]
            grad_maker = GRAD_MAKERS.get(op.type, grad_operator)
            for name, gradient in grad_maker(block, op, out_grads, reached):
                parts.setdefault(name, []).append(gradient)
    return {name: summed(block, name, parts) for name in wanted if name in parts}


def summed(block, name, parts):
    """One name for the sum of what arrived: several users, one gradient."""
    if len(parts.get(name, ())) > 1:
        total = new_name(f"{name}@GRAD")
        block.append(Operator("sum", parts[name], [total], run=lambda scope, *terms: [sum(terms)]))
        parts[name] = [total]
    return parts[name][0] if name in parts else None


def zeros(block, name):
    """A result that nobody used has a gradient, too: zeros of its shape."""
    zero = new_name(f"{name}@ZERO")
    block.append(Operator("zeros_like", [name], [zero], run=lambda scope, x: [np.zeros_like(x)]))
    return zero


def grad_operator(block, op, out_grads, reached):
    """The grad operator of a primitive: its rules, run later, on arrays."""
    primitive = TABLE[op.type]
    targets = [
        (slot, name, new_name(f"{name}@GRAD"))
        for slot, name in zip(primitive.slots, op.inputs)
        if primitive.rules[slot] and name in reached
    ]

    def run(scope, out, out_grad, *values):
        return [primitive.gradient(slot, values, op.attrs, out, out_grad) for slot, *_ in targets]

    inputs, outputs = [*op.outputs, *out_grads, *op.inputs], [grad for _, _, grad in targets]
    if targets:
        block.append(Operator(f"{op.type}_grad", inputs, outputs, run=run))
    return [(name, grad) for _, name, grad in targets]


# -- control flow: operators that hold blocks, and grad operators that hold grad blocks ---------


def free_names(op):
    """What the blocks of an operator read from outside."""
    inside = [o for block in op.blocks for o in block]
    own = {name for o in inside for name in o.outputs} | set(op.attrs.get("carried", ()))
    return {name for o in inside for name in (*o.inputs, *free_names(o))} - own


def cond(condition, true_fn, false_fn):
    """One of two blocks runs; its scope is kept for the gradient."""
    (true, [yes]), (false, [no]) = written(true_fn), written(false_fn)
    out, kept = Variable(new_name("cond"), yes.example), new_name("scope")

    def run(scope, taken):
        scope[kept] = (true if taken else false).run(scope.new_child())
        return [scope[kept][yes.name if taken else no.name]]

    attrs = {"results": [yes.name, no.name], "kept": kept}
    BLOCKS[-1].append(Operator("cond", [condition.name], [out.name], attrs, run, [true, false]))
    return out


def grad_block_of(forward, seeds, wanted):
    """The generated gradient of a block, as a block of its own, and the names it gives."""
    both = Block(forward)
    gradients = append_backward(both, seeds, wanted)
    return Block(both[len(forward) :]), gradients


def gradient_in(scope, gradients, name):
    return scope[gradients[name]] if name in gradients else np.zeros_like(scope[name])


def cond_grad(block, op, out_grads, reached):
    outer, seed = sorted(free_names(op) & reached), out_grads[0]
    grads = [
        grad_block_of(forward, {result: seed}, outer)
        for forward, result in zip(op.blocks, op.attrs["results"])
    ]

    def run(scope, taken, out_grad):
        grad_block, gradients = grads[0 if taken else 1]
        inner = grad_block.run(scope[op.attrs["kept"]].new_child({seed: out_grad}))
        return [gradient_in(inner, gradients, name) for name in outer]

    names, blocks = [new_name(f"{name}@GRAD") for name in outer], [b for b, _ in grads]
    block.append(Operator("cond_grad", [*op.inputs, seed], names, run=run, blocks=blocks))
    return list(zip(outer, names))


def while_loop(condition, body, init):
    """A block that runs until its condition is false; each turn's scope is kept for the gradient."""
    init = [named(x) for x in init]
    carried = [Variable(new_name("carried"), x.example) for x in init]
    (test, [more]), (block, results) = written(condition, *carried), written(body, *carried)
    names, nexts = [x.name for x in carried], [x.name for x in results]

    def run(scope, *values):
        turns = []
        while test.run(scope.new_child(dict(zip(names, values))))[more.name]:
            turns.append(block.run(scope.new_child(dict(zip(names, values)))))
            values = [turns[-1][name] for name in nexts]
        scope[kept] = turns
        return values

    outs, kept = [Variable(new_name("while"), x.example) for x in init], new_name("scopes")
    floats = [k for k, x in enumerate(init) if x.example.dtype.kind == "f"]
    attrs = {"carried": names, "nexts": nexts, "floats": floats, "kept": kept}
    inputs, outputs = [x.name for x in init], [x.name for x in outs]
    BLOCKS[-1].append(Operator("while", inputs, outputs, attrs, run, [test, block]))
    return outs


def while_grad(block, op, out_grads, reached):
    """The grad block of the body, once per turn, the last turn first."""
    outer, floats = sorted(free_names(op) & reached), op.attrs["floats"]
    carried, nexts = ([op.attrs[key][k] for k in floats] for key in ("carried", "nexts"))
    seeds = {name: new_name(f"{name}@GRAD") for name in nexts}
    grad_block, gradients = grad_block_of(op.blocks[-1], seeds, [*carried, *outer])

    def run(scope, *flowing):
        totals = [np.zeros_like(scope[name]) for name in outer]
        for turn in reversed(scope[op.attrs["kept"]]):
            inner = grad_block.run(turn.new_child(dict(zip(seeds.values(), flowing))))
            flowing = [gradient_in(inner, gradients, name) for name in carried]
            totals = [t + gradient_in(inner, gradients, name) for t, name in zip(totals, outer)]
        return [*flowing, *totals]

    targets = [*(op.inputs[k] for k in floats), *outer]
    names = [new_name(f"{name}@GRAD") for name in targets]
    inputs = [out_grads[k] for k in floats]
    block.append(Operator("while_grad", inputs, names, run=run, blocks=[grad_block]))
    return list(zip(targets, names))


GRAD_MAKERS = {"cond": cond_grad, "while": while_grad}

# -- the table: each primitive with its rules ---------------------------------------------------


def sum_to_shape(x, shape):
    """Sum over the axes that broadcasting added or stretched."""
    x = np.sum(x, axis=tuple(range(np.ndim(x) - len(shape))))
    return np.sum(x, axis=tuple(k for k, n in enumerate(shape) if n < x.shape[k]), keepdims=True)


def add_at(x, index, shape):
    """The transpose of indexing: zeros with x added at the index."""
    zeros = np.zeros(shape)
    np.add.at(zeros, index, x)
    return zeros


add = Primitive("add", np.add, x=lambda out_grad: out_grad, y=lambda out_grad: out_grad)
mul = Primitive("mul", np.multiply, x=lambda y, out_grad: out_grad * y,
                y=lambda x, out_grad: out_grad * x)
neg = Primitive("neg", np.negative, x=lambda out_grad: -out_grad)
power = Primitive("power", np.power, x=lambda x, y, out_grad: out_grad * y * power(x, y - 1.0),
                  y=lambda x, out, out_grad: out_grad * out * log(x))
exp = Primitive("exp", np.exp, x=lambda out, out_grad: out_grad * out)
log = Primitive("log", np.log, x=lambda x, out_grad: out_grad / x)
sin = Primitive("sin", np.sin, x=lambda x, out_grad: out_grad * cos(x))
cos = Primitive("cos", np.cos, x=lambda x, out_grad: -out_grad * sin(x))
tanh = Primitive("tanh", np.tanh, x=lambda out, out_grad: out_grad * (1.0 - out * out))
greater = Primitive("greater", np.greater, x=None, y=None)
where = Primitive("where", np.where, condition=None,
                  x=lambda condition, out_grad: where(condition, out_grad, 0.0),
                  y=lambda condition, out_grad: where(condition, 0.0, out_grad))
assign = Primitive("assign", np.array, x=lambda out_grad: out_grad)
sum_to = Primitive("sum_to", sum_to_shape,
                   x=lambda x, out_grad: broadcast_to(out_grad, shape=np.shape(x)))
broadcast_to = Primitive("broadcast_to", np.broadcast_to,
                         x=lambda x, out_grad: sum_to(out_grad, shape=np.shape(x)))
reshape = Primitive("reshape", np.reshape,
                    x=lambda x, out_grad: reshape(out_grad, shape=np.shape(x)))
swapaxes = Primitive("swapaxes", np.swapaxes,
                     x=lambda axis1, axis2, out_grad: swapaxes(out_grad, axis1=axis1, axis2=axis2))
getitem = Primitive("getitem", lambda x, index: np.asarray(x)[index],
                    x=lambda x, index, out_grad: put(out_grad, index=index, shape=np.shape(x)))
put = Primitive("put", add_at, x=lambda index, out_grad: getitem(out_grad, index=index))
product = Primitive("matmul", np.matmul, x=lambda y, out_grad: product(out_grad, flipped(y)),
                    y=lambda x, out_grad: product(flipped(x), out_grad))


def flipped(x):
    return swapaxes(x, axis1=-1, axis2=-2)


def matmul(x, y):
    """Vectors are matrices of one row or column while they are multiplied."""
    rows, columns = np.ndim(x) > 1, np.ndim(y) > 1
    out = product(x if rows else x[None], y if columns else y[:, None])
    return out[..., slice(None) if rows else 0, slice(None) if columns else 0]


TABLE = {p.type: p for p in [*globals().values()] if isinstance(p, Primitive)}


if __name__ == "__main__":
    x = Tensor(2.0)
    backward(exp(x) * x)
    program = trace(lambda x: while_loop(lambda y: y < 100.0, lambda y: [y * y + x], [x])[0], 2.0)
    gradients = append_backward(program.block, {program.output: "ones"}, program.inputs)
    print(x.grad, program, program.run(2.0)[gradients["x0"]], sep="\n")
