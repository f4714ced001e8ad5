"""Step 7: how long a graph lives, and the switch of recording."""

import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step07_lifetime"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.square(step.exp(step.square(x)))


@contextmanager
def no_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_a_graph_goes_with_its_result():
    with no_collector():
        x = box(3.0)
        y = x * x * x
        probes = [weakref.ref(y), weakref.ref(y.creator), weakref.ref(y.creator.input)]
        y.backward()
        assert all(probe() is not None for probe in probes)
        del y
        assert all(probe() is None for probe in probes)


def test_a_very_long_graph_goes_without_recursion():
    with no_collector():
        x = y = box(1.0)
        for _ in range(30_000):
            y = y + x
        probe = weakref.ref(y.creator.input)
        del y
        assert probe() is None


def test_the_result_holds_everything_backward_needs():
    x = box(0.5)
    y = chain(x)
    gc.collect()
    y.backward()
    assert str(x.grad) == "3.297442541400256"


def test_a_function_finds_its_output_through_a_weak_reference():
    y = step.square(box(3.0))
    assert isinstance(y.creator.output, weakref.ref)
    assert y.creator.output() is y


def test_gradients_in_between_are_cleared_unless_retained():
    x = box(3.0)
    a = x * x
    y = a * x
    y.backward()
    assert (x.grad, a.grad, y.grad) == (27, None, None)
    x.cleargrad()
    y.backward(retain_grad=True)
    assert (x.grad, a.grad, y.grad) == (27, 3, 1)


def test_a_second_walk_without_retaining_is_right():
    x = box(3.0)
    y = x * x * x
    y.backward()
    x.cleargrad()
    y.backward()
    assert x.grad == 27


def test_the_mistake_a_retained_gradient_is_counted_again():
    x = box(3.0)
    y = x * x * x
    y.backward(retain_grad=True)
    x.cleargrad()
    y.backward(retain_grad=True)
    assert x.grad == 45


def test_no_grad_makes_no_links():
    x = box(3.0)
    with step.no_grad():
        y = step.square(x)
    assert y.data == 9
    assert y.creator is None
    with pytest.raises(RuntimeError, match="no_grad"):
        y.backward()
    assert step.square(x).creator is not None


def test_no_grad_is_restored_after_an_exception_and_when_nested():
    with pytest.raises(KeyError), step.no_grad():
        raise KeyError
    assert step.Config.recording
    with step.no_grad():
        with step.no_grad():
            pass
        assert not step.Config.recording
    assert step.Config.recording


def test_the_mistake_a_circle_of_strong_links_stays():
    _, printed = run_cells(STEP, ["import gc", cells(STEP, "mistake")[0], "gc.enable()"])
    assert printed == "still there\n"


def test_the_mistake_a_switch_without_finally_stays_off():
    namespace, printed = run_cells(STEP, [cells(STEP, "mistake")[2]])
    assert printed.splitlines()[0].startswith("AttributeError")
    assert printed.splitlines()[1].startswith("RuntimeError: this Variable is a leaf")
    assert namespace["Config"].recording is False


def test_living_variables_of_a_growing_loss():
    counting = next(source for source in cells(STEP) if "def living(" in source)
    counting = counting[counting.index("def living(") : counting.index("def memory(")]
    namespace, _ = run_cells(STEP, ["import gc", counting])
    living = namespace["living"]
    assert living(100, "strong", "on")[-2:] == [200, 200]
    assert living(100, "weak", "on")[-2:] == [200, 0]
    assert living(100, "weak", "off")[-2:] == [2, 0]


def test_the_numbers_of_earlier_steps_still_hold():
    x = box(0.5)
    y = chain(x)
    y.backward()
    assert (str(y.data), str(x.grad)) == ("1.648721270700128", "3.297442541400256")
    assert str(step.numerical_diff(step.square, box(2.0))) == "4.000000000004"
    a, b, d = box(2.0), box(3.0), box(4.0)
    e = (a + b) * d
    e.backward()
    assert (e.data, a.grad, b.grad, d.grad) == (20, 4, 4, 5)
    x = box(2.0)
    a = step.square(x)
    (step.square(a) + step.square(a)).backward()
    assert x.grad == 64
    x = y = box(1.0)
    for _ in range(50):
        y = y + y
    y.backward()
    assert x.grad == 2.0**50


def test_the_picture_knows_weak_links():
    x = box(3.0)
    y = x * x * x
    graph = mg.draw(y).graph
    assert sum(edge.kind == "weak" for edge in graph.edges) == 2
    y.backward()
    assert not any(node.state == "active" for node in mg.draw(y).graph.nodes.values())


MUTANTS = {
    "the cycle is kept": ("weakref.ref(output)", "lambda: output"),
    "the output is forgotten at once": ("weakref.ref(output)", "weakref.ref(Variable(y))"),
    "no_grad is ignored": ("if Config.recording:", "if True:"),
    "no_grad switches on": (
        "    Config.recording = False\n    try",
        "    Config.recording = True\n    try",
    ),
    "no_grad is not restored after an exception": (
        "    try:\n        yield\n    finally:\n        Config.recording = before",
        "    yield\n    Config.recording = before",
    ),
    "no_grad always switches on again": (
        "        Config.recording = before",
        "        Config.recording = True",
    ),
    "everything is retained": ("if not retain_grad:", "if False:"),
    "nothing is retained": ("if not retain_grad:", "if True:"),
    "leaves are cleared, too": ("output.cleargrad()\n", "[x.cleargrad() for x in f.inputs]\n"),
    "no ordering": (
        "return sorted(functions_behind(y), key=lambda f: f.generation, reverse=True)",
        "return functions_behind(y)",
    ),
    "overwrite instead of add": ("x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
    "a leaf is silent": (
        '            raise RuntimeError(\n                "this Variable is a leaf',
        '            return print(\n                "this Variable is a leaf',
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
