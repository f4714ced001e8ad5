"""Formulas from the code that ran: ``gx = 2 * x * gy; return gx`` becomes ``gx = 2·x·gy``.

Only straight-line methods are read: assignments and a return. Whatever is not understood gives no
formula, never a wrong one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .expressions import NotUnderstood, computed, number_text, written

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
