"""One rule, three readings: an op in a Program gives what it gives in eager mode, twice over."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from tests.ops.oracle import as_list, call, floats, shown, wanted
from tests.ops.test_records import DIFFERENTIABLE


def squares(values):
    """The sum of the squares of all values, None of none."""
    terms = [mg.sum(v * v) for v in values]
    return mg.add_n(terms) if terms else None


def in_eager(record, sample, positions):
    leaves = {k: mg.tensor(sample.args[k], requires_grad=True) for k in positions}
    outs = call(record, sample, leaves)
    options = {"create_graph": True, "allow_unused": True, "materialize_grads": True}
    total = squares(floats(outs))
    if total is None or not total.requires_grad:
        return outs, [mg.zeros(v.shape) for v in leaves.values()] * 2
    first = mg.grad(total, list(leaves.values()), **options)
    bend = squares(first)
    second = mg.grad(bend, list(leaves.values()), **options) if bend.requires_grad else []
    return outs, [*first, *(second or [mg.zeros(v.shape) for v in leaves.values()])]


def in_a_program(record, sample, positions):
    program, feed, made = static.Program(), {}, {}
    with static.program_guard(program):
        for k, a in enumerate(sample.args):
            if isinstance(a, np.ndarray) and id(a) not in made:
                feed[f"a{k}"] = np.array(a)
                made[id(a)] = static.data(f"a{k}", list(a.shape), dtype=a.dtype.name)
                made[id(a)].stop_gradient = False
        args = [made.get(id(a), a) if isinstance(a, np.ndarray) else a for a in sample.args]
        inputs = [args[k] for k in positions]
        outs = as_list(record.primitive.function(*args, **sample.attrs))
        total = squares(floats(outs))
        first = static.gradients(total, inputs) if total is not None else [None] * len(inputs)
        bend = squares([g for g in first if g is not None])
        second = static.gradients(bend, inputs) if bend is not None else [None] * len(inputs)
        fetch = [*outs, *(g for g in [*first, *second] if g is not None)]
    found = iter(static.Executor().run(program, feed=feed, fetch_list=fetch))
    values = [next(found) for _ in outs]
    shapes = [sample.args[k].shape for k in positions] * 2
    pairs = zip([*first, *second], shapes, strict=True)
    return values, [next(found) if g is not None else np.zeros(s) for g, s in pairs]


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[r.type for r in DIFFERENTIABLE])
def test_a_program_computes_what_eager_computes(record):
    for sample in [*record.samples[:3], record.samples[-1]]:
        positions = wanted(record, sample)
        if not positions or any(np.asarray(a).dtype.kind == "b" for a in sample.args[1:]):
            continue  # the shape at a mask is known when the program runs
        eager, program = (
            in_eager(record, sample, positions),
            in_a_program(record, sample, positions),
        )
        for ours, theirs in zip(eager, program, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                value = a.data if isinstance(a, mg.Tensor) else a
                np.testing.assert_allclose(b, value, rtol=1e-5, atol=1e-7, err_msg=shown(sample))
