"""What no test of nets looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.errors import ProgramError
from minigrad.static import net


def op(type, out, attrs=None, **inputs):
    return net.Operator(type, inputs, {"out": out}, attrs)


def recurrent():
    """h = h·W + x·U at every step."""
    step = net.NetOp([op("mul", "kept", x="h_pre", y="W"), op("mul", "fed", x="x", y="U"), op("add", "h", x="kept", y="fed")], "cell")  # fmt: skip
    return net.RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"})


def test_two_memories_that_end_in_one_name_share_its_gradient():
    step = net.NetOp([op("mul", "p", x="a", y="x"), op("add", "h", x="p", y="b")])
    rnn = net.RnnOp(step, {"x": "xs"}, {"a": ("h", "a0"), "b": ("h", "b0")}, {}, {"h": "hT"})
    scope = net.Scope({"xs": np.array([1.0, 2.0, 3.0]), "a0": 1.0, "b0": 2.0, "hT@GRAD": 1.0})
    rnn.run(scope)
    net.Backward(rnn).run(scope)
    assert scope["hT"] == 36.0  # ((a0·x0 + b0)·x1 + itself)·x2 + itself
    assert scope["xs@GRAD"].tolist() == [12.0, 12.0, 9.0]
    assert (scope["a0@GRAD"], scope["b0@GRAD"]) == (12.0, 12.0)


def test_the_grad_op_of_a_net_over_time_is_made_like_any_other():
    rnn = recurrent()
    made, whole = net.build_grad_op(rnn), net.Backward(rnn)
    assert isinstance(made, net.RnnGradOp)
    assert str(made) == str(whole)
    assert str(made.stepnet) == str(whole.stepnet)


def test_what_nobody_wants_is_not_computed_in_the_steps():
    whole, part = net.Backward(recurrent()), net.Backward(recurrent(), {"xs", "W"})
    assert {"x@GRAD", "W@GRAD"} <= set(str(whole.stepnet).replace(",", "").split())
    assert not {"x@GRAD", "W@GRAD"} & set(str(part.stepnet).replace(",", "").split())


def test_names_inside_a_step_may_want_no_gradient():
    part = net.Backward(recurrent(), "kept")
    assert part.outputs["shared_grad"] == ["@EMPTY@", "U@GRAD"]
    with pytest.raises(
        ProgramError, match="no_grad names 'keep', which 'rnn' does not have; did you mean 'kept'"
    ):
        net.Backward(recurrent(), "keep")


def test_a_grad_op_says_which_values_it_needs():
    mul, add = op("mul", "c", x="a", y="b"), op("add", "c", x="a", y="b")
    assert net.build_grad_op(mul).reads == ("a", "b")
    assert net.build_grad_op(add).reads == ()
    assert net.build_grad_op(add).inputs == {"x": ["a"], "y": ["b"], "out_grad": ["c@GRAD"]}
    assert net.build_grad_op(op("tanh", "b", x="a")).reads == ("b",)


def test_a_second_value_is_refused_with_what_made_the_first():
    chain = net.NetOp([op("square", "v", x="x"), op("exp", "v", x="v")])
    with pytest.raises(
        ProgramError, match=r"^'v' is written by v = square\(x=x\), and\n  v = exp\(x=v\)\n  gives"
    ):
        net.Backward(chain)
    with pytest.raises(
        ProgramError, match=r"^'x' is an input of exp, and\n  x = exp\(x=x\)\n  gives"
    ):
        net.Backward(op("exp", "x", x="x"))


def test_an_operator_of_several_results_writes_all_of_them():
    slots = {"param": "w", "grad": "g", "velocity": "v", "learning_rate": "lr"}
    step = net.Operator("momentum", slots, {"param_out": "w", "velocity_out": "v"}, {"mu": 0.5})
    scope = {
        "w": np.array([1.0, 2.0]),
        "g": np.array([1.0, 3.0]),
        "v": np.array([2.0, 0.0]),
        "lr": 0.1,
    }
    step.run(scope)
    assert scope["v"].tolist() == [2.0, 3.0]
    assert scope["w"].tolist() == [0.8, 1.7]


def test_a_net_is_shown_with_what_it_holds():
    inner = net.NetOp([op("exp", "b", x="a"), net.NetOp([op("sin", "c", x="b")], "deep")], "inner")
    assert str(net.NetOp([inner, op("cos", "d", x="c")], "outer")).splitlines() == [
        "outer:",
        "    inner:",
        "        b = exp(x=a)",
        "        deep:",
        "            c = sin(x=b)",
        "    d = cos(x=c)",
    ]


def test_a_step_is_a_net_under_its_name_or_one_operator():
    with pytest.raises(ProgramError, match="the step net 'cell' never reads 'z'"):
        net.RnnOp(recurrent().stepnet, {"z": "zs"}, {}, {})
    alone = net.RnnOp(
        op("add", "h", x="h_pre", y="x"), {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}
    )
    scope = net.Scope({"xs": np.array([1.0, 2.0]), "h0": 10.0})
    alone.run(scope)
    assert scope["hs"].tolist() == [11.0, 13.0]
    with pytest.raises(ProgramError, match="the step net 'step' never writes 'k'"):
        net.RnnOp(op("add", "h", x="h_pre", y="x"), {"x": "xs"}, {}, {"k": "ks"})
