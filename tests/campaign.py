"""The slow campaigns, one command each.

python -m tests.campaign fuzz --programs 200000 --seed 0
python -m tests.campaign sessions --programs 20000
python -m tests.campaign bugs
python -m tests.campaign mutate --module minigrad.eager.backward --module minigrad.eager.walk
python -m tests.campaign depth --ops 1000000
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

CHUNK = 250


def _chunk(kind: str, first: int, count: int) -> list[str]:
    """Run some programs; one line per failure."""
    from tests.trust.engine_machine import seeded_session
    from tests.trust.fuzz import check
    from tests.trust.random_functions import draw

    warnings.simplefilter("ignore")
    run: Callable[[int], object] = seeded_session
    if kind == "fuzz":
        run = lambda seed: check(draw(seed, 40), seed)
    bad = []
    for seed in range(first, first + count):
        try:
            run(seed)
        except Exception as error:
            bad.append(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0]}")
    return bad


def fuzz(args: argparse.Namespace) -> int:
    """Random functions (or sessions) from one seed on; every failure is printed."""
    starts = range(args.seed, args.seed + args.programs, CHUNK)
    bad: list[str] = []
    with ProcessPoolExecutor(args.workers) as pool:
        for k, found in enumerate(pool.map(partial(_chunk, args.command, count=CHUNK), starts)):
            bad += found
            if (k + 1) % 40 == 0 or found:
                print(f"{(k + 1) * CHUNK} programs, {len(bad)} failures", *found, sep="\n  ", flush=True)
    print(f"{len(starts) * CHUNK} programs from seed {args.seed}: {len(bad)} failures")
    return bool(bad)


def bugs(args: argparse.Namespace) -> int:
    """Put every bug of the list into the package; the fuzzers must find it."""
    from tests.trust.bug_list import BUGS
    from tests.trust.seeded_bugs import find_all

    found = find_all(BUGS, args.programs, args.workers)
    for name, result in found.items():
        print(f"{result:50} {name}")
    count = sum(r.startswith("found") for r in found.values())
    print(f"{count} of {len(found)} bugs found within {args.programs} programs of each kind")
    return int(count < len(found))


def mutate(args: argparse.Namespace) -> int:
    """Mutants of modules; the survivors are printed."""
    from tests.trust.mutation import score

    for module in args.module:
        print(score(module, args.sample, args.seed, args.workers), flush=True)
    return 0


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


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "fuzz": fuzz,
    "sessions": fuzz,
    "bugs": bugs,
    "mutate": mutate,
    "depth": depth,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--sample", type=int, default=None)
    parser.add_argument("--ops", type=int, default=1_000_000)
    args = parser.parse_args()
    begin = time.perf_counter()
    code = COMMANDS[args.command](args)
    print(f"{time.perf_counter() - begin:.0f} s")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
