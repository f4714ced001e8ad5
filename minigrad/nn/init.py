"""First values of parameters: always from a generator or a seed that is given."""

from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..errors import DTypeError, describe, refusal
from ..errors.other_libraries import TABLES, missing
from ..ops.shape import Shape
from .module import Parameter, floating

Seed = int | np.random.Generator


def normal(shape: Shape, seed: Seed, dtype) -> Tensor:
    """Numbers around 0 with deviation 1."""
    return Parameter(generator(seed).standard_normal(shape), dtype=floating(dtype))


def constant(shape: Shape, value: float, dtype) -> Tensor:
    """One value everywhere."""
    return Parameter(np.full(shape, value), dtype=floating(dtype))


def fan_in(shape: Shape, inputs: int, seed: Seed, dtype) -> Tensor:
    """Spread evenly within ``1 / sqrt(inputs)``: sums of ``inputs`` products stay of one size.

    >>> bool((abs(fan_in((2, 4), 4, 0, float)) <= 0.5).all())
    True
    """
    bound = 1 / np.sqrt(max(inputs, 1))
    return Parameter(generator(seed).uniform(-bound, bound, shape), dtype=floating(dtype))


def generator(seed: Seed) -> np.random.Generator:
    """A generator of numbers; errors: `DTypeError` for what is neither a seed nor a generator."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(seed)
    advice = "seed=0, or a generator to draw on: np.random.default_rng(0)"
    raise refusal(f"seed is {describe(seed)}", advice, DTypeError)


#: what is on or off
_SWITCHES = ("bias", "bidirectional", "batch_first")


def check(layer: str, **given) -> None:
    """Check that sizes are whole numbers above 0, and that what is on or off is True or False.

    Elsewhere numbers stand in the places of these.  Errors: `ShapeError` that quotes the value.
    """
    for name, value in given.items():
        what = f"{layer}({name}={value!r}): give "
        is_switch = isinstance(value, bool | np.bool_)
        if name in _SWITCHES:
            if not is_switch:
                advice = f"{layer}(…, {name}=True), and what comes behind it by name"
                raise refusal(what + "True or False", advice)
        elif is_switch or not isinstance(value, int | np.integer) or value < 1:
            raise refusal(what + "a whole number above 0", f"{layer}(…, {name}=8)")


def __getattr__(name: str) -> Any:
    raise missing("module 'minigrad.nn.init'", name, TABLES["nn.init"])
