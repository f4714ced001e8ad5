"""What no test of optimizers, clips and schedules looked at until a mutant survived."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from tests.test_optim import GRADS, START, adagrad, adam, after, parameter, rmsprop, sgd

DEFAULTS = {
    "Optimizer": (optim.Optimizer, sgd, {"lr": 0.01}),
    "SGD": (optim.SGD, sgd, {"lr": 0.01}),
    "Adagrad": (optim.Adagrad, adagrad, {"lr": 0.01}),
    "RMSprop": (optim.RMSprop, rmsprop, {"lr": 0.01, "rho": 0.99}),
    "Adam": (optim.Adam, adam, {"lr": 0.001, "b1": 0.9, "b2": 0.999}),
    "AdamW": (optim.AdamW, adam, {"lr": 0.001, "b1": 0.9, "b2": 0.999, "decoupled": 0.01}),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_optimizer_without_settings_steps_as_its_help_says(name):
    kind, formula, settings = DEFAULTS[name]
    p = parameter()
    made = after(kind([p]), p)
    for k, value in enumerate(START):
        state = {}
        for grad in GRADS:
            value = formula(value, grad[k], state, **settings)
        assert made[k] == pytest.approx(value, rel=1e-12)


def test_an_optimizer_says_its_settings():
    assert repr(optim.SGD(lr=0.5)) == "SGD(lr=0.5)"
    assert repr(optim.SGD(lr=0.5, momentum=0.9)) == "SGD(lr=0.5, mu=0.9, use_nesterov=False)"
    assert (
        repr(optim.RMSprop(lr=optim.linear(1.0, 2)))
        == "RMSprop(lr=a schedule, rho=0.99, epsilon=1e-08)"
    )


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_what_has_no_gradient_or_is_frozen_stays_in_every_kind_of_step(momentum):
    p, q, r = parameter(), parameter(), parameter()
    optimizer = optim.SGD([p, q, r], lr=1.0, momentum=momentum)
    p.grad = mg.tensor(GRADS[0])
    q.requires_grad = False
    q.grad = mg.tensor(GRADS[0])
    optimizer.step()
    assert p.tolist() == (START - GRADS[0]).tolist()
    assert q.tolist() == r.tolist() == START.tolist()


@pytest.mark.parametrize(
    "make", [lambda p: optim.SGD(p, lr=1.0), lambda p: optim.SGD(p, lr=1.0, momentum=0.5)]
)
def test_a_gradient_of_another_shape_names_the_parameter(make):
    p = mg.tensor(START, requires_grad=True, name="w")
    p.grad = mg.tensor(np.ones(3))
    p.data = np.ones(2)
    with pytest.raises(mg.MinigradError, match=r"the gradient of w is float64\[3\]"):
        make([p]).step()
    q = parameter()
    q.grad = mg.tensor(np.ones(3))
    q.data = np.ones(2)
    with pytest.raises(mg.MinigradError, match="the gradient of a parameter is"):
        make([q]).step()


def test_a_clip_is_not_asked_where_there_is_no_gradient():
    p, asked = parameter(), []
    optimizer = optim.SGD([p], lr=1.0, clip=lambda grads: asked.append(len(grads)) or grads)
    optimizer.step()
    assert asked == []
    p.grad = mg.tensor(GRADS[0])
    optimizer.step()
    assert asked == [1]
    assert optimizer.count == 2


def test_parameters_of_several_dtypes_keep_them():
    p = mg.tensor([1.0], requires_grad=True, dtype="float32")
    q, r = (
        mg.tensor([1.0], requires_grad=True),
        mg.tensor([1.0], requires_grad=True, dtype="float32"),
    )
    for t in (p, q, r):
        t.grad = mg.tensor([1.0], dtype=t.dtype)
    optim.SGD([p, q, r], lr=0.1).step()
    assert [t.dtype.name for t in (p, q, r)] == ["float32", "float64", "float32"]
    assert [t.item() for t in (p, q, r)] == [
        np.float32(1) - np.float32(0.1),
        0.9,
        np.float32(1) - np.float32(0.1),
    ]


def test_states_that_do_not_fit_are_refused_and_change_nothing():
    p = parameter()
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    after(optimizer, p)
    held = {name: value.tolist() for name, value in optimizer.state_dict().items()}
    good = optimizer.state_dict()
    for bad, words in (
        ({**good, "velocty.0": 1.0}, "unknown entry 'velocty.0'.*did you mean 'velocity.0'"),
        (
            {"count": 1, "velocity.1": good["velocity.0"]},
            "missing entry 'velocity.0'.*did you mean 'velocity.1'",
        ),
        (
            {**good, "velocity.0": np.ones(2)},
            r"'velocity.0' is float64\[2\], expected float64\[3\]",
        ),
    ):
        with pytest.raises(mg.MinigradError, match=words):
            optimizer.load_state_dict(bad)
        assert {name: value.tolist() for name, value in optimizer.state_dict().items()} == held
    assert held["count"] == 3


# -- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: optim.SGD(lr=-0.1), "at least 0\n.*\n.*lr=0.01, or a schedule"),
        (lambda: optim.SGD(lr=True), "lr is"),
        (lambda: optim.SGD(weight_decay=-1.0), "weight_decay is -1.0.*\n.*\n.*weight_decay=0.0001"),
        (lambda: optim.SGD(momentum=-0.1), "below 1\n.*\n.*momentum=0.9"),
        (lambda: optim.RMSprop(rho=1.0), "rho is 1.0.* and below 1\n.*\n.*rho=0.99"),
        (lambda: optim.Adam(beta1=1), "beta1 is 1.* and below 1\n.*\n.*beta1=0.9"),
        (lambda: optim.Adam(epsilon=-1e-8), "epsilon is -1e-08.*at least 0\n.*\n.*epsilon=1e-8"),
        (lambda: optim.AdamW(weight_decay="small"), "weight_decay is str"),
        (lambda: optim.clip_by_value(None), "limit is None.*\n.*\n.*limit=1.0"),
        (lambda: optim.clip_by_global_norm(-1.0), "limit is -1.0"),
        (lambda: optim.linear(0.1, steps=0), "steps is 0: give a number of steps above 0\n.*\n.*steps=1000"),
        (lambda: optim.cosine(0.1, steps=-1), "steps is -1"),
        (lambda: optim.step_decay(0.1, every=0), "every is 0.*\n.*\n.*every=1000"),
        (lambda: optim.warmup(0.1, steps="ten"), "steps is str"),
        (lambda: optim.warmup(0.1, steps=True), "steps is True"),
        (lambda: optim.warmup("fast", steps=2), "rate is str"),
        (lambda: optim.SGD(clip=1.0), r"clip is 1.0, no function\n.*\n.*optim.clip_by_norm\(1.0\)"),
        (lambda: optim.SGD(momentum=0.9, nesterov=0.1), "nesterov is 0.1\n"),
        (lambda: optim.SGD().load_state_dict(3), "a state is a mapping from names to arrays, not 3"),
    ],
)  # fmt: skip
def test_settings_that_are_no_such_numbers_are_quoted_with_one_that_is(make, words):
    with pytest.raises(mg.MinigradError, match=words):
        make()


def test_numbers_of_numpy_whole_ones_and_the_ends_of_what_is_allowed_are_taken():
    for lr in (0, 0.0, 1, np.float32(0.5), np.int64(1)):
        assert optim.SGD(lr=lr, momentum=0.0).lr == lr
    assert optim.linear(1.0, steps=np.int32(2))(1) == 0.5
    assert optim.linear(1.0, steps=0.5)(0) == 1.0


class Layered:
    """Something with parameters that is no module of the package."""

    def __init__(self, *values):
        self.values = values

    def parameters(self):
        return iter(self.values)


FROZEN = "a module with layers as attributes; frozen ones thaw"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear, r"not the class Linear\n.*\n.*a module made of it: Linear\(…\)"),
        (lambda: nn.Linear(1, 1).parameters, r"model.parameters\(\), called, or the model"),
        (lambda: 5, r"not 5\n.*\n.*SGD\(model, lr=0.1\)"),
        (lambda: Layered(), FROZEN),
        (lambda: iter([]), "a generator gives its values once"),
        (lambda: [parameter() * 2.0], "the Tensors it was computed from"),
        (lambda: [mg.tensor([1.0])], r"mg.tensor\(…, requires_grad=True\)"),
        (lambda: [nn.Linear(1, 1), nn.Linear(1, 1)], "one module that holds them"),
        (lambda: nn.Linear(1, 1).state_dict(), "model.parameters.., which gives them without names"),
        (lambda: [{"params": []}], "one optimizer for each group"),
        (lambda: [1.0], r"nn.Parameter\(values\) makes a Tensor"),
        (lambda: [nn.Linear], "not the class Linear"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_parameters_is_answered_with_what_was_meant(make, words):
    with pytest.raises(mg.MinigradError, match=words):
        optim.SGD(make())


def test_parameters_come_of_anything_that_gives_them():
    p, q = parameter(), parameter()
    for given in ([p, q], (p, q), iter([p, q]), {"a": p, "b": q}.values(), Layered(p, q)):
        assert [t is u for t, u in zip(optim.SGD(given).parameters, (p, q), strict=True)] == [
            True,
            True,
        ]
    assert optim.SGD().parameters == []


# -- schedules -----------------------------------------------------------------------------


def test_schedules_end_where_they_are_told_to_and_at_0_if_not():
    def rates(schedule):
        return [round(float(schedule(count)), 6) for count in (0, 1, 2, 5)]

    assert rates(optim.linear(1.0, 2)) == [1.0, 0.5, 0.0, 0.0]
    assert rates(optim.cosine(1.0, 2)) == [1.0, 0.5, 0.0, 0.0]
    assert rates(optim.cosine(1.0, 2, end=0.5)) == [1.0, 0.75, 0.5, 0.5]
    assert rates(optim.cosine(1.0, 4)) == [1.0, round(0.5 + 0.5**1.5, 6), 0.5, 0.0]
    assert rates(optim.step_decay(1.0, every=2)) == [1.0, 1.0, 0.1, 0.01]
    assert rates(optim.exponential(1.0, 0.5)) == [1.0, 0.5, 0.25, 0.03125]
