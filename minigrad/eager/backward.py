"""The walk: from the output, along ``next_functions``, to the leaves.

Order: a node runs when all its users have; the newest first (one sort by sequence number gives both, since a user is
always newer than what it uses); an AccumulateGrad as soon as its last user has run.  No recursion.

Nothing is written before every rule has run: then each leaf gets its new ``.grad``, and last the saved values are
freed.  An exception on the way, from a hook, a rule or the keyboard, leaves every ``.grad`` and the graph as they were.
"""

from __future__ import annotations

import os
import threading
from itertools import count
from operator import attrgetter
from typing import Any
from weakref import ref

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, refusal, user_line
from ..primitives.arguments import as_list
from ..primitives.dispatch import EAGER
from ..primitives.registry import Primitive
from .grad_fn import AccumulateGrad, Leaf, Output, no_graph_reason, unpack
from .inplace import check_versions, newest_change
from .mode import MODE, check_finite, enable_grad
from .tensor import Tensor, wrap

ndarray = np.ndarray
_walking = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child inherits no walk of another thread, only whole ones
    os.register_at_fork(
        before=_walking.acquire, after_in_parent=_walking.release, after_in_child=_walking.release
    )
#: where the last backward started: a weak reference to the node, (its output, the seed)
last_start: tuple[Any, Any] = (None, None)
_depth = 0
next_epoch = count(1).__next__
by_seq = attrgetter("seq")
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
    if tensors.__class__ is Tensor and gradients is inputs is None and not create_graph:
        seed = unit_seed(tensors)
        if seed is not None and _usual(tensors, seed, bool(retain_graph)):
            return
    outputs = as_list(tensors)
    roots: list[Any] = [
        (o, s) for o, s in zip(outputs, seeds(outputs, gradients, create_graph), strict=True)
    ]
    if inputs is not None and not as_list(inputs):
        advice = "leave inputs out to reach every leaf"
        raise refusal("backward(inputs=[]) names no tensor", advice, GradError)
    targets = None if inputs is None else [edge_of(t, "inputs") for t in as_list(inputs)]
    _walk(
        roots,
        targets,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        as_list(inputs) if inputs is not None else [],
    )


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
    outs, ins = as_list(outputs), as_list(inputs)
    if not ins:
        advice = "the Tensors whose gradients are asked for"
        raise refusal("grad(inputs=[]) names no tensor to differentiate by", advice, GradError)
    roots = [(o, s) for o, s in zip(outs, seeds(outs, grad_outputs, create_graph), strict=True)]
    targets = [edge_of(t, "inputs") for t in ins]
    found = _walk(
        roots, targets, create_graph if retain_graph is None else retain_graph, create_graph, None
    )
    result: list[Tensor | None] = []
    for k, (tensor, g) in enumerate(zip(ins, found, strict=True)):
        if g is None and materialize_grads:
            g = wrap(np.zeros(tensor.shape, tensor.dtype))
        if g is None and not allow_unused:
            raise refusal(
                f"input {k}{named(tensor)} of grad() was not used to compute the outputs",
                "allow_unused=True returns None for it, materialize_grads=True zeros",
                GradError,
            )
        result.append(g if g is None or isinstance(g, Tensor) else wrap(fitted(tensor, g, False)))
    return tuple(result)


def _walk(
    roots: list[tuple[Any, Any]],
    targets: list[Any] | None,
    retain: bool,
    create: bool,
    written: list[Any] | None,
) -> list[Any]:
    """Run backward; see `Walk`.  ``written`` None: return the targets' gradients; else write
    ``.grad``.
    """
    global _depth, last_start
    with _walking:
        if len(roots) == 1 and targets is None and not create and _usual(*roots[0], retain):
            return []
        outer = _depth
        walk = Walk(targets, create, nested=outer > 0, writes=written is not None)
        _depth = outer + 1
        try:
            for out, seed in roots:
                edge = out._node
                array = seed._data if create else seed  # the walk may be looked at again, on arrays
                last_start = (
                    (ref(edge.node), (edge.index, array))
                    if edge.__class__ is Output
                    else (ref(edge), (0, array))
                    if edge.__class__ is not Leaf
                    else (None, None)
                )
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
                pairs = (
                    walk.leaves
                    if targets is None
                    else [
                        (t, g, False) for t, g in zip(written, found, strict=True) if g is not None
                    ]
                )
                walk.finish(pairs, retain)
            return found
        finally:
            _depth = outer  # an inner walk that was interrupted here does not matter any more
            walk.clear()


