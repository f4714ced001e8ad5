"""Which lines of some files each test reaches, and how long it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from _pytest.runner import runtestprotocol

Reach = dict[str, tuple[float, set[tuple[str, int]]]]  #: test → seconds, (file, line)


def reach(items: list[Any], files: set[str]) -> Reach:
    """Run every test once; those that do not pass are left out."""
    found: Reach = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        lines: set[tuple[str, int]] = set()
        begin = time.process_time()
        sys.settrace(tracer(files, lines))
        try:
            passed = run(item, following)
        finally:
            sys.settrace(None)
        if passed:
            found[item.nodeid] = (time.process_time() - begin, lines)
    return found


def run(item: Any, following: Any) -> bool:
    """Whether one test passes, with its fixtures."""
    return all(r.passed for r in runtestprotocol(item, log=False, nextitem=following))


def tracer(files: set[str], lines: set[tuple[str, int]]) -> Callable[..., Any]:
    """Notes the lines of ``files`` that run."""

    def note(frame: FrameType, event: str, arg: Any) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return note

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return note if frame.f_code.co_filename in files else None

    return enter
