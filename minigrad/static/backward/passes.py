"""The passes over the operators of a backward part: each of them takes a list and gives one.

How many gradients a value gets: several are added up, none is zero.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ProgramError
from ...grad_names import EMPTY, GRAD, before_cast, part, whole
from ...primitives.arguments import ByName
from ..program.block import Block
from ..program.operator import CONTROL, Operator, Ops, backward_op, outputs_of
from ..program.variable import plain_variable
from ..run.interpreter import outer_reads

#: where a gradient is written: the operator, one of its lists of names, the place in it
Writer = tuple[Any, list[str], int]


def add_up_repeated_gradients(ops: list[Operator], block_idx: int) -> list[Operator]:
    """A gradient written k > 1 times becomes k temporaries and one ``sum`` of k.

    The ``sum`` stands immediately before the first reader; for a gradient nobody reads, at the end.
    """
    repeated = {name for name in written_twice(outputs_of(ops)) if GRAD in name}
    if not repeated:
        return ops
    out: list[Operator] = []
    writers: dict[str, list[Writer]] = {}
    counts: dict[str, int] = {}
    label = f"block{block_idx}@" if block_idx else ""

    def close(name: str) -> None:
        sites = writers.pop(name)
        if len(sites) == 1:
            return
        first = counts.get(name, 0)
        counts[name] = first + len(sites)
        parts = rename_writers(name, sites, label, first)
        total = Operator("sum", {"x": parts}, {"out": [name]}, {}, "backward")
        out.append(total.at(sites[-1][0]))

    for op in ops:
        for name in op.input_names:
            if name in writers:
                close(name)
        out.append(op)
        for names in op.outputs.values():
            for j, name in enumerate(names):
                if name in repeated:
                    writers.setdefault(name, []).append((op, names, j))
    for name in list(writers):
        close(name)
    return out


def rename_writers(
    gradient: str, sites: list[Writer], label: str = "", first: int = 0
) -> list[str]:
    """Each writer of a gradient makes a part of it: returns the names of the parts, counted from ``first``."""
    for k, (_, names, j) in enumerate(sites, first):
        names[j] = part(gradient, f"{label}{k}")
    return [names[j] for _, names, j in sites]


def read_zeros(ops: list[Operator], start: int, name: str, gradient: str) -> None:
    """Grad ops, from ``start`` on, read zeros for a gradient that holds what belongs to a later value of its name."""
    zeros = part(gradient, "zeros")
    read_instead(ops[start:], gradient, zeros)
    ops.insert(start, backward_op("fill_zeros_like", name, zeros).at(ops[start]))


def read_instead(ops: Ops, old: str, new: str) -> None:
    """Operators read another value in the place of one."""
    for op in ops:
        for slot, names in op.inputs.items():
            op.inputs[slot] = [new if n == old else n for n in names]


def fill_missing_gradients(ops: list[Operator], grad_of: dict[str, str]) -> list[Operator]:
    """A gradient that an operator reads and nobody makes is zero: ``fill_zeros_like`` right before the reader.

    An operator with one output is on the path because the gradient of that output is made: where
    all are such, nothing has to be looked for, and ``grad_of`` is empty.
    """
    unmade = set(grad_of)
    if not unmade:
        return ops
    out: list[Operator] = []
    for op in ops:
        for name in op.input_names:
            if name in unmade:
                out.append(backward_op("fill_zeros_like", grad_of[name], name).at(op))
                unmade.remove(name)
        out.append(op)
        unmade.difference_update(op.output_names)
    return out


def written_twice(names: list[str]) -> set[str]:
    """The names that stand there more than once."""
    if len(set(names)) == len(names):
        return set()
    return {name for name, count in Counter(names).items() if count > 1}


# -- Values that are gone: a grad op that reads what a later operator has overwritten is an error when it is built


def check_overwritten(block: Block, ops: Ops) -> None:
    """A value that a grad op reads must still be there: an error that names both operators if it was overwritten."""
    last = _overwritten(block)
    if not last:
        return
    position = {id(op): k for k, op in enumerate(block.ops)}
    for op in ops:
        source: Any = op.copy_of or op.forward_op
        at = position.get(id(source))
        if at is None:  # as a maker of grad ops may have left it
            continue
        for name in op.reads or ():
            k = last.get(name, -1)
            if k == at and source.sub_blocks:
                continue  # the grad blocks were looked at
            later = k >= 0 and block.idx and block.var(name).persistable  # by the next step
            if later or k > at or (k == at and name in source.input_names):
                writer = block.ops[k]
                what = f"{op.type} needs the value that {name!r} had at #{at} {source.type}"
                raise lost(f"{what}, but #{k} {writer.type} overwrites it.", source, writer)


def lost(
    what: str, reader: Operator | None, writer: Operator, how: str = "overwritten"
) -> ProgramError:
    """What to raise where an operator overwrites a value that gradients need."""
    repair = f"give the result of {writer.type} a name of its own"
    if writer.role == "optimize":
        pairs = "pairs = static.append_backward(loss), then optimizer.apply_gradients(pairs)"
        repair = f"append all backward parts before the first update: {pairs}"
    elif writer.sub_blocks:
        repair = "carry the value as a loop variable, or return it from the branch"
    read = "" if reader is None else f"\n  read at {reader.source_line}"
    return ProgramError(f"{what}{read}\n  {how} at {writer.source_line}\n  repair: {repair}")


def _overwritten(block: Block) -> dict[str, int]:
    """The names that hold several values in a block, with the operator that wrote the last one."""
    inside = dict(written_inside(block, block.ops))
    written = [*outputs_of(block.ops), *inside]
    once = {n for n, v in block.vars.items() if not (v.is_data or v.persistable)}
    if block.idx:  # what a loop hands in is there before
        once.difference_update(outer_reads(block.ops))
    repeated = (written_twice(written) | set(written) - once) - {EMPTY}
    if not repeated:
        return {}
    last = {n: k for k, op in enumerate(block.ops) for n in op.output_names if n in repeated}
    return last | {n: max(k, last.get(n, k)) for n, k in inside.items() if n in repeated}


def written_inside(block: Block, ops: Ops) -> Iterator[tuple[str, int]]:
    """What is written in the blocks that operators hold and outlives them, each with the operator's number."""
    for k, op in enumerate(ops):
        for index in op.sub_blocks.values() if op.type in CONTROL else ():
            inner = block.program.blocks[index]
            names = {*outputs_of(inner.ops), *(n for n, _ in written_inside(inner, inner.ops))}
            yield from ((n, k) for n in names - inner.vars.keys() - {EMPTY})


