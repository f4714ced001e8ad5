"""Programs as text: one line per operator, deterministic, and it parses back.

Grammar (indentation is for the eye; ``#`` starts a comment)::

    program     :=  ("# made by:" transformation)* block+ ("# no" GRAD_OP ":" reason)*
    block       :=  "block" INT ["in" INT] ["grad of" INT] ":" line*
    line        :=  "--" ROLE ["without" names cut] | declaration | operator
    declaration :=  ("data" | "param" | "const" | "var") NAME ":" DTYPE "[" sizes "]" ["stop" | "grad"] ["=" value]
    operator    :=  [target ("," target)* "="] TYPE "(" [argument ("," argument)*] ")"
    target      :=  [SLOT "="] names
    argument    :=  [SLOT "="] names | ATTR "=" value
    names       :=  NAME | "[" [NAME ("," NAME)*] "]"
    value       :=  a Python literal, or "block" INT

Slots are written out where they are not the next one in the order of the type.  Variables that an operator makes are
not declared: their shape follows, that of ``x@GRAD`` from ``x``.  `parser.parse` gives back a program with the same
text; of start values, those of small constants are part of it.  Every backward call begins with ``-- loss``.
"""

from __future__ import annotations

from typing import Any

from ..program.gradient_names import GRAD
from ..program.op_info import CONTROL, find_info
from ..program.operator import BLOCK_ATTRS
from ..program.program import BackwardCall, Block, Operator, Program, Variable
from .literals import to_text

SMALL = 16  #: elements of a constant whose value is shown


def format_program(program: Program) -> str:
    """The text of a program."""
    lines = [f"# made by: {step}" for step in program.history]
    for block in program.blocks:
        lines += _block_lines(block)
    lines += [f"# no {grad_op}: {reason}" for grad_op, reason in program.pruned]
    return "\n".join(lines)


def _block_lines(block: Block) -> list[str]:
    head = f"block {block.idx}"
    if block.idx:
        head += f" in {block.parent}"
    if block.forward_block >= 0:
        head += f" grad of {block.forward_block}"
    lines = [head + ":"]
    made = {n: op.type for op in block.ops for names in op.outputs.values() for n in names}
    lines += [
        f"  {_declaration(v)}{_value_of(block, v)}"
        for v in block.vars.values()
        if not _follows(block, v, made)
    ]
    role = "forward"
    calls = {c.begin(block): c for c in block.program.backward_calls if c.block == block.idx}
    for k, op in enumerate(block.ops):
        if op.role != role or k in calls:
            role = op.role
            lines.append(f"  -- {role}{_cut(block, calls.get(k))}")
        lines.append(f"  {format_op(op)}")
    return lines


def _cut(block: Block, call: BackwardCall | None) -> str:
    """The names of a ``no_grad_set``: variables marked ``stop`` say so themselves."""
    if call is None:
        return ""
    marked = {v.name for v in block.program.all_variables() if v.cuts}
    names = sorted(call.no_grad - marked)
    return f" without {', '.join(names)}" if names else ""


def _follows(block: Block, v: Variable, made: dict[str, str]) -> bool:
    """Whether shape and dtype of a variable follow from its name or its operator, so that it need not be declared."""
    if v.persistable or v.is_data or v._stop is not None or v.name not in made:
        return False
    like = named_after(block, v.name)
    if like is not None:
        return (like.shape, like.dtype) == (v.shape, v.dtype)
    return made[v.name] not in CONTROL and not made[v.name].endswith("_grad")


def named_after(block: Block, name: str) -> Variable | None:
    """The variable that a gradient's name speaks of: ``x`` for ``x@GRAD@RENAME@0``."""
    base = name.rpartition(GRAD)[0]
    return block.find_var(base) if base else None


def _value_of(block: Block, v: Variable) -> str:
    """A small constant shows its value, and keeps it from text to program."""
    value = block.program.initial.get(v.name) if block.idx == 0 and not v.trainable else None
    return "" if value is None or value.size > SMALL else f" = {to_text(value.tolist())!r}"


def _declaration(v: Variable) -> str:
    if v.is_data:
        kind = "data"
    elif v.persistable:
        kind = "param" if v.trainable else "const"
    else:
        kind = "var"
    sizes = ", ".join(map(str, v.shape))
    flag = "" if v._stop is None else " stop" if v._stop else " grad"
    return f"{kind} {v.name}: {v.dtype.name}[{sizes}]{flag}"


def format_op(op: Operator) -> str:
    """One operator as text.

    >>> format_op(Operator("mul", {"x": ["a"], "y": ["b"]}, {"out": ["c"]}))
    'c = mul(a, b)'
    """
    info = find_info(op.type)
    slots_in, slots_out = (info.inputs, info.outputs) if info is not None else ((), ())
    args = _slots(op.inputs, slots_in)
    args += [f"{k}={_value(k, v)}" for k, v in op.attrs.items()]
    targets = _slots(op.outputs, slots_out)
    return (", ".join(targets) + " = " if targets else "") + f"{op.type}({', '.join(args)})"


def _slots(given: dict[str, list[str]], order: tuple[str, ...]) -> list[str]:
    out = []
    in_order = True
    for k, (slot, names) in enumerate(given.items()):
        in_order = in_order and k < len(order) and order[k] == slot
        text = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        out.append(text if in_order else f"{slot}={text}")
    return out


def _value(attr: str, value: Any) -> str:
    if attr in BLOCK_ATTRS:
        return f"block {value}"
    return repr(to_text(value))
