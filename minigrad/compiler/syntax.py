"""Python as text: lines that know their operator, identifiers, and the expressions of values.

Nothing of a program gets into the text as it is: names become identifiers of letters, digits and
underscores, numbers and texts are written by ``repr``, arrays are looked up in ``constants``,
functions in ``kernels``, and comments are kept on their line.
"""

import ast
import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..grad_names import GRAD
from ..primitives.arguments import ByName
from ..static.program.operator import Operator
from .schedule import Array, Schedule

Lines = list[str]  #: lines of source, in order


class Line(str):
    """A line of source that belongs to an operator."""

    op: Operator | None = None

    @staticmethod
    def of(text: str, op: Operator | None) -> "Line":
        """The line, of this operator unless it has one already."""
        line = Line(text)
        line.op = getattr(text, "op", None) or op
        return line


def indented(lines: Iterable[str]) -> Lines:
    """The lines of a block; ``pass`` if they do nothing."""
    inner: Lines = [Line.of(f"    {line}", getattr(line, "op", None)) for line in lines]
    if all(map(is_comment, inner)):
        inner.append("    pass")
    return inner


def comment(text: str) -> str:
    """A line of prose."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def is_comment(line: str) -> bool:
    """Whether a line is prose."""
    return line.lstrip().startswith("#")


def listed(items: Iterable[str]) -> str:
    """``a, b``; one item is followed by a comma: a tuple, or what is unpacked from one."""
    text = ", ".join(items := [*items])
    return text if len(items) != 1 else f"{text},"


class Identifiers:
    """Who is called what."""

    def __init__(self, schedule: Schedule, reserved: Iterable[str]) -> None:
        self.schedule = schedule
        self.identifiers: dict[Any, str] = {}  # of Arrays, and of what is made or looked up once
        self.taken = set(reserved)
        self.counts: dict[str, int] = {}  # stem → the number to try next
        self.table: dict[str, str] = {}  # identifier → name in the program
        self.given: dict[str, ByName] = {"kernels": {}, "constants": {}}
        self.before: Lines = []  # what runs once

    def name(self, array: Array, nameless: str = "t1") -> str:
        """The identifier of an Array, ``nameless`` if it has no name."""
        identifier = self.identifiers.get(array)
        if identifier is None:
            identifier = self.unique(clean(array.name) if array.name else nameless)
            self.identifiers[array] = identifier
            if array.name:
                self.table.setdefault(identifier, array.name)
        return identifier

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

    def value(self, value) -> str:
        """The expression of an argument."""
        if isinstance(value, Array):
            return self.name(value)
        if value is Ellipsis:
            return "..."
        if type(value) is float:
            return repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if isinstance(value, tuple):
            return f"({listed(map(self.value, value))})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, slice):
            parts = value.start, value.stop, value.step
            return f"slice({', '.join(map(self.value, parts))})"
        if isinstance(value, np.dtype | type):
            return repr(np.dtype(value).name)
        return self.constant(np.asarray(value))

    def subscript(self, index) -> str:
        """An index as it stands in brackets."""
        if isinstance(index, tuple) and index:
            return listed(map(self.subscript, index))
        if isinstance(index, slice):
            start, stop, step = (
                "" if b is None else self.value(b) for b in (index.start, index.stop, index.step)
            )
            return f"{start}:{stop}" + (f":{step}" if step else "")
        return self.value(index)

    def executed(
        self, lines: Lines, filename: str, names: ByName
    ) -> tuple[str, dict[int, Operator]]:
        """Run the source, which fills ``names``; returns its text, and line → operator.

        Its tree is looked through before: whatever a program holds, nothing but these identifiers
        has a meaning in it.
        """
        text = "\n".join(lines) + "\n"
        tree = ast.parse(text)
        for node in ast.walk(tree):
            name = getattr(node, "id", "_")
            attribute = getattr(node, "attr", "")
            foreign = name not in self.taken or attribute[:1] == "_"
            if foreign or isinstance(node, ast.Import | ast.ImportFrom):
                raise AssertionError(f"the source holds what nobody wrote: {ast.unparse(node)}")
        exec(builtins.compile(tree, filename, "exec"), names)
        ops = {k: op for k, line in enumerate(lines, 1) if (op := getattr(line, "op", None))}
        return text, ops

    def constant(self, value, wanted: str = "k1") -> str:
        """The identifier of an array known before the first run, or of a function that is called as it is."""
        table = "kernels" if callable(value) else "constants"
        identifier = self.once(id(value), wanted, table + "[{!r}]")
        self.given[table][identifier] = value
        return identifier

    def once(self, key, wanted: str, expression: str) -> str:
        """The identifier, {} in the expression, of what is made or looked up once, before the first run."""
        if key not in self.identifiers:
            name = self.identifiers[key] = self.unique(wanted)
            self.before.append(f"{name} = {expression.format(name)}")
        return self.identifiers[key]


def clean(name: str) -> str:
    """An identifier like a variable's name: ``w@GRAD`` is ``w_grad``.

    >>> clean("w@GRAD"), clean("h-1/new"), clean("lambda"), clean("3d")
    ('w_grad', 'h_1_new', 'lambda_', 'v3d')
    """
    text = re.sub(r"[^A-Za-z0-9_]", "_", name.replace(GRAD, "_grad"))[:60]
    text = text if text[:1].isalpha() else "v" + text
    return text + "_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) else text
