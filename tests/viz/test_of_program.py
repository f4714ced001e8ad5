"""Pictures of programs, judged by their structure: on the samples and on random programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from minigrad.grad_names import EMPTY, is_gradient
from minigrad.viz.adapters.of_program import is_program, of_program
from minigrad.viz.adapters.wiring import ported
from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture, draw
from minigrad.viz.render import layout
from minigrad.viz.render.dot import to_dot
from tests.viz import sample_programs as samples
from tests.viz.needs import needs_layout
from tests.viz.palette import palette
from tests.work import calls

SAMPLES = [samples.shared_w, samples.with_sgd, samples.while_loop, samples.zeros_and_pruned]
RANDOM = range(500)


def graphs():
    """(program, graph) for every sample and every random program."""
    programs = [make() for make in SAMPLES] + [samples.random_program(seed) for seed in RANDOM]
    return [(p, of_program(p, detail="pruned")) for p in programs]


@pytest.fixture(scope="module")
def drawn():
    return graphs()


def ops_of(graph: Graph):
    return [n for n in graph.nodes.values() if n.number is not None]


def named(graph: Graph, name: str):
    return [n for n in graph.nodes.values() if n.name == name]


def only(graph: Graph, name: str):
    (found,) = named(graph, name)
    return found


# ---- rules that hold for every program ---------------------------------------------------------


def test_every_operator_is_one_node(drawn):
    for program, graph in drawn:
        wanted = Counter(op.type for block in program.blocks for op in block.ops)
        shown = Counter(n.name.split(" ")[0] for n in ops_of(graph))
        assert shown == wanted


def test_every_line_is_a_name_in_a_slot_and_every_name_is_a_line_or_a_chip(drawn):
    for program, graph in drawn:
        lines = Counter()
        for edge in graph.edges:
            if edge.kind in ("flow", "grad", "accumulate"):
                value = graph.nodes[edge.tail if edge.head_port else edge.head].name
                op = graph.nodes[edge.head if edge.head_port else edge.tail]
                lines[op.name.split(" ")[0], edge.head_port or edge.tail_port, value] += 1
        wanted = Counter()
        for block in program.blocks:
            for op in block.ops:
                for way, slots in (("in", op.inputs), ("out", op.outputs)):
                    wanted.update(shown_triples(op, way, slots, block, program))
        assert lines == wanted


def shown_triples(op, way, slots, block, program):
    """The (type, port, name) that are drawn as lines: on the backward side only gradients are."""
    backward = op.role in ("backward", "optimize") or in_grad_block(block, program)
    seen = set()
    for port, name in ported(slots):
        if way == "in" and backward and not is_gradient(name):
            continue
        if name == EMPTY and name in seen:
            continue
        seen.add(name)
        yield op.type, port, name


def in_grad_block(block, program):
    holders = [op for b in program.blocks for op in b.ops if op.attrs.get("sub_block") == block.idx]
    return any(op.role == "backward" for op in holders)


def test_every_grad_op_has_one_twin_and_twins_know_each_other(drawn):
    for _, graph in drawn:
        for node in graph.nodes.values():
            if node.kind == "grad_op":
                assert node.twin is not None, node.name
            if node.twin is not None:
                twin = graph.nodes[node.twin]
                assert twin.twin == node.id
                assert {node.side, twin.side} == {"forward", "backward"}


def test_every_gradient_stands_beside_its_variable(drawn):
    for _, graph in drawn:
        for node in graph.nodes.values():
            if node.kind in ("gradient", "leaf_gradient", "zero"):
                assert node.twin is not None, node.name
                assert graph.nodes[node.twin].name == node.name[: node.name.rindex("@GRAD")]


def test_k_parts_of_a_gradient_are_k_renamed_nodes_and_one_sum_with_k_lines(drawn):
    for program, graph in drawn:
        sums = [op for b in program.blocks for op in b.ops if op.type == "sum"]
        shown = [n for n in graph.nodes.values() if n.kind == "sum"]
        assert len(shown) == len(sums)
        assert sorted(len(op.inputs["xs"]) for op in sums) == sorted(
            sum(e.head == n.id and graph.nodes[e.tail].kind == "renamed" for e in graph.edges)
            for n in shown
        )


def test_zeros_and_pruned_ops_are_those_the_builder_recorded(drawn):
    for program, graph in drawn:
        kinds = Counter(n.kind for n in graph.nodes.values())
        assert kinds["pruned"] == len(program.pruned)
        filled = sum(op.type == "fill_zeros_like" for b in program.blocks for op in b.ops)
        assert kinds["zeros"] == kinds["zero"] == filled


def test_pruned_ops_are_shown_on_request_only():
    graph = of_program(samples.zeros_and_pruned())
    assert not [n for n in graph.nodes.values() if n.kind == "pruned"]


def test_there_is_one_region_per_block_and_side(drawn):
    for program, graph in drawn:
        shown = Counter(r.label.split(":")[0].split(" ")[1] for r in graph.regions.values())
        assert set(map(int, shown)) == {b.idx for b in program.blocks if b.ops}
        assert all(count == 1 for idx, count in shown.items() if idx != "0")
        assert len({r.label for r in graph.regions.values()}) == len(graph.regions)


def test_every_value_stands_in_a_region_of_its_side(drawn):
    for _, graph in drawn:
        for node in graph.nodes.values():
            assert node.region is not None, node.name
            assert graph.regions[node.region].side == node.side


def test_the_seed_comes_once_and_without_backward_there_is_no_gradient(drawn):
    for program, graph in drawn:
        kinds = Counter(n.kind for n in graph.nodes.values())
        has_backward = any(op.role == "backward" for op in program.blocks[0].ops)
        assert kinds["seed"] == (1 if has_backward else 0)
        if not has_backward:
            assert not any(is_gradient(n.name) for n in graph.nodes.values())


def test_a_sub_block_is_joined_to_the_operator_that_holds_it(drawn):
    for program, graph in drawn:
        held = sum("sub_block" in op.attrs for b in program.blocks for op in b.ops)
        assert sum(e.kind == "sub_block" for e in graph.edges) == held
        assert sum(n.bold for n in graph.nodes.values()) == held


def test_only_colours_of_the_table_are_used(drawn):
    known = {c.lower() for c in palette()}
    for _, graph in drawn[:40]:
        source = to_dot(graph).lower()
        found = {source[i : i + 7] for i in range(len(source)) if source[i] == "#"}
        colours = {c for c in found if all(d in "0123456789abcdef" for d in c[1:])}
        assert colours - known == set()


def test_the_same_program_gives_the_same_bytes_in_every_process():
    code = (
        "import hashlib; from tests.viz import sample_programs as s;"
        "from minigrad.viz.render.dot import to_dot;"
        "from minigrad.viz.adapters.of_program import of_program;"
        "ps = [s.while_loop(), s.zeros_and_pruned(), *map(s.random_program, range(30))];"
        "t = ''.join(to_dot(of_program(p, detail='pruned')) for p in ps);"
        "print(hashlib.sha256(t.encode()).hexdigest())"
    )
    root = str(Path(__file__).parents[2])
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(said) == 1


# ---- layout ------------------------------------------------------------------------------------


def positions(graph: Graph):
    """Node id -> (x, y, width, height), from Graphviz."""
    plain = layout.layout(to_dot(graph), "plain")
    rows = [line.split() for line in plain.decode().splitlines()]
    return {r[1]: tuple(map(float, r[2:6])) for r in rows if r[0] == "node" and r[1] in graph.nodes}


@needs_layout
@pytest.mark.parametrize("make", [*SAMPLES, *range(12)])
def test_twins_share_a_rank_forward_stands_left_and_no_boxes_overlap(make):
    program = samples.random_program(make) if isinstance(make, int) else make()
    graph = of_program(program, detail="pruned")
    at = positions(graph)
    for node in graph.nodes.values():
        if node.twin and node.side == "forward":
            (x, y, *_), (x2, y2, *_) = at[node.id], at[node.twin]
            assert abs(y - y2) < 0.02, (node.name, y, y2)
            assert x < x2, f"{node.name} stands right of {graph.nodes[node.twin].name}"
    boxes = list(at.items())
    for i, (one, (x, y, w, h)) in enumerate(boxes):
        for other, (x2, y2, w2, h2) in boxes[i + 1 :]:
            apart = abs(x - x2) >= (w + w2) / 2 - 0.01 or abs(y - y2) >= (h + h2) / 2 - 0.01
            assert apart, (graph.nodes[one].name, graph.nodes[other].name)


@needs_layout
def test_sub_blocks_stand_below_the_block_that_holds_them():
    graph = of_program(samples.while_loop())
    at = positions(graph)
    strong = {r.id for r in graph.regions.values() if r.strong}
    inner = [
        at[n.id][1] for n in graph.nodes.values() if n.region in strong and n.side == "forward"
    ]
    outer = [
        at[n.id][1] for n in graph.nodes.values() if n.region not in strong and n.side == "forward"
    ]
    assert max(inner) < min(outer)  # Graphviz counts y upwards


# ---- single facts ------------------------------------------------------------------------------


def test_a_shared_parameter_has_two_renamed_gradients_and_their_sum():
    graph = of_program(samples.shared_w())
    assert [only(graph, f"w@GRAD@RENAME@{k}").kind for k in (0, 1)] == ["renamed", "renamed"]
    w, gradient = only(graph, "w"), only(graph, "w@GRAD")
    assert (w.kind, gradient.kind, w.twin) == ("leaf", "leaf_gradient", gradient.id)
    assert only(graph, "sum").kind == "sum"


def test_a_grad_op_says_what_it_reads_and_shapes_stay_in_the_tooltip():
    graph = of_program(samples.shared_w())
    reads = {n.number: n.reads for n in ops_of(graph) if n.kind == "grad_op"}
    assert reads[10] == ("h2", "w")
    assert reads[9] == ()
    assert reads[7] == ()
    mean_grad = next(n for n in ops_of(graph) if n.number == 7)
    assert "only the shape of: sq" in mean_grad.tooltip


def test_the_value_of_a_name_is_shown_and_what_is_not_there_yet_is_a_dash():
    values = {"w": np.eye(2), "loss": np.array(0.5)}
    graph = of_program(samples.shared_w(), values)
    assert only(graph, "loss").lines == ("0.5",)
    assert only(graph, "w").lines == ("[[1, 0], [0, 1]]", "parameter")
    assert only(graph, "w@GRAD").lines == ("—",)


def test_a_loop_shows_versions_step_scopes_and_what_goes_round():
    graph = of_program(samples.while_loop())
    assert only(graph, "step_scopes").kind == "scopes"
    words = {n.lines[-1] for n in named(graph, "s")}
    assert words == {"[2] before the loop", "[2] after the loop", "[2] block 0", "[2] next"}
    loops = [(graph.nodes[e.tail].name, e.label) for e in graph.edges if e.kind == "loop"]
    assert loops == [
        ("s", "next step"),
        ("i", "next step"),
        ("s@GRAD", "previous step"),
    ]
    assert "+= over steps" in named(graph, "w@GRAD")[1].lines[-1]
    assert only(graph, EMPTY).kind == "data"


def test_a_loop_may_say_what_goes_round_as_lists_and_as_a_dictionary():
    p = samples.Program()
    body = p.block(0)
    body.op("square", {"x": "a"}, {"out": "a_next"})
    body.op("exp", {"x": "b"}, {"out": "b_next"})
    listed = {"carried": ["a"], "next": ["a_next"], "carry": {"b": "b_next"}}
    p.blocks[0].op("while", {}, {"out": ["c"]}, sub_block=1, **listed)
    graph = of_program(p)
    loops = [
        (graph.nodes[e.tail].name, graph.nodes[e.head].name)
        for e in graph.edges
        if e.kind == "loop"
    ]
    assert loops == [("a_next", "a"), ("b_next", "b")]


def test_a_shape_may_be_an_array_where_no_dtype_is_known():
    p = samples.Program()
    p.blocks[0].var("x", dtype=None)
    p.blocks[0].vars["x"].shape = np.array([2, 3])
    p.blocks[0].op("square", {"x": "x"}, {"out": "y"})
    assert only(of_program(p), "x").lines == ("[2,3]",)


def test_only_the_last_version_of_a_name_has_the_value_that_a_scope_holds():
    program = samples.Program()
    program.blocks[0].var("v", (2,))
    for _ in range(2):
        program.blocks[0].op("square", {"x": "v"}, {"out": "v"})
    versions = named(of_program(program, {"v": np.array([0.25, 16.0])}), "v")
    assert ["[0.25, 16]" in n.lines for n in versions] == [False, False, True]
    assert ["[0.25, 16]" in n.tooltip for n in versions] == [False, False, True]


def test_an_update_stands_among_the_gradients_and_makes_a_new_version():
    graph = of_program(samples.with_sgd())
    sgd = only(graph, "sgd")
    assert (sgd.kind, sgd.side, sgd.reads) == ("op", "backward", ("w", "lr"))
    before, after = named(graph, "w")
    assert after.lines == ("[2,2] updated",)
    assert before.twin == only(graph, "w@GRAD").id


def test_a_name_written_several_times_is_one_node_per_version():
    program = samples.Program()
    block = program.blocks[0]
    block.var("v", (2,))
    for _ in range(3):
        block.op("square", {"x": "v"}, {"out": "v"})
    graph = of_program(program)
    assert [n.lines for n in named(graph, "v")] == [
        ("[2]",),
        ("[2] version 1",),
        ("[2] version 2",),
        ("[2] version 3",),
    ]


def test_grad_ops_without_forward_op_find_their_twins_by_name():
    for make in SAMPLES:
        program = make()
        for block in program.blocks:
            for op in block.ops:
                op.forward_op = None
        graph = of_program(program)
        assert all(n.twin for n in graph.nodes.values() if n.kind == "grad_op")


def test_a_program_of_the_package_is_drawn_with_its_loss_seed_sum_and_zeros():
    import minigrad as mg
    from minigrad import static

    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [-1, 2]), static.parameter("w", np.eye(2))
        left, _ = mg.split(mg.matmul(mg.relu(mg.matmul(x, w)), w), 2, axis=1)
        loss = mg.mean(left * left)
        static.append_backward(loss)
    graph = of_program(program)
    kinds = Counter(n.kind for n in graph.nodes.values())
    assert only(graph, loss.name).kind == "output"
    assert (kinds["seed"], kinds["sum"], kinds["renamed"], kinds["zeros"]) == (1, 2, 4, 1)
    assert all(n.twin for n in graph.nodes.values() if n.kind == "grad_op")


def test_a_loop_of_the_package_carries_its_values_and_has_blocks_for_body_and_condition():
    import minigrad as mg
    from minigrad import static

    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", np.array([2.0, 3.0]))
        _, last = static.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [mg.sum(x) * 0, x]
        )
        static.append_backward(mg.sum(last))
    graph = of_program(program)
    labels = [r.label.split(": ")[1] for r in graph.regions.values() if r.strong]
    assert sorted(labels) == ["condition", "loop body", "one step backwards"]
    assert Counter(e.label for e in graph.edges if e.kind == "loop") == {
        "next step": 2,
        "previous step": 1,
    }
    assert Counter(n.kind for n in graph.nodes.values())["scopes"] == 1


def test_draw_takes_a_program_alone_and_with_values():
    assert is_program(samples.shared_w())
    assert not is_program(np.zeros(3))
    assert draw(samples.shared_w()).graph.title == "Program: 6 ops, 8 grad ops"
    assert "0.5" in draw((samples.shared_w(), {"loss": 0.5})).text


def test_a_chain_of_thousands_of_blocks_and_ops_needs_no_recursion():
    program = samples.Program()
    inner = program.blocks[0]
    for i in range(1500):
        inner.op("relu", {"x": "a"}, {"out": "a"})
        block = program.block(parent=i)
        inner.op("cond", {"x": "a"}, {"out": "a"}, sub_block=block.idx)
        inner = block
    inner.op("relu", {"x": "a"}, {"out": "a"})
    assert len(of_program(program).regions) == 1501


def test_ten_thousand_ops_become_a_folded_picture_for_bounded_work():
    picture = draw(samples.big_program(10_000))
    assert calls(lambda: (picture.graph, picture.svg)) < 15_000_000
    assert len(picture.graph.nodes) <= 400
    assert picture.graph.notes
    assert picture.svg is not None or not layout.available()


def test_a_small_program_is_not_folded():
    graph = draw(samples.shared_w()).graph
    assert not graph.notes
    assert len(Picture(graph).graph.nodes) == 32


def test_an_attr_that_is_a_number_of_numpy_is_drawn_as_one_of_python():
    from minigrad import static

    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2])
        attrs = {"scale": np.float64(2.5), "bias": 0.0}
        prog.global_block().append_op("scale", {"x": [x]}, {"out": ["y"]}, attrs)
    lines = [n.lines for n in draw(prog).graph.nodes.values() if n.kind == "op"]
    assert "scale=2.5" in str(lines)
