"""Gradient rules as formulas: ``mul.grad(x=lambda y, out_grad: out_grad * y)`` reads ``g·y``.

The text of a rule is found in its source file, by its line and its keyword; a rule that is not
declared as one plain expression has the formula that was declared with it, or none.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Mapping
from typing import Any

from .expressions import NotUnderstood, written
from .formula import resolved

_SHORT = {"out_grad": "g"}


def rule_texts(primitive: Any, names: Mapping[str, str]) -> tuple[str, ...]:
    """One text per differentiable input, empty where the rule is no plain expression.

    ``names`` are put in for the inputs and outputs: ``{"y": "d"}`` makes ``g·y`` into ``g·d``.
    """
    return tuple(_text(primitive, slot, names) for slot in primitive.differentiable)


def _text(primitive: Any, slot: str, names: Mapping[str, str]) -> str:
    rule = getattr(primitive, "rules", {}).get(slot)
    said = getattr(primitive, "formulas", {}).get(slot)
    if said is not None:
        return written(ast.parse(said, mode="eval").body, names)
    found = _expression(rule.function, slot) if rule is not None else None
    if found is None:
        return ""
    return written(found, {**_SHORT, **names})


@functools.lru_cache(maxsize=1024)
def _expression(function: Callable[..., Any], slot: str) -> ast.expr | None:
    """The body of the lambda that was given as ``slot=lambda …`` on the function's line."""
    code = getattr(function, "__code__", None)
    if code is None or function.__name__ != "<lambda>":
        return None
    for keyword in _lambdas(code.co_filename).get(code.co_firstlineno, ()):
        if keyword.arg == slot and isinstance(keyword.value, ast.Lambda):
            known: dict[str, ast.expr] = {n: ast.Name(n) for n in code.co_varnames}
            try:
                body = resolved(keyword.value.body, known, ())
                return body if written(body) else None
            except (NotUnderstood, RecursionError):
                return None
    return None


@functools.lru_cache(maxsize=64)
def _lambdas(path: str) -> dict[int, list[ast.keyword]]:
    """Line → the keywords of calls whose value is a lambda that begins there."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, list[ast.keyword]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Lambda):
            found.setdefault(node.value.lineno, []).append(node)
    return found
