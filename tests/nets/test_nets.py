"""Operators, nets and their backward."""

from __future__ import annotations

import random

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ProgramError
from minigrad.nets.backward import operators
from minigrad.primitives.registry import RuleError
from minigrad.static import net
from minigrad.static.run.interpreter import Scope as ExecutorScope
from tests.viz.measured import measured
from tests.viz.needs import needs_layout


def op(type, out, attrs=None, **inputs):
    return net.Operator(type, inputs, {"out": out}, attrs)


def run(forward, values, no_grad=(), **seeds):
    scope = net.Scope({**values, **{f"{name}@GRAD": seed for name, seed in seeds.items()}})
    forward.run(scope)
    net.Backward(forward, no_grad).run(scope)
    return scope


def lines(made):
    return [str(inner) for inner in operators(net.NetOp([made]))]


def shared():
    return net.NetOp(
        [
            op("mul", "y1", x="x1", y="W"),
            op("mul", "y2", x="x2", y="W"),
            op("add", "y", x="y1", y="y2"),
        ]
    )


def halves():
    return net.NetOp([op("split", ["a", "b"], x="x"), op("square", "y", x="a")])


# -- operators ------------------------------------------------------------------------------


def test_an_operator_runs_on_a_scope_a_dictionary_and_an_executors_scope():
    executor = ExecutorScope()
    executor.values["x"] = np.array(3.0)
    for scope in (net.Scope({"x": 3.0}), {"x": 3.0}, executor):
        op("square", "y", x="x").run(scope)
        assert scope["y"] == 9.0


def test_an_unknown_type_slot_attr_and_a_missing_name_are_errors_with_a_repair():
    for make, words in [
        (lambda: op("mull", "y", x="a", y="b"), "did you mean 'mul'"),
        (lambda: op("mul", "y", x="a", z="b"), "mul has no input slot 'z'"),
        (lambda: op("mul", "y", x="a"), "mul needs 'y'"),
        (lambda: op("exp", "y", {"axes": 1}, x="a"), "exp has no attr 'axes'"),
        (lambda: net.Operator("exp", {"x": "a"}, {}), "needs a name for its output 'out'"),
        (lambda: op("exp", "y", x=[2.0]), "holds Variables or names, not 2.0"),
        (lambda: op("while", "y", x="a"), "holds blocks"),
        (lambda: net.NetOp(["exp"]), "a net holds operators and nets, not str"),
        (lambda: net.NetOp([op("exp", "y", x="a")], outputs=["z"]), "no operator of the net"),
    ]:
        with pytest.raises(ProgramError, match=words):
            make()


def test_a_type_is_registered_once():
    with pytest.raises(RuleError, match="'mul' is registered already"):
        mg.primitive(lambda x, y: x * y, type="mul")


def test_a_name_without_value_is_an_error_that_names_it_and_its_reader():
    with pytest.raises(ProgramError, match=r"'Wt' has no value .*did you mean 'W'.*\n.*matmul"):
        op("matmul", "y", x="W", y="Wt").run(net.Scope({"W": np.eye(2)}))
    with pytest.raises(ProgramError, match=r"'y@GRAD' has no value.*scope\['y@GRAD'\] = "):
        run(op("exp", "y", x="x"), {"x": 1.0})


def test_a_refused_value_quotes_the_operator_and_the_shapes():
    with pytest.raises(ProgramError, match=r"matmul\(x: float64\[2, 3\]"):
        op("matmul", "y", x="a", y="b").run({"a": np.ones((2, 3)), "b": np.ones((2, 3))})


# -- build_grad_op --------------------------------------------------------------------------


def test_the_four_processes_make_the_grad_op():
    tanh = op("tanh", "b", x="a")
    made = net.build_grad_op(tanh)
    assert made.forward_op is tanh
    assert (made.inputs, made.outputs) == (
        {"out": ["b"], "out_grad": ["b@GRAD"]},
        {"x_grad": ["a@GRAD"]},
    )


def test_the_grad_op_has_the_attrs_of_its_operator():
    made = net.build_grad_op(op("reduce_sum", "b", {"axis": 0, "keepdims": True}, x="a"))
    assert made.attrs == {"axis": 0, "keepdims": True}


