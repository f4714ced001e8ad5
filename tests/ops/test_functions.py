"""Functions made of primitives, methods and operators: value, gradient, second order, errors."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError, ShapeError
from minigrad.primitives.values import METHODS, OPERATORS, Operators
from tests.opinfo import draw

A, B = draw(3, 4, gap=0.1), draw(3, 4, low=0.2, high=2.0)
P = draw(5, low=0.1, high=0.9)
CLASSES = np.array([1, 0, 3])
IMAGE = draw(2, 2, 5)


def t(a):
    return mg.tensor(a, requires_grad=True)


def soft(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


#: function of Tensors, the same in NumPy, arrays
FUNCTIONS = {
    "norm 1": (lambda x: mg.norm(x, 1, axis=1), lambda x: np.abs(x).sum(1), [A]),
    "norm 2": (lambda x: mg.norm(x), lambda x: np.sqrt((x * x).sum()), [A]),
    "norm 3": (
        lambda x: mg.norm(x, ord=3, axis=0),
        lambda x: (np.abs(x) ** 3).sum(0) ** (1 / 3),
        [A],
    ),
    "norm inf": (lambda x: mg.norm(x, np.inf, axis=1), lambda x: np.abs(x).max(1), [A]),
    "norm -inf": (lambda x: mg.norm(x, -np.inf), lambda x: np.abs(x).min(), [A]),
    "dot": (mg.dot, np.dot, [A[0], B[0]]),
    "dot with a number": (lambda x: mg.dot(x, 3.0), lambda x: 3 * x, [A]),
    "outer": (mg.outer, np.outer, [A[0], B[1]]),
    "tensordot": (lambda x, y: mg.tensordot(x, y, axes=([1], [1])), lambda x, y: x @ y.T, [A, B]),
    "tensordot of all axes": (mg.tensordot, lambda x, y: (x * y).sum(), [A, B]),
    "tensordot of none": (
        lambda x, y: mg.tensordot(x, y, 0),
        lambda x, y: np.tensordot(x, y, 0),
        [A, B],
    ),
    "tensordot of one": (lambda x, y: mg.tensordot(x, y.T, axes=1), lambda x, y: x @ y.T, [A, B]),
    "tensordot of negative axes": (
        lambda x, y: mg.tensordot(x, y, axes=(-1, 1)),
        lambda x, y: np.tensordot(x, y, axes=(-1, 1)),
        [IMAGE, B[:, :2].reshape(3, 2)[:, [0, 1, 0, 1, 0]].reshape(3, 5)],
    ),
    "cross": (mg.cross, np.cross, [A[:, :3], B[:, :3]]),
    "cross of one with many": (
        lambda x, y: mg.cross(x, y, axis=0),
        lambda x, y: np.cross(x, y, axis=0),
        [A, B[:, :1]],
    ),
    "kron": (mg.kron, np.kron, [A, B[:2]]),
    "exp2": (mg.exp2, np.exp2, [A]),
    "silu": (mg.silu, lambda x: x / (1 + np.exp(-x)), [A]),
    "diag of a vector": (mg.diag, np.diag, [A[0]]),
    "diag above": (lambda x: mg.diag(x, k=2), lambda x: np.diag(x, k=2), [A[0]]),
    "diag below": (lambda x: mg.diag(x, -1), lambda x: np.diag(x, k=-1), [A[0]]),
    "diag of a matrix": (lambda x: mg.diag(x, k=1), lambda x: np.diag(x, k=1), [A]),
    "kron of other ranks": (mg.kron, np.kron, [A[0], IMAGE]),
    "moveaxis": (lambda x: mg.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), [IMAGE]),
    "moveaxis of two": (
        lambda x: mg.moveaxis(x, (0, -1), (1, 0)),
        lambda x: np.moveaxis(x, (0, -1), (1, 0)),
        [IMAGE],
    ),
    "repeat": (lambda x: mg.repeat(x, 3), lambda x: np.repeat(x, 3), [A]),
    "repeat along an axis": (
        lambda x: mg.repeat(x, 2, axis=1),
        lambda x: np.repeat(x, 2, axis=1),
        [IMAGE],
    ),
    "repeat by numbers": (
        lambda x: mg.repeat(x, [2, 0, 1], axis=-2),
        lambda x: np.repeat(x, [2, 0, 1], axis=-2),
        [A],
    ),
    "nan_to_num": (
        lambda x: mg.nan_to_num(
            mg.where(A > 1, np.nan, mg.where(A < -1, -np.inf, x)), 5.0, neginf=3.0
        ),
        lambda x: np.nan_to_num(
            np.where(A > 1, np.nan, np.where(A < -1, -np.inf, x)), nan=5.0, neginf=3.0
        ),
        [A],
    ),
    "trace": (mg.trace, np.trace, [A[:3, :3]]),
    "einsum": (lambda x, y: mg.einsum("ij,kj->ik", x, y), lambda x, y: x @ y.T, [A, B]),
    "clone": (mg.clone, np.array, [A]),
    "clip by arrays": (
        lambda x, lo: mg.clip(x, lo, 1.5),
        lambda x, lo: np.clip(x, lo, 1.5),
        [A, B - 1],
    ),
    "embedding": (lambda w: mg.embedding([[2, 0], [2, 2]], w), lambda w: w[[[2, 0], [2, 2]]], [A]),
    "cross entropy": (
        lambda x: mg.cross_entropy(x, CLASSES),
        lambda x: -np.log(soft(x))[range(3), CLASSES].mean(),
        [A],
    ),
    "cross entropy, summed": (
        lambda x: mg.cross_entropy(x, CLASSES, reduction="sum"),
        lambda x: -np.log(soft(x))[range(3), CLASSES].sum(),
        [A],
    ),
    "cross entropy, each": (
        lambda x: mg.cross_entropy(x, CLASSES, reduction="none"),
        lambda x: -np.log(soft(x))[range(3), CLASSES],
        [A],
    ),
    "cross entropy of probabilities": (
        mg.cross_entropy,
        lambda x, q: -(q * np.log(soft(x))).sum(-1).mean(),
        [A, soft(B)],
    ),
    "nll": (lambda x: mg.nll(x, CLASSES), lambda x: -x[range(3), CLASSES].mean(), [A]),
    "mse": (mg.mse, lambda x, y: ((x - y) ** 2).mean(), [A, B]),
    "mse of a number": (
        lambda x: mg.mse(x, 2.0, reduction="sum"),
        lambda x: ((x - 2) ** 2).sum(),
        [A],
    ),
    "huber": (
        lambda x, y: mg.huber(x, y, delta=0.5),
        lambda x, y: np.where(
            abs(x - y) < 0.5, 0.5 * (x - y) ** 2, 0.5 * (abs(x - y) - 0.25)
        ).mean(),
        [A, B],
    ),
    "bce": (
        lambda x: mg.binary_cross_entropy(x, 1 - P),
        lambda x: -((1 - P) * np.log(x) + P * np.log(1 - x)).mean(),
        [P],
    ),
    "bce with logits": (
        lambda x: mg.binary_cross_entropy_with_logits(x, P, reduction="sum"),
        lambda x: (np.log(1 + np.exp(x)) - x * P).sum(),
        [A[0, :1] * np.ones(5) * P],
    ),
    "layer norm": (
        lambda x, w, b: mg.layer_norm(x, w, b, eps=0.1),
        lambda x, w, b: (
            (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1) * w + b
        ),
        [A, B[0], A[1]],
    ),
    "batch norm": (
        lambda x, w, b: mg.batch_norm(x, w, b, eps=0.1),
        lambda x, w, b: (
            (x - x.mean((0, 2), keepdims=True))
            / np.sqrt(x.var((0, 2), keepdims=True) + 0.1)
            * w[:, None]
            + b[:, None]
        ),
        [IMAGE, B[0, :2], A[0, :2]],
    ),
    "batch norm for inference": (
        lambda x, m, v: mg.batch_norm(x, mean=m, var=v, eps=0.1),
        lambda x, m, v: (x - m[:, None]) / np.sqrt(v[:, None] + 0.1),
        [IMAGE, A[0, :2], B[0, :2]],
    ),
    "conv1d": (
        lambda x, w, b: mg.conv1d(x, w, b, stride=2, padding=1),
        lambda x, w, b: np.stack(
            [
                [
                    sum(np.correlate(np.pad(x[n, c], 1), w[o, c], "valid") for c in range(2))[::2]
                    + b[o]
                    for o in range(3)
                ]
                for n in range(2)
            ]
        ),
        [IMAGE, draw(3, 2, 3), draw(3)],
    ),
    "getitem with a mask": (lambda x: x[A > 0], lambda x: x[A > 0], [A]),
    "getitem with lists": (lambda x: x[[0, 0, 2], 1:], lambda x: x[[0, 0, 2], 1:], [A]),
    "getitem with a Tensor": (lambda x: x[mg.tensor([2, 0])], lambda x: x[[2, 0]], [A]),
    "setitem": (
        lambda x, y: mg.setitem(x, y, [0, 2]),
        lambda x, y: np.stack([y, x[1], y]),
        [A, B[0]],
    ),
    "split": (lambda x: mg.split(x, 2, axis=1)[1], lambda x: x[:, 2:], [A]),
    "iteration": (
        lambda x: sum(row * k for k, row in enumerate(x)),
        lambda x: x[1] + 2 * x[2],
        [A],
    ),
    "mixed pow": (lambda x, y: 2.0**x + y**-1.5, lambda x, y: 2.0**x + y**-1.5, [A, B]),
    "reflected": (lambda x: (1 - x) * (2 / x) + 1 + x, lambda x: (1 - x) * (2 / x) + 1 + x, [B]),
    "array on the left": (
        lambda x: A * x + B / x - A @ x.T @ B,
        lambda x: A * x + B / x - A @ x.T @ B,
        [B],
    ),
    "dropout": (
        lambda x: mg.dropout(x, 0.5, seed=3),
        lambda x: x * 2 * (np.random.default_rng([3]).random(x.shape, np.float32) >= 0.5),
        [A],
    ),
}
BY_NAME = pytest.mark.parametrize(
    ("f", "reference", "arrays"), list(FUNCTIONS.values()), ids=list(FUNCTIONS)
)


@BY_NAME
def test_a_function_has_the_value_of_its_reference(f, reference, arrays):
    np.testing.assert_allclose(f(*map(t, arrays)).data, reference(*arrays), rtol=1e-12, atol=1e-14)


@BY_NAME
def test_first_and_second_derivatives_agree_with_differences(f, reference, arrays):
    inputs = [t(a) for a in arrays]
    assert mg.gradcheck(f, inputs)
    assert not any(g.requires_grad for g in mg.grad(f(*inputs).sum(), inputs)) or mg.gradgradcheck(
        f, inputs
    )
    if mg.grad(f(*inputs).sum(), inputs, create_graph=True)[0].requires_grad:
        assert mg.gradgradcheck(f, inputs)


def test_every_method_and_operator_of_the_table_exists():
    missing = [m for m in [*METHODS, *OPERATORS] if m not in vars(Operators)]
    assert missing == []


def test_a_method_is_the_function_of_its_name():
    x = t(A)
    for name in METHODS:
        assert name in mg.ops.__all__, name
    assert (x.sum(axis=0).data == A.sum(0)).all()
    assert x.reshape(2, 6).shape == x.reshape((2, 6)).shape == (2, 6)
    assert x.permute_dims(1, 0).shape == x.transpose().shape == x.T.shape == (4, 3)
    assert x.mT.shape == (4, 3)
    assert x.tile(2, 1).shape == (6, 4)


def test_0d_results_stay_arrays():
    x = t(A)
    for y in (x.sum(), x[0, 0], x.mean(), mg.dot(x[0], x[1]), x.max(), t(2.0) * t(3.0), mg.norm(x)):
        assert isinstance(y.data, np.ndarray)
        assert y.shape == ()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2.5 + 1,
        lambda x: 2**x,
        lambda x: x / 3,
        lambda x: mg.maximum(x, 0.5),
        lambda x: mg.gelu(x),
        lambda x: mg.where(x > 0, x, 0.0),
        lambda x: x.mean() * 2,
        lambda x: mg.huber(x, x.detach() + 1),
        lambda x: x**0.5,
        lambda x: mg.layer_norm(x),
        lambda x: mg.std(x),
        lambda x: mg.elu(x),
        lambda x: mg.leaky_relu(x),
        lambda x: mg.softplus(x),
        lambda x: mg.dropout(x, 0.3, seed=0),
        lambda x: mg.mse(x, 1.0),
        lambda x: mg.clip(x, -1, 1),
        lambda x: mg.logsumexp(x),
        lambda x: mg.nan_to_num(x),
        lambda x: mg.logaddexp(x, 1.0),
        lambda x: mg.log10(x),
    ],
)
def test_python_numbers_never_upcast_float32(f):
    x = mg.tensor(B.astype(np.float32), requires_grad=True)
    seen = []
    x.register_hook(seen.append)
    y = f(x)
    assert y.dtype == np.float32
    y.sum().backward()
    assert seen[0].dtype == np.float32


def test_mixed_dtypes_follow_numpy():
    one, two = mg.tensor([1, 2]), mg.tensor(np.array([1.5, 2.5], np.float32))
    assert (one + 1).dtype == np.int64
    assert (one / 2).dtype == np.float64
    assert (one * two).dtype == np.float64
    assert mg.mean(one).dtype == np.float64
    assert mg.sum(mg.tensor([True, True])).item() == 2
    assert mg.exp(one).dtype == np.float64


def test_astype_casts_the_gradient_back_and_integers_have_none():
    x = t([1.5, 2.5])
    y = x.astype("float32")
    (y * y).sum().backward()
    assert (y.dtype, x.grad.dtype) == (np.float32, np.float64)
    assert x.astype("int64").requires_grad is False


def test_repeated_indices_add_up_and_the_last_of_a_repeated_setitem_wins():
    x, y = t([1.0, 2.0, 3.0]), t([10.0, 20.0])
    (x[[0, 0, 2]] * mg.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 0.0, 4.0]
    z = mg.setitem(x, y, [1, 1])
    assert z.tolist() == [1.0, 20.0, 3.0]
    assert mg.grad(z.sum(), y)[0].tolist() == [0.0, 1.0]


def test_an_index_array_that_changes_later_does_not_change_the_gradient():
    x, index = t([1.0, 2.0, 3.0]), np.array([0, 0])
    y = x[index].sum()
    index[:] = 2
    y.backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_chance_repeats_with_the_seed_and_moves_on_with_a_generator():
    x, rng = mg.ones([100]), np.random.default_rng(0)
    assert mg.dropout(x, 0.5, seed=1).tolist() == mg.dropout(x, 0.5, seed=1).tolist()
    assert mg.dropout(x, 0.5, seed=rng).tolist() != mg.dropout(x, 0.5, seed=rng).tolist()
    assert mg.dropout(x, 0.5, training=False) is x
    assert mg.normal([3], generator=5).tolist() == mg.normal([3], generator=5).tolist()
    drawn = mg.uniform([1000], -1.0, 3.0, generator=5).data
    assert drawn.min() >= -1
    assert drawn.max() < 3
    assert abs(mg.normal([4000], 2.0, 0.5, generator=1).data.mean() - 2) < 0.05


def test_creation_functions_make_leaves():
    made = [
        mg.zeros([2]),
        mg.ones((2,)),
        mg.full([2], 1.5),
        mg.arange(3.0),
        mg.linspace(0, 1, 3),
        mg.eye(2),
    ]
    assert all(m.is_leaf and not m.requires_grad for m in made)
    x = mg.zeros([2, 2], dtype=np.float32, requires_grad=True, name="w")
    assert (x.requires_grad, x.dtype, x.name) == (True, np.float32, "w")


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (
            lambda: mg.mse(mg.ones([3, 1]), mg.ones([3])),
            ShapeError,
            "reshape one of them to the shape of the other",
        ),
        (lambda: mg.huber(mg.ones([3, 1]), np.ones(3)), ShapeError, "huber(x: [3, 1], y: [3])"),
        (
            lambda: mg.mse(1.0 * mg.ones([3]), 0.0, reduction="average"),
            ShapeError,
            "'mean', 'sum' or 'none'",
        ),
        (lambda: mg.dropout(mg.ones([3]), 0.5), ShapeError, "dropout needs a seed"),
        (lambda: mg.norm(mg.ones([3]), ord=-1), ShapeError, "another p > 0"),
        (lambda: mg.einsum(mg.ones([3]), "i"), DTypeError, "takes the subscripts first"),
        (lambda: mg.ones([2, 3]) + mg.ones([2]), ShapeError, "compared from the right"),
        (
            lambda: mg.tensordot(mg.ones([2, 3]), mg.ones([2, 3]), axes=1),
            ShapeError,
            "operands could not be broadcast",
        ),
        (
            lambda: mg.tensordot(mg.ones([2]), mg.ones([2])),
            ShapeError,
            "tensordot(x: float64[2], y: float64[2])",
        ),
        (lambda: mg.cross(mg.ones([2]), mg.ones([3])), ShapeError, "the axis of length 3"),
        (lambda: mg.cross(mg.ones([3]), mg.ones([3]), axis=1), ShapeError, "cross(x: float64[3]"),
        (lambda: mg.moveaxis(mg.ones([2, 3]), 0, 2), ShapeError, "axes go from -2 to 1 here"),
        (
            lambda: mg.moveaxis(mg.ones([2, 3]), (0, 1), 0),
            ShapeError,
            "must have the same number of elements",
        ),
        (
            lambda: mg.repeat(mg.ones([2, 3]), [1, 2], axis=1),
            ShapeError,
            "repeat(x: float64[2, 3], repeats: a list of 2, axis=1)",
        ),
        (lambda: mg.repeat(mg.ones([2]), 1.5), DTypeError, "repeats: 1.5"),
        (lambda: mg.ones([3])[5], ShapeError, "indices count from 0"),
        (lambda: mg.ones([2, 3]) @ mg.ones([2, 3]), ShapeError, "(x.mT)"),
        (lambda: mg.diag(mg.ones([2, 2, 2])), ShapeError, "a vector or a matrix"),
        (lambda: mg.one_hot([0.5]), DTypeError, "indices.astype(int)"),
        (lambda: mg.one_hot([3], num_classes=3), ShapeError, "are not all among 0 … 2"),
        (lambda: mg.one_hot([]), DTypeError, "one_hot takes integers"),
        (lambda: mg.full_like(mg.ones([2]), [1.0, 2.0]), ShapeError, "fill_value: a list of 2"),
        (lambda: mg.sum(mg.ones([2]), 0, axis=0), DTypeError, "got 'axis' twice"),
        (lambda: mg.add(mg.ones([2]), 1.0, x=2.0), DTypeError, "got 'x' twice"),
    ],
)
def test_a_wrong_call_says_how_to_repair_it(f, error, message):
    with pytest.raises(error) as caught:
        f()
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [None, np.float32, int, bool])
@pytest.mark.parametrize(
    "like", [np.zeros((2, 0)), np.ones(3, np.float32), np.arange(2), np.array(True)]
)
def test_values_like_another_have_its_shape_and_the_dtype_that_is_asked_for(like, dtype):
    for ours, theirs in (
        (mg.zeros_like, np.zeros_like),
        (mg.ones_like, np.ones_like),
        (lambda x, dtype: mg.full_like(x, 7, dtype), lambda x, dtype: np.full_like(x, 7, dtype)),
    ):
        expected = theirs(like, dtype=dtype)
        for x in (like, mg.tensor(like)):
            found = ours(x, dtype=dtype)
            assert isinstance(found, mg.Tensor) == isinstance(x, mg.Tensor)
            assert found.dtype == expected.dtype and np.array_equal(np.asarray(found), expected)


def test_one_hot_counts_its_classes_or_is_told():
    indices = np.array([[2, 0], [1, 1]])
    assert np.array_equal(np.asarray(mg.one_hot(mg.tensor(indices))), np.eye(3, dtype=int)[indices])
    assert np.array_equal(mg.one_hot(indices, 5), np.eye(5, dtype=int)[indices])
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2, 2], dtype=int)
        out = mg.one_hot(x, num_classes=3)
        with pytest.raises(ShapeError, match="num_classes=10"):
            mg.one_hot(x)
    (found,) = static.Executor().run(program, {"x": indices}, [out])
    assert np.array_equal(found, np.eye(3, dtype=int)[indices])
