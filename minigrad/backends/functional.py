"""A program as one pure function: parameters in, new parameters and what is fetched out.

    def step(xp, parameters, x):
        w = parameters['w']
        h = xp.matmul(x, w)
        ...
        w_2 = xp.sgd(w, w_grad, 0.1)
        return {**parameters, 'w': w_2}, [loss]

Every line calls a primitive of ``xp``; nothing is changed in place, and no name is given twice.  So the very same
source runs on NumPy and, under `jax.jit`, on JAX.  It is built as a syntax tree, of names made here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.syntax import (
    Comment,
    assign,
    clean,
    compile_tree,
    entry,
    function,
    invoke,
    load,
    rendered,
)
from ..errors import ProgramError
from ..primitives.registry import REGISTRY
from ..static.program.naming import unwritten
from ..static.program.program import EMPTY, Block, Operator, Program
from ..static.run.feeds import data_of
from ..static.run.kernels import targets
from .lowering import Name, named_arguments, primitive_of

#: what a traceback calls functional source
FILENAME = "<minigrad functional>"
RESERVED = ("xp", "parameters", "step", "slice", "constants")


class Scope:
    """Names of the program and their identifiers; what is not here is looked for in the parent."""

    def __init__(self, block: Block, parent: Scope | None = None) -> None:
        self.block, self.parent = block, parent
        self.names: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """The identifier of a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise unwritten(name)


class FunctionWriter:
    """Turns a program of primitives into the syntax tree of one function."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        self.program = program
        self.taken = set(RESERVED)
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.commented: Operator | None = None
        self.written: dict[str, str] = {}  # persistable name → its last identifier
        root = program.global_block()
        scope = Scope(root)
        self.feeds = {name: self.new(scope, name) for name in data_of(program)}
        body: list[ast.stmt] = [
            assign(self.new(scope, v.name), entry("parameters", v.name))
            for v in root.vars.values()
            if v.persistable
        ]
        body += self.block(root, scope)
        changed = ast.Dict(
            [None, *map(ast.Constant, self.written)],
            [load("parameters"), *map(load, self.written.values())],
        )
        found = ast.List([load(scope.find(n)) for n in fetch], ast.Load())
        body.append(ast.Return(ast.Tuple([changed, found], ast.Load())))
        parameters = ["xp", "parameters", *self.feeds.values()]
        start: list[ast.stmt] = [assign(k, entry("constants", k)) for k in self.constants]
        self.module = ast.Module([*start, function("step", parameters, body)], [])

    def new(self, scope: Scope, name: str) -> str:
        """An identifier nobody has, for a name of the program."""
        wanted = stem = clean(name)
        k = 2
        while wanted in self.taken:
            wanted, k = f"{stem}_{k}", k + 1
        self.taken.add(wanted)
        scope.names[name] = wanted
        return wanted

    def block(self, block: Block, scope: Scope) -> list[ast.stmt]:
        """The statements of a block's operators."""
        out: list[ast.stmt] = []
        for op in block.ops:
            if op.forward_op is not self.commented and op.forward_op is not None:
                out.append(Comment(f"grad of: {op.forward_op!r}"))
            self.commented = op.forward_op
            handler = CONTROL_FLOW.get(op.type)
            made = [self.simple(op, scope)] if handler is None else handler(self, op, scope)
            for statement in made:
                setattr(statement, "op", op)  # noqa: B010  (for whoever prints it)
            out += made
        return out

    def simple(self, op: Operator, scope: Scope) -> ast.stmt:
        """One call of a primitive."""
        p = primitive_of(op, "functional source")
        args, attrs = named_arguments(p, op, lambda n: self.shape(scope, n))
        call = invoke(
            f"xp.{op.type}",
            [self.value(a, scope) for a in args],
            [ast.keyword(a, self.value(v, scope)) for a, v in attrs.items()],
        )
        made = [self.target(scope, n) for n in targets(p, op)]
        if p.list_output or len(p.outputs) > 1:
            return ast.Assign([names_of(made, ast.Store())], call)
        return assign(made[0], call)

    def target(self, scope: Scope, name: str) -> str:
        """The identifier a result gets."""
        if name == EMPTY:
            return "_"
        var = scope.block.find_var(name)
        made = self.new(scope, name)
        if var is not None and var.persistable:
            if scope.parent is not None:
                raise ProgramError(
                    f"a loop or branch writes the parameter {name!r}: a pure function returns what it changes.\n"
                    f"  repair: carry it as a loop variable, or run the program with static.Executor()"
                )
            self.written[name] = made
        return made

    def shape(self, scope: Scope, name: str) -> Any:
        """The shape of a variable: known, or asked for when the function is traced."""
        var = scope.block.find_var(name)
        assert var is not None
        return var.shape if -1 not in var.shape else ShapeOf(name)

    def value(self, value: Any, scope: Scope) -> ast.expr:
        """The expression of an argument."""
        if isinstance(value, Name):
            return load(scope.find(value))
        if isinstance(value, ShapeOf):
            return ast.Attribute(load(scope.find(value.name)), "shape", ast.Load())
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return ast.Constant(value)
        if type(value) is float:
            return ast.Constant(value) if np.isfinite(value) else self.constant(value)
        if isinstance(value, tuple | list):
            kind = ast.Tuple if isinstance(value, tuple) else ast.List
            return kind([self.value(v, scope) for v in value], ast.Load())
        if isinstance(value, slice):
            bounds = (value.start, value.stop, value.step)
            return invoke("slice", [self.value(v, scope) for v in bounds])
        if isinstance(value, np.dtype | type):
            return ast.Constant(np.dtype(value).name)
        return self.constant(value)

    def constant(self, value: Any) -> ast.expr:
        """Something with no literal: an array, infinity."""
        if type(value) is float:
            return invoke("float", [ast.Constant(str(value))])
        name = f"constant_{len(self.constants) + 1}"
        self.taken.add(name)
        self.constants[name] = np.asarray(value)
        return load(name)


