"""Bugs that an engine like this one could really have: what stands in the source, and what could stand there.

White space does not count when the text is looked for, so that formatting changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One bug: where it is, what is replaced by what, and what it does."""

    name: str
    module: str
    right: str
    wrong: str

    def apply(self, source: str) -> str:
        """The source with the bug in it.  Errors: `ValueError` unless the text stands there once."""
        tokens = re.findall(r"\w+|[^\w\s]", self.right)
        found = re.findall(r"\s*".join(map(re.escape, tokens)), source)
        if len(found) != 1:
            raise ValueError(
                f"{self.name}: {self.right!r} stands {len(found)} times in {self.module}"
            )
        return source.replace(found[0], self.wrong)


def bugs(module: str, *rows: tuple[str, str, str]) -> list[Bug]:
    return [Bug(name, f"minigrad.{module}", right, wrong) for name, right, wrong in rows]


EAGER = [
    *bugs(
        "eager.backward",
        ("the order of nodes is that of discovery", "order.sort(key=by_seq)", "pass"),
        (
            "nodes run oldest first",
            "for n in reversed(order): n.push()",
            "for n in order: n.push()",
        ),
        (
            "saved values have no versions",
            "if order and newest_change() > order[0].seq:",
            "if False:",
        ),
        ("saved values are never freed", "free(order,", "free([],"),
        ("retain_graph is ignored", "if not retain: free(order,", "if True:\n        free(order,"),
        (
            "the root gets its gradient twice",
            "return [(edge, unit)]",
            "return [(edge, unit + unit)]",
        ),
    ),
    *bugs(
        "eager.backward",
        (
            "a leaf runs before its last user",
            "order |= dict.fromkeys(m for m in n.edges if m.__class__ is AccumulateGrad) order[n] = None",
            "order[n] = None\n            order |= dict.fromkeys(m for m in n.edges if m.__class__ is AccumulateGrad)",
        ),
        (
            "hooks of leaves are forgotten",
            "[g if g is None else self._tensor_hooks",
            "[g if g is None or n.__class__ is AccumulateGrad else self._tensor_hooks",
        ),
        ("only the direct users of an input run", "needed.add(n) self.runs", "self.runs"),
        (
            "all reached nodes are freed, not those that ran",
            "free(self.runs,",
            "free(self.order,",
        ),
        (
            "a walk with hooks frees nothing",
            "free(self.runs,",
            "free([],",
        ),
        (
            "off the way hooks see incomplete gradients",
            "if g is None or n not in seen:",
            "if g is None:",
        ),
        (
            "a retained gradient is overwritten",
            "accumulated(t, g, False, self.create)",
            "accumulated(t, g, False, self.create) if t.is_leaf else wrap(np.array(getattr(g, '_data', g)))",
        ),
        (
            "of several outputs the last one is captured",
            "{(n, k): g for k, g in enumerate(grads)}",
            "{(n, k): grads[-1] for k, g in enumerate(grads)}",
        ),
        (
            "several roots: the last seed wins",
            "self._arrive(edge, seed)",
            "self.arrived[edge] = seed",
        ),
    ),
    *bugs(
        "eager.backward",
        (
            "grad is overwritten, not accumulated",
            "wrap(np.asarray(old._data + g))",
            "wrap(np.asarray(g))",
        ),
        (
            "the graph of gradients is not accumulated",
            "if old is not None: return old + g",
            "if old is not None:\n            return g",
        ),
        ("gradients share memory", "return g if own else np.array(g)", "return g"),
    ),
    *bugs(
        "eager.backward",
        (
            "what a hook returns is dropped",
            'g = self._hooked(hook(_shown(g)), g, "a tensor hook")',
            'self._hooked(hook(_shown(g)), g, "a tensor hook")',
        ),
    ),
    *bugs(
        "eager.backward",
        ("the seed is two", "else data.dtype.type(1)", "else data.dtype.type(2)"),
        (
            "grad() with create_graph loses its seed",
            "seed if isinstance(seed, Tensor) else wrap(np.array(array))",
            "seed if isinstance(seed, Tensor) else wrap(np.zeros_like(array))",
        ),
    ),
    *bugs(
        "eager.grad_fn",
        (
            "hooks switch accumulation off",
            "g if edge.g is None else edge.g + g, False",
            "g, False",
        ),
        (
            "an output without gradient counts as one",
            "np.zeros(*spec) if x is None",
            "np.ones(*spec) if x is None",
        ),
    ),
    *bugs(
        "eager.tensor",
        (
            "hooks of a leaf are those of an AccumulateGrad nobody uses",
            "(self.grad_fn or self._node)._hooks()",
            "(self.grad_fn or AccumulateGrad(self))._hooks()",
        ),
        (
            "detach keeps the graph",
            "made = wrap(self._data)",
            "made = wrap(self._data, self._node)",
        ),
        (
            "zero_grad does nothing",
            "None if set_to_none or old is None",
            "old if set_to_none or old is None",
        ),
    ),
    *bugs(
        "eager.mode",
        (
            "no_grad records",
            "class no_grad(_Switch, grad=False)",
            "class no_grad(_Switch, grad=True)",
        ),
    ),
    *bugs(
        "eager.inplace",
        ("an in-place change has no number", "_newest, _changes[key] = entry[0], entry", "pass"),
        (
            "a value without a graph keeps that of the old one",
            "old, tensor._node = tensor._node, result._node",
            "old, tensor._node = tensor._node, result._node or tensor._node",
        ),
        (
            "an operand that shares memory is cut off it",
            "view._data, view._node = data, node and Overwritten(view, data)",
            "pass",
        ),
        (
            "a view that changed through another Tensor keeps its graph",
            "data, node and Overwritten(view, data)",
            "data, node",
        ),
        ("versions are compared the wrong way", "if number > node.seq:", "if number < node.seq:"),
        (
            "a view has a version of its own",
            'while isinstance(getattr(array, "base", None), np.ndarray):',
            "while False:",
        ),
    ),
    *bugs(
        "eager.record",
        (
            "a view of what has no graph yet is forgotten",
            "if isinstance(x0, Tensor): x0._viewed = True",
            "pass",
        ),
        ("ops record under no_grad", "if m is not GRAD and not m.grad:", "if False:"),
        (
            "every part of a list gets the first gradient",
            "[g if e is not None else None for g, e in zip(grads, edges, strict=True)]",
            "[grads[0] if e is not None else None for g, e in zip(grads, edges, strict=True)]",
        ),
        (
            "every output of a node is the first",
            "out._node = Output(node, k)",
            "out._node = Output(node, 0)",
        ),
        (
            "a gradient's graph ends at saved values",
            "else wrap(value, edge)",
            "else wrap(value, None)",
        ),
        (
            "a gradient's graph is not summed over broadcast axes",
            "_unbroadcast=unbroadcast if graph else sum_to,",
            "_unbroadcast=(lambda g, shape: g) if graph else sum_to,",
        ),
        (
            "saved outputs end the graph",
            "if name in p.outputs and name not in p.nondiff:",
            "if False:",
        ),
    ),
    *bugs(
        "eager.record",
        (
            "every use of a leaf has an AccumulateGrad of its own",
            "AccumulateGrad: leaves = x{k} if leaves is None else (x{k}, leaves)",
            "AccumulateGrad: leaves = x{k}, leaves; e{k} = AccumulateGrad(x{k})",
        ),
        (
            "the wrong operand decides what is saved",
            'needed = " or ".join(f"not ({_absent(p, place[n])})" for n in users)',
            'needed = f"not ({_absent(p, place.get(s, 0))})"',
        ),
        (
            "broadcast gradients are not summed",
            "g{k} = _unbroadcast(g{k}, s[{k}])",
            "pass",
        ),
        (
            "the last path wins, nothing is added up",
            "else: e{k}.g = h + g{k}; e{k}.own = True",
            "else: e{k}.g = g{k}; e{k}.own = True",
        ),
        (
            "a shared gradient is added to in place",
            'else f"g{k} is not g and g{k}.base is None"',
            'else "True"',
        ),
        (
            "an addition in place forgets the old part",
            "elif e{k}.own: h += g{k}; e{k}.g = h",
            "elif e{k}.own: e{k}.g = g{k}",
        ),
        (
            "a gradient is summed to the shape of the wrong operand",
            "_unbroadcast(g{k}, s[{k}])",
            "_unbroadcast(g{k}, s[{k - 1}])",
        ),
    ),
]

