"""Why, for the engines of the course: their variables link to the function that made them, or to a ``grad_fn``.

Objects are known by their attributes: ``creator`` with ``inputs``, or ``grad_fn`` with ``next_functions``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .paths import MOST_PATHS


def is_linked(x: Any) -> bool:
    """Whether this is a variable of linked nodes, or a tensor of an engine with ``grad_fn``."""
    return hasattr(x, "grad") and (hasattr(x, "data") or hasattr(x, "grad_fn"))


def paths_to(x: Any, output: Any) -> list[tuple[str, ...]]:
    """The names of the functions on each path from an output back to a variable, at most `MOST_PATHS`.

    >>> class Square:
    ...     def __init__(self, *inputs): self.inputs = inputs
    >>> class Variable:
    ...     def __init__(self, creator=None): self.creator, self.data, self.grad = creator, 0.0, None
    >>> x = Variable()
    >>> paths_to(x, Variable(Square(Variable(Square(x)))))
    [('Square', 'Square[0]')]
    """
    found: list[tuple[str, ...]] = []
    waiting: list[tuple[Any, tuple[str, ...]]] = [(output, ())]
    while waiting and len(found) < MOST_PATHS:
        at, trail = waiting.pop()
        if trail and is_same(at, x):
            found.append(trail)
            continue
        further = [
            (nxt, (*(_bare(t) for t in trail), f"{name}[{k}]")) for name, k, nxt in behind(at)
        ]
        waiting += reversed(further)
    return found


def _bare(step: str) -> str:
    return step.partition("[")[0]


def behind(at: Any) -> Iterator[tuple[str, int, Any]]:
    """(function, number of its input, what stands there) for a variable or a node."""
    node = getattr(at, "grad_fn", None) or (at if hasattr(at, "next_functions") else None)
    if node is not None:
        for k, (nxt, _) in enumerate(getattr(node, "next_functions", ())):
            if nxt is not None:
                yield _name(node), k, nxt
        return
    creator = getattr(at, "creator", None)  # None behind a leaf, which has no inputs either
    inputs = getattr(creator, "inputs", None)
    for k, v in enumerate(inputs if inputs is not None else [getattr(creator, "input", None)]):
        if v is not None:
            yield type(creator).__name__, k, v


def is_same(at: Any, x: Any) -> bool:
    """Whether a path has come to a variable: it is there itself, or the node that made or keeps it."""
    return (
        at is x
        or getattr(at, "variable", None) is x
        or (hasattr(at, "next_functions") and getattr(x, "grad_fn", None) is at)
    )


def _name(node: Any) -> str:
    name = getattr(node, "name", None)
    return name() if callable(name) else str(name or type(node).__name__)
