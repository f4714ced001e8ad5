"""What users call of the backends, which loads the rest."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..compiler.memory import start_memory
from ..compiler.program_passes import check_program, check_sizes, climb, limited_depth
from ..errors import did_you_mean, wrong
from ..static.program.operator import names_of
from ..static.program.program import Program
from ..static.run.executor import fed_shapes
from .c.step import CStep
from .c.text import Writer


def needs(package: str, what: str) -> None:
    """Errors: `ProgramError` with the command that installs the extra, if the package is not there."""
    if find_spec(package) is None:
        raise wrong(f"{what} needs {package}, which is not installed.", f"pip install {package}")


def step_on(backend: str) -> Any:
    """The class of what ``static.compile(..., backend=...)`` returns.  Errors: `ProgramError`."""
    if backend == "c":
        return CStep
    if backend != "jax":
        near = did_you_mean(backend, ["numpy", "c", "jax"])
        raise wrong(f"there is no backend {backend!r}{near}")
    needs("jax", 'backend="jax"')
    from .jax_step import JaxStep

    return JaxStep


def to_c(
    program: Program,
    feed: Any = None,
    fetch: Any = (),
    exact: bool = True,
    max_steps: int | None = None,
) -> str:
    """A program as one file of C99: forward, backward and updates in one function.

    Args: ``feed``, arrays or shapes where the program leaves sizes open; ``fetch``, the variables
    whose values are read from ``struct memory`` afterwards; ``exact=False`` lets sums be added up
    in any order; ``max_steps`` bounds while loops that are differentiated.  Errors: `ProgramError`
    for an operator without C, with the line of the user.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     y = static.data("x", [3]) * 2.0
    >>> [line.strip() for line in static.to_c(prog, fetch=y).splitlines()][-4:-2]
    ['for (int i = 0; i < 3; i++)', 's->mul_0[i] = f->x[i] * 2.0;']
    """
    check_program(program, "to_c", "program, fetch=[…]")
    shapes, fetch = fed_shapes(program, feed), names_of(program, fetch, "fetch")
    check_sizes(shapes, "C")
    with limited_depth():
        *_, primitives = climb(program, shapes, fetch)
        memory = start_memory(program, None)
        return Writer(primitives, fetch, memory, exact, max_steps).text()


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
    while loops, and if onnx is not installed: ``pip install onnx``.  Nothing is written then.

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
    check_program(program, "export_onnx", "program, path, fetch=[…]")
    needs("onnx", "export_onnx")
    from .onnx_model import onnx_model

    return onnx_model(program, path, feed, fetch, executor)
