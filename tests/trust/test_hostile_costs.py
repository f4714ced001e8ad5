"""What files of strangers cost: work grows as the file does, memory stays below what was foretold.

Work is counted in calls, for a file and for one twice as large.
"""

from __future__ import annotations

import contextlib
import json
import tracemalloc

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, static
from minigrad.errors import ProgramError, ProgramFormatError
from minigrad.nn import storage
from minigrad.nn.module import StateError
from minigrad.static.run import interpreter as run_module
from minigrad.static.run import kernels
from minigrad.static.text import json as loader
from minigrad.static.text import syntax as parser
from tests.work import calls

EMPTY_PROGRAM = json.loads(static.Program().to_json())


def variable(name, kind="data"):
    return [name, kind, "float64", [], None, False]


def operator(type, inputs, outputs, attrs=None):
    return {
        "type": type, "role": "forward", "inputs": inputs, "outputs": outputs, "attrs": attrs or {}, "of": None,
    }  # fmt: skip


def stored(*blocks):
    return json.dumps({**EMPTY_PROGRAM, "blocks": list(blocks)})


def block(parent, variables, operators):
    return {"parent": parent, "forward": -1, "variables": variables, "operators": operators}


def an_unknown_name_among(n):
    names = [variable(f"{'ab'[k % 2] * 50}{k}") for k in range(n)]
    reads = operator("exp", {"x": ["a" * 50 + "z"]}, {"out": ["y"]})
    return stored(block(-1, [*names, variable("y", "var")], [reads]))


def cond(block, out):
    """A cond in which both branches are blocks: this one and the next."""
    attrs = {"sub_block": block, "else_block": block + 1, "true_out": [], "false_out": []}
    return operator("cond", {"pred": ["x"]}, {"out": [], "scopes": [out]}, attrs)


def nested(n, depth=90):
    """Conds in conds, 90 deep, as many as n; the innermost blocks read the outermost variable."""
    blocks = [block(-1, [variable("x")], [])]
    around = 0
    for k in range(n):
        around = 0 if k % depth == 0 else around
        blocks[around]["variables"].append(variable(f"s{k}", "var"))
        blocks[around]["operators"].append(cond(len(blocks), f"s{k}"))
        around, parent = len(blocks), around
        for _ in range(2):
            read = operator("exp", {"x": ["x"]}, {"out": [f"y{k}"]})
            blocks.append(block(parent, [variable(f"y{k}", "var")], [read]))
    return stored(*blocks)


def texts_of_nested(n):
    return str(static.Program.from_json(nested(n)))


def grad_blocks(n):
    """Many blocks that say they are the grad blocks of a long one."""
    lines = ["block 0:", "  data x: float64[]", *(f"  y{k} = exp(x)" for k in range(n))]
    for k in range(1, n):
        lines += [f"block {k} in 0 grad of 0:", f"  g{k} = exp_grad(out_grad=x, out=x)"]
    return "\n".join(lines)


COSTS = {
    "an unknown name, JSON": (static.Program.from_json, an_unknown_name_among),
    "blocks in blocks, JSON": (static.Program.from_json, nested),
    "blocks in blocks, text": (static.parse, texts_of_nested),
    "many grad blocks, text": (static.parse, grad_blocks),
}


@pytest.mark.parametrize("what", COSTS)
def test_a_file_twice_as_large_costs_at_most_twice_the_work(what):
    read, text = COSTS[what]

    def use(n):
        made = text(n)

        def attempt():
            with contextlib.suppress(ProgramFormatError):
                read(made)

        return calls(attempt)

    use(100)  # what is remembered from the first time on
    few, many = use(300), use(600)
    assert many < 2.4 * few, f"{few} calls, then {many}"


def test_blocks_in_blocks_are_programs_up_to_a_hundred():
    static.Executor().run(static.Program.from_json(nested(90)), {"x": np.array(1.0)})
    for read, text in (
        (static.Program.from_json, nested(101, 101)),
        (static.parse, deep_text(101)),
    ):
        with pytest.raises(ProgramFormatError, match="lies in 101 others, and 100 is the limit"):
            read(text)


def deep_text(n):
    lines = ["block 0:", "  data x: float64[]"]
    for k in range(1, n + 1):
        lines += [f"block {k} in {k - 1}:", f"  y{k} = exp(x)"]
    return "\n".join(lines)


def test_a_program_of_500_blocks_in_blocks_is_refused_where_it_is_built():
    def build(v, depth):
        return (
            v if not depth else static.cond(v > 0.0, lambda: build(v * 2.0, depth - 1), lambda: v)
        )

    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        with pytest.raises(ProgramError, match="100 is the limit\n  at test_hostile_costs.py:"):
            build(x, 101)
        y = build(x, 100)
    assert static.Executor().run(program, {"x": np.array(1.0)}, y) == [2.0**100]


