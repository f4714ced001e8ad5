"""The rules of `test_of_program`, on five hundred random programs of the package's own engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from minigrad.grad_names import is_gradient
from minigrad.viz.adapters.of_program import held_blocks, of_program
from minigrad.viz.adapters.wiring import flat
from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from tests.static.random_programs import program, recipe
from tests.viz.needs import needs_layout
from tests.viz.svg_facts import centres, overlapping
from tests.viz.test_of_program import (  # noqa: F401  (collected here with the programs below)
    test_every_line_is_a_name_in_a_slot_and_every_name_is_a_line_or_a_chip,
    test_every_operator_is_one_node,
    test_every_value_stands_in_a_region_of_its_side,
    test_only_colours_of_the_table_are_used,
)

pytestmark = pytest.mark.xdist_group("pictures of random programs")  # which are drawn once
COUNT = 500


def drawings() -> list[tuple[object, Graph]]:
    programs = [program(recipe(seed, 4 + seed % 25))[0] for seed in range(COUNT)]
    return [(p, of_program(p, detail="pruned")) for p in programs]


@pytest.fixture(scope="module")
def drawn():
    return drawings()


def test_every_grad_op_has_one_twin_the_operator_it_differentiates(drawn):
    for prog, graph in drawn:
        wanted = Counter(
            (op.type, op.forward_op.type) for b in prog.blocks for op in b.ops if differentiates(op)
        )
        backward = [n for n in graph.nodes.values() if n.kind == "grad_op"]
        assert Counter((n.name.split(" ")[0], graph.nodes[n.twin].name) for n in backward) == wanted


def differentiates(op):
    return (
        getattr(op, "forward_op", None) is not None
        and not adds_up(op)
        and op.type != "fill_zeros_like"
    )


def test_the_twin_of_a_forward_operator_knows_it(drawn):
    for _, graph in drawn:
        for node in graph.nodes.values():
            if node.side == "forward" and node.twin is not None:
                assert graph.nodes[node.twin].twin == node.id
                assert graph.nodes[node.twin].side == "backward"


def test_parts_of_a_gradient_are_renamed_nodes_and_a_sum_with_as_many_lines(drawn):
    for prog, graph in drawn:
        sums = [op for b in prog.blocks for op in b.ops if adds_up(op)]
        shown = [n for n in graph.nodes.values() if n.kind == "sum"]
        assert len(shown) == len(sums)
        lines = sorted(sum(e.head == n.id for e in graph.edges) for n in shown)
        assert lines == sorted(len(flat(op.inputs)) for op in sums)


def adds_up(op):
    return op.type == "sum" and op.role == "backward" and all(map(is_gradient, flat(op.inputs)))


def test_zeros_and_pruned_ops_are_those_the_builder_recorded(drawn):
    for prog, graph in drawn:
        kinds = Counter(n.kind for n in graph.nodes.values())
        assert kinds["pruned"] == len(prog.pruned)
        filled = [op for b in prog.blocks for op in b.ops if op.type == "fill_zeros_like"]
        assert kinds["zeros"] == sum(all(map(is_gradient, flat(op.outputs))) for op in filled)


def test_there_is_one_seed_where_there_is_a_backward_part(drawn):
    for prog, graph in drawn:
        kinds = Counter(n.kind for n in graph.nodes.values())
        backward = any(op.role == "backward" for op in prog.blocks[0].ops)
        assert kinds["seed"] >= backward


def test_every_block_is_a_region_joined_to_the_operator_that_holds_it(drawn):
    for prog, graph in drawn:
        held = sum(
            bool(b.ops)
            for block in prog.blocks
            for op in block.ops
            for _, b in held_blocks(op, prog)
        )
        assert sum(e.kind == "sub_block" for e in graph.edges) == held
        idx = {int(r.label.split(":")[0].split(" ")[1]) for r in graph.regions.values()}
        assert idx == {b.idx for b in prog.blocks if b.ops}


@needs_layout
@pytest.mark.parametrize("seed", range(12))
def test_twins_share_a_rank_and_no_boxes_overlap(seed):
    graph = of_program(program(recipe(seed, 4 + seed % 6))[0])
    svg = Picture(graph).svg
    at = centres(svg)
    assert not overlapping(svg)
    for node in graph.nodes.values():
        if node.twin in at:
            assert at[node.id][1] == pytest.approx(at[node.twin][1], abs=1.5), node.name


def test_the_same_program_gives_the_same_bytes_in_every_process():
    code = (
        "import hashlib;"
        "from tests.static.random_programs import program, recipe;"
        "from minigrad.viz.adapters.of_program import of_program; from minigrad.viz.render.dot import to_dot;"
        "graphs = [of_program(program(recipe(k, 20))[0], detail='pruned') for k in range(20)];"
        "print(hashlib.sha256(''.join(map(to_dot, graphs)).encode()).hexdigest())"
    )
    root = Path(__file__).parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}:{root / 'tests'}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(said) == 1
