"""Errors that teach: each quotes the op, the shapes, the user's line and the repair.

Every exception of the engines is a `MinigradError` and also the built-in exception a Python
programmer would expect (`ValueError`, `TypeError`, `RuntimeError`), so that ``except ValueError``
keeps working.  What stands beside the engines raises Python's own: pictures, and names that are not
there (`AttributeError`); the course has a `CourseError`.

The kinds of errors, the user's line and the repair of an op's error, found from the shapes, stand
here; beside them

    calls              calls that do not fit a signature
    other_libraries    names and keywords of PyTorch, NumPy, JAX, TensorFlow and Fluid: what stands here instead
"""

import difflib
import heapq
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from types import CodeType
from typing import Any


def read_tables(path: Path) -> dict[str, dict[str, str]]:
    """Section → name → advice.  Imported with the package, so it is no more than its lines ask for."""
    tables: dict[str, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line[:1] == "[":
            table = tables[line.strip("[]")] = {}
        elif line and line[0] != "#":
            name, _, advice = line.partition(" = ")
            table[name] = advice
    return tables


REPAIRS = read_tables(Path(__file__).with_name("repair.ini"))


def repair(args: Sequence[Any], attrs: dict[str, Any], cause: Exception, usual: str = "") -> str:
    """How to repair a call whose kernel raised ``cause``; empty if nothing is known.

    >>> import numpy as np
    >>> repair([np.zeros((2, 3)), np.zeros(2)], {}, ValueError("could not be broadcast together"))
    'sizes are compared from the right and must be equal or 1; add an axis with expand_dims'
    """
    text = str(cause)
    shapes = [tuple(s) for a in args if (s := getattr(a, "shape", None)) is not None]
    for words, advice in REPAIRS["types"].items():
        if words in text:
            return advice
    if isinstance(cause, TypeError | AttributeError):
        for name in ("axis", "axes"):
            if isinstance(axes := attrs.get(name), list):
                return f"{name}={tuple(axes)}, a tuple"
        return usual
    for words, by_shapes in _BY_SHAPES.items():
        if words in text:
            return by_shapes(shapes)
    return next((advice for words, advice in REPAIRS["NumPy"].items() if words in text), "")


Shapes = list[tuple[int, ...]]


def _axes(shapes: Shapes) -> str:
    n = max(map(len, shapes), default=0)
    return f"axes go from {-n} to {n - 1} here" if n else "a single number has no axes"


def _matmul(shapes: Shapes) -> str:
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return "a matrix product needs at least one axis on each side; a number scales with *"
    x, y = shapes[:2]
    if len(x) > 2 and len(y) == 2 and prod(x[1:]) == y[0]:
        return f"all {y[0]} numbers of an example in one row: x.flatten(start=1), nn.Flatten()"
    return (
        f"the last axis of the first ({x[-1]}) must be as long as the rows of the second "
        f"({y[-2] if len(y) > 1 else y[0]}); perhaps one of them is meant transposed (x.mT)"
    )


#: words of NumPy's error → what finds the advice from the shapes
_BY_SHAPES: dict[str, Callable[..., str]] = {
    "matmul": _matmul,
    "not aligned": _matmul,
    "out of bounds for array of dimension": _axes,
    "out of range for": _axes,
    "cannot reshape": lambda shapes: (
        f"the sizes must multiply to {prod((*shapes, ())[0])}; one of them may be -1"
    ),
}


#: modules and packages through which a user's call may come: their lines are not the user's
_PASSED_THROUGH = {"contextlib", "copy", "functools", "numpy"}
_CANDIDATES = 200  #: names that are compared with an unknown one
_COMPARED = 60  #: the letters that are compared of each
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # as in the names of its files


class MinigradError(Exception):
    """Base of every error that the engines raise on purpose.

    >>> import minigrad as mg
    >>> try:
    ...     mg.tensor([1.0]).item() + mg.tensor([1.0, 2.0]).item()
    ... except mg.MinigradError as error:
    ...     print(type(error).__name__)
    DTypeError
    """


class ShapeError(MinigradError, ValueError):
    """An op does not accept these shapes or values."""


class IndexShapeError(ShapeError, IndexError):
    """An index or an axis is out of bounds, or is no index."""


class DTypeError(MinigradError, TypeError):
    """An op, or a gradient, does not accept this type."""


class ArgumentError(MinigradError, ValueError):
    """A setting has a value that it cannot have, such as a learning rate below zero."""


class GradError(MinigradError, RuntimeError):
    """Backward cannot run as asked."""


class RuleError(MinigradError, TypeError):
    """A primitive or its gradient rule is declared wrongly."""


class AnomalyError(GradError):
    """`detect_anomaly` found the first op that made a NaN or an infinity."""


class ProgramError(MinigradError, ValueError):
    """A Program cannot be built, transformed or run as asked."""


class ProgramFormatError(ProgramError):
    """A stored Program does not have the format of a Program."""


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.4) -> str:
    """The end of an error message about an unknown name; ``cutoff`` says how near a guess must be.

    >>> did_you_mean("w2", ["w1", "b1"])
    "; did you mean 'w1'? Known: 'w1', 'b1'"
    """
    names = [*map(str, known)]
    wanted = str(name)[:_COMPARED]
    near = {n[:_COMPARED]: n for n in names}
    letters = set(wanted)  # comparing letter by letter is slow: only those that have the same ones
    likely = heapq.nsmallest(_CANDIDATES, near, key=lambda n: len(letters ^ set(n)))
    close = difflib.get_close_matches(wanted, likely, n=1, cutoff=cutoff)
    hint = f"; did you mean {near[close[0]]!r}?" if close else "."
    shown = ", ".join(map(repr, names[:12])) + " …" * (len(names) > 12)
    return f"{hint} Known: {shown or 'none'}"


