"""The walk: from the output, along ``next_functions``, to the leaves.

Order: a node runs when all its users have; the newest first (one sort by sequence number gives
both, since a user is always newer than what it uses); an AccumulateGrad as soon as its last user
has run.  No recursion.

Nothing is written before every rule has run: then each leaf gets its new ``.grad``, and last the
saved values are freed.  An exception on the way, from a hook, a rule or the keyboard, leaves every
``.grad`` and the graph as they were.
"""

import os
import threading
from contextlib import nullcontext
from operator import attrgetter
from typing import Any
from weakref import ref

import numpy as np

from ..atomic import set_all
from ..errors import DTypeError, GradError, ShapeError, describe, refusal
from ..primitives.arguments import Listed, as_list
from ..primitives.dispatch import EAGER, check_finite
from ..primitives.registry import Primitive
from .grad_fn import AccumulateGrad, Hooks, Output, named, no_graph_reason, place_of, unpack
from .inplace import check_versions, newest_change
from .mode import MODE, enable_grad
from .tensor import Tensor, wrap

ndarray = np.ndarray
_walking = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child inherits no walk of another thread, only whole ones
    os.register_at_fork(
        before=_walking.acquire, after_in_parent=_walking.release, after_in_child=_walking.release
    )
#: where the last backward started, leaves left out: weak references to nodes, which output of each, the seeds
last_starts: Listed = []
by_seq = attrgetter("seq")
Roots = list[tuple[Any, Any]]  #: edges, each with what arrives there
PREHOOK = "a node prehook", "grad_outputs"
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
    roots = roots_of(tensors, gradients, create_graph)
    targets = None if inputs is None else as_list(inputs)
    _walk(roots, targets, retain_graph, create_graph, write=True)


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

    One gradient per input, in its shape and dtype; inputs may be leaves or not.  An input that no
    output depends on is an error, or None with ``allow_unused``, or zeros with
    ``materialize_grads``.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.grad(x * x, x)
    (tensor(6.),)
    """
    tensors = as_list(inputs)
    is_leaf = getattr(outputs, "_node", None).__class__ is AccumulateGrad
    if is_leaf and any(getattr(t, "grad_fn", None) for t in tensors):
        what = f"grad() starts from an output, and {describe(outputs)}{named(outputs)} is a leaf"
        raise refusal(what, "mg.grad(loss, w): first the output, then the inputs", GradError)
    roots = roots_of(outputs, grad_outputs, create_graph)
    grads = []
    captured = _walk(roots, tensors, retain_graph, create_graph, write=False)
    for k, (tensor, g) in enumerate(zip(tensors, captured, strict=True)):
        if g is None and materialize_grads:
            g = np.zeros(tensor.shape, tensor.dtype)
        if g is None and not allow_unused:
            raise refusal(
                f"input {k}{named(tensor)} of grad() was not used to compute the outputs",
                "allow_unused=True returns None for it, materialize_grads=True zeros",
                GradError,
            )
        grads.append(_shown(g))
    return tuple(grads)


def _walk(
    roots: Roots, inputs: Listed | None, retain: bool | None, create: bool, write: bool
) -> Listed:
    """Run backward from edges with their seeds, to all leaves or to some inputs; returns the gradients of these."""
    global last_starts
    if inputs == []:
        advice = (
            "the Tensors whose gradients are asked for; backward without inputs reaches every leaf"
        )
        raise refusal("inputs=[] names no tensor", advice, GradError)
    retain = create if retain is None else retain
    places = [place_of(target_edge(t)) for t in inputs or ()]
    with _walking:
        order, ends, hooked = discovered(roots)
        starts = [(*place_of(edge), seed) for edge, seed in roots]
        last_starts = [(ref(n), k, g) for n, k, g in starts if n.__class__ is not AccumulateGrad]
        if not (hooked or create or places or MODE.get().anomaly):
            _run(order, ends, roots, retain)
            return []
        walk = Walk(order, {n for n, _ in places}, create, write)
        with enable_grad() if create else nullcontext():
            walk.run(roots)
            pairs = [*zip(inputs or (), map(walk.captured.get, places), strict=True)]
            if write:
                walk.reached |= {t: g for t, g in pairs if g is not None}
            captured = [g if g is None else fitted(t, g, True) for t, g in pairs]
            walk.finish(retain)
        return captured


def discovered(roots: Roots) -> tuple[Listed, Listed, bool]:
    """Every node below some edges, oldest first; the AccumulateGrads; whether one of them has a hook."""
    order: Listed = []
    ends: Listed = []
    seen = {None}
    for m, _ in roots:
        if m not in seen:
            seen.add(m)
            (ends if m.__class__ is AccumulateGrad else order).append(m)
    for n in order:  # which grows on the way
        for m in n.edges:
            if m not in seen:
                seen.add(m)
                (ends if m.__class__ is AccumulateGrad else order).append(m)
    order.sort(key=by_seq)
    return order, ends, Hooks.asked and any(n.hooks is not None for n in order + ends)


def _run(order: Listed, ends: Listed, roots: Roots, retain: bool) -> None:
    """Backward as it usually is: nobody looks at a gradient on its way, and leaves get arrays."""
    if order and newest_change() > order[0].seq:
        check_versions(order)
    before = []  # leaves whose gradient is new, and the one they had
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
                fits = m.own and g.__class__ is ndarray and g.dtype is data.dtype
                if old is not None or not fits or g.shape != data.shape:
                    g = accumulated(leaf, g, m.own, False)
                before.append((leaf, old))
                leaf._grad = g
    except BaseException:
        for n in order + ends:
            n.g = None
        for leaf, old in before:
            leaf._grad = old
        raise
    if not retain:
        free(order, len(order) <= REMEMBERED_NODES)


def free(nodes: Listed, remember: bool) -> None:
    """Let go of what nodes have saved."""
    for n in nodes:
        if n.saved_slots:
            n.free(remember)


# -- where it starts ----------------------------------------------------------------------


#: seeds of outputs that are one number: to find one is faster than to make one
_UNITS = {t: t(1) for t in (np.float32, np.float64)}


def target_edge(tensor) -> Any:
    """Where a gradient of a Tensor goes that is asked for."""
    if not isinstance(tensor, Tensor):
        advice = "the Tensors that the output was computed from"
        raise refusal(f"inputs must be Tensors, not {describe(tensor)}", advice, DTypeError)
    if tensor._node is None:
        said = f"one of the inputs{named(tensor)} does not require grad"
        raise refusal(said, "create it with requires_grad=True", GradError)
    return tensor._node


def roots_of(outputs, seeds, create: bool) -> Roots:
    """The edge of each output, with its seed: an array, or a Tensor to ``create`` a graph."""
    if outputs.__class__ is Tensor and seeds is None and not create:
        unit, edge = _UNITS.get(outputs._data.__class__), outputs._node
        if unit is not None and edge is not None and edge.__class__ is not AccumulateGrad:
            return [(edge, unit)]
    outputs = as_list(outputs)
    seeds = [None] * len(outputs) if seeds is None else as_list(seeds)
    if len(seeds) != len(outputs):
        raise refusal(
            f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given",
            "a list with one for each output; None for an output that is one number",
            GradError,
        )
    return [_root(o, s, create) for o, s in zip(outputs, seeds, strict=True)]


def _root(out, seed, create: bool) -> tuple[Any, Any]:
    """The edge of an output and its seed, checked."""
    if not isinstance(out, Tensor):
        raise refusal(
            f"backward starts from a Tensor, not from {describe(out)}",
            "the result of an op on Tensors; numpy(), item() and float() lose the graph",
            DTypeError,
        )
    if out._node is None:
        advice = (
            "create the inputs with requires_grad=True, compute outside no_grad(), not detached"
        )
        advice += "; update them in place, w -= …; gradients with create_graph=True"
        if isinstance(getattr(out, "_cut", None), Primitive):
            advice = "an op that has one; an op of your own gets it by op.grad(x=lambda …)"
        what = f"backward() found no graph: {describe(out)}{named(out)} has no grad_fn and does not require grad.\n"
        raise refusal(f"{what}  why: {no_graph_reason(out)}", advice, GradError)
    if out._data.dtype.kind != "f":
        what = f"backward from {describe(out)} is not defined: only real floating-point outputs have gradients here"
        raise refusal(what, "start from a real number", DTypeError)
    if seed is None:
        data = out._data
        if data.size != 1:
            raise refusal(
                f"backward() needs a seed: {describe(out)} has {data.size} elements, "
                "and only a scalar, a single number, has a gradient by itself",
                f"reduce it first (y.sum().backward()), or pass gradient=… of shape {list(out.shape)}",
                GradError,
            )
        array = np.ones_like(data) if data.ndim else data.dtype.type(1)
    else:
        array = np.asarray(getattr(seed, "_data", seed))
        advice = f"gradient=… of shape {list(out.shape)}"
        is_real = array.dtype.kind in "fiub"
        if not is_real or array.shape != out.shape:
            what = f"the seed {describe(array)} must hold real numbers, in the shape of the output"
            raise refusal(what, advice, ShapeError if is_real else DTypeError)
        array = array.astype(out._data.dtype, copy=False)
    if create:
        array = seed if isinstance(seed, Tensor) else wrap(np.array(array))
    return out._node, array


# -- the walk ------------------------------------------------------------------------------


class Walk:
    """A run of backward of which somebody sees more than the end.

    Hooks, retained gradients, targets, a graph of the gradients (``create``), anomaly mode.  What
    came to a node is held here and not at the node, so that a hook may run another backward.
    """

    def __init__(self, order: Listed, targets: set[Any], create: bool, writes: bool) -> None:
        self.order, self.targets, self.create, self.writes = order, targets, create, writes
        #: node → what came to it; to one with several outputs, by their numbers
        self.arrived: dict[Any, Any] = {}
        self.reached: dict[Tensor, Any] = {}  # the Tensors whose `.grad` is to change
        self.captured: dict[tuple[Any, int], Any] = {}  # the gradients of the outputs of targets
        self.runs = order  # the nodes whose rules run
        if targets:  # those on a way to a target: what hangs off it would be incomplete
            needed = {*targets}
            self.runs = []
            for n in order:
                if not needed.isdisjoint(n.edges):
                    needed.add(n)
                    self.runs.append(n)

    def run(self, roots: Roots) -> None:
        """Run every node, newest first; a leaf right behind its last user."""
        if self.runs and newest_change() > self.runs[0].seq:
            check_versions(self.runs)
        order: dict[Any, None] = {}  # a leaf stands before the oldest of its users
        for n in self.order:
            order |= dict.fromkeys(m for m in n.edges if m.__class__ is AccumulateGrad)
            order[n] = None
        order |= dict.fromkeys(edge for edge, _ in roots)
        running = {*self.runs}
        seen = running | self.targets if self.targets else order.keys()
        for edge, seed in roots:
            self._arrive(edge, seed)
        for n in reversed(order):
            g = self.arrived.pop(n, None)
            if g is None or n not in seen:
                continue
            grads = [*g.values()] if n.several else [g]
            if n.hooks is not None:
                grads = [
                    g if g is None else self._tensor_hooks(n, k, g) for k, g in enumerate(grads)
                ]
                if self.writes and n.__class__ is AccumulateGrad:
                    grads = self._node_hooks(n.hooks.pre, grads, *PREHOOK)
            if n in self.targets:
                self.captured |= {(n, k): g for k, g in enumerate(grads)}
            if n in running:
                self._one(n, grads)
            elif self.writes and n.__class__ is AccumulateGrad and n.variable.requires_grad:
                self.reached[n.variable] = grads[0]  # unless it was frozen meanwhile

    def _arrive(self, edge, g) -> None:
        """Add a gradient to what came to an edge, in memory of its own."""
        at, key = self.arrived, edge
        if edge.__class__ is Output:
            none = dict.fromkeys(range(len(edge.node.specs)))
            at, key = at.setdefault(edge.node, none), edge.index
        before = at.get(key)
        at[key] = g if before is None else before + g

    def _one(self, n, grads: Listed) -> None:
        """Run the rules of one node, and all that may be asked of it."""
        if n.several:
            grads = n.complete(grads)
            if self.create:
                grads = [*map(_shown, grads)]
        gave = self._pull(n, grads) if n.hooks is None else self._with_node_hooks(n, grads)
        anomaly = MODE.get().anomaly
        for edge, g in zip(n.edges, gave, strict=True):
            if g is None:
                continue
            if anomaly:
                args = {f"gradient {k}": x for k, x in enumerate(grads)}
                check_finite(f"backward of {n.name()}", getattr(g, "_data", g), args, n.where())
            if edge is not None:
                self._arrive(edge, g)

    def _pull(self, n, grads: Listed) -> Any:
        g = grads if n.several else grads[0]
        return n.pull_graph(g) if self.create else n.pull(g)

    # -- the end ---------------------------------------------------------------------------

    def finish(self, retain: bool) -> None:
        """Compute the new gradients, set them all, free the saved values."""
        reached = self.reached.items()
        before = [(t, "_grad", t._grad) for t in self.reached]
        set_all([(t, "_grad", accumulated(t, g, False, self.create)) for t, g in reached])
        try:
            for tensor, g in reached:
                self._behind(tensor, g)
        except BaseException:
            set_all(before)
            raise
        if not retain:
            free(self.runs, len(self.order) <= REMEMBERED_NODES)

    def _behind(self, tensor, g) -> None:
        """Call the hooks behind the new ``.grad`` of a leaf."""
        hooks = tensor._node.hooks if tensor._node.__class__ is AccumulateGrad else None
        if hooks is None:
            return
        for hook in list(hooks.accumulated.values()):
            hook(tensor)
        for hook in list(hooks.post.values()):
            if hook((), (_shown(g),)) is not None:
                raise refusal(
                    "a hook of an AccumulateGrad returned something, and there are no grad_inputs it could replace",
                    "return nothing; register_prehook changes what is added to .grad",
                    GradError,
                )

    # -- hooks: who looks at gradients that pass, or changes them ------------------------------

    def _tensor_hooks(self, n, index: int, g) -> Any:
        """Tensor hooks, then retain_grad."""
        for hook in list(n.hooks.tensor.get(index, {}).values()):
            g = self._hooked(hook(_shown(g)), g, "a tensor hook")
        if (tensor := n.hooks.retained.get(index)) is not None:
            self.reached[tensor] = g
        return g

    def _hooked(self, new, old, what: str) -> Any:
        """What a hook returned in the place of a gradient."""
        if new is None:
            return old
        data = new._data if isinstance(new, Tensor) else np.asarray(new)
        if old is not None and data.shape != old.shape:
            said = f"{what} returned {describe(data)} for a gradient of shape {list(old.shape)}"
            raise refusal(said, "return a gradient of that shape, or None to leave it as it is")
        if not self.create:
            return data
        return new if isinstance(new, Tensor) else wrap(data)

    def _node_hooks(self, hooks: dict[int, Any], grads, what: str, slots: str, *seen) -> Any:
        """What hooks make of all gradients that go into a node or come out of it."""
        for hook in list(hooks.values()):
            new = hook(tuple(map(_shown, grads)), *seen)
            if new is None:
                continue
            parts = as_list(new)
            if len(parts) != len(grads):
                said = f"{what} returned {len(parts)} gradients for {len(grads)}"
                raise refusal(said, f"one for each of {slots}, or None", GradError)
            grads = [self._hooked(a, b, what) for a, b in zip(parts, grads, strict=True)]
        return grads

    def _with_node_hooks(self, n, grads: Listed) -> Any:
        """Node prehooks → rule → node hooks; saved values unpacked for the time of the rule."""
        grads = self._node_hooks(n.hooks.pre, grads, *PREHOOK)
        packed = [(n, s, getattr(n, s)) for s in n.saved_slots]
        try:
            set_all([(n, s, unpack(value)) for n, s, value in packed])
            gave = self._pull(n, grads)
        finally:
            set_all(packed)
        seen = tuple(map(_shown, grads))
        return self._node_hooks(n.hooks.post, gave, "a node hook", "grad_inputs", seen)


def _shown(g) -> Any:
    """A gradient as a Tensor of its own, as hooks see it."""
    return g if g is None or isinstance(g, Tensor) else wrap(np.array(g))


# -- what leaves get ----------------------------------------------------------------------


def accumulated(tensor: Tensor, g, own: bool, create: bool) -> Any:
    """The new ``.grad`` of a leaf, a Tensor or an array, in memory of its own, in the leaf's shape and dtype."""
    old = tensor.grad
    if create:
        g = fitted(tensor, _shown(g), True)
        if old is not None:
            return old + g
        return g * 1.0 if g._node.__class__ is AccumulateGrad else wrap(np.array(g._data), g._node)
    g = fitted(tensor, g, own)
    if old is None:
        return wrap(np.asarray(g))
    return wrap(np.asarray(old._data + g)) if old._node is None else old + wrap(g)


def fitted(tensor: Tensor, g, own: bool) -> Any:
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
        return g.astype(data.dtype)
    return g if own else np.array(g)
