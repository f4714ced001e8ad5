"""Passes: functions from Program to Program; together they are the ladder of the compiler.

    specialise → decompose → dead_code      (then a schedule and its source, see `compiler`)

Every pass works on a copy, adds its name to ``history``, and leaves a program that prints and runs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import describe, wrong
from ..grad_names import GRAD
from ..ops.shape import Shape
from ..primitives.arguments import Names
from ..static.backward.grad_ops import written_out
from ..static.program.block import Block
from ..static.program.infer import common, infer_outputs
from ..static.program.operator import Operator, backward_op, op_info, outputs_of, rows
from ..static.program.program import Program
from ..static.program.transform import drop_unused, needed_ops
from ..static.program.variable import plain_variable

# -- who writes and who reads a name -------------------------------------------------------


def is_state(block: Block, name: str) -> bool:
    """Whether a name outlives the run."""
    var = block.find_var(name)
    return var is not None and var.persistable


class Rewriting:
    """A block, and who makes each name that is written once and does not outlive the run."""

    def __init__(self, block: Block) -> None:
        self.block = block
        counts = Counter(outputs_of(block.ops))
        for name, var in block.vars.items():
            counts[name] += var.is_data or var.persistable
        self.makers = {n: op for op in block.ops for n in op.output_names if counts[n] == 1}

    def source(self, name: str) -> str:
        """The name of which a value is a copy."""
        maker = self.makers.get(name)
        while maker is not None and maker.type == "assign" and maker.input_names[0] in self.makers:
            (name,) = maker.input_names
            maker = self.makers[name]
        return name

    def shape(self, name: str) -> Shape:
        """The shape of a variable."""
        return self.block.var(name).shape

    def add(self, origin: Operator, kind: str, inputs, attrs, shape) -> str:
        """A new value, made in front of ``origin``, by whose name messages and comments call its operator."""
        like = self.block.var(origin.output_names[0])
        name = self.block.program.unique_name(kind)
        self.block.vars[name] = plain_variable(self.block, name, shape, like.dtype, False)
        op = Operator(kind, inputs, {"out": [name]}, attrs, origin.role, origin.forward_op)
        self.block.ops.insert(self.block.ops.index(origin), op.at(origin))
        return name

    def reshape(self, origin: Operator, name: str, shape: Shape) -> str:
        """The value of a name in another shape."""
        return self.add(origin, "reshape", {"x": [name]}, {"shape": shape}, shape)


# -- Open sizes become numbers: what the shapes of the feeds decide about all other shapes


def specialise(program: Program, shapes: Mapping[str, Shape]) -> Program:
    """A copy in which the data have these shapes, and every other variable the shape that follows.

    Errors: `ShapeError` where an operator does not accept the sizes.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1, 3]); y = x.sum(axis=1)
    >>> y.shape, specialise(prog, {"x": (8, 3)}).global_block().var(y.name).shape
    ((-1,), (8,))
    """
    specialised = program.clone()
    root = specialised.global_block()
    for name, shape in shapes.items():
        root.vars[name].shape = tuple(shape)
    if any(-1 in v.shape for v in specialised.all_variables()):
        _close_sizes(root)
    specialised.history.append("specialise")
    return specialised


def _close_sizes(block: Block) -> None:
    """The sizes that follow from those known now, operator by operator, blocks inside included."""
    for op in block.ops:
        inner = [block.program.blocks[index] for index in op.sub_blocks.values()]
        is_grad = op_info(op.type).is_grad
        if inner and not is_grad:  # what a loop hands to its body
            for local, start in rows(op, "carried", "x"):
                inner[0].vars[local].shape = block.var(start).shape
            for local, seq in rows(op, "steps", "seq"):
                inner[0].vars[local].shape = block.var(seq).shape[1:]
        for sub in inner:
            if is_grad:
                _like_their_forward(sub, sub.vars)
            _close_sizes(sub)
        if is_grad:
            _like_their_forward(block, op.output_names)
        elif inner:
            _leaving(block, op, inner)
        else:
            for name in {*op.output_names} - {*op.input_names}:
                var = block.find_var(name)
                if var is not None and var.kind == "var":  # a size that followed from an open one
                    var.shape = (-1,) * var.ndim
            infer_outputs(block, op)


def _leaving(block: Block, op: Operator, inner: list[Block]) -> None:
    """Values that come out of a control operator."""
    if op.type == "cond":
        true, false = inner
        for name, yes, no in rows(op, "out", "true_out", "false_out"):
            block.var(name).shape = common(true.var(yes).shape, false.var(no).shape)
        return
    for name, start in rows(op, "out", "x"):
        block.var(name).shape = block.var(start).shape
    for name, local in rows(op, "stacked", "step_out"):
        length = block.var(op.inputs["seq"][0]).shape[0]
        block.var(name).shape = (length, *inner[0].var(local).shape)


def _like_their_forward(block: Block, names: Iterable[str]) -> None:
    """Gradients have the shape of what they are the gradient of."""
    for name in names:
        base = name
        while name in block.vars and GRAD in base:
            base = base.rpartition(GRAD)[0]
            source = block.find_var(base)
            if source is not None and -1 not in source.shape:
                block.vars[name].shape = source.shape
                break


# -- Grad ops become primitives: what ``tanh_grad`` does, as multiplications and a difference


def decompose(program: Program) -> Program:
    """A copy in which every grad op is written out in primitives; loops keep their grad blocks, also written out.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", 3.0); y = w * w; pairs = static.append_backward(y)
    >>> [op.type for op in decompose(prog).global_block().ops]
    ['mul', 'fill_constant', 'mul', 'mul', 'sum']
    """
    decomposed = program.clone()
    for block in list(decomposed.blocks):
        block.ops = [part for op in block.ops for part in _primitives(block, op)]
    decomposed.history.append("decompose")
    decomposed.changed()
    return decomposed


def _primitives(block: Block, op: Operator) -> list[Operator]:
    """The last one writes the gradient's own name; further names, and values passed on, are copies."""
    info = op_info(op.type)
    if not info.is_grad or info.forward is None:
        return [op]
    parts, alias = written_out(block, op)
    made = outputs_of(parts)
    own: dict[str, str] = {}  # a value that is made here → the first gradient that it is
    for name, value in alias.items():
        if value in made:
            own.setdefault(value, name)
    parts = [part.copy(own) for part in parts]
    for value in own:
        block.vars.pop(value)
    for name, value in alias.items():
        if own.get(value) != name:
            parts.append(backward_op("assign", own.get(value, value), name).at(op))
    for part in parts:
        part.forward_op = op.forward_op
        part.role = op.role
    return parts


