"""The executor: scopes, transactions, programs that are copied, cut down and printed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

import minigrad as mg
from minigrad import static

X = np.arange(6.0).reshape(2, 3)


def net():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 3])
        w = static.parameter("w", np.full((3, 2), 0.5))
        h = mg.dropout(mg.matmul(x, w), 0.5, seed=3)
        loss = h.mean()
        mg.argmax(h, axis=1)
        mg.optim.SGD(lr=0.1).minimize(loss)
    return program, loss


def test_the_scope_of_a_run_can_be_looked_at():
    program, loss = net()
    scope = static.Scope()
    (value,) = static.Executor().run(program, {"x": X}, [loss], scope=scope)
    assert scope[loss.name] == value
    assert "w@GRAD" in scope
    assert scope["matmul_0"].shape == (2, 2)
    assert "nobody" not in scope


def test_fetched_values_belong_to_the_caller():
    program, loss = net()
    executor = static.Executor()
    (w,) = executor.run(program, {"x": X}, ["w"])
    w[:] = 7.0
    assert (executor.scope["w"] != 7.0).all()


def test_a_parameter_written_from_a_fed_array_does_not_share_its_memory():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [3])
        static.parameter("w", np.zeros(3))
        program.global_block().append_op("reshape", {"x": x}, {"out": "w"}, {"shape": (3,)})
    executor, fed = static.Executor(), np.ones(3)
    executor.run(program, {"x": fed})
    fed[:] = 5.0
    np.testing.assert_array_equal(executor.scope["w"], 1.0)


def test_a_clone_for_testing_keeps_forward_operators_and_switches_dropout_off():
    program, loss = net()
    test = program.clone(for_test=True)
    assert [op.type for op in test.global_block().ops] == ["matmul", "dropout", "mean", "arg_max"]
    (value,) = static.Executor().run(test, {"x": X}, [loss])
    assert value == (X @ np.full((3, 2), 0.5)).mean()
    assert str(test).startswith("# made by: clone(for_test)\n")


def test_a_clone_and_its_original_do_not_share_anything():
    program, loss = net()
    before = program.to_json()
    copy = program.clone()
    assert copy.to_json() == before
    with static.program_guard(copy):
        mg.exp(copy.global_block().var(loss.name))
        copy.initial["w"][:] = 9.0
        copy.global_block().ops[0].inputs["x"][0] = "w"
    assert program.to_json() == before


def test_pruning_keeps_what_the_targets_need():
    program, loss = net()
    pruned = program.prune("w@GRAD")
    kinds = [op.type for op in pruned.global_block().ops]
    assert kinds == [
        "matmul",
        "dropout",
        "fill_constant",
        "mean_grad",
        "dropout_grad",
        "matmul_grad",
    ]
    assert [op.type for op in program.prune(loss).global_block().ops] == [
        "matmul",
        "dropout",
        "mean",
    ]
    a, b = (static.Executor().run(p, {"x": X}, ["w@GRAD"])[0] for p in (program, pruned))
    np.testing.assert_array_equal(a, b)


def test_decomposition_gives_the_same_values():
    program, loss = net()
    parts = static.decompose(program)
    assert not any(op.type.endswith("_grad") for op in parts.global_block().ops)
    a, b = (static.Executor().run(p, {"x": X}, ["w@GRAD", "w"]) for p in (program, parts))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


SCRIPT = """
from tests.static.random_programs import program, recipe
for seed in range(6):
    made, loss, _ = program(recipe(seed))
    print(made, made.to_json(), made.pruned)
"""


def test_the_text_of_a_program_does_not_change_with_the_hash_seed():
    texts = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        texts.add(
            subprocess.run(
                [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
            ).stdout
        )
    assert len(texts) == 1
    assert len(texts.pop()) > 1000


def test_tensor_arrays_are_written_and_read_in_loops_with_gradients():
    program = static.Program()
    with static.program_guard(program):
        w = static.parameter("w", np.array([0.5, 1.5]))
        array = static.create_array(4, [2])

        def fill(i, a):
            return [i + 1, static.array_write(a, i, w * mg.astype(i, "float64"))]

        _, array = static.while_loop(lambda i, a: i < 4, fill, [0, array])
        assert static.array_length(array) == 4
        loss = (static.array_read(array, 3) * static.array_read(array, np.asarray(2))).sum()
        ((_, g),) = static.append_backward(loss)
    value, grad = static.Executor().run(program, fetch_list=[loss, g])
    np.testing.assert_allclose(value, 6 * (0.25 + 2.25))
    np.testing.assert_allclose(grad, [6.0, 18.0])
