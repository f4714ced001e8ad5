"""What newcomers write by mistake: the error says what is wrong, where, and the repair."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import data, nn, optim, static
from minigrad.errors import MinigradError

X = mg.tensor(np.linspace(-1.0, 1.0, 12).reshape(4, 3), requires_grad=True)
LABELS = np.array([0, 1, 2, 1])
COLUMN, ONE_HOT = LABELS[:, None], np.eye(3, dtype=int)[LABELS]
IMAGES = mg.ones([2, 1, 8, 8])
MODEL = nn.Linear(3, 2)
PARTS = MODEL.state_dict()
BIG, WIDE = "float64[4, 3]", "int64[4, 3]"


def twice_from_a_generator():
    parameters = (p for p in MODEL.parameters())
    optim.SGD(parameters)
    optim.SGD(parameters)


#: what is written → (call, words of the error, the repair)
MISTAKES = {
    # labels
    "classes as floats": (lambda: mg.cross_entropy(X, LABELS.astype(float)), ["cross_entropy(x: float64[4, 3], target: float64[4]"], "labels.astype(int)"),
    "classes as a list of floats": (lambda: mg.cross_entropy(X, [0.0, 1.0, 2.0, 1.0]), ["target: float64[4]"], "labels.astype(int)"),
    "classes in a column": (lambda: mg.cross_entropy(X, COLUMN), [BIG, "int64[4, 1]"], "labels.reshape(4)"),
    "classes in a column of floats": (lambda: mg.cross_entropy(X, COLUMN * 1.0), [BIG, "float64[4, 1]"], "labels.reshape(4).astype(int)"),
    "whole numbers, one-hot": (lambda: mg.cross_entropy(X, ONE_HOT), [BIG, WIDE], "labels.argmax(axis=1)"),
    "truth values, one-hot": (lambda: mg.cross_entropy(X, ONE_HOT > 0), ["bool[4, 3]"], "labels.astype(float)"),
    "one-hot, summed": (lambda: mg.cross_entropy(X, ONE_HOT, reduction="sum"), [BIG, WIDE], "labels.argmax(axis=1)"),
    "a column, each": (lambda: mg.cross_entropy(X, COLUMN, reduction="none"), ["int64[4, 1]"], "labels.reshape(4)"),
    "classes counted from 1": (lambda: mg.cross_entropy(X, LABELS + 1), ["classes from 1 to 3", "0 … 2"], "count classes from 0"),
    "nll of floats": (lambda: mg.nll(X, LABELS * 1.0), ["nll(x: float64[4, 3], target: float64[4], axis=-1)"], "labels.astype(int)"),
    "nll of a column": (lambda: mg.nll(X, COLUMN), ["nll(", "int64[4, 1]"], "labels.reshape(4)"),
    "nll of too few": (lambda: mg.nll(X, LABELS[:2]), ["int64[2]"], "integers of shape [4]"),
    "nll of a class too many": (lambda: mg.nll(X, LABELS + 1), ["classes from 1 to 3"], "count classes from 0"),
    "nll of a negative class": (lambda: mg.nll(X, LABELS - 1), ["classes from -1 to 1"], "count classes from 0"),
    "scores in a column, labels in a row": (lambda: mg.binary_cross_entropy_with_logits(X[:, :1], LABELS), ["binary_cross_entropy_with_logits(x: [4, 1], y: [4])"], "reshape"),
    "the same of probabilities": (lambda: mg.binary_cross_entropy(mg.sigmoid(X[:, :1]), LABELS), ["x: [4, 1], y: [4]"], "reshape"),
    # indices
    "words as floats": (lambda: mg.embedding([0.0, 1.0], X), ["take(x: float64[4, 3]"], "indices.astype(int)"),
    "words as floats, in a layer": (lambda: nn.Embedding(5, 2)(mg.tensor([0.0])), ["x: float64[5, 2], indices: float64[1]"], "indices.astype(int)"),
    "a word too many": (lambda: nn.Embedding(5, 2)([5]), ["index 5", "float64[5, 2]"], "indices count from 0"),
    "taken by floats": (lambda: mg.take(X, mg.tensor([0.0]), axis=0), ["indices: float64[1]"], "indices.astype(int)"),
    "taken along by floats": (lambda: mg.take_along_axis(X, np.zeros((1, 1))), ["indices: float64[1, 1]"], "indices.astype(int)"),
    "taken along by a row": (lambda: mg.take_along_axis(X, LABELS), ["indices: int64[4]"], "add one with expand_dims"),
    "indexed by floats": (lambda: X[mg.tensor([0.0, 1.0])], ["index: float64[2]"], "index.astype(int)"),
    # Tensors and gradients
    "Tensors of other shapes in a list": (lambda: mg.tensor([X.detach()[0], X.detach()[0, 0]]), ["a list of 2"], "equally long"),
    "nothing": (lambda: mg.tensor(None), ["numbers", "None"], "pass a number"),
    "backward of a vector": (lambda: (X[0] * 2).backward(), ["float64[3]", "3 elements"], "y.sum().backward()"),
    "backward of a constant": (lambda: mg.tensor(1.0).backward(), ["does not require grad"], "create the inputs with requires_grad=True"),
    # optimizers
    "parameters, not called": (lambda: optim.SGD(MODEL.parameters), ["not method"], "model.parameters(), called"),
    "a class of layers": (lambda: optim.SGD(nn.Linear), ["not the class Linear"], "Linear(…)"),
    "a generator, twice": (twice_from_a_generator, ["the list is empty"], "a generator gives its values once"),
    "parameters with names": (lambda: optim.SGD(MODEL.named_parameters()), ["not a tuple of 2"], "without names"),
    "a dictionary": (lambda: optim.SGD(dict(MODEL.named_parameters())), ["not a tuple of 2"], "without names"),
    "groups": (lambda: optim.SGD([{"params": MODEL.parameters(), "rate": 1}]), ["no 'rate'"], "an option that all groups have"),
    "several modules": (lambda: optim.SGD([MODEL, MODEL]), ["not Linear"], "[*a.parameters(), *b.parameters()]"),
    "a constant": (lambda: optim.SGD([mg.ones([2])]), ["not float64[2]"], "requires_grad=True"),
    "a result": (lambda: optim.SGD([X * 2]), ["not float64[4, 3]"], "the Tensors it was computed from"),
    "arrays": (lambda: optim.SGD([np.ones(2)]), ["not float64[2]"], "nn.Parameter(values)"),
    "one Tensor": (lambda: optim.SGD(X), ["not float64[4, 3]"], "a list of Tensors"),
    "a frozen module": (lambda: optim.SGD(nn.Linear(1, 1).requires_grad_(False)), ["no parameters"], "model.requires_grad_()"),
    "a negative rate": (lambda: optim.Adam([X], lr=-0.1), ["lr is -0.1"], "optim.cosine(0.01"),
    "a rate that is a Tensor": (lambda: optim.Adam([X], lr=mg.tensor(0.1)), ["lr is float64[]"], "lr=0.01"),
    "no steps": (lambda: optim.cosine(0.1, 0), ["steps is 0"], "steps=1000"),
    "negative steps": (lambda: optim.warmup(0.1, -3), ["steps is -3"], "steps=1000"),
    "an optimizer for a rate": (lambda: optim.cosine(optim.SGD([X]), 10), ["rate is SGD"], "SGD(model, lr=optim.cosine(0.1, steps=1000))"),
    "an optimizer to warm up": (lambda: optim.warmup(optim.SGD([X]), 10), ["rate is SGD"], "SGD(model, lr=optim.cosine(0.1, steps=1000))"),
    "a Tensor to minimize": (lambda: optim.SGD([X]).minimize(X.sum()), ["not from float64[]"], "loss.backward(), then optimizer.step()"),
    "a model to compile": (lambda: static.compile(MODEL), ["not Linear"], "static.compile(p := mg.trace(function, example), fetch=p.outputs)"),
    "a decay after nothing": (lambda: optim.step_decay(0.1, 0), ["every is 0"], "every=1000"),
    "a step of nothing": (lambda: optim.SGD().step(), ["has no parameters"], "SGD(model, lr=0.1)"),
    "the state of another optimizer": (lambda: optim.Adam(MODEL).load_state_dict(optim.SGD(MODEL).state_dict()), ["the state of SGD without momentum", "the optimizer is Adam("], "an optimizer of that kind"),
    "dampening for nesterov": (lambda: optim.SGD([X], 0.1, 0.9, 0.5), ["nesterov is 0.5"], "options by name"),
    "a number for a clip": (lambda: optim.RMSprop([X], 0.1, 0.9, 1e-8, 0.0, 0.9), ["clip is 0.9"], "clip=optim.clip_by_norm(1.0)"),
    "a path for an optimizer's state": (lambda: optim.SGD([X]).load_state_dict("o.npz"), ["not str"], "nn.load(path)"),
    "a state of texts": (lambda: optim.SGD([X]).load_state_dict({"count": "ten"}), ["'count' is <U3[]", "int64[]"], "the same parameters"),
    "an optimizer, stored": (lambda: nn.save(optim.SGD([X]), "o.npz"), ["not SGD"], "nn.save(optimizer.state_dict(), path)"),
    # layers
    "a number of layers for a bias": (lambda: nn.LSTM(3, 4, 2), ["LSTM(bias=2)"], "by name"),
    "a share that is dropped for a bias": (lambda: nn.MultiHeadAttention(8, 2, 0.1), ["MultiHeadAttention(bias=0.1)"], "by name"),
    "a mask that is added": (lambda: nn.MultiHeadAttention(8)(mg.ones([1, 3, 8]), mask=np.triu(np.full((3, 3), -np.inf), 1)), ["float64[3, 3]", "true is where"], "mask == 0"),
    "a truth value for a dtype": (lambda: nn.LayerNorm(4, 1e-5, True), ["not True"], "dtype=float"),
    "no momentum": (lambda: nn.BatchNorm(4, momentum=None), ["momentum=None"], "momentum=0.1"),
    "a padding in words": (lambda: nn.Conv2d(1, 4, 3, padding="same")(IMAGES), ["'same' is neither"], "padding=dilation * (kernel_size - 1) // 2"),
    "the sizes of axes for a weight": (lambda: mg.layer_norm(X, (3,)), ["weight=(3,)"], "layer_norm(x, weight, bias, axis=-1)"),
    "other channels": (lambda: nn.Conv2d(3, 4, 3)(IMAGES), ["conv2d(x: float64[2, 1, 8, 8], w: float64[4, 3, 3, 3]"], "x is [batch, channels, height, width]"),
    "channels last": (lambda: nn.Conv2d(3, 4, 3)(mg.ones([2, 8, 8, 3])), ["x: float64[2, 8, 8, 3]"], "x is [batch, channels, height, width]"),
    "no channel": (lambda: nn.Conv2d(1, 4, 3)(mg.ones([2, 8, 8])), ["x: float64[2, 8, 8]"], "x is [batch, channels, height, width]"),
    "a filter larger than the image": (lambda: nn.Conv2d(1, 4, 9)(IMAGES), ["[9, 9] does not fit into [8, 8]"], "a smaller window, or more padding"),
    "a window larger than the image": (lambda: nn.MaxPool2d(9)(IMAGES), ["[9, 9] does not fit into [8, 8]"], "a smaller window"),
    "other channels, transposed": (lambda: nn.ConvTranspose2d(3, 4, 3)(IMAGES), ["x needs [batch, 3, height, width]"], "w is [channels of x"),
    "a filter of three axes": (lambda: nn.Conv2d(1, 4, (3, 3, 3)), ["Conv2d(kernel_size=(3, 3, 3))"], "kernel_size=3"),
    "groups that do not divide": (lambda: nn.ConvTranspose2d(3, 4, 3, groups=2), ["ConvTranspose2d(groups=2): 3 channels"], "groups=1"),
    "images for a dense layer": (lambda: nn.Linear(64, 10)(IMAGES), ["linear(x: float64[2, 1, 8, 8], w: float64[64, 10]"], "x.flatten(start=1), nn.Flatten()"),
    "a dense layer of another size": (lambda: nn.Linear(3, 2)(mg.ones([4, 5])), ["x: float64[4, 5], w: float64[3, 2]"], "(5) must be as long as"),
    "percent": (lambda: nn.Dropout(50), ["Dropout(p=50)"], "Dropout(p=0.5)"),
    "a list of layers": (lambda: nn.Sequential([MODEL]), ["not a list of 1"], "Sequential(*layers)"),
    "the class of a layer": (lambda: nn.Sequential(MODEL, nn.ReLU), ["the class ReLU"], "ReLU()"),
    "a function, called": (lambda: nn.Sequential(MODEL, mg.relu(X)), ["not float64[4, 3]"], "mg.relu, not mg.relu(x)"),
    "a layer of nothing": (lambda: nn.Linear(0, 2), ["Linear(inputs=0)"], "inputs=8"),
    "whole numbers as parameters": (lambda: nn.Linear(1, 2, dtype=int), ["not int64"], "dtype=float"),
    "a state without a path": (lambda: MODEL.load_state_dict({"weight": PARTS["weight"]}), ["the state has no 'bias'"], "keeps what the model has"),
    "a state with a path too many": (lambda: MODEL.load_state_dict({**PARTS, "wait": 1.0}), ["has no 'wait'; did you mean 'weight'"], "rename it"),
    "PyTorch's weights": (lambda: MODEL.load_state_dict({**PARTS, "weight": PARTS["weight"].T}), ["float64[2, 3]", "float64[3, 2]"], "weight.T"),
    "a path for a state": (lambda: MODEL.load_state_dict("model.npz"), ["not str"], "nn.load(path)"),
    # data
    "fewer labels than images": (lambda: data.DataLoader((np.ones(3), np.ones(4))), ["float64[3], float64[4]"], "one axis 0 for all"),
    "labels for a batch size": (lambda: data.DataLoader(np.ones(3), np.ones(3)), ["batch_size is float64[3]"], "DataLoader((images, labels), batch_size=32)"),
    "batches of nothing": (lambda: data.DataLoader(np.ones(3), batch_size=0), ["batch_size is 0"], "batch_size=32"),
    "a share in percent": (lambda: data.split(data.digits(), held_back=20), ["held_back is 20"], "held_back=0.2"),
    "the lengths of two losses": (lambda: mg.mse(X[:, :1], np.ones(4)), ["mse(x: [4, 1], y: [4])"], "reshape"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "words", "repair"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_with_what_is_wrong_where_and_the_repair(call, words, repair):
    before = X.grad, MODEL.state_dict()
    with pytest.raises(MinigradError) as found:
        call()
    text = str(found.value)
    for word in words:
        assert word in text
    assert repair in text.rpartition("repair: ")[2]
    assert re.search(r"\n  (at|made at) test_mistakes\.py:\d+", text)
    assert X.grad is before[0]
    for path, value in MODEL.state_dict().items():
        np.testing.assert_array_equal(value, before[1][path])


def test_probabilities_are_targets_and_truth_values_are_when_cast():
    shares = np.full((4, 3), 1 / 3)
    expected = -(shares * mg.log_softmax(X).detach().numpy()).sum(1).mean()
    assert mg.cross_entropy(X, shares).item() == pytest.approx(expected)
    one_hot = (ONE_HOT > 0).astype(np.float32)
    assert mg.cross_entropy(X, one_hot).item() == pytest.approx(mg.cross_entropy(X, LABELS).item())


def test_a_program_says_the_same_of_its_labels_while_it_is_built():
    with static.program_guard(static.Program()):
        scores, column = static.data("scores", [-1, 3]), static.data("labels", [-1, 1], "int64")
        floats = static.data("floats", [-1])
        for reduction in ("mean", "sum"):
            with pytest.raises(ValueError, match=r"labels\.astype\(int\)"):
                mg.cross_entropy(scores, floats, reduction=reduction)
            with pytest.raises(ValueError, match="does not name one class for each row"):
                mg.cross_entropy(scores, column, reduction=reduction)
        shares = static.data("shares", [-1, 3])
        assert mg.cross_entropy(scores, shares).shape == ()


def test_the_state_of_an_optimizer_that_does_not_fit_changes_nothing():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([w], momentum=0.9)
    w.grad = mg.ones([2])
    optimizer.step()
    before = optimizer.state_dict()
    for wrong in ({}, {**before, "extra": 1.0}, {**before, "velocity.0": np.ones(3)}):
        with pytest.raises(MinigradError, match="(?s)at test_mistakes.*repair: "):
            optimizer.load_state_dict(wrong)
        for name, value in optimizer.state_dict().items():
            np.testing.assert_array_equal(value, before[name])


def test_lists_of_tensors_scalars_and_0d_arrays_become_tensors():
    values = X.detach()
    assert mg.tensor([values[0], values[1]]).shape == (2, 3)
    assert mg.tensor([values[0, 0], 2.0, np.float64(3.0), np.array(4.0)]).tolist()[1:] == [
        2.0,
        3.0,
        4.0,
    ]
    assert mg.tensor(np.float64(2.0), requires_grad=True).shape == ()
    assert mg.tensor(np.array(2.0), requires_grad=True).shape == ()


def test_double_data_and_single_parameters_compute_in_double_and_gradients_fit_the_parameters():
    model = nn.Linear(3, 2).astype(np.float32)
    out = model(X)
    assert out.dtype == np.float64
    (out * out).sum().backward()
    assert {p.grad.dtype for p in model.parameters()} == {np.dtype(np.float32)}


def test_without_zero_grad_gradients_add_up():
    w = mg.tensor([1.0], requires_grad=True)
    for _ in range(2):
        (w * 3.0).sum().backward()
    assert w.grad.tolist() == [6.0]