# -- Backward operators on their way into a block: casts where dtypes are mixed, variables, clips, callbacks
#
# A gradient has the dtype of its variable: ``float32 * float64`` is float64, and so is what the rule gives for both
# factors, so a ``cast`` follows.


Callback = Callable[[Block, ByName], None]


def append_to_block(
    block: Block, ops: Ops, grad_of: dict[str, str], callbacks: Sequence[Callback]
) -> None:
    """Append the operators; each gradient variable is created with the shape and dtype of its variable.

    Gradients are clipped in place by what completes them, where their variables ask for it.
    """
    context: ByName = {"grad_to_var": grad_of}
    clips = block.program.error_clips
    append = block.ops.append
    variables, written = block.vars, block.written
    dtypes = {v.dtype for b in block.lookup() for v in b.vars.values() if v.dtype.kind == "f"}
    for op in with_casts(block, ops, grad_of) if len(dtypes) > 1 else ops:
        for names in op.outputs.values():
            written.update(names)
            for name in names:
                if name not in variables and name != EMPTY:
                    base = grad_of[name] if name in grad_of else grad_of[whole(name)]
                    like = variables[base] if base in variables else block.var(base)
                    variables[name] = plain_variable(block, name, like.shape, like.dtype, False)
        if op.type != "given":  # what a grad block is handed stands there already
            append(op)
        for name in op.output_names if clips else ():
            if limits := clips.get(grad_of.get(name, "")):
                attrs = {"min": limits[0], "max": limits[1]}
                append(Operator("clip", {"x": [name]}, {"out": [name]}, attrs, op.role).at(op))
        if callbacks and op.type != "given":
            context["op"] = op
            with block.program.role_guard("backward"):
                for callback in callbacks:
                    callback(block, context)
    written.discard(EMPTY)
    block.program.changed()


def with_casts(
    block: Block, ops: Iterable[Operator], grad_of: dict[str, str]
) -> Iterator[Operator]:
    """The operators, each followed by the casts that its gradients need.

    It asks for the types of what an operator reads when that operator's turn has come: then they
    are declared.

    >>> import numpy as np
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w, v = static.parameter("w", np.float32(3.0)), static.data("v", [], "float64")
    ...     pairs = static.append_backward(w * v)
    >>> prog.global_block().ops[-2:]
    [w@GRAD@CAST = mul_grad(y=v, out_grad=mul_0@GRAD), w@GRAD = cast(w@GRAD@CAST, dtype='float32')]
    """
    for op in ops:
        casts, wide = [], None  # it computes in the widest dtype that it reads
        if op.type not in ("cast", "cast_grad", *CONTROL):
            dtypes = [block.var(n).dtype for n in op.input_names if n != EMPTY]
            dtypes = [dtype for dtype in dtypes if dtype.kind == "f"]
            wide = np.result_type(*dtypes) if dtypes else None
        for names in op.outputs.values():
            for j, name in enumerate(names):
                like = block.find_var(grad_of.get(whole(name), ""))
                if like is not None and wide is not None and like.dtype != wide:
                    names[j] = wider = before_cast(name)
                    block.vars[wider] = plain_variable(block, wider, like.shape, wide, False)
                    cast = backward_op("cast", wider, name, {"dtype": like.dtype.name})
                    casts.append(cast.at(op))
        yield op
        yield from casts
