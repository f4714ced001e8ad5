"""A program as one pure function: parameters in, new parameters and what is fetched out.

    def step(xp, parameters, x):
        w = parameters['w']
        h = xp.matmul(x, w)
        ...
        w_2 = xp.sgd(w, w_grad, 0.1)
        return {**parameters, 'w': w_2}, [loss]

Every line calls a primitive of ``xp``; nothing is changed in place.  So the very same source runs on NumPy and, under
`jax.jit`, on JAX.  It is printed from the pure schedule of the program.

Blocks become inner functions, handed to ``xp``:

    scan       xp.scan(step, starts, sequences)              → ends, stacked outputs, kept
    while      xp.while_loop(test, step, starts, save)        → ends, kept
    cond       xp.cond(pred, yes, no)                         → results
    *_grad     xp.loop_grad(back, kept, seeds, grads, params) → gradients of starts, params, sequences

A function keeps nothing between calls, so a grad block cannot read the scope its forward block left behind.  What a
loop keeps are the *carried* values of every step; its backward function computes the rest of the step again, and then
runs the grad block behind it.  A branch keeps nothing.  This is checkpointing, with one checkpoint per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..compiler.lower import lower
from ..compiler.schedule import Array, Branch, Call, Loop, ShapeWhenRun, bodies
from ..compiler.syntax import Identifiers, Line, comment, indented, listed
from ..grad_names import EMPTY
from ..primitives.registry import REGISTRY
from ..static.program.operator import Operator
from ..static.program.program import Program

#: what a traceback calls functional source
FILENAME = "<minigrad functional>"
RESERVED = {
    "xp", "parameters", "step", "slice", "float", "constants", "carried", "slices", "grads", "seeds",
}  # fmt: skip
Values = tuple[Any, ...]
Function = Callable[..., Any]


class FunctionWriter(Identifiers):
    """Turns a program of primitives into the lines of one function."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        super().__init__(lower(program, fetch, pure=True), RESERVED)
        schedule = self.schedule
        self.commented: Operator | None = None
        self.loops_saved = {id(i.frames) for i in _items(schedule.items) if _is_backward(i)}
        self.feeds = {name: self.name(array) for name, array in schedule.feeds.items()}
        state = {self.name(array): name for name, array in schedule.state.items()}
        body = [f"{target} = parameters[{name!r}]" for target, name in state.items()]
        body += self.block(schedule.items)
        stored = "".join(f", {n!r}: {self.value(v)}" for n, v in schedule.stored.items())
        body.append(f"return {{**parameters{stored}}}, {self.value(schedule.fetched)}")
        arguments = ", ".join(["xp", "parameters", *self.feeds.values()])
        self.lines = [*self.before, f"def step({arguments}):", *indented(body)]

    def block(self, items: list[Any]) -> list[str]:
        """The lines of calls, loops and branches."""
        out: list[str] = []
        for item in items:
            op = item.op
            if op.forward_op is not self.commented and op.forward_op is not None:
                out.append(comment(f"grad of: {op.forward_op!r}"))
            self.commented = op.forward_op
            out += [Line.of(line, op) for line in self.item(item)]
        return out

    def item(self, item: Any) -> list[str]:
        """The lines of one item."""
        if isinstance(item, Call):
            several = isinstance(item.out, list)
            targets = self.targets(item.out) if several else self.target(item.out)
            arguments = [*map(self.value, item.args)]
            arguments += [f"{k}={self.value(v)}" for k, v in item.kwargs.items()]
            return [f"{targets} = xp.{item.path}({', '.join(arguments)})"]
        if isinstance(item, Branch):
            return self.branch(item)
        return self.backward(item) if _is_backward(item) else self.forward(item)

    def forward(self, loop: Loop) -> list[str]:
        """``recurrent`` and ``while``: the body, and the condition, as functions of the carried values."""
        starts, begins, nexts, ends = _columns(loop.carried, 4)
        sequences, slices = _columns(loop.slices, 2)
        values, stacks = _columns(loop.stacked, 2)
        step, left = self.unique(f"step_{loop.op.attrs['sub_block']}"), self.unique("ends")
        saved = self.value(loop.frames)
        body = self.unpacked(begins, "carried")
        if loop.go_on is not None:
            test = self.unique(f"test_{loop.op.attrs['cond_block']}")
            condition = [*body, *self.block(loop.test), f"return {self.value(loop.go_on)}"]
            body = [*body, *self.block(loop.body), f"return {self.value(nexts)}"]
            lines = [f"def {test}(carried):", *indented(condition)]
            lines += [f"def {step}(carried):", *indented(body)]
            save = id(loop.frames) in self.loops_saved
            called = f"xp.while_loop({test}, {step}, {self.value(starts)}, {save})"
            lines.append(f"{left}, {saved} = {called}")
        else:
            body += [*self.unpacked(slices, "slices"), *self.block(loop.body)]
            body.append(f"return {self.value(nexts)}, {self.value(values)}")
            stacked = self.unique("stacked")
            called = f"xp.scan({step}, {self.value(starts)}, {self.value(sequences)})"
            lines = [f"def {step}(carried, slices):", *indented(body)]
            lines.append(f"{left}, {stacked}, {saved} = {called}")
            lines += self.unpacked(stacks, stacked)
        return lines + self.unpacked(ends, left)

    def backward(self, loop: Loop) -> list[str]:
        """The grad block of a loop, behind its body, as a function of one step."""
        forward: Any = self.schedule.loops[id(loop.frames)]
        starts, begins, nexts, ends = _columns(loop.carried, 4)
        sequences, seeds = _columns(loop.slices, 2)
        shares, totals, likes = _columns(loop.totals, 3)
        rows, stacks = _columns(loop.stacked, 2)
        body = self.unpacked(_columns(forward.carried, 4)[1], "carried")
        body += self.unpacked(_columns(forward.slices, 2)[1], "slices")
        body += self.once_more(forward.body)
        body += self.unpacked(begins, "grads") + self.unpacked(seeds, "seeds")
        body += self.block(loop.body)
        body.append(f"return {', '.join(map(self.value, (nexts, shares, rows)))}")
        back = self.unique(f"back_{loop.op.attrs['sub_block']}")
        gradients = [self.unique(f"{stem}_grad") for stem in ("starts", "params", "sequences")]
        args = ", ".join(map(self.value, (loop.frames, sequences, starts, likes)))
        lines = [f"def {back}(grads, carried, slices, seeds):", *indented(body)]
        lines.append(f"{', '.join(gradients)} = xp.loop_grad({back}, {args})")
        for arrays, source in zip((ends, totals, stacks), gradients, strict=True):
            lines += self.unpacked(arrays, source)
        return lines

    def branch(self, branch: Branch) -> list[str]:
        """Both bodies as functions without parameters; a grad block comes behind the branch itself."""
        names, lines = [], []
        for k, attr in enumerate(("sub_block", "else_block")):
            stem = "back" if branch.backward else "branch"
            names.append(self.unique(f"{stem}_{branch.op.attrs[attr]}"))
            body = []
            if branch.backward:
                forward: Any = self.schedule.loops[id(branch.frames)]
                body = self.once_more(forward.bodies[k])
            body += self.block(branch.bodies[k])
            body.append(f"return {self.value(tuple(r[k] for r in branch.results))}")
            lines += [f"def {names[k]}():", *indented(body)]
        results = self.unique("results")
        lines.append(f"{results} = xp.cond({self.value(branch.pred)}, {', '.join(names)})")
        return lines + self.unpacked([r[2] for r in branch.results], results)

    def once_more(self, items: list[Any]) -> list[str]:
        """A forward block, computed again for the grad block behind it."""
        again = self.block(items)
        self.commented = None
        return [comment("the step once more"), *again]

    def unpacked(self, arrays: Iterable[Array], source: str) -> list[str]:
        """``h, c = carried``; nothing for no names."""
        arrays = list(arrays)
        return [f"{self.targets(arrays)} = {source}"] if arrays else []

    def targets(self, arrays: Iterable[Array]) -> str:
        """What is assigned to; `_` for results that nobody wants."""
        return listed(map(self.target, arrays))

    def target(self, array: Array) -> str:
        return "_" if array.name == EMPTY else self.name(array)

    def value(self, value: Any) -> str:
        """The expression of an argument: the source has ``xp`` only, no NumPy."""
        if isinstance(value, ShapeWhenRun):
            return f"{self.name(value.array)}.shape"
        if type(value) is float and not np.isfinite(value):
            return f"float({str(value)!r})"
        return super().value(value)


