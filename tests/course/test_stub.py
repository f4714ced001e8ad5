"""What an exercise leaves to the learner."""

from __future__ import annotations

import pytest
from sample_course import exercise, step_of

from minigrad.course.build import stub
from minigrad.course.steps import CourseError

CASES = {
    "in a function it raises": (
        [
            "def f(x):",
            '    """Doc."""',
            "    ### BEGIN SOLUTION",
            "    y = 2 * x",
            "    return y",
            "    ### END SOLUTION",
        ],
        ["def f(x):", '    """Doc."""', '    raise NotImplementedError("your turn")'],
    ),
    "in a method it raises, with its indentation": (
        [
            "class A:",
            "    def f(self):",
            "        ### BEGIN SOLUTION",
            "        return 1",
            "        ### END SOLUTION",
            "",
            "    def g(self):",
            "        return 2",
        ],
        [
            "class A:",
            "    def f(self):",
            '        raise NotImplementedError("your turn")',
            "",
            "    def g(self):",
            "        return 2",
        ],
    ),
    "names at module level become ...": (
        ["### BEGIN SOLUTION", "a, b = 1, 2", "c: int = 3", "a = 4", "### END SOLUTION"],
        ["a = ...  # your turn", "b = ...  # your turn", "c = ...  # your turn"],
    ),
    "functions and classes at module level become ..., what is inside them does not": (
        [
            "### BEGIN SOLUTION",
            "def f():",
            "    inner = 1",
            "    return inner",
            "class A:",
            "    x = 1",
            "### END SOLUTION",
        ],
        ["f = ...  # your turn", "A = ...  # your turn"],
    ),
    "methods of a class are left out": (
        [
            "class A(Base):",
            "    ### BEGIN SOLUTION",
            "    def f(self):",
            "        return 1",
            "    ### END SOLUTION",
        ],
        ["class A(Base):", "    ...  # your turn"],
    ),
    "an attribute of a class becomes ...": (
        ["class A:", "    ### BEGIN SOLUTION", "    slope = 2", "    ### END SOLUTION"],
        ["class A:", "    slope = ...  # your turn"],
    ),
    "a solution without names": (
        ["### BEGIN SOLUTION", "print(1)", "### END SOLUTION"],
        ["...  # your turn"],
    ),
    "two solutions and a magic": (
        [
            "%matplotlib inline",
            "### BEGIN SOLUTION",
            "a = 1",
            "### END SOLUTION",
            "def f():",
            "    ### BEGIN SOLUTION",
            "    return a",
            "    ### END SOLUTION",
        ],
        [
            "%matplotlib inline",
            "a = ...  # your turn",
            "def f():",
            '    raise NotImplementedError("your turn")',
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stub_of_a_solution(tmp_path, name):
    solved, expected = CASES[name]
    step = step_of(tmp_path, exercise(*solved, 'check("90a", 1)'))
    assert stub(step, step.cells[0]).splitlines() == [*expected, 'check("90a", 1)']


def test_a_solution_that_is_not_python_names_file_and_line(tmp_path):
    step = step_of(
        tmp_path, exercise("### BEGIN SOLUTION", "a = 1 +", "### END SOLUTION", 'check("90a", 1)')
    )
    with pytest.raises(CourseError, match=r"step90_bad\.py:3: not Python"):
        stub(step, step.cells[0])
