"""What errors of the eager engine, of layers and of optimizers say: the call, the shapes, the repair."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim, static
from minigrad.errors import MinigradError
from minigrad.static.text.literals import from_plain
from minigrad.viz.adapters.watching import watch
from tests.pieces import leaf
from tests.static.text.test_json import sample


class Wrong(mg.Function):
    """``3 x``, with a gradient of 2."""

    @staticmethod
    def forward(ctx, x):
        return x * 3.0

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


def walked(**how):
    """A node whose saved values an earlier walk freed."""
    y = leaf([1.0, 2.0]) ** 2
    y.sum().backward()
    return y.sum().backward(**how)


def saved_of_a_walked_node():
    y = mg.sin(leaf([1.0, 2.0]))
    y.sum().backward()
    return y.grad_fn.saved


def times_two_on_a_view():
    y = leaf([1.0, 2.0]) * 1.0
    view = y[:1]
    view *= 2.0


def other_data(**how):
    p = leaf([1.0, 2.0])
    p.grad = mg.tensor([1.0, 2.0])
    p.data = np.ones(3)
    optim.SGD([p], lr=0.1, **how).step()


def with_momentum(parameters):
    return optim.SGD(parameters, momentum=0.9)


def other_kind(stored, loaded):
    loaded([leaf([1.0])]).load_state_dict(stored([leaf([1.0])]).state_dict())


def stored(folder, content, compression=zipfile.ZIP_STORED):
    path = folder / "state.npz"
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("w.npy", content)
    return nn.load(path)


def cross_entropy(target, axis=-1):
    return mg.cross_entropy(leaf(np.zeros((2, 3))), target, axis=axis)


MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


def masked_feed(x=(1.0, 1.0), parameter=(1.0, 1.0), constant=1.0):
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [2]) * static.parameter("w", parameter) * constant
    return static.Executor().run(program, {"x": x}, [y])


HERE = "test_texts.py:"


#: a call and words of its error, which stand there in this order
CALLS = [
    # backward, what it starts from and what it is asked about
    (lambda: mg.grad(leaf([2.0]) * 2.0, [3.0]), "inputs must be Tensors, not 3.0", "repair: the Tensors"),
    (lambda: mg.grad(leaf(2.0) * 2.0, [mg.tensor([1.0])]), "does not require grad", "repair: create it with requires_grad=True"),
    (lambda: mg.backward([leaf(1.0) * 2.0], [1.0, 1.0]), "1 outputs need 1 gradients, 2 were given", "repair: a list with one for each output"),
    (lambda: mg.backward(3.0), "backward starts from a Tensor, not from 3.0", "repair: the result of an op on Tensors"),
    (lambda: mg.tensor([1.0]).backward(), "backward() found no graph: float64[1]", "repair: create the inputs with requires_grad=True"),
    (lambda: (leaf([1.0, 2.0]) * 2.0).backward(np.ones(3)), "the seed float64[3] must hold real numbers, in the shape of the output", "repair: gradient=… of shape [2]"),
    (lambda: (leaf([1.0, 2.0]) * 2.0).backward(), "float64[2] has 2 elements", "repair: reduce it first (y.sum().backward())"),
    (walked, "goes through PowBackward0 a second time", "repair: call the first backward with retain_graph=True"),
    (lambda: walked(create_graph=True), "goes through PowBackward0 a second time", "repair: call the first backward with retain_graph=True"),
    (saved_of_a_walked_node, "SinBackward0 a second time, but its saved values (x)", "repair:"),
    (lambda: mg.tensor([1.0]).register_hook(print), "register_hook() on float64[1]", "why:", "repair: create the inputs with requires_grad=True"),
    (lambda: mg.tensor([1.0]).retain_grad(), "retain_grad() on float64[1]", "why:", "repair: create the inputs with requires_grad=True"),
    (times_two_on_a_view, "float64[1] is a view of another Tensor", "repair: use the out-of-place form"),
    (lambda: mg.gradcheck(Wrong.apply, [leaf([1.0])]), "d output 0[0] / d input 0[0]: ours 2, central difference 3", "the gradient rule is wrong here"),
    (lambda: mg.gradcheck(lambda x: x.detach() ** 2, [leaf([1.0])]), "ours 0, central difference 2", "the output has no graph: an op without a rule, detach()"),
    (lambda: mg.backward(leaf(1.0) * 2.0, inputs=[]), "inputs=[] names no tensor", "repair: the Tensors"),
    (lambda: mg.grad(leaf(1.0) * 2.0, []), "inputs=[] names no tensor", "repair: the Tensors"),
    (lambda: mg.grad(leaf(1.0) * 2.0, [leaf(1.0)]), "input 0 of grad() was not used", "repair: allow_unused=True returns None"),
    (lambda: mg.gradcheck(mg.sin, [mg.tensor(1.0)]), "none of the inputs requires grad", "repair: mg.tensor(…, requires_grad=True)"),
    (lambda: mg.gradcheck(mg.sin, [leaf(np.float32([1.0]))]), "float32[1] is too coarse", "repair: inputs of dtype=float"),
    (lambda: mg.data.Alphabet("ab").encode("z"), "'z' is not among the characters 'ab'", "repair: an Alphabet"),
    (lambda: mg.data.windows(np.arange(3), 9), "windows(length=9, every=1) of a sequence of 3", "repair: the length must be from 1 to 2"),
    (lambda: mg.saved_tensors_hooks(3, 4), "saved_tensors_hooks takes two functions, not 3", "repair: pack and unpack"),
    (lambda: mg.primitive(saved_of_a_walked_node, typ="third"), "primitive(", "unexpected keyword argument 'typ'", "repair: primitive(kernel"),
    (lambda: mg.exp.grad(y=lambda out_grad: out_grad), "'exp' has no input 'y'", "repair: a rule is given by the name"),
    (lambda: mg.grad(mg.grad(leaf(2.0) ** 3, x := leaf(2.0), allow_unused=True, materialize_grads=True)[0], x), "found no graph", "repair:", "gradients with create_graph=True"),
    (lambda: setattr(leaf([1.0]), "grad", np.ones(1)), "the gradient of float64[1] cannot be float64[1], an array", "repair: a Tensor"),
    # functions of a user, and what they are given
    (lambda: mg.jacobian(lambda x, y: x * y, np.ones(2)), "missing 1 required", "repair: as many values as the function takes: one tuple (x, y)"),
    (lambda: mg.jacobian(lambda x: x, [1.0, 2.0]), "takes 1 positional argument", "repair: as many values as the function takes"),
    (lambda: mg.jacobian(lambda x, y: x, np.ones(2), np.ones(2)), "jacobian(function: function", "repair: True or False is one value", "one tuple, (x, y)"),
    (lambda: mg.vjp(lambda x: x, np.ones(2)), "the vjp vector is None, it must have the shape [2]", "repair: v=mg.ones([2])"),
    (lambda: mg.grad(lambda x: x * x), "grad() needs 'inputs'", "repair: of a function: mg.vjp(f, x)[1]"),
    (lambda: np.linalg.solve(leaf(np.eye(2)), np.ones(2)), "np.linalg.solve on a Tensor", "repair:", "(mg.solve(…))"),
    (lambda: np.concatenate([leaf([1.0])]), "np.concatenate on a Tensor", "repair:", "(mg.concat(values, axis=…))"),
    (lambda: np.frompyfunc(abs, 1, 1)(leaf([1.0])), "abs (vectorized) does not know Tensors", "repair:"),
    (lambda: mg.trace(lambda x, y: x * y, np.ones(2)), "missing 1 required", "repair: as many values as the function takes", "f, x, y in trace"),
    (lambda: mg.trace(lambda x: x.__setitem__(0, 1.0), np.ones(2)), "a Variable cannot be changed in place", "repair: y = mg.setitem(x, value, index)"),
    (lambda: mg.trace(lambda x: optim.SGD([x]), np.ones(2)), "not float64[2]", "repair: optim.SGD(lr=0.1).minimize(loss)"),
    # linear algebra
    (lambda: mg.solve(leaf(np.eye(3)), np.ones(4)), "solve(a: float64[3, 3], b: float64[4])", "repair: b has as many rows as a"),
    (lambda: mg.cholesky(leaf(np.ones(3))), "cholesky(x: float64[3]) is not possible: it takes square matrices", "repair: the last two axes must be equal"),
    (lambda: mg.cholesky(leaf(np.ones((2, 3)))), "cholesky(x: float64[2, 3])", "repair: the last two axes must be equal"),
    # lists of Tensors, and calls that come back through NumPy
    (lambda: mg.mean([leaf(1.0), leaf(2.0)]), "a list that holds Tensors which require grad", "repair: mg.stack([…])"),
    (lambda: leaf([1.0, 2.0]) * [leaf(1.0), 2.0], "a list that holds Tensors which require grad", "repair: mg.stack([…])"),
    (lambda: np.full(3, leaf(1.0)), "would cut the graph silently", "repair:"),
    (lambda: np.vectorize(abs)(leaf([1.0])), "would cut the graph silently", "repair:"),
    # masked arrays
    *((call, "a masked array (float64[2]) would lose its mask", "repair: x.filled(0.0)") for call in [
        lambda: mg.exp(MASKED),
        lambda: mg.tensor(MASKED),
        lambda: mg.jacobian(mg.exp, MASKED),
        lambda: mg.data.DataLoader(MASKED),
        lambda: masked_feed(parameter=MASKED),
        lambda: masked_feed(constant=MASKED),
        lambda: masked_feed(MASKED),
    ]),
    *((call, "numpy.ma on a Tensor that requires grad would cut the graph", "m.filled(0.0) * x") for call in [
        lambda: MASKED * leaf([1.0, 2.0]),
        lambda: MASKED - leaf([1.0, 2.0]),
        lambda: np.ma.less(MASKED, leaf([1.0, 2.0])),
        lambda: np.ma.concatenate([MASKED, leaf([1.0, 2.0])]),
    ]),
    # examples one by one, arrays with names
    *((call, f"arrays with equally many examples, not {what}", "repair: one axis 0", "pairs (*map(np.array, zip(*data)),)")
      for what, call in [
        ("dict", lambda: mg.data.DataLoader({"x": np.ones(2), "y": np.ones(2)})),
        ("a list of 2", lambda: mg.data.DataLoader([(1.0, 0), (2.0, 1)])),
        ("zip", lambda: mg.data.DataLoader(zip(np.ones((2, 3)), [0, 1], strict=True))),
    ]),
    # truth values of Tensors, and numbers that are no sizes
    (lambda: bool(leaf([1.0, 2.0]) == None), "bool() of bool[2] is ambiguous", "repair: x.all() or x.any(); (x > 0) & (x < 2)", "`x is None`"),  # noqa: E711
    (lambda: 0 < leaf([1.0, 2.0]) < 2, "bool() of bool[2] is ambiguous", "(x > 0) & (x < 2) for `and`"),
    (lambda: mg.sum(leaf([1.0]), axis=0.0), "reduce_sum(x: float64[1], axis=0.0", "repair: sizes, axes and counts are whole numbers"),
    (lambda: mg.eye(2.0), "eye(n: 2.0)", "repair: sizes, axes and counts are whole numbers: int(n)"),
    (lambda: leaf([1.0, 2.0])[[True, False, True]], "boolean index did not match", "a mask has one truth value"),
    # what stands in the place of another argument
    (lambda: mg.tensor([1.0], np.float32), "requires_grad is the class float32", "repair: True or False; dtype=…"),
    (lambda: mg.Tensor(2, 3), "requires_grad is 3", "repair: True or False"),
    (lambda: nn.Linear(1, 1).requires_grad_("no"), "requires_grad is str", "repair: True or False"),
    (lambda: mg.grad(w := leaf([1.0, 2.0]), (w * w).sum()), "grad() starts from an output, and float64[2] is a leaf", "repair: mg.grad(loss, w)"),
    (lambda: optim.clip_by_global_norm([leaf(1.0)], 1.0), "takes at most 1 value, 2 were given", "repair: optim.SGD(model, clip=optim.clip_by_global_norm(1.0))"),
    (lambda: optim.SGD([leaf(1.0)]).step(lambda: 1.0), "takes at most 0 values", "repair: leave it out: loss.backward() first"),
    (lambda: nn.Sequential(mg.relu).__setitem__(0, mg.exp), "has no attribute '__setitem__'", "repair: model.layers[0] = layer"),
    (lambda: np.ones(2).__iadd__(leaf([1.0, 2.0])), "np.add does not know it", "a new Tensor of an array a: a = a + …"),
    (lambda: static.compile(lambda x: x), "compile takes a Program, not function", "repair: static.compile(p := mg.trace(function, example), fetch=p.outputs)"),
    (lambda: mg.no_grad(leaf(1.0)), "no_grad() takes at most 0 values", "repair: with mg.no_grad(): …"),
    (lambda: mg.trace(np.exp, np.ones(2)), "np.exp does not know Variables"),
    (lambda: mg.trace(lambda x: {"y": x}, np.ones(2)), "the traced function returned dict", "several values as a tuple"),
    (lambda: static.Program().run(), "a Program has no attribute 'run'", "repair: static.Executor().run(program"),
    (lambda: static.Program().ops, "a Program has no attribute 'ops'", "repair: program.global_block().ops"),
    (lambda: mg.zeros((2,), dtype="flot"), "dtype='flot'", "repair: a dtype is float, int, bool or a name"),
    (lambda: mg.draw(mg.exp), "nothing to draw in 'function'", "of a function mg.draw(mg.trace(function, example))"),
    (lambda: mg.make_dot, "has no attribute 'make_dot'", "repair: mg.draw(y)"),
    (lambda: mg.data.load_digits(), "has no attribute 'load_digits'", "repair: data.digits()"),
    (lambda: static.parameter("w", shape=[2, 3]), "parameter() has no keyword 'shape'", "repair: static.parameter(name, np.zeros(shape))"),
    (lambda: setattr(nn.Linear(1, 1), "weight", np.ones((1, 1))), "'weight' of this Linear is trained, float64[1, 1] is not", "repair: model.weight = nn.Parameter(values)"),
    (lambda: nn.ReLU(leaf(1.0)), "ReLU() takes at most 0 values", "repair: nn.ReLU()(x)"),
    (lambda: optim.StepLR(optim.SGD([leaf(1.0)]), 3).step(0.5), "StepLR.step() takes at most 0 values", "repair: leave it out"),
    (lambda: leaf(1.0).astype(float, copy=False), "astype() has no keyword 'copy'", "repair: leave it out"),
    (lambda: leaf([1.0]).fill(0.0), "a Tensor has no attribute 'fill'", "repair: x.copy_(value)"),
    (lambda: mg.data.windows("hello", 2), "windows(sequence: str", "repair: a sequence of numbers"),
    # None in the place of a number
    (lambda: leaf([1.0]) - leaf([1.0]).grad, "sub(x: float64[1], y: None)", "repair: None stands for a value: the .grad"),
    (lambda: leaf([1.0]).grad - leaf([1.0]), "sub(x: None, y: float64[1])", "repair: None stands for a value: the .grad"),
    # names and calls
    (lambda: mg.tensor([1.0]).view(1), "a Tensor has no attribute 'view'", "repair: x.reshape(shape)"),
    (lambda: mg.concatenat, "module 'minigrad' has no attribute 'concatenat'"),
    (lambda: mg.sum(mg.tensor([1.0]), axs=0), "sum() has no keyword 'axs'; did you mean 'axis'?", "called as sum(x, axis=None"),
    (lambda: mg.reshape(mg.tensor([1.0])), "reshape() needs 'shape'", "called as reshape(x, shape"),
    (lambda: mg.concat([mg.tensor([1.0])], 0, 0), "concat() takes at most 2 values, 3 were given", "called as concat(*x, axis=0"),
    (lambda: mg.data.DataLoader(np.ones((2, 1)), batch_size=3, drop_last=True).forever().__next__(), "2 examples in batches of 3", "repair: a smaller batch_size"),
    (lambda: mg.concat([leaf([1.0]), leaf([[1.0]])]), "concat(x: float64[1], x: float64[1, 1], axis=0) is not possible", "repair: all need equally many axes"),
    # losses
    (lambda: cross_entropy([0.5, 0.5]), "float64[2] does not name one class for each row", "repair: integers of shape [2]: labels.astype(int)"),
    (lambda: cross_entropy([[0], [1]]), "int64[2, 1] does not name one class for each row", "repair: integers of shape [2]: labels.reshape(2)"),
    (lambda: mg.cross_entropy(np.array([0, 1]), np.zeros((2, 3))), "float64[2, 3] does not name one class for each row", "repair: the scores come first"),
    (lambda: cross_entropy([1, 3]), "classes from 1 to 3 are not all among 0 … 2", "repair: count classes from 0"),
    (lambda: mg.nll(leaf(np.zeros((2, 3))), [1, 3]), "nll(x: float64[2, 3], target: int64[2]", "not all among 0 … 2", "repair: count classes from 0"),
    (lambda: mg.nll(leaf(np.zeros((2, 3))), [1.0, 2.0]), "nll(x: float64[2, 3], target: float64[2]", "repair: integers of shape [2]: labels.astype(int)"),
    (lambda: mg.binary_cross_entropy(leaf([2.0, -3.0]), [1.0, 0.0]), "binary_cross_entropy(float64[2]): x goes from -3 to 2", "repair: mg.binary_cross_entropy_with_logits(x, target)"),
    (lambda: mg.binary_cross_entropy(2.5, 1.0), "binary_cross_entropy(2.5): x goes from 2.5 to 2.5", "repair: mg.binary_cross_entropy_with_logits"),
    # layers
    (lambda: nn.MultiHeadAttention(8, heads=3), "MultiHeadAttention(8, heads=3): 8 columns do not divide into 3 heads", "repair: heads that divide the width"),
    (lambda: nn.Linear(2, 3).astype(int), "parameters are real floating-point numbers, not int64", "repair: dtype=float"),
    (lambda: nn.Linear(2, 3, seed="a"), "seed is", "repair: seed=0, or a generator"),
    (lambda: nn.Linear(0, 3), "0): give a whole number above 0", "repair: Linear(…,"),
    (lambda: nn.Conv2d(4, 6, 3, groups=4), "Conv2d(groups=4): 4 channels and 6 filters do not divide into 4 groups", "repair: sizes that groups divides"),
    (lambda: nn.Linear(2, 3).wieght, "'Linear' object has no attribute 'wieght'"),
    (lambda: nn.Linear(2, 3)(1.0, 2.0), "Linear(…)() takes at most 1 value, 2 were given", "called as Linear(…)(x)"),
    (lambda: nn.Linear(2, 3).load_state_dict({"wieght": 1.0}), "this Linear has no 'wieght'; did you mean 'weight'?", "repair: state.pop(name)"),
    (lambda: nn.Linear(2, 3).load_state_dict({}), "the state has no 'weight'", "repair: the state of one of the same kind; {**model.state_dict(), **state}"),
    (lambda: nn.BatchNorm(3)(np.ones((2, 4))), "BatchNorm(3) takes [batch, 3, ...], not float64[2, 4]", "repair: BatchNorm(size of axis 1)"),
    (lambda: nn.Sequential(nn.Linear), "modules and functions, not the class Linear", "repair: Linear(), a layer of it"),
    (lambda: nn.Sequential([mg.relu]), "not a list of 1", "repair: Sequential(*layers)"),
    (lambda: nn.Sequential(leaf([1.0])), "not float64[1]", "mg.relu, not mg.relu(x)"),
    # optimizers
    (lambda: optim.SGD([{"params": [leaf(1.0)], "learning_rate": 0.1}]), "has no 'learning_rate'; did you mean 'lr'?", "repair: an option"),
    (lambda: optim.SGD([{"param": [leaf(1.0)]}]), "a dictionary with 'params', not ['param']", "repair:"),
    (lambda: optim.SGD([leaf(1.0)], lr=-1), "lr is -1: give a number of at least 0", "repair: lr=0.01"),
    (lambda: optim.SGD([leaf(1.0)], momentum=1.5), "momentum is 1.5: give a number of at least 0 and below 1", "repair: momentum=0.9"),
    (lambda: optim.cosine(0.1, steps=0), "steps is 0: give a number of steps above 0", "repair: steps=1000"),
    (other_data, "the gradient of a parameter is float64[2], the parameter float64[3]", "repair: optimizer.zero_grad()"),
    (lambda: other_data(clip=optim.clip_by_norm(1.0)), "the gradient of a parameter is float64[2], the parameter float64[3]", "repair: optimizer.zero_grad()"),
    (lambda: optim.SGD(nn.Linear), "not the class Linear", "repair: a module made of it: Linear(…)"),
    (lambda: optim.SGD(nn.Linear(2, 3).parameters), "parameters are Tensors or a module, not method", "repair: model.parameters(), called"),
    (lambda: optim.SGD(3), "parameters are Tensors or a module, not 3", "repair: model.parameters()"),
    (lambda: optim.SGD([leaf([1.0]) * 2.0]), "not float64[1]", "repair: the Tensors it was computed from"),
    (lambda: optim.SGD([mg.tensor([1.0])]), "not float64[1]", "repair: mg.tensor(…, requires_grad=True)"),
    (lambda: optim.SGD([nn.Linear(2, 3)]), "not Linear", "repair: one module that holds them"),
    (lambda: optim.SGD([("w", leaf(1.0))]), "not a tuple of 2", "repair: model.parameters()"),
    (lambda: optim.SGD([{"layers": []}]), "a dictionary with 'params'", 'repair: [{"params":'),
    (lambda: optim.SGD(["w"]), "not str", "nn.Parameter(values)"),
    (lambda: other_kind(optim.SGD, optim.Adam), "the state of SGD without momentum, and the optimizer is Adam(", "repair: an optimizer of that kind"),
    (lambda: other_kind(optim.AdamW, optim.SGD), "the state of Adam or AdamW, and the optimizer is SGD(", "repair: an optimizer of that kind"),
    (lambda: other_kind(optim.Adagrad, optim.RMSprop), "the state of Adagrad, and the optimizer is RMSprop(", "repair: an optimizer of that kind"),
    (lambda: other_kind(with_momentum, optim.RMSprop), "the state of SGD with momentum, and the optimizer is RMSprop(", "repair: an optimizer of that kind"),
    (lambda: other_kind(optim.SGD, with_momentum), "the state of SGD without momentum, and the optimizer is SGD(lr=0.01, mu=0.9", "repair: an optimizer of that kind"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"), [(c, w) for c, *w in CALLS], ids=[w[0] for _, *w in CALLS]
)
def test_an_error_says_these_words_in_this_order(call, words):
    with pytest.raises((MinigradError, AttributeError)) as caught:
        call()
    lines = str(caught.value).splitlines()
    text = "\n".join(s for s in lines if HERE not in s)  # the line here holds the words, too
    places = [text.find(w) for w in words]
    assert -1 not in places, (text, words)
    assert places == sorted(places), text
    if "repair:" in text:  # who is told what to do is told where, too
        assert any(HERE in s for s in lines)


def test_an_error_of_a_file_quotes_its_sizes(tmp_path):
    with pytest.raises(nn.StateError, match=r"state.npz grows from \d+ to 10000000 bytes"):
        stored(tmp_path, b"\0" * 10**7, zipfile.ZIP_DEFLATED)


# -- errors that no other test reads -----------------------------------------------------


def changed(x, change):
    """``change(x)`` in place, outside the graph."""
    with mg.no_grad():
        change(x)


class Blank(mg.Function):
    pass


class OneWay(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x


class Bare(nn.Module):
    pass


class InATuple(nn.Module):
    def __init__(self):
        self.parts = (leaf(1.0),)

    def forward(self, x):
        return x


def other_gradient(optimizer):
    p = leaf([1.0, 2.0])
    p.grad = mg.tensor([1.0, 2.0])
    p.data = np.ones(3)
    optimizer([p]).step()


def other_state():
    made = optim.SGD([leaf([1.0, 2.0])], momentum=0.9)
    made.load_state_dict(made.state_dict() | {"velocity.0": np.ones(3)})


def building(make):
    """``make(x)`` with data ``x`` of shape [2] in a Program."""
    with static.program_guard(static.Program()):
        return make(static.data("x", [2]))


def parsed(*lines):
    return static.parse("\n".join(lines))


def stored_program(*path, to):
    data = json.loads(sample()[0].to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return static.Program.from_json(json.dumps(data))


def stepping(*args, **kwargs):
    program = static.Program()
    with static.program_guard(program):
        y = static.data("x", [2]) * 2.0
    return static.compile(program, fetch=y, **kwargs)(*args)


def wrong_block(name, value):
    program = static.Program()
    setattr(program.global_block(), name, value)
    return static.verify(program)


def known_as_another():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [2])
    program.global_block().vars["y"] = x
    return static.verify(program)


EAGER = {
    "float32[1] is too coarse": lambda: mg.gradcheck(mg.sin, [mg.tensor(np.float32([1]), requires_grad=True)]),
    "equally many examples": lambda: mg.data.DataLoader((np.ones(3), np.ones(2))),
    "write forward(ctx": lambda: Blank.apply(leaf(1.0)),
    "write backward(ctx": lambda: OneWay.apply(leaf(1.0)).backward(),
    "cannot change the shape [1] to [2]": lambda: changed(mg.tensor([1.0]), lambda x: x.add_(np.ones(2))),
    "cannot turn int64 into float64": lambda: changed(mg.tensor([1]), lambda x: x.add_(0.5)),
    "has views": lambda: (lambda y: (y[:1], y.add_(1.0)))(leaf([1.0, 2.0]) * 1.0),
    "is a view of another Tensor": lambda: (lambda y: y[:1].add_(1.0))(leaf([1.0, 2.0]) * 1.0),
    "inputs must be Tensors": lambda: mg.grad(leaf(1.0) * 2.0, [3.0]),
    "must hold real numbers": lambda: (leaf(1.0) * 2.0).backward(1j),
    "a Tensor holds numbers, not": lambda: mg.tensor("text"),
    "its data must be floating-point": lambda: setattr(leaf([1.0]), "data", np.array([1])),
    "only real floating-point Tensors can require grad": lambda: mg.tensor([1], requires_grad=True),
    "only leaves can be stored": lambda: copy.deepcopy(leaf(1.0) * 2.0),
    "only leaves can be stored or copied": lambda: pickle.dumps(leaf(1.0) * 2.0),
    "register_hook()": lambda: mg.tensor(1.0).register_hook(print),
    "retain_grad()": lambda: mg.tensor(1.0).retain_grad(),
    "item() of float64[2] is ambiguous": lambda: mg.tensor([1.0, 2.0]).item(),
    "is ambiguous: it has 2 elements": lambda: bool(mg.tensor([1.0, 2.0])),
    "format() of float64[2] is ambiguous": lambda: f"{mg.tensor([1.0, 2.0]):.2f}",
    "needs 2 vectors, a tuple": lambda: mg.jvp(lambda x, y: x * y, (leaf(1.0), leaf(2.0)), (1.0,)),
    "has no forward(self, x): write one": lambda: Bare()(1.0),
    "'Bare' object has no": lambda: Bare().weihgt,
    "stands in a tuple": lambda: building(InATuple()),
    "this Linear has no 'wieght'": lambda: nn.Linear(2, 3, seed=0).load_state_dict({"wieght": 1.0}),
    "seed is": lambda: nn.Linear(2, 3, seed=-1),
    "count from 1, padding": lambda: mg.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), stride=0),
    "sizes are one shape": lambda: mg.zeros(2, 3),
    "erf is defined here for real numbers": lambda: mg.erf(np.array([1j])),
    "do not add up to the 4 elements": lambda: mg.split(np.ones(4), [1, 2]),
    "is not a probability below 1": lambda: mg.dropout(np.ones(3), 1.0, seed=0),
    "nesterov looks ahead": lambda: optim.SGD([leaf(1.0)], nesterov=True),
    "expected": other_state,
    "gradient": lambda: other_gradient(lambda p: optim.SGD(p, lr=0.1)),
    "grad": lambda: other_gradient(lambda p: optim.SGD(p, lr=0.1, clip=lambda g: g)),
    "np.exp does not know Tensors": lambda: np.exp(mg.tensor(1.0)),
}  # fmt: skip


HEAD = "block 0:"


PROGRAMS = {
    "is no rung of the ladder": lambda: stepping(stop_after="rols"),
    "feeds are given by name": lambda: stepping(np.ones(2)),
    "compare first (x > 0)": lambda: building(lambda x: static.cond(x, lambda: x, lambda: x)),
    "needs real numbers, not": lambda: building(lambda x: static.parameter("p", [1j])),
    "inputs: dict[str, Any] | None": lambda: building(lambda x: x.program.global_block().append_op("sin", [x], {})),
    "Variable": lambda: building(lambda x: x.shpae),
    "a program starts with 'block 0:'": lambda: parsed("x = 1"),
    "line 1: a program starts with": lambda: parsed("data x: float64[2]"),
    "unknown role 'bakward'": lambda: parsed(HEAD, "-- bakward"),
    "block 1 stands where block 0": lambda: parsed("block 1:"),
    "an operator reads: targets": lambda: parsed(HEAD, "y"),
    "is given twice": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(x=x, x=x)"),
    "there are only 1 slots": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(x, x)"),
    "z=x gives neither an input slot a name nor an attr a value": lambda: parsed(HEAD, "data x: float64[2]", "y = sin(z=x)"),
    "is no shape": lambda: from_plain(["array", "float64", [-1], []]),
    "the limit is": lambda: from_plain(["array", "float64", [10**9], []]),
    "has another number of elements": lambda: from_plain(["array", "float64", [2], [1.0]]),
    "an array holds numbers": lambda: from_plain(["array", "float64", [1], ["a"]]),
    "an attr cannot hold a": lambda: from_plain({}),
    "is no slice": lambda: from_plain(["slice", 1]),
    "'version' must be 1": lambda: stored_program("version", to="1"),
    "block 0 must be the root": lambda: wrong_block("parent", 0),
    "knows Variable(x: float64[2]) as 'y'": known_as_another,
    "calls itself 3": lambda: wrong_block("idx", 3),
}  # fmt: skip


PICTURES = {
    "watch needs classes": lambda: watch(3),
}  # fmt: skip


@pytest.mark.parametrize("words", [*EAGER, *PROGRAMS, *PICTURES])
def test_an_error_says_these_words(words):
    call = (EAGER | PROGRAMS | PICTURES)[words]
    kinds = (
        MinigradError,
        ValueError,
        TypeError,
        RuntimeError,
        AttributeError,
        NotImplementedError,
    )
    with pytest.raises(kinds) as caught:
        call()
    assert words in str(caught.value)


def test_what_is_no_number_but_has_a_shape_of_none_is_refused_in_words():
    class Later:
        shape = None

    with pytest.raises(mg.errors.DTypeError, match=r"exp\(x: Later\) is not possible"):
        mg.exp(Later())


def test_the_line_is_the_users_however_the_path_of_the_package_is_written():
    home = Path(mg.__file__).parents[1]
    code = "import sys; sys.path.insert(0, sys.argv[1]); import minigrad as mg; mg.ones([2]).item()"
    where = f"{home}/minigrad/.././/"
    ran = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True)
    assert "  at cell:1" in ran.stderr
