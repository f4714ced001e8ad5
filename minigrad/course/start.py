"""The table of steps on the start page."""

from __future__ import annotations

from .folder import Course
from .steps import Step

#: Parts by the number of their first step.
PARTS = {
    1: "A. Linked nodes",
    5: "B. Real graphs",
    10: "C. The backward graph is an object",
    13: "D. Operators by name",
    17: "E. Programs",
}


def table(course: Course) -> str:
    """The steps in a markdown table, with links for a page that stands beside the notebooks."""
    lines = ["| step | goal | time | needs | solved |", "|---|---|---|---|---|"]
    for number in course.paths:
        if number in PARTS:
            lines.append(f"| **{PARTS[number]}** | | | | |")
        lines.append(_row(course.step(number)))
    return "\n".join(lines)


def _row(step: Step) -> str:
    link = f"[{step.number}. {step.title}]({step.name}.ipynb)"
    cells = [link, step.goal, step.time, step.needs, f"[solved](solved/{step.name}.ipynb)"]
    return "| " + " | ".join(cell.replace("|", "\\|").rstrip(".") for cell in cells) + " |"
