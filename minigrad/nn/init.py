"""First values of parameters: always from a generator or a seed that is given."""

from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..errors import DTypeError, describe, refusal
from ..errors.other_libraries import TABLES, missing
from ..ops.shape import Shape
from .module import Parameter, floating

Seed = int | np.random.Generator


def normal(shape: Shape, seed: Seed, dtype: Any) -> Tensor:
    """Numbers around 0 with deviation 1."""
    return Parameter(generator(seed).standard_normal(shape), dtype=floating(dtype))


def constant(shape: Shape, value: float, dtype: Any) -> Tensor:
    """One value everywhere."""
    return Parameter(np.full(shape, value), dtype=floating(dtype))


def fan_in(shape: Shape, inputs: int, seed: Seed, dtype: Any) -> Tensor:
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


def sizes(layer: str, **numbers: Any) -> None:
    """Check that sizes are whole numbers above 0.  Errors: `ShapeError` that quotes the size."""
    for name, value in numbers.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            what = f"{layer}({name}={value!r}): give a whole number above 0"
            raise refusal(what, f"{layer}(…, {name}=8)")


def switches(layer: str, **flags: Any) -> None:
    """Check that what is on or off is True or False: elsewhere numbers stand in these places."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            what = f"{layer}({name}={value!r}): give True or False"
            raise refusal(what, f"{layer}(…, {name}=True), and what comes behind it by name")


def __getattr__(name: str) -> Any:
    raise missing("module 'minigrad.nn.init'", name, TABLES["nn.init"])
