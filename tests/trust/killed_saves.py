"""Processes that are killed while they save: the old state is there, or the new one.

``python -m tests.campaign saves --programs 100`` is the long run;
``python -m tests.trust.killed_saves PATH`` is what it kills: it saves over PATH for ever.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from minigrad import nn

ROOT = Path(__file__).parents[2]
ARRAYS, SIZE = 6, 200_000  #: a state that takes a few milliseconds to write


def state(number: int) -> dict[str, np.ndarray]:
    """A state that tells which one it is, in every element."""
    return {f"w{k}": np.full(SIZE, float(number)) for k in range(ARRAYS)}


def save_for_ever(path: Path) -> None:
    """Say each number whose state is on the disk."""
    for number in itertools.count(1):
        nn.save(state(number), path)
        print(number, flush=True)


def problem(path: Path, last: int) -> str:
    """What is wrong with the file of a killed process, which had told that ``last`` is saved."""
    try:
        stored = nn.load(path)
    except Exception as error:
        return f"neither the old nor the new state: {type(error).__name__}: {error}"
    numbers = {float(n) for value in stored.values() for n in np.unique(value)}
    if len(stored) != ARRAYS or len(numbers) != 1:
        return f"a state of {len(stored)} arrays from the saves {sorted(numbers)}"
    (number,) = numbers
    return "" if number in (last, last + 1) else f"save {number:g}, and {last} was done"


def kill_one(seed: int, folder: Path, ending: str) -> str:
    """Kill a process while it saves; what is wrong with its file, or nothing."""
    path = folder / f"{seed}{ending}"
    command = [sys.executable, "-m", "tests.trust.killed_saves", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # one save is done
        time.sleep(random.Random(seed).random() * 0.2)
        process.kill()
        told = process.stdout.read().split()
    return problem(path, int(told[-1]) if told else 1)


def trials(
    first: int, count: int, endings: tuple[str, ...] = (".npz", ".safetensors")
) -> list[str]:
    """Several killed processes; one line for each whose file is no state."""
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            ending = endings[seed % len(endings)]
            if found := kill_one(seed, Path(folder), ending):
                bad.append(f"seed {seed}{ending}: {found}")
    return bad


if __name__ == "__main__":
    save_for_ever(Path(sys.argv[1]))
