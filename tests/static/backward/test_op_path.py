"""Where gradients flow, where they end, and that a copy of a program knows it too; each test holds a class of mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY, primitive
from minigrad.static.program.operator import Operator


def run(program, *names):
    return [v.tolist() for v in static.Executor().run(program, fetch_list=list(names))]


@pytest.fixture
def doubled():
    """An operator with a maker of one grad op per term: each gradient is twice that of the result."""

    @primitive
    def twice_the_sum(*x):
        return 2.0 * sum(x)

    def maker(op, wanted, grads):
        gradient = [grads[op.outputs["out"][0]]]
        return [
            Operator("scale", {"x": gradient}, {"out": [grads[n]]}, {"scale": 2.0}, "backward", op)
            for n in op.inputs["x"]
            if n in wanted
        ]

    twice_the_sum.grad(lambda x, out_grad: [2.0 * out_grad for _ in x])
    REGISTRY["twice_the_sum"].grad_maker = maker
    yield
    del REGISTRY["twice_the_sum"]


@pytest.mark.parametrize("terms", ["v", "vv", "vu", "uv", "vuv", "vvuv", "uvvu"])
@pytest.mark.parametrize("kind", ["sum", "twice_the_sum"])
@pytest.mark.parametrize("times", [1, 2])
def test_several_grad_ops_of_one_operator_read_its_gradient_before_they_write_it(
    doubled, terms, kind, times
):
    program = static.Program()
    with static.program_guard(program):
        static.parameter("w", [2.0])
        block = program.global_block()
        block.append_op("scale", {"x": "w"}, {"out": "v"}, {"scale": 3.0})
        block.append_op("scale", {"x": "w"}, {"out": "u"}, {"scale": 5.0})
        for _ in range(times):
            block.append_op(kind, {"x": list(terms)}, {"out": "v"})
        block.append_op("mean", {"x": "v"}, {"out": "loss"})
        ((_, gradient),) = static.append_backward(block.var("loss"))
    v = 3.0
    for _ in range(times):
        v = (terms.count("v") * v + terms.count("u") * 5.0) * (1 if kind == "sum" else 2)
    assert run(program, gradient) == [[v]]


@pytest.mark.parametrize("of", [lambda op: op, lambda op: None, Operator.copy])
def test_a_maker_of_grad_ops_need_not_say_which_operator_they_are_of(of):
    @primitive
    def curve(x):
        return np.exp(x)

    def maker(op, wanted, grads):
        (x,), (out,) = op.inputs["x"], op.outputs["out"]
        inputs, outputs = {"out": [out], "out_grad": [grads[out]]}, {"x_grad": [grads[x]]}
        return [Operator("exp_grad", inputs, outputs, {}, "backward", of(op))]

    curve.grad(x=lambda out, out_grad: out * out_grad)
    REGISTRY["curve"].grad_maker = maker
    try:
        program = static.Program()
        with static.program_guard(program):
            static.parameter("w", [0.0])
            block = program.global_block()
            block.append_op("curve", {"x": "w"}, {"out": "v"})
            block.append_op("scale", {"x": "v"}, {"out": "u"}, {"scale": 3.0})
            block.append_op("scale", {"x": "u"}, {"out": "u"}, {"scale": 5.0})
            block.append_op("mean", {"x": "u"}, {"out": "loss"})
            ((_, gradient),) = static.append_backward(block.var("loss"))
        assert run(program, gradient) == [[15.0]]
    finally:
        del REGISTRY["curve"]


@pytest.mark.parametrize("kind", ["split", "unbind"])
def test_the_gradient_of_an_overwritten_value_is_not_that_of_the_later_one(kind):
    program = static.Program()
    with static.program_guard(program):
        static.parameter("x", [2.0, 3.0])
        static.parameter("y", [5.0] if kind == "split" else 5.0)
        block = program.global_block()
        attrs = {"num_or_sections": 2} if kind == "split" else {}
        block.append_op(kind, {"x": "x"}, {"out": ["v", "b"]}, attrs)
        block.append_op("scale", {"x": "y"}, {"out": "v"}, {"scale": 7.0})
        block.append_op("add", {"x": "b", "y": "v"}, {"out": "both"})
        block.append_op("mean", {"x": "both"}, {"out": "loss"})
        pairs = static.append_backward(block.var("loss"))
    by_x, by_y = run(program, *(g for _, g in pairs))
    assert (by_x, np.sum(by_y)) == ([0.0, 1.0], 7.0)


CUTS = ["stop_gradient", "no_grad_set"]


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("asked", ["x", "xh", "hx", "h"])
def test_a_cut_stays_a_cut_whatever_is_asked(how, asked):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
        h = mg.square(x)
        y = h * x
        h.stop_gradient = True if how == "stop_gradient" else None
        no_grad = [h] if how == "no_grad_set" else None
        found = static.gradients(y, [{"x": x, "h": h}[n] for n in asked], no_grad_set=no_grad)
    for name, gradient in zip(asked, found, strict=True):
        if name == "h":
            assert gradient is None
        else:
            (value,) = static.Executor().run(program, {"x": [2.0, 3.0]}, [gradient])
            assert value.tolist() == [4.0, 9.0]


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("cut", ["x", "y"])
def test_an_input_or_a_target_that_is_cut_has_no_gradient(how, cut):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
        y = x * x
        blocked = {"x": x, "y": y}[cut]
        if how == "stop_gradient":
            blocked.stop_gradient = True
        no_grad = [blocked] if how == "no_grad_set" else None
        assert static.gradients(y, [x], no_grad_set=no_grad) == [None]


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("place", ["outside", "in a branch", "in a loop"])
def test_a_cut_result_hands_nothing_on_through_an_operator_with_several(how, place):
    def halves(x):
        first, second = mg.split(x, 2)
        cut.append(second)
        if how == "stop_gradient":
            second.stop_gradient = True
        return [first, second]

    cut: list = []
    program = static.Program()
    with static.program_guard(program):
        x = static.parameter("x", [2.0, 3.0])
        if place == "outside":
            targets = halves(x * 1.0)
        elif place == "in a branch":
            targets = static.cond(
                x.sum() > 0.0, lambda: halves(x * 1.0), lambda: mg.split(x * 0.0, 2)
            )
        else:
            targets = static.while_loop(
                lambda i, a, b: i < 1,
                lambda i, a, b: [i + 1, *halves(mg.concat([a, b]))],
                [0, *mg.split(x, 2)],
            )[1:]
        no_grad = cut if how == "no_grad_set" else None
        (gradient,) = static.gradients(targets, [x], no_grad_set=no_grad)
    assert run(program, gradient) == [[1.0, 0.0]]


def by_while(x, z):
    _, y, _ = static.while_loop(
        lambda i, v, q: i < 3, lambda i, v, q: [i + 1, v * 1.5, q * 2.0], [0, x * 1.0, z * 1.0]
    )
    return y


def by_cond(x, z):
    y, _ = static.cond(x > 0.0, lambda: [x * 2.0, z * 1.0], lambda: [x * 3.0, z * 4.0])
    return y


def by_rnn(x, z):
    steps = np.ones((3, 1))

    def step(s, h, q):
        return [h * s, q * s], [h * 1.5, q + s]

    (ys, _), _ = static.static_rnn(step, [steps * 1.0], [x * np.ones(1), z * np.ones(1)])
    return ys.sum()


def nested(x, z):
    def body(i, v, q):
        v, q = static.cond(i < 2, lambda: [v * 1.5, q * 2.0], lambda: [v, v * q])
        return [i + 1, v, q]

    return static.while_loop(lambda i, v, q: i < 3, body, [0, x * 1.0, z * 1.0])[1]


@pytest.mark.parametrize("build", [by_while, by_cond, by_rnn, nested])
def test_what_the_loss_does_not_read_of_a_block_has_no_gradient_no_path_and_no_decay(build):
    program = static.Program()
    with static.program_guard(program):
        x, z = static.parameter("x", 2.0), static.parameter("z", 2.0)
        loss = build(x, z)
        pairs = static.minimize(mg.optim.SGD(lr=0.1, weight_decay=0.5), loss)
    assert [p.name for p, _ in pairs] == ["x"]
    assert "no gradient" in str(mg.why(z))
    assert "z@GRAD" not in str(program)
    executor = static.Executor()
    executor.run(program)
    assert executor.scope["z"] == 2.0
    assert executor.scope["x"] != 2.0


def test_a_carried_value_that_comes_into_the_loss_some_steps_later_has_a_gradient():
    program = static.Program()
    with static.program_guard(program):
        names = "abc"
        a, b, c = (static.parameter(n, 2.0) for n in names)
        *_, last = static.while_loop(
            lambda i, *_: i < 2,
            lambda i, p, q, r: [i + 1, p * 1.0, p * 2.0, q * 3.0],
            [0, a * 1.0, b * 1.0, c * 1.0],
        )
        pairs = dict(static.append_backward(last))
    assert run(program, *pairs.values()) == [6.0, 0.0, 0.0]


COPIES = {
    "clone": lambda p: p.clone(),
    "JSON": lambda p: static.Program.from_json(p.to_json()),
    "text": lambda p: static.parse(str(p)),
    "text of JSON": lambda p: static.parse(str(static.Program.from_json(p.to_json()))),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_copy_answers_why_and_shows_what_was_left_out(copy):
    program = static.Program()
    with static.program_guard(program):
        w, v, u = (static.parameter(n, 1.0) for n in "wvu")
        h = mg.exp(w) * v
        mg.sin(u)
        cut = mg.square(w)
        marked = mg.cos(v)
        marked.stop_gradient = True
        static.append_backward(h + cut + marked, no_grad_set=[cut])
        static.gradients(h, [u])
        static.gradients(h * h, [w])
        static.append_backward(cut, parameter_list=[w])
    twin = copy(program)
    for name, variable in program.global_block().vars.items():
        assert str(mg.why(twin.global_block().var(name))) == str(mg.why(variable))
    assert [p[:2] for p in twin.pruned] == [p[:2] for p in program.pruned]
    assert str(twin) == str(program)


def test_a_pruned_program_answers_why_for_the_gradients_that_it_keeps():
    program = static.Program()
    with static.program_guard(program):
        w, v, u = (static.parameter(n, 1.0) for n in "wvu")
        h = mg.exp(w) * v
        static.append_backward((h + 1.0 + mg.sin(u)).sum())
    var = program.prune(["w@GRAD"]).global_block().var
    assert str(mg.why(var("w"))) == (
        "the gradient of w is w@GRAD, from 1 path:\n"
        "  w → #0 exp → exp_0 → #1 mul → mul_0 → #2 add → add_0 → #4 add → add_1"
    ), "the sum is gone"
    assert "u@GRAD was pruned away" in str(mg.why(var("u")))
    assert "no backward part" in str(mg.why(program.prune([h]).global_block().var("w")))


def test_one_callback_needs_no_list():
    seen = []
    with static.program_guard(static.Program()):
        w = static.parameter("w", 1.0)
        static.append_backward(w * w, callbacks=lambda block, context: seen.append(context["op"]))
    assert [op.type for op in seen] == ["fill_constant", "mul_grad", "sum"]


@pytest.mark.parametrize("uses", [1, 2])
def test_a_gradient_inside_a_loop_is_clipped_once(uses):
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 3.0)

        def body(i, v):
            return [i + 1, sum([v * w for _ in range(uses)])]

        _, y = static.while_loop(lambda i, v: i < 2, body, [0, w * 1.0])
        (carried,) = (n for n in program.blocks[1].vars if n.startswith("mul_0@step"))
        last = next(op for op in program.block(1).ops if op.type == "mul").output_names[0]
        program.error_clips.update({carried: (-9.0, 9.0), last: (-9.0, 9.0)})
        result = program.block(0).ops[-1].attrs["next"][1]
        program.error_clips[result] = (-9.0, 9.0)
        static.append_backward(y)
    clipped = [op.outputs["out"][0] for b in program.blocks for op in b.ops if op.type == "clip"]
    assert len(clipped) == len(set(clipped)) >= 2


def test_a_program_for_testing_keeps_the_gradients_that_its_loss_reads():
    program = static.Program()
    with static.program_guard(program):
        x = static.parameter("x", [2.0, 3.0])
        y = mg.dropout(x * x, p=0.5, seed=1)
        (gradient,) = static.gradients(y, [x])
        loss = (gradient * gradient).sum() + y.sum()
        static.minimize(mg.optim.SGD(lr=0.1), loss)
    test = program.clone(for_test=True)
    assert run(test, loss.name) == [4.0 + 9.0 + 16.0 + 36.0]
    assert {op.role for op in test.global_block().ops} == {"forward", "loss", "backward"}
    assert "x@GRAD@2" not in test.global_block().vars


def test_two_losses_are_trained_as_the_advice_says():
    def built():
        w, v = static.parameter("w", 2.0), static.parameter("v", 3.0)
        return w, v, w * v

    sgd = mg.optim.SGD(lr=0.1)
    program = static.Program()
    with static.program_guard(program):
        w, v, product = built()
        static.minimize(sgd, product, parameter_list=[w])
        with pytest.raises(
            ProgramError, match=r"backward parts before the first .*apply_gradients"
        ):
            static.minimize(sgd, product * product, parameter_list=[v])
    program = static.Program()
    with static.program_guard(program):
        w, v, product = built()
        both = [
            static.append_backward(product, parameter_list=[w]),
            static.append_backward(product * product, parameter_list=[v]),
        ]
        for pairs in both:
            sgd.apply_gradients(pairs)
    executor = static.Executor()
    executor.run(program)
    assert executor.scope["w"] == 2.0 - 0.1 * 3.0
    assert executor.scope["v"] == 3.0 - 0.1 * 2.0 * 6.0 * 2.0


def test_pairs_that_are_none_are_refused_and_nothing_is_appended():
    program = static.Program()
    with static.program_guard(program):
        w, v = static.parameter("w", 2.0), static.parameter("v", [3.0, 4.0])
        ((_, gradient),) = static.append_backward(w * w)
        before = str(program)
        sgd = mg.optim.SGD(lr=0.1)
        for pairs, words in [
            ([], "nothing would be trained"),
            (w, "the length of Variable"),
            ([w], "the length of Variable"),
            ([(v, gradient)], "is no gradient of"),
            ([(gradient, gradient)], "does not outlive a run"),
            ([(w, gradient), (w, gradient)], "stands in two pairs"),
        ]:
            with pytest.raises(ProgramError, match=words):
                sgd.apply_gradients(pairs)
    assert str(program) == before


def test_what_is_left_out_in_a_block_of_a_block_is_listed_too():
    def branch(h):
        mg.sin(h)  # nobody reads it
        return h * 3.0

    with static.program_guard(static.Program()) as program:
        w = static.parameter("w", 2.0)
        _, h = static.while_loop(
            lambda i, h: i < 2,
            lambda i, h: [i + 1, static.cond(i < 1, lambda: branch(h), lambda: h * 2.0)],
            [0, w * 1.0],
        )
        static.append_backward(h)
    reasons = {p.grad_op: p.reason for p in program.pruned}
    assert reasons["sin_grad"] == "the loss does not depend on sin_0"
    assert run(program, "w@GRAD") == [6.0]
