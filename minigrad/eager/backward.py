"""The walk: from the output, along ``next_functions``, to the leaves.

Order: a node runs when all its users have; the newest first (one sort by sequence number gives both, since a user is
always newer than what it uses); an AccumulateGrad as soon as its last user has run.  No recursion.

Nothing is written before everything has run: the new ``.grad`` of every leaf is computed first, then all are set,
then the saved values are freed.  An exception on the way, from a hook, a rule or the keyboard, leaves every ``.grad``
and the graph as they were.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, user_line
from .grad_fn import AccumulateGrad, Leaf, Node, Output, Packed, unpack
from .inplace import check_versions, newest_change
from .mode import MODE, enable_grad
from .record import check_finite
from .tensor import ENGINE, Tensor, wrap

_next_epoch = count(1).__next__
_by_seq = attrgetter("seq")
_walking = threading.RLock()
REMEMBERED_NODES = 256          #: `mg.why` can look back at graphs up to this size
last_start: tuple[Any, Any] = (None, None)     #: where the last backward started: a weak reference to the node, the seed
_depth = 0


def backward(
    tensors: Any, gradients: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Compute the gradient of outputs with respect to all leaves and add it to their ``.grad``.

    Args: ``gradients``, the seed of each output, needed where it has more than one element, in its shape;
    ``inputs``, the only tensors whose ``.grad`` is to change; ``create_graph``, so that the gradients can be
    differentiated again; ``retain_graph``, so that saved values outlive this call.
    Errors: `GradError`, `ShapeError`; then every ``.grad`` is as before the call.
    """
    outputs = _list(tensors)
    roots: list[Any] = [(o, s) for o, s in zip(outputs, _seeds(outputs, gradients, create_graph), strict=True)]
    if inputs is not None and not _list(inputs):
        raise GradError("backward(inputs=[]) names no tensor; leave `inputs` out to reach every leaf")
    targets = None if inputs is None else [_edge_of(t, "inputs") for t in _list(inputs)]
    _walk(roots, targets, create_graph if retain_graph is None else retain_graph, create_graph, _list(inputs) if inputs is not None else [])


