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

from ..errors import MinigradError, ProgramError, describe, did_you_mean, refusal, user_line
from ..grad_names import EMPTY, GRAD
from ..static.program.op_info import bind_slots, list_slots, op_info
from ..static.run.kernels import run_grad_op, run_kernel

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


def wrong(what: str, repair: str = "") -> MinigradError:
    """What to raise for a mistake in a net: with the user's line, and the repair."""
    return refusal(what, repair, ProgramError)


# -- operators ---------------------------------------------------------------------------------


class Operator:
    """One operation, written down: ``Operator("mul", {"x": "a", "y": "b"}, {"out": "c"})``.

    A slot is given one name or a list of names.
    Errors: `ProgramError` for an unknown type, slot or attr, with the nearest known one, and for a
    missing name.

    >>> scope = Scope({"a": 2.0, "b": 3.0})
    >>> Operator("mul", {"x": "a", "y": "b"}, {"out": "c"}).run(scope)
    >>> float(scope["c"])
    6.0
    """

    forward_op: Operator | None = None  #: what a grad op differentiates
    reads: tuple[str, ...] | None = None  #: the forward names whose values a grad op needs
    forward: Operator | None = None  #: what the result of `Backward` is the backward of

    def __init__(
        self, type: str, inputs: Given, outputs: Given, attrs: Mapping[str, Any] | None = None
    ) -> None:
        self.type, self.attrs, self.source_line = type, dict(attrs or {}), user_line()
        self.inputs, self.outputs = _listed(type, inputs), _listed(type, outputs)
        info = op_info(str(type))
        if info.forward is None:
            what = f"{type!r} is for Programs: a net has primitives, NetOps and RnnOps"
            raise wrong(what, "RnnOp for a loop over a sequence, else a static.Program")
        for slot, listed in (*self.inputs.items(), *self.outputs.items()):
            if len(listed) != 1 and slot not in list_slots(info):
                what = f"the slot {slot!r} of {type} takes one name, not {listed}"
                raise wrong(what, f'{{{slot!r}: "a"}}')
        bind_slots(info, self.inputs, self.outputs, self.attrs)
        for slot in info.outputs:
            if slot not in self.outputs and not info.is_grad:
                raise wrong(f"{type} needs a name for its output {slot!r}", f'{{{slot!r}: "c"}}')

    def run(self, scope: Any) -> None:
        """Read the inputs by name, compute, write the outputs by name.

        ``scope`` is a `Scope`, a dictionary, or an executor's scope.
        Errors: `ProgramError` that names the input without value, or says what the kernel refused.
        """
        slots = {s: [read(scope, n, self) for n in listed] for s, listed in self.inputs.items()}
        try:
            for slot, values in self.compute(slots).items():
                if len(values) != len(self.outputs[slot]):
                    raise ValueError(f"{len(values)} values for {len(self.outputs[slot])} names")
                for name, value in zip(self.outputs[slot], values, strict=True):
                    write(scope, name, value)
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            pairs = zip(names(self.inputs), names(slots), strict=True)
            shown = ", ".join(f"{name}: {describe(value)}" for name, value in pairs)
            where = f"\n  at {self.source_line}"
            raise ProgramError(f"{self} failed with {shown}: {error}{where}") from error

    def compute(self, slots: dict[str, list[Any]]) -> dict[str, list[Any]]:
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

    def __repr__(self) -> str:
        def text(listed: list[str]) -> str:
            return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"

        outs = ", ".join(text(listed) for listed in self.outputs.values() if listed)
        args = [f"{slot}={text(listed)}" for slot, listed in self.inputs.items() if listed]
        args += [f"{key}={value!r}" for key, value in self.attrs.items()]
        return f"{outs} = {self.type}({', '.join(args)})"


def _listed(type: str, slots: Given) -> Slots:
    given = slots.values() if isinstance(slots, Mapping) else [None]
    if not all(isinstance(v, str | Sequence) for v in given):
        what = f"the slots of {type} and their names are a dictionary, not {slots!r}"
        raise wrong(what, '{"x": "a"}, and {"out": "b"}')
    listed = {s: [value] if isinstance(value, str) else list(value) for s, value in slots.items()}
    for slot, members in listed.items():
        for name in members:
            if not isinstance(name, str) or not name:
                what = f"the slot {slot!r} of {type} takes names, not {describe(name)}"
                raise wrong(what, f'{{{slot!r}: "a"}}; the value is in the scope, {{"a": …}}')
    return listed


def read(scope: Any, name: str, reader: Any = "") -> Any:
    """The value of a name.  Errors: `ProgramError` with the names that have one."""
    if not hasattr(scope, "__getitem__"):
        what = f"operators run on a Scope or a dictionary, not {describe(scope)}"
        raise wrong(what, f"op.run({{{name!r}: …}})")
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
        if not isinstance(ops, Iterable) or not isinstance(name, str):
            what = f"a net is NetOp([operators], name), not NetOp({ops!r}, {name!r})"
            raise wrong(what, 'NetOp([op, …], "fc")')
        self.ops, self.type, self.name, self.attrs = list(ops), name, name, {}
        self.source_line = user_line()
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
