"""What users call to export: loads ONNX only then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ProgramError, describe
from ..program import Program
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

        static.export_onnx(prog, "model.onnx", feed={"x": (32, 3)}, fetch=[loss, "w@GRAD"])
    """
    if not isinstance(program, Program):
        raise ProgramError(f"export_onnx takes a Program, not {describe(program)}")
    needs("onnx", "onnx", "export_onnx")
    from .onnx_export import onnx_model, write_model

    model = onnx_model(program, feed or {}, fetch, executor)
    if path is not None:
        write_model(model, path)
    return model
