"""Formulas from the code that ran: ``gx = 2 * x * gy; return gx`` becomes ``gx = 2·x·gy``.

Only straight-line methods are read: assignments and a return. Whatever is not understood gives no
formula, never a wrong one.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.format import FEW, NOT_YET, format_number, format_value

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

    def reads(self) -> list[str]:
        """The names that the results depend on."""
        return list(dict.fromkeys(n for e in self.results for n in names_in(e) if n != "self"))

    def compute(self, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The results as numbers; None when one of them is not plain arithmetic."""
        try:
            with np.errstate(all="ignore"):
                return tuple(computed(e, values) for e in self.results)
        except (NotUnderstood, TypeError, ValueError, KeyError):
            return None


def call_formula(operation: str, slots: Iterable[str]) -> ast.expr:
    """An operation as it is written: ``x·y`` for mul, ``tanh(x)``."""
    parts: list[ast.expr] = [ast.Name(slot) for slot in slots]
    if operation in OPERATORS and len(parts) == 2:
        return ast.BinOp(parts[0], OPERATORS[operation](), parts[1])
    if operation == "neg" and len(parts) == 1:
        return ast.UnaryOp(ast.USub(), parts[0])
    return ast.Call(ast.Name(operation.removeprefix("reduce_")), parts, [])


def names_in(expression: ast.expr) -> list[str]:
    """The names of values in an expression."""
    nodes = list(ast.walk(expression))
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    return [n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in called]


def put_in(expression: ast.expr, values: Mapping[str, Any]) -> str:
    """An expression with numbers put in for all its names, ``1·(1 − 0.9987²)``; empty where one is
    missing or has many elements, and where it is no arithmetic.
    """
    texts = {n: format_value(v) for n, v in values.items() if getattr(v, "size", 1) <= FEW}
    known = all(texts.get(n, NOT_YET) != NOT_YET for n in names_in(expression) if n != "self")
    single = isinstance(expression, ast.Name | ast.Constant)
    if single or not known or not all(map(_arithmetic, ast.walk(expression))):
        return ""
    return written(expression, texts)


def _arithmetic(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(_, "T") | ast.Attribute(ast.Name("self")):
            return True
        case ast.Call(ast.Name(name)):
            return name in _SCHOOL
    return not isinstance(node, (ast.Attribute, ast.Subscript, ast.Call))


def forward_formula(function: Any) -> Formula | None:
    """What ``forward`` of a function object computes."""
    return _read(getattr(type(function), "forward", None), input_names(function), "y")


def backward_formula(function: Any) -> Formula | None:
    """What ``backward`` of a function object computes."""
    return _read(getattr(type(function), "backward", None), input_names(function), "gx")


def own_numbers(holder: Any) -> dict[str, Any]:
    """The numbers that an object keeps as attributes: ``{"self.c": 2.0}``."""
    held = getattr(holder, "__dict__", {}).items()
    return {f"self.{n}": v for n, v in held if isinstance(v, int | float)}


def input_names(function: Any) -> tuple[str, ...]:
    """The parameter names of ``forward``: what the inputs are called in formulas."""
    return parameters(getattr(type(function), "forward", None))[1:]


@functools.lru_cache(maxsize=1024)
def _read(method: Any, inputs: tuple[str, ...], name: str) -> Formula | None:
    """What a method returns; read once per method: where a class gets another one, that is read, too."""
    try:
        own, *names = parameters(method)
        known: dict[str, ast.expr] = {name: ast.Name(name) for name in names}
        known |= {f"{own}.inputs[{k}]": ast.Name(name) for k, name in enumerate(inputs)}
        known |= {f"{own}.input": ast.Name(name) for name in inputs[:1]}
        known |= {own: ast.Name("self")}
        known |= {text: ast.Name("y") for text in (f"{own}.output", f"{own}.outputs[0]")}
        results = _returned(method, known)
        formula = Formula(results, numbered(name, len(results)))
        return formula if all(formula.lines()) else None
    except (NotUnderstood, RecursionError, ValueError):
        return None


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else ""


# Reading ----------------------------------------------------------------


def numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))


