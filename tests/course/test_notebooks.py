"""The committed notebooks: made from the steps as they stand, clean, and complete.

Whether their outputs are those of a fresh run is checked by `minigrad build --check`.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from minigrad.course import build, notebook
from minigrad.course.folder import find_course

REAL = find_course(Path(__file__).parent)
ALL = [
    (step, solved)
    for step in REAL.select()
    for solved in (False, True)
    if step.exercises or not solved
]


def path_of(step, solved):
    return REAL.notebooks / ("solved" if solved else "") / f"{step.name}.ipynb"


@pytest.fixture(params=ALL, ids=lambda each: f"{each[0].name}{'-solved' if each[1] else ''}")
def committed(request):
    """A step, whether it is the solved one, and its committed notebook."""
    step, solved = request.param
    found = notebook.read(path_of(step, solved))
    if notebook.is_changed(found):
        pytest.skip("somebody works in this notebook")
    return step, solved, found


def test_its_cells_are_those_of_the_step(committed):
    step, solved, found = committed
    fresh = build.make(REAL, step, solved=solved)
    kept = ("id", "cell_type", "source", "metadata")
    for a, b in zip(found["cells"], fresh["cells"], strict=True):
        same = {key: a[key] for key in kept} == {key: b[key] for key in kept}
        assert same, f"the cell {b['id']} is another one: minigrad build {step.name}"


def test_every_cell_ran_in_order_and_nothing_warned(committed):
    _, _, found = committed
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output.get("name") != "stderr"
            expected = "raises-exception" in cell["metadata"].get("tags", [])
            assert output["output_type"] != "error" or expected


def test_no_address_path_time_or_widget_is_in_it(committed):
    _, _, found = committed
    text = json.dumps([cell.get("outputs") for cell in found["cells"]], ensure_ascii=False)
    assert not re.search(r"\b0x[0-9a-fA-F]{6,}", text)
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|usr|opt|Users)/", text)
    assert "application/vnd.jupyter.widget" not in text
    assert not re.search(r"Wall time|CPU times|Warning:", text)


def test_an_interactive_cell_shows_something_without_a_kernel(committed):
    _, _, found = committed
    for cell in found["cells"]:
        if "interactive" in cell["metadata"].get("tags", []):
            assert cell["outputs"], "".join(cell["source"])[:200]


def test_a_picture_also_has_words(committed):
    _, _, found = committed
    for cell in found["cells"]:
        for output in cell.get("outputs", []):
            if "image/svg+xml" in output.get("data", {}):
                assert len("".join(output["data"]["text/plain"])) > 20


@pytest.mark.parametrize(
    "step", [each for each in REAL.select() if each.number], ids=lambda each: each.name
)
def test_where_it_lives_names_things_that_exist(step):
    text = "\n".join(cell.source for cell in step.cells if cell.kind == "markdown")
    assert "## In PyTorch" in text
    assert "## Where it lives" in text
    places = re.findall(r"`(minigrad(?:\.\w+)*):(\w+(?:\.\w+)*)`", text)
    assert places
    for module, name in places:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)


def test_the_start_page_links_every_step():
    text = (REAL.notebooks / "start.ipynb").read_text(encoding="utf-8")
    for path in REAL.paths.values():
        assert f"({path.stem}.ipynb)" in text
        assert (REAL.notebooks / f"{path.stem}.ipynb").exists()


def test_what_is_to_be_predicted_is_said_by_the_cell_right_below():
    for step in REAL.select():
        for asks, answers in zip(step.cells, step.cells[1:], strict=False):
            *before, last = asks.source.split("\n\n")
            if asks.kind == "markdown" and last.startswith(build.GUESS):
                shown = "active-ipynb" in answers.tags and "folded" not in answers.tags
                assert shown, f"{step.name}: {last}"
            assert not any(each.startswith(build.GUESS) for each in before), asks.source
