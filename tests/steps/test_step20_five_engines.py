"""Step 20: one model, five engines."""

import json
import subprocess
import sys

import numpy as np
import pytest
from literate import ROOT, load, verdict_on

import minigrad as mg
from minigrad import data, static
from minigrad.course.check import examine
from minigrad.course.checks.step20 import NAME, NUMBER, planted_bug
from minigrad.primitives.registry import REGISTRY

step = load("step20_five_engines")


def engines():
    return {
        "links": step.by_links,
        "grad_fn": step.by_grad_fn,
        "net": step.by_net,
        "program": step.by_program,
    }


def slopes(name, eps=1e-6):
    """The judge: central differences of the loss by hand, for every number of a parameter."""
    found = np.zeros_like(step.numbers()[name])
    for place in np.ndindex(found.shape):
        up, down = step.numbers(), step.numbers()
        up[name][place] += eps
        down[name][place] -= eps
        found[place] = (step.by_hand(step.MODEL, up)[0] - step.by_hand(step.MODEL, down)[0]) / (
            2 * eps
        )
    return found


def test_the_numbers_recorded_with_another_framework():
    loss, grads, _ = step.by_hand(step.MODEL, step.numbers())
    assert abs(loss - 15.880781572111172) < 1e-12  # PyTorch 2.13.0, float64
    np.testing.assert_allclose(grads["w"][2], [6.6487, 7.6046, 1.3127], atol=5e-5)
    np.testing.assert_allclose(grads["v"].ravel(), [-1.4538, -4.4088, -5.0052], atol=5e-5)


def test_the_gradients_by_hand_stand_before_the_judge():
    _, grads, _ = step.by_hand(step.MODEL, step.numbers())
    for name in step.PARAMETERS:
        np.testing.assert_allclose(grads[name], slopes(name), rtol=1e-6, atol=1e-7)


def test_all_engines_agree_to_twelve_digits():
    loss, grads, _ = step.by_hand(step.MODEL, step.numbers())
    for engine in engines().values():
        other, others, _ = engine(step.MODEL, step.numbers())
        assert abs(other - loss) < 1e-12
        for name in step.PARAMETERS:
            assert others[name].shape == grads[name].shape
            np.testing.assert_allclose(others[name], grads[name], rtol=0, atol=1e-12)


def test_engines_leave_their_input_alone():
    for engine in engines().values():
        values = step.numbers()
        engine(step.MODEL, values)
        for name, value in step.numbers().items():
            np.testing.assert_array_equal(values[name], value)


def test_they_take_another_model_of_the_same_kind():
    model = [
        ("mul", ["x", "w"], "a"),
        ("exp", ["a"], "b"),
        ("mul", ["b", "a"], "c"),
        ("mul", ["c", "v"], "d"),
        ("sub", ["d", "t"], "e"),
        ("reduce_sum", ["e"], "loss"),
    ]
    values = {name: np.array([0.5, -0.25]) * k for k, name in enumerate("xwvt", 1)}
    a = values["x"] * values["w"]
    by_w = values["v"] * np.exp(a) * (1 + a) * values["x"]
    for engine in engines().values():
        _, grads, _ = engine(model, values)
        np.testing.assert_allclose(grads["w"], by_w, rtol=1e-14)
        np.testing.assert_allclose(grads["v"], a * np.exp(a), rtol=1e-14)


def test_creator_grad_fn_and_grad_operator_are_partners():
    _, boxes = step.by_links(step.MODEL, step.numbers())[2]
    _, tensors = step.by_grad_fn(step.MODEL, step.numbers())[2]
    program, _ = step.by_program(step.MODEL, step.numbers())[2]
    grad_ops = {
        op.forward_op.output_names[0]: op.type for op in program.global_block().ops if op.forward_op
    }
    for kind, _, name in step.MODEL:
        assert type(boxes[name].creator).__name__.lower() == kind.replace("_", "")
        assert tensors[name].grad_fn.name().endswith("Backward0")
        assert grad_ops[name] == f"{kind}_grad"


def test_the_shared_parameter_is_renamed_and_summed_in_the_program():
    ops = step.by_program(step.MODEL, step.numbers())[2][0].global_block().ops
    (added,) = [op for op in ops if op.type == "sum"]
    assert added.output_names == ["w@GRAD"]
    assert len(added.input_names) == 2


def test_one_rule_has_three_readings():
    rule = REGISTRY["tanh"].rules["x"].function
    assert rule(np.array(0.5), np.array(2.0)) == 1.5
    read = rule(mg.tensor(0.5, requires_grad=True), mg.tensor(2.0))
    assert read.grad_fn is not None
    assert read.item() == 1.5
    program = static.Program()
    with static.program_guard(program):
        made = rule(static.data("out", []), static.data("out_grad", []))
    assert isinstance(made, static.Variable)
    assert program.global_block().ops


def test_every_engine_with_a_graph_can_be_drawn():
    def kinds(drawn):
        return [node.kind for node in drawn.graph.nodes.values()]

    (box, _), (tensor, _) = (
        e(step.MODEL, step.numbers())[2] for e in (step.by_links, step.by_grad_fn)
    )
    for drawn in (mg.draw(box), mg.draw(tensor)):
        assert kinds(drawn).count("op") == len(step.MODEL)
        assert kinds(drawn).count("grad_op") == len(step.MODEL)
    for engine in (step.by_net, step.by_program):
        found = kinds(mg.draw(engine(step.MODEL, step.numbers())[2]))
        assert found.count("op") == len(step.MODEL)
        assert found.count("grad_op") == len(step.MODEL)
        assert found.count("sum") == 1


