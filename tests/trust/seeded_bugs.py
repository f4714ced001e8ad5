"""Put bugs of the list into the package, one after the other, and see whether the fuzzers find them.

``python -m tests.trust.seeded_bugs PROGRAMS NUMBER…`` does so, a process for each; it prints one line per bug,
``found by KIND at SEED`` or ``not found``.  Number -1 is the package as it is: nothing must be found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.trust.altered import alter
from tests.trust.bug_list import BUGS, Bug

ROOT = Path(__file__).parents[2]
ENDLESS = 30  #: seconds of processor time after which one program has no end
CHUNK = 20  #: programs of one kind before it is the next one's turn


def hunt(programs: int) -> str:
    """Run all fuzzers in turn until one of them fails."""
    warnings.simplefilter("ignore")
    try:
        from tests.compiler.random_steps import check as check_steps
        from tests.nn.module_machine import seeded_history as check_modules
        from tests.static.random_operators import check as check_operators
        from tests.static.test_random_programs import check_small
        from tests.trust.aliasing import seeded_history
        from tests.trust.damaged_weights import check as check_files
        from tests.trust.engine_machine import seeded_session
        from tests.trust.fuzz import check
        from tests.trust.honest_programs import trial as check_stored
        from tests.trust.random_functions import draw
        from tests.trust.wrong_calls import check as check_call
        from tests.viz.truth import check_player
    except Exception:
        return "found by import at 0"
    kinds = {
        "functions": lambda k: check(draw(k), k),
        "sessions": seeded_session,
        "operators": check_operators,
        "blocks": check_small,
        "steps": lambda k: None if k % 4 else check_steps(k // 4),  # they take four times as long
        "histories": seeded_history,
        "modules": check_modules,
        "files": check_files,
        "stored programs": check_stored,
        "players": check_player,
        "calls": check_call,
    }
    for first in range(0, programs, CHUNK):
        for kind, run in kinds.items():
            for seed in range(first, first + CHUNK):
                began = time.process_time()
                try:
                    run(seed)
                except _TooSlow:
                    endless = time.process_time() - began > ENDLESS
                    return f"found by {kind} at {seed} (no end)" if endless else "not found"
                except Exception as error:
                    return f"found by {kind} at {seed} ({type(error).__name__})"
    return "not found"


class _TooSlow(BaseException):
    pass


def hunt_one(bug: Bug | None, programs: int, seconds: int = 180) -> str:
    """Import the package with a bug in it (with none), and hunt; a program that does not end is a find, a hunt that does not is none."""

    def give_up(*_: object) -> None:
        raise _TooSlow

    if bug is not None:
        alter(bug.module, bug.apply)
    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of processor time: the machine may be busy
    try:
        return hunt(programs)
    except _TooSlow:
        return "not found"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def in_a_process_of_its_own(bug: Bug | None, programs: int) -> None:
    """Hunt in a fork, which imports the package afresh, and print the result."""
    pid = os.fork()
    if not pid:
        print(hunt_one(bug, programs), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)


def find_all(
    bugs: Iterable[Bug],
    programs: int = 2000,
    workers: int = 2,
    tell: Callable[[str, str], None] = lambda name, result: None,
) -> dict[str, str]:
    """Name of each bug → what became of it; ``tell`` hears of each as soon as it is known."""
    numbers = [BUGS.index(b) for b in bugs]
    parts = [numbers[k::workers] for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(partial(_find, programs, tell), parts)
        return {name: result for part in found for name, result in part.items()}


def _find(programs: int, tell: Callable[[str, str], None], numbers: list[int]) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.trust.seeded_bugs", str(programs), *map(str, numbers)]
    found = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in zip(numbers, process.stdout, strict=True):
            found[BUGS[number].name] = line.strip()
            tell(BUGS[number].name, line.strip())
    assert process.returncode == 0
    return found


if __name__ == "__main__":
    for number in sys.argv[2:]:
        in_a_process_of_its_own(BUGS[int(number)] if int(number) >= 0 else None, int(sys.argv[1]))
