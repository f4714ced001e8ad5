"""Walk: one run of backward with everything that may be asked of it.

Hooks, retained gradients, several roots, given targets, nodes with several outputs, a graph of the gradients
(``create_graph``), anomaly mode, and a backward within a backward.  ``backward.py`` has the short form of the same walk
for the usual case.
"""

from __future__ import annotations

from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, refusal
from ..primitives.arguments import as_list
from .grad_fn import AccumulateGrad, Leaf, Output, unpack
from .inplace import check_versions, newest_change
from .mode import MODE, check_finite
from .tensor import Tensor, wrap

next_epoch = count(1).__next__
by_seq = attrgetter("seq")
REMEMBERED_NODES = 256  #: `mg.why` can look back at graphs up to this size


class Walk:
    """One run of backward over a graph."""

    def __init__(
        self, targets: list[Any] | None, create: bool, nested: bool, writes: bool = False
    ) -> None:
        self.epoch, self.create, self.nested, self.writes = next_epoch(), create, nested, writes
        self.order: list[Any] = []
        self.runs: list[Any] = []  # the nodes whose rules run
        self.needed: set[Any] = set()  # these and the targets
        self.stack: list[Any] = []
        self.stash: list[Any] = []  # state of nodes that an outer walk is using
        self.leaves: list[tuple[Tensor, Any, bool]] = []
        self.retained: list[tuple[Tensor, Any]] = []
        self.targets = targets
        self.captured: list[Any] = [None] * len(targets or ())
        self.anomaly = MODE.get().anomaly
        self.is_plain = not (
            create or nested or self.anomaly
        )  # gradients are arrays, and nobody looks

    # -- finding the nodes -----------------------------------------------------------------

    def start(self, edge: Any, seed: Any) -> None:
        """Put a seed at an output."""
        if edge.mark != self.epoch:
            self._enter(edge)
            if edge.__class__ is AccumulateGrad:
                edge.seq = float("inf")
        edge.g = seed if edge.g is None else edge.g + seed
        edge.own = False

    def _enter(self, edge: Any) -> None:
        """See an edge for the first time."""
        node = edge
        if edge.__class__ is Output:
            self._remember(edge)
            node = edge.node
        if node.mark != self.epoch:
            self._remember(node)
            if not node.outputs:
                node.outs = []  # before `clear` could look at it
            self.order.append(node)
            if node.__class__ is not AccumulateGrad:
                self.stack.append(node)
        if edge is not node:
            node.outs.append(edge)

    def _remember(self, place: Any) -> None:
        if self.nested:
            self.stash.append(
                (
                    place,
                    place.mark,
                    place.g,
                    getattr(place, "own", False),
                    getattr(place, "seq", None),
                    getattr(place, "outs", None),
                )
            )
            place.g = None
        place.mark = self.epoch

    def _discover(self) -> None:
        """Follow the edges to every node, once, and put them in order."""
        stack, order, epoch, enter = self.stack, self.order, self.epoch, self._enter
        pop, push, fast, nested = stack.pop, stack.append, order.append, self.nested
        while stack:
            n = pop()
            for m in (n.e0, n.e1, *n.more) if n.more else (n.e0, n.e1):
                if m is None:
                    continue
                if m.mark != epoch:
                    if nested or not m.outputs:  # an Output
                        enter(m)
                        if m.__class__ is AccumulateGrad:
                            m.seq = n.seq - 0.5
                    elif m.__class__ is AccumulateGrad:
                        m.mark = epoch
                        m.seq = n.seq - 0.5  # runs right behind its last user
                        fast(m)
                    else:
                        m.mark = epoch
                        fast(m)
                        push(m)
                elif m.__class__ is AccumulateGrad and n.seq - 0.5 < m.seq:
                    m.seq = n.seq - 0.5
        order.sort(key=by_seq)

    def _restrict(self) -> None:
        """With targets, only the nodes on a way to one run: what hangs off it would be
        incomplete.
        """
        needed: set[Any] = {t.node if t.__class__ is Output else t for t in self.targets or ()}
        self.runs = []
        for n in self.order:
            if any(
                m is not None and (m.node if m.__class__ is Output else m) in needed
                for m in (n.e0, n.e1, *n.more)
            ):
                needed.add(n)
                self.runs.append(n)
        self.needed = needed

    # -- running them ----------------------------------------------------------------------

    def run(self) -> None:
        """Run every node, newest first."""
        self._discover()
        order = self.runs = self.order
        if self.targets is not None:
            self._restrict()
            order = [n for n in order if n in self.needed]
        if self.runs and newest_change() > self.runs[0].seq:
            check_versions(self.runs)
        wanted = set(self.targets) if self.targets else None
        running = None if self.targets is None else set(self.runs)
        for n in reversed(order):
            g = n.g
            if n.__class__ is AccumulateGrad:
                self._leaf(n, g, wanted)
            elif n.outputs == 0 or g is not None:
                self._one(n, g, wanted, running)

    def _leaf(self, n: Any, g: Any, wanted: set[Any] | None) -> None:
        if g is None:
            return
        if n.hooks is not None:
            g = self._tensor_hooks(n, 0, g)
            if self.writes:
                g = self._prehooks(n, g)
        if n.variable._node is not None:  # else: it does not require grad any more
            self.leaves.append((n.variable, g, n.own and n.hooks is None))
        if wanted is not None:
            self._capture(wanted, n, g)
        n.g = None

    def _one(self, n: Any, g: Any, wanted: set[Any] | None, running: set[Any] | None) -> None:
        """Run one node with everything that may be asked of it."""
        if n.outputs and n.hooks is None and wanted is None and self.is_plain:
            n.push()
            return
        if n.outputs:
            n.g = None
            if n.hooks is not None:
                g = self._tensor_hooks(n, 0, g)
            if wanted is not None:
                self._capture(wanted, n, g)
        else:
            g = self._gather(n, wanted)
            if g is None:
                return
        if running is not None and n not in running:
            return
        if n.hooks is not None:
            grads = self._with_node_hooks(n, g)
        else:
            grads = n.pull_graph(g) if self.create else n.pull(g)
        if self.anomaly:
            self._check(n, g, grads)
        self._give(n, g, grads)

    def _capture(self, wanted: set[Any], edge: Any, g: Any) -> None:
        if edge in wanted:
            for k, t in enumerate(self.targets or ()):
                if t is edge:
                    self.captured[k] = g

    def _give(self, n: Any, g: Any, grads: Any) -> None:
        """Add each gradient to the place its edge names, in memory of its own."""
        for m, p in zip(n.edges(), grads, strict=True):
            if p is not None and m is not None:
                m.g, m.own = p if m.g is None else m.g + p, False

    def _gather(self, n: Any, wanted: set[Any] | None) -> list[Any] | None:
        """The gradients of all outputs of a node; zeros for those nothing was given to."""
        found: list[Any] = [None] * len(n.specs)
        for o in n.outs:
            if o.g is not None:
                found[o.index] = o.g if found[o.index] is None else found[o.index] + o.g
                o.g = None
        if n.hooks is not None:
            found = [g if g is None else self._tensor_hooks(n, k, g) for k, g in enumerate(found)]
        if wanted is not None:
            for k, t in enumerate(self.targets or ()):
                if t.__class__ is Output and t.node is n and found[t.index] is not None:
                    self.captured[k] = found[t.index]
        if all(g is None for g in found):
            return None
        zeros = [
            np.zeros(*spec) if g is None and spec is not None else g
            for g, spec in zip(found, n.specs, strict=True)
        ]
        return [wrap(z) if self.create and isinstance(z, np.ndarray) else z for z in zeros]

    # -- the end ---------------------------------------------------------------------------

    def finish(self, pairs: list[tuple[Tensor, Any, bool]], retain: bool) -> None:
        """Compute the new gradients, set them all, free the saved values."""
        new = [(t, accumulated(t, g, own, self.create)) for t, g, own in pairs]
        given = {id(t) for t, _, _ in pairs}  # an input that is retained, too, gets it once
        new += [
            (t, accumulated(t, g, False, self.create))
            for t, g in self.retained
            if id(t) not in given
        ]
        hooks: list[tuple[Any, tuple[Any, ...]]] = []
        for tensor, g, _ in pairs:
            node: Any = tensor._node
            node = node.node if node.__class__ is Leaf else None
            if node is not None and node.hooks is not None:
                hooks += [(hook, (tensor,)) for hook in list(node.hooks.accumulated.values())]
                seen = (), (self._shown(g),)
                hooks += [(hook, seen) for hook in list(node.hooks.post.values())]
        commit(new, hooks)
        if not retain:
            small = len(self.order) <= REMEMBERED_NODES
            for n in self.runs:
                n.free(small)

    def clear(self) -> None:
        """Leave no trace on the nodes, whatever happened."""
        for n in self.order:
            n.g = None
            if not n.outputs:
                for o in n.outs:
                    o.g = None
                n.outs = []
        for place, mark, g, own, seq, outs in self.stash:
            place.mark, place.g, place.own = mark, g, own
            if seq is not None:
                place.seq = seq
            if outs is not None:
                place.outs = outs
        self.order, self.runs, self.leaves = [], [], []
        self.needed = set()

    # -- hooks and anomaly mode: who looks at gradients that pass, or changes them -------------

    def _tensor_hooks(self, n: Any, index: int, g: Any) -> Any:
        """Tensor hooks, then retain_grad."""
        for hook in list(n.hooks.tensor.get(index, {}).values()):
            g = self._hooked(hook(self._shown(g)), g, "a tensor hook")
        ref = n.hooks.retained.get(index)
        tensor = ref() if ref is not None else None
        if tensor is not None:
            self.retained.append((tensor, g))
        return g

    def _shown(self, g: Any) -> Any:
        return g if g is None or isinstance(g, Tensor) else wrap(np.array(g))

    def _hooked(self, new: Any, old: Any, what: str) -> Any:
        if new is None:
            return old
        data = new._data if isinstance(new, Tensor) else np.asarray(new)
        if old is not None and data.shape != old.shape:
            raise ShapeError(
                f"{what} returned {describe(data)} for a gradient of shape {list(old.shape)}\n"
                "  repair: return a gradient of that shape, or None to leave it as it is"
            )
        return (new if isinstance(new, Tensor) else wrap(data)) if self.create else data

    def _prehooks(self, n: Any, g: Any) -> Any:
        """What the prehooks of a node make of the gradient of its output, or of its outputs."""
        several = isinstance(g, list)
        for hook in list(n.hooks.pre.values()):
            old = g if several else [g]
            new = hook(tuple(self._shown(x) for x in old))
            if new is None:
                continue
            parts = as_list(new)
            if len(parts) != len(old):
                what = f"a node prehook returned {len(parts)} gradients for {len(old)}"
                raise refusal(what, "one for each of grad_outputs, or None", GradError)
            parts = [self._hooked(a, b, "a node prehook") for a, b in zip(parts, old, strict=True)]
            g = parts if several else parts[0]
        return g

    def _with_node_hooks(self, n: Any, g: Any) -> Any:
        """Node prehooks → rule → node hooks; saved values unpacked for the time of the rule."""
        g, several = self._prehooks(n, g), isinstance(g, list)
        packed = {s: getattr(n, s) for s in n.saved_slots}
        try:
            for slot, value in packed.items():
                setattr(n, slot, unpack(value))
            grads = n.pull_graph(g) if self.create else n.pull(g)
        finally:
            for slot, value in packed.items():
                setattr(n, slot, value)
        for hook in list(n.hooks.post.values()):
            shown = tuple(self._shown(x) for x in grads)
            new = hook(shown, tuple(self._shown(x) for x in (g if several else [g])))
            if new is not None:
                parts = as_list(new)
                if len(parts) != len(grads):
                    what = f"a node hook returned {len(parts)} gradients for {len(grads)}"
                    raise refusal(what, "one for each of grad_inputs, or None", GradError)
                grads = [
                    self._hooked(a, b, "a node hook") for a, b in zip(parts, grads, strict=True)
                ]
        return grads

    def _check(self, n: Any, g: Any, grads: Any) -> None:
        for p in grads:
            if p is not None:
                args = tuple(g) if isinstance(g, list) else (g,)
                check_finite(
                    n.name(),
                    p._data if isinstance(p, Tensor) else p,
                    args,
                    n.where(),
                    "made (backward)",
                )


