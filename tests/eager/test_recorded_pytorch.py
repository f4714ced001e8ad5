"""Values, gradients and second derivatives as PyTorch 2.13.0 (CPU, float64) computes them.

`pytorch_2_13.json` holds the recorded numbers: per case the inputs, the value y, the gradients g of Σ y·cos(k)
over all elements k, and the gradients of Σ g².  Left out: second derivatives at kinks, where any number will do.
"""

from __future__ import annotations

import json
from operator import add, matmul, mul, pow, sub, truediv
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

RECORDED = json.loads(Path(__file__).with_name("pytorch_2_13.json").read_text())
CLASSES = np.array([2, 0])
TARGET = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.5]])


def method(name, *args, **attrs):
    return lambda x: getattr(x, name)(*args, **attrs)


def function(name, *args, **attrs):
    return lambda *xs: getattr(mg, name)(*xs, *args, **attrs)


def at(*index):
    return lambda x: x[index if len(index) > 1 else index[0]]


CASES = {
    **{
        f"{name} {shapes}": operator
        for name, operator in {"add": add, "sub": sub, "mul": mul, "div": truediv}.items()
        for shapes in ["row", "column", "scalar", "both", "3d", "left scalar"]
    },
    "pow row": pow, "x**y at (0,2)": pow, "x**y at (0,0)": pow, "pow scalar base": lambda x: 2.0**x,
    "pow 3": lambda x: x**3, "pow 0": lambda x: x**0, "pow 0.0 at 0": lambda x: x**0.0,
    "pow 1 at 0": lambda x: x**1, "pow 2 at 0": lambda x: x**2, "0**y": lambda y: 0.0**y,
    "x**-1": lambda x: x**-1,
    **{
        name: function(name)
        for name in """exp sin cos tan tanh sigmoid abs sign square erf sinh cosh atan expm1 floor
        round neg sqrt log log1p log2 reciprocal asin acos atan2 relu leaky_relu elu softplus gelu silu
        maximum""".split()  # noqa: SIM905
    },
    "sqrt at 0": mg.sqrt, "log at 0": mg.log, "abs at 0": mg.abs,
    "leaky .3": function("leaky_relu", negative_slope=0.3), "elu 2": function("elu", alpha=2.0),
    "softplus big": mg.softplus, "sigmoid big": mg.sigmoid, "tanh big": mg.tanh,
    "clip": function("clip", -1.0, 0.5), "clip at bounds": function("clip", -1.0, 1.0),
    "clip min": function("clip", min=0.0), "maximum tie": mg.maximum, "minimum tie": mg.minimum,
    "where": lambda x, y: mg.where(x > 0, x, y),
    "where nan branch": lambda x: mg.where(x > 0, x.log(), x),
    # reductions
    **{name: method(name) for name in ["sum", "mean", "prod", "max", "min"]},
    **{
        f"{recorded} {axis}": method(name, axis=axis, **attrs)
        for axis in (0, 1, -1)
        for recorded, name, attrs in [
            ("sum", "sum", {}), ("mean keep", "mean", {"keepdims": True}), ("prod", "prod", {}),
            ("amax", "max", {}), ("amin", "min", {}), ("cumsum", "cumsum", {}),
            ("cumprod", "cumprod", {}), ("logsumexp", "logsumexp", {}), ("softmax", "softmax", {}),
            ("log_softmax", "log_softmax", {}), ("var", "var", {"correction": 1}),
            ("std", "std", {}), ("norm", "norm", {}),
        ]
    },
    "1-norm": function("norm", 1), "sum (0,1)": method("sum", axis=(0, 1)),
    "amax ties": mg.max, "amin ties rows": method("min", axis=1), "prod one zero": mg.prod,
    "prod two zeros": mg.prod, "norm at 0": mg.norm, "cumprod zero": method("cumprod", axis=0),
    "softmax big": method("softmax", axis=0), "logsumexp -inf": method("logsumexp", axis=0),
    "log_softmax big": method("log_softmax", axis=0), "std const": mg.std,
    # shapes
    "reshape": lambda x: x.reshape(3, 2) * 2, "T": lambda x: x.T,
    "permute": method("permute_dims", axes=(2, 0, 1)), "swap": method("swapaxes", 0, 2),
    "squeeze": mg.squeeze, "squeeze 0": method("squeeze", axis=0),
    "unsqueeze": method("expand_dims", axis=1), "expand": method("broadcast_to", (2, 3)),
    "flatten": mg.flatten, "flip": method("flip", axis=(0, 1)),
    "roll": method("roll", shift=1, axis=1), "tile": method("tile", (2, 1)), "tril": mg.tril,
    "triu": method("triu", k=1), "diagonal": mg.diagonal, "trace": method("trace"),
    "pad": method("pad", ((0, 1), (1, 2))), "cat": lambda x, y: mg.concat([x, y, x], axis=1),
    "stack": lambda x, y: mg.stack([x, y]), "split": lambda x: x.split([1, 2], axis=1)[1],
    "chunk": lambda x: x.split(3, axis=1)[2], "unbind": lambda x: x.unbind(axis=1)[1],
    # indices
    "index int": at(0), "index neg": at(-1), "index slice": at(slice(0, 1)), "index none": at(None),
    "index ellipsis": at(..., 0), "index list": at([0, 0, 1]),
    "index pair": at([0, 1, 1], [2, 0, 0]), "index mixed": at(slice(None), [2, 0, 2]),
    "index int list": at(0, [1, 1]), "index step": at(slice(None), slice(None, None, 2)),
    "mask": lambda x: x[x > 0], "take": method("take", [2, 2, 0], axis=1),
    "gather": method("take_along_axis", [[0, 0], [2, 1]], axis=1),
    "index_add": lambda x, y: x.index_add([0, 0], y, axis=0),
    # matrices
    **dict.fromkeys(["matmul", "mat vec", "vec mat", "vec vec"], matmul),
    **dict.fromkeys(["batched", "batch bcast", "batched vec"], matmul),
    "outer": mg.outer, "einsum": lambda x, y: mg.einsum("ij,jk->ki", x, y),
    "einsum trace": lambda x: mg.einsum("ii->", x),
    "einsum bij,bj": lambda x, y: mg.einsum("bij,bj->b", x, y), "inv": mg.inv, "det": mg.det,
    "solve": mg.solve, "cholesky": lambda x: mg.cholesky((x + x.T) / 2), "linear": mg.linear,
    # networks
    "cross_entropy": function("cross_entropy", CLASSES),
    "cross_entropy sum": function("cross_entropy", CLASSES, reduction="sum"),
    "nll": lambda x: mg.nll(x.log_softmax(axis=1), CLASSES), "mse": mg.mse, "huber": mg.huber,
    "huber .5": function("huber", delta=0.5),
    "bce logits": function("binary_cross_entropy_with_logits", TARGET),
    "bce": lambda x: mg.binary_cross_entropy(x.sigmoid(), TARGET),
    "bce logits big": function("binary_cross_entropy_with_logits", np.array([1.0, 0.0])),
    "layer_norm": mg.layer_norm, "batch_norm": mg.batch_norm, "conv2d": mg.conv2d,
    "conv2d s2 p1": function("conv2d", stride=2, padding=1),
    "conv2d dil": function("conv2d", dilation=2), "convT": function("conv_transpose2d", stride=2),
    "conv1d": function("conv1d", padding=1), "max_pool": function("max_pool2d", kernel_size=2),
    "avg_pool": function("avg_pool2d", kernel_size=2, padding=1),
    "embedding": lambda w: mg.embedding(np.array([1, 0, 1]), w),
}  # fmt: skip


def derivatives(target, xs):
    if not getattr(target, "requires_grad", False):
        return [mg.zeros(x.shape) for x in xs]
    return mg.grad(target, xs, create_graph=True, materialize_grads=True)


def same(ours, recorded):
    np.testing.assert_allclose(np.array(ours.tolist()), np.array(recorded), 1e-9, 1e-11)


def test_every_recorded_case_is_compared():
    assert sorted(CASES) == sorted(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_value_gradient_and_second_derivative_are_those_of_pytorch(name):
    record = RECORDED[name]
    xs = [mg.tensor(x, dtype=float, requires_grad=True) for x in record["inputs"]]
    with np.errstate(all="ignore"):
        y = CASES[name](*xs)
        grads = derivatives((y * np.cos(np.arange(y.size)).reshape(y.shape)).sum(), xs)
        second = derivatives(sum((g * g).sum() for g in grads), xs)
    same(y, record["value"])
    for ours, recorded in zip(grads, record["grads"], strict=True):
        same(ours, recorded)
    for ours, recorded in zip(second, record["second"] or [], strict=bool(record["second"])):
        same(ours, recorded)
