"""What an attr is if it is not given: a call without it is a call with the value that stands here."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad.primitives.registry import REGISTRY
from tests.opinfo import RECORDS, draw
from tests.ops.oracle import as_list
from tests.ops.test_records import OF_THE_PACKAGE

#: attr and value → the primitives that have it (numbers and truth values; the others are None, texts or required)
DEFAULTS: dict[tuple[str, float], str] = {
    (
        "axis",
        -1,
    ): "add_along_axis argsort cross_entropy log_softmax normalize softmax softmax_less_target "
    "sort take_along_axis topk",
    ("axis", 0): "concat expand_dims index_add scatter_add split split_like stack unbind",
    (
        "keepdims",
        False,
    ): "arg_max arg_min expand_reduced l2_norm logsumexp mean p_norm reduce_all reduce_any "
    "reduce_max reduce_min reduce_prod reduce_sum std tie_share var",
    ("correction", 0): "over_count std var",
    ("descending", False): "argsort sort",
    ("largest", True): "topk",
    ("reverse", False): "cumprod cumsum recurrence",
    ("stride", 1): "conv2d conv2d_input conv2d_weight conv_transpose2d",
    ("dilation", 1): "conv2d conv2d_input conv2d_weight conv_transpose2d",
    ("groups", 1): "conv2d conv2d_input conv2d_weight conv_transpose2d",
    (
        "padding",
        0,
    ): "avg_pool2d avg_unpool conv2d conv2d_input conv2d_weight conv_transpose2d max_pick max_pool2d "
    "max_unpool",
    ("output_padding", 0): "conv_transpose2d",
    ("offset", 0): "diagonal put_diagonal",
    ("axis1", 0): "diagonal put_diagonal",
    ("axis2", 1): "diagonal put_diagonal",
    ("k", 0): "tril triu",
    ("start", 0): "flatten",
    ("end", -1): "flatten",
    ("num_or_sections", 2): "split",
    ("decimals", 0): "round",
    ("fill", 0): "shift",
    ("value", 0.0): "fill_constant pad",
    ("n", 1): "pow_log",
    ("scale", 1.0): "scale",
    ("bias", 0.0): "scale",
    ("step", 1): "increment",
    ("negative_slope", 0.01): "leaky_relu",
    ("alpha", 1.0): "elu",
    ("p", 0.5): "dropout",
    ("eps", 1e-5): "normalize",
    ("epsilon", 1e-10): "adagrad",
    ("epsilon", 1e-8): "adam rmsprop",
    ("beta1", 0.9): "adam",
    ("beta2", 0.999): "adam",
    ("weight_decay", 0.0): "adam",
    ("mu", 0.9): "momentum",
    ("use_nesterov", False): "momentum",
    ("rho", 0.99): "rmsprop",
}


def defaults(type: str) -> dict[str, float]:
    return {attr: value for (attr, value), types in DEFAULTS.items() if type in types.split()}


def of_the_registry(type: str) -> dict[str, float]:
    return {k: v for k, v in REGISTRY[type].attrs.items() if isinstance(v, bool | int | float)}


WITH_DEFAULTS = [t for t in OF_THE_PACKAGE if of_the_registry(t)]

A, B, Q = draw(4, 3, gap=0.1), draw(4, 3, low=0.2, high=2.0), draw(4, 3, low=0.1, high=0.9)
IMAGE = draw(2, 3, 5)
#: functions that are no primitives, arguments, and the values of what is not given
FUNCTIONS = [
    (mg.huber, (A, B), {"delta": 1.0, "reduction": "mean"}),
    (mg.mse, (A, B), {"reduction": "mean"}),
    (mg.binary_cross_entropy, (Q, Q[::-1]), {"reduction": "mean"}),
    (mg.binary_cross_entropy_with_logits, (A, Q), {"reduction": "mean"}),
    (mg.nll, (A, np.array([0, 2, 1, 1])), {"axis": -1, "reduction": "mean"}),
    (mg.cross_entropy, (A, np.array([0, 2, 1, 1])), {"axis": -1}),
    (mg.layer_norm, (A,), {"axis": -1, "eps": 1e-5}),
    (mg.batch_norm, (A,), {"axis": 1, "eps": 1e-5}),
    (mg.norm, (A,), {"ord": 2, "axis": None, "keepdims": False}),
    (mg.ops.trace, (A[:3],), {"offset": 0}),
    (mg.conv1d, (IMAGE, draw(2, 3, 2)), {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}),
    (mg.eye, (3,), {"m": 3, "k": 0}),
    (mg.arange, (3,), {"step": 1}),
    (mg.uniform, ([9],), {"low": 0.0, "high": 1.0}),
    (mg.normal, ([9],), {"mean": 0.0, "std": 1.0}),
]
BY_FUNCTION = pytest.mark.parametrize(
    ("f", "args", "values"), FUNCTIONS, ids=[f.__name__ for f, *_ in FUNCTIONS]
)


def same(ours, wanted):
    for a, b in zip(as_list(ours), as_list(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(getattr(a, "data", a)), getattr(b, "data", b))


@pytest.mark.parametrize("type", WITH_DEFAULTS)
def test_an_attr_that_is_not_given_has_the_value_of_this_table(type):
    values, p = defaults(type), REGISTRY[type]
    assert values == of_the_registry(type), f"DEFAULTS in {__name__} says what {type} does alone"
    for sample in RECORDS[type].samples:
        given = {k: v for k, v in sample.attrs.items() if k not in values}
        try:
            wanted = p.function(*sample.args, **given, **values)
        except mg.MinigradError:  # this sample's inputs fit its own attrs only
            continue
        same(p.function(*sample.args, **given), wanted)


@BY_FUNCTION
def test_an_argument_that_is_not_given_has_the_value_of_this_table(f, args, values):
    seed = {"generator": 3} if "generator" in inspect.signature(f).parameters else {}
    wanted = f(*args, **seed, **values)
    same(f(*args, **seed), wanted)
    assert not getattr(wanted, "requires_grad", False)


@pytest.mark.parametrize(
    "make",
    [
        *(mg.zeros, mg.ones, lambda shape, **k: mg.full(shape, 1.5, **k)),
        lambda shape, **k: mg.uniform(shape, generator=1, **k),
        lambda shape, **k: mg.normal(shape, generator=1, **k),
        lambda shape, **k: mg.eye(2, **k),
        lambda shape, **k: mg.linspace(0, 1, 3, **k),
        lambda shape, **k: mg.arange(3.0, **k),
    ],
)
def test_what_is_made_wants_a_gradient_only_if_it_is_asked_to(make):
    assert make([2]).dtype == np.float64
    assert (make([2]).requires_grad, make([2]).name) == (False, None)
    x = make([2], dtype=np.float32, requires_grad=True, name="w")
    assert (x.dtype, x.requires_grad, x.name) == (np.float32, True, "w")
