"""Step 13: operators by name."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from literate import load, verdict_on

from minigrad.course.check import examine

step = load("step13_registry")


def op(type, out, **inputs):
    return step.Operator(type, inputs, {"out": out})


def example():
    """(a + b) * d"""
    return [op("add", "c", x="a", y="b"), op("mul", "e", x="c", y="d")]


def run(ops, **values):
    scope = step.Scope({name.replace("_GRAD", "@GRAD"): value for name, value in values.items()})
    for each in ops:
        each.run(scope)
    return scope


def with_grads(ops):
    return ops + [step.build_grad_op(each) for each in reversed(ops)]


def test_the_running_example_is_20_with_the_gradients_4_4_5():
    scope = run(with_grads(example()), a=2.0, b=3.0, d=4.0, e_GRAD=1.0)
    assert scope["e"] == 20.0
    assert [scope[f"{name}@GRAD"] for name in "abcd"] == [4.0, 4.0, 4.0, 5.0]


def test_the_chain_of_the_first_steps_keeps_its_last_digit():
    chain = [op("square", "a", x="x"), op("exp", "b", x="a"), op("square", "y", x="b")]
    scope = run(with_grads(chain), x=np.array(0.5), y_GRAD=np.array(1.0))
    assert str(scope["y"]) == "1.648721270700128"
    assert str(scope["x@GRAD"]) == "3.297442541400256"


def test_every_rule_of_the_table_agrees_with_central_differences():
    point = {"x": 1.3, "y": -0.7}
    for kind in [each for each, info in step.OPS.items() if info.grad]:
        slots = step.OPS[kind].inputs
        made = step.Operator(
            kind, {s: s for s in slots}, {"out": "v"}, {"n": 3} if kind == "power" else {}
        )
        scope = step.Scope({**{s: point[s] for s in slots}, "v@GRAD": 1.0})
        made.run(scope)
        step.build_grad_op(made).run(scope)
        for slot in slots:
            low, high = (step.Scope({**scope, slot: point[slot] + e}) for e in (-1e-5, 1e-5))
            made.run(low)
            made.run(high)
            assert scope[f"{slot}@GRAD"] == pytest.approx((high["v"] - low["v"]) / 2e-5, rel=1e-8)


def test_a_grad_op_reads_what_its_rule_names_and_nothing_else():
    mul_grad = step.build_grad_op(op("mul", "e", x="c", y="d"))
    assert mul_grad.type == "mul_grad"
    assert mul_grad.inputs == {"x": ["c"], "y": ["d"], "out_grad": ["e@GRAD"]}
    assert mul_grad.outputs == {"x_grad": ["c@GRAD"], "y_grad": ["d@GRAD"]}
    exp_grad, add_grad = (
        step.build_grad_op(each) for each in (op("exp", "v", x="u"), op("add", "c", x="a", y="b"))
    )
    assert exp_grad.inputs == {"out": ["v"], "out_grad": ["v@GRAD"]}
    assert add_grad.inputs == {"out_grad": ["c@GRAD"]}


def test_attributes_are_copied_not_shared():
    cube = step.Operator("power", {"x": "u"}, {"out": "v"}, {"n": 3})
    grad_op = step.build_grad_op(cube)
    grad_op.attrs["n"] = 99
    assert cube.attrs == {"n": 3}
    assert run(with_grads([cube]), u=2.0, v_GRAD=1.0)["u@GRAD"] == 12.0


def test_lists_of_names_are_copied_not_shared():
    made = op("mul", "e", x="c", y="d")
    grad_op = step.build_grad_op(made)
    grad_op.inputs["x"][0] = "other"
    assert made.inputs["x"] == ["c"]


def test_slots_stand_in_the_order_of_the_registry_however_they_are_given():
    scope = run(
        with_grads([step.Operator("mul", {"y": "d", "x": "c"}, {"out": "e"})]),
        c=5.0,
        d=4.0,
        e_GRAD=1.0,
    )
    assert (scope["c@GRAD"], scope["d@GRAD"]) == (4.0, 5.0)


def test_what_is_written_to_empty_is_thrown_away():
    half = step.Operator(
        "mul_grad",
        {"x": "c", "y": "d", "out_grad": "e@GRAD"},
        {"x_grad": "c@GRAD", "y_grad": step.EMPTY},
    )
    scope = run([half], c=5.0, d=4.0, e_GRAD=1.0)
    assert dict(scope) == {"c": 5.0, "d": 4.0, "e@GRAD": 1.0, "c@GRAD": 4.0}


def test_a_description_goes_through_json_and_runs_on_other_numbers():
    text = json.dumps([vars(each) for each in with_grads(example())])
    scope = run(
        [step.Operator(**record) for record in json.loads(text)], a=1.0, b=1.0, d=10.0, e_GRAD=1.0
    )
    assert (scope["e"], scope["a@GRAD"], scope["d@GRAD"]) == (20.0, 10.0, 2.0)


def test_an_operator_prints_as_one_line():
    cube = step.Operator("power", {"x": "u"}, {"out": "v"}, {"n": 3})
    assert repr(cube) == "v = power(x=u, n=3)"
    mul_grad = step.build_grad_op(example()[1])
    assert repr(mul_grad) == "c@GRAD, d@GRAD = mul_grad(x=c, y=d, out_grad=e@GRAD)"
    assert repr(op("add", "c", x=[], y=["a", "b"])) == "c = add(x=[], y=[a, b])"


def test_the_mistake_grad_ops_in_forward_order_read_what_nobody_wrote():
    ops = example()
    scope = run(ops, a=2.0, b=3.0, d=4.0, e_GRAD=1.0)
    with pytest.raises(NameError, match=r"'c@GRAD' has no value in this scope; it holds: a, b, d"):
        step.build_grad_op(ops[0]).run(scope)


def test_the_mistake_two_writers_of_one_gradient_overwrite_each_other():
    shared = [
        op("mul", "y1", x="x1", y="W"),
        op("mul", "y2", x="x2", y="W"),
        op("add", "y", x="y1", y="y2"),
    ]
    scope = run(with_grads(shared), x1=2.0, x2=5.0, W=3.0, y_GRAD=1.0)
    assert (scope["y"], scope["W@GRAD"]) == (21.0, 2.0)  # 7 is right


def test_bad_input_is_quoted():
    with pytest.raises(LookupError, match="unknown op type 'sigmiod'; known: add"):
        step.Operator("sigmiod", {"x": "a"}, {"out": "b"})
    with pytest.raises(ValueError, match="'mul' has the slots x, y, not x, z"):
        step.Operator("mul", {"x": "a", "z": "b"}, {"out": "c"})
    with pytest.raises(ValueError, match="the op type 'mul' is registered already"):
        step.register("mul", lambda x, y: x @ y)
    with pytest.raises(LookupError, match="'mul_grad' has no gradient operator: c@GRAD, d@GRAD ="):
        step.build_grad_op(step.build_grad_op(example()[1]))


def test_the_picture_shows_the_operators_and_the_grad_ops_that_ran():
    viz = pytest.importorskip("minigrad.viz")
    ops = example()
    forward, backward = (
        SimpleNamespace(type="net", inputs={}, outputs={}, attrs={}, ops=each)
        for each in (ops, with_grads(ops)[2:])
    )
    scope = run(with_grads(ops), a=2.0, b=3.0, d=4.0, e_GRAD=1.0)
    nodes = viz.draw(((forward, backward), scope)).graph.nodes.values()
    assert [n.name for n in nodes if n.kind == "op"] == ["add", "mul"]
    assert [n.name for n in nodes if n.kind == "grad_op"] == ["mul_grad", "add_grad"]
    shown = {n.name: n.lines[0] for n in nodes if n.kind == "leaf_gradient"}
    assert shown == {"a@GRAD": "4", "b@GRAD": "4", "d@GRAD": "5"}


def test_the_check_of_scale_leaves_the_registry_as_it_was():
    before = dict(step.OPS)

    def add_scale():
        step.register("scale", lambda x, *, factor: factor * x, "grad_scale", lambda out_grad: 0)

    for _ in range(2):
        given = (step.OPS, step.Operator, step.Scope, step.build_grad_op)
        assert "one with 'scale_grad'" in examine("13a", add_scale, *given).text
        assert before == step.OPS


MUTANTS = {
    "the grad type is the type": ("grad_type = find(op.type).grad  ", "grad_type = op.type  "),
    "every slot is copied": ("for slot in reads if slot in forward}", "for slot in forward}"),
    "outputs are not copied": ("forward = {**op.inputs, **op.outputs}", "forward = {**op.inputs}"),
    "attributes are forgotten": (
        "(grad_type, inputs, outputs, op.attrs)",
        "(grad_type, inputs, outputs)",
    ),
    "attributes are shared": ("self.attrs = dict(attrs or {})", "self.attrs = attrs or {}"),
    "lists are shared": ("else list(given[slot])", "else given[slot]"),
    "empty is written": ("if name != EMPTY:", "if True:"),
    "a second meaning is taken": ("if type in OPS:", "if False:"),
    "slots in the given order": (
        "\n            for slot in slots}",
        "\n            for slot in given}",
    ),
    "attributes become slots": ("if p.kind is not p.KEYWORD_ONLY]", "]"),
    "the rule of mul exchanged": ("(out_grad * y, out_grad * x)", "(out_grad * x, out_grad * y)"),
    "add forgets its second input": ("(out_grad, out_grad)", "(out_grad, 0 * out_grad)"),
    "the input for the output": ("lambda out, out_grad: out", "lambda x, out_grad: x"),
    "the value for its gradient": (
        '\n        inputs[slot + "_grad"] = [name + GRAD',
        '\n        inputs[slot + "_grad"] = [name',
    ),
    "inputs get the output's gradient": (
        "in op.inputs.items():\n        outputs",
        "in op.outputs.items():\n        outputs",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step13_registry", *MUTANTS[name]).startswith("killed")
