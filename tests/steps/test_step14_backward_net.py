"""Step 14: a network is an operator."""

import numpy as np
import pytest
from literate import load, verdict_on

step = load("step14_backward_net")


def op(type, out, **inputs):
    return step.Operator(type, inputs, {"out": out})


def example():
    return step.NetOp([op("add", "c", x="a", y="b"), op("mul", "e", x="c", y="d")], "example")


def affine(x, w, b, out):
    return step.NetOp(
        [op("mul", out + "_part", x=x, y=w), op("add", out, x=out + "_part", y=b)], "affine"
    )


def two_layers():
    return step.NetOp([affine("x", "w1", "b1", "h"), affine("h", "w2", "b2", "y")], "two_layers")


START = {"x": 1.0, "w1": 2.0, "b1": 0.5, "w2": 3.0, "b2": -1.0}


def run(net, values, no_grad=(), seed="y"):
    scope = step.Scope(values | {f"{seed}@GRAD": 1.0})
    net.run(scope)
    step.backward(net, no_grad).run(scope)
    return scope


def lines(net):
    return [line.strip() for line in str(net).splitlines() if not line.endswith(":")]


def test_the_running_example_is_20_with_the_gradients_4_4_5():
    scope = run(example(), {"a": 2.0, "b": 3.0, "d": 4.0}, seed="e")
    assert scope["e"] == 20.0
    assert [scope[f"{name}@GRAD"] for name in "abcd"] == [4.0, 4.0, 4.0, 5.0]


def test_the_chain_of_the_first_steps_keeps_its_last_digit_in_a_nest():
    inner = step.NetOp([op("square", "a", x="x"), op("exp", "b", x="a")])
    scope = run(step.NetOp([inner, op("square", "y", x="b")]), {"x": np.array(0.5)})
    assert str(scope["y"]) == "1.648721270700128"
    assert str(scope["x@GRAD"]) == "3.297442541400256"


def test_a_net_reads_what_it_does_not_write_and_says_what_leaves_it():
    net = two_layers()
    assert net.inputs == {"x": ["x", "w1", "b1", "w2", "b2"]}
    assert net.outputs == {"out": ["y"], "inner": ["h", "h_part", "y_part"]}
    late = step.NetOp([op("square", "b", x="a"), op("square", "a", x="c")])
    assert late.inputs["x"] == ["a", "c"]  # a is read before it is written


def test_an_op_gives_its_grad_op_at_once():
    mul = op("mul", "e", x="c", y="d")
    assert str(step.backward(mul)) == "c@GRAD, d@GRAD = mul_grad(x=c, y=d, out_grad=e@GRAD)"


def test_the_nesting_is_mirrored():
    assert (
        str(step.backward(two_layers()))
        == """two_layers_grad:
    affine_grad:
        y_part@GRAD, b2@GRAD = add_grad(out_grad=y@GRAD)
        h@GRAD, w2@GRAD = mul_grad(x=h, y=w2, out_grad=y_part@GRAD)
    affine_grad:
        h_part@GRAD, b1@GRAD = add_grad(out_grad=h@GRAD)
        x@GRAD, w1@GRAD = mul_grad(x=x, y=w1, out_grad=h_part@GRAD)"""
    )


def test_a_nest_has_the_gradients_of_the_flat_net():
    nest = two_layers()
    flat = step.NetOp([inner for layer in nest.ops for inner in layer.ops])
    assert lines(step.backward(nest)) == lines(step.backward(flat))
    assert dict(run(nest, START)) == dict(run(flat, START))


def test_the_gradients_agree_with_central_differences():
    scope = run(two_layers(), START)
    for name, value in START.items():
        up, down = (step.Scope(START | {name: value + e}) for e in (1e-4, -1e-4))
        two_layers().run(up)
        two_layers().run(down)
        assert scope[f"{name}@GRAD"] == pytest.approx((up["y"] - down["y"]) / 2e-4, abs=1e-9)


def test_a_real_layer_agrees_with_central_differences():
    random = np.random.default_rng(0)
    values = {
        "x": random.normal(size=(3, 2)),
        "w": random.normal(size=(2, 4)),
        "b": random.normal(size=4),
    }
    fc = step.NetOp(
        [
            op("matmul", "p", x="x", y="w"),
            op("rowwise_add", "s", x="p", b="b"),
            op("sigmoid", "y", x="s"),
        ],
        "fc",
    )
    scope = step.Scope({**values, "y@GRAD": np.ones((3, 4))})
    fc.run(scope)
    step.backward(fc).run(scope)
    for name, value in values.items():
        for place in np.ndindex(value.shape):
            move = np.zeros_like(value)
            move[place] = 1e-5
            up, down = (step.Scope({**values, name: value + sign * move}) for sign in (1, -1))
            fc.run(up)
            fc.run(down)
            slope = (up["y"].sum() - down["y"].sum()) / 2e-5
            assert scope[f"{name}@GRAD"][place] == pytest.approx(slope, abs=1e-8)


def test_all_outputs_or_all_inputs_without_gradient_give_a_nop():
    mul = op("mul", "e", x="c", y="d")
    for no_grad in ({"e"}, {"c", "d"}):
        nop = step.backward(mul, no_grad)
        assert isinstance(nop, step.NetOp)
        assert nop.ops == []
    half = step.backward(mul, {"d"})
    assert str(half) == "c@GRAD, @EMPTY@ = mul_grad(x=c, y=d, out_grad=e@GRAD)"


