"""The rules of pictures on random eager graphs of the package's own engine, and on folded programs."""

from __future__ import annotations

import random

import pytest

import minigrad as mg
from minigrad.viz.adapters.names import Names
from minigrad.viz.adapters.of_grad_fn import accumulates, of_grad_fn, walk_order
from minigrad.viz.adapters.of_program import of_program
from minigrad.viz.fold import View, size_of
from minigrad.viz.graph.format import NOT_YET, format_value
from minigrad.viz.graph.graph import is_op
from minigrad.viz.graph.style import NODE_STYLES
from tests.static.random_programs import Eager, program, recipe, run

pytestmark = pytest.mark.xdist_group("pictures of random tensors")  # which are drawn once
SEEDS = range(500)
GRADIENTS = ("gradient", "leaf_gradient", "seed", "accumulate", "grad_op")


def losses(seeds=SEEDS):
    for seed in seeds:
        made = recipe(seed, 4 + seed % 20)
        loss = run(made, [mg.tensor(v, requires_grad=True) for v in made.inputs], Eager())
        if loss.requires_grad:
            yield loss


@pytest.fixture(scope="module")
def drawn():
    """(loss, its nodes, the graph, the graph with every gradient), before backward."""
    return [
        (
            loss,
            walk_order([loss.grad_fn]),
            of_grad_fn([loss], Names()),
            of_grad_fn([loss], Names(), "grad"),
        )
        for loss in losses()
    ]


def test_there_are_hundreds_of_them(drawn):
    assert len(drawn) > 300


def test_every_node_of_the_engine_is_one_operation_on_each_side(drawn):
    for _, order, *graphs in drawn:
        operations = sum(not accumulates(n) for n in order)
        for graph in graphs:
            kinds = [n.kind for n in graph.nodes.values()]
            assert kinds.count("op") == kinds.count("grad_op") == operations
            assert kinds.count("seed") == 1


def test_every_node_has_one_kind_one_side_and_a_twin_that_knows_it(drawn):
    for *_, plain, every in drawn:
        for graph in (plain, every):
            for node in graph.nodes.values():
                assert node.kind in NODE_STYLES
                assert node.side == ("backward" if node.kind in GRADIENTS else "forward")
                if node.kind in ("op", "grad_op", "gradient", "seed"):
                    assert node.twin is None or graph.nodes[node.twin].twin == node.id
                if node.kind in ("grad_op", "gradient"):
                    assert node.twin is not None


def test_lines_are_the_entries_of_next_functions(drawn):
    for _, order, graph, _ in drawn:
        entries = sum(n is not None for node in order for n, _ in node.next_functions)
        assert sum(e.kind == "grad" for e in graph.edges) == entries + 1  # one from the seed


def test_k_readers_of_a_tensor_meet_in_one_sum_with_k_lines(drawn):
    for _, order, _, graph in drawn:
        readers: dict[tuple[int, int], int] = {}
        for node in order:
            for target, number in node.next_functions:
                if target is not None and not accumulates(target):
                    readers[id(target), number] = readers.get((id(target), number), 0) + 1
        sums = [n.id for n in graph.nodes.values() if n.name == "+="]
        lines = [sum(e.head == s for e in graph.edges) for s in sums]
        assert sorted(lines) == sorted(k for k in readers.values() if k > 1)


def test_before_backward_no_gradient_has_a_number_anywhere(drawn):
    for *_, plain, every in drawn:
        for graph in (plain, every):
            for node in graph.nodes.values():
                if node.kind == "gradient":
                    assert node.lines == (NOT_YET,)
                if node.kind == "accumulate" and node.twin:
                    assert node.lines[0].endswith(f"= {NOT_YET}")


def kept_tensors(seed):
    """A random graph of single numbers whose tensors in between are all kept, by name."""
    rng = random.Random(seed)
    values = [mg.tensor(rng.uniform(0.5, 1.5), requires_grad=True) for _ in range(3)]
    for _ in range(rng.randint(3, 12)):
        a, b = rng.choice(values), rng.choice(values)
        values.append(rng.choice([mg.mul, mg.add, lambda a, _: mg.sin(a)])(a, b))
    between = {f"t{i}": v for i, v in enumerate(values[3:-1])}
    return values[-1], between


@pytest.mark.parametrize("seed", range(60))
def test_the_numbers_drawn_are_those_that_retain_grad_keeps(seed):
    y, between = kept_tensors(seed)
    y.backward()
    drawn = of_grad_fn([y], Names(between), "grad")
    oracle, kept = kept_tensors(seed)
    for value in kept.values():
        value.retain_grad()
    oracle.backward()
    shown = {n.name: n.lines[0] for n in drawn.nodes.values() if n.kind == "gradient"}
    wanted = {f"{k}.grad": format_value(v.grad) for k, v in kept.items() if v.grad is not None}
    assert shown == wanted


def test_folding_a_random_program_loses_no_operation_and_no_twin():
    for seed in range(0, 500, 5):
        whole = of_program(program(recipe(seed, 4 + seed % 25))[0])
        small = View(whole, "folded").graph
        assert counted(small) == counted(whole)
        assert all({e.tail, e.head} <= small.nodes.keys() for e in small.edges)
        assert all(n.twin is None or n.twin in small.nodes for n in small.nodes.values())


def counted(graph):
    return size_of(n for n in graph.nodes.values() if is_op(n) and n.kind != "accumulate")
