"""Plausible wrong answers to the exercises of step 20: every one must fail its check."""

import numpy as np
from literate import load

from minigrad import static

step = load("step20_five_engines")
ENGINES = (step.by_links, step.by_grad_fn, step.by_net, step.by_program)


def soft(x):
    return x / (1 + np.abs(x))


def right(x, out_grad):
    return out_grad / ((1 + abs(x)) * (1 + abs(x)))


def not_squared(x, out_grad):
    return out_grad / (1 + abs(x))


def squares_the_size_alone(x, out_grad):
    return out_grad / (1 + abs(x) ** 2)


def drops_what_arrives(x):
    return 1 / ((1 + abs(x)) * (1 + abs(x)))


def only_for_arrays(x, out_grad):
    return out_grad / (1 + np.abs(x)) ** 2


def reads_the_result_for_the_input(out, out_grad):
    return out_grad / ((1 + abs(out)) * (1 + abs(out)))


def in_place(x):
    x /= 1 + np.abs(x)
    return x


def value_instead(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=[name])[0]


def always_w(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=["w@GRAD"])[0]


def a_list(text, feed, name):
    program = static.Program.from_json(text)
    return static.Executor().run(program, feed=feed, fetch_list=["w@GRAD", "u@GRAD"])


def printed_only(text, feed, name):
    print(a_list(text, feed, name))


WRONG = {
    "20a": [(lambda x: x / (1 + x), right, *ENGINES)]
    + [
        (soft, each, *ENGINES)
        for each in (
            not_squared,
            squares_the_size_alone,
            drops_what_arrives,
            only_for_arrays,
            reads_the_result_for_the_input,
        )
    ],
    "20b": [(15, "h"), (13, "h"), (12, "k"), (13, "q")],
    "20c": [(each,) for each in (value_instead, always_w, a_list, printed_only)],
}

NAMED = {
    "20a": [
        ((soft, squares_the_size_alone, *ENGINES), "|x| alone is squared in the rule"),
        ((soft, only_for_arrays, *ENGINES), "the rule calls NumPy: only arrays can go in"),
        ((lambda x: x / (1 + x**2), right, *ENGINES), "the kernel squares x"),
        ((in_place, right, *ENGINES), "the kernel writes into the array"),
    ],
    "20b": [((15, "h"), "number 15 is suspected"), ((13, "q"), "q goes into tanh")],
}
