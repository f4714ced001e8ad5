"""Big graphs, drawn small: modules and repeated segments are drawn as one box, frames are closed,
and the picture says so.

Up to 150 nodes are drawn in full, fewer where they are too wide for a page. Ids of what stays do
not change.
"""

import difflib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

from .graph.format import shorten
from .graph.graph import CARRIES, Edge, Graph, Links, Node, called, ends_at_leaf, grouped, is_op
from .render.words import names_of

FULL = 150  # nodes drawn in full
_TIGHTER = 0.8  # of its nodes a picture may have when it is folded more
_FEWEST = 8  # nodes of a picture that is folded no more
MODULES = 80  # nodes drawn before frames of modules are closed
AROUND = 2  # operations shown before and after each one that was found
MOST = 40  # operations drawn in full
PARTS = 10  # pieces of a segment that is opened but too large to draw in full
_LONGEST_PERIOD = 64  # operations in one repeat
_FEWEST_REPEATS = 3
_KINDS = 3  # of operations that are named
_NODES = 6  # of a picture, to a piece: its two boxes, and what goes in and comes out
_MANY = 12  # ports of an operator, parts of a sum: beyond this folded ones are left out


# ---- Operations that repeat, or stand together, drawn as one node ----


@dataclass(eq=False)
class Segment:
    """Operations that are drawn as one node: a repeat, or neighbours.

    >>> ops = [Node(f"n{i}", "op", name) for i, name in enumerate(("mul", "tanh") * 3)]
    >>> Segment(ops, period=2).name, Segment(ops).name
    ('3 × (mul, tanh)', 'mul, tanh')
    """

    ops: list[Node]
    period: int = 0  # how many operations repeat; 0 if none do
    twin: "Segment | None" = None

    @property
    def side(self) -> str:
        """Where it stands: "forward" or "backward"."""
        return self.ops[0].side

    @property
    def times(self) -> int:
        """How often it repeats."""
        return len(self.ops) // self.period

    @property
    def leaves(self) -> bool:
        """Whether it holds no operations, but leaves or their gradients."""
        return not is_op(self.ops[0]) or ends_at_leaf(self.ops[0])

    @property
    def name(self) -> str:
        """What it is: what repeats, the kinds of operations, the first and the last leaf."""
        if self.leaves:
            return f"{called(self.ops[0])} … {called(self.ops[-1])}"
        if self.period:
            names = [n.name for n in self.ops[: self.period]]
            names = [*names[:3], "…", names[-1]] if len(names) > 5 else names
            return f"{self.times} × ({', '.join(names)})"
        kinds = [kind for kind, _ in Counter(n.name for n in self.ops).most_common()]
        return ", ".join([*kinds[:_KINDS], "…"] if len(kinds) > _KINDS else kinds)

    @property
    def words(self) -> str:
        """How much it holds: ``2 operations``, ``ops #3 to #9``."""
        if self.leaves:
            kinds = {"accumulate": "gradients", "leaf_gradient": "gradients", "leaf": "parameters"}
            return f"{len(self.ops)} {kinds.get(self.ops[0].kind, 'values')}"
        numbers = [n.number for n in self.ops if n.number is not None]
        return f"ops #{min(numbers)} to #{max(numbers)}" if numbers else said_size(self.ops)


def segments(graph: Graph) -> list[Segment]:
    """Repeated runs of operations."""
    return _on_both_sides(graph, _repeats)


