"""minigrad: learn how gradients are made."""
from . import ops
from .eager import specialise as _s
from .eager.tensor import Tensor, tensor
from .eager.backward import backward, grad
from .eager.mode import *
from .ops import *
