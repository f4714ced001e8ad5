"""Operators that read and write names, as nodes and lines: for `of_net` and `of_program`.

An operator says ``inputs`` and ``outputs`` as ``{slot: [names]}``.  Drawn, a name is one node *per
version*: each write makes the next version, a read takes the version that is current then.  One
`Sheet` is one name space: a block, a net, a step net.

Vocabulary
    base        the name a gradient belongs to: ``w`` for ``w@GRAD``, ``w@GRAD@RENAME@1``
    reads       names whose *values* a grad op needs; of other names it needs the shape only
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from ...grad_names import EMPTY, ZERO, base, is_gradient, label_of
from ..graph.format import LONGEST_NAME, format_number
from ..graph.graph import Graph, Node
from .follow import follow_names
from .formula import Values, call_formula, rule_formula
from .inside import Slot, in_list, operation, show_value

# ---- one name space -------------------------------------------------------------------------


class Placed(NamedTuple):
    """An operator as drawn: its node, and the node of every name it reads and writes."""

    op: Any
    node: Node
    backward: bool
    ins: dict[str, Node]
    outs: dict[str, Node]


#: of a name: kind of node, value if it is shown, words, tooltip
Look = tuple[str, tuple[Any, ...], str, str]


class Sheet:
    """One name space, a block or a net, as it is drawn: its nodes are made in the order in which its
    operators stand.

    ``owner`` is the operator that holds it, ``attr`` what it is to that operator; the first sheet holds
    both sides of the whole.
    """

    kinds = ("", "")  # what all of it is called, and several of them
    values: Values  # what is known of names

    def __init__(self, graph: Graph, owner: Placed | None = None, attr: str = "") -> None:
        self.graph, self.owner, self.attr = graph, owner, attr
        self.backward = owner is not None and owner.backward
        self.loop = False  # its operators run several times
        self.versions: dict[str, list[Node]] = defaultdict(list)
        self.held: dict[str, tuple[Any, ...]] = {}  # node id -> its value, if it shows one
        self.writer: dict[str, Placed] = {}  # node id -> who wrote it
        self.placed: list[Placed] = []
        #: grad ops that are not there, each after the operator whose it would have been
        self.dropped: list[tuple[Any, Node]] = []

    # -- what blocks and nets say of themselves

    def draw(self) -> None:
        """Its operators, in the order in which they run."""
        raise NotImplementedError

    def look(self, name: str, written: bool) -> Look:
        """How a name is drawn."""
        raise NotImplementedError

    def inside(self, placed: Placed) -> "Iterator[Sheet]":
        """The sheets of what an operator holds."""
        raise NotImplementedError

    def frame(self, label: str, side: str, parent: str = "") -> str:
        """The frame of one of its sides, or one inside that."""
        region = self.graph.region(label, side=side, parent=parent or None)
        if self.owner and not parent:
            region.holder, region.strong = self.owner.node.id, True
        return region.id

    def handed_over(self) -> Iterable[tuple[str, str]]:
        """(name at the end of a step, name at the start of the next), where the loop says so."""
        return ()

    def shared(self, name: str) -> bool:
        """Whether every step finds the same value under a name that none writes."""
        raise NotImplementedError

    def went_round(self, end: Node, start: Node) -> None:
        """One value that a step hands on to the next."""
        word, label = "next", "next step"
        if self.backward:
            word, label = "before the step", "previous step"
            add_word(start, "after the step")
        add_word(end, word)
        self.graph.edge(end, start, "loop", label=label)

    def join(self) -> None:
        """The line from the operator to what it holds, and the values that go round in it."""
        placed, versions = self.placed, self.versions
        if self.owner and placed:
            first = [*placed[0].ins.values(), placed[0].node][0]
            self.graph.edge(self.owner.node, first, "sub_block")
        if self.loop:
            for end, start in self.handed_over():
                if {end, start} <= versions.keys() and end != start:
                    self.went_round(versions[end][-1], versions[start][0])

    # -- values

    def version(self, name: str, side: str, written: bool) -> Node:
        """The next version of a name, as a node."""
        kind, held, word, tooltip = self.look(name, written)
        node = self.graph.node(kind, name, side=side, tooltip=tooltip)
        add_word(node, word)
        self.held[node.id] = held
        self.versions[name].append(node)
        return node

    def read(self, name: str, side: str) -> Node:
        """The current version of a name; a name nobody wrote yet comes from outside."""
        known = name in self.versions and name != EMPTY
        return self.versions[name][-1] if known else self.version(name, side, written=False)

    # -- operators

    def add(self, op, number: int, region: str, part: str) -> Placed:
        """Draw one operator with what it reads and writes: ``part`` is "forward", "backward" or
        "optimize", whose updates stand among the gradients.
        """
        side = "forward" if part == "forward" else "backward"
        kind = op_kind(op, part == "backward")
        more, lines = attr_words(op)
        inside = operation(slots_of(op) if kind in ("op", "grad_op") else ())
        if kind == "grad_op":
            lines += inside["lines"]
        node = self.graph.node(kind, op.type + more, side=side, region=region, number=number)
        node.lines, node.data, node.tooltip = lines, inside["data"], op_words(op)
        done = Placed(op, node, part == "backward", {}, {})
        self.placed.append(done)
        saved = dict.fromkeys(
            n for n in flat(op.inputs) if side == "backward" and not is_gradient(n)
        )
        wanted = read_names(op, saved) if saved and kind != "zeros" else ()
        node.reads = tuple(name for name in saved if name in wanted)
        shapes = [name for name in saved if name not in wanted]
        for port, name in ported(op.inputs):
            if name not in saved:
                self._line(done, name, port, "in")
        for port, name in ported(op.outputs):
            self._line(done, name, port, "out")
        if shapes and kind == "zeros":
            node.lines += (f"like {shapes[0]}",)
        elif shapes:
            node.tooltip += f" | only the shape of: {', '.join(shapes)}"
        return done

    def _line(self, done: Placed, name: str, port: str, way: str) -> None:
        """One line between an operator and a name, and the operator's port for it."""
        node, side = done.node, done.node.side
        names = done.ins if way == "in" else done.outs
        if name == EMPTY and EMPTY in names:
            return  # one node stands for all the gradients nobody wants
        if way == "in":
            value = self.read(name, side)
            self.graph.edge(value, node, line_kind(node, value), head_port=port)
        else:
            value = self.version(name, side, written=True)
            value.kind = "zero" if node.kind == "zeros" else value.kind
            self.writer[value.id] = done
            self.graph.edge(node, value, line_kind(node, value), tail_port=port)
        names[name] = value
        # the innermost frame around all that touch it; where there is none, the first one's
        within = self.graph.around(value.region)
        shared = (region for region in self.graph.around(node.region) if region in within)
        value.region = next(shared, value.region or node.region)
        node.ports += ((port, way),)

    # -- after the last operator

    def finish(self) -> None:
        """Tell versions of a name apart; a scope holds the last one only."""
        for name, nodes in self.versions.items():
            for node in nodes[:-1]:
                self.held[node.id] = ()
            written = [node for node in nodes if node.id in self.writer and name != EMPTY]
            if len(written) > 1:
                for k, node in enumerate(written):
                    add_word(node, self.version_word(node, k, written))

    def version_word(self, node: Node, k: int, written: list[Node]) -> str:
        """What tells one version from the next: the loop between them, or its number."""
        words = ["after", "before"] if node.side == "forward" else ["before", "after"]
        for word, version in zip(words, written[k:], strict=False):
            if loops(self.writer[version.id].op):
                return f"{word} the loop"
        return f"version {k + 1}"