ENGINE["backward"] = backward


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    allow_unused: bool | None = None, materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs with respect to inputs, returned and not accumulated.

    One gradient per input, in its shape and dtype; inputs may be leaves or not.  An input that no output depends on
    is an error, or None with ``allow_unused``, or zeros with ``materialize_grads``.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.grad(x * x, x)
    (tensor(6.),)
    """
    outs, ins = _list(outputs), _list(inputs)
    roots = [(o, s) for o, s in zip(outs, _seeds(outs, grad_outputs, create_graph), strict=True)]
    targets = [_edge_of(t, "inputs") for t in ins]
    found = _walk(roots, targets, create_graph if retain_graph is None else retain_graph, create_graph, None)
    result: list[Tensor | None] = []
    for k, (tensor, g) in enumerate(zip(ins, found, strict=True)):
        if g is None and materialize_grads:
            g = wrap(np.zeros(tensor.shape, tensor.dtype))
        if g is None and not allow_unused:
            raise GradError(
                f"input {k}{_named(tensor)} of grad() was not used to compute the outputs.\n"
                f"  repair: allow_unused=True returns None for it, materialize_grads=True zeros."
            )
        result.append(g if g is None or isinstance(g, Tensor) else wrap(_fitted(tensor, g, False)))
    return tuple(result)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _named(tensor: Tensor) -> str:
    return f" ({tensor.name})" if tensor.name else ""


def _edge_of(tensor: Any, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"{what} must be Tensors, not {describe(tensor)}")
    edge = tensor._node
    if edge is None:
        raise GradError(f"one of the {what}{_named(tensor)} does not require grad; create it with requires_grad=True")
    return edge.accumulator(tensor) if edge.__class__ is Leaf else edge


def _seeds(outputs: list[Any], given: Any, create_graph: bool) -> list[Any]:
    seeds = [None] * len(outputs) if given is None else _list(given)
    if len(seeds) != len(outputs):
        raise GradError(f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given")
    made = []
    for out, seed in zip(outputs, seeds, strict=True):
        if seed is None and out.__class__ is Tensor and out._node is not None and out._data.size == 1 and out._data.dtype.kind == "f":
            made.append(wrap(np.ones_like(out._data)) if create_graph else np.ones_like(out._data) if out._data.ndim else out._data.dtype.type(1))
            continue
        if not isinstance(out, Tensor):
            raise DTypeError(f"backward starts from a Tensor, not from {describe(out)}")
        if out._node is None:
            raise GradError(_no_graph(out))
        if out._data.dtype.kind != "f":
            raise DTypeError(f"backward from {describe(out)} is not defined: only real floating-point outputs have gradients here")
        if seed is None:
            if out._data.size != 1:
                raise GradError(
                    f"backward() needs a seed: {describe(out)} has {out._data.size} elements, and only a single number has a gradient by itself.\n"
                    f"  at {user_line()}\n"
                    f"  repair: reduce it first (y.sum().backward()), or pass gradient=… of shape {list(out.shape)}"
                )
            array: Any = np.ones(out.shape, out._data.dtype)
        else:
            array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
            if array.shape != out.shape:
                raise ShapeError(f"the seed {describe(array)} must have the shape of the output, {list(out.shape)}\n  at {user_line()}")
            array = array.astype(out._data.dtype, copy=False)
        made.append((seed if isinstance(seed, Tensor) else wrap(np.array(array))) if create_graph else array)
    return made


def _no_graph(out: Tensor) -> str:
    from .explain import no_graph_reason

    return (
        f"backward() found no graph: {describe(out)}{_named(out)} has no grad_fn and does not require grad.\n"
        f"  why: {no_graph_reason(out)}\n  at {user_line()}\n"
        f"  repair: create the inputs with requires_grad=True, and compute outside no_grad() and without detach()"
    )


def _walk(roots: list[Any], targets: list[Any] | None, retain: bool, create: bool, written: list[Any] | None) -> list[Any]:
    """Run backward; see `Walk`.  ``written`` None: return the targets' gradients; else write ``.grad``."""
    global _depth, last_start
    with _walking:
        if len(roots) == 1 and targets is None and not create and not _depth and not MODE.get().anomaly and _usual_walk(*roots[0], retain):
            return []
        walk = Walk(targets, create, nested=_depth > 0)
        _depth += 1
        try:
            for out, seed in roots:
                edge = out._node
                last_start = (weakref.ref(edge.node if edge.__class__ is Output else edge), seed) if edge.__class__ is not Leaf else (None, None)
                walk.start(edge.accumulator(out) if edge.__class__ is Leaf else edge, seed)
            if create:
                with enable_grad():
                    walk.run()
            else:
                walk.run()
            found = walk.captured
            if written is None:
                walk.finish([], retain)
            else:
                pairs = walk.leaves if targets is None else [(t, g, False) for t, g in zip(written, found, strict=True) if g is not None]
                walk.finish(pairs, retain)
            return found
        finally:
            _depth -= 1
            walk.clear()


