"""Operators, nets and the scopes they run in; `backward.py` makes their backward side.

Vocabulary
    Operator    a type, names by slot, attrs; it runs on a Scope
    NetOp       an operator that runs the operators it holds, in order; nets nest
    Scope       names and their values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ProgramError, describe, did_you_mean, user_frame, wrong
from ..grad_names import EMPTY, GRAD
from ..static.program import operator as static_operator
from ..static.program.arguments import check_operator, slots_of
from ..static.program.op_info import bind_slots, op_info
from ..static.run.kernels import refused, run_grad_op, run_kernel

Slots = dict[str, list[str]]
Given = Mapping[str, str | Sequence[str]]


class Scope(dict[str, Any]):
    """Names and their values; a name that is not here is looked up in ``parent``.

    >>> step = Scope({"h": 2.0}, parent=Scope({"W": 3.0}))
    >>> step["h"], step["W"]
    (2.0, 3.0)
    """

    def __init__(self, values: Mapping[str, Any] | None = None, parent: Any = None) -> None:
        super().__init__(values or {})
        self.parent = parent

    def __missing__(self, name: str) -> Any:
        if self.parent is None:
            raise KeyError(name)
        return self.parent[name]


def names(slots: Mapping[str, Iterable[str]]) -> list[str]:
    """All names in a map of slots, in order."""
    return [name for listed in slots.values() for name in listed]


# -- operators ---------------------------------------------------------------------------------


class Operator(static_operator.Operator):
    """One operation, written down: ``Operator("mul", {"x": "a", "y": "b"}, {"out": "c"})``.

    A slot is given one name or a list of names; what it knows of itself is what an operator of a Program knows.
    Errors: `ProgramError` for an unknown type, slot or attr, with the nearest known one, and for a
    missing name.

    >>> scope = Scope({"a": 2.0, "b": 3.0})
    >>> Operator("mul", {"x": "a", "y": "b"}, {"out": "c"}).run(scope)
    >>> float(scope["c"])
    6.0
    """

    forward: Operator | None = None  #: what the result of `Backward` is the backward of

    def __init__(
        self, type: str, inputs: Given, outputs: Given, attrs: Mapping[str, Any] | None = None
    ) -> None:
        self._begin(type, attrs)
        self.inputs = slots_of(inputs)
        self.outputs = slots_of(outputs)
        info = op_info(str(type))
        bind_slots(info, self.inputs, self.outputs, self.attrs)
        if not info.is_grad or info.forward is None:  # which may write one name twice
            check_operator(info, self)
        for slot in info.outputs:
            if slot not in self.outputs and not info.is_grad:
                raise wrong(f"{type} needs a name for its output {slot!r}", f'{{{slot!r}: "c"}}')

    def _begin(self, type: str, attrs: Mapping[str, Any] | None = None) -> None:
        """What every operator has besides its slots, the user's line among it."""
        self.type, self.attrs, self.role = type, dict(attrs or {}), "forward"
        self.forward_op = self.copy_of = self._reads = None
        frame = user_frame(3)
        self.code, self.lasti = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)

    def run(self, scope: Any) -> None:
        """Read the inputs by name, compute, write the outputs by name.

        ``scope`` is a `Scope`, a dictionary, or an executor's scope.
        Errors: `ProgramError` that names the input without value, or says what the kernel refused.
        """
        slots = {s: [read(scope, n, self) for n in listed] for s, listed in self.inputs.items()}
        try:
            for slot, values in self._compute(slots).items():
                if len(values) != len(self.outputs[slot]):
                    raise ValueError(f"{len(values)} values for {len(self.outputs[slot])} names")
                for name, value in zip(self.outputs[slot], values, strict=True):
                    write(scope, name, value)
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            raise refused(self, slots, error, line=self.source_line) from error

    def _compute(self, slots: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """From values by input slot to values by output slot: the kernel, or the gradient rules."""
        info = op_info(self.type)
        p: Any = info.forward
        if info.is_grad:
            asked = {slot for slot, listed in self.outputs.items() if {*listed} - {EMPTY}}
            return run_grad_op(p, slots, self.attrs, asked)
        values = run_kernel(p, slots, self.attrs)
        return dict(
            zip(p.outputs, [values] if p.list_output else [[v] for v in values], strict=True)
        )


def read(scope: Any, name: str, reader: Any = "") -> Any:
    """The value of a name.  Errors: `ProgramError` with the names that have one."""
    try:
        value = scope[name]
    except KeyError:
        known = scope if isinstance(scope, Mapping) else scope.values
        hint = f"; give it before the run: scope[{name!r}] = …"
        hint = hint if name.endswith(GRAD) else did_you_mean(name, known)
        message = f"{name!r} has no value in this scope{hint}\n  read by {reader}"
        raise ProgramError(message) from None
    return np.asarray(getattr(value, "_data", value)) if not isinstance(value, list) else value


def write(scope: Any, name: str, value: Any) -> None:
    """Set the value of a name in this scope, not in its parents; ``@EMPTY@`` is dropped."""
    if name != EMPTY:
        (scope if isinstance(scope, dict) else scope.values)[name] = value


class NetOp(Operator):
    """An operator that holds operators and runs them in order: ``NetOp(ops, "fc")``.

    ``outputs["out"]`` are the names that leave the net: the given ones, else those not read in it.

    >>> ops = [Operator("exp", {"x": "a"}, {"out": "b"}), Operator("exp", {"x": "b"}, {"out": "c"})]
    >>> NetOp(ops).outputs
    {'out': ['c'], 'inner': ['b']}
    """

    def __init__(
        self, ops: Iterable[Operator], name: str = "net", outputs: Iterable[str] | None = None
    ) -> None:
        self._begin(name)
        self.ops, self.name = list(ops), name
        for op in self.ops:
            if not isinstance(op, Operator):
                what = f"a net holds operators and nets, not {describe(op)}"
                raise wrong(what, 'NetOp([Operator("exp", {"x": "a"}, {"out": "b"})])')
        self.leaving = None if outputs is None else list(outputs)
        written = {n for _, op in places(self) for n in names(op.outputs)}
        for n in self.leaving or ():
            if n not in written:
                hint = did_you_mean(n, written)
                raise wrong(f"no operator of the net {name!r} writes its output {n!r}{hint}")

    @property
    def inputs(self) -> Slots:  # type: ignore[override]
        """What the net reads and nobody in it has written before."""
        written, needed = {EMPTY}, dict[str, None]()
        for _, op in places(self):
            needed |= {name: None for name in names(op.inputs) if name not in written}
            written |= set(names(op.outputs))
        return {"x": list(needed)}

    @property
    def outputs(self) -> Slots:  # type: ignore[override]
        """What the net writes: names that leave it, and names that stay inside."""
        written: dict[str, None] = {}
        inside: set[str] = set()
        for _, op in places(self):
            written |= dict.fromkeys(n for n in names(op.outputs) if n != EMPTY)
            inside |= {*names(op.inputs), *op.outputs.get("scopes", ())}
        out = [n for n in written if n not in inside] if self.leaving is None else self.leaving
        return {"out": out, "inner": [n for n in written if n not in set(out)]}

    def run(self, scope: Any) -> None:
        """Run every operator in order, those of nets inside included."""
        for _, op in places(self):
            op.run(scope)

    def __repr__(self) -> str:
        lines, waiting = [], [(0, self)]
        while waiting:
            depth, op = waiting.pop()
            inner = getattr(op, "ops", None)
            lines.append("    " * depth + (repr(op) if inner is None else f"{op.type}:"))
            waiting += [(depth + 1, each) for each in reversed(inner or ())]
        return "\n".join(lines)


def places(net: NetOp) -> Iterator[tuple[NetOp, Operator]]:
    """(the net it stands in, operator) for every operator that computes, in order."""
    waiting = [(net, op) for op in reversed(net.ops)]
    while waiting:
        home, op = waiting.pop()
        if isinstance(op, NetOp):
            waiting += [(op, inner) for inner in reversed(op.ops)]
        else:
            yield home, op
