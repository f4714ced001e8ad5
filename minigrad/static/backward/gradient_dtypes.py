"""A gradient has the dtype of its variable: where a rule gives another, a ``cast`` follows.

``float32 * float64`` is float64, and so is what the rule gives for both factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..program.op_info import CONTROL
from ..program.operator import EMPTY, Operator
from ..program.program import Block
from ..program.variable import plain_variable


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
                like = block.find_var(grad_of.get(name.partition("@RENAME@")[0], ""))
                if like is not None and wide is not None and like.dtype != wide:
                    names[j] = made = f"{name}@CAST"
                    block.vars[made] = plain_variable(block, made, like.shape, wide, False)
                    slots = {"x": [made]}, {"out": [name]}
                    attrs = {"dtype": like.dtype.name}
                    casts.append(Operator("cast", *slots, attrs, "backward").at(op))
        yield op
        yield from casts


def _read(block: Block, op: Operator) -> np.dtype[Any] | None:
    """The widest floating-point dtype that an operator reads, in which it computes; None where that does not matter."""
    if op.type in ("cast", "cast_grad") or op.type in CONTROL:
        return None
    found = [block.var(n).dtype for n in op.input_names if n != EMPTY]
    found = [dtype for dtype in found if dtype.kind == "f"]
    return np.result_type(*found) if found else None
