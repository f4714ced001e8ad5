"""Notebook files: read, write, and tell whether a learner worked in one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..atomic import replacing
from .errors import CourseError

Notebook = dict[str, Any]


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
            f"not a notebook ({type(error).__name__}: {error}); "
            "move it away and build again, or ask for it again",
            path,
        ) from None
    return dict(notebook)


def dumps(notebook: Notebook) -> str:
    """The text of a notebook file as Jupyter writes it: keys sorted, texts split into lines."""
    return json.dumps(_split(notebook), sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def _split(notebook: Notebook) -> Notebook:
    return {**notebook, "cells": [_split_cell(cell) for cell in notebook["cells"]]}


def _split_cell(cell: dict[str, Any]) -> dict[str, Any]:
    cell = {**cell, "source": _lines(cell["source"])}
    if "outputs" in cell:
        cell["outputs"] = [_split_output(output) for output in cell["outputs"]]
    return cell


def _split_output(output: dict[str, Any]) -> dict[str, Any]:
    if "text" in output:
        return {**output, "text": _lines(output["text"])}
    if "data" in output:
        return {
            **output,
            "data": {kind: _split_data(kind, v) for kind, v in output["data"].items()},
        }
    return output


def _split_data(kind: str, value: Any) -> Any:
    return _lines(value) if kind.startswith("text/") or kind == "image/svg+xml" else value


def _lines(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else text.splitlines(keepends=True)


def joined(notebook: Notebook) -> Notebook:
    """A notebook as it stands in memory: sources in one piece."""
    return {
        **notebook,
        "cells": [{**cell, "source": "".join(cell["source"])} for cell in notebook["cells"]],
    }
