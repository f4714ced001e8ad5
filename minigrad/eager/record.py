"""What the specialised functions share: the generic path, saved values, and the rules read on Tensors.

The generic path serves primitives with list slots or several outputs, and arguments that are not Tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import RuleError, describe, op_error, refusal
from ..ops.shape import sum_to, unbroadcast
from ..primitives.arguments import Value
from ..primitives.registry import Primitive
from .emit import of_package
from .grad_fn import AccumulateGrad, Leaf, ManyNode, Node, Output, Packed, next_seq, unpack
from .mode import GRAD, MODE, Mode, check_finite
from .tensor import Tensor, wrap

__minigrad_ops__ = True  # frames of this module are never "the user's line"
CHANGEABLE = (np.ndarray, list, tuple)  # a union made in the call would cost as much as the op


def own(value: Any) -> Any:
    """A copy for saving: an array that a user can still reach may change before backward reads it."""
    return np.array(value) if isinstance(value, CHANGEABLE) else value


def not_tensors(primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Apply a primitive to arguments of which one is a Value, but no plain Tensor; a Variable sorts them itself."""
    foreign = [a for a in args if isinstance(a, Value) and not isinstance(a, Tensor)]
    if foreign:
        return foreign[0].apply_primitive(primitive, args, attrs)
    return apply_generic(primitive, args, attrs)  # a subclass of Tensor: the generic path knows it


def an_array(primitive: Primitive, out: Any) -> Any:
    """What a kernel of the user's returned, if it is an array or a number; the package's own are trusted."""
    if isinstance(out, np.ndarray | np.generic) or of_package(primitive):
        return out
    if isinstance(out, int | float):
        return np.asarray(out)
    what = f"the kernel of {primitive.type} returned {describe(out)}, not an array"
    raise refusal(what, "np.asarray(…) of it; functions of NumPy (np.exp, not math.exp)", RuleError)


