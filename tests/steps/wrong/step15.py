"""Plausible wrong answers to the exercises of step 15: every one must fail its check."""

from steps.step15_shared_names import (
    NetOp,
    Operator,
    Scope,
    backward,
    build_grad_op,
    find,
    names,
    places,
)

ADDING = (Scope, Operator, NetOp, build_grad_op, backward)


def op(type, out, **inputs):
    return Operator(type, inputs, {"out": out})


def users(*order):
    products = [op("mul", f"y{k}", x=f"x{k}", y="W") for k in order]
    return NetOp([*products, op("add", "t", x="y1", y="y2"), op("add", "y", x="t", y="y3")])


def three():
    return users(1, 2, 3)


def last_first():
    return users(3, 2, 1)


def the_third_without_w():
    return NetOp(
        [
            op("mul", "y1", x="x1", y="W"),
            op("mul", "y2", x="x2", y="W"),
            op("add", "t", x="y1", y="y2"),
            op("add", "y", x="t", y="x3"),
        ]
    )


def factored_out():
    return NetOp(
        [
            op("add", "s", x="x1", y="x2"),
            op("add", "t", x="s", y="x3"),
            op("mul", "y", x="t", y="W"),
        ]
    )


def grads(*ops):
    kinds = {
        "exp": Operator("exp_grad", {"out": "y", "out_grad": "y@GRAD"}, {"x_grad": "b@GRAD"}),
        "zero": Operator("fill_zeros_like", {"x": "a"}, {"out": "a@ZERO"}),
        "zero b": Operator("fill_zeros_like", {"x": "b"}, {"out": "a@ZERO"}),
        "zero y": Operator("fill_zeros_like", {"x": "y"}, {"out": "a@ZERO"}),
        "zero b@GRAD": Operator("fill_zeros_like", {"x": "b@GRAD"}, {"out": "a@ZERO"}),
        "zero x": Operator("fill_zeros_like", {"x": "x"}, {"out": "a@ZERO"}),
        "split": Operator("split_grad", {"out_grad": ["a@ZERO", "b@GRAD"]}, {"x_grad": "x@GRAD"}),
        "swapped": Operator("split_grad", {"out_grad": ["b@GRAD", "a@ZERO"]}, {"x_grad": "x@GRAD"}),
        "short": Operator("split_grad", {"out_grad": ["b@GRAD"]}, {"x_grad": "x@GRAD"}),
    }
    return [kinds[each] for each in ops]


def results_of(op, scope):
    values = [scope[name] for name in names(op.inputs)]
    results = find(op.type).kernel(*values, **op.attrs)
    results = results if isinstance(results, tuple) else (results,)
    return zip(names(op.outputs), results, strict=True)


def overwriting(ops, scope):
    for each in ops:
        for name, value in results_of(each, scope):
            scope[name] = value


def in_place(ops, scope):
    for each in ops:
        for name, value in results_of(each, scope):
            if name in scope:
                scope[name] += value
            else:
                scope[name] = value


def once_per_operator(ops, scope):
    for each in ops:
        before = dict(scope)
        for name, value in results_of(each, scope):
            scope[name] = before[name] + value if name in before else value


def only_old_names(ops, scope):
    for each in ops:
        for name, value in results_of(each, scope):
            if name not in scope:
                scope[name] = value


def twice_the_first(ops, scope):
    for each in ops:
        results = list(results_of(each, scope))
        scope.update(results)
        for name, value in results:
            scope[name] = scope[name] + value


def with_get(ops, scope):
    for each in ops:
        for name, value in results_of(each, scope):
            scope[name] = scope.get(name, 0.0) + value


def operators(*_):
    return three().ops


def three_from_the_right():
    products = [op("mul", f"y{k}", x="W", y=f"x{k}") for k in (1, 2, 3)]
    return NetOp([*products, op("add", "s", x="y2", y="y3"), op("add", "y", x="y1", y="s")])


WRONG = {
    "15a": [
        (three, [2.0, 5.0, 11.0], Scope, backward, places),
        (last_first, [11.0, 5.0, 2.0], Scope, backward, places),
        (three, [18.0, 0.0, 0.0], Scope, backward, places),
        (the_third_without_w, [5.0, 2.0], Scope, backward, places),
        (factored_out, [18.0], Scope, backward, places),
    ],
    "15b": [
        (each, Scope, Operator, NetOp)
        for each in (
            grads("exp", "split"),
            grads("exp", "split", "zero"),
            grads("zero", "split", "exp"),
            grads("exp", "zero", "swapped"),
            grads("exp", "zero x", "split"),
            grads("exp", "zero b", "split"),
            grads("exp", "zero y", "split"),
            grads("exp", "zero b@GRAD", "split"),
            grads("exp", "short"),
            ["exp_grad", "fill_zeros_like", "split_grad"],
        )
    ],
    "15c": [(each, *ADDING) for each in (overwriting, in_place, once_per_operator, only_old_names)],
}

NAMED = {
    "15a": [
        ((three, [11.0, 16.0, 18.0], Scope, backward, places), "the sum is given as it grows"),
        ((three, [33.0, 15.0, 6.0], Scope, backward, places), "the products are given"),
        ((operators, [11.0, 5.0, 2.0], Scope, backward, places), "a list of operators is returned"),
    ],
    "15b": [
        (
            (grads("exp", "split", "zero"), Scope, Operator, NetOp),
            "the zeros are made after they are read",
        ),
        ((grads("exp", "short"), Scope, Operator, NetOp), "only one gradient is given"),
        (
            (grads("exp", "split"), Scope, Operator, NetOp),
            "the zeros are made after they are read, or not",
        ),
    ],
    "15c": [
        ((twice_the_first, *ADDING), "a value is added to itself"),
        ((in_place, *ADDING), "+= writes into an array that others hold"),
        ((overwriting, *ADDING), "the second gradient overwrites the first"),
    ],
}

RIGHT = {
    "15a": [(three_from_the_right, [11.0, 5.0, 2.0], Scope, backward, places)],
    "15b": [(grads("zero", "exp", "split"), Scope, Operator, NetOp)],
    "15c": [(with_get, *ADDING)],
}
