"""Steps with ``exact=False`` come to what the interpreter comes to, up to the last bits."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import static

F = np.float32


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(F)


def network(loss=mg.mse):
    """A layer, tanh, a layer; its parameters and a loss."""
    prog = static.Program()
    with static.program_guard(prog):
        x, t = static.data("x", [4, 8], F), static.data("t", [4, 3], F)
        w, b = static.parameter("w", numbers(1, 8, 16)), static.parameter("b", numbers(2, 16))
        v = static.parameter("v", numbers(3, 16, 3))
        y = loss(mg.matmul(mg.tanh(mg.linear(x, w, b)), v), t)
    return prog, y


FEED = {"x": numbers(4, 4, 8), "t": numbers(5, 4, 3)}


def after_three_steps(prog, fetch, exact):
    """What is fetched in three steps, and the parameters then; of the interpreter for ``exact=None``."""
    if exact is not None:
        step = static.compile(prog, fetch=fetch, exact=exact)
        return [np.array(step(**FEED)[0]) for _ in range(3)], step.parameters
    exe = static.Executor()
    return [np.array(exe.run(prog, FEED, fetch)[0]) for _ in range(3)], exe.scope.values


def agree(prog, fetch):
    """Compiled steps come to what the interpreter's come to, bit by bit if they are exact."""
    (wanted, others) = after_three_steps(prog, fetch, None)
    for exact, allowed in ((True, 0), (False, 1e-5)):
        seen, values = after_three_steps(prog, fetch, exact)
        for a, b in zip(seen, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=allowed, atol=allowed)
        assert values.keys() == {n for n, v in prog.global_block().vars.items() if v.persistable}
        for name, value in values.items():
            np.testing.assert_allclose(value, others[name], rtol=allowed, atol=allowed)


# -- the learning rate ---------------------------------------------------------------------


def test_plain_descent_comes_to_what_the_interpreter_comes_to():
    prog, y = network()
    with static.program_guard(prog):
        mg.optim.SGD(lr=0.1).minimize(y)
    agree(prog, [y])


def test_a_rate_that_is_changed_between_runs_counts():
    prog, y = network()
    with static.program_guard(prog):
        mg.optim.SGD(lr=0.1).minimize(y)
    step = static.compile(prog, fetch=[y], exact=False)
    before = step.parameters["w"].copy()
    step.parameters["learning_rate"][...] = 0
    step(**FEED)
    np.testing.assert_array_equal(step.parameters["w"], before)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: mg.optim.SGD(lr=0.1, clip=mg.optim.clip_by_norm(0.5)),
        lambda: mg.optim.SGD(lr=0.1, weight_decay=0.1),
        lambda: mg.optim.SGD(lr=0.1, momentum=0.9),
        lambda: mg.optim.SGD(lr=0.1, momentum=0.9, nesterov=True),
        lambda: mg.optim.Adam(lr=0.01),
        lambda: mg.optim.Adagrad(lr=0.01),
        lambda: mg.optim.RMSprop(lr=0.01),
    ],
    ids=["clipped", "decay", "momentum", "Nesterov", "Adam", "Adagrad", "RMSprop"],
)
def test_other_optimizers_come_to_what_the_interpreter_comes_to(optimizer):
    prog, y = network()
    with static.program_guard(prog):
        optimizer().minimize(y)
    agree(prog, [y])


def test_gradients_that_are_fetched_are_those_of_the_loss():
    prog, y = network()
    with static.program_guard(prog):
        mg.optim.SGD(lr=0.1).minimize(y)
    for fetch in (["w@GRAD", y], ["v@GRAD", y], ["b@GRAD", y]):
        agree(prog, fetch)


def test_a_gradient_that_something_else_reads_is_that_of_the_loss():
    prog, y = network()
    with static.program_guard(prog):
        mg.optim.SGD(lr=0.1).minimize(y)
        norm = (prog.global_block().var("v@GRAD") ** 2).sum()
    agree(prog, [norm])


