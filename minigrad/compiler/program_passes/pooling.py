"""``max_pool2d(relu(x))`` is ``relu(max_pool2d(x))``: the same numbers, of a quarter as many elements.

So are the gradients: where the largest of a window is not positive, relu stops them, before or after the pooling.
Zeros may have another sign, hence for ``exact=False``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...static.program.operator import Operator
from ...static.program.program import Program
from .names import Rewriting, forget_unused, held_names, rename


def pool_first(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which pooling comes before relu; ``keep`` names variables that must stay.

    >>> import minigrad as mg
    >>> net = mg.trace(lambda x: mg.max_pool2d(mg.relu(x), kernel_size=2), mg.ones([1, 1, 4, 4]))
    >>> [op.type for op in pool_first(net).global_block().ops]
    ['max_pool2d', 'relu']
    """
    pooled = program.clone()
    held = held_names(pooled) | set(keep)
    for block in pooled.blocks:
        rewriting = Rewriting(block)
        for pool in [op for op in block.ops if op.type == "max_pool2d"]:
            relu = rewriting.makers.get(pool.inputs["x"][0])
            if relu is not None and relu.type == "relu":
                _exchange(rewriting, relu, pool, held)
    forget_unused(pooled, set(keep))
    return pooled


def _exchange(block: Rewriting, relu: Operator, pool: Operator, held: set[str]) -> None:
    """Let an operator and the pooling behind it change places, and their grad ops; if nobody else looks between."""
    (x,), (active,), (out,) = relu.input_names, relu.output_names, pool.output_names
    pairs = [(relu, {x: "", active: out}), (pool, {active: x, out: ""})]
    readers = block.readers[active]
    slopes = {op.type: op for op in readers if op is not pool}
    if slopes.keys() == {"max_pool2d_grad", "relu_grad"} and len(readers) == 3:
        of_pool, of_relu = slopes["max_pool2d_grad"], slopes["relu_grad"]
        (between,), (given,) = of_pool.output_names, of_pool.inputs["out_grad"]
        (last,) = of_relu.output_names
        inner = block.new(given)
        pairs += [
            (of_pool, {active: x, out: "", given: inner, between: last}),
            (of_relu, {active: out, between: given, last: inner}),
        ]
        if block.readers.get(between) != [of_relu]:
            return
        hidden = {active, between}
    elif len(readers) == 1:
        hidden = {active}
    else:
        return
    ops = block.block.ops
    free = hidden.isdisjoint(held) and all(op in ops for op in readers)
    once = x in block.makers or not any(x in op.output_names for op in ops)
    if not (free and once and hidden | {out} <= block.makers.keys()):
        return
    pooled = block.new(out)
    for op, names in pairs:
        rename(op, {old: new or pooled for old, new in names.items()})
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        i, j = ops.index(one[0]), ops.index(other[0])
        ops[i], ops[j] = ops[j], ops[i]
