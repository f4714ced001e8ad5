"""Stored programs: byte-identical from save to load to save; whatever else is in a file, one error and no harm."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramFormatError
from minigrad.static.text import json as loader
from tests.static.mutations import ORIGINALS, trial, trials


def sample():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 3], np.float32)
        w = static.parameter("w", np.arange(6.0, dtype=np.float32).reshape(3, 2))
        h = mg.clip(mg.matmul(x, w)[..., :1], min=-float("inf"), max=2.0)
        static.error_clip(h, -1, float("inf"))
        h.stop_gradient = False
        loss = mg.concat([h, h]).mean()
        mg.optim.Adam(lr=0.1).minimize(loss)
        loss.reshape([1, 1])
    return program, loss


def test_saving_loading_and_saving_gives_the_same_bytes_and_the_same_training():
    program, loss = sample()
    stored = program.to_json()
    again = static.Program.from_json(stored)
    assert again.to_json() == stored
    assert str(again) == str(program)
    feed = {"x": np.sin(np.arange(12.0)).reshape(4, 3).astype(np.float32)}
    runs = []
    for p in (program, again):
        executor = static.Executor()
        for _ in range(3):
            executor.run(p, feed, [loss])
        runs.append(executor.scope["w"])
    np.testing.assert_array_equal(*runs)
    assert runs[0].dtype == np.float32


def test_grad_ops_know_their_forward_ops_after_loading():
    program, _ = sample()
    again = static.Program.from_json(program.to_json())
    ops = again.global_block().ops
    for old, new in zip(program.global_block().ops, ops, strict=True):
        kind = None if old.forward_op is None else old.forward_op.type
        assert (None if new.forward_op is None else new.forward_op.type) == kind


def test_a_loaded_program_can_be_built_on():
    program, loss = sample()
    again = static.Program.from_json(program.clone(for_test=True).to_json())
    with static.program_guard(again):
        ((p, g),) = static.append_backward(again.global_block().var(loss.name))
    assert (p.name, g.name) == ("w", "w@GRAD")


def change(text, *path, to):
    data = json.loads(text)
    place = data
    for key in path[:-1]:
        place = place[key]
    if to is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return json.dumps(data)


OP = ("blocks", 0, "operators", 0)


BAD = {
    "not JSON": (lambda t: t[:-5], "this is no stored program"),
    "no text": (lambda t: t.encode(), "is a text, not bytes"),
    "empty": (lambda t: "", "this is no stored program"),
    "a list": (lambda t: "[]", "an object with the keys"),
    "another format": (lambda t: change(t, "format", to="pickle"), "must be 'minigrad program', not 'pickle'"),
    "another version": (lambda t: change(t, "version", to=2), "'version' must be 1, not 2"),
    "a version that is true": (lambda t: change(t, "version", to=True), "'version' must be 1, not True"),
    "an unknown key": (lambda t: change(t, "code", to="import os"), "an object with the keys"),
    "a missing key": (lambda t: change(t, "initial", to=KeyError), "an object with the keys"),
    "a key twice": (lambda t: t.replace('"history"', '"version": 1, "history"'), "a key stands twice"),
    "NaN": (lambda t: t.replace('"version": 1', '"version": NaN'), "'version' must be 1, not nan"),
    "a huge number": (lambda t: t.replace('"version": 1', '"version": 1e999'), "'version' must be 1, not inf"),
    "deep nesting": (lambda t: t.replace('"history": []', '"history": ' + "[" * 100_000), "this is no stored program"),
    "history with line ends": (lambda t: change(t, "history", to=["a\nb"]), "'history' must be a short text"),
    "an unknown op type": (lambda t: change(t, *OP, "type", to="os.system"), "there is no operator type 'os.system'"),
    "an unknown slot": (lambda t: change(t, *OP, "inputs", "z", to=["x"]), "has no input slot 'z'"),
    "an unknown attr": (lambda t: change(t, *OP, "attrs", "z", to=1), "has no attr 'z'"),
    "an unknown role": (lambda t: change(t, *OP, "role", to="evil"), "'role' must be 'backward' or 'forward' or 'loss' or 'optimize', not 'evil'"),
    "a dangling name": (lambda t: change(t, *OP, "inputs", "x", to=["nobody"]), "no variable 'nobody'"),
    "a slot of two": (lambda t: change(t, *OP, "inputs", "x", to=["x", "x"]), "is one value, 2 names were given for it"),
    "names that are no texts": (lambda t: change(t, *OP, "inputs", "x", to=[3]), "must be a short text"),
    "a link to nowhere": (lambda t: change(t, *OP, "of", to=[0, 999]), "'of' names operator 999"),
    "a block in itself": (lambda t: change(t, "blocks", 0, "parent", to=0), "must come before it"),
    "no blocks": (lambda t: change(t, "blocks", to=[]), "of a variable"),
    "a block nobody holds": (
        lambda t: change(t, "blocks", to=[*json.loads(t)["blocks"], {"parent": 0, "forward": -1, "variables": [], "operators": []}]),
        "no operator holds block 1",
    ),
    "a variable of five entries": (lambda t: change(t, "blocks", 0, "variables", 0, to=["x"]), "must be a list of 6"),
    "an unknown dtype": (lambda t: change(t, "blocks", 0, "variables", 0, 2, to="object"), "not 'object'"),
    "an unknown kind": (lambda t: change(t, "blocks", 0, "variables", 0, 1, to="secret"), "must be 'const' or 'data' or 'param' or 'var', not 'secret'"),
    "a name with a line end": (lambda t: change(t, "blocks", 0, "variables", 0, 0, to="x\n"), "cannot be the name"),
    "a rank of 40": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[1] * 40), "is no shape"),
    "too many elements": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[10**6, 10**6]), "has 4e+12 bytes, the limit is 1073741824"),
    "a size of -3": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[-3]), "is no shape"),
    "an attr of deep lists": (lambda t: change(t, *OP, "attrs", "zeros", to=json.loads("[" * 20 + "]" * 20)), "attrs nest deeper than 16"),
    "a start value of another size": (lambda t: change(t, "initial", "w", to="AAAA"), "holds no float32[3, 2]"),
    "a start value that is no base64": (lambda t: change(t, "initial", "w", to="!" * 32), "this is no stored program"),
    "a start value of nothing": (lambda t: change(t, "initial", "zz", to="AAAA"), "belongs to nothing that outlives a run"),
    "an error clip of nothing": (lambda t: change(t, "error_clips", "zz", to=[0.0, 1.0]), "must be [min, max] of a variable"),
    "an error clip upside down": (lambda t: change(t, "error_clips", "clip_0", to=[1.0, 0.0]), "must be [min, max] of a variable"),
    "an input that is no variable": (lambda t: change(t, "inputs", to=["zz"]), "'zz' is no variable of block 0"),
}  # fmt: skip


@pytest.mark.parametrize("damage", BAD)
def test_a_damaged_file_is_a_format_error(damage):
    spoil, message = BAD[damage]
    with pytest.raises(ProgramFormatError) as caught:
        static.Program.from_json(spoil(sample()[0].to_json()))
    assert message in str(caught.value)


#: damaged files, and texts; `.ci/run` looks at 10,000 files, the long campaign at 1,000,000
COUNT = 1000


def test_damaged_files_raise_the_one_error_and_nothing_else():
    assert trials(0, COUNT) == []


def test_some_damaged_files_are_programs_all_the_same():
    assert any(trial(seed) for seed in range(200))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mutated_texts_raise_the_one_error_and_nothing_else():
    texts = [str(static.Program.from_json(t)) for t in ORIGINALS]
    for seed in range(COUNT):
        rng = random.Random(seed)
        lines = rng.choice(texts).splitlines()
        at = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.3:
            del lines[at]
        elif kind < 0.6:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = (
                lines[at][:place]
                + rng.choice(["x", "(", ")", "=", ",", "[", "]", "'", "@", " ", "9" * 30])
                + lines[at][place:]
            )
        elif kind < 0.8:
            lines.insert(rng.randrange(len(lines)), lines[at])
        else:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        try:
            program = static.parse("\n".join(lines))
        except ProgramFormatError:
            continue
        assert str(static.parse(str(program))) == str(program)


# -- at the edges of what is allowed -----------------------------------------------------


STORED = sample()[0].to_json()


VARIABLE, FIRST_OPERATOR = ("blocks", 0, "variables"), ("blocks", 0, "operators")


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
    "holds no bool[3]": added(["t", "const", "bool", [3], None, True], "AQAB"),
    "one byte": added(["t", "const", "uint8", [1], None, True], "Ag=="),
    "no gradient wanted": changed(*VARIABLE, 2, 4, to=True),
    "inputs and outputs": changed("inputs", to=["x", "w"]),
    "a link to the first operator": changed(*FIRST_OPERATOR, 4, "of", to=[0, 0]),
}


REFUSED = {
    "a text of 401 characters": (changed("history", to=["a" * 401]), "must be a short text"),
    "a line end": (changed("history", to=["a\n"]), "must be a short text"),
    "a text for texts": (changed("history", to="a"), "'history' must be a list"),
    "a text for names": (changed(*FIRST_OPERATOR, 0, "inputs", "x", to="x"), "'x' must be a list"),
    "texts and a number": (changed("history", to=["a", 1]), "must be a short text"),
    "a clip with nan": (
        changed("error_clips", "clip_0", to=[["float", "nan"], 1.0]),
        "must be [min, max]",
    ),
    "a clip of three": (changed("error_clips", "clip_0", to=[0.0, 1.0, 2.0]), "must be [min, max]"),
    "a clip of whole numbers": (changed("error_clips", "clip_0", to=[0, 1]), "must be [min, max]"),
    "a clip of a tuple": (
        changed("error_clips", "clip_0", to=["tuple", 0.0, 1.0]),
        "must be [min, max]",
    ),
    "a clip of no variable": (changed("error_clips", to={"zz": [0.0, 1.0]}), "must be [min, max]"),
    "an output that is nothing": (changed("outputs", to=["zz"]), "'zz' is no variable of block 0"),
    "an open parameter": (changed(*VARIABLE, 1, 3, to=[-1, 2]), "is no shape"),
    "an open constant": (added(["e", "const", "float32", [-1], None, False]), "is no shape"),
    "a parameter of whole numbers": (changed(*VARIABLE, 1, 2, to="int32"), "floating-point"),
    "a variable of seven": (changed(*VARIABLE, 0, to=lambda v: [*v, 0]), "must be a list of 6"),
    "a variable that is a text": (changed(*VARIABLE, 0, to="abcdef"), "must be a list of 6"),
    "a dtype that is a list": (changed(*VARIABLE, 0, 2, to=["float32"]), "not a list of 1"),
    "stop is 0": (changed(*VARIABLE, 0, 4, to=0), "must be False or None or True"),
    "stop is 1.0": (changed(*VARIABLE, 0, 4, to=1.0), "must be False or None or True"),
    "stop is a text": (changed(*VARIABLE, 0, 4, to="no"), "must be False or None or True"),
    "derived is null": (changed(*VARIABLE, 0, 5, to=None), "must be a bool"),
    "another version": (changed("version", to=0), "'version' must be 1, not 0"),
    "a key more": (changed("initial", to=lambda v: v)[:-1] + ', "more": 1}', "inputs, more"),
    "a size of -2": (changed(*VARIABLE, 2, 3, to=[-2, 2]), "is no shape"),
    "a block before the first": (changed("blocks", 0, "parent", to=-2), "block 0"),
    "a first block with a parent": (changed("blocks", 0, "parent", to=0), "block 0"),
    "the grad of a later block": (changed("blocks", 0, "forward", to=1), "block 0"),
    "the grad of block -2": (changed("blocks", 0, "forward", to=-2), "block 0"),
    "a link of three": (
        changed(*FIRST_OPERATOR, 4, "of", to=[0, 0, 0]),
        "'of' must be null or [block, operator]",
    ),
    "a link that is a text": (
        changed(*FIRST_OPERATOR, 4, "of", to="00"),
        "'of' must be null or [block, operator]",
    ),
    "a link with a truth value": (
        changed(*FIRST_OPERATOR, 4, "of", to=[False, 0]),
        "'of' must be null or [block, operator]",
    ),
    "a link backwards": (
        changed(*FIRST_OPERATOR, 4, "of", to=[0, -1]),
        "'of' names operator -1 of block 0, which is not there",
    ),
    "a link to no block": (changed(*FIRST_OPERATOR, 4, "of", to=[1, 0]), "operator 0 of block 1"),
    "a link behind the last": (
        changed(
            *FIRST_OPERATOR, 4, "of", to=[0, len(json.loads(STORED)["blocks"][0]["operators"])]
        ),
        "which is not there",
    ),
    "a start value of data": (changed("initial", "x", to="AAAA"), "outlives a run"),
    "a start value that is a list": (changed("initial", "w", to=[]), "'w' must be a str"),
    "a start value of one byte more": (
        changed("initial", "learning_rate", to="zczMPQA="),
        "holds no float32[]",
    ),
    "another text for the same bytes": (
        changed("initial", "learning_rate", to="zczMPR=="),
        "holds no float32[]",
    ),
    "a truth value of 2": (
        added(["t", "const", "bool", [3], None, True], "AQAC"),
        "holds no bool[3]",
    ),
    "an attr that is a block, as a truth value": (
        changed(*FIRST_OPERATOR, 0, "attrs", to={"sub_block": True}),
        "has no attr 'sub_block'",
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