def test_a_loss_of_two_terms_trains_as_in_the_interpreter():
    prog, y = network(lambda y, t: mg.mse(y, t) + (y * y).sum() * 0.01)
    with static.program_guard(prog):
        mg.optim.SGD(lr=0.1).minimize(y)
    agree(prog, [y])


def test_a_penalty_on_the_weights_reaches_them_past_the_first_gradient():
    prog, y = network()
    with static.program_guard(prog):
        w = prog.global_block().var("w")
        total = y + (w * w).sum() * 0.01
        mg.optim.SGD(lr=0.1).minimize(total)
    agree(prog, [total])


def test_a_bias_of_one_number_for_a_whole_layer_is_no_row_of_its_weight():
    prog = static.Program()
    with static.program_guard(prog):
        x, t = static.data("x", [4, 8], F), static.data("t", [4, 16], F)
        w, b = static.parameter("w", numbers(1, 8, 16)), static.parameter("b", numbers(2, 1))
        y = mg.mse(mg.tanh(x @ w + b), t)
        mg.optim.SGD(lr=0.1).minimize(y)
    feed = {"x": numbers(4, 4, 8), "t": numbers(5, 4, 16)}
    steps = [static.compile(prog, fetch=[y], exact=exact) for exact in (True, False)]
    for _ in range(3):
        (wanted,), (seen,) = (step(**feed) for step in steps)
        np.testing.assert_allclose(seen, wanted, rtol=1e-5)


def test_a_product_that_is_added_twice_counts_twice():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", numbers(1, 8, 3))
        xs = [static.data(f"x{k}", [4, 8], F) for k in range(3)]
        slopes = [static.gradients(mg.tanh(x @ w).sum(), [w])[0] for x in xs]
        total = mg.add_n(slopes[0], *slopes)
    feed = {x.name: numbers(k, 4, 8) for k, x in enumerate(xs)}
    (wanted,) = static.Executor().run(prog, feed, [total])
    step = static.compile(prog, fetch=total, exact=False)
    np.testing.assert_allclose(step(feed), wanted, rtol=1e-5)


# -- relu and pooling ----------------------------------------------------------------------


def pooled(x, **how):
    """Gradients of a convolution, relu and pooling, with ties and zeros among the windows."""
    prog = static.Program()
    with static.program_guard(prog):
        x_ = static.data("x", x.shape, F)
        w = static.parameter("w", numbers(7, 2, 1, 1, 1))
        relu = mg.relu(mg.conv2d(x_, w, padding=1))
        out = mg.max_pool2d(relu, **how)
        loss = (out * out).sum() + out.sum()
        ((_, slope),) = static.append_backward(loss)
    return prog, relu, [loss, out, slope, "conv2d_0@GRAD"]


TIES = np.random.default_rng(0).integers(-2, 3, (3, 1, 6, 6)).astype(F)


