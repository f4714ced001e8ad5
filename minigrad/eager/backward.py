"""The walk: from the output, along ``next_functions``, to the leaves.

Order: a node runs when all its users have; the newest first (one sort by sequence number gives both, since a user is
always newer than what it uses); an AccumulateGrad as soon as its last user has run.  No recursion.

Nothing is written before every rule has run: then each leaf gets its new ``.grad``, and last the saved values are
freed.  An exception on the way, from a hook, a rule or the keyboard, leaves every ``.grad`` and the graph as they were.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import count
from operator import attrgetter
from typing import Any
from weakref import ref

import numpy as np

from ..errors import DTypeError, GradError, MinigradError, ShapeError, describe, refusal
from ..primitives.arguments import as_list
from ..primitives.dispatch import EAGER, check_finite
from ..primitives.registry import Primitive
from .grad_fn import AccumulateGrad, Hooks, Output, no_graph_reason, unpack
from .inplace import check_versions, newest_change
from .mode import MODE, enable_grad
from .tensor import Tensor, wrap

ndarray = np.ndarray
_walking = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child inherits no walk of another thread, only whole ones
    os.register_at_fork(
        before=_walking.acquire, after_in_parent=_walking.release, after_in_child=_walking.release
    )
#: where the last backward started: a weak reference to the node, which of its outputs, the seed
last_start: tuple[Any, int, Any] = (None, 0, None)
_depth = 0  #: how many walks are under way, one within a rule or a hook of another
next_epoch = count(1).__next__
by_seq = attrgetter("seq")
Roots = list[tuple[Any, Any]]  #: edges, each with what arrives there
REMEMBERED_NODES = 256  #: `mg.why` can look back at graphs up to this size


def backward(
    tensors: Any,
    gradients: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradient of outputs with respect to all leaves and add it to their ``.grad``.

    Args: ``gradients``, the seed of each output, needed where it has more than one element, in its shape;
    ``inputs``, the only tensors whose ``.grad`` is to change; ``create_graph``, so that the gradients can be
    differentiated again; ``retain_graph``, so that saved values outlive this call.
    Errors: `GradError`, `ShapeError`; then every ``.grad`` is as before the call.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> mg.backward([x.sum(), x * x], [None, [1.0, 10.0]])
    >>> x.grad
    tensor([ 3., 41.])
    """
    retain = create_graph if retain_graph is None else retain_graph
    roots = roots_of(tensors, gradients, create_graph)
    targets = None if inputs is None else as_list(inputs)
    if targets is not None and not targets:
        advice = "leave inputs out to reach every leaf"
        raise refusal("backward(inputs=[]) names no tensor", advice, GradError)
    _walk(roots, targets, retain, create_graph, write=True)


