"""Derivatives of functions: jacobian, hessian, vjp, jvp and their relations."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, GradError, ShapeError
from tests.pieces import leaf


def cubes(x):
    return (x * x * x).sum()


def flat(value):
    """All Tensors of a result."""
    return [t for v in value for t in flat(v)] if isinstance(value, tuple) else [value]


CALLS = {
    "vjp": lambda x, **options: mg.vjp(cubes, x, **options),
    "jvp": lambda x, **options: mg.jvp(cubes, x, [1.0, 1.0], **options),
    "jacobian": lambda x, **options: mg.jacobian(cubes, x, **options),
    "hessian": lambda x, **options: mg.hessian(cubes, x, **options),
    "hvp": lambda x, **options: mg.hvp(cubes, x, [1.0, 1.0], **options),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_have_a_graph_only_where_it_is_asked_for(name):
    x = leaf([1.0, 2.0])
    assert not any(t.requires_grad for t in flat(CALLS[name](x)))
    made = flat(CALLS[name](x, create_graph=True))
    assert all(t.requires_grad for t in made)
    total = sum(mg.sum(t) for t in made[-1:])
    (slope,) = mg.grad(total, x)
    expected = {
        "vjp": [6.0, 12.0],  # the slope of 3 x²
        "jvp": [6.0, 12.0],
        "jacobian": [6.0, 12.0],
        "hessian": [6.0, 6.0],  # of 6 x
        "hvp": [6.0, 6.0],
    }
    assert slope.tolist() == expected[name]
    assert x.grad is None


@pytest.mark.parametrize("point", [[1, 2], np.array([1, 2]), np.array([1.0, 2.0], np.float32)])
def test_points_of_whole_numbers_are_taken_as_floats_and_floats_stay(point):
    point = point if isinstance(point, np.ndarray) else np.array(point)
    _, slope = mg.vjp(cubes, point)
    assert slope.tolist() == [3.0, 12.0]
    assert slope.dtype == (np.float32 if point.dtype == np.float32 else np.float64)


def test_one_point_in_a_tuple_gives_a_tuple():
    _, (slope,) = mg.vjp(cubes, (np.array([1.0, 2.0]),))
    assert slope.tolist() == [3.0, 12.0]
    ((block,),) = mg.hessian(cubes, [np.array([1.0, 2.0])])
    assert block.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    _, (along,) = mg.hvp(cubes, (np.array([1.0, 2.0]),), ([1.0, 1.0],))
    assert along.tolist() == [6.0, 12.0]


def test_blocks_of_a_hessian_stand_in_the_order_of_the_arguments():
    f = lambda x, y: (x * x * y).sum()
    x, y = np.array([2.0]), np.array([3.0])
    (xx, xy), (yx, yy) = mg.hessian(f, (x, y))
    assert [b.tolist() for b in (xx, xy, yx, yy)] == [[[6.0]], [[4.0]], [[4.0]], [[0.0]]]
    _, (gx, gy) = mg.hvp(f, (x, y), ([1.0], [10.0]))
    assert (gx.tolist(), gy.tolist()) == ([46.0], [4.0])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: mg.jvp(cubes, [1.0, 2.0], [1.0]), ShapeError, "needs 2 vectors"),
        (lambda: mg.jvp(cubes, np.ones(2), [1.0]), ShapeError, r"the jvp vector is float64\[1\], it must have the shape \[2\]"),
        (lambda: mg.vjp(lambda x: (x, x), np.ones(2), [1.0, 1.0, 1.0]), ShapeError, "vjp needs 2 vectors"),
        (lambda: mg.vjp(lambda x: (), np.ones(2)), DTypeError, "must return a Tensor or a tuple of Tensors, not None"),
        (lambda: mg.jacobian(lambda x: 3.0, np.ones(2)), DTypeError, "not 3.0"),
        (lambda: mg.hessian(lambda x: x, np.ones(2)), ShapeError, r"one number, it returned float64\[2\]"),
        (lambda: mg.hvp(lambda x: (x.sum(), x.sum()), np.ones(2), np.ones(2)), ShapeError, "it returned a tuple of 2"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_quoted(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_vectors_take_on_the_dtype_of_their_value():
    x = np.ones(2, np.float32)
    value, along = mg.jvp(lambda x: x * 2.0, x, [1.0, 3.0])
    assert (value.dtype, along.dtype, along.tolist()) == (np.float32, np.float32, [2.0, 6.0])
    _, slope = mg.vjp(lambda x: x * 2.0, x, [1.0, 3.0])
    assert (slope.dtype, slope.tolist()) == (np.float32, [2.0, 6.0])


def test_outputs_that_depend_on_nothing_or_hold_whole_numbers_have_no_slope():
    x = np.array([1.0, 2.0], np.float32)
    f = lambda x: (x * 2.0, mg.argmax(x), mg.tensor([1.0, 2.0, 3.0]))
    values, along = mg.jvp(f, x, [1.0, 1.0])
    assert [a.tolist() for a in along] == [[2.0, 2.0], 0.0, [0.0, 0.0, 0.0]]
    assert not any(v.requires_grad for v in values)
    made = mg.jacobian(f, x)
    assert [(m.shape, m.dtype.name) for m in made] == [
        ((2, 2), "float32"),
        ((2,), "float32"),
        ((3, 2), "float32"),
    ]
    assert mg.vjp(lambda x: mg.tensor(1.0), x)[1].tolist() == [0.0, 0.0]
    assert mg.hessian(lambda x: mg.tensor(1.0), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert mg.hvp(lambda x: mg.tensor(1.0), x, [1.0, 1.0])[1].tolist() == [0.0, 0.0]
    assert mg.hessian(lambda x: x.sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert mg.hvp(lambda x: x.sum(), x, [1.0, 1.0])[1].tolist() == [0.0, 0.0]


def test_an_argument_that_is_not_used_has_zeros():
    x, y = np.ones(2), np.ones(3)
    f = lambda x, y: (x * x).sum()
    assert [g.tolist() for g in mg.vjp(f, (x, y))[1]] == [[2.0, 2.0], [0.0, 0.0, 0.0]]
    assert [j.tolist() for j in mg.jacobian(f, (x, y))] == [[2.0, 2.0], [0.0, 0.0, 0.0]]
    assert mg.jvp(f, (x, y), ([1.0, 2.0], [1.0, 1.0, 1.0]))[1].tolist() == 6.0
    assert [[b.shape for b in row] for row in mg.hessian(f, (x, y))] == [
        [(2, 2), (2, 3)],
        [(3, 2), (3, 3)],
    ]


def test_a_jacobian_without_rows_has_its_shape():
    made = mg.jacobian(lambda x: x[:0], np.ones((2, 3)))
    assert made.shape == (0, 3, 2, 3)
    assert mg.jacobian(lambda x: x, np.ones(0)).shape == (0, 0)


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_a_model_at_its_own_parameters_says_how_they_are_its_point(name):
    x, layer = np.arange(6.0).reshape(2, 3), mg.nn.Linear(3, 1)
    points, loss = layer.parameters(), lambda *parameters: (layer(x) ** 2).sum()
    vectors = {"jvp": [mg.ones(p.shape) for p in points], "hvp": [mg.ones(p.shape) for p in points]}
    more = [vectors[name]] if name in vectors else []
    with pytest.raises(GradError, match="does not use its arguments(?s:.*)create_graph=True"):
        getattr(mg, name)(loss, points, *more)
    made = getattr(mg, name)(loss, points, *more, create_graph=True)
    of_copies = lambda w, b: ((x @ w + b) ** 2).sum()
    wanted = getattr(mg, name)(of_copies, [p.numpy() for p in map(mg.Tensor.detach, points)], *more)
    for ours, theirs in zip(flat(made), flat(wanted), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy())


def test_a_function_may_use_the_point_as_a_constant_beside_its_argument():
    w = leaf([1.0, 2.0])
    assert mg.vjp(lambda x: (x * w).sum(), w)[1].tolist() == [1.0, 2.0]
    assert mg.hessian(lambda x: (x * w).sum(), w).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert mg.hvp(lambda x: (x * w).sum(), w, [1.0, 1.0])[1].tolist() == [0.0, 0.0]


def test_the_point_itself_is_left_alone_unless_a_graph_is_to_lead_to_it():
    x, seen = leaf([1.0, 2.0]), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    for call in CALLS.values():
        call(x)
    assert seen == []
    plain = mg.tensor([1.0, 2.0])
    value, slope = mg.vjp(cubes, plain, create_graph=True)
    assert value.requires_grad and slope.requires_grad and not plain.requires_grad
    _, (slope, of_plain) = mg.vjp(lambda x, y: (x * y).sum(), (x, plain), create_graph=True)
    assert (slope.tolist(), of_plain.tolist()) == ([1.0, 2.0], [1.0, 2.0])


def test_a_graph_leads_to_the_vector_too():
    x, v = mg.tensor([1.0, 2.0]), leaf([1.0, 10.0])
    _, along = mg.jvp(lambda x: x**3, x, v, create_graph=True)
    assert mg.grad(along.sum(), v)[0].tolist() == [3.0, 12.0]
    _, back = mg.vjp(lambda x: x**3, x, v, create_graph=True)
    assert mg.grad(back.sum(), v)[0].tolist() == [3.0, 12.0]


def test_a_function_of_nothing_has_no_derivatives():
    w = leaf(3.0)
    value, slopes = mg.vjp(lambda: w * 2.0, ())
    assert (value.item(), slopes) == (6.0, ())


def test_rosenbrock_hessian_and_products():
    def rosenbrock(x):
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    at = mg.tensor([2.0, 2.0])
    h = np.array(mg.hessian(rosenbrock, at).tolist())
    assert np.allclose(h, [[1200 * 4 - 400 * 2 + 2, -800], [-800, 200]])
    v = np.array([1.0, -2.0])
    assert np.allclose(mg.hvp(rosenbrock, at, mg.tensor(v))[1].tolist(), h @ v)
    assert np.allclose(
        mg.jacobian(lambda x: mg.stack([x[0] * x[1], x[0] + x[1]]), at).tolist(), [[2, 2], [1, 1]]
    )
    assert np.allclose(mg.jvp(lambda x: x * x, at, mg.tensor(v))[1].tolist(), [4, -8])
    assert np.allclose(mg.vjp(lambda x: x * x, at, mg.tensor(v))[1].tolist(), [4, -8])


def test_functional_derivatives_of_several_arguments_and_of_constants():
    f = lambda x, y: (x * y).sum()
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    _, (ga, gb) = mg.vjp(f, (a, b))
    assert ga.tolist() == [3, 4] and gb.tolist() == [1, 2]
    blocks = mg.hessian(f, (a, b))
    assert np.allclose(blocks[0][1].tolist(), np.eye(2)) and np.allclose(blocks[0][0].tolist(), 0)
    assert mg.jacobian(lambda x: mg.tensor([1.0, 2.0]), a).tolist() == [[0, 0], [0, 0]]
