"""Formulas from the code that ran: ``gx = 2 * x * gy; return gx`` becomes ``gx = 2·x·gy``.

Only straight-line methods are read: assignments and a return. Whatever is not understood gives no
formula, never a wrong one.
"""

import ast
import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..graph.format import FEW, NOT_YET, format_number, format_value

LONGEST = 44
Values = Mapping[str, Any]  # by name


class NotUnderstood(Exception):
    """The code is not a plain formula."""


#: and what else goes wrong where code cannot be read: there is none, it is no Python, it is too deep
_NO_FORMULA = (NotUnderstood, OSError, TypeError, ValueError, KeyError, SyntaxError, RecursionError)


#: what a method returns: one expression per result, over the names of inputs (``x``), outputs (``y``) and
#: gradients (``gy``); none where it is not a plain formula
Formulas = tuple[ast.expr, ...]


def forward_formulas(function) -> Formulas:
    """What ``forward`` of a function object computes."""
    return _read(getattr(type(function), "forward", None), input_names(function), "y")


def backward_formulas(function) -> Formulas:
    """What ``backward`` of a function object computes."""
    return _read(getattr(type(function), "backward", None), input_names(function), "gx")


def own_numbers(holder) -> dict[str, Any]:
    """The numbers that an object keeps as attributes: ``{"self.c": 2.0}``."""
    held = getattr(holder, "__dict__", {}).items()
    return {f"self.{n}": v for n, v in held if isinstance(v, int | float)}


def input_names(function) -> tuple[str, ...]:
    """The parameter names of ``forward``: what the inputs are called in formulas."""
    return parameters(getattr(type(function), "forward", None))[1:]


def numbered(name: str, count: int) -> tuple[str, ...]:
    """``gx``, or ``gx0``, ``gx1``, … where there are several."""
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))


def formula_lines(name: str, formulas: Formulas) -> tuple[str, ...]:
    """``gx = 2·x·gy``, one line per result."""
    both = zip(numbered(name, len(formulas)), formulas, strict=True)
    return tuple(f"{each} = {written(formula)}" for each, formula in both)


@functools.lru_cache(maxsize=1024)
def parameters(method) -> tuple[str, ...]:
    """The names of the parameters of a method; none where it takes any number of them."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return ()
    plain = all(p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters)
    return tuple(p.name for p in parameters) if plain else ()


# ---- Reading: what code gives back, in the names of what it reads ----


@functools.lru_cache(maxsize=1024)
def _read(method, inputs: tuple[str, ...], name: str) -> Formulas:
    """What a method returns; read once per method: where a class gets another one, that is read, too."""
    try:
        own, *names = parameters(method)
        meant = {name: name for name in names}
        meant |= {f"{own}.inputs[{k}]": name for k, name in enumerate(inputs)}
        meant |= {f"{own}.input": name for name in inputs[:1]}
        meant |= {f"{own}.output": "y", f"{own}.outputs[0]": "y", own: "self"}
        results = _returned(method, {text: ast.Name(name) for text, name in meant.items()})
        if any(len(line) > LONGEST for line in formula_lines(name, results)):
            return ()
        return results
    except _NO_FORMULA:
        return ()


def _returned(function, known: dict[str, ast.expr]) -> Formulas:
    """The results of a function in what is ``known`` of names, and of texts like ``self.inputs[0]``."""
    source = inspect.getsource(inspect.unwrap(function))
    (definition,) = ast.parse(textwrap.dedent(source)).body
    for statement in definition.body if isinstance(definition, ast.FunctionDef) else ():
        match statement:
            case ast.Expr(ast.Constant(str())):
                pass
            case ast.Assign([ast.Name(name)], value):
                known[name] = resolved(value, known)
            case ast.Assign([ast.Tuple(targets)], value):
                places = [ast.Subscript(value, ast.Constant(k)) for k in range(len(targets))]
                parts = value.elts if isinstance(value, ast.Tuple) else places
                meanings = [resolved(part, known) for part in parts]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                known |= dict(zip(names, meanings, strict=True))
            case ast.Return(ast.expr() as value):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                return tuple(resolved(part, known) for part in parts)
            case _:
                break
    raise NotUnderstood


def resolved(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with names, ``self.input.data`` and the like replaced by what they stand for."""
    again = functools.partial(resolved, known=known)
    text = ast.unparse(node)
    if text in known:
        return known[text]
    match node:
        case ast.Constant(int() | float() | None):
            return node
        case ast.Attribute(value, "data") | ast.Call(value, [], []):  # a weak reference, called
            return again(value)
        case ast.Attribute(value, name):
            inner = again(value)
            if name in ("T", "shape") or (isinstance(inner, ast.Name) and inner.id == "self"):
                return ast.Attribute(inner, name)
        case ast.BinOp(left, sign, right):
            return ast.BinOp(again(left), sign, again(right))
        case ast.Compare(left, [sign], [right]):
            return ast.Compare(again(left), [sign], [again(right)])
        case ast.UnaryOp(ast.USub() as sign, value):
            return ast.UnaryOp(sign, again(value))
        case ast.Call(ast.Attribute(ast.Name(), name) | ast.Name(name), arguments, []):
            return ast.Call(ast.Name(name), [*map(again, arguments)], [])
    raise NotUnderstood


