"""Small changes to a module, made on its syntax tree: what the tests should notice.

Comparisons, boolean operators, arithmetic, constants, conditions and returned values.  Left alone: annotations,
docstrings, texts of errors, what stands under ``TYPE_CHECKING``, and ``strict=`` and ``copy=`` of NumPy and Python.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Mod: ast.Add,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: which one of the module's, where, how the place reads before and after.

    ``lines`` are those that run whenever the changed place does; of changes of a function that read alike this is
    the ``nth``.
    """

    number: int
    line: int
    before: str
    after: str
    lines: tuple[int, int] = (0, 0)
    function: str = ""
    nth: int = 1

    def __str__(self) -> str:
        return f"line {self.line}: {self.before}  →  {self.after}"


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Any]]:
    """Every place where a change is possible: (node, attribute, new value)."""
    for node in _code(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
            yield node, "ops", [_COMPARE[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.BoolOp):
            yield node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()
        elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
            yield node, "op", _ARITHMETIC[type(node.op)]()
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "op", ast.UAdd()
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "value", not node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, "value", node.value + 1
        elif isinstance(node, ast.If | ast.IfExp | ast.While) and not _is_constant(node.test):
            yield node, "test", ast.Constant(False)
        elif isinstance(node, ast.Return) and not _is_falsy(node.value):
            yield node, "value", ast.Constant(None)


def _is_falsy(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something, in the order of the text."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.AnnAssign):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _code(node.value)
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.keyword) and node.arg in ("strict", "copy"):
        return  # a check of the package on itself; a copy more or less, which other tests count
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def mutants(source: str) -> list[Mutant]:
    """All changes of a module."""
    found = []
    tree = ast.parse(source)
    where = _homes(tree)
    alike: Counter[tuple[str, ...]] = Counter()
    for number, (node, attribute, value) in enumerate(list(changes(tree))):
        before, old = _shown(node), getattr(node, attribute)
        lines, function = where[id(node)]
        setattr(node, attribute, value)
        line, after = node.lineno, _shown(node)  # type: ignore[attr-defined]
        alike[function, before, after] += 1
        nth = alike[function, before, after]
        found.append(Mutant(number, line, before, after, lines, function, nth))
        setattr(node, attribute, old)
    return found


def _homes(tree: ast.Module) -> dict[int, tuple[tuple[int, int], str]]:
    """For every node the lines of its statement (of its lambda, if it is in one) and its function's name."""
    found = {}

    def visit(node: ast.AST, first: int, last: int, function: str) -> None:
        if isinstance(node, ast.stmt | ast.Lambda):
            first, last = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, ast.If | ast.While):
            last = node.test.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        found[id(node)] = ((first, last), function)
        for child in ast.iter_child_nodes(node):
            visit(child, first, last, function)

    visit(tree, 1, 1, "")
    return found


def _shown(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
    return text if len(text) <= 90 else text[:89] + "…"


def mutated(source: str, number: int) -> ast.Module:
    """The tree of the module with one change in it."""
    tree = ast.parse(source)
    node, attribute, value = list(changes(tree))[number]
    setattr(node, attribute, value)
    return ast.fix_missing_locations(tree)