OPS = [
    *bugs(
        "ops.elementwise",
        (
            "product: the other factor",
            "y=lambda x, out_grad: out_grad * x) @elementwise def div",
            "y=lambda y, out_grad: out_grad * y)\n\n\n@elementwise\ndef div",
        ),
        (
            "difference: no sign",
            "y=lambda out_grad: -out_grad) @elementwise def mul",
            "y=lambda out_grad: out_grad)\n\n\n@elementwise\ndef mul",
        ),
        (
            "quotient: no sign",
            "y=lambda y, out, out_grad: -out_grad * out / y",
            "y=lambda y, out, out_grad: out_grad * out / y",
        ),
        ("square: half", "out_grad * (2 * x)", "out_grad * x"),
    ),
    *bugs(
        "ops.elementwise",
        ("sine: the sign of the cosine", "out_grad * cos(x)", "-out_grad * cos(x)"),
        ("tanh: no square", "1 - out * out))", "1 - out))"),
    ),
    *bugs(
        "ops.shape",
        ("broadcast: stretched axes are not summed", "if n == 1 != size]", "if False]"),
        ("broadcast: added axes are not summed", "if lead > 0: x", "if False:\n        x"),
        (
            "transpose: the gradient is not transposed",
            "permute_dims(out_grad, back)",
            "reshape(out_grad, shape=out_grad.shape[::-1])",
        ),
    ),
    *bugs(
        "ops.reduce",
        (
            "mean: not divided",
            "return np.true_divide(x, count_over(shape, axis, correction))",
            "return np.true_divide(x, 1.0)",
        ),
    ),
]

