"""Programs as text: one line per operator, deterministic, and it parses back.

Grammar (indentation is for the eye; ``#`` starts a comment)::

    program     :=  ("# made by:" transformation)* block+ pruned*
    pruned      :=  "# no" GRAD_OP "of #" INT ["in block" INT] ":" reason
    block       :=  "block" INT ["in" INT] ["grad of" INT] ":" line*
    line        :=  "--" ROLE ["without" names cut] | declaration | operator
    declaration :=  ("data" | "param" | "const" | "var") NAME ":" DTYPE "[" sizes "]" ["stop" | "grad"] ["=" value]
    operator    :=  [target ("," target)* "="] TYPE "(" [argument ("," argument)*] ")"
    target      :=  [SLOT "="] names
    argument    :=  [SLOT "="] names | ATTR "=" value
    names       :=  NAME | "[" [NAME ("," NAME)*] "]"
    value       :=  a Python literal, or "block" INT

Slots are written out where they are not the next one in the order of the type.  Variables that an operator makes are
not declared: their shape follows, that of ``x@GRAD`` from ``x``.  `parse` gives back a
program with the same text; of start values, those of small constants are part of it.  Every backward call begins with
``-- loss``.
"""

import ast
import re
from typing import Any

import numpy as np

from ...errors import ProgramFormatError, describe, did_you_mean, refusal
from ...grad_names import EMPTY, GRAD, variable_of, whole
from ...primitives.arguments import Attrs, ByName, Names, Slots
from ..program.block import Block, is_cut_off
from ..program.infer import infer_outputs
from ..program.operator import (
    BLOCK_ATTRS,
    CONTROL,
    ROLES,
    Operator,
    check_slots,
    find_info,
    has_blocks,
    op_info,
)
from ..program.program import BackwardCall, Program, Pruned
from ..program.variable import Variable, check_name
from ..run.interpreter import outer_reads
from .literals import DTYPES, LIMIT, check_memory, declare, from_plain, to_plain

SMALL = 16  #: elements of a constant whose value is shown


def format_program(program: Program) -> str:
    """The text of a program."""
    lines = [f"# made by: {step}" for step in program.history]
    for block in program.blocks:
        lines += _block_lines(block)
    place = {id(op): (b.idx, k) for b in program.blocks for k, op in enumerate(b.ops)}
    for grad_op, reason, op in program.pruned:
        if id(op) in place:  # the operator is still there
            b, k = place[id(op)]
            lines.append(f"# no {grad_op} of #{k}{f' in block {b}' * bool(b)}: {reason}")
    return "\n".join(lines)


def _block_lines(block: Block) -> list[str]:
    head = f"block {block.idx}"
    if block.idx:
        head += f" in {block.parent}"
    if block.forward_block >= 0:
        head += f" grad of {block.forward_block}"
    lines = [head + ":"]
    makers = {n: op.type for op in reversed(block.ops) for n in op.output_names}
    for name in outer_reads(block.ops):  # which is there before anything here makes it
        makers.pop(name, None)
    lines += [
        f"  {_declaration(block, v)}" for v in block.vars.values() if not _follows(block, v, makers)
    ]
    role = "forward"
    marked = block.program._marked()  # which say so themselves
    cuts = {}
    for call in block.program.backward_calls:
        if call.block == block.idx:
            cuts[call.begin(block)] = ", ".join(sorted(call.no_grad - marked))
    for k, op in enumerate(block.ops):
        if op.role != role or (op.role == "loss" and k in cuts):
            role = op.role
            cut = cuts.get(k)
            lines.append(f"  -- {role} without {cut}" if cut else f"  -- {role}")
        lines.append(f"  {format_op(op)}")
    return lines


def _follows(block: Block, v: Variable, made: dict[str, str]) -> bool:
    """Whether shape and dtype of a variable follow from its name or its operator, so that it need not be declared."""
    if v.kind != "var" or v._stop is not None or v.name not in made:
        return False
    like = named_after(block, v.name)
    if like is not None:
        return (like.shape, like.dtype) == (v.shape, v.dtype)
    outer = block.parent_block  # one of the same name there is another variable
    hides = outer is not None and outer.has_var(v.name)
    return not hides and made[v.name] not in CONTROL and not made[v.name].endswith("_grad")


def named_after(block: Block, name: str) -> Variable | None:
    """The variable that a gradient's name speaks of: ``x`` for ``x@GRAD@RENAME@0``."""
    base = name.rpartition(GRAD)[0]
    return block.find_var(base) if base else None