# -- Operators nobody asked for go: what neither a fetch nor a parameter depends on --------


def dead_code(program: Program, fetch: Iterable[str]) -> Program:
    """A copy without the operators of the root block that neither the fetched nor the persistable variables need.

    >>> from minigrad import static
    >>> import minigrad as mg
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [2]); y = mg.exp(x); z = mg.sin(x)
    >>> [op.type for op in dead_code(prog, [y.name]).global_block().ops]
    ['exp']
    """
    copy = program.clone()
    root = copy.global_block()
    names = set(fetch)
    root.ops = needed_ops(root.ops, names, lambda op, used: used or _changes_state(root, op))
    copy.history.append("dead_code")
    drop_unused(copy, names)
    return copy


def _changes_state(block: Block, op: Operator) -> bool:
    """Whether an operator, or one in its blocks, writes what outlives the run."""
    inner = [block.program.blocks[index] for index in op.sub_blocks.values()]
    return any(is_state(block, name) for name in op.output_names) or any(
        _changes_state(body, each) for body in inner for each in body.ops
    )


# -- Products of all steps of an unrolled network, made at once: for speed, at the price of the last bits
#
#     matmul(x[0], w), matmul(x[1], w), …     one product of all rows of x with w
#     sum([matmul_tn(x0, g0), …])             one product of all rows of x and all rows of g
#
# One large product is faster than many small ones, and adds the same numbers in another order.


#: so many products are made one
ENOUGH = 3
#: products whose sum is one
SUMMED = ("matmul_tn", "unbroadcast")


def batch_products(program: Program) -> Program:
    """A copy in which such products of the root are one.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x, w, h = static.data("x", [4, 5, 2]), static.data("w", [2, 2]), static.data("h", [5, 2])
    ...     for k in range(4):
    ...         h = mg.tanh(x[k] @ w) * h
    >>> [static.compile(prog, fetch=h, exact=exact).source.count("np.dot") for exact in (True, False)]
    [4, 1]
    """
    batched = program.clone()
    root = Rewriting(batched.global_block())
    _inputs_of_all_steps(root)
    _sums_of_all_steps(root)
    batched.history.append("batch_products")
    batched.changed()
    return batched


