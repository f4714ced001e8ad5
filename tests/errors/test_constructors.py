"""A constructor, a schedule or a run that is called wrongly names its parameters, and the one that was meant."""

from __future__ import annotations

import inspect
from contextlib import suppress

import numpy as np
import pytest

import minigrad as mg
from minigrad import data, nn, optim, static
from minigrad.errors import DTypeError
from minigrad.errors.other_libraries import TABLES

W = mg.tensor([1.0], requires_grad=True)


class Net(nn.Module):
    """A user's own."""

    def __init__(self, hidden):
        self.layer = nn.Linear(2, hidden)

    def forward(self, x, scale=1.0):
        return self.layer(x) * scale


class Wide(nn.Linear):
    """Calls the constructor of another layer wrongly."""

    def __init__(self):
        super().__init__(3, 4, biass=True)


UNKNOWN = {
    "a layer": (lambda: nn.Linear(3, 4, biass=True), "Linear() has no keyword 'biass'; did you mean 'bias'?"),
    "PyTorch's name": (lambda: nn.Linear(in_features=3, outputs=4), "did you mean 'inputs'?"),
    "PyTorch's name of filters": (lambda: nn.Conv2d(1, out_channels=4, kernel_size=3), "did you mean 'filters'?"),
    "a constructor that is inherited": (lambda: nn.LSTM(3, 4, biased=True), "LSTM() has no keyword 'biased'"),
    "twice": (lambda: nn.LSTM(3, 4, hidden=4), "LSTM() got 'hidden' twice, by position and by name"),
    "another base": (Wide, "Linear() has no keyword 'biass'; did you mean 'bias'?"),
    "a user's module": (lambda: Net(hiden=3), "Net() has no keyword 'hiden'; did you mean 'hidden'?"),
    "a call of a module": (lambda: Net(2)(mg.ones([1, 2]), scal=2.0), "Net(…)() has no keyword 'scal'; did you mean 'scale'?"),
    "an optimizer": (lambda: optim.Adam([W], learning_rate=0.1), "Adam() has no keyword 'learning_rate'; did you mean 'lr'?"),
    "epsilon": (lambda: optim.Adam([W], eps=0.1), "did you mean 'epsilon'?"),
    "a schedule": (lambda: optim.cosine(0.1, T_max=9), "cosine() has no keyword 'T_max'; did you mean 'steps'?"),
    "a clip": (lambda: optim.clip_by_norm(max_norm=1.0), "did you mean 'limit'?"),
    "a loader": (lambda: data.DataLoader(np.ones(3), batchsize=2), "did you mean 'batch_size'?"),
    "a split": (lambda: data.split(data.digits(), test_size=0.1), "did you mean 'held_back'?"),
    "a derivative": (lambda: mg.vjp(mg.exp, W, vector=W), "did you mean 'v'?"),
    "a tensor": (lambda: mg.tensor([1.0], require_grad=True), "tensor() has no keyword 'require_grad'; did you mean 'requires_grad'?"),
    "a run": (lambda: static.Executor().run(static.Program(), fetch=[]), "Executor.run() has no keyword 'fetch'; did you mean 'fetch_list'?"),
    "a compilation": (lambda: static.compile(static.Program(), fetch_list=[]), "compile() has no keyword 'fetch_list'; did you mean 'fetch'?"),
    "an export": (lambda: static.export_onnx(static.Program(), fetch_list=[]), "did you mean 'fetch'?"),
}  # fmt: skip


COUNT = {
    "too few": (lambda: nn.Linear(3), "Linear() needs 'outputs'"),
    "too many": (lambda: nn.Linear(3, 4, True, 0, float, 5), "Linear() takes at most 5 values, 6 were given"),
    "a layer for its function": (lambda: nn.ReLU(W), "ReLU() takes at most 0 values, 1 was given"),
    "behind a star": (lambda: data.split(data.digits(), 0.1), "split() takes at most 1 value, 2 were given\n  it is called as split(data, *, held_back=0.2, seed=0)"),
    "a user's module": (Net, "Net() needs 'hidden'"),
    "a call of a module": (lambda: nn.Linear(1, 1)(W, W), "Linear(…)() takes at most 1 value, 2 were given"),
    "a call with nothing": (lambda: nn.GRU(1, 1)(), "GRU(…)() needs 'x'\n  it is called as GRU(…)(x, state=None)"),
    "a schedule": (lambda: optim.linear(0.1), "linear() needs 'steps'"),
}  # fmt: skip


ALL = {f"{name}, unknown": c for name, c in UNKNOWN.items()} | COUNT


