"""Optimizers in programs: the same numbers as the eager ones; parameters change only when a run succeeds."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim, static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY

START = {"w": np.array([[0.5, -0.3], [0.8, 0.1]]), "b": np.array([0.2, -0.4])}


X = np.sin(np.arange(6.0)).reshape(3, 2)


OPTIMIZERS = {
    "sgd": lambda p=None: optim.SGD(p, lr=0.1),
    "momentum": lambda p=None: optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p=None: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda p=None: optim.Adagrad(p, lr=0.05),
    "rmsprop": lambda p=None: optim.RMSprop(p, lr=0.05),
    "adam": lambda p=None: optim.Adam(p, lr=0.05),
    "adamw": lambda p=None: optim.AdamW(p, lr=0.05, weight_decay=0.1),
    "weight decay": lambda p=None: optim.SGD(p, lr=0.1, weight_decay=0.3),
    "clip by value": lambda p=None: optim.SGD(p, lr=0.1, clip=optim.clip_by_value(0.05)),
    "clip by norm": lambda p=None: optim.SGD(p, lr=0.1, clip=optim.clip_by_norm(0.1)),
    "clip by global norm": lambda p=None: optim.SGD(p, lr=0.1, clip=optim.clip_by_global_norm(0.1)),
    "schedule": lambda p=None: optim.SGD(p, lr=optim.warmup(optim.cosine(0.1, 4), 2)),
}


def loss_of(x, w, b):
    return mg.square(mg.tanh(mg.matmul(x, w) + b) - 0.3).sum()


def built(optimizer):
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 2])
        w, b = (static.parameter(n, v) for n, v in START.items())
        loss = loss_of(x, w, b)
        pairs = optimizer.minimize(loss)
    return program, loss, pairs


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_program_trains_like_the_eager_engine(name):
    leaves = [mg.tensor(v, requires_grad=True) for v in START.values()]
    ours = OPTIMIZERS[name](leaves)
    program, loss, pairs = built(OPTIMIZERS[name]())
    assert [p.name for p, _ in pairs] == ["w", "b"]
    static.verify(program)
    stored = program.to_json()
    assert static.Program.from_json(stored).to_json() == stored
    executor = static.Executor()
    for _ in range(5):
        executor.run(program, {"x": X}, [loss])
        ours.zero_grad()
        loss_of(mg.tensor(X), *leaves).backward()
        ours.step()
    for name_, leaf in zip(START, leaves, strict=True):
        np.testing.assert_allclose(executor.scope[name_], leaf.detach().numpy(), rtol=1e-12)


def test_update_operators_have_the_role_optimize_and_write_the_parameters_own_name():
    program, _, _ = built(optim.SGD(lr=0.1, momentum=0.9))
    updates = [op for op in program.global_block().ops if op.role == "optimize"]
    assert [str(op) for op in updates] == [
        "w, w@velocity = momentum(w, w@GRAD, w@velocity, learning_rate, mu=0.9, use_nesterov=False)",
        "b, b@velocity = momentum(b, b@GRAD, b@velocity, learning_rate, mu=0.9, use_nesterov=False)",
    ]
    assert all(program.global_block().var(n).persistable for n in ("w@velocity", "learning_rate"))
    assert [op.role for op in program.clone(for_test=True).global_block().ops] == ["forward"] * 6


def in_another_order(learning_rate, seen, grad, param):
    return param - learning_rate * grad, seen + 1.0


@pytest.mark.parametrize(
    ("kernel", "written"),
    [
        (in_another_order, "w, w@seen = {}(learning_rate, w@seen, w@GRAD, w)"),
        (lambda param, grad: param - 0.5 * grad, "w = {}(w, w@GRAD)"),
    ],
)
def test_an_update_primitive_of_the_user_is_given_what_it_takes_in_its_own_order(kernel, written):
    name, memory = "update_of_a_test", {"seen": 0.0} if "seen" in written else {}
    mg.primitive(kernel, type=name, outputs=("param_out", *(f"{s}_out" for s in memory)))
    try:
        optimizer = optim.SGD(lr=0.5)
        optimizer.type, optimizer.memory = name, memory
        with static.program_guard(static.Program()) as program:
            w = static.parameter("w", [1.0, 2.0])
            optimizer.minimize((w * w * w).sum())
        assert str(program.global_block().ops[-1]) == written.format(name)
        executor = static.Executor()
        executor.run(program)
        assert executor.scope["w"].tolist() == [-0.5, -4.0]
    finally:
        REGISTRY.pop(name)


def test_parameters_change_only_when_the_run_succeeds():
    program = static.Program()
    with static.program_guard(program):
        places = static.data("places", [1], np.int64)
        w = static.parameter("w", [1.0, 2.0])
        optim.SGD(lr=0.5, momentum=0.9).minimize((w * w).sum())
        mg.take(w, places)
    executor = static.Executor()
    executor.run(program, {"places": np.array([0])})
    before = {n: v.copy() for n, v in executor.scope.values.items()}
    with pytest.raises(ProgramError, match="take"):
        executor.run(program, {"places": np.array([5])})
    assert set(before) == set(executor.scope.values)
    for name, value in before.items():
        np.testing.assert_array_equal(executor.scope.values[name], value)


def test_the_learning_rate_can_be_changed_between_runs():
    program, _, _ = built(optim.SGD(lr=0.5))
    executor = static.Executor()
    executor.run(program, {"x": X})
    executor.scope.values["learning_rate"] = np.asarray(0.0)
    before = executor.scope["w"]
    executor.run(program, {"x": X})
    np.testing.assert_array_equal(executor.scope["w"], before)


def test_float32_parameters_stay_float32():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", np.ones(2, np.float32))
        optim.Adam(lr=optim.cosine(0.1, 5)).minimize((w * w).sum())
    executor = static.Executor()
    for _ in range(2):
        executor.run(program)
    kinds = {n: v.dtype.name for n, v in executor.scope.values.items() if n.startswith("w")}
    assert set(kinds.values()) == {"float32"}


def test_minimize_that_fails_leaves_the_program_alone():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [1.0])
        loss = w.sum()
        before = program.to_json()
        with pytest.raises(ProgramError):
            optim.SGD(lr=0.1, clip=_refuse).minimize(loss)
    assert program.to_json() == before


def _refuse(grads):
    raise ProgramError("no clip today")


def test_an_error_clip_acts_as_soon_as_the_gradient_is_whole():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", [2.0])
        h = w * 3.0
        static.error_clip(h, -1.0, 1.0)
        ((_, g),) = static.append_backward((h * h + h).sum())
    lines = [str(op) for op in program.global_block().ops]
    at = next(k for k, line in enumerate(lines) if line.startswith("mul_0@GRAD = clip"))
    assert lines[at - 1].startswith("mul_0@GRAD = sum([")
    assert lines[at] == "mul_0@GRAD = clip(mul_0@GRAD, min=-1.0, max=1.0)"
    assert static.Executor().run(program, fetch_list=[g])[0] == [3.0]


def test_error_clips_work_inside_loops():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", 1.0)

        def body(i, s):
            t = s * 10.0
            static.error_clip(t, -0.5, 0.5)
            return [i + 1, t]

        _, s = static.while_loop(lambda i, s: i < 3, body, [0, w])
        ((_, g),) = static.append_backward(s)
    assert static.Executor().run(program, fetch_list=[g])[0] == 5.0


def test_two_programs_with_one_executor_keep_their_own_constants():
    executor, found = static.Executor(), []
    for value in (1.0, 2.0):
        program = static.Program()
        with static.program_guard(program):
            y = static.data("x", [2]) + np.full(2, value)
        found.append(executor.run(program, {"x": np.zeros(2)}, [y])[0])
    np.testing.assert_array_equal(found, [[1.0, 1.0], [2.0, 2.0]])


def test_the_optimizers_are_known_in_static_too():
    assert static.SGD is optim.SGD
    assert static.Adam is optim.Adam


@pytest.fixture
def prog():
    program = static.Program()
    with static.program_guard(program):
        yield program


# -- updates -------------------------------------------------------------------------------


def test_only_a_loss_is_minimized(prog):
    with pytest.raises(ProgramError, match="append_backward starts from a Variable, not from 3"):
        optim.SGD(lr=0.1).minimize(3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_schedule_that_is_a_number_is_one(prog, dtype):
    w = static.parameter("w", np.ones(2, dtype))
    optim.SGD(lr=lambda count: 0.25).minimize((w * w).sum())
    executor = static.Executor()
    for _ in range(2):
        executor.run(prog)
    assert executor.scope["w"].tolist() == [0.25, 0.25]
    assert prog.global_block().var("learning_rate").dtype == dtype


@pytest.mark.parametrize(("dtype", "casts"), [("float64", 0), ("float32", 1)])
def test_a_rate_is_cast_only_where_parameters_have_another_dtype(prog, dtype, casts):
    w = static.parameter("w", np.ones(2, dtype))
    optim.SGD(lr=lambda count: 0.5 / (count + 1.0)).minimize((w * w).sum())
    kinds = [op.type for op in prog.global_block().ops if op.role == "optimize"]
    assert kinds.count("cast") == casts
    executor = static.Executor()
    for _ in range(2):
        executor.run(prog)
    assert executor.scope["w"].dtype == dtype
    assert executor.scope["w"].tolist() == [0.0, 0.0]
