"""Custom Functions, checkpoint, saved-tensor hooks, anomaly mode, gradcheck, functional derivatives."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import AnomalyError, GradError, ProgramError, ShapeError


def leaf(value, **kw):
    return mg.tensor(value, requires_grad=True, **kw)


class Cube(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class SavesOutput(mg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g


def test_a_function_has_first_and_second_derivatives():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (g,) = mg.grad(y, x, create_graph=True)
    (h,) = mg.grad(g, x)
    assert (float(y), float(g), float(h)) == (8, 12, 12)


def test_a_function_may_save_its_output():
    x = leaf(1.0)
    y = SavesOutput.apply(x)
    y.backward()
    assert np.isclose(float(x.grad), np.e)
    with pytest.raises(GradError, match="freed"):
        y.backward()


class SavesOnTheWay(mg.Function):
    @staticmethod
    def forward(ctx, x):
        s = mg.sigmoid(x)
        ctx.save_for_backward(x, s * 1.0)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s))


def test_what_is_saved_on_the_way_has_first_derivatives_and_no_wrong_second_ones():
    x = leaf(1.0)
    assert mg.gradcheck(SavesOnTheWay.apply, x)
    with pytest.raises(GradError, match="neither input nor output of forward") as caught:
        mg.grad(SavesOnTheWay.apply(x), x, create_graph=True)
    assert "repair: compute it in backward" in str(caught.value)

    class Once(SavesOnTheWay):
        backward = staticmethod(mg.once_differentiable(SavesOnTheWay.backward))

    (g,) = mg.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(GradError, match="once_differentiable"):
        g.backward()


class Straight(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return mg.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


def test_a_function_is_not_traced_into_ops_with_another_gradient():
    with pytest.raises(ProgramError, match="Straight is a Function: .* no program") as caught:
        mg.trace(lambda x: Straight.apply(x).sum(), np.ones(3))
    assert "repair: a @mg.primitive with rules" in str(caught.value)


def test_a_saved_output_has_second_derivatives():
    x = leaf(1.0)
    (g,) = mg.grad(SavesOutput.apply(x), x, create_graph=True)
    (h,) = mg.grad(g, x)
    assert np.isclose(float(h), np.e)


def test_needs_input_grad_and_none_for_the_others():
    class Scaled(mg.Function):
        @staticmethod
        def forward(ctx, x, k, y):
            ctx.k, ctx.needs = k, ctx.needs_input_grad
            return x * k + y

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs == (True, False, False)
            return g * ctx.k, None, None

    x = leaf(2.0)
    Scaled.apply(x, 5.0, mg.tensor(1.0)).backward()
    assert float(x.grad) == 5


def test_several_outputs_of_which_one_is_used():
    class Both(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, g, h):
            return g * 2.0 + h * 3.0

    x = leaf(1.0)
    a, b = Both.apply(x)
    b.backward()
    assert float(x.grad) == 3 and b.output_nr == 1


@pytest.mark.parametrize(
    "result, text", [((1.0, 2.0), "returned 2 gradient"), (mg.tensor([1.0, 2.0]), "has the shape")]
)
def test_wrong_number_or_shape_of_gradients_is_an_error_that_names_the_function(result, text):
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return result

    x = leaf(1.0)
    with pytest.raises((GradError, ShapeError), match=text) as caught:
        Wrong.apply(x).backward()
    assert (
        "Wrong.backward" in str(caught.value) and "repair" in str(caught.value) and x.grad is None
    )


def test_once_differentiable_refuses_a_second_derivative():
    class Once(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        @mg.once_differentiable
        def backward(ctx, g):
            return g * 2.0

    x = leaf(3.0)
    Once.apply(x).backward()
    assert float(x.grad) == 2
    (first,) = mg.grad(Once.apply(x), x, create_graph=True)
    assert float(first) == 2
    with pytest.raises(GradError, match="once_differentiable"):
        mg.grad(first * x, x)


def test_checkpoint_gives_the_same_gradients_and_keeps_nothing():
    w = leaf(np.full((3, 3), 0.3))
    x = leaf(np.ones((2, 3)))

    def f(a):
        return (a @ w).tanh() @ w

    f(x).sum().backward()
    expected = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    mg.checkpoint(f, x).sum().backward()
    assert np.allclose(x.grad.tolist(), expected[0]) and np.allclose(w.grad.tolist(), expected[1])


def test_saved_tensors_hooks_pack_and_unpack():
    packed = []

    def pack(array):
        packed.append(array.shape)
        return len(packed) - 1, array * 1

    with mg.saved_tensors_hooks(pack, lambda p: p[1]):
        x = leaf([1.0, 2.0])
        y = (x * x).exp()
    y.sum().backward()
    assert packed and np.allclose(x.grad.tolist(), 2 * np.array([1, 2]) * np.exp([1, 4]))


def test_saved_tensors_hooks_see_the_values_of_a_saved_list():
    x, w, packed = leaf([1.0, 2.0]), leaf([[1.0, 0.0], [3.0, 1.0]]), []
    with mg.saved_tensors_hooks(lambda a: packed.append(a.shape) or a * 10, lambda a: a / 10):
        y = mg.einsum("i,ij->j", x, w)
    y.sum().backward()
    assert sorted(packed) == [(2,), (2, 2)]
    assert (x.grad.tolist(), w.grad.tolist()) == ([1.0, 4.0], [[1.0, 1.0], [2.0, 2.0]])


@pytest.mark.parametrize("op", [lambda x: x * x, lambda x: Squared.apply(x)])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a.sum(),
        lambda a: a[:1],
        lambda a: a.astype("float32"),
        lambda a: mg.tensor(a),
        lambda a: a.tolist(),
        lambda a: None,
    ],
)
def test_what_unpack_gives_back_is_what_was_saved_or_refused(op, wrong):
    x = leaf([1.0, 2.0])
    with mg.saved_tensors_hooks(lambda a: a, wrong):
        y = op(x)
    with pytest.raises(RuntimeError, match=r"unpack of saved_tensors_hooks(.|\n)*repair"):
        y.sum().backward()
    assert x.grad is None


class Squared(mg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return g * 2 * x


@pytest.mark.parametrize("function", [Squared.apply, lambda x: Squared.apply(x * 1)])
def test_values_saved_by_a_function_go_through_the_hooks(function):
    x, packed = leaf([1.0, 2.0]), []
    with mg.saved_tensors_hooks(lambda a: packed.append(a) or len(packed) - 1, packed.__getitem__):
        y = function(x)
    assert [a.tolist() for a in packed[:2]] == [[1.0, 2.0], [1.0, 4.0]]
    packed[0] = np.array([10.0, 20.0])
    (g,) = mg.grad(y.sum(), x, retain_graph=True)
    assert g.tolist() == [20.0, 40.0]
    (g,) = mg.grad(y.sum(), x, create_graph=True)
    assert mg.grad(g.sum(), x)[0].tolist() == [2.0, 2.0]


def test_a_change_of_what_a_function_saved_is_noticed_behind_hooks():
    x = leaf([1.0, 2.0])
    h = x * 1
    with mg.saved_tensors_hooks(lambda a: a, lambda a: a):
        y = Squared.apply(h)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_checkpoint_keeps_nothing_of_what_a_function_saves():
    x, alive = leaf(np.ones(100)), []

    def f(x):
        h = x * 3
        alive.append(weakref.ref(h._data))
        return Squared.apply(h)

    y = mg.checkpoint(f, x).sum()
    assert alive[0]() is None
    y.backward()
    assert x.grad.tolist() == [18.0] * 100


def test_detect_anomaly_names_the_first_op_its_inputs_and_the_line():
    x = leaf([1.0, -1.0])
    with np.errstate(all="ignore"), mg.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mg.sqrt(mg.log(x)).sum()
    assert str(caught.value).startswith("log made nan") and "test_functions.py" in str(caught.value)


def test_detect_anomaly_in_backward():
    x = leaf(0.0)
    with np.errstate(all="ignore"):
        y = mg.sqrt(x)
        with (
            mg.detect_anomaly(),
            pytest.raises(AnomalyError, match="SqrtBackward0 made .backward. inf"),
        ):
            y.backward()
    assert x.grad is None


def test_gradcheck_names_the_worst_entry_and_its_ratio():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * mg.tensor([2.0, 8.0])

    x = leaf([1.0, 2.0], name="x")
    with pytest.raises(GradError, match=r"\(x\)\[1\]: ours 8, central difference 4.*ratio 2"):
        mg.gradcheck(lambda t: Wrong.apply(t), x)
    assert not mg.gradcheck(lambda t: Wrong.apply(t), x, raise_exception=False)


def test_gradcheck_suspects_a_kink():
    with pytest.raises(GradError, match="kink"):
        mg.gradcheck(lambda t: mg.relu(t), leaf([0.0]))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (1,)])
def test_gradcheck_of_no_elements_has_nothing_to_find_wrong(shape):
    assert mg.gradcheck(lambda x: x[1:] * 2, leaf(np.ones(shape)))
    assert mg.gradgradcheck(lambda x: x[1:] ** 2, leaf(np.ones(shape)))
    assert mg.gradcheck(lambda x: x.sum() + 1, leaf(np.ones(shape)))


def test_gradgradcheck():
    assert mg.gradgradcheck(lambda x, y: (x * y).sin() * x, (leaf([1.0, 2.0]), leaf([0.5, 3.0])))


def test_rosenbrock_hessian_and_products():
    def rosenbrock(x):
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    at = mg.tensor([2.0, 2.0])
    h = np.array(mg.hessian(rosenbrock, at).tolist())
    assert np.allclose(h, [[1200 * 4 - 400 * 2 + 2, -800], [-800, 200]])
    v = np.array([1.0, -2.0])
    assert np.allclose(mg.hvp(rosenbrock, at, mg.tensor(v))[1].tolist(), h @ v)
    assert np.allclose(
        mg.jacobian(lambda x: mg.stack([x[0] * x[1], x[0] + x[1]]), at).tolist(), [[2, 2], [1, 1]]
    )
    assert np.allclose(mg.jvp(lambda x: x * x, at, mg.tensor(v))[1].tolist(), [4, -8])
    assert np.allclose(mg.vjp(lambda x: x * x, at, mg.tensor(v))[1].tolist(), [4, -8])


def test_functional_derivatives_of_several_arguments_and_of_constants():
    f = lambda x, y: (x * y).sum()
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    _, (ga, gb) = mg.vjp(f, (a, b))
    assert ga.tolist() == [3, 4] and gb.tolist() == [1, 2]
    blocks = mg.hessian(f, (a, b))
    assert np.allclose(blocks[0][1].tolist(), np.eye(2)) and np.allclose(blocks[0][0].tolist(), 0)
    assert mg.jacobian(lambda x: mg.tensor([1.0, 2.0]), a).tolist() == [[0, 0], [0, 0]]


def test_gradcheck_moves_the_inputs_themselves_and_puts_them_back():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.tanh, mg.nn.Linear(3, 1))
    before = [p._data for p in model.parameters()]
    x = leaf([[0.5, -0.25]])
    assert mg.gradcheck(lambda x, *parameters: model(x), (x, *model.parameters()))
    assert all(p._data is b for p, b in zip(model.parameters(), before, strict=True))
    with pytest.raises(GradError, match=r"d input 0 \(layers.0.weight\)"):
        mg.gradcheck(lambda *parameters: model(x).detach() * model(x), model.parameters())
    assert all(p._data is b for p, b in zip(model.parameters(), before, strict=True))


def test_an_input_is_put_back_when_the_function_raises():
    x, calls = leaf([1.0, 2.0]), []

    def fails_later(t):
        calls.append(t.tolist())
        if len(calls) == 4:
            raise ValueError("no")
        return t * 2

    with pytest.raises(ValueError, match="no"):
        mg.gradcheck(fails_later, x)
    assert calls[0] != calls[3]
    assert x.tolist() == [1.0, 2.0]


def test_a_rule_that_is_added_after_the_first_call_counts_from_then_on():
    from minigrad.primitives.registry import REGISTRY

    @mg.primitive
    def late(x, y):
        return x * y

    try:
        late.grad(x=lambda out_grad, y: out_grad * y)
        a, b = leaf(2.0), leaf(3.0)
        late(a, b).backward()
        assert (a.grad.item(), b.grad) == (3.0, None)
        late.grad(y=lambda out_grad, x: out_grad * x)
        a.grad = None
        late(a, b).backward()
        assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)
        assert mg.gradgradcheck(late, (a, b))
    finally:
        del REGISTRY["late"]


def test_a_cell_that_registers_a_primitive_may_be_run_again():
    from minigrad.primitives.registry import REGISTRY

    cell = "def again(x):\n    return x * {0}\nagain = mg.primitive(again)\nagain.grad(x=lambda out_grad: out_grad * {0})"
    try:
        for k in (2, 3):
            notebook = {"mg": mg, "__name__": "__main__"}
            exec(cell.format(k), notebook)
            x = leaf(1.0)
            y = notebook["again"](x)
            y.backward()
            assert (y.item(), x.grad.item()) == (k, k)
        with pytest.raises(TypeError, match="(?s)registered already.*minigrad.*repair"):
            exec("def exp(x): return x\nmg.primitive(exp)", notebook)
    finally:
        del REGISTRY["again"]
