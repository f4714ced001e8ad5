"""Stored programs at the edges of what is allowed: the last that may be, and the first that may not."""

from __future__ import annotations

import json

import pytest

from minigrad import static
from minigrad.errors import ProgramFormatError
from minigrad.static.text import loader
from tests.static.test_serialize import sample

STORED = sample()[0].to_json()
VARIABLE, OP = ("blocks", 0, "variables"), ("blocks", 0, "operators")


def changed(*path, to):
    """The stored program with another value at a place (or with what a function makes of the one there)."""
    data = json.loads(STORED)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to(place[path[-1]]) if callable(to) else to
    return json.dumps(data)


def added(variable, value=None):
    """The stored program with one variable more, and a start value for it."""
    data = json.loads(STORED)
    data["blocks"][0]["variables"].append(variable)
    if value is not None:
        data["initial"][variable[0]] = value
    return json.dumps(data)


ALLOWED = {
    "a text of 400 characters": changed("history", to=["a" * 400]),
    "a clip of nothing": changed("error_clips", "clip_0", to=[1.0, 1.0]),
    "an empty parameter": added(["e", "param", "float32", [0], None, False], ""),
    "an open size": added(["o", "data", "float32", [-1], None, False]),
    "truth values": added(["t", "const", "bool", [3], None, True], "AQAB"),
    "one byte": added(["t", "const", "uint8", [1], None, True], "Ag=="),
    "no gradient wanted": changed(*VARIABLE, 2, 4, to=True),
    "inputs and outputs": changed("inputs", to=["x", "w"]),
    "a link to the first operator": changed(*OP, 4, "of", to=[0, 0]),
}
REFUSED = {
    "a text of 401 characters": (changed("history", to=["a" * 401]), "short texts"),
    "a line end": (changed("history", to=["a\n"]), "short texts"),
    "a text for texts": (changed("history", to="a"), "'history' must be a list"),
    "a text for names": (changed(*OP, 0, "inputs", "x", to="x"), "short texts"),
    "texts and a number": (changed("history", to=["a", 1]), "short texts"),
    "a clip with nan": (changed("error_clips", "clip_0", to=[["float", "nan"], 1.0]), "min <= max"),
    "a clip of three": (changed("error_clips", "clip_0", to=[0.0, 1.0, 2.0]), "no pair"),
    "a clip of whole numbers": (changed("error_clips", "clip_0", to=[0, 1]), "no pair"),
    "a clip of a tuple": (changed("error_clips", "clip_0", to=["tuple", 0.0, 1.0]), "no pair"),
    "a clip of no variable": (changed("error_clips", to={"zz": [0.0, 1.0]}), "no pair"),
    "an output that is nothing": (changed("outputs", to=["zz"]), "'zz' is no variable of block 0"),
    "an open parameter": (changed(*VARIABLE, 1, 3, to=[-1, 2]), "is no shape"),
    "an open constant": (added(["e", "const", "float32", [-1], None, False]), "is no shape"),
    "a parameter of whole numbers": (changed(*VARIABLE, 1, 2, to="int32"), "floating-point"),
    "a variable of seven": (changed(*VARIABLE, 0, to=lambda v: [*v, 0]), "six entries"),
    "a variable that is a text": (changed(*VARIABLE, 0, to="abcdef"), "six entries"),
    "a dtype that is a list": (changed(*VARIABLE, 0, 2, to=["float32"]), "unknown kind or dtype"),
    "stop is 0": (changed(*VARIABLE, 0, 4, to=0), "true, false or null"),
    "stop is 1.0": (changed(*VARIABLE, 0, 4, to=1.0), "true, false or null"),
    "stop is a text": (changed(*VARIABLE, 0, 4, to="no"), "true, false or null"),
    "derived is null": (changed(*VARIABLE, 0, 5, to=None), "true, false or null"),
    "another version": (changed("version", to=0), "the format is"),
    "a key more": (changed("initial", to=lambda v: v)[:-1] + ', "more": 1}', "'inputs', 'more'"),
    "a size of -2": (changed(*VARIABLE, 2, 3, to=[-2, 2]), "is no shape"),
    "a block before the first": (changed("blocks", 0, "parent", to=-2), "come before"),
    "a first block with a parent": (changed("blocks", 0, "parent", to=0), "come before"),
    "the grad of a later block": (changed("blocks", 0, "forward", to=1), "come before"),
    "the grad of block -2": (changed("blocks", 0, "forward", to=-2), "come before"),
    "a link of three": (changed(*OP, 4, "of", to=[0, 0, 0]), "'of' is null"),
    "a link that is a text": (changed(*OP, 4, "of", to="00"), "'of' is null"),
    "a link with a truth value": (changed(*OP, 4, "of", to=[False, 0]), "'of' is null"),
    "a link backwards": (changed(*OP, 4, "of", to=[0, -1]), "'of' is null"),
    "a link to no block": (changed(*OP, 4, "of", to=[1, 0]), "operator 0 of block 1"),
    "a link behind the last": (
        changed(*OP, 4, "of", to=[0, len(json.loads(STORED)["blocks"][0]["operators"])]),
        "which is not there",
    ),
    "a start value of data": (changed("initial", "x", to="AAAA"), "outlives a run"),
    "a start value that is a list": (changed("initial", "w", to=[]), "outlives a run"),
    "a start value of one byte more": (
        changed("initial", "learning_rate", to="zczMPQA="),
        "not well-formed",
    ),
    "another text for the same bytes": (
        changed("initial", "learning_rate", to="zczMPR=="),
        "not well-formed",
    ),
    "a truth value of 2": (added(["t", "const", "bool", [3], None, True], "AQAC"), "truth values"),
    "an attr that is a block, as a truth value": (
        changed(*OP, 0, "attrs", to={"sub_block": True}),
        "is the index of a block",
    ),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_just_allowed_is_read_and_written_back(what):
    program = static.Program.from_json(ALLOWED[what])
    assert json.loads(program.to_json()) == json.loads(ALLOWED[what])


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_just_not_allowed_is_refused_with_its_reason(what):
    text, message = REFUSED[what]
    with pytest.raises(ProgramFormatError) as caught:
        static.Program.from_json(text)
    assert message in str(caught.value)


def test_a_file_may_need_as_many_bytes_as_the_limit_and_not_more():
    """What is read is counted by its marks, before it is read."""
    needed = 4 * len(STORED) + sum(size * STORED.count(m) for m, size in loader._BYTES.items())
    assert static.Program.from_json(STORED, limit=needed).to_json() == STORED
    with pytest.raises(ProgramFormatError, match=rf"may take {needed} bytes, .*limit=…"):
        static.Program.from_json(STORED, limit=needed - 1)


def test_what_a_variable_declares_is_counted_in_bytes():
    text = added(["v", "data", "float32", [2**27, 2], None, False])
    assert static.Program.from_json(text).global_block().var("v").shape == (2**27, 2)
    with pytest.raises(ProgramFormatError, match="the limit is 1073741823"):
        static.Program.from_json(text, limit=2**30 - 1)
    with pytest.raises(ProgramFormatError, match="the limit is 1073741824"):
        static.Program.from_json(text.replace(f"[{2**27}, 2]", f"[{2**27}, 3]"))
