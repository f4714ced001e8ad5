"""Every op with its first and second gradients: compiled, it gives the bits of the interpreter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from tests.ops.oracle import as_list, floats, wanted
from tests.ops.test_readings import squares
from tests.ops.test_records import DIFFERENTIABLE


def program_of(record, sample, positions):
    """A program with an op, the gradients of its squares, and their gradients; feed and fetch list."""
    program, feed, made = static.Program(), {}, {}
    with static.program_guard(program):
        for k, a in enumerate(sample.args):
            if isinstance(a, np.ndarray) and id(a) not in made:
                feed[f"a{k}"] = np.array(a)
                made[id(a)] = static.data(f"a{k}", list(a.shape), dtype=a.dtype.name)
                made[id(a)].stop_gradient = False
        args = [made.get(id(a), a) if isinstance(a, np.ndarray) else a for a in sample.args]
        outs = as_list(record.primitive.function(*args, **sample.attrs))
        inputs = [args[k] for k in positions]
        total = squares(floats(outs))
        first = static.gradients(total, inputs) if total is not None else []
        bend = squares([g for g in first if g is not None])
        second = static.gradients(bend, inputs) if bend is not None else []
    return program, feed, [*outs, *(g for g in [*first, *second] if g is not None)]


def chosen(record):
    """The first two samples, the last one, and those of single numbers."""
    numbers = [s for s in record.samples if any(np.shape(a) == () for a in s.args[:1])]
    return [*record.samples[:2], *numbers, record.samples[-1]]


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[r.type for r in DIFFERENTIABLE])
def test_a_compiled_op_gives_the_bits_of_the_interpreter(record):
    for sample in chosen(record):
        positions = wanted(record, sample)
        if not positions or any(np.asarray(a).dtype.kind == "b" for a in sample.args[1:]):
            continue
        program, feed, fetch = program_of(record, sample, positions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # samples at kinks and poles
            theirs = static.Executor().run(program, feed, fetch)
            ours = static.compile(program, fetch=fetch)(**feed)
        for var, a, b in zip(fetch, ours, theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), var
            np.testing.assert_array_equal(a, b, err_msg=f"{var}, {sample.attrs}")


def test_a_number_that_a_kernel_writes_into_is_written():
    """The exponential of softmax was lost, and 0 / 0 came out."""
    program = static.Program()
    with static.program_guard(program):
        y = mg.softmax(static.data("x", []))
    assert static.compile(program, fetch=y)(x=-1.5) == 1.0
