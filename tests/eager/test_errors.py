"""Every error of the eager engine once: the op, the shapes, the line and the repair."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradError, MinigradError, RuleError


def leaf(value=2.0, **kw):
    return mg.tensor(value, requires_grad=True, **kw)


def twice(x):
    y = x * x
    y.backward()
    y.backward()


def in_place(x):
    y = x.exp()
    y.add_(1.0)
    y.sum().backward()


CASES = {
    "second backward": (
        lambda: twice(leaf()),
        RuntimeError,
        ["second time", "MulBackward0", "made at test_errors.py", "retain_graph=True"],
    ),
    "in-place change": (
        lambda: in_place(leaf([1.0])),
        RuntimeError,
        [
            "ExpBackward0",
            "changed in place",
            "saved at test_errors.py",
            "changed at test_errors.py",
            "out-of-place",
        ],
    ),
    "non-scalar without seed": (
        lambda: (leaf([1.0, 2.0]) * 2).backward(),
        RuntimeError,
        ["float64[2]", "2 elements", "test_errors.py", ".sum().backward()"],
    ),
    "no graph": (
        lambda: mg.tensor(1.0).backward(),
        RuntimeError,
        ["no grad_fn", "does not require grad", "requires_grad=True"],
    ),
    "leaf in place": (
        lambda: leaf().add_(1.0),
        RuntimeError,
        ["leaf that requires grad", "no_grad"],
    ),
    "float of a big tensor": (
        lambda: float(leaf([1.0, 2.0])),
        TypeError,
        ["float64[2]", "2 elements", "x.sum()"],
    ),
    "bool of a big tensor": (
        lambda: bool(mg.tensor([1.0, 2.0])),
        TypeError,
        ["ambiguous", "any()"],
    ),
    "NumPy ufunc": (lambda: np.exp(leaf()), TypeError, ["np.exp", "mg.exp"]),
    "NumPy conversion": (
        lambda: np.asarray(leaf()),
        RuntimeError,
        ["cut the graph", "detach().numpy()"],
    ),
    "integers require grad": (lambda: leaf(1), TypeError, ["int64", "1.0 instead of 1"]),
    "complex requires grad": (lambda: leaf(1j), TypeError, ["complex"]),
    "shape mismatch": (
        lambda: leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0]),
        ValueError,
        ["add(x: float64[2], y: float64[3])", "test_errors.py"],
    ),
    "matmul mismatch": (
        lambda: mg.matmul(leaf([[1.0, 2.0]]), leaf([[1.0, 2.0]])),
        ValueError,
        ["matmul(x: float64[1, 2], y: float64[1, 2])"],
    ),
    "wrong seed": (
        lambda: (leaf([1.0, 2.0]) * 2).backward(mg.tensor([1.0])),
        ValueError,
        ["float64[1]", "[2]"],
    ),
    "not numbers": (lambda: mg.tensor("abc"), TypeError, ["numbers"]),
    "ragged": (lambda: mg.tensor([[1.0], [1.0, 2.0]]), TypeError, ["regular grid"]),
    "item of many": (lambda: mg.tensor([1.0, 2.0]).item(), TypeError, ["one element", "2"]),
    "requires_grad of a non-leaf": (
        lambda: setattr(leaf() * 2, "requires_grad", False),
        RuntimeError,
        ["detach()"],
    ),
    "hook without grad": (
        lambda: mg.tensor(1.0).register_hook(print),
        RuntimeError,
        ["does not require grad"],
    ),
    "empty inputs": (lambda: (leaf() * 2).backward(inputs=[]), RuntimeError, ["inputs"]),
    "grad of what needs none": (
        lambda: mg.grad(leaf() * 2, mg.tensor(1.0)),
        RuntimeError,
        ["does not require grad"],
    ),
    "unknown attr": (
        lambda: mg.concat([leaf([1.0]), leaf([1.0])], axes=0),
        TypeError,
        ["axes", "axis"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_names_the_cause_and_the_repair(name):
    call, kind, texts = CASES[name]
    with pytest.raises(kind) as caught:
        call()
    for text in texts:
        assert text in str(caught.value), f"{text!r} is missing in: {caught.value}"
    assert isinstance(caught.value, MinigradError) or kind is TypeError


def test_registration_errors():
    from minigrad.primitives.registry import REGISTRY, primitive

    with pytest.raises(RuleError, match="registered already"):

        @primitive
        def exp(x):
            return x

    @primitive
    def test_thing(x, *, k=1):
        return x * k

    try:
        with pytest.raises(RuleError, match="names 'z'.*did you mean|names 'z'"):
            test_thing.grad(x=lambda z, out_grad: z)
        with pytest.raises(RuleError, match="no input 'y'"):
            test_thing.grad(y=lambda out_grad: out_grad)
        with pytest.raises(RuleError, match=r"and others for x\n.*\n.*repair: one function"):
            test_thing.grad(lambda out_grad: (out_grad,), x=lambda out_grad: out_grad)
        assert not REGISTRY["test_thing"].rules
        test_thing.grad(x=lambda out_grad, k: out_grad * k)
        x = leaf(3.0)
        test_thing(x, k=5).backward()
        assert float(x.grad) == 5
    finally:
        del REGISTRY["test_thing"]


def test_why_says_why_there_is_no_gradient():
    x = leaf(2.0, name="x")
    with mg.no_grad():
        assert "no_grad" in str(mg.why(x * x))
    assert "detach" in str(mg.why(x.detach()))
    assert "int64" in str(mg.why(mg.tensor(1)))
    assert "requires_grad=True" in str(mg.why(mg.tensor(1.0)))
    y = leaf(3.0) * 2
    y.backward(retain_graph=True)
    assert "not on a path" in str(mg.why(x))
    h = x * 3
    z = h * h
    z.backward()
    assert "retain_grad()" in str(mg.why(h))


def test_why_lists_contributions_that_add_up():
    x = leaf([1.0, 2.0], name="x")
    y = (x * x + x.sin() * 3).sum()
    y.backward()
    found = mg.why(x)
    assert np.allclose(sum(v for _, v in found.paths), x.grad.tolist()) and len(found.paths) == 3
    assert all(path[0] == "SumBackward0" for path, _ in found.paths)


# -- raised where nothing else looks -------------------------------------------------------


class Changed(mg.Function):
    """Saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Unwritten(mg.Function):
    """Has neither forward nor backward."""


