"""A course of two tiny steps, copied to a folder where a test may write."""

from __future__ import annotations

import shutil
from pathlib import Path

from minigrad.course.folder import Course
from minigrad.course.steps import Step, read_step

SAMPLE = Path(__file__).parent / "sample"


def copied(folder: Path) -> Course:
    """The sample course in a folder of its own."""
    shutil.copytree(SAMPLE / "steps", folder / "steps")
    return Course(folder)


def written(folder: Path, *cells: str, name: str = "step90_bad.py") -> Path:
    """A step file of these cells."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(cells) + "\n", encoding="utf-8")
    return path


def exercise(*lines: str, id: str = "90a") -> str:
    """An exercise cell of these lines."""
    return "\n".join(
        [
            f'# %% tags=["active-ipynb", "exercise", "ex-{id}"]',
            *(f"# {line}".rstrip() for line in lines),
        ]
    )


def step_of(folder: Path, *cells: str) -> Step:
    """A step read from these cells."""
    return read_step(written(folder, *cells))
