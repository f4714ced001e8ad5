"""Syntax trees: small pieces of source, and a tree as text with comments and line numbers."""

from __future__ import annotations

import ast
import builtins
import copy
from typing import Any

import numpy as np

from ..static.program.program import Operator


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
            kept = [s for s in body if not isinstance(s, Comment)]
            setattr(node, part, kept or ([ast.Pass()] if body else []))
            for statement in kept:
                _without_comments(statement)
