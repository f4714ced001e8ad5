"""What users call to export: loads ONNX only then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ProgramError, describe, refusal
from ..static.program.program import Program
from .lowering import needs


def export_onnx(
    program: Program,
    path: str | Path | None = None,
    feed: Mapping[str, Any] | None = None,
    fetch: Any = (),
    executor: Any = None,
) -> Any:
    """Write a program as an ONNX file; returns the model, an ``onnx.ModelProto``.

    Args: ``path``, the file, or None to write none; ``feed``, arrays or shapes where the program leaves sizes open;
    ``fetch``, the variables that become outputs, gradients too; ``executor``, whose parameters are stored (the start
    values without).  Errors: `ProgramError` for an operator without a counterpart in ONNX, for gradients of
    while loops, and if onnx is not installed: ``pip install "minigrad[onnx]"``.  Nothing is written then.

    >>> from importlib.util import find_spec
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     w = static.parameter("w", [1.0, 2.0])
    ...     loss = (static.data("x", [-1, 2]) * w).sum()
    ...     pairs = static.append_backward(loss)
    >>> if find_spec("onnx"):
    ...     model = static.export_onnx(prog, feed={"x": (3, 2)}, fetch=[loss, "w@GRAD"])
    ...     assert [v.name for v in model.graph.output] == [loss.name, "w@GRAD"]
    """
    if not isinstance(program, Program):
        what = f"export_onnx takes a Program, not {describe(program)}"
        raise refusal(what, "static.export_onnx(program, path, fetch=[…])", ProgramError)
    needs("onnx", "onnx", "export_onnx")
    from .onnx.model import onnx_model, write_model

    model = onnx_model(program, feed, fetch, executor)
    if path is not None:
        write_model(model, path)
    return model
