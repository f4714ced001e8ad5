"""The static engine: programs that are written down, differentiated as text, and then run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..elsewhere import PROGRAMS, advice, missing
from . import makers as makers
from . import net as net
from .arrays import array_length, array_read, array_write, create_array
from .backward import append_backward, gradients
from .control_flow import cond, if_else, switch, while_loop
from .declare import data, error_clip, parameter
from .executor import Executor, Scope
from .minimize import minimize
from .parser import parse
from .program import Block, Operator, Program, Variable, program_guard
from .recurrent import static_rnn
from .verify import verify

#: loaded on first use: name → module that holds it
_LATER = {
    "Adagrad": ".optim", "Adam": ".optim", "AdamW": ".optim", "RMSprop": ".optim", "SGD": ".optim",
    "compile": "codegen", "decompose": "passes", "export_onnx": "backends.exporting",
}  # fmt: skip

__all__ = [
    "Block", "Executor", "Operator", "Program", "Scope", "Variable", "append_backward",
    "array_length", "array_read", "array_write", "cond", "create_array", "data", "error_clip",
    "gradients", "if_else", "minimize", "net", "parameter", "parse", "program_guard", "static_rnn",
    "switch", "verify", "while_loop", *_LATER,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise missing("module 'minigrad.static'", name, advice(PROGRAMS, name, "static", __all__))
    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n[:2] == "__")})
