"""The checkers of step 16."""

import numpy as np

from ..check import checker
from ..judge import close


@checker("16a", hint="the last step comes first; its way to the end has length 0")
def parts(parts):
    for W, h0, xs in (
        (0.5, 1.0, [1.0, 2.0, 3.0, 4.0]),
        (-2.0, 3.0, [1.0, 5.0]),
        (0.3, 2.0, [7.0]),
        (0.5, 1.0, []),
    ):
        observed = list(parts(W, h0, xs))
        expected, state, states = [], h0, []
        for x in xs:
            states.append(state)
            state = W * state + x
        way = 1.0
        for before in reversed(states):
            expected.append(before * way)
            way *= W
        close(f"the list for W = {W}, h0 = {h0}, xs = {xs}", observed, expected)


@checker("16b", hint="last step first; h@GRAD is states_grad[t] plus the step after's h_pre@GRAD")
def walk_back(walk_back, RnnOp, NetOp, Operator, Scope, backward):
    net = NetOp(
        [
            Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "decayed"}),
            Operator("add", {"x": "decayed", "y": "x"}, {"out": "sum"}),
            Operator("tanh", {"x": "sum"}, {"out": "h"}),
        ],
        "step",
    )
    four = [0.5, -0.3, 0.8, 0.1], [1.0, 5.0, -2.0, 3.0]
    for xs, states_grad in (four, ([0.4], [2.0]), ([], [])):
        scope = Scope(W=0.7, h0=0.2, xs=np.array(xs))
        RnnOp(net, "xs", "h0", "hs", "hT").run(scope)
        observed = walk_back(backward(net), list(scope["hs@SCOPES"]), list(states_grad))
        expected, way, state = 0.0, 1.0, 0.2
        for x, from_outside in zip(xs, states_grad, strict=True):
            state = np.tanh(0.7 * state + x)
            way *= 0.7 * (1 - state * state)
            expected += from_outside * way
        close(f"the gradient of the first state for T = {len(xs)}", observed, expected)


@checker("16c", hint="every step multiplies by W once; no step, no factor")
def start_gradient(start_gradient):
    for W, T in ((0.5, 4), (2.0, 10), (0.5, 1), (-1.5, 3), (0.25, 0)):
        expected = 1.0
        for _ in range(T):
            expected *= W
        close(f"the gradient for W = {W}, T = {T}", start_gradient(W, T), expected)
    close("the gradient for W = 2, T = 50", start_gradient(2.0, 50), 2.0**50)
