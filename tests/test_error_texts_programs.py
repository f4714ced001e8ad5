"""What errors of programs and pictures say: the operator, the shapes, and how to go on."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError
from minigrad.static.literals import from_plain
from minigrad.static.net import Operator
from minigrad.viz import layout


def building(make):
    """``make(x)`` with data ``x`` of shape [2] in a Program."""
    with static.program_guard(static.Program()):
        return make(static.data("x", [2]))


def parsed(*lines):
    return static.parse("\n".join(("block 0:", *lines)))


def open_sum():
    program = static.Program()
    with static.program_guard(program):
        total = static.data("x", [-1]) + static.data("y", [-1])
    return program, total, {"x": np.ones(2), "y": np.ones(3)}


def interpreted():
    program, total, feed = open_sum()
    return static.Executor().run(program, feed=feed, fetch_list=[total])


def compiled():
    program, total, feed = open_sum()
    return static.compile(program, fetch=total)(**feed)


def too_large_a_class():
    program = static.Program()
    with static.program_guard(program):
        loss = mg.cross_entropy(static.data("x", [2, 3]), static.data("t", [2], "int64"))
    return static.compile(program, fetch=loss)(x=np.ones((2, 3)), t=np.array([5, 1]))


def with_attr(name, value, then):
    """A sum with an attr that nobody checked."""
    program = static.Program()
    with static.program_guard(program):
        mg.sum(static.data("x", [2]))
    program.global_block().ops[-1].attrs[name] = value
    return then(program)


def operator(**values):
    return Operator("matmul", {"x": "a", "y": "b"}, {"out": "c"}).run(values)


#: a call and words of its error, which stand there in this order
CALLS = [
    (lambda: building(lambda x: static.gradients([x * 2.0], [x], [None, None])), "1 targets need 1 target_gradients, 2 were given"),
    (lambda: building(lambda x: x @ static.data("y", [3])), "matmul(x: float64[2], y: float64[3]) is not possible", "repair: the last axis of the first (2)"),
    (lambda: building(lambda x: mg.concat([x, static.data("y", [3, 2])])), "concat(x: float64[2], x: float64[3, 2])", "repair: all need equally many axes"),
    (lambda: building(lambda x: mg.sum(x, axis=3)), "reduce_sum(x: float64[2], axis=3) is not possible", "repair: axes go from -1 to 0"),
    (lambda: building(lambda x: x.view(3)), "a Variable has no attribute 'view'", "repair: x.reshape(shape)"),
    (lambda: building(lambda x: x.program.global_block().append_op("sin", {"y": [x]}, {"out": ["o"]})), "sin has no input slot 'y'. Known: 'x'"),
    (interpreted, "#0 add({'x': ['float64[2]'], 'y': ['float64[3]']}) failed", "(2,) (3,)"),
    (compiled, "add(x: float64[2], y: float64[3]) is not possible", "repair: sizes are compared from the right"),
    (too_large_a_class, "cross_entropy(x, t) failed: classes from 1 to 5", "repair: count classes from 0", "in the source, line"),
    (lambda: static.Scope()["w"], "'w'"),
    (lambda: operator(a=np.ones((2, 3)), b=np.ones(2)), "matmul(x=a, y=b) failed with a: float64[2, 3], b: float64[2]"),
    (lambda: operator(a=np.ones((2, 3))), "'b' has no value in this scope. Known: 'a'", "read by c = matmul"),
    # stored programs, and programs that somebody changed
    (lambda: from_plain(["slice", 1]), "['slice', 1] is no slice"),
    (lambda: parsed("data x: float65[2]"), "line 2: unknown dtype 'float65'; did you mean 'float64'?"),
    (lambda: parsed("const c: float64[2] = [1.0]"), "line 2: [1.0] is no float64[2]"),
    (lambda: parsed('y = sin(x="a)'), "line 2: cannot read '\"a'"),
    (lambda: parsed("var y: float64[2]", "z = sin(x=y)"), "block 0, #0 sin: it reads 'y' before anything wrote it"),
    (lambda: with_attr("axis", object(), static.Program.to_json), "reduce_sum: an attr of type object cannot be stored"),
    (lambda: with_attr("axs", 0, static.verify), "block 0, #0: reduce_sum has no attr 'axs'; did you mean 'axis'?"),
    # pictures
    (lambda: mg.draw(mg.sin(mg.tensor(1.0, requires_grad=True)), detail="ful"), "unknown detail 'ful'; known: auto, full"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"), [(c, w) for c, *w in CALLS], ids=[w[0] for _, *w in CALLS]
)
def test_an_error_says_these_words_in_this_order(call, words):
    with pytest.raises((MinigradError, AttributeError, KeyError, ValueError)) as caught:
        call()
    lines = str(caught.value).splitlines()  # the line here holds the words, too
    text = "\n".join(s for s in lines if "test_error_texts_programs.py:" not in s)
    places = [text.find(w) for w in words]
    assert -1 not in places, (text, words)
    assert places == sorted(places), text


def test_a_picture_without_a_layout_engine_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(layout, "layout", lambda *args: None)
    monkeypatch.setattr(layout, "available", lambda: False)
    picture = mg.draw(mg.sin(mg.tensor(1.0, requires_grad=True)))
    with pytest.raises(
        RuntimeError, match=r"cannot draw 'a\.pdf': No layout engine found: .*pip install"
    ):
        picture.save(tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())
