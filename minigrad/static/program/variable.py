"""Variable: a name in a Block, for a value that comes when the program runs."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import user_frame, wrong
from ...errors.other_libraries import TABLES, knows_others
from ...ops.shape import DType, Shape
from ...primitives.arguments import Args, Attrs
from ...primitives.registry import Primitive
from ...primitives.values import Operators, ufunc_on_values

if TYPE_CHECKING:
    from .block import Block
    from .program import Program


class ShapeOf:
    """The shape of a Variable, known when the program runs: an attr given as ShapeOf becomes a slot ``<attr>_like``."""

    __slots__ = ("name", "rank")

    def __init__(self, name: str, rank: int) -> None:
        self.name, self.rank = name, rank

    def __len__(self) -> int:
        return self.rank

    def _unknown(self, *args) -> Any:
        raise wrong(
            f"a gradient rule computes with the shape of {self.name!r}, which has a size -1 and is "
            "known only when the program runs",
            "declare the data with its full shape",
        )

    __iter__ = __getitem__ = __add__ = __radd__ = _unknown

    def __repr__(self) -> str:
        return f"shape of {self.name}"


@knows_others("a Variable", {**TABLES["Tensor"], **TABLES["Variable"]})
class Variable(Operators):
    """A name in a Block: what will have a value when the program runs.

    Attributes: ``block``, ``name``, ``shape`` (-1 = any size), ``dtype``, ``persistable``, ``trainable`` (a parameter),
    ``is_data`` (fed), ``stop_gradient``.  Operators and functions of minigrad apply to it and append Operators.

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     static.data("x", [-1, 3]).sum(axis=1)
    Variable(reduce_sum_0: float64[-1])
    """

    __slots__ = (
        "_derived_stop", "_stop", "block", "dtype", "is_data", "name", "persistable", "shape", "trainable",
    )  # fmt: skip
    priority = 1  # a Tensor that meets one becomes a part of the program

    def __init__(
        self,
        block: "Block",
        name: str,
        shape: Iterable[int],
        dtype: Any,
        persistable: bool = False,
        trainable: bool = False,
        is_data: bool = False,
        stop_gradient: bool | None = None,
        derived_stop: bool = False,
    ) -> None:
        self.block, self.name, self.shape = block, name, marked(tuple(shape))
        self.dtype = np.dtype(dtype)
        self.persistable = persistable
        self.trainable = trainable
        self.is_data = is_data
        self._stop, self._derived_stop = stop_gradient, derived_stop

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows to this Variable: as set, else as follows from what it is made of."""
        return self._derived_stop if self._stop is None else self._stop

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._stop = bool(value)

    @property
    def cuts(self) -> bool:
        """Whether the user said that gradients end here."""
        return self._stop is True

    @property
    def kind(self) -> str:
        """What it is declared as: "data", "param", "const" or "var"."""
        if self.persistable:
            return "param" if self.trainable else "const"
        return "data" if self.is_data else "var"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def program(self) -> "Program":
        """The Program this Variable belongs to."""
        return self.block.program

    def apply_primitive(self, primitive: Primitive, args: Args, attrs: Attrs) -> Any:
        """Append an Operator of this primitive; its outputs are new Variables."""
        return self.block.program.current_block().append_primitive(primitive, args, attrs)

    def __bool__(self) -> bool:
        raise wrong(
            f"the value of Variable {self.name!r} is not known while the program is being built, so "
            "Python's if, while, and, or cannot decide on it",
            "static.cond(pred, true_fn, false_fn) or static.while_loop(cond, body, loop_vars)",
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise wrong("a Variable cannot be changed in place", "y = mg.setitem(x, value, index)")

    def _no_value(self, *args: Any, **keywords: Any) -> Any:
        raise wrong(
            f"Variable {self.name!r} has no value while the program is being built",
            f"fetch it: static.Executor().run(program, feed={{…}}, fetch_list=[{self.name!r}])",
        )

    __float__ = __int__ = __index__ = item = numpy = __array__ = _no_value

    def __array_ufunc__(self, ufunc, method: str, *inputs, **kwargs) -> Any:
        return ufunc_on_values(ufunc, method, inputs, kwargs, Variable)

    def __len__(self) -> int:
        if not self.shape or self.shape[0] < 0:
            raise wrong(
                f"the length of Variable {self.name!r} {list(self.shape)} is not known while the "
                "program is being built",
                "declare the data with its full shape, or reduce over the axis",
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __repr__(self) -> str:
        return f"Variable({self.name}: {self.dtype}{list(self.shape)})"


class OpenSize(int):
    """-1, the size of an axis that only a run decides; a user's arithmetic with it is an error."""


def check_known(value) -> None:
    """Errors: `ProgramError` where a value is a size that is not known yet."""
    if isinstance(value, OpenSize):
        what = "a size of -1 is not known while the program is being built: Python cannot compute with it"
        advice = "x.mean() for x.sum() / n, -1 in reshape; or declare the data with its full shape"
        raise wrong(what, advice)


def _of_the_package(name: str) -> Any:
    """An operation that only the package does with an `OpenSize`."""

    def compute(self: int, *other) -> Any:
        if user_frame(2) is sys._getframe(1):
            check_known(self)
        return getattr(int, name)(self, *other)

    return compute


for _name in str.split(
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod neg float int"
):
    setattr(OpenSize, f"__{_name}__", _of_the_package(f"__{_name}__"))
_OPEN = OpenSize(-1)


def marked(shape: Shape) -> Shape:
    """A shape in which the sizes that are open say so when a user computes with them."""
    return tuple(_OPEN if n == -1 else n for n in shape) if -1 in shape else shape


def plain_variable(block: "Block", name: str, shape: Shape, dtype: DType, stop: bool) -> Variable:
    """A variable for what an operator makes, with a shape and a dtype that are known to be good."""
    var = object.__new__(Variable)
    var.block = block
    var.name = name
    var.shape = marked(shape)
    var.dtype = dtype
    var.persistable = var.trainable = var.is_data = False
    var._stop = None
    var._derived_stop = stop
    return var


def check_name(name) -> None:
    """A variable's name is a short text, unlike any other part of a program.  Errors: `ProgramError`."""
    if isinstance(name, str) and _USUAL.fullmatch(name):
        return
    good = isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable()
    if not good or _ODD.search(name):
        raise wrong(
            f"{name!r:.80} cannot be the name of a variable: use letters, digits, and _ . @ / -"
        )


#: nearly every name, told at one look
_USUAL = re.compile(r"(?!(?:True|False|None)\Z)[A-Za-z_][A-Za-z0-9_.@/-]{0,199}")
_ODD = re.compile(
    r"[\s(){}\[\],=:\"'#;<>\\]|^-|^(True|False|None|@EMPTY@|\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?j?)$"
)
