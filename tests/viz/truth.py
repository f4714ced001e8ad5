"""Players held against what really ran: kernels are wrapped here, the engine's own notes are not read.

`check_program` plays a random program and compares every step and every text on the page with the
calls that were seen.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import minigrad as mg
from minigrad import static
from minigrad.static.run import kernels
from minigrad.viz.graph.format import LONGEST_LINE, format_value, shorten
from minigrad.viz.graph.graph import CARRIES, is_op
from minigrad.viz.player import Player
from tests.static import random_programs

CONTROL = ("while", "cond", "recurrent", "while_grad", "cond_grad", "recurrent_grad")


@contextmanager
def kernels_of_programs():
    """Every kernel that an Executor calls: (inputs by slot, what it gave, in order)."""
    seen = []

    def values(slots):
        return {slot: [np.array(v) for v in listed] for slot, listed in slots.items()}

    def kernel(p, slots, attrs):
        results = plain(p, slots, attrs)
        seen.append((values(slots), {"": [np.array(r) for r in results]}))
        return results

    def rules(p, slots, attrs, asked):
        results = grad(p, slots, attrs, asked)
        seen.append((values(slots), values(results)))
        return results

    plain, grad = kernels.run_kernel, kernels.run_grad_op
    kernels.run_kernel, kernels.run_grad_op = kernel, rules
    try:
        yield seen
    finally:
        kernels.run_kernel, kernels.run_grad_op = plain, grad


class Page:
    """What stands on the page after each step: the script that the browser gets, replayed."""

    def __init__(self, player):
        self.film: Player = player
        self.graph = self.film.graph
        self.texts = {n: line[0] for n, node in self.graph.nodes.items() if (line := node.lines)}
        self.texts |= {
            n: rows(now for _, now in lines) for n, lines in self.film.live.items() if lines
        }
        self.state = dict.fromkeys(self.film.first, "pending")
        self.into: dict[str, dict[str, str]] = {}
        self.outof: dict[str, list[str]] = {}
        for edge in self.graph.edges:
            if edge.kind in CARRIES and edge.head_port:
                self.into.setdefault(edge.head, {})[edge.head_port] = edge.tail
            if edge.kind in CARRIES and edge.tail_port:
                self.outof.setdefault(edge.tail, []).append(edge.head)

    def steps(self):
        for event, step in zip(self.film.events, self.film.script["steps"], strict=True):
            before = dict(self.texts)
            self.texts |= {n: rows(lines) for n, lines in step["shows"].items() if lines}
            self.state |= dict.fromkeys(step["nodes"], "done")
            yield event, before


def rows(lines):
    """A long text stands in several rows."""
    return " ".join(filter(None, lines))


def text_of(value):
    return shorten(format_value(value), LONGEST_LINE)


def check_program(seed: int, size: int = 12) -> int:
    """Play one random program with loops and branches; the number of steps that were compared."""
    made = random_programs.recipe(seed, size)
    prog, loss, _ = random_programs.program(made)
    return check_run(prog, {}, [loss])


def check_player(seed: int) -> int:
    """A program of up to 12, 25 or 40 steps, played."""
    return check_program(seed, (12, 25, 40)[seed % 3])


def check_run(prog, feed, fetch) -> int:
    """Run and play a program: order, values, what each step finds, what stays grey."""
    scope = static.Scope()
    with kernels_of_programs() as seen, np.errstate(all="ignore"):
        static.Executor().run(prog, feed, fetch, scope=scope)
    page = Page(mg.play((prog, scope)))
    full = not any("members" in n.data for n in page.graph.nodes.values())
    labels = not full or any("as labels" in note for note in page.graph.notes)
    compared, calls, stack, tests = 0, iter(seen), [], {}
    ran = set()
    for event, before in page.steps():
        node = page.graph.nodes[event.nodes[0]]
        if event.kind in ("enter", "leave"):
            label = event.text.partition(" ")[2].partition(", step")[0]
            if event.kind == "enter":
                stack.append(label)
                tests[label] = tests.get(label, 0) + 1
            else:
                assert stack.pop() == label
            continue
        if not full or (event.kind == "seed" and not is_op(node)):
            continue
        ran.add(node.id)
        type = node.name.split()[0]
        block = page.graph.regions[node.region].label
        assert (stack[-1] if stack else "block 0").split(" (")[0] in block, (event.text, stack)
        if type in CONTROL:
            continue
        inputs, outputs = next(calls)
        compared += 1
        shown = [page.texts[n] for n in page.outof.get(node.id, ()) if valued(page, n)]
        gave = [text_of(v) for values in outputs.values() for v in values]
        assert all(text in gave for text in shown), (event.text, shown, gave)
        if node.side == "forward" or not labels:
            told = event.text.partition(" gives ")[2]
            assert not told or any(text in told for text in gave) or "=" not in told
        for port, tail in page.into.get(node.id, {}).items():
            slot, _, place = port.rstrip("]").partition("[")
            if slot in inputs and valued(page, tail) and len(inputs[slot]) > int(place or 0):
                took = text_of(inputs[slot][int(place or 0)])
                assert before[tail] == took, (event.text, port, before[tail], took)
    if full:
        assert next(calls, None) is None, "the player left out what ran"
        for node in page.graph.nodes.values():
            if is_op(node):
                state = page.state.get(node.id, "done")
                assert (node.id in ran) == (state == "done"), (node.name, state)
    return compared


def valued(page, node):
    node = page.graph.nodes[node]
    return node.name != "@EMPTY@" and node.kind != "scopes" and bool(node.data.get("live"))
