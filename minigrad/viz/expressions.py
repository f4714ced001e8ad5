"""Expressions as people write them, and what they come to: `ast` in, text or numbers out."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from .format import format_number

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SIGNS: dict[type, tuple[str, int]] = {
    ast.Add: (" + ", 1),
    ast.Sub: (" − ", 1),
    ast.Mult: ("·", 2),
    ast.Div: (" / ", 2),
    ast.MatMult: (" @ ", 2),
}
_COMPARE: dict[type, str] = {
    ast.Gt: " > ",
    ast.Lt: " < ",
    ast.GtE: " ≥ ",
    ast.LtE: " ≤ ",
    ast.Eq: " = ",
    ast.NotEq: " ≠ ",
}
_DO: dict[type, Any] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.MatMult: np.matmul,
}
_FUNCTIONS = frozenset({"exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "abs", "square"})


class NotUnderstood(Exception):
    """The code is not a plain formula."""


def written(node: ast.expr, values: Mapping[str, str] | None = None, times: str = "·") -> str:
    """The text of an expression, with ``values`` put in for names."""
    return _write(node, values or {}, times)[0]


def _write(node: ast.expr, values: Mapping[str, str], times: str) -> tuple[str, int]:
    """The text of an expression and how tightly it holds together (1 sum, 2 product, 3 power, 4
    word).
    """
    match node:
        case ast.Name(name):
            text = values.get(name, name)
            return text, 1 if text.startswith("-") else 4
        case ast.Constant(value):
            return format_number(value), 4
        case ast.UnaryOp(_, value):
            return f"−{_wrap(value, 2, values, times)}", 1
        case ast.BinOp(left, ast.Pow(), right):
            return _power(left, right, values, times), 3
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            word, level = _SIGNS[type(sign)]
            word = times if isinstance(sign, ast.Mult) else word
            tighter = level + isinstance(sign, (ast.Sub, ast.Div, ast.MatMult))
            return (
                f"{_wrap(left, level, values, times)}{word}{_wrap(right, tighter, values, times)}",
                level,
            )
        case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARE:
            left_text, right_text = written(left, values, times), written(right, values, times)
            return f"({left_text}{_COMPARE[type(sign)]}{right_text})", 4
        case ast.Call(ast.Name("exp"), [ast.Name("x")]) if "x" not in values:
            return "eˣ", 3
        case ast.Call(ast.Name("matmul_nt"), [left, right, *_]):
            return f"{_wrap(left, 2, values, times)} @ {_wrap(right, 4, values, times)}ᵀ", 2
        case ast.Call(ast.Name("matmul_tn"), [left, right, *_]):
            return f"{_wrap(left, 4, values, times)}ᵀ @ {_wrap(right, 3, values, times)}", 2
        case ast.Call(ast.Name("sum"), [summed]):
            inside = written(summed, values, times)
            return (f"Σ{inside}" if isinstance(summed, ast.Compare) else f"Σ({inside})"), 4
        case ast.Call(ast.Name(name), arguments):
            return f"{name}({', '.join(written(a, values, times) for a in arguments)})", 4
        case ast.Attribute(ast.Name("self"), name):
            return values.get(f"self.{name}", name), 4
        case ast.Attribute(value, "T"):
            return f"{_wrap(value, 4, values, times)}ᵀ", 4
        case ast.Attribute(value, name):
            return f"{_wrap(value, 4, values, times)}.{name}", 4
    raise NotUnderstood


def _wrap(node: ast.expr, level: int, values: Mapping[str, str], times: str) -> str:
    text, mine = _write(node, values, times)
    return text if mine >= level else f"({text})"


def _power(left: ast.expr, right: ast.expr, values: Mapping[str, str], times: str) -> str:
    base = _wrap(left, 4, values, times)
    if isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value >= 0:
        return base + str(right.value).translate(_SUPERSCRIPT)
    return f"{base}^{_wrap(right, 4, values, times)}"


def number_text(value: Any) -> str:
    """A value as it is put into a formula: one number, or nothing."""
    try:
        array = np.asarray(value)
    except ValueError:
        return ""
    return (
        format_number(array.reshape(())[()])
        if array.size == 1 and array.dtype.kind in "biuf"
        else ""
    )


# Computing ----------------------------------------------------------------


def computed(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of an expression of plain arithmetic.  Raises `NotUnderstood` for another."""
    match node:
        case ast.Name(name):
            return values[name]
        case ast.Constant(value):
            return value
        case ast.UnaryOp(_, value):
            return np.negative(computed(value, values))
        case ast.BinOp(left, sign, right) if type(sign) in _DO:
            return _DO[type(sign)](computed(left, values), computed(right, values))
        case ast.Call(ast.Name(name), [argument]) if name in _FUNCTIONS:
            return getattr(np, name)(computed(argument, values))
        case ast.Attribute(value, "T"):
            return np.transpose(computed(value, values))
    raise NotUnderstood
