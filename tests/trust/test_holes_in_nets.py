"""What no test of nets looked at until a mutant survived."""

from __future__ import annotations

import numpy as np

from minigrad.static import net


def op(type, out, attrs=None, **inputs):
    return net.Operator(type, inputs, {"out": out}, attrs)


def test_two_memories_that_end_in_one_name_share_its_gradient():
    step = net.NetOp([op("mul", "p", x="a", y="x"), op("add", "h", x="p", y="b")])
    rnn = net.RnnOp(step, {"x": "xs"}, {"a": ("h", "a0"), "b": ("h", "b0")}, {}, {"h": "hT"})
    scope = net.Scope({"xs": np.array([1.0, 2.0, 3.0]), "a0": 1.0, "b0": 2.0, "hT@GRAD": 1.0})
    rnn.run(scope)
    net.Backward(rnn).run(scope)
    assert scope["hT"] == 36.0  # ((a0·x0 + b0)·x1 + itself)·x2 + itself
    assert scope["xs@GRAD"].tolist() == [12.0, 12.0, 9.0]
    assert (scope["a0@GRAD"], scope["b0@GRAD"]) == (12.0, 12.0)
