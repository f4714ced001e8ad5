"""The capstone: any function through every engine, and a bug to hunt."""

import ast
import itertools
import math
import shutil

import numpy as np
import pytest
from literate import ROOT, cells, load, verdict_on

import minigrad as mg
from minigrad import static
from minigrad.course.checks.capstone import plant
from minigrad.data import names

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
    _, found = step.by_backward_part(function, values, wanted)
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


def test_no_wish_at_all_is_refused_before_an_engine_is_asked():
    with pytest.raises(ValueError, match="WANTED is empty: name a value whose gradient you want"):
        step.written(lambda x: mg.sum(x), {"x": np.ones(2)}, [])


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
    program, found = step.by_backward_part(function, values, wanted)
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
    whole = step.by_backward_part(function, values, wanted)
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


# ---- the GPT ----


class Number:
    """One number, and by how much the loss moves with it: an engine of scalars."""

    def __init__(self, data, inputs=()):
        self.data, self.inputs, self.grad = data, inputs, 0.0  # inputs: (number, slope)

    def __add__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data * other.data, ((self, other.data), (other, self.data)))

    def through(self, function, slope):
        return Number(function(self.data), ((self, slope(self.data)),))

    def power(self, n):
        return self.through(lambda x: x**n, lambda x: n * x ** (n - 1))

    def backward(self):
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            number, done = stack.pop()
            if done:
                order.append(number)
            elif id(number) not in seen:
                seen.add(id(number))
                stack += [(number, True), *((each, False) for each, _ in number.inputs)]
        self.grad = 1.0
        for number in reversed(order):
            for each, slope in number.inputs:
                each.grad += slope * number.grad


def add_up(numbers):
    first, *rest = numbers
    for each in rest:
        first = first + each
    return first


def times(row, matrix):
    return [
        add_up(a * line[j] for a, line in zip(row, matrix, strict=True))
        for j in range(len(matrix[0]))
    ]


def normed(row):
    size = (add_up(a * a for a in row) * (1 / len(row)) + 1e-5).power(-0.5)
    return [a * size for a in row]


def shares(row):
    exps = [a.through(math.exp, math.exp) for a in row]
    total = add_up(exps).power(-1)
    return [a * total for a in exps]


def loss_of_scalars(p, name):
    """Letter by letter, with what earlier letters offer kept in lists: no mask, no matrices."""
    keys, values, losses = [], [], []
    word = [step.LETTERS.index(letter) for letter in f".{name}."]
    for place, (letter, following) in enumerate(itertools.pairwise(word)):
        h = [a + b for a, b in zip(p["letters"][letter], p["places"][place], strict=True)]
        h = normed(h)
        x = normed(h)
        keys.append([times(x, p[f"key{i}"]) for i in range(4)])
        values.append([times(x, p[f"value{i}"]) for i in range(4)])
        for i in range(4):
            query = times(x, p[f"query{i}"])
            fits = [add_up(a * b for a, b in zip(query, k[i], strict=True)) * 0.5 for k in keys]
            offered = zip(shares(fits), (v[i] for v in values), strict=True)
            head = [
                add_up(column)
                for column in zip(*([w * a for a in v] for w, v in offered), strict=True)
            ]
            h = [a + b for a, b in zip(h, times(head, p[f"mix{i}"]), strict=True)]
        wide = [
            a.through(lambda x: max(x, 0.0), lambda x: float(x > 0))
            for a in times(normed(h), p["wide"])
        ]
        h = [a + b for a, b in zip(h, times(wide, p["narrow"]), strict=True)]
        chance = shares(times(h, p["scores"]))[following]
        losses.append(chance.through(math.log, lambda x: 1 / x))
    return add_up(losses) * (-1 / len(losses))


def by_scalars(data):
    p = {
        name: [[Number(float(x)) for x in row] for row in value]
        for name, value in step.starts(0).items()
    }
    numbers = [x for value in p.values() for row in value for x in row]
    means, squares, losses = [0.0] * len(numbers), [0.0] * len(numbers), []
    for t, name in enumerate(data, 1):
        loss = loss_of_scalars(p, name)
        loss.backward()
        losses.append(loss.data)
        for i, x in enumerate(numbers):
            means[i] = 0.85 * means[i] + 0.15 * x.grad
            squares[i] = 0.99 * squares[i] + 0.01 * x.grad**2
            mean, square = means[i] / (1 - 0.85**t), squares[i] / (1 - 0.99**t)
            x.data, x.grad = x.data - 0.01 * mean / (square**0.5 + 1e-8), 0.0
    return losses


