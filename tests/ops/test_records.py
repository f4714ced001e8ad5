"""Every primitive against its record: values, gradients, second derivatives, dtypes, errors."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import MinigradError
from minigrad.primitives.registry import REGISTRY
from tests.opinfo import RECORDS
from tests.ops import (  # noqa: F401  (they fill the table)
    records_conv,
    records_elementwise,
    records_indexing,
    records_linalg,
    records_losses,
    records_move,
    records_pool,
    records_reduce,
    records_rows,
    records_shape,
    records_statistics,
)
from tests.ops.derived import complete
from tests.ops.oracle import (
    as_list,
    call,
    directions,
    floats,
    forward_mode,
    inner,
    pulled,
    reference,
    shown,
    tensors,
    wanted,
)

complete(RECORDS.values())
OF_THE_PACKAGE = [t for t, p in REGISTRY.items() if p.kernel.__module__.startswith("minigrad.")]
BY_TYPE = pytest.mark.parametrize("record", list(RECORDS.values()), ids=list(RECORDS))
DIFFERENTIABLE = [r for r in RECORDS.values() if r.primitive.rules]
BY_RULE = pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[r.type for r in DIFFERENTIABLE])


def test_every_primitive_has_a_record_and_every_record_a_primitive():
    assert set(RECORDS) == set(OF_THE_PACKAGE)


@BY_TYPE
def test_a_record_has_eight_samples_and_two_failures(record):
    assert len(record.samples) >= 8
    assert len(record.failures) >= 2


@BY_TYPE
def test_arrays_and_tensors_get_the_value_and_dtype_of_the_reference(record):
    for sample in record.samples:
        expected = [np.asarray(o) for o in as_list(record.reference(*sample.args, **sample.attrs))]
        arrays = [k for k, a in enumerate(sample.args) if isinstance(a, np.ndarray)]
        before = [np.array(a) for a in sample.args]
        coarse = any(getattr(a, "dtype", None) == np.float32 for a in sample.args)
        for found in (
            call(record, sample, {}),
            call(record, sample, tensors(sample, arrays, False)),
        ):
            assert len(found) == len(expected)
            for got, want in zip(found, expected, strict=True):
                value = got.data if isinstance(got, mg.Tensor) else np.asarray(got)
                assert value.dtype == want.dtype, shown(sample)
                assert value.shape == want.shape, shown(sample)
                rtol = record.float32 if coarse or value.dtype == np.float32 else record.rtol
                np.testing.assert_allclose(value, want, rtol=rtol, atol=rtol, err_msg=shown(sample))
        for a, b in zip(sample.args, before, strict=True):
            np.testing.assert_array_equal(a, b, "an input was changed")


@BY_TYPE
def test_bad_input_fails_with_a_message_that_names_the_op_and_helps(record):
    for failure in record.failures:
        with pytest.raises(failure.error, match=re.escape(failure.message)) as caught:
            record.primitive.function(*failure.args, **failure.attrs)
        if failure.message != "nonsense":
            assert isinstance(caught.value, MinigradError)
            assert str(caught.value).startswith(f"{record.type}(")


@BY_RULE
def test_the_gradient_agrees_with_forward_mode_of_the_reference(record):
    """<u, J v> = <Jᵀ u, v>, with J v from the reference alone."""
    rng = np.random.default_rng(1)
    tolerance = 1e-11 if record.holomorphic else 2e-7
    for sample in record.samples:
        at = {k: sample.args[k].astype(float) for k in wanted(record, sample)}
        if not at or any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in sample.args):
            continue
        seeds = [rng.uniform(0.5, 1.5, o.shape) for o in reference(record, sample, at)]
        ours = pulled(record, sample, at, seeds)
        assert all(ours[k].shape == at[k].shape for k in at)
        for along in directions(at, rng):
            left = inner(seeds, forward_mode(record, sample, at, along))
            right = inner(ours.values(), along.values())
            assert abs(left - right) <= tolerance * max(1, abs(left)), shown(sample)


@BY_RULE
def test_second_derivatives_agree_with_differences_of_the_first(record):
    """The gradient of <w, gradient>, with respect to inputs and seed, along random directions."""
    rng = np.random.default_rng(2)
    for sample in record.samples:
        at = {k: sample.args[k].astype(float) for k in wanted(record, sample)}
        if (
            not at
            or not sum(v.size for v in at.values())
            or any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in sample.args)
        ):
            continue
        outs = reference(record, sample, at)
        seeds = [rng.uniform(0.5, 1.5, o.shape) for o in outs]
        leaves = {k: mg.tensor(v, requires_grad=True) for k, v in at.items()}
        given = [mg.tensor(u, requires_grad=True) for u in seeds]
        made = floats(call(record, sample, leaves))
        first = mg.grad(
            made,
            list(leaves.values()),
            given,
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        weights = [rng.uniform(0.5, 1.5, g.shape) for g in first]
        pairs = [(g, w) for g, w in zip(first, weights, strict=True) if g.requires_grad]
        if not pairs:
            continue
        second = mg.grad(
            [g for g, _ in pairs],
            [*leaves.values(), *given],
            [w for _, w in pairs],
            allow_unused=True,
            materialize_grads=True,
        )
        along = {k: rng.uniform(-1, 1, v.shape) for k, v in at.items()}
        turn = [rng.uniform(-1, 1, u.shape) for u in seeds]
        step = 1e-6

        def moved(
            sign,
            step=step,
            at=at,
            along=along,
            seeds=seeds,
            turn=turn,
            weights=weights,
            sample=sample,
        ):
            there = {k: at[k] + sign * step * along[k] for k in at}
            ours = pulled(
                record,
                sample,
                there,
                [u + sign * step * t for u, t in zip(seeds, turn, strict=True)],
            )
            return inner(weights, ours.values())

        slope = (moved(1) - moved(-1)) / (2 * step)
        ours = inner([g.data for g in second], [*along.values(), *turn])
        assert abs(slope - ours) <= 1e-6 * max(1, abs(slope)), shown(sample)


@BY_RULE
def test_float32_stays_float32_forward_and_backward(record):
    for sample in record.samples:
        positions = wanted(record, sample)
        arrays = [a for a in sample.args if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        if not positions or any(a.dtype != np.float32 for a in arrays) or "dtype" in sample.attrs:
            continue
        leaves = tensors(sample, positions)
        outs = [o for o in floats(call(record, sample, leaves)) if o.requires_grad]
        assert all(o.dtype == np.float32 for o in outs), shown(sample)
        grads = _raw_gradients(outs, leaves)
        assert all(g.dtype == np.float32 for g in grads), shown(sample)
        at = {k: sample.args[k].astype(float) for k in positions}
        exact = pulled(record, sample, at, [np.ones(o.shape) for o in outs])
        for g, want in zip(grads, exact.values(), strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-3, atol=1e-4, err_msg=shown(sample))


def _raw_gradients(outs, leaves):
    """What arrives at the leaves before it is fitted to them: no upcast goes unseen."""
    seen = {}
    for k, leaf in leaves.items():
        leaf.register_hook(lambda g, k=k: seen.setdefault(k, g))
    mg.backward(outs, [mg.tensor(np.ones(o.shape, o.dtype)) for o in outs])
    return [seen[k].data for k in leaves]


def test_nothing_in_the_table_warns_where_it_has_a_value():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for record in RECORDS.values():
            for sample in record.samples:
                call(record, sample, {})


@BY_TYPE
def test_memory_is_shared_with_the_first_input_of_a_view_and_with_nothing_else(record):
    """What in-place changes rely on: an op that may return its input's memory says so."""
    for sample in record.samples:
        for out in call(record, sample, {}):
            for k, a in enumerate(sample.args):
                if isinstance(a, np.ndarray) and isinstance(out, np.ndarray):
                    may = record.primitive.view and k == 0
                    assert may or not np.shares_memory(out, a), shown(sample)
