"""Gradients of gradients in programs, for every op with a rule, against the eager engine."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY
from tests.ops.test_records import DIFFERENTIABLE, call, floats, wanted

NAMES = [r.type for r in DIFFERENTIABLE]


class Sample:
    """A sample whose array arguments can be replaced."""

    def __init__(self, sample, at):
        self.args = tuple(at.get(k, a) for k, a in enumerate(sample.args))
        self.attrs = sample.attrs


def usable(record):
    """Samples with small arrays of float64 that want a gradient, at most three per op."""
    found = []
    for sample in record.samples:
        at = {k: np.array(sample.args[k], float) for k in wanted(record, sample)}
        exact = all(getattr(a, "dtype", None) != np.float32 for a in sample.args)
        if at and exact and all(v.size for v in at.values()):
            found.append((sample, at))
    return found[:3]


def one_number(values):
    """A number that depends on every element in its own way, and not linearly."""
    return [(v * v * 0.4 + v * 0.7).sum() for v in values]


def second_by_eager(record, sample, at):
    leaves = {k: mg.tensor(v, requires_grad=True) for k, v in at.items()}
    outs = floats(call(record, Sample(sample, leaves), {}))
    first = mg.grad(
        one_number(outs),
        list(leaves.values()),
        create_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    total = [t for t in one_number(first) if t.requires_grad]
    values = [g.detach().numpy() for g in first]
    if not total:
        return values, [np.zeros_like(v) for v in at.values()]
    second = mg.grad(total, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return values, [g.detach().numpy() for g in second]


def second_by_program(record, sample, at):
    program = static.Program()
    with static.program_guard(program):
        leaves = {k: static.parameter(f"x{k}", v) for k, v in at.items()}
        outs = [o for o in call(record, Sample(sample, leaves), {}) if o.dtype.kind == "f"]
        outs = [o for o in outs if not hidden(record, o, program)]
        first = static.gradients(one_number(outs), list(leaves.values()))
        total = one_number([g for g in first if g is not None])
        second = static.gradients(total, list(leaves.values())) if total else [None] * len(at)
    static.verify(program)
    text = str(program)
    assert str(static.parse(text)) == text
    return fetch(program, first, at), fetch(program, second, at)


def hidden(record, out, program):
    """Whether an output carries no gradient."""
    op = next(o for o in program.global_block().ops if out.name in o.output_names)
    slot = next(s for s, names in op.outputs.items() if out.name in names)
    return op.type == record.type and slot in record.primitive.nondiff


def fetch(program, variables, at):
    found = iter(static.Executor().run(program, fetch_list=[v for v in variables if v is not None]))
    shapes = [v.shape for v in at.values()]
    return [
        np.zeros(s) if v is None else next(found) for v, s in zip(variables, shapes, strict=True)
    ]


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=NAMES)
def test_first_and_second_derivatives_of_a_program_are_those_of_eager(record):
    for sample, at in usable(record):
        ours, ours2 = second_by_program(record, sample, at)
        theirs, theirs2 = second_by_eager(record, sample, at)
        for a, b in zip([*ours, *ours2], [*theirs, *theirs2], strict=True):
            np.testing.assert_allclose(
                a, b, rtol=1e-9, atol=1e-9, err_msg=f"{record.type} {sample}"
            )


@pytest.mark.parametrize("rows", [1, 4])
def test_second_derivatives_with_sizes_that_are_known_when_the_program_runs(rows):
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 3]), static.parameter("w", np.array([0.3, -0.2, 0.5]))
        loss = (mg.tanh(x * w).mean(axis=0) * mg.concat([x, x * w]).sum(axis=0)).sum()
        (g,) = static.gradients(loss, [w])
        (h,) = static.gradients((g * g).sum(), [w])
    feed = np.sin(np.arange(rows * 3.0)).reshape(rows, 3)
    (got,) = static.Executor().run(program, {"x": feed}, [h])
    leaf = mg.tensor([0.3, -0.2, 0.5], requires_grad=True)
    x = mg.tensor(feed)
    loss = (mg.tanh(x * leaf).mean(axis=0) * mg.concat([x, x * leaf]).sum(axis=0)).sum()
    (g,) = mg.grad(loss, [leaf], create_graph=True)
    (expected,) = mg.grad((g * g).sum(), [leaf])
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-10)


def test_derivatives_of_the_third_and_fourth_order():
    program = static.Program()
    with static.program_guard(program):
        x = static.parameter("x", 0.7)
        found = [mg.sin(x) * x]
        for _ in range(4):
            found += static.gradients(found[-1], [x])
    values = static.Executor().run(program, fetch_list=found)
    s, c = np.sin(0.7), np.cos(0.7)
    np.testing.assert_allclose(
        values, [s * 0.7, s + c * 0.7, 2 * c - s * 0.7, -3 * s - c * 0.7, -4 * c + s * 0.7]
    )


# -- through a cond ------------------------------------------------------------------------


def plain(static_cond, c, d, w, v):
    y = static_cond(c, lambda: w * w * w * v, lambda: mg.exp(w))
    return (y * y).sum()


def one_behind_the_other(static_cond, c, d, w, v):
    y = static_cond(c, lambda: w * w * w, lambda: w * w)
    z = static_cond(c, lambda: y * y * v, lambda: y * w)
    return (z * y).sum()


def nested(static_cond, c, d, w, v):
    def inner():
        h = mg.sin(w)
        return static_cond(d, lambda: h * h * w, lambda: mg.tanh(h) * v)

    y, z = static_cond(c, lambda: (inner(), w), lambda: (w * w, w * 3.0))
    return (y * y * z).sum()


def a_cond(x):
    h = 3.0 * x
    return static.cond(x.sum() > 0.0, lambda: h * h, lambda: h)


def a_loop(x):
    return static.while_loop(lambda i, y: i < 2.0, lambda i, y: (i + 1.0, y * x), (0.0, 9.0))[1]


def an_rnn(x):
    steps = mg.stack([x, x])
    return static.static_rnn(lambda e, s: ([s * e], [s * e]), [steps], [0.0 * x + 9.0])[1][0]


@pytest.mark.parametrize("inside", [a_cond, a_loop, an_rnn])
def test_second_derivatives_through_control_flow_in_the_middle_of_a_rule(inside):
    function = mg.primitive(lambda x: 6.0 * x**3, type="of_a_test_of_rules")

    def slope(x, out_grad):
        square = inside(x) if isinstance(x, static.Variable) else 9.0 * x * x
        return out_grad * square * 2.0

    try:
        function.grad(x=slope)
        with static.program_guard(static.Program()) as program:
            x = static.parameter("x", 2.0)
            (first,) = static.gradients(function(x), x)
            (second,) = static.gradients(first, x)
            values = static.Executor().run(program, {}, [first, second])
        assert [v.item() for v in values] == [72, 72]
    finally:
        REGISTRY.pop("of_a_test_of_rules")


def taken(pred, true_fn, false_fn):
    return true_fn() if pred else false_fn()


@pytest.mark.parametrize("function", [plain, one_behind_the_other, nested])
def test_second_and_third_derivatives_through_a_cond_are_those_of_the_branch_taken(function):
    program = static.Program()
    with static.program_guard(program):
        c, d = (static.data(n, [], "bool") for n in "cd")
        w, v = static.parameter("w", np.array([0.5, 0.8])), static.parameter("v", 1.3)
        found = [function(static.cond, c, d, w, v)]
        for _ in range(3):
            (g,) = static.gradients(found[-1], [w])
            found.append((g * g).sum())
    static.verify(program)
    assert str(static.parse(str(program))) == str(program)
    again = static.Program.from_json(program.to_json())
    step = static.compile(program, fetch=found)
    for c, d in ((True, True), (True, False), (False, False)):
        feed = {"c": c, "d": d}
        w, v = mg.tensor([0.5, 0.8], requires_grad=True), mg.tensor(1.3, requires_grad=True)
        expected = [function(taken, c, d, w, v)]
        for _ in range(3):
            (g,) = mg.grad(expected[-1], [w], create_graph=True)
            expected.append((g * g).sum())
        values = [float(e.detach().numpy()) for e in expected]
        for results in (
            static.Executor().run(program, feed, found),
            static.Executor().run(again, feed, [f.name for f in found]),
            step(**feed),
        ):
            np.testing.assert_allclose(results, values, rtol=1e-11)


def test_a_second_derivative_that_reaches_a_loop_by_its_incoming_gradient_is_no_silent_zero():
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", 0.5), static.parameter("v", 1.5)
        _, y = static.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * w), [0, 1.0])
        (g,) = static.gradients(y * v, [w])
        square = g * g
        before = program.to_json()
        with pytest.raises(ProgramError, match="second derivatives through while"):
            static.gradients(square, [v])
    assert program.to_json() == before


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        yield program


# -- second derivatives --------------------------------------------------------------------


def test_a_value_that_is_overwritten_before_a_grad_op_reads_it_again_is_refused(prog):
    w = static.parameter("w", [1.0, 2.0])
    e = w * 1.0
    (g,) = static.gradients((e * e * e).sum(), [w])
    prog.global_block().append_op("assign", {"x": w}, {"out": e})
    with pytest.raises(
        ProgramError, match="needs the value that 'mul_0' had at .* assign overwrites it"
    ):
        static.gradients((g * g).sum(), [w])


def test_a_value_that_only_the_rule_itself_reads_again_must_be_there_too(prog):
    x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
    x.stop_gradient = False
    e = x * 1.0
    (g,) = static.gradients((mg.sin(e) * w).sum(), [e])
    again = (g * g).sum()
    (fine,) = static.gradients(again, [w])
    at = np.array([0.3, 0.4])
    (found,) = static.Executor().run(prog, {"x": at}, [fine])
    np.testing.assert_allclose(found, 2 * np.cos(at) ** 2 * [1.0, 2.0])
    prog.global_block().append_op("assign", {"x": x}, {"out": e})
    with pytest.raises(
        ProgramError, match="cos needs the value that 'mul_0' had at .* assign overwrites it"
    ):
        static.gradients(again, [w])


def test_every_step_of_a_rule_is_differentiated(prog):
    x = static.data("x", [3])
    x.stop_gradient = False
    (g,) = static.gradients(mg.softmax(x * x)[:1], [x])
    (h,) = static.gradients((g * g).sum(), [x])
    at = np.array([0.3, -0.7, 1.1])
    leaf = mg.tensor(at, requires_grad=True)
    (first,) = mg.grad(mg.softmax(leaf * leaf)[:1].sum(), leaf, create_graph=True)
    (second,) = mg.grad((first * first).sum(), leaf)
    found = static.Executor().run(prog, {"x": at}, [g, h])
    np.testing.assert_allclose(found[0], first.detach().numpy())
    np.testing.assert_allclose(found[1], second.numpy())


def tanh_or_square(x, w):
    return static.cond(x.sum() > 0, lambda: mg.tanh(x * w).sum(), lambda: (x * w * w).sum())


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x * w).sum(),
        lambda x, w: mg.tanh(mg.tanh(x @ w) @ w).sum(),
        lambda x, w: (mg.softmax(x @ w) ** 2).sum(),
        lambda x, w: mg.cross_entropy(x @ w, np.array([0, 1, 1])),
        tanh_or_square,
    ],
)
def test_every_operator_of_second_derivatives_is_read(function):
    program = static.Program()
    with static.program_guard(program):
        x, w = static.parameter("x", np.eye(3)), static.parameter("w", np.ones((3, 3)))
        target = function(x, w)
        first = [g for g in static.gradients(target, [x, w]) if g is not None]
        second = [g for g in static.gradients(first, [x, w]) if g is not None]
    read = {v.name for v in (target, *first, *second)}
    operators = [op for block in program.blocks for op in block.ops]
    read.update(n for op in operators for n in (*op.input_names, *op.block_names))
    assert [op for op in operators if read.isdisjoint(op.output_names)] == []


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: mg.prod(x, axis=1),
        lambda x: mg.cumprod(x, axis=0),
        lambda x: mg.sort(x, axis=0),
        lambda x: mg.concat(x, x),
        lambda x: x[:2],
        lambda x: x[5:],
    ],
)
def test_second_derivatives_where_the_first_size_is_open(function, size):
    def first_and_second(x, w, grad):
        y = mg.sin(function(x * w)).sum()
        (first,) = grad(y, [x])
        return first, grad((first * first).sum(), [x])[0]

    prog = static.Program()
    with static.program_guard(prog):
        w = np.array([1.0, 2.0])
        found = first_and_second(static.data("x", [-1, 2]), w, static.gradients)
    given = np.random.default_rng(0).normal(size=(size, 2))
    x = mg.tensor(given, requires_grad=True)
    wanted = first_and_second(x, w, lambda y, x: mg.grad(y, x, create_graph=True))
    for run in (
        static.Executor().run(prog, {"x": given}, found),
        static.compile(prog, None, found)(x=given),
    ):
        for value, other in zip(run, wanted, strict=True):
            np.testing.assert_allclose(value, other.detach().numpy(), rtol=1e-9)
