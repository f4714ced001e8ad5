"""PyTorch's graphs drawn from what was written down of them: these tests run without torch, too."""

from __future__ import annotations

import json

import pytest

import minigrad as mg
from minigrad.viz.adapters import torch_facts
from tests.pytorch import record

RECORDED = json.loads(record.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_graph_is_drawn_with_names_shapes_and_formulas(name):
    root = record.nodes(RECORDED[name])[0]
    graph = mg.draw(root, detail="full").graph
    names = {n.name for n in graph.nodes.values()}
    rows = RECORDED[name]
    assert {r["variable"] for r in rows if r["variable"]} <= names
    assert sum(n.kind == "grad_op" for n in graph.nodes.values()) == sum(
        not r["variable"] for r in rows
    )
    assert not any("no formula" in note for note in graph.notes)
    lines = {line for n in graph.nodes.values() for line in (*n.lines, *(p for p, _ in n.ports))}
    assert any("g @ " in line for line in lines) and any("float32" in line for line in lines)


def test_repeats_of_a_recorded_graph_fold():
    graph = mg.draw(record.nodes(RECORDED["gpt"])[0]).graph
    assert len(graph.nodes) < 150


def test_every_row_of_the_table_is_a_formula_for_every_input():
    for stem, (inputs, *formulas) in torch_facts._table().items():
        node = type(f"{stem}Backward0", (), {"name": lambda self, s=stem: f"{s}Backward0"})()
        count = len(inputs.split()) or 2
        assert all(torch_facts.formulas_of(node, count)), stem
        assert all(formulas), stem
    assert len(torch_facts._table()) >= 100
