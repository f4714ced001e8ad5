"""Mutation testing: change a module in one place, run the tests that reach the place, count who survives.

The tests are collected and run once, with a note of the lines each one reaches.  Then every mutant is a fork of
this process: the code of the changed function is replaced where it stands, and the tests that reach the changed line
run, the quickest first, until one fails.  Mutants of what runs at import get a process of their own.

Survivors that change nothing that matters stand in ``survivors.txt`` with a reason; they do not count.
"""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.trust.altered import alter, source_of
from tests.trust.coverage_of_items import reach, run
from tests.trust.mutants import Mutant, mutants, mutated
from tests.trust.patching import live_functions, patch

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")

#: the tests that are collected, by what a module belongs to; "" is for all
TESTS = {
    "minigrad.eager": ["tests/eager", "minigrad/eager"],
    "minigrad.ops": ["tests/ops", "tests/eager/test_engine.py", "minigrad/ops"],
    "minigrad.static": ["tests/static", "minigrad/static"],
    "minigrad.registry": ["tests/eager", "tests/ops/test_records.py", "minigrad/registry.py"],
    "minigrad.nn": ["tests/nn", "minigrad/nn"],
    "minigrad.functional": ["tests/eager", "minigrad/functional.py"],
    "": [f"tests/trust/test_{n}.py" for n in ("corpus", "regressions", "state")],
}
#: what finds most, before it is known what finds what
FUZZERS = {
    "tests/trust/test_engine_model.py": "minigrad.eager",
    "tests/trust/test_random_programs.py": "minigrad.static",
}
#: tests of time are left out: mutants run side by side
UNSTEADY = "not takes_time and not in_proportion and not per_op and not linear_in"
MEMORY = 3 * 2**30
FOUND, SURVIVED, AT_IMPORT = 1, 0, 3


@dataclass
class Score:
    """What became of the mutants of a module."""

    module: str
    found: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    harmless: list[Mutant] = field(default_factory=list)

    def __str__(self) -> str:
        total = self.found + len(self.survivors)
        share = 100 * self.found / max(total, 1)
        text = f"{self.module}: {self.found} of {total} mutants found ({share:.1f} %)"
        if self.harmless:
            text += f", {len(self.harmless)} more survive with a reason"
        lines = [f"  survives: {key(self.module, m)}  # line {m.line}" for m in self.survivors]
        return "\n".join([text, *lines])


def key(module: str, m: Mutant) -> str:
    """How a mutant is named in the list of survivors: without line numbers, which move."""
    return f"{module.removeprefix('minigrad.')} | {m.function} | {m.before} → {m.after}"