def _items(items: list[Any]) -> Iterator[Any]:
    """All items, those of inner bodies included."""
    for item in items:
        yield item
        for body in bodies(item):
            yield from _items(body)


def _is_backward(item: Any) -> bool:
    return isinstance(item, Loop) and item.op.type.endswith("_grad")


def _columns(rows: list[Any], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) or [()] * count


def functional_source(
    program: Program, fetch: list[str]
) -> tuple[str, Any, list[str], dict[int, Operator]]:
    """The text, the function ``step(xp, parameters, *feeds)``, the feeds in order, and line → operator."""
    writer = FunctionWriter(program, fetch)
    space: dict[str, Any] = {"constants": writer.constants}
    text, lines = writer.executed(writer.lines, FILENAME, space)
    return text, space["step"], list(writer.feeds), lines


class NumpySpace:
    """Every primitive by its type, and control flow on arrays.

    >>> NumpySpace().matmul([[1.0, 2.0]], [3.0, 4.0])
    array([11.])
    """

    numpy: Any = np  # or what stands for it: loops over steps are the same for any

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return REGISTRY[type].kernel

    def cond(self, pred: Any, yes: Function, no: Function) -> Any:
        """The results of one of two functions."""
        return yes() if np.all(pred) else no()

    def scan(self, step: Function, starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences: the last carried values, stacked outputs, and what is kept."""
        carried, kept, outs = starts, [], []
        for slices in zip(*sequences, strict=True):
            kept.append((carried, slices))
            carried, out = step(carried, slices)
            outs.append(out)
        return carried, tuple(self.numpy.stack(o) for o in zip(*outs, strict=True)), kept

    def while_loop(self, test: Function, step: Function, starts: Values, save: bool) -> Any:
        """Steps as long as the test holds: the last carried values, and what is kept."""
        carried, kept = starts, []
        while np.all(test(carried)):
            kept.append((carried, ()))
            carried = step(carried)
        return carried, kept

    def loop_grad(
        self, back: Function, kept: Any, seeds: Values, grads: Values, params: Values
    ) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        totals = tuple(self.numpy.zeros_like(p) for p in params)
        rows = []
        for k in range(len(kept) - 1, -1, -1):
            grads, shares, row = back(grads, *kept[k], tuple(s[k] for s in seeds))
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            rows.append(row)
        return grads, totals, tuple(self.numpy.stack(r) for r in zip(*rows[::-1], strict=True))
