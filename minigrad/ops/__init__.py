"""All primitives and the functions made of them, under the names users call."""
# ruff: noqa: F401, F403, F405

from ..errors.calls import check_functions
from ..primitives.values import install
from . import update
from .activations import *
from .compare import *
from .create import *
from .elementwise import *
from .index import *
from .join import *
from .linalg import *
from .losses import *
from .reduce import *
from .reduce import reduce_sum as sum
from .shape import *
from .softmax import *
from .windows import *

__minigrad_ops__ = True  # frames of this module are never "the user's line"
transpose = permute_dims
# the array API's longer names
subtract = sub
multiply = mul
divide = div
negative = neg
remainder = mod

#: every function users call as ``mg.…``
__all__ = sorted(
    n
    for n, f in globals().items()
    if callable(f) and n[0] != "_" and n not in ("install", "check_functions")
)
check_functions(globals(), __all__)


def _variadic(function):
    """A method that takes a shape in one piece or in several: ``x.reshape(2, 3)``."""

    def method(self, *args, **attrs):
        if len(args) > 1 or (args and isinstance(args[0], int)):
            args = (args,)
        return function(self, *args, **attrs)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return method


install(
    globals()
    | {
        n: _variadic(globals()[n])
        for n in ("reshape", "permute_dims", "transpose", "broadcast_to", "tile")
    }
)