class HalfWritten(mg.Function):
    """Has no backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 2


class SavesANumber(mg.Function):
    """Saves what is no Tensor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3.0)
        return x


def saved_and_changed():
    x = leaf([1.0]) * 1
    y = Changed.apply(x)
    x.add_(1.0)
    y.sum().backward()


def wrong_hook():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: mg.ones([3]))
    (x * 2).sum().backward()


def wrong_rule():
    @mg.primitive
    def halved(x):
        return x / 2

    halved.grad(x=lambda out_grad: mg.sum(out_grad))
    from minigrad.primitives.registry import REGISTRY

    del REGISTRY["halved"]
    halved(leaf([1.0, 2.0])).sum().backward()


def freed_list():
    x = leaf([1.0, 2.0])
    y = mg.einsum("i,i->", x, x * 2)
    y.backward()
    y.backward()


def freed_and_differentiated():
    x = leaf(2.0)
    y = x * x
    y.backward()
    mg.grad(y, x, create_graph=True)


def open_keywords():
    @mg.primitive
    def loose(x, **options):
        return x


@pytest.fixture
def own_primitives():
    """Primitives of a test leave the registry with it."""
    from minigrad.primitives.registry import REGISTRY

    before = dict(REGISTRY)
    yield
    for type in set(REGISTRY) - set(before):
        del REGISTRY[type]


@pytest.mark.parametrize("made", [[1, 2], "1.0", None])
def test_a_kernel_that_returns_no_array_is_refused(own_primitives, made):
    @mg.primitive
    def odd(x):
        return made

    with pytest.raises(RuleError, match="the kernel of odd returned .*, not an array") as caught:
        odd(leaf([1.0]))
    assert "repair: np.asarray" in str(caught.value)


