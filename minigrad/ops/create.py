"""Where values begin: new leaf Tensors, constants like another value, copies, other dtypes."""

import numpy as np

from ..errors import DTypeError, refusal
from ..primitives.dispatch import EAGER
from ..primitives.registry import primitive

__all__ = [
    "arange", "assign", "astype", "clone", "dropout", "eye", "fill_constant", "full",
    "full_like", "linspace", "normal", "ones", "ones_like", "uniform", "zeros", "zeros_like",
]  # fmt: skip


def leaf(array, requires_grad, name):
    """A leaf Tensor; the eager engine lends its maker, since ops know no engine."""
    return EAGER["leaf"](array, requires_grad=requires_grad, name=name)


def _sizes(shape):
    """A shape as it is given.  Errors: `TypeError` for bytes, which NumPy takes for so many axes."""
    if isinstance(shape, bytes):
        raise TypeError("'bytes' object cannot be interpreted as an integer")
    return shape


def zeros(shape, dtype=float, requires_grad=False, name=None):
    """A Tensor of zeros.

    >>> import minigrad as mg
    >>> mg.zeros([2])
    tensor([0., 0.])
    """
    return leaf(np.zeros(_sizes(shape), dtype), requires_grad, name)


def ones(shape, dtype=float, requires_grad=False, name=None):
    """A Tensor of ones.

    >>> import minigrad as mg
    >>> mg.ones([2])
    tensor([1., 1.])
    """
    return leaf(np.ones(_sizes(shape), dtype), requires_grad, name)


def full(shape, fill_value, dtype=None, requires_grad=False, name=None):
    """A Tensor of one value.

    >>> import minigrad as mg
    >>> mg.full([2], 3.0)
    tensor([3., 3.])
    """
    return leaf(np.full(_sizes(shape), fill_value, dtype), requires_grad, name)


def arange(start, stop=None, step=1, dtype=None, requires_grad=False, name=None):
    """Numbers from ``start`` to before ``stop`` in steps.

    >>> import minigrad as mg
    >>> mg.arange(3), mg.arange(1.0, 2.0, 0.5)
    (tensor([0, 1, 2]), tensor([1. , 1.5]))
    """
    return leaf(np.arange(start, stop, step, dtype), requires_grad, name)


def linspace(start, stop, num, dtype=None, requires_grad=False, name=None):
    """``num`` numbers at equal distances, both ends included.

    >>> import minigrad as mg
    >>> mg.linspace(0.0, 1.0, 3)
    tensor([0. , 0.5, 1. ])
    """
    return leaf(np.linspace(start, stop, num, dtype=dtype), requires_grad, name)