def test_an_operator_without_rule_has_no_grad_op():
    for build in (net.build_grad_op, net.Backward):
        with pytest.raises(ProgramError, match="'equal' has no grad op"):
            build(op("equal", "c", x="a", y="b"))
    with pytest.raises(ProgramError, match=r"repair: Backward\(net\)"):
        net.build_grad_op(shared())


def test_operands_of_other_shapes_get_gradients_of_their_own_shape():
    scope = run(
        op("add", "y", x="x", y="b"), {"x": np.ones((3, 2)), "b": np.ones(2)}, y=np.ones((3, 2))
    )
    assert scope["b@GRAD"].tolist() == [3.0, 3.0]


# -- Backward of operators and nets ---------------------------------------------------------------


def test_an_operator_gives_its_grad_op_at_once():
    mul = op("mul", "e", x="c", y="d")
    made = net.Backward(mul)
    assert not isinstance(made, net.NetOp)
    assert str(made) == str(net.build_grad_op(mul))


@pytest.mark.parametrize("blocked", [{"e"}, {"c", "d"}, "e"])
def test_a_blocked_operator_gives_the_nop_an_empty_net(blocked):
    mul = op("mul", "e", x="c", y="d") if blocked != "e" else op("mul", "e", x="c", y="c")
    made = net.Backward(mul, blocked)
    assert isinstance(made, net.NetOp)
    assert made.ops == []
    made.run({})


def test_a_shared_name_gets_parts_in_order_of_production_and_one_sum_behind_the_last():
    assert lines(net.Backward(shared(), {"x1", "x2"})) == [
        "y1@GRAD, y2@GRAD = add_grad(y1, y2, out_grad=y@GRAD)",
        "@EMPTY@, W@GRAD@RENAME@0 = mul_grad(x2, W, out_grad=y2@GRAD)",
        "@EMPTY@, W@GRAD@RENAME@1 = mul_grad(x1, W, out_grad=y1@GRAD)",
        "W@GRAD = sum([W@GRAD@RENAME@0, W@GRAD@RENAME@1])",
    ]
    assert run(shared(), {"x1": 2.0, "x2": 5.0, "W": 3.0}, y=1.0)["W@GRAD"] == 7.0


def test_the_sum_stands_before_the_first_reader():
    diamond = net.NetOp(
        [
            op("square", "a", x="x"),
            op("square", "b", x="a"),
            op("square", "c", x="a"),
            op("add", "y", x="b", y="c"),
        ]
    )
    kinds = [each.type for each in operators(net.Backward(diamond))]
    assert kinds == ["add_grad", "square_grad", "square_grad", "sum", "square_grad"]
    assert run(diamond, {"x": 2.0}, y=1.0)["x@GRAD"] == 64.0


def test_one_operator_that_reads_a_name_twice_gives_a_net_with_a_sum():
    made = net.Backward(op("concat", "y", x=["x", "x", "x"]))
    parts = ", ".join(f"x@GRAD@RENAME@{k}" for k in range(3))
    assert lines(made)[-1] == f"x@GRAD = sum([{parts}])"
    assert run(op("mul", "y", x="x", y="x"), {"x": 3.0}, y=1.0)["x@GRAD"] == 6.0


def test_a_partly_unwanted_output_is_a_zero_right_before_its_reader():
    assert lines(net.Backward(halves(), {"b"})) == [
        "a@GRAD = square_grad(a, out_grad=y@GRAD)",
        "b@ZERO = fill_zeros_like(b)",
        "x@GRAD = split_grad(out_grad=[a@GRAD, b@ZERO])",
    ]
    scope = run(halves(), {"x": np.arange(1.0, 5.0)}, {"b"}, y=np.ones(2))
    assert scope["x@GRAD"].tolist() == [2.0, 4.0, 0.0, 0.0]


def test_an_unwanted_place_in_a_list_is_empty():
    made = net.Backward(op("concat", "y", x=["a", "b"]), {"a"})
    assert made.outputs == {"x_grad": ["@EMPTY@", "b@GRAD"]}
    values = {"a": np.ones(1), "b": np.ones(2), "y@GRAD": np.arange(3.0)}
    scope = net.Scope(values)
    made.run(scope)
    assert scope["b@GRAD"].tolist() == [1.0, 2.0]
    assert "@EMPTY@" not in scope