def _usual(output: Tensor, seed: Any, retain: bool) -> bool:
    """Backward as it usually is: one output, all leaves, arrays, no hooks.  False if this is not of that kind.

    This is `Walk` with everything left out that needs a test per node; nothing is different in what it computes.
    """
    global last_start
    root = output._node
    if root.__class__ is Leaf:
        return False
    with _walking:
        if _depth or MODE.get().anomaly:  # within another walk, or looking for NaN
            return False
        epoch = next_epoch()
        root.mark = epoch
        order: list[Any] = [root]
        leaves: list[Any] = []
        see, end = order.append, leaves.append
        for n in order:  # which grows on the way
            if n.reach(epoch, see, end):
                return False
        for m in leaves:
            if m.hooks is not None:
                return False
        order.sort(key=by_seq)
        if newest_change() > order[0].seq:
            check_versions(order)
        last_start = (ref(root), (0, seed))
        root.g, root.own = seed, False
        before: list[tuple[Tensor, Any]] = []  # leaves whose gradient is new, and the one they had
        try:
            for n in reversed(order):
                n.push()
            for m in leaves:
                g, leaf = m.g, m.ref()
                m.g = None
                if g is not None and leaf._node is not None:
                    data, old = leaf._data, leaf._grad
                    if (
                        old is not None
                        or not m.own
                        or g.__class__ is not ndarray
                        or g.shape != data.shape
                        or g.dtype is not data.dtype
                    ):
                        g = accumulated(leaf, g, m.own, False)
                    before.append((leaf, old))
                    leaf._grad = g
        except BaseException:
            for n in order + leaves:
                n.g = None
            for leaf, old in before:
                leaf._grad = old
            raise
        if not retain:
            small = len(order) <= REMEMBERED_NODES
            for n in order:
                n.free(small)
    return True


# -- where it starts ----------------------------------------------------------------------


#: seeds of outputs that are one number: to find one is faster than to make one
_UNITS: dict[type, Any] = {t: t(1) for t in (np.float32, np.float64)}


def edge_of(tensor: Any, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise refusal(
            f"{what} must be Tensors, not {describe(tensor)}",
            "the Tensors that the output was computed from",
            DTypeError,
        )
    edge = tensor._node
    if edge is None:
        raise refusal(
            f"one of the {what}{named(tensor)} does not require grad",
            "create it with requires_grad=True",
            GradError,
        )
    return edge.accumulator(tensor) if edge.__class__ is Leaf else edge


def seeds(outputs: list[Any], given: Any, create_graph: bool) -> list[Any]:
    seeds = [None] * len(outputs) if given is None else as_list(given)
    if len(seeds) != len(outputs):
        raise refusal(
            f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given",
            "a list with one for each output; None for an output that is one number",
            GradError,
        )
    made = []
    for out, seed in zip(outputs, seeds, strict=True):
        unit = unit_seed(out) if seed is None and out.__class__ is Tensor else None
        if unit is not None:
            made.append(wrap(np.asarray(unit)) if create_graph else unit)
            continue
        if not isinstance(out, Tensor):
            raise refusal(
                f"backward starts from a Tensor, not from {describe(out)}",
                "the result of an op on Tensors; numpy(), item() and float() lose the graph",
                DTypeError,
            )
        if out._node is None:
            raise GradError(no_graph(out))
        if out._data.dtype.kind != "f":
            raise refusal(
                f"backward from {describe(out)} is not defined: only real floating-point outputs "
                "have "
                f"gradients here",
                "start from a real number",
                DTypeError,
            )
        if seed is None:
            if out._data.size != 1:
                raise refusal(
                    f"backward() needs a seed: {describe(out)} has {out._data.size} elements, and "
                    "only a scalar, a single number, has a gradient by itself",
                    f"reduce it first (y.sum().backward()), or pass gradient=… of shape "
                    f"{list(out.shape)}",
                    GradError,
                )
            array: Any = np.ones(out.shape, out._data.dtype)
        else:
            array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
            if array.dtype.kind not in "fiub":
                raise refusal(
                    f"the seed {describe(array)} must hold real numbers",
                    f"gradient=… of shape {list(out.shape)}",
                    DTypeError,
                )
            if array.shape != out.shape:
                raise refusal(
                    f"the seed {describe(array)} must have the shape of the output, "
                    f"{list(out.shape)}",
                    f"gradient=… of shape {list(out.shape)}",
                )
            array = array.astype(out._data.dtype, copy=False)
        made.append(
            (seed if isinstance(seed, Tensor) else wrap(np.array(array))) if create_graph else array
        )
    return made


def unit_seed(out: Tensor) -> Any:
    """The seed of an output that is one real number; None for others."""
    data = out._data
    if out._node is None:
        return None
    unit = _UNITS.get(data.__class__)
    if unit is not None:
        return unit
    if data.size != 1 or data.dtype.kind != "f":
        return None
    return np.ones_like(data) if data.ndim else data.dtype.type(1)


def no_graph(out: Tensor) -> str:
    repair = (
        "create the inputs with requires_grad=True, compute outside no_grad(), without detach()"
    )
    if isinstance(getattr(out, "_cut", None), Primitive):
        repair = "an op that has one; an op of your own gets it by op.grad(x=lambda …)"
    return (
        f"backward() found no graph: {describe(out)}{named(out)} has no grad_fn and does not "
        "require grad.\n"
        f"  why: {no_graph_reason(out)}\n  at {user_line()}\n  repair: {repair}"
    )


# -- the whole walk ------------------------------------------------------------------------


class Walk:
    """One run of backward over a graph, with everything that may be asked of it.

    Hooks, retained gradients, several roots, given targets, nodes with several outputs, a graph of the gradients
    (``create_graph``), anomaly mode, and a backward within a backward.  `_usual` is its short form.
    """

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
        self.order = sorted(order, key=by_seq)

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
        small = len(self.order) <= REMEMBERED_NODES
        for n in () if retain else self.runs:
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