def add_word(node: Node, word: str) -> None:
    """Put a few more words behind those a node has."""
    words = " ".join([*node.lines, word])
    node.lines = (words,) if words else ()


def loops(op) -> bool:
    """Whether an operator runs what it holds several times."""
    return any(word in op.type for word in LOOPS)


def line_kind(op: Node, value: Node) -> str:
    """Which kind of line joins an operator and a value."""
    if op.side == "forward":
        return "flow"
    if value.kind == "renamed" or op.kind == "sum":
        return "accumulate"
    return "flow" if op.kind == "op" and value.kind not in GRADIENT_KINDS else "grad"


# ---- Which grad op belongs to which operator, which gradient to which value ----


def mirrored(sheets: list[Sheet], every: list[Placed]) -> None:
    """Link each grad op and each gradient with its twin: ``every`` operator of the ``sheets``."""
    graph = sheets[0].graph
    forward = {id(p.op): p for p in every if p.node.side == "forward"}
    for op, node in sheets[0].dropped:
        twin = forward.get(id(op))
        if twin and not twin.node.twin:
            graph.link(twin.node, node)
    twins(graph, forward, [p for p in every if p.node.kind == "grad_op"])
    held = {(s.owner.node.id, s.attr): s for s in sheets if s.owner}
    for sheet in sheets:
        partner: Sheet | None = sheet
        if sheet.owner and sheet.backward:
            partner = held.get((sheet.owner.node.twin or "", sheet.attr))
        if partner:
            link_rest(partner, sheet)
            if sheet.loop and sheet.backward:
                add_over_steps(partner, sheet)


