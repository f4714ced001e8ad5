"""What somebody means who writes a name or a keyword of another library: one line of advice each.

Names follow the array API; where another library says it differently, the error names the way it is
written here. The advice stands in ``other_libraries.ini``, a section for each thing that is asked
for the name.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from . import read_tables, told

C = TypeVar("C", bound=type)
TABLES = read_tables(Path(__file__).with_suffix(".ini"))


def missing(
    owner: str,
    name: str,
    table: Mapping[str, str],
    obj: Any = None,
    home: str = "",
    known: Iterable[str] = (),
) -> AttributeError:
    """The error for a name that an owner has not.

    What the table says of it is the repair, with the user's line.  A name of ``home`` that is spelt
    much the same is a question only: `exp2` is not `exp`.

    >>> print(missing("a Tensor", "view", TABLES["Tensor"]))
    a Tensor has no attribute 'view'
      at cell:1: print(missing("a Tensor", "view", TABLES["Tensor"]))
      repair: x.reshape(shape)
    >>> print(missing("module 'minigrad'", "no_grads", TABLES["minigrad"], home="mg", known=["no_grad"]))
    module 'minigrad' has no attribute 'no_grads'; did you mean mg.no_grad?
      at cell:1: print(missing("module 'minigrad'", "no_grads", TABLES["minigrad"], home="mg", known=["no_grad"]))
    """
    what = f"{owner} has no attribute {name!r}"
    advice = table.get(name)
    spelt = {n.lower(): n for n in known}
    if advice:
        what = told(what, advice)
    elif name[0] != "_" and (near := difflib.get_close_matches(name.lower(), spelt, 1, 0.75)):
        what = told(f"{what}; did you mean {home}.{spelt[near[0]]}?")
    return AttributeError(what, name=name, obj=obj)


@dataclass
class _Elsewhere:
    """A name of another library, in a class of ours."""

    owner: str
    name: str
    table: Mapping[str, str]

    def __get__(self, obj, cls: type) -> Any:
        raise missing(self.owner.format(cls.__name__), self.name, self.table, obj)


def knows_others(owner: str, table: Mapping[str, str]) -> Callable[[C], C]:
    """Let a class answer the names of a table; ``{}`` in ``owner`` is the name of the class.

    A ``__getattr__`` would do, and make every look at any attribute slower.
    """

    def names(self) -> list[str]:
        return [n for n in object.__dir__(self) if n not in table or hasattr(self, n)]

    def decorated(cls: C) -> C:
        for name in table:
            setattr(cls, name, _Elsewhere(owner, name, table))
        cls.__dir__ = names  # type: ignore[assignment]
        return cls

    return decorated


def instead(keyword: str, function: str = "") -> str:
    """What to do without a keyword of another library, in this function; empty if nothing is known.

    >>> instead("inplace"), instead("beta", "softplus")
    ('leave it out: a layer makes a new Tensor', 'mg.softplus(beta * x) / beta')
    """
    table = TABLES["keywords to leave out"]
    return table.get(f"{function} {keyword}", table.get(keyword, ""))


def meant(name: str, known: Iterable[str]) -> str:
    """The keyword that somebody means who writes ``name``; empty if none is near.

    >>> meant("dim", ["x", "axis"]), meant("keepdim", ["keepdims"]), meant("colour", ["axis"])
    ('axis', 'keepdims', '')
    """
    names = list(known)
    found = [n for n in TABLES["keywords"].get(name, "").split(", ") if n in names]
    if not found and name not in TABLES["keywords to leave out"]:
        found = difflib.get_close_matches(name, names, n=1)
    return found[0] if found else ""