@functools.lru_cache(maxsize=1024)
def parameters(method: Any) -> tuple[str, ...]:
    """The names of the parameters of a method; none where it takes any number of them."""
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return ()
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return tuple(p.name for p in parameters) if plain else ()


def _body(method: Any) -> list[ast.stmt]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise NotUnderstood from error
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        raise NotUnderstood
    return tree.body[0].body


def _returned(method: Any, known: dict[str, ast.expr]) -> tuple[ast.expr, ...]:
    """The results of a method in what is ``known`` of names, and of texts like ``self.inputs[0]``."""
    for statement in _body(inspect.unwrap(method) if method is not None else None):
        match statement:
            case ast.Expr(ast.Constant(str())):
                pass
            case ast.Assign([ast.Name(name)], value):
                known[name] = resolved(value, known)
            case ast.Assign([ast.Tuple(targets)], value):
                places = [ast.Subscript(value, ast.Constant(k)) for k in range(len(targets))]
                parts = value.elts if isinstance(value, ast.Tuple) else places
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                known |= dict(zip(names, [resolved(p, known) for p in parts], strict=True))
            case ast.Return(ast.Tuple(parts)):
                return tuple(resolved(part, known) for part in parts)
            case ast.Return(ast.expr() as value):
                return (resolved(value, known),)
            case _:
                raise NotUnderstood
    raise NotUnderstood


