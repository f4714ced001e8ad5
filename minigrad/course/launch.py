"""Open the course in JupyterLab."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import progress
from .execute import environment, in_front
from .folder import Course, find_course, working_copy
from .notebook import load_nbformat
from .steps import CourseError, need


def open_course(options: Sequence[str]) -> int:
    """Trust the course's notebooks and open JupyterLab at the start page, with these options.

    Raises CourseError where the notebooks or JupyterLab are missing.
    """
    course = working_copy(find_course())
    start = course.notebooks / "start.ipynb"
    if not start.exists():
        raise CourseError("notebooks/start.ipynb is missing; make the notebooks: minigrad build")
    need("jupyterlab", "opening the course")
    _trust(course)
    page, done = "start", progress.read(course.notebooks)["passed"]
    step = progress.here(course)
    if done and step:
        page = step.name
        print(f"{len(done)} exercises have passed; you are in step {step.number}, {step.title}")
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={course.root}",
        f"--LabApp.default_url=/lab/tree/notebooks/{page}.ipynb",
        *(["--allow-root"] if os.name == "posix" and os.geteuid() == 0 else []),  # in containers
        *options,
    ]
    variables = environment(course.root)
    quiet = Path(__file__).parent / "jupyter"  # JupyterLab asks nothing about its news
    variables["JUPYTER_CONFIG_PATH"] = in_front("JUPYTER_CONFIG_PATH", quiet)
    return _become(command, variables)


def _become(command: list[str], variables: dict[str, str]) -> int:
    """Go on as another program, so that Ctrl-C and signals reach it and nothing else."""
    if os.name == "posix":
        os.execve(command[0], command, variables)
    return subprocess.run(command, env=variables, check=False).returncode


def _trust(course: Course) -> None:
    """Sign the course's notebooks, so that JupyterLab shows the pictures they came with."""
    nbformat = load_nbformat()
    from nbformat.sign import NotebookNotary

    notary: Any = NotebookNotary()  # type: ignore[no-untyped-call]
    names = {page.stem for page in course.steps.glob("*.py")}
    for folder in (course.notebooks, course.notebooks / "solved"):
        for path in folder.glob("*.ipynb"):
            if path.stem in names:
                notary.sign(nbformat.read(path, as_version=4))
