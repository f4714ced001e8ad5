"""Backward of operators and nets: the design before Programs, kept runnable.

backward     operators, nets and the scopes they run in; the grad operator of each; a step net, run once per element
"""

from ..errors.calls import check_functions
from .backward import (
    Backward,
    NetOp,
    Operator,
    RnnGradOp,
    RnnOp,
    Scope,
    build_grad_op,
    fc,
)

__all__ = ["Backward", "NetOp", "Operator", "RnnGradOp", "RnnOp", "Scope", "build_grad_op", "fc"]
check_functions(globals(), __all__)
