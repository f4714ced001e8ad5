"""What flows along the edges of a graph in one backward, and where it goes wrong.

Every edge is known by the size of what it brought, so a zero, a NaN or a number that grows can be
followed back to the first node that made it.  The nodes may be of any engine: they have ``next_functions``,
``pull``, ``name()`` and ``seq``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .explanation import as_array

GROWN = 1e6  #: a gradient that grows by more than this on its way explodes
SHRUNK = 1e-7  #: one that shrinks below this part of the largest vanishes
_SINGLE = 1e-3  #: what a single node may take away without being the one to blame


class Flow(NamedTuple):
    """What one slot of a node ``gave`` of what ``came`` to the node: largest numbers, NaN if any is."""

    node: Any
    slot: int
    came: float
    gave: float


def size_of(value: Any) -> float:
    """The largest absolute value of an array; NaN if there is any, 0 where there are no numbers."""
    array = as_array(value)
    return float(np.abs(array).max()) if array.size else 0.0


def flows(
    root: Any, index: int, seed: Any, nodes: Iterable[Any], places: Collection[Any] = ()
) -> tuple[list[Flow], list[tuple[Any, int, Any]]]:
    """One backward, nothing kept but sizes; and (node, slot, gradient) of what came to ``places``."""
    with np.errstate(all="ignore"):  # what is wrong is told, not warned of
        return _flows(root, index, seed, nodes, places)


def _flows(
    root: Any, index: int, seed: Any, nodes: Iterable[Any], places: Collection[Any]
) -> tuple[list[Flow], list[tuple[Any, int, Any]]]:
    arrived: dict[Any, dict[int, Any]] = {root: {index: seed}}
    steps: list[Flow] = []
    parts: list[tuple[Any, int, Any]] = []
    for node in sorted(nodes, key=lambda n: -n.seq):
        held = arrived.pop(node, None)
        if held is None or not node.next_functions:
            continue
        came = max(map(size_of, held.values()))
        specs = enumerate(node.specs) if node.several else ()
        grads = [held.get(k, np.zeros(*spec) if spec else None) for k, spec in specs]
        given = node.pull(grads if node.several else held[0])
        for slot, (to, gradient) in enumerate(zip(node.next_functions, given, strict=False)):
            if to[0] is None or gradient is None:
                continue
            steps.append(Flow(node, slot, came, size_of(gradient)))
            if to in places:
                parts.append((node, slot, gradient))
            slots = arrived.setdefault(to[0], {})
            slots[to[1]] = gradient if to[1] not in slots else slots[to[1]] + gradient
    return steps, parts


def trouble(
    steps: list[Flow], counts: Mapping[Any, int], place: Any, total: Any
) -> tuple[str, str]:
    """(what is wrong with a gradient and where it began, a repair); empty for a healthy one.

    ``counts`` holds the paths from each node to ``place``, ``total`` is the gradient that came there.
    """

    def leads(step: Flow) -> bool:
        to = step.node.next_functions[step.slot]
        return to == place or bool(counts.get(to[0]))

    on_path = [s for s in steps if leads(s)]
    size = size_of(total)
    if not np.isfinite(size):
        bad = [s for s in on_path if np.isfinite(s.came) and not np.isfinite(s.gave)]
        what = "NaN" if np.isnan(size) else "infinite"
        if not bad:
            return f"it is {what} because the gradient that backward started with is", ""
        return _told(f"it is {what}: made first", bad[0])
    if size == 0:
        dead = [s for s in on_path if s.came != 0 and s.gave == 0]
        if not dead:
            same = any(s.gave for s in on_path if s.node.next_functions[s.slot] == place)
            reason = "what its paths bring cancels out" if same else "backward started with zeros"
            return f"every number of it is 0: {reason}", ""
        return _told("every number of it is 0: lost first", dead[0])
    ends = [s.gave for s in steps if not s.node.next_functions[s.slot][0].next_functions]
    largest = max([s.came for s in on_path[:1]] + ends)
    last = [s for s in on_path if s.node.next_functions[s.slot] == place]
    if size < SHRUNK * largest and all(s.gave > _SINGLE * s.came for s in last):
        faded = next((s for s in on_path if 0 < s.gave < SHRUNK * largest), last[-1])
        text = f"it vanishes: {size:.1e}, where others are {largest:.1e}; too small from"
        weakest = min(on_path, key=lambda s: s.gave / s.came if s.came and s.gave else 1.0)
        advice = (
            _advice(weakest.node)
            or "other activations, residual paths, normalization, another initialization"
        )
        return f"{text} {_where(faded)} on", advice
    start = on_path[0].came if on_path else size
    if size > GROWN * max(start, 1e-30):
        grown = next(s for s in on_path if s.gave > GROWN * start)
        advice = "smaller weights or fewer steps, normalization, clip_grad_norm_ before step()"
        return (
            f"it explodes: {size:.1e}, from {start:.1e} at the start; beyond 1e6 of that from {_where(grown)} on",
            advice,
        )
    return "", ""


def forward_trouble(name: str, size: float, nodes: Iterable[Any]) -> tuple[str, str] | None:
    """Where an output that is not finite became so: the first operation, in the order they ran."""
    what = "NaN" if np.isnan(size) else "infinite"
    begin = f"{name} itself is {what}: so is every gradient; it began in the forward pass"
    ran = sorted((n for n in nodes if n.next_functions), key=lambda n: n.seq)
    for node in ran:
        bad = [k for k, v in saved_of(node).items() if not np.isfinite(size_of(v))]
        if bad and not any(k.startswith(("result", "output")) for k in bad):
            makers = [to for to, _ in node.next_functions if to is not None and to.next_functions]
            node = makers[0] if len(makers) == 1 else node
        if bad:
            facts = saved_facts(node)
            return f"{begin} at {node.name()}" + (f" ({facts})" if facts else ""), _advice(node)
    risky = [
        n for n in ran if _advice(n) and any(w in saved_facts(n) for w in (" are 0", "negative"))
    ]
    if risky:
        return f"{begin} at {risky[0].name()} ({saved_facts(risky[0])})", _advice(risky[0])
    return (begin + ", or its data hold such numbers", "") if ran else None


def _told(begin: str, step: Flow) -> tuple[str, str]:
    facts = saved_facts(step.node)
    gave = "zeros" if step.gave == 0 else f"{step.gave:g}"
    text = f"{begin} by {_where(step)}, which got {step.came:.3g} and gave {gave}"
    return text + (f" ({facts})" if facts else ""), _advice(step.node)


def _where(step: Flow) -> str:
    many = len(step.node.next_functions) > 1
    return f"{step.node.name()}[{step.slot}]" if many else str(step.node.name())


def saved_facts(node: Any) -> str:
    """What is remarkable in the saved values of a node: zeros, negative and large numbers, NaN."""
    facts = []
    for name, value in saved_of(node).items():
        array = as_array(value)
        if array.dtype.kind not in "fiub" or not array.size:
            continue
        low, high = array.min(), array.max()
        with np.errstate(all="ignore"):
            counts = {
                "NaN": np.isnan(array),
                "infinite": np.isinf(array),
                "0": array == 0,
                "negative": array < 0,
                "False": array == 0,
            }
        kinds = ("False",) if array.dtype.kind == "b" else ("NaN", "infinite", "0", "negative")
        told = [f"{int(counts[k].sum())} of {array.size} are {k}" for k in kinds if counts[k].any()]
        span = (
            ""
            if array.dtype.kind == "b"
            else f"{low:.4g} to {high:.4g}"
            if low != high
            else f"{low:.4g}"
        )
        facts.append(f"saved {name}: {', '.join(filter(None, [span, *told]))}")
    return "; ".join(facts)


def saved_of(node: Any) -> Mapping[str, Any]:
    """The saved values of a node; none where it let go of them."""
    try:
        saved: Mapping[str, Any] = node.saved
    except Exception:  # freed, or changed in place since: reading says so with an error
        return {}
    return {n: v for n, v in saved.items() if hasattr(v, "shape")}


@cache
def _repairs() -> ConfigParser:
    table = ConfigParser()
    table.read(Path(__file__).parent / "repairs.ini", encoding="utf-8")
    return table


def _advice(node: Any) -> str:
    """What to write in place of an op that spoils its gradient."""
    stem = node.name().partition("Backward")[0].lower()
    return _repairs()["repairs"].get(stem, "")