def _inputs_of_all_steps(root: Rewriting) -> None:
    """One product in front of all, where every step of a sequence meets the same weight; each takes its part."""
    groups: dict[Any, dict[int, Operator]] = defaultdict(dict)
    for op in root.block.ops:
        if op.type not in ("matmul", "linear") or op.output_names[0] not in root.makers:
            continue
        step = root.makers.get(op.inputs["x"][0])
        if step is None or step.type != "getitem" or type(step.attrs.get("index")) is not int:
            continue
        (x,) = step.input_names
        weights = op.input_names[1:]
        if len(root.shape(x)) == 3 and len(root.shape(weights[0])) == 2:
            k = step.attrs["index"] % root.shape(x)[0]
            groups[x, *weights][k] = op
    for (x, *weights), steps in groups.items():
        length, rows, columns = root.shape(x)
        places = [root.block.ops.index(op) for op in steps.values()]
        between = root.block.ops[min(places) : max(places)]
        if not ENOUGH <= len(steps) == length or any(op.sub_blocks for op in between):
            continue
        if not {x, *weights}.isdisjoint(outputs_of(between)):
            continue
        first = between[0]
        out = root.shape(weights[0])[1]
        flat = root.reshape(first, x, (length * rows, columns))
        inputs = first.inputs | {"x": [flat]}
        product = root.add(first, first.type, inputs, first.attrs, (length * rows, out))
        whole = root.reshape(first, product, (length, rows, out))
        for k, op in steps.items():
            op.type = "getitem"
            op.inputs = {"x": [whole]}
            op.attrs = {"index": k}


def _sums_of_all_steps(root: Rewriting) -> None:
    """One product behind all, where a weight's gradient is the sum of one product per step."""
    joined: dict[Names, str] = {}  # names → the name of all their rows
    sums = [op for op in root.block.ops if op.type == "sum" and op.output_names[0] in root.makers]
    for op in sums:
        shape = root.shape(op.output_names[0])
        for kind in SUMMED:
            # from the first step to the last
            makers = [root.makers.get(name) for name in reversed(op.inputs["x"])]
            products = [m for m in makers if m and m.type == kind and _adds_rows(root, m, shape)]
            if len(products) < ENOUGH:
                continue
            inputs = {}
            for slot in products[0].inputs:
                names = tuple(root.source(m.inputs[slot][0]) for m in products)
                if names not in joined:  # all rows of matrices, one below the other
                    length = sum(root.shape(n)[0] for n in names)
                    columns = root.shape(names[0])[1]
                    joined[names] = root.add(op, "concat", {"x": [*names]}, {}, (length, columns))
                inputs[slot] = [joined[names]]
            whole = root.add(op, kind, inputs, {"shape": shape}, shape)
            terms = {m.output_names[0] for m in products}
            rest = [n for n in op.inputs["x"] if n not in terms]
            op.inputs["x"] = [whole, *rest]


def _adds_rows(root: Rewriting, product: Operator, shape) -> bool:
    """Whether it adds up all rows of matrices, and rows only: as one below the other."""
    first, *more = [root.shape(n) for n in product.input_names]
    if product.type == "matmul_tn":
        return len(first) == len(more[0]) == 2
    return len(first) == 2 and not more and shape in (first[1:], (1, *first[1:]))


# -- the ladder ---------------------------------------------------------------------------


def climb(
    program: Program, shapes: Mapping[str, Any], fetch: list[str], exact: bool = True
) -> Iterator[Program]:
    """The Program on each rung, from the first to the last; the last line of its ``history`` names the rung.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x = static.data("x", [-1]); y = x * 2.0; z = x + 1.0
    >>> [(p.history[-1], len(p.global_block().ops)) for p in climb(prog, {"x": (3,)}, [y.name])]
    [('specialise', 2), ('decompose', 2), ('dead_code', 1)]
    """
    program = specialise(program, shapes)
    yield program
    program = decompose(program)
    yield program
    program = dead_code(program, fetch)
    yield program
    if not exact:
        yield batch_products(program)


def check_program(program, function: str, arguments: str) -> None:
    """Errors: `ProgramError` if this is no Program; ``arguments`` are those of the right call."""
    if not isinstance(program, Program):
        what = f"{function} takes a Program, not {describe(program)}"
        raise wrong(what, f"static.{function}({arguments})")


def check_sizes(shapes: Mapping[str, Any], what: str) -> None:
    """Errors: `ProgramError` if a size is open, and ``what`` is written for known ones."""
    for name, shape in shapes.items():
        if -1 in shape:
            open_size = f"the size of {name!r} is open: {what} is written for known sizes"
            raise wrong(open_size, f"feed={{{name!r}: (…)}}, an array or its shape")


@contextmanager
def limited_depth() -> Iterator[None]:
    """Compile inside.  Errors: `ProgramError` where Python has no room for so many blocks inside each other."""
    try:
        yield
    except (RecursionError, SyntaxError) as error:
        raise wrong(
            "the blocks of this program are nested too deep to be compiled",
            "carry what inner loops and branches make, or run it with static.Executor()",
        ) from error