OPS += [
    *bugs(
        "ops.linalg",
        (
            "matrix product: the second factor is not transposed",
            "if x.ndim == y.ndim == len(shape) == 2: return x.dot(y.T)",
            "if x.ndim == y.ndim == len(shape) == 2:\n        return np.dot(x, np.resize(y, y.T.shape))",
        ),
        (
            "matrix product: the first factor is not transposed",
            "return x.T.dot(y)",
            "return np.dot(np.resize(x, x.T.shape), y)",
        ),
    ),
    *bugs(
        "ops.softmax",
        (
            "softmax: no sum",
            "out * (out_grad - reduce_sum(out * out_grad, axis, keepdims=True))",
            "out * (1 - out) * out_grad",
        ),
    ),
    *bugs(
        "ops.activations",
        ("relu: the input's gradient everywhere", "out_grad * (out != 0)", "out_grad * (out >= 0)"),
        ("sigmoid: half the slope", "out_grad * (out * (1 - out))", "out_grad * out"),
    ),
    *bugs(
        "ops.compare",
        (
            "larger of two: both get the gradient",
            'y=lambda x, y, out_grad: out_grad * tie_weight(y, x), ).formula(x="g * ((x > y)',
            'y=lambda x, y, out_grad: out_grad * tie_weight(x, y)).formula(x="g * ((x > y)',
        ),
    ),
    *bugs(
        "ops.join",
        (
            "stack: gradients in the wrong order",
            'stack.grad(x=(unbind, "out_grad, axis", "part(g, k)"))',
            "stack.grad(x=lambda out_grad, axis: unbind(out_grad, axis=axis)[::-1])",
        ),
        (
            "unbind: gradients in the wrong order",
            'unbind.grad(x=(stack, "out_grad, axis"))',
            "unbind.grad(x=lambda out_grad, axis: stack(out_grad[::-1], axis=axis))",
        ),
    ),
]