DATA = [str(name) for name in np.random.default_rng(1).permutation(names())]


def test_the_gpt_learns_as_on_an_engine_of_scalars():
    data = DATA[:8]
    expected = by_scalars(data)
    for losses in (
        step.by_yours(data),
        step.by_tensors(data),
        step.by_program(data, step.written_down()),
        *([step.by_c(data)] if shutil.which("cc") else []),
    ):
        np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-9)


def test_without_a_compiler_the_gpt_in_c_is_a_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "needs a C compiler" in step.by_c(DATA[:1])


def test_a_program_and_its_c_stand_side_by_side():
    function, values, wanted = CORPUS["layers"]
    whole, _ = step.by_backward_part(function, values, wanted)
    text = static.to_c(whole, fetch=[f"{name}@GRAD" for name in wanted], exact=False)
    columns = step.beside(str(whole), text[text.index("int step") :]).splitlines()
    assert columns[0].startswith("block 0:")
    assert columns[0].endswith("{")
    assert len(columns) >= len(text[text.index("int step") :].splitlines())


def test_the_gpt_has_the_sizes_of_microgpt_in_less_than_sixty_lines():
    shapes = {name: value.shape for name, value in step.starts(0).items()}
    assert sum(math.prod(shape) for shape in shapes.values()) == 4192
    assert (step.WIDTH, step.HEADS, step.BLOCK) == (16, 4, 16)
    assert not any(len(shape) < 2 for shape in shapes.values())  # no biases
    parts = [
        "Log",
        "Relu",
        "YOURS",
        "LETTERS",
        "MASK",
        "starts",
        "norm",
        "share",
        "embedding",
        "attention",
        "thinking",
        "loss_of",
        "example",
        "adam",
        "by_yours",
    ]
    text = (ROOT / "steps" / "capstone.py").read_text(encoding="utf-8")
    lines = [
        line
        for node in ast.parse(text).body
        if getattr(node, "name", ast.unparse(node).partition(" =")[0].strip("(").split(",")[0])
        in parts
        for line in ast.get_source_segment(text, node).splitlines()
        if line.strip() and '"""' not in line
    ]
    assert len(lines) > 50  # all were found
    assert len(lines) < 60


def test_the_gpt_has_as_many_functions_and_operators_as_the_text_says():
    boxes = {name: step.engine.Variable(value) for name, value in step.starts(0).items()}
    todo, functions = [step.loss_of(boxes, *step.example("al"), step.YOURS)], set()
    while todo:
        function = todo.pop().creator
        if function is not None and function not in functions:
            functions.add(function)
            todo += function.inputs
    forward, backward, _ = step.layered()
    counts = [sum(len(layer.ops) for layer in each.ops) for each in (forward, backward)]
    text = " ".join(
        (ROOT / "steps" / "capstone.py").read_text("utf-8").replace("\n# ", " ").split()
    )
    assert f"{len(functions)} functions in the graph of each name" in text
    assert f"some {counts[0] // 10 * 10} operators, and the generated" in text
    assert f"backward part {counts[1] // 10 * 10} more" in text


def test_a_name_that_is_invented_is_made_of_letters_and_ends():
    p = {name: step.engine.Variable(value) for name, value in step.starts(0).items()}
    random = np.random.default_rng(0)
    for _ in range(5):
        name = step.invent(p, random)
        assert len(name) < step.BLOCK
        assert set(name) <= set(step.LETTERS) - {"."}


def test_the_layers_of_the_gpt_have_the_gradients_of_the_whole():
    forward, backward, parameters = step.layered()
    assert [op.type for op in forward.ops] == ["embedding", "attention", "thinking", "loss"]
    assert [op.type for op in backward.ops] == [f"{op.type}_grad" for op in reversed(forward.ops)]
    x, y = step.example("anna")
    leaves = {name: value for name, value in step.starts(0).items()}
    inputs = [name for name in forward.inputs["x"] if name not in leaves]
    constants = {name: step.MASK for name in inputs if name not in ("h", "x", "y")}
    scope = step.net.Scope({**leaves, **constants, "x": x, "y": y})
    forward.run(scope)
    (loss,) = forward.outputs["out"]
    scope[f"{loss}@GRAD"] = np.ones(())
    backward.run(scope)
    p = {name: step.engine.Variable(value) for name, value in leaves.items()}
    step.loss_of(p, x, y, step.YOURS).backward()
    for name in parameters:
        np.testing.assert_allclose(scope[f"{name}@GRAD"], p[name].grad, rtol=0, atol=1e-12)
