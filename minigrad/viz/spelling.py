"""What operators and the names they read and write say of themselves, by the spelling of programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .format import LONGEST_NAME

EMPTY = "@EMPTY@"
SUM_TYPES = ("sum", "add", "add_n")
ZERO_TYPES = ("fill_zeros_like", "zeros_like")
#: operators that run what they hold several times
LOOPS = ("while", "recurrent", "rnn", "for_", "scan")
GRADIENT_KINDS = ("gradient", "leaf_gradient", "seed", "renamed", "zero", "accumulate")


# ---- names ----------------------------------------------------------------------------------


def is_gradient(name: str) -> bool:
    """Whether a name is a gradient's, by the spelling of programs.

    >>> [is_gradient(n) for n in ("w", "w@GRAD", "w@GRAD@RENAME@0", "b@ZERO", "@EMPTY@")]
    [False, True, True, True, True]
    """
    return "@GRAD" in name or "@ZERO" in name or name == EMPTY


def base(name: str) -> str:
    """The name a gradient belongs to.

    >>> base("w@GRAD@RENAME@1"), base("x@GRAD@GRAD"), base("b@ZERO")
    ('w', 'x@GRAD', 'b')
    """
    for mark in ("@GRAD", "@ZERO"):
        if mark in name:
            return name[: name.rindex(mark)]
    return name


def flat(slots: Mapping[str, Iterable[str]]) -> list[str]:
    """All names of a slot map, in slot order.

    >>> flat({"x": ["a"], "xs": ["b", "c"]})
    ['a', 'b', 'c']
    """
    return [n for names in slots.values() for n in ([names] if isinstance(names, str) else names)]


def is_scopes(name: str) -> bool:
    """Whether a name is that of step scopes: the values of each iteration of a loop."""
    return name.lower().rstrip("_0123456789").endswith("scopes")


def ported(slots: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    """(port, name) for every name of a slot map; a list slot gets one numbered port per name.

    >>> list(ported({"x": ["a"], "xs": ["b", "c"]}))
    [('x', 'a'), ('xs[0]', 'b'), ('xs[1]', 'c')]
    """
    for slot, names in slots.items():
        names = [names] if isinstance(names, str) else list(names)
        for i, name in enumerate(names):
            yield slot if len(names) == 1 else f"{slot}[{i}]", name


# ---- what an operator is --------------------------------------------------------------------


def op_kind(op: Any, backward: bool) -> str:
    """Which kind of node an operator is drawn as."""
    outs = flat(op.outputs)
    if op.type in ZERO_TYPES and any(map(is_gradient, outs)):
        return "zeros"
    if not backward:
        return "op"
    ins = flat(op.inputs)
    if op.type in SUM_TYPES and len(ins) > 1 and all(map(is_gradient, ins)):
        return "sum"
    starts = op.type.startswith(("fill", "ones"))
    return "seed" if starts and not any(map(is_gradient, ins)) else "grad_op"


def makes_gradients(op: Any) -> bool:
    """Whether an operator writes gradients and nothing else, whatever role it says it has."""
    outs = flat(op.outputs)
    return bool(outs) and all(map(is_gradient, outs))


def read_names(op: Any) -> set[str]:
    """The forward names whose values a grad op needs: ``op.reads``, else all of them."""
    said = getattr(op, "reads", None)
    if said is not None and not callable(said):
        return {*said, *(name for name in flat(op.inputs) if is_scopes(name))}
    return {name for name in flat(op.inputs) if not is_gradient(name)}


def attr_words(op: Any) -> tuple[str, tuple[str, ...]]:
    """(what stands behind the type, further lines): ``fill_constant 1.0``, ``axis=0``."""
    shown = {
        k: v
        for k, v in getattr(op, "attrs", {}).items()
        if isinstance(v, bool | int | float | str | tuple | list) and v not in ((), [])
    }
    value = shown.pop("value", None) if op.type.startswith("fill") else None
    blocks = tuple(f"{k} = {v}" for k, v in shown.items() if k.endswith("block"))
    if blocks:
        return "", blocks
    rest = ", ".join(f"{k}={v!r}" for k, v in shown.items() if not k.startswith("_"))
    lines = (rest,) if rest and len(rest) <= LONGEST_NAME else ()
    return ("" if value is None else f" {value}"), lines


def op_words(op: Any) -> str:
    """One operator in words, as the printer of programs says it: ``h = mul(x, w)``."""
    outs = ", ".join(flat(op.outputs))
    ins = ", ".join(flat(op.inputs))
    return f"{outs} = {op.type}({ins})" if outs else f"{op.type}({ins})"
