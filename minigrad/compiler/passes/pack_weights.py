"""A weight that many small products read transposed is turned once.

Every product with ``w.T`` sorts w anew into the order its inner loops want.  Fifty steps back through a network do it
fifty times, and for a batch of a few rows it costs as much as the product.  Sums are taken in another order, hence for
``exact=False``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import bodies, written
from ..schedule import Array, Call, Loop, Schedule

#: so many products are worth a copy
ENOUGH = 4
#: a product of more rows hides what sorting costs
ROWS = 64


def turn_once(schedule: Schedule) -> None:
    """Copy such weights in front of their first product.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     h, w = static.data("h", [2, 2]), static.parameter("w", [[0.1, 0.2], [0.3, 0.4]])
    ...     for _ in range(5):
    ...         h = mg.tanh(h @ w.T)
    >>> "np.positive(permute_dims_0, w_turned)" in static.compile(prog, fetch=h, exact=False).source
    True
    """
    views = {
        id(c.out): c
        for c in schedule.items
        if isinstance(c, Call) and c.kind == "view" and c.function is np.transpose
    }
    changed = {id(r) for a in written(schedule.items) for r in a.roots if not r.fixed}
    #: id of a weight → the products that read it turned, each with its place
    found: dict[int, list[tuple[int, Call]]] = {}
    for k, item in enumerate(schedule.items):
        for call, times in _products(item):
            view = views.get(id(call.args[1]))
            if view is not None and _is_plain(view) and call.args[0].shape[0] <= ROWS:
                weight = view.args[0]
                if not any(id(r) in changed for r in weight.roots):
                    found.setdefault(id(weight), []).extend([(k, call)] * times)
    copies: list[tuple[int, Call]] = []
    for uses in found.values():
        if len(uses) >= ENOUGH:
            (first, call), view = uses[0], views[id(uses[0][1].args[1])]
            name = f"{view.args[0].name or 'weight'}_turned"
            out = Array(view.out.recorder, np.empty(view.out.shape, view.out.dtype), name)
            args = (view.out,)
            copies.append(
                (first, Call("compute", "np.positive", np.positive, args, {}, out, call.op))
            )
            for _, each in uses:
                each.args = each.args[0], out
    for place, copy in sorted(copies, key=lambda c: -c[0]):
        schedule.items.insert(place, copy)


def _products(item: Any) -> list[tuple[Call, int]]:
    """The products of matrices in an item, each with the number of times it runs: in a loop often enough."""
    if isinstance(item, Call):
        plain = item.function is np.matmul and all(
            isinstance(a, Array) and a.ndim == 2 for a in item.args
        )
        return [(item, 1)] if plain else []
    times = ENOUGH if isinstance(item, Loop) else 1
    return [(c, n * times) for body in bodies(item) for i in body for c, n in _products(i)]


def _is_plain(view: Call) -> bool:
    weight = view.args[0]
    return (
        not view.kwargs
        and not any(view.args[1:])
        and weight.like.flags.c_contiguous
        and weight.dtype.kind == "f"
    )
