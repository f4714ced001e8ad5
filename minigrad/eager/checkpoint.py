"""checkpoint: compute again in backward instead of keeping values.

The function runs as always and leaves its graph, but in the place of every value that a node would save stands its
number.  When backward asks for the first one, the function runs once more, and its saved values are those numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import GradError, told, user_line
from ..ops.shape import Shape
from ..primitives.arguments import Args, Function
from .mode import enable_grad, saved_tensors_hooks
from .tensor import Tensor


def checkpoint(function: Callable[..., Any], *args: Any) -> Any:
    """Run ``function(*args)`` and keep nothing; backward runs it again to get the values it needs.

    Saves memory for time.  ``function`` must compute the same each time (seed its random numbers).
    Errors: `GradError` in backward if it did not, or if an argument was changed in place since.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> mg.checkpoint(lambda x: x * x, x).backward()
    >>> x.grad
    tensor(6.)
    """
    again = _Again(function, args)
    with saved_tensors_hooks(again.number, again.value):
        return function(*args)


class _Again:
    """A function to run again, and what it saved the second time, by number."""

    def __init__(self, function: Function, args: Args) -> None:
        self.function, self.args, self.line = function, args, user_line()
        self.versions = [a._version for a in args if isinstance(a, Tensor)]
        self.specs: list[tuple[Shape, Any]] = []
        self.found: dict[int, Any] = {}

    def number(self, value: Any) -> int:
        """Keep only the number of a value, its shape and its dtype."""
        self.specs.append((value.shape, value.dtype))
        return len(self.specs) - 1

    def value(self, number: int) -> Any:
        """The value of this number; each is handed out once."""
        if number not in self.found:
            self.run()
        return self.found.pop(number)

    def run(self) -> None:
        """Compute everything once more, on copies without a graph."""
        tensors = [a for a in self.args if isinstance(a, Tensor)]
        if [t._version for t in tensors] != self.versions:
            what = "an argument of checkpoint was changed in place before backward"
            raise GradError(told(what, "use the out-of-place form, or pass a clone()", self.line))
        copies = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a
            for a in self.args
        ]
        saved: list[Any] = []
        with enable_grad(), saved_tensors_hooks(saved.append, lambda nothing: nothing):
            self.function(*copies)
        if [(v.shape, v.dtype) for v in saved] != self.specs:
            what = f"the function of checkpoint computed something else the second time: it saved {len(saved)} "
            what += f"value(s), the first time {len(self.specs)}"
            advice = "it must depend on nothing but its arguments; seed its random numbers"
            raise GradError(told(what, advice, self.line))
        self.found = dict(enumerate(saved))