@pytest.mark.parametrize("made", [np.ones(2), (np.ones(2),), [np.ones(2)] * 3])
def test_a_kernel_of_two_outputs_returns_two(own_primitives, made):
    @mg.primitive(outputs=("q", "r"))
    def parted(x):
        return made

    with pytest.raises(RuleError, match=r"the kernel of parted returned \d value") as caught:
        parted(leaf([1.0]))
    assert "repair: one for each output: q, r" in str(caught.value)


def test_backward_of_an_op_without_a_rule_says_how_it_gets_one(own_primitives):
    @mg.primitive
    def bare(x):
        return x * 2

    with pytest.raises(GradError, match="made by bare, which has no gradient") as caught:
        bare(leaf(1.0)).backward()
    assert "repair: an op that has one; an op of your own gets it by op.grad" in str(caught.value)


def interrupted():
    @mg.no_grad()
    def numbers():
        yield 1
        yield 2

    steps = numbers()
    next(steps)
    steps.throw(KeyError("thrown into a generator"))


REST = {
    "gradcheck of constants": (
        lambda: mg.gradcheck(lambda x: x, mg.tensor(1.0)),
        RuntimeError,
        "nothing to check",
    ),
    "gradcheck in float32": (
        lambda: mg.gradcheck(lambda x: x, leaf(1.0, dtype="float32")),
        TypeError,
        "needs float64",
    ),
    "inputs that are no Tensors": (lambda: mg.grad(leaf() * 2, 3), TypeError, "must be Tensors"),
    "fewer seeds than outputs": (
        lambda: mg.backward([leaf() * 2, leaf() * 3], [1.0]),
        RuntimeError,
        "2 outputs need 2 gradients, 1 were given",
    ),
    "backward of a number": (lambda: mg.backward(3), TypeError, "starts from a Tensor, not from 3"),
    "no forward": (lambda: Unwritten.apply(leaf()), NotImplementedError, "write forward"),
    "no backward": (lambda: HalfWritten.apply(leaf()).backward(), NotImplementedError, "write back"),
    "a number saved": (lambda: SavesANumber.apply(leaf()), TypeError, "keeps Tensors, not 3.0"),
    "saved by a Function, then changed": (saved_and_changed, RuntimeError, "changed in place after"),
    "a leaf's hook on a non-leaf": (
        lambda: (leaf() * 2).register_post_accumulate_grad_hook(print),
        RuntimeError,
        "for leaves that require grad",
    ),
    "retain_grad of a constant": (
        lambda: mg.tensor(1.0).retain_grad(),
        RuntimeError,
        "no gradient will ever reach it",
    ),
    "a rule of a wrong shape": (wrong_rule, ValueError, "finds the op"),
    "a hook of a wrong shape": (wrong_hook, ValueError, "or None to leave it as it is"),
    "nothing to concat": (lambda: mg.concat([]), ValueError, "give at least one value"),
    "nothing to stack": (lambda: mg.stack([]), ValueError, "give at least one value"),
    "parts that do not fit": (
        lambda: mg.split(leaf([1.0, 2.0, 3.0]), [1, 1]),
        ValueError,
        "do not add up to the 3 elements",
    ),
    "a list freed by backward": (freed_list, RuntimeError, "EinsumBackward0 a second time"),
    "freed, with a graph": (freed_and_differentiated, RuntimeError, "MulBackward0 a second time"),
    "a kernel with open keywords": (open_keywords, RuleError, "name its attrs instead"),
    "thrown into a generator": (interrupted, KeyError, "thrown into a generator"),
    "a list of arrays only": (lambda: mg.matmul([[1.0]], [[1.0, 2.0], [3.0, 4.0]]), ValueError, "matmul"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), REST.values(), ids=REST)
def test_an_error_that_is_rarely_met_says_what_is_wrong(call, kind, message):
    with pytest.raises(kind) as found:
        call()
    assert message in str(found.value)
