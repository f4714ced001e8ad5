"""The slow campaigns, one command each.

python -m tests.campaign fuzz --programs 200000 --seed 0
python -m tests.campaign sessions --programs 20000
python -m tests.campaign steps --programs 20000
python -m tests.campaign c --programs 20000
python -m tests.campaign histories --programs 50000
python -m tests.campaign files --programs 1000000
python -m tests.campaign honest --programs 20000
python -m tests.campaign weights --programs 60000
python -m tests.campaign saves --programs 100
python -m tests.campaign modules --programs 10000
python -m tests.campaign interrupts --programs 10000
python -m tests.campaign players --programs 5000
python -m tests.campaign operators --programs 100000
python -m tests.campaign blocks --programs 100000
python -m tests.campaign calls --programs 30000
python -m tests.campaign bugs
python -m tests.campaign mutate --module minigrad.eager.backward
python -m tests.campaign raises
python -m tests.campaign depth --ops 1000000
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path

CHUNK = 100
#: command → the module whose `trials` does a chunk of it
CHUNKS = {
    "c": "tests.backends.c_together",
    "files": "tests.static.mutations",
    "honest": "tests.trust.honest_programs",
    "weights": "tests.trust.damaged_weights",
    "saves": "tests.trust.killed_saves",
}
#: what is asked about a seed: command → the function that does it
SEEDED = {
    "fuzz": "tests.trust.fuzz.check_seed",
    "sessions": "tests.trust.engine_machine.seeded_session",
    "steps": "tests.compiler.random_steps.check",
    "histories": "tests.trust.aliasing.seeded_history",
    "modules": "tests.nn.module_machine.seeded_history",
    "players": "tests.viz.truth.check_player",
    "operators": "tests.static.random_operators.check",
    "calls": "tests.trust.wrong_calls.check",
    "blocks": "tests.static.test_random_programs.check_small",
}


def _chunk(kind: str, first: int, count: int) -> list[str]:
    """Run some programs, or use some damaged files; one line per failure."""
    warnings.simplefilter("ignore")
    if kind in CHUNKS:
        return list(import_module(CHUNKS[kind]).trials(first, count))
    module, _, function = SEEDED[kind].rpartition(".")
    run: Callable[[int], object] = getattr(import_module(module), function)
    bad = []
    for seed in range(first, first + count):
        try:
            run(seed)
        except Exception as error:
            bad.append(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0]}")
    return bad


def fuzz(args: argparse.Namespace) -> int:
    """Random functions (sessions, compiled steps) from one seed on; every failure is printed.

    With ``--log FILE`` finished chunks are noted there, and left out when it is asked for again.
    """
    log = Log(args.log, f"{args.command} {CHUNK}")
    starts = range(args.seed, args.seed + args.programs, CHUNK)
    todo = [s for s in starts if str(s) not in log.done]
    done, bad = CHUNK * (len(starts) - len(todo)), list(log.failures)
    begin = told = time.perf_counter()
    with ProcessPoolExecutor(args.workers) as pool:
        chunks = pool.map(partial(_chunk, args.command, count=CHUNK), todo)
        for start, found in zip(todo, chunks, strict=True):
            bad += found
            done += CHUNK
            log.note(str(start), found)
            if found or time.perf_counter() - told > 30:
                told = time.perf_counter()
                rate = f"{told - begin:.0f} s"
                print(
                    f"{done} programs, {len(bad)} failures, {rate}", *found, sep="\n  ", flush=True
                )
    print(f"{done} programs from seed {args.seed}: {len(bad)} failures")
    return bool(bad)


def interrupts(args: argparse.Namespace) -> int:
    """Real signals in everything that changes state; ``--programs`` counts those on each path."""
    from tests.trust.interrupts import PATHS, trials

    half = 0
    for name in PATHS:
        results = trials(name, args.programs, args.seed)
        half += results["half"]
        print(f"{name}: {results}", flush=True)
    return bool(half)


class Log:
    """A file of finished parts, so that a campaign can be stopped and taken up again."""

    def __init__(self, path: str | None, kind: str) -> None:
        self.path, self.kind = path, kind
        self.done: set[str] = set()
        self.failures: list[str] = []
        if path and Path(path).exists():
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                name, part, found = json.loads(line)
                if name == kind:
                    self.done.add(part)
                    self.failures += found

    def note(self, part: str, failures: list[str]) -> None:
        self.done.add(part)
        if self.path:
            with Path(self.path).open("a", encoding="utf-8") as file:
                file.write(json.dumps([self.kind, part, failures]) + "\n")


def bugs(args: argparse.Namespace) -> int:
    """Put every bug of the list into the package; the fuzzers must find it."""
    from tests.trust.bug_list import BUGS
    from tests.trust.seeded_bugs import find_all

    def tell(name: str, result: str) -> None:
        print(f"{result:50} {name}", flush=True)

    found = find_all(BUGS, args.programs, args.workers, tell)
    count = sum(r.startswith("found") for r in found.values())
    print(f"{count} of {len(found)} bugs found within {args.programs} programs of each kind")
    return int(count < len(found))


def mutate(args: argparse.Namespace) -> int:
    """Mutants of modules; the survivors are printed."""
    from tests.trust.mutation import score

    return int(any(s.survivors for s in score(args)))


def depth(args: argparse.Namespace) -> int:
    """One chain, forward, backward and freed."""
    import minigrad as mg

    x = y = mg.tensor(0.5, requires_grad=True)
    for _ in range(args.ops):
        y = mg.sin(y)
    y.backward()
    print(f"a chain of {args.ops} ops, gradient {float(x.grad):.6g}")
    del y
    return 0


def raises(args: argparse.Namespace) -> int:
    """The errors of the package that no test raises."""
    from tests.trust.raises import report

    report(args.tests)
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    **dict.fromkeys([*SEEDED, *CHUNKS], fuzz),
    "interrupts": interrupts,
    "bugs": bugs,
    "mutate": mutate,
    "depth": depth,
    "raises": raises,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for one mutant")
    parser.add_argument("--tests", action="append", default=[], help="instead of all that fit")
    parser.add_argument("--again", default=None, help="what mutate printed: only its survivors")
    parser.add_argument("--log", default=None, help="a file to stop and go on with")
    parser.add_argument("--ops", type=int, default=1_000_000)
    args = parser.parse_args()
    begin = time.perf_counter()
    code = COMMANDS[args.command](args)
    print(f"{time.perf_counter() - begin:.0f} s")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
