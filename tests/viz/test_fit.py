"""Every picture fits a page, can be read, and has no line through a box: graphs of all kinds, measured."""

from __future__ import annotations

import pytest

from minigrad.viz import draw
from tests.viz.graphs import GRAPHS
from tests.viz.measured import columns_apart, measured, shared_ranks
from tests.viz.needs import needs_layout

PAGE, READABLE = 850, 12  # pixels

pytestmark = needs_layout


@pytest.mark.parametrize("name", GRAPHS)
def test_a_picture_is_as_wide_as_a_page_with_text_that_can_be_read(name):
    picture = GRAPHS[name]()
    found = measured(picture)
    assert found.width <= PAGE
    assert found.smallest_text >= READABLE
    assert not found.through_boxes
    assert columns_apart(picture)
    assert shared_ranks(picture) == 0


@pytest.mark.parametrize("name", ["attention_by_hand", "lstm", "random_dag", "leaves_read_twice"])
def test_what_is_folded_to_fit_opens_and_fits_again(name):
    picture = GRAPHS[name]()
    view = picture.view
    assert picture.interactive
    for _ in range(3):
        if view.folds():
            view.open(next(iter(view.folds())))
    again = type(picture)(view.graph, view=view)
    assert measured(again).smallest_text >= READABLE


def test_a_stack_of_leaves_names_them_and_opens():
    picture = GRAPHS["leaves_in_one_sum"]()
    assert measured(picture).width <= PAGE  # it is folded when it is laid out
    view = picture.view
    box, twin = (n for n in view.graph.nodes.values() if n.kind == "folded")
    assert (box.name, *box.lines) == ("p0 … p49", "50 parameters")
    assert (twin.name, *twin.lines) == ("p0.grad … p49.grad", "50 gradients")
    assert view.folds()[box.id] == "p0 … p49: 50 parameters, folded; open"
    view.open(box.id)
    parts = [n for n in view.graph.nodes.values() if n.kind == "folded" and n.side == "forward"]
    assert parts[0].name == "p0 … p4"
    view.open(parts[0].id)
    assert {"p0", "p4", "p5 … p9"} <= {n.name for n in view.graph.nodes.values()}


def test_what_is_asked_for_in_full_is_never_folded():
    loss = GRAPHS["third_order"]().view.whole
    assert not draw(loss, detail="full").view.folds()
