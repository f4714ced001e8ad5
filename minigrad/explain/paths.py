"""The paths by which a gradient comes, what each brings, and where it goes wrong on its way.

The gradient is the sum over all paths of the product of the slopes along them.  The walk adds them up where they
meet; here each is followed alone.  Every edge is known by the size of what it brought, so a zero, a NaN or a number
that grows can be followed back to the first node that made it.

The nodes may be of any engine: they have ``next_functions``, ``pull``, ``name()``, ``seq``, ``several`` and ``saved``.
Lists of them begin with the newest.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import read_tables
from ..primitives.arguments import Names
from ..viz.adapters.of_grad_fn import walk_order
from ..viz.graph.format import unwrap

TABLES = read_tables(Path(__file__).with_name("reasons.ini"))
_WAYS = TABLES["ways"]


class Shown:
    """Something that notebooks show as its text."""

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        return {"text/plain": str(self)}


USE = "use"  # what is told one by one, where no paths are
Paths = list[tuple[Names, Any]]  #: the nodes of each, and what it gave
Note = tuple[str, str]  #: what is wrong, and a repair


@dataclass(repr=False)
class Explanation(Shown):
    """What `why` found: ``paths``, from the output to the value, with what each gave; or ``reason``, why there is none.

    The contributions add up to ``total``.
    """

    name: str
    total: Any = None
    paths: Paths = field(default_factory=list)
    reason: str = ""
    repair: str = ""
    roots: Any = ()  # the nodes backward began at: what `draw` draws
    leaf: Any = None
    kind: str = "path"  # or `USE`, with one path to each
    gradient: str = ""  # its name, where operators make it: ``paths`` name them, without values
    count: int = 0  # how many paths there are, where not all are told
    note: str = ""  # the remarks below the paths

    def remark(self, text: str, repair: str = "") -> "Explanation":
        """Add a remark, if there is one; its repair replaces the one before."""
        if text:
            self.note = f"{self.note}\n  {text}".lstrip("\n")
            self.repair = repair or self.repair
        return self

    def __repr__(self) -> str:
        count = self.count or len(self.paths)
        each = " of it, a path to each" * (self.kind == USE)
        ways = f", from {count} {self.kind}{'s' * (count > 1)}{each}:" * bool(self.paths)
        total = "" if self.total is None else short(self.total)
        if self.reason:
            gap = " " * (self.reason[0] != "\n")
            lines = [f"{self.name} has no gradient:{gap}{self.reason}"]
            lines += [f"  it would be {total}{ways}"] * bool(self.paths)
        else:
            known = " = ".join(filter(None, (self.gradient, total)))
            lines = [f"the gradient of {self.name} is {known}{ways}"]
        for path, value in self.paths:
            gave = "?" if value is None else short(value)
            way = path[0] if self.gradient else f"{gave:>12}  by  {' → '.join(path)}"
            lines.append(f"  {way}")
        if count > len(self.paths):
            lines.append(f"  … and {count - len(self.paths)} more")
        lines += filter(None, [self.note, self.repair and f"  repair: {self.repair}"])
        return "\n".join(lines)


class Explanations(Shown, list[Any]):
    """One explanation after the other; what is said of how they were found is said once."""

    def __repr__(self) -> str:
        told = "\n".join(map(str, self))
        before, how, behind = told.partition(TABLES["forgotten"]["reason"])
        return before + how + "\n".join(s for s in behind.split("\n") if how not in s)


def as_array(value) -> Any:
    """The numbers of a Tensor, of this package or of PyTorch, as an array."""
    return np.asarray(unwrap(value))


def short(value) -> str:
    """A value in one line: a large one by its dtype, shape and sum."""
    array = as_array(value)
    if array.size > 8:
        return f"{array.dtype}{list(array.shape)}, sum {array.sum():.5g}"
    return " ".join(np.array2string(array, precision=5, separator=", ").split())  # in one line


def because(subject: str, key: str, **words) -> Explanation:
    """That there is no gradient, with the reason and the repair of that name in the table.

    >>> print(because("n", "whole_numbers", dtype="int64"))
    n has no gradient: it holds int64 numbers, and only floating-point values have gradients
      repair: make them floating-point numbers before requires_grad_()
    """
    words["name"] = subject
    texts: Any = {part: text.format(**words) for part, text in TABLES[key].items()}
    return Explanation(subject, **texts)


MOST_PATHS = 24  #: more are not followed one by one
MOST_PULLS = 1000  #: nor are they where so many rules would run
GROWN = 1e6  #: a gradient that grows by more than this on its way explodes
SHRUNK = 1e-7  #: one that shrinks below this part of the largest vanishes
_SINGLE = 1e-3  #: what a single node may take away without being the one to blame
_NEAR = 1e-3  #: how near two gradients of float32 must be to be the same

Start = Mapping[tuple[Any, int], Any]  #: (node, which of its outputs) → the seed that arrives there
Trail = tuple[tuple[Any, int], ...]  # the nodes and the slot by which each was left


class Flow(NamedTuple):
    """What one slot of a node ``gave`` of what ``came`` to the node: largest numbers, NaN if any is; ``to`` whom."""

    node: Any
    slot: int
    to: Any
    came: float
    gave: float
    ends: bool  # whether nothing follows: a leaf


def traced(
    name: str,
    start: Start,
    nodes: list[Any],
    place,
    output: tuple[str, Any] | None = None,
    flown=None,
) -> Explanation:
    """The paths from the ``start`` to a place, and what is wrong with their sum.

    ``output``: the name and the value it starts from; ``flown``: what `flows` gave, where it ran already, for many
    places.  Without ``total``: a rule on the way gave None.
    """
    own = [start[place]] if place in start else []
    counts = count_paths(nodes, place)
    steps, came = flown or flows(start, nodes, {place})
    parts = [p for p in came if p[0].next_functions[p[1]] == place]
    gave = own + [g for *_, g in parts]
    if not gave:
        return Explanation(name)
    total = sum(gave[1:], gave[0])
    told = Explanation(name, total, [(("the output itself",), as_array(g)) for g in own])
    if output is not None:
        told.remark(*forward_trouble(*output, nodes))
    if parts and not told.note:
        told.remark(*trouble(steps, counts, place, total))
    roots = [node for node, _ in start]
    count = sum(counts[root] for root in roots)
    if count <= MOST_PATHS and count * len(nodes) <= MOST_PULLS:
        shares = followed(start, place, counts)
        told.paths += zip(labels([*shares]), shares.values(), strict=True)
    else:
        told.paths += [(way(roots, n, k), as_array(g)) for n, k, g in parts[:MOST_PATHS]]
        told.kind, told.count = USE, len(gave)
    return told


def count_paths(nodes: list[Any], place) -> dict[Any, int]:
    """How many paths lead from each of these nodes to a place.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> h = x * x
    >>> root = (h * h).grad_fn
    >>> count_paths([root, h.grad_fn], root.next_functions[0][0].next_functions[0])[root]
    4
    """
    found: dict[Any, int] = {}
    for node in reversed(nodes):
        found[node] = sum(1 if to == place else found.get(to[0], 0) for to in node.next_functions)
    return found


def followed(start: Start, place, counts: dict[Any, int]) -> dict[Trail, Any]:
    """What each path from a start to the place brings; newest nodes first."""
    done = {}
    waiting: list[Any] = [(at, seed, ()) for at, seed in start.items()]
    with np.errstate(all="ignore"):  # what is wrong is told, not warned of
        while waiting:
            (node, index), g, trail = waiting.pop()
            if not counts.get(node):
                continue
            for slot, to, p in _given(node, {index: g}):
                here = (*trail, (node, slot))
                if to == place:
                    done[here] = np.array(as_array(p))
                else:
                    waiting.append((to, p, here))
    return dict(sorted(done.items(), key=lambda each: [-node.seq for node, _ in each[0]]))


def walked(
    start: Start, nodes: Iterable[Any], ends: Collection[Any] = ()
) -> Iterator[tuple[Any, Any, list[tuple[int, Any, Any]]]]:
    """(node, what came to it, what it gave: slot, to whom, gradient) of one backward, newest first.

    At ``ends`` nothing goes on.
    """
    arrived = dict(start)
    for node in nodes:
        outputs = range(len(node.specs) if node.several else 1)
        held = {k: arrived.pop((node, k)) for k in outputs if (node, k) in arrived}
        if not held or not node.next_functions:
            continue
        parts = _given(node, held)
        yield node, held.values(), parts
        for _, to, gradient in parts:
            if to not in ends:
                arrived[to] = arrived[to] + gradient if to in arrived else gradient


def flows(
    start: Start, nodes: Iterable[Any], places: Collection[Any]
) -> tuple[list[Flow], list[Any]]:
    """One backward, nothing kept but sizes; and (node, slot, gradient) of what came to ``places``, where it ends."""
    steps = []
    came = []
    with np.errstate(all="ignore"):
        for node, held, parts in walked(start, nodes, places):
            largest = max(map(size_of, held))
            for slot, to, gradient in parts:
                ends = not to[0].next_functions
                steps.append(Flow(node, slot, to, largest, size_of(gradient), ends))
                came += [(node, slot, gradient)] * (to in places)
    return steps, came


def _given(node, held: Mapping[int, Any]) -> list[tuple[int, Any, Any]]:
    """What a node gives of what came to its outputs, zeros for nothing: slot, to whom, gradient."""
    came = held.get(0)
    if node.several:  # without a spec, None stands for no gradient
        specs = enumerate(node.specs)
        came = [held.get(k, np.zeros(*spec) if spec else None) for k, spec in specs]
    gave = enumerate(zip(node.next_functions, node.pull(came), strict=False))
    return [(k, to, g) for k, (to, g) in gave if to[0] is not None and g is not None]


def labels(trails: list[Trail]) -> list[Names]:
    """The nodes of each path, with a slot at the end; with slots everywhere if that tells two paths apart."""
    full = [tuple(f"{node.name()}[{slot}]" for node, slot in t) for t in trails]
    plain = [(*(step.partition("[")[0] for step in steps), last) for *steps, last in full]
    return plain if len({*plain}) == len(plain) else full


def uses(roots: list[Any], nodes: Iterable[Any], place) -> Paths:
    """The ends of the paths to a place, without what they give."""
    return [
        (way(roots, n, k), None)
        for n in nodes
        for k, to in enumerate(n.next_functions)
        if to == place
    ]


def way(roots: list[Any], node, slot: int) -> Names:
    """The ends of the paths that come by a slot of a node; where several lead there, from the first root."""
    last = f"{node.name()}[{slot}]"
    if node in roots:
        return (last,)
    for root in roots:
        if any(to is node for to, _ in root.next_functions):
            return (root.name(), last)
    root = next(root for root in roots if node in walk_order([root]))
    return (root.name(), "…", last)


# -- where it goes wrong ------------------------------------------------------------------


def size_of(value) -> float:
    """The largest absolute value of an array; NaN if there is any, 0 where there are no numbers."""
    return float(np.abs(as_array(value)).max(initial=0))


def trouble(steps: list[Flow], counts: Mapping[Any, int], place, total) -> Note:
    """(what is wrong with a gradient and where it began, a repair); empty for a healthy one.

    ``counts`` holds the paths from each node to ``place``, ``total`` is the gradient that came there.
    """
    on_path = [s for s in steps if s.to == place or counts.get(s.to[0])]
    last = [s for s in on_path if s.to == place]
    size = size_of(total)
    if not np.isfinite(size):
        bad = [s for s in on_path if np.isfinite(s.came) and not np.isfinite(s.gave)]
        what = "NaN" if np.isnan(size) else "infinite"
        if not bad:
            return f"it is {what} because the gradient that backward started with is", ""
        text, repair = _told(f"it is {what}: made first", bad[0])
        return text, repair or _WAYS["explodes"] * bool(np.isinf(bad[0].gave))
    if size == 0 and as_array(total).size:
        dead = [s for s in on_path if s.came != 0 and s.gave == 0]
        if dead and dead[0].came < np.finfo(as_array(total).dtype).tiny:  # the last digit, rounded
            text = f"it vanishes: {dead[0].came:.1e} came to {_where(dead[0])}, and 0 is left"
            return text, _WAYS["vanishes"]
        if dead:
            return _told("every number of it is 0: lost first", dead[0])
        same = any(s.gave for s in last)
        reason = "what its paths bring cancels out" if same else "backward started with zeros"
        return f"every number of it is 0: {reason}", ""
    start = on_path[0].came if on_path else size
    largest = max([start] + [s.gave for s in steps if s.ends])
    if size < SHRUNK * largest and all(s.gave > _SINGLE * s.came for s in last):
        faded = next((s for s in on_path if 0 < s.gave < SHRUNK * largest), last[-1])
        text = f"it vanishes: {size:.1e}, where others are {largest:.1e}; too small from"
        weakest = min(on_path, key=lambda s: s.gave / s.came if s.came and s.gave else 1.0)
        flat = weakest.gave < _SINGLE * weakest.came and advice(weakest.node, "zero")
        return f"{text} {_where(faded)} on", flat or _WAYS["vanishes"]
    if size > GROWN * max(start, 1e-30):
        grown = next(s for s in on_path if s.gave > GROWN * start)
        text = f"it explodes: {size:.1e}, from {start:.1e} at the start; beyond 1e6 of that from"
        return f"{text} {_where(grown)} on", _WAYS["explodes"]
    return "", ""


def forward_trouble(name: str, output, nodes: list[Any]) -> Note:
    """Where an output that is not finite became so: the first operation, in the order they ran; else empty."""
    if np.isfinite(size := size_of(output)):
        return "", ""
    what = "NaN" if np.isnan(size) else "infinite"
    begin = (
        f"{name} itself is {what}, so its gradients are worth nothing; it began in the forward pass"
    )
    ran = [n for n in reversed(nodes) if n.next_functions]
    for node in ran:
        for key, value in saved_of(node).items():
            if not np.isfinite(size_of(value)):
                return _origin(begin, node, key)
    for node in ran:  # its result is kept by none
        words, _, inputs = TABLES["breaks"].get(stem(node), "").partition(" in ")
        facts = _facts({k: v for k, v in saved_of(node).items() if k in inputs.split()})
        if any(f"are {word}" in facts for word in words.split()):
            return f"{begin} at {node.name()}{facts}", advice(node)
    return f"{begin}, or its data hold such numbers", _WAYS["data"]


def _origin(begin: str, node, key: str) -> Note:
    """Who made a saved value that is not finite: this node, the one that made its input, or nobody in the graph."""
    inputs = node.slots if hasattr(node, "slots") else getattr(node.primitive, "differentiable", ())
    to = dict(zip(inputs, node.next_functions, strict=False)).get(key, (node, 0))[0]
    if to is not None and to.next_functions:
        return f"{begin} at {to.name()}{_facts(saved_of(to))}", advice(to)
    facts = _facts({key: saved_of(node)[key]})
    return f"{begin}, in the data that {node.name()} reads{facts}", _WAYS["data"]


def _told(begin: str, step: Flow) -> Note:
    kind, gave = ("not finite", f"{step.gave:g}") if step.gave else ("zero", "zeros")
    text = f"{begin} by {_where(step)}, which got {step.came:.3g} and gave {gave}"
    return f"{text}{_facts(saved_of(step.node))}", advice(step.node, kind)


def _where(step: Flow) -> str:
    many = len(step.node.next_functions) > 1
    return f"{step.node.name()}[{step.slot}]" if many else str(step.node.name())


def _facts(saved: Mapping[str, Any]) -> str:
    """What is remarkable in saved values, in brackets: zeros, negative and large numbers, NaN."""
    facts = []
    for name, value in saved.items():
        array = as_array(value)
        if array.dtype.kind not in "fiub" or not array.size:
            continue
        told = ["True"] * bool(array.all())
        counts = {"False": array == 0}
        if array.dtype.kind != "b":
            low, high = f"{array.min():.4g}", f"{array.max():.4g}"
            told = [low if low == high else f"{low} to {high}"]
            counts = {
                "NaN": np.isnan(array), "infinite": np.isinf(array),
                "0": array == 0, "negative": array < 0,
            }  # fmt: skip
        told += [f"{v.sum()} of {array.size} are {k}" for k, v in counts.items() if v.any()]
        facts.append(f"saved {name}: {', '.join(told)}")
    return f" ({'; '.join(facts)})" * bool(facts)


def saved_of(node) -> Mapping[str, Any]:
    """The saved values of a node that are arrays."""
    return {n: v for n, v in node.saved.items() if hasattr(v, "shape")}


def stem(node) -> str:
    """``mul`` for ``MulBackward0`` and for ``#7 mul_grad``."""
    return re.split(r"Backward|_grad", node.name().split(" ")[-1])[0].lower()


