"""What `why` found, and how it reads.  The texts of the reasons and repairs are in ``reasons.ini``."""

from __future__ import annotations

from configparser import ConfigParser
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..viz.graph.format import unwrap


class Shown:
    """Something that notebooks and the prompt show as its text."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


PATH, USE = "path", "use"  # what is told one by one


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
    start: Any = field(default=None, compare=False)  # the node backward began at: what `draw` draws
    leaf: Any = field(default=None, compare=False)
    kind: str = PATH  # or `USE`, with one path to each
    gradient: str = ""  # its name, where operators make it: ``paths`` name them, without values
    count: int = 0  # how many paths there are, where not all are told
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str, repair: str = "") -> Explanation:
        """Add a remark, if there is one; its repair replaces the one before."""
        if text:
            self.remarks.append(text)
            self.repair = repair or self.repair
        return self

    @property
    def note(self) -> str:
        """The remarks below the paths."""
        return "\n".join(f"  {text}" for text in self.remarks)

    def __str__(self) -> str:
        count = self.count or len(self.paths)
        ways = f", from {count} {self.kind}{'s' * (count > 1)}" if self.paths else ""
        ways += " of it, a path to each" * (self.kind == USE) + ":" if ways else ""
        if self.reason:
            gap = "" if self.reason.startswith("\n") else " "
            lines = [f"{self.name} has no gradient:{gap}{self.reason}"]
            lines += [f"  it would be {short(self.total)}{ways}"] if self.paths else []
        else:
            known = [self.gradient] * bool(self.gradient)
            known += [short(self.total)] * (self.total is not None)
            lines = [f"the gradient of {self.name} is {' = '.join(known)}{ways}"]
        for path, value in self.paths:
            gave = "?" if value is None else short(value)
            lines.append(
                f"  {path[0]}" if self.gradient else f"  {gave:>12}  by  {' → '.join(path)}"
            )
        more = self.count - len(self.paths)
        lines += [f"  … and {more} more"] if more > 0 else []
        lines += [self.note] * bool(self.note)
        lines += [f"  repair: {self.repair}"] * bool(self.repair)
        return "\n".join(lines)


class Explanations(Shown, list[Any]):
    """One explanation after the other; what is said of how they were found is said once."""

    def __str__(self) -> str:
        told = "\n".join(map(str, self)).split("\n")
        how = table()["forgotten"]["reason"]
        first = next((k for k, line in enumerate(told) if how in line), 0)
        return "\n".join(line for k, line in enumerate(told) if how not in line or k == first)


def as_array(value: Any) -> Any:
    """The numbers of a Tensor, of this package or of PyTorch, as an array."""
    return np.asarray(unwrap(value))


def short(value: Any) -> str:
    """A value in one line: a large one by its dtype, shape and sum."""
    array = as_array(value)
    if array.size > 8:
        return f"{array.dtype}{list(array.shape)}, sum {array.sum():.5g}"
    return " ".join(np.array2string(array, precision=5, separator=", ").split())  # in one line


@cache
def table() -> ConfigParser:
    """The sections of ``reasons.ini``."""
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read(Path(__file__).parent / "reasons.ini", encoding="utf-8")
    return parser


def because(subject: str, key: str, **words: Any) -> Explanation:
    """That there is no gradient, with the reason and the repair of that name in the table.

    >>> print(because("n", "whole_numbers", dtype="int64"))
    n has no gradient: it holds int64 numbers, and only floating-point values have gradients
      repair: make them floating-point numbers before requires_grad_()
    """
    row = table()[key]
    texts = [row.get(part, "").format(name=subject, **words) for part in ("reason", "repair")]
    return Explanation(subject, reason=texts[0], repair=texts[1])