def test_nesting_is_mirrored():
    inner = net.fc("x", "W", "b", "h")
    outer = net.NetOp([inner, net.NetOp([op("reduce_sum", "loss", x="h")], "end")], "model")
    made = net.Backward(outer)
    assert [each.type for each in made.ops] == ["end_grad", "fc_grad"]
    assert [each.type for each in made.ops[1].ops] == ["sigmoid_grad", "add_grad", "matmul_grad"]
    assert made.forward is outer
    assert made.outputs["out"] == ["x@GRAD", "W@GRAD", "b@GRAD"]


def test_a_net_inside_whose_gradients_nobody_wants_is_an_empty_net():
    inner = net.NetOp([op("square", "a", x="x"), net.NetOp([op("exp", "b", x="a")])], "inner")
    made = net.Backward(net.NetOp([inner, op("mul", "y", x="b", y="w")]), {"x", "a", "b"})
    assert [type(each).__name__ for each in made.ops] == ["Operator", "NetOp"]
    assert made.ops[1].ops == []
    assert made.outputs["out"] == ["w@GRAD"]


def test_an_operator_without_rule_inside_a_net_is_a_nop():
    made = net.NetOp(
        [
            op("square", "a", x="x"),
            op("greater_than", "m", x="a", y="t"),
            op("cast", "w", {"dtype": "float64"}, x="m"),
            op("mul", "y", x="a", y="w"),
        ]
    )
    assert run(made, {"x": 3.0, "t": 1.0}, y=1.0)["x@GRAD"] == 6.0


def test_a_blocked_path_does_not_block_the_other_one():
    fork = net.NetOp([op("square", "y", x="x"), op("exp", "z", x="x")])
    assert run(fork, {"x": 3.0}, {"z"}, y=1.0)["x@GRAD"] == 6.0


def test_an_output_that_is_read_inside_can_leave_too():
    made = net.NetOp([op("square", "h", x="x"), op("exp", "y", x="h")], outputs=["h", "y"])
    back = net.Backward(made)
    scope = net.Scope({"x": 0.5, "y@GRAD": 1.0, "h@GRAD@RENAME@0": 10.0})
    made.run(scope)
    back.run(scope)
    assert scope["x@GRAD"] == pytest.approx(np.exp(0.25) + 10.0)


def test_an_unknown_name_in_no_grad_is_an_error():
    with pytest.raises(ProgramError, match="no_grad names 'x3'.*did you mean 'x"):
        net.Backward(shared(), {"x3"})
    with pytest.raises(ProgramError, match="takes an Operator, a NetOp or an RnnOp, not a list"):
        net.Backward([op("exp", "y", x="x")])


def test_a_name_written_twice_is_an_error_that_names_both_operators():
    for twice in (
        net.NetOp([op("square", "v", x="x"), op("exp", "v", x="v")]),
        op("exp", "x", x="x"),
    ):
        with pytest.raises(ProgramError, match=r"(?s)exp\(.*second value.*write to a new name"):
            net.Backward(twice)


def test_ten_thousand_operators_are_differentiated_at_once():
    chain = net.NetOp([op("add", f"v{k + 1}", x=f"v{k}", y=f"v{k}") for k in range(5000)])
    made = net.Backward(chain)
    assert sum(1 for _ in operators(made)) == 10_000


def random_net(seed):
    """A net of random operators with shared names, nested at random places."""
    choose = random.Random(seed)
    known, ops = ["p", "q", "r"], []
    for k in range(choose.randint(2, 9)):
        kind = choose.choice(["add", "mul", "square", "sigmoid", "tanh", "sub"])
        slots = "xy" if kind in ("add", "mul", "sub") else "x"
        ops.append(op(kind, f"v{k}", **{s: choose.choice(known[-4:]) for s in slots}))
        known.append(f"v{k}")
    while len(ops) > 3 and choose.random() < 0.7:
        low = choose.randrange(len(ops) - 1)
        high = choose.randint(low + 1, len(ops))
        ops[low:high] = [net.NetOp(ops[low:high])]
    return net.NetOp(ops), known[-1]


