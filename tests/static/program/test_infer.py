"""Inferred shapes and dtypes: against the kernel, and with sizes that are known only when the program runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError, ProgramError
from minigrad.grad_names import EMPTY
from minigrad.ops.index import spread_rows
from minigrad.ops.shape import broadcasted, like_x, reshaped, shape_attr, solved
from minigrad.primitives.registry import REGISTRY
from minigrad.static.program.infer import matched
from minigrad.static.run import limits

F4, F8, I8 = np.dtype("float32"), np.dtype("float64"), np.dtype("int64")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"x": [((2,), F4)]}, ((7,), F4)),
        ({"x": [((2,), F4)], "y": [((2,), F8)]}, ((7,), F8)),
        ({"x": [((2,), F4)], "w": [((2,), F8)]}, ((7,), F8)),
        ({"x": [((2,), I8)], "y": [((2,), F4)]}, ((7,), F4)),
        ({"x": [((2,), I8)]}, ((7,), I8)),
        ({"x": [((2,), I8), ((9,), F4)]}, ((7,), F4)),
        ({"x": [((2,), F4)], "indices": [((2,), F8)]}, ((7,), F4)),
        ({"x": [((2,), F4)], "shape_like": [((5, -1), F8)]}, ((5, -1), F4)),
    ],
)
def test_the_shape_of_an_attr_has_the_dtype_of_the_real_numbers(given, wanted):
    assert shape_attr(given, {"shape": [7]}) == [wanted]


@pytest.mark.parametrize(
    ("shape", "to", "wanted"),
    [
        ((2, 3), (3, 2), (3, 2)),
        ((2, 3), (-1,), (6,)),
        ((2, 3), 6, (6,)),
        ((2, 3), -1, (6,)),
        ((-1, 3), (-1,), (-1,)),
        ((-1, 3), (3, -1), (3, -1)),
        ((-1, 3), 6, (6,)),
        ((0, 3), (3, 0), (3, 0)),
    ],
)
def test_a_reshaped_value_has_known_sizes_where_all_are_known(shape, to, wanted):
    assert reshaped({"x": [(shape, F4)]}, {"shape": to}) == [(wanted, F4)]
    like = {"x": [(shape, F4)], "shape_like": [((4, -1), F8)]}
    assert reshaped(like, {"shape": to}) == [((4, -1), F4)]


def test_sizes_that_do_not_fit_are_found_where_all_are_known():
    x = {"x": [((2, 3), F4)]}
    with pytest.raises(ValueError, match="cannot reshape"):
        reshaped(x, {"shape": (4,)})
    with pytest.raises(ValueError, match="could not be broadcast"):
        broadcasted(x, {"shape": (4, 5)})
    assert broadcasted(x, {"shape": (5, 2, 3)}) == [((5, 2, 3), F4)]
    assert broadcasted({"x": [((-1, 3), F4)]}, {"shape": (2, 3)}) == [((2, 3), F4)]
    assert broadcasted(x, {"shape": (-1, 3)}) == [((-1, 3), F4)]


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((5, 3, 3), (3,)), ((5, 3, 3), (3, 2)), ((5, 1, 3, 3), (4, 3, 2)), ((3, 3), (4, 3, 2))],
)  # fmt: skip
def test_solutions_have_the_shape_that_comes_out(a, b):
    matrices = np.zeros(a, F4) + np.eye(3, dtype=F4)
    out = mg.solve(matrices, np.ones(b, F4))
    assert solved({"a": [(a, F4)], "b": [(b, F4)]}, {}) == [(out.shape, F4)]
    assert solved({"a": [(a, F4)], "b": [(b, F8)]}, {})[0][1] == F8
    assert solved({"a": [(a, I8)], "b": [(b, I8)]}, {})[0][1] == F8


def test_an_inverse_has_the_shape_of_its_matrix():
    assert like_x({"x": [((-1, 3, 3), F4)]}, {}) == [((-1, 3, 3), F4)]
    assert like_x({"x": [((3, 3), I8)]}, {}) == [((3, 3), F8)]


def test_programs_ask_these_functions():
    with static.program_guard(static.Program()):
        x = static.data("x", [2, 3])
        assert mg.reshape(x, shape=(-1,)).shape == (6,)
        with pytest.raises(ProgramError, match="reshape"):
            mg.reshape(x, shape=(4,))
        with pytest.raises(ProgramError, match="broadcast_to"):
            mg.broadcast_to(x, (4, 5))


def test_rows_that_a_mask_chooses_are_open_in_number_and_keep_their_shape():
    prog = static.Program()
    with static.program_guard(prog):
        x, mask = static.data("x", [4, 2, 3]), static.data("mask", [4], "bool")
        x.stop_gradient = False
        yes, no = mg.select_rows(x, mask), mg.select_rows(mg.astype(x, "float32"), ~mask)
        both = mg.merge_rows(mask, yes, no)
        apart = spread_rows(no, ~mask)
        (by_x,) = static.gradients(both, [x])
        (again,) = static.gradients(mg.sum(by_x * by_x), [x])
    shown = {v.name: (v.shape, v.dtype.name) for v in (yes, no, both, by_x, apart)}
    assert list(shown.values()) == [
        ((-1, 2, 3), "float64"), ((-1, 2, 3), "float32"), ((4, 2, 3), "float64"), ((4, 2, 3), "float64"),
        ((4, 2, 3), "float32"),
    ]  # fmt: skip
    assert again is None
    spread = static.decompose(prog)
    kinds = [op.type for op in spread.global_block().ops]
    assert kinds.count("spread_rows") == 3
    for read in (prog, spread):
        feed = {"x": np.ones((4, 2, 3)), "mask": [True, False, True, True]}
        assert (
            static.Executor().run(read, feed, by_x.name)[0].tolist() == np.ones((4, 2, 3)).tolist()
        )


def test_a_size_that_one_operand_knows_closes_the_open_ones_of_the_others():
    assert matched([]) == []
    assert matched([(-1, 2), (4, 2), (-1,)]) == [(4, 2), (4, 2), (2,)]
    assert matched([(4,), (1,), (-1,)]) == [(4,), (1,), (4,)]
    assert matched([(1,), (-1,)]) == [(1,), (-1,)]
    assert matched([(0,), (4,)]) == [(0,), (4,)]
    assert matched([(3, -1), (3, 5)]) == [(3, 5), (3, 5)]
    assert matched([(-1, 3, 2), (5, 1, 1)]) == [(5, 3, 2), (5, 1, 1)]
    with static.program_guard(static.Program()):
        with pytest.raises(
            ProgramError, match=r"mul\(x: float64\[0\], y: float64\[4\]\) is not possible"
        ):
            static.data("none", [0]) * static.data("four", [4])
        assert (static.data("x", [-1, 3]) * static.data("y", [4, 1])).shape == (4, 3)


def test_a_constant_mask_says_how_much_it_chooses_and_one_that_is_fed_does_not():
    mask = np.array([True, False, True, False, True])
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [5, 2])
        chosen, open_ = mg.exp(x[mask]), mg.exp(x[static.data("mask", [5], bool)])
        again = x[~mask]
        assert (chosen.shape, again.shape, open_.shape) == ((3, 2), (2, 2), (-1, 2))
        with pytest.raises(ProgramError, match="one truth value for each element"):
            x[mask[:4]]
    x = np.arange(10.0).reshape(5, 2)
    found = static.Executor().run(program, {"x": x, "mask": mask}, [chosen, again, open_])
    assert [f.tolist() for f in found] == [
        np.exp(x[mask]).tolist(),
        x[~mask].tolist(),
        np.exp(x[mask]).tolist(),
    ]


def test_masks_of_one_length_that_choose_differently_are_told_apart():
    def chosen(x, mask):
        return x[mask]

    made = mg.primitive(chosen)
    try:
        with static.program_guard(static.Program()):
            x, mask = static.data("x", [5, 2]), np.array([True, False, True, False, True])
            shapes = [made(x, m).shape for m in (mask, ~mask, static.data("m", [5], bool), mask)]
        assert shapes == [(3, 2), (2, 2), (-1, 2), (3, 2)]
    finally:
        REGISTRY.pop("chosen")


def test_a_mask_that_is_fed_chooses_any_number_of_truth_values():
    with static.program_guard(static.Program()):
        flags = static.data("flags", [5], bool)
        assert (flags[flags].shape, flags[np.array([True, False, True, False, True])].shape) == (
            (-1,),
            (3,),
        )


def test_a_result_may_be_as_large_as_the_limit_and_not_larger(monkeypatch):
    monkeypatch.setattr(limits, "MEMORY", 77 * 8)
    with static.program_guard(static.Program()):
        assert (static.data("x", [7]) * static.data("y", [11, 1])).shape == (11, 7)
        with pytest.raises(ProgramError, match="78"):
            static.data("a", [6]) * static.data("b", [13, 1])


def test_places_are_not_looked_at_before_the_program_runs():
    program = static.Program()
    with static.program_guard(program):
        chosen = mg.take(static.data("x", [-1, 2]), np.array([0, 7]), axis=0)
    assert chosen.shape == (2, 2)
    (found,) = static.Executor().run(program, {"x": np.arange(20.0).reshape(10, 2)}, chosen)
    assert found.tolist() == [[0, 1], [14, 15]]


def test_what_has_no_elements_and_what_has_one_is_inferred_as_it_is():
    with static.program_guard(static.Program()):
        assert mg.exp(static.data("none", [0, 2])).shape == (0, 2)
        one, place = static.data("one", [1, 3]), static.data("place", [2], int)
        assert mg.take(one, place, axis=0).shape == (2, 3)


def test_numbers_that_are_no_floats_have_no_gradient():
    with static.program_guard(static.Program()) as program:
        w = static.parameter("w", [1.0, 2.0])
        op = program.global_block().append_op(
            "cast", {"x": w}, {"out": "whole"}, {"dtype": "int64"}
        )
        assert (w.astype("float32").stop_gradient, w.astype("int64").stop_gradient) == (False, True)
        assert program.global_block().var(op.output_names[0]).stop_gradient


def test_gradients_that_are_declared_stay_as_they_are_and_others_are_inferred():
    with static.program_guard(static.Program()) as program:
        block = program.global_block()
        static.data("x", [2, 3]), static.data("g", [2, 3])
        inputs = {"x": "x", "y": "x", "out_grad": "g"}
        declared = block.create_var("a", [2, 3], "float32")
        block.append_op("mul_grad", inputs, {"x_grad": "a", "y_grad": EMPTY})
        assert (declared.shape, declared.dtype) == ((2, 3), np.float32)
        block.append_op("mul_grad", inputs, {"x_grad": EMPTY, "y_grad": "b"})
        assert repr(block.var("b")) == "Variable(b: float64[2, 3])"
        assert not block.var("b").stop_gradient
        assert EMPTY not in block.vars


def test_attrs_of_several_parts_are_told_apart():
    with static.program_guard(static.Program()):
        x = static.data("x", [2, 3])
        wide = [mg.pad(x, ((n, n), (0, 1))).shape for n in (1, 2, 1)]
        assert wide == [(4, 4), (6, 4), (4, 4)]
        assert [mg.full([2], n).dtype.name for n in (1, 1.0, True)] == ["int64", "float64", "bool"]


def test_what_is_written_again_keeps_what_is_known_of_it():
    with static.program_guard(static.Program()) as program:
        block, w = program.global_block(), static.parameter("w", [1.0, 2.0, 3.0])
        n, k = static.data("n", [-1]), static.data("k", [3])
        write = lambda x, out: block.append_op("assign", {"x": x}, {"out": out})
        write(w, n)
        assert (n.shape, n.stop_gradient) == ((-1,), False)
        write(n, w)
        assert w.shape == (3,)
        e = mg.exp(static.data("m", [-1]))
        assert (e.shape, e.stop_gradient) == ((-1,), True)
        write(k, e)
        assert (e.shape, e.stop_gradient) == ((3,), True)
        write(w, e)
        assert not e.stop_gradient
        late = block.create_var("late", [7], "float32")
        write(k, late)
        assert (late.shape, late.dtype.name, late.stop_gradient) == ((3,), "float64", False)


def test_a_type_that_is_no_name_of_a_variable_can_be_no_operator():
    def made(x):
        return np.abs(x)

    strange = mg.primitive(made, type="a b")
    try:
        with static.program_guard(static.Program()) as program:
            x = static.data("x", [2])
            for _ in range(2):
                with pytest.raises(
                    ProgramError, match=r"^'a b_\d+' cannot be the name of a variable"
                ):
                    strange(x)
        assert list(program.global_block().vars) == ["x"]
    finally:
        REGISTRY.pop("a b")


def test_only_where_a_size_is_open_it_is_said_that_it_may_be_the_reason():
    with static.program_guard(static.Program()):
        x, n = static.data("x", [3]), static.data("n", [-1])
        for value, reason in ((x, False), (n, True)):
            with pytest.raises(ProgramError) as caught:
                mg.split(value, 2)
            assert (
                "a size -1 can be any number, and 3 does not fit" in str(caught.value)
            ) is reason


def test_as_many_values_as_an_open_axis_is_long_are_refused():
    with static.program_guard(static.Program()) as program:
        x = static.data("x", [-1, 2])
        words = r"^unbind\(x: float64\[-1, 2\]\) is not possible: how many values it gives depends on a size -1"
        with pytest.raises(ProgramError, match=words):
            mg.unbind(x)
        assert [v.shape for v in mg.unbind(x, axis=1)] == [(-1,), (-1,)]
        assert [op.type for op in program.global_block().ops] == ["unbind"]


# -- open sizes --------------------------------------------------------------------------


def eager(function, *arrays):
    values = [mg.tensor(a, requires_grad=True) for a in arrays]
    out = function(*values)
    grads = mg.grad(out, values)
    return [v.detach().numpy() for v in (out, *grads)]


def programmed(function, shapes):
    program = static.Program()
    with static.program_guard(program):
        values = [static.data(f"v{k}", shape) for k, shape in enumerate(shapes)]
        for v in values:
            v.stop_gradient = False
        out = function(*values)
        return static.verify(program), [out, *static.gradients(out, values)]


def feeds(arrays):
    return {f"v{k}": a for k, a in enumerate(arrays)}


def mixed(x, y, z):
    both = x + y
    return (both * both * z).sum() + (x * z).sum()


@pytest.mark.parametrize("sizes", list(itertools.product((1, 2), (1, 2))))
def test_an_open_size_beside_a_known_one_may_be_that_or_one_when_the_program_runs(sizes):
    program, fetch = programmed(mixed, [[-1, 3], [2, 3], [-1, 3]])
    n, m = sizes
    rng = np.random.default_rng(n + 2 * m)
    arrays = [rng.random((n, 3)), rng.random((2, 3)), rng.random((m, 3))]
    expected = eager(mixed, *arrays)
    for found in (
        static.Executor().run(program, feeds(arrays), fetch),
        static.compile(program, fetch=fetch)(**feeds(arrays)),
    ):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_the_result_has_the_known_size_and_stays_open_where_nobody_knows_it():
    with static.program_guard(static.Program()):
        x, y, z = (static.data(n, s) for n, s in (("x", [-1, 2]), ("y", [4, 2]), ("z", [1, 2])))
        assert [(x + y).shape, (x * z).shape, (x * x).shape] == [(4, 2), (-1, 2), (-1, 2)]
        assert (x.sum(axis=0) + y).shape == (4, 2)


def test_another_size_is_found_when_the_program_runs():
    program, fetch = programmed(lambda x, y: (x + y).sum(), [[-1, 2], [4, 2]])
    with pytest.raises(MinigradError, match="could not be broadcast"):
        static.Executor().run(program, feeds([np.ones((3, 2)), np.ones((4, 2))]), fetch)


def test_values_of_open_length_are_joined_twice_differentiably():
    def joined(x, y):
        both = mg.concat([x, y, x])
        return (both * both * both).sum()

    program, (_, gx, _) = programmed(joined, [[-1, 2], [-1, 2]])
    with static.program_guard(program):
        (second,) = static.gradients((gx * gx).sum(), [program.global_block().var("v0")])
    x, y = np.random.default_rng(0).random((2, 2)), np.ones((3, 2))
    (found,) = static.Executor().run(program, {"v0": x, "v1": y}, [second])
    np.testing.assert_allclose(found, 2 * (6 * x**2) * 12 * x, rtol=1e-13)


def test_values_of_any_size_are_foretold_without_memory_for_them():
    import tracemalloc

    text = "block 0:\n  data x: float64[4000]\n  data y: float64[4000, 1]\n  z = mul(x, y)"
    tracemalloc.start()
    try:
        assert static.parse(text).global_block().var("z").shape == (4000, 4000)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (slice(None, None, 5), (-1, 4)),
        (slice(5, None), (-1, 4)),
        (slice(None, -7), (-1, 4)),
        (slice(None, 2), (2, 4)),
        ((4, slice(1, 3)), (2,)),
        ((Ellipsis, None, 0), (-1, 1)),
    ],
)
def test_a_part_of_an_open_axis_has_a_size_only_if_every_long_one_gives_it(index, shape):
    with static.program_guard(static.Program()):
        assert static.data("x", [-1, 4])[index].shape == shape


def test_functions_that_count_along_an_open_axis():
    x, shares = np.arange(6.0).reshape(2, 3), np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    functions = [
        lambda x, t: mg.cross_entropy(x, t, label_smoothing=0.3),
        lambda x, t: mg.cross_entropy(x, t, weight=[1.0, 2.0, 4.0]),
        lambda x, t: mg.cross_entropy(x, [0, 2], weight=[1.0, 2.0, 4.0]),
        lambda x, t: mg.kron(x[0], t[0]),
    ]
    for function in functions:
        prog = static.Program()
        with static.program_guard(prog):
            y = function(static.data("x", [2, -1]), static.data("t", [2, -1]))
        (value,) = static.Executor().run(prog, {"x": x, "t": shares}, [y])
        np.testing.assert_allclose(value, function(mg.tensor(x), mg.tensor(shares)).numpy())
    unknown = r"the length of Variable 'x' \[-1\] is not known"
    with static.program_guard(static.Program()), pytest.raises(ProgramError, match=unknown):
        mg.diag(static.data("x", [-1]))


@pytest.mark.parametrize(
    ("x", "y"), [([-1, 3, -1], [-1, 2]), ([-1], [-1, -1]), ([2, -1], []), ([], [-1])]
)
def test_a_kronecker_product_may_have_several_open_axes(x, y):
    a, b = (
        np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        for shape in ([abs(n) + (n < 0) for n in s] for s in (x, y))
    )
    prog = static.Program()
    with static.program_guard(prog):
        z = mg.kron(static.data("x", x), static.data("y", y))
    (value,) = static.Executor().run(prog, {"x": a, "y": b}, [z])
    np.testing.assert_array_equal(value, np.kron(a, b))
    assert np.array_equal(static.compile(prog, fetch=z)(x=a, y=b), value)


def test_a_shape_may_be_a_number():
    with static.program_guard(static.Program()):
        x = static.data("x", [1])
        assert [mg.broadcast_to(x, 4).shape, mg.reshape(x, 1).shape] == [(4,), (1,)]
