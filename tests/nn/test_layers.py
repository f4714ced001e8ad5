"""Layers: values against NumPy, gradients against finite differences, Programs against eager."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static

rng = np.random.default_rng(7)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def values(module):
    return module.state_dict()


def numpy_rnn(w, xs, h):
    outputs = []
    for x in xs:
        h = np.tanh(x @ w["weight_x"] + h @ w["weight_h"] + w["bias"])
        outputs.append(h)
    return np.array(outputs)


def numpy_lstm(w, xs, h):
    outputs, c = [], h
    for x in xs:
        i, f, g, o = np.split(x @ w["weight_x"] + h @ w["weight_h"] + w["bias"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def numpy_gru(w, xs, h):
    outputs = []
    for x in xs:
        xr, xz, xn = np.split(x @ w["weight_x"] + w["bias"], 3, axis=1)
        hr, hz, hn = np.split(h @ w["weight_h"], 3, axis=1)
        z, n = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * (hn + w["bias_n"]))
        h = (1 - z) * n + z * h
        outputs.append(h)
    return np.array(outputs)


@pytest.mark.parametrize(
    ("kind", "reference"), [(nn.RNN, numpy_rnn), (nn.LSTM, numpy_lstm), (nn.GRU, numpy_gru)]
)
def test_layers_with_memory_agree_with_numpy(kind, reference):
    layer, x = kind(3, 4, seed=5), rng.normal(size=(6, 2, 3))
    outputs, last = layer(mg.tensor(x))
    expected = reference(values(layer), x, np.zeros((2, 4)))
    np.testing.assert_allclose(outputs.detach().numpy(), expected, rtol=1e-12)
    state = last[0] if kind is nn.LSTM else last
    np.testing.assert_allclose(state.detach().numpy(), expected[-1], rtol=1e-12)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_an_empty_sequence_gives_no_outputs_and_the_first_state(kind):
    outputs, last = kind(3, 4)(mg.zeros([0, 2, 3]))
    assert outputs.shape == (0, 2, 4)
    state = last[0] if kind is nn.LSTM else last
    assert not state.numpy().any()


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_sequence_in_two_parts_is_the_whole_sequence(kind):
    layer, x = kind(3, 4), mg.tensor(rng.normal(size=(6, 2, 3)))
    whole, _ = layer(x)
    first, state = layer(x[:2])
    second, _ = layer(x[2:], state)
    np.testing.assert_allclose(
        mg.concat(first, second).detach().numpy(), whole.detach().numpy(), rtol=1e-12
    )


def numpy_attention(w, q, k, v, heads, causal):
    def project(name, x):
        made = x @ w[f"{name}.weight"] + w[f"{name}.bias"]
        return made.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = project("query", q), project("key", k), project("value", v)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[2], scores.shape[3]), scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    weights = scores / scores.sum(-1, keepdims=True)
    mixed = np.einsum("bhqk,bhkd->bqhd", weights, v)
    return mixed.reshape(*mixed.shape[:2], -1) @ w["out.weight"] + w["out.bias"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 3])
def test_attention_agrees_with_numpy(heads, causal):
    layer = nn.MultiHeadAttention(6, heads, seed=2)
    q, k, v = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 5, 6)), rng.normal(size=(2, 5, 6))
    made = layer(mg.tensor(q), mg.tensor(k), mg.tensor(v), causal=causal).detach().numpy()
    np.testing.assert_allclose(
        made, numpy_attention(values(layer), q, k, v, heads, causal), rtol=1e-11
    )


def test_a_place_that_may_not_be_seen_has_no_influence():
    layer, x = nn.MultiHeadAttention(4, 2), rng.normal(size=(1, 3, 4))
    mask = np.array([[True, True, False]])
    changed = x.copy()
    changed[:, 2] += 5.0
    one, two = (layer(mg.tensor(v), mask=mask).detach().numpy() for v in (x, changed))
    np.testing.assert_array_equal(one[:, :2], two[:, :2])


def test_dense_and_convolution_layers_agree_with_numpy():
    x, layer = rng.normal(size=(5, 3)), nn.Linear(3, 2)
    w = values(layer)
    np.testing.assert_allclose(
        layer(mg.tensor(x)).tolist(), x @ w["weight"] + w["bias"], rtol=1e-12
    )
    image, conv = rng.normal(size=(1, 2, 4, 4)), nn.Conv2d(2, 3, kernel_size=3)
    made, w = conv(mg.tensor(image)).detach().numpy(), values(conv)
    window = image[0, :, 1:4, 0:3]
    np.testing.assert_allclose(
        made[0, :, 1, 0], (w["weight"] * window).sum((1, 2, 3)) + w["bias"], rtol=1e-12
    )


def test_batch_norm_remembers_running_statistics_and_uses_them():
    layer, x = nn.BatchNorm(3, momentum=0.25), rng.normal(2.0, 3.0, size=(8, 3, 2))
    made = layer(mg.tensor(x)).detach().numpy()
    np.testing.assert_allclose(made.mean((0, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(made.var((0, 2)), 1, rtol=1e-4)
    mean, var = x.mean((0, 2)), x.var((0, 2), ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * var, rtol=1e-12)
    used = layer.eval()(mg.tensor(x)).detach().numpy()
    wide = (1, 3, 1)
    expected = (x - 0.25 * mean.reshape(wide)) / np.sqrt((0.75 + 0.25 * var).reshape(wide) + 1e-5)
    np.testing.assert_allclose(used, expected, rtol=1e-12)


def test_dropout_draws_new_masks_from_its_seed_and_does_nothing_in_use():
    one, two = nn.Dropout(0.5, seed=3), nn.Dropout(0.5, seed=3)
    x = mg.ones([1000])
    first, again = one(x).numpy(), one(x).numpy()
    assert (first != again).any()
    np.testing.assert_array_equal(two(x).numpy(), first)
    assert set(first) == {0.0, 2.0}
    assert abs(first.mean() - 1) < 0.15
    assert one.eval()(x) is x


def test_the_first_values_come_from_the_seed():
    assert nn.Linear(3, 2, seed=1).weight.tolist() == nn.Linear(3, 2, seed=1).weight.tolist()
    assert nn.Linear(3, 2, seed=1).weight.tolist() != nn.Linear(3, 2, seed=2).weight.tolist()
    draw = np.random.default_rng(0)
    assert nn.Linear(3, 2, seed=draw).weight.tolist() != nn.Linear(3, 2, seed=draw).weight.tolist()


CASES = {
    "linear": (lambda: nn.Linear(3, 2), (4, 3)),
    "conv": (lambda: nn.Conv2d(2, 3, (3, 2), padding=1, stride=2), (2, 2, 5, 4)),
    "pool": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)), (3, 2, 4, 4)),
    "layer norm": (lambda: nn.LayerNorm(3), (2, 4, 3)),
    "batch norm": (lambda: nn.BatchNorm(3), (4, 3, 2)),
    "rnn": (lambda: First(nn.RNN(3, 2)), (4, 2, 3)),
    "lstm": (lambda: First(nn.LSTM(3, 2)), (4, 2, 3)),
    "gru": (lambda: First(nn.GRU(3, 2)), (4, 2, 3)),
    "attention": (lambda: nn.MultiHeadAttention(4, 2), (2, 3, 4)),
}


class First(nn.Module):
    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_finite_differences(name):
    make, shape = CASES[name]
    layer, start = make(), mg.tensor(rng.normal(size=shape), requires_grad=True)
    weights = mg.tensor(rng.normal(size=layer(start).shape))
    (layer(start) * weights).sum().backward()
    for tensor in [start, *layer.parameters()]:
        slopes = np.empty(tensor.size)
        for k in range(tensor.size):
            found = []
            for e in (1e-6, -1e-6):
                moved = np.array(tensor.detach().numpy())
                moved.reshape(-1)[k] += e
                kept, tensor.data = np.array(tensor.detach().numpy()), moved
                with mg.no_grad():
                    found.append((layer(start) * weights).sum().item())
                tensor.data = kept
            slopes[k] = (found[0] - found[1]) / 2e-6
        np.testing.assert_allclose(tensor.grad.numpy().reshape(-1), slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("batch", ["known", "any"])
@pytest.mark.parametrize("name", CASES)
def test_in_a_program_a_layer_is_what_it_is_eagerly(name, batch):
    make, shape = CASES[name]
    layer, x = make(), rng.normal(size=shape)
    place = 1 if "rnn" in name or name in ("lstm", "gru") else 0
    declared = [-1 if k == place and batch == "any" else n for k, n in enumerate(shape)]
    prog = static.Program()
    with static.program_guard(prog):
        out = layer(static.data("x", declared))
        loss = (out * out).sum()
        pairs = static.append_backward(loss)
    executor = static.Executor()
    got = executor.run(prog, {"x": x}, [out, *(g for _, g in pairs)])
    made = layer(mg.tensor(x))
    (made * made).sum().backward()
    assert len(pairs) == len(layer.parameters())
    np.testing.assert_allclose(got[0], made.detach().numpy(), rtol=1e-9, atol=1e-12)
    named = dict(layer.named_parameters())
    for (p, _), grad in zip(pairs, got[1:], strict=True):
        np.testing.assert_allclose(grad, named[p.name].grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_gradient_of_the_running_statistics_outlives_their_next_update():
    layer, x = nn.BatchNorm(2), mg.tensor([[0.0, 1.0], [2.0, 5.0]])
    layer.running_mean.requires_grad_()
    layer.eval()(x).sum().backward()
    before = layer.running_mean.grad
    layer.train()(x)
    assert before is not None and layer.running_mean.grad is before


def test_running_statistics_are_updated_by_a_program_too():
    layer, x = nn.BatchNorm(2), rng.normal(size=(6, 2))
    prog = static.Program()
    with static.program_guard(prog):
        out = layer(static.data("x", [-1, 2]))
    executor = static.Executor()
    for _ in range(2):
        executor.run(prog, {"x": x}, [out])
    eager = nn.BatchNorm(2)
    for _ in range(2):
        eager(mg.tensor(x))
    layer.load_state_dict({name: executor.scope[name] for name in layer.state_dict()})
    np.testing.assert_allclose(layer.running_mean.numpy(), eager.running_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), eager.running_var.numpy(), rtol=1e-12)


def test_a_program_draws_a_new_mask_for_every_run_and_uses_it_backwards():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", np.ones(200))
        out = nn.Dropout(0.5, seed=1)(w * static.data("x", [200]))
        pairs = static.append_backward(out.sum())
    executor, feed = static.Executor(), {"x": np.ones(200)}
    first, slope = executor.run(prog, feed, [out, pairs[0][1]])
    second, _ = executor.run(prog, feed, [out, pairs[0][1]])
    np.testing.assert_array_equal(first, slope)
    assert (first != second).any()
    assert set(second) == {0.0, 2.0}


@pytest.mark.parametrize("run", [static.Executor().run, static.compile])
def test_dropout_in_a_loop_uses_the_mask_of_each_step_backwards(run):
    prog, layer = static.Program(), nn.Dropout(0.5, seed=1)
    with static.program_guard(prog):
        w = static.parameter("w", np.ones(50))
        x = np.ones((4, 50))
        (out,), _ = static.static_rnn(lambda x, s: ([layer(w * x)], [s]), [x], [0.0])
        ((_, slope),) = static.append_backward(out.sum())
    results = run(prog, None, [out, slope])
    out, slope = results() if callable(results) else results
    assert (out[0] != out[1]).any()
    np.testing.assert_array_equal(out.sum(axis=0), slope)


def test_embedding_gives_rows_and_adds_up_gradients_of_repeated_words():
    layer = nn.Embedding(4, 2)
    layer([[1, 1], [3, 1]]).sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 4, 2, stride=2),
        nn.Conv2d(2, 4, 2, stride=(1, 2), padding=1, groups=2),
        nn.ConvTranspose2d(2, 4, 2, stride=2),
        nn.MaxPool2d(2),
        nn.AvgPool2d(2),
    ],
)
def test_a_batch_of_no_images_has_gradients(layer):
    x = mg.tensor(np.zeros((0, 2, 4, 6)), requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == x.shape
    assert [p.grad.tolist() for p in layer.parameters()] == [
        np.zeros(p.shape).tolist() for p in layer.parameters()
    ]


@pytest.mark.parametrize("steps", [(0, 3), (3, 0), (0, 0)])
def test_attention_over_no_places_gives_what_the_last_layer_makes_of_nothing(steps):
    layer = nn.MultiHeadAttention(4, 2)
    query, key = (mg.tensor(rng.normal(size=(2, n, 4)), requires_grad=True) for n in steps)
    out = layer(query, key)
    out.sum().backward()
    if steps[1] == 0:
        np.testing.assert_array_equal(out.data, np.broadcast_to(layer.out.bias.data, out.shape))
    assert out.shape == query.grad.shape == (2, steps[0], 4)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.LayerNorm(4), (2, 4)),
        (nn.BatchNorm(4), (2, 4)),
        (nn.LSTM(4, 3), (5, 2, 4)),
        (nn.MultiHeadAttention(4), (2, 5, 4)),
    ],
)
def test_a_layer_takes_lists_of_numbers(layer, shape):
    x = rng.normal(size=shape)
    found, expected = (layer(given) for given in (x.tolist(), mg.tensor(x)))
    if isinstance(found, tuple):
        found, expected = found[0], expected[0]
    np.testing.assert_array_equal(found.data, expected.data)
