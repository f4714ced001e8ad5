"""Plausible wrong answers to the exercises of step 14: every one must fail its check."""

from steps.step14_backward_net import NetOp, Operator, Scope, backward


def layer(x, w, b, out, product, total):
    return [
        Operator("matmul", {"x": x, "y": w}, {"out": product}),
        Operator("rowwise_add", {"x": product, "b": b}, {"out": total}),
        Operator("sigmoid", {"x": total}, {"out": out}),
    ]


def fc_with_fixed_names(x, w, b, out):
    return NetOp(layer(x, w, b, out, "product", "sum"), "fc")


def fc_as_a_list(x, w, b, out):
    return layer(x, w, b, out, out + "_product", out + "_sum")


def fc_without_type(x, w, b, out):
    return NetOp(layer(x, w, b, out, out + "_product", out + "_sum"))


def fc_with_mul(x, w, b, out):
    ops = layer(x, w, b, out, out + "_product", out + "_sum")
    ops[0] = Operator("mul", {"x": x, "y": w}, {"out": out + "_product"})
    return NetOp(ops, "fc")


def fc_with_the_type_of_its_result(x, w, b, out):
    type = "fc" if x == "x" else out
    return NetOp(layer(x, w, b, out, out + "_product", out + "_sum"), type)


def fc_without_sigmoid(x, w, b, out):
    return NetOp(layer(x, w, b, "", out + "_product", out)[:2], "fc")


def flatten_one_level(net):
    ops = []
    for op in net.ops:
        ops += op.ops if isinstance(op, NetOp) else [op]
    return NetOp(ops, net.type)


def flatten_backwards(net):
    waiting, ops = list(net.ops), []
    while waiting:
        op = waiting.pop()
        if isinstance(op, NetOp):
            waiting += op.ops
        else:
            ops.append(op)
    return NetOp(ops, net.type)


def flatten_drops_nets(net):
    return NetOp([op for op in net.ops if not isinstance(op, NetOp)], net.type)


def flatten_to_a_list(net):
    ops = []
    for op in net.ops:
        ops += flatten_to_a_list(op) if isinstance(op, NetOp) else [op]
    return ops


WRONG = {
    "14a": [
        (each, NetOp, Scope, backward)
        for each in (
            fc_with_fixed_names,
            fc_as_a_list,
            fc_without_type,
            fc_with_mul,
            fc_with_the_type_of_its_result,
            fc_without_sigmoid,
        )
    ],
    "14b": [
        (each, NetOp, Operator, backward)
        for each in (flatten_one_level, flatten_backwards, flatten_drops_nets, flatten_to_a_list)
    ],
    "14c": [
        (each, NetOp, Operator, backward)
        for each in (
            {"h"},
            {"x", "w1", "b1"},
            {"y"},
            set(),
            {"y_part", "b2"},
            {"x", "w2", "h_part"},
            "y_part",
        )
    ],
}


def nops_stay(net):
    flat = NetOp([], net.type)
    for op in net.ops:
        inner = flatten_rest(op) if isinstance(op, NetOp) and op.ops else [op]
        flat.ops.extend(inner)
    return flat


def flatten_rest(net):
    return nops_stay(net).ops


NAMED = {
    "14b": [((nops_stay, NetOp, Operator, backward), "a NOP stays: it is taken for an operator")],
    "14a": [((fc_with_mul, NetOp, Scope, backward), "mul multiplies element by element")],
    "14c": [(({"x", "w1", "b1"}, NetOp, Operator, backward), "the first layer gets no gradient")],
}
