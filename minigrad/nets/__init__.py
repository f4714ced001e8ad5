"""Backward of operators and nets: the design before Programs, kept runnable.

operators    operators, nets, and the scopes they run in
backward     the grad operator of each: of a net, a net in reverse
rnn          a step net, run once per element of a sequence
"""

from __future__ import annotations

from .backward import Backward, build_grad_op, fc
from .backward import (
    added_gradients as added_gradients,
)
from .backward import (
    copied_inputs as copied_inputs,
)
from .backward import (
    grad_type as grad_type,
)
from .operators import NetOp, Operator, Scope
from .rnn import RnnGradOp, RnnOp

__all__ = ["Backward", "NetOp", "Operator", "RnnGradOp", "RnnOp", "Scope", "build_grad_op", "fc"]