# ---- Gradient rules as formulas: ``mul.grad(x=lambda y, out_grad: out_grad * y)`` reads ``g·y`` ----


def rule_formula(primitive, slot: str) -> ast.expr | None:
    """The gradient of one input in inputs, outputs, attrs and ``g``: as it was declared with the
    rule, else as the code of the rule says it.
    """
    declared = getattr(primitive, "formulas", {}).get(slot)
    if declared is not None:
        return parsed(declared)
    rule = getattr(primitive, "rules", {}).get(slot)
    return None if rule is None else _expression(rule.function, slot)


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> ast.expr:
    """An expression that stands in a text."""
    return ast.parse(text, mode="eval").body


@functools.lru_cache(maxsize=1024)
def _expression(function: Callable[..., Any], slot: str) -> ast.expr | None:
    """What a rule gives back: the body of ``slot=lambda …`` on the function's line, or of a def."""
    names = parameters(function)
    known: dict[str, ast.expr] = {n: ast.Name("g" if n.endswith("_grad") else n) for n in names}
    try:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_name == "<lambda>":
            body = resolved(_lambdas(code.co_filename)[code.co_firstlineno, slot], known)
        else:
            (body,) = _returned(function, known)
        return body if written(body) else None
    except _NO_FORMULA:
        return None


@functools.lru_cache(maxsize=64)
def _lambdas(path: str) -> dict[tuple[int, str | None], ast.expr]:
    """(line, keyword) → the body of the lambda that begins there."""
    bodies: dict[tuple[int, str | None], ast.expr] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        match node:
            case ast.keyword(name, ast.Lambda() as rule):
                bodies.setdefault((rule.lineno, name), rule.body)
    return bodies


# ---- Writing: expressions as people write them ----


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_COMPARED = {
    ast.Gt: ">",
    ast.Lt: "<",
    ast.GtE: "≥",
    ast.LtE: "≤",
    ast.Eq: "=",
    ast.NotEq: "≠",
}
#: how a sign is written, how tightly it holds, what it is called as an operation, what computes it
_SIGNS = {
    ast.Add: (" + ", 1, "add", np.add),
    ast.Sub: (" − ", 1, "sub", np.subtract),
    ast.Mult: ("·", 2, "mul", np.multiply),
    ast.Div: (" / ", 2, "div", np.divide),
    ast.MatMult: (" @ ", 2, "matmul", np.matmul),
    ast.Mod: (" % ", 1.9, "mod", np.mod),
    ast.FloorDiv: (" // ", 1.9, "floor_divide", np.floor_divide),
    ast.Pow: ("^", 3, "pow", np.power),
}
_MINUS, _PRODUCTS = 1.5, (ast.Mult, ast.Div, ast.MatMult)
#: those that may be written without brackets around the same sign on their right
_LOOSE = (ast.Add, ast.Mult)
OPERATORS = {name: sign for sign, (_, _, name, _) in _SIGNS.items()}
_NUMPYS = "exp log sin cos tan tanh sqrt abs square"  # functions that are computed
_FUNCTIONS = _NUMPYS.split()
#: and all that a formula with numbers put in may call
_SCHOOL = f"{_NUMPYS} sum mean sigmoid sign floor cosh sinh softmax where maximum".split()
#: calls that school writes by signs: how, how tightly each argument must hold, and how all of it does
_CALLS = {
    "abs": ("|{}|", [0], 4),
    "sum": ("Σ({})", [0], 4),
    "sum_to": ("Σ({})", [0], 4),
    "inv": ("{}⁻¹", [4], 4),
    "matmul_nt": ("{} @ {}ᵀ", [2, 4], 2),
    "matmul_tn": ("{}ᵀ @ {}", [4, 3], 2),
    "convolve": ("{} ∗ {}", [3, 3], 2),
    "correlate": ("{} ⋆ {}", [3, 3], 2),
}
#: names that it knows by a letter
_LETTERS = {"Phi": "Φ", "phi": "φ", "pi": "π"}
_NUMBER = re.compile(r"\d+(\.\d+)?")
_IN_BRACKETS = re.compile(r"\(.*\)|\[.*\]")


