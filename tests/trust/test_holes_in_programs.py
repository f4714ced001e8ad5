"""What no test of programs looked at until a mutant survived."""

from __future__ import annotations

import gc
import linecache

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY
from minigrad.static.backward.grad_ops import flow_slots, plan_of


def program(function, shapes):
    """A program of a function of data that want gradients: (program, values, result)."""
    prog = static.Program()
    with static.program_guard(prog):
        values = [static.data(f"v{k}", shape) for k, shape in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        return prog, values, function(*values)


# -- the gradient program ------------------------------------------------------------------


def test_the_seed_has_the_line_of_the_operator_that_made_the_loss():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", 2.0)
        before = mg.sin(w)
        loss = before * w  # THE LOSS
        after = mg.exp(loss)
    with static.program_guard(prog):
        static.append_backward(loss)
    (seed,) = [op for op in prog.global_block().ops if op.role == "loss"]
    line = int(seed.source_line.split(":")[1].split(",")[0].split()[0])
    assert "# THE LOSS" in linecache.getline(__file__, line)
    assert after.shape == ()


@pytest.mark.parametrize(
    ("shape", "made"),
    [([-1], "fill_ones_like"), ([3], "fill_constant"), ([2, -1], "fill_ones_like")],
)
def test_the_seed_of_a_target_is_as_large_as_the_target(shape, made):
    prog, (x,), y = program(lambda x: x * x, [shape])
    with static.program_guard(prog):
        (g,) = static.gradients(y, [x])
    assert [op.type for op in prog.global_block().ops if op.role == "loss"] == [made]
    for n in (3, 5) if -1 in shape else (3,):
        feed = np.ones([n if s == -1 else s for s in shape])
        (found,) = static.Executor().run(prog, {"v0": feed}, [g])
        assert np.array_equal(found, 2.0 * feed)


FUNCTIONS = {
    "sum of stretched": (lambda x, y: mg.sum(x * y * x), [(2, 3), (2, 1)]),
    "stretched on both sides": (lambda x, y: mg.sum(mg.sin(x * y)), [(2, 1), (1, 3)]),
    "another rank": (lambda x, y: mg.sum(mg.tanh(x + y) * y), [(2, 3), (3,)]),
    "a number": (lambda x, y: mg.sum((x - y) * x), [(2, 3), ()]),
    "concat": (lambda x, y: mg.sum(mg.concat([x, y]) ** 3.0), [(2, 3), (4, 3)]),
    "concat along 1": (lambda x, y: mg.sum(mg.exp(mg.concat([x, y], axis=1))), [(2, 3), (2, 2)]),
    "mean of rows": (lambda x, y: mg.sum(mg.square(mg.mean(x, axis=0)) * y), [(4, 3), (3,)]),
    "reshape": (lambda x, y: mg.sum(mg.reshape(x * x, shape=(-1,)) * y), [(2, 3), (6,)]),
    "solve": (lambda x, y: mg.sum(mg.square(mg.solve(x, y))), [(3, 3), (3, 2)]),
    "matmul": (lambda x, y: mg.sum(mg.square(x @ y)), [(2, 3), (3, 2)]),
    "pieces": (lambda x, y: mg.sum(mg.split(x, num_or_sections=2)[1] * y * y), [(4, 3), (3,)]),
    "where": (lambda x, y: mg.sum(mg.where(x > y, x * x, y * x)), [(2, 3), (3,)]),
}


def derivatives(grad, function, values, which):
    """The result, its derivatives by the chosen values, and theirs."""
    out = function(*values)
    first = grad(out, [values[k] for k in which])
    total = out * out
    for g in first:
        total = total + mg.sum(g * g)
    return [out, *first, *grad(total, [values[k] for k in which])]


#: those whose sizes cannot be open
FIXED = {"reshape", "solve", "matmul", "pieces"}
CASES = [(name, opened) for name in FUNCTIONS for opened in (False, True)[: 2 - (name in FIXED)]]


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize(("name", "opened"), CASES)
def test_derivatives_by_some_inputs_are_those_of_the_eager_engine(name, opened, which):
    """First and second, as grad ops and decomposed, with sizes that are known or open."""
    function, sizes = FUNCTIONS[name]
    rng = np.random.default_rng(5)
    arrays = [
        rng.random(s) + np.eye(*s) if name == "solve" and k == 0 else rng.random(s)
        for k, s in enumerate(sizes)
    ]
    shapes = [(-1, *s[1:]) if opened and s else s for s in sizes]
    prog = static.Program()
    with static.program_guard(prog):
        values = [static.data(f"v{k}", s) for k, s in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        fetch = derivatives(static.gradients, function, values, which)
    leaves = [mg.tensor(a, requires_grad=True) for a in arrays]
    expected = derivatives(lambda o, i: mg.grad(o, i, create_graph=True), function, leaves, which)
    feed = {f"v{k}": a for k, a in enumerate(arrays)}
    names = [v.name for v in fetch]
    for read in (prog, static.decompose(prog)):
        found = static.Executor().run(read, feed, names)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-12, atol=1e-14)


def plan_by_hand(name, wanted, slots):
    plan = plan_of(REGISTRY[name], wanted, slots)
    return plan.operands, plan.results, plan.given, plan.made


def test_a_grad_op_has_the_slots_that_its_rules_read_and_no_others():
    """Slot, is its value read, is it there for its shape alone and only where it was stretched."""
    out = (("out", "out_grad"),)
    assert plan_by_hand("mul", ("x",), ("x", "y")) == (
        (("x", False, True), ("y", True, False)), (), out, (("x", "x_grad"),),
    )  # fmt: skip
    assert plan_by_hand("add", ("y",), ("x", "y")) == (
        (("y", False, True),), (), out, (("y", "y_grad"),),
    )  # fmt: skip
    assert plan_by_hand("add", ("x",), ("x",))[0] == ()  # its other operand is a number
    assert plan_by_hand("tanh", ("x",), ("x",)) == ((), ("out",), out, (("x", "x_grad"),))
    assert plan_by_hand("reduce_sum", ("x",), ("x",))[0] == (("x", False, False),)
    assert plan_by_hand("reshape", ("x",), ("x", "shape_like"))[0] == (
        ("x", False, False), ("shape_like", False, False),
    )  # fmt: skip
    assert plan_by_hand("solve", ("b",), ("a", "b"))[1] == ("out",)


def grad_op(function, shapes, which):
    prog, values, out = program(function, shapes)
    with static.program_guard(prog):
        static.gradients(out, [values[k] for k in which])
    return prog.global_block().ops[-1]


def test_an_operand_is_kept_for_its_shape_only_if_it_may_have_been_stretched():
    add = lambda x, y: x + y
    assert set(grad_op(add, [[2, 3], [2, 3]], (0, 1)).inputs) == {"out_grad"}
    assert set(grad_op(add, [[2, 3], [3]], (0, 1)).inputs) == {"y", "out_grad"}
    assert set(grad_op(add, [[2, 3], [2, 3]], (1,)).inputs) == {"out_grad"}
    assert set(grad_op(add, [[-1, 3], [-1, 3]], (0, 1)).inputs) == {"x", "y", "out_grad"}


def test_a_grad_op_says_whose_values_it_reads_not_whose_shapes():
    assert grad_op(lambda x, y: x * y, [[2, 3], [3]], (0, 1)).reads == ("v0", "v1")
    assert grad_op(lambda x, y: x + y, [[2, 3], [3]], (0, 1)).reads == ()
    assert grad_op(lambda x: mg.sum(x), [[-1]], (0,)).reads == ()
    assert grad_op(mg.tanh, [[2]], (0,)).reads == ("tanh_0",)
    assert grad_op(lambda x, y: x * y, [[2], [2]], (1,)).reads == ("v0",)


def test_types_say_through_which_slots_gradients_flow():
    assert flow_slots("no_such_type") == ((), ())
    assert flow_slots("mul") == (("x", "y"), ("out",))
    assert flow_slots("while")[0] == ("x", "params", "seq")
    assert flow_slots("argmax") == ((), ())
    for control in ("while", "cond", "recurrent"):
        assert "out_grad" in flow_slots(f"{control}_grad")[0], (
            "so that a second derivative is refused"
        )
        assert "params_grad" in flow_slots(f"{control}_grad")[1]
    assert set(flow_slots("mul_grad")[0]) >= {"x", "y", "out_grad"}
    assert flow_slots("mul_grad")[1] == ("x_grad", "y_grad")


def test_a_list_of_parameters_leaves_out_what_a_flag_asks_for():
    prog = static.Program()
    with static.program_guard(prog):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        x.stop_gradient = False
        pairs = static.append_backward(mg.sum(x * w), parameter_list=[w])
    assert [v.name for v, _ in pairs] == ["w"]
    assert not prog.global_block().has_var("x@GRAD")


@pytest.mark.parametrize("shape", [[], [1], [1, 1], [2], [-1], [1, 2]])
def test_a_loss_has_one_element_whatever_its_rank(shape):
    prog, (x,), y = program(lambda x: x * 2.0, [shape])
    with static.program_guard(prog):
        if shape.count(1) < len(shape):
            with pytest.raises(ProgramError, match="the loss must be one number"):
                static.append_backward(y)
        else:
            static.append_backward(y)
            grad = prog.global_block().var("v0@GRAD")
            assert static.Executor().run(prog, {"v0": np.ones(shape)}, [grad])[0].sum() == 2.0


def test_only_variables_with_real_numbers_are_differentiated():
    prog, _, y = program(lambda x: mg.argmax(x), [[3]])
    with static.program_guard(prog):
        with pytest.raises(ProgramError, match="starts from a Variable"):
            static.append_backward(3.0)
        with pytest.raises(ProgramError, match="the loss must be a floating-point number"):
            static.append_backward(y)
        with pytest.raises(ProgramError, match="only floating-point values have gradients"):
            static.gradients(y, [prog.global_block().var("v0")])


def test_seeds_fit_their_targets_in_number_and_shape():
    prog, (x,), y = program(lambda x: x * 2.0, [[3]])
    with static.program_guard(prog):
        with pytest.raises(ProgramError, match="1 targets need 1 target_gradients, 2 were given"):
            static.gradients(y, [x], [x, x])
        with pytest.raises(ProgramError, match="must have the shape of its target"):
            static.gradients(y, [x], [mg.sum(x)])
        with pytest.raises(ProgramError, match=r"gradients\(\) takes Variables"):
            static.gradients(y, [3.0])
        for targets, inputs, empty in ([], [x], "targets"), (y, [], "inputs"):
            with pytest.raises(ProgramError, match=rf"{empty}=\[\]\) names no Variable"):
                static.gradients(targets, inputs)


def test_building_leaves_the_collector_as_it_was():
    assert gc.isenabled()
    for _ in range(2):
        prog, _, y = program(lambda x: x * 2.0, [[]])
        with static.program_guard(prog):
            static.append_backward(y)
        running = gc.isenabled()
        gc.enable()
        assert running


def test_a_target_that_nothing_computes_has_itself_as_gradient():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2])
        (by_x,) = static.gradients(x, [x])
    assert static.Executor().run(prog, {"x": [5.0, 6.0]}, [by_x])[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["data", "a parameter"])
