"""Follow the gradient: the paths to a leaf, their factors, what each brings, and the sum."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.viz.graph.style import edge_style
from steps import step07_lifetime as step07
from tests.static import random_programs
from tests.viz.graphs import Cube
from tests.viz.test_events import Add, Square, Value


def leaf(value, name):
    return mg.tensor(value, requires_grad=True, name=name)


def told(root, name):
    graph = mg.draw(root).graph
    (node,) = (n for n in graph.nodes.values() if n.name == name)
    return graph, node.data.get("paths")


def test_a_leaf_knows_its_paths_with_factors_and_their_sum():
    x, b = leaf(2.0, "x"), leaf(3.0, "b")
    y = x**3 + b * x
    y.backward()
    _, paths = told(y, "x")
    assert paths["sum"] == "x.grad = 15 = 3 + 12"
    assert sorted((p["gave"], p["steps"]) for p in paths["paths"]) == [
        ("12", ["AddBackward0[0] ·1", "PowBackward0[0] ·12"]),
        ("3", ["AddBackward0[1] ·1", "MulBackward0[1] ·3"]),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_paths_of_random_graphs_are_lines_of_the_picture_and_add_up(seed):
    rng = np.random.default_rng(seed)
    leaves = [leaf(float(v), n) for n, v in zip("abc", rng.uniform(0.5, 2, 3), strict=True)]
    values = list(leaves)
    for _ in range(5):
        u, v = (values[k] for k in rng.integers(len(values), size=2))
        values.append([u * v, u + v, mg.tanh(u) - v][rng.integers(3)])
    y = sum(values[3:], values[0])
    y.backward()
    graph = mg.draw(y).graph
    lines = {(e.tail, e.head) for e in graph.edges}
    for x in leaves:
        nodes = [n for n in graph.nodes.values() if n.name == x.name]
        paths = nodes[0].data.get("paths") if nodes else None
        if paths is None:
            continue
        total = 0.0
        for path in paths["paths"]:
            assert set(itertools.pairwise(path["nodes"])) <= lines
            factors = [step.rpartition("·")[2] for step in path["steps"]]
            if all(f.replace("-", "").replace(".", "").isdigit() for f in factors):
                product = np.prod([float(f) for f in factors])  # else a formula: what met was zero
                assert float(path["gave"]) == pytest.approx(product, rel=1e-3)
            total += float(path["gave"])
        assert total == pytest.approx(x.grad.item(), rel=1e-3)


def test_a_function_of_ones_own_is_followed_and_does_not_run_again():
    x = leaf(2.0, "x")
    y = Cube.apply(x) * x
    y.backward()
    _, paths = told(y, "x")
    assert paths["sum"] == "x.grad = 32 = 8 + 24"
    assert paths["paths"][1]["steps"] == ["MulBackward0[0] ·2", "CubeBackward[0] ·12"]


@pytest.mark.parametrize("seed", range(30))
def test_paths_in_random_programs_are_lines_of_the_picture_and_add_up(seed):
    made, scope = random_programs.program(random_programs.recipe(seed, 12)), static.Scope()
    with np.errstate(all="ignore"):
        static.Executor().run(made[0], {}, [made[1]], scope=scope)
    graph = mg.draw((made[0], scope), detail="full").graph
    lines = {(e.tail, e.head) for e in graph.edges}
    for node in graph.nodes.values():
        if "paths" not in node.data or node.side == "forward":
            continue
        paths = node.data["paths"]["paths"]
        for path in paths:
            assert set(itertools.pairwise(path["nodes"][:-1])) <= lines
        gave = [p["gave"] for p in paths]
        if all(g.lstrip("-").replace(".", "").isdigit() for g in gave):
            wanted = scope.find(node.name).item()
            assert sum(map(float, gave)) == pytest.approx(wanted, rel=1e-3, abs=1e-3)


def test_programs_nets_and_linked_nodes_are_followed_by_the_same_rule():
    prog, scope = static.Program(), static.Scope()
    with static.program_guard(prog):
        s = static.parameter("s", 2.0)
        loss = s * s * s
        static.append_backward(loss)
    static.Executor().run(prog, {}, [loss], scope=scope)
    graph = mg.draw((prog, scope)).graph
    (node,) = (n for n in graph.nodes.values() if n.name == "s@GRAD")
    assert node.data["paths"]["sum"] == "s@GRAD = 12 = 4 + 4 + 4"
    x, y = linked_square_plus_itself()
    graph = mg.draw(y, names={"x": x}).graph
    (node,) = (n for n in graph.nodes.values() if n.name == "x.grad")
    assert node.data["paths"]["sum"] == "x.grad = 7 = 1 + 6"
    assert node.data["paths"]["paths"][1]["steps"] == ["Add.backward[0] ·1", "Square.backward ·6"]


def linked_square_plus_itself():
    """y = x² + x at 3, by the linked nodes of a small engine of one's own."""
    x = Value(np.array(3.0))
    square = Square()(x)
    y = Add()(square, x)
    y.grad, square.grad, x.grad = np.array(1.0), np.array(1.0), np.array(7.0)
    return x, y