def reasons() -> dict[str, str]:
    """Mutant → why it may survive."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines() if SURVIVORS.exists() else []
    pairs = (x.rsplit(" # ", 1) for x in lines if " # " in x and not x.startswith("#"))
    return {mutant.strip(): reason.strip() for mutant, reason in pairs}


def tests_of(modules: Iterable[str]) -> list[str]:
    """The tests for some modules, those that exist."""
    modules = list(modules)
    names = [n for k, v in TESTS.items() if any(m.startswith(k) for m in modules) for n in v]
    names += [f for f, k in FUZZERS.items() if any(m.startswith(k) for m in modules)]
    return [n for n in dict.fromkeys(names) if (ROOT / n).exists()]


def chosen(module: str, sample: int | None, seed: int) -> list[Mutant]:
    """All mutants of a module, or a sample drawn by a seed."""
    found = mutants(source_of(module))
    if sample is None or sample >= len(found):
        return found
    picks = np.random.default_rng(seed).choice(len(found), sample, replace=False)
    return [found[k] for k in sorted(picks)]


# -- forks ---------------------------------------------------------------------------------


class Forks:
    """A pytest plugin that runs the tests on mutants instead of once."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.scores: list[Score] = []
        self.kills: Counter[str] = Counter()  #: test → mutants it found

    def pytest_runtestloop(self, session: Any) -> bool:
        files = {m: file_of(m) for m in self.args.module}
        self.items = {i.nodeid: i for i in session.items}
        for name in self.items:
            self.kills[name] = 20 * name.startswith(tuple(FUZZERS))
        begin = time.perf_counter()
        self.reach = reach(session.items, set(files.values()))
        taken = time.perf_counter() - begin
        tell(f"{len(self.reach)} of {len(session.items)} tests pass and are used, {taken:.0f} s")
        for module, file in files.items():
            self.scores.append(self.score(module, file))
            tell(str(self.scores[-1]))
        return True

    def score(self, module: str, file: str) -> Score:
        live, tree = live_functions(file), ast.parse(source_of(module))
        todo, kept = chosen(module, self.args.sample, self.args.seed), reasons()
        score = Score(module)
        for k, (m, code) in enumerate(self.results(module, file, todo, live, tree), 1):
            if code != SURVIVED:
                score.found += 1
            else:
                (score.harmless if key(module, m) in kept else score.survivors).append(m)
            if k % 25 == 0:
                tell(f"  {module}: {k} of {len(todo)}, {len(score.survivors)} survive")
        return score

    def results(
        self, module: str, file: str, todo: list[Mutant], live: Any, tree: ast.Module
    ) -> Iterator[tuple[Mutant, int]]:
        """Every mutant with what its process said; several processes at a time."""
        running: dict[int, tuple[Mutant, int]] = {}
        waiting = list(reversed(todo))
        while waiting or running:
            while waiting and len(running) < self.args.workers:
                m = waiting.pop()
                ours, theirs = os.pipe()
                pid = os.fork()
                if not pid:
                    self.be(module, file, m, live, tree, theirs)
                os.close(theirs)
                running[pid] = m, ours
            pid, status = os.wait()
            (m, ours), code = running.pop(pid), os.waitstatus_to_exitcode(status)
            with open(ours, encoding="utf-8") as said:
                self.kills.update(said.read().splitlines())
            if code == AT_IMPORT:
                names = [t.nodeid for t in self.reaching(file, m, everywhere=True)]
                code = fresh(module, m, names)
            yield m, code

    def be(self, module: str, file: str, m: Mutant, live: Any, tree: ast.Module, say: int) -> None:
        """In a process of its own: be the mutant, say which test found it, and end."""
        code = FOUND
        try:
            limited(self.args.seconds * 6 + 20)
            if not patch(live, tree, mutated(source_of(module), m.number), file):
                os._exit(AT_IMPORT)
            tests = self.reaching(file, m)
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
                code = SURVIVED
                for test, following in zip(tests, [*tests[1:], None], strict=True):
                    if not run(test, following):
                        os.write(say, test.nodeid.encode())
                        code = FOUND
                        break
        finally:
            os._exit(code)

    def reaching(self, file: str, m: Mutant, everywhere: bool = False) -> list[Any]:
        """The tests that reach a mutant (its module), for some seconds.

        First what found others before, then what is quick.
        """
        lines = {(file, n) for n in range(m.lines[0], m.lines[1] + 1)}
        if everywhere:
            lines = {
                line for _, reached in self.reach.values() for line in reached if line[0] == file
            }
        fitting = [n for n, (_, reached) in self.reach.items() if reached & lines]
        fitting.sort(key=lambda n: self.reach[n][0] / (1 + self.kills[n]))
        total, tests = 0.0, []
        for name in fitting:
            total += self.reach[name][0]
            if total > self.args.seconds and len(tests) >= 20:
                break
            tests.append(self.items[name])
        return tests


def tell(text: str) -> None:
    print(text, file=sys.__stdout__, flush=True)


def file_of(module: str) -> str:
    __import__(module)
    return str(sys.modules[module].__file__)


def limited(seconds: float) -> None:
    """A mutant that runs, sleeps or grows without end is found."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(900)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# -- processes of their own ----------------------------------------------------------------


def fresh(module: str, mutant: Mutant, tests: list[str], seconds: int = 900) -> int:
    """Import the mutant anew and run some tests on it."""
    command = [sys.executable, "-m", "tests.trust.mutation", module, str(mutant.number), *tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return FOUND
    return SURVIVED if done.returncode == 0 else FOUND


class Quick:
    """A pytest plugin: Hypothesis neither remembers nor shrinks."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", phases=phases, database=None, derandomize=True)
        settings.load_profile("mutants")


def pytest_main(tests: list[str], *options: str, plugins: Any = ()) -> int:
    import pytest

    options = ("-q", "-p", "no:cacheprovider", "-k", UNSTEADY, "-m", "not long", *options)
    return int(pytest.main([*options, *tests], plugins=[Quick(), *plugins]))


def score(args: Any) -> list[Score]:
    """The scores of ``args.module``; they are printed as they come."""
    forks = Forks(args)
    pytest_main(args.tests or tests_of(args.module), "--no-header", plugins=[forks])
    return forks.scores


if __name__ == "__main__":
    alter(sys.argv[1], lambda source: mutated(source, int(sys.argv[2])))
    raise SystemExit(pytest_main(sys.argv[3:], "-x"))
