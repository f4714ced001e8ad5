"""Every record holds every kind of input, or a reason stands here."""

from __future__ import annotations

import pytest

from tests.opinfo import RECORDS
from tests.ops.features import FEATURES, arrays
from tests.ops.test_records import OF_THE_PACKAGE

LAYOUTS = ("not contiguous", "negative strides", "read-only", "Fortran order", "float32")
BROADCASTING = ("stretched on both sides", "different ranks", "the same object twice")

#: kind of input → reason → the primitives that need not have it
EXEMPT = {
    "0-d": {
        "works along axes": "conv2d conv2d_input conv2d_weight conv_transpose2d gather scatter index_put "
        "take_along_axis add_along_axis index_add scatter_add matmul linear inv solve det cofactor cholesky "
        "swapaxes concat split_like split unbind tril triu diagonal max_pool2d avg_pool2d cumsum cumprod shift "
        "recurrence normalize sort topk select_rows spread_rows merge_rows",
        "gets the gradient of an op that works along axes": "put_zeros put_winners untake unbroadcast untile put_diagonal "
        "avg_unpool max_unpool max_pick tie_share crop",
        "has its kind of input in momentum's, sgd's and dropout's elementwise parts": "dropout sgd momentum "
        "adagrad rmsprop adam",
    },
    "empty": {
        "gets the shape of another array as an attr": "conv2d_input conv2d_weight put_zeros untake add_along_axis fit "
        "unbroadcast untile put_diagonal avg_unpool max_unpool max_pick tie_share expand_reduced "
        "over_count spread mean_square_slope crop",
        "needs a channel": "conv_transpose2d",
        "the mean of nothing": "cross_entropy",
    },
    "Fortran order": {"vectors only": "spread"},
}


def exempt(kind: str) -> set[str]:
    return {t for types in EXEMPT.get(kind, {}).values() for t in types.split()}


def lacking(kind: str) -> set[str]:
    return {r.type for r in RECORDS.values() if not any(FEATURES[kind](s) for s in r.samples)}


def with_arrays() -> set[str]:
    return {r.type for r in RECORDS.values() if any(arrays(s) for s in r.samples)}


@pytest.mark.parametrize("kind", ["0-d", "empty", *LAYOUTS])
def test_every_op_on_arrays_has_a_sample_of_this_kind_or_a_reason(kind):
    assert lacking(kind) & with_arrays() == exempt(kind)


@pytest.mark.parametrize("kind", [*BROADCASTING, "a Python number"])
def test_every_op_that_broadcasts_has_a_sample_of_this_kind(kind):
    broadcasting = {t for t in OF_THE_PACKAGE if RECORDS[t].primitive.broadcasts}
    assert len(broadcasting) >= 20
    assert sorted(lacking(kind) & broadcasting) == [], (
        "or does @primitive say it, without broadcasting?"
    )


def test_only_the_ops_that_make_an_array_of_nothing_have_no_arrays():
    assert set(RECORDS) - with_arrays() == {"fill_constant"}
