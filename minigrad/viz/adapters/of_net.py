"""Operators and nets as pictures: an operator names what it reads and writes, a net holds some.

``of_net(op)`` draws one side; ``of_net((forward, backward))``, or a backward net that knows its
``forward``, draws both, mirrored.  Nets nest to any depth: each is a frame inside its holder's
frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...grad_names import EMPTY, GRAD, base, is_gradient
from ..graph.format import NOT_YET, explain_value, format_value
from ..graph.graph import Graph, Node
from .follow import follow_names
from .wiring import (
    Placed,
    Wiring,
    flat,
    gradient_look,
    is_scopes,
    link_rest,
    saved_lines,
    told,
    twins,
)


def is_net(x: Any) -> bool:
    """Whether x is an operator, a net, or a pair (forward, backward) of them."""
    if isinstance(x, tuple):
        return len(x) == 2 and all(map(is_net, x))
    return (
        hasattr(x, "type")
        and isinstance(getattr(x, "inputs", None), dict)
        and isinstance(x.outputs, dict)
    )


def sides(x: Any) -> tuple[Any, Any]:
    """(forward, backward) of what is to be drawn; None for a side that is not there."""
    if isinstance(x, tuple):
        return x
    if is_net(getattr(x, "forward", None)):
        return x.forward, x
    outs = [name for op in leaves(x) for name in flat(op.outputs)]
    return (None, x) if outs and all(map(is_gradient, outs)) else (x, None)


def leaves(op: Any) -> list[Any]:
    """The operators of a net that hold no others, in the order in which they run."""
    found, stack = [], [op]
    while stack:
        at = stack.pop()
        if hasattr(at, "ops"):
            stack.extend(reversed(at.ops))
        else:
            found.append(at)
    return found


def of_net(x: Any, values: Mapping[str, Any] | None = None) -> Graph:
    """The picture of an operator, a net, or of a net and its backward net."""
    forward, backward = sides(x)
    drawing = NetDrawing(Graph(), forward, backward, values or {})
    drawing.draw(forward, "forward")
    drawing.draw(backward, "backward")
    drawing.finish()
    for f, g in drawing.step_nets():
        of_step_net(drawing, f, g)
    follow_names(drawing.graph, values or {})
    told(drawing.graph, "Net", {0: drawing.wiring})
    return drawing.graph


class NetDrawing:
    """One name space of nets: both sides share the names."""

    def __init__(
        self, graph: Graph, forward: Any, backward: Any, values: Mapping[str, Any], step: str = ""
    ) -> None:
        self.graph, self.values, self.step = graph, values, step
        self.shared: set[str] = set()
        self.outer: dict[str | None, tuple[str, ...]] = {None: ()}
        self.wiring = Wiring(graph, self.look)
        self.found: dict[str, Placed] = {}
        self.nops: list[tuple[Any, Node]] = []
        ops = leaves(forward) if forward is not None else []
        self.written = {name for op in ops for name in flat(op.outputs)}
        self.read = {name for op in ops for name in flat(op.inputs)}
        grads = leaves(backward) if backward is not None else []
        self.wanted = {base(name) for op in grads for name in flat(op.outputs) if name != EMPTY}
        self.mirrored = forward is not None and backward is not None

    # -- nodes

    def draw(self, op: Any, side: str) -> None:
        """One side: frames for nets, boxes for operators, in the order in which they run."""
        stack: list[tuple[Any, str | None]] = [] if op is None else [(op, None)]
        number = 0
        while stack:
            at, parent = stack.pop()
            if hasattr(at, "ops") and at.ops:
                region = self.frame(at, side, parent)
                stack.extend((inner, region) for inner in reversed(at.ops))
                continue
            region = parent or self.frame(at, side, None)
            if hasattr(at, "ops"):
                self.nop(at, side, region)
            else:
                self.wiring.add(
                    at, number, region, backward=side == "backward", bold=hasattr(at, "stepnet")
                )
                number += 1

    def frame(self, op: Any, side: str, parent: str | None) -> str:
        """The frame of a net, inside its holder's."""
        word = "NetOp" if hasattr(op, "ops") else "operator"
        label = self.step or f"{word} {getattr(op, 'name', None) or op.type}"
        made = self.graph.region(label, side=side, parent=parent, strong=bool(self.step))
        self.outer[made.id] = (*self.outer[parent], made.id)
        return made.id

    def nop(self, op: Any, side: str, region: str) -> None:
        """An empty net stands where a gradient is not wanted."""
        name = getattr(op, "name", None) or op.type
        node = self.graph.node(
            "pruned",
            name,
            side=side,
            region=region,
            lines=("NOP: no gradient wanted",),
            tooltip=f"{name} is an empty net: it computes nothing",
        )
        self.nops.append((op, node))

    def look(self, name: str, written: bool) -> tuple[str, str, str, str]:
        """Kind, value, words and tooltip of a name."""
        kind, word = (
            self.gradient(name, written) if is_gradient(name) else self.value(name, written)
        )
        unknown = NOT_YET if self.values and name != EMPTY else ""
        value = format_value(self.values[name]) if name in self.values else unknown
        tooltip = f"{name} | {explain_value(self.values[name])}" if name in self.values else name
        return kind, value, word, tooltip

    def value(self, name: str, written: bool) -> tuple[str, str]:
        if is_scopes(name):
            return "scopes", ""
        if self.step:
            return ("data", "shared") if name in self.shared else ("value", "")
        if written:
            return ("value", "") if name in self.read else ("output", "")
        return ("leaf" if name in self.wanted or not self.mirrored else "data"), ""

    def gradient(self, name: str, written: bool) -> tuple[str, str]:
        kind, word = gradient_look(name, bool(self.step) or base(name) in self.written)
        if kind in ("gradient", "leaf_gradient") and self.step and base(name) in self.shared:
            return "renamed", "+= over steps"
        if kind in ("gradient", "leaf_gradient") and not (self.step or written):
            return "seed", "given"
        return kind, word

    # -- both sides

    def finish(self) -> None:
        """Regions of the values, twins, saved values."""
        self.wiring.finish(self.outer)
        forward = [p for p in self.wiring.placed if not p.backward]
        backward = [p for p in self.wiring.placed if p.backward]
        self.found = twins(self.graph, forward, backward)
        self.nop_twins(forward)
        link_rest(self.graph, self.wiring, self.wiring)
        saved_lines(self.graph, backward, self.found)
        self.lift_interface()

    def lift_interface(self) -> None:
        """What enters or leaves the whole net stands in the outermost frame."""
        for nodes in self.wiring.versions.values():
            for node in nodes:
                path = self.outer[node.region]
                if path and (
                    node.id not in self.wiring.writer or node.kind in ("output", "leaf_gradient")
                ):
                    node.region = path[0]

    def nop_twins(self, forward: list[Placed]) -> None:
        """An empty net belongs to the operator it was made for, where it says so."""
        for op, node in self.nops:
            made_for = getattr(op, "forward_op", None) or getattr(op, "forward", None)
            for p in forward:
                if p.op is made_for and p.node.twin is None:
                    self.graph.link(p.node, node)

    def step_nets(self) -> list[tuple[Placed | None, Placed | None]]:
        """The operators that run a net of their own step by step: (forward, its grad op)."""
        runs = [p for p in self.wiring.placed if hasattr(p.op, "stepnet")]
        grad_of = {f.node.id: g for g in runs if (f := self.found.get(g.node.id))}
        found: list[tuple[Placed | None, Placed | None]] = []
        found += [(p, grad_of.get(p.node.id)) for p in runs if not p.backward]
        return found + [(None, p) for p in runs if p.backward and p.node.id not in self.found]