@pytest.mark.parametrize("seed", range(40))
def test_random_nests_agree_with_central_differences(seed):
    made, last = random_net(seed)
    start = {"p": 0.3, "q": -0.6, "r": 0.9}
    seeds = {name: float(name == last) for name in made.outputs["out"]}
    scope = run(made, start, **seeds)
    for name in start:
        slope = slope_of(made, start, name, (), lambda s: s[last])
        assert float(scope.get(f"{name}@GRAD", 0.0)) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def slope_of(forward, values, name, index, measure, step=1e-6):
    results = []
    for e in (step, -step):
        moved = {k: np.array(v, float) for k, v in values.items()}
        moved[name][index] += e
        scope = net.Scope(moved)
        forward.run(scope)
        results.append(float(measure(scope)))
    return (results[0] - results[1]) / (2 * step)


# -- RnnOp ------------------------------------------------------------------------------------


def cell():
    return net.NetOp(
        [
            op("mul", "kept", x="h_pre", y="W"),
            op("mul", "fed", x="x", y="U"),
            op("add", "s", x="kept", y="fed"),
            op("tanh", "h", x="s"),
            op("mul", "y", x="h", y="V"),
        ],
        "step",
    )


def rnn():
    return net.RnnOp(
        cell(), {"x": "xs"}, {"h_pre": ("h", "h0")}, {"y": "ys", "h": "hs"}, {"h": "hT"}
    )


@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_network_over_time_agrees_with_central_differences(length):
    rng = np.random.default_rng(length)
    values = {
        "xs": rng.normal(size=(length, 2)),
        "h0": rng.normal(size=2),
        "W": rng.normal(size=2),
        "U": rng.normal(size=2),
        "V": rng.normal(size=2),
    }
    seeds = {
        "ys": rng.normal(size=(length, 2)),
        "hs": rng.normal(size=(length, 2)),
        "hT": rng.normal(size=2),
    }
    if length == 0:
        seeds["ys"] = np.zeros(0)
    made = net.NetOp([rnn()])
    scope = run(made, values, **seeds)
    assert scope["hs"].shape == (length, 2)
    for name, value in values.items():
        assert scope[f"{name}@GRAD"].shape == value.shape
        for index in np.ndindex(value.shape):
            slope = slope_of(
                made, values, name, index, lambda s: sum((s[k] * v).sum() for k, v in seeds.items())
            )
            assert scope[f"{name}@GRAD"][index] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_gradients_of_shared_parameters_are_summed_over_the_steps():
    step = net.NetOp([op("mul", "fed", x="x", y="W"), op("add", "h", x="h_pre", y="fed")])
    made = net.RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {}, {"h": "hT"})
    scope = run(made, {"xs": np.array([1.0, 2.0, 4.0]), "h0": 0.0, "W": 1.0}, hT=1.0)
    assert scope["W@GRAD"] == 7.0
    assert [step["W@GRAD"] for step in reversed(scope["hT@SCOPES"])] == [4.0, 2.0, 1.0]


def test_what_is_blocked_in_a_network_over_time_is_empty():
    made = net.Backward(rnn(), {"xs", "W"})
    assert made.outputs == {
        "x_grad": ["@EMPTY@"],
        "start_grad": ["h0@GRAD"],
        "shared_grad": ["@EMPTY@", "U@GRAD", "V@GRAD"],
    }
    assert net.Backward(rnn(), {"ys", "hs", "hT"}).ops == []


def test_a_network_over_time_inside_a_network_over_time():
    inner = net.RnnOp(
        net.NetOp([op("mul", "g", x="g_pre", y="e")]),
        {"e": "x"},
        {"g_pre": ("g", "h_pre")},
        {},
        {"g": "h"},
    )
    outer = net.RnnOp(net.NetOp([inner]), {"x": "xs"}, {"h_pre": ("h", "h0")}, {}, {"h": "hT"})
    xs = np.array([[2.0, 3.0], [5.0, 7.0]])
    scope = run(outer, {"xs": xs, "h0": 1.0}, hT=1.0)
    assert (scope["hT"], scope["h0@GRAD"]) == (210.0, 210.0)
    assert scope["xs@GRAD"] == pytest.approx(210.0 / xs)


def test_a_memory_that_is_overwritten_without_being_read_stops_its_gradient():
    step = net.NetOp([op("square", "h", x="x"), op("square", "unused", x="h_pre")])
    made = net.RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {}, {"h": "hT"})
    scope = run(made, {"xs": np.array([1.0, 3.0]), "h0": 5.0}, hT=1.0)
    assert scope["xs@GRAD"].tolist() == [0.0, 6.0]
    assert scope["h0@GRAD"] == 0.0


