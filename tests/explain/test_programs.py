"""why, for programs: the paths of a gradient, or the exact cut."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError


def explained(build, **options):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
        w, v = static.parameter("w", [1.0, 2.0]), static.parameter("v", [3.0, 4.0])
        loss, asked = build(x, w, v)
        if loss is not None:
            static.append_backward(loss, **options)
    return str(mg.why(asked))


def test_every_path_of_a_gradient_is_shown():
    text = explained(lambda x, w, v: ((mg.exp(w) * v + mg.sin(w)).sum(), w))
    assert text.splitlines() == [
        "the gradient of w is w@GRAD, from 2 paths:",
        "  w → #0 exp → exp_0 → #1 mul → mul_0 → #3 add → add_0 → #4 reduce_sum → reduce_sum_0",
        "  w → #2 sin → sin_0 → #3 add → add_0 → #4 reduce_sum → reduce_sum_0",
    ]


def test_paths_that_part_behind_the_first_operator_are_counted_and_shown():
    def skip(x, w, v):
        h = mg.exp(w)
        return (h + mg.sin(h)).sum(), w

    assert explained(skip).splitlines() == [
        "the gradient of w is w@GRAD, from 2 paths:",
        "  w → #0 exp → exp_0 → #1 sin → sin_0 → #2 add → add_0 → #3 reduce_sum → reduce_sum_0",
        "  w → #0 exp → exp_0 → #2 add → add_0 → #3 reduce_sum → reduce_sum_0",
    ]


def test_more_paths_than_can_be_shown_are_counted():
    def doubled(x, w, v):
        h = w
        for _ in range(10):
            h = mg.sin(h) + mg.cos(h)
        return h.sum(), w

    lines = explained(doubled).splitlines()
    assert lines[0].endswith("from 1024 paths:")
    assert lines[-1] == "  … and 1016 more"
    assert len(lines) == 10


def marked(x, w, v):
    h = mg.exp(w)
    h.stop_gradient = True
    return (h * v).sum(), w


def own_mark(x, w, v):
    w.stop_gradient = True
    return (w * v).sum(), w


def dead(x, w, v):
    mg.exp(w)
    return mg.sin(v).sum(), w


CUTS = {
    "stop_gradient": (marked, {}, "w has no gradient: stop_gradient at exp_0, which #0 exp makes of w"),
    "its own stop_gradient": (own_mark, {}, "w has no gradient: it is marked stop_gradient"),
    "no_grad_set": (
        lambda x, w, v: ((mg.exp(w) * v).sum(), w), {"no_grad_set": ["exp_0"]},
        "w has no gradient: no_grad_set holds exp_0, which #0 exp makes of w",
    ),
    "in no_grad_set": (lambda x, w, v: ((w * v).sum(), w), {"no_grad_set": ["w"]}, "w has no gradient: it is in no_grad_set"),
    "an op without gradient": (lambda x, w, v: ((mg.zeros_like(w) * v).sum(), w), {}, "w has no gradient: #0 fill_zeros_like has no gradient rule"),
    "an input without gradient": (
        lambda x, w, v: (mg.where(w, v, v).sum(), w), {}, "w has no gradient: #0 where has no gradient for its input 'condition'",
    ),
    "a dead branch": (dead, {}, "w has no gradient: dead branch: no operator before the loss reads exp_0"),
    "nobody reads it": (lambda x, w, v: (v.sum(), w), {}, "w has no gradient: dead branch: no operator before the loss reads w"),
    "not in parameter_list": (
        lambda x, w, v: ((w * v).sum(), w), {"parameter_list": ["v"]},
        "w has no gradient: nobody asked for it: it is not in parameter_list, or not trainable",
    ),
    "data": (
        lambda x, w, v: ((x * v).sum(), x), {}, "x has no gradient: nobody asked for it, and nothing that was asked for lies behind it",
    ),
    "no backward": (lambda x, w, v: (None, w), {}, "w has no gradient: no backward part was appended yet"),
    "integers": (
        lambda x, w, v: (v.sum(), mg.argmax(w)), {}, "arg_max_0 has no gradient: it holds int64 numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CUTS)
def test_the_exact_cut_is_named(case):
    build, options, text = CUTS[case]
    assert explained(build, **options).startswith(text)


def test_several_cuts_are_all_named():
    def build(x, w, v):
        h = mg.exp(w)
        h.stop_gradient = True
        return (h * v + mg.zeros_like(w)).sum(), w

    assert explained(build).splitlines() == [
        "w has no gradient:",
        "  stop_gradient at exp_0, which #0 exp makes of w",
        "  #2 fill_zeros_like has no gradient rule",
    ]


def test_a_loop_on_the_way_is_a_step_of_the_path():
    def build(x, w, v):
        _, s = static.while_loop(
            lambda i, s: i < 2, lambda i, s: [i + 1, s * w], [np.asarray(0), v * 1.0]
        )
        return s.sum(), w

    assert "w → #1 while → while_1 → #2 reduce_sum" in explained(build)


def test_an_operator_is_no_value_and_a_block_is_explained_like_its_program():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 2.0)
        loss = w * w
    for asked in (
        static.net.Operator("exp", {"x": "a"}, {"out": "b"}),
        program.global_block().ops[0],
    ):
        with pytest.raises(DTypeError, match="no Tensor and no Variable"):
            mg.why(asked)
    assert str(mg.why(program.global_block())) == str(mg.why(program))
    with static.program_guard(program):
        static.append_backward(loss)
    assert str(mg.why(program.global_block())).startswith("the gradient of w is w@GRAD")


# -- which paths there are, and where each ends ------------------------------------------


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        static.data("x", [2])
        static.parameter("w", [1.0, 2.0]), static.parameter("v", [3.0, 4.0])
        yield program


def named(program):
    block = program.global_block()
    return block.var("x"), block.var("w"), block.var("v")


def why(value):
    return str(mg.why(value)).splitlines()


def test_all_paths_are_shown_if_there_are_no_more_than_eight(prog):
    _, w, v = named(prog)
    eight = nine = None
    for _ in range(3):
        eight = mg.sin(w if eight is None else eight) + mg.cos(w if eight is None else eight)
    for _ in range(2):
        at = v if nine is None else nine
        nine = mg.sin(at) + mg.cos(at) + mg.tanh(at)
    static.append_backward(eight.sum() + nine.sum())
    lines = why(w)
    assert (lines[0], len(lines)) == ("the gradient of w is w@GRAD, from 8 paths:", 9)
    assert len(set(lines)) == 9
    lines = why(v)
    assert (lines[0], lines[-1], len(lines)) == (
        "the gradient of v is v@GRAD, from 9 paths:",
        "  … and 1 more",
        10,
    )


def test_what_is_found_is_shown_as_text(prog):
    _, w, _ = named(prog)
    static.append_backward(mg.sin(w).sum())
    found = mg.why(w)
    assert found._repr_mimebundle_() == {"text/plain": str(found)}
    assert repr(found) == str(found)
    assert (found.count, found.name, found.gradient) == (1, "w", "w@GRAD")


def test_a_value_on_the_way_has_its_paths_from_where_it_is_made(prog):
    _, w, v = named(prog)
    h = w + v
    a = h + v
    prog.global_block().append_op("assign", {"x": mg.sin(v)}, {"out": h})
    b = h + a
    static.append_backward(b.sum(), no_grad_set={"sin_0"})
    end = "→ #1 add → add_1 → #4 add → add_2 → #5 reduce_sum → reduce_sum_0"
    assert why(w) == ["the gradient of w is w@GRAD, from 1 path:", f"  w → #0 add → add_0 {end}"]
    assert why(v) == [
        "the gradient of v is v@GRAD, from 2 paths:",
        f"  v → #0 add → add_0 {end}",
        f"  v {end}",
    ]
    assert why(h) == ["the gradient of add_0 is add_0@GRAD, from 1 path:", f"  add_0 {end}"]
    assert why(b)[1:] == ["  add_2 → #5 reduce_sum → reduce_sum_0"]
    assert why(prog.global_block().var("reduce_sum_0"))[1:] == ["  reduce_sum_0"]


def test_an_operator_that_reads_a_value_twice_is_one_path_and_two_outputs_are_two(prog):
    _, w, v = named(prog)
    a, b = mg.split(v, 2)
    static.append_backward((w * w).sum() + (a * b).sum())
    assert why(w)[1:] == ["  w → #1 mul → mul_0 → #2 reduce_sum → reduce_sum_0 → #5 add → add_0"]
    end = "→ #3 mul → mul_1 → #4 reduce_sum → reduce_sum_1 → #5 add → add_0"
    assert why(v)[1:] == [f"  v → #0 split → split_0 {end}", f"  v → #0 split → split_1 {end}"]


def test_every_end_of_every_way_is_named_once(prog):
    _, w, _ = named(prog)
    a, b = mg.split(w, 2)
    b.stop_gradient = True
    c = a * b
    c.stop_gradient = True
    mg.exp(a)
    mg.argmax(w), mg.argmax(w)
    static.append_backward(c.sum() + c.sum())
    assert why(w) == [
        "w has no gradient:",
        "  stop_gradient at split_1, which #0 split makes of w",
        "  #3 arg_max has no gradient rule",
        "  #4 arg_max has no gradient rule",
        "  stop_gradient at mul_0, which #1 mul makes of split_0",
        "  dead branch: no operator before the loss reads exp_0",
    ]
    assert why(b) == ["split_1 has no gradient: it is marked stop_gradient"]


def test_a_way_that_ends_in_whole_numbers_or_in_a_condition_is_named(prog):
    _, w, v = named(prog)
    y = static.cond(v.sum() > 0, lambda: w * 2.0, lambda: w)
    loss = (y.astype("int64").astype("float64") + w).sum()
    static.append_backward(loss)
    assert why(v) == ["v has no gradient: #1 greater_than has no gradient rule"]
    assert why(w)[1:] == ["  w → #5 add → add_0 → #6 reduce_sum → reduce_sum_1"]
    assert why(y)[0] == "cond_0 has no gradient: #3 discretize has no gradient rule"


def test_the_last_call_counts(prog):
    _, w, v = named(prog)
    first = (w * v).sum()
    static.append_backward(first, no_grad_set={"w"})
    assert why(w) == ["w has no gradient: it is in no_grad_set"]
    static.append_backward(mg.sin(v).sum())
    assert why(w)[0] == "w has no gradient:"
    assert "  dead branch: no operator before the loss reads reduce_sum_0" in why(w)
    assert why(v) == [
        "the gradient of v is v@GRAD@2, from 1 path:",
        "  v → #5 sin → sin_0 → #6 reduce_sum → reduce_sum_1",
    ]


def test_a_gradient_inside_a_loop_is_explained_there(prog):
    x, w, _ = named(prog)
    seen = []

    def body(i, s):
        y = (s * s * w).sum()
        (g,) = static.gradients(y, [s])
        seen[:] = [s, y]
        return [i + 1, s + g]

    _, out = static.while_loop(lambda i, s: i < 2, body, [0, x])
    inside, target = seen
    path = "  x@step_0 → #0 mul → mul_0 → #1 mul → mul_1 → #2 reduce_sum → reduce_sum_0"
    assert why(inside) == ["the gradient of x@step_0 is x@step_0@GRAD, from 1 path:", path]
    assert why(target)[1:] == ["  reduce_sum_0"]
    assert why(w) == [
        "w has no gradient: nobody asked for it: it is not in parameter_list, or not trainable"
    ]
    static.append_backward(mg.exp(w).sum())
    assert why(w)[1:] == ["  w → #1 exp → exp_0 → #2 reduce_sum → reduce_sum_1"]
    assert why(inside)[1:] == [path]
    assert why(out) == [
        "while_1 has no gradient: dead branch: no operator before the loss reads while_1"
    ]


def test_a_variable_of_a_block_without_a_backward_part_has_none(prog):
    x, w, _ = named(prog)
    inside = []
    y = static.cond(x.sum() > 0, lambda: inside.append(w * 2.0) or inside[0], lambda: w)
    static.append_backward(y.sum())
    assert why(inside[0]) == [
        f"{inside[0].name} has no gradient: no backward part was appended yet: static.append_backward(loss)"
    ]
    assert why(w)[0] == "the gradient of w is w@GRAD, from 1 path:"


def test_names_that_want_no_gradient_end_a_way_and_others_go_on(prog):
    _, w, v = named(prog)
    a, b = mg.split(w, 2)
    static.append_backward((a * v[:1] + b).sum(), no_grad_set=["split_1"])
    assert why(w)[0] == "the gradient of w is w@GRAD, from 1 path:"
    assert "split_0" in why(w)[1]
    assert why(b) == ["split_1 has no gradient: it is in no_grad_set"]


def test_a_parameter_that_is_written_on_the_way_has_the_paths_of_its_first_value(prog):
    x, w, v = named(prog)
    y, z = w + v, x + v
    for written in (w, x):
        prog.global_block().append_op("assign", {"x": mg.sin(v)}, {"out": written})
    x.stop_gradient = False
    static.gradients([y.sum() + z.sum()], [w, x])
    assert why(w)[1:] == ["  w → #0 add → add_0 → #6 reduce_sum → reduce_sum_0 → #8 add → add_2"]
    assert why(x)[1:] == ["  x → #1 add → add_1 → #7 reduce_sum → reduce_sum_1 → #8 add → add_2"]


def test_what_has_no_gradient_has_no_path(prog):
    _, w, v = named(prog)
    static.append_backward(v.sum())
    assert (mg.why(w).count, mg.why(w).paths, mg.why(w).gradient) == (0, [], "")


# -- with the numbers of a run -----------------------------------------------------------


def deep(function, times):
    def build(x, w):
        h = w * x
        for _ in range(times):
            h = function(h)
        return h.sum()

    return build


NUMBERS = {
    "dead units": (lambda x, w: mg.relu(w * x - 9).sum(), [1, 2], "0: lost first by #6 relu_grad, which got 1"),
    "a closed gate": (lambda x, w: (w * x).sum(), [0, 0], "0: lost first by #4 mul_grad"),
    "the root of 0": (lambda x, w: (mg.sqrt(w * x)).sum(), [0, 1], "NaN: made first by #5 sqrt_grad"),
    "the logarithm of 0": (lambda x, w: mg.log(w * x).sum(), [0, 1], "began in the forward pass at #1 log (saved x: 0 to 2"),
    "data": (lambda x, w: (w * x).sum(), [np.nan, 1], "in the data that #0 mul reads (saved y: nan, 1 of 2 are NaN)"),
    "a saturated chain": (deep(mg.sigmoid, 20), [1, 1], "it vanishes"),
    "a growing chain": (deep(lambda h: h * 10, 10), [1, 1], "it explodes"),
    "a healthy one": (deep(mg.tanh, 3), [1, 1], ""),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NUMBERS)
def test_the_operator_where_a_gradient_goes_wrong_is_named(name):
    build, fed, said = NUMBERS[name]
    program, scope = static.Program(), static.Scope()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        ((_, gradient),) = static.append_backward(build(x, w))
    (value,) = static.Executor().run(program, {"x": np.array(fed, float)}, gradient, scope=scope)
    told = mg.why(w, scope)
    np.testing.assert_array_equal(told.total, value)
    assert said in told.note and bool(told.note) == bool(told.repair) == bool(said)


def test_of_a_loop_in_a_loop_the_last_turn_is_told(prog):
    x, w, _ = named(prog)
    seen = []

    def body(i, s):
        y = (s * s * w).sum()
        (g,) = static.gradients(y, [s])
        seen[:] = [s]
        return [i + 1, s + g]

    static.while_loop(lambda i, s: i < 2, body, [0, x])
    scope = static.Scope()
    static.Executor().run(prog, {"x": [1.0, 0.5]}, scope=scope)
    np.testing.assert_allclose(mg.why(seen[0], scope).total, [6.0, 10.0])  # 2 s w, of s = [3, 2.5]


def test_numbers_are_those_of_a_run_of_the_same_program(prog):
    _, w, _ = named(prog)
    static.append_backward((w * w).sum())
    for wrong in (static.Scope(), 3):
        with pytest.raises(DTypeError, match=r"the Scope of a run[\s\S]*exe.run"):
            mg.why(w, wrong)