def user_frame(depth: int = 1) -> Any:
    """The innermost frame outside the package: the user's own code, or None."""
    frame: Any = sys._getframe(depth)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or "__minigrad_ops__" in frame.f_globals
        or str(frame.f_globals.get("__name__")).partition(".")[0] in _PASSED_THROUGH
    ):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """Where the user's code is now, as ``file:line: source``; empty if there is none."""
    frame = user_frame(2)
    return "" if frame is None else source_line(frame.f_code.co_filename, frame.f_lineno)


def source_line(filename: str, lineno: int) -> str:
    """One line of source as ``file:line: text``; only the file's own name, never the directory."""
    text = linecache.getline(filename, lineno).strip()
    text = text if len(text) <= 120 else text[:119] + "…"
    is_cell = "ipykernel" in filename or filename.startswith("<")
    short = "cell" if is_cell else os.path.basename(filename)
    return f"{short}:{lineno}: {text}" if text else f"{short}:{lineno}"


def code_line(code: CodeType | None, instruction: int) -> str:
    """The line of an instruction of a code object: how a node remembers where it was made."""
    if code is None:
        return "an unknown line"
    lines = [n for start, end, n in code.co_lines() if n and start <= instruction < end]
    return source_line(code.co_filename, [code.co_firstlineno, *lines][-1])


def describe(value) -> str:
    """Shape and dtype of an argument, as error messages quote it.

    >>> import numpy as np
    >>> describe(np.zeros((2, 3))), describe(2.5), describe(None), describe([1, 2]), describe(int)
    ('float64[2, 3]', '2.5', 'None', 'a list of 2', 'the class int')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{dtype}{list(shape)}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, int | float | complex | None) else type(value).__name__


def refusal(what: str, advice: str, error: type[MinigradError] = ShapeError) -> MinigradError:
    """An error to raise: what is wrong, the user's line, the repair.

    >>> print(refusal("lr is -1", "lr=0.01"))                       # doctest: +ELLIPSIS
    lr is -1
      at ...
      repair: lr=0.01
    """
    return error(told(what, advice))


def unmasked(value) -> Any:
    """A value as it is.  Errors: `DTypeError` for a masked array, which would lose its mask."""
    if hasattr(value, "filled"):
        what = f"a masked array ({describe(value)}) would lose its mask"
        advice = "x.filled(0.0) puts a number in the gaps; a product with ~x.mask keeps them out of"
        raise refusal(what, f"{advice} a sum", DTypeError)
    return value


def wrong(what: str, advice: str = "") -> MinigradError:
    """The `refusal` of a program or a net."""
    return refusal(what, advice, ProgramError)


def told(what: str, advice: str = "", line: str | None = None) -> str:
    """The text of an error: what is wrong, the line (the user's, if no other is given), the repair."""
    if line is None:
        line = user_line()
    if line:
        what += f"\n  at {line}"
    if advice:
        what += f"\n  repair: {advice}"
    return what


def op_error(
    op_type: str,
    names: Iterable[str],
    args: Iterable[Any],
    attrs: dict[str, Any],
    cause: Exception,
    usual: str = "pass Tensors, arrays or numbers, and attrs of the type the docstring names",
    line: str | None = None,
) -> Exception:
    """What to raise when the kernel of an op refuses its arguments; ``usual`` repairs a wrong type."""
    args = list(args)
    shown = [f"{n}: {describe(a)}" for n, a in zip(names, args, strict=False)]
    shown += [
        f"{k}={describe(v) if hasattr(v, 'dtype') else repr(v)}"
        for k, v in attrs.items()
        if v is not None and k[0] != "_"
    ]
    axis = attrs.get("axis")
    if getattr(axis, "ndim", 0) or getattr(getattr(axis, "dtype", None), "kind", "i") not in "iu":
        what = f"{op_type}({', '.join(shown)}) is not possible: an axis is a whole number"
        two = {"reduce_max": "mg.maximum(x, y)", "reduce_min": "mg.minimum(x, y)"}.get(op_type)
        advice = f"{two} takes two values, element by element" if two else "axis=0"
        return DTypeError(told(what, advice, line))
    while isinstance(cause, MinigradError):
        inner = cause.__cause__  # of an op inside the kernel of this one
        if not isinstance(inner, Exception) or inner is cause:
            return cause
        cause = inner
    what, _, advice = str(cause).partition("; repair: ")
    what = f"{op_type}({', '.join(shown)}) is not possible: {what}"
    message = told(what, advice or repair(args, attrs, cause, usual), line)
    if isinstance(cause, IndexError):
        return IndexShapeError(message)
    if isinstance(cause, TypeError | AttributeError) or "to negative integer powers" in what:
        return DTypeError(message)
    if isinstance(cause, ValueError | ZeroDivisionError):
        return ShapeError(message)
    return cause