def test_a_wrong_name_is_compared_with_few_others(monkeypatch):
    counts = []
    close = errors.difflib.get_close_matches

    def see(word, names, **more):
        counts.append((len(word), *map(len, names)))
        return close(word, names, **more)

    monkeypatch.setattr(errors.difflib, "get_close_matches", see)
    known = [f"layer_{k}_weight{'x' * 300}" for k in range(5000)]
    assert "did you mean 'layer_77_weightx" in errors.did_you_mean(
        "layer_77_weigth" + "x" * 300, known
    )
    assert "did you mean 'bias'" in errors.did_you_mean("bais", [*map(str, range(5000)), "bias"])
    for lengths in counts:
        assert len(lengths) <= 201
        assert max(lengths) <= 60


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_members_of_an_archive_are_not_compared_with_each_other(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    storage.save({"a": np.ones(1)}, path)
    members = []
    for k in range(2000):
        member = storage.zipfile.ZipInfo("a.npy")
        member.filename = Name(f"{k}.npy")
        members.append(member)
    monkeypatch.setattr(storage.zipfile.ZipFile, "infolist", lambda self: members)
    with pytest.raises(StateError, match="limit"):  # after their names were looked at
        storage.load(path, limit=-1)
    assert Name.compared < 4000


MARKS = {
    "lists": "[],",
    "lists in lists": "[[[1]]],",
    "objects": '{"a":1},',
    "empty objects": "{},",
    "numbers": "1000,",
    "long numbers": "12345678901234567890,",
    "floats": "1.5,",
    "texts": '"ab",',
    "wide texts": '"a😀",',
}


@pytest.mark.parametrize("kind", MARKS)
def test_json_takes_less_memory_than_its_marks_foretell(kind, monkeypatch):
    text = "[" + MARKS[kind] * 20_000 + "1]"
    foretold = 4 * len(text) + sum(size * text.count(m) for m, size in loader._BYTES.items())
    assert peak(lambda: static.Program.from_json(text)) < foretold
    monkeypatch.setattr(loader.json, "loads", lambda *a, **k: pytest.fail("it was read"))
    with pytest.raises(ProgramFormatError, match=r"may take \d+ bytes, the limit is"):
        static.Program.from_json(text, limit=foretold - 1)


LINES = {
    "operators": "  y{k} = exp(x)",
    "operators in a row": "  y{k} = add(x, y=x)",
    "variables": "  data v{k}: float32[2, 3]",
    "lists": "  y{k} = reshape(x, shape=(" + "1,1," * 200 + "))",
    "lists in lists": "  y{k} = reshape(x, shape=(" + "[[1]]," * 200 + "))",
    "texts": "  y{k} = cast(x, dtype=(" + "'ab'," * 200 + "))",
    "constants": "  const c{k}: float64[3] = [1.0, 2.0, 3.0]",
    "notes": "# made by: a",
}


@pytest.mark.parametrize("kind", LINES)
def test_a_text_takes_less_memory_than_its_lines_foretell(kind):
    count = 20 if "1," in LINES[kind] or "ab" in LINES[kind] else 3000
    lines = [LINES[kind].replace("{k}", str(k)) for k in range(count)]
    text = "\n".join(["block 0:", "  data x: float64[]", *lines])
    foretold = parser._memory(text)
    assert peak(lambda: static.parse(text)) < foretold
    with pytest.raises(ProgramFormatError, match=r"may take \d+ bytes, the limit is"):
        static.parse(text, limit=foretold - 1)


def peak(use):
    """The most memory a use takes beyond what is there."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(ProgramFormatError):
            use()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_loop_of_single_numbers_takes_less_memory_than_is_counted():
    """What Python needs for an array of one number is many times the number."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        i, *_ = static.while_loop(
            lambda i, *v: i < 10**6, lambda i, *v: (i + 1, *(e + 0.5 for e in v)), [0, *[x] * 10]
        )
    limit = 2**22

    def use():
        with pytest.raises(ProgramError, match=f"more than {limit} bytes"):
            static.Executor().run(program, {"x": np.array(0.0)}, i, memory_limit=limit)

    assert limit / 4 < peak(use) < limit


def test_where_memory_ends_the_error_is_ours(monkeypatch):
    def no_memory(*args):
        raise MemoryError

    program = mg.trace(lambda x: mg.sin(x), np.ones(2))
    monkeypatch.setattr(kernels, "run_kernel", no_memory)
    for _ in range(2):
        with pytest.raises(ProgramError, match=r"repair: smaller|MemoryError"):
            static.Executor().run(program, {"x0": np.ones(2)}, program.outputs)
        monkeypatch.setattr(run_module, "refused", no_memory)
