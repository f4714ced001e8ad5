"""Windows over images: convolution, pooling, and dropout in front of them."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ShapeError
from minigrad.ops.create import dropout_of
from tests.pieces import leaf


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, bool])
def test_a_border_is_never_the_largest_of_a_window(dtype):
    x = np.array([[-3, 0], [-1, -4]]).astype(dtype)[None, None]
    found = mg.max_pool2d(x, kernel_size=2, padding=1, stride=1)
    wanted = [
        [x[..., max(i - 1, 0) : i + 1, max(j - 1, 0) : j + 1].max() for j in range(3)]
        for i in range(3)
    ]
    assert found.dtype == dtype and found[0, 0].tolist() == wanted


def test_nothing_is_dropped_with_probability_0_and_half_by_default():
    x = np.ones(1000)
    assert mg.dropout(x, 0.0) is x is mg.dropout(x, training=False)
    assert dropout_of(x, 0, p=0.0).tolist() == x.tolist()
    found = mg.dropout(x, seed=0)
    assert set(found.tolist()) == {0.0, 2.0} and 400 < np.count_nonzero(found) < 600
    for p in (-0.1, 1.0):
        with pytest.raises(ShapeError, match="is not a probability below 1"):
            mg.dropout(x, p, seed=0)


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
