"""In-place changes, and how backward notices that a saved value is no longer what it was.

The version of a piece of memory is the sequence number of its last in-place change.  A node is as old as its own
number, so a saved value is stale exactly when its memory changed after the node was made.  An op pays nothing for
this; a walk pays one comparison, unless something did change since its oldest node was made.
"""

from __future__ import annotations

import dis
import sys
import weakref
from typing import Any

import numpy as np

from ..errors import DTypeError, GradError, ShapeError, describe, refusal, user_frame, user_line
from .grad_fn import Leaf, Output, next_seq, unpack
from .mode import MODE

_changes: dict[
    int, tuple[int, int, weakref.ref[Any], str]
] = {}  # id of memory → (seq, how often, memory, line)
_newest = 0
#: what refers to memory that nobody shares: its Tensor or its one view, a local name, the count
ALONE = 3


def newest_change() -> int:
    """The number of the last in-place change anywhere, 0 if there was none."""
    return _newest


def memory_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def version_of(array: Any) -> int:
    """How often this memory was changed in place."""
    found = _changes.get(id(memory_of(array)))
    return found[1] if found is not None and found[2]() is not None else 0


def note_change(array: np.ndarray[Any, Any]) -> None:
    """Remember that this memory changes now."""
    global _newest
    memory = memory_of(array)
    key, line = id(memory), user_line()
    _newest = next_seq()
    ref = weakref.ref(memory, lambda _: _changes.pop(key, None))
    _changes[key] = (_newest, version_of(array) + 1, ref, line)


def check_versions(nodes: list[Any]) -> None:
    """Raise if a value that one of these nodes saved has changed since."""
    for node in nodes:
        for slot in () if node.freed else node.saved_slots:
            value = unpack(getattr(node, slot))
            for array in value if isinstance(value, list) else [value]:
                if array is None:
                    continue
                found = _changes.get(id(memory_of(array)))
                if found is not None and found[0] > node.seq and found[2]() is not None:
                    raise GradError(
                        f"{node.name()} saved {slot.removeprefix('_saved_')} ({describe(array)}) "
                        "for its gradient, but it was changed "
                        f"in place afterwards (version {found[1]}).\n"
                        f"  saved at {node.where()}\n  changed at {found[3]}\n"
                        "  repair: use the out-of-place form (y = y + 1 instead of y.add_(1)), or "
                        "change a clone()"
                    )


def _is_shared(tensor: Any, operands: list[Any]) -> bool:
    """Whether another Tensor would see a change of this one, and its graph would know nothing of
    it.
    """
    if not _has_graph(tensor, operands):
        return False
    memory = memory_of(tensor._data)
    related = memory is not tensor._data or getattr(tensor, "_viewed", False)
    return related and sys.getrefcount(memory) > ALONE


def _has_graph(tensor: Any, operands: list[Any]) -> bool:
    """Whether a change of this Tensor belongs to a graph."""
    return MODE.get().grad and any(t._node is not None for t in (tensor, *operands))


def _out_of_place() -> str:
    return f"\n  at {user_line()}\n  repair: use the out-of-place form (y = y + 1)"


def _two_graphs(tensor: Any) -> str:
    what = "has views" if memory_of(tensor._data) is tensor._data else "is a view of another Tensor"
    return (
        f"{describe(tensor)}{f' ({tensor.name})' if tensor.name else ''} {what}: an in-place "
        "change "
        f"would change both, and only one of their graphs.\n  at {user_line()}\n"
        f"  repair: use the out-of-place form (y = y + 1), index on the left (y[0] = y[0] * 2), or "
        f"change a clone()"
    )


def augment(tensor: Any, function: Any, other: Any) -> Any:
    """``y *= 5``: in place; of a shared view, a new Tensor if Python puts that back.

    ``y[1:] *= 5`` puts it back with ``y[1:] = …``, which both graphs know of; ``view *= 5`` is refused.
    """
    operands = [other] if isinstance(other, type(tensor)) else []
    is_view = memory_of(tensor._data) is not tensor._data
    if is_view and _is_shared(tensor, operands):
        if not _is_put_back():
            raise GradError(_two_graphs(tensor))
        return function(tensor, other)
    return change(tensor, function, other)


def _is_put_back() -> bool:
    """Whether the user's augmented assignment ends with one to an index, ``y[1:] = …``."""
    frame = user_frame()
    if frame is None:
        return False
    after = (i.opname for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    return next((name for name in after if name != "SWAP"), "") in ("STORE_SUBSCR", "STORE_SLICE")


def change(tensor: Any, function: Any, *args: Any, **attrs: Any) -> Any:
    """Give a tensor the value ``function(tensor, *args)`` in its own memory; its graph then
    starts from this op.
    """
    from .tensor import Tensor

    operands = [a for a in args if isinstance(a, Tensor)]
    if tensor._node.__class__ is Leaf and MODE.get().grad:
        raise refusal(
            f"a leaf that requires grad{f' ({tensor.name})' if tensor.name else ''} cannot be "
            "changed in place: its gradient would have no place to go",
            "do it inside `with mg.no_grad():`, or work on x.clone()",
            GradError,
        )
    if _has_graph(tensor, operands):
        for other in operands:  # y[:2] = y[1:]: the operand keeps its values in memory of its own
            if other is not tensor and memory_of(other._data) is memory_of(tensor._data):
                other._data = other._data.copy()
    if _is_shared(tensor, operands):
        raise GradError(_two_graphs(tensor))
    memory = tensor._data
    if memory.__class__ is not np.ndarray:
        memory = np.array(memory)
    elif not memory.flags.writeable:
        memory = memory.copy()
    node = tensor._node
    tensor._data = memory.copy()  # what this op saves must be the value from before
    try:
        result = function(tensor, *args, **attrs)
        if result.shape != memory.shape:
            raise ShapeError(
                f"an in-place op cannot change the shape {list(memory.shape)} to "
                f"{list(result.shape)}{_out_of_place()}"
            )
        if not np.can_cast(result.dtype, memory.dtype, "same_kind"):
            raise DTypeError(
                f"an in-place op cannot turn {memory.dtype} into {result.dtype}{_out_of_place()}"
            )
    except BaseException:
        tensor._data, tensor._node = memory, node
        raise
    np.copyto(memory, result._data, casting="same_kind")
    tensor._data = memory
    note_change(memory)
    if result._node is not None and (operands or node is not None):
        retained = tensor.retains_grad
        tensor._node = result._node
        if retained:  # of the value it has now
            of, index = (node.node, node.index) if node.__class__ is Output else (node, 0)
            of._hooks().retained.pop(index, None)
            tensor.retain_grad()
    return tensor
