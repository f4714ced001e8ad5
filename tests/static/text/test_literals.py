"""Attrs in files: everything that may stand there comes back as it was, everything else is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from minigrad.static.text.literals import (
    LIMIT,
    MAX_DEPTH,
    check_shape,
    from_plain,
    to_plain,
)

VALUES = [
    *(None, True, False, 0, -3, 2**64 - 1, -(2**63), 1.5, "text", "slice", math.inf, -math.inf),
    *(
        (),
        (1, 2),
        ((1,), [2, (3,)]),
        [],
        [1, "a", None],
        ["slice", 1],
        ["tuple"],
        ["list", ["list"]],
    ),
    *(slice(1, None, 2), slice(None), (slice(0, 3), ..., None), ..., [..., slice(None, -1)]),
    *(np.dtype("float32"), np.dtype(bool), [np.dtype("int8")]),
    np.array([[1, 2], [3, 4]], np.int32),
    np.array([0.5, math.inf, math.nan]),
    np.array([True, False]),
    np.zeros((0, 3)),
    np.array(7.0),
]


def same(a, b):
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_attr_comes_back_as_it_was_from_json_and_from_text(value):
    plain = to_plain(value)
    assert same(from_plain(json.loads(json.dumps(plain, allow_nan=False))), value)
    assert to_plain(from_plain(plain)) == plain
    assert same(from_plain(to_plain(value, tuples=True)), value)


def test_numbers_of_numpy_and_classes_of_numbers_have_a_plain_form():
    assert to_plain(np.float32(0.5)) == 0.5
    assert to_plain(np.int64(3)) == 3
    assert math.isnan(from_plain(to_plain(math.nan)))
    for kind, name in [(np.float32, "float32"), (float, "float64"), (int, "int64")]:
        assert to_plain(kind) == ["dtype", name]


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {1}, str, np.array(["a"]), 1j, b"x"], ids=lambda v: type(v).__name__
)
def test_what_has_no_plain_form_is_refused(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        to_plain(value)


BAD = [
    *(["slice", 1, 2], ["slice", 1, 2, 3.0], ["slice", 1, 2, True], ["slice", [1], 2, 3]),
    *(["ellipsis", 1], ["dtype"], ["dtype", "object"], ["dtype", "float64", 1], ["float", "1"]),
    *(["float", "nan", 1], ["array", "float64", [2]], ["array", "object", [1], [1]]),
    *(["array", "float64", [2], [1]], ["array", "float64", [1], ["a"]], ["array", "int64", 1, [1]]),
    *(["array", "float64", [-1], []], ["array", "float64", [1], 1], {"a": 1}, [{"a": 1}]),
    *(math.nan, math.inf, 2**64, -(2**63) - 1, b"x"),
]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_no_attr_looks_like_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        from_plain(value)


@pytest.mark.parametrize("kind", ["list", "tuple", "tagged", "listed"])
def test_attrs_nest_up_to_a_limit(kind):
    def nested(depth):
        value = 1
        for _ in range(depth):
            value = {
                "list": [value],
                "tuple": (value,),
                "tagged": ["tuple", value],
                "listed": ["list", value],
            }[kind]
        return value

    from_plain(nested(MAX_DEPTH))
    with pytest.raises(ValueError, match="nest deeper"):
        from_plain(nested(MAX_DEPTH + 1))


def test_shapes_have_a_rank_a_sign_and_a_size_in_bytes():
    most = LIMIT // 8
    for shape in ([], [0, 5], [most], [1] * 32):
        check_shape(shape)
    check_shape([-1, 3], smallest=-1)
    check_shape([2 * most], itemsize=4)
    check_shape([2 * most], limit=2 * LIMIT)
    for shape in ([-1], [most + 1], [most, 2], [1] * 33, (1,), [1.0], [True], "3"):
        with pytest.raises(ValueError, match=r"shape"):
            check_shape(shape)
    with pytest.raises(ValueError, match=r"is no shape"):
        check_shape([-2], smallest=-1)
    with pytest.raises(ValueError, match=r"the limit is"):
        check_shape([0, most + 1])