def resolved(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with names, ``self.input.data`` and the like replaced by what they stand for."""
    again = functools.partial(resolved, known=known)
    text = ast.unparse(node)
    if text in known:
        return known[text]
    match node:
        case ast.Attribute(value, "data") | ast.Call(value, [], []):  # a weak reference, called
            return again(value)
        case ast.Attribute(value, name):
            inner = again(value)
            if name in ("T", "shape") or (isinstance(inner, ast.Name) and inner.id == "self"):
                return ast.Attribute(inner, name)
        case ast.BinOp(left, sign, right):
            return ast.BinOp(again(left), sign, again(right))
        case ast.UnaryOp(ast.USub(), value):
            return ast.UnaryOp(ast.USub(), again(value))
        case ast.Compare(left, [sign], [right]):
            return ast.Compare(again(left), [sign], [again(right)])
        case ast.Call(ast.Attribute(ast.Name(), name) | ast.Name(name), arguments, []):
            return ast.Call(ast.Name(name), [again(a) for a in arguments], [])
        case ast.Constant(int() | float() | None):
            return node
    raise NotUnderstood


# ---- Gradient rules as formulas: ``mul.grad(x=lambda y, out_grad: out_grad * y)`` reads ``g·y`` ----


def rule_formula(primitive: Any, slot: str) -> ast.expr | None:
    """The gradient of one input in inputs, outputs, attrs and ``g``: as it was declared with the
    rule, else as the code of the rule says it.
    """
    said = getattr(primitive, "formulas", {}).get(slot)
    if said is not None:
        return _parsed(said)
    rule = getattr(primitive, "rules", {}).get(slot)
    return None if rule is None else _expression(rule.function, slot)


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@functools.lru_cache(maxsize=1024)
def _expression(function: Callable[..., Any], slot: str) -> ast.expr | None:
    """What a rule gives back: the body of ``slot=lambda …`` on the function's line, or of a def."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    known: dict[str, ast.expr] = {n: ast.Name(n) for n in code.co_varnames[: code.co_argcount]}
    known |= {n: ast.Name("g") for n in known if n.endswith("_grad")}
    try:
        if function.__name__ == "<lambda>":
            body = resolved(_lambdas(code.co_filename)[code.co_firstlineno, slot], known)
        else:
            (body,) = _returned(function, known)
        return body if written(body) else None
    except (NotUnderstood, RecursionError, ValueError, KeyError):
        return None


@functools.lru_cache(maxsize=64)
def _lambdas(path: str) -> dict[tuple[int, str | None], ast.expr]:
    """(line, keyword) → the body of the lambda that begins there."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[int, str | None], ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Lambda):
            found.setdefault((node.value.lineno, node.arg), node.value.body)
    return found


# ---- Expressions as people write them, and what they come to: `ast` in, text or numbers out ----


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
#: what a sign is called as an operation, how it is written, how tightly it holds, what computes it
_OPERATIONS: tuple[tuple[str, type[ast.operator], str, int, Any], ...] = (
    ("add", ast.Add, " + ", 1, np.add),
    ("sub", ast.Sub, " − ", 1, np.subtract),
    ("mul", ast.Mult, "·", 2, np.multiply),
    ("div", ast.Div, " / ", 2, np.divide),
    ("pow", ast.Pow, "^", 3, np.power),
    ("matmul", ast.MatMult, " @ ", 2, np.matmul),
    ("mod", ast.Mod, " % ", 2, np.mod),
    ("floor_divide", ast.FloorDiv, " // ", 2, np.floor_divide),
)
OPERATORS = {name: sign for name, sign, *_ in _OPERATIONS}
_SIGNS = {sign: (text, level) for _, sign, text, level, _ in _OPERATIONS}
_DO = {sign: do for *_, sign, _, _, do in _OPERATIONS}
_COMPARE: dict[type, str] = {
    ast.Gt: ">",
    ast.Lt: "<",
    ast.GtE: "≥",
    ast.LtE: "≤",
    ast.Eq: "=",
    ast.NotEq: "≠",
}
_FUNCTIONS = frozenset({"exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "abs", "square"})
#: and all that a formula with numbers put in may call
_SCHOOL = _FUNCTIONS.union(
    ["sum", "mean", "sigmoid", "sign", "floor", "cosh", "sinh", "softmax", "where", "maximum"],
)
#: functions that school writes between two values
_BETWEEN = {"convolve": "∗", "correlate": "⋆"}
#: and functions that it knows by a letter
_LETTERS = {"Phi": "Φ", "phi": "φ", "pi": "π"}


class NotUnderstood(Exception):
    """The code is not a plain formula."""


def written(node: ast.expr, values: Mapping[str, str] | None = None) -> str:
    """The text of an expression, with ``values`` put in for names: ``2·x`` for ``y·x^(y − 1)``
    where ``y`` is "2".
    """
    values = values or {}
    numbers = {n: float(v) for n, v in values.items() if _NUMBER.fullmatch(v)}
    node = _Worked(numbers).visit(copy.deepcopy(node)) if numbers else node
    return _write(node, values)[0]


_NUMBER = re.compile(r"\d+(\.\d+)?")
_IN_BRACKETS = re.compile(r"\(.*\)|\[.*\]")


class _Worked(ast.NodeTransformer):
    """Exponents and factors that are numbers are worked out: ``x ** (3 - 1)`` is ``x²``."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        self.numbers = numbers

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Pow):
            node.left, node.right = self.visit(node.left), self._worked(node.right)
            if isinstance(node.right, ast.Constant) and node.right.value in (0, 1):
                return node.left if node.right.value else ast.Constant(1)
            return node
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
            return node.right if node.left.value == 1 else node
        return node

    def _worked(self, power: ast.expr) -> ast.expr:
        try:
            value = float(computed(power, self.numbers))
        except (NotUnderstood, KeyError, TypeError):
            return self.visit(power)  # type: ignore[no-any-return]
        return ast.Constant(int(value) if value.is_integer() else value)


