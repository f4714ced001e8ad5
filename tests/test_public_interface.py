"""Every public name of the package: it is there, takes these parameters, and does what it says."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.static import net

words = str.split

NAMES = words("""
    tensor Tensor backward grad no_grad enable_grad set_grad_enabled is_grad_enabled detect_anomaly
    saved_tensors_hooks Function once_differentiable checkpoint gradcheck gradgradcheck vjp jvp
    jacobian hessian hvp trace why draw play watch primitive elementwise MinigradError static nn
    optim data
""")
FUNCTIONS = words("""
    add sub mul div neg pow abs sign sqrt square reciprocal exp expm1 log log1p log2 sin cos tan asin
    acos atan atan2 sinh cosh tanh sigmoid relu leaky_relu elu softplus gelu silu erf clip maximum
    minimum where floor round equal not_equal less less_equal greater greater_equal sum mean prod max
    min var std norm logsumexp cumsum cumprod reshape transpose permute_dims swapaxes expand_dims
    squeeze broadcast_to flatten concat stack split unbind pad tile flip roll tril triu diagonal clone
    matmul dot outer einsum trace inv solve det cholesky take take_along_axis index_add scatter_add
    setitem softmax log_softmax cross_entropy nll binary_cross_entropy binary_cross_entropy_with_logits
    mse huber linear conv1d conv2d conv_transpose2d max_pool2d avg_pool2d batch_norm layer_norm
    asinh acosh atanh log10 logaddexp isnan isinf isfinite nan_to_num repeat moveaxis tensordot cross kron
    embedding dropout zeros ones full arange eye linspace uniform normal sort topk argmax add_n
""")
TENSOR = words("""
    data grad grad_fn is_leaf requires_grad shape dtype ndim size name item numpy tolist detach
    retain_grad register_hook zero_grad backward requires_grad_ output_nr add_ sub_ mul_ T mT
    register_post_accumulate_grad_hook retains_grad sum mean relu exp reshape matmul
""")
STATIC = words("""
    Program Block Operator Variable program_guard data parameter append_backward gradients Executor
    Scope cond while_loop switch static_rnn verify compile parse net
