"""Syntax trees: small pieces of source, and a tree as text with comments and line numbers."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ..program import Operator


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


def _render(body: list[ast.stmt], indent: str, lines: list[str], ops: dict[int, Operator]) -> None:
    for statement in body:
        if isinstance(statement, Comment):
            lines.append(f"{indent}# {statement.text}")
            continue
        parts = [p for p in ("body", "orelse") if getattr(statement, p, None)]
        inner = {p: getattr(statement, p) for p in parts}
        for p in parts:
            setattr(statement, p, [ast.Pass()])
        heads = [
            t
            for t in ast.unparse(ast.fix_missing_locations(statement)).splitlines()
            if t.strip() not in ("pass", "")
        ]
        for p in parts:
            setattr(statement, p, inner[p])
        _number(statement, len(lines) + 1, ops)
        lines.append(indent + heads[0])
        for head, p in zip([None, *heads[1:]], parts, strict=False):
            if head is not None:
                lines.append(indent + head)
            _render(inner[p], indent + "    ", lines, ops)


def _number(statement: ast.stmt, line: int, ops: dict[int, Operator]) -> None:
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    op = getattr(statement, "op", None)
    if op is not None:
        ops[line] = op


def compile_tree(module: ast.Module, filename: str) -> Any:
    """Code from the tree itself, never from text."""
    _without_comments(module)
    return __builtins__["compile"](ast.fix_missing_locations(module), filename, "exec")  # type: ignore[index]


def _without_comments(node: Any) -> None:
    for part in ("body", "orelse"):
        body = getattr(node, part, None)
        if isinstance(body, list):
            kept = [s for s in body if not isinstance(s, Comment)]
            setattr(node, part, kept or ([ast.Pass()] if body else []))
            for statement in kept:
                _without_comments(statement)
