"""A program as one pure function: parameters in, new parameters and what is fetched out.

    def step(xp, parameters, x):
        w = parameters['w']
        h = xp.matmul(x, w)
        ...
        w_2 = xp.sgd(w, w_grad, 0.1)
        return {**parameters, 'w': w_2}, [loss]

Every line calls a primitive of ``xp``; nothing is changed in place.  So the very same source runs on NumPy and, under
`jax.jit`, on JAX.  It is printed from the pure schedule of the program, as a syntax tree.

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

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..compiler.lower import lower
from ..compiler.schedule import Array, Branch, Call, Loop, ShapeWhenRun, bodies
from ..compiler.syntax import (
    Comment,
    Identifiers,
    assign,
    compile_tree,
    entry,
    function,
    invoke,
    load,
    rendered,
)
from ..primitives.registry import REGISTRY
from ..static.program.names import EMPTY
from ..static.program.operator import Operator
from ..static.program.program import Program

#: what a traceback calls functional source
FILENAME = "<minigrad functional>"
RESERVED = {
    "xp", "parameters", "step", "slice", "float", "constants", "carried", "slices", "grads", "seeds",
}  # fmt: skip
Values = tuple[Any, ...]


class FunctionWriter(Identifiers):
    """Turns a program of primitives into the syntax tree of one function."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        super().__init__(lower(program, fetch, pure=True), RESERVED)
        schedule = self.schedule
        self.commented: Operator | None = None
        self.loops_saved = {id(i.frames) for i in _items(schedule.items) if _is_backward(i)}
        self.feeds = {name: self.name(array) for name, array in schedule.feeds.items()}
        body: list[ast.stmt] = [
            assign(self.name(array), entry("parameters", name))
            for name, array in schedule.state.items()
        ]
        body += self.block(schedule.items)
        changed = ast.Dict(
            [None, *map(ast.Constant, schedule.stored)],
            [load("parameters"), *map(self.value, schedule.stored.values())],
        )
        body.append(_returns(changed, self.value(schedule.fetched)))
        step = function("step", ["xp", "parameters", *self.feeds.values()], body)
        self.module = ast.Module([*self.before, step], [])

    def block(self, items: list[Any]) -> list[ast.stmt]:
        """The statements of calls, loops and branches."""
        out: list[ast.stmt] = []
        for item in items:
            op = item.op
            if op.forward_op is not self.commented and op.forward_op is not None:
                out.append(Comment(f"grad of: {op.forward_op!r}"))
            self.commented = op.forward_op
            for statement in self.item(item):
                setattr(statement, "op", op)  # noqa: B010  (for whoever prints it)
                out.append(statement)
        return out

    def item(self, item: Any) -> Iterable[ast.stmt]:
        if isinstance(item, Call):
            return [self.call(item)]
        if isinstance(item, Branch):
            return self.branch(item)
        return self.backward(item) if _is_backward(item) else self.forward(item)

    def call(self, call: Call) -> ast.stmt:
        """One call of a primitive."""
        keywords = [ast.keyword(a, self.value(v)) for a, v in call.kwargs.items()]
        called = invoke(f"xp.{call.path}", [self.value(a) for a in call.args], keywords)
        several = isinstance(call.out, list)
        return ast.Assign([self.stored(call.out) if several else self.target(call.out)], called)

    def forward(self, loop: Loop) -> Iterator[ast.stmt]:
        """``recurrent`` and ``while``: the body, and the condition, as functions of the carried values."""
        starts, begins, nexts, ends = _columns(loop.carried, 4)
        sequences, slices = _columns(loop.slices, 2)
        values, stacks = _columns(loop.stacked, 2)
        step, left = self.unique(f"step_{loop.op.attrs['sub_block']}"), self.unique("ends")
        saved = self.name(loop.frames)  # type: ignore[arg-type]
        body = self.unpacked(begins, "carried")
        if loop.go_on is not None:
            test = self.unique(f"test_{loop.op.attrs['cond_block']}")
            condition = [*body, *self.block(loop.test), _returns(self.value(loop.go_on))]
            yield function(test, ["carried"], condition)
            body = [*body, *self.block(loop.body), _returns(self.value(nexts))]
            yield function(step, ["carried"], body)
            save = ast.Constant(id(loop.frames) in self.loops_saved)
            args = [load(test), load(step), self.value(starts), save]
            yield _unpack([left, saved], invoke("xp.while_loop", args))
        else:
            body += [*self.unpacked(slices, "slices"), *self.block(loop.body)]
            body.append(_returns(self.value(nexts), self.value(values)))
            yield function(step, ["carried", "slices"], body)
            stacked = self.unique("stacked")
            args = [load(step), self.value(starts), self.value(sequences)]
            yield _unpack([left, stacked, saved], invoke("xp.scan", args))
            yield from self.unpacked(stacks, stacked)
        yield from self.unpacked(ends, left)

    def backward(self, loop: Loop) -> Iterator[ast.stmt]:
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
        body.append(_returns(*map(self.value, (nexts, shares, rows))))
        back = self.unique(f"back_{loop.op.attrs['sub_block']}")
        yield function(back, ["grads", "carried", "slices", "seeds"], body)
        gradients = [self.unique(f"{stem}_grad") for stem in ("starts", "params", "sequences")]
        args = [load(back), *map(self.value, (loop.frames, sequences, starts, likes))]
        yield _unpack(gradients, invoke("xp.loop_grad", args))
        for arrays, source in zip((ends, totals, stacks), gradients, strict=True):
            yield from self.unpacked(arrays, source)

    def branch(self, branch: Branch) -> Iterator[ast.stmt]:
        """Both bodies as functions without parameters; a grad block comes behind the branch itself."""
        names = []
        for k, attr in enumerate(("sub_block", "else_block")):
            stem = "back" if branch.backward else "branch"
            names.append(self.unique(f"{stem}_{branch.op.attrs[attr]}"))
            body = []
            if branch.backward:
                forward: Any = self.schedule.loops[id(branch.frames)]
                body = self.once_more(forward.bodies[k])
            body += self.block(branch.bodies[k])
            body.append(_returns(self.value(tuple(r[k] for r in branch.results))))
            yield function(names[k], [], body)
        results = self.unique("results")
        yield assign(results, invoke("xp.cond", [self.value(branch.pred), *map(load, names)]))
        yield from self.unpacked([r[2] for r in branch.results], results)

    def once_more(self, items: list[Any]) -> list[ast.stmt]:
        """A forward block, computed again for the grad block behind it."""
        again = self.block(items)
        self.commented = None
        return [Comment("the step once more"), *again]

    def unpacked(self, arrays: Iterable[Array], source: str) -> list[ast.stmt]:
        """``h, c = carried``; nothing for no names."""
        arrays = list(arrays)
        return [ast.Assign([self.stored(arrays)], load(source))] if arrays else []

    def stored(self, arrays: list[Array]) -> ast.expr:
        return ast.Tuple([self.target(a) for a in arrays], ast.Store())

    def target(self, array: Array) -> ast.expr:
        return ast.Name("_" if array.name == EMPTY else self.name(array), ast.Store())

    def value(self, value: Any) -> ast.expr:
        """The expression of an argument: the source has ``xp`` only, no NumPy."""
        if isinstance(value, ShapeWhenRun):
            return ast.Attribute(load(self.name(value.array)), "shape", ast.Load())
        if type(value) is float and not np.isfinite(value):
            return invoke("float", [ast.Constant(str(value))])
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


