"""From a literate step to notebooks: the learner's, with stubs, and the solved one.

Cell ids and kernel are fixed, so the same source gives the same bytes.
"""

import ast
import re
from textwrap import indent
from typing import Any

from . import growth
from .execute import Ran
from .folder import Course
from .growth import FUNCTIONS
from .notebook import Notebook, fingerprint
from .steps import BEGIN, END, Cell, CourseError, Step

KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
#: Tags of cells that open with their source hidden: known already, or known but for lines that
#: the text shows, a helper, or machinery of a picture.
FOLDED = {"carried", "folded", "interactive"}
#: Words that ask for a guess: what the next cell shows is left to the learner's own run.
GUESS = "**Predict, then run"
_OWNERS = (*FUNCTIONS, ast.ClassDef)
YOUR_TURN = 'raise NotImplementedError("your turn")'
#: Parts by the number of their first step.
PARTS = {
    1: "A. Linked nodes",
    5: "B. Real graphs",
    10: "C. The backward graph is an object",
    13: "D. Operators by name",
    17: "E. Programs",
}


def page(step: Step, *, solved: bool) -> Step:
    """The step as a notebook shows it.

    Asserts are tests of ours: the solved notebook keeps them, a learner reads what is printed.
    """
    if solved or not step.exercises:
        return step
    shown = (cell._replace(source=_without_asserts(step, cell)) for cell in step.cells)
    return step._replace(cells=tuple(cell for cell in shown if cell.source))


def _without_asserts(step: Step, cell: Cell) -> str:
    if cell.kind == "markdown" or "active-ipynb" not in cell.tags or cell.exercise:
        return cell.source
    lines = cell.source.splitlines()
    for node in reversed(parsed(step, cell).body):
        body = node.body if isinstance(node, ast.For) else [node]
        if all(isinstance(each, ast.Assert) for each in body):
            del lines[node.lineno - 1 : node.end_lineno]
    code = "\n".join(lines).strip("\n")
    return code if re.search(r"^[^#\n]", code, re.M) else ""


def make(course: Course, step: Step, *, solved: bool) -> Notebook:
    """The notebook of a step, not yet executed.

    Raises CourseError, with file and line, for a solution that cannot become a stub and for a cell
    wrongly tagged ``carried``.
    """
    cells = []
    for number, cell in enumerate(page(step, solved=solved).cells):
        metadata: dict[str, Any] = {}
        if tags := [tag for tag in cell.tags if tag != "active-ipynb"]:
            metadata["tags"] = tags
        if FOLDED & set(cell.tags):
            metadata["jupyter"] = {"source_hidden": True}
        source = cell.source
        if cell.kind == "markdown":
            source = _filled(course, step, source)
        elif BEGIN in source and not solved:
            source = stub(step, cell)
        id = f"{step.name.split('_')[0]}-{number:02d}"
        made: Notebook = {"id": id, "cell_type": cell.kind, "metadata": metadata, "source": source}
        if cell.kind == "code":
            made |= {"execution_count": None, "outputs": []}
        cells.append(made)
    facts = {"step": step.name, "solved": solved, "sources": fingerprint(cells)}
    return {
        "cells": cells,
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}, "minigrad": facts},
    }


def _filled(course: Course, step: Step, source: str) -> str:
    """A markdown cell, its placeholders replaced."""
    for cell in step.cells:
        if "engine" in cell.tags:
            lines = cell.source.rpartition("\ncheck(")[0].strip().splitlines()
            code = "\n".join(line for line in lines if line.strip() not in (BEGIN, END))
            shown = f"<details><summary>show me</summary>\n\n```python\n{code}\n```\n\n</details>"
            source = source.replace(f"<!-- solution {cell.exercise} -->", shown)
    if "<!-- growth -->" in source:
        source = source.replace("<!-- growth -->", growth.table(growth.growth_of(course, step)))
    if "<!-- steps -->" in source:
        source = source.replace("<!-- steps -->", table_of_steps(course))
    return source


