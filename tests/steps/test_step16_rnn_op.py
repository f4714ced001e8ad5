"""Step 16: a network over time."""

import numpy as np
import pytest
from literate import load, verdict_on

step = load("step16_rnn_op")


def op(type, out, **inputs):
    return step.Operator(type, inputs, {"out": out})


def linear():
    return step.NetOp(
        [op("mul", "decayed", x="h_pre", y="W"), op("add", "h", x="decayed", y="x")], "step"
    )


def nonlinear():
    return step.NetOp(
        [
            op("mul", "decayed", x="h_pre", y="W"),
            op("mul", "gate", x="h_pre", y="W"),
            op("mul", "fed", x="x", y="U"),
            op("add", "s", x="decayed", y="fed"),
            op("tanh", "t", x="s"),
            op("sigmoid", "g", x="gate"),
            op("mul", "h", x="t", y="g"),
        ],
        "step",
    )


def vectors():
    return step.NetOp(
        [
            op("matmul", "decayed", x="h_pre", y="W"),
            op("matmul", "fed", x="x", y="U"),
            op("add", "s", x="decayed", y="fed"),
            op("rowwise_add", "r", x="s", b="b"),
            op("tanh", "h", x="r"),
        ],
        "step",
    )


def rnn(stepnet):
    return step.NetOp([step.RnnOp(stepnet, "xs", "h0", "hs", "hT")], "rnn_net")


def run(net, values, seeds, no_grad=()):
    scope = step.Scope({**values, **{f"{name}@GRAD": seed for name, seed in seeds.items()}})
    net.run(scope)
    step.backward(net, no_grad).run(scope)
    return scope


def numbered(stepnet, t):
    """A copy of the step net for step t; only W, U and b keep their names."""
    local = {name: f"{name}[{t}]" for name in ["x", *step.names(stepnet.outputs)]}
    local["h_pre"] = f"h[{t - 1}]" if t else "h0"
    return step.NetOp(
        [
            step.Operator(
                each.type,
                {slot: [local.get(n, n) for n in listed] for slot, listed in each.inputs.items()},
                {slot: [local[n] for n in listed] for slot, listed in each.outputs.items()},
            )
            for each in stepnet.ops
        ]
    )


def run_unrolled(stepnet, values, seeds):
    T = len(values["xs"])
    net = step.NetOp([numbered(stepnet, t) for t in range(T)])
    inputs = {f"x[{t}]": x for t, x in enumerate(values["xs"])}
    return run(net, {**values, **inputs}, {f"h[{T - 1}]": seeds["hT"]})


SAMPLE = {"W": 0.5, "h0": 1.0, "xs": np.array([1.0, 2.0, 3.0, 4.0])}


def test_four_steps_forward_and_backward():
    scope = run(rnn(linear()), SAMPLE, {"hT": 1.0}, {"hs"})
    assert scope["hs"].tolist() == [1.5, 2.75, 4.375, 6.1875]
    assert (scope["hT"], scope["W@GRAD"], scope["h0@GRAD"]) == (6.1875, 6.25, 0.0625)
    assert scope["xs@GRAD"].tolist() == [0.125, 0.25, 0.5, 1.0]


def test_w_is_summed_over_time():
    scope = run(rnn(linear()), SAMPLE, {"hT": 1.0}, {"hs"})
    parts = [inner["W@GRAD"] for inner in scope["hs@SCOPES"]]
    assert parts == [0.125, 0.375, 1.375, 4.375]
    assert sum(parts) == scope["W@GRAD"]


def test_zero_steps_are_the_identity_and_shared_names_get_zeros():
    scope = run(rnn(linear()), SAMPLE | {"xs": np.zeros(0)}, {"hT": 3.0}, {"hs"})
    assert (scope["hT"], scope["h0@GRAD"], scope["W@GRAD"]) == (1.0, 3.0, 0.0)
    assert scope["hs"].shape == scope["xs@GRAD"].shape == (0,)


def test_zero_steps_of_vectors_keep_their_shapes():
    values = vector_sample(0)
    scope = run(rnn(vectors()), values, {"hT": np.ones((1, 2)), "hs": np.zeros((0, 1, 2))})
    assert scope["hs"].shape == (0, 1, 2)
    assert scope["xs@GRAD"].shape == (0, 1, 3)
    assert scope["W@GRAD"].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def vector_sample(T):
    random = np.random.default_rng(T)
    shapes = {"xs": (T, 1, 3), "h0": (1, 2), "W": (2, 2), "U": (3, 2), "b": (2,)}
    return {name: random.normal(size=shape) for name, shape in shapes.items()}


def test_the_rnn_equals_the_unrolled_net_to_the_last_digit():
    for T in (1, 2, 3, 4, 7):
        assert_same_as_unrolled(linear, SAMPLE | {"xs": np.arange(1.0, T + 1)})
        assert_same_as_unrolled(vectors, vector_sample(T))