def _usual_walk(output: Tensor, seed: Any, retain: bool) -> bool:
    """Backward as it usually is: one output, all leaves, arrays, no hooks.  False if the graph is not of that kind.

    This is `Walk` with everything left out that needs a test per node; nothing is different in what it computes.
    """
    global last_start
    root = output._node
    if root.__class__ is Leaf or root.hooks is not None or not root.outputs:
        return False
    epoch = _next_epoch()
    root.mark = epoch
    order, stack, leaves = [root], [root], []
    pop, push, see = stack.pop, stack.append, order.append
    while stack:
        n = pop()
        for m in (n.e0, n.e1, *n.more) if n.more else (n.e0, n.e1):
            if m is not None and m.mark != epoch:
                if m.hooks is not None or not m.outputs:
                    return False
                m.mark = epoch
                if m.__class__ is AccumulateGrad:
                    if m.accumulated:
                        return False
                    leaves.append(m)
                else:
                    see(m)
                    push(m)
    order.sort(key=_by_seq)
    if newest_change() > order[0].seq:
        check_versions(order)
    last_start = (weakref.ref(root), seed)
    root.g, root.own = seed, False
    try:
        for n in reversed(order):
            g = n.g
            if g is None:
                continue
            n.g = None
            for m, p in zip((n.e0, n.e1, *n.more) if n.more else (n.e0, n.e1), n.pull(g)):  # noqa: B905  (unary: one gradient)
                if p is None or m is None:
                    continue
                h = m.g
                if h is None:
                    m.g = p
                    m.own = p is not g and p.base is None
                elif m.own:
                    h += p
                    m.g = h
                else:
                    m.g = h + p
                    m.own = True
        pairs = [(m.variable, _accumulated(m.variable, m.g, m.own, False)) for m in leaves if m.g is not None]
        _commit(pairs, [])
    finally:
        for n in order:
            n.g = None
        for m in leaves:
            m.g = None
    if not retain:
        small = len(order) <= REMEMBERED_NODES
        for n in order:
            n.free(small)
    return True


def _commit(new: list[tuple[Tensor, Tensor]], hooks: list[Any]) -> None:
    """Set the new gradients, then call the post-accumulate hooks; all or nothing."""
    before = [(t, t.grad) for t, _ in new]
    try:
        for tensor, value in new:
            tensor.grad = value
        for hook, tensor in hooks:
            hook(tensor)
    except BaseException:
        for tensor, old in before:
            tensor.grad = old
        raise


