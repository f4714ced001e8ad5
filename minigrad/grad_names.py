"""The names a program gives on its own: gradients, their parts, copies and placeholders; made and read here only.

Pictures read them, too, in programs and nets of any engine that names its gradients so.
"""

import re
from collections.abc import Iterable
from typing import Any

EMPTY = "@EMPTY@"  #: stands where a list of gradients has none


CONSTANT = "const"  #: how the names of numbers and arrays used as they are begin


GRAD = "@GRAD"  #: ``w@GRAD`` is the gradient of ``w``
ZERO = "@ZERO"  #: ``b@ZERO``, in nets, stands for the gradient of ``b`` that nobody makes
SCOPES = "@SCOPES"  #: ``while@SCOPES_0``, and ``hs@SCOPES`` in nets, hold the scopes of steps
_PART = "@RENAME@"
_CAST = "@CAST"


_GRADIENT = re.compile(rf"(.+){GRAD}(@\d+)?")


def variable_of(name: str) -> str | None:
    """The variable whose gradient has this name; None for the parts of a gradient, and for any other name.

    >>> variable_of("w@GRAD@2"), variable_of("w@GRAD@RENAME@0")
    ('w', None)
    """
    match = _GRADIENT.fullmatch(name)
    return match[1] if match else None


def is_gradient(name: str) -> bool:
    """Whether a name is that of a gradient, of a part of one, or of what stands for one.

    >>> [is_gradient(n) for n in ("w", "w@GRAD", "w@GRAD@RENAME@0", "b@ZERO", "@EMPTY@")]
    [False, True, True, True, True]
    """
    return GRAD in name or ZERO in name or name == EMPTY


def base(name: str) -> str:
    """The name a gradient belongs to, whatever is behind it.

    >>> base("w@GRAD@RENAME@1"), base("x@GRAD@GRAD"), base("b@ZERO")
    ('w', 'x@GRAD', 'b')
    """
    mark = GRAD if GRAD in name else ZERO
    return name.rpartition(mark)[0] or name


class GradNames(dict[str, str]):
    """Variable → name of its gradient, made when it is asked for the first time."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.taken = taken

    def __missing__(self, name: str) -> str:
        gradient = f"{name}{GRAD}"
        k = 1
        while gradient in self.taken:
            k += 1
            gradient = f"{name}{GRAD}@{k}"
        self[name] = gradient
        return gradient

    def sources(self) -> dict[str, str]:
        """Gradient → variable, for all that were asked for."""
        return dict(zip(self.values(), self, strict=True))


def free_names(blocks: Iterable[Any]) -> GradNames:
    """The naming of one call of append_backward: no name that these blocks have already for a gradient.

    >>> from minigrad import static
    >>> prog = static.parse("block 0:\\n  data x: float64[2]\\n  x@GRAD = exp(x)")
    >>> free_names(prog.blocks)["x"]
    'x@GRAD@2'
    """
    return GradNames({name for b in blocks for name in b.vars if GRAD in name})


def part(gradient: str, which) -> str:
    """The name of one of several parts of a gradient: ``w@GRAD@RENAME@0``."""
    return f"{gradient}{_PART}{which}"


def label_of(name: str) -> str:
    """Which part of a gradient has this name; empty for whole ones.

    >>> label_of("w@GRAD@RENAME@sum"), label_of("w@GRAD")
    ('sum', '')
    """
    return name.partition(_PART)[2]


def before_cast(gradient: str) -> str:
    """The name of a gradient, or of a part of it, that does not have the dtype of its variable yet."""
    return gradient + _CAST


def whole(name: str) -> str:
    """The gradient that a name is a part of, or is cast to; any other name is itself.

    >>> whole("w@GRAD@RENAME@0"), whole("w@GRAD@CAST"), whole("w")
    ('w@GRAD', 'w@GRAD', 'w')
    """
    return name.partition(_PART)[0].removesuffix(_CAST)
