"""How steps grow, by syntax trees; and the growth of every step, pinned."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sample_course import copied

from minigrad.course import growth
from minigrad.course.folder import FRESH, find_course
from minigrad.course.steps import CourseError

REAL = find_course(Path(__file__).parent)

BEFORE = '''
LIMIT = 3

@decorated
class A(Base):
    """Old words."""
    scale = 1.0

    def f(self):
        """Old."""
        return 1     # a comment

    def g(self):
        return 2

class Whole:
    def h(self):
        return 3

def gone():
    pass
'''

AFTER = '''
LIMIT = 4

@decorated
class A(Base):
    """New words."""
    scale = 1.0

    def f(self):
        """New."""
        return (1)

    def g(self):
        # why
        return 5

    def new(self):
        pass

class Whole:
    def h(self):
        return 3

class Fresh:
    def inside(self):
        pass

A.__add__ = A.new
'''


def grown() -> growth.Growth:
    return growth.Growth(growth.definitions(BEFORE), growth.definitions(AFTER))


def test_new_changed_kept_and_gone():
    found = grown()
    assert found.new == ["A.new", "Fresh", "A.__add__"]
    assert found.changed == ["LIMIT", "A.g"]
    assert found.kept == ["A.scale", "A.f", "Whole"]
    assert found.gone == ["gone"]


def test_docstrings_comments_and_brackets_are_not_growth():
    assert "A.f" in grown().kept


def test_another_base_or_decorator_changes_the_class_and_nothing_inside():
    now = BEFORE.replace("@decorated", "@otherwise").replace("class Whole", "class Whole(object)")
    found = growth.Growth(growth.definitions(BEFORE), growth.definitions(now))
    assert found.changed == ["A", "Whole"]
    assert "A.f" in found.kept


def test_a_patch_shows_the_lines_as_they_are_written():
    assert grown().patch("A.g").splitlines() == [
        " def g(self):",
        "-    return 2",
        "+    # why",
        "+    return 5",
    ]


def test_applying_no_change_finds_none():
    same = growth.Growth(growth.definitions(BEFORE), growth.definitions(BEFORE))
    assert (same.new, same.changed, same.gone) == ([], [], [])
    assert same.kept == ["LIMIT", "A", "Whole", "gone"]


def test_the_table_names_what_changed_and_shows_no_code():
    table = growth.table(grown())
    assert "| changed | `LIMIT`, `A.g` |" in table
    assert "```" not in table
    assert "nothing is carried over" in growth.table(None)


def test_a_carried_cell_that_differs_is_refused_with_file_and_line(tmp_path):
    course = copied(tmp_path)
    path = tmp_path / "steps" / "step91_second.py"
    text = path.read_text().replace("# %%\nclass Box", '# %% tags=["carried"]\nclass Box')
    path.write_text(text)
    line = text.splitlines().index("class Box:") + 1
    said = (
        rf"step91_second\.py:{line}: a cell tagged \"carried\" holds Box\.size, which differs there"
    )
    with pytest.raises(CourseError, match=said):
        growth.growth_of(course, course.step(91))


def test_a_carried_cell_with_something_new_is_refused(tmp_path):
    course = copied(tmp_path)
    path = tmp_path / "steps" / "step91_second.py"
    path.write_text(path.read_text().replace("# %%\nclass Lid", '# %% tags=["carried"]\nclass Lid'))
    with pytest.raises(CourseError, match="holds Lid, which is not there"):
        growth.growth_of(course, course.step(91))


@pytest.mark.parametrize("number", sorted(REAL.paths))
def test_the_growth_of_every_step_is_pinned(number, golden):
    found = growth.growth_of(REAL, REAL.step(number))
    assert (found is None) == (number in FRESH)
    golden(f"growth_golden/step{number:02d}.txt", growth.plain(found))


@pytest.mark.parametrize("number", sorted(set(REAL.paths) - FRESH))
def test_an_unchanged_cell_is_folded_away(number):
    """A cell all of whose definitions are carried over carries the tag."""
    step = REAL.step(number)
    found = growth.growth_of(REAL, step)
    assert found is not None
    for cell in step.cells:
        if cell.kind == "code" and not cell.tags and (held := growth.definitions(cell.source)):
            same = all(
                name in found.old and found.old[name].code == each.code
                for name, each in held.items()
            )
            assert not same, (
                f'{step.path.name}:{cell.line}: only kept definitions, tag it "carried"'
            )


@pytest.mark.parametrize("number", sorted(REAL.paths))
def test_what_a_text_shows_of_a_folded_cell_stands_in_it(number):
    cells = REAL.step(number).cells
    parts = [c for c in cells if "folded" in c.tags and "active-ipynb" not in c.tags]
    folded = {line(each) for c in parts for each in c.source.splitlines()}
    texts = "\n".join(cell.source for cell in cells if cell.kind == "markdown")
    for block in re.findall(r"(?s)```python\n(.*?)\n```", texts.partition("## Exercises")[0]):
        assert not folded or {line(each) for each in block.splitlines()} <= {*folded, "…"}


def line(text):
    return text.partition("  #")[0].strip()


@pytest.mark.parametrize("number", sorted(REAL.paths))
def test_a_step_never_patches_an_earlier_class_and_imports_no_other_step(number):
    tree = ast.parse(REAL.step(number).text)
    names = [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    assert len(names) == len(set(names)), "a definition is written twice"
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
    ]
    assert not [name for name in modules if name.split(".")[0] == "steps"]
    if number != 20:
        allowed = ("minigrad.course", "minigrad.viz")
        assert not [
            name
            for name in modules
            if name.startswith("minigrad.") and not name.startswith(allowed)
        ]