def test_in_the_picture_of_grad_fn_data_has_the_name_that_the_text_says():
    loss, names = step.by_grad_fn(step.MODEL, step.numbers())[2]
    nodes = mg.draw(loss, names=names).graph.nodes.values()
    data = [node.name for node in nodes if node.kind == "data"]
    assert data == ["x", "y of sub"]  # t is not saved: only its slot is known


def test_a_network_learns_to_read_digits():
    train, test = data.split(data.digits())
    parameters, losses, accuracies = step.train_digits(train, test, epochs=6)
    assert losses[-1] < losses[0] / 2
    assert accuracies[-1] > 0.93
    assert (step.read_digits(test.images[:40], parameters) == test.labels[:40]).mean() > 0.85


def test_the_digit_loss_of_scores_that_are_all_equal_is_the_logarithm_of_ten():
    loss = step.digit_loss(mg.tensor(np.zeros((3, 10))), mg.tensor(np.eye(10)[[1, 5, 9]]))
    assert abs(loss.item() - np.log(10)) < 1e-15
    shifted = step.digit_loss(mg.tensor(np.eye(10)[:3] * 5), mg.tensor(np.eye(10)[:3]))
    assert abs(shifted.item() - (np.log(np.exp(5) + 9) - 5)) < 1e-14


def test_the_planted_bug_is_where_the_exercise_says():
    values = step.numbers()
    program, _ = step.by_program(step.MODEL, values)[2]
    assert program.global_block().ops[NUMBER].inputs["out"] == [NAME]
    assert program.global_block().ops[NUMBER].type == "tanh_grad"
    broken = planted_bug(program)
    (line,) = [line for line in mg.draw(broken).text.splitlines() if f"#{NUMBER} " in line]
    assert line.split(" reads ")[1].split()[0] == "h"  # the picture shows it
    feed = {name: values[name] for name in ("x", "t")}
    loss, v, w = static.Executor().run(broken, feed=feed, fetch_list=["loss", "v@GRAD", "w@GRAD"])
    truth = step.by_hand(step.MODEL, values)
    assert abs(loss - truth[0]) < 1e-12
    np.testing.assert_allclose(v, truth[1]["v"], atol=1e-12)
    assert np.max(np.abs(w - truth[1]["w"])) > 1


def test_a_program_survives_the_end_of_its_process():
    text = step.by_program(step.MODEL, step.numbers())[2][0].to_json()
    feed = {name: step.numbers()[name].tolist() for name in ("x", "t")}
    script = (
        "import json, sys, numpy as np\nfrom minigrad import static\n"
        "text, feed = json.load(sys.stdin)\n"
        "feed = {n: np.array(v) for n, v in feed.items()}\n"
        "program = static.Program.from_json(text)\n"
        "(g,) = static.Executor().run(program, feed=feed, fetch_list=['v@GRAD'])\n"
        "print(json.dumps(g.tolist()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([text, feed]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = step.by_hand(step.MODEL, step.numbers())[1]["v"]
    np.testing.assert_allclose(json.loads(ran.stdout), expected, rtol=0, atol=1e-12)


def test_the_check_of_softsign_leaves_the_table_as_it_was():
    before = dict(REGISTRY)
    engines = (step.by_links, step.by_grad_fn, step.by_net, step.by_program)
    rules = (lambda x, out_grad: out_grad, lambda x, wrong_name: wrong_name)
    for rule in rules:
        assert not examine("20a", lambda x: x / (1 + np.abs(x)), rule, *engines).passed
        assert before == REGISTRY


MUTANTS = {
    "by hand: one use of w is forgotten": ("h.T @ grad_q + x.T @ grad_p", "h.T @ grad_q"),
    "by hand: a matrix not turned": ("(grad_q @ w.T)", "(grad_q @ w)"),
    "links: overwrite instead of add": ("part if each.grad is None else each.grad + part", "part"),
    "links: forward order": ("in reversed(model):                    #", "in model:  #"),
    "links: the wrong slot": ("kind.rules[slot].function(", "kind.rules[kind.inputs[0]].function("),
    "links: the seed is zero": ("np.ones_like(loss.data)", "np.zeros_like(loss.data)"),
    "grad_fn: data want gradients, parameters not": (
        "requires_grad=name in PARAMETERS",
        "requires_grad=name not in PARAMETERS",
    ),
    "net: the seed is two": ('np.ones_like(scope["loss"])', '2 * np.ones_like(scope["loss"])'),
    "net: w is left out": ("no_grad=set(values) - set(PARAMETERS)", 'no_grad={"x", "t", "w"}'),
    "slots in the other order": (
        "in zip(REGISTRY[kind].inputs, reads, strict=True)}",
        "in zip(REGISTRY[kind].inputs, reads[::-1], strict=True)}",
    ),
    "digits: the right answer is not subtracted": ("- mg.sum(scores * answers, axis=1)", ""),
    "digits: uphill": ("- rate * grad.numpy()", "+ rate * grad.numpy()"),
    "digits: the lowest score": ("np.argmax(scores", "np.argmin(scores"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step20_five_engines", *MUTANTS[name]).startswith("killed")