def eye(n, m=None, k=0, dtype=float, requires_grad=False, name=None):
    """Zeros with ones on a diagonal.

    >>> import minigrad as mg
    >>> mg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return leaf(np.eye(n, m, k, dtype), requires_grad, name)


# -- like another value, and copies --------------------------------------------------------


@primitive
def fill_zeros_like(x):
    """Zeros in the shape and dtype of ``x``; no gradient."""
    return np.zeros_like(x)


@primitive
def fill_ones_like(x):
    """Ones in the shape and dtype of ``x``; no gradient."""
    return np.ones_like(x)


def zeros_like(x, dtype=None):
    """Zeros in the shape of ``x``, and in its dtype unless another is named; no gradient.

    >>> import minigrad as mg
    >>> mg.zeros_like(mg.tensor([2.0, 3.0]), dtype=int)
    tensor([0, 0])
    """
    return _of_dtype(fill_zeros_like(x), dtype)


def ones_like(x, dtype=None):
    """Ones in the shape of ``x``, and in its dtype unless another is named; no gradient.

    >>> import minigrad as mg
    >>> mg.ones_like(mg.tensor([2.0, 3.0]))
    tensor([1., 1.])
    """
    return _of_dtype(fill_ones_like(x), dtype)


def full_like(x, fill_value, dtype=None):
    """One number in the shape of ``x``, and in its dtype unless another is named; no gradient.

    >>> import minigrad as mg
    >>> mg.full_like(mg.tensor([2.0, 3.0]), 7)
    tensor([7., 7.])
    """
    ones = ones_like(x, dtype)
    return ones * np.asarray(fill_value).astype(ones.dtype).item()


def _of_dtype(x, dtype):
    return x if dtype is None else astype(x, dtype)


@primitive
def fill_constant(*, shape=(), value=0.0, dtype="float64"):
    """An array of one value: how a Program makes a constant, such as the seed of backward.

    >>> import minigrad as mg
    >>> mg.fill_constant(shape=(2,), value=7.0)
    array([7., 7.])
    """
    return np.full(shape, value, dtype)


@primitive(title="Clone")
def assign(x):
    """A copy of ``x``.

    >>> import minigrad as mg
    >>> mg.assign([1.0, 2.0])
    array([1., 2.])
    """
    return np.array(x)


assign.grad(x=lambda out_grad: out_grad)


def clone(x):
    """A copy of ``x`` in memory of its own, with the gradient of ``x``.

    >>> import minigrad as mg
    >>> mg.clone(mg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return assign(x)


# -- other dtypes --------------------------------------------------------------------------


@primitive(title="ToCopy", view=True)
def cast(x, *, dtype):
    """``x`` in another floating-point dtype; the gradient is cast back."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise refusal(
            f"{x.dtype} as {np.dtype(dtype)} would lose the imaginary part",
            "minigrad differentiates real functions: keep real and imaginary parts as two Tensors",
            DTypeError,
        )
    return x.astype(dtype, copy=False)


cast.grad(x=(cast, "out_grad, x_dtype", "g"))


@primitive(view=True)
def discretize(x, *, dtype):
    """``x`` as integers or truth values; no gradient, since the result moves in steps."""
    return x.astype(dtype, copy=False)


def astype(x, dtype):
    """``x`` in another dtype.  The gradient is cast back; integers and bools have none.

    >>> import minigrad as mg
    >>> mg.astype(mg.tensor([1.5, 2.5]), "int64")
    tensor([1, 2])
    """
    dtype = np.dtype(dtype)
    op = cast if dtype.kind in "fc" else discretize
    return op(x, dtype=dtype.name)


# -- chance, always from a generator or a seed of the caller: the same seed, the same numbers


@primitive(type="dropout", nondiff=("seed",))
def dropout_of(x, seed, *, p=0.5):
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p)."""
    if not 0 <= p < 1:
        raise ValueError(f"p={p} is not a probability below 1; repair: 0 <= p < 1")
    mask = np.random.default_rng(np.ravel(seed)).random(x.shape, np.float32) >= p
    return x * (mask.astype(np.result_type(x, np.float16)) / (1 - p))


dropout_of.grad(x=(dropout_of, "out_grad, seed, p", "g * mask / (1 - p)"))


def _drawn(make):
    """What ``make()`` draws; in what `checkpoint` runs again, what it drew the first time."""
    return EAGER["draw"](make) if "draw" in EAGER else make()


def dropout(x, p=0.5, seed=None, training=True):
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p); ``x`` if not training.

    ``seed`` is a number (one mask for ever), a generator (a new mask every time), or a Variable.

    >>> import minigrad as mg
    >>> mg.dropout(mg.tensor([1.0, 1.0, 1.0, 1.0]), p=0.5, seed=0)
    tensor([2., 2., 2., 0.])
    """
    if not training or p == 0:
        return x
    if seed is None:
        raise refusal("dropout needs a seed", "seed=0, or a generator: np.random.default_rng(0)")
    if isinstance(generator := seed, np.random.Generator):
        seed = _drawn(lambda: int(generator.integers(2**63)))
    return dropout_of(x, seed, p)


def normal(shape, mean=0.0, std=1.0, *, generator, dtype=float, requires_grad=False, name=None):
    """Numbers from the normal distribution; ``generator`` is a `numpy.random.Generator` or a seed.

    >>> import minigrad as mg
    >>> mg.normal([2, 3], generator=0).shape
    (2, 3)
    """
    drawn = _drawn(lambda: np.random.default_rng(generator).normal(mean, std, _sizes(shape)))
    return leaf(drawn.astype(dtype), requires_grad, name)


def uniform(shape, low=0.0, high=1.0, *, generator, dtype=float, requires_grad=False, name=None):
    """Numbers between ``low`` and ``high``; ``generator`` is a `numpy.random.Generator` or a seed.

    >>> import minigrad as mg
    >>> float(mg.uniform([1], 2.0, 2.0, generator=0)[0])
    2.0
    """
    drawn = _drawn(lambda: np.random.default_rng(generator).uniform(low, high, _sizes(shape)))
    return leaf(drawn.astype(dtype), requires_grad, name)
