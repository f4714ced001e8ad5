"""``x @ w + b`` as one product: a column of ones beside x, b as the last row of w.

In the slab of the parameters b comes right after w, so ``[w; b]`` is a matrix that is there
already; in the slab of the gradients, too, and one product gives both.  Saves an addition and a sum
per layer; the sums have other last bits.
"""

from collections import Counter
from typing import Any

import numpy as np

from ..schedule import Array, Call, Schedule, arrays_in, makers_of

_NEITHER: Any = None, None


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
    items = schedule.items
    gradients = schedule.gradients
    makers: Any = makers_of(items)
    reads = Counter(arrays_in((items, schedule.fetched)))
    wide: dict[Array, Any] = {}  # x → x beside a column of ones
    before: list[Any] = []
    for addition in list(items):
        product, b = _operands(addition, np.add)
        x, w = _operands(makers.get(product), np.matmul)
        slab, of_w = gradients.get(w, _NEITHER)
        other, of_b = gradients.get(b, _NEITHER)
        if slab is None or slab is not other or reads[product] != 1:
            continue
        start = _begin(of_w)
        bias = _begin(of_b)
        end = bias + b.size
        beside = bias == start + w.size and b.shape == w.shape[1:]
        if not beside or x.ndim != 2 or x.dtype != w.dtype:
            continue
        items.remove(makers[product])
        turned, g = _operands(makers.get(of_w), np.matmul)
        view = makers.get(turned)
        sums = makers.get(of_b)
        of_x = view and view.function is np.transpose and view.args[0] is x
        rows = sums and sums.path == "np.add.reduce" and sums.args[0] is g
        with x.recorder.into(before):
            if x not in wide:  # memory to which x is copied before the product
                n, k = x.shape
                name = f"{x.name or 'value'}_and_ones"
                wide[x] = Array(x.recorder, np.empty((n, k + 1), x.dtype), name)
                x.recorder.add("slab", np.ones, (wide[x].shape, x.dtype), wide[x])
                copy = Call("write", np.copyto, (wide[x][:, :k], x), op=makers[product].op)
                items.insert(items.index(addition), copy)
            matrix = slab[start:end].reshape(len(w) + 1, b.size)
            matrix.name = f"{w.name}_and_bias"
            addition.path = "np.matmul"
            addition.function = np.matmul
            addition.args = wide[x], matrix
            if of_x and rows and sums.kwargs.get("axis", 0) == 0:
                whole = makers[of_w]
                whole.out = whole.into = of_w.roots[0][start:end].reshape(len(w) + 1, b.size)
                whole.args = wide[x].T, g
                items.remove(sums)
    items[:0] = before


def _operands(call, function) -> Any:
    """The two Arrays of a call of this function; twice None for another one."""
    fits = isinstance(call, Call) and call.function is function and len(call.reads()) == 2
    return call.args if fits else _NEITHER


def _begin(part: Array) -> int:
    """Where a part of a slab begins."""
    offset = part.like.ctypes.data - part.roots[0].like.ctypes.data
    return offset // part.dtype.itemsize  # type: ignore[no-any-return]