def test_a_nop_makes_the_next_ones_and_empties_whole_nets():
    frozen = step.backward(two_layers(), {"h"})
    assert lines(frozen) == [
        "y_part@GRAD, b2@GRAD = add_grad(out_grad=y@GRAD)",
        "@EMPTY@, w2@GRAD = mul_grad(x=h, y=w2, out_grad=y_part@GRAD)",
    ]
    assert frozen.ops[1].ops == []
    scope = run(two_layers(), START, {"h"})
    assert (scope["w2@GRAD"], scope["b2@GRAD"]) == (2.5, 1.0)
    assert not {"h@GRAD", "w1@GRAD", "@EMPTY@"} & set(scope)


def test_a_blocked_loss_leaves_nothing():
    assert lines(step.backward(two_layers(), {"y"})) == []


def test_a_name_is_reached_by_one_reader_when_another_reader_is_blocked():
    net = step.NetOp([op("square", "h", x="x"), op("square", "y", x="h"), op("exp", "z", x="h")])
    scope = step.Scope({"x": 3.0, "y@GRAD": 1.0})
    net.run(scope)
    step.backward(net, {"z"}).run(scope)
    assert scope["x@GRAD"] == 108.0  # 4x³


def test_only_wanted_gradients_leave_the_backward_net():
    grads = step.backward(two_layers(), {"x"})
    assert sorted(grads.outputs["out"]) == ["b1@GRAD", "b2@GRAD", "w1@GRAD", "w2@GRAD"]
    assert grads.inputs["x"] == ["y@GRAD", "h", "w2", "x", "w1"]


def test_the_mistake_the_rule_by_the_letter_reads_what_nobody_writes():
    net = two_layers()
    scope = step.Scope(START | {"h@GRAD": 3.0})
    net.run(scope)
    with pytest.raises(NameError, match="'h_part@GRAD' has no value in this scope"):
        step.build_grad_op(net.ops[0].ops[0]).run(scope)


def test_bad_input_is_quoted():
    with pytest.raises(ValueError, match=r"no_grad names \['w_1'\]: 'two_layers' has no"):
        step.backward(two_layers(), {"w_1"})
    with pytest.raises(LookupError, match="unknown op type 'affine'"):
        step.build_grad_op(affine("x", "w", "b", "y"))
    with pytest.raises(LookupError, match="'mul_grad' has no gradient operator"):
        step.backward(step.NetOp([step.build_grad_op(op("mul", "e", x="c", y="d"))]))


def test_an_empty_net_has_an_empty_gradient():
    assert step.NetOp([]).outputs == {"out": [], "inner": []}
    assert step.backward(step.NetOp([])).ops == []


def test_the_forward_net_is_left_as_it_was():
    net = two_layers()
    before = str(net)
    step.backward(net, {"h"})
    assert str(net) == before


def test_the_picture_shows_the_frames_and_the_operators_that_ran():
    viz = pytest.importorskip("minigrad.viz")
    net = two_layers()
    grads = step.backward(net, {"x"})
    graph = viz.draw(((net, grads), run(net, START, {"x"}))).graph
    frames = [region.label for region in graph.regions.values()]
    assert frames.count("NetOp affine") == frames.count("NetOp affine_grad") == 2
    ops = [n.name for n in graph.nodes.values() if n.kind == "grad_op"]
    assert ops == [line.split(" = ")[1].split("(")[0] for line in lines(grads)]
    values = {n.name: n.lines[0] for n in graph.nodes.values() if n.kind == "leaf_gradient"}
    assert values == {"w1@GRAD": "3", "b1@GRAD": "3", "w2@GRAD": "2.5", "b2@GRAD": "1"}


MUTANTS = {
    "not reversed": (
        "in reversed(op.ops)]\n        return NetOp(inside, op.type",
        "in op.ops]\n        return NetOp(inside, op.type",
    ),
    "nets are flattened": (
        "\n        return NetOp(inside, op.type",
        "\n        inside = [o for i in inside for o in getattr(i, 'ops', [i])]"
        "\n        return NetOp(inside, op.type",
    ),
    "no_grad is not passed on": ("mirror(inner, no_grad, known)", "mirror(inner, set(), known)"),
    "unwanted results are written": (
        "[EMPTY if name.removesuffix(GRAD) in no_grad else name",
        "[name",
    ),
    "wanted is not asked": ("if not wanted or not reached:", "if not reached:"),
    "reached is not asked": ("if not wanted or not reached:", "if not wanted:"),
    "known never grows": ("    known.update(names(grad_op.outputs))\n", ""),
    "known is a copy": ("mirror(inner, no_grad, known)", "mirror(inner, no_grad, set(known))"),
    "all outputs must be reached": ("or not reached:", "or len(reached) < len(names(op.outputs)):"),
    "all inputs must be wanted": ("if not wanted or", "if len(wanted) < len(names(op.inputs)) or"),
    "a blocked loss is known": (
        'for name in op.outputs["out"] if name not in no_grad}',
        'for name in op.outputs["out"]}',
    ),
    "inner names are lost": (
        'read |= {*names(op.inputs), *op.outputs.get("inner", [])}',
        "read |= {*names(op.inputs)}",
    ),
    "empty leaves the net": ("        written.pop(EMPTY, None)\n", ""),
    "written names are inputs": (
        "for name in names(op.inputs) if name not in written}",
        "for name in names(op.inputs)}",
    ),
    "run backwards": (
        "        for op in self.ops:\n            op.run(scope)",
        "        for op in reversed(self.ops):\n            op.run(scope)",
    ),
    "strangers are let in": ("    if strangers:", "    if False:"),
    "bias gradient not summed": ("(out_grad, out_grad.sum(axis=0))", "(out_grad, out_grad)"),
    "matmul not transposed": ("out_grad @ y.T", "out_grad @ y"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step14_backward_net", *MUTANTS[name]).startswith("killed")