# -- what leaves get ----------------------------------------------------------------------


def commit(new: list[tuple[Tensor, Any]], hooks: list[Any]) -> None:
    """Set the new gradients, then call the hooks behind them, each with what it is to see; all or nothing."""
    before = [(t, t._grad) for t, _ in new]
    try:
        for tensor, value in new:
            tensor._grad = value
        for hook, seen in hooks:
            if hook(*seen) is not None and len(seen) > 1:
                what = "a hook of an AccumulateGrad returned something, and there are no grad_inputs it could replace"
                raise refusal(
                    what,
                    "return nothing; register_prehook changes what is added to .grad",
                    GradError,
                )
    except BaseException:
        for tensor, old in before:
            tensor._grad = old
        raise


def accumulated(tensor: Tensor, g: Any, own: bool, create: bool) -> Any:
    """The new ``.grad`` of a leaf, a Tensor or an array, in memory of its own, in the leaf's shape and dtype."""
    old = tensor.grad
    if create or isinstance(g, Tensor):
        g = g if isinstance(g, Tensor) else wrap(np.array(g))
        fitted(tensor, g._data, False)
        if old is not None:
            return old + g
        return g * 1.0 if g._node.__class__ is Leaf else wrap(np.array(g._data), g._node)
    g = fitted(tensor, g, own)
    if old is None:
        return wrap(g)
    return wrap(np.asarray(old._data + g)) if old._node is None else old + wrap(g)


def fitted(tensor: Tensor, g: Any, own: bool) -> Any:
    """A gradient in its leaf's shape and dtype and in memory nobody else holds."""
    data = tensor._data
    if g.shape != data.shape:
        what = (
            f"a gradient of shape {list(g.shape)} arrived at {describe(tensor)}{named(tensor)}: "
            "one of the rules on the way has a wrong shape"
        )
        advice = "a gradient has the shape of its input; @mg.elementwise sums over broadcast axes"
        raise refusal(what, f"{advice}; mg.gradcheck(op, inputs) finds the op")
    if g.dtype != data.dtype:
        if g.dtype.kind == "c":
            raise DTypeError(
                f"a complex gradient arrived at the real {describe(tensor)}{named(tensor)}; "
                "minigrad differentiates real functions only"
            )
        return np.array(g, data.dtype)
    return g if own else np.array(g)


def named(tensor: Tensor) -> str:
    return f" ({tensor.name})" if tensor.name else ""