EAGER["backward"] = backward


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs with respect to inputs, returned and not accumulated.

    One gradient per input, in its shape and dtype; inputs may be leaves or not.  An input that no output depends on
    is an error, or None with ``allow_unused``, or zeros with ``materialize_grads``.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.grad(x * x, x)
    (tensor(6.),)
    """
    tensors = as_list(inputs)
    if not tensors:
        advice = "the Tensors whose gradients are asked for"
        raise refusal("grad(inputs=[]) names no tensor to differentiate by", advice, GradError)
    retain = create_graph if retain_graph is None else retain_graph
    roots = roots_of(outputs, grad_outputs, create_graph)
    grads: list[Tensor | None] = []
    captured = _walk(roots, tensors, retain, create_graph, write=False)
    for k, (tensor, g) in enumerate(zip(tensors, captured, strict=True)):
        if g is None and materialize_grads:
            g = wrap(np.zeros(tensor.shape, tensor.dtype))
        if g is None and not allow_unused:
            what = f"input {k}{named(tensor)} of grad() was not used to compute the outputs"
            advice = "allow_unused=True returns None for it, materialize_grads=True zeros"
            raise refusal(what, advice, GradError)
        grads.append(g if g is None or isinstance(g, Tensor) else wrap(fitted(tensor, g, False)))
    return tuple(grads)


def _walk(
    roots: Roots, inputs: list[Any] | None, retain: bool, create: bool, write: bool
) -> list[Any]:
    """Run backward from edges with their seeds, to all leaves or to some inputs; returns the gradients of these."""
    global _depth, last_start
    targets = None if inputs is None else [edge_of(t, "inputs") for t in inputs]
    with _walking:
        order, ends, hooked = discovered(roots)
        edge, seed = roots[-1]
        if edge.__class__ is Output:
            last_start = ref(edge.node), edge.index, seed
        else:
            last_start = None if edge.__class__ is AccumulateGrad else ref(edge), 0, seed
        if not (hooked or create or _depth or targets is not None or MODE.get().anomaly):
            _run(order, ends, roots, retain)
            return []
        walk, outer = Walk(order, ends, targets, create, write), _depth
        _depth = outer + 1
        try:
            with enable_grad() if create else nullcontext():
                walk.run(roots)
            if write and inputs is not None:
                pairs = zip(inputs, walk.captured, strict=True)
                walk.leaves = [(t, g, False) for t, g in pairs if g is not None]
            walk.finish(retain)
            return walk.captured
        finally:
            _depth = outer  # an inner walk that was interrupted here does not matter any more
            walk.clear()


def discovered(roots: Roots) -> tuple[list[Any], list[Any], bool]:
    """Every node below some edges, oldest first; the AccumulateGrads; whether one of them has a hook."""
    epoch = next_epoch()
    order: list[Any] = []
    ends: list[Any] = []
    see, end = order.append, ends.append
    for m, _ in roots:
        if m.mark != epoch:
            m.mark = epoch
            (end if m.__class__ is AccumulateGrad else see)(m)
    for n in order:  # which grows on the way
        for m in n.edges:
            if m is not None and m.mark != epoch:
                m.mark = epoch
                if m.__class__ is AccumulateGrad:
                    end(m)
                else:
                    see(m)
    order.sort(key=by_seq)
    return order, ends, Hooks.asked and any(n.hooks is not None for n in order + ends)


def _run(order: list[Any], ends: list[Any], roots: Roots, retain: bool) -> None:
    """Backward as it usually is: nobody looks at a gradient on its way, and leaves get arrays."""
    if order and newest_change() > order[0].seq:
        check_versions(order)
    before: list[tuple[Tensor, Any]] = []  # leaves whose gradient is new, and the one they had
    try:
        for m, seed in roots:
            m.g, m.own = seed if m.g is None else m.g + seed, False
        for n in reversed(order):
            n.push()
        for m in ends:
            g, leaf = m.g, m.ref()
            m.g = None
            if g is not None and leaf._node is not None:  # else it does not require grad any more
                data, old = leaf._data, leaf._grad
                if old is not None or not m.own or g.__class__ is not ndarray:
                    g = accumulated(leaf, g, m.own, False)
                elif g.shape != data.shape or g.dtype is not data.dtype:
                    g = accumulated(leaf, g, True, False)
                before.append((leaf, old))
                leaf._grad = g
    except BaseException:
        for n in order + ends:
            n.g = None
        for leaf, old in before:
            leaf._grad = old
        raise
    small = len(order) <= REMEMBERED_NODES
    for n in () if retain else order:
        n.free(small)


# -- where it starts ----------------------------------------------------------------------


#: seeds of outputs that are one number: to find one is faster than to make one
_UNITS: dict[type, Any] = {t: t(1) for t in (np.float32, np.float64)}


def edge_of(tensor: Any, what: str) -> Any:
    """Where a gradient of a Tensor goes."""
    if not isinstance(tensor, Tensor):
        advice = "the Tensors that the output was computed from"
        raise refusal(f"{what} must be Tensors, not {describe(tensor)}", advice, DTypeError)
    if tensor._node is None:
        said = f"one of the {what}{named(tensor)} does not require grad"
        raise refusal(said, "create it with requires_grad=True", GradError)
    return tensor._node


def roots_of(outputs: Any, seeds: Any, create: bool) -> Roots:
    """The edge of each output, with its seed: an array, or a Tensor to ``create`` a graph."""
    if outputs.__class__ is Tensor and seeds is None and not create:
        unit, edge = _UNITS.get(outputs._data.__class__), outputs._node
        if unit is not None and edge is not None and edge.__class__ is not AccumulateGrad:
            return [(edge, unit)]
    outputs = as_list(outputs)
    seeds = [None] * len(outputs) if seeds is None else as_list(seeds)
    if len(seeds) != len(outputs):
        what = f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given"
        advice = "a list with one for each output; None for an output that is one number"
        raise refusal(what, advice, GradError)
    pairs = [(o, _seed(o, s, create)) for o, s in zip(outputs, seeds, strict=True)]
    return [(edge_of(o, "outputs"), seed) for o, seed in pairs]


def _seed(out: Any, seed: Any, create: bool) -> Any:
    """The seed of an output, checked."""
    if not isinstance(out, Tensor):
        what = f"backward starts from a Tensor, not from {describe(out)}"
        advice = "the result of an op on Tensors; numpy(), item() and float() lose the graph"
        raise refusal(what, advice, DTypeError)
    if out._node is None:
        raise no_graph(out)
    if out._data.dtype.kind != "f":
        what = f"backward from {describe(out)} is not defined: only real floating-point outputs have gradients here"
        raise refusal(what, "start from a real number", DTypeError)
    if seed is None:
        data = out._data
        if data.size != 1:
            what = f"backward() needs a seed: {describe(out)} has {data.size} elements, "
            what += "and only a scalar, a single number, has a gradient by itself"
            advice = f"reduce it first (y.sum().backward()), or pass gradient=… of shape {list(out.shape)}"
            raise refusal(what, advice, GradError)
        array = np.ones_like(data) if data.ndim else data.dtype.type(1)
    else:
        array, advice = getattr(seed, "_data", seed), f"gradient=… of shape {list(out.shape)}"
        array = np.asarray(array)
        is_real = array.dtype.kind in "fiub"
        if not is_real or array.shape != out.shape:
            what = f"the seed {describe(array)} must hold real numbers, in the shape of the output"
            raise refusal(what, advice, ShapeError if is_real else DTypeError)
        array = array.astype(out._data.dtype, copy=False)
    if not create:
        return array
    return seed if isinstance(seed, Tensor) else wrap(np.array(array))


def no_graph(out: Tensor) -> MinigradError:
    """The error for an output without a graph, with the reason."""
    advice = "create the inputs with requires_grad=True, compute outside no_grad(), not detached"
    if isinstance(getattr(out, "_cut", None), Primitive):
        advice = "an op that has one; an op of your own gets it by op.grad(x=lambda …)"
    what = f"backward() found no graph: {describe(out)}{named(out)} has no grad_fn and does not require grad.\n"
    return refusal(f"{what}  why: {no_graph_reason(out)}", advice, GradError)


# -- the walk ------------------------------------------------------------------------------


class Walk:
    """A run of backward of which somebody sees more than the end.

    Hooks, retained gradients, targets, a graph of the gradients (``create``), anomaly mode, and a backward within a
    backward.
    """

    def __init__(
        self, order: list[Any], ends: list[Any], targets: Any, create: bool, writes: bool
    ) -> None:
        self.order, self.ends, self.targets = order, ends, targets
        self.create, self.writes, self.anomaly = create, writes, MODE.get().anomaly
        self.runs = order  # the nodes whose rules run
        self.needed: set[Any] = set()  # these and the targets
        #: what an outer walk has gathered
        self.stash = [(m, m.g, m.own) for m in (*order, *ends) if m.g is not None]
        #: each with its gradient; is it the only holder?
        self.leaves: list[tuple[Tensor, Any, bool]] = []
        self.retained: list[tuple[Tensor, Any]] = []
        self.captured: list[Any] = [None] * len(targets or ())

    def run(self, roots: Roots) -> None:
        """Run every node, newest first; a leaf right behind its last user."""
        if self.targets is not None:
            self.runs = self._on_the_way()
        if self.runs and newest_change() > self.runs[0].seq:
            check_versions(self.runs)
        for m, _, _ in self.stash:
            m.g = None
        for m, seed in roots:
            m.g, m.own = seed if m.g is None else m.g + seed, False
        order: dict[Any, None] = {}  # a leaf stands before the oldest of its users
        for n in self.order:
            order |= dict.fromkeys(m for m in n.edges if m.__class__ is AccumulateGrad)
            order[n] = None
        order |= dict.fromkeys(self.ends)
        running = set(self.runs)
        for n in reversed(order):
            if self.targets is not None and n not in self.needed:
                continue
            if n.__class__ is AccumulateGrad:
                self._leaf(n, n.g)
            elif n.__class__ is Output:
                n.push()
            elif n.g is not None:
                self._one(n, n.g, n in running)

    def _on_the_way(self) -> list[Any]:
        """The nodes on a way to a target: what hangs off it would be incomplete."""
        needed = {t.node if t.__class__ is Output else t for t in self.targets or ()}
        runs = []
        for n in self.order:
            if not needed.isdisjoint(n.edges):
                needed.add(n)
                runs.append(n)
        self.needed = needed
        return runs

    def _leaf(self, n: Any, g: Any) -> None:
        n.g = None
        if g is None:
            return
        if n.hooks is not None:
            g = self._tensor_hooks(n, 0, g)
            if self.writes:
                g = self._prehooks(n, g)
        if n.variable._node is not None:
            self.leaves.append((n.variable, g, n.own and n.hooks is None))
        self._capture(n, [g])

    def _one(self, n: Any, g: Any, runs: bool) -> None:
        """Run one node with everything that may be asked of it."""
        n.g = None
        grads = g if n.several else [g]
        if n.hooks is not None:
            grads = [g if g is None else self._tensor_hooks(n, k, g) for k, g in enumerate(grads)]
        self._capture(n, grads)
        if not runs:
            return
        g = grads[0]
        if n.several:
            g = n.complete(grads)
            g = [wrap(z) if self.create and isinstance(z, ndarray) else z for z in g]
        grads = self._with_node_hooks(n, g) if n.hooks is not None else self._pull(n, g)
        if self.anomaly:
            for p in grads:
                if p is not None:
                    args = {f"gradient {k}": x for k, x in enumerate(g if n.several else [g])}
                    value, title = getattr(p, "_data", p), f"backward of {n.name()}"
                    check_finite(title, value, args, n.where())
        n.give(grads)

    def _pull(self, n: Any, g: Any) -> Any:
        return n.pull_graph(g) if self.create else n.pull(g)

    def _capture(self, n: Any, grads: list[Any]) -> None:
        for k, t in enumerate(self.targets or ()):
            node, index = (t.node, t.index) if t.__class__ is Output else (t, 0)
            if node is n and grads[index] is not None:
                self.captured[k] = grads[index]

    # -- the end ---------------------------------------------------------------------------

    def finish(self, retain: bool) -> None:
        """Compute the new gradients, set them all, free the saved values."""
        leaves = self.leaves if self.writes else []
        new = [(t, accumulated(t, g, own, self.create)) for t, g, own in leaves]
        seen = {id(t) for t, _ in new}  # an input that is retained, too, gets it once
        kept = [(t, g) for t, g in self.retained if id(t) not in seen]
        new += [(t, accumulated(t, g, False, self.create)) for t, g in kept]
        commit(new, [call for t, g, _ in leaves for call in self._behind(t, g)])
        for n in () if retain else self.runs:
            n.free(len(self.order) <= REMEMBERED_NODES)

    def _behind(self, tensor: Any, g: Any) -> Iterable[tuple[Any, tuple[Any, ...]]]:
        """The hooks behind the new ``.grad`` of a leaf, with what they see."""
        node = tensor._node
        if node.__class__ is AccumulateGrad and node.hooks is not None:
            for hook in list(node.hooks.accumulated.values()):
                yield hook, (tensor,)
            for hook in list(node.hooks.post.values()):
                yield hook, ((), (_shown(g),))

    def clear(self) -> None:
        """Leave no trace on the nodes, whatever happened."""
        for n in self.order + self.ends:
            n.g = None
        for place, g, own in self.stash:
            place.g, place.own = g, own

    # -- hooks: who looks at gradients that pass, or changes them ------------------------------

    def _tensor_hooks(self, n: Any, index: int, g: Any) -> Any:
        """Tensor hooks, then retain_grad."""
        for hook in list(n.hooks.tensor.get(index, {}).values()):
            g = self._hooked(hook(_shown(g)), g, "a tensor hook")
        ref = n.hooks.retained.get(index)
        tensor = ref() if ref is not None else None
        if tensor is not None:
            self.retained.append((tensor, g))
        return g

    def _hooked(self, new: Any, old: Any, what: str) -> Any:
        """What a hook returned in the place of a gradient."""
        if new is None:
            return old
        data = new._data if isinstance(new, Tensor) else np.asarray(new)
        if old is not None and data.shape != old.shape:
            said = f"{what} returned {describe(data)} for a gradient of shape {list(old.shape)}"
            raise refusal(said, "return a gradient of that shape, or None to leave it as it is")
        return (new if isinstance(new, Tensor) else wrap(data)) if self.create else data

    def _all_hooked(self, new: Any, old: Any, what: str, slots: str) -> Any:
        """The same for a hook that returned several gradients, or None."""
        if new is None:
            return old
        parts = as_list(new)
        if len(parts) != len(old):
            said = f"{what} returned {len(parts)} gradients for {len(old)}"
            raise refusal(said, f"one for each of {slots}, or None", GradError)
        return [self._hooked(a, b, what) for a, b in zip(parts, old, strict=True)]

    def _prehooks(self, n: Any, g: Any) -> Any:
        """What the prehooks of a node make of the gradient of its output, or of its outputs."""
        grads = as_list(g)
        for hook in list(n.hooks.pre.values()):
            new = hook(tuple(map(_shown, grads)))
            grads = self._all_hooked(new, grads, "a node prehook", "grad_outputs")
        return grads if isinstance(g, list) else grads[0]

    def _with_node_hooks(self, n: Any, g: Any) -> Any:
        """Node prehooks → rule → node hooks; saved values unpacked for the time of the rule."""
        g = self._prehooks(n, g)
        packed = {s: getattr(n, s) for s in n.saved_slots}
        try:
            for slot, value in packed.items():
                setattr(n, slot, unpack(value))
            grads = self._pull(n, g)
        finally:
            for slot, value in packed.items():
                setattr(n, slot, value)
        for hook in list(n.hooks.post.values()):
            new = hook(tuple(map(_shown, grads)), tuple(map(_shown, as_list(g))))
            grads = self._all_hooked(new, grads, "a node hook", "grad_inputs")
        return grads


def _shown(g: Any) -> Any:
    """A gradient as hooks see it."""
    return g if g is None or isinstance(g, Tensor) else wrap(np.array(g))


# -- what leaves get ----------------------------------------------------------------------


def commit(new: list[tuple[Tensor, Any]], hooks: Iterable[Any] = ()) -> None:
    """Set the new gradients, then call the hooks behind them, each with what it is to see; all or nothing."""
    before = [(t, t._grad) for t, _ in new]
    try:
        for tensor, value in new:
            tensor._grad = value
        for hook, seen in hooks:
            if hook(*seen) is not None and len(seen) > 1:
                what = "a hook of an AccumulateGrad returned something, and there are no grad_inputs it could replace"
                advice = "return nothing; register_prehook changes what is added to .grad"
                raise refusal(what, advice, GradError)
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
        return g * 1.0 if g._node.__class__ is AccumulateGrad else wrap(np.array(g._data), g._node)
    g = fitted(tensor, g, own)
    if old is None:
        return wrap(g)
    return wrap(np.asarray(old._data + g)) if old._node is None else old + wrap(g)


def fitted(tensor: Tensor, g: Any, own: bool) -> Any:
    """A gradient in its leaf's shape and dtype and in memory nobody else holds."""
    data = tensor._data
    if g.shape != data.shape:
        what = f"a gradient of shape {list(g.shape)} arrived at {describe(tensor)}{named(tensor)}: "
        what += "one of the rules on the way has a wrong shape"
        advice = "a gradient has the shape of its input; @mg.elementwise sums over broadcast axes"
        raise refusal(what, f"{advice}; mg.gradcheck(op, inputs) finds the op")
    if g.dtype != data.dtype:
        if g.dtype.kind == "c":
            what = f"a complex gradient arrived at the real {describe(tensor)}{named(tensor)}"
            raise DTypeError(f"{what}; minigrad differentiates real functions only")
        return np.array(g, data.dtype)
    return g if own else np.array(g)


def named(tensor: Tensor) -> str:
    """The name of a Tensor, as errors add it."""
    return f" ({tensor.name})" if tensor.name else ""
