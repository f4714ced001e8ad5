"""Questions on fresh graphs, when they are asked again, and where a learner is."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from minigrad.course import cli, launch, mine, progress
from minigrad.course import questions as recall
from minigrad.course.folder import find_course
from minigrad.course.steps import CourseError
from steps import step11_saved_values as step11
from steps import step18_adjustments as step18

KINDS = recall.kinds(20)


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_has_one_right_answer_and_no_two_choices_alike(kind):
    for seed in range(30):
        asked = recall.question(kind, seed)
        assert asked == recall.question(kind, seed)
        assert asked.is_right(asked.right)
        assert not asked.is_right("")
        assert not asked.is_right("none of them")
        assert len({*asked.choices.values()}) == len(asked.choices) != 1
        if asked.choices:
            assert sum(asked.is_right(letter) for letter in asked.choices) == 1


def test_every_step_has_a_kind_of_its_own_and_graphs_are_fresh():
    assert len(KINDS) == 20
    assert [len(recall.kinds(step)) for step in range(21)] == list(range(21))
    for kind in KINDS:
        assert len({str(recall.question(kind, seed)) for seed in range(60)}) > 3


@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        ("slope_of_a_chain", "y = 3 * ((x) + 5). What is the gradient of x at 2?", "3"),
        ("used_twice", "z = (x + x) * y, at x = 3 and y = 6. What is x.grad?", "12"),
        ("second_derivative", "What is the second derivative of x ** 4 at 1?", "12"),
    ],
)
def test_answers_are_those_of_calculus(kind, text, right):
    assert (text, right) in {
        (q.text, q.right) for q in (recall.question(kind, s) for s in range(99))
    }


@pytest.mark.parametrize("seed", range(30))
def test_what_is_saved_is_what_the_nodes_of_step_11_save(seed):
    asked = recall.question("what_is_saved", seed)
    form = re.search("node of (.*) save", asked.text)[1]
    x, y = (step11.Tensor(0.5, requires_grad=True) for _ in "xy")
    node = eval(form, {**vars(step11), "x": x, "y": y}).grad_fn
    assert asked.right == (", ".join(sorted(node.saved)) or "nothing")


@pytest.mark.parametrize("seed", range(30))
def test_what_is_pruned_is_what_the_passes_of_step_18_drop(seed):
    asked = recall.question("what_is_pruned", seed)
    middle, no_grad = re.search(r"b = (\w+)\(a\).*\{(\w)\}", asked.text).groups()

    def types(*no_grad):
        block = step18.Program().blocks[0]
        for name in "xwv":
            block.create_var(name, (2,), persistable=True)
        for type, *reads, out in ("mul", "x", "w", "a"), ("exp", "a", "b"), ("mul", "b", "v", "c"):
            block.append_op(type, *reads, out=out)
        loss = block.append_op("reduce_sum", "c", out="loss")
        start = len(block.ops)
        step18.append_backward(loss, no_grad_set=no_grad)
        return Counter(op.type for op in block.ops[start:])

    gone = sorted((types() - types(no_grad)).elements()) or ["none"]
    assert sorted(asked.right.replace(middle, "exp").split(", ")) == gone


def test_only_kinds_of_steps_that_are_done_are_asked_and_the_oldest_first():
    now = datetime(2026, 1, 10, tzinfo=UTC)
    cards = {
        name: {"due": (now + timedelta(days=days)).isoformat()}
        for name, days in {"who_runs_first": -1, "slope_of_a_chain": -3, "used_twice": 2}.items()
    }
    assert recall.kinds(0) == []
    new = ["how_far_to_move", "behind_the_links", "waits_for"]
    assert recall.due(cards, 6, now) == ["slope_of_a_chain", "who_runs_first", *new]


def answering(right):
    """A learner who knows everything, or nothing."""
    asked = iter(())

    def ask(_):
        return right

    return ask if right else (lambda _: next(asked, "?"))


def test_right_answers_come_back_later_than_wrong_ones(tmp_path, monkeypatch, capsys):
    pytest.importorskip("fsrs")
    right = {recall.question(kind, 5).text: recall.question(kind, 5).right for kind in KINDS}
    monkeypatch.setattr(recall, "Random", lambda _: Random(5))
    monkeypatch.setattr(recall, "question", remembered := Remembered(recall.question))
    wrong = "used_twice"
    recall.recall(
        tmp_path, 6, lambda _: "?" if remembered.kind == wrong else right[remembered.text]
    )
    cards = progress.read(tmp_path)["cards"]
    assert set(cards) == set(recall.kinds(6))
    assert cards[wrong]["due"] < cards["slope_of_a_chain"]["due"]
    assert "✗ it is" in capsys.readouterr().out


class Remembered:
    """`question`, which remembers what it made last."""

    def __init__(self, plain):
        self.plain = plain

    def __call__(self, kind):
        made = self.plain(kind)
        self.kind, self.text = kind, made.text
        return made


def test_the_test_of_twelve_questions_is_kept_beside_the_one_before(tmp_path, capsys):
    for _ in range(2):
        assert recall.examine(tmp_path, answering("")) == 0
    assert capsys.readouterr().out.count("0 of 12; ") == 1
    assert len(progress.read(tmp_path)["tests"]) == 2


def test_what_passes_is_noted_once_and_tells_where_a_learner_is(tmp_path):
    course = find_course()
    for id in ("1a", "1b", "1a"):
        progress.passed(id, tmp_path)
    assert progress.read(tmp_path)["passed"] == ["1a", "1b"]

    class Here:
        notebooks, paths, step = tmp_path, course.paths, staticmethod(course.step)

    assert progress.here(Here).number == 1
    progress.passed("1c", tmp_path)
    assert progress.here(Here).number == 2


def test_the_start_page_says_where_to_go_on(tmp_path, monkeypatch):
    course = find_course()
    monkeypatch.delenv(mine.OFF, raising=False)
    monkeypatch.setattr(progress, "find_course", lambda: course)
    monkeypatch.chdir(tmp_path)
    assert "begin with step 1" in repr(progress.Here())
    for id in course.step(1).exercises:
        progress.passed(id, tmp_path)
    said = progress.Here()._repr_markdown_()
    assert said.endswith("Go on with [2. Backward by hand](step02_manual_backward.ipynb).")
    for n in course.paths:
        for id in course.step(n).exercises:
            progress.passed(id, tmp_path)
    assert "the capstone" in repr(progress.Here())


def test_where_no_folder_can_be_read_the_start_page_begins_with_step_1(monkeypatch):
    def unreadable():
        raise OSError("Invalid argument: '/drive/steps'")

    monkeypatch.setattr(progress, "find_course", unreadable)
    assert "begin with step 1" in repr(progress.Here())


def test_a_file_that_is_none_of_ours_is_refused_and_stays(tmp_path):
    others = ({"cards": 3}, {"passed": [{}]}, {"cards": {"a_rule": 1}}, {"tests": ["none"]})
    for text in ("{", "[]", *map(json.dumps, others)):
        (tmp_path / progress.FILE).write_text(text)
        with pytest.raises(CourseError, match="begin anew"):
            progress.read(tmp_path)
        assert (tmp_path / progress.FILE).read_text() == text


def test_the_command_says_what_to_do_first(tmp_path, monkeypatch, capsys):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "start.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recall"]) == 2
    assert "do step 1 first" in capsys.readouterr().err


def test_the_course_opens_where_the_learner_is(monkeypatch, capsys, tmp_path):
    course = find_course()
    for id in (*course.step(1).exercises, "2a"):
        progress.passed(id, tmp_path)
    opened = []
    monkeypatch.setattr(launch, "_become", lambda command, _: opened.append(command) or 0)
    monkeypatch.setattr(launch, "_trust", lambda _: None)
    monkeypatch.setattr(launch, "need", lambda *_: None)
    (tmp_path / "start.ipynb").write_text("{}")
    monkeypatch.setattr(launch, "working_copy", lambda _: course)
    monkeypatch.setattr(type(course), "notebooks", tmp_path)
    assert launch.open_course([]) == 0
    assert "--LabApp.default_url=/lab/tree/notebooks/step02_manual_backward.ipynb" in opened[0]
    assert "4 exercises have passed; you are in step 2" in capsys.readouterr().out


def test_a_question_of_the_step_comes_with_a_pass_and_is_answered_by_the_engine(
    capsys, monkeypatch
):
    monkeypatch.setattr(recall, "_OPEN", [])
    recall.why(3)
    assert "nothing was asked" in capsys.readouterr().out
    recall.ask_why(21)  # no kind belongs to it
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(recall, "Random", lambda _: Random(3))
    recall.ask_why(2)
    assert "Say why, then see. y = 3 * ((x) + 5)" in capsys.readouterr().out
    recall.why(4)
    recall.why(3)
    assert capsys.readouterr().out == "✗ the engine says 3\n✓ right\n"
