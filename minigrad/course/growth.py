"""How one step grows out of the one before it, read off the syntax trees of the two files.

>>> old = "class A:\\n    def f(self): return 1"
>>> new = "class A:\\n    def f(self): return 2\\nclass B:\\n    pass"
>>> growth = Growth(definitions(old), definitions(new))
>>> growth.new, growth.changed, growth.kept, growth.gone
(['B'], ['A.f'], [], [])
>>> print(growth.patch("A.f"))
-def f(self): return 1
+def f(self): return 2
"""

import ast
import copy
import difflib
from collections.abc import Iterator
from textwrap import dedent
from typing import Any, NamedTuple

from .folder import Course
from .steps import BEGIN, END, CourseError, Step

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """A class, method, function or assigned name: ``code`` is compared, ``text`` is shown."""

    code: str
    text: str


class Growth(NamedTuple):
    """Two sets of definitions by name: ``Class``, ``Class.method``, ``function``, ``NAME``."""

    old: dict[str, Definition]
    now: dict[str, Definition]
    since: str = "the step before"

    @property
    def new(self) -> list[str]:
        """Definitions that were not there; a new class counts once, with its methods."""
        return _outermost([name for name in self.now if name not in self.old])

    @property
    def changed(self) -> list[str]:
        """Definitions whose code is another one; docstrings and comments do not count."""
        return [
            name
            for name, definition in self.now.items()
            if name in self.old and definition.code != self.old[name].code
        ]

    @property
    def kept(self) -> list[str]:
        """Definitions carried over; a class of which nothing changed counts once."""
        touched = "".join(f"\n{name}." for name in (*self.new, *self.changed, *self.gone))
        return _outermost(
            [name for name in self.now if name in self.old and f"\n{name}." not in touched]
        )

    @property
    def gone(self) -> list[str]:
        """Definitions that are there no more; a class counts once."""
        return _outermost([name for name in self.old if name not in self.now])

    def rows(self) -> list[tuple[str, list[str]]]:
        """All of this, with its words."""
        return [(word, getattr(self, word)) for word in ("new", "changed", "kept", "gone")]

    def patch(self, name: str) -> str:
        """The difference of one definition, line by line, with two lines around each change."""
        before = self.old[name].text.splitlines()
        now = self.now[name].text.splitlines()
        lines = list(difflib.unified_diff(before, now, lineterm="", n=2))
        return "\n".join(lines[3:])  # without the names, and where the first change stands


def definitions(source: str) -> dict[str, Definition]:
    """Definitions of a module by name, in order; the methods of a class follow it."""
    return dict(_definitions(source, ast.parse(source), ""))


def growth_of(course: Course, step: Step) -> Growth | None:
    """What a step adds to the one it grows out of; None for a step that starts fresh.

    Raises CourseError, with file and line, when a cell tagged ``carried`` changes what it holds.
    """
    before = None if step.number is None else course.before(step.number)
    if before is None:
        return None
    growth = Growth(definitions(before.text), definitions(step.text), f"step {before.number}")
    for cell in step.cells:
        if "carried" not in cell.tags or cell.kind != "code":
            continue
        for name, definition in definitions(cell.source).items():
            known = growth.old.get(name)
            if known is None or known.code != definition.code:
                how = "is not there" if known is None else "differs there"
                raise CourseError(
                    f'a cell tagged "carried" holds {name}, which {how} ({before.path.name}); '
                    "remove the tag, or carry it over as it was",
                    step.path,
                    cell.line,
                )
    return growth


def table(growth: Growth | None) -> str:
    """The growth table in markdown: names only, for the text asks before it shows code."""
    if not growth:
        return "*This step begins a new file: nothing is carried over.*"
    lines = [f"| since {growth.since} | definitions |", "|---|---|"]
    for word, names in growth.rows():
        quoted = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {word} | {quoted or '—'} |")
    return "\n".join(lines)


def plain(growth: Growth | None) -> str:
    """The same in plain text: what the tests pin and ``minigrad diff`` prints."""
    if not growth:
        return "starts fresh\n"
    head = "".join(f"{word:8} {', '.join(names) or '-'}\n" for word, names in growth.rows())
    return head + "".join(f"\n{name}\n{growth.patch(name)}\n" for name in growth.changed)


def _definitions(
    source: str, body: ast.Module | ast.ClassDef, prefix: str
) -> Iterator[tuple[str, Definition]]:
    methods = {}  # functions that become methods below their class: ``Variable.backward = backward``
    for node in body.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == node.value.id:
                    methods[target.attr] = ast.unparse(target)
    for node in body.body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, Definition(_code(node), _code(node))
            yield from _definitions(source, node, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            name = methods.get(node.name, prefix + node.name)
            yield name, Definition(_code(node), _text(source, node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            name = ", ".join(map(ast.unparse, targets))
            if name not in methods.values():
                yield prefix + name, Definition(_code(node), _text(source, node))


def _code(node: ast.stmt) -> str:
    """Code without a docstring; of a class its line alone, with decorators and bases."""
    bare: Any = copy.copy(node)
    if isinstance(node, ast.ClassDef):
        bare.body = []
    elif isinstance(node, FUNCTIONS) and ast.get_docstring(node) is not None:
        bare.body = node.body[1:]
    return ast.unparse(bare)


def _text(source: str, node: ast.stmt) -> str:
    text = ast.get_source_segment(source, node, padded=True) or ""  # for types: it has a place
    lines = text.splitlines(keepends=True)
    return dedent("".join(line for line in lines if line.strip() not in (BEGIN, END)))


def _outermost(names: list[str]) -> list[str]:
    """Without what stands in a class that is named, too."""
    return [name for name in names if name.rpartition(".")[0] not in names]
