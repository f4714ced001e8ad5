"""Operator: one operation of a Block, as data; before it, what a Program knows of an operator type: slots, attrs.

Three kinds of types share one interface, `OpInfo`: primitives, their grad ops (``mul_grad``, derived from the rules of
``mul``), and control flow (``while``, ``cond``, ``recurrent``, and their grad ops), which stands in `CONTROL`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...errors import MinigradError, code_line, describe, did_you_mean, wrong
from ...errors.other_libraries import TABLES
from ...grad_names import EMPTY, GRAD
from ...primitives.arguments import REQUIRED, Attrs, Listed, Names, Slots, as_list
from ...primitives.registry import REGISTRY, Primitive
from .variable import Variable, check_name

if TYPE_CHECKING:
    from .program import Program


@dataclass
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
    #: slots and attrs of one length: an entry for each value that is handed in or out
    rows: tuple[Names, ...] = ()


ROLES = ("forward", "loss", "backward", "optimize")  #: what an operator is there for

#: control flow: type | input slots | output slots | attrs | rows
_CONTROL = """
while | x params | out scopes | sub_block cond_block carried next cond | x carried next out

cond | pred params | out scopes | sub_block else_block true_out false_out | out true_out false_out

recurrent | seq x params | stacked out scopes | sub_block steps carried next step_out
| x carried next out | seq steps | stacked step_out

while_grad | x params scopes out_grad | x_grad params_grad
| sub_block next_grad carried_grad params_local
| x x_grad out_grad next_grad carried_grad | params params_grad params_local

cond_grad | pred params scopes out_grad | params_grad
| sub_block else_block true_seeds false_seeds true_params false_params
| out_grad true_seeds false_seeds | params params_grad true_params false_params

