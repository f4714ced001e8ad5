"""The checkers of step 20, and the program with a planted bug."""

from typing import Any
from unittest.mock import patch

import numpy as np

from minigrad import static

from ...primitives.registry import REGISTRY, primitive
from ..check import checker
from ..judge import close, instance, require
from ..parsons import with_backward
from ..solution import rows


@checker("20a")
def softsign(kernel, rule, by_links, by_grad_fn, by_net, by_program):
    values = {name: np.array(numbers) for name, numbers in rows("20a", "values").items()}
    size = 1 + np.abs(values["w"])
    close("the kernel at (-2, 0.25, 1)", kernel(values["w"]), values["w"] / size)
    column = values["w"].reshape(3, 1)
    close("the kernel at a column", kernel(column), column / size.reshape(3, 1))
    with patch.dict(REGISTRY):
        REGISTRY.pop("softsign", None)
        primitive(kernel, type="softsign").grad(x=rule)
        for engine in (by_links, by_grad_fn, by_net, by_program):
            loss, grads, _ = engine(rows("20a"), values)
            name = engine.__name__
            close(f"the value {name}", float(loss), values["x"] @ (values["w"] / size))
            close(f"the gradient {name}", grads["w"], values["x"] / size**2)
        reads = REGISTRY["softsign"].rules["x"].reads
        with static.program_guard(static.Program()):  # the third reading: rules write rules
            rule(*(static.data(each, [3]) for each in reads))


def planted_bug(program: Any) -> Any:
    """The program of step 20 with one grad operator changed: it reads the wrong value."""
    op = program.global_block().ops[NUMBER]
    op.inputs = {**op.inputs, "out": ["h"]}
    program.changed()
    return program


NUMBER, NAME = 13, "k"


@checker("20b")
def find_the_bug(number, name):
    what = "the number of the operator"
    instance(int | np.integer, what, number, "a plain number, such as 9")
    # what is right stays hidden
    require(number == NUMBER, what, number, "that of another grad operator")
    beside = "the result of the forward tanh beside it"
    require(name == NAME, "the name it should read", name, beside)


def program_as_text():
    """A program that computes the gradients of the sum of x * u * w."""
    parameters = {"u": [2.0, 2.0], "w": [3.0, 3.0]}
    program, _ = with_backward(lambda u, w: static.data("x", [2]) * u * w, parameters)
    return program.to_json()
