"""In-place changes, and how backward notices that a saved value is no longer what it was.

The version of a piece of memory is the sequence number of its last in-place change.  A node is as
old as its own number, so a saved value is stale exactly when its memory changed after the node was
made.  An op pays nothing for this; a walk pays one comparison, unless something did change since
its oldest node was made.
"""

import dis
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, refusal, user_frame, user_line
from ..primitives.arguments import Listed
from .grad_fn import AccumulateGrad, Node, named, next_seq, parts_of, place_of, unpack
from .mode import MODE

#: number, how many there were, a reference that takes the entry away with the memory, line
Change = tuple[int, int, Any, str]
_changes: dict[int, Change] = {}  # id of memory → the last one
_newest = 0
#: what refers to memory that nobody shares: its Tensor or its one view, a local name, the count
ALONE = 3
#: what refers to the array of an operand that no other Tensor has: the operand, a dictionary, a local name, the count
HELD = 4
OUT_OF_PLACE = "use the out-of-place form (y = y + 1)"


def newest_change() -> int:
    """The number of the last in-place change anywhere, 0 if there was none."""
    return _newest


def memory_of(array) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def last_change(array) -> Change:
    """The last in-place change of this memory."""
    return _changes.get(id(memory_of(array)), (0, 0, None, ""))


def check_versions(nodes: Listed) -> None:
    """Raise if a value that one of these nodes saved has changed since."""
    for node in nodes:
        for slot, array, version, line in () if node.freed else changed_since(node):
            raise GradError(
                f"{node.name()} saved {slot.removeprefix('_saved_')} ({describe(array)}) for its "
                f"gradient, but it was changed in place afterwards (version {version}).\n"
                f"  saved at {node.where()}\n  changed at {line}\n  repair: use the "
                "out-of-place form (y = y + 1 instead of y.add_(1)), or change a clone()"
            )


def changed_since(node: Node) -> Iterator[tuple[str, Any, int, str]]:
    """What a node saved and somebody changed since: the slot, the array, its version, the line."""
    for slot in node.saved_slots:
        for array in parts_of(unpack(getattr(node, slot))):
            number, version, _, line = last_change(array)
            if number > node.seq:
                yield slot, array, version, line


def _is_shared(tensor, operands: Listed, views: int) -> bool:
    """Whether another Tensor than the operands, which hold so many views, would see a change of this one.

    Its graph would know nothing of the change.
    """
    if not _has_graph(tensor, operands):
        return False
    memory = memory_of(tensor._data)
    related = memory is not tensor._data or getattr(tensor, "_viewed", False)
    return related and sys.getrefcount(memory) > ALONE + views


def _has_graph(tensor, operands: Listed) -> bool:
    """Whether a change of this Tensor belongs to a graph."""
    return MODE.get().grad and any(t._node is not None for t in (tensor, *operands))


def _two_graphs(tensor) -> Exception:
    """What to raise where a change would be seen by a Tensor whose graph knows nothing of it."""
    what = "has views" if memory_of(tensor._data) is tensor._data else "is a view of another Tensor"
    shown = f"{describe(tensor)}{named(tensor)} {what}"
    shown += ": an in-place change would change both, and only one of their graphs."
    advice = f"{OUT_OF_PLACE}, index on the left (y[:2] = y[:2].clone() * 2), or change a clone()"
    return refusal(shown, advice, GradError)


def augment(tensor, function, other) -> Any:
    """``y *= 5``: in place; of a shared view, a new Tensor if Python puts that back.

    ``y[1:] *= 5`` puts it back with ``y[1:] = …``, which both graphs know of; ``view *= 5`` is refused.
    """
    operands = [other] if hasattr(other, "_node") else []
    is_view = memory_of(tensor._data) is not tensor._data
    if is_view and _is_shared(tensor, operands, 0) and _is_put_back():
        return function(tensor.clone(), other)  # its graph may save what is overwritten
    return change(tensor, function, other)