def test_what_a_leaf_does_not_keep_is_not_told_as_its_sum():
    x, y = linked_square_plus_itself()
    x.grad = np.array(1.0)  # an engine that assigns: the earlier part is lost
    graph = mg.draw(y, names={"x": x}).graph
    assert not any("paths" in n.data for n in graph.nodes.values())


def test_arrays_have_the_formula_of_each_step_for_a_factor():
    x = leaf([1.0, 2.0], "x")
    y = (x * x).sum()
    y.backward()
    _, paths = told(y, "x")
    assert paths["sum"] == "x.grad = [2, 4] = [1, 2] + [1, 2]"
    assert paths["paths"][0]["steps"][-1].endswith("g·x")


def test_an_explanation_can_be_drawn_and_what_is_off_its_paths_is_grey():
    x, b = leaf(2.0, "x"), leaf(3.0, "b")
    y = x**3 + b * 2.0
    y.backward()
    picture = mg.draw(mg.why(x), names={"b": b})
    states = {n.name: n.state for n in picture.graph.nodes.values()}
    assert states["x"] == "done"
    assert states["b"] == "pending"
    assert picture.graph.title == "x.grad = 12"


def test_too_many_paths_are_not_followed_and_the_picture_says_so():
    x = leaf(1.0, "x")
    y = x * 1.0
    for _ in range(6):
        y = y + y
    y.backward()
    assert told(y, "x")[1] is None
    assert any("not drawn" in note for note in mg.draw(mg.why(x)).graph.notes)


def test_lines_of_gradients_are_as_wide_as_their_norms():
    x = leaf(1.0, "x")
    y = x * 1e-4 * 1e4 * 1e4
    y.backward()
    graph = mg.draw(y).graph
    known = [(e.norm, edge_style(e, "backward").width) for e in graph.edges if e.norm is not None]
    widths = [width for _, width in sorted(known)]
    assert len(known) == 4  # with that of the seed
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


OFF = "all => all.map(node => node.getAttribute('aria-label').split(':')[0])"


@pytest.mark.browser
def test_a_click_or_enter_on_a_leaf_follows_its_gradient_without_a_kernel(browser, tmp_path):
    x, b = leaf(2.0, "x"), leaf(3.0, "b")
    y = x**3 + b * x
    y.backward()
    page = browser.new_page()
    prog, scope = static.Program(), static.Scope()
    with static.program_guard(prog):
        v, c = static.parameter("x", 2.0), static.parameter("b", 3.0)
        loss = v**3 + c * v
        static.append_backward(loss)
    static.Executor().run(prog, {}, [loss], scope=scope)
    for target in (mg.play(y), mg.draw(y), mg.draw((prog, scope))):
        page.goto(target.save(tmp_path / "page.html").as_uri())
        page.wait_for_selector("svg.mg-picture")
        page.focus("g.node.fwd[data-paths]")
        page.keyboard.press("Enter")
        told = page.inner_text(".mg-follow strong")
        assert told in ("x.grad = 15 = 3 + 12", "x@GRAD = 15 = 12 + 3", "x@GRAD = 15 = 3 + 12")
        off = page.eval_on_selector_all("g.node.mg-off", OFF)
        assert "b" in off
        assert "x" not in off
        page.click(".mg-path >> nth=0")
        fewer = page.eval_on_selector_all("g.node.mg-off", OFF)
        assert len(fewer) > len(off)
        page.keyboard.press("Escape")
        assert not page.is_visible(".mg-follow")
        assert page.eval_on_selector_all("g.mg-off", "all => all.length") == 0
    page.close()


def test_a_picture_keeps_no_graph_and_no_gradient_alive():
    def drawn(x):
        y = x * x * x
        y.backward()
        return mg.draw(y), weakref.ref(getattr(y, "grad_fn", None) or y.creator)

    for x in (leaf(3.0, "x"), step07.Variable(np.array(3.0))):
        gc.collect()
        gc.disable()
        try:
            picture, probe = drawn(x)
            assert probe() is None
        finally:
            gc.enable()
        assert all(edge.carries is edge.pull is None for edge in picture.graph.edges)
