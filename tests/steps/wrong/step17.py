"""Plausible wrong answers to the exercises of step 17: every one must fail its check."""

import runpy
from pathlib import Path

STEP = runpy.run_path(str(Path(__file__).parents[3] / "steps" / "step17_program.py"))
Program, append_backward, run = (STEP[name] for name in ("Program", "append_backward", "run"))


def every_line(loss):
    append_backward(loss)
    return [str(op) for op in loss.block.ops]


def counted_too_late(loss):
    append_backward(loss)
    before = len(loss.block.ops)
    return [str(op) for op in loss.block.ops[before:]]


def without_the_seed(loss):
    before = len(loss.block.ops)
    append_backward(loss)
    return [str(op) for op in loss.block.ops[before + 1 :]]


def first_pair(loss, name, values):
    _, gradient = append_backward(loss)[0]
    return run(loss.block.program, values)[gradient.name]


def the_parameter_itself(loss, name, values):
    [(parameter, _)] = append_backward(loss, parameter_list=[name])
    return run(loss.block.program, values)[parameter.name]


def the_variable(loss, name, values):
    [(_, gradient)] = append_backward(loss, parameter_list=[name])
    return gradient


def a_name_for_a_list(loss, name, values):
    [(_, gradient)] = append_backward(loss, parameter_list=name)
    return run(loss.block.program, values)[gradient.name]


def without_the_list(loss, name, values):
    pairs = {parameter.name: gradient for parameter, gradient in append_backward(loss)}
    return run(loss.block.program, values)[pairs[name].name]


def by_the_suffix(loss, name, values):
    append_backward(loss)
    return run(loss.block.program, values)[name + "@GRAD"]


def step_by_step(loss, name, values):
    pairs = append_backward(loss, [name])
    scope = run(loss.block.program, values)
    return scope[pairs[0][1].name]


def the_mean(v):
    return v.block.append_op("mean", v.name, out=f"{v.name}_total")


def the_name(v):
    return v.block.append_op("reduce_sum", v.name, out=f"{v.name}_total").name


def always_v(v):
    return v.block.append_op("reduce_sum", v.name, out="v_total")


def nothing(v):
    v.block.append_op("reduce_sum", v.name, out=f"{v.name}_total")


def looked_up(v):
    v.block.append_op("reduce_sum", v.name, out=v.name + "_total")
    return v.block.var(v.name + "_total")


def ops_themselves(loss):
    before = len(loss.block.ops)
    append_backward(loss)
    return loss.block.ops[before:]


def what_was_not_there(loss):
    before = list(loss.block.ops)
    append_backward(loss)
    return [repr(op) for op in loss.block.ops if op not in before]


WRONG = {
    "17a": [(every_line, Program), (counted_too_late, Program), (without_the_seed, Program)],
    "17b": [
        (first_pair, Program),
        (the_parameter_itself, Program),
        (the_variable, Program),
        (a_name_for_a_list, Program),
        (without_the_list, Program),
        (by_the_suffix, Program),
    ],
    "17c": [(the_mean, Program), (the_name, Program), (always_v, Program)],
}

NAMED = {
    "17a": [
        ((ops_themselves, Program), "ops are returned, not texts"),
        ((every_line, Program), "all ops are returned"),
    ],
    "17b": [
        ((the_parameter_itself, Program), "the value of the variable is returned"),
        ((without_the_list, Program), "c is looked up where it is not"),
        ((by_the_suffix, Program), "the gradient is guessed by its name"),
    ],
    "17c": [
        ((the_mean, Program), "the mean is taken"),
        ((nothing, Program), "the variable is not returned"),
    ],
}

RIGHT = {
    "17a": [(what_was_not_there, Program)],
    "17b": [(step_by_step, Program)],
    "17c": [(looked_up, Program)],
}
