"""Identifiers and values in the source: every name is made here, never pasted."""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

import numpy as np

from ..static.program.gradient_names import GRAD
from .names import ShapeWhenRun
from .schedule import Array, Schedule, current
from .syntax import assign, entry, invoke, load, special

#: identifiers that mean something else in the source
RESERVED = {
    "np",
    "parameters",
    "kernels",
    "constants",
    "prepare",
    "step",
    "fits",
    "reversed",
    "zip",
    "range",
    "slice",
    "list",
    "type",
    "zeros",
    "too_many_steps",
    "results",
}


class Identifiers:
    """Who is called what."""

    schedule: Schedule
    identifiers: dict[int, str]  # id of an Array → its identifier
    keep: list[Any]  # ids stay unique while their objects live
    taken: set[str]
    counts: dict[str, int]  # stem → the number to try next
    table: dict[str, str]  # identifier → name in the program
    constants: dict[str, np.ndarray[Any, Any]]
    before: list[ast.stmt]  # what runs once

    def name(self, array: Array) -> str:
        """The identifier of an Array."""
        array = current(array, self.schedule.same)
        found = self.identifiers.get(id(array))
        if found is None:
            found = self.identifiers[id(array)] = self.unique(
                clean(array.name) if array.name else "t1"
            )
            self.keep.append(array)
            if array.name:
                self.table.setdefault(found, array.name)
        return found

    def unique(self, wanted: str) -> str:
        """An identifier nobody has."""
        if wanted in self.taken:
            numbered = wanted[0] == "t" and wanted[1:].isdigit()
            stem = "t" if numbered else f"{wanted}_"
            k = self.counts.get(stem, 2)
            while f"{stem}{k}" in self.taken:
                k += 1
            self.counts[stem] = k + 1
            wanted = f"{stem}{k}"
        self.taken.add(wanted)
        return wanted

    def value(self, value: Any) -> ast.expr:
        """The expression of an argument."""
        if isinstance(value, Array):
            return load(self.name(value))
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return ast.Constant(value)
        if type(value) is float:
            return ast.Constant(value) if np.isfinite(value) else special(value)
        if isinstance(value, tuple):
            return ast.Tuple([self.value(v) for v in value], ast.Load())
        if isinstance(value, list):
            return ast.List([self.value(v) for v in value], ast.Load())
        if isinstance(value, slice):
            return invoke("slice", [self.value(v) for v in (value.start, value.stop, value.step)])
        if isinstance(value, np.dtype | type):
            return ast.Constant(np.dtype(value).name)
        if isinstance(value, ShapeWhenRun):
            return invoke("np.shape", [self.value(value.array)])
        return load(self.constant(np.asarray(value)))

    def subscript(self, index: Any) -> ast.expr:
        """An index as it stands in brackets."""
        if isinstance(index, tuple) and index:
            return ast.Tuple([self.subscript(i) for i in index], ast.Load())
        if isinstance(index, slice):
            bounds = [
                None if b is None else self.value(b) for b in (index.start, index.stop, index.step)
            ]
            return ast.Slice(*bounds)
        return self.value(index)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """An array known before the first run."""
        found = self.identifiers.get(id(array))
        if found is None:
            found = self.identifiers[id(array)] = self.unique("k1")
            self.constants[found] = array
            self.before.append(assign(found, entry("constants", found)))
        return found


def clean(name: str) -> str:
    """An identifier like a variable's name: ``w@GRAD`` is ``w_grad``.

    >>> clean("w@GRAD"), clean("h-1/new"), clean("lambda"), clean("3d")
    ('w_grad', 'h_1_new', 'lambda_', 'v3d')
    """
    text = re.sub(r"[^A-Za-z0-9_]", "_", name.replace(GRAD, "_grad"))[:60]
    text = text if text[:1].isalpha() else "v" + text
    return text + "_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) else text
