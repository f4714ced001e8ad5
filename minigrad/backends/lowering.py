"""Where every backend starts: a program for given shapes, in primitives only; what users call loads the rest.

`Function` carries the operators of a lowered program out one by one, each by the function of its type in ``xp``.
Nothing is changed in place.  So the same program runs under `jax.jit` and as a graph that is being written.

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

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..compiler.memory import start_memory
from ..compiler.program_passes import climb, is_state, limited_depth
from ..errors import ProgramError, describe, did_you_mean, refusal, told, user_line
from ..grad_names import EMPTY
from ..static.program.operator import Operator, names_of, op_info, unwritten
from ..static.program.program import Program
from ..static.run.executor import fed_shapes
from ..static.run.kernels import arguments, results, targets
from .c.step import CStep
from .c.text import Writer


def lowered(program: Program, shapes: Mapping[str, tuple[int, ...]], fetch: list[str]) -> Program:
    """The rungs of the compiler that are programs: open sizes filled in, grad ops written out, duplicates merged."""
    *_, (_, last) = climb(program, shapes, fetch)
    return last


def needs(package: str, extra: str, what: str) -> None:
    """Errors: `ProgramError` with the command that installs the extra, if the package is not there."""
    if find_spec(package) is None:
        raise ProgramError(
            f"{what} needs {package}, which is not installed.\n  at {user_line()}\n"
            f'  repair: pip install "minigrad[{extra}]"'
        )


def on_backend(
    backend: str,
    program: Program,
    feed: Any,
    fetch: Any,
    executor: Any,
    exact: bool,
    max_steps: int | None,
) -> Any:
    """What ``static.compile(..., backend=...)`` returns.  Errors: `ProgramError` if there is no such backend here."""
    if backend not in ("c", "jax"):
        near = did_you_mean(backend, ["numpy", "c", "jax"])
        raise ProgramError(f"there is no backend {backend!r}{near}\n  at {user_line()}")
    if backend == "c":
        step: Any = CStep(program, fetch, executor, exact, max_steps)
    else:
        needs("jax", "jax", 'backend="jax"')
        from .jax_step import JaxStep

        step = JaxStep(program, fetch, executor, max_steps)
    shapes = fed_shapes(program, feed)
    if not any(-1 in shape for shape in shapes.values()):
        step.build(shapes)
    return step


def to_c(
    program: Program,
    feed: Any = None,
    fetch: Any = (),
    exact: bool = True,
    max_steps: int | None = None,
) -> str:
    """A program as one file of C99: forward, backward and updates in one function.

    Args: ``feed``, arrays or shapes where the program leaves sizes open; ``fetch``, the variables whose values are
    read from ``struct memory`` afterwards; ``exact=False`` lets sums be added up in any order; ``max_steps`` bounds
    while loops that are differentiated.  Errors: `ProgramError` for an operator without C, with the line of the user.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     y = static.data("x", [3]) * 2.0
    >>> [line.strip() for line in static.to_c(prog, fetch=y).splitlines()][-4:-2]
    ['for (int i = 0; i < 3; i++)', 's->mul_0[i] = f->x[i] * 2.0;']
    """
    if not isinstance(program, Program):
        what = f"to_c takes a Program, not {describe(program)}"
        raise refusal(what, "static.to_c(program, fetch=[…])", ProgramError)
    shapes, fetch = fed_shapes(program, feed), names_of(program, fetch, "fetch")
    if open_sizes := [name for name, shape in shapes.items() if -1 in shape]:
        what = f"the size of {open_sizes[0]!r} is open: C is written for known sizes"
        raise refusal(what, f"feed={{{open_sizes[0]!r}: (…)}}, an array or its shape", ProgramError)
    with limited_depth():
        memory = start_memory(program, None)
        return Writer(lowered(program, shapes, fetch), fetch, memory, exact, max_steps).text()


def export_onnx(
    program: Program,
    path: str | Path | None = None,
    feed: Mapping[str, Any] | None = None,
    fetch: Any = (),
    executor: Any = None,
) -> Any:
    """Write a program as an ONNX file; returns the model, an ``onnx.ModelProto``.

    Args: ``path``, the file, or None to write none; ``feed``, arrays or shapes where the program leaves sizes open;
    ``fetch``, the variables that become outputs, gradients too; ``executor``, whose parameters are stored (the start
    values without).  Errors: `ProgramError` for an operator without a counterpart in ONNX, for gradients of
    while loops, and if onnx is not installed: ``pip install "minigrad[onnx]"``.  Nothing is written then.

    >>> from importlib.util import find_spec
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     loss = (static.data("x", [-1, 2]) * w).sum()
    ...     pairs = static.append_backward(loss)
    >>> if find_spec("onnx"):
    ...     model = static.export_onnx(prog, feed={"x": (3, 2)}, fetch=[loss, "w@GRAD"])
    ...     assert [v.name for v in model.graph.output] == [loss.name, "w@GRAD"]
    """
    if not isinstance(program, Program):
        what = f"export_onnx takes a Program, not {describe(program)}"
        raise refusal(what, "static.export_onnx(program, path, fetch=[…])", ProgramError)
    needs("onnx", "onnx", "export_onnx")
    from .onnx_model import onnx_model, write_model

    model = onnx_model(program, feed, fetch, executor)
    if path is not None:
        write_model(model, path)
    return model


Values = tuple[Any, ...]


class Names(ChainMap[str, Any]):
    """The values of a block by name, then those of the blocks around it."""

    def __missing__(self, name: str) -> Any:
        raise unwritten(name)

    def all(self, names: Iterable[str]) -> Values:
        """The values of some names."""
        return tuple(self[n] for n in names)

    def set(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Give names their values."""
        self.update(zip(names, values, strict=True))

    def now(self) -> Names:
        """These names as they are, whatever is written later."""
        return Names(*map(dict, self.maps))


