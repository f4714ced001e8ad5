"""Which lines of some files each test reaches, and how long it takes."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

from _pytest.runner import runtestprotocol
from coverage import Coverage

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
    coverage = Coverage(data_file=None, include=sorted(files), config_file=False)
    for item, following in zip(items, [*items[1:], None], strict=True):
        begin = time.process_time()
        coverage.start()  # for each test: some of them trace, too
        coverage.switch_context(item.nodeid)
        try:
            passed = run(item, following)
        finally:
            coverage.stop()
        if passed:
            found[item.nodeid] = (time.process_time() - begin, set())
    for file in files:
        for line, names in coverage.get_data().contexts_by_lineno(file).items():
            for name in names:
                if name in found:
                    found[name][1].add((file, line))
    return found


def run(item: Any, following: Any) -> bool:
    """Whether one test passes, with its fixtures."""
    return all(r.passed for r in runtestprotocol(item, log=False, nextitem=following))
