"""What every test may use."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ.setdefault("MPLBACKEND", "agg")  # no window, whatever the machine offers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a worker per core: more threads only wait


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


_TEXT = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.VERBOSE)


@pytest.fixture(autouse=True, scope="module")
def quotes_without_texts() -> Iterator[None]:
    """Errors quote the user's line, and in a test that line may hold the very words the error is to say.

    Here they quote it without the texts in it, so that no error is right by quoting.
    """
    shorter = lambda *place: _TEXT.sub('"…"', linecache.getline(*place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minigrad.errors.linecache", SimpleNamespace(getline=shorter))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compare a text with a golden file beside the test; ``--update-golden`` writes it.

    ``golden("growth_golden/step06.txt", text)``: the path is relative to the test's folder.
    """
    folder = Path(request.path).parent

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        file = Path(request.path).relative_to(request.config.rootpath)
        advice = f"run: uv run pytest {file} --update-golden, and read the difference"
        assert path.exists(), f"{name} is missing; {advice}"
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; {advice}"

    return compare
