"""The minigrad command: what it opens, lists and refuses."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_course import copied

from minigrad.course import folder, launch, notebook
from minigrad.course.cli import main
from minigrad.course.execute import environment


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The sample course, not built; we stand inside it."""
    made = copied(tmp_path)
    monkeypatch.chdir(tmp_path)
    return made


def test_without_a_command_jupyterlab_opens_the_start_page_with_the_options(course, monkeypatch):
    started, trusted = [], []
    monkeypatch.setattr(launch, "_become", lambda *given: started.append(given) or 0)
    monkeypatch.setattr(launch, "_trust", trusted.append)
    course.notebooks.mkdir()
    (course.notebooks / "start.ipynb").write_text("{}")
    assert main(["--no-browser", "--port=9999"]) == 0
    ((command, variables),) = started
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--LabApp.default_url=/lab/tree/notebooks/start.ipynb" in command
    assert f"--ServerApp.root_dir={course.root}" in command
    assert command[-2:] == ["--no-browser", "--port=9999"]
    assert variables["PYTHONPATH"].split(":")[0] == str(course.root)
    first = Path(variables["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0])
    settings = json.loads((first / "labconfig" / "page_config.json").read_text())
    assert settings["disabledExtensions"] == {"@jupyterlab/apputils-extension:announcements": True}
    assert trusted == [course]


def put(path, source):
    """A built notebook of one cell."""
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []}]
    facts = {"sources": notebook.fingerprint(cells)}
    path.write_text(notebook.dumps({"cells": cells, "metadata": {"minigrad": facts}}))


@pytest.fixture
def source_tree(course, monkeypatch):
    """The sample course, as the source tree of the package; JupyterLab is not started."""
    course.notebooks.mkdir()
    for name in ("start", "step90_first", "step91_second"):
        put(course.notebooks / f"{name}.ipynb", "as it was")
    monkeypatch.setattr(folder, "_SOURCE_TREE", course.root)
    monkeypatch.setattr(launch, "_become", lambda command, _: 0)
    monkeypatch.setattr(launch, "_trust", lambda _: None)
    return course


def test_a_source_tree_is_opened_as_a_copy_in_which_an_update_meets_nobodys_work(source_tree):
    assert main([]) == 0
    mine = source_tree.own.notebooks
    assert mine == source_tree.root / "my_course" / "notebooks"
    first, second = sorted(mine.glob("step*.ipynb"))
    work = notebook.read(first)
    cell = {"cell_type": "code", "source": "mine = 1", "metadata": {}, "outputs": []}
    work["cells"].append(cell)
    first.write_text(notebook.dumps(work))
    for path in (first, second):  # the tree gets newer notebooks
        put(source_tree.notebooks / path.name, "newer")
    (mine / "my_engine.py").write_text("# mine")
    assert main([]) == 0
    assert "mine = 1" in first.read_text() and "newer" not in first.read_text()
    assert "newer" in second.read_text()
    assert (mine / "my_engine.py").read_text() == "# mine"


def test_the_commands_of_a_learner_look_at_the_copy(source_tree, capsys):
    assert main([]) == 0
    for path in source_tree.own.notebooks.glob("step90*.ipynb"):
        path.unlink()
    assert main(["check", "90"]) == 2
    assert "is missing" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(launch.os, "geteuid"), reason="Windows knows no root")
def test_root_may_open_the_course_too(source_tree, monkeypatch):
    commands = []
    monkeypatch.setattr(launch, "_become", lambda command, _: commands.append(command) or 0)
    for user in (0, 1000):
        monkeypatch.setattr(launch.os, "geteuid", lambda user=user: user)
        assert main([]) == 0
    assert ["--allow-root" in command for command in commands] == [True, False]


