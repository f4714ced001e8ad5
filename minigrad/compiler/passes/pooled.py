"""relu after max pooling instead of before it: the same numbers from a quarter of the work, for windows of 2 × 2.

``max(relu(a), relu(b)) = relu(max(a, b))``, and the gradient goes to the same element: where the largest one is
positive, both orders find it, and where it is not, relu lets nothing through.  The sign of a zero may differ,
hence for ``exact=False``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...static.passes.names import (
    forget_unused,
    held_names,
    never_written,
    replace_inputs,
    written_once,
)
from ...static.program.program import Block, Operator, Program
from ...static.program.variable import Variable


def relu_after_pooling(program: Program, keep: Iterable[str] = ()) -> Program:
    """A copy in which relu comes after pooling; ``keep`` names variables that must stay.

    >>> import minigrad as mg
    >>> prog = mg.trace(lambda x: mg.max_pool2d(mg.relu(x), 2), mg.ones([1, 1, 4, 4]))
    >>> [op.type for op in relu_after_pooling(prog).global_block().ops]
    ['max_pool2d', 'relu']
    """
    made = program.clone()
    block = made.global_block()
    once, kept = written_once(block), held_names(made) | set(keep)
    kept |= {n for b in made.blocks[1:] for op in b.ops for n in op.input_names}
    given = never_written(made)
    for relu in [op for op in block.ops if op.type == "relu"]:
        readers = _readers(block, relu.output_names[0])
        pools = [op for op in readers if op.type == "max_pool2d" and not _is_padded(op)]
        stays = {n for op in (relu, *readers) for n in (*op.input_names, *op.output_names)}
        if len(pools) == 1 and stays <= once | given:
            _exchange(block, relu, pools[0], readers, once - kept)
    forget_unused(made, set(keep))
    return made


def _is_padded(pool: Operator) -> bool:
    return pool.attrs.get("padding", 0) not in (0, (0, 0))


def _readers(block: Block, name: str) -> list[Operator]:
    return [op for op in block.ops if name in op.input_names]


def _exchange(
    block: Block, relu: Operator, pool: Operator, readers: list[Operator], free: set[str]
) -> None:
    """Exchange the two, and their gradients, if nothing else reads what is in between."""
    (before,), (between,), (after,) = relu.input_names, relu.output_names, pool.output_names
    back = [op for op in readers if op is not pool]
    found = _gradient(block, between, after, back) if back else None
    if between not in free or (back and found is None):
        return
    if found is not None and not free.issuperset([*found[0].output_names, *found[1].output_names]):
        return
    top = _new(block, after)
    pool.inputs, pool.outputs = {"x": [before]}, {"out": [top]}
    relu.inputs, relu.outputs = {"x": [top]}, {"out": [after]}
    block.ops.remove(relu)
    block.ops.insert(block.ops.index(pool) + 1, relu)
    if found is not None:
        _exchange_gradients(block, *found, names=(before, top, after))


def _exchange_gradients(
    block: Block, unpool: Operator, mask: Operator, product: Operator, names: tuple[str, str, str]
) -> None:
    """First the mask of relu, then the way back through the windows."""
    before, top, after = names
    (given,), (spread,), (end,) = unpool.inputs["y"], unpool.output_names, product.output_names
    passed = _new(block, given)
    mask.inputs = {"x": [after]}
    block.var(mask.output_names[0]).shape = block.var(after).shape
    replace_inputs(product, {spread: given})
    product.outputs = {"out": [passed]}
    unpool.inputs = {"y": [passed], "x": [before], "top": [top]}
    unpool.outputs = {"out": [end]}
    block.ops.remove(unpool)
    block.ops.insert(block.ops.index(product) + 1, unpool)


def _gradient(
    block: Block, between: str, after: str, back: list[Operator]
) -> tuple[Operator, Operator, Operator] | None:
    """``max_unpool``, ``greater_than`` and the product of both, if the gradient is just that."""
    kinds = {op.type: op for op in back}
    if len(back) != 2 or kinds.keys() != {"max_unpool", "greater_than"}:
        return None
    unpool, mask = kinds["max_unpool"], kinds["greater_than"]
    users = [*_readers(block, unpool.output_names[0]), *_readers(block, mask.output_names[0])]
    fits = unpool.inputs["x"] == [between] and unpool.inputs["top"] == [after]
    zero = mask.inputs == {"x": [between]} and mask.attrs.get("y") == 0
    if len(users) != 2 or users[0] is not users[1] or users[0].type != "mul":
        return None
    return (unpool, mask, users[0]) if fits and zero else None


def _new(block: Block, like: str) -> str:
    """A variable like another one."""
    name = block.program.unique_name(like)
    block.vars[name] = Variable.like(block, name, block.var(like))
    return name
