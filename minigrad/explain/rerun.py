"""Backward once more, on remembered values: what every node gave."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..atomic import set_all
from ..eager import backward
from ..eager.function import FunctionNode
from ..eager.grad_fn import FEW_BYTES, FREED, AccumulateGrad, Node, bytes_of, unpack
from ..eager.inplace import changed_since, last_change
from ..viz.adapters.of_grad_fn import walk_order
from .paths import Start, as_array, walked

MOST_ELEMENTS = 100_000  #: of larger arrays nothing is computed again


def last_start() -> Start:
    """Where the last backward began, leaves left out; empty if one of the nodes is gone."""
    start: dict[Any, Any] = {}
    for ref, index, seed in backward.last_starts:
        seed = getattr(seed, "_data", seed)
        place = (ref(), index)
        start[place] = start[place] + seed if place in start else seed
    return {} if any(node is None for node, _ in start) else start


@contextmanager
def remembered_values(nodes: Collection[Node], replay: bool = False) -> Iterator[bool]:
    """Let freed values that are remembered be read for a while; False if some are not.

    ``replay``: functions of the user's do not run, but give once more what they gave.
    """
    if not all(_knows(n, replay) for n in nodes):
        yield False
        return
    changes = [(n, "freed", False) for n in nodes]
    changes += [(n, "replayed", replay) for n in nodes if isinstance(n, FunctionNode)]
    for node in nodes:  # their saved values may be packed
        changes += [(node, slot, unpack(getattr(node, slot))) for slot in node.saved_slots]
    before = [(at, name, getattr(at, name)) for at, name, _ in changes]
    try:
        set_all(changes)
        yield True
    finally:
        set_all(before)


def _knows(node: Node, replay: bool) -> bool:
    """Does a node still have its saved values, and as they were, or what it gave?"""
    if replay and isinstance(node, FunctionNode):
        return node.gave is not None
    freed = any(getattr(node, slot) is FREED for slot in node.saved_slots)
    return not freed and not any(changed_since(node))


Constants = Mapping[tuple[Node, str], Any]


def forward_values(nodes: Sequence[Node], constants: Constants) -> dict[tuple[Node, int], Any]:
    """(node, output) → what the operation gave, as far as that is known: a rule keeps it, or it is
    computed again from leaves that nobody changed, kept values and ``constants``.
    """
    kept = {n: _kept(n) for n in reversed(nodes) if n.primitive is not None}
    values: dict[Any, Any] = {}
    for node, known in kept.items():
        p = node.primitive
        for slot, edge in zip(p.differentiable, node.next_functions, strict=False):
            if slot in known and slot != p.list_input and edge[0] is not None:
                values[edge] = known[slot]
        values |= {(node, k): known[out] for k, out in enumerate(p.outputs) if out in known}
    for node, known in kept.items():
        if (node, 0) not in values:
            again = _again(node, {**known, **_inputs(node, values, constants)})
            if again is not None:
                values[node, 0] = again
    return values


def _kept(node) -> dict[str, Any]:
    """What a node keeps of inputs and outputs, by name; not what was changed since."""
    return node.kept({slot for slot, *_ in changed_since(node)})  # type: ignore[no-any-return]


def _inputs(node, values: Mapping[Any, Any], constants: Constants) -> dict[str, Any]:
    found = {s: constants[node, s] for s in node.primitive.inputs if (node, s) in constants}
    for slot, edge in zip(node.primitive.differentiable, node.next_functions, strict=False):
        if isinstance(edge[0], AccumulateGrad):
            array = edge[0].variable._data
            if last_change(array)[0] < node.seq:
                found[slot] = array
        elif edge in values:
            found[slot] = values[edge]
    return found


def _again(node, known: Mapping[str, Any]) -> Any:
    """What an operation of one result gives of these values; None where one is missing."""
    p = node.primitive
    attrs = {a: getattr(node, f"_saved_{a}", FREED) for a in p.attrs}
    parts = [known.get(n, None if n in p.optional else FREED) for n in p.inputs]
    large = any(getattr(v, "size", 1) > MOST_ELEMENTS for v in parts)
    unknown = any(v is FREED for v in (*parts, *attrs.values()))
    if p.list_input or p.several or large or unknown:
        return None
    try:
        with np.errstate(all="ignore"):
            return p.kernel(*parts, **attrs)
    except Exception:  # what was written down there has another meaning by now
        return None


def remembered(roots: Collection[Node], constants: Constants) -> dict[str, Any]:
    """What is known of a graph: ``values`` (node, output) → array of the forward pass; of the last
    backward ``seeds`` by place, ``gradients`` (node, slot) → array, and ``saved`` of a node.

    Of a backward that began elsewhere nothing is known.  A node whose saved values are large or
    forgotten, or whose gradients a hook may have changed, does not run again: what it gave is not
    told, nor what comes after.
    No function of the user's runs: what it gave last is given again.
    """
    nodes = walk_order(roots)
    values = forward_values(nodes, constants)
    start = last_start()
    if not start or not {node for node, _ in start} <= {*roots}:
        return {"values": values}
    unknown = {*walk_order(n for n in nodes if not _remembers(n))}
    known = [n for n in nodes if n not in unknown]
    saved = {n: _kept(n) for n in known}
    with remembered_values(known, replay=True):
        steps = walked(start, known)  # in this order
        gradients = {(n, k): np.array(g) for n, _, gave in steps for k, _, g in gave}
    return dict(values=values, seeds=start, gradients=gradients, saved=saved, pull=pulled)


def pulled(node, slot: int, g) -> Any:
    """What a node of one output gives through a slot of a gradient; None where it does not know any more."""
    if isinstance(node, FunctionNode) or (node.several and len(node.specs) > 1):
        return None
    with remembered_values([node]) as complete:
        given = node.pull([g] if node.several else g)[slot] if complete else None
    return None if given is None else np.array(as_array(given))


def _remembers(node: Node) -> bool:
    """Does a node still know what it needs, is that small, and did no hook change gradients?"""
    if (node.hooks is not None and node.hooks.change) or not _knows(node, replay=True):
        return False
    size = sum(bytes_of(getattr(node, slot)) for slot in node.saved_slots)
    return size <= FEW_BYTES or isinstance(node, FunctionNode)