def _declaration(block: Block, v: Variable) -> str:
    """A variable; a small constant shows its value, and keeps it from text to program."""
    sizes = ", ".join(map(str, v.shape))
    flag = "" if v._stop is None else " stop" if v._stop else " grad"
    text = f"{v.kind} {v.name}: {v.dtype.name}[{sizes}]{flag}"
    value = block.program.initial.get(v.name) if block.idx == 0 and not v.trainable else None
    if value is None or value.size > SMALL:
        return text
    return f"{text} = {to_plain(value.tolist(), tuples=True)!r}"


def format_op(op: Operator) -> str:
    """One operator as text.

    >>> format_op(Operator("mul", {"x": ["a"], "y": ["b"]}, {"out": ["c"]}))
    'c = mul(a, b)'
    """
    info = find_info(op.type)
    args = _slots(op.inputs, getattr(info, "inputs", ()))
    for k, v in op.attrs.items():
        shown = f"block {v}" if k in BLOCK_ATTRS else repr(to_plain(v, tuples=True))
        args.append(f"{k}={shown}")
    targets = _slots(op.outputs, getattr(info, "outputs", ()))
    return (", ".join(targets) + " = " if targets else "") + f"{op.type}({', '.join(args)})"


def _slots(given: Slots, order: Names) -> list[str]:
    out = []
    for k, (slot, names) in enumerate(given.items(), 1):
        in_order = (*given,)[:k] == order[:k]
        text = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        out.append(text if in_order else f"{slot}={text}")
    return out


_HEAD = re.compile(r"block (\d{1,7})(?: in (\d{1,7}))?(?: grad of (\d{1,7}))?:$")


_PRUNED = re.compile(r"# no (\w+_grad) of #(\d{1,7})(?: in block (\d{1,7}))?: (.+)")


_DECLARATION = re.compile(
    r"(data|param|const|var) (\S+): (\w+)\[([-\d, ]*)\]( stop| grad)?( = .*)?$"
)


def parse(text: str, limit: int = LIMIT) -> Program:
    """A program from its text, which takes at most ``limit`` bytes of memory.

    Errors: `ProgramFormatError` with the line, and nothing else.

    >>> prog = parse("block 0:\\n  data x: float64[2]\\n  y = exp(x)")
    >>> prog.global_block().var("y")
    Variable(y: float64[2])
    """
    from ..program.verify import mark_given, verify

    if not isinstance(text, str):
        what = f"a program is read from a text, not from {describe(text)}"
        raise refusal(what, "static.parse(str(program))", ProgramFormatError)
    program = Program()
    program.blocks.clear()
    role = "forward"
    calls: list[tuple[Block, int, list[str]]] = []
    check_memory(_memory(text), limit)
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        try:
            if line.startswith("--"):
                word, _, cut = line[2:].partition(" without ")
                role = _known(word.strip(), ROLES, "role")
                if role == "loss" and program.blocks:
                    block = program.blocks[-1]
                    calls.append((block, len(block.ops), _names(f"[{cut}]")))
            elif head := _HEAD.match(line):
                role = "forward"
                index, parent, forward = (int(number or -1) for number in head.groups())
                place = len(program.blocks)
                if index != place:
                    raise ValueError(f"block {index} stands where block {place} is expected")
                program.blocks.append(Block(program, index, parent, forward))
            elif line.startswith("# made by: "):
                program.history.append(line.removeprefix("# made by: "))
            elif match := _PRUNED.match(line):
                op = program.blocks[int(match[3] or 0)].ops[int(match[2])]
                program.pruned.append(Pruned(match[1], match[4], op))
            elif line and not line.startswith("#"):
                if not program.blocks:
                    raise ValueError("a program starts with 'block 0:'")
                block = program.blocks[-1]
                if match := _DECLARATION.match(line):
                    _declare(block, match, limit)
                else:
                    _append(block, line, role)
        except Exception as error:
            raise ProgramFormatError(f"line {number}: {error}\n  {line:.200}") from error
    if not program.blocks:
        raise ProgramFormatError("a program starts with 'block 0:'")
    program.backward_calls = _backward_calls(program, calls)
    try:
        return mark_given(verify(program))
    except Exception as error:
        raise ProgramFormatError(str(error)) from error


def _memory(text: str) -> int:
    """The bytes that a text may take when it is read: by its lines, and by its lists and numbers."""
    marks = sum(map(text.count, ",[("))
    return 4 * len(text) + 2000 * text.count("\n") + 500 * marks


def _known(word: str, words: Names, what: str) -> str:
    if word not in words:
        raise ValueError(f"unknown {what} {word!r}{did_you_mean(word, words)}")
    return word


