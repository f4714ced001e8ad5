"""Pictures of PyTorch's graphs: names, formulas that are true, frames of modules, and nothing changed by looking."""

from __future__ import annotations

import ast
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad.viz.adapters import torch_facts  # noqa: E402
from tests.pytorch import models  # noqa: E402


def formulas(graph):
    return {
        n.name: n.lines or tuple(p for p, _ in n.ports)
        for n in graph.nodes.values()
        if n.kind == "grad_op"
    }


def test_a_small_graph_has_names_values_and_formulas():
    x = torch.tensor(3.0, requires_grad=True)
    w = torch.tensor(2.0, requires_grad=True)
    loss = torch.exp(x * w)
    loss.backward(retain_graph=True)
    graph = mg.draw(loss).graph
    assert formulas(graph) == {"ExpBackward0": ("g·loss",), "MulBackward0": ("[0] g·w", "[1] g·x")}
    lines = {n.name: n.lines for n in graph.nodes.values()}
    assert lines["loss"] == ("403.43",) and lines["x"] == ("3",)
    grads = [n.lines[0] for n in graph.nodes.values() if n.kind == "accumulate"]
    assert sorted(grads) == ["w.grad = 1210.3", "x.grad = 806.86"]


def test_a_constant_that_numpy_cannot_read_is_called_by_its_slot():
    w = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    graph = mg.draw(w * torch.tensor(2, dtype=torch.bfloat16)).graph
    assert [(n.name, n.lines) for n in graph if n.kind == "data"] == [("other of mul", ("2",))]


def test_parameters_are_called_by_their_paths_and_lost_values_keep_their_shapes():
    model = models.mlp()
    out = model(torch.ones(5, 8)).sum()
    graph = mg.draw(out).graph
    names = {n.name: n for n in graph.nodes.values()}
    assert {f"model.{n}" for n, _ in model.named_parameters()} <= {*names}
    assert any(n.lines == ("[5,16] float32",) for n in graph.nodes.values())


def test_a_module_in_a_dictionary_is_called_by_its_plain_name_where_it_has_one():
    model = models.mlp()
    held = {"model": model}
    graph = mg.draw(held["model"](torch.ones(5, 8)).sum()).graph
    names = {n.name for n in graph.nodes.values()}
    assert {f"model.{n}" for n, _ in model.named_parameters()} <= names
    graph = mg.draw(model(torch.ones(5, 8)).sum(), names={"net": model}).graph
    assert {f"net.{n}" for n, _ in model.named_parameters()} <= {
        n.name for n in graph.nodes.values()
    }


def test_an_index_from_the_end_is_a_negative_number():
    x = torch.ones(3, 2, requires_grad=True)
    assert formulas(mg.draw(x[-1].sum()).graph)["SelectBackward0"] == ("put(g, -1)",)


ELEMENTWISE = {
    "Mul": lambda x, y: x * y, "Div": lambda x, y: x / y, "Sub": lambda x, y: x - y, "Pow": lambda x, y: x**3,
    "Sqrt": lambda x, y: x.sqrt(), "Rsqrt": lambda x, y: x.rsqrt(), "Reciprocal": lambda x, y: x.reciprocal(),
    "Exp": lambda x, y: x.exp(), "Expm1": lambda x, y: x.expm1(), "Log": lambda x, y: x.log(), "Neg": lambda x, y: -x,
    "Log2": lambda x, y: x.log2(), "Log10": lambda x, y: x.log10(), "Log1P": lambda x, y: x.log1p(),
    "Sin": lambda x, y: x.sin(), "Cos": lambda x, y: x.cos(), "Tan": lambda x, y: x.tan(), "Asin": lambda x, y: x.asin(),
    "Acos": lambda x, y: x.acos(), "Atan": lambda x, y: x.atan(), "Atan2": torch.atan2, "Sinh": lambda x, y: x.sinh(),
    "Cosh": lambda x, y: x.cosh(), "Tanh": lambda x, y: x.tanh(), "Sigmoid": lambda x, y: x.sigmoid(),
    "Relu": lambda x, y: (x - 0.5).relu(), "LeakyRelu": lambda x, y: F.leaky_relu(x - 0.5), "Erf": lambda x, y: x.erf(),
    "Abs": lambda x, y: (x - 0.5).abs(), "Maximum": torch.maximum, "Minimum": torch.minimum,
    "ClampMin": lambda x, y: x.clamp_min(0.5), "ClampMax": lambda x, y: x.clamp_max(0.5),
    "Softplus": lambda x, y: F.softplus(x), "LogSigmoid": lambda x, y: F.logsigmoid(x), "Softmax": lambda x, y: x.softmax(-1),
    "LogSoftmax": lambda x, y: x.log_softmax(-1), "Mm": lambda x, y: x.view(2, 3) @ y.view(3, 2),
    "Exp2": lambda x, y: x.exp2(), "MseLoss": F.mse_loss,
    "BinaryCrossEntropy": F.binary_cross_entropy, "BinaryCrossEntropyWithLogits": F.binary_cross_entropy_with_logits,
    "Dot": torch.dot,
}  # fmt: skip


