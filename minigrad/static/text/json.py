"""Programs as JSON: a closed schema, byte-identical from save to load to save, start values included.

    {"format": "minigrad program", "version": 1, "history": […], "inputs": […], "outputs": […],
     "error_clips": {name: [min, max], …},
     "pruned": [[grad op, why it was not made, [block, op]], …],
     "backward": [[block, [targets], [names cut], [[variable, gradient], …]], …],
     "blocks": [{"parent": -1, "forward": -1,
                 "variables": [[name, kind, dtype, shape, stop_gradient, derived stop_gradient], …],
                 "operators": [{"type": …, "role": …, "inputs": {slot: [names]},
                                "outputs": …, "attrs": …, "of": [block, op]}, …]}, …],
     "initial": {name: base64 of the little-endian bytes, …}}

``pruned`` and ``backward`` stand there if a backward part was appended.

`loader` reads it back.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from ...errors import ProgramFormatError, refusal
from ...grad_names import EMPTY
from ..program.block import Block
from ..program.op_info import ROLES
from ..program.operator import BLOCK_ATTRS, Operator
from ..program.program import BackwardCall, Program, Pruned
from ..program.variable import Variable
from ..program.verify import mark_given, verify
from .literals import DTYPES, LIMIT, check_memory, check_shape, from_plain, to_plain

FORMAT, VERSION = "minigrad program", 1


def to_json(program: Program) -> str:
    """The JSON of a program.  Errors: `ProgramFormatError` if an attr cannot be stored."""
    place = {id(op): [b.idx, k] for b in program.blocks for k, op in enumerate(b.ops)}
    lines = [
        f'{{"format": {_text(FORMAT)}, "version": {VERSION}, "history": {_text(program.history)},',
        f' "inputs": {_text(program.inputs)}, "outputs": {_text(program.outputs)},',
        f' "error_clips": {_text({n: to_plain(list(c)) for n, c in program.error_clips.items()})},',
        *_backward_lines(program, place),
        ' "blocks": [',
        ",\n".join(_block_text(b, place) for b in program.blocks),
        " ],",
        ' "initial": {',
        ",\n".join(f"  {_text(n)}: {_text(_bytes_of(v))}" for n, v in program.initial.items()),
        " }}",
    ]
    return "\n".join(lines) + "\n"


def _backward_lines(program: Program, place: dict[int, list[int]]) -> list[str]:
    if not program.backward_calls and not program.pruned:
        return []
    calls = [
        [c.block, c.targets, sorted(c.no_grad), list(c.gradients.items())]
        for c in program.backward_calls
    ]
    pruned = [[g, why, place[id(op)]] for g, why, op in program.pruned if id(op) in place]
    return [f' "pruned": {_text(pruned)},', f' "backward": {_text(calls)},']


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _block_text(block: Block, place: dict[int, list[int]]) -> str:
    variables = ",\n".join(f"    {_text(_variable_data(v))}" for v in block.vars.values())
    operators = ",\n".join(f"    {_text(_operator_data(op, place))}" for op in block.ops)
    return (
        f'  {{"parent": {block.parent}, "forward": {block.forward_block},\n   "variables": [\n{variables}\n   ],\n'
        f'   "operators": [\n{operators}\n   ]}}'
    )


def _variable_data(v: Variable) -> list[Any]:
    kind = (
        "data" if v.is_data else ("param" if v.trainable else "const") if v.persistable else "var"
    )
    return [v.name, kind, v.dtype.name, list(v.shape), v._stop, v._derived_stop]


def _operator_data(op: Operator, place: dict[int, list[int]]) -> dict[str, Any]:
    try:
        attrs = {k: to_plain(v) for k, v in op.attrs.items()}
        for plain in attrs.values():
            from_plain(plain)  # what cannot be read is not written
    except (TypeError, ValueError) as error:
        advice = "numbers, texts, arrays, dtypes, slices, or tuples of these"
        raise refusal(f"{op.type}: {error}", advice, ProgramFormatError) from None
    return {
        "type": op.type, "role": op.role, "inputs": op.inputs, "outputs": op.outputs, "attrs": attrs,
        "of": place.get(id(op.forward_op)),
    }  # fmt: skip


def _bytes_of(value: np.ndarray[Any, Any]) -> str:
    data = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(data.tobytes()).decode("ascii")


#: what Python needs for an object, a list, an entry: told by its mark before anything is read
_BYTES = {"{": 240, "[": 100, ",": 80}


_KINDS = ("var", "data", "param", "const")


def from_json(text: str, limit: int = LIMIT) -> Program:
    """The program of a JSON text that takes at most ``limit`` bytes of memory.

    Errors: `ProgramFormatError`, and nothing else, for whatever is not one.
    """
    try:
        return mark_given(verify(_program(_parsed(text, limit), limit)))
    except ProgramFormatError:
        raise
    except Exception as error:  # whatever a damaged text provokes
        raise ProgramFormatError(
            f"this is no stored program: {error or type(error).__name__}"
        ) from None


def _parsed(text: Any, limit: int) -> Any:
    if not isinstance(text, str):
        what = f"a stored program is a text, not {type(text).__name__}"
        raise refusal(what, "Program.from_json(path.read_text())", ProgramFormatError)
    objects = sum(size * text.count(mark) for mark, size in _BYTES.items())
    check_memory(4 * len(text) + objects, limit)
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of a program")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits:.40} is too large")
    return value


def _shaped(value: Any, what: str, **kinds: Any) -> list[Any]:
    """The values of an object that has exactly these keys, of these types."""
    if not isinstance(value, dict) or set(value) != set(kinds):
        keys = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"{what} has the keys {sorted(kinds)}, not {keys!r:.200}")
    for key, kind in kinds.items():
        if type(value[key]) is not kind and kind is not object:
            raise ValueError(
                f"{what}: {key!r} must be a {kind.__name__}, not {type(value[key]).__name__}"
            )
    return [value[key] for key in kinds]


def _strings(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or not all(
        isinstance(v, str) and len(v) <= 400 and v.isprintable() for v in value
    ):
        raise ValueError(f"{what} must be a list of short texts")
    return value


def _program(data: Any, limit: int) -> Program:
    noted: dict[str, Any] = {"pruned": [], "backward": []}
    if isinstance(data, dict):
        data = {**noted, **data}
    kinds = {
        "format": str, "version": int, "history": list, "inputs": list, "outputs": list, "error_clips": dict,
        "pruned": list, "backward": list, "blocks": list, "initial": dict,
    }  # fmt: skip
    form, version, history, inputs, outputs, clips, pruned, backward, blocks, initial = _shaped(
        data, "the file", **kinds
    )
    if (form, version) != (FORMAT, VERSION):
        raise ValueError(
            f"the format is {form!r:.80}, version {version}; this reads {FORMAT!r}, version {VERSION}"
        )
    program = Program()
    program.blocks.clear()
    program.history = _strings(history, "history")
    _add_blocks(program, blocks, limit)
    _start_values(program, initial)
    _add_clips(program, clips)
    _add_backward(program, pruned, backward)
    program.inputs = [_known(program, n) for n in _strings(inputs, "inputs")]
    program.outputs = [_known(program, n) for n in _strings(outputs, "outputs")]
    return program


def _add_blocks(program: Program, blocks: list[Any], limit: int) -> None:
    """All blocks, then all variables, then all operators: each may speak of what came before it."""
    keys = {"parent": int, "forward": int, "variables": list, "operators": list}
    parts = [_shaped(block, "a block", **keys) for block in blocks]
    if not parts:
        raise ValueError("a program has at least one block")
    for k, (parent, forward, _, _) in enumerate(parts):
        before = range(-1, max(k, 1))
        if parent not in before or (parent < 0) != (k == 0) or forward not in before:
            raise ValueError(
                f"block {k} lies in block {parent}, grad of {forward}: both must come before it"
            )
        program.blocks.append(Block(program, k, parent, forward))
    for block, (_, _, variables, _) in zip(program.blocks, parts, strict=True):
        for item in variables:
            _add_variable(block, item, limit)
    links = []
    for block, (_, _, _, operators) in zip(program.blocks, parts, strict=True):
        links += [_add_operator(block, item) for item in operators]
    _link(program, links)


def _add_clips(program: Program, clips: dict[str, Any]) -> None:
    known = {v.name for v in program.all_variables()}
    for name, limits in clips.items():
        pair = from_plain(limits)
        if (
            name not in known
            or not isinstance(pair, list)
            or [type(v) for v in pair] != [float, float]
        ):
            raise ValueError(f"the error clip of {name!r:.80} is no pair of numbers for a variable")
        if not pair[0] <= pair[1]:
            raise ValueError(f"the error clip of {name!r:.80} needs min <= max")
        program.error_clips[name] = (pair[0], pair[1])


def _add_backward(program: Program, pruned: list[Any], calls: list[Any]) -> None:
    for item in pruned:
        if not isinstance(item, list) or len(item) != 3:
            raise ValueError("what was pruned is a grad op, a reason and an operator")
        grad_op, reason = _strings(item[:2], "what was pruned")
        program.pruned.append(Pruned(grad_op, reason, _operator_at(program, item[2])))
    for call in calls:
        if not isinstance(call, list) or len(call) != 4:
            raise ValueError("a backward call is a list of four entries")
        block, targets, no_grad, pairs = call
        if type(block) is not int or not 0 <= block < len(program.blocks):
            raise ValueError("a backward call names a block that is not there")
        if not isinstance(pairs, list):
            raise ValueError("gradients are pairs of names")
        gradients = dict(_strings(pair, "a pair of names") for pair in pairs)
        cut = set(_strings(no_grad, "names cut"))
        program.backward_calls.append(
            BackwardCall(block, _strings(targets, "targets"), cut, gradients)
        )


def _known(program: Program, name: str) -> str:
    if name not in program.blocks[0].vars:
        raise ValueError(f"{name!r} is no variable of block 0")
    return name


def _add_variable(block: Block, item: Any, limit: int) -> None:
    if not isinstance(item, list) or len(item) != 6:
        raise ValueError("a variable is a list of six entries")
    name, kind, dtype, shape, stop, derived = item
    if kind not in _KINDS or not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{name!r:.80}: unknown kind or dtype {kind!r:.40}, {dtype!r:.40}")
    if (
        stop not in (None, True, False)
        or type(derived) is not bool
        or (isinstance(stop, int | float) and type(stop) is not bool)
    ):
        raise ValueError(f"{name!r:.80}: stop_gradient is true, false or null")
    persistable = kind in ("param", "const")
    check_shape(shape, 0 if persistable else -1, np.dtype(dtype).itemsize, limit)
    block.create_var(
        name, shape, dtype, persistable=persistable, trainable=kind == "param", is_data=kind == "data",
        stop_gradient=stop, derived_stop=derived,
    )  # fmt: skip


def _slots(value: dict[str, Any], what: str) -> dict[str, list[str]]:
    return {slot: _strings(names, what) for slot, names in value.items()}


def _add_operator(block: Block, item: Any) -> Any:
    kind, role, inputs, outputs, attrs, of = _shaped(
        item, "an operator", type=str, role=str, inputs=dict, outputs=dict, attrs=dict, of=object
    )
    if role not in ROLES:
        raise ValueError(f"{role!r:.40} is no role")
    op = Operator(
        kind, _slots(inputs, "an input slot"), _slots(outputs, "an output slot"), {}, role
    )
    for name, value in attrs.items():
        op.attrs[name] = from_plain(value)
        if name in BLOCK_ATTRS and type(value) is not int:
            raise ValueError(f"{name} is the index of a block")
    block.ops.append(op)
    block.written.update(n for n in op.output_names if n != EMPTY)
    return of


def _link(program: Program, links: list[Any]) -> None:
    operators = [op for b in program.blocks for op in b.ops]
    for op, of in zip(operators, links, strict=True):
        if of is not None:
            op.forward_op = _operator_at(program, of)


def _operator_at(program: Program, of: Any) -> Operator:
    """The operator that ``[block, operator]`` names."""
    if not isinstance(of, list) or len(of) != 2 or not all(type(n) is int and n >= 0 for n in of):
        raise ValueError("'of' is null or [block, operator]")
    b, k = of
    if b >= len(program.blocks) or k >= len(program.blocks[b].ops):
        raise ValueError(f"'of' names operator {k} of block {b}, which is not there")
    return program.blocks[b].ops[k]


def _start_values(program: Program, initial: dict[str, Any]) -> None:
    for name, text in initial.items():
        var = program.blocks[0].vars.get(name)
        if var is None or not var.persistable or not isinstance(text, str):
            raise ValueError(
                f"the start value of {name!r:.80} belongs to no variable that outlives a run"
            )
        size = math.prod(var.shape)
        if len(text) != 4 * -(-size * var.dtype.itemsize // 3):
            raise ValueError(
                f"the start value of {name!r:.80} has another size than {var.dtype}{list(var.shape)}"
            )
        raw = base64.b64decode(text, validate=True)
        if len(raw) != size * var.dtype.itemsize or base64.b64encode(raw).decode("ascii") != text:
            raise ValueError(f"the start value of {name!r:.80} is not well-formed base64")
        little = np.frombuffer(raw, var.dtype.newbyteorder("<"))
        if var.dtype.kind == "b" and not set(raw) <= {0, 1}:
            raise ValueError(
                f"the start value of {name!r:.80} holds bytes that are no truth values"
            )
        program.initial[name] = little.astype(var.dtype).reshape(var.shape)