def apply_generic(primitive: Primitive, args: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Apply any primitive: the meaning of the specialised functions, written as loops over slots."""
    args, attrs = primitive.bind(args, attrs)
    values = [a for a in args if isinstance(a, Value)]
    for a in values:
        if not isinstance(a, Tensor):
            return a.apply_primitive(primitive, args, attrs)
    if not values:
        return _run(primitive, args, args, attrs)
    arrays = tuple(a._data if isinstance(a, Tensor) else a for a in args)
    result = _run(primitive, args, arrays, attrs)
    several = primitive.list_output or len(primitive.outputs) > 1
    count = len(result) if isinstance(result, tuple | list) else 1
    if not primitive.list_output and count != len(primitive.outputs):
        what = f"the kernel of {primitive.type} returned {count} value(s)"
        raise refusal(what, f"one for each output: {', '.join(primitive.outputs)}", RuleError)
    outs = [wrap(an_array(primitive, o)) for o in (result if several else [result])]
    first = args[0]
    if primitive.view and isinstance(first, Tensor) and first._exposed:
        for o in outs:
            o._exposed = True
    mode = MODE.get()
    slots = primitive.slot_names(len(args))
    edges = [
        (a._node if n in primitive.rules and isinstance(a, Tensor) else None)
        for n, a in zip(slots, args, strict=True)
    ]
    if mode.grad and any(e is not None for e in edges):
        if primitive.view and isinstance(first, Tensor):
            first._viewed = True
        _record(primitive, args, arrays, attrs, outs, edges, slots, mode)
    return outs if several else outs[0]


def _run(
    primitive: Primitive, args: tuple[Any, ...], arrays: tuple[Any, ...], attrs: dict[str, Any]
) -> Any:
    try:
        return primitive.kernel(*arrays, **attrs)
    except Exception as error:
        raise op_error(
            primitive.type, primitive.slot_names(len(args)), args, attrs, error
        ) from error


def _record(
    primitive: Primitive,
    args: Any,
    arrays: Any,
    attrs: dict[str, Any],
    outs: list[Any],
    edges: list[Any],
    slots: list[str],
    mode: Mode,
) -> None:
    from .specialise import node_class

    node: Any = object.__new__(node_class(primitive))
    node.e0 = node.e1 = node.g = node.hooks = None
    node.mark, node.freed, node.seq = 0, False, next_seq()
    node.kept = [a for e, a in zip(edges, args, strict=True) if e.__class__ is Leaf]
    edges = [
        e.accumulator(a) if e.__class__ is Leaf else e for e, a in zip(edges, args, strict=True)
    ]
    wanted = {n for n, e in zip(slots, edges, strict=True) if e is not None}
    by_slot: dict[str, Any] = {}
    for name, arg, array in zip(slots, args, arrays, strict=True):
        exposed = not hasattr(arg, "_exposed") or arg._exposed
        value = own(array) if exposed else array
        by_slot[name] = [*by_slot.get(name, ()), value] if name == primitive.list_input else value
    if primitive.list_input:
        by_slot.setdefault(primitive.list_input, [])
    several = len(primitive.outputs) > 1
    for k, name in enumerate(primitive.outputs):
        by_slot[name] = (
            outs[k]._data
            if several
            else [o._data for o in outs]
            if primitive.list_output
            else outs[0]._data
        )
    needed = primitive.saved(wanted)
    for name in primitive.saved():
        setattr(node, f"_saved_{name}", by_slot[name] if name in needed else None)
    for name in primitive.reads():
        if name in primitive.attrs:
            setattr(node, f"_{name}", attrs[name])
        elif name not in by_slot and not name.endswith("_grad"):
            setattr(
                node, f"_{name}", _fact(by_slot[name.rsplit("_", 1)[0]], name.rsplit("_", 1)[1])
            )
    flowing = [e for n, e in zip(slots, edges, strict=True) if n in primitive.rules]
    if isinstance(node, GenericNode):
        node.more, node.slots = tuple(flowing), slots
        node.specs = [(np.shape(o._data), o._data.dtype) for o in outs]
    else:
        node.e0, node.e1 = (*flowing, None, None)[:2]
        if isinstance(node, ManyNode):
            node.more = tuple(flowing[2:])
    if primitive.broadcasts:
        shapes = tuple(
            np.shape(a) for n, a in zip(slots, arrays, strict=True) if n in primitive.rules
        )
        node._shapes = shapes if any(s != np.shape(outs[0]._data) for s in shapes) else None
    frame = _frame_of_user(3)
    node.code, node.lasti = frame.f_code, frame.f_lasti
    names = primitive.outputs if several else [primitive.outputs[0]] * len(outs)
    for k, (name, out) in enumerate(zip(names, outs, strict=True)):
        if name not in primitive.nondiff and out._data.dtype.kind in "fc":
            out._node = Output(node, k) if isinstance(node, GenericNode) else node
        else:
            out._cut = primitive
    if mode is not GRAD:
        observe(mode, node, args, attrs, outs)


def _frame_of_user(depth: int) -> Any:
    """The nearest frame that is not a module of ops."""
    frame: Any = sys._getframe(depth)
    while frame is not None and "__minigrad_ops__" in frame.f_globals:
        frame = frame.f_back
    return frame


def _fact(value: Any, what: str) -> Any:
    if isinstance(value, list):
        return [_fact(v, what) for v in value]
    return np.shape(value) if what == "shape" else getattr(value, "dtype", None)


def observe(
    mode: Mode, node: Node, args: tuple[Any, ...], attrs: dict[str, Any], outs: list[Any]
) -> None:
    """The rarely used switches: look for NaN and infinity, pack saved values, tell a recorder."""
    if mode.recorder is not None:
        mode.recorder(node.primitive, args, attrs, outs)
    if mode.anomaly:
        check_finite(node.primitive.type, outs[0]._data, args, node.where(), "made")
    if mode.saved_hooks is not None:
        for slot in node.saved_slots:
            setattr(node, slot, packed(getattr(node, slot), *mode.saved_hooks))
        node._hooks()


def packed(value: Any, *hooks: Callable[[Any], Any]) -> Any:
    """A saved value, or a list of them, as `saved_tensors_hooks` wants it kept."""
    if isinstance(value, list):
        return [packed(v, *hooks) for v in value]
    return Packed(value, *hooks) if isinstance(value, np.ndarray | np.generic) else value


class GenericNode(ManyNode):
    """A node of a primitive with list slots or several outputs: all its edges are in ``more``."""

    __slots__ = ("outs", "slots", "specs")
    slots: list[str]
    specs: list[tuple[tuple[int, ...], Any]]
    outs: list[Output]
    outputs = 0

    def edges(self) -> Any:
        return iter(self.more)

    def pull(self, g: Any) -> Any:
        return (None, None, *pull_rules(self, g, lambda name, value: value, sum_to))


def pull_graph(node: Node, g: Any) -> Any:
    """The gradients of a node's inputs as Tensors with a graph of their own."""
    grads = pull_rules(node, g, lambda name, value: _as_tensor(node, name, value), _sum_to_values)
    return (
        (None, None, *grads)
        if isinstance(node, GenericNode)
        else (*grads, None, None)[: max(2, len(grads))]
    )


Node.pull_graph = pull_graph  # type: ignore[method-assign, assignment]


def _sum_to_values(value: Any, shape: Any) -> Any:
    return value if value.shape == tuple(shape) else unbroadcast(value, shape=tuple(shape))


def _as_tensor(node: Node, name: str, value: Any) -> Any:
    """A saved value as the Tensor it was: joined to the graph by the edge of its slot."""
    p = node.primitive
    if value is None or not (isinstance(value, np.ndarray | np.generic | list)):
        return value
    if name in p.outputs:
        k = p.outputs.index(name)
        if isinstance(value, list):
            return [wrap(v, Output(node, j)) for j, v in enumerate(value)]
        return wrap(
            value,
            (Output(node, k) if isinstance(node, GenericNode) else node)
            if name not in p.nondiff
            else None,
        )
    edges = iter(node.edges())
    by_slot: dict[str, list[Any]] = {}
    for slot in node.slots if isinstance(node, GenericNode) else p.inputs:
        if slot in p.rules:
            by_slot.setdefault(slot, []).append(next(edges))
    if isinstance(value, list):
        return [
            _joined(v, e)
            for v, e in zip(value, by_slot.get(name, [None] * len(value)), strict=True)
        ]
    return _joined(value, by_slot.get(name, [None])[0])


def _joined(value: Any, edge: Any) -> Any:
    return edge.variable if edge.__class__ is AccumulateGrad else wrap(value, edge)


def pull_rules(node: Any, g: Any, read: Any, sum_back: Any) -> list[Any]:
    """Run the rules of the inputs whose edge is wanted; one gradient per edge, in order."""
    p = node.primitive
    slots = [s for s in (node.slots if isinstance(node, GenericNode) else p.inputs) if s in p.rules]
    edges = dict(zip(range(len(slots)), node.edges(), strict=False))
    wanted = {s for k, s in enumerate(slots) if edges[k] is not None}
    if node.freed:
        raise node.freed_error()
    values = {}
    for name in p.reads(wanted):
        if name.endswith("_grad") and name.removesuffix("_grad") in p.outputs:
            k = p.outputs.index(name.removesuffix("_grad"))
            values[name] = g[k] if isinstance(node, GenericNode) and not p.list_output else g
        elif name in p.inputs or name in p.outputs:
            values[name] = read(name, unpack(getattr(node, f"_saved_{name}")))
        else:
            values[name] = getattr(node, f"_{name}")
    made: dict[str, Any] = {}
    for rule in p.wanted_rules(wanted):
        result = rule.function(*(values[r] for r in rule.reads))
        made.update(
            zip(rule.inputs, result, strict=True) if rule.joint else [(rule.inputs[0], result)]
        )
    if p.broadcasts and node._shapes is not None:
        made = {n: sum_back(v, node._shapes[p.differentiable.index(n)]) for n, v in made.items()}
    grads, seen = [], dict.fromkeys(slots, 0)
    for k, slot in enumerate(slots):
        value = made.get(slot)
        if slot == p.list_input and value is not None:
            value = value[seen[slot]]
            seen[slot] += 1
        grads.append(value if edges[k] is not None else None)
    return grads
