"""Modules: what they hold, how they are named, switched, stored."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, static


class Pair(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 4, seed=1)
        self.more = [nn.Linear(4, 4, seed=2), {"last": nn.Linear(4, 2, seed=3)}]
        self.offset = nn.Parameter(np.zeros(2))
        self.seen = mg.tensor(0.0)

    def forward(self, x):
        h = self.more[0](mg.relu(self.first(x))).tanh()
        return self.more[1]["last"](h) + self.offset


def test_parameters_are_found_in_attributes_lists_and_dictionaries_in_order():
    assert [name for name, _ in Pair().named_parameters()] == [
        "first.weight",
        "first.bias",
        "more.0.weight",
        "more.0.bias",
        "more.1.last.weight",
        "more.1.last.bias",
        "offset",
    ]
    assert [n for n, t in Pair().named_tensors() if not t.requires_grad] == ["seen"]


def test_a_shared_parameter_and_a_module_inside_itself_are_found_once():
    model = Pair()
    model.more[0].weight = model.first.weight
    model.more.append(model)
    assert len(model.parameters()) == 6
    assert len(model.modules()) == 4


def test_keys_of_a_dictionary_may_be_anything_in_a_program_too():
    class Table(nn.Module):
        """One scale for each number."""

        def __init__(self):
            self.scales = {k: nn.Parameter([float(k)]) for k in (2, 3)}

        def forward(self, x):
            return x * self.scales[2] + x * self.scales[3]

    table, program = Table(), static.Program()
    with static.program_guard(program):
        y = table(static.data("x", [1]))
    assert list(table.state_dict()) == ["scales.2", "scales.3"]
    assert {k: type(v) for k, v in table.scales.items()} == {2: mg.Tensor, 3: mg.Tensor}
    assert static.Executor().run(program, {"x": [10.0]}, [y])[0].tolist() == [50.0]


def test_modules_nest_deeply():
    model = nn.Linear(1, 1)
    for _ in range(3000):
        model = nn.Sequential(model)
    assert len(model.parameters()) == 2
    assert repr(model).count("Sequential") == 3000


def test_calling_a_module_names_its_parameters_by_their_paths():
    model = Pair()
    model(mg.zeros([1, 3]))
    assert model.more[1]["last"].bias.name == "more.1.last.bias"


def test_train_and_eval_reach_everything_inside():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    assert {m.training for m in model.eval().modules()} == {False}
    assert {m.training for m in model.train().modules()} == {True}


def test_a_frozen_module_has_no_parameters_but_a_state():
    model = nn.Linear(2, 2).requires_grad_(False)
    assert model.parameters() == []
    assert set(model.state_dict()) == {"weight", "bias"}
    assert len(model.requires_grad_().parameters()) == 2


def test_astype_changes_every_floating_point_number():
    model = Pair().astype("float32")
    assert {t.dtype for _, t in model.named_tensors()} == {np.dtype("float32")}
    assert model(mg.zeros([1, 3], dtype="float32")).dtype == np.float32


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_a_repr_shows_the_tree():
    assert repr(nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1))) == (
        "Sequential()\n  layers.0: Linear(inputs=3, outputs=4)\n  layers.1: Dropout(p=0.1)"
    )


# -- state --------------------------------------------------------------------------------------


def test_a_state_can_be_taken_and_given_back():
    one, two = Pair(), Pair()
    for p in one.parameters():
        p.data += 1.0
    two.load_state_dict(one.state_dict())
    x = mg.tensor(np.linspace(-1, 1, 6).reshape(2, 3))
    np.testing.assert_array_equal(one(x).tolist(), two(x).tolist())


def test_a_state_may_hold_complex_buffers():
    class Turn(nn.Module):
        def __init__(self):
            self.by = mg.tensor([1j, 2.0])

    turn = Turn()
    turn.load_state_dict({"by": [3j, 1.0]})
    assert turn.by.tolist() == [3j, 1.0]


def test_a_state_is_a_copy():
    model = nn.Linear(1, 1)
    state = model.state_dict()
    state["weight"][:] = 7.0
    assert model.weight.item() != 7.0
    model.load_state_dict(state)
    state["weight"][:] = 8.0
    assert model.weight.item() == 7.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("bias"), "the state has no 'bias'"),
        (lambda s: s.update(wait=s["bias"]), "has no 'wait'; did you mean 'weight'"),
        (
            lambda s: s.update(bias=np.zeros(5)),
            r"'bias' is float64\[5\] in the state, expected float64\[2\]",
        ),
        (lambda s: s.update(bias=np.zeros(2, complex)), r"'bias' is complex128\[2\]"),
        (lambda s: s.update(bias=np.array(["a", "b"])), "'bias' is <U1"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, words):
    model = nn.Linear(3, 2)
    state = {k: v + 1 for k, v in model.state_dict().items()}
    before = model.state_dict()
    change(state)
    with pytest.raises(nn.StateError, match=words):
        model.load_state_dict(state)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_state_that_is_no_mapping_is_refused():
    with pytest.raises(nn.StateError, match="a mapping from names to arrays, not a list of 1"):
        nn.Linear(1, 1).load_state_dict([1])


# -- wrong arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(0, 2), r"Linear\(inputs=0\): give a whole number above 0"),
        (lambda: nn.Linear(2, 2.5), r"Linear\(outputs=2.5\)"),
        (lambda: nn.Linear(2, 2, seed="a"), r"seed is str\n.*\n  repair: seed=0, or a generator"),
        (
            lambda: nn.Linear(2, 2, dtype=int),
            "parameters are real floating-point numbers, not int64",
        ),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not divide into 2 groups"),
        (lambda: nn.Conv2d(3, 4, 0), r"Conv2d\(kernel_size=0\)"),
        (lambda: nn.Dropout(1.0), r"Dropout\(p=1.0\)"),
        (lambda: nn.MultiHeadAttention(6, heads=4), "do not divide into 4 heads"),
        (lambda: nn.Sequential(3), "modules and functions, not 3"),
        (lambda: nn.LayerNorm(3)(mg.zeros([2, 4])), r"a last axis of 3, not float64\[2, 4\]"),
        (
            lambda: nn.BatchNorm(3)(mg.zeros([2, 4])),
            r"takes \[batch, 3, ...\], not float64\[2, 4\]",
        ),
        (lambda: nn.BatchNorm(3)(mg.zeros([1, 3])), "one value per channel has no variance"),
        (lambda: nn.RNN(3, 4)(mg.zeros([5, 3])), r"takes \[steps, batch, 3\], not float64\[5, 3\]"),
        (
            lambda: nn.LSTM(3, 4)(mg.zeros([5, 2, 3]), mg.zeros([2, 4])),
            r"the state of this LSTM is 2 × \[2, 4\]",
        ),
        (lambda: nn.MultiHeadAttention(4)(mg.zeros([2, 3])), r"takes \[batch, steps, 4\]"),
    ],
)
def test_wrong_arguments_are_quoted(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


# -- programs ---------------------------------------------------------------------------------


def test_a_module_called_on_variables_writes_a_program_with_its_parameters():
    model, prog = Pair(), static.Program()
    with static.program_guard(prog):
        x = static.data("x", [-1, 3])
        loss = (model(x) * model(x)).mean()
        pairs = static.append_backward(loss)
    assert [p.name for p, _ in pairs] == [n for n, _ in model.named_parameters()]
    feed = np.linspace(-1, 1, 6).reshape(2, 3)
    got = static.Executor().run(prog, {"x": feed}, [loss, *(g for _, g in pairs)])
    t = mg.tensor(feed)
    eager = (model(t) * model(t)).mean()
    eager.backward()
    for value, expected in zip(
        got, [eager.detach(), *(p.grad for p in model.parameters())], strict=True
    ):
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-12)


def test_a_module_can_be_traced():
    model = nn.Sequential(nn.Linear(3, 4), mg.relu, nn.Linear(4, 1))
    prog = mg.trace(model, np.zeros((2, 3)))
    assert [v.name for v in prog.parameters()] == [n for n, _ in model.named_parameters()]


ACTIVATIONS = {
    "ELU": (nn.ELU(0.5), lambda x: mg.elu(x, alpha=0.5)),
    "GELU": (nn.GELU(), mg.gelu),
    "Identity": (nn.Identity(), lambda x: x * 1),
    "LeakyReLU": (nn.LeakyReLU(0.2), lambda x: mg.leaky_relu(x, negative_slope=0.2)),
    "LogSoftmax": (nn.LogSoftmax(0), lambda x: mg.log_softmax(x, axis=0)),
    "ReLU": (nn.ReLU(), mg.relu),
    "SiLU": (nn.SiLU(), mg.silu),
    "Sigmoid": (nn.Sigmoid(), mg.sigmoid),
    "Softmax": (nn.Softmax(axis=0), lambda x: mg.softmax(x, axis=0)),
    "Softplus": (nn.Softplus(), mg.softplus),
    "Tanh": (nn.Tanh(), mg.tanh),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_a_module_eagerly_and_in_a_program(name):
    module, function = ACTIVATIONS[name]
    value = np.linspace(-2, 2.5, 6).reshape(2, 3)
    model = nn.Sequential(nn.Linear(3, 3, seed=1), module)
    expected = function(model[0](mg.tensor(value))).detach().numpy()
    np.testing.assert_array_equal(model(mg.tensor(value)).detach().numpy(), expected)
    assert mg.gradcheck(model, mg.tensor(value, requires_grad=True))
    assert f"layers.1: {name}(" in repr(model)
    program = static.Program()
    with static.program_guard(program):
        y = model(static.data("x", [2, 3]))
    (got,) = static.Executor().run(program, feed={"x": value}, fetch_list=[y])
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_a_slice_of_a_sequential_shares_its_layers():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    features = model[:-1]
    assert isinstance(features, nn.Sequential)
    assert features[0] is model[0]
    assert [type(layer).__name__ for layer in model] == ["Linear", "ReLU", "Linear"]
    assert len(features) == 2
    assert features(mg.ones([5, 3])).shape == (5, 4)


def test_a_transposed_convolution_reverses_the_shapes_of_a_convolution():
    how = {"kernel_size": (3, 2), "stride": 2, "padding": 1, "groups": 2}
    down, up = nn.Conv2d(4, 6, **how), nn.ConvTranspose2d(6, 4, output_padding=(0, 1), **how)
    x = mg.tensor(np.random.default_rng(0).normal(size=(1, 4, 5, 5)), requires_grad=True)
    assert up(down(x)).shape == x.shape
    assert mg.gradcheck(lambda x, *p: up(down(x)), (x, *up.parameters()))
    up.load_state_dict({"weight": down.weight, "bias": np.zeros(4)})
    image = mg.tensor(np.random.default_rng(1).normal(size=down(x).shape))
    (pulled,) = mg.grad(down(x), x, image)  # the gradient of a convolution is its transpose
    np.testing.assert_allclose(up(image).detach().numpy(), pulled.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"ConvTranspose2d\(groups=2\)"):
        nn.ConvTranspose2d(3, 4, 2, groups=2)


def test_pooling_modules_take_the_largest_and_the_mean():
    x = mg.arange(16.0).reshape(1, 1, 4, 4)
    assert nn.MaxPool2d(2)(x).flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert nn.AvgPool2d(2)(x).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
