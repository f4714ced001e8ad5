"""The drawing for a terminal."""

from __future__ import annotations

from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_nodes import of_links
from minigrad.viz.graph.graph import Graph
from minigrad.viz.render.words import to_text
from tests.viz.linked_nodes import Variable, backward, random_variable


def diamond():
    a, b, d = Variable(2, "a"), Variable(3, "b"), Variable(4, "d")
    c = a + b
    e = c * d
    c.name, e.name = "c", "e"
    return e


def test_forward_comes_with_values_and_backward_in_the_order_in_which_it_runs():
    root = diamond()
    backward(root)
    assert to_text(of_links([root], Names())).splitlines() == [
        "e",
        "forward",
        "  a              2   leaf or parameter",
        "  b              3   leaf or parameter",
        "  d              4   leaf or parameter",
        "  c = Add(a, b)  5   y = x0 + x1",
        "  e = Mul(c, d)  20  y = x0·x1; output, loss",
        "backward",
        "  e.grad                                 1 (seed)  seed: backward starts here",
        "  c.grad, d.grad = Mul.backward(e.grad)  4; 5      gx0 = gy·x1 = 4; gx1 = gy·x0 = 5",
        "  a.grad, b.grad = Add.backward(c.grad)  4; 4      gx0 = gy = 4; gx1 = gy = 4; "
        "gradient of a leaf",
    ]


def test_before_backward_every_gradient_is_a_dash():
    text = to_text(of_links([diamond()], Names()))
    backward_part = text.partition("backward")[2]
    assert backward_part.count("—") == 5
    assert "= 4" not in backward_part


def test_every_operation_has_a_line():
    for seed in range(30):
        graph = of_links([random_variable(seed)], Names())
        text = to_text(graph)
        ops = [n for n in graph.nodes.values() if n.kind in ("op", "grad_op", "accumulate")]
        assert sum("(" in line for line in text.splitlines()) >= len(ops)


def test_notes_and_advice_come_last():
    g = Graph(notes=["folded: 3 × (mul)"])
    g.node("leaf", "x")
    assert to_text(g, advice="install it").splitlines()[-2:] == [
        "(folded: 3 × (mul))",
        "(install it)",
    ]


def test_nested_regions_are_indented():
    g = Graph(direction="TB")
    outer, back = g.region("net"), g.region("net_grad", side="backward")
    inner = g.region("fc", parent=outer.id)
    g.node("op", "mul", region=outer.id), g.node("op", "add", region=inner.id)
    g.node("grad_op", "mul_grad", side="backward", region=back.id)
    lines = to_text(g).splitlines()
    assert "  [net]" in lines
    assert "    [fc]" in lines


def test_a_very_long_text_is_cut_and_says_so():
    g = Graph()
    for i in range(1000):
        g.node("leaf", f"x{i}")
    lines = to_text(g).splitlines()
    assert len(lines) < 500
    assert "more lines" in lines[-1]
