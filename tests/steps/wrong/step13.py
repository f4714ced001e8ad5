"""Plausible wrong answers to the exercises of step 13: every one must fail its check."""

from difflib import get_close_matches

from steps.step13_registry import OPS, Operator, Scope, build_grad_op, register

ENGINE = (OPS, Operator, Scope, build_grad_op)


def factor_as_a_slot():
    register(
        "scale",
        lambda x, factor: factor * x,
        "scale_grad",
        lambda x, factor, out_grad: (factor * out_grad, x * out_grad),
    )


def reads_x_for_nothing():
    register(
        "scale",
        lambda x, *, factor: factor * x,
        "scale_grad",
        lambda x, out_grad, *, factor: factor * out_grad,
    )


def slot_called_g():
    register(
        "scale",
        lambda x, *, factor: factor * x,
        "scale_grad",
        lambda g, *, factor: factor * g,
    )


def factor_forgotten_in_the_rule():
    register(
        "scale", lambda x, *, factor: factor * x, "scale_grad", lambda out_grad, *, factor: out_grad
    )


def no_grad_op():
    register("scale", lambda x, *, factor: factor * x)


NEEDED = {
    "add": "",
    "mul": "x y",
    "neg": "",
    "exp": "out",
    "log": "x",
    "tanh": "out",
    "sqrt": "out",
    "div": "y out",
}


def enroll(type, known):
    if type in known:
        raise ValueError(f"{type!r} is registered already")
    return [*known, type]


def lookup_that_always_proposes(type, known):
    if type in known:
        return type
    near = get_close_matches(type, known, 1, 0)[0]
    raise LookupError(f"no {type!r}; the nearest is {near!r}")


def lookup_with_a_key_error(type, known):
    if type not in known:
        near = get_close_matches(type, known)
        raise KeyError(f"{type}: " + (f"did you mean {near[0]}?" if near else "never heard of it"))
    return type


def scale_with_attributes_by_name():
    def scale(x, *, factor):
        return x * factor

    def scale_grad(out_grad, *, factor):
        return out_grad * factor

    register("scale", scale, "scale_grad", scale_grad)


WRONG = {
    "13a": [
        (factor_as_a_slot, *ENGINE),
        (reads_x_for_nothing, *ENGINE),
        (factor_forgotten_in_the_rule, *ENGINE),
        (no_grad_op, *ENGINE),
        (slot_called_g, *ENGINE),
    ],
    "13b": [
        (NEEDED | {"exp": "x"},),
        (NEEDED | {"add": "x y"},),
        (NEEDED | {"div": "x y out"},),
        (NEEDED | {"log": "out"},),
        (NEEDED | {"tanh": "x"},),
        (NEEDED | {"div": "x out"},),
        (NEEDED | {"mul": ["x", "out"]},),
        (NEEDED | {"exp": "y"},),
        ({kind: slots for kind, slots in NEEDED.items() if slots},),
    ],
}

NAMED = {
    "13a": [
        ((factor_as_a_slot, *ENGINE), "factor is a slot"),
        ((reads_x_for_nothing, *ENGINE), "the grad op reads x"),
        ((no_grad_op, *ENGINE), "the grad op is missing"),
    ],
    "13b": [
        ((NEEDED | {"neg": "x"},), "neg is given a slot"),
        ((NEEDED | {"add": "x y"},), "add is given slots"),
        ((NEEDED | {"log": "out"},), "x cannot be had from log(x)"),
    ],
}

RIGHT = {
    "13a": [(scale_with_attributes_by_name, *ENGINE)],
    "13b": [
        ({kind: slots.split() for kind, slots in NEEDED.items()},),
        ({kind: set(slots.split()) for kind, slots in NEEDED.items()} | {"div": ("y", "x")},),
        (NEEDED | {"mul": "y, x", "div": "x y"},),
    ],
    "13c": [(lookup_that_always_proposes, enroll), (lookup_with_a_key_error, enroll)],
}