def leave_guesses(step: Step, notebook: Notebook) -> None:
    """Take out what an executed notebook shows where its reader is asked to predict it."""
    asked = False
    for cell, shown in zip(page(step, solved=False).cells, notebook["cells"], strict=True):
        if asked and cell.kind == "code" and "interactive" not in cell.tags:
            shown["outputs"] = []
        asked = cell.kind == "markdown" and GUESS in cell.source.rpartition("\n\n")[2]


def verify(step: Step, ran: Ran, *, solved: bool) -> None:
    """Raise CourseError, with file and line, for a notebook that must not be committed.

    A cell failed or printed a warning, a solution fails its check, a stub passes.
    """
    step = page(step, solved=solved)
    kind, wrong, verdict = "learner's", "✓", "the stub passes"
    if solved:
        kind, wrong, verdict = "solved", "✗", "the solution fails"
    if ran.failure:
        raise CourseError(
            f"the {kind} notebook, {ran.failure}\n{ran.failure.traceback}",
            step.path,
            step.cells[ran.failure.cell].line,
        )
    pairs = zip(step.cells, ran.notebook["cells"], strict=True)
    for number, (cell, made) in enumerate(pairs, 1):
        for output in made.get("outputs", []):
            said, text = "", output.get("text", "")
            if output.get("name") == "stderr":
                said = f"the {kind} notebook, cell {number}, writes to stderr: {text}"
            elif cell.exercise and f"{wrong} {cell.exercise}" in text:
                said = f"{verdict} its check: {text.strip()}"
            if said:
                raise CourseError(said, step.path, cell.line)


def stub(step: Step, cell: Cell) -> str:
    """The source of an exercise without its solutions.

    In a function a solution becomes ``raise NotImplementedError("your turn")``; where code runs at
    once (module level, class body) the names it assigns become ``...``.
    """
    tree = parsed(step, cell)

    def left(solution: re.Match[str]) -> str:
        begun = cell.source.count("\n", 0, solution.start()) + 1
        ended = begun + solution[0].count("\n")
        return indent("\n".join(_stub_lines(tree, begun, ended)), solution[1])

    return re.sub(rf"(?ms)^( *){BEGIN} *$.*?^ *{END} *$", left, cell.source)


def parsed(step: Step, cell: Cell) -> ast.Module:
    """The syntax tree of a cell; lines of IPython's own count as nothing.

    Raises CourseError, with file and line, for what is not Python.
    """
    plain = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell.source, flags=re.M)
    try:
        return ast.parse(plain)
    except SyntaxError as error:
        raise CourseError(
            f"not Python: {error.msg}", step.path, cell.line + (error.lineno or 1) - 1
        ) from None


def _stub_lines(tree: ast.Module, begun: int, ended: int) -> list[str]:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _OWNERS) and node.lineno < begun and (node.end_lineno or 0) >= ended - 1
    ]
    owner = max(around, key=lambda node: node.lineno, default=tree)
    if isinstance(owner, FUNCTIONS):
        return [YOUR_TURN]
    inside = [node for node in owner.body if begun < node.lineno < ended]
    if isinstance(owner, ast.ClassDef):  # a class is right without the methods asked for
        inside = [node for node in inside if not isinstance(node, FUNCTIONS)]
    names = [name for node in inside for name in _bound(node)]
    return [f"{name} = ...  # your turn" for name in dict.fromkeys(names)] or ["...  # your turn"]


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, _OWNERS):
        return [node.name]
    return [
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]


def table_of_steps(course: Course) -> str:
    """The steps in a markdown table, with links for a page that stands beside the notebooks."""
    lines = ["| step | goal | time | needs | solved |", "|---|---|---|---|---|"]
    for number in course.paths:
        if number in PARTS:
            lines.append(f"| **{PARTS[number]}** | | | | |")
        step = course.step(number)
        link = f"[{number}. {step.title}]({step.name}.ipynb)"
        facts = map(step.front, ("Goal", "Time", "Needs"))
        cells = [link, *facts, f"[solved](solved/{step.name}.ipynb)"]
        texts = (cell.replace("|", "\\|").rstrip(".") for cell in cells)
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)
