"""Damaged files: stored programs, changed here and there, by a seed.

python -m tests.static.mutations FIRST COUNT      loads, prints, stores and runs that many; prints every failure
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import sys
import time
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

from minigrad import static
from minigrad.errors import MinigradError, ProgramFormatError
from tests.static.random_programs import program, recipe

WORDS = [
    "", "x", "@EMPTY@", "while", "cond", "mul", "mul_grad", "eval", "__class__", "../x", "a" * 500, "\n", "<b>", "😀",
    None, True, False, 0, -1, 1, 2**31, -(2**70), 1.5, 1e308, [], {}, [[]], ["slice", 0, 0, 0], ["array", "float64", [10**9], []],
    ["tuple", 100000, 100000, 100000], ["dtype", "object"], ["float", "nan"], {"x": ["x"]}, "const_0", "p0", "p0@GRAD",
]  # fmt: skip
RAW = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "[" * 5000,
    '{"a":' * 3000,
    "\x00",
    '"',
    "}",
    "]",
    ",",
    "\\u0000",
    '"x": 1, "x": 2',
    "9" * 5000,
]


def originals() -> list[str]:
    """A handful of stored programs, with and without control flow."""
    return [program(recipe(seed, 8))[0].to_json() for seed in (1, 4, 9, 17, 33, 52, 70)]


ORIGINALS = originals()
SECONDS, MEGABYTES = 1.0, 300  #: what one file may cost


def trial(seed: int) -> bool:
    """Load one damaged file, and use it; whether it was a program all the same."""
    rng = random.Random(seed)
    text = mutated(rng.choice(ORIGINALS), rng)
    start = time.process_time()
    try:
        program = static.Program.from_json(text)
    except ProgramFormatError:
        program = None
    assert time.process_time() - start < SECONDS, "loading took too long"
    if program is None:
        return False
    stored = program.to_json()
    assert static.Program.from_json(stored).to_json() == stored
    str(program)
    with contextlib.suppress(MinigradError):
        static.Executor().run(program, step_limit=20, memory_limit=2**27)
    assert time.process_time() - start < 4 * SECONDS, "printing, storing and running took too long"
    return True


def trials(first: int, count: int) -> list[str]:
    """Several damaged files; one line per failure."""
    bad = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        before = megabytes()
        for seed in range(first, first + count):
            try:
                trial(seed)
            except Exception as error:
                bad.append(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            if (now := megabytes()) - before > MEGABYTES:
                bad.append(f"seed {seed}: {now - before:.0f} MB")
            before = now
    return bad


def megabytes() -> float:
    """The most memory this process has held.

    Linux hands the parent's peak on in ``ru_maxrss``; ``VmHWM`` is the process's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to three changes, in its characters or in its structure."""
    if rng.random() < 0.35:
        return _characters(text, rng)
    data = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        _structure(data, rng)
    return json.dumps(data)


def _characters(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.random()
        if kind < 0.3:
            text = text[:at]
        elif kind < 0.6:
            text = text[:at] + rng.choice(RAW) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + rng.randint(1, 40) :]
        else:
            text = text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]
    return text


def _structure(data: Any, rng: random.Random) -> None:
    """Replace, remove, copy or move one entry somewhere inside."""
    place, key = _somewhere(data, rng)
    kind = rng.random()
    if rng.random() < 0.5:
        _swap_leaf(data, rng)
    elif kind < 0.5:
        place[key] = deepcopy(rng.choice(WORDS))
    elif kind < 0.65 and isinstance(place, list | dict):
        del place[key]
    elif kind < 0.8:
        other, name = _somewhere(data, rng)
        place[key] = json.loads(json.dumps(other[name]))
    elif isinstance(place, dict):
        place[str(rng.choice(WORDS))] = deepcopy(place[key])
    else:
        place.insert(rng.randrange(len(place) + 1), deepcopy(place[key]))


def _swap_leaf(data: Any, rng: random.Random) -> None:
    """Put one name or number where another of its type stood: the file stays plausible."""
    for _ in range(20):
        (a, i), (b, j) = _leaf(data, rng), _leaf(data, rng)
        if type(a[i]) is type(b[j]) and a[i] != b[j]:
            a[i] = b[j]
            return


def _leaf(data: Any, rng: random.Random) -> tuple[Any, Any]:
    place, key = _somewhere(data, rng)
    while isinstance(place[key], dict | list) and place[key]:
        inner = place[key]
        place, key = (
            inner,
            rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner))),
        )
    return place, key


def _somewhere(data: Any, rng: random.Random) -> tuple[Any, Any]:
    place = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return {"x": 1}, "x"
        key = rng.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            return place, key
        place = inner


def main(first: int, count: int) -> int:
    """Print the failures, and the count as it grows."""
    bad, begin = 0, time.perf_counter()
    for start in range(first, first + count, 1000):
        found = trials(start, min(1000, first + count - start))
        bad += len(found)
        if found or start % 20_000 == first % 20_000:
            done, spent = start + 1000 - first, time.perf_counter() - begin
            print(
                f"{done:,} files, {bad} failures, {spent:.0f} s, {megabytes():.0f} MB",
                *found,
                sep="\n  ",
                flush=True,
            )
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2])))
