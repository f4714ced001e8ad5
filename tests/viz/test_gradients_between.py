"""Gradients of tensors in between: drawn where they are kept, or all of them on request."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad.viz import draw
from minigrad.viz.graph.format import NOT_YET
from minigrad.viz.graph.graph import Links


def small():
    a = mg.tensor(2.0, requires_grad=True, name="a")
    b = mg.tensor(3.0, requires_grad=True, name="b")
    h = a * b
    h.name = "h"
    y = (h + a) * h
    y.name = "y"
    return a, h, y


def gradients(graph):
    return {n.name: n.lines for n in graph.nodes.values() if n.kind == "gradient"}


def test_before_backward_a_gradient_in_between_is_a_dash():
    _, h, y = small()
    h.retain_grad()
    assert gradients(draw(y).graph) == {}
    assert gradients(draw(y, values="grad").graph) == {"h.grad": (NOT_YET,), "%1.grad": (NOT_YET,)}
    assert "retain_grad" not in draw(y, values="grad").text


def test_a_gradient_that_was_kept_is_drawn_with_its_number():
    _, h, y = small()
    h.retain_grad()
    y.backward()
    assert gradients(draw(y).graph) == {"h.grad": ("14",)}
    assert h.grad.item() == 14


def test_what_is_kept_hides_no_number_and_a_hook_that_may_change_it_does():
    _, h, y = small()
    h.retain_grad()
    y.backward()
    assert "[0] g·b = 42" in str(draw(y).graph.nodes)
    _, h, y = small()
    h.register_hook(lambda g: g * 2).remove()
    y.backward()
    assert "[0] g·b'" in str(draw(y).graph.nodes)


def test_on_request_every_gradient_that_the_last_backward_gave_is_drawn():
    _, h, y = small()
    y.backward()
    assert gradients(draw(y).graph) == {}
    assert gradients(draw(y, values="grad").graph) == {"h.grad": ("14",), "%1.grad": ("6",)}


def test_what_cannot_be_known_is_a_dash():
    _, h, y = small()
    h.register_hook(lambda grad: None)  # a rerun would call it again
    y.backward()
    graph = draw(y, values="grad").graph
    # what comes before the hook is known
    assert gradients(graph) == {"h.grad": (NOT_YET,), "%1.grad": ("6",)}


def test_the_gradient_stands_between_the_readers_of_a_tensor_and_its_maker():
    _, h, y = small()
    y.backward()
    graph = draw(y, values="grad").graph
    links = Links(graph)
    gradient = next(n for n in graph.nodes.values() if n.name == "h.grad")
    (plus,) = links.before[gradient.id]
    assert (plus.name, plus.lines) == ("+=", ("8 + 6",))
    assert [n.name for n in links.before[plus.id]] == ["MulBackward0", "AddBackward0"]
    assert [n.name for n in links.after[gradient.id]] == ["MulBackward0"]
    assert graph.nodes[gradient.twin].name == "h"


def test_a_player_shows_the_sum_only_after_all_its_parts_arrived():
    _, h, y = small()
    h.retain_grad()
    y.backward()
    events = mg.play(y).events
    told = [e.text for e in events if "h.grad = 14" in e.text]
    assert told == ["Add up += takes MulBackward0, AddBackward0 and gives h.grad = 14"]


def test_values_must_be_true_or_grad():
    with pytest.raises(ValueError, match="unknown values 'all'; known: True, grad"):
        draw(small()[2], values="all")


def test_drawing_gradients_changes_none():
    a, h, y = small()
    y.backward(retain_graph=True)
    before = a.grad.item()
    draw(y, values="grad")
    assert (a.grad.item(), h.grad) == (before, None)
    y.backward()
    assert a.grad.item() == 2 * before
