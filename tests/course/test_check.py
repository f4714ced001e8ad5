"""Exercises that check themselves: one line, green or red, whatever the learner's object does."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from minigrad.course import solution
from minigrad.course.check import check, checker, examine
from minigrad.course.folder import find_course
from minigrad.course.judge import Mismatch, close, instance, run_cases, same, stack_depth
from minigrad.course.steps import CourseError

checking = import_module("minigrad.course.check")  # the package's `check` is the function


@pytest.fixture(autouse=True)
def checkers(monkeypatch):
    """Checkers of this test only."""
    import_module("minigrad.course.checks.checkers")  # which registers its own once
    monkeypatch.setattr(checking, "_CHECKERS", {})
    monkeypatch.setattr(checking, "_TRIES", Counter())

    @checker("90a", hint="times itself")
    def square_it(square, *_more):
        same("square(3)", square(3), 9)


class Loud:
    def __repr__(self):
        raise RuntimeError("no repr")


def answers(value):
    return lambda x: value


def stuck(x):
    return stuck(x)


def test_a_right_answer_prints_one_green_line(capsys):
    assert check("90a", lambda x: x * x) is None
    assert capsys.readouterr().out == "\x1b[32m✓ 90a passed\x1b[0m\n"


def test_a_wrong_answer_prints_a_red_mark_then_both_values_and_the_hint(capsys):
    check("90a", lambda x: 2 * x)
    assert (
        capsys.readouterr().out
        == "\x1b[31m✗ 90a\x1b[0m: square(3) is 6, expected 9. Hint: times itself\n"
    )


def not_written(x):
    raise NotImplementedError("your turn")


@pytest.mark.parametrize("stub", [..., not_written], ids=["dots", "raise"])
def test_a_stub_is_the_learners_turn_and_the_hint_waits_for_a_first_try(stub):
    assert examine("90a", stub).text == "○ 90a: your turn"


def test_a_missing_class_among_the_objects_is_the_learners_turn_too():
    assert not examine("90a", lambda x: x * x, ...).passed


WILD = {
    "raises": (lambda x: 1 / 0, "your code raised ZeroDivisionError: division by zero"),
    "exits": (lambda x: exit(), "your code raised SystemExit"),
    "never ends": (stuck, "your code raised RecursionError"),
    "takes no argument": (lambda: 9, "your code raised TypeError"),
    "not a function": (9, "your code raised TypeError: 'int' object is not callable"),
    "nothing": (None, "your code raised TypeError"),
    "returns nothing": (answers(None), "square(3) is None, expected 9"),
    "returns an array": (answers(np.arange(2)), "square(3) is array([0, 1]), expected 9"),
    "returns something without a repr": (
        answers(Loud()),
        "square(3) is <Loud: its repr raised RuntimeError>",
    ),
    "returns something at an address": (answers(object()), "square(3) is <object object at 0x…>"),
    "returns many lines": (answers("a\nb"), "square(3) is 'a b', expected 9"),
    "is a class": (type("Square", (), {}), "your code raised TypeError"),
}


@pytest.mark.parametrize("name", WILD)
def test_whatever_the_object_does_the_answer_is_one_red_line(name, capsys):
    thing, said = WILD[name]
    check("90a", thing)
    out = capsys.readouterr().out
    assert said in out
    assert out.count("\n") == 1
    assert "Hint: times itself" in out


def test_an_exercise_that_nobody_tried_is_no_red_mark(capsys):
    check("90a", ...)
    assert capsys.readouterr().out == "○ 90a: your turn\n"


def test_each_wrong_try_gets_the_next_hint_and_the_last_one_stays(capsys):
    @checker("90b", hint=("what is it?", "look at it", "it is 9"))
    def nine(number):
        same("it", number, 9)

    for attempt in (8, ..., 7, 6, 5, 9):
        check("90b", attempt)
    ends = [line.rpartition("Hint: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert ends[0] == "what is it?"
    assert ends[2:5] == ["look at it", "it is 9", "it is 9"]
    assert "90b passed" in ends[5]


def in_step_1(source):
    """The namespace of step 1, then an answer to 1a."""
    namespace = {"__name__": "step 1"}
    exec((find_course().steps / "step01_boxes.py").read_text(encoding="utf-8"), namespace)
    exec(f"class Cube(Function):\n    def forward(self, x):\n        {source}", namespace)
    return namespace


@pytest.fixture
def step_1(monkeypatch):
    """The checkers of the course instead of those of this test."""
    monkeypatch.undo()


def answer(namespace, tries):
    objects = namespace["Cube"], namespace["Variable"]
    return examine("1a", *objects, tries=tries, namespace=namespace).text


def test_a_known_mistake_is_named_by_the_value_it_gives_and_has_hints_of_its_own(step_1):
    tries = Counter()
    doubled, tripled = in_step_1("return x * x"), in_step_1("return x + x + x")
    first = answer(doubled, tries)
    assert "You get this when the power is 2. Hint: that is Square" in first
    assert "bare array" in answer(doubled, tries)
    assert answer(doubled, tries).endswith("Hint: return x ** 3")
    assert "You get this when x is taken three times" in answer(tripled, tries)
    assert answer(tripled, tries).count("Hint: x is a bare array") == 1


def test_an_answer_that_is_wrong_in_another_way_is_not_named(step_1):
    assert "You get this" not in answer(in_step_1("return x ** 3 + 1"), Counter())


def test_trying_mistakes_leaves_names_tables_and_classes_as_they_were():
    class Box:
        kind = "mine"

    Box.__module__ = "a notebook"
    namespace = {"__name__": "a notebook", "Box": Box, "TABLE": {"add": 1}, "number": 1}
    with solution.restored(namespace):
        namespace |= {"number": 2, "more": 3}
        namespace["TABLE"]["mul"] = 2
        Box.kind = "another"
    assert namespace == {"__name__": "a notebook", "Box": Box, "TABLE": {"add": 1}, "number": 1}
    assert Box.kind == "mine"


def test_what_a_mistake_made_still_knows_its_names_when_it_goes():
    namespace = {}
    exec("gone = []\nletters = __import__('collections').Counter('aab')", namespace)
    with solution.restored(namespace):
        exec("class T:\n    def __del__(self):\n        gone.append(1)\nt = T()", namespace)
        namespace["letters"]["z"] = 9
    assert namespace["gone"] == [1]
    assert namespace["letters"] == {"a": 2, "b": 1}


def test_a_warning_of_numpy_is_not_shown_beside_the_line(recwarn):
    examine("90a", lambda x: np.float64(1.0) / np.float64(0.0))
    assert not recwarn.list


def test_an_interrupt_is_not_an_answer():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine("90a", interrupted)


def test_a_long_value_is_cut():
    assert len(examine("90a", answers("x" * 1000)).text) < 400


@pytest.mark.parametrize(
    ("id", "said"),
    [("90z", "step 90 has 90a"), ("x", "ids are a step and a letter"), ("99a", "ids are a step")],
)
def test_an_exercise_that_does_not_exist_is_refused(id, said):
    with pytest.raises(CourseError, match=said):
        check(id, 1)


def test_an_id_is_a_number_and_a_letter():
    with pytest.raises(CourseError, match="'a3' is not the id of an exercise"):
        checker("a3", hint="")


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (1, 2),
        (np.zeros(2), np.zeros(3)),
        (np.zeros((1, 2)), np.zeros(2)),
        ([1], [1, 2]),
        (None, 0.0),
        ("a", 1),
    ],
)
def test_same_and_close_see_a_difference(observed, expected):
    with pytest.raises(Mismatch):
        same("it", observed, expected)
    if not isinstance(expected, list) and expected is not None:
        with pytest.raises(Mismatch):
            close("it", observed, expected)


def test_close_allows_rounding_and_nothing_else():
    with pytest.raises(Mismatch):
        close("it", "4.0", 4.0)
    close("it", [0.1 + 0.2, np.nan], [0.3, np.nan])
    with pytest.raises(Mismatch, match=r"it is 0\.30001, expected 0\.3"):
        close("it", 0.30001, 0.3)


def test_a_text_where_none_is_expected_stands_in_quotes():
    for compare, text, expected in ((close, "4.0", 4.0), (same, "None", None)):
        with pytest.raises(Mismatch, match=f"^it is '{text}', expected {text}$"):
            compare("it", text, expected)
    with pytest.raises(Mismatch, match="^it is no, expected yes$"):
        same("it", "no", "yes")


def test_a_table_of_cases_is_run_row_by_row():
    rows = [("one", "f(1)", 2.0), ("a word", "g", "yes"), ("a list", "[f(1), f(2)]", [2, 3])]
    run_cases({}, ["f", "g"], rows, lambda x: x + 1, "yes")
    with pytest.raises(Mismatch, match=r"a list is \[2, 3\.5\], expected \[2, 3\]"):
        run_cases({}, ["f", "g"], rows, lambda x: x + 1 if x == 1 else 3.5, "yes")
    with pytest.raises(Mismatch, match="a word is no, expected yes"):
        run_cases({}, ["f", "g"], rows, lambda x: x + 1, "no")


def test_a_table_names_what_it_goes_on_with_and_asks_for_conditions():
    rows = [("y", "f(1)"), ("f at {x}", "y", "an even number, {x} is odd", "y % 2 == 0")]
    run_cases({"x": 1}, ["f"], rows, lambda x: x + 1)
    with pytest.raises(Mismatch, match="^f at 1 is 3, expected an even number, 1 is odd$"):
        run_cases({"x": 1}, ["f"], rows, lambda x: x + 2)
    rows = [("right", "[None, 2]"), ("the list", "f(1)", "{right}")]
    run_cases({}, ["f"], rows, lambda x: [None, 2])
    with pytest.raises(Mismatch, match=r"^the list is \[\], expected \[None, 2\]$") as caught:
        run_cases({}, ["f"], rows, lambda x: [])
    assert caught.value.expected == [None, 2]


@pytest.mark.parametrize("objects", [(), (abs, abs, abs)])
def test_a_table_names_the_objects_that_it_takes_where_others_are_given(objects):
    said = rf"^the number of objects given to check is {len(objects)}, expected 2: f, g$"
    with pytest.raises(Mismatch, match=said):
        run_cases({}, ["f", "g"], [("one", "f(1)", 1)], *objects)


def test_a_number_of_a_table_may_differ_by_rounding():
    run_cases({}, ["f"], [("the sum", "f(0.1)", 0.3)], lambda x: x + 0.2)


@pytest.mark.parametrize("observed", ["12", [1, 2], (1, 2, 3)])
def test_what_is_of_another_kind_or_size_is_a_mismatch(observed):
    instance(tuple, "the pair", (1, 2, 3), "a tuple")
    with pytest.raises(Mismatch, match=r"^the pair is .*, expected two numbers$"):
        instance(tuple, "the pair", observed, "two numbers", 2)


def test_a_value_of_another_kind_is_a_mismatch_whatever_its_size():
    with pytest.raises(Mismatch, match="^the answer is 9, expected a tuple$"):
        instance(tuple, "the answer", 9, "a tuple")


def test_two_values_that_differ_look_different_and_types_are_their_names():
    with pytest.raises(Mismatch, match=r"^it is 0\.10000000149011612, expected 0\.1$"):
        same("it", np.float32(0.1), np.float64(0.1))
    with pytest.raises(Mismatch, match="^it is int, expected float$"):
        same("it", int, float)


def test_the_depth_is_the_number_of_open_calls():
    assert stack_depth() == len(inspect.stack(0))


def test_the_line_of_an_error_is_one_of_the_cell_that_checks(capsys):
    earlier, here = {}, {"check": check}
    exec(compile("\n" * 99 + "def helper(x):\n    return x + []", "<ipython-1>", "exec"), earlier)
    here["helper"] = earlier["helper"]
    cell = "def mine(x):\n    return helper(x)\ncheck('90a', mine)"
    exec(compile(cell, "<ipython-2>", "exec"), here)
    assert "(line 2 of your cell)" in capsys.readouterr().out


def test_a_stub_of_another_cell_is_named_and_is_no_excuse_for_this_one(capsys):
    earlier, here = {}, {"check": check}
    stub = "def helper(x):\n    raise NotImplementedError('your turn')"
    exec(compile(stub, "<ipython-1>", "exec"), earlier)
    here["helper"] = earlier["helper"]
    cell = "def mine(x):\n    return helper(x)\ncheck('90a', mine)"
    exec(compile(cell, "<ipython-2>", "exec"), here)
    assert ": your code calls helper, which is not written yet. Hint: " in capsys.readouterr().out
    exec(compile(f"{stub}\ncheck('90a', helper)", "<ipython-3>", "exec"), here)
    assert capsys.readouterr().out == "○ 90a: your turn\n"
