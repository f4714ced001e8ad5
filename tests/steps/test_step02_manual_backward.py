"""Step 2: backward by hand."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

step = load("step02_manual_backward")


def box(value):
    return step.Variable(np.array(value))


def walked(x):
    """The chain at x, walked back by hand: its functions and its boxes."""
    A, B, C = step.Square(), step.Exp(), step.Square()
    a = A(x)
    b = B(a)
    y = C(b)
    y.grad = np.array(1.0)
    b.grad = C.backward(y.grad)
    a.grad = B.backward(b.grad)
    x.grad = A.backward(a.grad)
    return (A, B, C), (x, a, b, y)


def test_the_three_calls_give_the_gradient_of_the_chain():
    _, (x, a, b, y) = walked(box(0.5))
    assert str(x.grad) == "3.297442541400256"
    np.testing.assert_allclose(
        [y.grad, b.grad, a.grad], [1, 2 * np.exp(0.25), 2 * np.exp(0.5)], rtol=1e-15
    )


def test_the_numbers_of_step_1_still_hold():
    def chain(x):
        return step.Square()(step.Exp()(step.Square()(x)))

    assert str(chain(box(0.5)).data) == "1.648721270700128"
    assert str(step.numerical_diff(step.Square(), box(2.0))) == "4.000000000004"
    assert abs(step.numerical_diff(chain, box(0.5)) - 3.2974426293330694) < 1e-11


def test_a_gradient_is_none_until_somebody_computes_it():
    x = box(0.5)
    y = step.Square()(x)
    assert x.grad is None
    assert y.grad is None


def test_backward_multiplies_by_what_it_gets():
    for function, slope in ((step.Square(), 6.0), (step.Exp(), np.exp(3.0))):
        function(box(3.0))
        assert function.backward(np.array(-2.0)) == -2 * slope


def test_a_function_remembers_the_box_of_its_last_call():
    function = step.Square()
    first, second = box(1.0), box(2.0)
    function(first)
    assert function.input is first
    function(second)
    assert function.input is second


def test_the_mistake_own_slopes_only_give_the_last_slope():
    namespace, printed = run_cells(
        "step02_manual_backward",
        ["import minigrad as mg", cells("step02_manual_backward", "mistake")[0]],
    )
    assert printed == "1.0\n"
    assert namespace["x"].grad != 3.297442541400256


def test_the_mistake_a_wrong_order_fails_at_none():
    A, x = step.Square(), box(0.5)
    a = A(x)
    with pytest.raises(TypeError, match="NoneType"):
        A.backward(a.grad)


def test_the_bare_function_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match=r"Function has no backward\(gy\) of its own"):
        step.Function().backward(1.0)


def test_there_are_no_links_yet():
    y = step.Square()(box(1.0))
    assert not hasattr(y, "creator")


def test_b_is_drawn_from_the_calls_really_made():
    with mg.watch(step.Function) as run:
        functions, _ = walked(box(0.5))
    assert [event[:2] for event in run.events] == [
        *(("forward", f) for f in functions),
        *(("backward", f) for f in reversed(functions)),
    ]
    nodes = mg.draw(run).graph.nodes.values()
    assert [n.side for n in nodes if n.kind == "op"] == ["forward"] * 3
    assert [n.side for n in nodes if n.kind == "grad_op"] == ["backward"] * 3


def test_b_holds_only_the_calls_made_so_far():
    with mg.watch(step.Function) as run:
        C, b = step.Square(), box(2.0)
        y = C(step.Exp()(b))
        y.grad = np.array(1.0)
        C.backward(y.grad)
    assert sum(n.kind == "grad_op" for n in mg.draw(run).graph.nodes.values()) == 1


MUTANTS = {
    "gradients start at zero": ("self.grad = None", "self.grad = 0.0"),
    "the input is forgotten": (
        "        self.input = input\n",
        "        self.input = Variable(y)\n",
    ),
    "the first input is kept": ("self.input = input", "self.__dict__.setdefault('input', input)"),
    "square drops gy": ("return 2 * x * gy", "return 2 * x"),
    "square drops the two": ("return 2 * x * gy", "return x * gy"),
    "exp drops gy": ("return np.exp(x) * gy", "return np.exp(x)"),
    "exp is its own input": ("return np.exp(x) * gy", "return x * gy"),
    "exp adds": ("return np.exp(x) * gy", "return np.exp(x) + gy - 1"),
    "one-sided judge": ("left = f(Variable(x.data - eps))", "left = f(Variable(x.data))"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step02_manual_backward", *MUTANTS[name]).startswith("killed")
