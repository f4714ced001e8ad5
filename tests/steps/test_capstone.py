"""The capstone: any function through every engine, and a bug to hunt."""

import numpy as np
import pytest
from literate import cells, load, verdict_on

import minigrad as mg
from minigrad import static
from minigrad.course.checks.capstone import plant

step = load("capstone")

ARRAY = np.array([[0.5, -1.0, 0.25], [2.0, 0.75, -0.5]])

#: function, values, wanted: chains, reuse, stretched shapes, constants on both sides, reductions
CORPUS = {
    "chain": (lambda x: mg.sum(mg.exp(mg.sin(x))), {"x": ARRAY}, ["x"]),
    "reuse": (lambda x: mg.sum(x * x + x), {"x": ARRAY}, ["x"]),
    "a stretched row": (lambda x, b: mg.sum((x + b) * x), {"x": ARRAY, "b": ARRAY[0]}, ["x", "b"]),
    "a stretched column": (
        lambda x, b: mg.mean(mg.tanh(x * b)),
        {"x": ARRAY, "b": ARRAY[:, :1]},
        ["b"],
    ),
    "a stretched number": (lambda x, s: mg.sum(x * s), {"x": ARRAY, "s": np.array(3.0)}, ["s"]),
    "the other order": (
        lambda x, b: mg.sum(mg.exp(x) / (2 + b)),
        {"b": ARRAY**2, "x": ARRAY},
        ["b"],
    ),
    "constants": (lambda x: mg.sum(2 / (3 + x * x) - (1 - x) * 4), {"x": ARRAY}, ["x"]),
    "axes": (lambda x: mg.sum(mg.mean(x * x, axis=0) * mg.sum(x, axis=0)), {"x": ARRAY}, ["x"]),
    "layers": (
        lambda x, w: mg.mean(mg.tanh(mg.matmul(mg.tanh(mg.matmul(x, w)), w)) ** 2),
        {"x": ARRAY, "w": np.array([[0.5, 0.1, -0.2], [0.3, -0.4, 0.6], [1.0, 0.2, 0.7]])},
        ["x", "w"],
    ),
}


def agree(name):
    """Four engines to twelve digits, the judge to five."""
    function, values, wanted = CORPUS[name]
    program, result = step.written(function, values, wanted)
    boxes = step.by_links(program, result, values)
    _, tensors = step.by_grad_fn(function, values, wanted)
    _, scope = step.by_net(program, result, values, wanted)
    _, found = step.by_program(function, values, wanted)
    for each in wanted:
        made = found[f"{each}@GRAD"]
        assert made.shape == values[each].shape
        truth = step.by_judge(function, values, each)
        np.testing.assert_allclose(made, truth, rtol=1e-5, atol=1e-7)
        for gradient in (boxes[each].grad, tensors[each].grad.numpy(), scope[f"{each}@GRAD"]):
            assert np.shape(gradient) == values[each].shape
            np.testing.assert_allclose(gradient, made, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CORPUS)
def test_every_engine_and_the_judge_agree(name):
    agree(name)


def test_what_was_stretched_is_summed_back():
    agree("a stretched row")
    agree("a stretched column")
    agree("a stretched number")


def test_a_box_used_twice_and_constants_on_either_side():
    agree("reuse")
    agree("constants")


def test_attributes_reach_the_kernel_and_the_rule():
    agree("axes")


def test_a_value_that_the_function_does_not_use_is_named():
    with pytest.raises(ValueError, match=r"does not use b, c: take it out of VALUES, WANTED"):
        step.written(lambda a, b, c: mg.sum(a), {name: ARRAY for name in "abc"}, ["b"])


def test_a_wish_that_is_no_value_is_named():
    with pytest.raises(ValueError, match=r"WANTED names c, d; VALUES has no such name"):
        step.written(lambda a: mg.sum(a), {"a": ARRAY}, ["d", "a", "c"])


def test_values_are_given_by_name_in_whatever_order_they_stand():
    agree("the other order")


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda x: x * x, r"one number, not Variable\(mul_0"),
        (lambda x: (mg.sum(x), 1.0)[1], r"one number, not 1\.0"),
        (lambda x: [mg.sum(x)], r"one number, not \[Variable"),
    ],
    ids=["an array", "a bare number", "a list"],
)
def test_a_result_that_is_not_one_number_is_refused(function, said):
    with pytest.raises(ValueError, match=said):
        step.written(function, {"x": ARRAY}, ["x"])


def test_an_operation_that_linked_nodes_cannot_replay_is_named():
    program, result = step.written(lambda x: mg.sum(mg.concat([x, x])), {"x": ARRAY}, ["x"])
    with pytest.raises(ValueError, match="linked nodes cannot replay 'concat'"):
        step.by_links(program, result, {"x": ARRAY})


