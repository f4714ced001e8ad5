"""What is measured without peers: a long chain (W3), and importing (W9)."""
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
