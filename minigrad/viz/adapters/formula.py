"""Formulas from the code that ran: ``gx = 2 * x * gy; return gx`` becomes ``gx = 2·x·gy``.

Only straight-line methods are read: assignments and a return. Whatever is not understood gives no
formula, never a wrong one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.format import format_number

LONGEST = 44


@dataclass(frozen=True)
class Formula:
    """What a method returns: one expression per result, over the names of inputs (``x``), outputs
    (``y``) and gradients (``gy``).
    """

    results: tuple[ast.expr, ...]
    names: tuple[str, ...]  # what the results are called: gx, or gx0, gx1

    @functools.lru_cache(maxsize=1024)  # noqa: B019 - formulas are few, and made once per class
    def lines(self) -> tuple[str, ...]:
        """``gx = 2·x·gy``, one line per result."""
        return tuple(
            _short(f"{n} = {written(e)}") for n, e in zip(self.names, self.results, strict=True)
        )

    def numbers(self, values: Mapping[str, Any]) -> str:
        """The only result with numbers put in: ``= 2 · 0.5 · 3.2974``; empty when something is not
        a number.
        """
        if len(self.results) != 1 or isinstance(self.results[0], ast.Name):
            return ""
        shown = {k: number_text(v) for k, v in values.items()}
        if any(not shown.get(n) for n in self.reads()):
            return ""
        return _short(f"= {written(self.results[0], {k: v for k, v in shown.items() if v}, ' · ')}")

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    def reads(self) -> list[str]:
        """The names that the results depend on."""
        called = {id(n.func) for e in self.results for n in ast.walk(e) if isinstance(n, ast.Call)}
        found = [
            n.id
            for e in self.results
            for n in ast.walk(e)
            if isinstance(n, ast.Name) and id(n) not in called
        ]
        return [n for n in dict.fromkeys(found) if n != "self"]

    def compute(self, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The results as numbers; None when one of them is not plain arithmetic."""
        try:
            with np.errstate(all="ignore"):
                return tuple(computed(e, values) for e in self.results)
        except (NotUnderstood, TypeError, ValueError, KeyError):
            return None


def forward_formula(function: Any) -> Formula | None:
    """What ``forward`` of a function object computes."""
    return _read(_read_forward, _methods(type(function))[0])


def backward_formula(function: Any) -> Formula | None:
    """What ``backward`` of a function object computes."""
    return _read(_read_backward, *_methods(type(function)))


def input_names(function: Any) -> tuple[str, ...]:
    """The parameter names of ``forward``: what the inputs are called in formulas."""
    return _names(_methods(type(function))[0])


def _methods(cls: type) -> tuple[Any, Any]:
    return getattr(cls, "forward", None), getattr(cls, "backward", None)


@functools.lru_cache(maxsize=1024)
def _names(method: Any) -> tuple[str, ...]:
    try:
        return _parameters(method)
    except NotUnderstood:
        return ()


@functools.lru_cache(maxsize=1024)
def _read(read: Any, *methods: Any) -> Formula | None:
    """Read once per method: where a class gets another one, that is read, too."""
    try:
        formula: Formula = read(*methods)
    except (NotUnderstood, RecursionError):
        return None
    return formula if all(formula.lines()) else None


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else ""


# Reading ----------------------------------------------------------------


def _read_forward(forward: Any) -> Formula:
    names = _parameters(forward)
    results = _returned(forward, {n: ast.Name(n) for n in names}, names)
    return Formula(results, _numbered("y", len(results)))


def _read_backward(forward: Any, backward: Any) -> Formula:
    inputs = _parameters(forward) if forward is not None else ()
    results = _returned(backward, {n: ast.Name(n) for n in _parameters(backward)}, inputs)
    return Formula(results, _numbered("gx", len(results)))


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))


def _parameters(method: Any) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (TypeError, ValueError) as error:
        raise NotUnderstood from error
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        raise NotUnderstood
    return tuple(p.name for p in parameters)


def _body(method: Any) -> list[ast.stmt]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise NotUnderstood from error
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        raise NotUnderstood
    return tree.body[0].body


def _returned(
    method: Any, known: dict[str, ast.expr], inputs: tuple[str, ...]
) -> tuple[ast.expr, ...]:
    method = inspect.unwrap(method) if method is not None else None
    for statement in _body(method):
        match statement:
            case ast.Expr(ast.Constant(str())):
                pass
            case ast.Assign([target], value):
                _assign(target, value, known, inputs)
            case ast.Return(ast.Tuple(parts)):
                return tuple(resolved(p, known, inputs) for p in parts)
            case ast.Return(ast.expr() as value):
                return (resolved(value, known, inputs),)
            case _:
                raise NotUnderstood
    raise NotUnderstood


def _assign(
    target: ast.expr, value: ast.expr, known: dict[str, ast.expr], inputs: tuple[str, ...]
) -> None:
    match target, value:
        case ast.Name(name), _:
            known[name] = resolved(value, known, inputs)
        case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
            found = [resolved(v, known, inputs) for v in values]
            known |= {_name_of(t): v for t, v in zip(targets, found, strict=True)}
        case ast.Tuple(targets), ast.Attribute(ast.Name("self"), "inputs") if len(targets) == len(
            inputs
        ):
            known |= {_name_of(t): ast.Name(n) for t, n in zip(targets, inputs, strict=True)}
        case _:
            raise NotUnderstood


def _name_of(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise NotUnderstood
    return target.id


def resolved(node: ast.expr, known: dict[str, ast.expr], inputs: tuple[str, ...]) -> ast.expr:
    """The expression with local names, ``self.input.data`` and the like replaced by what they stand
    for.
    """
    again = functools.partial(resolved, known=known, inputs=inputs)
    match node:
        case ast.Attribute(value, "data"):
            return again(value)
        case ast.Attribute(ast.Name("self"), "input") if inputs:
            return ast.Name(inputs[0])
        case ast.Subscript(ast.Attribute(ast.Name("self"), "inputs"), ast.Constant(int() as i)) if (
            i < len(inputs)
        ):
            return ast.Name(inputs[i])
        case ast.Attribute(ast.Name("self"), "output") | ast.Subscript(
            ast.Attribute(ast.Name("self"), "outputs"), ast.Constant(0)
        ):
            return ast.Name("y")
        case ast.Call(value, [], []):
            return again(value)  # a weak reference, called
        case ast.Attribute(ast.Name("self"), name):
            return ast.Attribute(ast.Name("self"), name)
        case ast.Name(name):
            if name not in known:
                raise NotUnderstood
            return known[name]
        case ast.BinOp(left, sign, right):
            return ast.BinOp(again(left), sign, again(right))
        case ast.UnaryOp(ast.USub(), value):
            return ast.UnaryOp(ast.USub(), again(value))
        case ast.Compare(left, [sign], [right]):
            return ast.Compare(again(left), [sign], [again(right)])
        case ast.Call(ast.Attribute(ast.Name(), name) | ast.Name(name), arguments, []):
            return ast.Call(ast.Name(name), [again(a) for a in arguments], [])
        case ast.Attribute(value, "T" | "shape" as name):
            return ast.Attribute(again(value), name)
        case ast.Constant(int() | float()):
            return node
        case _:
            raise NotUnderstood


# ---- Gradient rules as formulas: ``mul.grad(x=lambda y, out_grad: out_grad * y)`` reads ``g·y`` ----


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


# ---- Expressions as people write them, and what they come to: `ast` in, text or numbers out ----


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
