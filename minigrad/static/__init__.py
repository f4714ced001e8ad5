"""The static engine: programs that are written down, differentiated as text, and then run."""
from __future__ import annotations

from . import net as net
from .backward import append_backward, gradients
from .control_flow import cond, if_else, static_rnn, switch, while_loop
from .executor import Executor, Scope
from .expand import decompose
from .printer import parse
from .program import Block, Operator, Program, Variable, data, parameter, program_guard

__all__ = [
    "Block", "Executor", "Operator", "Program", "Scope", "Variable", "append_backward", "cond", "data", "decompose", "gradients",
    "if_else", "net", "parameter", "parse", "program_guard", "static_rnn", "switch", "while_loop",
]  # fmt: skip
