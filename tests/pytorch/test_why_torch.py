"""mg.why of PyTorch: scripts with a missing or wrong gradient whose cause is known, and healthy ones."""

from __future__ import annotations

import gc
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError

torch = pytest.importorskip("torch")

HERE = Path(__file__).parent
HEAD = "import numpy as np, torch, torch.nn as nn, torch.nn.functional as F\nfrom minigrad import why\n"
ALARMS = ("NaN", "infinite", "every number of it is 0", "vanishes", "explodes", "has no gradient", ".grad is ",
          "does not hold", "cannot be run", "repair")  # fmt: skip


def scripts(name):
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def answer(name, case, folder):
    """What why says at the end of a script, run as a file of its own."""
    path = folder / f"{name}.py"
    text = HEAD + case["script"] + f"answer = {case['ask']}\n"
    path.write_text(text, encoding="utf-8")
    torch.manual_seed(0)
    variables = {"__name__": "__main__"}
    exec(compile(text, str(path), "exec"), variables)
    return variables


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns of some causes itself
@pytest.mark.parametrize("name", scripts("broken"))
def test_the_cause_of_a_missing_or_wrong_gradient_is_named(name, tmp_path):
    case = scripts("broken")[name]
    told = str(answer(name, case, tmp_path)["answer"])
    assert [piece for piece in case["says"] if piece not in told] == [], told


@pytest.mark.parametrize("name", scripts("healthy"))
def test_a_healthy_gradient_raises_no_alarm(name, tmp_path):
    case = scripts("healthy")[name]
    told = str(answer(name, case, tmp_path)["answer"])
    assert "the gradient of" in told
    assert [alarm for alarm in ALARMS if alarm in told] == [], told


def tensors_alive():
    gc.collect()
    return sum(issubclass(type(x), torch.Tensor) for x in gc.get_objects())


def test_why_changes_nothing():
    calls = []
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )
    x = torch.randn(5, 3, requires_grad=True)
    handles = [
        x.register_hook(lambda g: calls.append("tensor")),
        model[0].weight.register_hook(lambda g: calls.append("leaf")),
        model[2].register_full_backward_hook(lambda *a: calls.append("module")),
        model[2].register_forward_hook(lambda *a: calls.append("forward")),
    ]
    loss = model(x).pow(2).sum()
    loss.grad_fn.register_prehook(lambda g: calls.append("node"))
    loss.backward(retain_graph=True)
    calls.clear()
    everything = [x, loss, *model.parameters(), *model.buffers()]
    before = [(id(t), t._version, t.requires_grad, t.detach().clone()) for t in everything]
    grads = [(id(t.grad), t.grad.clone()) for t in model.parameters()]
    generator, alive, optimizer = (
        torch.get_rng_state(),
        [],
        torch.optim.SGD(model.parameters(), lr=0.1),
    )
    for _ in range(3):
        for thing in (x, model, optimizer):
            str(mg.why(thing, loss))
            str(mg.why(thing))
        alive.append(tensors_alive())  # what was looked at has a Python object from then on
    assert alive[0] == alive[1] == alive[2]
    assert torch.equal(torch.get_rng_state(), generator)
    assert calls == []
    for t, (name, version, asked, value) in zip(everything, before, strict=True):
        assert (id(t), t._version, t.requires_grad) == (name, version, asked)
        assert torch.equal(t, value)
    for t, (name, value) in zip(model.parameters(), grads, strict=True):
        assert id(t.grad) == name and torch.equal(t.grad, value)
    assert all(h.id in h.hooks_dict_ref() for h in handles)
    loss.backward()
    assert sorted({*calls}) == ["leaf", "module", "node", "tensor"]
    assert all(
        torch.equal(t.grad, 2 * g) for t, (_, g) in zip(model.parameters(), grads, strict=True)
    )


def test_a_function_that_computes_the_output_leaves_the_generator_alone():
    w = torch.ones(3, requires_grad=True)
    state = torch.get_rng_state()
    told = mg.why(w, lambda: (w * torch.randn(3)).sum())
    assert torch.equal(torch.get_rng_state(), state)
    assert len(told.paths) == 1


def test_shares_add_up_to_the_gradient():
    w = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(2, 4)
    loss = (torch.tanh(x @ w) @ w + w.sum()).pow(2).sum()
    told = mg.why(w, loss)
    loss.backward()
    assert len(told.paths) == 3
    assert np.allclose(sum(g for _, g in told.paths), w.grad, rtol=1e-5)
    assert torch.allclose(told.total, w.grad)


@pytest.mark.parametrize("seed", range(20))
def test_totals_of_random_graphs_are_those_of_torch(seed):
    torch.manual_seed(seed)
    ops = [torch.tanh, lambda a: a.t(), lambda a: a[:, :1] * a, lambda a: a.chunk(2)[0].repeat(2, 1),
           lambda a: a.sum(0), lambda a: a.softmax(-1), lambda a: a / a.norm()]  # fmt: skip
    x = torch.randn(4, 4, requires_grad=True)
    values = [x]
    for k in torch.randint(len(ops), (8,)).tolist():
        values.append(ops[k](values[-1].expand(4, 4)) + values[int(torch.randint(len(values), ()))])
    loss = sum(v.sin().mean() for v in values)
    told = mg.why(x, loss)
    loss.backward()
    assert torch.allclose(told.total, x.grad, atol=1e-6)


def test_an_output_that_is_no_tensor_is_refused():
    with pytest.raises(DTypeError, match=r"why\(w, loss\)"):
        mg.why(torch.ones(1, requires_grad=True), 3.0)


def test_torch_is_not_imported_for_anything_else():
    code = "import minigrad as mg, sys; x = mg.tensor(1.0, requires_grad=True); mg.why(x, x * 2); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_of_ones_own_is_no_obstacle_after_backward():
    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x.sigmoid()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.sigmoid() * (1 + x * (1 - x.sigmoid())))

    model = torch.nn.Linear(2, 2)
    loss = Swish.apply(model(torch.ones(3, 2))).sum()
    loss.backward()
    assert "the gradient of" in str(mg.why(model.weight, loss))
