"""Step 9: arrays."""

import operator

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step09_arrays"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def numbers(*shape):
    return step.Variable(np.random.RandomState(sum(shape)).uniform(0.5, 2.0, shape))


def chain(x):
    return step.square(step.exp(step.square(x)))


SHAPES = [(), (3,), (1, 3), (2, 1), (2, 3), (1, 1), (4, 1, 3)]


def test_a_gradient_has_the_shape_of_its_value():
    for left in SHAPES:
        for right in SHAPES:
            for sign in (operator.add, operator.sub, operator.mul, operator.truediv):
                x, y = numbers(*left), numbers(*right)
                sign(x, y).backward()
                assert (x.grad.shape, y.grad.shape) == (left, right)


def test_broadcasting_agrees_with_the_judge():
    for left in SHAPES:
        for right in ((), (3,), (2, 1)):
            assert step.gradcheck(lambda x, y: x * y + x / y, numbers(*left), numbers(*right))


def test_sum_to_shape_keeps_the_total_and_refuses_what_cannot_be():
    g = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    np.testing.assert_array_equal(step.sum_to_shape(g, (3,)), [11, 22, 33])
    np.testing.assert_array_equal(step.sum_to_shape(g, (2, 1)), [[6], [60]])
    np.testing.assert_array_equal(step.sum_to_shape(g, ()), 66)
    assert step.sum_to_shape(g, (2, 3)) is g
    with pytest.raises(
        ValueError, match=r"shape \(3,\) does not belong to a value of shape \(2, 3\)"
    ):
        step.sum_to_shape(np.ones(3), (2, 3))


def test_sums_along_every_axis_agree_with_the_judge():
    x = numbers(2, 3, 4)
    for axis in (None, 0, 1, -1, (0, 2), (1, -1)):
        for keepdims in (False, True):
            y = x.sum(axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(y.data, x.data.sum(axis=axis, keepdims=keepdims))
            assert step.gradcheck(
                lambda x, a=axis, k=keepdims: step.square(x.sum(axis=a, keepdims=k)), x
            )


def test_broadcast_reshape_and_transpose_agree_with_the_judge():
    x = numbers(2, 3)
    w = numbers(3, 2)
    assert step.gradcheck(
        lambda x: step.square(x.broadcast_to(4, 2, 3)) * np.arange(24.0).reshape(4, 2, 3), x
    )
    assert step.gradcheck(lambda x, w: x.reshape(3, 2) * w, x, w)
    assert step.gradcheck(lambda x, w: x.T * w, x, w)


def test_the_matrix_product():
    x, w = numbers(2, 3), numbers(3, 4)
    y = x @ w
    np.testing.assert_allclose(y.data, x.data @ w.data)
    y.backward()
    assert (x.grad.shape, w.grad.shape) == ((2, 3), (3, 4))
    assert step.gradcheck(lambda x, w: step.square(x @ w), x, w)
    assert step.gradcheck(lambda w: np.ones((2, 3)) @ w, w)
    with pytest.raises(ValueError, match=r"not the shapes \(3,\) and \(3, 4\): reshape first"):
        numbers(3) @ w


def regression():
    random = np.random.RandomState(0)
    x = random.rand(100, 1)
    y = 5 + 2 * x + random.rand(100, 1)
    W, b = step.Variable(np.zeros((1, 1))), step.Variable(np.zeros(1))
    for _ in range(100):
        distance = x @ W + b - y
        loss = (distance**2).sum() / len(x)
        W.cleargrad()
        b.cleargrad()
        loss.backward()
        W.data = W.data - 0.1 * W.grad
        b.data = b.data - 0.1 * b.grad
    return W, b


def test_linear_regression_after_one_hundred_steps():
    W, b = regression()
    assert (W.data.shape, b.data.shape) == ((1, 1), (1,))
    assert f"{W.data.item():.6f} {b.data.item():.6f}" == "2.118074 5.466089"


def test_the_mistake_a_bias_grows_quietly_into_a_matrix():
    _, printed = run_cells(STEP, ["import minigrad as mg", cells(STEP, "mistake")[0]])
    assert printed == "b (3,) b.grad (2, 3)\nb after one step (2, 3)\n"


def test_the_judge_looks_at_every_number_by_itself():
    x = box([1.0, 2.0, 3.0])
    np.testing.assert_allclose(step.numerical_diff(lambda x: (x * x).sum(), x), [2, 4, 6])


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
    x = box(3.0)
    y = x * x * x
    for _ in range(2):
        x.cleargrad()
        y.backward(retain_grad=True)
        assert x.grad == 27
    x, y = box(1.0), box(1.0)
    (0.26 * (x**2 + y**2) - 0.48 * x * y).backward()
    np.testing.assert_allclose([x.grad, y.grad], 0.04, rtol=1e-12)


def test_the_picture_shows_shapes_on_both_sides():
    x, W, b = numbers(5, 3), numbers(3, 4), numbers(4)
    y = x @ W + b
    y.backward(retain_grad=True)
    graph = mg.draw(y, names={"x": x, "W": W, "b": b, "y": y}).graph
    lines = {node.name: " ".join(node.lines) for node in graph.nodes.values()}
    assert "3" in lines["W"]
    assert "4" in lines["W"]
    assert sum(n.kind == "grad_op" for n in graph.nodes.values()) == 2


MUTANTS = {
    "the gradient keeps the stretched shape": ("gx = sum_to_shape(gx, x.data.shape)", "pass"),
    "only leading axes are summed": (
        "stretched = [extra + i for i, n in enumerate(shape) if n == 1]",
        "stretched = []",
    ),
    "only axes of one are summed": ("(*range(extra), *stretched)", "tuple(stretched)"),
    "mean instead of sum": ("return array.sum(axis=(", "return array.mean(axis=("),
    "axes are counted from the wrong end": ("[extra + i for i, n", "[i for i, n"),
    "wrong shapes pass": ("!= array.shape:\n        raise", "== 0:\n        raise"),
    "sum hands back one number": ("return np.broadcast_to(gy, self.input.data.shape)", "return gy"),
    "sum forgets the lost axis": ("gy = np.expand_dims(gy, self.axis)", "pass"),
    "reshape keeps the new shape": ("return gy.reshape(self.input.data.shape)", "return gy"),
    "reshape reads columns first": (
        "return gy.reshape(self.input.data.shape)",
        "return gy.reshape(self.input.data.shape, order='F')",
    ),
    "transpose is not undone": ("return gy.T", "return gy.reshape(self.input.data.shape)"),
    "matmul forgets a transpose": (
        "return gy @ w.T, x.T @ gy",
        "return (gy @ w[:, ::-1].T), x.T @ gy",
    ),
    "matmul adds the wrong way": ("x.T @ gy\n", "(gy.T @ x).T * 2\n"),
    "matmul on the right is not turned": (
        "return MatMul()(other, self)",
        "return MatMul()(self, other)",
    ),
    "the judge pushes everything": ("push[i] = eps", "push[...] = eps"),
    "overwrite instead of add": ("x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
