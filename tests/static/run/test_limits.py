"""What a run may ask for: results that are too large are refused before they are made."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.primitives.registry import REGISTRY
from minigrad.static.run.kernels import run_kernel
from minigrad.static.run.limits import result_size

#: type, arrays by slot, attrs: results are larger than what they are made of
CASES = [
    ("add", {"x": [(3, 1)], "y": [(4,)]}, {}),
    ("where", {"condition": [(2, 1, 1)], "x": [(3, 1)], "y": [(4,)]}, {}),
    ("matmul", {"x": [(3, 2)], "y": [(2, 5)]}, {}),
    ("matmul", {"x": [(7, 1, 3, 2)], "y": [(4, 2, 5)]}, {}),
    ("matmul", {"x": [(3, 2)], "y": [(2,)]}, {}),
    ("matmul", {"x": [(2,)], "y": [(6, 2, 5)]}, {}),
    ("linear", {"x": [(4, 3, 2)], "w": [(2, 5)]}, {}),
    ("einsum", {"x": [(3, 2), (2, 5)]}, {"subscripts": "ij,jk->ik"}),
    ("einsum", {"x": [(3,), (5,)]}, {"subscripts": "i,j->ij"}),
    ("fill_constant", {}, {"shape": (3, 4), "value": 1.0}),
    ("broadcast_to", {"x": [(1, 4)]}, {"shape": (3, 4)}),
    ("tile", {"x": [(2, 3)]}, {"repetitions": (4, 1)}),
    ("pad", {"x": [(2, 3)]}, {"pad_width": ((1, 2), (0, 3))}),
    ("pad", {"x": [(2, 3)]}, {"pad_width": 2}),
    ("take", {"x": [(4, 3)], "indices": [(5, 6)]}, {"axis": 0}),
    ("take", {"x": [(4, 3)], "indices": [(5, 6)]}, {"axis": None}),
    ("take", {"x": [(1, 3)], "indices": [(5,)]}, {"axis": 0}),
    ("add", {"x": [(1,)], "y": [()]}, {}),
    ("gather", {"x": [(4, 3)], "index": [(5, 1), (6,)]}, {"template": ("array", "array")}),
    ("gather", {"x": [(4, 3, 2)], "index": [(5,)]}, {"template": (slice(1), "array", None)}),
    ("gather", {"x": [(4, 3, 2)], "index": [(4, 3)]}, {"template": ("array",)}),
    ("gather", {"x": [(4, 3, 2)], "index": [(4, 3), (4, 3)]}, {"template": ("array", "array")}),
    ("matmul_nt", {"x": [(3, 2)], "y": [(5, 2)]}, {"shape": (3, 5)}),
    ("matmul_nt", {"x": [(4, 3, 2)], "y": [(4, 5, 2)]}, {"shape": (4, 3, 5)}),
    ("matmul_tn", {"x": [(2, 3)], "y": [(2, 5)]}, {"shape": (3, 5)}),
    ("matmul_tn", {"x": [(4, 2, 3)], "y": [(4, 2, 5)]}, {"shape": (4, 3, 5)}),
    ("einsum", {"x": [(3, 1)]}, {"subscripts": "i...->i..."}),
    ("einsum", {"x": [(1, 2, 30), (1, 4, 50)]}, {"subscripts": "...ij,...kl->...ik"}),
    ("einsum", {"x": [(2, 1, 30)]}, {"subscripts": "a...b->b...a"}),
    ("einsum", {"x": [(1, 1), (1, 1)]}, {"subscripts": "ij,jk->ik"}),
]


def size_of(op_type, p, shapes, attrs):
    """What is foretold for values of these shapes."""
    values = {s: [np.broadcast_to(0.0, n) for n in ns] for s, ns in shapes.items()}
    return result_size(op_type, p, values, attrs)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]} {list(c[1].values())}")
def test_the_size_that_is_foretold_is_the_size_that_comes_out(case):
    op_type, shapes, attrs = case
    p = REGISTRY[op_type]
    kinds = {"indices": np.int64, "index": np.int64, "condition": bool}
    values = {s: [np.zeros(n, kinds.get(s, float)) for n in ns] for s, ns in shapes.items()}
    assert size_of(op_type, p, shapes, attrs) == np.size(run_kernel(p, values, attrs))


@pytest.mark.parametrize("sizes", [((3, 2), (2, 5)), ((7, 1, 3, 2), (4, 2, 5))])
def test_the_gradients_of_a_product_are_as_large_as_foretold(sizes):
    x, y = sizes
    g = np.matmul(np.zeros(x), np.zeros(y)).shape
    slots = {"x": [x], "y": [y], "out_grad": [g]}
    size = size_of("matmul_grad", REGISTRY["matmul"], slots, {})
    leading = int(np.prod(np.broadcast_shapes(x[:-2], y[:-2])))
    assert size == leading * max(x[-2] * x[-1], y[-2] * y[-1])


@pytest.mark.parametrize("slot", ["x", "y"])
def test_one_gradient_of_a_product_is_as_large_as_what_it_is_the_gradient_of(slot):
    """The gradient of y is made of x, and the other way round; the other slot is left out."""
    x, y, g = (7, 3, 2), (2, 5), (7, 3, 5)
    made_of = {"x": {"y": [y]}, "y": {"x": [x]}}[slot]
    size = size_of("matmul_grad", REGISTRY["matmul"], {**made_of, "out_grad": [g]}, {})
    assert size == {"x": 7 * 3 * 2, "y": 7 * 2 * 5}[slot]  # of y before it is summed
    assert (
        size_of("matmul_grad", REGISTRY["matmul"], {"out_grad": [(1, 1)], "x": [(1, 1)]}, {}) == 1
    )


def test_the_gradient_of_what_grows_does_not_grow():
    shapes = {"x": [(1, 4)], "out_grad": [(3, 4)]}
    assert size_of("broadcast_to_grad", REGISTRY["broadcast_to"], shapes, {"shape": (3, 4)}) == 0


N = 2**22


TERABYTES = {
    "add": (lambda x, y: x + y.reshape([N, 1]), "add(x: [4194304], y: [4194304, 1]) would give"),
    "product": (lambda x, y: mg.matmul(x.reshape([N, 1]), y.reshape([1, N])), "matmul("),
    "constant": (lambda x, y: mg.broadcast_to(x.sum(), (N, N)), "broadcast_to("),
    "tile": (lambda x, y: mg.tile(x, (N,)), "tile("),
    "pad": (lambda x, y: mg.pad(x, ((0, N * N),)), "pad("),
}


@pytest.mark.parametrize("case", TERABYTES)
def test_terabytes_are_refused_while_the_program_is_built(case):
    build, message = TERABYTES[case]
    with static.program_guard(static.Program()):
        x, y = static.data("x", [N]), static.data("y", [N])
        with pytest.raises(ProgramError) as caught:
            build(x, y)
    assert message in str(caught.value)
    assert "would give 1759" in str(caught.value)  # N * N, and a little more for pad
    assert "at test_limits.py:" in str(caught.value)


def test_terabytes_are_refused_when_sizes_are_known_only_at_run_time():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 1])
        y = x + static.data("y", [1, -1])
    value = np.broadcast_to(0.0, (N, 1))
    with pytest.raises(ProgramError, match="would give 17592186044416 elements") as caught:
        static.Executor().run(program, {"x": value, "y": value.T}, y)
    assert "at test_limits.py:" in str(caught.value)


def test_the_limit_counts_all_values_of_a_run_and_can_be_raised():
    program = static.Program()
    with static.program_guard(program):
        _, y = static.while_loop(
            lambda i, h: i < 100, lambda i, h: (i + 1, mg.sin(h)), [0, static.data("x", [1000])]
        )
    feed = {"x": np.ones(1000)}
    with pytest.raises(ProgramError, match="more than 500000 bytes"):
        static.Executor().run(program, feed, y, memory_limit=500_000)
    static.Executor().run(program, feed, y, memory_limit=2_000_000)


def test_a_value_that_doubles_in_a_loop_is_stopped():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1])
        _, y = static.while_loop(
            lambda i, h: i < 60, lambda i, h: (i + 1, mg.concat([h, h])), [0, x]
        )
    with pytest.raises(ProgramError, match="memory_limit"):
        static.Executor().run(program, {"x": np.ones(8)}, y, memory_limit=2**20)


def test_a_compiled_step_refuses_terabytes_when_it_is_built():
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [-1, 1])
        y = mg.matmul(x, static.data("y", [1, -1]))
    value = np.broadcast_to(0.0, (N, 1))
    feed = {"x": value, "y": value.T}
    step = static.compile(program, fetch=y)
    for build in (lambda: static.compile(program, feed, y), lambda: step(feed)):
        with pytest.raises(ProgramError, match="would give 17592186044416 elements") as caught:
            build()
        assert str(caught.value).endswith("repair: smaller shapes")


def test_a_mask_over_several_axes_asks_for_no_more_than_it_has_places():
    values = {"x": [np.zeros((4, 3, 2))], "index": [np.ones((4, 3), bool)]}
    attrs = {"template": ("array",)}
    assert result_size("gather", REGISTRY["gather"], values, attrs) == 4 * 3 * 2
    prog = static.Program()
    with static.program_guard(prog):
        x, i = static.data("x", [300, 300]), static.data("i", [300, 300], "int64")
        y = x[i]
    feed = {"x": np.zeros((300, 300)), "i": np.zeros((300, 300), int)}
    with pytest.raises(ProgramError, match="would give 27000000 elements"):
        static.Executor().run(prog, feed, [y], memory_limit=10**7)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs"),
    [
        ("gather", {"x": "x", "index": ["i"]}, {"template": ("array", "array")}),
        ("gather", {"x": "x"}, {"template": ("array",)}),
        ("einsum", {"x": ["x"]}, {"subscripts": 3}),
    ],
)
def test_attrs_that_fit_no_value_are_refused_by_their_operator(op_type, inputs, attrs):
    program = static.Program()
    with static.program_guard(program):
        static.data("x", [4, 3]), static.data("i", [2], "int64")
        with pytest.raises(ProgramError, match=f"^{op_type}"):
            program.global_block().append_op(op_type, inputs, {"out": "y"}, attrs)
    assert "y" not in program.global_block().vars