""")
SIGNATURES = {
    mg.tensor: ["data", "requires_grad", "dtype", "name"],
    mg.Tensor.backward: ["self", "gradient", "retain_graph", "create_graph", "inputs"],
    mg.grad: ["outputs", "inputs", "grad_outputs", "retain_graph", "create_graph",
              "allow_unused", "materialize_grads"],
    mg.draw: ["x", "detail", "values", "direction", "legend", "names"],
    mg.sum: ["x", "axis", "keepdims"],
    static.data: ["name", "shape", "dtype"],
    static.Executor.run: ["self", "program", "feed", "fetch_list"],
    static.append_backward: ["loss", "parameter_list", "no_grad_set"],
    static.gradients: ["targets", "inputs", "target_gradients", "no_grad_set"],
    static.Block.append_op: ["self", "type", "inputs", "outputs", "attrs"],
    static.Program.clone: ["self", "for_test"],
    static.Program.prune: ["self", "targets"],
    static.compile: ["program", "feed", "fetch"],
    static.cond: ["pred", "true_fn", "false_fn"],
    static.while_loop: ["cond", "body", "loop_vars"],
    net.Backward: ["op", "no_grad"],
}  # fmt: skip


@pytest.mark.parametrize(("owner", "names"), [
    (mg, NAMES), (mg, FUNCTIONS), (mg.Tensor, TENSOR), (static, STATIC),
    (net, ["Operator", "NetOp", "RnnOp", "Backward", "build_grad_op"]),
])  # fmt: skip
def test_every_public_name_exists(owner, names):
    assert [n for n in names if not hasattr(owner, n)] == []


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__qualname__)
def test_parameters_have_the_names_and_the_order_of_the_documentation(function):
    wanted = SIGNATURES[function]
    assert list(inspect.signature(function).parameters)[: len(wanted)] == wanted


@pytest.mark.parametrize("name", [*NAMES, *FUNCTIONS])
def test_every_public_name_has_a_docstring(name):
    assert (getattr(mg, name).__doc__ or "").strip()


# -- eager ---------------------------------------------------------------------------------


def test_a_tensor_tells_what_it_is():
    x = mg.tensor([[1.0, 2.0]], requires_grad=True, name="x")
    assert (x.shape, x.dtype, x.ndim, x.size, x.name) == ((1, 2), np.float64, 2, 2, "x")
    assert x.is_leaf
    assert x.requires_grad
    assert x.grad is None
    assert x.grad_fn is None
    assert isinstance(x.data, np.ndarray)
    assert mg.tensor([1, 2], dtype=np.float32).dtype == np.float32
    assert mg.tensor([[7.5]]).item() == 7.5
    assert x.detach().numpy().tolist() == [[1.0, 2.0]]


def test_the_first_line_of_the_interface_runs_as_written():
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    w = mg.tensor([[1.0], [-1.0]], requires_grad=True)
    y = mg.matmul(x, w).relu().sum()
    y.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
    assert y.item() == 0.0
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert w.grad.shape == (2, 1)
    assert y.grad_fn.name() == "SumBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "ReluBackward0"


def test_nodes_show_their_saved_values_and_accumulators_their_variable():
    x = mg.tensor(3.0, requires_grad=True)
    y = x * x
    assert {n: float(v) for n, v in y.grad_fn.saved.items()} == {"x": 3.0, "y": 3.0}
    (a, i), (b, j) = y.grad_fn.next_functions
    assert a is b
    assert (i, j) == (0, 0)
    assert a.variable is x


def test_backward_takes_a_seed_inputs_and_keeps_or_frees_the_graph():
    x, w = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor(3.0, requires_grad=True)
    y = x * w
    y.backward(mg.tensor([1.0, 10.0]), retain_graph=True, inputs=[w])
    assert (x.grad, w.grad.item()) == (None, 21.0)
    y.backward(np.ones(2), create_graph=True)
    assert x.grad.requires_grad
    y.backward(gradient=np.ones(2))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(np.ones(2))


def test_grad_has_every_option():
    x, unused = mg.tensor(2.0, requires_grad=True), mg.tensor([1.0], requires_grad=True)
    y = x**3
    (first,) = mg.grad(y, x, create_graph=True)
    (second,) = mg.grad([first], [x], grad_outputs=[mg.tensor(2.0)], retain_graph=True)
    assert (first.item(), second.item()) == (12.0, 24.0)
    assert mg.grad(y, [x, unused], retain_graph=True, allow_unused=True)[1] is None
    assert mg.grad(y, [x, unused], materialize_grads=True)[1].tolist() == [0.0]
    assert x.grad is None


def test_hooks_of_tensors_and_nodes():
    x = mg.tensor(2.0, requires_grad=True)
    y = x * 3
    z = y * y
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(("tensor", g.item())))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs[0].item())))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi[0].item())))
    handle = x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(("leaf", leaf.grad.item())))
    z.backward(retain_graph=True)
    assert seen == [("tensor", 12.0), ("pre", 12.0), ("post", 36.0), ("leaf", 360.0)]
    assert y.grad.item() == 12.0
    handle.remove()
    x.zero_grad()
    z.backward()
    assert x.grad.item() == 36.0


def test_modes_are_context_managers_and_decorators():
    x = mg.tensor(2.0, requires_grad=True)

    @mg.no_grad()
    def with_parentheses():
        return (x * x).requires_grad, mg.is_grad_enabled()

    @mg.no_grad
    def without_parentheses():
        return (x * x).requires_grad, mg.is_grad_enabled()

    assert with_parentheses() == without_parentheses() == (False, False)
    with mg.no_grad():
        with mg.enable_grad():
            assert (x * x).requires_grad
        with mg.set_grad_enabled(True):
            assert mg.is_grad_enabled()
    with mg.detect_anomaly(), np.errstate(all="ignore"), pytest.raises(RuntimeError, match="nan"):
        mg.log(-x)
    mg.set_grad_enabled(False)
    try:
        assert not mg.is_grad_enabled()
    finally:
        mg.set_grad_enabled(True)


def test_a_function_of_your_own():
    class Scale(mg.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = mg.tensor(2.0, requires_grad=True)
    Scale.apply(x, 5).backward()
    assert x.grad.item() == 5.0
    assert mg.gradcheck(lambda x: Scale.apply(x, 5), (x,))


def test_functional_derivatives_and_checks():
    def f(x):
        return (x**3).sum()

    x, v = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([1.0, -1.0])
    assert mg.vjp(f, x)[1].tolist() == [3.0, 12.0]
    assert mg.jvp(f, x, v)[1].item() == -9.0
    assert mg.jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert mg.hessian(f, x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert mg.hvp(f, x, v)[1].tolist() == [6.0, -12.0]
    assert mg.gradcheck(f, (x,))
    assert mg.gradgradcheck(f, (x,))
    mg.checkpoint(lambda x: mg.exp(x).sum(), x).backward()
    np.testing.assert_allclose(x.grad.data, np.exp([1.0, 2.0]))
    assert "from 2 paths" in str(mg.why(x, x * x)) or "path" in str(mg.why(x))


# -- static --------------------------------------------------------------------------------

FEED = {"x": np.arange(6.0).reshape(2, 3), "y": np.ones((2, 1))}


@pytest.fixture
def regression():
    prog = static.Program()
    with static.program_guard(prog):
        x, y = static.data("x", [-1, 3]), static.data("y", [-1, 1])
        w = static.parameter("w", np.ones((3, 1)))
        loss = ((mg.matmul(x, w) - y) ** 2).mean()
        pairs = static.append_backward(loss)
    return prog, w, loss, pairs


def test_append_backward_returns_pairs_and_the_program_shows_all_its_parts(regression):
    prog, w, _, pairs = regression
    block = prog.global_block()
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD")]
    assert pairs[0][0] is w
    assert pairs[0][1] is block.var("w@GRAD")
    assert [op.type for op in block.ops] == [
        "matmul", "sub", "pow", "mean", "fill_constant", "mean_grad", "pow_grad", "sub_grad",
        "matmul_grad",
    ]  # fmt: skip
    op = block.ops[0]
    assert (op.type, op.inputs, op.outputs) == (
        "matmul", {"x": ["x"], "y": ["w"]}, {"out": ["matmul_0"]},
    )  # fmt: skip
    assert block.ops[2].attrs["y"] == 2
    assert [o.role for o in block.ops] == ["forward"] * 4 + ["loss"] + ["backward"] * 4
    assert op.source_line.startswith("test_public_interface.py:")
    assert "mg.matmul(x, w)" in op.source_line
    assert set(block.vars) >= {"x", "y", "w", "w@GRAD"}
    assert (block.parent, prog.blocks, prog.block(0)) == (-1, [block], block)
    assert "w@GRAD = matmul_grad(x, w, out_grad=matmul_0@GRAD)" in str(prog)


def test_a_program_runs_compiles_and_survives_being_stored(regression):
    prog, w, loss, _ = regression
    value, gradient = static.Executor().run(prog, feed=FEED, fetch_list=[loss, "w@GRAD"])
    error = FEED["x"] @ np.ones((3, 1)) - 1
    np.testing.assert_allclose(value, (error**2).mean())
    np.testing.assert_allclose(gradient, FEED["x"].T @ error)
    stored = static.Program.from_json(prog.to_json())
    assert str(stored) == str(prog)
    assert stored.to_json() == prog.to_json()
    again = static.Executor().run(stored, feed=FEED, fetch_list=[loss.name, "w@GRAD"])
    assert all(map(np.array_equal, again, [value, gradient]))
    step = static.compile(prog, FEED, [loss, w.name + "@GRAD"])
    assert "matmul" in step.source
    for ours, theirs in zip(step(**FEED), [value, gradient], strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_clone_prune_and_verify(regression):
    prog, _, loss, _ = regression
    test = prog.clone(for_test=True)
    assert {op.role for op in test.global_block().ops} == {"forward"}
    assert len(prog.clone().global_block().ops) == 9
    pruned = prog.prune([loss])
    assert [op.type for op in pruned.global_block().ops] == ["matmul", "sub", "pow", "mean"]
    static.verify(prog)


def test_gradients_takes_targets_inputs_seeds_and_a_no_grad_set():
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [2])
        h = x * x
        seed = static.data("seed", [2])
        (g,) = static.gradients([h * 3.0], [x], target_gradients=[seed])
        (blocked,) = static.gradients(h.sum(), x, no_grad_set={h})
    feed = {"x": np.array([1.0, 2.0]), "seed": np.array([1.0, 10.0])}
    assert blocked is None
    assert static.Executor().run(prog, feed, [g])[0].tolist() == [6.0, 120.0]


def test_low_level_append_op_names_slots_after_parameters():
    prog = static.Program()
    block = prog.global_block()
    with static.program_guard(prog):
        static.data("a", [2])
        static.data("b", [2])
    op = block.append_op("mul", inputs={"x": ["a"], "y": ["b"]}, outputs={"out": ["c"]}, attrs={})
    assert (op.type, op.outputs, block.var("c").shape) == ("mul", {"out": ["c"]}, (2,))
    feed = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    assert static.Executor().run(prog, feed, ["c"])[0].tolist() == [3.0, 8.0]


@pytest.mark.parametrize(("a", "expected"), [(2.0, [4.0, 16.0, 34.0]), (-1.0, [-3.0, 1.0, -1.0])])
def test_control_flow_has_gradients(a, expected):
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("x", [])
        branch = static.cond(x > 0, lambda: x * 2, lambda: x * 3)
        start = mg.fill_constant(shape=(), value=0.0)
        _, power = static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [start, x])
        (g,) = static.gradients([branch, power], [x])
    assert len(prog.blocks) > 1
    assert prog.block(1).parent == 0
    found = static.Executor().run(prog, {"x": np.array(a)}, [branch, power, g])
    assert [float(v) for v in found] == expected  # g: 2 + 4x³ and 3 + 4x³


def test_trace_optim_and_minimize():
    prog = mg.trace(lambda x: (x * x).sum(), np.ones(3))
    assert [op.type for op in prog.global_block().ops] == ["mul", "reduce_sum"]
    w = mg.tensor([1.0], requires_grad=True)
    (w * 3.0).sum().backward()
    mg.optim.SGD([w], lr=0.5).step()
    assert w.tolist() == [-0.5]
    prog = static.Program()
    with static.program_guard(prog):
        loss = (static.parameter("w", [1.0]) * 3.0).sum()
        mg.optim.SGD(lr=0.5).minimize(loss)
    exe = static.Executor()
    assert [float(exe.run(prog, fetch_list=[loss])[0]) for _ in range(2)] == [3.0, -1.5]


def test_nets_have_backward_nets():
    mul = net.Operator("mul", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
    assert net.build_grad_op(mul).type == "mul_grad"
    backward = net.Backward(net.NetOp([mul]), {"b"})
    assert "mul_grad" in str(backward)
    assert "b@GRAD" not in str(backward)


# -- draw, play, why -----------------------------------------------------------------------


def of_a_tensor():
    x = mg.tensor(3.0, requires_grad=True, name="x")
    y = x * x
    y.backward()
    return y, x


def of_a_program():
    prog = static.Program()
    with static.program_guard(prog):
        w = static.parameter("w", [2.0])
        static.append_backward((w * w).sum())
    return prog, w


def of_a_net():
    mul = net.Operator("mul", {"x": ["a"], "y": ["b"]}, {"out": ["c"]})
    return net.Backward(net.NetOp([mul]), set()), None


@pytest.mark.parametrize("make", [of_a_tensor, of_a_program, of_a_net])
def test_draw_and_play_take_tensors_programs_and_nets(make):
    picture = mg.draw(make()[0])
    assert "mul" in picture.text
    assert picture.describe()
    assert len(picture.graph.nodes) > 1
    assert mg.play(make()[0]) is not None


@pytest.mark.parametrize("make", [of_a_tensor, of_a_program])
def test_why_lists_the_paths_of_a_gradient(make):
    kept = make()
    assert "path" in str(mg.why(kept[1]))


def test_why_of_what_has_no_gradient_is_a_reason():
    assert "no_grad" in str(mg.why(_without_grad()))
    assert "detach" in str(mg.why(mg.tensor(1.0, requires_grad=True).detach()))
    assert "int64" in str(mg.why(mg.tensor(1)))


@mg.no_grad()
def _without_grad():
    return mg.tensor(1.0, requires_grad=True) * 2


def functions(owner):
    """The functions of the package that are public in a module or class, and those of its classes."""
    for name, value in inspect.getmembers(owner):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        value = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        if str(getattr(value, "__module__", "")).startswith("minigrad"):
            if inspect.isclass(value):
                yield from functions(value)
            elif inspect.isfunction(value):
                yield value


@pytest.mark.parametrize("room", [mg, mg.nn, mg.optim, mg.viz, static, mg.nets, mg.course])
def test_what_users_call_says_what_it_takes(room):
    """Parameters of other functions may go without a type: they take anything then."""
    untyped = [
        f"{function.__module__}.{function.__qualname__}({name})"
        for function in functions(room)
        if not function.__module__.startswith("minigrad.ops")  # read as NumPy's: the names say it
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    assert untyped == []
