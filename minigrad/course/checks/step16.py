"""The checkers of step 16."""

import numpy as np

from ..check import checker
from ..judge import Mismatch, close


@checker("16e")
def steps_back(steps_back, RnnOp, NetOp, Operator, Scope, backward):
    net = NetOp(
        [
            Operator("mul", {"x": "h_pre", "y": "W"}, {"out": "decayed"}),
            Operator("add", {"x": "decayed", "y": "x"}, {"out": "sum"}),
            Operator("tanh", {"x": "sum"}, {"out": "h"}),
        ],
        "step",
    )
    for xs, states_grad, last in (
        ([0.5, -0.3], [2.0, 5.0], 3.0),
        ([0.4], [0.0], 1.0),
        ([0.5, -0.3, 0.8, 0.1], [1.0, 5.0, -2.0, 3.0], 0.5),
        ([], [], 3.0),
    ):
        scope = Scope(W=0.7, h0=0.2, xs=np.array(xs))
        RnnOp(net, "xs", "h0", "hs", "hT").run(scope)
        steps, totals = list(scope["hs@SCOPES"]), {"W": np.zeros(())}
        answer = steps_back(backward(net), steps, list(states_grad), last, totals)
        if not isinstance(answer, (tuple, list)) or len(answer) != 3:
            raise Mismatch(
                "what comes back", answer, "elements' gradients, state's gradient, totals"
            )
        elements: list[float] = []
        total, back = 0.0, last
        for step, from_outside in zip(reversed(steps), reversed(states_grad), strict=True):
            back = (back + from_outside) * (1 - float(step["h"]) ** 2)  # the slope of tanh
            elements.insert(0, back)
            total += back * float(step["h_pre"])
            back *= 0.7
        words = f"for the states' gradients {states_grad} and {last} for the last one"
        close(f"the gradient of the first state {words}", answer[1], back)
        if not isinstance(answer[2], dict):
            raise Mismatch("the third result", answer[2], "totals, a dictionary")
        close(f"the sum for W {words}", answer[2].get("W"), total)
        close(f"the list of gradients of the elements {words}", list(answer[0]), elements)
