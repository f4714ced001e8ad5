"""The answers of a class: whose notebooks they are, and the table of what passes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from sample_course import copied

from minigrad.course import build, execute, isolated, notebook
from minigrad.course.classroom import handed_in, print_tests, printable, table
from minigrad.course.cli import main
from minigrad.course.isolated import Outcome
from minigrad.course.steps import CourseError


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
    answers, notes = handed_in(folder, steps)
    assert notes == [
        "anna/notes.ipynb: not checked: neither its name nor its text says which step it is"
    ]
    assert {learner: sorted(found) for learner, found in answers.items()} == {
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
    put(folder / "alex_step90_first.ipynb")
    found, _ = handed_in(folder, course.select([]))
    assert list(found) == ["alex", "anna", "bo", "cleo", "dora"]  # folders or files, by name
    assert {learner: list(each) for learner, each in found.items()} == {
        "alex": ["step90_first"],
        "anna": ["step90_first"],
        "bo": ["step90_first"],
        "cleo": ["step90_first"],
        "dora": [],
    }


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ([], "no notebook of the course.*step90_first.ipynb"),
        (["step90_first.ipynb"], "(?s)no notebook of the course.*whose is it"),
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


def test_what_is_not_taken_is_said_and_stops_nobody(course, tmp_path):
    folder = tmp_path / "answers"
    put(
        folder / "bo" / "step90_first.ipynb",
        folder / "bo" / "b" / "step90_first (1).ipynb",
        folder / "cleo" / "step90_first.IPYNB",
        folder / "__MACOSX" / "bo" / "step90_first.ipynb",
        folder / "step90_first.ipynb",
        folder / "gabi_step90_first.ipynb.json",
        folder / "ida_homework.ipynb",
        folder / "ida_step91_second.ipynb",
    )
    newer = folder / "bo" / "step90_first.ipynb"
    os.utime(newer, (2e9, 2e9))
    answers, notes = handed_in(folder, [course.step(90)], course.select([]))
    assert {learner: sorted(found) for learner, found in answers.items()} == {
        "bo": ["step90_first"],
        "cleo": ["step90_first"],
    }
    assert answers["bo"]["step90_first"] == newer
    assert [note.split(": ")[0] for note in notes] == [
        "bo/b/step90_first (1).ipynb",
        "gabi_step90_first.ipynb.json",
        "ida_homework.ipynb",
        "step90_first.ipynb",
    ]


def test_the_table_counts_by_learner_and_by_exercise():
    said = {"anna": {"1a": "✓ 1a", "1b": "✓ 1b"}, "bo": {"1a": "✗ 1a: no"}}
    assert table(said, ["1a", "1b"])[1:] == [
        "anna  ✓   ✓   2 of 2",
        "bo    ✗   ·   0 of 2",
        "      1   1",
    ]


def test_one_command_checks_a_class(course, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "answers"
    for learner, solved in (("anna", True), ("bo", False)):
        page = notebook.dumps(build.make(course, course.step(90), solved=solved))
        put(folder / learner / "step90_first.ipynb")
        (folder / learner / "step90_first.ipynb").write_text(page)
    assert main(["check", "90", "--class", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["90a", "90b"]
    assert lines[1].split() == ["anna", "✓", "✓", "2", "of", "2"]
    assert lines[2].split() == ["bo", "○", "○", "0", "of", "2"]
    assert lines[3].split() == ["1", "1"]
    shutil.rmtree(folder / "bo")
    passed = Outcome({"90a": "✓ 90a", "90b": "✓ 90b"}, None)
    monkeypatch.setattr(isolated, "run_all", lambda given, *_, **__: ([passed], []))
    assert main(["check", "--class", str(folder)]) == 0
    assert main(["check", "--class", str(folder / "nobody")]) == 2


def test_the_tests_of_a_class_stand_below_its_table(tmp_path, capsys):
    before, after = ({"day": "2026-01-01", "right": right, "of": 12} for right in (5, 11))
    for place, tests in (("anna/", [before, after]), ("bo_", [before]), ("cleo/", [{"of": 12}])):
        path = tmp_path / f"{place}my_progress.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"tests": tests}))
    unread = print_tests(tmp_path, ["anna", "bo", "cleo", "dora"])
    anna = "  anna, twelve questions: 5 of 12, then 11 of 12\n"
    assert capsys.readouterr().out == anna + "  bo, twelve questions: 5 of 12\n"
    assert unread == ["cleo, my_progress.json, 'right'"]


def test_a_test_belongs_to_one_learner_and_may_hold_any_number(tmp_path, capsys):
    for name, right in (("annabel_", 11), ("bo [A1] ", 7), ("cleo.", float("inf"))):
        tests = [{"right": right, "of": 12}]
        (tmp_path / f"{name}my_progress.json").write_text(json.dumps({"tests": tests}))
    unread = print_tests(tmp_path, ["anna", "annabel", "bo [A1]", "cleo"])
    assert capsys.readouterr().out.splitlines() == [
        "  annabel, twelve questions: 11 of 12",
        "  bo [A1], twelve questions: 7 of 12",
    ]
    assert len(unread) == 1 and unread[0].startswith("cleo, ")


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
        isolated,
        "run_all",
        lambda given, *_, **__: ([Outcome(execute.verdicts(n), None) for n in given], []),
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


PASSES = "print('✓ 90a passed')\nprint('✓ 90b passed')"


def hand_in(folder, *cells, encoding="utf-8"):
    """One notebook of these cells, of the learner that the folder is named after."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    made = [{**code, "id": f"c{number}", "source": cell} for number, cell in enumerate(cells)]
    text = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    put(folder / "step90_first.ipynb")
    (folder / "step90_first.ipynb").write_text(json.dumps(text), encoding=encoding)


