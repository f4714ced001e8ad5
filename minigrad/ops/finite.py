"""What is a number: NaN and the infinities."""

from __future__ import annotations

import numpy as np

from ..primitives.arguments import Value
from ..primitives.registry import primitive
from .compare import equal, where
from .fill import assign


@primitive
def isnan(x):
    """Whether an element is NaN; no gradient.

    >>> import minigrad as mg
    >>> mg.isnan(mg.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return np.isnan(x)


@primitive
def isinf(x):
    """Whether an element is infinite; no gradient.

    >>> import minigrad as mg
    >>> mg.isinf(mg.tensor([1.0, -float("inf")]))
    tensor([False,  True])
    """
    return np.isinf(x)


@primitive
def isfinite(x):
    """Whether an element is neither NaN nor infinite; no gradient.

    >>> import minigrad as mg
    >>> mg.isfinite(mg.tensor([1.0, float("nan")]))
    tensor([ True, False])
    """
    return np.isfinite(x)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """``x`` with numbers for NaN and the infinities (None: the largest there are), where the gradient is 0.

    >>> import minigrad as mg
    >>> mg.nan_to_num(mg.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    x = x if isinstance(x, Value) else np.asarray(x)
    if x.dtype.kind != "f":
        return assign(x)
    most = float(np.finfo(x.dtype).max)
    out = where(isnan(x), nan, x)
    out = where(equal(x, np.inf), most if posinf is None else posinf, out)
    return where(equal(x, -np.inf), -most if neginf is None else neginf, out)
