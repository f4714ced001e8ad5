"""From steps to notebooks: what is in them, that they are the same twice, that work is kept."""

from __future__ import annotations

import asyncio
import json
import re
import socket

import pytest
from sample_course import copied, exercise, written

from minigrad.course import build, execute, notebook
from minigrad.course.cli import main
from minigrad.course.steps import CourseError, read_step

WIDGET = "application/vnd.jupyter.widget-view+json"
pytestmark = pytest.mark.xdist_group("a built course")  # which is built once


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sample course, its notebooks built once."""
    course = copied(tmp_path_factory.mktemp("built"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.root)
        assert main(["build"]) == 0
    return course


@pytest.fixture
def course(built, tmp_path, monkeypatch):
    """A copy of the built sample where a test may change something; we stand inside it."""
    import shutil

    shutil.copytree(built.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    return type(built)(tmp_path / "course")


def cells(course, name):
    return notebook.read(course.notebooks / f"{name}.ipynb")["cells"]


def test_the_files_are_valid_notebooks_in_the_bytes_jupyter_writes(built):
    import nbformat  # takes seconds: for this test, not for whoever collects it

    paths = sorted(built.notebooks.rglob("*.ipynb"))
    assert [path.relative_to(built.notebooks).as_posix() for path in paths] == [
        "solved/step90_first.ipynb",
        "start.ipynb",
        "step90_first.ipynb",
        "step91_second.ipynb",
    ]
    for path in paths:
        read = nbformat.read(path, as_version=4)
        nbformat.validate(read)
        assert nbformat.writes(read) + "\n" == path.read_text(encoding="utf-8")


def test_a_second_build_gives_the_same_bytes_whatever_the_hash_seed(built, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    step = built.step(90)
    (ran,) = execute.run_all([build.make(built, step, solved=False)], built.root)
    path = built.notebooks / "step90_first.ipynb"
    assert notebook.dumps(ran.notebook) == path.read_text(encoding="utf-8")


def test_a_kernel_whose_port_is_taken_is_started_again(built, monkeypatch):
    from jupyter_client.connect import LocalPortCache

    finds = LocalPortCache.find_available_port
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = [other.getsockname()[1]]

        def find_available_port(cache, ip):
            return taken.pop() if taken else finds(cache, ip)

        monkeypatch.setattr(LocalPortCache, "find_available_port", find_available_port)
        written_notebook = build.make(built, built.step(90), solved=False)
        (ran,) = execute.run_all([written_notebook], built.root)
    assert not taken
    assert ran.notebook["cells"][-1]["execution_count"]


def test_ids_are_fixed_and_carried_cells_are_folded(built):
    made = build.make(built, built.step(91), solved=False)
    assert [cell["id"] for cell in made["cells"]] == [f"step91-{n:02d}" for n in range(6)]
    path = built.root / "steps" / "step92_third.py"
    path.write_text(
        '# %% tags=["carried"]\nclass Lid:\n    def close(self):\n        return "closed"\n'
    )
    third = build.make(built, type(built)(built.root).step(92), solved=False)
    path.unlink()
    assert third["cells"][0]["metadata"] == {
        "tags": ["carried"],
        "jupyter": {"source_hidden": True},
    }


@pytest.mark.parametrize("tags", ["interactive", "folded"])
def test_the_machinery_of_a_widget_and_what_the_text_shows_are_folded(built, tags):
    path = built.root / "steps" / "step92_third.py"
    path.write_text(f'# %% tags=["active-ipynb", "{tags}"]\n# print(1)\n\n# %%\nLID = 1\n')
    third = build.make(built, type(built)(built.root).step(92), solved=False)
    path.unlink()
    assert third["cells"][0]["metadata"]["jupyter"] == {"source_hidden": True}
    assert "jupyter" not in third["cells"][1]["metadata"]


def test_what_is_to_be_predicted_is_not_shown_in_the_learners_notebook(course):
    path = course.root / "steps" / "step90_first.py"
    text = path.read_text()
    asked = "# %% [markdown]\n# A guess.\n#\n# **Predict, then run.** What is it?\n\n# %%\nprint(10 + 1)\n\n# %%\nprint(20 + 2)\n"
    path.write_text(text + "\n" + asked)
    assert main(["build", "90"]) == 0
    assert main(["build", "90", "--check"]) == 0
    said = [
        ["".join(cell["outputs"][0]["text"]) if cell["outputs"] else "" for cell in found[-2:]]
        for found in (cells(course, "step90_first"), cells(course, "solved/step90_first"))
    ]
    assert said == [["", "22\n"], ["11\n", "22\n"]]


def test_learner_and_solved_notebook_differ_in_the_exercises_only(built):
    pairs = zip(cells(built, "step90_first"), cells(built, "solved/step90_first"), strict=True)
    differing = [a["metadata"]["tags"][-1] for a, b in pairs if a != b]
    assert differing == ["ex-90a", "ex-90b"]
    assert "### BEGIN SOLUTION" in json.dumps(cells(built, "solved/step90_first"))
    assert "SOLUTION" not in json.dumps(cells(built, "step90_first"))


def test_outputs_hold_no_widget_no_address_and_no_path(built):
    text = "".join(path.read_text() for path in built.notebooks.rglob("*.ipynb"))
    assert WIDGET not in text
    assert "<object object at 0x…>" in text
    assert not re.search(r"0x[0-9a-f]{6}", text)
    assert str(built.root) not in text
    assert "first frame" in text


def test_paths_in_texts_are_cut_to_what_is_below_the_project_or_the_packages(tmp_path):
    text = f'{tmp_path}/steps/a.py "/usr/lib/site-packages/numpy/x.py" /tmp/ipykernel_1/2.py'
    assert execute._clean(text, tmp_path) == 'steps/a.py "site-packages/numpy/x.py" cell'


def test_the_growth_table_and_the_step_table_are_filled_in(built):
    assert "| changed | `Box.size` |" in "".join(cells(built, "step91_second")[1]["source"])
    assert "nothing is carried over" in "".join(cells(built, "step90_first")[1]["source"])
    start = "".join(cells(built, "start")[0]["source"])
    assert "[90. A first step](step90_first.ipynb)" in start
    assert "once \\| and a pipe" in start


def test_a_changed_notebook_is_kept_and_the_fresh_one_put_beside_it(course, capsys):
    path = course.notebooks / "step91_second.ipynb"
    fresh = path.read_text()
    path.write_text(fresh.replace("print(Box([]).empty())", "print('mine')"))
    mine = path.read_text()
    assert main(["build", "91"]) == 0
    assert path.read_text() == mine
    assert (course.notebooks / "step91_second.fresh.ipynb").read_text() == fresh
    said = capsys.readouterr().out
    assert "notebooks/step91_second.ipynb holds your work and is kept" in said
    assert "step91_second.fresh.ipynb" in said


def test_outputs_and_empty_cells_are_not_a_learners_work(course):
    path = course.notebooks / "step91_second.ipynb"
    fresh = path.read_text()
    changed = json.loads(fresh)
    changed["cells"][-1]["outputs"] = []
    changed["cells"].append(
        {
            "cell_type": "code",
            "id": "x",
            "metadata": {},
            "source": [],
            "outputs": [],
            "execution_count": None,
        }
    )
    path.write_text(json.dumps(changed))
    assert main(["build", "91"]) == 0
    assert path.read_text() == fresh


def test_a_foreign_or_broken_notebook_is_never_overwritten(course, capsys):
    path = course.notebooks / "step91_second.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert main(["build", "91"]) == 0
    assert json.loads(path.read_text())["cells"] == []
    path.write_text("not JSON")
    assert main(["build", "91"]) == 1
    assert "not a notebook (JSONDecodeError" in capsys.readouterr().err
    assert path.read_text() == "not JSON"


def test_a_check_says_what_differs_and_writes_nothing(course, capsys):
    path = course.notebooks / "step91_second.ipynb"
    path.write_text(path.read_text().replace('"True\\n"', '"False\\n"'))
    before = path.read_text()
    assert main(["build", "--check", "91"]) == 1
    said = capsys.readouterr().out
    assert "notebooks/step91_second.ipynb: cell 5: its outputs differ: 'False', now 'True'" in said
    assert "minigrad build 91" in said
    assert path.read_text() == before
    path.unlink()
    assert main(["build", "--check", "91"]) == 1
    assert "it is missing" in capsys.readouterr().out


CHECKED = [
    "from minigrad.course import check, checker, same",
    '@checker("95a", hint="")',
    "def two(f): same('f()', f(), 2)",
    "def anything(f): pass",
    "def f():",
    "    ### BEGIN SOLUTION",
    "    return 1",
    "    ### END SOLUTION",
    'check("95a", f)',
]
LENIENT = [*CHECKED[:1], *CHECKED[2:3], *CHECKED[1:2], *CHECKED[3:]]
BAD = {
    "a step that does not run": (
        '# %%\nx = 1\n\n# %% tags=["active-ipynb"]\n# print(x)\n# 1 / 0',
        r"95_bad\.py:5: the learner's notebook, cell 2: ZeroDivisionError: division by zero",
    ),
    "a step that warns": (
        "# %%\nimport warnings\n\n# %% tags=[\"active-ipynb\"]\n# warnings.warn('old')",
        r"95_bad\.py:5: the learner's notebook, cell 2, writes to stderr",
    ),
    "a stub that passes": (
        exercise(*LENIENT, id="95a"),
        r"95_bad\.py:2: the stub passes its check: .*✓ 95a",
    ),
    "a solution that fails": (
        exercise(*CHECKED, id="95a"),
        r"95_bad\.py:2: the solution fails its check: .*✗ 95a.*: f\(\) is 1, expected 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_step_that_must_not_be_published_is_named_with_its_line(course, capsys, name):
    text, said = BAD[name]
    written(course.root / "steps", text, name="step95_bad.py")
    assert main(["build", "95"]) == 1
    assert re.search(said, capsys.readouterr().err)
    assert not (course.notebooks / "step95_bad.ipynb").exists() or "solution" in name


def test_a_kernel_that_dies_is_a_failure_of_its_cell(course, capsys):
    path = course.notebooks / "step91_second.ipynb"
    path.write_text(path.read_text().replace("print(Box([]).empty())", "import os; os._exit(3)"))
    assert main(["run", "91"]) == 1
    said = capsys.readouterr().out
    assert "notebooks/step91_second.ipynb, cell 6: DeadKernelError: Kernel died" in said


def test_run_names_file_cell_and_traceback_and_fails(course, capsys):
    path = course.notebooks / "step91_second.ipynb"
    path.write_text(path.read_text().replace("print(Box([]).empty())", "print(Box([]).emtpy())"))
    before = path.read_text()
    assert main(["run"]) == 1
    said = capsys.readouterr().out
    assert (
        "notebooks/step91_second.ipynb, cell 6: AttributeError: 'Box' object has no attribute"
        in said
    )
    assert "Traceback" in said
    assert "2 of 3 notebooks run" in said
    assert path.read_text() == before


def test_check_lists_each_exercise_of_my_notebooks(course, capsys):
    path = course.notebooks / "step90_first.ipynb"
    path.write_text(path.read_text().replace("answer = ...", "answer = 90"))
    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert "○ 90a: your turn" in said
    assert "✓ 90b passed" in said
    assert "1 of 2 exercises pass" in said


def test_each_notebook_is_told_when_it_has_run_not_when_all_have():
    ended = []

    async def run(number):
        await asyncio.sleep(0.05)
        ended.append(number)
        return number

    results = execute.side_by_side(run, range(9))
    assert next(results) == 0
    assert len(ended) <= 2 * execute.KERNELS
    assert [*results] == [*range(1, 9)]


def test_check_goes_on_after_a_cell_that_fails(course, capsys):
    path = course.notebooks / "step90_first.ipynb"
    text = path.read_text().replace("answer = ...", "answer = 90")
    path.write_text(text.replace("print(Box([1, 2, 3]).size())", "1 / 0"))
    assert main(["check", "90"]) == 1
    said = capsys.readouterr().out
    assert "✓ 90b passed" in said
    assert "cell 6: ZeroDivisionError" in said


def test_all_green_is_success(course):
    solved = (course.notebooks / "solved" / "step90_first.ipynb").read_text()
    (course.notebooks / "step90_first.ipynb").write_text(solved)
    assert main(["check"]) == 0


def test_a_checked_notebook_that_is_missing_says_how_to_make_it(course, capsys):
    (course.notebooks / "step90_first.ipynb").unlink()
    assert main(["run", "90"]) == 2
    assert (
        "notebooks/step90_first.ipynb is missing: minigrad build step90_first"
        in capsys.readouterr().err
    )


def test_a_course_error_in_a_wrongly_carried_cell_stops_the_build(course, capsys):
    path = course.root / "steps" / "step91_second.py"
    path.write_text(path.read_text().replace("# %%\nclass Lid", '# %% tags=["carried"]\nclass Lid'))
    assert main(["build", "91"]) == 2
    assert "steps/step91_second.py:" in capsys.readouterr().err
    with pytest.raises(CourseError):
        build.make(course, course.step(91), solved=False)


SOURCE = """# %% [markdown]
# # Step 1. One
#
# **Goal.** g
#
# **Time.** 1 minute
#
# **Needs.** nothing

# %% tags=["active-ipynb"]
# x = 1
# assert x == 1
# for each in (1, 2):
#     assert each
#     assert x
# print(x)

# %% tags=["active-ipynb"]
# # only a test
# assert x == 1

# %%
def f(x):
    assert x

# %% tags=["active-ipynb", "exercise", "ex-1a"]
# ### BEGIN SOLUTION
# y = 1
# assert y
# ### END SOLUTION
# check("1a", y)
"""


def test_asserts_of_ours_are_for_the_solved_notebook(tmp_path):
    path = tmp_path / "step01_one.py"
    path.write_text(SOURCE)
    step = read_step(path)
    assert build.page(step, solved=True) is step
    _, printed, kept, exercise = build.page(step, solved=False).cells
    assert printed.source == "x = 1\nprint(x)"
    assert "assert x" in kept.source
    assert exercise == step.cells[-1]