class Function:
    """A lowered program as a function of ``xp``, parameters and feeds."""

    def __init__(self, program: Program, fetch: list[str]) -> None:
        self.program, self.fetch = program, fetch
        self.op: Operator | None = None  # what runs, for errors
        self.read = {n for b in program.blocks for op in b.ops for n in op.input_names}
        inside = [(b, n) for b in program.blocks[1:] for op in b.ops for n in op.output_names]
        for block, name in inside:
            if is_state(block, name):
                raise refusal(
                    f"a loop or branch writes the parameter {name!r}: a pure function returns what it changes",
                    "carry it as a loop variable, or run the program with static.Executor()",
                    ProgramError,
                )

    def __call__(
        self, xp: Any, parameters: dict[str, Any], feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], Values]:
        names = self.block(xp, 0, Names({**parameters, **feeds}))
        return {n: names[n] for n in parameters}, names.all(self.fetch)

    def block(self, xp: Any, number: int, names: Names) -> Names:
        """Carry out the operators of a block; its names."""
        for op in self.program.blocks[number].ops:
            self.op = op
            handler: Callable[..., None] = HANDLERS.get(op.type, Function.primitive)
            handler(self, xp, op, names)
        return names

    def primitive(self, xp: Any, op: Operator, names: Names) -> None:
        """An operator without blocks."""
        p: Any = op_info(op.type).forward
        slots = {s: names.all(listed) for s, listed in op.inputs.items()}
        args, attrs = arguments(p, slots, op.attrs)
        names.set(targets(p, op), results(p, getattr(xp, op.type)(*args, **attrs)))

    def cond(self, xp: Any, op: Operator, names: Names) -> None:
        """Both bodies are functions without parameters."""
        around = names.now()

        def forward(block: str) -> Names:
            return self.block(xp, op.attrs[block], around.new_child())

        yes = lambda: forward("sub_block").all(op.attrs["true_out"])  # noqa: E731
        no = lambda: forward("else_block").all(op.attrs["false_out"])  # noqa: E731
        names.set(op.outputs["out"], xp.cond(names[op.inputs["pred"][0]], yes, no))
        names[op.outputs["scopes"][0]] = forward

    def cond_grad(self, xp: Any, op: Operator, names: Names) -> None:
        """Each grad block comes behind its branch, which is computed once more."""
        forward = names[op.inputs["scopes"][0]]

        def back(block: str, prefix: str) -> Values:
            local, seeds = wanted(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"])
            seeded = dict(zip(local, names.all(seeds), strict=True))
            inner = Names(seeded, *forward(block).maps, *names.maps)
            gradients = wanted(op.outputs["params_grad"], op.attrs[f"{prefix}_params"])[1]
            return self.block(xp, op.attrs[block], inner).all(gradients)

        yes = lambda: back("sub_block", "true")  # noqa: E731
        no = lambda: back("else_block", "false")  # noqa: E731
        results = xp.cond(names[op.inputs["pred"][0]], yes, no)
        names.set(wanted(op.outputs["params_grad"])[0], results)

    def loop(self, xp: Any, op: Operator, names: Names) -> None:
        """``while`` and ``recurrent``: the condition and the body are functions of the carried values."""
        around, scopes = names.now(), op.outputs["scopes"][0]
        local = [*op.attrs["carried"], *op.attrs.get("steps", ())]

        def begin(values: Iterable[Any]) -> Names:
            return around.new_child(dict(zip(local, values, strict=True)))

        def forward(carried: Values, slices: Values) -> Names:
            return self.block(xp, op.attrs["sub_block"], begin((*carried, *slices)))

        def test(carried: Values) -> Any:
            inner = self.block(xp, op.attrs["cond_block"], begin(carried).new_child())
            return inner[op.attrs["cond"]]

        def step(carried: Values, slices: Values = ()) -> Any:
            inner = forward(carried, slices)
            return inner.all(op.attrs["next"]), inner.all(op.attrs.get("step_out", ()))

        starts = names.all(op.inputs["x"])
        if op.type == "while":
            save = scopes in self.read
            if save and not xp.max_steps:
                what = "the gradient of a while loop needs the values of every step: nobody knows how many"
                advice = 'static.static_rnn; or backend="jax" or "c" with max_steps=100'
                raise ProgramError(told(what, advice, op.source_line))
            ends, kept = xp.while_loop(test, step, starts, save)
        else:
            ends, stacked, kept = xp.scan(step, starts, names.all(op.inputs["seq"]))
            names.set(op.outputs.get("stacked", ()), stacked)
        names.set(op.outputs["out"], ends)
        names[scopes] = forward, kept

    def loop_grad(self, xp: Any, op: Operator, names: Names) -> None:
        """The grad block of a loop, behind its body, as a function of one step."""
        forward, kept = names[op.inputs["scopes"][0]]
        attrs, ins, outs = op.attrs, op.inputs, op.outputs
        begins, starts = wanted(attrs["next_grad"], ins["out_grad"])
        local, seeds = wanted(attrs.get("step_out_grad", ()), ins.get("stacked_grad", ()))
        nexts, ends = wanted(attrs["carried_grad"], outs["x_grad"])
        totals, shares, likes = wanted(outs["params_grad"], attrs["params_local"], ins["params"])
        stacks, rows = wanted(outs.get("seq_grad", ()), attrs.get("steps_grad", ()))

        def back(grads: Values, carried: Values, slices: Values, seeded: Values) -> Any:
            given = dict(zip([*begins, *local], [*grads, *seeded], strict=True))
            inner = Names(given, *forward(carried, slices).maps, *names.maps)
            self.block(xp, attrs["sub_block"], inner)
            return inner.all(nexts), inner.all(shares), inner.all(rows)

        parts = xp.loop_grad(back, kept, names.all(seeds), names.all(starts), names.all(likes))
        for found, values in zip((ends, totals, stacks), parts, strict=True):
            names.set(found, values)


def wanted(names: Iterable[str], *columns: Iterable[str]) -> list[tuple[str, ...]]:
    """Names and what belongs to them, without those that nobody wants."""
    rows = [row for row in zip(names, *columns, strict=True) if row[0] != EMPTY]
    return list(zip(*rows, strict=True)) or [()] * (1 + len(columns))


#: how control flow is carried out
HANDLERS: dict[str, Callable[..., None]] = {
    "cond": Function.cond,
    "cond_grad": Function.cond_grad,
    "while": Function.loop,
    "while_grad": Function.loop_grad,
    "recurrent": Function.loop,
    "recurrent_grad": Function.loop_grad,
}
