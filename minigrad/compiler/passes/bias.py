"""``x @ w + b`` as one product: a column of ones beside x, b as the last row of w.

In the slab of the parameters b comes right after w, so ``[w; b]`` is a matrix that is there already; in the slab of the
gradients, too, and one product gives both.  Saves an addition and a sum per layer; the sums have other last bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..memory import in_slab, slab_name
from ..schedule import Array, Call, Schedule, makers_of, part_of


def fold_bias(schedule: Schedule) -> None:
    """Rewrite the layers whose parameters lie side by side in a slab that is updated as a whole.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> w, b = mg.ones([3, 8], requires_grad=True, name="w"), mg.ones([8], requires_grad=True, name="b")
    >>> prog = mg.trace(lambda x: mg.tanh(mg.linear(x, w, b)).sum(), mg.ones([4, 3]))
    >>> with static.program_guard(prog):
    ...     _ = mg.optim.SGD([w, b], 0.5).minimize(prog.global_block().var(prog.outputs[0]))
    >>> "w_and_bias" in static.compile(prog, fetch=prog.outputs, exact=False).source
    True
    """
    places = _places(schedule)
    widened: dict[int, _Wide] = {}
    for call in list(schedule.items):
        layer = _layer(schedule, call, places)
        if layer is not None:
            _fold(schedule, layer, widened)
    schedule.items[:0] = [call for wide in widened.values() for call in wide.before]


@dataclass
class _Layer:
    """``out = x @ w + b``, and where w begins in which slab."""

    product: Call
    addition: Call
    slab: Array
    start: int


@dataclass
class _Wide:
    """x with a column of ones, and the calls that make it once."""

    whole: Array
    before: list[Call]


def _places(schedule: Schedule) -> dict[str, tuple[Array, int, int]]:
    """Name of a parameter → its slab, where it begins and ends."""
    places = {}
    for names in schedule.memory.slabs:
        whole = schedule.state.get(slab_name(names))
        if whole is not None:
            shapes = [schedule.state[n].shape for n in names]
            for name, (start, stop) in zip(names, in_slab(whole.dtype, shapes)[1], strict=True):
                places[name] = whole, start, stop
    return places


def _layer(schedule: Schedule, call: Any, places: dict[str, Any]) -> _Layer | None:
    if not isinstance(call, Call) or call.function is not np.add or call.into is not None:
        return None
    product, b = call.args
    maker = next((c for c in schedule.items if isinstance(c, Call) and c.out is product), None)
    if maker is None or maker.function is not np.matmul or maker.into is not None:
        return None
    x, w = maker.args
    arrays = all(isinstance(a, Array) and a.like is not None for a in (x, w, b))
    if not arrays or (x.ndim, w.ndim, b.ndim) != (2, 2, 1) or not {w.name, b.name} <= places.keys():
        return None
    (slab, start, stop), (other, after, _) = places[w.name], places[b.name]
    alike = w.fixed and b.fixed and x.dtype == w.dtype == b.dtype and other is slab
    uses = sum(a is product for i in schedule.items for a in i.touches())
    if not alike or after != stop or uses != 1 or any(a is product for a in schedule.fetched):
        return None
    return _Layer(maker, call, slab, start)


def _fold(schedule: Schedule, layer: _Layer, widened: dict[int, _Wide]) -> None:
    x, w = layer.product.args
    if id(x) not in widened:
        widened[id(x)] = _widen(schedule, x, layer.product)
    wide = widened[id(x)]
    rows, columns = w.shape[0] + 1, w.shape[1]
    joined = _part(wide.before, layer.slab, layer.start, (rows, columns), f"{w.name}_and_bias")
    layer.addition.path, layer.addition.function = "np.matmul", np.matmul
    layer.addition.args = (wide.whole, joined)
    schedule.items.remove(layer.product)
    _fold_gradient(schedule, layer, wide, (rows, columns))


def _widen(schedule: Schedule, x: Array, product: Call) -> _Wide:
    """Copy x beside a column of ones."""
    n, k = x.shape
    whole = Array(x.recorder, np.empty((n, k + 1), x.dtype), f"{x.name or 'value'}_and_ones")
    view = part_of(whole, (slice(None), slice(0, k)))
    copy = Call("write", "np.copyto", np.copyto, (view.out, x), {}, None, product.op)
    schedule.items.insert(schedule.items.index(product), copy)
    return _Wide(whole, [Call("slab", "np.ones", np.ones, (whole.shape, x.dtype), {}, whole), view])


def _fold_gradient(schedule: Schedule, layer: _Layer, wide: _Wide, shape: tuple[int, int]) -> None:
    """``x.T @ g`` and the sum over the rows of g, where both go into one slab side by side."""
    makers = makers_of(schedule.items)
    size = (shape[0] - 1) * shape[1]
    for call in schedule.items:
        if not isinstance(call, Call) or call.into is None or call.function is not np.matmul:
            continue
        pair = _factors(call, makers)
        if pair is None or pair[0] is not layer.product.args[0]:
            continue
        start, slab = _offset(call.into), call.into.roots[0]
        for other in schedule.items:
            if not isinstance(other, Call) or other.into is None or other.into.ndim != 1:
                continue
            if not _is_sum_of_rows(other, pair[1]) or other.into.roots[0] is not slab:
                continue
            if _offset(other.into) == start + size and other.into.shape == (shape[1],):
                joined = _part(wide.before, slab, start, shape, "")
                turned = Array(slab.recorder, wide.whole.like.T, "", (wide.whole,))
                wide.before.append(
                    Call("view", "np.transpose", np.transpose, (wide.whole,), {}, turned)
                )
                call.args, call.out, call.into = (turned, pair[1]), joined, joined
                schedule.items.remove(other)
                return


def _factors(call: Call, makers: dict[int, Call]) -> tuple[Array | None, Array] | None:
    """``(x, g)`` of ``x.T @ g``; ``(None, g)`` of a sum over the rows of g."""
    if call.function is np.matmul:
        turned, g = call.args
        view = makers.get(id(turned))
        if view is not None and view.function is np.transpose and g.ndim == turned.ndim == 2:
            return view.args[0], g
    is_sum = call.path == "np.add.reduce" and call.kwargs.get("axis", 0) == 0
    if is_sum and call.args[0].ndim == 2 and not call.kwargs.get("keepdims"):
        return None, call.args[0]
    return None


def _is_sum_of_rows(call: Call, g: Array) -> bool:
    return call.path == "np.add.reduce" and call.args[0] is g and call.kwargs.get("axis", 0) == 0


def _offset(array: Array) -> int:
    """Where a part of a slab begins."""
    whole = array.roots[0].like
    return int(array.like.ctypes.data - whole.ctypes.data) // whole.itemsize


def _part(calls: list[Call], slab: Array, start: int, shape: tuple[int, int], name: str) -> Array:
    """A matrix in a slab."""
    stop = start + shape[0] * shape[1]
    view = part_of(slab, slice(start, stop))
    matrix = Array(slab.recorder, view.out.like.reshape(shape), name, (slab,))
    calls += [view, Call("view", "np.reshape", np.reshape, (view.out, shape), {}, matrix)]
    return matrix
