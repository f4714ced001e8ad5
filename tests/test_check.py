"""gradcheck and gradgradcheck: what they allow, what they name, and that inputs are put back."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, GradError
from tests.pieces import leaf

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


def test_gradcheck_names_the_worst_entry_and_its_ratio():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * mg.tensor([2.0, 8.0])

    x = leaf([1.0, 2.0], name="x")
    with pytest.raises(GradError, match=r"\(x\)\[1\]: ours 8, central difference 4.*ratio 2"):
        mg.gradcheck(lambda t: Wrong.apply(t), x)
    assert not mg.gradcheck(lambda t: Wrong.apply(t), x, raise_exception=False)


def test_gradcheck_suspects_a_kink():
    with pytest.raises(GradError, match="kink"):
        mg.gradcheck(lambda t: mg.relu(t), leaf([0.0]))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (1,)])
def test_gradcheck_of_no_elements_has_nothing_to_find_wrong(shape):
    assert mg.gradcheck(lambda x: x[1:] * 2, leaf(np.ones(shape)))
    assert mg.gradgradcheck(lambda x: x[1:] ** 2, leaf(np.ones(shape)))
    assert mg.gradcheck(lambda x: x.sum() + 1, leaf(np.ones(shape)))


def test_gradgradcheck():
    assert mg.gradgradcheck(lambda x, y: (x * y).sin() * x, (leaf([1.0, 2.0]), leaf([0.5, 3.0])))


def test_gradcheck_moves_the_inputs_themselves_and_puts_them_back():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.tanh, mg.nn.Linear(3, 1))
    before = [p._data for p in model.parameters()]
    x = leaf([[0.5, -0.25]])
    assert mg.gradcheck(lambda x, *parameters: model(x), (x, *model.parameters()))
    assert all(p._data is b for p, b in zip(model.parameters(), before, strict=True))
    with pytest.raises(GradError, match=r"d input 0 \(layers.0.weight\)"):
        mg.gradcheck(lambda *parameters: model(x).detach() * model(x), model.parameters())
    assert all(p._data is b for p, b in zip(model.parameters(), before, strict=True))


def test_an_input_is_put_back_when_the_function_raises():
    x, calls = leaf([1.0, 2.0]), []

    def fails_later(t):
        calls.append(t.tolist())
        if len(calls) == 4:
            raise ValueError("no")
        return t * 2

    with pytest.raises(ValueError, match="no"):
        mg.gradcheck(fails_later, x)
    assert calls[0] != calls[3]
    assert x.tolist() == [1.0, 2.0]