class ShapeOf:
    """A shape that is not known before the function is traced."""

    def __init__(self, name: str) -> None:
        self.name = name


def names_of(identifiers: list[str], how: ast.expr_context) -> ast.Tuple:
    """``(a, b)``, ``(a,)``."""
    return ast.Tuple([ast.Name(i, how) for i in identifiers], how)


def functional_source(
    program: Program, fetch: list[str]
) -> tuple[str, Any, list[str], dict[int, Operator]]:
    """The text, the function ``step(xp, parameters, *feeds)``, the feeds in order, and line → operator."""
    writer = FunctionWriter(program, fetch)
    text, lines = rendered(writer.module)
    space: dict[str, Any] = {"constants": writer.constants}
    exec(compile_tree(writer.module, FILENAME), space)
    return text, space["step"], list(writer.feeds), lines


# -- loops and branches: blocks become inner functions, handed to ``xp`` ---------------

Statements = list[ast.stmt]


def _tuple(scope: Scope, names: list[str]) -> ast.expr:
    return names_of([scope.find(n) for n in names], ast.Load())


def _unpacked(w: FunctionWriter, scope: Scope, names: list[str], source: str) -> Statements:
    """``h, c = carried``; nothing for no names."""
    if not names:
        return []
    made = names_of(["_" if n == EMPTY else w.new(scope, n) for n in names], ast.Store())
    return [ast.Assign([made], load(source))]


def _returns(*values: ast.expr) -> ast.stmt:
    return ast.Return(ast.Tuple(list(values), ast.Load()) if len(values) != 1 else values[0])


def _call(names: list[str], path: str, *args: ast.expr) -> ast.stmt:
    return ast.Assign([names_of(names, ast.Store())], invoke(path, list(args)))


def _fresh(w: FunctionWriter, stem: str) -> str:
    """An identifier for something that is no variable of the program."""
    return w.new(Scope(w.program.global_block()), stem)


