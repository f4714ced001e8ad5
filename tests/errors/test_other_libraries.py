"""Names of other libraries: each is answered with what stands here instead."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import data, nn, optim, static
from minigrad.errors.other_libraries import TABLES


def program_value():
    with static.program_guard(static.Program()):
        return static.data("x", [2, 3])


def context():
    """What forward and backward of a Function are handed."""
    seen = []

    class Look(mg.Function):
        """Keeps its context."""

        @staticmethod
        def forward(ctx, x):
            seen.append(ctx)
            return x

    Look.apply(mg.ones([1]))
    return seen[0]


OWNERS = {
    "a Tensor": (mg.ones([2, 3]), TABLES["Tensor"]),
    "a Variable": (program_value(), {**TABLES["Tensor"], **TABLES["Variable"]}),
    "module 'minigrad'": (mg, TABLES["minigrad"]),
    "module 'minigrad.nn'": (nn, TABLES["nn"]),
    "module 'minigrad.static'": (static, TABLES["static"]),
    "module 'minigrad.optim'": (optim, TABLES["optim"]),
    "module 'minigrad.data'": (data, TABLES["data"]),
    "module 'minigrad.nn.init'": (nn.init, TABLES["nn.init"]),
    "this Sequential": (nn.Sequential(), TABLES["Module"]),
    "ctx": (context(), TABLES["ctx"]),
    "a Block": (static.Program().global_block(), TABLES["Block"]),
    "a Program": (static.Program(), TABLES["Program"]),
    "this SGD": (optim.SGD(), TABLES["Optimizer"]),
}


@pytest.mark.parametrize("words", OWNERS)
def test_a_name_of_another_library_is_answered_with_the_line_and_the_repair(words):
    owner, table = OWNERS[words]
    known = [n for n in table if hasattr(type(owner), n) or n in getattr(owner, "__all__", ())]
    assert known == []
    for name in table:
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
        text = str(caught.value)
        assert text.startswith(f"{words} has no attribute {name!r}\n  at test_other_libraries.py:")
        assert text.endswith(f"repair: {table[name]}")


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        (mg, "no_grads", "mg.no_grad"),
        (nn, "Linears", "nn.Linear"),
        (nn, "Conv3d", "nn.Conv2d"),
        (optim, "Adamw", "optim.AdamW"),
        (static, "whileloop", "static.while_loop"),
        (data, "digit", "data.digits"),
    ],
)
def test_a_name_that_is_misspelt_is_answered_with_a_question_never_a_repair(module, name, near):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    first, line = str(caught.value).split("\n")
    assert first.endswith(f"has no attribute {name!r}; did you mean {near}?")
    assert line.startswith("  at test_other_libraries.py:")
    assert not hasattr(module, "__wrapped__")


def test_every_name_that_is_advised_exists():
    tables = [t for _, t in OWNERS.values()]
    where = {"mg": mg, "nn": nn, "optim": optim, "static": static, "np": np, "x": mg.ones([2, 2])}
    where |= {
        "data": data,
        "model": nn.Sequential(),
        "optimizer": optim.SGD(),
        "ctx": context(),
        "executor": static.Executor(),
        "generator": np.random.default_rng(0),
        "program": static.Program(),
        "block": static.Program().global_block(),
    }
    seen = set()
    for advice in (a for table in tables for a in table.values()):
        for owner, name in re.findall(r"\b(\w+)\.(\w+)", advice):
            if owner in where and name not in ("stop_gradient", "name"):
                assert hasattr(where[owner], name), advice
                seen.add(owner)
    assert seen == {*where}


def test_an_unknown_name_is_an_attribute_error_as_everywhere():
    for owner, _ in OWNERS.values():
        with pytest.raises(AttributeError, match=r"has no attribute 'colour'$") as caught:
            owner.colour
        assert caught.value.name == "colour"
        assert getattr(owner, "colour", 1) == 1
        assert not hasattr(owner, "__colour__")


@pytest.mark.parametrize("layer", [nn.BatchNorm(3), nn.LayerNorm(3)])
def test_a_normalisation_without_weight_and_bias_is_made_as_its_advice_says(layer):
    x = mg.tensor([[1.0, 4.0, 7.0], [3.0, 2.0, 1.0]])
    layer.weight = layer.bias = None
    axis = 0 if isinstance(layer, nn.BatchNorm) else 1
    np.testing.assert_array_equal(layer(x).data, mg.normalize(x, axis=axis).data)
    assert layer.parameters() == []


def test_copies_and_pickles_do_not_meet_the_advice():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again[0].weight.data, model[0].weight.data)
    assert copy.copy(mg.ones([2])).tolist() == [1.0, 1.0]


def test_sizes_given_one_by_one_are_answered_with_the_shape():
    for function in (mg.zeros, mg.ones):
        with pytest.raises(
            TypeError,
            match=rf"(?s){function.__name__}\(shape: 4.*test_other_libraries.py.*one shape",
        ) as caught:
            function(4, 6)
        assert isinstance(caught.value, mg.MinigradError)
    assert mg.zeros(4, int).dtype == int


def test_two_axes_for_three_are_answered_with_the_function_that_exchanges_two():
    with pytest.raises(ValueError, match=r"each axis once; swapaxes"):
        mg.ones([2, 3, 4]).transpose(1, 2)


@pytest.mark.parametrize("reduce", [mg.sum, mg.mean, mg.max, mg.norm, mg.logsumexp])
def test_axes_in_a_list_are_answered_with_the_tuple(reduce):
    with pytest.raises(TypeError, match=r"repair: axis=\(0, 1\), a tuple"):
        reduce(mg.ones([2, 3]), axis=[0, 1])
    with (
        static.program_guard(static.Program()) as program,
        pytest.raises(ValueError, match=r"repair: axis=\(0, 1\), a tuple"),
    ):
        reduce(static.data("x", [2, 3]), axis=[0, 1])
    assert program.global_block().ops == []


@pytest.mark.parametrize("move", [mg.flip, mg.expand_dims, lambda x, axis: mg.roll(x, 1, axis)])
def test_axes_in_a_list_are_taken_by_both_engines_where_numpy_takes_them(move):
    x, axes = np.arange(6.0).reshape(2, 3), [0, 1]
    with static.program_guard(static.Program()) as program:
        moved = move(static.data("x", [2, 3]), axis=axes)
    axes.clear()
    assert program.global_block().ops[-1].attrs["axis"] == (0, 1)
    (found,) = static.Executor().run(program, {"x": x}, moved)
    np.testing.assert_array_equal(found, move(mg.tensor(x), axis=[0, 1]).numpy())


def test_what_the_page_for_users_of_pytorch_says_of_names_with_another_meaning():
    x = mg.tensor(np.arange(24.0).reshape(2, 4, 3))
    assert mg.tensor([1.0]).dtype == mg.zeros((2, 3)).dtype == nn.Linear(2, 3).weight.dtype == float
    assert [part.shape for part in x.split(2)] == [(1, 4, 3)] * 2
    assert x.max(1).shape == (2, 3)
    assert x.std().item() == np.std(x.data)
    assert x.var(correction=1).item() == np.var(x.data, ddof=1)
    assert (x.transpose().shape, x.swapaxes(0, 1).shape, x.size) == ((3, 4, 2), (4, 2, 3), 24)
    assert type(x.data) is np.ndarray
    classes = np.zeros((2, 3), int)
    assert mg.cross_entropy(x, classes, axis=1).shape == ()
    with pytest.raises(ValueError, match="one class for each row"):
        mg.cross_entropy(x, classes)
    first, second = nn.Linear(2, 3), nn.Linear(2, 3)
    assert first.weight.shape == (2, 3)
    assert first.weight.tolist() == second.weight.tolist()
    assert (
        nn.GRU(3, 5)(mg.ones([4, 2, 3]))[1].shape
        == nn.LSTM(3, 5)(mg.ones([4, 2, 3]))[1][0].shape
        == (2, 5)
    )
    assert isinstance(first.parameters(), list)
    assert list(nn.Sequential(first).state_dict()) == ["layers.0.weight", "layers.0.bias"]
    assert list(nn.Sequential(first, first).state_dict()) == ["layers.0.weight", "layers.0.bias"]
    first.weight.requires_grad = False
    assert [p.shape for p in first.parameters()] == [(3,)]
    (clipped,) = optim.clip_by_global_norm(1.0)([mg.tensor([3.0, 4.0])])
    assert (mg.norm(clipped).item(), mg.normalize(x).mean().item()) == pytest.approx((1.0, 0.0))


# -- recipes -----------------------------------------------------------------------------


X = np.array([[-2.5, -1.0, -0.25, 0.5], [0.25, 1.5, 3.0, 7.5]])


Y = np.array([[1.5, -2.0, 0.75, 3.0], [2.0, 1.0, -1.0, 0.5]])


P = 1 / (1 + np.exp(-X))


POSITIVE = np.array([[4.0, 1.0], [1.0, 3.0]])


ALPHA = 1.6732632423543772


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


#: name → what NumPy gives, for x = X and y = Y unless it says otherwise
EXPECTED: dict[str, Any] = {
    "trunc": np.trunc(X), "fix": np.trunc(X), "frac": X - np.trunc(X), "cbrt": np.cbrt(X),
    "sinc": np.sinc(X), "deg2rad": np.deg2rad(X), "rad2deg": np.rad2deg(X), "fmod": np.fmod(X, Y),
    "hardtanh": np.clip(X, -1, 1), "relu6": np.clip(X, 0, 6), "hardsigmoid": np.clip(X / 6 + 0.5, 0, 1),
    "hardswish": X * np.clip(X / 6 + 0.5, 0, 1), "logsigmoid": np.log(P), "log_sigmoid": np.log(P),
    "mish": X * np.tanh(np.log1p(np.exp(X))), "selu": 1.0507009873554805 * elu(X, ALPHA),
    "celu": 1.5 * elu(X / 1.5), "glu": X[:, :2] * P[:, 2:], "softsign": X / (1 + np.abs(X)),
    "tanhshrink": X - np.tanh(X), "softmin": np.exp(-X) / np.exp(-X).sum(1, keepdims=True),
    "prelu": np.where(X > 0, X, 0.25 * X), "threshold": np.where(X > 0.4, X, 9.0),
    "average": np.average(X, weights=np.abs(Y)), "logspace": np.logspace(0, 2, 5),
    "ptp": np.ptp(X), "diff": np.diff(X), "dist": np.linalg.norm(X - Y), "inner": (X * Y).sum(1),
    "vdot": np.vdot(X, Y), "count_nonzero": np.count_nonzero(X), "fliplr": np.fliplr(X), "flipud": np.flipud(X),
    "fmax": np.fmax(X, Y), "fmin": np.fmin(X, Y), "signbit": np.signbit(X), "ravel": X.ravel(),
    "quantile": np.quantile(X, 0.3), "cummax": np.maximum.accumulate(X), "hypot": np.hypot(X, Y),
    "rsqrt": 1 / np.sqrt(np.abs(X)), "elementwise_add": X + Y, "elementwise_sub": X - Y,
    "elementwise_mul": X * Y, "elementwise_div": X / Y, "elementwise_max": np.maximum(X, Y),
    "elementwise_min": np.minimum(X, Y), "elementwise_mod": np.mod(X, Y), "elementwise_floordiv": X // Y,
    "rms_norm": X / np.sqrt((X * X).mean(1, keepdims=True)), "addcdiv": X + 9.0 * Y / 2.0,
}  # fmt: skip


OTHERWISE = {"rsqrt": {"x": np.abs(X)}, "addcdiv": {"z": 2.0}, "prelu": {"weight": 0.25}}


METHODS = ("trunc", "frac", "diff", "ptp", "dist", "inner", "vdot", "count_nonzero", "quantile",
           "hypot")  # fmt: skip


#: a keyword, or a function that was given too much or too little → what the line gives
KEYWORDS = [
    (TABLES["keywords to leave out"]["softplus beta"], np.log1p(np.exp(2.0 * X)) / 2.0, {}),
    (TABLES["keywords to leave out"]["gelu approximate"], tanh_gelu(X), {}),
    (TABLES["keywords to leave out"]["add alpha"], X + 1.5 * Y, {}),
    (TABLES["keywords to leave out"]["sub alpha"], X - 1.5 * Y, {}),
    (TABLES["keywords to leave out"]["Tensor.add_ alpha"], X + 1.5 * Y, {}),
    (TABLES["keywords to leave out"]["div rounding_mode"], X // Y, {}),
    (TABLES["keywords to leave out"]["round decimals"], np.round(X, 1), {"decimals": 1}),
    (TABLES["too many values"]["maximum"], np.maximum(np.maximum(X, Y), 2.0), {"z": 2.0}),
    (TABLES["too many values"]["minimum"], np.minimum(np.minimum(X, Y), 2.0), {"z": 2.0}),
    (TABLES["too many values"]["mul"], X * Y * 2.0, {"z": 2.0}),
    (TABLES["too few values"]["pow"], X**2, {}),
]


def result(recipe: str, **values: Any) -> np.ndarray:
    """What the last expression of a recipe gives; statements before it run first."""
    names: dict[str, Any] = {
        "mg": mg,
        "np": np,
        "x": X,
        "y": Y,
        "axis": 1,
        "alpha": 1.5,
        "beta": 2.0,
        "q": 0.3,
    }
    names |= {
        "weights": np.abs(Y),
        "weight": 0.5,
        "limit": 0.4,
        "value": 9.0,
        "start": 0,
        "stop": 2,
        "num": 5,
    }
    names |= values
    for name in ("x", "y", "weights"):
        names[name] = mg.tensor(names[name])
    *before, last = ast.parse(recipe).body
    exec(compile(ast.Module(before, []), "recipe", "exec"), names)
    assert isinstance(last, ast.Expr), recipe
    out = eval(compile(ast.Expression(last.value), "recipe", "eval"), names)
    return np.asarray(getattr(out, "data", out))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recipe_for_a_function_gives_the_numbers_that_are_meant(name):
    out = result(TABLES["minigrad"][name], **OTHERWISE.get(name, {}))
    np.testing.assert_allclose(out, EXPECTED[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_a_recipe_for_a_method_gives_the_numbers_that_are_meant(name):
    np.testing.assert_allclose(
        result(TABLES["Tensor"][name]), EXPECTED[name], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(("recipe", "expected", "values"), KEYWORDS)
def test_a_recipe_for_a_keyword_gives_the_numbers_that_are_meant(recipe, expected, values):
    out = result(recipe, **values)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_a_recipe_at_zero_has_the_value_of_the_limit():
    assert result(TABLES["minigrad"]["sinc"], x=np.array([0.0])).tolist() == [1.0]
