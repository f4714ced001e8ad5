"""Layers and the modules that hold their parameters.

>>> import minigrad as mg
>>> model = Sequential(Linear(64, 32), mg.relu, Linear(32, 10))
>>> model(mg.zeros([5, 64])).shape, len(model.parameters())
((5, 10), 4)

Layers draw their first values from ``seed``, 0 for all: layers of the same shape start alike unless
each is given a seed of its own, or all of them one generator.

>>> import numpy as np
>>> draw = np.random.default_rng(0)
>>> a, b = Linear(2, 2, seed=draw), Linear(2, 2, seed=draw)
>>> bool((a.weight == b.weight).any())
False
"""

from typing import Any

from ..errors.calls import check_functions
from ..errors.other_libraries import TABLES, missing
from . import layers as _layers
from .layers import *  # noqa: F403
from .module import Module, Parameter, StateError
from .storage import load, save

__all__ = [*_layers.__all__, "Module", "Parameter", "StateError", "load", "save"]
check_functions(globals(), __all__)


def __getattr__(name: str) -> Any:
    raise missing("module 'minigrad.nn'", name, TABLES["nn"], None, "nn", __all__)