def _declare(block: Block, line: re.Match[str], limit: int) -> None:
    kind, name, dtype, sizes, flag, text = line.groups()
    shape = [int(n) for n in sizes.split(",") if n.strip()]
    _known(dtype, tuple(sorted(DTYPES)), "dtype")
    stop = None if flag is None else flag == " stop"
    derived = kind in ("data", "const") or dtype[0] != "f"
    declare(block, limit, name, kind, dtype, shape, stop, derived)
    if text is not None:
        if kind != "const":
            raise ValueError("only a constant has a value here")
        value = np.array(_literal("constant", text[3:]), dtype)
        if list(value.shape) != shape and value.size:
            raise ValueError(f"{text[3:]:.80} is no {dtype}{shape}")
        block.program.initial[name] = value.reshape(shape)


def _append(block: Block, line: str, role: str) -> None:
    head, bracket, rest = line.partition("(")
    if not bracket or not rest.endswith(")"):
        raise ValueError("an operator reads: targets = type(arguments)")
    targets, _, op_type = head.rpartition(" = ") if " = " in head else ("", "", head)
    info = op_info(op_type.strip())
    outputs: Slots = {}
    for k, (slot, given) in enumerate(_split(targets)):
        _enter(outputs, slot or _nth(info.outputs, k), _names(given))
    inputs: Slots = {}
    attrs: Attrs = {}
    for k, (slot, given) in enumerate(_split(rest[:-1])):
        slot = slot or _nth(info.inputs, k)
        if slot in info.inputs and not _LITERAL.match(given):
            _enter(inputs, slot, _names(given))
        else:
            _enter(attrs, slot, _literal(slot, given))
    if not outputs:
        raise ValueError(f"{info.type} has no name for its result")
    op = Operator(info.type, inputs, outputs, attrs, role)
    check_slots(info, op)
    gradients: dict[str, Variable] = {}  # each has the shape of what it is the gradient of
    for name in op.output_names:
        like = named_after(block, name)
        if like is not None and name not in block.vars:
            gradients[name] = Variable(block, name, like.shape, like.dtype)
    declared = all(n in block.vars or n in gradients or n == EMPTY for n in op.output_names)
    if not declared:
        infer_outputs(block, op)
    block.vars.update(gradients)  # they say more than inference knows of open sizes
    block.ops.append(op)
    block.written.update(op.output_names)
    if declared and has_blocks(op.type) and is_cut_off(block, op.inputs):
        for name in op.output_names:
            block.vars[name]._derived_stop = True


def _enter(place: ByName, key: str, value) -> None:
    if key in place:
        raise ValueError(f"{key!r} is given twice")
    place[key] = value


def _nth(slots: Names, k: int) -> str:
    if k >= len(slots):
        raise ValueError(f"there are only {len(slots)} slots: {', '.join(slots) or 'none'}")
    return slots[k]


#: a text in quotes, a bracket or comma, or what stands between them
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"\[\](),]+|.""")
_ARGUMENT = re.compile(r"(?:([^\W\d]\w*)\s*=\s*(?=.))?(.*)")


def _split(text: str) -> list[tuple[str, str]]:
    """Split at the commas of the outer level: (slot or "", what is given)."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in "[(") - (token in "])")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [_ARGUMENT.findall(part.strip())[0] for part in parts if part.strip()]


def _names(text: str) -> list[str]:
    listed = text[1:-1].split(",") if text.startswith("[") else [text]
    names = [n.strip() for n in listed if n.strip()]
    for name in names:
        if name != EMPTY:
            check_name(name)
    return names


#: how numbers, texts, and lists of them begin: none of it can be a name
_LITERAL = re.compile(
    r"""\[*\s*(['"(]|(None|True|False|[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*([,\]]|$))"""
)


def _literal(attr: str, text: str) -> Any:
    if attr in BLOCK_ATTRS:
        if not text.startswith("block "):
            raise ValueError(f"{attr} is a block")
        return int(text[6:])
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        what = f"{attr}={text:.80} gives neither an input slot a name nor an attr a value"
        raise ValueError(what) from None
    return from_plain(value)


def _backward_calls(
    program: Program, calls: list[tuple[Block, int, list[str]]]
) -> list[BackwardCall]:
    """What calls of append_backward asked: each begins with its seeds and ends where the next one begins."""
    marked = program._marked()
    noted: list[BackwardCall] = []
    ends: dict[int, int] = {}
    for block, begin, cut in reversed(calls):
        gradients: dict[str, str] = {}
        targets: dict[str, None] = {}  # a clipped seed is written twice
        for op in block.ops[begin : ends.get(block.idx)]:
            for name in op.output_names if op.role in ("loss", "backward") else ():
                variable = variable_of(name)
                if variable is not None:
                    gradients[variable] = name
                if op.role == "loss":
                    targets[variable_of(whole(name)) or name] = None
        ends[block.idx] = begin
        if gradients:
            noted.append(BackwardCall(block.idx, [*targets], marked | set(cut), gradients))
    return noted[::-1]
