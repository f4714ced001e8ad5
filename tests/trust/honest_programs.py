"""Programs with large and odd numbers in them, by a seed: what is written must be read, and be the same.

``python -m tests.campaign honest --programs 20000`` is the long run.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static

Build = Callable[[Any, random.Random], Any]


def number(rng: random.Random) -> float | int:
    """A constant as people write them: small, large, negative, not finite, as long as int64 is."""
    return rng.choice([
        rng.randint(-5, 5), rng.randint(-(10**9), 10**9), rng.randrange(2**62), 2**63 - 1, -(2**63), 10**8, 20_000_000,
        rng.uniform(-1, 1), rng.uniform(-1e300, 1e300), 1e-300, 5e-324, -0.0, float("inf"), float("-inf"), float("nan"), True,
    ])  # fmt: skip


def place(rng: random.Random) -> int | None:
    return rng.choice([None, 0, 1, -1, rng.randint(-9000, 9000), rng.randint(0, 9000)])


def index(rng: random.Random) -> Any:
    """An index for two axes: slices, numbers, new axes, dots, lists of places, masks of none."""
    steps = [None, 1, -1, 2, -7, 5000]
    parts = [
        lambda: slice(place(rng), place(rng), rng.choice(steps)),
        lambda: rng.choice([0, -1, 1]),
        lambda: np.array([rng.randrange(2) for _ in range(rng.randint(1, 40))]),
    ]
    chosen = [rng.choice(parts)() for _ in range(rng.choice([1, 2]))]
    if rng.random() < 0.4:
        chosen.insert(rng.randint(0, len(chosen)), rng.choice([None, ...]))
    return tuple(chosen) if len(chosen) > 1 or rng.random() < 0.5 else chosen[0]


STEPS: list[Build] = [
    lambda x, r: x * number(r),
    lambda x, r: x + number(r),
    lambda x, r: mg.where(x > number(r), x, number(r)),
    lambda x, r: mg.clip(x, -abs(r.uniform(0, 1e9)), abs(r.uniform(0, 1e9))),
    lambda x, r: x[index(r)],
    lambda x, r: mg.dropout(x, p=0.5, seed=r.choice([0, 123456789, 2**31, 2**63 - 1])),
    lambda x, r: mg.roll(x, r.choice([5000, -123456789, 2**40])),
    lambda x, r: mg.pad(x, r.choice([0, 1, 30])),
    lambda x, r: mg.reshape(x, (-1,)),
    lambda x, r: mg.reshape(x, (1, -1, 1)),
    lambda x, r: x.astype(r.choice(["float32", "int64", "float16", "bool", "uint8"])),
    lambda x, r: mg.split(mg.reshape(x, (-1,)), [1, -1])[1],
    lambda x, r: x * np.arange(r.choice([1, 20])).reshape(-1)[:1],
    lambda x, r: x + static.parameter(
        f"w{r.randrange(10**9)}", np.full(r.choice([(), (1,), (1, 1)]), r.uniform(-1, 1))
    ),
    lambda x, r: static.cond(x.sum() > number(r), lambda: x * 2.0, lambda: x - 1.0),
    lambda x, r: static.while_loop(
        lambda i, v: i < 2, lambda i, v: (i + 1, v * 0.5), [0, x.astype("float64")]
    )[1],
    lambda x, r: mg.sum(x, axis=r.choice([None, 0, -1, (0, -1)]), keepdims=r.random() < 0.5),
]  # fmt: skip


def program(seed: int) -> tuple[static.Program, Any]:
    """A program of a few steps; a step that its value does not fit is left out."""
    rng = random.Random(seed)
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [rng.choice([2, 3]), rng.choice([2, 6000])])
        for _ in range(rng.randint(1, 6)):
            before = x
            try:
                x = rng.choice(STEPS)(x, rng)
            except mg.MinigradError:
                x = before
            if 0 in x.shape or math.prod(x.shape) > 10**6:
                x = before
    return prog, x


def trial(seed: int) -> None:
    """Write, read, write again, run."""
    prog, fetched = program(seed)
    x = np.random.default_rng(seed).normal(size=prog.global_block().var("x").shape)
    text, json = str(prog), prog.to_json()
    again = static.Program.from_json(json)
    assert again.to_json() == json, "other JSON"
    assert str(static.parse(text)) == text, "another text"
    results = []
    for p in (prog, again):
        try:
            (value,) = static.Executor().run(p, {"x": x}, fetched.name)
        except mg.MinigradError as error:
            value = str(error).splitlines()[0]
        results.append(value)
    np.testing.assert_array_equal(*results)


def trials(first: int, count: int) -> list[str]:
    """Several programs; one line per failure."""
    bad = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            try:
                trial(seed)
            except Exception as error:
                bad.append(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[:1]}")
    return bad