def twins(graph: Graph, forward: Mapping[int, Placed], grad_ops: list[Placed]) -> None:
    """Link each grad op with the operator it differentiates, each gradient with its value, and what
    is saved with what reads it.

    An op's own ``forward_op`` decides; where there is none, a grad op belongs to the one operator
    that wrote the base of a gradient it reads and read the base of one it writes.
    """
    writers = defaultdict(list)
    for operator in forward.values():
        for name in operator.outs:
            writers[name].append(operator)
    pairs = []
    for g in grad_ops:
        f = forward.get(id(getattr(g.op, "forward_op", None))) or by_names(g, writers)
        if f:
            pairs.append((g, f))
            g.node.twin = f.node.id
            f.node.twin = f.node.twin or g.node.id  # one operator may have several grad ops
    # what a grad op reads belongs to an output of its operator, what it writes to an input
    ends = [(g.ins, f.outs) for g, f in pairs]
    ends += [(g.outs, f.ins) for g, f in pairs]
    for gradients, values in ends:
        for name, node in gradients.items():
            value = values.get(base(name))
            if value and not value.twin and not node.twin and node.kind not in ("renamed", "data"):
                graph.link(value, node)
    for g, f in pairs:  # a dotted line for each value that is read; the drawing keeps the near ones
        for name in g.node.reads:
            value = f.ins.get(name) or f.outs.get(name)
            if value:
                graph.edge(value, g.node, "saved")


def by_names(g: Placed, writers: Mapping[str, list[Placed]]) -> Placed | None:
    """The forward operator that a grad op belongs to, judged by its names; None where they say it of several."""
    written = {base(name) for name in g.outs if name != EMPTY}
    for name in g.ins:
        told = [f for f in writers.get(base(name), ()) if written & f.ins.keys() or not written]
        if len(told) == 1 and told[0].node.twin is None:
            return told[0]
    return None


def link_rest(forward: Sheet, backward: Sheet) -> None:
    """The gradients that no grad op reads or writes directly: sums of parts, given seeds."""
    for name, nodes in backward.versions.items():
        last = nodes[-1]
        if name == EMPTY or label_of(name) or last.twin or not is_gradient(name):
            continue
        values = forward.versions.get(base(name), ())
        free = [v for v in values if v.twin is None and v.side == "forward"]
        if len(free) == 1:
            backward.graph.link(free[0], last)


def add_over_steps(forward: Sheet, backward: Sheet) -> None:
    """Gradients of what every step reads and none writes are added up over the steps."""
    added = set()
    for name, nodes in backward.versions.items():
        read = forward.versions.get(base(name), [])
        only_read = len(read) == 1 and read[0].id not in forward.writer
        if is_gradient(name) and len(nodes) == 1 and only_read and forward.shared(base(name)):
            nodes[0].kind = "renamed"
            add_word(nodes[0], "+= over steps")
            added.add(nodes[0].id)
    if added:
        for edge in backward.graph.edges:
            if edge.head in added and edge.kind == "grad":
                edge.kind = "accumulate"


def dropped_op(graph: Graph, name: str, reason: str, region: str) -> Node:
    """An operator that is not there, with the reason."""
    return graph.node(
        "pruned",
        name,
        side=graph.regions[region].side,
        region=region,
        lines=tuple(wrap(reason, 44)),
        tooltip=f"{name} is not there: {reason}",
    )


# ---- What operators and the names they read and write say of themselves, by the spelling of programs ----


SUM_TYPES = ("sum", "add", "add_n")
ZERO_TYPES = ("fill_zeros_like", "zeros_like")
#: operators that run what they hold several times
LOOPS = ("while", "recurrent", "rnn", "for_", "scan")
_SHOWN = (int, float, str, tuple, list)  # attrs that are drawn
GRADIENT_KINDS = ("gradient", "leaf_gradient", "seed", "zero")


# ---- formulas of grad ops --------------------------------------------------------------------


def slots_of(op) -> list[Slot]:
    """What an operator that knows its primitive computes; of a grad op what somebody wants."""
    primitive = getattr(op, "primitive", None)
    if primitive is None:
        return []
    inputs = dict(ported(op.inputs))
    numbers = {a: format_number(v) for a, v in op.attrs.items() if isinstance(v, int | float)}
    outputs = [(port, name) for port, name in ported(op.outputs) if name != EMPTY]
    if op.type == primitive.type:
        inputs |= {slot: text for slot, text in numbers.items() if slot in primitive.inputs}
        call = call_formula(op.type, inputs)
        return [Slot(call, inputs, output=name) for _, name in outputs if len(outputs) == 1]
    arriving = next((name for slot, name in inputs.items() if slot.endswith("_grad")), "")
    slots = []
    for port, name in outputs:
        slot, _, place = port.partition("_grad")
        formula = rule_formula(primitive, slot)
        if formula:
            known = in_list(inputs, place.strip("[]") or "0") | inputs | numbers
            slots.append(Slot(formula, known, name=port, output=name, arriving=arriving))
    return slots if len(slots) > 1 else [slot._replace(name="") for slot in slots]


