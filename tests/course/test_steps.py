"""Reading literate steps, and what is said of malformed ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sample_course import SAMPLE, copied, exercise, step_of, written

from minigrad.course.folder import find_course
from minigrad.course.steps import CourseError, read_step

REAL = find_course(Path(__file__).parent)
HEAVY = {"matplotlib", "ipywidgets", "IPython", "graphviz", "pygraphviz"}


@pytest.mark.parametrize(
    "path",
    sorted([*(REAL.root / "steps").glob("*.py"), *(SAMPLE / "steps").glob("*.py")]),
    ids=lambda path: path.stem,
)
def test_cells_are_the_ones_jupytext_reads(path):
    cells = read_step(path).cells
    import jupytext  # takes seconds: for this test, not for whoever collects it

    known = jupytext.read(path, fmt="py:percent").cells
    for cell, other in zip(cells, known, strict=True):
        checked = "engine" in cell.tags  # its check is a comment in the file
        text = other.source.replace("\n# check(", "\ncheck(") if checked else other.source
        assert (cell.kind, cell.source) == (other.cell_type, text)
    assert [list(cell.tags) for cell in cells] == [cell.metadata.get("tags", []) for cell in known]


def test_the_first_cell_tells_title_goal_time_and_needs():
    step = read_step(SAMPLE / "steps" / "step90_first.py")
    assert (step.number, step.title) == (90, "A first step")
    assert (step.front("Time"), step.front("Needs")) == ("1 minute", "nothing")
    assert step.front("Goal") == "Show each kind of cell once | and a pipe."
    assert step.exercises == ("90a", "90b")


def test_a_goal_may_run_over_two_lines(tmp_path):
    step = step_of(
        tmp_path, "# %% [markdown]\n# # T\n# **Goal.** One\n# two.\n#\n# **Time.** 3 minutes"
    )
    assert [step.front(key) for key in ("Goal", "Time", "Needs")] == ["One two.", "3 minutes", ""]


@pytest.mark.parametrize("number", sorted(REAL.paths))
def test_every_step_states_goal_time_and_needs(number):
    step = REAL.step(number)
    assert step.title != step.name
    assert all(step.front(key) for key in ("Goal", "Time", "Needs"))
    assert step.cells[1].tags == ("growth",)


@pytest.mark.parametrize("path", sorted(REAL.paths.values()), ids=lambda path: path.stem)
def test_importing_a_step_prints_nothing_and_loads_nothing_heavy(path):
    code = (
        f"import sys; sys.path.insert(0, {str(REAL.root)!r}); import steps.{path.stem}; "
        f"heavy = {HEAVY!r} & set(sys.modules); assert not heavy, heavy"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


BAD = {
    "a solution without its end": (
        exercise("def f():", "    ### BEGIN SOLUTION", "    return 1", 'check("90a", f)'),
        3,
        "'### BEGIN SOLUTION' alone: '### BEGIN SOLUTION' and '### END SOLUTION' stand in pairs",
    ),
    "an end without its solution": (
        exercise("def f():", "    return 1", "    ### END SOLUTION", 'check("90a", f)'),
        4,
        "'### END SOLUTION' alone: ",
    ),
    "a solution in a solution": (
        exercise("### BEGIN SOLUTION", "### BEGIN SOLUTION", "### END SOLUTION", 'check("90a", 1)'),
        3,
        "'### BEGIN SOLUTION' alone: ",
    ),
    "a solution outside an exercise": (
        '# %% tags=["active-ipynb"]\n# ### BEGIN SOLUTION\n# x = 1\n# ### END SOLUTION',
        2,
        "outside an exercise",
    ),
    "an exercise without a solution": (
        exercise('check("90a", 1)'),
        2,
        "exercise 90a has no '### BEGIN SOLUTION'",
    ),
    "an exercise that is not checked": (
        exercise("### BEGIN SOLUTION", "a = 1", "### END SOLUTION"),
        2,
        'never calls check("90a"',
    ),
    "an exercise without an id": (
        '# %% tags=["active-ipynb", "exercise"]\n# ### BEGIN SOLUTION\n# a = 1\n# ### END SOLUTION',
        2,
        "needs its id among the tags",
    ),
    "an exercise of another step": (
        exercise("### BEGIN SOLUTION", "a = 1", "### END SOLUTION", 'check("7a", a)', id="7a"),
        2,
        "exercise 7a belongs to step 7",
    ),
    "an unknown tag": ('# %% tags=["exercice"]\nx = 1', 1, "unknown tag 'exercice'; known: "),
    "tags in single quotes": ("# %% tags=['growth']\nx = 1", 1, "a list in double quotes"),
    "a strange marker": ("# %% [raw]\nx = 1", 1, "cannot read the cell marker '# %% [raw]'"),
    "code that should be a comment": (
        '# %% tags=["active-ipynb"]\n# x = 1\nprint(x)',
        3,
        "'print(x)' must start with '# '",
    ),
    "code before the first cell": ("import os\n\n# %%\nx = 1", 1, "begin the file with a cell"),
    "a file that is not Python": ("# %%\nx = (1", 2, "not Python: '(' was never closed"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_step_is_refused_with_file_and_line(tmp_path, name):
    text, line, message = BAD[name]
    path = written(tmp_path, text)
    with pytest.raises(CourseError) as caught:
        read_step(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert f"step90_bad.py:{line}: " in str(caught.value)
    assert message in str(caught.value)


def test_an_exercise_id_used_twice_names_both_lines(tmp_path):
    one = exercise("### BEGIN SOLUTION", "a = 1", "### END SOLUTION", 'check("90a", a)')
    path = written(tmp_path, one, one)
    with pytest.raises(
        CourseError, match=r"step90_bad\.py:8: exercise 90a stands already in line 2"
    ):
        read_step(path)


def test_steps_are_selected_by_number_range_and_name(tmp_path):
    course = copied(tmp_path)

    def chosen(*words):
        return [step.name for step in course.select(words)]

    assert chosen() == ["start", "step90_first", "step91_second"]
    assert (
        chosen("90")
        == chosen("step90")
        == chosen("notebooks/step90_first.ipynb")
        == ["step90_first"]
    )
    assert chosen("start", "80-95") == ["start", "step90_first", "step91_second"]


@pytest.mark.parametrize("word", ["7", "1-4", "91-90", "step7", "four"])
def test_a_word_that_names_no_step_is_refused(tmp_path, word):
    with pytest.raises(CourseError, match="no step|names no step"):
        copied(tmp_path).select([word])


def test_two_files_of_one_number_are_refused(tmp_path):
    course = copied(tmp_path)
    (tmp_path / "steps" / "step90_again.py").write_text("")
    with pytest.raises(CourseError, match=r"step90_first\.py: step 90 is also step90_again\.py"):
        course.select()


def test_a_step_file_needs_two_digits_and_words(tmp_path):
    course = copied(tmp_path)
    (tmp_path / "steps" / "step9.py").write_text("")
    with pytest.raises(CourseError, match="the name of a step is stepNN_words"):
        course.select()


def test_the_course_is_found_from_inside_its_folders(tmp_path):
    course = copied(tmp_path)
    assert find_course(tmp_path / "steps") == course == find_course(tmp_path)
