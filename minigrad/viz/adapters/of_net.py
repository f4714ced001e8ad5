"""Operators and nets as pictures: an operator names what it reads and writes, a net holds some.

``of_net(op)`` draws one side; ``of_net((forward, backward))``, or a backward net that knows its
``forward``, draws both, mirrored.  Nets nest to any depth: each is a frame inside its holder's
frame.
"""

from collections.abc import Iterator
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.graph import Graph
from .formula import Values
from .wiring import Look, Placed, Sheet, drawn, dropped_op, flat, gradient_look, is_scopes

Sides = tuple[Any, Any]  # forward, backward


def is_net(x) -> bool:
    """Whether x is an operator, a net, or a pair (forward, backward) of them."""
    if isinstance(x, tuple):
        return len(x) == 2 and all(map(is_net, x))
    slots = (getattr(x, "inputs", None), getattr(x, "outputs", None))
    return hasattr(x, "type") and all(isinstance(each, dict) for each in slots)


def sides(x) -> Sides:
    """(forward, backward) of what is to be drawn; None for a side that is not there."""
    if isinstance(x, tuple):
        return x
    if is_net(getattr(x, "forward", None)):
        return x.forward, x
    outs = [name for op in leaves(x) for name in flat(op.outputs)]
    return (None, x) if outs and all(map(is_gradient, outs)) else (x, None)


def leaves(op) -> list[Any]:
    """The operators of a net that hold no others; none where there is no net."""
    every = [] if op is None else [op]
    for each in every:  # grows while it is walked
        every += getattr(each, "ops", ())
    return [each for each in every if not hasattr(each, "ops")]


def of_net(x, values: Values | None = None) -> Graph:
    """The picture of an operator, a net, or of a net and its backward net."""
    return drawn(NetSheet(Graph(), sides(x), values or {}, None))


class NetSheet(Sheet):
    """The two sides of a net, or one side of a net that an operator runs once per step."""

    kinds = ("Net", "nets")

    def __init__(self, graph: Graph, nets: Sides, values: Values, owner: Placed | None) -> None:
        super().__init__(graph, owner)
        self.nets, self.values = nets, values
        self.loop = owner is not None
        forward, backward = map(leaves, nets)
        self.written = {name for op in forward for name in flat(op.outputs)}
        self.reads = {name for op in forward for name in flat(op.inputs)}
        self.wanted = {base(name) for op in backward for name in flat(op.outputs)}

    def draw(self) -> None:
        """Frames for nets, boxes for operators, in the order in which they run."""
        for side, net in zip(("forward", "backward"), self.nets, strict=True):
            number = 0
            stack = [] if net is None else [(net, "")]
            while stack:
                at, region = stack.pop()
                inner = getattr(at, "ops", None)  # None: an operator
                if inner or not region:  # the frame of a net, inside its holder's
                    label = f"{'operator' if inner is None else 'NetOp'} {called(at)}"
                    if self.owner and not region:
                        words = "step net, once per step"
                        if self.backward:
                            words = "step net backwards, last step first"
                        label = f"{self.owner.op.type} #{self.owner.node.number}: {words}"
                    region = self.frame(label, side, region)
                if inner is None:
                    self.add(at, number, region, side)
                    number += 1
                elif inner:
                    stack.extend((op, region) for op in reversed(inner))
                else:  # an empty net stands where a gradient is not wanted
                    of = getattr(at, "forward_op", None) or getattr(at, "forward", None)
                    node = dropped_op(self.graph, called(at), "NOP: no gradient wanted", region)
                    self.dropped.append((of, node))

    def look(self, name: str, written: bool) -> Look:
        kind, word = self.kind(name, written)
        held = (self.values.get(name),) if self.values and name != EMPTY else ()
        return kind, held, word, name

    def kind(self, name: str, written: bool) -> tuple[str, str]:
        """The kind of node that a name is, and a word about it."""
        if is_gradient(name):
            kind, word = gradient_look(name, self.loop or base(name) in self.written)
            if kind in ("gradient", "leaf_gradient") and not self.loop and not written:
                return "seed", "given"
            return kind, word
        if is_scopes(name):
            return "scopes", ""
        if self.owner:
            return ("data", "shared") if self.shared(name) else ("value", "")
        if written:
            return ("value" if name in self.reads else "output"), ""
        return ("leaf" if name in self.wanted or None in self.nets else "data"), ""

    def inside(self, placed: Placed) -> Iterator[Sheet]:
        net = getattr(placed.op, "stepnet", None)
        if net is not None:
            nets = (None, net) if placed.backward else (net, None)
            yield NetSheet(self.graph, nets, {}, placed)

    def finish(self) -> None:
        """What enters or leaves the whole net stands in the outermost frame."""
        super().finish()
        for nodes in self.versions.values():
            for node in nodes:
                if node.id not in self.writer or node.kind in ("output", "leaf_gradient"):
                    node.region = self.graph.around(node.region)[-1]

    def shared(self, name: str) -> bool:
        return bool(self.owner and name in flat(self.owner.op.inputs))

    def handed_over(self) -> list[tuple[str, str]]:
        """The states that an operator carries from step to step: its ``memories``, (start, end) each."""
        pairs = getattr(self.owner.op, "memories", ()) if self.owner else ()
        return [(s + GRAD, e + GRAD) if self.backward else (e, s) for s, e in pairs]


def called(op) -> str:
    """The name of an operator or a net."""
    return str(getattr(op, "name", None) or op.type)
