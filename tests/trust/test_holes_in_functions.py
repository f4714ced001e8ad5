"""What no test of functions of the user, of switches and of checkpoints looked at until a mutant survived."""

from __future__ import annotations

import _thread
import gc
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.eager.record import source
from minigrad.errors import AnomalyError, DTypeError, ShapeError
from minigrad.primitives.registry import REGISTRY
from tests.trust.pieces import Twice, leaf


class Exp(mg.Function):
    """Saves its output."""

    seen: list[bool] = []

    @staticmethod
    def forward(ctx, x):
        y = mg.exp(x)
        ctx.save_for_backward(None, y, x)
        return y

    @staticmethod
    def backward(ctx, g):
        nothing, y, _ = ctx.saved_tensors
        assert nothing is None
        Exp.seen.append(y.requires_grad)
        return g * y


def test_a_node_of_a_function_tells_what_it_saved():
    x = leaf(0.0)
    saved = Exp.apply(x).grad_fn.saved
    assert {name: value.tolist() for name, value in saved.items()} == {"1": 1.0, "2": 0.0}


def test_a_function_of_constants_or_without_grad_mode_leaves_no_graph():
    assert not Twice.apply(mg.tensor(1.0)).requires_grad
    with mg.no_grad():
        assert not Twice.apply(leaf(1.0)).requires_grad
    assert Twice.apply(leaf(1.0)).requires_grad


def test_an_argument_that_is_handed_on_is_a_new_output():
    class HandedOn(Twice):
        @staticmethod
        def forward(ctx, x):
            return x

    x = leaf(3.0)
    y = HandedOn.apply(x)
    assert x.is_leaf and not y.is_leaf
    y.backward()
    assert float(x.grad) == 2.0


