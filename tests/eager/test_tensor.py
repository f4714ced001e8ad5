"""Tensors: what they are made of, how they print, what they hand to NumPy and to Python."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradError
from minigrad.errors.other_libraries import TABLES
from minigrad.primitives.registry import REGISTRY
from tests.pieces import leaf

# -- what a Tensor is made of --------------------------------------------------------------


def test_the_array_of_a_tensor_is_one_and_the_same_until_it_is_replaced():
    x = leaf([1.0, 2.0])
    held = x.data
    assert x.data is held
    held[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    x.data = [7.0, 8.0]
    assert held.tolist() == [5.0, 2.0]


@pytest.mark.parametrize("parts", [lambda y: [y, 4.0], lambda y: [[y, 1.0], (2.0, y)]])
def test_a_list_with_tensors_becomes_a_tensor_unless_that_would_cut_a_graph(parts):
    y = leaf(3.0)
    with pytest.raises(RuntimeError, match=r"cut their graph(.|\n)*repair: mg.stack"):
        mg.tensor(parts(y))
    with mg.no_grad():
        made = mg.tensor(parts(y))
    assert made.is_leaf and made.tolist() == mg.tensor(parts(y.detach())).tolist()


def test_a_tensor_is_made_of_a_tensor_whether_it_requires_grad_or_not():
    x = leaf([1.0, 2.0])
    assert mg.tensor(x).tolist() == [1.0, 2.0]
    made = mg.tensor(x, requires_grad=True)
    assert made.is_leaf and made is not x
    made.data[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


def test_a_deep_copy_of_a_leaf_without_a_gradient_has_none():
    x = copy.deepcopy(leaf([1.0, 2.0]))
    assert x.grad is None and x.requires_grad and x.tolist() == [1.0, 2.0]


def test_numbers_of_python_that_a_kernel_returns_become_tensors():
    made = mg.primitive(
        lambda x: (x * 2.0, int(np.size(x))),
        type="and_size",
        outputs=("out", "size"),
        nondiff=("size",),
    )
    made.grad(x=lambda out_grad: out_grad * 2.0)
    try:
        x = leaf([1.0, 2.0, 3.0])
        doubled, size = made(x)
        assert (size.shape, size.dtype.kind, size.item()) == ((), "i", 3)
        doubled.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0, 2.0]
    finally:
        REGISTRY.pop(made.primitive.type)


def test_backward_of_a_value_without_graph_says_why_there_is_none():
    with mg.no_grad():
        y = leaf(1.0) * 2.0
    with pytest.raises(GradError, match=r"why: it was computed under no_grad\(\)"):
        y.backward()
    with pytest.raises(GradError, match=r"why: .*it was made by detach\(\)"):
        mg.grad(leaf(1.0).detach(), leaf(1.0))


# -- as numbers and text -------------------------------------------------------------------


def test_completion_offers_methods_and_no_names_of_other_libraries():
    names = dir(leaf(1.0))
    assert {"sum", "backward", "shape"} <= set(names)
    assert not set(TABLES["Tensor"]) & set(names)


def test_single_numbers_are_numbers_of_python():
    assert int(mg.tensor(3.7)) == 3
    assert ["a", "b", "c"][mg.tensor(2)] == "c"
    assert range(5)[mg.tensor([[1]])] == 1
    assert (float(mg.tensor([2.5])), bool(mg.tensor(0.0)), bool(mg.tensor(2))) == (2.5, False, True)


def test_a_value_is_looked_for_among_the_elements():
    x = leaf([1.0, 2.0])
    assert 2.0 in x and 3.0 not in x
    assert mg.tensor(2.0) in x and leaf(3.0) not in x
    assert leaf(2.0) in x[1] and 3.0 not in mg.sum(mg.tensor(2.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([0.123456], "tensor([0.1235])"),
        (1 / 3, "tensor(0.3333)"),
        ([True, False], "tensor([ True, False])"),
        (np.ones(2, np.float32), "tensor([1., 1.], dtype=float32)"),
        (np.zeros((0, 3)), "tensor([], dtype=float64)"),
        (np.zeros(0, np.int64), "tensor([], dtype=int64)"),
        ([[1.0, 2.0], [3.0, 4.0]], "tensor([[1., 2.],\n        [3., 4.]])"),
    ],
)
def test_a_tensor_prints_four_digits_and_the_dtype_where_it_is_not_the_usual_one(value, text):
    found = repr(mg.tensor(value))
    assert found.replace("shape=(0, 3), ", "") == text


def test_a_tensor_prints_the_node_that_made_it():
    x = leaf(2.0)
    assert repr(x) == "tensor(2., requires_grad=True)"
    assert repr(x * x) == "tensor(4., grad_fn=<MulBackward0>)"


def test_more_than_a_thousand_elements_are_cut_short():
    assert "..." not in repr(mg.tensor(np.zeros(1000)))
    assert "..." in repr(mg.tensor(np.zeros(1001)))


def test_a_format_is_that_of_the_one_number():
    x = leaf([2.0])
    assert f"{x}" == str(x) == "tensor([2.], requires_grad=True)"
    assert f"{x:.3f}" == "2.000"
    assert f"{mg.tensor(3):>4}" == "   3"


def test_numpy_functions_take_tensors_in_lists_and_as_keywords():
    plain = mg.tensor([1.0, 2.0])
    assert np.sum(a=plain) == 3.0
    assert np.concatenate([plain, (0.0,)]).tolist() == [1.0, 2.0, 0.0]
    assert np.clip(plain, a_min=mg.tensor(1.5), a_max=None).tolist() == [1.5, 2.0]
    with pytest.raises(GradError, match="np.sum"):
        np.sum(a=leaf([1.0, 2.0]))


# -- the graph of (a + b) * d, as in the documents ---------------------------------------


@pytest.fixture
def abd():
    a, b, d = (mg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    return a, b, d, (a + b) * d


def test_the_output_prints_its_value_and_its_grad_fn(abd):
    assert repr(abd[3]) == "tensor(20., grad_fn=<MulBackward0>)"


def test_next_functions_of_the_product_are_the_sum_and_the_accumulator(abd):
    (add, i), (acc, j) = abd[3].grad_fn.next_functions
    assert (add.name(), i, acc.name(), j) == ("AddBackward0", 0, "AccumulateGrad", 0)
    assert repr(add).startswith("<AddBackward0 at 0x")


def test_only_an_accumulator_has_a_variable(abd):
    (add, _), (acc, _) = abd[3].grad_fn.next_functions
    with pytest.raises(AttributeError, match="'AddBackward0' object has no attribute 'variable'"):
        add.variable
    assert acc.variable is abd[2]
    assert repr(acc.variable) == "tensor(4., requires_grad=True)"


def test_backward_fills_4_4_5(abd):
    a, b, d, e = abd
    e.backward()
    assert (float(a.grad), float(b.grad), float(d.grad)) == (4, 4, 5)


def test_a_leaf_has_one_accumulator_and_a_square_two_edges_to_it():
    a = mg.tensor(3.0, requires_grad=True)
    (x, _), (y, _) = (a * a).grad_fn.next_functions
    assert x is y and x.variable is a
    z = a + 1.0
    w = a * 2.0
    assert z.grad_fn.next_functions[0][0] is w.grad_fn.next_functions[0][0]


def test_a_constant_gives_none():
    a = mg.tensor(3.0, requires_grad=True)
    assert (a * mg.tensor(2.0)).grad_fn.next_functions[1] == (None, 0)


def test_the_second_output_of_an_op_has_index_1():
    x = mg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    a, b = mg.split(x, 2)
    (node, index) = (b * 2.0).grad_fn.next_functions[0]
    assert (node.name(), index) == ("SplitBackward0", 1)
    (b * 2.0).sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2]
