"""Mutation testing: change a module in one place, run the tests that reach the place, count who survives.

The tests are collected and run once, with a note of the lines each one reaches.  Then every mutant is a fork of
this process: the code of the changed function is replaced where it stands, and the tests that reach the changed line
run, the quickest first, until one fails.  Mutants of what runs at import (defaults, constants) import the package anew.

Survivors that change nothing that matters stand in ``survivors.txt`` with a reason; they are not run and do not count.
"""

from __future__ import annotations

import ast
import gc
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from tests.trust.altered import alter, source_of
from tests.trust.coverage_of_items import reach, run
from tests.trust.mutants import Mutant, mutants, mutated
from tests.trust.patching import Changes, Live, changes, live_functions, parts, patch

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")

#: the tests that are collected, by what a module belongs to; "" is for all
TESTS = {
    "minigrad.eager": ["tests/eager", "minigrad/eager"],
    "minigrad.explain": ["tests/explain", "minigrad/explain"],
    "minigrad.ops": ["tests/ops", "tests/eager", "minigrad/ops"],
    "minigrad.ops.shape": ["tests/static", "tests/trust/test_inference.py"],
    "minigrad.static": ["tests/static", "minigrad/static"],
    "minigrad.nets": ["tests/nets", "minigrad/nets"],
    "minigrad.compiler": ["tests/compiler", "minigrad/compiler"],
    "minigrad.optim": ["tests/optim", "minigrad/optim"],
    "minigrad.primitives.registry": [
        "tests/eager",
        "tests/primitives",
        "tests/ops/test_records.py",
        "minigrad/primitives/registry.py",
    ],
    "minigrad.primitives.arguments": [
        "tests/eager",
        "tests/primitives",
        "tests/ops/test_records.py",
        "minigrad/primitives/arguments.py",
    ],
    "minigrad.nn": ["tests/nn", "minigrad/nn"],
    "minigrad.functional": [
        "tests/test_functional.py",
        "tests/test_check.py",
        "minigrad/functional.py",
    ],
    "": ["tests/trust/test_corpus.py", "tests/trust/test_state.py", "tests/errors"],
}
#: what finds most, before it is known what finds what
FUZZERS = {
    "tests/trust/test_engine_model.py": "minigrad.eager",
    "tests/trust/test_random_programs.py": "minigrad.static",
}
#: what these write is kept from the first call of a primitive on: coverage sees that one test, and any may find a mutant
KEPT = ("minigrad.eager.record",)
#: tests of time are left out: mutants run side by side
UNSTEADY = "not takes_time and not in_proportion and not per_op and not linear_in"
MEMORY = 3 * 2**30
FOUND, SURVIVED, NO_TEST = 1, 0, 5  #: as pytest says it
FORK, FRESH = get_context("fork"), get_context("forkserver")
FRESH.set_forkserver_preload(["numpy", "pytest"])
AT_MOST = 120  #: tests for a mutant that imports the package anew


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
            text += f", {len(self.harmless)} more have a reason"
        lines = [f"  survives: {key(self.module, m)}  # line {m.line}" for m in self.survivors]
        return "\n".join([text, *lines])