@pytest.mark.parametrize(("call", "message"), ALL.values(), ids=ALL)
def test_a_call_that_does_not_fit_names_what_it_is_called_as(call, message):
    with pytest.raises(DTypeError) as found:
        call()
    assert message in str(found.value)
    assert "it is called as" in str(found.value)
    assert "at test_constructors.py" in str(found.value)
    assert found.value.__suppress_context__


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: nn.ReLU(inplace=True), "leave it out: a layer makes a new Tensor"),
        (
            lambda: nn.MultiHeadAttention(4, 2, batch_first=True),
            "leave it out: the batch is axis 0",
        ),
        (lambda: nn.Linear(3, 4, device="cuda"), "leave it out: all arrays are NumPy's"),
        (lambda: mg.zeros((2, 3), device="cuda"), "leave it out: all arrays are NumPy's"),
        (lambda: optim.Adam([W], betas=(0.9, 0.99)), "beta1=0.9, beta2=0.999"),
        (lambda: data.DataLoader(np.ones(3), num_workers=2), "leave it out: batches are cut"),
        (
            lambda: data.DataLoader(np.ones(3), np.ones(3), batch_size=2),
            "DataLoader((images, labels), batch_size=32)",
        ),
        (lambda: mg.mse(W, W, ignore_index=1), "leave these rows out"),
        (lambda: mg.huber(W, W, weight=W), "(losses * w).sum() / w.sum()"),
        (lambda: mg.huber(W, W, beta=2.0), "mg.huber(x, y, delta=beta) / beta"),
        (lambda: nn.BatchNorm(3, affine=False), "set layer.weight = layer.bias = None"),
        (lambda: nn.Parameter(W, requires_grad=False), "mg.tensor(values) is kept and not trained"),
        (lambda: nn.MultiHeadAttention(4)(W, attn_mask=None), "mask=~attn_mask"),
        (lambda: optim.SGD([W], dampening=0.5), "a subclass of optim.Optimizer"),
        (lambda: optim.SGD([W]).zero_grad(set_to_none=True), "leave it out: gradients become None"),
        (
            lambda: nn.Linear(1, 1).zero_grad(set_to_none=True),
            "leave it out: gradients become None",
        ),
        (
            lambda: nn.Linear(1, 1).load_state_dict({}, strict=False),
            "{**model.state_dict(), **state}",
        ),
        (lambda: nn.Linear(1, 1).parameters(recurse=True), "leave it out: everything inside"),
        (lambda: mg.checkpoint(mg.exp, W, use_reentrant=False), "leave it out: there is one kind"),
        (lambda: nn.load("m.npz", map_location="cpu"), "leave it out: there are no devices"),
    ],
)
def test_a_keyword_that_nothing_here_stands_for_is_answered_with_what_to_do_without(call, advice):
    with pytest.raises(DTypeError) as found:
        call()
    assert "did you mean" not in str(found.value)
    assert (
        f"repair: {advice}" in str(found.value) or advice in str(found.value).split("repair: ")[1]
    )


#: what may be called with any name, and what is no function of the package's own
OPEN = {"Optimizer", "Module", "StateError", "Labelled", "Windows"}


@pytest.mark.parametrize(
    ("owner", "name"), [(m, n) for m in (nn, optim, data) for n in m.__all__ if n not in OPEN]
)
def test_every_public_name_of_layers_optimizers_and_data_answers_an_unknown_keyword(owner, name):
    with pytest.raises(DTypeError, match=rf"{name}\(\) has no keyword 'nonsense'"):
        getattr(owner, name)(nonsense=1)


def test_an_error_inside_a_constructor_or_a_call_stays_what_it_is():
    class Wrong(nn.Module):
        def __init__(self):
            self.size = len(3)

        def forward(self, x):
            return x

    class WrongCall(nn.Module):
        def forward(self, x):
            return x + len(3)

    for call in (Wrong, lambda: WrongCall()(1.0)):
        with pytest.raises(TypeError, match=r"'int' has no len"):
            call()


def test_in_a_program_a_wrong_call_of_a_module_says_the_same_and_leaves_the_module_as_it_was():
    model = Net(2)
    with static.program_guard(static.Program()):
        x = static.data("x", [1, 2])
        with pytest.raises(DTypeError, match="did you mean 'scale'"):
            model(x, scal=2.0)
    assert isinstance(model.layer.weight, mg.Tensor)


def test_a_constructor_shows_its_own_parameters_to_tools():
    assert list(inspect.signature(nn.Linear).parameters) == [
        "inputs",
        "outputs",
        "bias",
        "seed",
        "dtype",
    ]
    assert list(inspect.signature(optim.cosine).parameters) == ["rate", "steps", "end"]
    assert inspect.signature(nn.ReLU).parameters == {}


def test_every_keyword_that_is_suggested_is_one_of_some_function():
    places = [mg, nn, optim, data, static, mg.Tensor, static.Executor]
    callables = [getattr(p, n, None) for p in places for n in getattr(p, "__all__", dir(p))]
    known = set()
    for function in filter(callable, callables):
        with suppress(ValueError):  # an exception has no signature
            known |= {*inspect.signature(function).parameters}
    suggested = {n for names in TABLES["keywords"].values() for n in names.split(", ")}
    assert suggested - known == set()