def check_class(folder):
    """Marks by learner, and the notes below the table."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["check", "90", "--class", str(folder)])
    lines = printed.getvalue().splitlines()
    end = next(number for number, line in enumerate(lines[1:], 1) if " of " not in line)
    return {line.split()[0]: line.split()[1:3] for line in lines[1:end]}, lines[end + 1 :]


def running(word):
    """The processes whose command line has a word in it."""
    return [
        int(entry.parent.name)
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if word in entry.read_bytes().decode(errors="replace")
    ]


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc here")


SLEEPS = "986.543"


once = pytest.mark.xdist_group("a class")  # its notebooks are executed once


@pytest.fixture(scope="module")
def examined(tmp_path_factory):
    """A class in which many do what they should not: marks, notes, and what was and is in the files."""
    root = tmp_path_factory.mktemp("class")
    course, folder = copied(root / "course"), root / "answers"
    step = course.root / "steps" / "step90_first.py"
    hand_in(folder / "zoe", "from minigrad.course import check\n" + PASSES, encoding="utf-8-sig")
    handed = folder / "zoe" / "step90_first.ipynb"
    hand_in(
        folder / "a_vandal",
        "import minigrad.course.steps as m, pathlib\npathlib.Path(m.__file__).write_text('broken(')",
    )
    hand_in(
        folder / "outside",
        f"import pathlib\npathlib.Path({str(step)!r}).write_text('')",
        f"pathlib.Path({str(handed)!r}).unlink()",
    )
    hand_in(
        folder / "wrecker",  # a folder for a notebook, a file for a learner's folder
        f"import os, pathlib, shutil\nos.remove({str(folder / 'yara' / handed.name)!r})",
        f"os.mkdir({str(folder / 'yara' / handed.name)!r})",
        f"shutil.rmtree({str(folder / 'xavi')!r})\npathlib.Path({str(folder / 'xavi')!r}).write_text('')",
        f"pathlib.Path({str(step.parent / 'new.py')!r}).write_text('')",
        f"os.mkdir({str(step.parent / '__pycache__')!r})",
        f"pathlib.Path({str(step.parent / '__pycache__' / 'x.pyc')!r}).write_text('')",
        "print('✓ 91a passed')",
    )
    for name in ("xavi", "yara"):
        hand_in(folder / name, "import time\ntime.sleep(3)\n" + PASSES)
    hand_in(
        folder / "escaped",  # with an environment of its own
        f"import subprocess\nlone = dict(env={{'PATH': '/usr/bin:/bin'}}, start_new_session=True)\n"
        f"subprocess.Popen(['sleep', '{SLEEPS}'], **lone)\n"
        f"subprocess.Popen('sleep {SLEEPS} & sleep {SLEEPS} &', shell=True, **lone)",
        PASSES,
    )
    start = f"subprocess.Popen(['sleep', '{SLEEPS}'], start_new_session=True)"
    hand_in(
        folder / "daemon",
        f"import subprocess\n{start}\nsubprocess.Popen('sleep {SLEEPS} & sleep {SLEEPS} &', shell=True)",
        PASSES,
    )
    hand_in(
        folder / "many", f"import subprocess, time\nfor _ in range(80): {start}\ntime.sleep(99)"
    )
    hand_in(folder / "loud", "while True: print('y' * 100_000)")
    hand_in(folder / "\x1b[31mred", "raise ValueError('\\x1b[2J\\nanna  ✓   ✓   2 of 2')")
    hand_in(folder / "killer", "import os\nos.kill(os.getppid(), 9)")
    before = step.read_text(), handed.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.root)
        marks, notes = check_class(folder)
    return marks, notes, before, (step.read_text(), handed.read_bytes())


@once
def test_who_does_nothing_wrong_passes_whatever_the_others_do(examined):
    marks, notes, *_ = examined
    assert marks["zoe"] == ["✓", "✓"]  # from Windows, with a mark at the beginning
    assert marks["a_vandal"] == ["·", "·"]  # who changed a copy of the package
    assert not any("a_vandal" in note or "zoe," in note for note in notes)


@once
def test_what_a_notebook_changes_outside_is_put_back_and_said(examined):
    _, notes, before, after = examined
    assert after == before
    put_back = [note.split()[0] for note in notes if note.endswith("and is put back")]
    assert sorted(Path(path).parent.name for path in put_back) == ["steps", "xavi", "yara", "zoe"]
    (appeared,) = (note for note in notes if "appeared" in note)
    assert "new.py" in appeared


@once
@needs_proc
def test_a_notebook_leaves_no_process_behind_and_may_start_some_but_not_many(examined):
    marks, notes, *_ = examined
    assert (marks["daemon"], marks["many"]) == (["✓", "✓"], ["·", "·"])
    (note,) = (note for note in notes if "many," in note)
    assert re.fullmatch(r"  many, step90_first, stopped with \d+ processes; 64 are allowed", note)
    assert not running(SLEEPS)


@once
def test_what_is_printed_has_a_limit_and_does_nothing_to_a_terminal(examined):
    marks, notes, *_ = examined
    assert {"loud", "␛[31mred"} <= set(marks)
    assert any("loud" in n and "it printed more than 20,000,000 characters" in n for n in notes)
    assert any(n.endswith("ValueError: ␛[2J anna ✓ ✓ 2 of 2") for n in notes)
    assert not any("\x1b" in note for note in notes)


@once
def test_a_notebook_that_ends_its_own_examiner_is_said(examined):
    marks, notes, *_ = examined
    assert marks["killer"] == ["·", "·"]
    assert "  killer, step90_first, its examiner ended before its time (code -9)" in notes


def test_time_is_limited_by_notebook_and_not_by_cell(course, tmp_path, monkeypatch):
    monkeypatch.setattr(isolated, "SECONDS", 8.0)
    cells = ["print('✓ 90a passed')", *["import time; time.sleep(5)"] * 20]
    hand_in(tmp_path / "answers" / "slow", *cells)
    begun = time.monotonic()
    marks, notes = check_class(tmp_path / "answers")
    assert marks["slow"] == ["✓", "·"]  # what passed before is counted
    (note,) = notes
    assert re.fullmatch(r"  slow, step90_first, cell \d: .*Error: stopped after 8 seconds", note)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    "written",
    ["", "[]", "{", "[" * 100_000, '{"verdicts": 1, "failure": null}', '{"verdicts": {"1a": 2}}'],
)
def test_a_result_that_is_no_result_counts_as_none(tmp_path, written):
    path = tmp_path / "result.json"
    path.write_text(written)
    assert isolated._result(path, None) == Outcome({}, "its process ended without a result")
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert not isolated._result(path, None).verdicts
    path.unlink()
    os.mkfifo(path)
    assert not isolated._result(path, "stopped").verdicts


def test_text_of_strangers_stays_on_one_line_without_signs_that_steer_a_terminal():
    assert printable("a\x1b[2Jb\r\nc\u202ed\x07") == "a␛[2Jb c⟨202E⟩d␇"
    assert len(printable("x" * 10_000)) == 600
