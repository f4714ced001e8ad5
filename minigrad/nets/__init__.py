"""Backward of operators and nets: the design before Programs, kept runnable.

operators    operators, nets, and the scopes they run in
backward     the grad operator of each: of a net, a net in reverse
rnn          a step net, run once per element of a sequence
"""

from __future__ import annotations

from ..errors.calls import check_functions
from .backward import Backward, added_gradients, build_grad_op, copied_inputs, fc, grad_type  # noqa: F401
from .operators import NetOp, Operator, Scope
from .rnn import RnnGradOp, RnnOp

__all__ = ["Backward", "NetOp", "Operator", "RnnGradOp", "RnnOp", "Scope", "build_grad_op", "fc"]
check_functions(globals(), __all__)