def _write(node: ast.expr, values: Mapping[str, str]) -> tuple[str, int]:
    """The text of an expression and how tightly it holds together (0 comparison, 1 sum,
    2 product, 3 power, 4 word).
    """

    def write(part: ast.expr, level: int = 0) -> str:
        text, tight = _write(part, values)
        return text if tight >= level else f"({text})"

    match node:
        case ast.Name(name):
            text = values.get(name, _LETTERS.get(name, name))
            loose = text.startswith("-") or " " in _IN_BRACKETS.sub("", text)
            return text, 1 if loose else 4
        case ast.Constant(value):
            return (NOT_YET if value is None else format_number(value)), 4
        case ast.UnaryOp(ast.USub(), value):
            return f"−{write(value, 2)}", 1
        case ast.UnaryOp(_, value):
            return f"not {write(value, 1)}", 1
        case ast.BinOp(left, ast.Mult(), right) if isinstance(left, ast.Name) and ast.dump(
            left
        ) == ast.dump(right):
            return f"{write(left, 4)}²", 3
        case ast.BinOp(left, ast.Pow(), right):
            base = write(left, 4)
            whole = isinstance(right, ast.Constant) and isinstance(right.value, int)
            power = write(right)
            return (
                f"{base}{power.translate(_SUPERSCRIPT)}" if whole else f"{base}^{write(right, 4)}"
            ), 3
        case ast.BinOp() if (positive := _without_minus(node)) is not node:
            return f"−{write(positive, 2)}", 1
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            word, level = _SIGNS[type(sign)]
            tighter = level + isinstance(sign, (ast.Sub, ast.Div, ast.MatMult))
            second = write(right, tighter)
            second = f"({second})" if second[0] in "−-" else second
            return f"{write(left, level)}{word}{second}", level
        case ast.Compare(first, [sign], [second]) if type(sign) in _COMPARE:
            return f"{write(first, 1)} {_COMPARE[type(sign)]} {write(second, 1)}", 0
        case ast.Call(ast.Name("exp"), [ast.Name("x")]) if "x" not in values:
            return "eˣ", 3
        case ast.Call(ast.Name("matmul_nt"), [left, right, *_]):
            return f"{write(left, 2)} @ {write(right, 4)}ᵀ", 2
        case ast.Call(ast.Name("matmul_tn"), [left, right, *_]):
            return f"{write(left, 4)}ᵀ @ {write(right, 3)}", 2
        case ast.Call(ast.Name(name), [left, right]) if name in _BETWEEN:
            return f"{write(left, 3)} {_BETWEEN[name]} {write(right, 3)}", 2
        case ast.Call(ast.Name("sum" | "sum_to"), [summed, *_]):
            return f"Σ({write(summed)})", 4
        case ast.Call(ast.Name("abs"), [value]):
            return f"|{write(value)}|", 4
        case ast.Call(ast.Name("inv"), [value]):
            return f"{write(value, 4)}⁻¹", 4
        case ast.Call(ast.Name(name), arguments):
            return f"{_LETTERS.get(name, name)}({', '.join(map(write, arguments))})", 4
        case ast.Attribute(ast.Name("self"), name):
            return values.get(f"self.{name}", name), 4
        case ast.Attribute(value, "T"):
            return f"{write(value, 4)}ᵀ", 4
        case ast.Attribute(value, name):
            return f"{write(value, 4)}.{name}", 4
        case ast.Subscript(value, index):
            return f"{write(value, 4)}[{write(index)}]", 4
    raise NotUnderstood


def _without_minus(node: ast.expr) -> ast.expr:
    """A product that begins with a minus, without it."""
    match node:
        case ast.UnaryOp(ast.USub(), value):
            return value
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.MatMult() as sign, right):
            positive = _without_minus(left)
            return node if positive is left else ast.BinOp(positive, sign, right)
    return node


def literal(text: str) -> Any:
    """The number that a text is, if it is one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


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
        case ast.UnaryOp(ast.USub(), value):
            return np.negative(computed(value, values))
        case ast.BinOp(left, sign, right) if type(sign) in _DO:
            return _DO[type(sign)](computed(left, values), computed(right, values))
        case ast.Call(ast.Name(name), [argument]) if name in _FUNCTIONS:
            return getattr(np, name)(computed(argument, values))
        case ast.Attribute(value, "T"):
            return np.transpose(computed(value, values))
    raise NotUnderstood