def test_a_loss_that_nothing_computes_is_refused(kind):
    prog = static.Program()
    with static.program_guard(prog):
        loss = static.data("v", []) if kind == "data" else static.parameter("v", 1.0)
        with pytest.raises(ProgramError, match=f"no operator of this .* loss 'v'; it is {kind}"):
            static.append_backward(loss)


def test_a_parameter_list_names_variables_of_the_program():
    prog = static.Program()
    with static.program_guard(prog):
        weight = static.parameter("weight", 2.0)
        with pytest.raises(ProgramError, match="'wieght', which is no variable(.|\n)*weight"):
            static.append_backward(weight * weight, parameter_list=["wieght"])


def test_every_grad_op_that_is_not_made_has_its_reason():
    prog = static.Program()
    with static.program_guard(prog):
        w, v = static.parameter("w", [1.0, 2.0]), static.parameter("v", [3.0, 4.0])
        s = mg.sin(static.data("d", [2]))
        mg.exp(w)
        mask = w > 1.5
        place = mg.argmax(w * 2.0)
        cut = mg.cos(v)
        loss = mg.sum(w * s * mg.astype(mask, float) + cut) * mg.astype(place, float)
        static.append_backward(loss, no_grad_set=[cut])
    assert prog.pruned == [
        ("cast_grad", "#11 cast: nothing wanted lies behind its inputs"),
        ("cast_grad", "#7 cast: nothing wanted lies behind its inputs"),
        ("cos_grad", "#5 cos: gradients end at cos_0"),
        ("arg_max_grad", "#4 arg_max: it has no gradient rule"),
        ("mul_grad", "#3 mul: gradients end before they come back to it"),
        ("greater_than_grad", "#2 greater_than: it has no gradient rule"),
        ("exp_grad", "#1 exp: the loss does not depend on exp_0"),
        ("sin_grad", "#0 sin: nothing wanted lies behind its inputs"),
    ]


@pytest.mark.parametrize("last", ["add", "fill_ones_like"])
def test_a_name_that_nobody_wants_may_have_two_values(last):
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        t = w + w
        a = t + w
        inputs = {"x": a, "y": a} if last == "add" else {"x": a}
        prog.global_block().append_op(last, inputs, {"out": t.name})
        static.append_backward(mg.sum(t + w))
    factor = 7.0 if last == "add" else 1.0
    assert prog.global_block().has_var(f"{t.name}@GRAD") == (last == "add")
    assert static.Executor().run(prog, fetch_list="w@GRAD")[0].tolist() == [factor] * 2
    assert sum(op.type == "add_grad" for op in prog.global_block().ops) == (
        4 if last == "add" else 1
    )


def test_a_sum_of_gradients_has_the_line_of_the_last_that_was_written():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [1.0, 2.0])
        first = mg.sin(w)  # THE FIRST USER
        static.append_backward(mg.sum(first * w * w))
    (total,) = [op for op in prog.global_block().ops if op.type == "sum"]
    assert total.outputs["out"] == ["w@GRAD"]
    assert "# THE FIRST USER" in total.source_line