def test_wrong_names_and_lengths_of_a_network_over_time_are_errors():
    step = cell()
    for arguments, words in [
        (({"z": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}), "never reads 'z'"),
        (({"x": "xs"}, {"h_pre": ("k", "h0")}, {"h": "hs"}), "never writes 'k'"),
        (({"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"y": "yT"}), "never carries on 'y'"),
        (({}, {"h_pre": ("h", "h0")}, {"h": "hs"}), "needs a sequence"),
    ]:
        with pytest.raises(ProgramError, match=words):
            net.RnnOp(step, *arguments)
    two = net.RnnOp(
        net.NetOp([op("mul", "p", x="a", y="b")]), {"a": "as", "b": "bs"}, {}, {"p": "ps"}
    )
    with pytest.raises(ProgramError, match="equally long, not {'as': 2, 'bs': 3}"):
        two.run({"as": np.ones(2), "bs": np.ones(3)})


# -- pictures ---------------------------------------------------------------------------------


def test_both_sides_and_the_step_net_are_drawn():
    made = net.NetOp([rnn(), op("reduce_sum", "loss", x="hT")])
    back = net.Backward(made)
    graph = mg.draw((made, back), detail="full").graph
    labels = [node.name for node in graph.nodes.values()]
    assert labels.count("tanh") == 1
    assert labels.count("tanh_grad") == 1
    assert any("step net backwards" in region.label for region in graph.regions.values())
    assert len(mg.draw(back, detail="full").graph.nodes) == len(graph.nodes)


@needs_layout
@pytest.mark.parametrize("seed", range(3, 12))
def test_nets_in_nets_are_folded_until_they_fit_a_page(seed):
    made, _ = random_net(seed)
    assert measured(mg.draw((made, net.Backward(made)))).width <= 850


def test_a_name_is_an_element_or_a_memory_and_not_both():
    step = net.NetOp([op("add", "o", x="h", y="x")], "step")
    with pytest.raises(ProgramError, match="'h' is both an element of a sequence and a memory"):
        net.RnnOp(step, {"x": "xs", "h": "ys"}, {"h": ("o", "h0")}, {"o": "hs"})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: op("mul", "d", x=["a", "b"], y="c"),
            "'x' of mul is one value, 2 names",
        ),
        (lambda: net.Operator("mul", ["a", "b"], {"out": "c"}), "inputs: a list of 2"),
        (lambda: op("mul", "c", x="a", y=3.0), "'float' object is not iterable"),
        (lambda: net.Operator(3, {"x": "a"}, {"out": "b"}), "no operator type '3'"),
        (lambda: op("exp", "b", x="a").run(None), r"Operator.run\(scope: None\)"),
        (lambda: net.NetOp(None), r"NetOp\(ops: None\) is not possible(.|\n)*pass a list"),
        (
            lambda: net.Backward(op("exp", "b", x="a"), 3),
            "no_grad: 3",
        ),
        (lambda: net.RnnOp("step", {"x": "xs"}, {}, {}), "a net holds operators and nets, not str"),
        (lambda: rnn().run({"xs": 1.0, "h0": 1.0}), "RnnOp.run(.|\\n)*unsized"),
    ],
)
def test_wrong_arguments_of_nets_are_quoted(make, words):
    with pytest.raises(mg.MinigradError, match=words):
        make()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: net.Operator("while", {"x": "a"}, {"out": "b"}),
        lambda: net.NetOp([3]),
        lambda: net.Backward(op("exp", "b", x="a"), no_grad={"c"}),
    ],
)
def test_a_mistake_in_a_net_is_told_with_the_line_that_made_it(mistake):
    with pytest.raises(ProgramError, match=r"\n  at test_nets\.py:\d+: "):
        mistake()


# -- names, wants and memories -----------------------------------------------------------


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
        ProgramError, match=r"^'v' is written by v = square\(x\), and\n  v = exp\(v\)\n  gives"
    ):
        net.Backward(chain)
    with pytest.raises(
        ProgramError, match=r"^'x' is an input of exp, and\n  x = exp\(x\)\n  gives"
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
        "        b = exp(a)",
        "        deep:",
        "            c = sin(b)",
        "    d = cos(c)",
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