# ---- a net that runs once per step ----------------------------------------------------------


def of_step_net(outer: NetDrawing, f: Placed | None, g: Placed | None) -> None:
    """The net inside an operator that runs it T times, below, in a frame of its own."""
    forward, backward = (p.op.stepnet if p else None for p in (f, g))
    inner = NetDrawing(outer.graph, forward, backward, {})
    inner.shared = {name for p in (f, g) if p for name in flat(p.op.inputs)}  # parameters
    for owner, net, side, words in (
        (f, forward, "forward", "step net, once per step"),
        (g, backward, "backward", "step net backwards, last step first"),
    ):
        if owner is None:
            continue
        inner.step = f"{owner.op.type} #{owner.node.number}: {words}"
        start = len(inner.wiring.placed)
        inner.draw(net, side)
        for first in inner.wiring.placed[start : start + 1]:
            outer.graph.edge(owner.node, first.node, "sub_block")
    inner.finish()
    for owner, word in ((f, "next step"), (g, "previous step")):
        for pre, now in memories(owner.op) if owner else ():
            carry(inner, pre, now, word)


def memories(op: Any) -> list[tuple[str, str]]:
    """(name at the start of a step, name at its end) of the states carried from step to step."""
    said = getattr(op, "memories", None) or op.attrs.get("memories") or ()
    return [tuple(m)[:2] for m in (said.items() if isinstance(said, dict) else said)]


def carry(drawing: NetDrawing, pre: str, now: str, word: str) -> None:
    """The thick line from the state at the end of a step to the state at the start of the next."""
    if word == "previous step":
        pre, now = now + GRAD, pre + GRAD
    nodes = drawing.wiring.versions
    if pre in nodes and now in nodes:
        drawing.graph.edge(nodes[now][-1], nodes[pre][0], "loop", label=word)
