"""The page and the picture made of what was measured."""
from __future__ import annotations

import itertools
import platform
import statistics
from pathlib import Path
from typing import Any

MARKS = "|DsPo^vX"  #: the shapes of the peers in the chart
Table = dict[str, dict[str, Any]]  #: workload → peer → seconds of each round, or why there are none


def page(table: Table, peers: list[str], rounds: int, extra: list[str]) -> str:
    """The figures as Markdown."""
    import numpy as np
    import workloads

    about = (workloads.__doc__ or "").split("\n\n")[1]
    notes = [f"* {peer}, {name}: {row[peer]}" for name, row in table.items() for peer in peers if isinstance(row.get(peer), str)]
    absolute = {name: f"{statistics.median(row['by hand']) * 1e6:,.0f}" for name, row in table.items() if isinstance(row.get("by hand"), list)}
    return "\n".join([
        "# Benchmarks", "",
        f"Time of a training step, one thread; lower is better. Median of {rounds} interleaved rounds; gradients agree before anything is timed. "
        f"Python {platform.python_version()}, NumPy {np.__version__}, {processor()}.", "",
        f"![{described(charted(table), peers)}](pictures/benchmarks.svg)", "",
        "## To NumPy by hand (allocating)", "", *grid(table, peers, "by hand"), "",
        "By hand, in µs: " + ", ".join(f"{name} {t}" for name, t in absolute.items()) + ".", "",
        "## To the floor (NumPy in memory made once)", "", *grid(table, peers, "floor"), "",
        "## The workloads", "", "```text", *(line.removeprefix("    ") for line in about.splitlines()), "```", "",
        "## Beside them", "", *(f"* {e}" for e in extra), *(["", "Not measured:", "", *notes] if notes else []), "",
        "Made by `python benchmarks/run.py --write docs`.", "",
    ])  # fmt: skip


def processor() -> str:
    """The processor's name, where the system says it: ratios to NumPy depend on it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def charted(table: Table) -> Table:
    """The table without W2: one number at a time costs a thousand times what arrays do, and would squeeze the rest."""
    return {name: row for name, row in table.items() if name != "W2"}


def described(table: Table, peers: list[str]) -> str:
    """The chart in words: what is shown, and where minigrad stands."""
    from run import ratios

    found = {name: ratios(row, "by hand") for name, row in table.items()}
    said = [f"Chart of the table below: one row per workload ({', '.join(table)}), one mark per peer, at its time relative to NumPy by hand on a logarithmic axis"]
    for peer in (p for p in peers if p.startswith("minigrad")):
        times = [r[peer] for r in found.values() if peer in r]
        if times:
            said.append(f"{peer} takes {min(times):.2f} to {max(times):.2f} of that time (median {statistics.median(times):.2f})")
    ours = "minigrad compiled inexact"
    for other in ("PyTorch", "JAX jit"):
        both = [r for r in found.values() if ours in r and other in r]
        if both:
            said.append(f"{ours} is faster than {other} in {sum(r[ours] < r[other] for r in both)} of {len(both)} workloads")
    return "; ".join(said) + "."


def grid(table: Table, peers: list[str], base: str) -> list[str]:
    """One line per peer, one column per workload."""
    from run import ratios

    found = {name: ratios(row, base) for name, row in table.items()}
    lines = ["| | " + " | ".join(table) + " |", "|---|" + "---:|" * len(table)]
    for peer in peers:
        cells = [f"{found[name][peer]:.2f}" if peer in found[name] else "–" for name in table]
        lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    return lines


def chart(table: Table, peers: list[str], path: Path) -> None:
    """One row of marks per workload, the time to NumPy by hand on a logarithmic axis; a peer is known by its shape, too."""
    import matplotlib
    from matplotlib.figure import Figure
    from run import ratios

    from minigrad.viz.graph.style import BLUE, GREEN, GREY, OLIVE, PAPER, PURPLE, TEXT, VERMILLION

    colours = (BLUE, VERMILLION, GREEN, PURPLE, OLIVE, GREY)
    matplotlib.rcParams |= {"svg.hashsalt": "minigrad", "svg.fonttype": "none"}
    names, shown = list(table), [p for p in peers if p != "by hand"]
    figure = Figure((8, 0.45 * len(names) + 1.6), layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot()
    axes.set_title("Time of a training step", loc="left", color=TEXT, fontweight="bold", fontsize=12)
    axes.set_xlabel("relative to NumPy by hand", color=TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(1, color=GREY, lw=1)
    for k, (peer, mark) in enumerate(zip(shown, itertools.cycle(MARKS))):
        points = [(r[peer], row) for row, name in enumerate(names) if peer in (r := ratios(table[name], "by hand"))]
        if points:
            ours = peer.startswith("minigrad")
            axes.scatter(*zip(*points), label=peer, s=64 if ours else 36, marker=mark, color=colours[k % len(colours)], lw=1.5, zorder=3 if ours else 2)
    axes.set(xscale="log", yticks=range(len(names)), yticklabels=names)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", color="#E4E4E4", lw=0.5)
    axes.grid(visible=False, axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, labelcolor=TEXT, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
