"""The example of the PyTorch document, literally."""

from __future__ import annotations

import pytest

import minigrad as mg


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
