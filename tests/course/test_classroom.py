"""The answers of a class: whose notebooks they are, and the table of what passes."""

from __future__ import annotations

import json
import shutil

import pytest
from sample_course import copied

from minigrad.course import execute
from minigrad.course.classroom import handed_in, table
from minigrad.course.cli import main
from minigrad.course.errors import CourseError


@pytest.fixture
def course(tmp_path, monkeypatch):
    made = copied(tmp_path / "course")
    monkeypatch.chdir(made.root)
    return made


def put(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def test_a_learner_is_a_folder_or_what_stands_before_the_step(course, tmp_path):
    steps, folder = course.select([]), tmp_path / "answers"
    put(
        folder / "anna" / "step90_first.ipynb",
        folder / "bo" / "week 1" / "step90_first (1).ipynb",
        folder / "bo" / ".ipynb_checkpoints" / "step91_second.ipynb",
        folder / "bo" / "step91_second.ipynb",
        folder / "cleo_77_step91_second.ipynb",
        folder / "anna" / "notes.ipynb",
    )
    assert {learner: sorted(found) for learner, found in handed_in(folder, steps).items()} == {
        "anna": ["step90_first"],
        "bo": ["step90_first", "step91_second"],
        "cleo_77": ["step91_second"],
    }


def test_a_renamed_notebook_still_says_its_step_and_an_empty_folder_is_a_learner(course, tmp_path):
    folder = tmp_path / "answers"
    put(folder / "anna" / "Step90_First final.ipynb")
    built = {"cells": [], "metadata": {"minigrad": {"step": "step90_first"}}}
    for path in (folder / "bo" / "mine.ipynb", folder / "cleo.ipynb"):
        put(path)
        path.write_text(json.dumps(built))
    (folder / "dora").mkdir()
    found = handed_in(folder, course.select([]))
    assert {learner: list(each) for learner, each in found.items()} == {
        "anna": ["step90_first"],
        "bo": ["step90_first"],
        "cleo": ["step90_first"],
        "dora": [],
    }


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ([], "no notebook of the course.*step90_first.ipynb"),
        (["step90_first.ipynb"], "whose is it"),
        (["bo/step90_first.ipynb", "bo/b/step90_first.ipynb"], "bo has handed in bo/.*, too"),
        (None, "there is no folder"),
    ],
)
def test_what_cannot_be_told_apart_is_said(course, tmp_path, paths, words):
    folder = tmp_path / "answers"
    if paths is not None:
        folder.mkdir()
        put(*(folder / p for p in paths))
    with pytest.raises(CourseError, match=words):
        handed_in(folder, course.select([]))


def test_the_table_counts_by_learner_and_by_exercise():
    said = {"anna": {"1a": "✓ 1a", "1b": "✓ 1b"}, "bo": {"1a": "✗ 1a: no"}}
    assert table(said, ["1a", "1b"])[1:] == [
        "anna  ✓   ✓   2 of 2",
        "bo    ✗   ·   0 of 2",
        "      1   1",
    ]


def test_one_command_checks_a_class(course, tmp_path, capsys):
    assert main(["build", "90"]) == 0
    folder = tmp_path / "answers"
    for learner, kind in (("anna", "solved/"), ("bo", "")):
        (folder / learner).mkdir(parents=True)
        shutil.copy(course.notebooks / f"{kind}step90_first.ipynb", folder / learner)
    capsys.readouterr()
    assert main(["check", "90", "--class", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["90a", "90b"]
    assert lines[1].split() == ["anna", "✓", "✓", "2", "of", "2"]
    assert lines[2].split() == ["bo", "○", "○", "0", "of", "2"]
    assert lines[3].split() == ["1", "1"]
    shutil.rmtree(folder / "bo")
    assert main(["check", "--class", str(folder)]) == 0
    assert main(["check", "--class", str(folder / "nobody")]) == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"cells": [], "metadata": []}', '{"cells": [{}], "metadata": {}}']
    + ["[" * 100_000]
    + [
        json.dumps(
            {"cells": [{"cell_type": "code", "metadata": {}, "source": "1"} | bad]}
            | {"metadata": {}}
        )
        for bad in ({"source": 7}, {"metadata": []}, {"metadata": {"tags": 7}})
    ],
)
def test_a_broken_notebook_is_said_and_stops_nobody(course, tmp_path, capsys, monkeypatch, text):
    monkeypatch.setattr(
        execute, "run_all", lambda given, *_, **__: [execute.Ran(n, None) for n in given]
    )
    folder = tmp_path / "answers"
    put(folder / "anna" / "step90_first.ipynb", folder / "bo" / "step90_first.ipynb")
    said = {"output_type": "stream", "name": "stdout", "text": "✓ 90a passed\n✓ 90b passed"}
    cell = {"cell_type": "code", "metadata": {}, "source": "", "outputs": [said]}
    (folder / "anna" / "step90_first.ipynb").write_text(
        json.dumps({"cells": [cell], "metadata": {}})
    )
    (folder / "bo" / "step90_first.ipynb").write_text(text)
    assert main(["check", "90", "--class", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["anna", "✓", "✓", "2", "of", "2"]
    assert lines[2].split() == ["bo", "·", "·", "0", "of", "2"]
    assert "bo/step90_first.ipynb: not a notebook" in lines[4]
    assert lines[4].endswith("ask for it again")
