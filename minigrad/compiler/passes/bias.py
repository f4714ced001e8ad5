"""``x @ w + b`` as one product: a column of ones beside x, b as the last row of w.

In the slab of the parameters b comes right after w, so ``[w; b]`` is a matrix that is there
already; in the slab of the gradients, too, and one product gives both.  Saves an addition and a sum
per layer; the sums have other last bits.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..memory import slab_name
from ..schedule import Array, Call, Schedule, makers_of


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
    _Folding(schedule).run()


class _Folding:
    """One schedule whose layers are rewritten."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.makers = makers_of(schedule.items)
        calls = [c for c in schedule.items if isinstance(c, Call)]
        self.writers = {c.into: c for c in calls if c.into is not None}
        self.reads = Counter(a for item in schedule.items for a in item.touches())
        self.reads.update(schedule.fetched)
        self.wide: dict[Array, Array] = {}  # x → x beside a column of ones
        self.before: list[Any] = []

    def run(self) -> None:
        for call in list(self.schedule.items):
            layer = self.layer(call) if isinstance(call, Call) else None
            if layer and (place := self.joined(*layer[1:])):
                self.fold(call, *layer, *place)
        self.schedule.items[:0] = self.before

    def joined(self, w: Array, b: Array) -> tuple[Array, int] | None:
        """The slab in which b begins where w ends, and where w begins in it."""
        state, memory = self.schedule.state, self.schedule.memory
        for names in memory.slabs:
            slab = state.get(slab_name(names))
            if slab is not None and {w.name, b.name} <= {*names} & self.schedule.gradients.keys():
                first, start, behind = (
                    memory.places[n] for n in (slab_name(names), w.name, b.name)
                )
                if start + w.like.nbytes == behind:
                    return slab, (start - first) // w.dtype.itemsize
        return None

    def layer(self, addition: Call) -> tuple[Array, Array, Array] | None:
        """The x, w and b of ``x @ w + b``, if nobody else reads the product."""
        if addition.function is not np.add or addition.into is not None:
            return None
        product, b = addition.args
        maker = self.makers.get(product) if isinstance(product, Array) else None
        if maker is None or maker.function is not np.matmul or maker.into is not None:
            return None
        x, w = maker.args
        arrays = all(isinstance(a, Array) and a.like is not None for a in (x, w, b))
        if not arrays or (x.ndim, w.ndim, b.ndim) != (2, 2, 1) or self.reads[product] != 1:
            return None
        return (x, w, b) if w.fixed and b.fixed and x.dtype == w.dtype == b.dtype else None

    def fold(self, addition: Call, x: Array, w: Array, b: Array, slab: Array, start: int) -> None:
        """One product for a layer, and one for the gradients of its parameters."""
        items, recorder = self.schedule.items, x.recorder
        product = self.makers[addition.args[0]]
        with recorder.into(self.before):
            if x not in self.wide:
                self.wide[x] = self.widened(x, product)
            wide = self.wide[x]
            matrix = self.matrix(slab, start, w)
            matrix.name = f"{w.name}_and_bias"
        addition.path, addition.function = "np.matmul", np.matmul
        addition.args = wide, matrix
        items.remove(product)
        places = self.schedule.gradients
        of_w, of_b = (self.writers.get(places[p.name]) for p in (w, b))
        if of_w is None or of_b is None or of_w.function is not np.matmul:
            return
        turned, g = of_w.args
        view = self.makers.get(turned) if isinstance(turned, Array) else None
        of_x = view is not None and view.function is np.transpose and view.args[0] is x
        rows = of_b.path == "np.add.reduce" and of_b.kwargs.get("axis", 0) == 0
        if of_x and rows and of_b.args[0] is g:
            with recorder.into(self.before):
                place = self.matrix(places[w.name].roots[0], start, w)
                of_w.args, of_w.out, of_w.into = (wide.T, g), place, place
            items.remove(of_b)

    def widened(self, x: Array, product: Call) -> Array:
        """Memory for x beside a column of ones, to which x is copied before the product."""
        n, k = x.shape
        wide = Array(x.recorder, np.empty((n, k + 1), x.dtype), f"{x.name or 'value'}_and_ones")
        x.recorder.add("slab", np.ones, (wide.shape, x.dtype), wide)
        copy = Call("write", np.copyto, (wide[:, :k], x), op=product.op)
        self.schedule.items.insert(self.schedule.items.index(product), copy)
        return wide

    def matrix(self, slab: Array, start: int, w: Array) -> Any:
        """The matrix ``[w; b]`` in a slab."""
        rows, columns = w.shape[0] + 1, w.shape[1]
        part: Any = slab[start : start + rows * columns]
        return part.reshape(rows, columns)
