"""Loop-invariant calls: what every step computes from the same values is computed once, before the loop."""

from __future__ import annotations

from typing import Any

from ..effects import bodies, changed_memory
from ..schedule import Array, Call, Loop, Schedule, arrays_in


def hoist(schedule: Schedule) -> None:
    """Move such calls in front of the loops of the root; out of a nest they move loop by loop.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     xs, h, w = static.data("xs", [5, 2]), static.data("h", [2]), static.data("w", [2])
    ...     _, (last,) = static.static_rnn(lambda x, h: ([], [h * mg.exp(w) + x]), [xs], [h])
    >>> source = static.compile(prog, fetch=last).source
    >>> source.index("np.exp") < source.index("for ")
    True
    """
    changed = changed_memory(schedule.items)
    schedule.items[:] = _hoisted(schedule.items, changed)


def _hoisted(items: list[Any], changed: set[int]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        for body in bodies(item):
            body[:] = _hoisted(body, changed)
        if isinstance(item, Loop):
            out += _from(item, changed)
        out.append(item)
    return out


def _from(loop: Loop, changed: set[int]) -> list[Call]:
    """The calls that leave a loop, in order; the loop loses them."""
    of_step = {id(r) for a in _of_step(loop) for r in a.roots}
    moved: list[Call] = []
    for body in (loop.test, loop.body):
        stay = []
        for item in body:
            if _may_leave(item, of_step | changed):
                moved.append(item)
                of_step -= {id(item.out)}
            else:
                stay.append(item)
        body[:] = stay
    return moved


def _of_step(loop: Loop) -> list[Array]:
    """What differs from step to step: what a step is given, and what it makes."""
    given = [c[1] for c in loop.carried] + [local for _, local in loop.slices]
    if loop.op.type.endswith("_grad"):
        given += [here for _, here in loop.saved]
    return given + _made([*loop.test, *loop.body])


def _made(items: list[Any]) -> list[Array]:
    out: list[Array] = []
    for item in items:
        out += arrays_in([item.out]) if isinstance(item, Call) else item.touches()
        for body in bodies(item):
            out += _made(body)
    return out


def _may_leave(item: Any, inside: set[int]) -> bool:
    """Whether a call needs nothing of the step, and cannot fail where no step would have run."""
    if not isinstance(item, Call) or item.kind not in ("compute", "view") or item.into is not None:
        return False
    reads = item.reads()
    own = isinstance(item.out, Array) and bool(reads) and not item.ignores
    return own and not any(id(r) in inside for a in reads for r in a.roots)