def key(module: str, m: Mutant) -> str:
    """How a mutant is named in the list of survivors: without line numbers, which move."""
    again = f" ({m.nth})" if m.nth > 1 else ""
    return f"{module.removeprefix('minigrad.')} | {m.function} | {m.before} → {m.after}{again}"


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
        self.anew = False  #: whether mutants write the functions of primitives anew

    def pytest_runtestloop(self, session: Any) -> bool:
        files = {m: file_of(m) for m in self.args.module}
        self.items = {i.nodeid: i for i in session.items}
        for name in self.items:
            self.kills[name] = 20 * name.startswith(tuple(FUZZERS))
        begin = time.perf_counter()
        self.reach = reach(session.items, set(files.values()))
        taken = time.perf_counter() - begin
        tell(f"{len(self.reach)} of {len(session.items)} tests pass and are used, {taken:.0f} s")
        live = {file: live_functions(file) for file in files.values()}
        self.control()
        gc.freeze()  # forks share what nobody touches
        for module, file in files.items():
            self.scores.append(self.score(module, file, live[file]))
            tell(str(self.scores[-1]))
        return True

    def control(self) -> None:
        """Nothing is found where nothing is changed, in either kind of process."""
        names = sorted(self.reach, key=lambda n: self.reach[n][0])[:AT_MOST]
        tests = [self.items[n] for n in names]
        for process in (
            FORK.Process(target=self.be, args=(tests, [], 2)),
            FRESH.Process(target=be_fresh, args=("", -1, names, self.limit)),
        ):
            process.start()
            process.join()
            assert process.exitcode == SURVIVED, "the package as it is was found"

    def score(self, module: str, file: str, live: Live) -> Score:
        source = source_of(module)
        old = list(parts(compile(ast.parse(source), file, "exec")))
        self.lines = {n: {k for f, k in r if f == file} for n, (_, r) in self.reach.items()}
        self.anew = module in KEPT
        if self.anew:
            every = {k for r in self.lines.values() for k in r}
            self.lines = {n: every for n in self.lines}
        todo, kept = chosen(module, self.args.sample, self.args.seed), reasons()
        score = Score(module, harmless=[m for m in todo if key(module, m) in kept])
        todo = [m for m in todo if m not in score.harmless]
        if self.args.again:
            said = Path(self.args.again).read_text(encoding="utf-8")
            todo = [m for m in todo if f"  survives: {key(module, m)}  # line {m.line}\n" in said]
        for m, code in self.results(module, file, todo, live, old):
            if code != SURVIVED:
                score.found += 1
            else:
                score.survivors.append(m)
                tell(f"  survives: {key(module, m)}  # line {m.line}")
        return score

    def results(
        self, module: str, file: str, todo: list[Mutant], live: Live, old: list[CodeType]
    ) -> Iterator[tuple[Mutant, int]]:
        """Every mutant with what its process said; several processes at a time."""
        running: dict[int, tuple[Mutant, Any, int]] = {}
        waiting = list(reversed(todo))
        while waiting or running:
            while waiting and len(running) < self.args.workers:
                m = waiting.pop()
                ours, theirs = os.pipe()
                process = self.process(module, file, m, live, old, theirs)
                process.start()
                os.close(theirs)
                running[process.sentinel] = m, process, ours
            for ended in wait(list(running)):
                m, process, ours = running.pop(ended)
                process.join()
                with open(ours, encoding="utf-8") as said:
                    self.kills.update(said.read().splitlines())
                yield m, process.exitcode

    def process(
        self, module: str, file: str, m: Mutant, live: Live, old: list[CodeType], say: int
    ) -> Any:
        """The process that is the mutant: a fork of this one, or, if it must import anew, of one without the package."""
        tests = self.reaching(file, m)
        changed = changes(live, old, mutated(source_of(module), m.number), file)
        if (changed and self.runs(m)) or not tests:
            return FORK.Process(target=self.be, args=(tests, changed, say))
        names = [t.nodeid for t in tests[:AT_MOST]]
        return FRESH.Process(target=be_fresh, args=(module, m.number, names, self.limit))

    @property
    def limit(self) -> float:
        return float(self.args.seconds * 6 + 20)

    def be(self, tests: list[Any], changed: Changes, say: int) -> None:
        """In a process of its own: be the mutant, say which test found it, and end."""
        code = FOUND
        try:
            limited(self.limit)
            silent()
            patch(changed)
            if self.anew:
                forget()
            code = SURVIVED
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                if not run(test, following):
                    os.write(say, test.nodeid.encode())
                    code = FOUND
                    break
        finally:
            os._exit(code)

    def runs(self, m: Mutant) -> list[str]:
        """The tests that reach a mutant; none if it runs at import only, like what a decorator does."""
        places = range(m.lines[0], m.lines[1] + 1)
        return [n for n, r in self.lines.items() if any(k in r for k in places)]

    def reaching(self, file: str, m: Mutant) -> list[Any]:
        """The tests that reach a mutant, for some seconds: first what found others before, is quick and reaches little.

        What runs at import all of the module may find, and first those that reach a line which speaks of it.
        """
        fitting, lines = self.runs(m), set[int]()
        if not fitting:
            fitting, lines = list(self.lines), mentions(file, m)

        def cost(name: str) -> tuple[bool, float]:
            seconds = self.reach[name][0] * len(self.lines[name]) / (1 + self.kills[name])
            return not self.lines[name] & lines, seconds

        fitting.sort(key=cost)
        total, tests = 0.0, []
        for name in fitting:
            total += self.reach[name][0]
            if total > self.args.seconds and len(tests) >= 20:
                break
            tests.append(self.items[name])
        return tests


def mentions(file: str, m: Mutant) -> set[int]:
    """The lines of a module that speak of what a statement of it defines."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    statement = next(n for n in tree.body if m.lines[0] <= (n.end_lineno or n.lineno))
    made = {
        n.id
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in made}


def tell(text: str) -> None:
    print(text, file=sys.__stdout__, flush=True)


def file_of(module: str) -> str:
    __import__(module)
    return str(sys.modules[module].__file__)


def forget() -> None:
    """Every primitive gets its functions written anew."""
    from minigrad.primitives.registry import REGISTRY

    for primitive in REGISTRY.values():
        primitive.forget()


def limited(seconds: float) -> None:
    """A mutant that runs, sleeps or grows without end is found."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(900)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def silent() -> None:
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)


# -- processes that import the package anew ------------------------------------------------


def be_fresh(module: str, number: int, tests: list[str], seconds: float) -> None:
    """In a process that has not imported the package: import the mutant, and run some tests on it.

    Number -1 is the package as it is.
    """
    code = FOUND
    try:
        limited(seconds)
        silent()
        os.chdir(ROOT)
        sys.dont_write_bytecode = True
        if number >= 0:
            alter(module, lambda source: mutated(source, number))
            __import__(module)  # now: a file with doctests pytest would read by itself, unaltered
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
        code = pytest_main(files, "-x", plugins=[Only(tests)])
    finally:
        os._exit(SURVIVED if code in (SURVIVED, NO_TEST) else FOUND)


class Quick:
    """A pytest plugin: Hypothesis neither remembers nor shrinks."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", phases=phases, database=None, derandomize=True)
        settings.load_profile("mutants")


class Only:
    """A pytest plugin: of the files that are collected, these tests."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: k for k, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid]
        )


def pytest_main(tests: list[str], *options: str, plugins: Any = ()) -> int:
    import pytest

    options = ("-q", "-p", "no:cacheprovider", "-k", UNSTEADY, "-m", "not long", *options)
    return int(pytest.main(["-n0", *options, *tests], plugins=[Quick(), *plugins]))


def score(args: Any) -> list[Score]:
    """The scores of ``args.module``; they are printed as they come."""
    forks = Forks(args)
    pytest_main(args.tests or tests_of(args.module), "--no-header", plugins=[forks])
    return forks.scores