@pytest.mark.parametrize(
    "made", [np.array([1.0, 2.0]), np.float64(3.0), 3.0], ids=["array", "NumPy", "Python"]
)
def test_numbers_and_arrays_that_forward_returns_become_tensors(made):
    class Foreign(Twice):
        @staticmethod
        def forward(ctx, x):
            return made

    x = leaf(np.ones(np.shape(made)))
    y = Foreign.apply(x)
    assert isinstance(y, mg.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == np.full(np.shape(made), 2.0).tolist()


def test_a_function_keeps_the_leaves_it_uses():
    seen = []

    def made():
        x = leaf(1.0)
        x.register_hook(lambda g: seen.append(float(g)))
        return Twice.apply(x)

    made().backward()
    assert seen == [2.0]


def test_an_output_that_was_saved_dies_with_its_last_name():
    gc.disable()
    try:
        y = Exp.apply(leaf(1.0))
        ref = weakref.ref(y)
        del y
        assert ref() is None
    finally:
        gc.enable()


def test_a_saved_output_has_a_graph_only_where_one_is_made():
    Exp.seen.clear()
    x = leaf(0.0)
    Exp.apply(x).backward()
    Exp.apply(x).backward(create_graph=True)
    assert Exp.seen == [False, True]


def test_a_function_names_the_line_that_called_it():
    y = Twice.apply(leaf(1.0))
    assert "y = Twice.apply(leaf(1.0))" in y.grad_fn.where()


def test_a_function_may_run_where_no_line_of_a_user_is_below_it():
    """Backward is the first function of its thread here, and `once_differentiable` applies a Function in it."""

    class Once(Twice):
        backward = staticmethod(mg.once_differentiable(Twice.backward))

    x, done = leaf(1.0), threading.Event()
    x.register_post_accumulate_grad_hook(lambda x: done.set())
    y = Once.apply(x)
    _thread.start_new_thread(y.backward, (), {"create_graph": True})
    assert done.wait(60)
    assert float(x.grad) == 2.0


def test_checkpoint_hands_on_what_is_no_tensor():
    x = leaf([1.0, 2.0])
    mg.checkpoint(
        lambda a, k, name: (a * a * k).sum() if name == "twice" else a, x, 2, "twice"
    ).backward()
    assert x.grad.tolist() == [4.0, 8.0]


# -- switches ------------------------------------------------------------------------------


def test_every_switch_changes_its_own_mode_and_nothing_else():
    x = leaf(2.0)
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert not mg.is_grad_enabled() and not (x * x).requires_grad
        with mg.enable_grad():
            assert mg.is_grad_enabled() and (x * x).requires_grad
        assert not mg.is_grad_enabled()
    with mg.detect_anomaly(), mg.no_grad():
        assert not (x * x).requires_grad
        with np.errstate(all="ignore"), pytest.raises(AnomalyError), mg.enable_grad():
            mg.log(-x)
    assert mg.is_grad_enabled()


def test_what_is_not_finite_is_an_error_in_anomaly_mode_only():
    x = leaf([1.0, -1.0])
    with np.errstate(all="ignore"):
        mg.log(x).sum().backward()
        assert np.isfinite(x.grad.tolist()).all()
        for zero in (leaf(0.0), leaf([0.0])):
            mg.sqrt(zero).sum().backward()
            assert np.isinf(zero.grad.tolist()).all()
        with mg.detect_anomaly():
            with pytest.raises(AnomalyError, match=r"log made nan from \(float64\[2\]\)\n"):
                mg.log(x)
            with pytest.raises(AnomalyError, match=r"log made nan from \(-1.0\)\n"):
                mg.log(x[1])


@pytest.mark.parametrize(
    "make", [mg.no_grad, lambda: mg.set_grad_enabled(False), mg.detect_anomaly]
)
def test_a_switch_is_what_with_gives_and_may_be_used_again(make):
    switch = make()
    for _ in range(2):
        with switch as given:
            assert given is switch
            inside = mg.is_grad_enabled()
        assert inside == (make is mg.detect_anomaly)
        assert mg.is_grad_enabled()


def test_a_switch_set_at_once_decorates_as_many_functions_as_you_like():
    switch = mg.set_grad_enabled(False)
    first, second = switch(mg.is_grad_enabled), switch(mg.is_grad_enabled)
    assert mg.is_grad_enabled()
    assert [first(), second(), first()] == [False, False, False]
    assert mg.is_grad_enabled()


# -- the functions that are written for primitives -------------------------------------------


def test_the_text_of_a_primitives_functions_can_be_read():
    text = source(REGISTRY["mul"])
    for name in ("def apply(x0=", "def push(n):", "def reach(", "def free("):
        assert name in text
    assert source(REGISTRY["concat"]).startswith("# generic path\n")


def test_a_primitive_may_have_an_input_to_leave_out_and_an_attr_to_give():
    @mg.primitive
    def scaled(x, shift=None, *, by):
        return x * by if shift is None else x * by + shift

    scaled.grad(x=lambda by, out_grad: out_grad * by, shift=lambda out_grad: out_grad)
    try:
        x, b = leaf(2.0), leaf(1.0)
        y = scaled(x, by=3.0) + scaled(x, b, by=5.0)
        assert y.item() == 17.0
        y.backward()
        assert (x.grad.item(), b.grad.item()) == (8.0, 1.0)
        for call, words in (
            (lambda: scaled(x), "by"),
            (lambda: scaled(x, b, 3.0), "by"),
            (lambda: scaled(x, bye=3.0), "no keyword 'bye'"),
        ):
            with pytest.raises(DTypeError, match=words):
                call()
    finally:
        REGISTRY.pop("scaled")


@pytest.mark.parametrize("hooked", [False, True])
def test_a_rule_that_gives_another_shape_is_an_error_and_leaves_no_gradient(hooked):
    made = mg.primitive(lambda x: x * 2.0, type="twice_wrong")
    made.grad(x=lambda out_grad: np.ones(3))
    try:
        x = leaf([1.0, 2.0])
        y = mg.sum(made(x))
        if hooked:
            y.register_hook(lambda g: g)
        with pytest.raises(ShapeError, match=r"a gradient of shape \[3\] arrived at float64\[2\]"):
            y.backward()
        assert x.grad is None
    finally:
        REGISTRY.pop("twice_wrong")


def test_a_view_of_what_the_user_holds_keeps_the_values_it_had():
    x = leaf([1.0, 2.0])
    held = x.data
    y = mg.reshape(x, shape=(2, 1))
    z = mg.sum(y * y)
    held[0] = 100.0
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_rule_may_read_the_shape_of_an_input_that_has_no_gradient():
    made = mg.primitive(lambda x, y: np.sum(x) * y, type="summed_times")
    made.grad(x=lambda y, out_grad: out_grad * y, y=lambda out_grad, x_shape: out_grad * x_shape[0])
    try:
        y = leaf(2.0)
        made(mg.tensor([1.0, 1.0, 1.0]), y).backward()
        assert float(y.grad) == 3.0
    finally:
        REGISTRY.pop("summed_times")
