"""minigrad: learn how gradients are made, and use them.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])

Importing this loads NumPy and nothing heavier: pictures, widgets and notebooks come in on first
use.
"""

from importlib import import_module
from typing import Any

from . import ops
from .eager import record as _record  # noqa: F401  (lends its function to the registry)
from .eager.backward import backward, grad
from .eager.function import Function, once_differentiable
from .eager.mode import (
    detect_anomaly,
    enable_grad,
    is_grad_enabled,
    no_grad,
    saved_tensors_hooks,
    set_grad_enabled,
)
from .eager.tensor import Tensor, tensor
from .errors import MinigradError
from .errors.calls import check_functions as _check_functions
from .errors.other_libraries import TABLES, missing
from .ops import *  # noqa: F403
from .primitives.registry import elementwise, primitive

__version__ = "0.2.0"

#: loaded on first use: name → module that holds it
_LATER = {
    "draw": "viz", "play": "viz", "watch": "viz", "trace": "tracing", "static": "static", "nn": "nn", "optim": "optim",
    "data": "data", "viz": "viz", "course": "course", "gradcheck": "check", "gradgradcheck": "check",
    "hessian": "functional", "hvp": "functional", "jacobian": "functional", "jvp": "functional", "vjp": "functional",
    "why": "explain.why", "checkpoint": "eager.function",
}  # fmt: skip

__all__ = [
    "Function", "MinigradError", "Tensor", "backward", "detect_anomaly", "elementwise", "enable_grad", "grad",
    "is_grad_enabled", "no_grad", "once_differentiable", "primitive", "saved_tensors_hooks", "set_grad_enabled",
    "tensor", *({*ops.__all__} - {*_LATER}), *_LATER,
]  # fmt: skip


_check_functions(globals(), set(__all__) - {*_LATER, "Function"})
# the matrix's trace of ops; `minigrad.tracing.trace` serves both, loaded on first use
globals().pop("trace", None)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise missing("module 'minigrad'", name, TABLES["minigrad"], None, "mg", __all__)
    module = import_module(f".{_LATER[name]}", __name__)
    globals()[name] = getattr(module, name, module)  # `mg.nn` is the module itself
    _check_functions(globals(), [name])
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n[:2] == "__")})
