"""The rules of pictures, on every picture in the committed notebooks: what learners really see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minigrad.viz.graph.style import NODE_STYLES
from tests.viz import svg_facts as facts
from tests.viz.palette import palette

SOLVED = sorted((Path(__file__).parents[2] / "notebooks" / "solved").glob("step*.ipynb"))
STATES = {"pending", "active", "done"}


def pictures(path: Path) -> list[tuple[list[str], str]]:
    """(tags of the cell, SVG) for every picture of this package in a notebook."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            svg = "".join(output.get("data", {}).get("image/svg+xml", ""))
            if 'class="mg-picture"' in svg or 'class="mg-sheet"' in svg:
                found.append((cell["metadata"].get("tags", []), svg))
    return found


def frames(svg: str):
    """The drawings in a picture: one, or the frames of a player."""
    root = facts.parsed(svg)
    if root.get("class") == "mg-picture":
        return [root]
    return [g for g in root.iter(facts.SVG + "g") if g.get("class") == "mg-picture"]


def groups(frame, kind):
    return [g for g in frame.iter(facts.SVG + "g") if kind in g.get("class", "").split()]


@pytest.fixture(scope="module", params=SOLVED, ids=lambda p: p.stem)
def shown(request):
    return pictures(request.param)


def test_every_step_shows_its_forward_and_its_backward_picture(shown):
    tags = {tag for tags, _ in shown for tag in tags}
    assert {"picture-F", "picture-B"} <= tags


def test_nothing_in_a_picture_can_run(shown):
    for _, svg in shown:
        assert set(facts.active_content(svg)) <= {"rect"}  # the strips of a player's captions


def test_only_colours_of_the_table_are_used(shown):
    known = {c.upper() for c in palette()}
    for _, svg in shown:
        assert facts.colours(svg) - known == set()


def test_every_node_has_one_kind_one_side_one_state_and_words(shown):
    for _, svg in shown:
        for frame in frames(svg):
            for node in groups(frame, "node"):
                classes = set(node.get("class").split())
                assert len(classes & {"fwd", "bwd"}) == 1
                assert len(classes & STATES) == 1
                assert len((classes - {"op"}) & set(NODE_STYLES)) <= 1
                assert node.find(facts.SVG + "title").text


def test_no_two_boxes_of_a_picture_lie_over_each_other(shown):
    for _, svg in shown:
        for frame in frames(svg):
            boxes = [facts.box(g) for g in groups(frame, "node")]
            for i, p in enumerate(boxes):
                for q in boxes[i + 1 :]:
                    apart = (
                        p[0] >= q[2] - 1 or q[0] >= p[2] - 1 or p[1] >= q[3] - 1 or q[1] >= p[3] - 1
                    )
                    assert apart, (p, q)


def test_twins_stand_on_one_rank(shown):
    for _, svg in shown:
        for frame in frames(svg):
            for pair in twins(frame):
                places = [facts.centre(g) for g in pair]
                across = max(abs(x - places[0][0]) for x, _ in places)
                along = max(abs(y - places[0][1]) for _, y in places)
                assert min(across, along) < 1.5


def twins(frame):
    """Groups of nodes that share a twin class."""
    found = {}
    for node in groups(frame, "node"):
        for word in node.get("class").split():
            if word[0] == "t" and word[1:2] in ("n", "f") and word[2:].isdigit():
                found.setdefault(word, []).append(node)
    return [pair for pair in found.values() if len(pair) > 1]


def test_before_a_player_starts_no_gradient_has_a_number(shown):
    for _, svg in shown:
        for frame in frames(svg)[:1] if 'class="mg-sheet"' in svg else []:
            for node in groups(frame, "pending"):
                if {"gradient", "leaf_gradient"} & set(node.get("class").split()):
                    assert not any(t.replace(".", "").isdigit() for t in facts.texts(node)[1:])
