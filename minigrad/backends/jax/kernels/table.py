"""The table of counterparts, and what several of them use."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

COUNTERPARTS: dict[str, Any] = {}


def counterpart(function: Any) -> Any:
    """Enter a function in the table under its own name."""
    COUNTERPARTS[function.__name__.rstrip("_")] = function
    return function


def zeros(shape: Any, like: Any) -> Any:
    """Zeros of a dtype."""
    return jnp.zeros(tuple(shape), jnp.asarray(like).dtype)


def floating(x: Any) -> Any:
    """What NumPy's true division makes of a dtype."""
    x = jnp.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(float)
