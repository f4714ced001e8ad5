"""Which errors of the package no test has ever seen: ``python -m tests.campaign raises``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from tests.trust.mutation import pytest_main, tell

PACKAGE = Path(__file__).parents[2] / "minigrad"
TESTS = ["tests/ops", "tests/eager", "tests/static", "tests/nn", "tests/trust", "tests/viz"]
TESTS += ["tests/test_optim.py", "tests/test_data.py", "tests/test_elsewhere.py"]
SLOW = ("test_seeded_bugs", "test_random_programs", "hostile_browser", "test_committed", "gallery")


def raising(file: Path) -> list[tuple[int, int, str]]:
    """First line, last line and text of every error that a file raises, but those it passes on."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return [(n.lineno, n.end_lineno or n.lineno, ast.unparse(n)[:110]) for n in found]


class Raises:
    """A pytest plugin that runs the tests once and tells which errors they miss."""

    def __init__(self) -> None:
        self.coverage = Coverage(data_file=None, include=[f"{PACKAGE}/*"], config_file=False)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if not any(s in i.nodeid for s in SLOW)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.coverage.start()  # for each test: some of them trace, too
        try:
            return (yield)
        finally:
            self.coverage.stop()

    def pytest_sessionfinish(self, session: Any) -> None:
        data = self.coverage.get_data()
        total = missed = 0
        for file in sorted(PACKAGE.rglob("*.py")):
            if "course" in file.parts:
                continue
            reached = set(data.lines(str(file)) or ())
            for first, last, text in raising(file):
                total += 1
                if not reached & set(range(first, last + 1)):
                    missed += 1
                    tell(f"{file.relative_to(PACKAGE.parent)}:{first}: {text}")
        tests = f"{session.testscollected} tests"
        tell(f"{total - missed} of {total} errors are raised in a test ({tests})")


def report(tests: list[str]) -> None:
    pytest_main(tests or TESTS, plugins=[Raises()])
