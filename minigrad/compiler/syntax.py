"""Syntax trees: small pieces of source, and a tree as text with comments and line numbers."""

from __future__ import annotations

import ast
import builtins
import copy
import keyword
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..static.program.names import GRAD
from ..static.program.operator import Operator
from .schedule import Array, Schedule, ShapeWhenRun, current


class Comment(ast.stmt):
    """A line of prose between statements; dropped before compiling."""

    _fields = ()

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


def load(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def store(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Store())


def dotted(path: str) -> ast.expr:
    first, *rest = path.split(".")
    node: ast.expr = load(first)
    for part in rest:
        node = ast.Attribute(node, part, ast.Load())
    return node


def invoke(path: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(dotted(path), args, keywords or [])


def assign(target: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([store(target)], value)


def append(target: str, value: ast.expr) -> ast.Expr:
    return ast.Expr(invoke(f"{target}.append", [value]))


def entry(table: str, key: str) -> ast.expr:
    return ast.Subscript(load(table), ast.Constant(key), ast.Load())


def special(value: float) -> ast.expr:
    if np.isnan(value):
        return dotted("np.nan")
    return dotted("np.inf") if value > 0 else ast.UnaryOp(ast.USub(), dotted("np.inf"))


def function(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, args, body, [])


def rendered(module: ast.Module) -> tuple[str, dict[int, Operator]]:
    """The text of a tree, comments included; sets the line numbers.  Also returned: line → operator."""
    lines: list[str] = []
    ops: dict[int, Operator] = {}
    _render(module.body, "", lines, ops)
    return "\n".join(lines) + "\n", ops


def _render(
    body: list[ast.stmt], indent: str, lines: list[str], ops: dict[int, Operator], op: Any = None
) -> None:
    if all(isinstance(s, Comment) for s in body):
        body.append(ast.Pass())
    for statement in body:
        if isinstance(statement, Comment):
            lines.append(f"{indent}# {statement.text}")
            continue
        own = getattr(statement, "op", None) or op
        _number(statement, len(lines) + 1)
        if own is not None:
            ops[len(lines) + 1] = own
        for head, inner in _heads(statement):
            lines.append(indent + head)
            if inner:
                _render(inner, indent + "    ", lines, ops, own)


def _heads(statement: ast.stmt) -> list[tuple[str, list[ast.stmt]]]:
    """The lines of a statement itself, each with the statements below it: ``if`` and ``else``."""
    inner = [getattr(statement, p) for p in ("body", "orelse") if getattr(statement, p, None)]
    if not inner:
        text = ast.unparse(ast.fix_missing_locations(statement))
        return [(text, [])] if "\n" not in text else [(t, []) for t in text.splitlines()]
    shell = copy.copy(statement)
    for part in ("body", "orelse"):
        if getattr(shell, part, None):
            setattr(shell, part, [ast.Pass()])
    text = ast.unparse(ast.fix_missing_locations(shell))
    heads = [t for t in text.splitlines() if t.strip() not in ("pass", "")]
    return list(zip(heads, inner, strict=True))


def _number(statement: ast.stmt, line: int) -> None:
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0


def compile_tree(module: ast.Module, filename: str) -> Any:
    """Code from the tree itself, never from text."""
    _without_comments(module)
    return builtins.compile(ast.fix_missing_locations(module), filename, "exec")


def _without_comments(node: Any) -> None:
    for part in ("body", "orelse"):
        body = getattr(node, part, None)
        if isinstance(body, list):
            statements = [s for s in body if not isinstance(s, Comment)]
            setattr(node, part, statements or ([ast.Pass()] if body else []))
            for statement in statements:
                _without_comments(statement)


# -- identifiers and values ---------------------------------------------------------------


class Identifiers:
    """Who is called what."""

    def __init__(self, schedule: Schedule, reserved: Iterable[str]) -> None:
        self.schedule = schedule
        self.identifiers: dict[int, str] = {}  # id of an Array → its identifier
        self.keep: list[Any] = []  # ids stay unique while their objects live
        self.taken = set(reserved)
        self.counts: dict[str, int] = {}  # stem → the number to try next
        self.table: dict[str, str] = {}  # identifier → name in the program
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.before: list[ast.stmt] = []  # what runs once

    def name(self, array: Array) -> str:
        """The identifier of an Array."""
        array = current(array, self.schedule.same)
        identifier = self.identifiers.get(id(array))
        if identifier is None:
            identifier = self.identifiers[id(array)] = self.unique(
                clean(array.name) if array.name else "t1"
            )
            self.keep.append(array)
            if array.name:
                self.table.setdefault(identifier, array.name)
        return identifier

    def unique(self, wanted: str) -> str:
        """An identifier nobody has."""
        if wanted in self.taken:
            numbered = wanted[0] == "t" and wanted[1:].isdigit()
            stem = "t" if numbered else f"{wanted}_"
            k = self.counts.get(stem, 2)
            while f"{stem}{k}" in self.taken:
                k += 1
            self.counts[stem] = k + 1
            wanted = f"{stem}{k}"
        self.taken.add(wanted)
        return wanted

    def value(self, value: Any) -> ast.expr:
        """The expression of an argument."""
        if isinstance(value, Array):
            return load(self.name(value))
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return ast.Constant(value)
        if type(value) is float:
            return ast.Constant(value) if np.isfinite(value) else special(value)
        if isinstance(value, tuple):
            return ast.Tuple([self.value(v) for v in value], ast.Load())
        if isinstance(value, list):
            return ast.List([self.value(v) for v in value], ast.Load())
        if isinstance(value, slice):
            return invoke("slice", [self.value(v) for v in (value.start, value.stop, value.step)])
        if isinstance(value, np.dtype | type):
            return ast.Constant(np.dtype(value).name)
        if isinstance(value, ShapeWhenRun):
            return invoke("np.shape", [self.value(value.array)])
        return load(self.constant(np.asarray(value)))

    def subscript(self, index: Any) -> ast.expr:
        """An index as it stands in brackets."""
        if isinstance(index, tuple) and index:
            return ast.Tuple([self.subscript(i) for i in index], ast.Load())
        if isinstance(index, slice):
            bounds = [
                None if b is None else self.value(b) for b in (index.start, index.stop, index.step)
            ]
            return ast.Slice(*bounds)
        return self.value(index)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """An array known before the first run."""
        identifier = self.identifiers.get(id(array))
        if identifier is None:
            identifier = self.identifiers[id(array)] = self.unique("k1")
            self.constants[identifier] = array
            self.before.append(assign(identifier, entry("constants", identifier)))
        return identifier


def clean(name: str) -> str:
    """An identifier like a variable's name: ``w@GRAD`` is ``w_grad``.

    >>> clean("w@GRAD"), clean("h-1/new"), clean("lambda"), clean("3d")
    ('w_grad', 'h_1_new', 'lambda_', 'v3d')
    """
    text = re.sub(r"[^A-Za-z0-9_]", "_", name.replace(GRAD, "_grad"))[:60]
    text = text if text[:1].isalpha() else "v" + text
    return text + "_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) else text
