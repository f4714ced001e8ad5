"""`import minigrad` is light: NumPy, and nothing that only pictures or notebooks need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "IPython", "graphviz", "hypothesis", "ipywidgets", "jupyterlab", "matplotlib",
    "nbclient", "nbformat", "pygraphviz", "pytest", "tqdm", "traitlets",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    """The top-level modules in memory after running the code in a new Python."""
    code += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import minigrad",
        "import minigrad as mg; x = mg.tensor(2.0, requires_grad=True); (x * x).backward()",
        "import minigrad.viz",
        "from minigrad.course import check",
        "import minigrad.course.cli",
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert not loaded(code) & HEAVY


def test_a_picture_in_words_needs_no_layout_engine():
    code = (
        "import sys; sys.modules['pygraphviz'] = sys.modules['graphviz'] = None\n"
        "import minigrad as mg\nx = mg.tensor(2.0, requires_grad=True)\n"
        "assert 'x' in mg.draw(x * x).text"
    )
    loaded(code)