recurrent_grad | seq x params scopes stacked_grad out_grad | seq_grad x_grad params_grad
| sub_block next_grad carried_grad params_local step_out_grad steps_grad
| x x_grad out_grad next_grad carried_grad | params params_grad params_local
| seq seq_grad steps_grad | stacked_grad step_out_grad
"""


def _control(entry: str) -> OpInfo:
    """The entry of a type in this table."""
    (op_type,), inputs, outputs, attrs, *rows = (tuple(text.split()) for text in entry.split("|"))
    is_grad = op_type.endswith("_grad")
    return OpInfo(op_type, inputs, outputs, attrs, is_grad=is_grad, rows=tuple(rows))


CONTROL = {info.type: info for info in map(_control, _CONTROL.split("\n\n"))}


@lru_cache(maxsize=4096)
def _derived(op_type: str, p: Primitive, is_grad: bool, rules: int) -> OpInfo | None:
    """The info of a primitive, or of its grad op once it has ``rules``."""
    check_name(f"{op_type}_{10**6}")  # as results are named
    likes = tuple(f"{a}_like" for a in p.attrs)
    attrs = tuple(p.attrs)
    long = p.outputs if p.list_output else ()
    if p.list_input:
        long += (p.list_input,)
    lists = frozenset({*long, *(f"{n}_grad" for n in long), "shapes_like"})
    if is_grad:
        reads = (*p.inputs, *p.outputs, *(f"{o}_grad" for o in p.outputs), *likes)
        makes = tuple(f"{n}_grad" for n in p.differentiable)
        return OpInfo(op_type, reads, makes, attrs, (), p, True, lists) if rules else None
    required = [n for n, d in p.parameters.items() if d is REQUIRED and n != p.list_input]
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


def rows(op: Operator, *names: str) -> list[tuple[Any, ...]]:
    """Slots and attrs side by side, without rows that begin with `EMPTY`; none of what a type lacks."""
    columns = {**op.attrs, **op.inputs, **op.outputs}
    together = zip(*(columns.get(name, ()) for name in names), strict=True)
    return [row for row in together if row[0] != EMPTY]


def has_blocks(op_type: str) -> bool:
    """Whether gradients flow through blocks: only then do results of one operator depend on different inputs."""
    return op_type in CONTROL and not CONTROL[op_type].is_grad


def check_slots(info: OpInfo, op: Operator) -> None:
    """Slots and attrs are those of the type, and the role is one.  Errors: `ProgramError`."""
    inputs, outputs, attrs = op.inputs, op.outputs, op.attrs
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
    if op.role not in ROLES:
        raise wrong(f"{op.role!r} is no role{did_you_mean(str(op.role), ROLES)}")


# -- Operator: one operation of a Block, as data -------------------------------------------


BLOCK_ATTRS = ("sub_block", "else_block", "cond_block")
#: of a cond: how names of attrs begin → its block
BRANCHES = {"true": "sub_block", "false": "else_block"}


class Operator:
    """One operation of a Block: type, slots of names, attrs, role.

    ``forward_op``: what a grad op differentiates; ``copy_of``: what it computes again;
    ``reads``: the names whose *values* a backward operator needs (of others the shape is enough).

    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     y = static.data("x", [3]) * 2.0
    >>> op = prog.global_block().ops[0]
    >>> op.type, op.inputs, op.outputs, op.attrs
    ('mul', {'x': ['x']}, {'out': ['mul_0']}, {'y': 2.0})
    """

    __slots__ = (
        "attrs", "code", "copy_of", "forward_op", "inputs", "lasti", "outputs", "role", "type",
    )  # fmt: skip

    def __init__(
        self,
        type: str,
        inputs: Slots,
        outputs: Slots,
        attrs: Attrs | None = None,
        role: str = "forward",
        forward_op: Operator | None = None,
    ) -> None:
        self.type = type
        self.inputs = inputs
        self.outputs = outputs
        self.attrs: Attrs = {} if attrs is None else attrs
        self.role = role
        self.forward_op = forward_op
        self.code: Any = None
        self.lasti = 0
        if forward_op is not None:
            self.code, self.lasti = forward_op.code, forward_op.lasti
        self.copy_of: Operator | None = None

    @property
    def input_names(self) -> list[str]:
        """All names it reads, in slot order."""
        return [*chain.from_iterable(self.inputs.values())]

    @property
    def output_names(self) -> list[str]:
        """All names it writes, in slot order."""
        return [*chain.from_iterable(self.outputs.values())]

    @property
    def reads(self) -> Names | None:
        """The names whose values it needs: what the rules of a grad op read; of its inputs, if it is a piece of one.

        None if nobody knows.
        """
        info = find_info(self.type) if self.role == "backward" else None
        if info is not None and info.is_grad:
            slots: Names = ("params",)  # of a loop or a branch
            if info.forward is not None:
                slots = info.forward.saved([slot.removesuffix("_grad") for slot in self.outputs])
            return tuple(n for slot in slots for n in self.inputs.get(slot, ()))
        if self.copy_of is None:
            return None
        given = self.copy_of.input_names
        return tuple(n for n in self.input_names if n in given)

    @property
    def primitive(self) -> Any:
        """The primitive whose kernel it runs, or whose gradient rules; None for control flow."""
        return getattr(find_info(self.type), "forward", None)

    @property
    def source_line(self) -> str:
        """The user's line that created it; a grad op has its forward op's."""
        return "" if self.code is None else code_line(self.code, self.lasti)

    @property
    def sub_blocks(self) -> dict[str, int]:
        """The blocks it holds: attr → block index."""
        return {k: v for k, v in self.attrs.items() if k in BLOCK_ATTRS}

    @property
    def block_names(self) -> list[str]:
        """The names by which values enter and leave the blocks it holds: they stand in attrs, alone or in lists."""
        held = self.attrs.values() if self.sub_blocks else ()
        return [n for value in held for n in as_list(value) if isinstance(n, str)]

    def at(self, source: Operator) -> Operator:
        """The same operator, with the user's line of another."""
        self.code, self.lasti = source.code, source.lasti
        return self

    def copy(self, names: Mapping[str, str] | None = None) -> Operator:
        """An operator of its own lists, with other names for some values."""
        new = names or {}
        inputs = {s: [new.get(n, n) for n in listed] for s, listed in self.inputs.items()}
        outputs = {s: [new.get(n, n) for n in listed] for s, listed in self.outputs.items()}
        copy = Operator(self.type, inputs, outputs, {**self.attrs}, self.role, self.forward_op)
        copy.copy_of = self.copy_of
        if self.type == "while":
            cond = self.attrs["cond"]
            copy.attrs["cond"] = new.get(cond, cond)
        return copy.at(self)

    def __repr__(self) -> str:
        from ..text.syntax import format_op

        return format_op(self)


