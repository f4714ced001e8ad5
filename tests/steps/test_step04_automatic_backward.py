"""Step 4: backward by itself."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step04_automatic_backward"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.square(step.exp(step.square(x)))


def test_one_call_gives_the_gradient_of_the_chain():
    x = box(0.5)
    y = chain(x)
    y.backward()
    assert str(x.grad) == "3.297442541400256"


def test_every_box_on_the_way_gets_its_gradient():
    x = box(0.5)
    a = step.square(x)
    b = step.exp(a)
    y = step.square(b)
    y.backward()
    np.testing.assert_allclose(
        [y.grad, b.grad, a.grad], [1, 2 * np.exp(0.25), 2 * np.exp(0.5)], rtol=1e-15
    )


def test_the_numbers_of_steps_1_and_3_still_hold():
    x = box(0.5)
    y = chain(x)
    assert str(y.data) == "1.648721270700128"
    assert str(step.numerical_diff(step.square, box(2.0))) == "4.000000000004"
    assert abs(step.numerical_diff(chain, box(0.5)) - 3.2974426293330694) < 1e-11
    assert y.creator.input.creator.input.creator.input is x
    assert y.creator.output is y


def test_the_seed_is_ones_of_the_shape_and_type_of_the_result():
    x = step.Variable(np.array([1, 2, 3], dtype=np.float32))
    y = step.square(x)
    y.backward()
    assert y.grad.dtype == np.float32
    np.testing.assert_array_equal(y.grad, [1, 1, 1])
    np.testing.assert_array_equal(x.grad, [2, 4, 6])


def test_a_seed_of_the_learner_is_used():
    x = box(3.0)
    y = step.square(x)
    y.grad = np.array(10.0)
    y.backward()
    assert x.grad == 60


def test_backward_can_start_in_the_middle():
    x = box(0.5)
    a = step.square(x)
    y = step.exp(a)
    a.backward()
    assert x.grad == 1
    assert y.grad is None


def test_the_mistake_recursion_dies_on_a_long_chain_and_the_loop_does_not():
    sources = [
        source
        for source in cells(STEP)
        if source.startswith(("def backward_recursive", "class AddOne"))
    ]
    namespace, printed = run_cells(STEP, ["import minigrad as mg", *sources])
    assert "RecursionError: maximum recursion depth exceeded" in printed
    assert "the gradient of x is None" in printed
    x, y = namespace["long_chain"](20_000)
    y.backward()
    assert x.grad == 1
    assert y.data == 20_000


def test_a_float_is_refused_with_the_repair():
    for wrong, said in ((0.5, "the float 0.5"), ([1, 2], r"the list \[1, 2\]"), (None, "NoneType")):
        with pytest.raises(TypeError, match=said):
            step.Variable(wrong)
    with pytest.raises(TypeError, match=r"write Variable\(np.array\(0.5\)\)"):
        step.Variable(0.5)


def test_a_leaf_says_that_there_is_nothing_to_walk():
    with pytest.raises(RuntimeError, match=r"leaf.*nothing to walk"):
        box(1.0).backward()


def test_a_function_object_works_once():
    square = step.Square()
    a = square(box(3.0))
    with pytest.raises(RuntimeError, match=r"this Square was called before.*Square\(\)\(x\)"):
        square(a)
    a.backward()
    assert a.creator.input.grad == 6


def test_the_result_of_a_function_is_an_array_in_a_box():
    assert isinstance(step.square(box(3.0)).data, np.ndarray)


def test_forward_and_backward_are_drawn_from_the_same_links():
    y = chain(box(0.5))
    y.backward()
    nodes = mg.draw(y).graph.nodes.values()
    assert sum(n.kind == "op" for n in nodes) == sum(n.kind == "grad_op" for n in nodes) == 3


def test_the_calls_made_are_the_forward_calls_in_reverse():
    with mg.watch(step.Function) as run:
        chain(box(0.5)).backward()
    forward = [event[1] for event in run.events if event[0] == "forward"]
    backward = [event[1] for event in run.events if event[0] == "backward"]
    assert len(forward) == 3
    assert backward == forward[::-1]


MUTANTS = {
    "no seed": ("        self.grad = np.ones_like(self.data)\n", "        pass\n"),
    "the seed is zero": ("np.ones_like", "np.zeros_like"),
    "the seed has no shape": ("np.ones_like(self.data)", "np.array(1.0)"),
    "the seed is always written": ("if self.grad is None:", "if True:"),
    "the walk stops after one function": (
        "            functions.append(x.creator)",
        "            pass",
    ),
    "the gradient of the start is passed on": (
        "f.backward(f.output.grad)",
        "f.backward(self.grad)",
    ),
    "the gradient is written to the output": (
        "x.grad = f.backward(f.output.grad)",
        "f.output.grad = f.backward(f.output.grad)",
    ),
    "a leaf is silent": (
        '        raise RuntimeError(\n            "this Variable is a leaf',
        '        return print(\n            "this Variable is a leaf',
    ),
    "no guard": ("if not isinstance(data, np.ndarray):", "if False:"),
    "a function is used twice": ('if hasattr(self, "input"):', "if False:"),
    "bare numbers in boxes": ("Variable(np.asarray(y))", "Variable(y)"),
    "square makes an exp": ("return Square()(x)", "return Exp()(x)"),
    "one-sided judge": ("np.asarray(x.data - eps)", "np.asarray(x.data)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
