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
