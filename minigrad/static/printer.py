"""Programs as text: one line per operator, deterministic, and it parses back.

Grammar (indentation is for the eye; ``#`` starts a comment)::

    program  :=  ("# made by:" transformation)* block+
    block    :=  "block" INT ["in" INT] ["grad of" INT] ":" line*
    line     :=  "--" ROLE | declaration | operator
    declaration := ("data" | "param" | "const" | "persist" | "var") NAME ":" DTYPE "[" sizes "]" ["stop" | "grad"]
    operator :=  [targets "="] TYPE "(" [argument ("," argument)*] ")"
    targets  :=  target ("," target)*          target   := [SLOT "="] names
    argument :=  names | SLOT "=" names | ATTR "=" value
    names    :=  NAME | "[" [NAME ("," NAME)*] "]"
    value    :=  a Python literal, "block" INT for a block, or NAME lists in control flow

Slots are written out where they are not the next one in the order of the type.  Variables that an operator makes are
not declared: their shape follows.  ``parse`` gives back a program with the same text; start values are not part of it.
"""
from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from ..errors import ProgramFormatError, did_you_mean
from .literals import from_plain, to_plain
from .op_info import CONTROL, find_info
from .program import EMPTY, Block, Operator, Program, Variable

_BLOCK_ATTRS = ("sub_block", "else_block", "cond_block")


def format_program(program: Program) -> str:
    """The text of a program."""
    lines = [f"# made by: {step}" for step in program.history]
    for block in program.blocks:
        lines += _block_lines(block)
    return "\n".join(lines)


def _block_lines(block: Block) -> list[str]:
    head = f"block {block.idx}"
    if block.parent > 0 or block.idx:
        head += f" in {block.parent}"
    if block.forward_block >= 0:
        head += f" grad of {block.forward_block}"
    lines = [head + ":"]
    made = _made_names(block)
    lines += [f"  {_declaration(v)}" for v in block.vars.values() if v.name not in made or v.persistable or v.is_data]
    role = "forward"
    for op in block.ops:
        if op.role != role:
            role = op.role
            lines.append(f"  -- {role}")
        lines.append(f"  {format_op(op)}")
    return lines


def _made_names(block: Block) -> set[str]:
    return {n for op in block.ops for n in op.output_names if op.type not in CONTROL or op.type.endswith("_grad")}


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
    if attr in _BLOCK_ATTRS:
        return f"block {value}"
    return repr(to_plain(value))


# -- reading -------------------------------------------------------------------------------

_HEAD = re.compile(r"block (\d+)(?: in (-?\d+))?(?: grad of (\d+))?:$")
_DECLARATION = re.compile(r"(data|param|const|var) (\S+): (\w+)\[([-\d, ]*)\]( stop| grad)?$")
_ROLES = ("forward", "loss", "backward", "optimize")


def parse(text: str) -> Program:
    """A program from its text.  Errors: `ProgramFormatError` with the line."""
    program = Program()
    program.blocks.clear()
    role = "forward"
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        try:
            if line.startswith("# made by: "):
                program.history.append(line.removeprefix("# made by: "))
            elif not line or line.startswith("#"):
                continue
            elif line.startswith("--"):
                role = _known(line[2:].strip(), _ROLES, "role")
            elif head := _HEAD.match(line):
                _new_block(program, head)
                role = "forward"
            elif found := _DECLARATION.match(line):
                _declare(program, found)
            else:
                _append(program.blocks[-1], line, role)
        except ProgramFormatError:
            raise
        except Exception as error:
            raise ProgramFormatError(f"line {number}: {error}\n  {line}") from error
    if not program.blocks:
        raise ProgramFormatError("a program starts with 'block 0:'")
    _finish(program)
    return program


def _known(word: str, words: tuple[str, ...], what: str) -> str:
    if word not in words:
        raise ValueError(f"unknown {what} {word!r}{did_you_mean(word, words)}")
    return word


def _new_block(program: Program, head: re.Match[str]) -> None:
    index, parent, forward = int(head[1]), int(head[2] or -1), int(head[3] or -1)
    if index != len(program.blocks):
        raise ValueError(f"block {index} stands where block {len(program.blocks)} is expected")
    if index and not 0 <= parent < index:
        raise ValueError(f"block {index} lies in block {parent}, which is not there yet")
    program.blocks.append(Block(program, index, parent, forward))


