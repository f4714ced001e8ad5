"""Looking changes nothing: draw, play and why leave results, hooks, versions, ``.grad`` and memory as they were."""

from __future__ import annotations

import gc
import warnings

import pytest

import minigrad as mg

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

CALLS: list[str] = []


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        CALLS.append("forward")
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def leaf():
    return torch.randn(3, 3, requires_grad=True)


def plain():
    x = leaf()
    return x, (x @ x).tanh().sum()


def after_backward():
    x, loss = plain()
    loss.backward(retain_graph=True)
    return x, loss


def freed():
    x, loss = plain()
    loss.backward()
    return x, loss


def retained():
    x = leaf()
    h = x.exp()
    h.retain_grad()
    loss = h.sum()
    loss.backward(retain_graph=True)
    return x, loss, h


def in_place():
    x = leaf()
    h = x.clone().mul_(2)
    h[0].add_(1)
    return x, h.pow(2).sum(), h


def stale():
    x = leaf()
    h = x.exp()
    loss = (h * h).sum()
    with torch.no_grad():
        h.add_(1)
    return x, loss, h


def hooked():
    x, loss = plain()
    x.register_hook(lambda g: CALLS.append("tensor"))
    loss.grad_fn.register_prehook(lambda g: CALLS.append("node"))
    x.register_post_accumulate_grad_hook(lambda t: CALLS.append("accumulated"))
    return x, loss


def packed():
    def packing(word):
        return lambda t: (CALLS.append(word), t)[1]

    with torch.autograd.graph.saved_tensors_hooks(packing("pack"), packing("unpack")):
        return plain()


def checkpointed():
    x = leaf()

    def part(t):
        CALLS.append("part")
        return t.tanh() @ t

    return x, checkpoint(part, x, use_reentrant=False).sum()


def function():
    x = leaf()
    return x, Cube.apply(x).sum()


def twice():
    x = leaf()
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return x, g.pow(2).sum(), g


def normalized():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model[0].register_full_backward_hook(lambda *a: CALLS.append("module"))
    return model[0].weight, model(torch.randn(5, 3)).sum(), *model.parameters(), *model.buffers()


def recurrent():
    rnn = nn.LSTM(3, 2)
    return rnn.weight_hh_l0, rnn(torch.randn(4, 1, 3))[0].sum(), *rnn.parameters()


def embedded():
    table = nn.Embedding(5, 3, sparse=True)
    return table.weight, table(torch.tensor([1, 2, 1])).pow(2).sum()


def complex_numbers():
    x = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    return x, (x * x.conj()).real.sum()


KINDS = [plain, after_backward, freed, retained, in_place, stale, hooked, packed, checkpointed, function, twice,
         normalized, recurrent, embedded, complex_numbers]  # fmt: skip


def same(one, other):
    if one is None or other is None:
        return one is other
    return torch.equal(one.to_dense(), other.to_dense())


def backward(kind):
    """What backward gives and calls afterwards; an error is told by its first words."""
    x, loss, *_ = kind
    CALLS.clear()
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error)[:60], [*CALLS], x.grad
    return "", [*CALLS], x.grad


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("look", ["draw", "play", "why"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # sparse and complex numbers: PyTorch's own
def test_looking_leaves_everything_as_it_was(make, look):
    torch.manual_seed(1)
    twin = make()
    torch.manual_seed(1)
    tensors = make()
    x, loss, *_ = tensors
    CALLS.clear()
    grads = [t.grad if t.is_leaf or t.retains_grad else None for t in tensors]
    before = [
        (t.detach().clone(), t._version, t.requires_grad, t.data_ptr(), None if g is None else g.clone())
        for t, g in zip(tensors, grads, strict=True)
    ]  # fmt: skip
    generator, alive = torch.get_rng_state(), []
    for _ in range(3):
        if look == "why":
            str(mg.why(x, loss)), str(mg.why(x))
        else:
            shown = getattr(mg, look)(loss)
            str(shown)
        shown = None
        gc.collect()
        alive.append(sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects()))
    assert alive[1] == alive[2]  # of the first time PyTorch keeps Python objects
    assert CALLS == []
    assert torch.equal(torch.get_rng_state(), generator)
    for t, grad, (value, version, asked, place, of_grad) in zip(
        tensors, grads, before, strict=True
    ):
        assert torch.equal(t.detach(), value)
        assert (t._version, t.requires_grad, t.data_ptr()) == (version, asked, place)
        assert (t.grad if t.is_leaf or t.retains_grad else None) is grad
        assert same(grad, of_grad)
    error, calls, grad = backward(tensors)
    told, heard, wanted = backward(twin)
    assert (error, calls) == (told, heard)
    assert same(grad, wanted)


def test_looking_warns_of_nothing():
    for make in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, loss, *_ = make()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            str(mg.why(x, loss))
            str(mg.draw(loss))
            str(mg.play(loss))
