"""What is measured without peers: a long chain (W3), importing (W9), and the capstone's GPT (W10)."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAIN = """
import resource, time
import minigrad as mg
x = mg.tensor(0.5, requires_grad=True)
mg.sin(x).backward()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, start, y = peak(), time.process_time(), x
for _ in range({length}):
    y = mg.sin(y)
middle, after = time.process_time(), peak()
y.backward()
print((middle - start) / {length} * 1e6, (time.process_time() - middle) / {length} * 1e6, (after - before) / {length})
"""


def chain(length: int = 1_000_000) -> str:
    """W3: a chain of sines of one number, in a process of its own."""
    code = CHAIN.format(length=length)
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)
    forward, backward, size = map(float, done.stdout.split())
    return (
        f"W3, a chain of {length:,} sines: forward {forward:.2f} µs, backward {backward:.2f} µs per op; "
        f"{size:.0f} bytes per op, of which the saved number takes 32"
    )


def import_time(rounds: int = 15) -> str:
    """W9: importing, beside importing NumPy; the best of several, taken in turns."""
    best = {"import numpy": 1e9, "import minigrad": 1e9}
    with tempfile.TemporaryDirectory() as cache:  # with bytecode from the second time on, as installed packages have it
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        for _ in range(rounds):
            for code in best:
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment)
                best[code] = min(best[code], time.perf_counter() - start)
    return f"W9, `import minigrad`: {best['import minigrad'] / best['import numpy']:.2f} × `import numpy`"


MICROGPT = """
import statistics, sys, time
sys.path[:0] = ["tests/steps"]
import test_capstone as tests
data = tests.DATA[:4]
steps = {backend: tests.step.written_down(backend=backend) for backend in ("numpy", "c")}
runs = {backend: lambda step=step: tests.step.by_program(data, step) for backend, step in steps.items()}
runs["scalars"] = lambda: tests.by_scalars(data)
counts = {"numpy": 25, "c": 250, "scalars": 1}
times = {name: [] for name in runs}
for _ in range(6):
    for name, run in runs.items():
        start = time.perf_counter()
        for _ in range(counts[name]):
            run()
        times[name].append((time.perf_counter() - start) / counts[name] / len(data))
for name in ("scalars", "numpy", "c"):
    print(statistics.median(t / c for t, c in zip(times[name][1:], times["c"][1:])), statistics.median(times[name]) * 1e6)
"""


def microgpt() -> str:
    """W10: a training step of the capstone's GPT on an engine of single numbers, as a compiled Program, and as C."""
    done = subprocess.run([sys.executable, "-c", MICROGPT], check=True, cwd=ROOT, capture_output=True, text=True)
    (scalars, slow), (numpy, middle), (_, fast) = (map(float, line.split()) for line in done.stdout.splitlines())
    return (
        f"W10, a training step of the capstone's GPT: in C {fast:,.1f} µs; the NumPy step takes {numpy:.1f} times that ({middle:,.0f} µs), "
        f"an engine of single Python numbers {scalars:,.0f} times ({slow / 1e3:,.0f} ms)"
    )
