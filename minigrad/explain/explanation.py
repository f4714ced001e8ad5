"""What `why` found, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..viz.graph.format import unwrap


class Shown:
    """Something that notebooks and the prompt show as its text."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


@dataclass(repr=False)
class Explanation(Shown):
    """What `why` found: ``paths``, from the output to the value, with what each gave; or ``reason``, why there is none.

    The contributions add up to ``total``.
    """

    name: str
    total: Any = None
    paths: list[tuple[tuple[str, ...], Any]] = field(default_factory=list)
    reason: str = ""
    repair: str = ""
    note: str = ""
    made: bool = False  # by operators, which have no values: ``paths`` name them
    start: Any = field(default=None, compare=False)  # the node backward began at: what `draw` draws
    leaf: Any = field(default=None, compare=False)
    grouped: bool = False  # one of the ``paths`` for each use of the value, whichever way the gradient came to it

    def __str__(self) -> str:
        advice = [f"  repair: {self.repair}"] if self.repair else []
        if self.reason and not self.paths:
            return "\n".join([f"{self.name} has no gradient: {self.reason}", *advice])
        if self.made:
            return "\n".join(
                [f"the gradient of {self.name} is made by:", *(f"  {p[0]}" for p, _ in self.paths)]
            )
        kind = "use(s) of it, a path to each" if self.grouped else "path(s)"
        ways = f", from {len(self.paths)} {kind}:" if self.paths else ""
        head = f"the gradient of {self.name} is {short(self.total)}{ways}"
        if self.reason:
            head = f"{self.name} has no gradient: {self.reason}\n  it would be {short(self.total)}{ways}"
        lines = [head]
        lines += [
            f"  {short(value) if value is not None else '?':>12}  by  {' → '.join(path)}"
            for path, value in self.paths
        ]
        return "\n".join([*lines, *([self.note] if self.note else []), *advice])


def as_array(value: Any) -> Any:
    """The numbers of a Tensor, of this package or of PyTorch, as an array."""
    return np.asarray(unwrap(value))


def short(value: Any) -> str:
    """A value in one line: a large one by its dtype, shape and sum."""
    array = as_array(value)
    if array.size > 8:
        return f"{array.dtype}{list(array.shape)}, sum {array.sum():.5g}"
    return " ".join(np.array2string(array, precision=5, separator=", ").split())  # in one line


class Explanations(Shown, list[Any]):
    """One explanation after the other."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))
