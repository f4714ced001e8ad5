"""Notebook files: read, write, and tell whether a learner worked in one."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..atomic import replacing
from .errors import CourseError

Notebook = dict[str, Any]


def load_nbformat() -> Any:
    """The library of that name, without a grammar of web addresses that it would compile for seconds."""
    unused = "rfc3987_syntax"
    if unused in sys.modules or "nbformat" in sys.modules:
        return import_module("nbformat")
    sys.modules[unused] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        return import_module("nbformat")
    finally:
        del sys.modules[unused]


def fingerprint(cells: Iterable[dict[str, Any]]) -> str:
    """A hash of what a learner can change: the sources of the cells; empty cells do not count."""
    sources = [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in cells]
    kept = [pair for pair in sources if pair[1]]
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()


def is_changed(notebook: Notebook) -> bool:
    """Whether somebody worked in this notebook since it was built."""
    return bool(facts(notebook).get("sources") != fingerprint(notebook["cells"]))


def facts(notebook: Notebook) -> dict[str, Any]:
    """What its build noted in a notebook: the step, whether it is solved, a hash of its cells."""
    noted = notebook["metadata"].get("minigrad")
    return noted if isinstance(noted, dict) else {}


def write(notebook: Notebook, path: Path) -> Path:
    """Write a built notebook, never over a learner's changed one; return where it went."""
    if path.exists() and is_changed(read(path)):
        path = path.with_name(f"{path.stem}.fresh.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(dumps(notebook).encode())
    return path


def read(path: Path) -> Notebook:
    """Read a notebook.  Raises CourseError when it is not one."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        used = [notebook["metadata"].get("minigrad")]  # all that is read of it later
        for cell in notebook["cells"]:
            used += [cell["cell_type"], "".join(cell["source"]), *cell["metadata"].get("tags", [])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(
            f"not a notebook ({type(error).__name__}: {error}); move it away, or ask for it again",
            path,
        ) from None
    return dict(notebook)


def dumps(notebook: Notebook) -> str:
    """The text of a notebook file as Jupyter writes it: keys sorted, texts split into lines."""
    from_dict = load_nbformat().from_dict
    from nbformat.v4.rwbase import split_lines

    split = split_lines(from_dict(joined(notebook)))  # type: ignore[no-untyped-call]
    return json.dumps(split, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def joined(notebook: Notebook) -> Notebook:
    """A notebook as it stands in memory: sources in one piece."""
    return {
        **notebook,
        "cells": [{**cell, "source": "".join(cell["source"])} for cell in notebook["cells"]],
    }
