"""The learning rate goes into the loss's gradient: one small product instead of one over all gradients.

All gradients are linear in the first one; where each of them is read by ``rate * gradient`` only, with one rate, they
may as well all start from ``rate * first``.  Saves a pass over what is as large as the parameters; the last
bits differ, hence for ``exact=False``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import changed_memory, written
from ..schedule import Array, Call, Schedule, arrays_in, substitute_all
from .borders import is_zeros

#: so many of the first values of the backward pass are tried
TRIED = 8
#: the result is linear in every operand together
SUMS = (np.add, np.subtract, np.negative, np.positive)
#: the result is linear in one operand, if the others do not depend on it
PRODUCTS = (np.multiply, np.matmul, np.dot)


def scale_early(schedule: Schedule) -> None:
    """Scale the first gradient of which all others are linear functions.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> w = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, name="w")
    >>> prog = mg.trace(lambda x: (mg.tanh(x @ w) ** 2).sum(), mg.ones([1, 2]))
    >>> with static.program_guard(prog):
    ...     _ = mg.optim.SGD([w], 0.5).minimize(prog.global_block().var(prog.outputs[0]))
    >>> "np.multiply(learning_rate, w_grad" in static.compile(prog, fetch=prog.outputs).source
    True
    >>> "np.multiply(learning_rate, w_grad" in static.compile(prog, fetch=prog.outputs, exact=False).source
    False
    """
    rates = [c for c in schedule.items if _rate(c) is not None]
    rate = _rate(rates[0]) if rates else None
    changed = any(rate is not None and a.shares(rate) for a in written(schedule.items))
    if rate is None or changed or any(_rate(c) is not rate for c in rates):
        return
    size = sum(c.out.size for c in rates)
    tried = [k for k, c in enumerate(schedule.items) if _may_be_first(c, rate, size)][:TRIED]
    for k in tried:
        if _Linear(schedule, k, rates).holds():
            _move(schedule, k, rates)
            return


def _rate(item: Any) -> Array | None:
    """The rate of ``rate * gradient`` in a step of plain descent."""
    if not isinstance(item, Call) or item.op is None or item.op.type != "sgd":
        return None
    if item.function is not np.multiply or item.into is not None or item.kwargs:
        return None
    rate, gradient = item.args
    if not isinstance(rate, Array) or not isinstance(gradient, Array) or gradient.fixed:
        return None
    same = rate.dtype == gradient.dtype == item.out.dtype
    return rate if same and rate.fixed and rate.shape == () else None


def _may_be_first(item: Any, rate: Array, size: int) -> bool:
    """Whether a call makes a value of the backward pass that is smaller than all gradients together."""
    backward = isinstance(item, Call) and item.op is not None and item.op.role == "backward"
    own = backward and item.kind == "compute" and item.into is None and item.out.is_root
    return own and item.out.dtype == rate.dtype and item.out.size < size


class _Linear:
    """What depends on one value, and whether it does so in proportion."""

    def __init__(self, schedule: Schedule, k: int, rates: list[Call]) -> None:
        self.rates, self.fetched = rates, schedule.fetched
        self.later = schedule.items[k + 1 :]
        self.roots = {id(schedule.items[k].out)}
        zeros = {id(c.out) for c in schedule.items if is_zeros(c) or _is_slab(c) or _is_open(c)}
        before = changed_memory(schedule.items[:k])
        self.zeros = zeros - before  # and written in proportion, if at all

    def depends(self, array: Any) -> bool:
        """Whether an argument depends on the first value."""
        return isinstance(array, Array) and any(id(r) in self.roots for r in array.roots)

    def holds(self) -> bool:
        """Whether all that follows is linear in the first value and ends in products with the rate."""
        ends = 0
        for item in self.later:
            if any(item is c for c in self.rates):
                if not self.depends(item.args[1]):
                    return False
                ends += 1
            elif not isinstance(item, Call):
                if any(self.depends(a) for a in item.touches()):
                    return False
            elif not self.follows(item):
                return False
        return ends == len(self.rates) and not any(map(self.depends, self.fetched))

    def follows(self, call: Call) -> bool:
        """Whether a call keeps proportion; what it makes depends on the first value, too."""
        target = call.args[0] if call.kind == "write" else call.into
        sources = call.args[1:] if call.kind == "write" else call.args
        given = [self.depends(a) for a in sources]
        if not any(map(self.depends, arrays_in((sources, call.kwargs)))):
            self.zeros -= changed_memory([call])
            return not self.depends(target)
        if call.kind == "view":
            return True  # it looks at the same root
        if not _keeps_proportion(call, given):
            return False
        roots = {id(r) for r in (call.out if target is None else target).roots}
        if target is not None and not roots <= self.zeros | self.roots:
            return False
        self.roots |= roots
        return True


def _is_slab(item: Any) -> bool:
    return isinstance(item, Call) and item.kind == "slab" and item.function is np.zeros


def _is_open(item: Any) -> bool:
    """Whether a call makes memory with nothing in it yet: what is read of it, was written before."""
    return isinstance(item, Call) and item.kind == "fill" and item.args[1] is None


def _keeps_proportion(call: Call, given: list[bool]) -> bool:
    """Whether twice the ``given`` arguments make twice the result."""
    if not call.kwargs.keys() <= {"axis", "keepdims", "dtype"}:
        return False
    if call.function in SUMS:
        return all(given)
    if call.function in PRODUCTS:
        return sum(given) == 1
    if call.function is np.divide:
        return given == [True, False]
    if call.function is np.copyto:
        return given == [True]
    return call.path == "np.add.reduce" and given == [True]


def _move(schedule: Schedule, k: int, rates: list[Call]) -> None:
    """Multiply the first value by the rate; updates take the gradients as they come."""
    first = schedule.items[k]
    rate, out = _rate(rates[0]), first.out
    plain = Array(out.recorder, out.like, out.name)
    first.out = plain
    scaled = Call("compute", "np.multiply", np.multiply, (plain, rate), {}, out, first.op)
    schedule.items.insert(k + 1, scaled)
    same = {id(c.out): c.args[1] for c in rates}
    schedule.items[:] = [i for i in schedule.items if not any(i is c for c in rates)]
    substitute_all(schedule, same)
