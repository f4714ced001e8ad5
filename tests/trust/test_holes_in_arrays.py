"""What no record of an op that picks, joins or moves elements looked at until a mutant survived."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError, IndexShapeError, ProgramError, ShapeError
from minigrad.ops.activations import _coefficients, erf_of_array
from minigrad.ops.random import dropout_of
from tests.trust.pieces import leaf


@pytest.mark.parametrize(
    ("bounds", "value", "by_x", "by_bound"),
    [
        ({"min": 2.0}, [2.0, 3.0], [0.0, 1.0], 1.0),
        ({"max": 2.0}, [1.0, 2.0], [1.0, 0.0], 1.0),
    ],
)
def test_values_are_cut_off_at_one_bound_that_is_a_tensor(bounds, value, by_x, by_bound):
    x = leaf([1.0, 3.0])
    ((name, bound),) = bounds.items()
    bound = leaf(bound)
    y = mg.clip(x, **{name: bound})
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist(), float(bound.grad)) == (value, by_x, by_bound)


def test_a_number_that_is_the_only_bound_cuts_the_gradient_off_there():
    for bounds, by_x in [({"min": 2.0}, [0.0, 1.0]), ({"max": 2.0}, [1.0, 0.0])]:
        x = leaf([1.0, 3.0])
        mg.clip(x, **bounds).sum().backward()
        assert x.grad.tolist() == by_x


def test_einsum_takes_one_value_and_a_list_of_values():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0, 6.0])
    trace, diagonal = mg.einsum("ii->", x), mg.einsum("ij,j->i", [x, y])
    assert (float(trace), diagonal.tolist()) == (5.0, [17.0, 39.0])
    assert mg.grad(trace, x)[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert mg.grad(diagonal.sum(), y)[0].tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    "index", [0, np.int64(1), slice(1), (0, np.int8(1)), (slice(None), 0), None, ..., (..., 0)]
)
def test_an_index_without_arrays_is_one_of_slices_wherever_it_stands(index):
    x = leaf(np.arange(4.0).reshape(2, 2))
    assert x[index].grad_fn.name() == "GetitemBackward0"
    assert mg.setitem(x, 9.0, index).grad_fn.name() == "CopySlicesBackward0"
    assert x[[0, 1], 0].grad_fn.name() == "IndexBackward0"


def test_an_index_array_stays_one_when_a_program_is_stored():
    program = static.Program()
    with static.program_guard(program):
        x, index = static.data("x", [3]), static.data("index", [2], "int64")
        y, z = x[[2, 0]], x[index]
    again = static.Program.from_json(program.to_json())
    feed = {"x": [1.0, 2.0, 3.0], "index": [1, 2]}
    found = static.Executor().run(again, feed, [y.name, z.name])
    assert [v.tolist() for v in found] == [[3.0, 1.0], [2.0, 3.0]]


def test_what_is_no_index_is_said():
    x = mg.tensor([1.0, 2.0])
    assert x[[]].tolist() == []
    assert x[mg.tensor([1, 0])].tolist() == [2.0, 1.0]
    for index, words in [
        ("a", "'a' is no index"),
        (0.5, "0.5 is no index"),
        ([0.5], r"float64\[1\] is no index(.|\n)*a mask of bools; index.astype\(int\)"),
        (mg.tensor([0.5]), r"float64\[1\] is no index(.|\n)*index.astype\(int\)"),
        (["a"], r"is no index(.|\n)*a mask of bools$"),
    ]:
        with pytest.raises(IndexShapeError, match=words):
            x[index]


def test_erf_is_that_of_the_c_library_but_for_the_last_bit():
    _coefficients.cache_clear()
    x = np.concatenate([np.linspace(-6.1, 6.1, 5001), [0.0, -0.0, 7.0, -np.inf, np.inf]])
    wanted = np.array([math.erf(v) for v in x])
    assert np.abs(erf_of_array(x) - wanted).max() <= 2.0**-52
    assert np.isnan(erf_of_array(np.nan))
    with pytest.raises(DTypeError, match="erf is defined here for real numbers, not complex128"):
        mg.erf(1j)


def test_only_real_numbers_of_a_float_dtype_can_be_no_numbers():
    x = np.array([1, 2])
    found = mg.nan_to_num(x)
    assert found.tolist() == [1, 2] and found is not x
    assert mg.nan_to_num(np.array([np.nan, -np.inf, 1.0])).tolist() == [
        0.0, -np.finfo(float).max, 1.0,
    ]  # fmt: skip


def test_complex_numbers_do_not_lose_their_imaginary_part_unasked():
    with pytest.raises(DTypeError, match="would lose the imaginary part"):
        mg.astype(np.array([1j]), float)
    assert mg.astype(np.array([1j]), "complex64").dtype == np.complex64
    assert mg.astype(np.array([1.0]), "float32").dtype == np.float32


@pytest.mark.parametrize("kernel", [1, (1, 2), (2, 1), 2, (3, 2)])
@pytest.mark.parametrize("size", [(6, 4), (3, 7)])
@pytest.mark.parametrize(("stride", "padding"), [(None, 0), (1, 0), ((2, 1), 0), (1, "half")])
def test_windows_of_any_form_on_images_of_any_form(kernel, size, stride, padding):
    """Against windows cut out one by one; each gradient goes where the elements came from."""
    high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
    border = (high // 2, wide // 2) if padding == "half" else (0, 0)
    down, right = (high, wide) if stride is None else (1, 1) if stride == 1 else stride
    x = leaf(np.random.default_rng(3).permutation(size[0] * size[1]).reshape(1, 1, *size) + 1.0)
    options = {"kernel_size": kernel, "stride": stride, "padding": border}
    both = mg.max_pool2d(x, **options), mg.avg_pool2d(x, **options)
    weights = np.arange(1.0, 1.0 + both[0].size).reshape(both[0].shape[2:])
    by_x = [mg.grad(out, x, weights[None, None])[0].numpy()[0, 0] for out in both]

    around = [(b, b) for b in border]
    image = np.pad(x.detach().numpy()[0, 0], around)
    places = np.pad(np.arange(x.size).reshape(size), around, constant_values=-1)
    top, spread = np.zeros(x.size), np.zeros(x.size)
    for (i, j), weight in np.ndenumerate(weights):
        window = (slice(i * down, i * down + high), slice(j * right, j * right + wide))
        assert both[0][0, 0, i, j].item() == image[window].max()
        assert both[1][0, 0, i, j].item() == pytest.approx(image[window].mean(), rel=1e-14)
        inside = places[window][places[window] >= 0]
        top[places[window].flat[image[window].argmax()]] += weight
        spread[inside] += weight / (high * wide)
    np.testing.assert_allclose(by_x[0], top.reshape(size), rtol=1e-14)
    np.testing.assert_allclose(by_x[1], spread.reshape(size), rtol=1e-14)


def test_the_largest_none_and_all_of_a_list():
    x = leaf([1.0, 3.0, 2.0])
    for k, wanted in [(0, []), (3, [3.0, 2.0, 1.0])]:
        values, indices = mg.topk(x, k=k)
        assert (values.tolist(), len(indices)) == (wanted, k)
    assert mg.grad(mg.topk(x, k=0)[0].sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ShapeError, match="k=4 of 3 elements"):
        mg.topk(x, k=4)
    for f in (mg.sort, mg.argsort):
        with pytest.raises(ShapeError, match="axis=None names no axis"):
            f(x, axis=None)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, bool])
def test_a_border_is_never_the_largest_of_a_window(dtype):
    x = np.array([[-3, 0], [-1, -4]]).astype(dtype)[None, None]
    found = mg.max_pool2d(x, kernel_size=2, padding=1, stride=1)
    wanted = [
        [x[..., max(i - 1, 0) : i + 1, max(j - 1, 0) : j + 1].max() for j in range(3)]
        for i in range(3)
    ]
    assert found.dtype == dtype and found[0, 0].tolist() == wanted


def test_products_of_different_ranks_and_open_sizes():
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0])
    for a, b in [(x, y), (y, x), (x, np.float64(2.0))]:
        assert np.array_equal(mg.kron(a, b), np.kron(a, b))
    with static.program_guard(static.Program()):
        a, b = static.data("a", [2, -1]), static.data("b", [3, 4])
        with pytest.raises(ProgramError, match="declare a size that must match"):
            mg.tensordot(a, b, 1)
        with pytest.raises(ShapeError, match="pairs axes of other lengths"):
            mg.tensordot(static.data("c", [2, 2]), b, 1)
    for axis in (0, 2, -3):
        with pytest.raises(ShapeError, match=rf"axis={axis}\) needs vectors of three numbers"):
            mg.cross(x, x, axis=axis)
    assert mg.cross(x, x[::-1]).tolist() == [[-3.0, 6.0, -3.0], [3.0, -6.0, 3.0]]


def test_nothing_is_dropped_with_probability_0_and_half_by_default():
    x = np.ones(1000)
    assert mg.dropout(x, 0.0) is x is mg.dropout(x, training=False)
    assert dropout_of(x, 0, p=0.0).tolist() == x.tolist()
    found = mg.dropout(x, seed=0)
    assert set(found.tolist()) == {0.0, 2.0} and 400 < np.count_nonzero(found) < 600
    for p in (-0.1, 1.0):
        with pytest.raises(ShapeError, match="is not a probability below 1"):
            mg.dropout(x, p, seed=0)


def test_one_pair_of_borders_counts_for_every_axis():
    x = np.ones((2, 3))
    for width in ([[1, 2]], (1, 2)):
        assert np.array_equal(mg.pad(x, pad_width=width), np.pad(x, (1, 2)))
    for width in ([[1, 2, 3]], [[1, 2]] * 3, (1, 2, 3)):
        with pytest.raises(ShapeError, match="does not fit 2 axes"):
            mg.pad(x, pad_width=width)


def test_images_in_another_order_are_told_which_step_is_missing():
    for shape, filters, groups, advice in [
        ([2, 8, 8], [4, 1, 3, 3], 1, r"x\.expand_dims\(1\) adds"),
        ([2, 8, 8, 3], [4, 3, 3, 3], 1, r"x\.permute_dims\(0, 3, 1, 2\) puts"),
        ([2, 8, 8, 4], [4, 2, 3, 3], 2, r"x\.permute_dims\(0, 3, 1, 2\) puts"),
        ([2, 8, 8], [4, 3, 3, 3], 1, r"height, width\]$"),
        ([2, 8, 8, 3], [4, 5, 3, 3], 1, r"height, width\]$"),
    ]:
        with pytest.raises(ShapeError, match=advice):
            mg.conv2d(mg.ones(shape), mg.ones(filters), groups=groups)


def test_einsum_takes_its_letters_first():
    with pytest.raises(DTypeError, match="einsum takes the subscripts first"):
        mg.einsum(leaf([1.0]), "i->")


def test_indices_of_the_same_dtype_are_still_copied_when_their_user_may_change_them():
    w, x = leaf([1.0, 2.0, 3.0]), mg.tensor([0, 2])
    held = x.data
    y = w[mg.astype(x, x.dtype)]
    held[:] = 1
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("stride", [1, (2, 1), (1, 3)])
@pytest.mark.parametrize(
    ("padding", "dilation"), [(0, 1), ((1, 2), 1), ((2, 0), (1, 2)), (1, (2, 1))]
)
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_convolutions_are_those_of_a_linear_map(stride, padding, dilation, groups):
    """One by one: the gradient by an element is the seed times the result for that element alone."""
    rng = np.random.default_rng(4)
    x = rng.integers(-3, 4, (2, 2, 5, 4)).astype(float)
    w = rng.integers(-3, 4, (2, 2 // groups, 3, 2)).astype(float)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    leaves = leaf(x), leaf(w)
    out = mg.conv2d(*leaves, **how)
    seed = rng.integers(-3, 4, out.shape).astype(float)
    by_x, by_w = mg.grad(out, leaves, seed)
    for k in range(x.size):
        alone = np.eye(1, x.size, k).reshape(x.shape)
        assert by_x.numpy().flat[k] == (mg.conv2d(alone, w, **how) * seed).sum()
    for k in range(w.size):
        alone = np.eye(1, w.size, k).reshape(w.shape)
        assert by_w.numpy().flat[k] == (mg.conv2d(x, alone, **how) * seed).sum()
