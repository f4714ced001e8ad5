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
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, user_line
from .grad_fn import AccumulateGrad, Leaf, Output
from .inplace import check_versions, newest_change
from .mode import MODE, enable_grad
from .tensor import ENGINE, Tensor, wrap
from .walk import (
    REMEMBERED_NODES,
    Walk,
    accumulated,
    as_list,
    by_seq,
    commit,
    fitted,
    named,
    next_epoch,
)

_walking = threading.RLock()
last_start: tuple[Any, Any] = (
    None,
    None,
)  #: where the last backward started: a weak reference to the node, (its output, the seed)
_depth = 0
#: seeds of outputs that are one number: to find one is faster than to make one
_UNITS = {np.dtype(t): t(1) for t in (np.float32, np.float64)}


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
        seed = _unit_seed(tensors)
        if seed is not None and _usual(tensors, seed, bool(retain_graph)):
            return
    outputs = as_list(tensors)
    roots: list[Any] = [
        (o, s) for o, s in zip(outputs, _seeds(outputs, gradients, create_graph), strict=True)
    ]
    if inputs is not None and not as_list(inputs):
        raise GradError(
            "backward(inputs=[]) names no tensor; leave `inputs` out to reach every leaf"
        )
    targets = None if inputs is None else [_edge_of(t, "inputs") for t in as_list(inputs)]
    _walk(
        roots,
        targets,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        as_list(inputs) if inputs is not None else [],
    )


ENGINE["backward"] = backward


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
        raise GradError(f"grad(inputs=[]) names no tensor to differentiate by\n  at {user_line()}")
    roots = [(o, s) for o, s in zip(outs, _seeds(outs, grad_outputs, create_graph), strict=True)]
    targets = [_edge_of(t, "inputs") for t in ins]
    found = _walk(
        roots, targets, create_graph if retain_graph is None else retain_graph, create_graph, None
    )
    result: list[Tensor | None] = []
    for k, (tensor, g) in enumerate(zip(ins, found, strict=True)):
        if g is None and materialize_grads:
            g = wrap(np.zeros(tensor.shape, tensor.dtype))
        if g is None and not allow_unused:
            raise GradError(
                f"input {k}{named(tensor)} of grad() was not used to compute the outputs.\n"
                f"  repair: allow_unused=True returns None for it, materialize_grads=True zeros."
            )
        result.append(g if g is None or isinstance(g, Tensor) else wrap(fitted(tensor, g, False)))
    return tuple(result)


def _edge_of(tensor: Any, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"{what} must be Tensors, not {describe(tensor)}")
    edge = tensor._node
    if edge is None:
        raise GradError(
            f"one of the {what}{named(tensor)} does not require grad; create it with "
            "requires_grad=True"
        )
    return edge.accumulator(tensor) if edge.__class__ is Leaf else edge


def _seeds(outputs: list[Any], given: Any, create_graph: bool) -> list[Any]:
    seeds = [None] * len(outputs) if given is None else as_list(given)
    if len(seeds) != len(outputs):
        raise GradError(
            f"{len(outputs)} outputs need {len(outputs)} gradients, {len(seeds)} were given"
        )
    made = []
    for out, seed in zip(outputs, seeds, strict=True):
        unit = _unit_seed(out) if seed is None and out.__class__ is Tensor else None
        if unit is not None:
            made.append(wrap(np.asarray(unit)) if create_graph else unit)
            continue
        if not isinstance(out, Tensor):
            raise DTypeError(f"backward starts from a Tensor, not from {describe(out)}")
        if out._node is None:
            raise GradError(_no_graph(out))
        if out._data.dtype.kind != "f":
            raise DTypeError(
                f"backward from {describe(out)} is not defined: only real floating-point outputs "
                "have "
                f"gradients here\n  at {user_line()}\n  repair: start from a real number"
            )
        if seed is None:
            if out._data.size != 1:
                raise GradError(
                    f"backward() needs a seed: {describe(out)} has {out._data.size} elements, and "
                    "only a single number has a gradient by itself.\n"
                    f"  at {user_line()}\n"
                    "  repair: reduce it first (y.sum().backward()), or pass gradient=… of shape "
                    f"{list(out.shape)}"
                )
            array: Any = np.ones(out.shape, out._data.dtype)
        else:
            array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
            if array.dtype.kind not in "fiub":
                raise DTypeError(
                    f"the seed {describe(array)} must hold real numbers\n  at {user_line()}\n"
                    f"  repair: gradient=… of shape {list(out.shape)}"
                )
            if array.shape != out.shape:
                raise ShapeError(
                    f"the seed {describe(array)} must have the shape of the output, "
                    f"{list(out.shape)}\n  at {user_line()}"
                )
            array = array.astype(out._data.dtype, copy=False)
        made.append(
            (seed if isinstance(seed, Tensor) else wrap(np.array(array))) if create_graph else array
        )
    return made


def _unit_seed(out: Tensor) -> Any:
    """The seed of an output that is one real number; None for others."""
    data = out._data
    dtype = data.dtype
    if out._node is None or data.size != 1 or dtype.kind != "f":
        return None
    return np.ones_like(data) if data.ndim else _UNITS.get(dtype) or dtype.type(1)


def _no_graph(out: Tensor) -> str:
    from .explain import no_graph_reason

    return (
        f"backward() found no graph: {describe(out)}{named(out)} has no grad_fn and does not "
        "require grad.\n"
        f"  why: {no_graph_reason(out)}\n  at {user_line()}\n"
        "  repair: create the inputs with requires_grad=True, and compute outside no_grad() and "
        "without detach()"
    )


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
        walk = Walk(targets, create, nested=_depth > 0)
        _depth += 1
        try:
            for out, seed in roots:
                edge = out._node
                last_start = (
                    (weakref.ref(edge.node), (edge.index, seed))
                    if edge.__class__ is Output
                    else (weakref.ref(edge), (0, seed))
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
            _depth -= 1
            walk.clear()


def _usual(output: Tensor, seed: Any, retain: bool) -> bool:
    """Whether the usual walk did it; not within another walk, nor looking for NaN."""
    with _walking:
        return not _depth and not MODE.get().anomaly and _usual_walk(output, seed, retain)


def _usual_walk(output: Tensor, seed: Any, retain: bool) -> bool:
    """Backward as it usually is: one output, all leaves, arrays, no hooks.  False if the graph is not of that kind.

    This is `Walk` with everything left out that needs a test per node; nothing is different in what it computes.
    """
    global last_start
    root = output._node
    if root.__class__ is Leaf or root.hooks is not None:
        return False
    epoch = next_epoch()
    root.mark = epoch
    order, leaves = [root], []
    see = order.append
    for n in order:  # which grows on the way
        for m in (n.e0, n.e1, *n.more) if n.more else (n.e0, n.e1):
            if m is not None and m.mark != epoch:
                if m.hooks is not None:  # or an output of several
                    return False
                m.mark = epoch
                if m.__class__ is AccumulateGrad:
                    if m.accumulated:
                        return False
                    leaves.append(m)
                else:
                    see(m)
    order.sort(key=by_seq)
    if newest_change() > order[0].seq:
        check_versions(order)
    last_start = (weakref.ref(root), (0, seed))
    root.g, root.own = seed, False
    try:
        for n in reversed(order):
            g = n.g
            if g is None:
                continue
            n.g = None
            n.push(g)
        pairs = []
        for m in leaves:
            leaf, g = m.variable, m.g
            if g is not None and leaf._node is not None:
                pairs.append((leaf, accumulated(leaf, g, m.own, False)))
        commit(pairs, [])
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
