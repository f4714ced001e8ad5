"""A changed module in a running process: the code of its functions is replaced where they stand.

So a mutant costs a fork and the tests that reach it, not an import.  What is computed when a module is imported (a
constant, a table, a default) cannot be replaced like this: `patch` says so, and the module is imported anew.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

Place = tuple[str, int, str]  #: qualified name, first line, name
Live = dict[Place, list[FunctionType]]


def live_functions(file: str) -> Live:
    """All functions of a file that exist now, lambdas and closures too, by their place."""
    found: Live = {}
    for f in gc.get_objects():
        if isinstance(f, FunctionType) and f.__code__.co_filename == file:
            found.setdefault(place(f.__code__), []).append(f)
    return found


def place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno, code.co_name


def parts(code: CodeType) -> Iterator[CodeType]:
    """The code objects inside one, in the order of the text."""
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield c
            yield from parts(c)


Changes = list[tuple[FunctionType, CodeType]]


def changes(live: Live, before: list[CodeType], after: ast.Module, file: str) -> Changes:
    """Which function is to get which code; none if that would not be all, and nothing is to be relied on."""
    new = list(parts(compile(after, file, "exec")))
    changed = [(a, b) for a, b in zip(before, new, strict=False) if a != b and place(a) in live]
    if len(before) != len(new) or any(a.co_freevars != b.co_freevars for a, b in changed):
        return []
    return [(f, b) for a, b in changed for f in live[place(a)]]


def patch(changed: Changes) -> None:
    """Replace the code that differs."""
    for f, code in changed:
        f.__code__ = code
