"""The static engine: programs that are written down, differentiated as text, and then run."""

from importlib import import_module
from typing import Any

from ..errors.calls import check_functions
from ..errors.other_libraries import TABLES, missing
from .backward.append_backward import append_backward, gradients
from .backward.minimize import minimize
from .program.block import Block
from .program.control_flow import (
    array_length,
    array_read,
    array_write,
    cond,
    create_array,
    if_else,
    static_rnn,
    switch,
    while_loop,
)
from .program.operator import Operator
from .program.program import Program, data, error_clip, parameter, program_guard
from .program.variable import Variable
from .program.verify import verify
from .run.executor import Executor
from .run.interpreter import Scope
from .text.syntax import parse

#: loaded on first use: name → module that holds it
_LATER = {
    "Adagrad": "..optim", "Adam": "..optim", "AdamW": "..optim", "RMSprop": "..optim", "SGD": "..optim",
    "compile": "..compiler",
    "decompose": "..compiler.program_passes", "export_onnx": "..backends.lowering",
    "from_torch": "..backends.from_torch", "net": "..nets",
    "to_c": "..backends.lowering",
}  # fmt: skip

__all__ = [
    "Block", "Executor", "Operator", "Program", "Scope", "Variable", "append_backward",
    "array_length", "array_read", "array_write", "cond", "create_array", "data", "error_clip",
    "gradients", "if_else", "minimize", "parameter", "parse", "program_guard", "static_rnn",
    "switch", "verify", "while_loop", *_LATER,
]  # fmt: skip
check_functions(globals(), set(__all__) - {*_LATER})


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise missing("module 'minigrad.static'", name, TABLES["static"], None, "static", __all__)
    module = import_module(_LATER[name], __name__)
    globals()[name] = getattr(module, name, module)  # `static.net` is the package of nets
    check_functions(globals(), [name])
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n[:2] == "__")})