STATIC = [
    *bugs(
        "static.backward.passes",
        (
            "the last writer of a gradient wins",
            "if len(sites) == 1: return",
            "if True:\n            return",
        ),
        ("every temporary has the same name", "{label}{k}", "{label}"),
        ("the sum stands behind its readers", "if name in writers: close(name)", "pass"),
        (
            "a missing gradient is not filled with zeros",
            "if name in unmade:",
            "if False:",
        ),
    ),
    *bugs(
        "static.backward.append_backward",
        (
            "grad ops in the order of the forward part",
            "for k, flow in path: op = forward[k] if",
            "for k, flow in path[::-1]:\n            op = forward[k]\n            if",
        ),
    ),
    *bugs(
        "static.backward.op_path",
        ("the path ends at the first operator", "needed.add(name) if", "if"),
        (
            "what is not wanted cuts the path",
            "reaching.add(name)",
            "pass",
        ),
    ),
    *bugs(
        "static.run.interpreter",
        ("a loop's gradient runs forward", "range(len(scopes) - 1, -1, -1)", "range(len(scopes))"),
        (
            "a parameter's gradient is that of the first step",
            "functools.reduce(np.add, map(in_order, parts))",
            "in_order(parts[-1])",
        ),
        (
            "carried gradients are not handed on",
            'grads = _values(inner, op.attrs["carried_grad"])',
            "pass",
        ),
        (
            "the other branch is differentiated",
            'inner = _grad_scope(run, value_of(scope, op.inputs["scopes"][0]), block)',
            'block = op.attrs["else_block" if prefix == "true" else "sub_block"]\n    inner = _grad_scope(run, value_of(scope, op.inputs["scopes"][0]), block)',
        ),
        (
            "all steps share the first scope",
            'inner = _grad_scope(run, scopes[t], op.attrs["sub_block"])',
            'inner = _grad_scope(run, scopes[0], op.attrs["sub_block"])',
        ),
        (
            "a loop without steps has the gradient one",
            "np.zeros_like(value_of(scope, value))",
            "np.ones_like(value_of(scope, value))",
        ),
    ),
    *bugs(
        "static.run.kernels",
        (
            "broadcast gradients of programs are not summed",
            "if p.broadcasts and s in slots:",
            "if False:",
        ),
    ),
    *bugs(
        "static.backward.grad_ops",
        (
            "the wrong operands are looked at for sums",
            "shape == full and -1 not in shape",
            "-1 not in shape",
        ),
    ),
    *bugs(
        "static.backward.grad_ops",
        (
            "unused carried values have no zero",
            'inner.ops.append(backward_op("fill_zeros_like", name, local[name]))',
            "pass",
        ),
    ),
    *bugs(
        "static.backward.append_backward",
        ("the loss has the seed two", '"value": 1.0', '"value": 2.0'),
        ("the user's marks are ignored", "block.program._marked()", "set()"),
        (
            "what is asked for opens a cut",
            "wanted = {v.name for v in asked} - no_grad",
            "wanted = {v.name for v in asked}\n    no_grad = no_grad - wanted",
        ),
    ),
    *bugs(
        "static.backward.op_path",
        ("what flows is not followed from step to step", "after[c] |= after[middle]", "pass"),
        ("every result of a block depends on all its inputs", "behind[out] & inputs", "inputs"),
        (
            "only one branch of a cond hands gradients on",
            "sources[out] |= behind.get(name, set())",
            "sources[out] = behind.get(name, set())",
        ),
    ),
    *bugs(
        "static.backward.op_path",
        ("a target that is cut hands gradients on", "set(targets) - no_grad", "set(targets)"),
    ),
    *bugs(
        "static.backward.grad_ops",
        (
            "the second grad op of an operator reads what the first wrote",
            "if len(grad_ops) == 1:",
            "if grad_ops:",
        ),
    ),
    *bugs(
        "static.backward.append_backward",
        (
            "an overwritten value has the gradient of the later one",
            "for name in used.intersection(op.output_names) - have:",
            "for name in ():",
        ),
    ),
    *bugs(
        "static.program.transform",
        (
            "a copy forgets what backward calls were asked",
            '"outputs", "backward_calls"',
            '"outputs"',
        ),
        (
            "a program for testing has no gradients to read",
            "(used and not lasting)",
            "False",
        ),
    ),
    *bugs(
        "static.text.syntax",
        ("a text forgets the cuts of a backward call", "marked | set(cut)", "marked"),
    ),
]