def advice(node, kind: str = "not finite") -> str:
    """What to write in place of an op that makes a gradient zero, or not finite."""
    return TABLES[kind].get(stem(node), "")


def difference(grad, total, hook: str) -> Note:
    """Why ``.grad`` is not the gradient of this output, as far as the numbers tell, and a repair.

    ``hook``: where one is, if any.
    """
    a, b = as_array(grad), as_array(total)
    size, scale = size_of(a), size_of(b)
    added = _WAYS["added up"]

    def near(rest, size: float) -> bool:
        return size_of(rest) <= _NEAR * max(size, 1e-30)

    if a.shape != b.shape or not np.isfinite([size, scale]).all() or near(a - b, scale):
        return "", ""
    if hook:
        return f"(.grad is {short(grad)}: a hook {hook} changed it)", "remove() the hook"
    ratio = float((a * b).sum() / (b * b).sum()) if scale else 0.0
    alike = scale > 0 and a.size > 1 and near(a - ratio * b, abs(ratio) * scale)
    if alike and ratio > 1.5 and abs(ratio - round(ratio)) < _NEAR:
        passes = f"{ratio:.0f} backward passes added up without zero_grad()"
        return f"(.grad is {ratio:.0f} times that: {passes})", added
    if size == 0:
        text = "zero_grad(set_to_none=False), clipping to 0 or a hook has set it so"
        return f"(.grad is 0: {text})", ""
    if alike:
        clip = "clip_grad_norm_, " * (0 < ratio < 1)
        text = f"{ratio:.4g} times that: {clip}a loss scale or a division did it, or other backward passes"
        return f"(.grad is {text})", ""
    if near(a - b.clip(-size, size), size):
        return f"(.grad is that, clipped to ±{size:.4g}: clip_grad_value_)", ""
    text = "earlier backward passes were added to it without zero_grad(), or another output"
    text += ", a hook or an update in place made the difference"
    return f"(.grad is {short(grad)}: {text})", added