Ops = Sequence[Operator]


def outputs_of(ops: Ops) -> list[str]:
    """The names that operators write, in their order."""
    return [*chain.from_iterable(names for op in ops for names in op.outputs.values())]


def backward_op(
    kind: str, x: str, out: str, attrs: Attrs | None = None, of: Operator | None = None
) -> Operator:
    """An operator of the backward part that makes one value from one."""
    return Operator(kind, {"x": [x]}, {"out": [out]}, attrs, "backward", of)


# -- What users pass: Variables or names, one or several, and operators slot by slot -------


def several(given) -> Listed:
    """The items of a list, tuple, set …; one Variable or name counts as a list of one, None as none at all.

    >>> several("w"), several(("w", "b")), several(None)
    (['w'], ['w', 'b'], [])
    """
    if given is None:
        return []
    if isinstance(given, Variable | str):
        return [given]
    return list(given)


def name_of(item, what: str) -> str:
    """The name that a Variable or a text stands for.  Errors: `ProgramError` for anything else."""
    if isinstance(item, Variable):
        return item.name
    if not isinstance(item, str):
        what = f"{what} holds Variables or names, not {describe(item)}"
        raise wrong(what, "a Variable, or its name in quotes")
    return str(item)


def unwritten(name: str) -> MinigradError:
    """What to raise where a value is read that nobody has computed: `verify` finds this before."""
    return wrong(
        f"{name!r} is read before anything wrote it", "static.verify(program) names the operator"
    )


def names_of(program: Program, given, what: str, root: bool = False) -> list[str]:
    """The names that were given, all of them known (with ``root``, in block 0).  Errors: `ProgramError`."""
    names = [name_of(item, what) for item in several(given)]
    blocks = program.blocks[:1] if root else program.blocks
    for name in names:
        if not any(name in b.vars for b in blocks):
            known = did_you_mean(name, dict.fromkeys(n for b in blocks for n in b.vars))
            where = "variable of the root block" if root else "variable of this program"
            what = f"{what} names {name!r}, which is no {where}{known}"
            repair = "static.append_backward(loss) makes gradients, of what the loss depends on"
            raise wrong(what, repair if name.endswith(GRAD) else "")
    return names


#: what builds the operators that hold blocks
_BUILDERS = {"while": "while_loop", "cond": "cond", "recurrent": "static_rnn"}


def slots_of(given) -> Slots:
    """``{"x": variable or name or list}`` as ``{"x": [names]}``.  Errors: `ProgramError`."""
    slots = {}
    for slot, names in (given or {}).items():
        slots[slot] = [name_of(n, f"slot {slot!r}") for n in several(names)]
    return slots


def check_operator(info: OpInfo, op: Operator) -> None:
    """The rules about an operator that a user writes down.  Errors: `ProgramError`."""
    if op.type in CONTROL:
        name = _BUILDERS.get(op.type, "append_backward")
        raise wrong(f"{op.type} holds blocks, which append_op cannot build", f"static.{name}")
    if info.is_grad:
        wanted = [s.removesuffix("_grad") for s in op.outputs]
        if not wanted:
            raise wrong(f"{op.type} needs a name for its result", 'outputs={"x_grad": "x@GRAD"}')
        for name in info.forward.reads(wanted):
            if name in info.inputs and name not in op.inputs and name not in op.attrs:
                what = f"{op.type} needs the slot {name!r} for {', '.join(op.outputs)}"
                forward = op.type.removesuffix("_grad")
                raise wrong(what, f"inputs={{{name!r}: …}}, the name it has for {forward}")
    outputs = [n for n in op.output_names if n != EMPTY]
    if len(set(outputs)) < len(outputs):
        what = f"{op.type} writes one name twice: {outputs}"
        raise wrong(what, "a name of its own for each output")