def chunks(graph: Graph, most: int) -> list[Segment]:
    """Pieces of a graph without repeats: neighbours in the order in which they run, in all about
    ``most`` nodes.
    """
    every = sum(len(ops) for ops in _runs_by_region(graph, "forward") if len(ops) > 1)
    size = max(2, -(-every // max(1, most // _NODES)))

    def cut(ops: list[Node]) -> list[Segment]:
        return [Segment(ops[at : at + size]) for at in range(0, len(ops) - 1, size)]

    return _on_both_sides(graph, cut)


def _on_both_sides(graph: Graph, cut: Callable[[list[Node]], list[Segment]]) -> list[Segment]:
    """Segments of forward operations, the backward ones that belong to them, and those of the rest."""
    runs = _runs_by_region(graph, "forward")
    parts = mirrored(graph, [segment for ops in runs for segment in cut(ops)])
    inside = {n.id for segment in parts for n in segment.ops}
    for ops in _runs_by_region(graph, "backward"):
        parts += cut([n for n in ops if n.id not in inside])
    return parts


def _runs_by_region(graph: Graph, side: str) -> list[list[Node]]:
    ops = [n for n in graph if is_op(n) and n.side == side and not ends_at_leaf(n)]
    free = [n for n in ops if not n.bold or "regions" in n.data]
    return [*grouped(free, lambda n: n.region).values()]


def _repeats(ops: list[Node]) -> list[Segment]:
    """The tandem repeats in a sequence of operations: at each place the period that covers most."""
    names = [n.name for n in ops]
    repeats = []
    at = 0
    while at < len(ops):
        longest = min(_LONGEST_PERIOD, (len(ops) - at) // _FEWEST_REPEATS)
        covers = [  # the shortest period first where they cover as much
            (_covered(names, at, p), -p)
            for p in range(1, longest + 1)
            if names[at] == names[at + p] == names[at + 2 * p]
        ]
        covered, period = max(covers, default=(0, 0))
        if covered:
            repeats.append(Segment(ops[at : at + covered], -period))
        at += covered or 1
    return repeats


def _covered(names: list[str], at: int, period: int) -> int:
    """How many operations a repeat of some period covers that starts at a place; 0 if there is none."""
    end = at
    while end + period < len(names) and names[end] == names[end + period]:
        end += 1
    times = (end - at) // period + 1
    return times * period if times >= _FEWEST_REPEATS else 0


def mirrored(graph: Graph, segments: list[Segment]) -> list[Segment]:
    """Segments, then the backward operations of each that has any, in the order in which they run."""
    twins = []
    for segment in segments:
        ops = [graph.nodes[n.twin] for n in segment.ops if n.twin in graph.nodes]
        if ops:
            period = max(1, len(ops) // segment.times) if segment.period else 0
            segment.twin = Segment(ops if segment.leaves else ops[::-1], period, twin=segment)
            twins.append(segment.twin)
    return segments + twins


def stacks(graph: Graph, segments: list[Segment]) -> list[Segment]:
    """The leaves that the same segments and operations read, where they are many, and their gradients."""
    links = Links(graph)
    place = {op.id: f"segment {k}" for k, s in enumerate(segments) for op in s.ops}
    read = defaultdict(list)
    for node in graph:
        readers = {n.id for n in links.after[node.id]}
        alone = len(readers) == 1 and readers <= place.keys()
        if readers and not (alone or links.before[node.id] or is_op(node)):
            # what one operation of a segment reads stands in there
            by = frozenset(place.get(name, name) for name in readers)
            read[node.side, node.region, by].append(node)
    return mirrored(graph, [Segment(each) for each in read.values() if len(each) > _MANY])


def said_size(ops: Iterable[Node]) -> str:
    """``75 operations``"""
    return f"{size_of(ops):,} operations"


def size_of(ops: Iterable[Node]) -> int:
    """How many operations these nodes stand for."""
    return sum(n.data.get("ops", 1) for n in ops)


# ---- Segments drawn as one node: what belongs to a segment, and the lines that are left ----


class Opening(NamedTuple):
    """What was opened: frames and operations by their ids; of a box a large ``part``, in smaller boxes."""

    ids: frozenset[str]
    part: bool = False


def contracted(graph: Graph, segments: list[Segment], openings: Iterable[Opening] = ()) -> Graph:
    """The graph with every segment and stack of leaves as one node, but for what was opened."""
    parts = split(graph, segments, openings)
    parts = [*parts, *split(graph, stacks(graph, parts), openings)]
    if not parts:
        return graph
    place = _members(graph, parts)
    inside = grouped((graph.nodes[member] for member in place), lambda n: place[n.id])
    names: dict[Segment | None, str] = {s: f"f{i}" for i, s in enumerate(parts)}
    boxes = [_folded_box(names, s, inside[names[s]]) for s in parts]
    small = drawn_with(graph, boxes, place)
    first = "; ".join([s.name for s in parts[:3]] + ["…"] * (len(parts) > 3))
    small.notes.append(
        f"{len(place)} of {len(graph.nodes)} nodes are folded into {len(parts)}: {first}"
    )
    return small


def drawn_with(graph: Graph, boxes: Iterable[Node], place: dict[str, str]) -> Graph:
    """The graph with boxes, in the ``place`` of nodes that they hold; a twin that is gone is forgotten."""
    nodes = {n.id: n for n in graph if n.id not in place} | {box.id: box for box in boxes}
    edges = _joined(graph, place)
    used = {(e.tail, e.tail_port, "out") for e in edges}
    used |= {(e.head, e.head_port, "in") for e in edges}
    for name, node in nodes.items():
        ports = node.ports
        if len(ports) > _MANY:  # it keeps those that a line still leads to
            ports = tuple(port for port in ports if (name, *port) in used)
        twin = node.twin if node.twin in nodes else None
        nodes[name] = replace(node, twin=twin, ports=ports)
    return replace(graph, nodes=nodes, edges=edges, notes=list(graph.notes))


def box_of(name: str, label: str, words: str, data: dict[str, Any], **fields) -> Node:
    """A node that stands for others: ``data`` says for which, and how many operations they are."""
    size = f"{data['ops']:,} operations" if data["ops"] else words
    return Node(name, "folded", label, lines=(words,), tooltip=size, data=data, **fields)


def _members(graph: Graph, segments: list[Segment]) -> dict[str, str]:
    """Which box every folded node belongs to: operations first, then what only they touch.

    A leaf that one operation inside reads belongs to it, and its gradient with it; one that several
    read stays, and what the first operation starts from. A sum belongs to the last segment that
    adds to it: segments keep their order, so no line goes back.
    """
    owner = {n.id: i for i, s in enumerate(segments) for n in s.ops}
    links = Links(graph)
    starts = {n.id for s in segments for n in _goes_in(links, s)}
    # an operation of so many lines that they are not drawn one by one: a sum of parts, a stack
    many = {
        n.id
        for n in filter(is_op, graph)
        if max(len(links.before[n.id]), len(links.after[n.id])) > _MANY
    }
    waiting = [
        n for n in graph if n.id not in owner and n.kind not in ("output", "seed") and not n.bold
    ]

    def segment_of(node: Node) -> int | None:
        """The segment that made a node, or reads it, when nothing outside of segments touches it
        but an operation of many lines.
        """
        before, after = links.before[node.id], links.after[node.id]
        if any(n.id not in owner and n.id not in many for n in (*before, *after)):
            return None
        if ends_at_leaf(node) and node.twin not in owner:
            return None
        if not before and (node.id in starts or len({n.id for n in after}) > 1):
            return None
        near = before if is_op(node) or any(n.id in owner for n in before) else after
        return min((owner[n.id] for n in near if n.id in owner), default=None)

    for _ in range(4):  # a value, a sum of values, a value of that sum, …
        joining = {n.id: i for n in waiting if (i := segment_of(n)) is not None}
        owner |= joining
        waiting = [n for n in waiting if n.id not in joining]
    return {name: f"f{i}" for name, i in owner.items()}


def _goes_in(links: Links, segment: Segment) -> list[Node]:
    """What the first operation starts from; not what each repeat has of its own, as a weight."""
    first, *later = segment.ops[:: segment.period or len(segment.ops)][:2]
    again = [n for op in later for n in links.before[op.id]]
    own = [not links.before[n.id] and len({m.id for m in links.after[n.id]}) == 1 for n in again]
    return [n for n, mine in zip_longest(links.before[first.id], own) if n and not mine]


def _folded_box(names: dict[Segment | None, str], segment: Segment, nodes: list[Node]) -> Node:
    members = []
    for node in nodes:  # what stands for a closed frame is not in the graph that is not folded
        members += [node.id] * (node.kind != "folded") + node.data.get("members", [])
    data = {
        "ops": 0 if segment.leaves else size_of(segment.ops),
        "members": members,
        "segment": [n.id for n in segment.ops],
    }
    box = box_of(
        names[segment],
        segment.name,
        segment.words,
        data,
        side=segment.side,
        region=segment.ops[0].region,
        twin=names.get(segment.twin),
    )
    if not segment.leaves:
        box.lines += _leaves_in(nodes, segment.side)
    return box


def _leaves_in(nodes: list[Node], side: str) -> tuple[str, ...]:
    """How many parameters or gradients of parameters are inside: ``w0 … w9: 10 parameters``."""
    leaves = [n.name for n in nodes if n.kind == "leaf"]
    grads = [called(n) for n in nodes if ends_at_leaf(n)]
    lines = []
    for names, what in ((leaves, "parameter"), (grads, "gradient")):
        if names:
            names = names if side == "forward" else names[::-1]
            ends = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            lines.append(f"{ends}: {len(names)} {what}{'s' * (len(names) > 1)}")
    return tuple(lines)


def _joined(graph: Graph, place: dict[str, str]) -> list[Edge]:
    """Lines between what is left; several lines between the same two folded ends are one."""
    lines = defaultdict(list)
    edges = []
    for edge in graph.edges:
        tail = place.get(edge.tail, edge.tail)
        head = place.get(edge.head, edge.head)
        if (tail, head) == (edge.tail, edge.head):
            edges.append(edge)
        elif tail != head and edge.kind in (*CARRIES, "sub_block"):
            lines[tail, head, edge.kind].append(edge)
    for (tail, head, _), (first, *others) in lines.items():
        joined = replace(first, tail=tail, head=head)
        if tail != first.tail:
            joined.tail_port = None
        if head != first.head:
            joined.head_port = None
        ends = graph.nodes.keys() & {tail, head}
        if len(others) >= _MANY and any(is_op(graph.nodes[n]) for n in ends):
            joined.label = f"{1 + len(others)} parts"
        edges.append(joined)
    return edges


# ---- Frames closed into one node: the sub-block of an operator, a net inside a net ----


def closed(graph: Graph, opened: Collection[str] = ()) -> Graph:
    """The graph with its inner frames closed, except those whose ids are in ``opened``."""
    shut: dict[str | None, str] = {  # in each frame the outermost one that closes
        r: f for r in graph.regions for f in _outwards(graph, r) if f not in opened
    }
    inside = grouped((n for n in graph if n.region in shut), lambda n: shut[n.region])
    if not inside:
        return graph
    frames = grouped(inside, lambda frame: graph.regions[frame].holder or f"c{frame}")
    boxes = [_closed_box(graph, name, {f: inside[f] for f in frames[name]}) for name in frames]
    modules = [box for box in boxes if box.kind == "folded"]
    forward = {box.name: box for box in modules if box.side == "forward"}
    for box in modules:  # the two boxes of one module stand beside each other
        if box.side == "backward" and box.name in forward:
            graph.link(forward[box.name], box)
    place = {member: box.id for box in boxes for member in box.data["members"]}
    small = drawn_with(graph, boxes, place)
    small.regions = {r: frame for r, frame in graph.regions.items() if r not in shut}
    small.notes.append(
        f"{len(graph.regions) - len(small.regions)} frames are closed, "
        f"with {len(graph.nodes) - len(small.nodes)} of {len(graph.nodes)} nodes"
    )
    return small


def _outwards(graph: Graph, region: str | None) -> Iterator[str]:
    """A frame, then those around it, from the inside out: without the outermost one."""
    while region:
        frame = graph.regions[region]
        if frame.holder or frame.parent:
            yield region
        region = graph.nodes[frame.holder].region if frame.holder else frame.parent


def _closed_box(graph: Graph, name: str, frames: dict[str, list[Node]]) -> Node:
    """The node that stands for closed frames: the operator that holds them, or a box of its own."""
    members = [n for nodes in frames.values() for n in nodes]
    data: dict[str, Any] = {
        "ops": size_of(filter(is_op, members)),
        "members": [n.id for n in members],
        "regions": list(frames),
    }
    if name in graph.nodes:
        held = graph.nodes[name]
        data["ops"] += 1  # the operator itself
        lines = [
            f"{size_of(filter(is_op, nodes))} operations in {graph.regions[frame].label.split(' (')[0]}"
            for frame, nodes in frames.items()
        ]
        return replace(held, data=held.data | data, lines=(*held.lines, *lines))
    region = graph.regions[next(iter(frames))]
    kind = "parameters" if all(n.kind == "leaf" for n in members) else "values"
    words = f"{data['ops']} operations" if data["ops"] else f"{len(members)} {kind}"
    return box_of(name, region.label, words, data, side=region.side, region=region.parent)


# ---- How much is folded, and what is opened again ----


#: a graph, its frames of modules closed or not, and what of it is drawn as one box
Folding = tuple[Graph, list[Segment]]


def _ways(graph: Graph, by_module: bool, most: int) -> Iterator[Folding]:
    """The ways to fold a graph, from the one that shows most; where none shows little enough, the last one counts."""
    if not by_module:
        yield graph, segments(graph)
    shut = closed(graph)  # frames are closed, and what stands outside folds for itself
    repeats = segments(shut)
    yield shut, [] if by_module else repeats
    yield shut, repeats if by_module else chunks(shut, most)


def split(graph: Graph, segments: list[Segment], openings: Iterable[Opening]) -> list[Segment]:
    """The segments without what was opened, each piece with its twin; what lies before and after
    stays folded.
    """
    for opening in openings:
        pieces = []
        for segment in segments:
            # else with the pieces of its twin
            if segment.side == "forward" or segment.twin is None:
                for piece in _pieces(segment, *opening):
                    pieces += mirrored(graph, [piece])
        segments = pieces
    return segments


def _pieces(segment: Segment, ids: Collection[str], part: bool) -> Iterator[Segment]:
    """A segment without some operations; if it is opened in parts, up to `PARTS` pieces of these,
    of about the same length and of whole repeats, or none where they are few.
    """
    at = 0
    period = segment.period or 1
    for hit, run in groupby(segment.ops, lambda n: n.id in ids or n.twin in ids):
        ops = [*run]
        length = len(ops)
        if hit:  # one by one where they are few
            few = not part or length <= MOST
            length = 1 if few else period * -(-length // (period * PARTS))
        for start in range(0, len(ops), length):
            piece = ops[start : start + length]
            whole = at % period == 0 == len(piece) % period and len(piece) > period
            if len(piece) > 1:
                yield Segment(piece, segment.period if whole else 0)
            at += len(piece)


# ---- What is opened in a folded picture ----


class View:
    """A graph, folded, with what was opened in it: ``graph`` is what is shown.

    >>> big = Graph()
    >>> before = big.node("leaf", "x")
    >>> for i in range(600):
    ...     op = big.node("op", "sin", number=i)
    ...     _ = big.edge(before, op)
    ...     before = op
    >>> view = View(big)
    >>> len(view.graph.nodes), view.open("f0"), len(view.graph.nodes)
    (2, 'Opened 600 × (sin) into 10 parts.', 11)
    """

    graph: Graph
    folding: Folding | None

    def __init__(self, whole: Graph, detail: str = "auto", expand: Iterable[str] = ()) -> None:
        again = any("members" in n.data for n in whole)  # what its boxes hold is not there
        self.whole = whole
        self.detail = "full" if again else detail
        self.openings = [Opening(frozenset(expand))] if expand else []
        self.opened = False
        self.fold(FULL)

    def fold(self, most: int) -> None:
        """Fold as ``detail`` asks for: not if it is "full", always if it is "folded", else where it has
        more than ``most`` nodes, until it has not.
        """
        graph = self.whole
        self.most = most
        self.folding = None
        by_module = self.detail != "pruned" and any(r.folds for r in graph.regions.values())
        many = len(graph.nodes) > (min(most, MODULES) if by_module else most)
        if self.detail == "folded" or (many and self.detail != "full"):
            for folding in _ways(graph, by_module, most):
                self.folding = folding
                if len(contracted(*folding).nodes) <= most:
                    break
        self.graph = self._opened()

    def _opened(self) -> Graph:
        """The graph as it is folded, but for what was opened: a picture does not jump when something is."""
        graph = self.whole
        openings = self.openings
        if self.folding is None:
            return graph
        shut, parts = self.folding
        named = {i for o in openings if not o.part for i in o.ids}
        at = {i if i in graph.regions else graph.nodes[i].region for i in named}
        frames = {frame for region in at for frame in _outwards(graph, region)}
        if shut is not graph and frames:
            shut = closed(graph, frames)
            if len(shut.nodes) > self.most:  # what has its twin in a box outside stands alone
                held = {n.id for s in parts if s.side == "backward" for n in s.ops}
                inner = [s for s in segments(shut) if s.ops[0].region in frames]
                parts = parts + [s for s in inner if held.isdisjoint(n.twin for n in s.ops)]
            holders = frozenset(graph.regions[r].holder or f"c{r}" for r in frames)
            openings = [*openings, Opening(holders)]
        return contracted(shut, parts, openings)

    def turn(self, direction: str) -> None:
        """Draw from left to right ("LR") or from top to bottom ("TB")."""
        self.whole = replace(self.whole, direction=direction)  # others may draw it, too
        self.fold(self.most)

    def tighten(self) -> bool:
        """Fold more, for a picture that is too wide; False if there is nothing more to fold."""
        before = len(self.graph.nodes)
        while self.most > _FEWEST:
            self.fold(int(min(self.most, len(self.whole.nodes)) * _TIGHTER))
            if len(self.graph.nodes) < before:
                return True
        return False

    def folds(self) -> dict[str, str]:
        """The boxes that can be opened, each with a few words."""
        return {
            n.id: f"{shorten(n.name, 60)}: {said_size([n]) if n.data['ops'] else n.lines[0]}, folded; open"
            for n in self.graph
            if self.folding and "members" in n.data
        }

    def inside(self, name: str, what: str = "members") -> frozenset[str]:
        """What a box and its twin hold: they open together."""
        box = self.graph.nodes[name]
        both = (box, self.graph.nodes.get(box.twin or "", box))
        return frozenset(held for each in both for held in each.data.get(what, ()))

    def index(self) -> dict[str, list[str]]:
        """The names inside each box."""
        names = names_of(self.whole)
        return {
            box: list(dict.fromkeys(names[m] for m in self.graph.nodes[box].data["members"]))
            for box in self.folds()
        }

    def open(self, name: str) -> str:
        """Show what is inside a box, in full if that is little, else in smaller boxes; says what it did."""
        box = self.graph.nodes[name]
        opening = Opening(self.inside(name, "segment"), part=True)
        if "regions" in box.data:
            opening = Opening(frozenset(box.data["regions"]))
        self.openings = [*self.openings, opening]
        self.opened = True
        self.graph = self._opened()
        inside = set(box.data["members"])
        boxes = [n for n in self.graph if n.kind == "folded" and n.side == box.side]
        parts = sum(not inside.isdisjoint(n.data["members"]) for n in boxes)
        words = f" into {parts} parts" if parts else ""
        return f"Opened {shorten(box.name, 60)}{words}."


# ---- Looking into a folded picture: what is searched for is drawn in full, the rest stays folded ----


def found_ops(graph: Graph, text: str) -> set[str]:
    """The operations that a text speaks of, with their neighbours and twins.

    The text is the name of a value, of an operation, its number ("#17"), or how the label of a
    frame begins ("block 2").  Raises `ValueError`, with the nearest names, if there is none.
    """
    frames = {r.id for r in graph.regions.values() if r.label.startswith(text)}
    hits = [
        n
        for n in graph
        if text in (n.name, called(n))
        or (is_op(n) and (f"#{n.number}" == text or n.region in frames))
    ]
    if not hits:
        alike = difflib.get_close_matches(text, sorted({n.name for n in graph}), 3)
        advice = f"; near it: {', '.join(alike)}" if alike else ""
        raise ValueError(
            f"nothing called {text!r} in this graph{advice}. expand takes the name of a value or "
            "an operation, a number like '#17', or the label of a frame like 'block 2'"
        )
    links = Links(graph)
    touching = []
    for hit in hits:
        touching += [hit] if is_op(hit) else [*links.before[hit.id], *links.after[hit.id]]
    wanted = {op.id for op in touching[:MOST]}
    shown: dict[str, Node] = {}
    for row in grouped(filter(is_op, graph), lambda n: n.side).values():
        for i, op in enumerate(row):
            if op.id in wanted:
                beside = row[max(0, i - AROUND) : i + AROUND + 1]
                shown |= {n.id: n for n in beside if n.region == op.region}
    first = [*shown.values()][: 2 * MOST]
    return {n.id for n in first} | {n.twin for n in first if n.twin}
