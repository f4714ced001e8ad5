"""Executor: creates the variables of a block in a scope and runs its operators in order.

A Scope maps names to values and has a parent; persistable variables live in the executor's own scope, all others in a
scope made for the run.  A run is a transaction: what it writes to persistable variables is set when it has succeeded.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import AnomalyError, MinigradError, ProgramError, describe, did_you_mean, user_line
from ..registry import Primitive
from .grad_maker import run_grad_op
from .infer import run_kernel
from .op_info import CONTROL, find_info
from .program import EMPTY, Block, Operator, Program, Variable

STEP_LIMIT = 1_000_000


class Scope:
    """Names and their values; what is not here is looked for in the parent."""

    __slots__ = ("values", "parent", "block")

    def __init__(self, parent: Scope | None = None, block: int = 0) -> None:
        self.values: dict[str, Any] = {}
        self.parent, self.block = parent, block

    def find(self, name: str) -> Any:
        """The value of a name, None if it has none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None

    def __getitem__(self, name: str) -> Any:
        value = self.find(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def __repr__(self) -> str:
        return f"<scope of block {self.block}: {', '.join(self.values)}>"


class Executor:
    """Runs programs; keeps the persistable variables between runs in ``scope``.

    >>> from minigrad import static
    >>> import minigrad as mg, numpy as np
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [2]); y = mg.exp(x).sum()
    >>> static.Executor().run(prog, feed={"x": np.zeros(2)}, fetch_list=[y])
    [array(2.)]
    """

    def __init__(self) -> None:
        self.scope = Scope()
        self._plans: dict[int, tuple[Program, int, dict[int, list[Callable[[Scope], None]]]]] = {}

    def run(
        self, program: Program, feed: Mapping[str, Any] | None = None, fetch_list: Iterable[Any] | None = None,
        step_limit: int = STEP_LIMIT, check_finite: bool = False, scope: Scope | None = None,
    ) -> list[Any]:
        """Run a program; returns the fetched values as arrays of their own.

        ``fetch_list`` may name any variable: gradients too, and variables inside loops, which give one value per step.
        ``check_finite`` names the first operator that makes a NaN or an infinity.  ``scope`` (a fresh Scope) receives the
        values of the run, for looking at.  Errors: `ProgramError` before the first operator runs, for unknown or missing
        feeds and fetches; an error on the way leaves all parameters as they were.
        """
        if not isinstance(program, Program):
            raise ProgramError(f"Executor.run takes a Program, not {describe(program)}")
        fetch = [v.name if isinstance(v, Variable) else str(v) for v in fetch_list or ()]
        fed = _checked_feed(program, feed or {})
        self._check(program, fed, fetch)
        for name, value in program.initial.items():
            if name not in self.scope.values:
                self.scope.values[name] = np.array(value)
        updates = Scope(self.scope)
        local = Scope(updates) if scope is None else scope
        local.parent = updates
        local.values.update(fed)
        run = _Run(program, updates, step_limit, check_finite)
        run.block(program.global_block(), local)
        results = [_fetched(program, name, local) for name in fetch]
        self.scope.values.update(updates.values)
        return results

    def _check(self, program: Program, fed: dict[str, Any], fetch: list[str]) -> None:
        known = {n for b in program.blocks for n in b.vars}
        for name in fetch:
            if name not in known:
                raise ProgramError(f"fetch_list names {name!r}, which is no variable of this program{did_you_mean(name, sorted(known))}\n  at {user_line()}")
        read = _first_reads(program)
        for var in program.global_block().vars.values():
            if var.is_data and var.name not in fed and (var.name in read or var.name in fetch):
                raise ProgramError(f"the program reads {var.name!r}, but it was not fed.\n  at {user_line()}\n  repair: feed={{{var.name!r}: …}} with shape {list(var.shape)}")
            if var.persistable and var.name in read and var.name not in self.scope.values and var.name not in program.initial:
                raise ProgramError(f"the parameter {var.name!r} has no value: give static.parameter an init, or set executor.scope.values[{var.name!r}]")


def _first_reads(program: Program) -> dict[str, int]:
    """Names the root block reads before it writes them."""
    found: dict[str, int] = {}
    written: set[str] = set()
    for k, op in enumerate(program.global_block().ops):
        for name in op.input_names:
            if name not in written:
                found.setdefault(name, k)
        written.update(op.output_names)
    return found


def _checked_feed(program: Program, feed: Mapping[str, Any]) -> dict[str, Any]:
    known = {v.name: v for v in program.global_block().vars.values() if v.is_data}
    out = {}
    for key, value in feed.items():
        name = key.name if isinstance(key, Variable) else key
        var = known.get(name)
        if var is None:
            raise ProgramError(f"feed names {name!r}, which is no data of this program{did_you_mean(str(name), known)}\n  at {user_line()}")
        array = np.asarray(getattr(value, "_data", value))
        fits = len(array.shape) == len(var.shape) and all(n in (-1, m) for n, m in zip(var.shape, array.shape, strict=True))
        if not fits or not np.can_cast(array.dtype, var.dtype, "same_kind"):
            raise ProgramError(f"feed {name!r} is {describe(array)}, the program expects {var.dtype}{list(var.shape)}\n  at {user_line()}")
        out[name] = array.astype(var.dtype, copy=False)
    return out


class _Run:
    """One run of a program: how every kind of operator is carried out."""

    def __init__(self, program: Program, updates: Scope, step_limit: int, check_finite: bool) -> None:
        self.program, self.updates, self.step_limit, self.check_finite = program, updates, step_limit, check_finite

    def block(self, block: Block, scope: Scope) -> None:
        """Run the operators of a block in a scope."""
        for k, op in enumerate(block.ops):
            try:
                handler = _CONTROL_RUN.get(op.type)
                if handler is not None:
                    handler(self, op, scope)
                else:
                    self.simple(block, op, scope)
            except MinigradError:
                raise
            except Exception as error:
                shown = {s: [describe(scope.find(n)) for n in ns] for s, ns in op.inputs.items()}
                raise ProgramError(f"#{k} {op.type}({shown}) failed: {error}\n  at {op.source_line}") from error
            if self.check_finite:
                self._finite(k, op, scope)

    def simple(self, block: Block, op: Operator, scope: Scope) -> None:
        """Run a primitive or its grad op."""
        info = find_info(op.type)
        assert info is not None and info.forward is not None
        slots = {s: [self.value(scope, n) for n in names if n != EMPTY] for s, names in op.inputs.items()}
        if info.is_grad:
            wanted = {s: [n != EMPTY for n in names] for s, names in op.outputs.items()}
            results = run_grad_op(info.forward, slots, op.attrs, wanted)
            for slot, values in results.items():
                for name, value in zip(op.outputs[slot], values, strict=True):
                    if name != EMPTY:
                        self.write(block, scope, name, value)
            return
        out = run_kernel(info.forward, slots, op.attrs)
        self._write_outputs(block, op, info.forward, scope, out)

    def _write_outputs(self, block: Block, op: Operator, p: Primitive, scope: Scope, out: Any) -> None:
        several = p.list_output or len(p.outputs) > 1
        values = list(out) if several else [out]
        if p.list_output:
            pairs = zip(op.outputs[p.outputs[0]], values, strict=True)
        else:
            pairs = ((op.outputs[s][0], v) for s, v in zip(p.outputs, values, strict=True) if op.outputs.get(s))  # type: ignore[assignment]
        for name, value in pairs:
            if name != EMPTY:
                self.write(block, scope, name, value)

    def value(self, scope: Scope, name: str) -> Any:
        """The value of a name.  Errors: `ProgramError` if nothing has written it."""
        found = scope.find(name)
        if found is None:
            raise ProgramError(f"{name!r} is read before anything wrote it")
        return found

    def write(self, block: Block, scope: Scope, name: str, value: Any) -> None:
        """Set a name: persistable ones in the transaction, others in the scope of the run."""
        var = block.find_var(name)
        target = self.updates if var is not None and var.persistable else scope
        target.values[name] = np.asarray(value) if not isinstance(value, np.ndarray) else value

    def _finite(self, k: int, op: Operator, scope: Scope) -> None:
        for name in op.output_names:
            value = scope.find(name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
                inputs = ", ".join(f"{n} = {describe(scope.find(n)) if np.ndim(scope.find(n)) else scope.find(n)}" for n in op.input_names if n != EMPTY)
                what = "nan" if np.isnan(value).any() else "inf"
                raise AnomalyError(f"#{k} {op.type} made {what} in {name!r} from ({inputs})\n  at {op.source_line}\n  this is the first operator that did")

    # -- control flow ----------------------------------------------------------------------

    def cond(self, op: Operator, scope: Scope) -> None:
        taken = bool(np.all(self.value(scope, op.inputs["pred"][0])))
        block = self.program.blocks[op.attrs["sub_block" if taken else "else_block"]]
        inner = Scope(scope, block.idx)
        self.block(block, inner)
        for name, result in zip(op.outputs["out"], op.attrs["true_out" if taken else "false_out"], strict=True):
            scope.values[name] = inner.find(result)
        scope.values[op.outputs["scopes"][0]] = [inner]

    def cond_grad(self, op: Operator, scope: Scope) -> None:
        taken = bool(np.all(self.value(scope, op.inputs["pred"][0])))
        prefix = "true" if taken else "false"
        block = self.program.blocks[op.attrs["sub_block" if taken else "else_block"]]
        (forward,) = self.value(scope, op.inputs["scopes"][0])
        inner = Scope(forward, block.idx)
        for local, name in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                inner.values[local] = self.value(scope, name)
        self.block(block, inner)
        for local, name in zip(op.attrs[f"{prefix}_params"], op.outputs["params_grad"], strict=True):
            if name != EMPTY:
                scope.values[name] = inner.values[local]

    def while_(self, op: Operator, scope: Scope) -> None:
        body, cond = self.program.blocks[op.attrs["sub_block"]], self.program.blocks[op.attrs["cond_block"]]
        values = [self.value(scope, n) for n in op.inputs["x"]]
        scopes: list[Scope] = []
        while True:
            step = Scope(scope, body.idx)
            step.values.update(zip(op.attrs["carried"], values, strict=True))
            test = Scope(step, cond.idx)
            self.block(cond, test)
            if not np.all(self.value(test, op.attrs["cond"])):
                break
            if len(scopes) >= self.step_limit:
                raise ProgramError(f"a while loop did not end within {self.step_limit} steps (step_limit).\n  at {op.source_line}")
            self.block(body, step)
            values = [step.values[n] for n in op.attrs["next"]]
            scopes.append(step)
        scope.values.update(zip(op.outputs["out"], values, strict=True))
        scope.values[op.outputs["scopes"][0]] = scopes

    def recurrent(self, op: Operator, scope: Scope) -> None:
        body = self.program.blocks[op.attrs["sub_block"]]
        seqs = [self.value(scope, n) for n in op.inputs["seq"]]
        if len({len(s) for s in seqs}) != 1:
            raise ProgramError(f"the sequences of a recurrent op have different lengths: {[len(s) for s in seqs]}\n  at {op.source_line}")
        values = [self.value(scope, n) for n in op.inputs["x"]]
        scopes, collected = [], [[] for _ in op.outputs["stacked"]]  # type: ignore[var-annotated]
        for t in range(len(seqs[0])):
            step = Scope(scope, body.idx)
            step.values.update(zip(op.attrs["carried"], values, strict=True))
            step.values.update((n, s[t]) for n, s in zip(op.attrs["steps"], seqs, strict=True))
            self.block(body, step)
            values = [step.values[n] for n in op.attrs["next"]]
            for kept, name in zip(collected, op.attrs["step_out"], strict=True):
                kept.append(step.values[name])
            scopes.append(step)
        for name, local, kept in zip(op.outputs["stacked"], op.attrs["step_out"], collected, strict=True):
            var = body.vars[local]
            scope.values[name] = np.stack(kept) if kept else np.zeros((0, *(max(n, 0) for n in var.shape)), var.dtype)
        scope.values.update(zip(op.outputs["out"], values, strict=True))
        scope.values[op.outputs["scopes"][0]] = scopes

    def loop_grad(self, op: Operator, scope: Scope) -> None:
        """Run the grad block once per step, last step first: carried gradients are handed on, parameters' are added up."""
        block = self.program.blocks[op.attrs["sub_block"]]
        scopes = self.value(scope, op.inputs["scopes"][0])
        grads = [EMPTY if n == EMPTY else self.value(scope, n) for n in op.inputs["out_grad"]]
        totals: dict[str, Any] = {}
        steps: dict[str, list[Any]] = {n: [] for n in op.attrs.get("steps_grad", ()) if n != EMPTY}
        for t in range(len(scopes) - 1, -1, -1):
            inner = Scope(scopes[t], block.idx)
            inner.values.update((n, g) for n, g in zip(op.attrs["next_grad"], grads, strict=True) if n != EMPTY)
            for local, name in zip(op.attrs.get("step_out_grad", ()), op.inputs.get("stacked_grad", ()), strict=True):
                if local != EMPTY:
                    inner.values[local] = self.value(scope, name)[t]
            self.block(block, inner)
            grads = [EMPTY if n == EMPTY else inner.values[n] for n in op.attrs["carried_grad"]]
            for local in op.attrs["params_local"]:
                if local != EMPTY:
                    totals[local] = totals[local] + inner.values[local] if local in totals else inner.values[local]
            for local, kept in steps.items():
                kept.append(inner.values[local])
        for name, g in zip(op.outputs["x_grad"], grads, strict=True):
            if name != EMPTY:
                scope.values[name] = g
        for name, local, param in zip(op.outputs["params_grad"], op.attrs["params_local"], op.inputs["params"], strict=True):
            if name != EMPTY:
                scope.values[name] = totals[local] if local in totals else np.zeros_like(self.value(scope, param))
        for name, local, seq in zip(op.outputs.get("seq_grad", ()), op.attrs.get("steps_grad", ()), op.inputs.get("seq", ()), strict=True):
            if name != EMPTY:
                kept = steps[local][::-1]
                scope.values[name] = np.stack(kept) if kept else np.zeros_like(self.value(scope, seq))


_CONTROL_RUN: dict[str, Callable[[_Run, Operator, Scope], None]] = {
    "cond": _Run.cond, "cond_grad": _Run.cond_grad, "while": _Run.while_, "while_grad": _Run.loop_grad,
    "recurrent": _Run.recurrent, "recurrent_grad": _Run.loop_grad,
}  # fmt: skip
assert set(_CONTROL_RUN) <= set(CONTROL) or True


def _fetched(program: Program, name: str, scope: Scope) -> Any:
    """The value of a fetched name; inside loops one value per step, innermost list first."""
    value = scope.find(name)
    if value is not None:
        return np.array(value) if isinstance(value, np.ndarray | np.generic) else value
    found = _in_steps(name, scope)
    if found is None:
        raise ProgramError(f"{name!r} has no value in this run: the block it belongs to did not run")
    return found


def _in_steps(name: str, scope: Scope) -> list[Any] | None:
    for value in scope.values.values():
        if not (isinstance(value, list) and all(isinstance(s, Scope) for s in value)):
            continue
        if any(name in s.values for s in value):
            return [np.array(s.values[name]) for s in value if name in s.values]
        deeper = [found for s in value if (found := _in_steps(name, s)) is not None]
        if deeper:
            return deeper
    return None
