"""What a Program knows of an operator type: its slots, its attrs, and what it does.

Three kinds of types share one interface, `OpInfo`: primitives, their grad ops (``mul_grad``, derived from the rules of
``mul``), and control flow (``while``, ``cond``, ``recurrent``, and their grad ops), which stands in `CONTROL`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...errors import did_you_mean, wrong
from ...errors.other_libraries import TABLES
from ...primitives.arguments import REQUIRED, Attrs, Names, Slots
from ...primitives.registry import REGISTRY, Primitive


@dataclass(slots=True, eq=False)
class OpInfo:
    """The slots and attrs of a type.  ``forward`` is the primitive, for a grad op that it differentiates."""

    type: str
    inputs: Names
    outputs: Names
    attrs: Names
    required: Names = ()
    forward: Any = None
    is_grad: bool = False
    lists: frozenset[str] = frozenset()  # slots of a primitive that hold any number of names


ROLES = ("forward", "loss", "backward", "optimize")  #: what an operator is there for

_LOOP = "sub_block next_grad carried_grad params_local"
_TO_BRANCHES = "sub_block else_block true_seeds false_seeds true_params false_params"

#: control flow: input slots, output slots, attrs
CONTROL = {
    op_type: OpInfo(op_type, (*inputs.split(),), (*outputs.split(),), (*attrs.split(),),
                    is_grad=op_type.endswith("_grad"))
    for op_type, inputs, outputs, attrs in (
        ("while", "x params", "out scopes", "sub_block cond_block carried next cond"),
        ("cond", "pred params", "out scopes", "sub_block else_block true_out false_out"),
        ("recurrent", "seq x params", "stacked out scopes", "sub_block steps carried next step_out"),
        ("while_grad", "x params scopes out_grad", "x_grad params_grad", _LOOP),
        ("cond_grad", "pred params scopes out_grad", "params_grad", _TO_BRANCHES),
        ("recurrent_grad", "seq x params scopes stacked_grad out_grad",
         "seq_grad x_grad params_grad", f"{_LOOP} step_out_grad steps_grad"),
    )
}  # fmt: skip

_CARRIED_GRAD = "x x_grad out_grad next_grad carried_grad"
_PARAMS_GRAD = "params params_grad params_local"

#: control flow: slots and attrs that are lists of one length, an entry for each value that is handed in or out
ROWS = {
    op_type: tuple(tuple(row.split()) for row in rows)
    for op_type, *rows in (
        ("while", "x carried next out"),
        ("cond", "out true_out false_out"),
        ("recurrent", "x carried next out", "seq steps", "stacked step_out"),
        ("while_grad", _CARRIED_GRAD, _PARAMS_GRAD),
        ("cond_grad", "out_grad true_seeds false_seeds", "params params_grad true_params false_params"),
        ("recurrent_grad", _CARRIED_GRAD, _PARAMS_GRAD, "seq seq_grad steps_grad", "stacked_grad step_out_grad"),
    )
}  # fmt: skip


@lru_cache(maxsize=4096)
def _derived(op_type: str, p: Primitive, is_grad: bool, rules: int) -> OpInfo | None:
    """The info of a primitive, or of its grad op once it has ``rules``."""
    likes, attrs = tuple(f"{a}_like" for a in p.attrs), tuple(p.attrs)
    long = (*(p.outputs if p.list_output else ()), *([p.list_input] if p.list_input else ()))
    lists = frozenset({*long, *(f"{n}_grad" for n in long), "shapes_like"})
    if is_grad:
        reads = (*p.inputs, *p.outputs, *(f"{o}_grad" for o in p.outputs), *likes)
        makes = tuple(f"{n}_grad" for n in p.differentiable)
        return OpInfo(op_type, reads, makes, attrs, (), p, True, lists) if rules else None
    required = [n for n in p.inputs if n not in p.optional and n != p.list_input]
    required += [a for a, default in p.attrs.items() if default is REQUIRED]
    return OpInfo(op_type, p.inputs + likes, p.outputs, attrs, tuple(required), p, False, lists)


def find_info(op_type: str) -> OpInfo | None:
    """The `OpInfo` of a type, None if it is unknown."""
    is_grad = op_type not in REGISTRY and op_type.endswith("_grad")
    p = REGISTRY.get(op_type[:-5] if is_grad else op_type)
    if p is None:
        return CONTROL.get(op_type)
    return _derived(op_type, p, is_grad, len(p.rules))


def op_info(op_type: str) -> OpInfo:
    """The `OpInfo` of a type.  Errors: `ProgramError` with the nearest known type."""
    info = find_info(op_type) if isinstance(op_type, str) else None
    if info is None:
        what = f"there is no operator type {op_type!r}"
        advice = TABLES["types of operators"].get(str(op_type), "")
        if not advice:
            what += did_you_mean(str(op_type), [*REGISTRY, *CONTROL], cutoff=0.6)
        raise wrong(what, advice)
    return info


def has_blocks(op_type: str) -> bool:
    """Whether gradients flow through blocks: only then do results of one operator depend on different inputs."""
    return op_type in CONTROL and not CONTROL[op_type].is_grad


def bind_slots(info: OpInfo, inputs: Slots, outputs: Slots, attrs: Attrs) -> Attrs:
    """Check slots and attrs against the type; returns the attrs.  Errors: `ProgramError`."""
    numbers = info.attrs + info.inputs
    for given, known, kind in (
        (inputs, info.inputs, "input slot"), (outputs, info.outputs, "output slot"), (attrs, numbers, "attr"),
    ):  # fmt: skip
        for name in given:
            if name not in known:
                what = f"{info.type} has no {kind} {name!r}{did_you_mean(name, known)}"
                fluid = info.type == "mul" and name in ("X", "Y")
                advice = "the type is 'matmul', with slots 'x', 'y' and 'out'" if fluid else ""
                raise wrong(what, advice)
    for slot, names in (*inputs.items(), *outputs.items()):
        if len(names) != 1 and slot not in info.lists and info.forward is not None:
            what = f"the slot {slot!r} of {info.type} is one value, {len(names)} names were given for it"
            raise wrong(what, f"one name for {slot!r}")
    for name in info.required:
        if name not in inputs and name not in attrs and f"{name}_like" not in inputs:
            advice = f"inputs={{{name!r}: variable}}, or a number: attrs={{{name!r}: 2.0}}"
            advice = advice if name in info.inputs else f"attrs={{{name!r}: …}}"
            raise wrong(f"{info.type} needs {name!r}", advice)
    return attrs
