"""why, for programs: the paths of a gradient, or the exact cut."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static


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
        "the gradient of w is w@GRAD, from 2 path(s):",
        "  w → #0 exp → exp_0 → #1 mul → mul_0 → #3 add → add_0 → #4 reduce_sum → reduce_sum_0",
        "  w → #2 sin → sin_0 → #3 add → add_0 → #4 reduce_sum → reduce_sum_0",
    ]


def test_paths_that_part_behind_the_first_operator_are_counted_and_shown():
    def skip(x, w, v):
        h = mg.exp(w)
        return (h + mg.sin(h)).sum(), w

    assert explained(skip).splitlines() == [
        "the gradient of w is w@GRAD, from 2 path(s):",
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
    assert lines[0].endswith("from 1024 path(s):")
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


def test_what_makes_no_gradient_says_so_and_a_block_is_explained_like_its_program():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 2.0)
        loss = w * w
    forward = static.net.Operator("exp", {"x": "a"}, {"out": "b"})
    for asked in (forward, static.net.NetOp([forward]), program.global_block().ops[0]):
        assert str(mg.why(asked)).endswith(
            "has no gradient: none of its operators makes one; "
            "those of Backward(net) and append_backward do"
        )
    assert str(mg.why(program.global_block())) == str(mg.why(program))
    with static.program_guard(program):
        static.append_backward(loss)
    assert str(mg.why(program.global_block())).startswith("the gradient of w is w@GRAD")
