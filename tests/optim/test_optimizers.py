"""Optimizers, clips and schedules against formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static

GRADS = [np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -4.0]), np.array([-1.0, 0.0, 2.0])]


START = np.array([1.0, 2.0, -3.0])


def after(optimizer, p, grads=GRADS):
    for grad in grads:
        p.grad = mg.tensor(grad)
        optimizer.step()
    return p.detach().numpy()


def parameter():
    return mg.tensor(START, requires_grad=True)


# Each reference is written from the formulas of the papers, element by element.


def sgd(p, g, s, lr=0.1, mu=0.0, nesterov=False, decay=0.0):
    g = g + decay * p
    v = s["v"] = mu * s.get("v", 0.0) + g
    return p - lr * (g + mu * v if nesterov else v)


def rmsprop(p, g, s, lr=0.1, rho=0.9):
    s["m"] = rho * s.get("m", 0.0) + (1 - rho) * g * g
    return p - lr * g / (s["m"] ** 0.5 + 1e-8)


def adagrad(p, g, s, lr=0.1):
    s["m"] = s.get("m", 0.0) + g * g
    return p - lr * g / (s["m"] ** 0.5 + 1e-10)


def adam(p, g, s, lr=0.1, b1=0.8, b2=0.9, decay=0.0, decoupled=0.0):
    g, s["t"] = g + decay * p, s.get("t", 0) + 1
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
    mean, scale = s["m"] / (1 - b1 ** s["t"]), (s["v"] / (1 - b2 ** s["t"])) ** 0.5
    return p - lr * decoupled * p - lr * mean / (scale + 1e-8)


CASES = {
    "sgd": (lambda p: optim.SGD(p, lr=0.1), sgd, {}),
    "weight decay": (lambda p: optim.SGD(p, lr=0.1, weight_decay=0.2), sgd, {"decay": 0.2}),
    "momentum": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), sgd, {"mu": 0.9}),
    "nesterov": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        sgd,
        {"mu": 0.9, "nesterov": True},
    ),
    "adagrad": (lambda p: optim.Adagrad(p, lr=0.5), adagrad, {"lr": 0.5}),
    "rmsprop": (lambda p: optim.RMSprop(p, lr=0.1, rho=0.9), rmsprop, {}),
    "adam": (lambda p: optim.Adam(p, lr=0.1, beta1=0.8, beta2=0.9), adam, {}),
    "adam, decay": (
        lambda p: optim.Adam(p, lr=0.1, beta1=0.8, beta2=0.9, weight_decay=0.3),
        adam,
        {"decay": 0.3},
    ),
    "adamw": (
        lambda p: optim.AdamW(p, lr=0.1, beta1=0.8, beta2=0.9, weight_decay=0.3),
        adam,
        {"decoupled": 0.3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_optimizer_follows_its_formula(name):
    make, formula, options = CASES[name]
    p = parameter()
    made = after(make([p]), p)
    for k in range(3):
        value, state = START[k], {}
        for grad in GRADS:
            value = formula(value, grad[k], state, **options)
        assert made[k] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_restored_optimizer_goes_on_as_if_nothing_had_happened(name, tmp_path):
    make, p, q = CASES[name][0], parameter(), parameter()
    whole = after(make([p]), p)
    one = make([q])
    after(one, q, GRADS[:1])
    nn.save(one.state_dict(), tmp_path / "state.npz")
    two = make([q])
    two.load_state_dict(nn.load(tmp_path / "state.npz"))
    np.testing.assert_array_equal(after(two, q, GRADS[1:]), whole)


@pytest.mark.parametrize("name", CASES)
def test_parameters_keep_their_dtype_and_optimizers_find_the_minimum(name):
    p = mg.tensor(START, requires_grad=True, dtype="float32")
    make = CASES[name][0]
    optimizer = make([p])
    for _ in range(60):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    assert p.dtype == np.float32
    assert np.abs(p.detach().numpy()).max() < 0.7


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW])
def test_in_float32_the_first_means_are_corrected_as_exactly_as_float32_allows(make):
    start, grads = np.linspace(-1, 1, 20), np.random.default_rng(0).normal(size=(20, 20))
    ends = []
    for dtype in (np.float64, np.float32):
        p = mg.tensor(start.astype(dtype), requires_grad=True)
        optimizer = make([p], lr=0.1)
        for grad in grads:
            p.grad = mg.tensor(grad.astype(dtype))
            optimizer.step()
        ends.append(p.data.astype(float))
    np.testing.assert_allclose(*ends, atol=1.5e-6)


def test_a_step_leaves_graphs_made_before_as_they_were():
    p = parameter()
    y = (p * p).sum()
    p.grad = mg.tensor(GRADS[0])
    optim.SGD([p], lr=1.0).step()
    p.grad = None
    y.backward()
    assert p.grad.tolist() == (2 * START).tolist()


def test_the_array_that_a_user_holds_is_not_written_to():
    p = parameter()
    held = p.data
    after(optim.SGD([p], lr=1.0), p)
    assert held.tolist() == START.tolist()


def test_a_parameter_without_gradient_and_a_frozen_one_stay():
    p, q = parameter(), parameter()
    optimizer = optim.SGD([p, q], lr=1.0)
    p.grad = mg.tensor(GRADS[0])
    q.requires_grad = False
    q.grad = mg.tensor(GRADS[0])
    optimizer.step()
    assert q.tolist() == START.tolist()
    p.grad = None
    before = p.tolist()
    optimizer.step()
    assert p.tolist() == before


def test_a_shared_parameter_is_updated_once():
    p = parameter()
    p.grad = mg.tensor(np.ones(3))
    optim.SGD([p, p], lr=1.0).step()
    assert p.tolist() == (START - 1).tolist()


def test_an_optimizer_of_programs_has_no_gradients_to_forget():
    optimizer = optim.SGD(lr=0.1)
    optimizer.zero_grad()
    assert optimizer.parameters == []


def test_a_gradient_that_no_longer_fits_changes_no_parameter():
    p, q = parameter(), parameter()
    p.grad, q.grad = mg.tensor(np.ones(3)), mg.tensor(np.ones(3))
    q.data = np.ones(2)
    with pytest.raises(mg.MinigradError, match=r"float64\[3\], the parameter float64\[2\]"):
        optim.SGD([p, q], lr=1.0).step()
    assert p.tolist() == START.tolist()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: optim.SGD([]), "the list is empty"),
        (lambda: optim.SGD(parameter()), "repair: a list of Tensors"),
        (lambda: optim.SGD([mg.tensor(1.0)]), "a leaf Tensor that requires grad"),
        (lambda: optim.SGD([parameter() * 2]), "a leaf Tensor that requires grad"),
        (lambda: optim.SGD(3), "parameters are Tensors or a module, not 3"),
        (lambda: optim.SGD(lr=-1.0), "lr is -1.0: give a number of at least 0"),
        (lambda: optim.SGD(lr="0.1"), "lr is str"),
        (
            lambda: optim.SGD(momentum=1.0),
            "momentum is 1.0: give a number of at least 0 and below 1",
        ),
        (lambda: optim.SGD(nesterov=True), "repair: momentum=0.9"),
        (lambda: optim.Adam(beta2=1.5), "beta2 is 1.5"),
        (lambda: optim.SGD().step(), r"give them, as in SGD\(model, lr=0.1\)"),
        (lambda: optim.clip_by_norm(-1), "limit is -1"),
        (lambda: optim.Adam([parameter()]).load_state_dict({}), "the state has no 'count'"),
        (
            lambda: optim.SGD([parameter()]).load_state_dict({"count": 0, "velocity.0": 1}),
            r"the state of SGD with momentum, and the optimizer is SGD\(lr=0.01\)",
        ),
    ],
)
def test_wrong_arguments_are_quoted(make, words):
    with pytest.raises(mg.MinigradError, match=words):
        make()


# -- clips and schedules --------------------------------------------------------------------


def clipped(clip, *grads):
    return [g.tolist() for g in clip([mg.tensor(g) for g in grads])]


def test_clips_shorten_what_is_too_long_and_leave_the_rest():
    assert clipped(optim.clip_by_value(1.0), [3.0, -0.5], [-2.0]) == [[1.0, -0.5], [-1.0]]
    assert clipped(optim.clip_by_norm(5.0), [6.0, 8.0], [0.0, 1.0]) == [[3.0, 4.0], [0.0, 1.0]]
    assert clipped(optim.clip_by_global_norm(5.0), [6.0], [8.0]) == [[3.0], [4.0]]
    assert clipped(optim.clip_by_global_norm(5.0), [0.0], [3.0]) == [[0.0], [3.0]]


def test_a_clip_works_inside_an_optimizer():
    p = parameter()
    p.grad = mg.tensor([6.0, 8.0, 0.0])
    optim.SGD([p], lr=1.0, clip=optim.clip_by_norm(5.0)).step()
    np.testing.assert_allclose(p.detach().numpy(), START - [3.0, 4.0, 0.0])
    assert p.grad.tolist() == [6.0, 8.0, 0.0]


def test_schedules_give_the_rate_of_every_step():
    def rates(schedule, counts):
        return [round(float(schedule(c)), 10) for c in counts]

    assert rates(optim.exponential(1.0, 0.5), [0, 1, 3]) == [1.0, 0.5, 0.125]
    assert rates(optim.step_decay(1.0, 2, 0.1), [0, 1, 2, 3, 4]) == [1.0, 1.0, 0.1, 0.1, 0.01]
    assert rates(optim.linear(1.0, 4, 0.2), [0, 2, 4, 9]) == [1.0, 0.6, 0.2, 0.2]
    assert rates(optim.cosine(1.0, 4), [0, 2, 4, 9]) == [1.0, 0.5, 0.0, 0.0]
    assert rates(optim.warmup(1.0, 4), [0, 1, 3, 9]) == [0.25, 0.5, 1.0, 1.0]
    assert rates(optim.warmup(optim.exponential(1.0, 0.5), 2), [0, 1, 2]) == [0.5, 0.5, 0.25]


def test_a_schedule_is_asked_at_every_step():
    p = parameter()
    made = after(optim.SGD([p], lr=optim.exponential(1.0, 0.5)), p)
    np.testing.assert_allclose(made, START - GRADS[0] - 0.5 * GRADS[1] - 0.25 * GRADS[2])


# -- programs ---------------------------------------------------------------------------------

PROGRAM_CASES = {
    **{name: make for name, (make, _, _) in CASES.items()},
    "schedule": lambda p: optim.SGD(p, lr=optim.warmup(optim.cosine(0.1, 4), 2)),
    "clip by value": lambda p: optim.SGD(p, lr=0.1, clip=optim.clip_by_value(0.5)),
    "clip by norm": lambda p: optim.Adam(p, lr=0.1, clip=optim.clip_by_norm(0.5)),
    "clip by global norm": lambda p: optim.SGD(p, lr=0.1, clip=optim.clip_by_global_norm(0.5)),
}


@pytest.mark.parametrize("name", PROGRAM_CASES)
def test_minimize_in_a_program_is_step_by_step_what_happens_eagerly(name):
    make, x = PROGRAM_CASES[name], np.linspace(-1, 1, 12).reshape(4, 3)

    def loss_of(model, x):
        return ((model(x) - 1.0) ** 2).mean()

    eager, written = nn.Linear(3, 2, seed=4), nn.Linear(3, 2, seed=4)
    optimizer, prog = make(eager), static.Program()
    with static.program_guard(prog):
        loss = loss_of(written, static.data("x", [-1, 3]))
        make(None).minimize(loss)
    executor = static.Executor()
    for _ in range(4):
        (value,) = executor.run(prog, {"x": x}, [loss])
        optimizer.zero_grad()
        expected = loss_of(eager, mg.tensor(x))
        expected.backward()
        optimizer.step()
        assert float(value) == pytest.approx(expected.item(), rel=1e-12)
    for path, tensor in eager.named_tensors():
        np.testing.assert_allclose(executor.scope[path], tensor.detach().numpy(), rtol=1e-11)


# -- settings, states and what is refused ------------------------------------------------


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
        ({**good, "velocty.0": 1.0}, "has no 'velocty.0'.*did you mean 'velocity.0'"),
        (
            {"count": 1, "velocity.1": good["velocity.0"]},
            "has no 'velocity.1'.*did you mean 'velocity.0'",
        ),
        (
            {**good, "velocity.0": np.ones(2)},
            r"'velocity.0' is float64\[2\] in the state, expected float64\[3\]",
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
        (lambda: optim.RMSprop(rho=1.0), "rho is 1.0.* and below 1\n.*\n.*rho=0.9"),
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


def test_a_momentum_of_one_group_needs_one_of_all_and_the_error_says_how():
    v, w = (mg.tensor(1.0, requires_grad=True) for _ in range(2))
    groups = [{"params": [v]}, {"params": [w], "momentum": 0.5}]
    with pytest.raises(mg.MinigradError, match="no 'momentum'.*\n.*\n.*momentum=0.9 for all"):
        optim.SGD(groups, lr=0.1)
    groups[0]["momentum"] = 0.0
    optimizer = optim.SGD(groups, lr=0.1, momentum=0.9)
    for _ in range(2):
        v.grad = w.grad = mg.tensor(1.0)
        optimizer.step()
    np.testing.assert_allclose([v.item(), w.item()], [0.8, 0.75])


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
        (lambda: nn.Linear(1, 1).parameters, r"model.parameters\(\), called"),
        (lambda: 5, r"not 5\n.*\n.*model.parameters"),
        (lambda: Layered(), FROZEN),
        (lambda: iter([]), "a generator gives its values once"),
        (lambda: [parameter() * 2.0], "the Tensors it was computed from"),
        (lambda: [mg.tensor([1.0])], r"mg.tensor\(…, requires_grad=True\)"),
        (lambda: [nn.Linear(1, 1), nn.Linear(1, 1)], "one module that holds them"),
        (lambda: nn.Linear(1, 1).state_dict(), "model.parameters.., called: Tensors without names"),
        (lambda: [{"params": []}], "a module, or a list"),
        (lambda: [1.0], r"nn.Parameter\(values\)"),
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


def test_a_factor_that_is_no_number_leaves_the_rates_of_all_groups_as_they_were():
    groups = [{"params": [parameter()]}, {"params": [parameter()]}]
    optimizer = optim.SGD(groups, lr=0.5)
    factors = [lambda count: 0.5**count, lambda count: None if count else 1.0]
    scheduler = optim.LambdaLR(optimizer, factors)
    with pytest.raises(TypeError):
        scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 0.5]
