"""What training makes small: losses of classifiers, and distances."""

import numpy as np

from ..errors import ArgumentError, DTypeError, describe, op_error, refusal
from ..primitives.arguments import Value, as_value, dtype_of
from ..primitives.registry import elementwise, primitive
from .activations import softplus
from .compare import abs, equal, maximum, minimum, not_equal, where
from .create import astype, ones_like
from .elementwise import log, sub
from .index import take, take_along_axis
from .reduce import mean, over_count, reduce_sum
from .shape import expand_dims, fits, one_axis, reshape, squeeze, unbroadcast
from .softmax import log_softmax, lowered, shares, softmax

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber", "mse",
    "nll", "one_hot",
]  # fmt: skip

# -- classification ------------------------------------------------------------------------


def one_hot(indices, num_classes=None):
    """1 at each index along a new last axis, else 0: integers [..., num_classes], by default up to the largest index.

    >>> import minigrad as mg
    >>> mg.one_hot([0, 2], num_classes=3)
    array([[1, 0, 0],
           [0, 0, 1]])
    """
    indices = as_value(indices)
    known = _known(indices)
    if dtype_of(indices).kind not in "iu":
        raise refusal(
            f"one_hot takes integers, not {describe(indices)}", "indices.astype(int)", DTypeError
        )
    if num_classes is None:
        if known is None or not known.size:
            raise refusal("one_hot does not know how many classes there are", "num_classes=10")
        num_classes = int(known.max()) + 1
    if known is not None:
        check_counts(known, num_classes, "num_classes=…, above the largest")
    return astype(equal(expand_dims(indices, -1), np.arange(num_classes)), int)


def cross_entropy(
    x, target, axis=-1, reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0
):
    """Mean of ``-log(softmax(x))`` at integer classes, or at probabilities shaped like ``x``.

    ``axis`` is the axis of classes; ``reduction`` is "mean", "sum" or "none".  ``weight`` has one number for each
    class, and the mean is weighted with it; rows of the class ``ignore_index`` count nothing; ``label_smoothing``
    gives this share of each target to all classes alike.

    >>> import minigrad as mg
    >>> mg.cross_entropy(mg.tensor([[0.0, 0.0]]), [1])
    tensor(0.6931)
    >>> mg.cross_entropy(mg.tensor([[0.0, 0.0], [0.0, 9.0]]), [1, -1], ignore_index=-1)
    tensor(0.6931)
    """
    target = as_value(target)
    if not (isinstance(label_smoothing, int | float) and 0 <= label_smoothing <= 1):
        raise refusal(
            f"label_smoothing={label_smoothing!r} is no share", "label_smoothing=0.1", ArgumentError
        )
    if dtype_of(target).kind != "f" or not fits(np.shape(x), np.shape(target)):
        if reduction == "mean" and weight is None and ignore_index is None and not label_smoothing:
            return mean_cross_entropy(x, target, axis)
        return _likelihood(
            log_softmax(x, axis), target, axis, reduction, weight, ignore_index, label_smoothing
        )
    if ignore_index is not None:
        raise refusal(
            "ignore_index names a class, and this target holds probabilities",
            "probabilities of 0 in the rows to ignore",
        )
    logs = log_softmax(x, axis)
    if weight is not None:
        logs = logs * _along(weight, x, axis)
    losses = -reduce_sum(target * logs, axis)
    if label_smoothing:
        losses = losses * (1 - label_smoothing) - mean(logs, axis) * label_smoothing
    return reduced(losses, reduction)


@primitive(type="cross_entropy", nondiff=("target",))
def mean_cross_entropy(x, target, *, axis=-1):
    """Mean of ``-log(softmax(x))`` at integer classes."""
    usual = axis == -1 and target.shape == x.shape[:-1] and target.dtype.kind in "iu"
    if not usual:
        check_rows(x.shape, target, axis)
    check_counts(target, x.shape[axis])
    low = lowered(x, axis)
    picked = low[_places(low.shape, target, axis)]
    losses = np.log(np.add.reduce(np.exp(low), axis=axis)) - picked
    return np.add.reduce(losses, axis=None) / (losses.size or np.nan)


@primitive(nondiff=("target",))
def softmax_less_target(x, target, *, axis=-1):
    """``(softmax(x) - onehot(target)) / n`` for n rows: the slope of the mean cross entropy.

    The classes were checked when the loss was computed.
    """
    out = shares(x, axis)
    out[_places(out.shape, target, axis)] -= 1
    out /= max(target.size, 1)
    return out


def _softmax_less_target_rule(x, target, out_grad, x_shape, axis):
    p = softmax(x, axis)
    back = p * (out_grad - reduce_sum(p * out_grad, axis, keepdims=True))
    rows = tuple([a for a in range(len(x_shape)) if a != axis % len(x_shape)])
    return over_count(back, x_shape, rows)


