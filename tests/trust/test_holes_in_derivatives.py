"""What no test of derivatives of functions, and of their judge, looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, GradError, ShapeError
from tests.trust.pieces import leaf


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


# -- gradcheck -----------------------------------------------------------------------------


def off_by(share, constant=0.0):
    """x², and a gradient that is wrong by a share of it and by a constant."""

    class Off(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (2.0 * x * (1.0 + share) + constant)

    return Off.apply


@pytest.mark.parametrize(
    ("share", "constant", "settings", "right"),
    [
        (0.0, 0.0, {}, True),
        (9e-4, 0.0, {}, True),
        (2e-3, 0.0, {}, False),
        (0.0, 2e-2, {}, False),
        (2e-3, 0.0, {"rtol": 1e-2}, True),
        (0.0, 2e-2, {"atol": 3e-2}, True),
        (-2.0, 0.0, {}, False),
    ],
)
def test_gradcheck_allows_a_thousandth_and_what_it_is_told_to(share, constant, settings, right):
    f = off_by(share, constant)
    assert mg.gradcheck(f, leaf([1.0, 2.0]), raise_exception=False, **settings) == right
    at_zero = {"atol": constant + 1e-5, **settings}
    assert mg.gradcheck(f, leaf([0.0]), raise_exception=False, **at_zero)


def test_gradcheck_may_be_told_to_allow_nothing():
    assert mg.gradcheck(lambda x: x * 0.0, leaf([1.0, 2.0]), atol=0.0, rtol=0.0)


def test_a_gradient_at_zero_may_be_off_by_a_hundred_thousandth():
    assert mg.gradcheck(off_by(0.0, 9e-6), leaf([0.0]))
    assert not mg.gradcheck(off_by(0.0, 2e-5), leaf([0.0]), raise_exception=False)


@pytest.mark.parametrize(
    ("f", "point", "words"),
    [
        (off_by(-2.0), 3.0, r"d output 0\[\] / d input 0\[\]: ours -6, central difference 6, ratio -1\.\n"),
        (off_by(-2.0), 3.0, "the sign is wrong"),
        (off_by(1.0), [3.0, 0.0], r"input 0\[0\]: ours 12, central difference 6.*ratio 2\.\n"),
        (off_by(1.0), [3.0, 0.0], "1 of 4 entries differ; the gradient rule is wrong here"),
        (off_by(0.0, 1.0), [0.0], r"ours 1, central difference 0\.\n"),
        (lambda x: (x * 1.0, off_by(1.0)(x)), [[1.0, 5.0]], r"d output 1\[0, 1\] / d input 0\[0, 1\]: ours 20"),
        (lambda x: mg.relu(x), [0.0], "left and right of this point differ: a kink, move the point"),
        (off_by(float("nan")), [1.0], "ours nan, central difference 2"),
        (lambda x: off_by(1.0)(x) * 1e4, [1.0], "the gradient rule is wrong here"),
        (off_by(-1.0), [3.0], r"ours 0, central difference 6, ratio 0\.\n.*the gradient rule is wrong here"),
        (off_by(mg.tensor([0.5, -2.0])), [1.0, 3.0], r"input 0\[1\]: ours -6, central difference 6"),
    ],
)  # fmt: skip
def test_gradcheck_names_the_worst_entry_and_what_it_suspects(f, point, words):
    with pytest.raises(GradError, match=words):
        mg.gradcheck(f, leaf(point))


def test_gradcheck_names_the_input_by_its_number_and_its_name():
    x, fixed, y = leaf(1.0), mg.tensor(2.0), mg.tensor(3.0, requires_grad=True, name="y")
    with pytest.raises(GradError, match=r"d output 0\[\] / d input 1 \(y\)\[\]: ours 12"):
        mg.gradcheck(lambda x, fixed, y: x * fixed + off_by(1.0)(y), (x, fixed, y))


def test_gradcheck_needs_something_to_check_in_double_precision():
    with pytest.raises(GradError, match="none of the inputs requires grad"):
        mg.gradcheck(lambda x: x, mg.tensor(1.0))
    with pytest.raises(DTypeError, match="gradcheck needs float64, float32"):
        mg.gradcheck(lambda x: x, mg.tensor(1.0, requires_grad=True, dtype="float32"))


def test_gradcheck_passes_over_what_has_no_gradient():
    f = lambda x: (x * x, "text", mg.argmax(x), x.detach() * 0.0)
    assert mg.gradcheck(f, leaf([1.0, 2.0]))
    assert not mg.gradcheck(lambda x: x.detach() * 2.0, leaf([1.0]), raise_exception=False)
    assert mg.gradgradcheck(lambda x: (x**3, "text", mg.tensor(1.0)), leaf([1.0, 2.0]))


def test_gradgradcheck_finds_what_only_the_second_derivative_shows():
    class Constant(mg.Function):
        """x³ whose gradient is right and looks constant."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (3.0 * x * x).detach()

    x = leaf([1.0, 2.0])
    assert mg.gradcheck(Constant.apply, x)
    assert not mg.gradgradcheck(Constant.apply, x, raise_exception=False)
    with pytest.raises(GradError, match="gradcheck failed"):
        mg.gradgradcheck(Constant.apply, [x])

    class Little(Constant):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (3.0 * x * x + 0.1 * (x - x.detach()))

    assert mg.gradcheck(Little.apply, x)
    assert not mg.gradgradcheck(Little.apply, x, raise_exception=False)
    assert mg.gradgradcheck(lambda x, unused: x * x, (x, leaf(2.0)))
    both = lambda x, k: x * x * k
    assert mg.gradgradcheck(both, (x, mg.tensor(2.0)))
    assert mg.gradgradcheck(both, [x, leaf(2.0)])