@pytest.mark.parametrize("stem", ELEMENTWISE)
def test_a_formula_is_what_the_node_computes(stem):
    torch.manual_seed(0)
    x, y = (torch.rand(6, dtype=torch.float64, requires_grad=True) * 0.8 + 0.1 for _ in range(2))
    x.retain_grad(), y.retain_grad()
    out = ELEMENTWISE[stem](x, y)
    fn = out.grad_fn
    assert torch_facts.stem(fn) == stem
    g = torch.rand_like(out)
    expected = [None if e is None else e.numpy() for e in _given(fn, g)]
    inputs, *texts = torch_facts._table()[stem]
    edges = [to for to, _ in fn.next_functions]
    values = {"g": g.numpy(), "out": out.detach().numpy(), "n": x.numel() if out.dim() == 0 else 1}
    values |= {k: v.detach().numpy() for k, v in torch_facts.saved_values(fn).items()}
    values |= torch_facts.attributes(fn)
    functions = {
        n: getattr(np, n)
        for n in ("exp", "log", "sin", "cos", "sinh", "cosh", "sqrt", "sign", "where", "pi")
    }
    functions |= {
        "sum": lambda a: a.sum(-1, keepdims=True),
        "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    }
    assert len(inputs.split()) == len(edges) or stem == "Pow"
    for text, e in zip(texts, expected, strict=False):
        if e is not None:
            assert np.allclose(eval(text, {}, functions | values), e), text
            ast.parse(text, mode="eval")


def _given(fn, g):
    with torch.no_grad():
        given = fn(g)
    return given if isinstance(given, tuple) else (given,)


def test_the_table_has_as_many_inputs_as_the_nodes():
    torch.manual_seed(0)
    outputs = [
        f()(torch.randn(2, 3, 8, 8))
        for f in (lambda: nn.Conv2d(3, 4, 3), lambda: nn.BatchNorm2d(3), lambda: nn.GroupNorm(3, 3))
    ]
    outputs += [
        models.GPT()(torch.zeros(1, 4, dtype=int)),
        nn.LSTM(3, 4)(torch.randn(5, 2, 3))[0],
        models.cnn()(torch.randn(2, 1, 12, 12)),
    ]
    outputs += [
        nn.TransformerEncoderLayer(8, 2)(torch.randn(3, 2, 8)),
        models.Block(8, 2, True)(torch.randn(1, 4, 8)),
    ]
    for out in outputs:
        waiting, seen = [out.grad_fn], set()
        while waiting:
            fn = waiting.pop()
            if fn in seen:
                continue
            seen.add(fn)
            waiting += [to for to, _ in fn.next_functions if to is not None]
            inputs = torch_facts.inputs_of(fn, len(fn.next_functions))
            known = torch_facts._table().get(torch_facts.stem(fn), [""])[0]
            assert not known or not any(" " in name for name in inputs), fn.name()


@pytest.mark.parametrize(
    ("build", "example", "boxes"),
    [
        (
            lambda: models.ResNet18(),
            lambda: [torch.randn(2, 3, 64, 64)],
            [f"model.layer{k}: Sequential" for k in range(1, 5)],
        ),
        (
            lambda: models.GPT(2000, 64, 768, 12, 12),
            lambda: [torch.randint(64, (1, 16))],
            [f"model.h.{k}: Block" for k in range(12)],
        ),
    ],
    ids=["ResNet-18", "GPT-2"],
)
def test_a_large_model_is_folded_by_module_within_three_seconds(build, example, boxes):
    model = build()
    out = model(*example()).sum()
    begin = time.process_time()
    picture = mg.draw(out)
    assert picture.svg is not None
    assert time.process_time() - begin < 3
    folded = [n for n in picture.graph.nodes.values() if n.kind == "folded"]
    for side in ("forward", "backward"):
        assert {n.name for n in folded if n.side == side} == {*boxes}
    opened = picture.view.open(next(n.id for n in folded))
    assert opened.startswith("Opened") and len(picture.view.graph.nodes) > len(picture.graph.nodes)


def test_a_cell_that_runs_in_a_loop_is_a_repeat():
    cell, h = nn.GRUCell(3, 4), torch.zeros(2, 4)
    for _ in range(20):
        h = cell(torch.randn(2, 3), h)
    folded = [n.name for n in mg.draw(h.sum()).graph.nodes.values() if n.kind == "folded"]
    assert any(name.startswith("20 × ") for name in folded)


def test_a_module_is_drawn_with_its_parameters():
    model = models.GPT(layers=2)
    graph = mg.draw(model).graph
    assert any("106" in note or "numbers" in note for note in graph.notes)
    small = mg.draw(models.mlp()).graph
    assert [n.name for n in small.nodes.values()] == ["weight", "bias"] * 3


def test_a_player_tells_forward_and_backward():
    x = torch.tensor(3.0, requires_grad=True)
    loss = x * x
    loss.backward(retain_graph=True)
    text = str(mg.play(loss))
    assert "Forward mul takes x" in text and "x.grad = 6" in text


def test_drawing_changes_nothing_and_warns_of_nothing():
    calls = []
    model, x = models.cnn(), torch.randn(3, 1, 12, 12, requires_grad=True)
    model[0].weight.register_hook(lambda g: calls.append(1))
    hidden = model[:4](x)
    hidden.register_hook(lambda g: calls.append(2))
    loss = model[4:](hidden).pow(2).sum()
    everything = [x, hidden, loss, *model.parameters(), *model.buffers()]
    before = [(t._version, t.requires_grad, t.detach().clone()) for t in everything]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thing in (loss, [loss, hidden], loss.grad_fn, model):
            str(mg.draw(thing)), mg.draw(thing).svg
        str(mg.play(loss))
    assert calls == []
    assert all(p.grad is None for p in model.parameters())
    for t, (version, asked, value) in zip(everything, before, strict=True):
        assert (t._version, t.requires_grad) == (version, asked) and torch.equal(t, value)
    loss.backward()
    assert sorted(calls) == [1, 2]
    assert model[0].weight.grad is not None


def test_a_graph_behind_checkpoint_is_drawn_without_running_it():
    from torch.utils.checkpoint import checkpoint

    ran = []
    lin = nn.Linear(3, 3)

    def part(v):
        ran.append(1)
        return torch.tanh(lin(v))

    loss = checkpoint(part, torch.randn(2, 3), use_reentrant=False).sum()
    assert "TanhBackward0" in mg.draw(loss).text and ran == [1]


def test_a_freed_graph_and_a_node_without_formula_are_drawn():
    x = torch.randn(3, 3, requires_grad=True)
    loss = torch.linalg.det(x)
    loss.backward()
    graph = mg.draw(loss).graph
    assert any("no formula is known of LinalgDetBackward0" in note for note in graph.notes)


def test_names_of_others_are_not_taken_for_pytorchs():
    fake = SimpleNamespace(next_functions=(), grad=None)
    assert torch_facts.kind_of(fake) == "" and torch_facts.kind_of(np.ones(2)) == ""
    assert torch_facts.kind_of(mg.tensor(1.0)) == ""


def test_a_forward_pass_that_failed_is_drawn_up_to_the_error():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(7, 2))
    with pytest.raises(RuntimeError) as caught:
        model(torch.ones(3, 4))
    graph = mg.draw(caught.value).graph
    (failed,) = (n for n in graph.nodes.values() if n.kind == "pruned")
    given = {graph.nodes[e.tail].name for e in graph.edges if e.head == failed.id}
    assert failed.name == "Linear"
    assert {"model.2.weight", "model.2.bias"} < given
    assert "relu" in {n.name for n in graph.nodes.values()}


def test_a_first_layer_that_failed_is_drawn_in_the_frame_of_its_module():
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 4)), nn.ReLU())
    with pytest.raises(RuntimeError) as caught:
        model(torch.ones(2, 7))
    graph = mg.draw(caught.value).graph
    (weight,) = (n for n in graph if n.name == "model.0.0.weight")
    assert graph.regions[weight.region].label == "model.0: Sequential"


def test_a_block_that_is_a_dictionary_in_a_list_has_a_frame():
    body = nn.ModuleDict({"blocks": nn.ModuleList()})
    for _ in range(2):
        body.blocks.append(nn.ModuleDict({"up": nn.Linear(2, 4), "down": nn.Linear(4, 2)}))
    model = nn.ModuleList([nn.Linear(2, 2)])
    model.body = body
    h = model[0](torch.ones(1, 2))
    for block in body.blocks:
        h = h + block.down(block.up(h).tanh())
    titles = {r.label for r in mg.draw(h.sum(), detail="full").graph.regions.values()}
    assert {"model.body.blocks.0: ModuleDict", "model.body.blocks.1: ModuleDict"} <= titles
    assert not any(t.startswith(("model.body: ", "model.body.blocks: ")) for t in titles)
