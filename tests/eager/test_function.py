"""mg.Function, checkpoints and hooks of saved values; rules and functions written for primitives."""

from __future__ import annotations

import _thread
import gc
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.eager.record import source
from minigrad.errors import DTypeError, GradError, ProgramError, ShapeError
from minigrad.primitives.registry import REGISTRY
from tests.pieces import Twice, leaf


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


class SavesPlaces(mg.Function):
    """x² at the largest places of every row, which are whole numbers."""

    @staticmethod
    def forward(ctx, x):
        at = mg.tensor(x.detach().numpy().argmax(1))
        ctx.save_for_backward(x, at)
        return x[np.arange(len(x)), at.numpy()] ** 2

    @staticmethod
    def backward(ctx, g):
        x, at = ctx.saved_tensors
        picked = np.zeros(x.shape)
        picked[np.arange(len(x)), at.numpy()] = 1.0
        return g.reshape(-1, 1) * 2 * x * picked


def test_whole_numbers_saved_on_the_way_leave_the_second_derivative_known():
    x = leaf([[1.0, 3.0], [2.0, -1.0]])
    (g,) = mg.grad(SavesPlaces.apply(x).sum(), x, create_graph=True)
    (h,) = mg.grad(g.sum(), x)
    assert g.tolist() == [[0.0, 6.0], [4.0, 0.0]]
    assert h.tolist() == [[0.0, 2.0], [2.0, 0.0]]


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_a_function_with_a_self_is_told_to_be_static(name):
    with pytest.raises(
        DTypeError, match=rf"Odd.{name} has a self(?s:.*)@staticmethod, then def {name}"
    ):
        type("Odd", (mg.Function,), {name: lambda self, ctx, x: x})
    type("Even", (mg.Function,), {name: lambda ctx, x: x})


class InNumPy(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.exp(x.detach().numpy())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.detach().numpy() * np.exp(x.detach().numpy())


@pytest.mark.parametrize(
    "derive",
    [
        lambda f, x: mg.hessian(lambda x: f(x).sum(), x),
        lambda f, x: mg.hvp(lambda x: f(x).sum(), x, mg.ones(2)),
        lambda f, x: mg.jvp(f, x, mg.ones(2)),
        lambda f, x: mg.grad(f(x).sum(), x, create_graph=True)[0].sum().backward(),
    ],
)
def test_a_backward_in_numpy_has_first_derivatives_and_no_wrong_second_ones(derive):
    x = leaf([1.0, 2.0])
    assert mg.gradcheck(InNumPy.apply, x)
    np.testing.assert_allclose(mg.jacobian(InNumPy.apply, x).numpy(), np.diag(np.exp([1.0, 2.0])))
    with pytest.raises(GradError, match=r"InNumPy.backward .* array of NumPy") as caught:
        derive(InNumPy.apply, x)
    assert "with the functions of minigrad" in str(caught.value)


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


def test_a_saved_output_that_is_changed_in_place_is_noticed():
    y = SavesOutput.apply(leaf([1.0, 2.0]))
    y.add_(1.0)
    with pytest.raises(
        GradError, match=r"SavesOutputBackward saved tensors (.|\n)*y\.add_\(1\.0\)"
    ):
        y.sum().backward()


def test_what_is_written_into_the_array_of_a_saved_tensor_does_not_change_its_gradient():
    x = leaf([1.0, 2.0])
    array = x.data
    y = SavesOnTheWay.apply(x).sum()
    before = mg.grad(y, x, retain_graph=True)[0].tolist()
    array += 1.0
    assert mg.grad(y, x)[0].tolist() == before


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


# -- what is handed on, saved and kept alive ---------------------------------------------


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


def test_who_looks_back_at_a_function_is_told_what_it_gave_and_runs_nothing():
    ran = []

    class Counted(Cube):
        @staticmethod
        def backward(ctx, g):
            ran.append(g.item())
            return Cube.backward(ctx, g)

    y = Counted.apply(leaf(2.0))
    y.backward()
    told = y.grad_fn.remembered()["gradients"]
    assert [g.tolist() for g in told.values()] == [12.0]
    assert ran == [1.0]


class Scaled(mg.Function):
    """x times a number, which gets no gradient."""

    @staticmethod
    def forward(ctx, number, x):
        ctx.number = number.item()
        return x * number

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.number


@pytest.mark.parametrize(("count", "told"), [(2048, 1), (2049, 0)])
def test_what_a_function_gave_is_remembered_up_to_16_kilobytes(count, told):
    y = Scaled.apply(leaf(3.0), leaf(np.ones(count)))
    y.backward(np.ones(count))
    gradients = y.grad_fn.remembered()["gradients"]
    assert [(k, set(g.tolist())) for (_, k), g in gradients.items()] == [(1, {3.0})] * told


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


def test_a_number_of_numpy_has_memory_that_its_views_share_on_the_way_in_and_out():
    class Doubled(Twice):
        @staticmethod
        def forward(ctx, x):
            return np.float64(x.item())

        @staticmethod
        def backward(ctx, g):
            g.detach().mul_(2.0)
            return g

    x = leaf(3.0)
    y = Doubled.apply(x)
    y.detach().add_(1.0)
    assert y.item() == 4.0
    y.backward()
    assert x.grad.item() == 2.0


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


def test_a_checkpoint_that_runs_again_leaves_its_arguments_alone():
    seen = []

    def hooked(x):
        x.register_hook(lambda g: seen.append(g.item()))
        return x * x

    x = leaf(3.0)
    mg.checkpoint(hooked, x).backward()
    (x * 2.0).backward()
    assert seen == [6.0, 2.0]


def test_checkpoint_hands_on_what_is_no_tensor():
    x = leaf([1.0, 2.0])
    mg.checkpoint(
        lambda a, k, name: (a * a * k).sum() if name == "twice" else a, x, 2, "twice"
    ).backward()
    assert x.grad.tolist() == [4.0, 8.0]


# -- the functions that are written for primitives -------------------------------------------


def test_the_text_of_a_primitives_functions_can_be_read():
    text = source(REGISTRY["mul"])
    for name in ("def apply(x0=", "def push(n):", "def free("):
        assert name in text
    assert "x0, *x1, = args" in source(REGISTRY["gather"])
    assert "g = n.complete(g)" in source(REGISTRY["split"])


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
            (lambda: scaled(x, b, 3.0, 4.0), "at most 3 values"),
            (lambda: scaled(x, b, 3.0, by=4.0), "got 'by' twice"),
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
