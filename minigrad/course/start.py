"""The table of steps: what the start page and the README show."""

from __future__ import annotations

from minigrad.course.folder import Course
from minigrad.course.steps import Step

#: Parts by the number of their first step.
PARTS = {
    1: "A. Linked nodes",
    5: "B. Real graphs",
    10: "C. The backward graph is an object",
    13: "D. Operators by name",
    17: "E. Programs",
}


def table(course: Course, folder: str = "") -> str:
    """The steps in a markdown table; ``folder`` leads to the notebooks."""
    lines = ["| step | goal | time | needs | solved |", "|---|---|---|---|---|"]
    for number in course.paths:
        if number in PARTS:
            lines.append(f"| **{PARTS[number]}** | | | | |")
        lines.append(_row(course.step(number), folder))
    return "\n".join(lines)


def _row(step: Step, folder: str) -> str:
    link = f"[{step.number}. {step.title}]({folder}{step.name}.ipynb)"
    cells = [link, step.goal, step.time, step.needs, f"[solved]({folder}solved/{step.name}.ipynb)"]
    return "| " + " | ".join(cell.replace("|", "\\|").rstrip(".") for cell in cells) + " |"