class Walk:
    """One run of backward over a graph."""

    def __init__(self, targets: list[Any] | None, create: bool, nested: bool) -> None:
        self.epoch, self.create, self.nested = _next_epoch(), create, nested
        self.order: list[Any] = []
        self.stack: list[Any] = []
        self.stash: list[Any] = []          # state of nodes that an outer walk is using
        self.leaves: list[tuple[Tensor, Any, bool]] = []
        self.retained: list[tuple[Tensor, Any, bool]] = []
        self.targets = targets
        self.captured: list[Any] = [None] * len(targets or ())
        self.anomaly = MODE.get().anomaly

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
            self.order.append(node)
            if node.__class__ is not AccumulateGrad:
                self.stack.append(node)
            if not node.outputs:
                node.outs = []
        if edge is not node:
            node.outs.append(edge)

    def _remember(self, place: Any) -> None:
        if self.nested:
            self.stash.append((place, place.mark, place.g, getattr(place, "own", False), getattr(place, "seq", None), getattr(place, "outs", None)))
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
                    if nested or m.__class__ is Output or not m.outputs:
                        enter(m)
                        if m.__class__ is AccumulateGrad:
                            m.seq = n.seq - 0.5
                    elif m.__class__ is AccumulateGrad:
                        m.mark = epoch
                        m.seq = n.seq - 0.5                 # runs right behind its last user
                        fast(m)
                    else:
                        m.mark = epoch
                        fast(m)
                        push(m)
                elif m.__class__ is AccumulateGrad and n.seq - 0.5 < m.seq:
                    m.seq = n.seq - 0.5
        order.sort(key=_by_seq)

    def _needed(self) -> set[Any] | None:
        """The nodes that lie on a way to the targets; None: all."""
        if self.targets is None:
            return None
        needed: set[Any] = {t.node if t.__class__ is Output else t for t in self.targets}
        for n in self.order:
            for m in (n.e0, n.e1, *n.more):
                if m is not None and (m.node if m.__class__ is Output else m) in needed:
                    needed.add(n)
                    break
        return needed

    # -- running them ----------------------------------------------------------------------

    def run(self) -> None:
        """Run every node, newest first."""
        self._discover()
        needed, order = self._needed(), self.order
        users = [n for n in order if n.__class__ is not AccumulateGrad] if newest_change() else []
        if users and newest_change() > users[0].seq:
            check_versions(users)
        wanted = {t: k for k, t in enumerate(self.targets or ())} if self.targets else None
        wanted = {t: k for k, t in enumerate(self.targets or ())} if self.targets else None
        for n in reversed(order):
            g = n.g
            if n.__class__ is AccumulateGrad:
                self._leaf(n, g, wanted)
            elif n.outputs == 0 or g is not None:
                self._one(n, g, wanted, needed)

    def _leaf(self, n: Any, g: Any, wanted: dict[Any, int] | None) -> None:
        if g is None:
            return
        if n.hooks is not None:
            g = self._tensor_hooks(n, 0, g)
        self.leaves.append((n.variable, g, n.own and n.hooks is None))
        if wanted is not None:
            self._capture(wanted, n, g)
        n.g = None

    def _one(self, n: Any, g: Any, wanted: dict[Any, int] | None, needed: set[Any] | None) -> None:
        """Run one node with everything that may be asked of it."""
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
        if needed is not None and (n not in needed or not self._goes_on(n, needed)):
            return
        if n.hooks is not None:
            grads = self._with_node_hooks(n, g)
        else:
            grads = n.pull_graph(g) if self.create else n.pull(g)
        if self.anomaly:
            self._check(n, g, grads)
        self._give(n, g, grads)

    @staticmethod
    def _goes_on(n: Any, needed: set[Any]) -> bool:
        return any(m is not None and (m.node if m.__class__ is Output else m) in needed for m in (n.e0, n.e1, *n.more))

    def _capture(self, wanted: dict[Any, int], edge: Any, g: Any) -> None:
        if edge in wanted:
            for k, t in enumerate(self.targets or ()):
                if t is edge:
                    self.captured[k] = g

    def _give(self, n: Any, g: Any, grads: Any) -> None:
        """Add each gradient to the place its edge names: by reference, then allocated, then in place."""
        create = self.create
        k = len(grads)              # a rule may give one array to several inputs: then nobody may add to it in place
        fresh = not create and (k == 1 or k == 2 and grads[0] is not grads[1])
        for m, p in zip((n.e0, n.e1, *n.more) if n.more else (n.e0, n.e1), grads, strict=False):
            if p is None or m is None:
                continue
            h = m.g
            if h is None:
                m.g = p
                m.own = fresh and p is not g and p.base is None
            elif m.own:
                h += p
                m.g = h
            else:
                m.g = h + p
                m.own = not create

    def _gather(self, n: Any, wanted: dict[Any, int] | None) -> list[Any] | None:
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
        zeros = [np.zeros(*spec) if g is None else g for g, spec in zip(found, n.specs, strict=True)]
        return [wrap(z) if self.create and not isinstance(z, Tensor) else z for z in zeros]

    # -- hooks -----------------------------------------------------------------------------

    def _tensor_hooks(self, n: Any, index: int, g: Any) -> Any:
        """Tensor hooks, then retain_grad."""
        for hook in list(n.hooks.tensor.get(index, {}).values()):
            g = self._hooked(hook(self._shown(g)), g, "a tensor hook")
        ref = n.hooks.retained.get(index)
        tensor = ref() if ref is not None else None
        if tensor is not None:
            self.retained.append((tensor, g, False))
        return g

    def _shown(self, g: Any) -> Any:
        return g if g is None or isinstance(g, Tensor) else wrap(np.array(g))

    def _hooked(self, new: Any, old: Any, what: str) -> Any:
        if new is None:
            return old
        data = new._data if isinstance(new, Tensor) else np.asarray(new)
        if old is not None and data.shape != old.shape:
            raise ShapeError(f"{what} returned {describe(data)} for a gradient of shape {list(old.shape)}")
        return (new if isinstance(new, Tensor) else wrap(data)) if self.create else data

    def _with_node_hooks(self, n: Any, g: Any) -> Any:
        """Node prehooks → rule → node hooks; saved values unpacked for the time of the rule."""
        several = isinstance(g, list)
        for hook in list(n.hooks.pre.values()):
            shown = tuple(self._shown(x) for x in (g if several else [g]))
            new = hook(shown)
            if new is not None:
                parts = [self._hooked(a, b, "a node prehook") for a, b in zip(_list(new), g if several else [g], strict=True)]
                g = parts if several else parts[0]
        packed = {s: v for s in n.saved_slots if (v := getattr(n, s)).__class__ is Packed}
        try:
            for slot, value in packed.items():
                setattr(n, slot, unpack(value))
            grads = n.pull_graph(g) if self.create else n.pull(g)
        finally:
            for slot, value in packed.items():
                setattr(n, slot, value)
        for hook in list(n.hooks.post.values()):
            keep = _edge_positions(n)
            shown = tuple(self._shown(grads[k]) if k < len(grads) else None for k in keep)
            new = hook(shown, tuple(self._shown(x) for x in (g if several else [g])))
            if new is not None:
                grads = list(grads)
                for k, x in zip(keep, _list(new), strict=True):
                    grads[k] = self._hooked(x, grads[k], "a node hook")
        return grads

    def _check(self, n: Any, g: Any, grads: Any) -> None:
        for p in grads:
            if p is not None:
                args = tuple(g) if isinstance(g, list) else (g,)
                check_finite(n.name(), p._data if isinstance(p, Tensor) else p, args, n.where(), "made (backward)")

    # -- the end ---------------------------------------------------------------------------

    def finish(self, pairs: list[tuple[Tensor, Any, bool]], retain: bool) -> None:
        """Compute the new gradients, set them all, free the saved values."""
        writing = bool(pairs) or self.targets is None
        new = [(t, _accumulated(t, g, own, self.create)) for t, g, own in pairs]
        new += [(t, g if isinstance(g, Tensor) else wrap(_fitted(t, g, False))) for t, g, _ in self.retained]
        hooks = []
        for tensor, _ in new if writing else []:
            if tensor._node.__class__ is Leaf:
                hooks += [(hook, tensor) for hook in list(tensor._node.accumulated.values())]
        _commit(new, hooks)
        if not retain:
            small = len(self.order) <= REMEMBERED_NODES
            for n in self.order:
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
        self.order, self.leaves = [], []


