"""Run the benchmark: all peers side by side, ratios in one run, gradients compared before anything is timed.

    python benchmarks/run.py                      # what is installed
    python benchmarks/run.py --workloads W1s --rounds 9 --write docs/benchmarks.md

Each peer lives in a process of its own with one thread; in every round each takes one slice of time, in shuffled order.
The figure is the median over rounds of (peer / by hand).  Only ratios are worth reading: machines drift.
Peers to install: ``pip install torch autograd dezero``.
"""
from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


def work(pipe: Any, peer: str, workload: str) -> None:
    """The life of one peer: answer with gradients, then with times."""
    import numpy as np
    from peers import PEERS
    from workloads import make

    try:
        runner = PEERS[peer](make(workload))
        pipe.send([np.asarray(g, np.float64) for g in runner.grads()])
        runner.step()
        while (count := pipe.recv()) is not None:
            start = time.perf_counter()
            for _ in range(count):
                runner.step()
            pipe.send((time.perf_counter() - start) / count)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def measure(workload: str, peers: list[str], rounds: int, slice_: float) -> dict[str, Any]:
    """Ratios to the first peer, or the reason why there is none."""
    import numpy as np

    context = mp.get_context("spawn")
    result: dict[str, Any] = {}
    live, reference = {}, None
    for peer in peers:
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, peer, workload), daemon=True)
        process.start()
        answer = here.recv() if here.poll(300) else "no answer"
        if isinstance(answer, str):
            result[peer] = answer
            continue
        reference = answer if reference is None else reference
        error = max(float(np.abs(a - b).max() / (np.abs(b).max() + 1e-30)) for a, b in zip(answer, reference))
        if error > 1e-4:
            result[peer] = f"gradients differ by {error:.1e}"
            continue
        here.send(3)
        here.send(max(1, int(slice_ / max(here.recv(), 1e-7))))
        here.recv()
        here.send(3)
        live[peer] = (here, max(1, int(slice_ / max(here.recv(), 1e-7))), [])
    order = list(live)
    for _ in range(rounds):
        random.Random(len(order)).shuffle(order)
        for peer in order:
            here, count, times = live[peer]
            here.send(count)
            times.append(here.recv())
    base = live[peers[0]][2]
    for peer, (here, _, times) in live.items():
        here.send(None)
        ratio = statistics.median(t / b for t, b in zip(times, base))
        result[peer] = (ratio, statistics.median(times) * 1e6)
    return {p: result[p] for p in peers}


def chain(length: int = 1_000_000) -> str:
    """W3: a chain of sines: time per op and memory per op."""
    import resource

    import minigrad as mg

    x = mg.tensor(0.5, requires_grad=True)
    mg.sin(x).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    y = x
    for _ in range(length):
        y = mg.sin(y)
    middle = time.process_time()
    size = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / length
    y.backward()
    end = time.process_time()
    del y
    return (f"{length:,} sines: forward {(middle - start) / length * 1e6:.2f} µs, backward {(end - middle) / length * 1e6:.2f} µs per op; "
            f"{size:.0f} bytes per op, of which the saved value takes 32")


def import_time() -> str:
    """W9: importing, compared with importing NumPy."""
    import subprocess

    def best(code: str) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE.parent)
            times.append(time.perf_counter() - start)
        return min(times)

    plain, ours = best("import numpy"), best("import minigrad")
    return f"import minigrad: {ours / plain:.2f} × import numpy"


def main() -> None:
    from peers import PEERS
    from workloads import NAMES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(NAMES))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slice", type=float, default=0.05, help="seconds per peer and round")
    parser.add_argument("--write", type=Path, help="write a page with the table")
    options = parser.parse_args()
    peers, names = options.peers.split(","), options.workloads.split(",")
    table = {}
    for name in names:
        table[name] = measure(name, peers, options.rounds, options.slice)
        print(name, {p: f"{v[0]:.2f}" if isinstance(v, tuple) else v for p, v in table[name].items()}, flush=True)
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    notes = []
    for peer in peers:
        cells = []
        for name in names:
            value = table[name][peer]
            cells.append(f"{value[0]:.2f}" if isinstance(value, tuple) else "–")
            if not isinstance(value, tuple):
                notes.append(f"* {peer}, {name}: {value}")
        lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    extra = [chain(), import_time()]
    page = "\n".join(["# Benchmarks", "", "Time per training step, as a ratio to NumPy by hand (allocating), one thread, float32; lower is better. "
                      f"Median of {options.rounds} interleaved rounds; gradients agree before anything is timed.", "", *lines, "",
                      *notes, "", *(f"* {e}" for e in extra), "", "Made by `python benchmarks/run.py --write docs/benchmarks.md`.", ""])
    print(page)
    if options.write:
        options.write.write_text(page)


if __name__ == "__main__":
    main()
