"""Run the benchmark: all peers side by side, ratios in one run, gradients compared before anything is timed.

    python benchmarks/run.py                                   # everything that is installed
    python benchmarks/run.py --workloads W1s,W6e --peers "floor,by hand,minigrad eager" --rounds 9
    python benchmarks/run.py --write docs                      # docs/benchmarks.md and docs/pictures/benchmarks.svg

Each peer lives in a process of its own with one thread; in every round each takes one slice of time, in shuffled order.
A figure is the median over rounds of (peer / base) within a round: machines drift, so only ratios are worth reading.
The bases are ``floor`` (NumPy in memory made once) and ``by hand`` (NumPy as one writes it).
Peers to install: ``pip install torch autograd dezero jax casadi matplotlib``; ``pytest``, for the capstone's GPT.
"""
from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
PATIENCE = 300  # seconds until a peer that does not answer is given up
TOLERANCE = 1e-4


def work(pipe: Any, peer: str, workload: str) -> None:
    """The life of one peer: answer with gradients, then with times."""
    import numpy as np
    from peers import PEERS
    from workloads import make

    try:
        runner = PEERS[peer](make(workload))
        pipe.send([np.asarray(g, np.float64) for g in runner.grads()])
        while (count := pipe.recv()) is not None:
            start = time.perf_counter()
            for _ in range(count):
                runner.step()
            pipe.send((time.perf_counter() - start) / count)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


class Dead(Exception):
    """A peer that cannot be measured, and why."""


@dataclass
class Live:
    """A peer in a process of its own."""

    peer: str
    workload: str
    times: list[float] = field(default_factory=list)
    count: int = 1

    def __post_init__(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=work, args=(there, self.peer, self.workload), daemon=True)
        self.process.start()
        there.close()

    def answer(self) -> Any:
        try:
            said = self.pipe.recv() if self.pipe.poll(PATIENCE) else f"no answer within {PATIENCE} s"
        except EOFError:
            said = "its process died"
        if isinstance(said, str):
            raise Dead(said)
        return said

    def seconds(self, count: int) -> float:
        """The time of one step, over ``count`` of them."""
        try:
            self.pipe.send(count)
        except OSError:
            raise Dead("its process died") from None
        return float(self.answer())

    def calibrate(self, slice_: float) -> None:
        """Warm up, and find how many steps fill a slice of time."""
        self.seconds(1)
        self.count = max(1, int(slice_ / max(self.seconds(3), 1e-7)))
        self.count = max(1, int(slice_ / max(self.seconds(self.count), 1e-7)))

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()


def measure(workload: str, peers: list[str], rounds: int, slice_: float) -> dict[str, Any]:
    """peer → the seconds of each round, or the reason why there are none."""
    result: dict[str, Any] = {}
    live: list[Live] = []
    reference = None
    try:
        for peer in ["by hand", *(p for p in peers if p != "by hand")]:
            here = Live(peer, workload)
            try:
                grads = here.answer()
                reference = grads if reference is None else reference
                check(grads, reference)
                here.calibrate(slice_)
                live.append(here)
            except Dead as why:
                here.stop()
                result[peer] = str(why)
        shuffled = random.Random(0)
        for _ in range(rounds):
            shuffled.shuffle(live)
            for here in live:
                here.times.append(here.seconds(here.count))
    finally:
        for here in live:
            here.stop()
    return {**{here.peer: here.times for here in live}, **result}


def check(grads: list[Any], reference: list[Any]) -> None:
    """Gradients must agree with those by hand before anybody is timed."""
    import numpy as np

    if len(grads) != len(reference):
        raise Dead(f"{len(grads)} gradients instead of {len(reference)}")
    error = max(float(np.abs(a - b).max() / (np.abs(b).max() + 1e-30)) for a, b in zip(grads, reference))
    if not error <= TOLERANCE:
        raise Dead(f"gradients differ by {error:.1e}")


def ratios(measured: dict[str, Any], base: str) -> dict[str, float]:
    """peer → median over the rounds of its time to that of the base."""
    if not isinstance(measured.get(base), list):
        return {}
    return {
        peer: statistics.median(t / b for t, b in zip(times, measured[base]))
        for peer, times in measured.items()
        if isinstance(times, list)
    }


def main() -> None:
    from extra import chain, import_time, microgpt
    from peers import PEERS
    from report import chart, charted, page
    from workloads import NAMES

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default=",".join(NAMES))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slice", type=float, default=0.05, help="seconds per peer and round")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="write DOCS/benchmarks.md and its picture")
    options = parser.parse_args()
    peers, table = options.peers.split(","), {}
    for name in options.workloads.split(","):
        table[name] = measure(name, peers, options.rounds, options.slice)
        shown = {p: f"{r:.2f}" for p, r in ratios(table[name], "by hand").items()}
        print(name, "to by hand:", shown, {p: v for p, v in table[name].items() if isinstance(v, str)}, flush=True)
    text = page(table, peers, options.rounds, [chain(), import_time(), microgpt()])
    print(text)
    if options.write:
        chart(charted(table), peers, options.write / "pictures" / "benchmarks.svg")
        (options.write / "benchmarks.md").write_text(text)


if __name__ == "__main__":
    main()
