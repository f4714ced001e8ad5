"""Solutions with one thing changed: what computes something else must not pass its check."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import re
import signal
import textwrap
from collections.abc import Iterator

import pytest
from test_exercises import EXERCISES, STEPS, given_to_check

from minigrad.course.check import examine
from minigrad.course.solution import find_solution, restored, solve
from minigrad.course.steps import BEGIN, END

OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitOr: ast.BitAnd,
}  # fmt: skip
#: Exercises in which many numbers, or any operation, are right.
FREE = {"1c", "3c", "11c"}


def changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """(field, new value) for each way to change one node."""
    if type(getattr(node, "op", None)) in OTHER:
        yield "op", OTHER[type(node.op)]()
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        yield "ops", [OTHER[type(node.ops[0])](), *node.ops[1:]]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "value", node.value + 1
    if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield "value", ast.Constant(None)
    if isinstance(node, ast.IfExp):
        yield "test", ast.UnaryOp(ast.Not(), node.test)
    for field in ("body", "orelse"):
        statements = getattr(node, field, None)
        for k, each in enumerate(statements if isinstance(statements, list) else []):
            if not isinstance(each, ast.Return | ast.Pass):
                yield field, [*statements[:k], ast.Pass(), *statements[k + 1 :]]


def mutants(body: str) -> Iterator[str]:
    """Statements of a function with one thing changed."""
    tree = ast.parse("def f():\n" + textwrap.indent(textwrap.dedent(body), "    "))
    for number, node in enumerate(list(ast.walk(tree))[1:], 1):
        for field, value in changes(node):
            mutant = copy.deepcopy(tree)
            setattr(list(ast.walk(mutant))[number], field, value)
            yield "\n".join(ast.unparse(ast.fix_missing_locations(mutant)).split("\n")[1:])


@contextlib.contextmanager
def seconds(limit: int) -> Iterator[None]:
    """A walk without an end is stopped, after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm here")
@pytest.mark.parametrize(("name", "id"), [each for each in EXERCISES if each[1] not in FREE])
def test_a_solution_with_one_thing_changed_does_not_pass(name, id):
    cell, (namespace, _) = find_solution(id), given_to_check(STEPS[name], id)
    survivors = []
    for indent, body in re.findall(rf"( *){BEGIN}\n(.*?)\n *{END}", cell.source, re.S):
        for mutant in mutants(body) if indent else ():  # of plain values the tables have mistakes
            text = textwrap.indent(textwrap.dedent(mutant), indent)
            with restored(namespace), contextlib.redirect_stdout(io.StringIO()):
                try:
                    with seconds(1):
                        changed = cell._replace(source=cell.source.replace(body, text, 1))
                        objects = solve(changed, namespace)
                        if examine(id, *objects).passed:
                            survivors.append(mutant)
                except BaseException:  # it does not even run
                    continue
    assert not survivors, "\n---\n".join(survivors)