def _is_put_back() -> bool:
    """Whether the user's augmented assignment ends with one to an index, ``y[1:] = …``."""
    frame = user_frame()
    after = (i.opname for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    return next((name for name in after if name != "SWAP"), "") in ("STORE_SUBSCR", "STORE_SLICE")


class Overwritten(Node):
    """Stands behind a view that changed through another Tensor; backward refuses to go on from here.

    The view shows its new values, as in NumPy, and its graph knows only of the old ones.
    """

    __slots__ = ("_saved_view",)
    saved_slots = ("_saved_view",)

    def __init__(self, view, array) -> None:
        self._begin((view._node,), view.grad_fn.code, view.grad_fn.lasti)
        self._saved_view = array


def change(tensor, function, *args, **attrs) -> Any:
    """Give a tensor the value ``function(tensor, *args)`` in its own memory; its graph then starts from this op.

    All or nothing: an error, or a signal, leaves values, graph and versions as they were.
    """
    operands = [a for a in args if hasattr(a, "_node")]
    if tensor._node.__class__ is AccumulateGrad and MODE.get().grad:
        raise refusal(
            f"a leaf that requires grad{named(tensor)} cannot be "
            "changed in place: its gradient would have no place to go",
            "do it inside `with mg.no_grad():`, or work on x.clone()",
            GradError,
        )
    views = _views_among(operands, tensor)
    arrays = {id(v._data): v._data for v in views if v._data is not tensor._data}
    # other Tensors may hold them, too
    others = any(sys.getrefcount(data) > HELD for data in arrays.values())
    if others or _is_shared(tensor, operands, len(arrays)):
        raise _two_graphs(tensor)
    before = [(t, t._data, t._node) for t in (tensor, *views)]
    memory = tensor._data
    retained = tensor.retains_grad
    if memory.__class__ is not np.ndarray or not memory.flags.writeable:
        memory = np.array(memory)
    values = memory.copy()
    key = id(memory_of(memory))
    version = _changes.get(key)
    try:
        tensor._data = values  # what this op saves must be the value from before
        for view in views:
            view._data = view._data.copy()
        result = function(tensor, *args, **attrs)
        for view, data, node in before[1:]:
            view._data, view._node = data, node and Overwritten(view, data)
        _check_fit(result, memory)
        _write(memory, result._data)
        tensor._data = memory
        if MODE.get().grad:
            _move(tensor, result, retained)
    except BaseException:
        np.copyto(memory, values)
        for changed, data, node in before:
            changed._data, changed._node = data, node
        if retained:
            tensor.retain_grad()
        if version is None:
            _changes.pop(key, None)
        else:
            _changes[key] = version
        raise
    return tensor


def _views_among(operands: Listed, tensor) -> Listed:
    """The operands that are views of a Tensor which is to change: ``y[:2] = y[1:]``."""
    memory = memory_of(tensor._data)
    others = [o for o in operands if o is not tensor and memory_of(o._data) is memory]
    if not (others and _has_graph(tensor, operands)):
        return []
    for o in others:
        if o._node.__class__ is AccumulateGrad or (o._node is not None and o._data is memory):
            raise _two_graphs(tensor)
    return others


def _check_fit(result, memory) -> None:
    if result.shape != memory.shape:
        what = f"an in-place op cannot change the shape {list(memory.shape)} to "
        raise refusal(f"{what}{list(result.shape)}", OUT_OF_PLACE, ShapeError)
    if not np.can_cast(result.dtype, memory.dtype, "same_kind"):
        what = f"an in-place op cannot turn {memory.dtype} into {result.dtype}"
        raise refusal(what, OUT_OF_PLACE, DTypeError)


def _write(memory, values) -> None:
    """Change memory, and its version with it."""
    global _newest
    owner = memory_of(memory)
    key = id(owner)
    ref = weakref.ref(owner, lambda _: _changes.pop(key, None))
    entry = next_seq(), last_change(owner)[1] + 1, ref, user_line()
    _newest, _changes[key] = entry[0], entry
    np.copyto(memory, values, casting="same_kind")


def _move(tensor, result, retained: bool) -> None:
    """Put a Tensor behind the node of its new value, if that has one; `retain_grad` is of the value it has now."""
    old, tensor._node = tensor._node, result._node
    if retained:
        node, index = place_of(old)
        node._hooks().retained.pop(index, None)
    if result._node is None and old is not None:
        tensor._cut = getattr(result, "_cut", "overwritten")
    elif retained:
        tensor.retain_grad()