@pytest.mark.parametrize(
    "how",
    [
        {"kernel_size": 2},
        {"kernel_size": 3},
        {"kernel_size": 3, "stride": 1},
        {"kernel_size": 2, "padding": 1},
    ],
)
def test_relu_and_pooling_give_the_same_numbers_at_ties_and_zeros(how):
    prog, _, fetch = pooled(TIES, **how)
    step = static.compile(prog, fetch=fetch, exact=False)
    wanted = static.Executor().run(prog, {"x": TIES}, fetch)
    for _ in range(2):
        for a, b in zip(step(x=TIES), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_values_of_relu_before_pooling_can_be_fetched():
    prog, relu, fetch = pooled(TIES, kernel_size=2)
    wanted = static.Executor().run(prog, {"x": TIES}, [relu, *fetch])
    seen = static.compile(prog, fetch=[relu, *fetch], exact=False)(x=TIES)
    for a, b in zip(seen, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


# -- sigmoids ------------------------------------------------------------------------------


def test_a_sigmoid_whose_logarithm_is_taken_keeps_its_small_values():
    prog = static.Program()
    with static.program_guard(prog):
        a, b = mg.split(static.data("z", [2, 4], F), 2, axis=1)
        y = mg.log(mg.sigmoid(a)) + mg.tanh(b)
    step = static.compile(prog, fetch=y, exact=False)
    np.testing.assert_allclose(step(z=np.full((2, 4), -20, F)), -21, rtol=1e-6)


# -- borders -------------------------------------------------------------------------------


def test_borders_stay_zero_from_run_to_run():
    prog, _, fetch = pooled(TIES, kernel_size=2)
    step, exe = static.compile(prog, fetch=fetch), static.Executor()
    for k in range(3):
        x = numbers(k, *TIES.shape)
        for a, b in zip(step(x=x), exe.run(prog, {"x": x}, fetch), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_added_to_starts_from_zero_in_every_run():
    prog, _, fetch = pooled(TIES, kernel_size=3, stride=1)
    step = static.compile(prog, fetch=fetch)
    first = step(x=TIES)
    for a, b in zip(step(x=TIES), first, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("shape", "others"),
    [
        ((3, 1), [(3, 2)] * 3),
        ((1,), [(5, 3), (5, 2), (4, 2)]),
        ((1, 1), [(5, 2), (4, 3), (3, 2)]),
        ((1, 2), [(5, 2), (4, 2), (3, 2)]),
    ],
)
def test_what_is_broadcast_three_times_along_any_axis_has_its_gradient(shape, others):
    prog = static.Program()
    with static.program_guard(prog):
        b = static.parameter("b", np.full(shape, 0.3))
        data = [static.data(f"x{k}", other) for k, other in enumerate(others)]
        (g,) = static.gradients(mg.add_n([mg.sin(x * b).sum() for x in data]), [b])
    feed = {x.name: np.arange(x.shape[0] * x.shape[1]).reshape(x.shape) for x in data}
    (wanted,) = static.Executor().run(prog, feed, [g])
    np.testing.assert_allclose(static.compile(prog, fetch=g, exact=False)(feed), wanted)


# -- all steps of a sequence at once -------------------------------------------------------


def unrolled(order, overwritten=False):
    """A recurrent network over the steps of a sequence in an order, and its gradients."""
    prog = static.Program()
    with static.program_guard(prog):
        xs, h = static.data("xs", [4, 2, 3], F), static.data("h", [2, 5], F)
        wx = static.parameter("wx", numbers(7, 3, 5))
        wh = static.parameter("wh", numbers(8, 5, 5))
        b = static.parameter("b", numbers(9, 5))
        steps = [xs[k] for k in order]
        if overwritten:
            prog.global_block().append_op("square", {"x": [xs]}, {"out": [xs]})
        for x in steps:
            h = mg.tanh(mg.linear(x, wx, b) + h @ wh)
        fetch = [g for _, g in static.append_backward((h * h).sum())]
    return prog, fetch


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (0, 1, 2), (1, 1, 2, 0)])
@pytest.mark.parametrize("overwritten", [False, True])
def test_weights_of_all_steps_have_the_gradients_of_the_interpreter(order, overwritten):
    prog, fetch = unrolled(order, overwritten)
    feed = {"xs": numbers(10, 4, 2, 3), "h": numbers(11, 2, 5)}
    step = static.compile(prog, fetch=fetch, exact=False)
    for ours, theirs in zip(step(feed), static.Executor().run(prog, feed, fetch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_rows_that_have_several_names_are_put_together_once():
    prog, fetch = unrolled((0, 1, 2, 3))
    source = static.compile(prog, fetch=fetch, exact=False).source
    # the steps of xs, the states, and the gradients, which those of both weights and of the bias read
    assert source.count("np.concatenate(") == 3
