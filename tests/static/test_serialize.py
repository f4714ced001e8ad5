"""Stored programs: byte-identical from save to load to save; whatever else is in a file, one error and no harm."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramFormatError
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
    "a list": (lambda t: "[]", "the file has the keys"),
    "another format": (lambda t: change(t, "format", to="pickle"), "the format is 'pickle'"),
    "another version": (lambda t: change(t, "version", to=2), "version 2; this reads"),
    "a version that is true": (lambda t: change(t, "version", to=True), "'version' must be a int, not bool"),
    "an unknown key": (lambda t: change(t, "code", to="import os"), "the file has the keys"),
    "a missing key": (lambda t: change(t, "initial", to=KeyError), "the file has the keys"),
    "a key twice": (lambda t: t.replace('"history"', '"version": 1, "history"'), "a key stands twice"),
    "NaN": (lambda t: t.replace('"version": 1', '"version": NaN'), "NaN is no number of a program"),
    "a huge number": (lambda t: t.replace('"version": 1', '"version": 1e999'), "is too large"),
    "deep nesting": (lambda t: t.replace('"history": []', '"history": ' + "[" * 100_000), "this is no stored program"),
    "history with line ends": (lambda t: change(t, "history", to=["a\nb"]), "history must be a list of short texts"),
    "an unknown op type": (lambda t: change(t, *OP, "type", to="os.system"), "there is no operator type 'os.system'"),
    "an unknown slot": (lambda t: change(t, *OP, "inputs", "z", to=["x"]), "has no input slot 'z'"),
    "an unknown attr": (lambda t: change(t, *OP, "attrs", "z", to=1), "has no attr 'z'"),
    "an unknown role": (lambda t: change(t, *OP, "role", to="evil"), "'evil' is no role"),
    "a dangling name": (lambda t: change(t, *OP, "inputs", "x", to=["nobody"]), "no variable 'nobody'"),
    "a slot of two": (lambda t: change(t, *OP, "inputs", "x", to=["x", "x"]), "is one value, not 2"),
    "names that are no texts": (lambda t: change(t, *OP, "inputs", "x", to=[3]), "must be a list of short texts"),
    "a link to nowhere": (lambda t: change(t, *OP, "of", to=[0, 999]), "'of' names operator 999"),
    "a block in itself": (lambda t: change(t, "blocks", 0, "parent", to=0), "both must come before it"),
    "no blocks": (lambda t: change(t, "blocks", to=[]), "at least one block"),
    "a block nobody holds": (
        lambda t: change(t, "blocks", to=[*json.loads(t)["blocks"], {"parent": 0, "forward": -1, "variables": [], "operators": []}]),
        "no operator holds block 1",
    ),
    "a variable of five entries": (lambda t: change(t, "blocks", 0, "variables", 0, to=["x"]), "a list of six entries"),
    "an unknown dtype": (lambda t: change(t, "blocks", 0, "variables", 0, 2, to="object"), "unknown kind or dtype"),
    "an unknown kind": (lambda t: change(t, "blocks", 0, "variables", 0, 1, to="secret"), "unknown kind or dtype"),
    "a name with a line end": (lambda t: change(t, "blocks", 0, "variables", 0, 0, to="x\n"), "cannot be the name"),
    "a rank of 40": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[1] * 40), "is no shape"),
    "too many elements": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[10**6, 10**6]), "has 4e+12 bytes, the limit is 1073741824"),
    "a size of -3": (lambda t: change(t, "blocks", 0, "variables", 0, 3, to=[-3]), "is no shape"),
    "an attr of deep lists": (lambda t: change(t, *OP, "attrs", "zeros", to=json.loads("[" * 20 + "]" * 20)), "attrs nest deeper than 16"),
    "a start value of another size": (lambda t: change(t, "initial", "w", to="AAAA"), "has another size than float32[3, 2]"),
    "a start value that is no base64": (lambda t: change(t, "initial", "w", to="!" * 32), "this is no stored program"),
    "a start value of nothing": (lambda t: change(t, "initial", "zz", to="AAAA"), "belongs to no variable that outlives a run"),
    "an error clip of nothing": (lambda t: change(t, "error_clips", "zz", to=[0.0, 1.0]), "is no pair of numbers for a variable"),
    "an error clip upside down": (lambda t: change(t, "error_clips", "clip_0", to=[1.0, 0.0]), "needs min <= max"),
    "an input that is no variable": (lambda t: change(t, "inputs", to=["zz"]), "'zz' is no variable of block 0"),
}  # fmt: skip


@pytest.mark.parametrize("damage", BAD)
def test_a_damaged_file_is_a_format_error(damage):
    spoil, message = BAD[damage]
    with pytest.raises(ProgramFormatError) as caught:
        static.Program.from_json(spoil(sample()[0].to_json()))
    assert message in str(caught.value)


#: damaged files; ``python -m tests.static.mutations 0 1000000`` runs the long campaign
COUNT = 20_000


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_raise_the_one_error_and_nothing_else(part):
    first, count = part * COUNT // 10, COUNT // 10
    assert trials(first, count) == []


def test_some_damaged_files_are_programs_all_the_same():
    assert any(trial(seed) for seed in range(200))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mutated_texts_raise_the_one_error_and_nothing_else():
    texts = [str(static.Program.from_json(t)) for t in ORIGINALS]
    for seed in range(COUNT // 10):
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
