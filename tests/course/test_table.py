"""The table of the course in the docs is counted, not written."""

from __future__ import annotations

import ast
from pathlib import Path

from minigrad.course import growth
from minigrad.course.folder import find_course
from minigrad.course.solution import is_engine, mistakes

COURSE = find_course(Path(__file__).parent)
PAGE = COURSE.root / "docs" / "course.md"
HEAD = [
    "| step | minutes | new definitions | mistakes on the way | the learner's part of the engine | exercises | mistakes that are told apart |",
    "|---|---|---|---|---|---|---|",
]


def rows():
    """One line per step, and the sums."""
    lines, sums = [], [0] * 5
    for number in COURSE.paths:
        step = COURSE.step(number)
        grown = growth.growth_of(COURSE, step)
        core = [core_of(cell.source) for cell in step.cells if "engine" in cell.tags]
        counts = [
            int(step.time.split()[0]),
            len(grown.new) if grown else len(growth.definitions(step.text)),
            sum("mistake" in cell.tags for cell in step.cells),
            len(step.exercises),
            sum(len(mistakes(id)) for id in step.exercises),
        ]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        minutes, new, wrong, exercises, told = counts
        title = f"{number}. {step.title}"
        lines.append(
            f"| {title} | {minutes} | {new} | {wrong} | {''.join(core)} | {exercises} | {told} |"
        )
    minutes, new, wrong, exercises, told = sums
    return [
        *lines,
        f"| in all | {minutes} | {new} | {wrong} | {parts()} functions | {exercises} | {told} |",
    ]


def core_of(source):
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return f"`{function.name}`"


def parts():
    return sum(is_engine(id) for number in COURSE.paths for id in COURSE.step(number).exercises)


def test_the_table_of_the_docs_is_what_can_be_counted(request):
    table = "\n".join([*HEAD, *rows()])
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(HEAD[0][:8]), text.index("\n\n", text.index(HEAD[0][:8]))
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text[:begin] + table + text[end:], encoding="utf-8")
    else:
        assert text[begin:end] == table, "run: uv run pytest --update-golden"
