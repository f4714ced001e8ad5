"""The walk: from the output, along ``next_functions``, to the leaves.

Order: a node runs when all its users have; the newest first (one sort by sequence number gives both, since a user is
always newer than what it uses); an AccumulateGrad as soon as its last user has run.  No recursion.

Nothing is written before every rule has run: then each leaf gets its new ``.grad``, and last the saved values are
freed.  An exception on the way, from a hook, a rule or the keyboard, leaves every ``.grad`` and the graph as they were.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import ref

import numpy as np

from ..errors import DTypeError, GradError, describe, refusal, user_line
from ..primitives.arguments import as_list
from ..primitives.dispatch import EAGER
from ..primitives.registry import Primitive
from .grad_fn import Leaf, Output, no_graph_reason
from .inplace import check_versions, newest_change
from .mode import MODE, enable_grad
from .tensor import Tensor, wrap
from .walk import REMEMBERED_NODES, Walk, accumulated, by_seq, fitted, named, next_epoch

ndarray = np.ndarray
_walking = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child inherits no walk of another thread, only whole ones
    os.register_at_fork(
        before=_walking.acquire, after_in_parent=_walking.release, after_in_child=_walking.release
    )
#: where the last backward started: a weak reference to the node, (its output, the seed)
last_start: tuple[Any, Any] = (None, None)
_depth = 0


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