def _returns(*values: ast.expr) -> ast.stmt:
    return ast.Return(ast.Tuple(list(values), ast.Load()) if len(values) != 1 else values[0])


def _unpack(names: list[str], value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], value)


def functional_source(
    program: Program, fetch: list[str]
) -> tuple[str, Any, list[str], dict[int, Operator]]:
    """The text, the function ``step(xp, parameters, *feeds)``, the feeds in order, and line → operator."""
    writer = FunctionWriter(program, fetch)
    text, lines = rendered(writer.module)
    space: dict[str, Any] = {"constants": writer.constants}
    exec(compile_tree(writer.module, FILENAME), space)
    return text, space["step"], list(writer.feeds), lines


class NumpySpace:
    """Every primitive by its type, and control flow on arrays.

    >>> NumpySpace().matmul([[1.0, 2.0]], [3.0, 4.0])
    array([11.])
    """

    numpy: Any = np  # or what stands for it: loops over steps are the same for any

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return REGISTRY[type].kernel

    def cond(self, pred: Any, yes: Callable[[], Values], no: Callable[[], Values]) -> Values:
        """The results of one of two functions."""
        return yes() if np.all(pred) else no()

    def scan(self, step: Callable[..., Any], starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences: the last carried values, stacked outputs, and what is kept."""
        carried, kept, outs = starts, [], []
        for slices in zip(*sequences, strict=True):
            kept.append((carried, slices))
            carried, out = step(carried, slices)
            outs.append(out)
        return carried, tuple(self.numpy.stack(o) for o in zip(*outs, strict=True)), kept

    def while_loop(
        self,
        test: Callable[[Values], Any],
        step: Callable[[Values], Values],
        starts: Values,
        save: bool,
    ) -> Any:
        """Steps as long as the test holds: the last carried values, and what is kept."""
        carried, kept = starts, []
        while np.all(test(carried)):
            kept.append((carried, ()))
            carried = step(carried)
        return carried, kept

    def loop_grad(
        self, back: Callable[..., Any], kept: Any, seeds: Values, grads: Values, params: Values
    ) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        totals = tuple(self.numpy.zeros_like(p) for p in params)
        rows = []
        for k in range(len(kept) - 1, -1, -1):
            grads, shares, row = back(grads, *kept[k], tuple(s[k] for s in seeds))
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            rows.append(row)
        return grads, totals, tuple(self.numpy.stack(r) for r in zip(*rows[::-1], strict=True))