def _declare(program: Program, found: re.Match[str]) -> None:
    kind, name, dtype, sizes, flag = found.groups()
    shape = [int(n) for n in sizes.split(",") if n.strip()]
    stop = None if flag is None else flag == " stop"
    block = program.blocks[-1]
    var = block.create_var(name, shape, dtype, is_data=kind == "data", persistable=kind in ("param", "const"), trainable=kind == "param",
                           stop_gradient=stop, derived_stop=kind in ("data", "const"))
    if kind == "var":
        block.written.add(var.name)


_TOKEN = re.compile(r"\s*(?:(?P<block>block \d+)|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>[^\s,=()\[\]{}'\":]+)|(?P<mark>[,=()\[\]{}:]))")


def _tokens(line: str) -> list[str]:
    out, at = [], 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            raise ValueError(f"cannot read {line[at:at + 20]!r}")
        out.append(found.group().strip())
        at = found.end()
    return out


def _append(block: Block, line: str, role: str) -> None:
    head, bracket, rest = line.partition("(")
    if not bracket or not rest.endswith(")"):
        raise ValueError("an operator reads: targets = type(arguments)")
    targets, equals, op_type = head.rpartition(" = ") if " = " in head else ("", "", head)
    info = find_info(op_type.strip())
    if info is None:
        from .op_info import op_info

        op_info(op_type.strip())
    assert info is not None
    outputs: dict[str, list[str]] = {}
    for k, (slot, names) in enumerate(_split(targets)):
        outputs[slot or info.outputs[k]] = _names(names)
    inputs: dict[str, list[str]] = {}
    attrs: dict[str, Any] = {}
    for k, (slot, value) in enumerate(_split(rest[:-1])):
        slot = slot or info.inputs[k]
        if slot in info.inputs and not _is_literal(value):
            inputs[slot] = _names(value)
        else:
            attrs[slot] = _literal(value)
    op = Operator(op_type.strip(), inputs, outputs, attrs, role)
    _declare_grads(block, op)
    block._append(op)


def _split(text: str) -> list[tuple[str, str]]:
    """Split at the commas of the outer level: (slot or "", text)."""
    parts, depth, current = [], 0, ""
    for token in _tokens(text):
        if token in "[({":
            depth += 1
        elif token in "])}":
            depth -= 1
        if token == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += token + (" " if token == "," else "")
    if current:
        parts.append(current)
    out = []
    for part in parts:
        slot, equals, value = part.partition("=")
        out.append((slot, value) if equals and slot.isidentifier() else ("", part))
    return out


def _names(text: str) -> list[str]:
    text = text.strip()
    if text.startswith("["):
        return [n.strip() for n in text[1:-1].split(",") if n.strip()]
    return [text]


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return not text.startswith("[") or text != "[]"


def _literal(text: str) -> Any:
    if text.startswith("block "):
        return int(text[6:])
    return from_plain(ast.literal_eval(text))


def _declare_grads(block: Block, op: Operator) -> None:
    """Outputs of grad ops have the shape of what they are the gradient of."""
    for name in op.output_names:
        base = name.rpartition("@GRAD")[0]
        if name == EMPTY or not base or name in block.vars:
            continue
        like = block.find_var(base)
        if like is None and block.forward_block >= 0:
            like = block.program.blocks[block.forward_block].find_var(base)
        if like is not None:
            block.vars[name] = Variable(block, name, like.shape, like.dtype)


def _finish(program: Program) -> None:
    """Give grad ops back the link to what they differentiate."""
    for block in program.blocks:
        source = program.blocks[block.forward_block] if block.forward_block >= 0 else block
        by_output = {n: op for op in source.ops for n in op.output_names if op.role == "forward" or source is not block}
        for op in block.ops:
            if op.type.endswith("_grad"):
                grads = [n for s, names in op.inputs.items() if s.endswith("_grad") for n in names if n != EMPTY]
                found = next((by_output.get(n.rpartition("@GRAD")[0]) for n in grads), None)
                if found is not None and found.type == op.type.removesuffix("_grad"):
                    op.forward_op = found
    for v in program.all_variables():
        if v.persistable and not v.trainable and v.name not in program.initial:
            program.initial[v.name] = np.zeros([max(n, 0) for n in v.shape], v.dtype)
