"""Optimizers: what is done with gradients.

Every optimizer is one row: the update primitive (`minigrad/ops/update.py`), its attrs, and what it
remembers about each parameter.  The same primitive runs eagerly (``step()``) and as an operator of
a Program (``minimize(loss)``).

    grad → clip → + weight_decay * parameter → update primitive → parameter

>>> import minigrad as mg
>>> w = mg.tensor([1.0, 2.0], requires_grad=True)
>>> (w * w).sum().backward()
>>> SGD([w], lr=0.25).step()
>>> w
tensor([0.5, 1. ], requires_grad=True)
"""

from typing import Any

from ..errors.calls import check_functions
from ..errors.other_libraries import TABLES, missing
from .optimizers import *  # noqa: F403
from .optimizers import __all__

check_functions(globals(), __all__)


def __getattr__(name: str) -> Any:
    raise missing("module 'minigrad.optim'", name, TABLES["optim"], None, "optim", __all__)
