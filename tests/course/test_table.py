"""The table of the course in the docs is counted, not written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from minigrad.course import growth
from minigrad.course.build import FOLDED, page
from minigrad.course.folder import find_course
from minigrad.course.solution import is_engine, mistakes

COURSE = find_course(Path(__file__).parent)
PAGE = COURSE.root / "docs" / "course.md"
#: Python in a text.
SHOWN = r"(?s)```python\n(.*?)\n```"
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
            int(step.front("Time").split()[0]),
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


def reading(step):
    """Minutes up to the exercises: 200 words a minute, nine seconds for a line that is not folded."""
    words = lines = 0
    for cell in page(step, solved=False).cells:
        if cell.kind == "markdown":
            text, exercises, _ = cell.source.partition("## Exercises")
            words += len(re.findall(r"\b\w+\b", re.sub(r"```.*?```", "", text, flags=re.S)))
            lines += sum(len(each.split("\n")) for each in re.findall(SHOWN, text))
            if exercises:
                break
        elif not {*FOLDED, "exercise"} & set(cell.tags):
            code = [line.strip() for line in cell.source.splitlines()]
            lines += sum(bool(line) and line[0] != "#" for line in code)
    return words / 200 + lines * 0.15


def test_the_minutes_of_a_step_are_counted_and_none_takes_more_than_35():
    for number in COURSE.paths:
        step = COURSE.step(number)
        minutes = 5 * round(reading(step) / 5)
        assert step.front("Time") == f"{minutes} minutes", f"step {number}: {reading(step):.1f}"
        assert minutes <= 35


def test_the_table_of_the_docs_is_what_can_be_counted(request):
    table = "\n".join([*HEAD, *rows()])
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(HEAD[0][:8]), text.index("\n\n", text.index(HEAD[0][:8]))
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text[:begin] + table + text[end:], encoding="utf-8")
    else:
        assert text[begin:end] == table, (
            "run: uv run pytest tests/course/test_table.py --update-golden"
        )
