"""Layers, optimizers, clips and schedules as PyTorch 2.13.0 (CPU, float64) computes them.

`pytorch_2_13.json` holds the recorded numbers (`record_pytorch.py` makes them): for layers the state, the inputs, the
output y and the gradients of Σ y·cos(k); for optimizers the parameter after each of ten steps.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static

RECORDED = json.loads(Path(__file__).with_name("pytorch_2_13.json").read_text())
LAYERS, OPTIMIZERS = RECORDED["layers"], RECORDED["optimizers"]


def array(stored):
    numbers, shape = stored
    return np.array(numbers).reshape(shape)


def layer_of(name, case):
    layer = getattr(nn, name.split(",")[0])(*case["args"], **case.get("options", {}))
    layer.load_state_dict({n: array(v) for n, v in case["state"].items()})
    return layer.eval() if case.get("use") else layer


def result(layer, case, inputs):
    how = {n: np.array(v) if n == "mask" else v for n, v in case.get("how", {}).items()}
    out = layer(*inputs, **how)
    return out[0] if isinstance(out, tuple) else out


def weights(out):
    return np.cos(np.arange(int(np.prod(out.shape)))).reshape(out.shape)


def near(found, stored):
    np.testing.assert_allclose(found, array(stored), rtol=1e-10, atol=1e-11)


def test_the_numbers_were_recorded_with_the_version_they_are_named_after():
    assert RECORDED["torch"].startswith("2.13.")


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_pytorch_does(name):
    case = LAYERS[name]
    layer = layer_of(name, case)
    inputs = [mg.tensor(array(x), requires_grad=True) if name != "Embedding" else array(x).astype(int) for x in case["inputs"]]  # fmt: skip
    out = result(layer, case, inputs)
    near(out.detach().numpy(), case["output"])
    (out * weights(out)).sum().backward()
    named = dict(layer.named_tensors())
    for path, stored in case["grads"].items():
        near(named[path].grad.numpy(), stored)
    for x, stored in zip(inputs, case["input_grads"], strict=False):
        near(x.grad.numpy(), stored)
    for path, stored in case["buffers"].items():
        near(named[path].numpy(), stored)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_in_a_program_computes_what_pytorch_does(name):
    case = LAYERS[name]
    layer = layer_of(name, case)
    feed = {
        f"x{k}": array(x).astype(int if name == "Embedding" else float)
        for k, x in enumerate(case["inputs"])
    }
    program = static.Program()
    with static.program_guard(program):
        inputs = [static.data(n, v.shape, dtype=v.dtype) for n, v in feed.items()]
        for x in inputs:
            x.stop_gradient = x.dtype.kind != "f"
        out = result(layer, case, inputs)
        grads = [f"{path}@GRAD" for path in case["grads"]]
        loss = (out * weights(out)).sum()
        wanted = [program.global_block().var(p) for p in case["grads"]] + [
            x for x in inputs if x.dtype.kind == "f"
        ]
        grads = static.gradients([loss], wanted)
    found = static.Executor().run(program, feed, [out, *grads])
    for value, stored in zip(
        found, [case["output"], *case["grads"].values(), *case["input_grads"]], strict=True
    ):
        near(value, stored)


def ids(case):
    return ", ".join([case["kind"], *(f"{k}={v}" for k, v in case["options"].items())])


def places(optimizer_of, engine):
    """The parameter after each of ten steps on Σ √(1 + (p - aim)²)."""
    aim, found = np.array(RECORDED["aim"]), []
    p = mg.tensor(RECORDED["start"], requires_grad=True, name="p")
    if engine == "step":
        optimizer = optimizer_of([p])
        for _ in range(10):
            optimizer.zero_grad()
            (1 + (p - aim) ** 2).sqrt().sum().backward()
            optimizer.step()
            found.append(p.detach().numpy().copy())
        return found
    program, executor = static.Program(), static.Executor()
    with static.program_guard(program):
        q = static.parameter("p", p)
        loss = (1 + (q - aim) ** 2).sqrt().sum()
        optimizer_of(None).minimize(loss)
    for _ in range(10):
        executor.run(program, fetch_list=[loss])
        found.append(executor.scope["p"].copy())
    return found


@pytest.mark.parametrize("engine", ["step", "minimize"])
@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
def test_an_optimizer_takes_the_ten_steps_pytorch_takes(case, engine):
    found = places(lambda ps: getattr(optim, case["kind"])(ps, **case["options"]), engine)
    for value, expected in zip(found, case["places"], strict=True):
        np.testing.assert_allclose(value.reshape(-1), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("engine", ["step", "minimize"])
@pytest.mark.parametrize("name", RECORDED["clips"])
def test_a_clip_shortens_as_pytorch_does(name, engine):
    case = RECORDED["clips"][name]
    clip = getattr(optim, name)(case["limit"])
    found = places(lambda ps: optim.SGD(ps, lr=0.1, clip=clip), engine)
    for value, expected in zip(
        found, case["places"], strict=True
    ):  # PyTorch adds 1e-6 to the length
        np.testing.assert_allclose(value.reshape(-1), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("engine", ["step", "minimize"])
@pytest.mark.parametrize("name", RECORDED["schedules"])
def test_a_schedule_gives_the_rates_of_pytorch(name, engine):
    case = RECORDED["schedules"][name]
    found = places(lambda ps: optim.SGD(ps, lr=getattr(optim, name)(*case["args"])), engine)
    for value, expected in zip(found, case["places"], strict=True):
        np.testing.assert_allclose(value.reshape(-1), expected, rtol=1e-9, atol=1e-11)


LOSSES = RECORDED["losses"]


@pytest.mark.parametrize("in_program", [False, True])
@pytest.mark.parametrize("case", LOSSES["cases"], ids=lambda c: f"{c['options']} {c['reduction']}")
def test_cross_entropy_with_all_its_options_is_that_of_pytorch(case, in_program):
    how = {n: v for n, v in case["options"].items() if n != "probabilities"}
    how |= {"weight": array(LOSSES["weight"])} if "weight" in how else {}
    target = np.array(LOSSES["labels"])
    if case["options"].get("probabilities"):
        target = array(LOSSES["shares"])
    if not in_program:
        x = mg.tensor(array(LOSSES["x"]), requires_grad=True)
        loss = mg.cross_entropy(x, target, axis=1, reduction=case["reduction"], **how)
        (loss * weights(loss)).sum().backward()
        found = loss.detach().numpy(), x.grad.numpy()
    else:
        program = static.Program()
        with static.program_guard(program):
            x = static.data("x", [4, 5, 3])
            x.stop_gradient = False
            y = static.data("y", target.shape, dtype=target.dtype)
            loss = mg.cross_entropy(x, y, axis=1, reduction=case["reduction"], **how)
            (grad,) = static.gradients([(loss * weights(loss)).sum()], [x])
        feed = {"x": array(LOSSES["x"]), "y": target}
        found = static.Executor().run(program, feed, [loss, grad])
    near(found[0], case["loss"])
    near(found[1], case["grad"])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("case", RECORDED["recurrent"], ids=lambda c: f"{c['kind']} {c['options']}")
def test_layers_on_each_other_and_both_ways_are_those_of_pytorch(case, batch_first):
    layer = getattr(nn, case["kind"])(3, 4, **case["options"], batch_first=batch_first)
    for path, p in layer.named_tensors():
        zero = path.rpartition(".")[2].startswith("bias")
        p.data = np.zeros(p.shape) if zero else np.cos(np.arange(p.size)).reshape(p.shape)
    x = array(case["x"])
    out, last = layer(x.swapaxes(0, 1) if batch_first else x)
    out = out.detach().numpy()
    near(out.swapaxes(0, 1) if batch_first else out, case["output"])
    for state, stored in zip(
        last if case["kind"] == "LSTM" else [last], case["states"], strict=True
    ):
        near(state.detach().numpy(), stored)
    again, _ = layer(mg.tensor(x.swapaxes(0, 1) if batch_first else x), last)
    assert again.shape == out.shape
    with pytest.raises(mg.MinigradError, match="the state of this"):
        layer(mg.tensor(x.swapaxes(0, 1) if batch_first else x), np.zeros((2, 4)))


@pytest.mark.parametrize("case", RECORDED["groups"], ids=lambda c: f"{c['kind']}{c['args']}")
def test_groups_of_parameters_follow_a_scheduler_as_in_pytorch(case):
    ps = [mg.tensor(row, requires_grad=True) for row in RECORDED["start"]]
    groups = [{"params": ps[:1]}, {"params": ps[1:], "lr": 0.02, "weight_decay": 0.1}]
    optimizer = optim.SGD(groups, lr=0.1)
    scheduler = getattr(optim, case["kind"])(optimizer, *case["args"])
    for rates, places in case["steps"]:
        optimizer.zero_grad()
        (sum((1 + p**2).sqrt().sum() for p in ps)).backward()
        optimizer.step()
        scheduler.step()
        np.testing.assert_allclose(scheduler.get_last_lr(), rates, rtol=1e-12)
        np.testing.assert_allclose([p.tolist() for p in ps], places, rtol=1e-12)
    twin = getattr(optim, case["kind"])(optim.SGD(ps, lr=0.1), *case["args"])
    with pytest.raises(mg.MinigradError):
        twin.load_state_dict(scheduler.state_dict())  # of two groups