def call_formula(operation: str, slots: Iterable[str]) -> ast.expr:
    """An operation as it is written: ``x·y`` for mul, ``tanh(x)``."""
    parts: list[ast.expr] = [ast.Name(slot) for slot in slots]
    match parts:
        case [left, right] if operation in OPERATORS:
            return ast.BinOp(left, OPERATORS[operation](), right)
        case [value] if operation == "neg":
            return ast.UnaryOp(ast.USub(), value)
    return ast.Call(ast.Name(operation.removeprefix("reduce_")), parts, [])


def names_in(expression: ast.expr) -> list[str]:
    """The names of values in an expression: not of functions, nor ``self``."""
    nodes = list(ast.walk(expression))
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    names = [n for n in nodes if isinstance(n, ast.Name) and n.id != "self"]
    return [name.id for name in names if id(name) not in called]


def put_in(expression: ast.expr, values: Values) -> str:
    """An expression with numbers put in for all its names, ``1·(1 − 0.9987²)``; empty where one is
    missing or has many elements, and where it is no arithmetic.
    """
    texts = {n: format_value(v) for n, v in values.items() if getattr(v, "size", 1) <= FEW}
    known = all(texts.get(n, NOT_YET) != NOT_YET for n in names_in(expression))
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


def written(node: ast.expr, values: Mapping[str, str] | None = None) -> str:
    """The text of an expression, with ``values`` put in for names: ``2·x`` for ``y·x^(y − 1)``
    where ``y`` is "2".
    """
    return _write(node, values or {})[0]


def _write(node: ast.expr, values: Mapping[str, str]) -> tuple[str, float]:
    """The text of an expression and how tightly it holds together (0 comparison, 1 sum,
    1.5 what begins with a minus, 1.9 remainder, 2 product, 3 power, 4 word).
    """

    def write(part: ast.expr, level: float = 0) -> str:
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
            return f"−{write(value, 2)}", _MINUS
        case ast.UnaryOp(_, value):
            return f"not {write(value, 1)}", 1
        case ast.BinOp(ast.Name(name) as left, ast.Mult(), ast.Name(again)) if name == again:
            return f"{write(left, 4)}²", 3
        case ast.BinOp(base, ast.Pow(), power):
            numbers = {n: float(v) for n, v in values.items() if _NUMBER.fullmatch(v)}
            known = numbers or isinstance(power, ast.Constant)
            number = computed(power, numbers) if known else None  # ``x ** (3 - 1)`` is ``x²``
            if number in (0, 1):
                return _write(base, values) if number else ("1", 4)
            if number is None:
                raised = f"^{write(power, 4)}"
            elif float(number).is_integer():
                raised = format_number(number).translate(_SUPERSCRIPT)
            else:
                raised = f"^{format_number(number)}"
            return f"{write(base, 4)}{raised}", 3
        case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARED:
            return f"{write(left, 1)} {_COMPARED[type(sign)]} {write(right, 1)}", 0
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            word, level, _, _ = _SIGNS[type(sign)]
            second = write(right, level + (not isinstance(sign, _LOOSE)))
            if second[0] in "−-":
                second = f"({second})"
            first, tight = _write(left, values)
            if tight == _MINUS and isinstance(sign, _PRODUCTS):  # it holds for the product
                return f"{first}{word}{second}", _MINUS
            return f"{write(left, level)}{word}{second}", level
        case ast.Call(ast.Name("exp"), [ast.Name("x")]) if "x" not in values:
            return "eˣ", 3
        case ast.Call(ast.Name(name), [_, *_] as arguments) if name in _CALLS:
            text, levels, tight = _CALLS[name]
            return text.format(*map(write, arguments, levels)), tight
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


# ---- Numbers: in texts, and what expressions come to ----


def literal(text: str) -> Any:
    """The number that a text is, if it is one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if type(value) in (int, float) else None


def number_text(value) -> str:
    """A value as it is put into a formula: one number, or nothing."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):  # ragged, or not for NumPy to read
        return ""
    one = array.size == 1 and array.dtype.kind in "biuf"
    return format_number(array.item()) if one else ""


def computed(node: ast.expr, values: Values) -> Any:
    """The value of an expression; None for one that is no plain arithmetic, and where one is not known."""
    try:
        with np.errstate(all="ignore"):
            return _compute(node, values)
    except (NotUnderstood, TypeError, ValueError, KeyError):
        return None


def _compute(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Name(name):
            return values[name]
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), value):
            return np.negative(_compute(value, values))
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            *_, function = _SIGNS[type(sign)]
            return function(_compute(left, values), _compute(right, values))
        case ast.Call(ast.Name(name), [argument]) if name in _FUNCTIONS:
            return getattr(np, name)(_compute(argument, values))
        case ast.Attribute(value, "T"):
            return np.transpose(_compute(value, values))
    raise NotUnderstood
