"""Step 8: operators, names, gradcheck."""

import operator

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step08_operators"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.square(step.exp(step.square(x)))


SIGNS = (operator.add, operator.sub, operator.mul, operator.truediv)


def test_every_sign_with_numbers_and_arrays_on_either_side():
    for sign in SIGNS:
        for other in (2, 2.5, np.float64(2.5), np.array([4.0, 5.0])):
            v = box([1.0, 2.0])
            for made, expected in (
                (sign(v, other), sign(v.data, other)),
                (sign(other, v), sign(other, v.data)),
            ):
                assert isinstance(made, step.Variable)
                np.testing.assert_array_equal(made.data, expected)


def test_every_argument_of_every_function_passes_the_judge():
    a, b = box([3.0, -1.5]), box([2.0, 0.5])
    for sign in SIGNS:
        assert step.gradcheck(sign, a, b)
    for c in (2, 3, -1, 0.5):
        assert step.gradcheck(lambda b, c=c: b**c, b)
    for f in (
        lambda a: -a,
        lambda a: 2 - a,
        lambda b: 1 / b,
        lambda a: a * a - 3 * a,
        step.square,
        step.exp,
    ):
        assert step.gradcheck(f, b)


def test_gradcheck_names_the_argument_that_is_wrong():
    class Careless(step.Div):
        def backward(self, gy):
            x0, x1 = self.inputs[0].data, self.inputs[1].data
            return gy / x1, gy * x0 / x1**2

    a, b = box(3.0), box(2.0)
    assert step.gradcheck(lambda a: Careless()(a, b), a)
    with pytest.raises(
        AssertionError, match=r"argument 1: backward says 0\.75, the judge says -0\.75"
    ):
        step.gradcheck(lambda a, b: Careless()(a, b), a, b)
    with pytest.raises(AssertionError, match="argument 1: backward says None"):
        step.gradcheck(lambda a, b: step.square(a), a, b)


def test_gradcheck_starts_from_cleared_gradients():
    x = box(3.0)
    x.grad = np.array(100.0)
    assert step.gradcheck(step.square, x)


def test_matyas():
    x, y = box(1.0), box(1.0)
    z = 0.26 * (x**2 + y**2) - 0.48 * x * y
    z.backward()
    np.testing.assert_allclose([z.data, x.grad, y.grad], 0.04, rtol=1e-12)


def from_the_notebook():
    return run_cells(STEP, [s for s in cells(STEP) if s.startswith("def rosenbrock")])


def test_rosenbrock():
    namespace, _ = from_the_notebook()
    a, b = (namespace["Variable"](np.array(v)) for v in (0.0, 2.0))
    namespace["rosenbrock"](a, b).backward()
    assert (a.grad, b.grad) == (-2, 400)
    path = namespace["descend"](namespace["rosenbrock"], (0.0, 2.0))
    values = [namespace["rosenbrock"](*point) for point in path[::100]]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.2


def test_a_retained_second_walk_gives_27():
    x = box(3.0)
    y = x * x * x
    for _ in range(3):
        x.cleargrad()
        y.backward(retain_grad=True)
        assert x.grad == 27


def test_a_seed_of_the_learner_survives():
    x = box(3.0)
    y = step.square(x)
    y.grad = np.array(10.0)
    y.backward()
    assert x.grad == 60


def test_a_variable_says_what_it_holds():
    assert repr(box(0.5)) == "Variable(0.5)"
    assert repr(step.Variable(np.array([1.0, 2.0]), name="w")) == "Variable([1., 2.], name='w')"
    assert repr(box([[1, 2], [3, 4]])) == "Variable([[1, 2],\n          [3, 4]])"


def test_names_reach_the_picture():
    left, right = box(2.0), step.Variable(np.array(3.0), name="given")
    names = {node.name for node in mg.draw(left * right).graph.nodes.values()}
    assert {"left", "given"} <= names


def test_the_mistake_numpy_multiplies_element_by_element():
    _, printed = run_cells(STEP, [cells(STEP, "mistake")[0]])
    assert printed == "['1.0 times me' '2.0 times me']\n"
    y = np.array([10.0, 20.0]) * box([1.0, 2.0])
    assert isinstance(y, step.Variable)
    assert y.data.shape == (2,)


def test_a_variable_as_exponent_is_refused_for_now():
    with pytest.raises(TypeError, match="exercise 8a"):
        box(2.0) ** box(3.0)


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
    with step.no_grad():
        assert step.square(x).creator is None


def test_the_picture_has_one_backward_call_per_function():
    x, y = box(1.0), box(1.0)
    z = 0.26 * (x**2 + y**2) - 0.48 * x * y
    z.backward()
    nodes = mg.draw(z).graph.nodes.values()
    assert sum(n.kind == "op" for n in nodes) == sum(n.kind == "grad_op" for n in nodes) == 7


MUTANTS = {
    "minus on the right is not turned": ("return Sub()(other, self)", "return Sub()(self, other)"),
    "division on the right is not turned": (
        "return Div()(other, self)",
        "return Div()(self, other)",
    ),
    "NumPy may take over": ("    __array_ufunc__ = None", "    spare = None"),
    "numbers stay bare": (
        "inputs = tuple(as_variable(x) for x in inputs)",
        "inputs = tuple(inputs)",
    ),
    "a variable is boxed again": (
        "return x if isinstance(x, Variable) else Variable(np.asarray(x))",
        "return Variable(np.asarray(getattr(x, 'data', x)))",
    ),
    "neg keeps the sign": ("        return -gy\n", "        return gy\n"),
    "sub gives both the same": ("return gy, -gy\n", "return gy, gy\n"),
    "div forgets a sign": ("gy / x1, -gy * x0 / x1 ** 2", "gy / x1, gy * x0 / x1 ** 2"),
    "div forgets a square": ("-gy * x0 / x1 ** 2", "-gy * x0 / x1"),
    "pow keeps the exponent": ("x ** (self.c - 1)", "x ** self.c"),
    "pow drops the factor": ("return self.c * x", "return x"),
    "an old gradient is left in between": (
        "            f.output().cleargrad()",
        "            pass",
    ),
    "the seed is cleared, too": ("for f in functions[1:]:", "for f in functions:"),
    "gradcheck looks at the first argument only": (
        "for i, x in enumerate(inputs):",
        "for i, x in enumerate(inputs[:1]):",
    ),
    "gradcheck passes everything": ("raise AssertionError(", "print("),
    "gradcheck does not clear": (
        "        x.cleargrad()\n    f(*inputs)",
        "        pass\n    f(*inputs)",
    ),
    "the name is dropped": ("self.name = name", "self.name = None"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
