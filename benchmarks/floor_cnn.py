"""The floor of the CNN: channels first, so that a convolution is one product and pooling four slices.

Pooling comes before relu, which gives the same and is a quarter of the work.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import F, Workload

Array = np.ndarray[Any, Any]
dot, add, mul, greater, equal, either, larger = np.dot, np.add, np.multiply, np.greater, np.equal, np.logical_or, np.maximum


class Convolution:
    """3×3 filters with a border of zeros, then 2×2 pooling and relu, of images [channels, n, size, size]."""

    def __init__(self, k: Array, c: Array, gk: Array, gc: Array, n: int, size: int) -> None:
        out, channels = k.shape[:2]
        half = size // 2
        self.wide = np.zeros((channels, n, size + 2, size + 2), F)
        self.inside = self.wide[:, :, 1:-1, 1:-1]
        windows = np.lib.stride_tricks.sliding_window_view(self.wide, (3, 3), axis=(2, 3))
        self.windows = windows.transpose(0, 4, 5, 1, 2, 3)
        self.columns = np.empty(self.windows.shape, F)
        self.rows = self.columns.reshape(channels * 9, -1)
        self.k, self.c, self.gk, self.gc = k.reshape(out, -1), c[:, None], gk.reshape(out, -1), gc
        self.z, self.g = np.empty((out, n * size * size), F), np.empty((out, n * size * size), F)
        self.corners, self.slopes = (self.four(a.reshape(out, n, size, size)) for a in (self.z, self.g))
        shape = (out, n, half, half)
        self.four_values, self.top, self.out = np.empty((4, *shape), F), np.empty(shape, F), np.empty(shape, F)
        self.hit, self.new, self.seen = (np.empty(shape, bool) for _ in range(3))
        self.zero = np.zeros(shape, F)
        self.ones = np.ones(n * size * size, F)
        self.back_columns = np.empty_like(self.columns)
        self.back_rows = self.back_columns.reshape(channels * 9, -1)
        self.wide_slope = np.empty_like(self.wide)
        self.places = [(i, j, self.wide_slope[:, :, i : i + size, j : j + size]) for i in range(3) for j in range(3)]

    @staticmethod
    def four(a: Array) -> list[Array]:
        """The four corners of every 2×2 window."""
        return [a[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]

    def forward(self) -> None:
        np.copyto(self.columns, self.windows)
        dot(self.k, self.rows, self.z)
        add(self.z, self.c, self.z)
        for value, corner in zip(self.four_values, self.corners):
            np.copyto(value, corner)
        a, b, c, d = self.four_values
        larger(a, b, out=self.top)
        larger(self.top, c, out=self.top)
        larger(self.top, d, out=self.top)
        larger(self.top, self.zero, out=self.out)

    def backward(self, g: Array) -> None:
        """The gradients of filters and biases from that of ``out``, which is used up."""
        greater(self.top, self.zero, self.hit)
        mul(g, self.hit, g)
        self.seen.fill(False)  # whether an earlier corner was the largest
        for value, slope in zip(self.four_values, self.slopes):
            equal(value, self.top, self.hit)
            greater(self.hit, self.seen, self.new)
            mul(g, self.new, slope)
            either(self.seen, self.hit, self.seen)
        dot(self.g, self.rows.T, self.gk)
        dot(self.g, self.ones, self.gc)

    def to_input(self, out: Array) -> None:
        """The gradient of the images."""
        dot(self.k.T, self.g, self.back_rows)
        self.wide_slope.fill(0)
        for i, j, place in self.places:
            add(place, self.back_columns[:, i, j], place)
        np.copyto(out, self.wide_slope[:, :, 1:-1, 1:-1])


def cnn(w: Workload, found: list[Array]) -> Callable[[], None]:
    from floor import cross_entropy

    k1, c1, k2, c2, wo, bo = w.params
    n = len(w.x)
    one = Convolution(k1, c1, *found[:2], n, 28)
    two = Convolution(k2, c2, *found[2:4], n, 14)
    flat, g_flat = np.empty((n, 784), F), np.empty((n, 784), F)
    flat_images, g_images = (a.reshape(n, 16, 7, 7).transpose(1, 0, 2, 3) for a in (flat, g_flat))
    logits, g = np.empty((n, 10), F), np.empty((n, 10), F)
    g1, g2 = np.empty_like(one.out), np.empty_like(two.out)
    loss = cross_entropy(logits, w.y, g)

    def compute() -> None:
        np.copyto(one.inside, w.x.transpose(1, 0, 2, 3))
        one.forward()
        np.copyto(two.inside, one.out)
        two.forward()
        np.copyto(flat_images, two.out)
        dot(flat, wo, logits)
        add(logits, bo, logits)
        loss()
        dot(flat.T, g, found[4])
        np.add.reduce(g, 0, None, found[5])
        dot(g, wo.T, g_flat)
        np.copyto(g2, g_images)
        two.backward(g2)
        two.to_input(g1)
        one.backward(g1)

    return compute
