"""What an exercise leaves to the learner: its source without the solutions."""

from __future__ import annotations

import ast
import re

from .errors import CourseError
from .steps import BEGIN, END, Cell, Step

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
    owner = _owner(tree, begun, ended)
    if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [YOUR_TURN]
    names = (
        []
        if isinstance(owner, ast.ClassDef) and _only_methods(owner, begun, ended)
        else _assigned(tree, begun, ended)
    )
    return [f"{name} = ...  # your turn" for name in names] or ["...  # your turn"]


def _owner(tree: ast.Module, begun: int, ended: int) -> ast.AST:
    """The innermost function or class around the lines, else the module."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and node.lineno < begun
        and (node.end_lineno or 0) >= ended - 1
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def _inside(tree: ast.AST, begun: int, ended: int) -> list[ast.stmt]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and begun < node.lineno < ended
    ]


def _only_methods(owner: ast.ClassDef, begun: int, ended: int) -> bool:
    return all(
        isinstance(node, ast.FunctionDef) for node in owner.body if begun < node.lineno < ended
    )


def _assigned(tree: ast.Module, begun: int, ended: int) -> list[str]:
    """Names bound by the statements of a solution, not inside its functions and classes."""
    names: list[str] = []
    hidden_until = 0
    for node in sorted(_inside(tree, begun, ended), key=lambda node: node.lineno):
        if node.lineno <= hidden_until:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
            hidden_until = node.end_lineno or 0
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [
                each.id
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            ]
    return list(dict.fromkeys(names))
