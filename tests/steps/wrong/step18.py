"""Plausible wrong answers to the exercises of step 18: every one must fail its check."""

import runpy
from pathlib import Path

STEP = runpy.run_path(str(Path(__file__).parents[3] / "steps" / "step18_adjustments.py"))
Program, append_backward, run = (STEP[name] for name in ("Program", "append_backward", "run"))


def residual():
    block = Program().blocks[0]
    block.create_var("x", (3,), stop_gradient=True)
    block.create_var("w", (3,), persistable=True)
    block.append_op("mul", "x", "w", out="p")
    block.append_op("square", "p", out="q")
    block.append_op("add", "q", "w", out="r")
    return block.append_op("reduce_sum", "r", out="loss")


def half():
    block = Program().blocks[0]
    block.create_var("w", (4,), persistable=True)
    block.append_op("split", "w", out="a b")
    block.append_op("square", "a", out="s")
    return block.append_op("reduce_sum", "s", out="loss")


def shared():
    block = Program().blocks[0]
    block.create_var("x", stop_gradient=True)
    block.create_var("w", persistable=True)
    block.append_op("mul", "x", "w", out="h")
    return block.append_op("mul", "h", "w", out="y")


def nothing_removed(program, values):
    try:
        run(program, values)
    except NameError as error:
        return str(error)
    return None


def only_the_type(program, values):
    block = program.blocks[0]
    block.ops = [op for op in block.ops if op.type != "fill_zeros_like"]
    try:
        run(program, values)
    except NameError as error:
        return type(error).__name__
    return None


def always_an_error(program, values):
    return only_the_type(program, values) or "nothing breaks"


TYPES = ["fill_constant", "reduce_sum_grad", "add_grad", "square_grad", "mul_grad", "sum"]
NETWORKS = (half, half, shared, append_backward)

WRONG = {
    "18a": [
        (answer, residual, append_backward)
        for answer in (
            TYPES[:-1],  # no sum
            [*TYPES[:4], "sum", "mul_grad"],  # the sum too early
            [TYPES[0], *reversed(TYPES[1:5]), "sum"],  # forward order
        )
    ],
    "18b": [(answer, residual, append_backward) for answer in ({"w"}, {"r"}, {"x"}, set(), "q")],
    "18c": [(answer, *NETWORKS) for answer in (nothing_removed, only_the_type, always_an_error)],
}
