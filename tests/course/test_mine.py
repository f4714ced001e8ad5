"""The learner's engine: kept when it passes, used where the course's function is the one asked for."""

import linecache
import textwrap
import types

import numpy as np
import pytest

from minigrad.course import mine
from minigrad.course.folder import find_course
from minigrad.course.mine import FILE, keep, use_mine
from minigrad.course.solution import find_solution

RIGHT = """
def accumulate(x, gx):
    if x.grad is None:
        x.grad = gx
    else:
        x.grad = x.grad + gx


check("5e", accumulate, Variable)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, and nobody who switched the learner's engine off."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(mine.OFF, raising=False)
    return tmp_path


def cell(source, name="/tmp/ipykernel_1/2.py"):
    """The code of a cell of a notebook."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec")


def step(name):
    module = types.ModuleType(name)
    path = find_course().steps / f"{name}.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return module


def test_the_functions_of_a_cell_are_kept_without_its_check(folder):
    keep("5e", cell(RIGHT))
    text = (folder / FILE).read_text(encoding="utf-8")
    assert "# %% 5e\ndef accumulate" in text
    assert "check" not in text.partition("# %% 5e")[2]
    compile(text, FILE, "exec")


def test_parts_stand_in_the_order_of_the_steps_and_a_later_one_takes_the_place_of_its_own(folder):
    keep("10e", cell("def walk(edge, grad):\n    pass\n"))
    keep("5e", cell("def accumulate(x, gx):\n    pass\n"))
    keep("5e", cell(RIGHT))
    text = (folder / FILE).read_text(encoding="utf-8")
    assert text.index("# %% 5e") < text.index("# %% 10e")
    assert text.count("def accumulate") == 1
    assert "x.grad + gx" in text


def test_later_steps_go_on_with_it_and_say_so(capsys):
    keep("5e", cell(RIGHT))
    later = step("step09_arrays")
    before = later.by_generation
    use_mine(later)
    assert capsys.readouterr().out == "yours: accumulate (5e)\n"
    assert later.accumulate.__code__.co_filename == "my_engine.py, 5e"
    assert later.by_generation is before
    a, b = (later.Variable(np.array([[1.0, 2.0]])) for _ in "ab")
    (a * b + a).sum().backward()
    assert a.grad.tolist() == [[2.0, 3.0]]


def test_a_program_with_loops_is_differentiated_by_the_parts_of_four_steps(capsys):
    ids = ("13e", "15e", "17e", "18e")
    for id in ids:
        keep(id, cell(find_solution(id).source, f"/tmp/ipykernel_1/{id}.py"))
    later = step("step19_sub_blocks")
    use_mine(later)
    parts = ("build_grad_op", "add_up", "append_backward_ops", "remove_no_grad_branch")
    said = ", ".join(f"{name} ({id})" for name, id in zip(parts, ids, strict=True))
    assert capsys.readouterr().out == f"yours: {said}\n"


def test_a_function_that_has_grown_since_stays(capsys):
    keep("10e", cell("def walk(edge, grad):\n    pass\n"))
    later = step("step11_saved_values")
    use_mine(later)
    assert capsys.readouterr().out == "the engine here is ours so far\n"
    assert later.walk.__code__.co_filename != "my_engine.py, 10e"


def test_code_outside_of_notebooks_and_runs_for_others_keep_nothing(monkeypatch, capsys):
    assert mine.is_learners(cell(RIGHT))
    assert not mine.is_learners(cell(RIGHT, "/tmp/script.py"))
    keep("5e", cell(RIGHT))
    monkeypatch.setenv(mine.OFF, "1")
    assert not mine.is_learners(cell(RIGHT))
    use_mine(types.ModuleType("empty"))
    assert capsys.readouterr().out == "the engine here is ours so far\n"


def test_a_notebook_runs_on_what_is_replaced_in_it(capsys):
    keep("5e", cell(RIGHT))
    namespace = vars(step("step06_order"))
    exec("from minigrad.course import use_mine\nuse_mine()", namespace)
    assert capsys.readouterr().out == "yours: accumulate (5e)\n"


def test_what_the_function_needs_of_its_cell_comes_with_it_and_takes_no_name(capsys):
    source = """
    from math import inf as LAST
    import operator

    FACTOR = operator.neg(1)
    NONE = None
    Variable = "another thing"

    class Oldest:
        first = square

    def age(f):
        return FACTOR * f.generation if f is not None else LAST

    def by_generation(y, first=NONE):
        return sorted(functions_behind(y), key=age)

    y = square(2)
    """
    keep("6e", cell(textwrap.dedent(source)))
    later = step("step07_lifetime")
    use_mine(later)
    assert capsys.readouterr().out == "yours: by_generation (6e)\n"
    x = later.Variable(np.array(3.0))
    y = later.square(later.square(x))
    y.backward()
    assert x.grad == 108.0
    assert later.by_generation.__code__.co_filename == "my_engine.py, 6e"
    later.age = later.FACTOR = None  # what the notebook calls so is another thing
    y.backward()
    assert x.grad == 216.0
    later.functions_behind = lambda y: []  # and what it defines anew is used
    assert later.by_generation(y) == []
    assert not hasattr(later, "y")


def test_what_cannot_be_made_again_stays_ours_and_says_so(capsys):
    keep("5e", cell("LIMIT = int(board)\n" + RIGHT.replace("None:", "None or LIMIT < 0:")))
    later = step("step06_order")
    ours = later.accumulate
    use_mine(later)
    assert "5e stays ours: name 'board' is not defined" in capsys.readouterr().out
    assert later.accumulate is ours
