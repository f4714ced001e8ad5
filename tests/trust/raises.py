"""Which errors of the package no test has ever seen: ``python -m tests.campaign raises``.

Every ``raise`` of the package is wrapped as it is imported, so a marked error was made with its text, and the tests run
as quickly as they always do.  Errors that other processes raise are not seen.
"""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import Path
from typing import Any

from tests.trust.altered import alter
from tests.trust.mutation import pytest_main, tell

PACKAGE = Path(__file__).parents[2] / "minigrad"
SLOW = (
    "test_seeded_bugs", "test_random_programs", "test_engine_model", "browser", "test_committed", "gallery",
    "test_benchmarks", "test_examples", "test_readme", "tests/steps/test_step", "jupyter",
)  # fmt: skip
MARK = "_raised_here"


def raising(tree: ast.AST) -> list[ast.Raise]:
    """Every error that a module raises, but those it passes on."""
    return [n for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]


def marked(source: str) -> ast.Module:
    """The module with ``raise _raised_here(error)`` for ``raise error``."""
    tree = ast.parse(source)
    for node in raising(tree):
        assert node.exc is not None
        call = ast.Call(ast.Name(MARK, ast.Load()), [node.exc], [])
        node.exc = ast.copy_location(call, node)
    return ast.fix_missing_locations(tree)


class Raises:
    """A pytest plugin that runs the tests once and tells which errors they miss."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()  #: file, line
        setattr(builtins, MARK, self.mark)
        for file in PACKAGE.rglob("*.py"):
            parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
            alter(".".join(parts).removesuffix(".__init__"), marked)

    def mark(self, error: Any) -> Any:
        frame = sys._getframe(1)
        self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return error

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if not any(s in i.nodeid for s in SLOW)]

    def pytest_sessionfinish(self, session: Any) -> None:
        total = missed = 0
        for file in sorted(PACKAGE.rglob("*.py")):
            for node in raising(ast.parse(file.read_text(encoding="utf-8"))):
                total += 1
                if (str(file), node.lineno) not in self.seen:
                    missed += 1
                    place = f"{file.relative_to(PACKAGE.parent)}:{node.lineno}"
                    tell(f"{place}: {ast.unparse(node)[:110]}")
        tests = f"{session.testscollected} tests"
        tell(f"{total - missed} of {total} errors are raised in a test ({tests})")


def report(tests: list[str]) -> None:
    pytest_main(tests or ["tests"], plugins=[Raises()])
