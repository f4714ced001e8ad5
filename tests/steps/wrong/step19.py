"""Plausible wrong answers to the exercises of step 19: every one must fail its check.

The networks are those of the notebook's own cells.
"""

import runpy
from pathlib import Path

from minigrad.course.steps import read_step

PATH = Path(__file__).parents[3] / "steps" / "step19_sub_blocks.py"
SPACE = runpy.run_path(str(PATH))
for _cell in read_step(PATH).cells:
    if any(f"def {name}(" in _cell.source for name in ("hold", "branch", "power_of_x", "nested")):
        exec(_cell.source.split("\n\n\ny = ")[0], SPACE)
branch, power_of_x, nested, append_backward, run = (
    SPACE[name] for name in ("branch", "power_of_x", "nested", "append_backward", "run")
)


def count_from_the_old_i(body):
    body.append_op("mul", "p", "x", out="p_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i", "n", out="more_next")


def squares(body):
    body.append_op("mul", "p", "p", out="p_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")


def adds(body):
    body.append_op("add", "p", "x", out="p_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")


def writes_p_again(body):
    body.append_op("mul", "p", "x", out="p")


def asks_what_never_changes(body):
    body.append_op("less_than", "zero", "n", out="more_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("mul", "x", "p", out="p_next")


def compares_the_wrong_way(body):
    body.append_op("mul", "p", "x", out="p_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "n", "i_next", out="more_next")


def by_a_detour(body):
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")
    body.append_op("mul", "x", "p", out="product")
    body.append_op("assign", "product", out="p_next")


BRANCH = (branch, append_backward, run)
POWER = (power_of_x, append_backward, run)
NESTED = (nested, append_backward)

WRONG = {
    "19a": [
        ((5.0, 3.0), (-6.0, -3.0), *BRANCH),  # the other branch counts, too
        ((5.0, 3.0), (-6.0, None), *BRANCH),  # missing instead of zero
        ((11.0, 3.0), (-1.0, -3.0), *BRANCH),  # both branches added up
    ],
    "19b": [(body, *POWER) for body in (count_from_the_old_i, squares, adds, writes_p_again)],
    "19c": [
        ({0: -1, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 6: 3}, *NESTED),  # the forward block
        ({0: -1, 1: 0, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0}, *NESTED),  # always the root
        ({0: -1, 1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5}, *NESTED),  # the block before
        ({0: -1, 1: 0}, *NESTED),
        ([-1, 0, 1, 1, 0, 4, 4], *NESTED),  # a list, in the order of the blocks
    ],
}

NAMED = {
    "19a": [
        (((11.0, 3.0), (-1.0, -3.0), *BRANCH), "both branches are added up at 3"),
        (((3.0, 5.0), (0.0, -6.0), *BRANCH), "x@GRAD and w@GRAD are swapped"),
        (((5.0, 3.0), (5.0, -3.0), *BRANCH), "the branch of 3 is taken at -3"),
    ],
    "19b": [
        ((asks_what_never_changes, *POWER), "the comparison never turns out false"),
        ((writes_p_again, *POWER), "p is written again"),
        ((compares_the_wrong_way, *POWER), "n and i are swapped in the comparison"),
    ],
    "19c": [
        (({0: -1, 1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5}, *NESTED), "each block hangs below"),
        (({0: -1, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 6: 3}, *NESTED), "the forward block is taken"),
        (({0: None, 1: 0, 2: 1, 3: 1, 4: 0, 5: 4, 6: 4}, *NESTED), "the root gets None"),
    ],
}

RIGHT = {
    "19a": [([5, 3], [-6, 0], *BRANCH)],
    "19b": [(by_a_detour, *POWER)],
    "19c": [(dict(enumerate([-1, 0, 1, 1, 0, 4, 4])), *NESTED)],
}