def hunted(name, seed):
    function, values, wanted = CORPUS[name]
    program, found = step.by_program(function, values, wanted)
    return plant(program, step.feed_of(values, wanted), wanted, seed), found, name


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["reuse", "layers"])
def test_a_planted_bug_spoils_a_gradient_but_not_the_value(name, seed):
    hunt, found, _ = hunted(name, seed)
    _, values, wanted = CORPUS[name]
    names = [op.output_names[0] for op in hunt.program.global_block().ops if op.role == "forward"]
    names += [f"{each}@GRAD" for each in wanted]
    made = static.Executor().run(hunt.program, feed=step.feed_of(values, wanted), fetch_list=names)
    wrong = [
        each for each, value in zip(names, made, strict=True) if not np.allclose(value, found[each])
    ]
    assert wrong
    assert all(each.endswith("@GRAD") for each in wrong)


@pytest.mark.parametrize("seed", range(6))
def test_the_picture_shows_the_value_that_the_changed_operator_reads(seed):
    hunt, *_ = hunted("layers", seed)
    ops = hunt.program.global_block().ops
    (found,) = [text for text in map(hunt.guess, range(len(ops))) if text.startswith("Found.")]
    if "it reads" in found:
        number, other = int(found.split()[2].rstrip(",")), found.split("it reads ")[1].split()[0]
        (line,) = [
            line for line in mg.draw(hunt.program).text.splitlines() if f"#{number} " in line
        ]
        assert other in line.split(" reads ")[1]


def test_exactly_one_guess_finds_the_bug():
    hunt, *_ = hunted("layers", 3)
    ops = hunt.program.global_block().ops
    said = [hunt.guess(number) for number in range(len(ops))]
    (number,) = [i for i, text in enumerate(said) if text.startswith("Found.")]
    assert ops[number].role != "forward"
    assert all("forward is right" in said[i] for i, op in enumerate(ops) if op.role == "forward")
    assert "0x" not in repr(hunt)


def test_the_same_seed_plants_the_same_bug_and_seeds_differ():
    def texts(seed):
        hunt, *_ = hunted("layers", seed)
        return [hunt.guess(i) for i in range(len(hunt.program.global_block().ops))]

    assert texts(1) == texts(1)
    assert len({tuple(texts(seed)) for seed in range(8)}) > 3


def test_a_guess_outside_the_program_is_refused():
    hunt, *_ = hunted("reuse", 0)
    with pytest.raises(IndexError, match=r"has the operators 0 to \d+, not 99"):
        hunt.guess(99)


@pytest.mark.parametrize("guess", ["18", 1.5, True, None])
def test_a_guess_that_is_no_number_is_told_what_a_guess_is(guess):
    hunt, *_ = hunted("reuse", 0)
    with pytest.raises(TypeError, match=r"a guess is the number of an operator, from 0 to \d+"):
        hunt.guess(guess)


def test_a_program_without_backward_part_hides_no_bug():
    program, _ = step.written(*CORPUS["chain"])
    with pytest.raises(ValueError, match="give a program with a backward part"):
        plant(program, {}, [], 0)


def test_every_engine_draws_the_function_of_the_page():
    source = next(text for text in cells("capstone") if "def mine" in text)
    page = dict(vars(step))
    exec(source, page)
    function, values, wanted = page["mine"], page["VALUES"], page["WANTED"]
    program, result = step.written(function, values, wanted)
    count = len(program.global_block().ops)
    box = step.by_links(program, result, values)[result.name]
    tensor, _ = step.by_grad_fn(function, values, wanted)
    nets, _ = step.by_net(program, result, values, wanted)
    whole = step.by_program(function, values, wanted)
    for drawn in map(mg.draw, (box, tensor, nets, whole)):
        assert sum(node.kind == "op" for node in drawn.graph.nodes.values()) == count


MUTANTS = {
    "links: overwrite": (
        "each.grad = part if each.grad is None else each.grad + part",
        "each.grad = part",
    ),
    "links: nothing summed back": (
        "        return np.sum(grad, axis=thin, keepdims=True) if thin else grad",
        "        return grad",
    ),
    "links: new axes are kept": ("grad = np.sum(grad, axis=tuple(range(extra)))", "grad = grad"),
    "links: constants forgotten": (
        "self.constants = {**primitive.attrs, **attrs}",
        "self.constants = {**primitive.attrs}",
    ),
    "links: no seed": (
        "boxes[result.name].grad = np.ones_like(",
        "boxes[result.name].grad = np.zeros_like(",
    ),
    "links: the shape of the gradient": (
        'f"{slot}_shape": np.shape(box.data)',
        'f"{slot}_shape": np.shape(out_grad)',
    ),
    "grad_fn: data want gradients": (
        "requires_grad=name in wanted",
        "requires_grad=True and name not in wanted",
    ),
    "net: w is left out": ("no_grad=set(values) - set(wanted)", "no_grad=set(values)"),
    "program: parameters are data": ("if name in wanted\n", "if name not in wanted\n"),
    "judge: one-sided": ("for step in (eps, -eps):", "for step in (eps, 0):"),
    "judge: moves the user's array": ("name: values[name].copy()}", "name: values[name]}"),
    "any number of inputs": (
        "primitive is None or primitive.list_input or",
        "primitive is None or",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "capstone", *MUTANTS[name]).startswith("killed")
