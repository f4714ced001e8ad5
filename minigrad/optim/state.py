"""What an optimizer is given to remember: it must fit, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import describe, did_you_mean, refusal


def check_state(optimizer: str, own: Mapping[str, Any], state: Any) -> None:
    """Compare a state with the optimizer's own.  Errors: `ShapeError` that names the entry."""
    if not isinstance(state, Mapping):
        what = f"a state is a mapping from names to arrays, not {describe(state)}"
        raise refusal(what, "optimizer.load_state_dict(nn.load(path))")
    for name in sorted({*own, *state}):
        if name not in own or name not in state:
            known, what = (own, "unknown") if name not in own else (state, "missing")
            hint = did_you_mean(name, known)
            advice = "the state of an optimizer of the same kind: optimizer.state_dict()"
            raise refusal(f"{what} entry {name!r} in the state of {optimizer}{hint}", advice)
        given = np.asarray(state[name])
        if given.shape != own[name].shape or given.dtype.kind not in "fiub":
            what = f"{name!r} is {describe(given)}, expected {describe(own[name])}"
            raise refusal(what, "the same parameters in the same order")
