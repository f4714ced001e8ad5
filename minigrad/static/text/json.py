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
"""

import base64
import json
import math
from typing import Any

import numpy as np

from ...errors import ProgramFormatError, describe, refusal
from ...ops.shape import Array
from ...primitives.arguments import Attrs, ByName
from ..program.block import Block
from ..program.operator import ROLES, Operator
from ..program.program import BackwardCall, Program, Pruned
from ..program.variable import Variable
from ..program.verify import mark_given, verify
from .literals import DTYPES, LIMIT, check_memory, declare, from_plain, to_plain

FORMAT, VERSION = "minigrad program", 1


def to_json(program: Program) -> str:
    """The JSON of a program.  Errors: `ProgramFormatError` if an attr cannot be stored."""
    place = {id(op): [b.idx, k] for b in program.blocks for k, op in enumerate(b.ops)}
    blocks = []
    for block in program.blocks:
        variables = [
            [v.name, v.kind, v.dtype.name, list(v.shape), v._stop, v._derived_stop]
            for v in block.vars.values()
        ]
        operators = [{
            "type": op.type, "role": op.role, "inputs": op.inputs, "outputs": op.outputs,
            "attrs": _plain_attrs(op), "of": place.get(id(op.forward_op)),
        } for op in block.ops]  # fmt: skip
        blocks.append({
            "parent": block.parent, "forward": block.forward_block,
            "variables": variables, "operators": operators,
        })  # fmt: skip
    data = {
        "format": FORMAT, "version": VERSION, "history": program.history,
        "inputs": program.inputs, "outputs": program.outputs,
        "error_clips": {n: to_plain(list(c)) for n, c in program.error_clips.items()},
        "pruned": [[g, why, place[id(op)]] for g, why, op in program.pruned if id(op) in place],
        "backward": [
            [c.block, c.targets, sorted(c.no_grad), list(c.gradients.items())]
            for c in program.backward_calls
        ],
        "blocks": blocks,
        "initial": {n: _bytes_of(v) for n, v in program.initial.items()},
    }  # fmt: skip
    return json.dumps(data, allow_nan=False) + "\n"


def _plain_attrs(op: Operator) -> Attrs:
    try:
        attrs = {k: to_plain(v) for k, v in op.attrs.items()}
        for plain in attrs.values():
            from_plain(plain)  # what cannot be read is not written
    except (TypeError, ValueError) as error:
        advice = "numbers, texts, arrays, dtypes, slices, or tuples of these"
        raise refusal(f"{op.type}: {error}", advice, ProgramFormatError) from None
    return attrs


def _bytes_of(value: Array) -> str:
    data = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(data.tobytes()).decode("ascii")


#: what Python needs for an object, a list, an entry: told by its mark before anything is read
_BYTES = {"{": 240, "[": 100, ",": 80}


def _short_text(value) -> bool:
    """a short text"""
    return isinstance(value, str) and len(value) <= 400 and value.isprintable()


def _place_or_null(value) -> bool:
    """null or [block, operator]"""
    return value is None or (type(value) is list and [*map(type, value)] == [int, int])


_NAMES = {str: [_short_text]}
#: a type, a test, one of several words, [of each entry], (an entry each), {key: of its value}, {str: of each value}
_SCHEMA: Any = {
    "format": {FORMAT}, "version": {VERSION}, "history": [_short_text],
    "inputs": [_short_text], "outputs": [_short_text], "error_clips": {str: object},
    "pruned": [(_short_text, _short_text, (int, int))],
    "backward": [(int, [_short_text], [_short_text], [(_short_text, _short_text)])],
    "blocks": [{
        "parent": int, "forward": int,
        "variables": [
            (str, {"var", "data", "param", "const"}, DTYPES, list, {True, False, None}, bool)
        ],
        "operators": [{
            "type": str, "role": {*ROLES}, "inputs": _NAMES, "outputs": _NAMES,
            "attrs": {str: object}, "of": _place_or_null,
        }],
    }],
    "initial": {str: str},
}  # fmt: skip


def _check(value, schema, where: str) -> None:
    """Errors: `ValueError` unless a value is as the schema says: it is closed."""
    is_open = isinstance(schema, list) or (isinstance(schema, dict) and str in schema)
    if isinstance(schema, dict):
        good = type(value) is dict and (is_open or value.keys() == schema.keys())
        wanted = "an object" if is_open else f"an object with the keys {sorted(schema)}"
        if type(value) is dict and not good:
            value = ", ".join(sorted(value)[:20])
    elif isinstance(schema, list | tuple):
        good = type(value) is list and (is_open or len(value) == len(schema))
        wanted = "a list" if is_open else f"a list of {len(schema)}"
    elif isinstance(schema, set | frozenset):
        good = type(value) in map(type, schema) and value in schema
        wanted = " or ".join(sorted(map(repr, schema)))
    elif isinstance(schema, type):
        good = schema is object or type(value) is schema
        wanted = f"a {schema.__name__}"
    else:
        good, wanted = schema(value), schema.__doc__
    if not good:
        shown = describe(value) if isinstance(value, list) else f"{value!r:.200}"
        raise ValueError(f"{where} must be {wanted}, not {shown}")
    if isinstance(schema, dict):
        for key, inner in value.items():
            _check(inner, schema[str if is_open else key], f"{where}, {key!r}")
    elif isinstance(schema, list | tuple):
        for k, inner in enumerate(value):
            _check(inner, schema[0 if is_open else k], where)


def from_json(text: str, limit: int = LIMIT) -> Program:
    """The program of a JSON text that takes at most ``limit`` bytes of memory.

    Errors: `ProgramFormatError`, and nothing else, for whatever is not one.
    """
    if not isinstance(text, str):
        what = f"a stored program is a text, not {type(text).__name__}"
        raise refusal(what, "Program.from_json(path.read_text())", ProgramFormatError)
    try:
        objects = sum(size * text.count(mark) for mark, size in _BYTES.items())
        check_memory(4 * len(text) + objects, limit)
        data = json.loads(text, object_pairs_hook=_unique)
        if isinstance(data, dict):
            data = {"pruned": [], "backward": [], **data}
        _check(data, _SCHEMA, "the file")
        return mark_given(verify(_program(data, limit)))
    except Exception as error:  # whatever a damaged text provokes
        raise ProgramFormatError(f"this is no stored program: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> ByName:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries


def _program(data: ByName, limit: int) -> Program:
    """Blocks with their variables and operators, then what speaks of operators."""
    program = Program()
    program.blocks.clear()
    links = list[Any]()
    program.history = data["history"]
    for k, part in enumerate(data["blocks"]):
        block = Block(program, k, part["parent"], part["forward"])
        program.blocks.append(block)
        for variable in part["variables"]:
            declare(block, limit, *variable)
        for item in part["operators"]:
            attrs = {name: from_plain(value) for name, value in item["attrs"].items()}
            op = Operator(item["type"], item["inputs"], item["outputs"], attrs, item["role"])
            block.ops.append(op)
            links.append((op, item["of"]))
            block.written.update(op.output_names)
    for op, of in links:
        op.forward_op = of and _operator_at(program, *of)
    known = {v.name for v in program.all_variables()}
    for name, limits in data["error_clips"].items():
        pair = from_plain(limits)
        good = isinstance(pair, list) and [type(v) for v in pair] == [float, float]
        if name not in known or not good or not pair[0] <= pair[1]:
            raise ValueError(f"the error clip of {name!r:.80} must be [min, max] of a variable")
        program.error_clips[name] = tuple(pair)
    for grad_op, reason, of in data["pruned"]:
        program.pruned.append(Pruned(grad_op, reason, _operator_at(program, *of)))
    for block_idx, targets, cut, gradients in data["backward"]:
        if not 0 <= block_idx < len(program.blocks):
            raise ValueError(f"a backward call names block {block_idx}, which is not there")
        program.backward_calls.append(BackwardCall(block_idx, targets, set(cut), dict(gradients)))
    for name, text in data["initial"].items():
        program.initial[name] = _start_value(program.blocks[0].vars.get(name), name, text)
    program.inputs = data["inputs"]
    program.outputs = data["outputs"]
    for name in (*program.inputs, *program.outputs):
        if name not in program.blocks[0].vars:
            raise ValueError(f"{name!r} is no variable of block 0")
    return program


def _operator_at(program: Program, b: int, k: int) -> Operator:
    """The operator that ``[block, operator]`` names."""
    if not (0 <= b < len(program.blocks) and 0 <= k < len(program.blocks[b].ops)):
        raise ValueError(f"'of' names operator {k} of block {b}, which is not there")
    return program.blocks[b].ops[k]


def _start_value(var: Variable | None, name: str, text: str) -> Array:
    raw = base64.b64decode(text, validate=True)
    if var is None or not var.persistable:
        raise ValueError(f"the start value of {name!r:.80} belongs to nothing that outlives a run")
    right = len(raw) == math.prod(var.shape) * var.dtype.itemsize
    plain = base64.b64encode(raw).decode("ascii") == text
    if not right or not plain or (var.dtype.kind == "b" and not set(raw) <= {0, 1}):
        raise ValueError(f"the start value of {name!r:.80} holds no {var.dtype}{list(var.shape)}")
    return np.frombuffer(raw, var.dtype.newbyteorder("<")).astype(var.dtype).reshape(var.shape)
