"""Put bugs of the list into the package, one after the other, and see whether the fuzzers find them.

``python -m tests.trust.seeded_bugs PROGRAMS NUMBER…`` does so in a process of its own; it prints one line per bug,
``found by KIND at SEED`` or ``not found``.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.trust.altered import Altered, alter
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


class _TooSlow(BaseException):
    pass


def hunt_one(bug: Bug, programs: int, seconds: int = 60) -> str:
    """Import the package anew with a bug in it, and hunt; a program that does not end is found, too."""

    def give_up(*_: object) -> None:
        raise _TooSlow

    for name in [
        n for n in sys.modules if n.startswith(("minigrad", "tests.trust.")) and n not in KEPT
    ]:
        del sys.modules[name]
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, Altered)]
    alter(bug.module, bug.apply)
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        return hunt(programs)
    except _TooSlow:
        return "found by time"
    finally:
        signal.alarm(0)


#: the modules of this folder that know nothing of the package
KEPT = ("tests.trust.altered", "tests.trust.bug_list", "tests.trust.seeded_bugs")


def find_all(bugs: Iterable[Bug], programs: int = 2000, workers: int = 2) -> dict[str, str]:
    """Name of each bug → what became of it."""
    numbers = [BUGS.index(b) for b in bugs]
    with ThreadPoolExecutor(workers) as pool:
        parts = pool.map(partial(_find, programs), [numbers[k::workers] for k in range(workers)])
    return {name: result for part in parts for name, result in part.items()}


def _find(programs: int, numbers: list[int]) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.trust.seeded_bugs", str(programs), *map(str, numbers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(zip([BUGS[n].name for n in numbers], done.stdout.splitlines(), strict=True))


if __name__ == "__main__":
    for number in sys.argv[2:]:
        print(hunt_one(BUGS[int(number)], int(sys.argv[1])))
