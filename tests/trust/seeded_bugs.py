"""Put one bug of the list into the package, in a process of its own, and see whether the fuzzers find it.

``python -m tests.trust.seeded_bugs NUMBER PROGRAMS`` is such a process; it ends with the line
``found by KIND at SEED`` or ``not found``.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.trust.altered import alter
from tests.trust.bug_list import BUGS, Bug

ROOT = Path(__file__).parents[2]
CHUNK = 20  #: programs of one kind before it is the other's turn


def hunt(programs: int) -> str:
    """Run both fuzzers in turn until one of them fails."""
    warnings.simplefilter("ignore")
    try:
        from tests.trust.engine_machine import seeded_session
        from tests.trust.fuzz import check
        from tests.trust.random_functions import draw
    except Exception:
        return "found by import at 0"
    kinds = {"functions": lambda k: check(draw(k), k), "sessions": seeded_session}
    for first in range(0, programs, CHUNK):
        for kind, run in kinds.items():
            for seed in range(first, first + CHUNK):
                try:
                    run(seed)
                except Exception as error:
                    return f"found by {kind} at {seed} ({type(error).__name__})"
    return "not found"


def find(bug: Bug, programs: int = 2000, seconds: float = 600) -> str:
    """What became of a bug: the last line of its process."""
    number = BUGS.index(bug)
    command = [sys.executable, "-m", "tests.trust.seeded_bugs", str(number), str(programs)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "found by time at 0"
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else f"failed: {done.stderr[-300:]}"


def find_all(bugs: Iterable[Bug], programs: int = 2000, workers: int = 2) -> dict[str, str]:
    """Name of each bug → what became of it."""
    chosen = list(bugs)
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda b: find(b, programs), chosen))
    return dict(zip([b.name for b in chosen], found, strict=True))


if __name__ == "__main__":
    chosen = BUGS[int(sys.argv[1])]
    alter(chosen.module, chosen.apply)
    print(hunt(int(sys.argv[2])))
