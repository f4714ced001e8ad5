"""Mutation testing: change a module in one place, run the tests that should notice, count who survives.

``python -m tests.trust.mutation MODULE NUMBER`` is one such process: it ends with 0 if the mutant survived.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from tests.trust.altered import alter, source_of
from tests.trust.mutants import Mutant, mutants, mutated

ROOT = Path(__file__).parents[2]

#: module (or package) → the tests that are run for its mutants, after a short run of the fuzzers
TESTS = {
    "minigrad.eager": [
        "tests/eager",
        "tests/trust/test_regressions.py",
        "tests/trust/test_state.py",
    ],
    "minigrad.ops": ["tests/ops", "tests/eager/test_engine.py"],
    "minigrad.static": ["tests/static", "tests/trust/test_corpus.py"],
    "minigrad.registry": ["tests/eager", "tests/ops/test_records.py"],
}
SECONDS = 120  #: a mutant that runs longer is found: it does not come back


@dataclass
class Score:
    """What became of the mutants of a module."""

    module: str
    found: int = 0
    survivors: list[Mutant] = field(default_factory=list)

    def __str__(self) -> str:
        total = self.found + len(self.survivors)
        share = 100 * self.found / max(total, 1)
        lines = [f"{self.module}: {self.found} of {total} mutants found ({share:.1f} %)"]
        return "\n".join(lines + [f"  survives: {m}" for m in self.survivors])


def tests_of(module: str) -> list[str]:
    """The quick tests for a module, those that exist."""
    names = next(v for k, v in TESTS.items() if module.startswith(k))
    return [n for n in names if (ROOT / n).exists()]


def survives(module: str, mutant: Mutant) -> bool:
    """Run the tests on one mutant in a process of its own."""
    command = [sys.executable, "-m", "tests.trust.mutation", module, str(mutant.number)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def score(module: str, sample: int | None = None, seed: int = 0, workers: int = 2) -> Score:
    """Run all mutants of a module, or a sample drawn by a seed."""
    chosen = mutants(source_of(module))
    if sample is not None and sample < len(chosen):
        picks = np.random.default_rng(seed).choice(len(chosen), sample, replace=False)
        chosen = [chosen[k] for k in sorted(picks)]
    with ThreadPoolExecutor(workers) as pool:
        alive = list(pool.map(partial(survives, module), chosen))
    survivors = [m for m, a in zip(chosen, alive, strict=True) if a]
    return Score(module, len(chosen) - len(survivors), survivors)


def run_one(module: str, number: int) -> int:
    """In the process of its own: 0 if neither the fuzzers nor the tests notice."""
    import pytest

    alter(module, lambda source: mutated(source, number))
    from tests.trust.seeded_bugs import hunt

    if hunt(60) != "not found":
        return 1
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests_of(module)]))


if __name__ == "__main__":
    raise SystemExit(run_one(sys.argv[1], int(sys.argv[2])))
