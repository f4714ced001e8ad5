"""Which errors of the package no test has ever seen: ``python -m tests.campaign raises``."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import minigrad
from tests.trust.coverage_of_items import reach
from tests.trust.mutation import pytest_main, tell

PACKAGE = Path(minigrad.__file__).parent
TESTS = ["tests/ops", "tests/eager", "tests/static", "tests/nn", "tests/trust", "tests/viz"]
SLOW = ("test_seeded_bugs", "test_random_programs", "hostile_browser", "test_committed", "gallery")


def raising(file: Path) -> list[tuple[int, int, str]]:
    """First line, last line and text of every error that a file raises, but those it passes on."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return [(n.lineno, n.end_lineno or n.lineno, ast.unparse(n)[:110]) for n in found]


class Raises:
    """A pytest plugin that runs the tests once and tells which errors they miss."""

    def pytest_runtestloop(self, session: Any) -> bool:
        files = [f for f in sorted(PACKAGE.rglob("*.py")) if "course" not in f.parts]
        items = [i for i in session.items if not any(s in i.nodeid for s in SLOW)]
        found = reach(items, {str(f) for f in files})
        reached = {line for _, lines in found.values() for line in lines}
        total = missed = 0
        for file in files:
            for first, last, text in raising(file):
                total += 1
                if not any((str(file), n) in reached for n in range(first, last + 1)):
                    missed += 1
                    tell(f"{file.relative_to(PACKAGE.parent)}:{first}: {text}")
        tell(f"{total - missed} of {total} errors are raised in a test ({len(found)} tests)")
        return True


def report(tests: list[str]) -> None:
    pytest_main(tests or [*TESTS, "tests/test_optim.py", "tests/test_data.py"], plugins=[Raises()])