def test_only_the_notebooks_of_the_course_are_trusted(course, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course.root / "data"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(course.root / "config"))
    assert main(["build", "start"]) == 0
    start = course.notebooks / "start.ipynb"
    foreign = course.notebooks / "foreign.ipynb"
    foreign.write_text(start.read_text().replace("ready", "evil"))
    code = (
        "import sys, nbformat; from nbformat.sign import NotebookNotary; "
        "print([NotebookNotary().check_signature(nbformat.read(p, 4)) for p in sys.argv[1:]])"
    )
    launch._trust(course)
    command = [sys.executable, "-c", code, str(start), str(foreign)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout == "[True, False]\n", ran.stderr


def test_notebooks_that_are_not_built_are_said(course, capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    assert (
        said == "minigrad: notebooks/start.ipynb is missing; make the notebooks: minigrad build\n"
    )


@pytest.fixture
def installed(course, tmp_path, monkeypatch):
    """As after installing a wheel: the sample course lies in the package; we stand elsewhere."""
    (course.notebooks / ".ipynb_checkpoints").mkdir(parents=True)
    (course.notebooks / "start.ipynb").write_text("{}")
    monkeypatch.setattr(folder, "_SHIPPED", course.root)
    monkeypatch.setattr(folder, "_SOURCE_TREE", tmp_path / "lib")
    elsewhere = tmp_path.parent / f"{tmp_path.name}_elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return elsewhere


def test_outside_a_course_an_installed_package_says_how_to_make_one(installed, capsys):
    assert main([]) == 2
    assert "no course here" in (said := capsys.readouterr().err)
    assert said.endswith("Make one: minigrad new FOLDER\n")


@pytest.mark.parametrize("name", ["mine", "."])
def test_a_new_folder_gets_the_course_and_nothing_hidden(installed, name, monkeypatch, capsys):
    assert main(["new", name]) == 0
    assert capsys.readouterr().out == f"the course is in {name}; open it: cd {name} && minigrad\n"
    assert sorted(path.name for path in (installed / name).rglob("*.ipynb")) == ["start.ipynb"]
    assert not (installed / name / "notebooks" / ".ipynb_checkpoints").exists()
    monkeypatch.chdir(installed / name)
    assert main(["steps"]) == 0


def test_notebooks_handed_out_alone_are_run_with_the_steps_of_the_package(installed, capsys):
    """Without steps/, in which the solutions stand."""
    (installed / "notebooks").mkdir()
    (installed / "notebooks" / "start.ipynb").write_text("{}")
    assert main(["steps"]) == 0
    assert "90  " in capsys.readouterr().out
    variables = environment(installed)
    assert variables["PYTHONPATH"].split(":")[:2] == [str(installed), str(folder.shipped())]


def test_a_folder_with_somebodys_work_is_left_alone(installed, capsys):
    (installed / "mine").mkdir()
    (installed / "mine" / "work.txt").write_text("x")
    assert main(["new", "mine"]) == 2
    assert "mine is not empty" in capsys.readouterr().err
    assert [path.name for path in (installed / "mine").iterdir()] == ["work.txt"]


def test_a_missing_jupyterlab_is_said_with_the_repair(course, monkeypatch, capsys):
    course.notebooks.mkdir()
    (course.notebooks / "start.ipynb").write_text("{}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main([]) == 2
    assert (
        "opening the course needs jupyterlab: uv run --extra course …, or beside an installed minigrad "
        "pip install 'minigrad[course]'" in capsys.readouterr().err
    )


def test_an_unknown_command_is_refused(course, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["bulid"])
    assert caught.value.code == 2
    assert "no command 'bulid'; see minigrad --help" in capsys.readouterr().err


def test_help_names_every_command(course, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(
        name in said for name in ("run", "check", "build", "new", "steps", "diff", "--no-browser")
    )


def test_steps_lists_title_time_exercises_and_goal(course, capsys):
    assert main(["steps"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "90  A first step  [1 minute; exercises 90a, 90b]",
        "    Show each kind of cell once | and a pipe.",
        "91  A second step  [1 minute; exercises -]",
        "    Grow.",
    ]


@pytest.mark.parametrize("words", [["90"], ["90", "91"]])
def test_diff_shows_growth_with_patches(course, capsys, words):
    assert main(["diff", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "step90_first → step91_second",
        "new      Box.empty, Lid, LIMIT",
        "changed  Box.size",
        "kept     Box.__init__",
        "gone     -",
        "",
        "Box.size",
        " def size(self):",
        "-    return self.data.size",
        "+    return int(self.data.size)",
    ]


def test_diff_is_coloured_on_a_terminal_and_nowhere_else(course, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["diff", "90"])
    assert "\x1b[32m+    return int(self.data.size)\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["diff", "90"])
    assert "\x1b" not in capsys.readouterr().out


def test_a_step_that_does_not_exist_is_said_with_those_that_do(course, capsys):
    assert main(["diff", "1"]) == 2
    assert capsys.readouterr().err == "minigrad: no step 1; the course has 90-91\n"


def test_a_reader_that_has_seen_enough_is_no_error(course):
    command = f"{sys.executable} -m minigrad.course.cli steps | true"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in ran.stderr
