"""The table of marks: complete, and readable on a light and on a dark page."""

from __future__ import annotations

import itertools

import pytest

from minigrad.viz.graph.graph import Edge, Node, Region
from minigrad.viz.graph.style import (
    ACTIVE_FILLS,
    EDGE_STYLES,
    NODE_STYLES,
    PAPER,
    REGION_STYLES,
    SMALL_TEXT,
    TEXT,
    edge_style,
    node_style,
    region_style,
)
from tests.viz.palette import contrast, distance

PAGES = ("#FFFFFF", "#111111")  # a light theme and a dark one
STROKES = {
    *(s.stroke for s in NODE_STYLES.values()),
    *(s.stroke for s in EDGE_STYLES.values()),
    *(s.stroke for s in REGION_STYLES.values()),
}
FILLS = {s.fill for s in (*NODE_STYLES.values(), *REGION_STYLES.values())} | {PAPER}


def test_every_kind_of_region_has_a_look():
    assert set(REGION_STYLES) == {(s, b) for s in ("forward", "backward") for b in (False, True)}


def test_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)  # a known pair


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("stroke", sorted(STROKES))
def test_every_stroke_can_be_seen_on_the_page(stroke, page):
    assert contrast(stroke, page) >= 3


@pytest.mark.parametrize("text", [TEXT, SMALL_TEXT])
@pytest.mark.parametrize("fill", sorted(FILLS | set(ACTIVE_FILLS.values())))
def test_text_can_be_read_on_every_fill(text, fill):
    assert contrast(text, fill) >= 4.5


def test_the_text_of_every_kind_can_be_read_on_its_own_fill():
    assert all(contrast(s.text, s.fill) >= 4.5 for s in NODE_STYLES.values())


def test_two_kinds_with_the_same_colours_differ_in_shape_or_border():
    looks = [
        (s.shape, s.stroke, s.fill, s.width, s.peripheries, s.dashed, s.rounded, s.struck)
        for s in NODE_STYLES.values()
    ]
    assert len(set(looks)) == len(looks)


def test_colour_is_never_the_only_difference_between_a_value_and_an_operation():
    for value, op in (
        ("value", "op"),
        ("gradient", "grad_op"),
        ("renamed", "sum"),
        ("zero", "zeros"),
    ):
        assert NODE_STYLES[value].shape != NODE_STYLES[op].shape


def signs(style):
    """What tells a mark from others without its colours."""
    told = ("shape", "peripheries", "dashed", "rounded", "struck", "width", "line", "head")
    return [getattr(style, name, None) for name in told]


@pytest.mark.parametrize("eye", ["protanopia", "deuteranopia", ""])
@pytest.mark.parametrize("table", [NODE_STYLES, EDGE_STYLES], ids=["nodes", "lines"])
def test_marks_whose_colours_merge_for_an_eye_differ_in_a_second_sign(table, eye):
    for (one, p), (other, q) in itertools.combinations(table.items(), 2):
        apart = max(
            distance(p.stroke, q.stroke, eye),
            distance(*(getattr(s, "fill", PAPER) for s in (p, q)), eye),
        )
        assert apart > 12 or signs(p) != signs(q), (one, other, round(apart, 1))


@pytest.mark.parametrize("eye", ["protanopia", "deuteranopia"])
def test_forward_and_backward_are_told_apart_by_every_eye(eye):
    sides = [REGION_STYLES[side, True].stroke for side in ("forward", "backward")]
    assert distance(*sides, eye) > 40
    lines = [EDGE_STYLES[kind].stroke for kind in ("flow", "grad")]
    assert distance(*lines, eye) > 40


def test_a_folded_segment_takes_the_colours_of_its_side():
    forward, backward = (
        Node("n0", "folded", "10 × (mul)", side=s) for s in ("forward", "backward")
    )
    assert node_style(forward).fill == NODE_STYLES["op"].fill
    assert node_style(backward).fill == NODE_STYLES["grad_op"].fill


def test_an_operation_with_a_sub_block_has_the_heaviest_border():
    assert node_style(Node("n0", "op", "while", bold=True)).width == 4


def test_a_loop_runs_against_the_ranks_forward_and_with_them_backward():
    assert edge_style(Edge("n0", "n1", "loop"), "forward").reversed
    assert not edge_style(Edge("n0", "n1", "loop"), "backward").reversed


def test_a_region_inside_a_region_is_tinted_deeper():
    outer, inner = Region("r0", "net"), Region("r1", "fc", parent="r0")
    assert region_style(outer).fill != region_style(inner).fill