FILES = [
    *bugs(
        "nn.storage",
        (
            "a name may stand twice in an npz file",
            'times > 1 or not name.endswith(".npy")',
            'not name.endswith(".npy")',
        ),
    ),
    *bugs(
        "atomic",
        (
            "a save that fails leaves what it has written",
            "os.unlink(part)",
            "os.replace(part, target)",
        ),
    ),
    *bugs(
        "static.text.literals",
        ("a stored slice forgets its step", "return slice(*rest)", "return slice(*rest[:2])"),
        (
            "a stored number is refused where its bytes are many",
            "-(2**63) <= value < 2**64",
            "-(2**24) <= value < 2**24",
        ),
    ),
]

COMPILED = [
    *bugs(
        "compiler.memory",
        (
            "the memory of what is fetched is given to others",
            "last |= {r: len(read) for a in schedule.fetched for r in a.roots}",
            "last |= {}",
        ),
    ),
    *bugs(
        "compiler.tracer",
        (
            "what a function gives is in C order",
            "return np.zeros_like(result)",
            "return np.zeros(result.shape, result.dtype)",
        ),
        (
            "what an index array takes out is in C order",
            "Array(self, np.zeros_like(part))",
            "Array(self, np.zeros(part.shape, part.dtype))",
        ),
    ),
]

PICTURES = [
    *bugs(
        "static.run.interpreter",
        (
            "every operator of a block is noted as its first one",
            'record.note("op", scope, turn, op.output_names, k)',
            'record.note("op", scope, turn, op.output_names, 0)',
        ),
    ),
    *bugs(
        "viz.player",
        (
            "a turn of a loop starts with what stood there before",
            "scoped(sources, values), turn)",
            "{}, turn)",
        ),
    ),
]

CALLS = [
    *bugs(
        "primitives.registry",
        (
            "a keyword that nobody knows is dropped",
            "k = names.index(name) if name in names else None",
            "k = names.index(name) if name in names else None\n            if k is None:\n                continue",
        ),
    ),
    *bugs(
        "errors.calls",
        (
            "a call that does not fit is told as a value of a wrong kind",
            "if isinstance(cause, TypeError) and (",
            "if False and (",
        ),
        (
            "a class says nothing of its inherited methods",
            "for home in cls.__mro__:",
            "for home in [cls]:",
        ),
    ),
]

MODULES = [
    *bugs(
        "nn.module",
        (
            "what is frozen stays frozen",
            "if at.requires_grad or at._frozen]",
            "if at.requires_grad]",
        ),
        ("buffers are thawed, too", "if at.requires_grad or at._frozen]", "]"),
        (
            "only the outermost module is switched to use",
            "for module in self.modules()])",
            "for module in [self]])",
        ),
        (
            "a gradient stays in the dtype of before",
            "replaced(at, at._data.astype(dtype), None)",
            "replaced(at, at._data.astype(dtype), at.grad)",
        ),
    ),
    *bugs(
        "eager.tensor",
        (
            "nothing is remembered of what is frozen",
            '[(self, "_node", None), (self, "_cut", "frozen")]',
            '[(self, "_node", None)]',
        ),
    ),
    *bugs(
        "nn.layers",
        (
            "only one of the running statistics is set",
            "set_all(changes)",
            "set_all(changes[:3])",
        ),
    ),
    *bugs(
        "optim.optimizers",
        (
            "the last parameter is never updated",
            'for p in group["params"]:',
            'for p in group["params"][:-1]:',
        ),
    ),
]

BUGS: list[Bug] = [*EAGER, *OPS, *STATIC, *FILES, *COMPILED, *PICTURES, *CALLS, *MODULES]
