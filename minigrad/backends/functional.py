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
from typing import Any

import numpy as np

from ..compiler.identifiers import clean
from ..compiler.syntax import (
    Comment,
    assign,
    compile_tree,
    entry,
    function,
    invoke,
    load,
    rendered,
)
from ..errors import ProgramError
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
        from .control_flow import CONTROL_FLOW

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