def test_the_rnn_equals_the_unrolled_net_when_a_step_reads_w_twice():
    for T in (1, 3):  # the sums group differently: not the last digit
        assert_same_as_unrolled(nonlinear, SAMPLE | {"U": 0.7, "xs": np.linspace(-1, 1, T)}, 1e-14)


def assert_same_as_unrolled(stepnet, values, rtol=0):
    seeds = {"hT": np.ones_like(values["h0"])}
    folded = run(rnn(stepnet()), values, seeds, {"hs"})
    unrolled = run_unrolled(stepnet(), values, seeds)
    for name in ("W", "h0"):
        np.testing.assert_allclose(folded[f"{name}@GRAD"], unrolled[f"{name}@GRAD"], rtol=rtol)
    for t in range(len(values["xs"])):
        np.testing.assert_allclose(folded["xs@GRAD"][t], unrolled[f"x[{t}]@GRAD"], rtol=rtol)


def test_gradients_of_every_state_and_of_the_last_agree_with_central_differences():
    for T in (1, 4):
        values = vector_sample(T)
        random = np.random.default_rng(99)
        seeds = {"hs": random.normal(size=(T, 1, 2)), "hT": random.normal(size=(1, 2))}
        scope = run(rnn(vectors()), values, seeds)
        for name in values:
            slopes = central_differences(values, seeds, name)
            np.testing.assert_allclose(scope[f"{name}@GRAD"], slopes, rtol=1e-6, atol=1e-8)


def central_differences(values, seeds, name):
    def loss(moved):
        inner = step.Scope(moved)
        rnn(vectors()).run(inner)
        return sum((inner[each] * seed).sum() for each, seed in seeds.items())

    slopes = np.zeros_like(values[name])
    for place in np.ndindex(slopes.shape):
        move = np.zeros_like(slopes)
        move[place] = 1e-5
        up, down = (loss({**values, name: values[name] + sign * move}) for sign in (1, -1))
        slopes[place] = (up - down) / 2e-5
    return slopes


def test_the_rnn_stands_in_a_net_like_any_other_operator():
    net = step.NetOp(
        [
            op("mul", "h0", x="a", y="W"),
            step.RnnOp(linear(), "xs", "h0", "hs", "hT"),
            op("mul", "y", x="hT", y="W"),
        ]
    )
    values = {"a": 2.0, "W": 0.5, "xs": np.array([1.0, 2.0])}
    scope = run(net, values, {"y": 1.0}, {"hs"})
    # h0 = aW, hT = (aW·W + 1)·W + 2, y = W·hT = aW⁴ + W² + 2W
    assert scope["y"] == 2 * 0.5**4 + 0.25 + 1.0
    assert scope["a@GRAD"] == 0.5**4
    assert scope["W@GRAD"] == 4 * 2 * 0.5**3 + 2 * 0.5 + 2


def test_unwanted_gradients_are_not_written():
    scope = run(rnn(linear()), SAMPLE, {"hT": 1.0}, {"hs", "xs", "W"})
    assert scope["h0@GRAD"] == 0.0625
    assert not {"xs@GRAD", "W@GRAD", "@EMPTY@"} & set(scope)
    assert step.backward(rnn(linear()), {"hs", "hT"}).ops == []


def test_step_scopes_hold_the_old_values_and_no_parameter():
    scope = run(rnn(linear()), SAMPLE, {"hT": 1.0}, {"hs"})
    assert [inner["h_pre"] for inner in scope["hs@SCOPES"]] == [1.0, 1.5, 2.75, 4.375]
    assert all("W" not in inner and inner["W"] == 0.5 for inner in scope["hs@SCOPES"])
    assert {"x", "h", "h_pre", "decayed"}.isdisjoint(scope)


def test_the_mistake_one_scope_for_all_steps_reads_the_last_state_every_time():
    scope = step.Scope(W=0.5, h=1.0)
    for element in SAMPLE["xs"]:
        scope.update(x=element, h_pre=scope["h"])
        linear().run(scope)
    scope["h@GRAD"], total = 1.0, 0.0
    for _ in SAMPLE["xs"]:
        step.backward(linear()).run(scope)
        total += scope["W@GRAD"]
        scope["h@GRAD"] = scope["h_pre@GRAD"]
    assert (scope["h_pre@GRAD"], total) == (0.0625, 8.203125)  # 6.25 is right for W


def test_a_scope_looks_up_in_its_parents_and_writes_into_itself():
    outer, middle, inner = step.Scope(W=1.0), step.Scope(), step.Scope(x=2.0)
    middle.parent, inner.parent = outer, middle
    assert (inner["W"], inner["x"]) == (1.0, 2.0)
    inner["W"] = 5.0
    assert outer["W"] == 1.0
    with pytest.raises(NameError, match="'y' has no value in this scope; it holds: W"):
        inner["y"]


