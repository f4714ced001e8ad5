"""Which lines of some files each test reaches, and how long it takes."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from _pytest.runner import runtestprotocol

Reach = dict[str, tuple[float, set[tuple[str, int]]]]  #: test → seconds, (file, line)


def reach(items: list[Any], files: set[str]) -> Reach:
    """Run every test once, in a process of its own, so that this one stays as it is.

    Tests that do not pass are left out.
    """
    with tempfile.NamedTemporaryFile() as place:
        pid = os.fork()
        if not pid:
            try:
                place.write(pickle.dumps(_reach(items, files)))
                place.flush()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        found: Reach = pickle.loads(Path(place.name).read_bytes())
    return found


def _reach(items: list[Any], files: set[str]) -> Reach:
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
