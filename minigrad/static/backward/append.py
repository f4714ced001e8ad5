"""Backward operators on their way into a block: casts where dtypes are mixed, variables, clips, callbacks.

A gradient has the dtype of its variable: ``float32 * float64`` is float64, and so is what the rule gives for both
factors, so a ``cast`` follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ...grad_names import EMPTY, before_cast, whole
from ...ops.shape import DType
from ...primitives.arguments import ByName
from ..program.block import Block
from ..program.infer import infer_outputs
from ..program.op_info import CONTROL
from ..program.operator import Operator, Ops, backward_op
from ..program.variable import plain_variable

# -- into the block ------------------------------------------------------------------------

Callback = Callable[[Block, ByName], None]


def append_to_block(
    block: Block, ops: Ops, grad_of: dict[str, str], callbacks: Sequence[Callback] | None
) -> None:
    """Append the operators; each gradient variable is created with the shape and dtype of its variable."""
    context: ByName = {"grad_to_var": grad_of}
    clips = block.program.error_clips
    append = block.ops.append
    for op in with_casts(block, ops, grad_of) if several_dtypes(block) else ops:
        if op.type != "given":  # what a grad block is handed stands there already
            declare_outputs(block, op, grad_of)
            append(op)
        if clips:
            block.ops += error_clips(block, op, grad_of)
        if callbacks and op.type != "given":
            context["op"] = op
            with block.program.role_guard("backward"):
                for callback in callbacks:
                    callback(block, context)
    block.program.changed()


def error_clips(block: Block, op: Operator, grad_of: dict[str, str]) -> list[Operator]:
    """Clips in place for the gradients that an operator completes, where their variables ask for it."""
    clips = []
    for name in op.output_names:
        limits = block.program.error_clips.get(grad_of.get(name, ""))
        if limits is not None:
            attrs = {"min": limits[0], "max": limits[1]}
            clips.append(Operator("clip", {"x": [name]}, {"out": [name]}, attrs, op.role).at(op))
    return clips


def declare_outputs(block: Block, op: Operator, grad_of: dict[str, str]) -> None:
    """Note what a backward operator writes; create the variables that do not exist in this block."""
    variables, written = block.vars, block.written
    unknown = []
    for names in op.outputs.values():
        for name in names:
            if name not in variables:
                base = grad_of.get(name) or grad_of.get(whole(name), "")
                like = variables[base] if base in variables else block.find_var(base)
                if like is None:
                    unknown.append(name)
                    continue
                variables[name] = plain_variable(block, name, like.shape, like.dtype, False)
            written.add(name)
    if unknown and unknown != [EMPTY] * len(unknown):
        infer_outputs(block, op)
        written.update(unknown)
        written.discard(EMPTY)


def several_dtypes(block: Block) -> bool:
    """Whether floating-point values of more than one dtype can be named in a block."""
    seen = {v.dtype for b in block.lookup() for v in b.vars.values() if v.dtype.kind == "f"}
    return len(seen) > 1


def with_casts(
    block: Block, ops: Iterable[Operator], grad_of: dict[str, str]
) -> Iterator[Operator]:
    """The operators, each followed by the casts that its gradients need.

    It asks for the types of what an operator reads when that operator's turn has come: then they are declared.

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
        casts, wide = [], _read(block, op)
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


def _read(block: Block, op: Operator) -> DType | None:
    """The widest floating-point dtype that an operator reads, in which it computes; None where that does not matter."""
    if op.type in ("cast", "cast_grad") or op.type in CONTROL:
        return None
    dtypes = [block.var(n).dtype for n in op.input_names if n != EMPTY]
    dtypes = [dtype for dtype in dtypes if dtype.kind == "f"]
    return np.result_type(*dtypes) if dtypes else None