def test_a_step_net_that_does_not_fit_is_refused():
    for only in (
        op("square", "h", x="h_pre"),
        op("square", "h", x="x"),
        op("add", "y", x="x", y="h_pre"),
    ):
        with pytest.raises(ValueError, match="a step net reads x and h_pre and leaves h, but this"):
            step.RnnOp(step.NetOp([only]), "xs", "h0", "hs", "hT")


def test_the_golden_numbers_of_the_earlier_steps():
    diamond = step.NetOp(
        [
            op("square", "a", x="x"),
            op("square", "b", x="a"),
            op("square", "c", x="a"),
            op("add", "y", x="b", y="c"),
        ]
    )
    assert run(diamond, {"x": 2.0}, {"y": 1.0})["x@GRAD"] == 64.0
    example = step.NetOp([op("add", "c", x="a", y="b"), op("mul", "e", x="c", y="d")])
    scope = run(example, {"a": 2.0, "b": 3.0, "d": 4.0}, {"e": 1.0})
    assert (scope["e"], scope["a@GRAD"], scope["b@GRAD"], scope["d@GRAD"]) == (20.0, 4.0, 4.0, 5.0)
    shared = step.NetOp(
        [
            op("mul", "y1", x="x1", y="W"),
            op("mul", "y2", x="x2", y="W"),
            op("add", "y", x="y1", y="y2"),
        ]
    )
    assert run(shared, {"x1": 2.0, "x2": 5.0, "W": 3.0}, {"y": 1.0})["W@GRAD"] == 7.0
    chain = step.NetOp([op("square", "a", x="x"), op("exp", "b", x="a"), op("square", "y", x="b")])
    assert str(run(chain, {"x": np.array(0.5)}, {"y": 1.0})["x@GRAD"]) == "3.297442541400256"


def test_the_picture_shows_both_step_nets_and_the_state_going_round():
    viz = pytest.importorskip("minigrad.viz")
    net = rnn(linear())
    graph = viz.draw((net, step.backward(net, {"hs"}))).graph
    labels = " ".join(region.label for region in graph.regions.values())
    assert "step net, once per step" in labels
    assert "step net backwards, last step first" in labels
    loops = [
        (graph.nodes[e.tail].name, graph.nodes[e.head].name)
        for e in graph.edges
        if e.kind == "loop"
    ]
    assert loops == [("h", "h_pre"), ("h_pre@GRAD", "h@GRAD")]


MUTANTS = {
    "steps in forward order": (
        'in zip(reversed(steps), reversed(states_grad), strict=True):\n        step["h" + GRAD]',
        'in zip(steps, states_grad, strict=True):\n        step["h" + GRAD]',
    ),
    "the state is not handed on": ('        state_grad = step["h_pre" + GRAD]\n', ""),
    "outside is forgotten": ("= from_outside + state_grad", "= state_grad"),
    "w is overwritten": ("{name: total + step[name + GRAD]", "{name: step[name + GRAD]"),
    "elements in reverse": ("elements_grad.insert(0, step[", "elements_grad.append(step["),
    "one scope for all steps": (
        "            step = Scope(x=element, h_pre=state)\n            step.parent = scope",
        "            step = scope\n            scope.update(x=element, h_pre=state)",
    ),
    "the first state in every step": (
        "Scope(x=element, h_pre=state)",
        "Scope(x=element, h_pre=scope[start])",
    ),
    "no parent": ("            step.parent = scope\n", ""),
    "the last state of no steps": (
        "        scope[last] = state\n",
        "        scope[last] = steps[-1]['h']\n",
    ),
    "states without shape": ("(len(steps), *np.shape(state)))", "-1)"),
    "elements without shape": (
        'np.reshape(elements_grad, np.shape(scope[self.inputs["x"][0]]))',
        "np.array(elements_grad)",
    ),
    "ones for sums": ("np.zeros_like(scope[name]) for name", "np.ones_like(scope[name]) for name"),
    "empty is written": (
        "            if name != EMPTY:\n                scope[name] = value\n\n\n"
        "# %% [markdown]\n# The `RnnOp`",
        "            scope[name] = value\n\n\n# %% [markdown]\n# The `RnnOp`",
    ),
    "parents are not asked": ("if self.parent is not None:", "if False:"),
    "any step net": ('        if not {"x", "h_pre"} <= {*reads}', "        if False"),
    "names that leave are not asked": (' or stepnet.outputs["out"] != ["h"]:', ":"),
    "state is shared": ('if name not in ("x", "h_pre")]', 'if name not in ("x",)]'),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step16_rnn_op", *MUTANTS[name]).startswith("killed")