mean_cross_entropy.grad(
    x=lambda x, target, out_grad, axis: out_grad * softmax_less_target(x, target, axis)
).formula(x="g * (softmax(x) - onehot(target)) / n")
softmax_less_target.grad(x=_softmax_less_target_rule).formula(
    x="softmax(x) * (g - sum(softmax(x) * g)) / n"
)


def _known(classes):
    """The numbers of classes; None for a Variable, which has them when it runs."""
    array = getattr(classes, "_data", classes)
    return array if isinstance(array, np.ndarray | np.generic) else None


def check_counts(target, classes, advice="count classes from 0"):
    """Errors: `IndexError` for targets that are not all among so many classes; -1 is an open size."""
    if not target.size or classes < 0:
        return
    low, high = np.minimum.reduce(target, None), np.maximum.reduce(target, None)
    if low >= 0 and high < classes:
        return
    what = f"classes from {low} to {high} are not all among 0 … {classes - 1}"
    raise IndexError(f"{what}; repair: {advice}")


def check_rows(shape, target, axis):
    """Errors: `ValueError` for targets that do not name one class for each row."""
    axis = one_axis(axis, len(shape))
    rows = shape[:axis] + shape[axis + 1 :]
    target_shape = np.shape(target)
    dtype = dtype_of(target)
    if dtype.kind in "iu" and fits(target_shape, rows):
        return
    advice = f"integers of shape {list(rows)}"
    column = len(target_shape) == len(shape) and 1 in target_shape
    if fits(target_shape, shape):  # one truth value, or one share, for each class
        advice += f": labels.argmax(axis={axis}); cross_entropy takes probabilities, too: labels.astype(float)"
    elif column and np.prod(target_shape) == np.prod(rows):
        advice += f": labels.reshape({', '.join(map(str, rows))})" + ".astype(int)" * (
            dtype.kind not in "iu"
        )
    elif fits(target_shape, rows):
        advice += ": labels.astype(int)"
    elif len(target_shape) > len(shape):
        advice = "the scores come first: cross_entropy(scores, labels)"
    elif dtype.kind in "iu" and len(shape) > 2 and fits(target_shape, shape[:1] + shape[2:]):
        advice += "; where the classes are counted by axis 1: axis=1"
    what = f"{dtype}{list(target_shape)} does not name one class for each row"
    raise ValueError(f"{what}; repair: {advice}")


def _places(shape, target, axis):
    """The index of the target's element in every row."""
    axis %= len(shape)
    grid = list(np.indices(target.shape, sparse=True))
    return (*grid[:axis], target, *grid[axis:])


def nll(x, target, axis=-1, reduction="mean", weight=None, ignore_index=None):
    """Negative log likelihood: mean of ``-x`` at integer classes, for ``x`` = log probabilities.

    ``weight`` and ``ignore_index`` are those of `cross_entropy`.

    >>> import minigrad as mg
    >>> mg.nll(mg.tensor([[-1.0, -2.0]]), [1])
    tensor(2.)
    """
    return _likelihood(x, as_value(target), axis, reduction, weight, ignore_index, 0.0)


def _likelihood(x, target, axis, reduction, weight, ignore_index, share):
    """`nll`, of which a share goes to all classes alike."""
    counted = None
    if ignore_index is not None:
        counted = not_equal(target, ignore_index)
        target = where(counted, target, 0)
    try:
        check_rows(np.shape(x), target, axis)
        if (classes := _known(target)) is not None:
            check_counts(classes, np.shape(x)[axis])
    except (ValueError, IndexError) as error:
        raise op_error("nll", ("x", "target"), (x, target), {"axis": axis}, error) from None
    counts = None
    if weight is not None:
        x, counts = x * _along(weight, x, axis), take(weight, target, 0)
    losses = -squeeze(take_along_axis(x, expand_dims(target, axis), axis), axis)
    if share:
        losses = losses * (1 - share) - mean(x, axis) * share
    if counted is not None:
        losses = where(counted, losses, 0.0)
        counts = where(counted, ones_like(losses) if counts is None else counts, 0.0)
    if counts is None or reduction != "mean":
        return reduced(losses, reduction)
    total = reduce_sum(counts)
    return reduce_sum(losses) / where(total != 0, total, np.nan)  # NaN, as a mean of nothing is


def _along(weight, x, axis):
    """One number for each class, along the axis of classes."""
    shape = [1] * len(np.shape(x))
    size = np.shape(x)[axis]
    if not fits(np.shape(weight), (size,)):
        raise refusal(
            f"weight is {describe(weight)}, and there are {size} classes",
            "one number for each class: mg.ones([n])",
        )
    shape[axis] = size
    return reshape(weight, tuple(shape))


# -- two classes, and distances ------------------------------------------------------------