def gradient_look(name: str, computed: bool) -> tuple[str, str]:
    """(kind, word) of a gradient: ``computed`` if an operator makes what it is the gradient of."""
    if name == EMPTY:
        return "data", "no gradient"
    if label_of(name):
        return "renamed", ""
    if ZERO in name:
        return "zero", "zeros"
    return ("gradient" if computed else "leaf_gradient"), ""


# ---- names ----------------------------------------------------------------------------------


def flat(slots: Mapping[str, Iterable[str]]) -> list[str]:
    """All names of a slot map, in slot order.

    >>> flat({"x": ["a"], "xs": ["b", "c"]})
    ['a', 'b', 'c']
    """
    return [name for _, name in ported(slots)]


def is_scopes(name: str) -> bool:
    """Whether a name is that of step scopes: the values of each iteration of a loop."""
    return name.lower().rstrip("_0123456789").endswith("scopes")


def ported(slots: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    """(port, name) for every name of a slot map; a list slot gets one numbered port per name.

    >>> list(ported({"x": ["a"], "xs": ["b", "c"]}))
    [('x', 'a'), ('xs[0]', 'b'), ('xs[1]', 'c')]
    """
    for slot, names in slots.items():
        names = [names] if isinstance(names, str) else list(names)
        for i, name in enumerate(names):
            yield slot if len(names) == 1 else f"{slot}[{i}]", name


# ---- what an operator is --------------------------------------------------------------------


def op_kind(op, backward: bool) -> str:
    """Which kind of node an operator is drawn as."""
    outs = flat(op.outputs)
    if op.type in ZERO_TYPES and any(map(is_gradient, outs)):
        return "zeros"
    if not backward:
        return "op"
    ins = flat(op.inputs)
    if op.type in SUM_TYPES and len(ins) > 1 and all(map(is_gradient, ins)):
        return "sum"
    starts = op.type.startswith(("fill", "ones"))
    return "seed" if starts and not any(map(is_gradient, ins)) else "grad_op"


def makes_gradients(op) -> bool:
    """Whether an operator writes gradients and nothing else, whatever role it says it has."""
    outs = flat(op.outputs)
    return bool(outs) and all(map(is_gradient, outs))


def read_names(op, saved: Mapping[str, Any]) -> Container[str]:
    """Those of the forward names of a grad op whose values it needs: ``op.reads``, else all of them."""
    said = getattr(op, "reads", None)
    if said is None or callable(said):
        return saved
    return {*said, *filter(is_scopes, saved)}


def attr_words(op) -> tuple[str, tuple[str, ...]]:
    """(what stands behind the type, further lines): ``fill_constant 1.0``, ``axis=0``."""
    shown = {}
    for name, attr in getattr(op, "attrs", {}).items():
        plain = attr.item() if isinstance(attr, np.generic) else attr
        if isinstance(plain, _SHOWN) and plain not in ((), []):
            shown[name] = plain
    word = ""
    if "value" in shown and op.type.startswith("fill"):
        word = f" {shown.pop('value')}"
    blocks = tuple(f"{k} = {v}" for k, v in shown.items() if k.endswith("block"))
    rest = ", ".join(f"{k}={v!r}" for k, v in shown.items() if not k.startswith("_"))
    lines = (rest,) if 0 < len(rest) <= LONGEST_NAME else ()
    return word, blocks or lines


def op_words(op) -> str:
    """One operator in words, as the printer of programs says it: ``h = mul(x, w)``."""
    outs = ", ".join(flat(op.outputs))
    call = f"{op.type}({', '.join(flat(op.inputs))})"
    return f"{outs} = {call}" if outs else call


# ---- all of it: a sheet, and what its operators hold ---------------------------------------------


def drawn(first: Sheet) -> Graph:
    """Draw a sheet and what its operators hold, to any depth."""
    sheets, graph = [first], first.graph
    for sheet in sheets:  # grows while it is walked
        sheet.draw()
        for placed in sheet.placed:
            inside = [*sheet.inside(placed)]
            placed.node.bold = bool(inside)
            sheets += inside
    for sheet in sheets:
        sheet.finish()
        sheet.join()
        first.held |= sheet.held
    every = [placed for sheet in sheets for placed in sheet.placed]
    mirrored(sheets, every)
    for node, shown in first.held.items():
        show_value(graph.nodes[node], shown)
    follow_names(graph, first.held, first.values)
    grads = sum(placed.backward for placed in every)
    whole, several = first.kinds
    counts = [f"{len(every) - grads} ops"]
    if grads or whole == "Program":
        counts.append(f"{grads} grad ops")
    if len(sheets) > 1:
        counts.append(f"{len(sheets)} {several}")
    graph.title = f"{whole}: {', '.join(counts)}"
    return graph
