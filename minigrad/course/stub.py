"""What an exercise leaves to the learner: its source without the solutions."""

from __future__ import annotations

import ast
import re

from .errors import CourseError
from .steps import BEGIN, END, Cell, Step

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWNERS = (*_FUNCTIONS, ast.ClassDef)
YOUR_TURN = 'raise NotImplementedError("your turn")'


def stub(step: Step, cell: Cell) -> str:
    """The source of an exercise without its solutions.

    In a function a solution becomes ``raise NotImplementedError("your turn")``; where code runs at
    once (module level, class body) the names it assigns become ``...``.
    """
    lines = cell.source.splitlines()
    tree = parsed(step, cell)
    made: list[str] = []
    begun: int | None = None
    for number, line in enumerate(lines, 1):
        if line.strip() == BEGIN:
            begun = number
        elif line.strip() == END and begun is not None:
            indent = " " * (len(lines[begun - 1]) - len(lines[begun - 1].lstrip()))
            made += [indent + each for each in _stub_lines(tree, begun, number)]
            begun = None
        elif begun is None:
            made.append(line)
    return "\n".join(made)


def parsed(step: Step, cell: Cell) -> ast.Module:
    """The syntax tree of a cell; lines of IPython's own count as nothing.

    Raises CourseError, with file and line, for what is not Python.
    """
    plain = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell.source, flags=re.M)
    try:
        return ast.parse(plain)
    except SyntaxError as error:
        raise CourseError(
            f"not Python: {error.msg}", step.path, cell.line + (error.lineno or 1) - 1
        ) from None


def _stub_lines(tree: ast.Module, begun: int, ended: int) -> list[str]:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _OWNERS) and node.lineno < begun and (node.end_lineno or 0) >= ended - 1
    ]
    owner = max(around, key=lambda node: node.lineno, default=tree)
    if isinstance(owner, _FUNCTIONS):
        return [YOUR_TURN]
    inside = [node for node in owner.body if begun < node.lineno < ended]
    if isinstance(owner, ast.ClassDef):  # a class is right without the methods asked for
        inside = [node for node in inside if not isinstance(node, _FUNCTIONS)]
    names = [name for node in inside for name in _bound(node)]
    return [f"{name} = ...  # your turn" for name in dict.fromkeys(names)] or ["...  # your turn"]


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, _OWNERS):
        return [node.name]
    targets = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return [each.id for each in targets if isinstance(each.ctx, ast.Store)]