@elementwise
def binary_entropy(x, target):
    """``-(t log x + (1 - t) log(1 - x))``; logarithms end at -100."""
    target = np.asarray(target, np.result_type(x, target, np.float16))
    with np.errstate(divide="ignore"):
        yes, no = np.log(x), np.log1p(np.negative(x))
    yes, no = np.maximum(yes, -100), np.maximum(no, -100)
    return -(target * yes + (1 - target) * no)


binary_entropy.grad(
    x=lambda x, target, out_grad: out_grad * (x - target) / maximum(x * (1 - x), 1e-12),
    target=lambda x, out_grad: out_grad * (log(1 - x) - log(x)),
).formula(x="g * (x - target) / (x * (1 - x))")


def binary_cross_entropy(x, target, reduction="mean"):
    """Mean of ``-(t log x + (1 - t) log(1 - x))`` for probabilities x; logarithms end at -100.

    Errors: `ShapeError` for numbers that are no probabilities; in a program, they give NaN.

    >>> import minigrad as mg
    >>> mg.binary_cross_entropy(mg.tensor([0.5]), [1.0])
    tensor(0.6931)
    """
    x, target = _pair("binary_cross_entropy", x, target)
    values = getattr(x, "_data", 0.5 if isinstance(x, Value) else x)  # a program has none yet
    if np.min(values, initial=0) < 0 or np.max(values, initial=1) > 1:
        what = f"binary_cross_entropy({describe(x)}): x goes from {np.min(values):.4g} to {np.max(values):.4g}"
        advice = "mg.binary_cross_entropy_with_logits(x, target), or mg.sigmoid(x)"
        raise refusal(f"{what}, and probabilities from 0 to 1", advice)
    return reduced(binary_entropy(x, target), reduction)


def binary_cross_entropy_with_logits(x, target, reduction="mean"):
    """`binary_cross_entropy` of ``sigmoid(x)``, without overflow.

    >>> import minigrad as mg
    >>> mg.binary_cross_entropy_with_logits(mg.tensor([0.0]), [1.0])
    tensor(0.6931)
    """
    x, target = _pair("binary_cross_entropy_with_logits", x, target)
    return reduced(softplus(x) - x * target, reduction)


@primitive(title="MseLoss")
def mse(x, y, *, reduction="mean"):
    """Mean of the squared differences, or their sum, or all of them ("none").

    >>> import minigrad as mg
    >>> mg.mse(mg.tensor([1.0, 2.0]), [0.0, 0.0])
    tensor(2.5)
    """
    if getattr(x, "shape", None) != getattr(y, "shape", None):
        x, y = _pair("mse", x, y)
    d = np.subtract(x, y)
    if reduction != "mean":
        return reduced(d * d, reduction)
    d = d.reshape(-1)
    return d.dot(d) / (d.size or np.nan)


@primitive
def mean_square_slope(x, y, *, reduction="mean"):
    """``2 x y``, for the mean over n: the gradient of x² after the reduction, linear in both arguments."""
    return x * (y * (2 / (np.size(x) or np.nan) if reduction == "mean" else 2))


mse.grad(
    x=lambda x, y, out_grad, x_shape, reduction: unbroadcast(
        mean_square_slope(x - y, out_grad, reduction), x_shape
    ),
    y=lambda x, y, out_grad, y_shape, reduction: unbroadcast(
        mean_square_slope(y - x, out_grad, reduction), y_shape
    ),
).formula(x="2 * g * (x - y) / n", y="2 * g * (y - x) / n")
mean_square_slope.grad(
    x=lambda y, out_grad, reduction: mean_square_slope(out_grad, y, reduction),
    y=lambda x, out_grad, reduction: reduced(out_grad * x, reduction) * 2,
).formula(x="2 * g * y / n", y="2 * mean(g * x)")


def huber(x, y, delta=1.0, reduction="mean"):
    """Mean of ``d²/2`` for differences up to ``delta``, beyond it ``delta * (|d| - delta/2)``.

    >>> import minigrad as mg
    >>> mg.huber(mg.tensor([0.5, 3.0]), [0.0, 0.0], reduction="none")
    tensor([0.125, 2.5  ])
    """
    far = abs(sub(*_pair("huber", x, y)))
    near = minimum(far, delta)
    return reduced(0.5 * near * near + delta * (far - near), reduction)


def _pair(op, x, y):
    """What a loss compares; two shapes that only broadcasting makes fit are a mistake in it."""
    x, y = (v if isinstance(v, int | float) else as_value(v) for v in (x, y))
    a = getattr(x, "shape", None)  # at less cost than `np.shape`
    b = getattr(y, "shape", None)
    if a and b and not fits(a, b):
        raise refusal(
            f"{op}(x: {list(a)}, y: {list(b)}) would broadcast, and compare each element with many",
            "reshape one of them to the shape of the other",
        )
    return x, y


def reduced(losses, reduction):
    """Losses as they are, their sum, or their mean."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise refusal(f"reduction={reduction!r} is unknown", "'mean', 'sum' or 'none'")
    return mean(losses) if reduction == "mean" else reduce_sum(losses)
