"""minigrad: learn how gradients are made."""
from . import ops
from .eager import specialise as _s
from .eager.tensor import Tensor, tensor
from .eager.backward import backward, grad
from .eager.mode import *
from .ops import *


def __getattr__(name):
    """Pictures load on first use: ``mg.draw``, ``mg.play``, ``mg.watch``."""
    if name not in ("draw", "play", "watch"):
        raise AttributeError(f"module 'minigrad' has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = found = getattr(import_module("minigrad.viz"), name)
    return found
