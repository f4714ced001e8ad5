"""Steps as the tests see them: loaded by path, demonstration cells run, text mutated."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from minigrad.course.steps import Step, read_step

ROOT = Path(__file__).resolve().parents[2]


def load(name: str, text: str | None = None) -> types.ModuleType:
    """The step ``name`` as a module of its own; ``text`` replaces what stands in its file."""
    path = ROOT / "steps" / f"{name}.py"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(compile(path.read_text() if text is None else text, str(path), "exec"), vars(module))
    return module


def cells(name: str, tag: str | None = None) -> list[str]:
    """The sources of the code cells of a step, or of those with a tag."""
    step: Step = read_step(ROOT / "steps" / f"{name}.py")
    return [
        cell.source
        for cell in step.cells
        if cell.kind == "code" and (tag is None or tag in cell.tags)
    ]


def run_cells(name: str, sources: Iterable[str]) -> tuple[dict[str, object], str]:
    """The namespace and the printed text after running cells on top of a step's definitions."""
    namespace = dict(vars(load(name)))
    printed = StringIO()
    with redirect_stdout(printed):
        for source in sources:
            exec(compile(source, f"{name} cell", "exec"), namespace)
    return namespace, printed.getvalue()


def verdict_on(test_file: str, name: str, old: str, new: str) -> str:
    """What the tests of a step say about a changed engine: "killed by …" or "survived".

    The first occurrence of ``old`` in its code, not in its texts, must exist; each plain test of the
    file runs on the mutant.
    """
    text = (ROOT / "steps" / f"{name}.py").read_text()
    quoted = r"^#.*" + re.escape(old.partition("\n")[0])
    if old not in (code := re.sub(quoted, "#", text, flags=re.M)):
        raise ValueError(f"{name} does not contain {old!r}")
    test = sys.modules[test_file]
    sound = test.step
    test.step = load(name, code.replace(old, new, 1))
    try:
        for each in plain_tests(test):
            try:
                each()
            except (Exception, pytest.fail.Exception):  # pytest.raises fails with the latter
                return f"killed by {each.__name__}"
        return "survived"
    finally:
        test.step = sound


def plain_tests(test: types.ModuleType) -> list[Callable[[], None]]:
    """The test functions of a module that need neither fixtures nor parameters."""
    return [
        each
        for name, each in vars(test).items()
        if name.startswith("test_")
        and isinstance(each, types.FunctionType)
        and each.__code__.co_argcount == 0
        and not hasattr(each, "pytestmark")
    ]


__all__ = ["ROOT", "cells", "load", "run_cells", "verdict_on"]