def _edge_positions(n: Any) -> Sequence[int]:
    """Where the edges of a node stand among (e0, e1, *more)."""
    count_ = sum(1 for _ in n.edges())
    return range(2, 2 + count_) if n.e0 is None and n.e1 is None and not n.outputs else range(count_)


def _accumulated(tensor: Tensor, g: Any, own: bool, create: bool) -> Tensor:
    """The new ``.grad`` of a leaf, in memory of its own, in the leaf's shape and dtype."""
    old = tensor.grad
    if old is None and own and g.dtype is tensor._data.dtype and g.shape == tensor._data.shape:
        return wrap(g)
    if create or isinstance(g, Tensor):
        g = g if isinstance(g, Tensor) else wrap(np.array(g))
        _fitted(tensor, g._data, False)
        return g if old is None else old + g
    g = _fitted(tensor, g, own)
    if old is None:
        return wrap(g)
    return wrap(np.asarray(old._data + g)) if old._node is None else old + wrap(g)


def _fitted(tensor: Tensor, g: Any, own: bool) -> Any:
    """A gradient in its leaf's shape and dtype and in memory nobody else holds."""
    data = tensor._data
    if g.shape != data.shape:
        raise ShapeError(f"a gradient of shape {list(g.shape)} arrived at {describe(tensor)}{_named(tensor)}: one of the rules on the way has a wrong shape")
    if g.dtype != data.dtype:
        if g.dtype.kind == "c":
            raise DTypeError(f"a complex gradient arrived at the real {describe(tensor)}{_named(tensor)}; minigrad differentiates real functions only")
        return np.array(g, data.dtype)
    return g if own else np.array(g)
