"""Notebooks are compared by content."""

from __future__ import annotations

import copy

import pytest

from minigrad.course.notebook import differences, svg_facts

PICTURE = """<svg width="{width}"><g class="node op"><title>n0</title>
<text x="{x}">Square</text></g>
<g class="edge flow"><title>n0-&gt;n1</title>
<path d="M{x},3"/></g></svg>"""


def notebook(**changes):
    output = {
        "output_type": "display_data",
        "metadata": {},
        "data": {
            "text/plain": "y = Square(x)",
            "image/svg+xml": PICTURE.format(width=10, x=1),
            "image/png": "AAAA",
        },
    }
    said = {"output_type": "stream", "name": "stdout", "text": ["3.29\n", "done\n"]}
    cell = {"cell_type": "code", "source": "draw(y)", "metadata": {}, "outputs": [output, said]}
    return {"cells": [{"cell_type": "markdown", "source": "# T", "metadata": {}}, cell | changes]}


def changed(kind, value):
    made = notebook()
    made["cells"][1]["outputs"][0]["data"][kind] = value
    return made


def test_a_notebook_equals_itself_however_its_texts_are_split():
    other = copy.deepcopy(notebook())
    other["cells"][1]["outputs"][1]["text"] = "3.29\ndone\n"
    assert differences(notebook(), other) == []


def test_the_order_of_metadata_is_no_content():
    one, other = {"jupyter": {}, "tags": ["a"]}, {"tags": ["a"], "jupyter": {}}
    assert differences(notebook(metadata=one), notebook(metadata=other)) == []


def test_a_layout_is_no_content():
    assert differences(notebook(), changed("image/svg+xml", PICTURE.format(width=99, x=7))) == []


def test_the_pixels_of_an_image_are_no_content():
    assert differences(notebook(), changed("image/png", "BBBB")) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            changed("text/plain", "y = Cube(x)"),
            "its outputs differ: 'y = Square(x)', now 'y = Cube(x)'",
        ),
        (changed("image/svg+xml", PICTURE.replace("Square", "Cube")), "node op n0: Cube"),
        (changed("image/svg+xml", PICTURE.replace("edge flow", "edge grad")), "edge grad n0->n1"),
        (notebook(outputs=[]), "its outputs differ: 'shows', now '(nothing)'"),
        (notebook(source="draw(x)"), "its source differs: 'draw(y)', now 'draw(x)'"),
        (notebook(metadata={"tags": ["a"]}), "its metadata differ"),
        (notebook(cell_type="raw"), "its kind differs: 'code', now 'raw'"),
    ],
)
def test_other_content_is_said(now, said):
    (line,) = differences(notebook(), now)
    assert line.startswith("cell 1: ")
    assert said in line


def test_another_error_is_content_another_traceback_is_not():
    def failing(value, trace):
        return notebook(
            outputs=[{"output_type": "error", "ename": "E", "evalue": value, "traceback": [trace]}]
        )

    assert differences(failing("a", "line 1"), failing("a", "line 2")) == []
    assert differences(failing("a", "line 1"), failing("b", "line 1"))


def test_what_varies_is_compared_by_its_kinds():
    varies = {"metadata": {"tags": ["varies"]}}
    old = notebook(**varies)
    new = copy.deepcopy(old)
    new["cells"][1]["outputs"][1]["text"] = "3.30\n"
    assert differences(old, new) == []
    del new["cells"][1]["outputs"][1]
    assert differences(old, new) == ["cell 1: its outputs differ: 'stream', now '(nothing)'"]


def test_another_number_of_cells_is_said():
    assert differences(notebook(), {"cells": []}) == ["2 cells, now 0"]


def test_a_drawing_that_is_no_graph_is_compared_by_its_texts():
    assert svg_facts("<svg><text>a</text><text><tspan>b</tspan></text></svg>") == ["a | b"]
