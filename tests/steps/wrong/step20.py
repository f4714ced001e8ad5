"""Plausible wrong answers to the exercises of step 20: every one must fail its check."""
import numpy as np
from literate import load

from minigrad import static
from minigrad.registry import REGISTRY, primitive

step = load("step20_five_engines")
ENGINES = (step.by_links, step.by_grad_fn, step.by_net, step.by_program)


def row(forward, rule):
    """An operation with this forward and rule, taken out of the table again."""
    REGISTRY.pop("softsign", None)

    @primitive(type="softsign")
    def softsign(x):
        return forward(x)

    if rule is not None:
        softsign.grad(x=rule)
    REGISTRY.pop("softsign")
    return softsign


def soft(x):
    return x / (1 + np.abs(x))


WRONG_ROWS = [
    row(soft, lambda x, out_grad: out_grad / (1 + abs(x))),
    row(soft, lambda x: 1 / ((1 + abs(x)) * (1 + abs(x)))),
    row(lambda x: x / (1 + x), lambda x, out_grad: out_grad / ((1 + abs(x)) * (1 + abs(x)))),
    row(soft, None),
    row(soft, lambda x, out_grad: out_grad / (1 + np.abs(x)) ** 2),
]


def value_instead(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=[name])[0]


def always_w(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=["w@GRAD"])[0]


def a_list(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=["w@GRAD", "u@GRAD"])


WRONG = {
    "20a": [(each, *ENGINES) for each in WRONG_ROWS],
    "20b": [((15, "h"),), ((13, "h"),), ((12, "g"),), ((13, "q"),)],
    "20c": [(each,) for each in (value_instead, always_w, a_list)],
}