def scan(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A recurrent operator: its body as a function of carried values and slices."""
    block = w.program.blocks[op.attrs["sub_block"]]
    name, inner = _fresh(w, f"step_{block.idx}"), Scope(block, scope)
    body = _unpacked(w, inner, op.attrs["carried"], "carried")
    body += _unpacked(w, inner, op.attrs["steps"], "slices")
    body += w.block(block, inner)
    body.append(_returns(_tuple(inner, op.attrs["next"]), _tuple(inner, op.attrs["step_out"])))
    ends, stacked = _fresh(w, "ends"), _fresh(w, "stacked")
    kept = w.new(scope, op.outputs["scopes"][0])
    seqs, starts = _tuple(scope, op.inputs["seq"]), _tuple(scope, op.inputs["x"])
    return [
        function(name, ["carried", "slices"], body),
        _call([ends, stacked, kept], "xp.scan", load(name), starts, seqs),
        *_unpacked(w, scope, op.outputs["out"], ends),
        *_unpacked(w, scope, op.outputs.get("stacked", []), stacked),
    ]


def while_loop(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A while operator: condition and body as functions of the carried values."""
    body_block = w.program.blocks[op.attrs["sub_block"]]
    cond_block = w.program.blocks[op.attrs["cond_block"]]
    test, step = _fresh(w, f"test_{cond_block.idx}"), _fresh(w, f"step_{body_block.idx}")
    carried = Scope(body_block, scope)
    asks = _unpacked(w, carried, op.attrs["carried"], "carried")
    inner = Scope(cond_block, carried)
    asks += w.block(cond_block, inner)
    asks.append(_returns(load(inner.find(op.attrs["cond"]))))
    inner = Scope(body_block, scope)
    does = _unpacked(w, inner, op.attrs["carried"], "carried")
    does += w.block(body_block, inner)
    does.append(_returns(_tuple(inner, op.attrs["next"])))
    ends, kept = _fresh(w, "ends"), w.new(scope, op.outputs["scopes"][0])
    save = ast.Constant(_is_read(w, op.outputs["scopes"][0]))
    starts = _tuple(scope, op.inputs["x"])
    return [
        function(test, ["carried"], asks),
        function(step, ["carried"], does),
        _call([ends, kept], "xp.while_loop", load(test), load(step), starts, save),
        *_unpacked(w, scope, op.outputs["out"], ends),
    ]


def _is_read(w: FunctionWriter, name: str) -> bool:
    """Whether a grad op reads what a loop keeps."""
    return any(name in op.input_names for b in w.program.blocks for op in b.ops)


def cond(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A cond operator: its branches as functions without parameters."""
    out: Statements = []
    branches = []
    for attr, results in (("sub_block", "true_out"), ("else_block", "false_out")):
        block = w.program.blocks[op.attrs[attr]]
        name, inner = _fresh(w, f"branch_{block.idx}"), Scope(block, scope)
        body = w.block(block, inner)
        out.append(function(name, [], [*body, _returns(_tuple(inner, op.attrs[results]))]))
        branches.append(load(name))
    pred = load(scope.find(op.inputs["pred"][0]))
    found = _fresh(w, "found")
    scope.names[op.outputs["scopes"][0]] = None
    out.append(assign(found, invoke("xp.cond", [pred, *branches])))
    return out + _unpacked(w, scope, op.outputs["out"], found)


def cond_grad(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """The grad block of the branch that was taken, behind the branch itself."""
    given = op.outputs["params_grad"]
    wanted = [k for k, n in enumerate(given) if n != EMPTY]
    out: Statements = []
    branches = []
    for attr, prefix in (("sub_block", "true"), ("else_block", "false")):
        grad_block = w.program.blocks[op.attrs[attr]]
        name = _fresh(w, f"back_{grad_block.idx}")
        outer = Scope(w.program.blocks[grad_block.forward_block], scope)
        body, inner = _once_more(w, outer), Scope(grad_block, outer)
        for local, seed in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                inner.names[local] = scope.find(seed)
        body += w.block(grad_block, inner)
        locals_ = [op.attrs[f"{prefix}_params"][k] for k in wanted]
        out.append(function(name, [], [*body, _returns(_tuple(inner, locals_))]))
        branches.append(load(name))
    pred = load(scope.find(op.inputs["pred"][0]))
    found = _fresh(w, "found")
    out.append(assign(found, invoke("xp.cond", [pred, *branches])))
    return out + _unpacked(w, scope, [given[k] for k in wanted], found)


def _once_more(w: FunctionWriter, scope: Scope) -> Statements:
    """The forward block of a scope, computed again for the grad block behind it."""
    again = w.block(scope.block, scope)
    w.commented = None
    return [Comment("the step once more"), *again]


def loop_grad(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """The grad block of a loop, behind its body, as a function of one step."""
    grad_block = w.program.blocks[op.attrs["sub_block"]]
    loop = _loop_of(w, grad_block)
    name = _fresh(w, f"back_{grad_block.idx}")
    step = Scope(w.program.blocks[grad_block.forward_block], scope)
    flows = [k for k, n in enumerate(op.attrs["carried_grad"]) if n != EMPTY]
    seeds = [k for k, n in enumerate(op.attrs.get("step_out_grad", ())) if n != EMPTY]
    params = [k for k, n in enumerate(op.attrs["params_local"]) if n != EMPTY]
    slices = [k for k, n in enumerate(op.attrs.get("steps_grad", ())) if n != EMPTY]
    body = _unpacked(w, step, loop.attrs["carried"], "carried")
    body += _unpacked(w, step, loop.attrs.get("steps", []), "slices")
    body += _once_more(w, step)
    inner = Scope(grad_block, step)
    body += _unpacked(w, inner, _local(op.attrs["next_grad"], flows), "grads")
    body += _unpacked(w, inner, _local(op.attrs.get("step_out_grad"), seeds), "seeds")
    body += w.block(grad_block, inner)
    groups = (
        _local(op.attrs["carried_grad"], flows),
        _local(op.attrs["params_local"], params),
        _local(op.attrs.get("steps_grad"), slices),
    )
    body.append(_returns(*[_tuple(inner, g) for g in groups]))
    made = [_fresh(w, stem) for stem in ("starts_grad", "params_grad", "sequences_grad")]
    args = [
        load(scope.find(op.inputs["scopes"][0])),
        _tuple(scope, _local(op.inputs.get("stacked_grad"), seeds)),
        _tuple(scope, _local(op.inputs["out_grad"], flows)),
        _tuple(scope, _local(op.inputs["params"], params)),
    ]
    found = (
        ("x_grad", flows, made[0]),
        ("params_grad", params, made[1]),
        ("seq_grad", slices, made[2]),
    )
    return [
        function(name, ["grads", "carried", "slices", "seeds"], body),
        _call(made, "xp.loop_grad", load(name), *args),
        *(s for slot, ks, source in found for s in _results(w, scope, op, slot, ks, source)),
    ]


def _local(names: Any, chosen: list[int]) -> list[str]:
    return [names[k] for k in chosen]


def _results(
    w: FunctionWriter, scope: Scope, op: Operator, slot: str, chosen: list[int], source: str
) -> Statements:
    """Names for those gradients that are wanted."""
    names = _local(op.outputs.get(slot, []), chosen)
    if all(n == EMPTY for n in names):
        return []
    made = names_of([w.target(scope, n) for n in names], ast.Store())
    return [ast.Assign([made], load(source))]


def _loop_of(w: FunctionWriter, grad_block: Block) -> Operator:
    """The operator whose body a grad block belongs to."""
    return next(
        op
        for b in w.program.blocks
        for op in b.ops
        if op.attrs.get("sub_block") == grad_block.forward_block and "carried" in op.attrs
    )


CONTROL_FLOW: dict[str, Any] = {
    "recurrent": scan,
    "while": while_loop,
    "cond": cond,
    "recurrent_grad": loop_grad,
    "while_grad": loop_grad,
    "cond_grad": cond_grad,
}


# -- what it means on NumPy ----------------------------------------------------------------

Values = tuple[Any, ...]


class NumpySpace:
    """Every primitive by its type, and control flow on arrays.

    >>> NumpySpace().matmul([[1.0, 2.0]], [3.0, 4.0])
    array([11.])
    """

    numpy: Any = np  # or what stands for it: loops over steps are the same for any

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return REGISTRY[type].kernel

    def cond(self, pred: Any, yes: Callable[[], Values], no: Callable[[], Values]) -> Values:
        """The results of one of two functions."""
        return yes() if np.all(pred) else no()

    def scan(self, step: Callable[..., Any], starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences: the last carried values, stacked outputs, and what is kept."""
        carried, kept, outs = starts, [], []
        for slices in zip(*sequences, strict=True):
            kept.append((carried, slices))
            carried, out = step(carried, slices)
            outs.append(out)
        return carried, tuple(self.numpy.stack(o) for o in zip(*outs, strict=True)), kept

    def while_loop(
        self,
        test: Callable[[Values], Any],
        step: Callable[[Values], Values],
        starts: Values,
        save: bool,
    ) -> Any:
        """Steps as long as the test holds: the last carried values, and what is kept."""
        carried, kept = starts, []
        while np.all(test(carried)):
            kept.append((carried, ()))
            carried = step(carried)
        return carried, kept

    def loop_grad(
        self, back: Callable[..., Any], kept: Any, seeds: Values, grads: Values, params: Values
    ) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        totals = tuple(self.numpy.zeros_like(p) for p in params)
        rows = []
        for k in range(len(kept) - 1, -1, -1):
            grads, shares, row = back(grads, *kept[k], tuple(s[k] for s in seeds))
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            rows.append(row)
        return grads, totals, tuple(self.numpy.stack(r) for r in zip(*rows[::-1], strict=True))
