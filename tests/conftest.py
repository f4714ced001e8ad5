"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "agg")  # no window, whatever the machine offers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


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
        advice = "run: uv run pytest --update-golden, and read the difference before committing"
        assert path.exists(), f"{name} is missing; {advice}"
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; {advice}"

    return compare
