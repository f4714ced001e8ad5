"""Step 11: saved values."""

import gc
import weakref

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

step = load("step11_saved_values")

UNARY = {"neg": (0.7,), "sin": (0.7,), "cos": (0.7,), "exp": (0.7,), "log": (0.7,), "tanh": (0.7,)}
BINARY = ("add", "sub", "mul", "div")


def leaf(value):
    return step.Tensor(value, requires_grad=True)


def kept(tensor):
    return sorted(tensor.grad_fn.saved)


def gradient(f, *numbers):
    """The gradients of one walk, with a seed that is not 1."""
    leaves = [leaf(n) for n in numbers]
    f(*leaves).backward(3.0)
    return [float(each.grad.data) for each in leaves]


def complex_step(f, *numbers):
    """Slopes without subtraction: an independent judge for these functions."""
    slopes = []
    for i in range(len(numbers)):
        z = [complex(n, 1e-30 if i == j else 0) for j, n in enumerate(numbers)]
        slopes.append(3 * f(*z).imag / 1e-30)
    return slopes


def test_every_row_of_the_table_against_the_complex_step():
    numpy = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "neg": np.negative,
        "sin": np.sin,
        "cos": np.cos,
        "exp": np.exp,
        "log": np.log,
        "tanh": np.tanh,
    }
    for name, f in numpy.items():
        numbers = (0.7, 1.3) if name in BINARY else (0.7,)
        assert step.TABLE.keys() >= {name}
        np.testing.assert_allclose(
            gradient(getattr(step, name), *numbers),
            complex_step(f, *numbers),
            rtol=1e-12,
            err_msg=name,
        )
    for n in (3, 2, 1, -1, 0.5):
        np.testing.assert_allclose(
            gradient(lambda x, n=n: x**n, 0.7), complex_step(lambda z, n=n: z**n, 0.7), rtol=1e-12
        )


def test_the_table_has_no_other_rows():
    assert set(step.TABLE) == {*BINARY, *UNARY, "pow"}


def test_values_of_the_table_are_numpys():
    x, y = step.Tensor([0.5, 2.0]), step.Tensor([4.0, 0.25])
    for name, f in zip(BINARY, (np.add, np.subtract, np.multiply, np.divide), strict=True):
        np.testing.assert_array_equal(getattr(step, name)(x, y).data, f(x.data, y.data))
    for name in ("sin", "cos", "exp", "log", "tanh"):
        np.testing.assert_array_equal(getattr(step, name)(x).data, getattr(np, name)(x.data))
    np.testing.assert_array_equal((x**3).data, x.data**3)


def test_operators_take_numbers_on_either_side():
    x = leaf(4.0)
    (2 / x - (1 - x) * 3 + (-x) / 2 + x**2).backward()
    assert x.grad.data == -2 / 16 + 3 - 0.5 + 8


def test_a_node_keeps_the_names_its_formulas_use():
    x, y = leaf(0.5), leaf(4.0)
    assert [kept(x + y), kept(x * y), kept(x - y), kept(-x)] == [[], ["x", "y"], [], []]
    assert [kept(step.sin(x)), kept(step.log(x)), kept(step.exp(x))] == [["x"], ["x"], ["out"]]
    assert kept(x / y) == ["out", "y"]


def test_what_only_an_unwanted_gradient_needs_is_not_kept():
    x = leaf(0.5)
    assert [kept(x * 3), kept(3 * x), kept(x / 2), kept(2 / x)] == [
        ["y"],
        ["y"],
        ["y"],
        ["out", "y"],
    ]
    assert kept(step.mul(3, x)) == ["x"]


def test_the_node_keeps_tensors_not_copies():
    x, y = leaf(0.5), leaf(4.0)
    node = (x * y).grad_fn
    assert node.saved["x"].unpack("x", node) is x
    node = step.sin(x * 2).grad_fn  # nobody else holds x * 2
    assert node.saved["x"].unpack("x", node).grad_fn.name() == "MulBackward0"
    out = step.exp(x)
    assert out.grad_fn.saved["out"].unpack("out", out.grad_fn) is out
    assert np.shares_memory(out.grad_fn.saved["out"].data, out.data)


def test_a_node_that_keeps_its_own_result_is_no_circle():
    x = leaf(0.5)
    gc.disable()
    try:
        y = step.exp(x)
        alive = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()


def test_a_kept_result_leads_back_to_its_node_when_its_tensor_is_gone():
    y = step.exp(leaf(0.5)) * 1.0
    node = y.grad_fn.next_functions[0][0]
    again = node.saved["out"].unpack("out", node)
    assert again.grad_fn is node
    assert again.data == np.exp(0.5)


def test_backward_frees_what_was_kept_but_not_the_graph():
    x = leaf(3.0)
    y = step.sin(x * x)
    nodes = list(step.count_edges(y.grad_fn))
    y.backward()
    assert [node.saved for node in nodes if isinstance(node, step.TableNode)] == [None, None]
    assert list(step.count_edges(y.grad_fn)) == nodes


def test_a_second_backward_is_refused_with_the_remedy():
    x = leaf(3.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"<MulBackward0> a second time.*retain_graph=True"):
        y.backward()
    assert x.grad.data == 6


def test_retain_graph_keeps_it_once_more():
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.data == 12
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_a_graph_that_keeps_nothing_loses_nothing():
    x = leaf(3.0)
    y = x + x
    y.backward()
    y.backward()
    assert x.grad.data == 4


def test_a_kept_value_changed_in_place_is_found():
    x = leaf(0.5)
    h = x * 1
    y = step.sin(h)
    array = h.data
    assert h.add_(1) is h
    assert h.data is array
    assert (h.data, h.version) == (1.5, 1)
    with pytest.raises(RuntimeError, match=r"<SinBackward0> needs x as it was at version 0.* 1"):
        y.backward()
    y = step.exp(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="<ExpBackward0> needs out"):
        y.backward()


def test_a_change_before_it_is_kept_or_of_what_is_not_kept_is_harmless():
    x = leaf(0.5)
    h = (x * 1).add_(1)
    step.sin(h).backward()
    assert x.grad.data == np.cos(1.5)
    x = leaf(0.5)
    h = x * 1
    y = step.exp(h)
    h.add_(1)
    y.backward()
    assert x.grad.data == np.exp(0.5)


def test_a_tensor_that_is_kept_twice_at_different_versions():
    x = leaf(0.5)
    h = x * 1
    early = step.sin(h)
    h.add_(1)
    step.sin(h).backward()
    with pytest.raises(RuntimeError, match="version 0"):
        early.backward()


def test_the_mistake_a_change_that_nobody_counts():
    source = next(text for text in cells("step11_saved_values", "mistake") if "h.data += 1" in text)
    _, printed = run_cells("step11_saved_values", [source])
    assert printed == "tensor(0.0707)\n"


def test_the_mistake_the_engine_believes_the_table():
    source = next(text for text in cells("step11_saved_values", "mistake") if "bad_sin" in text)
    namespace, _ = run_cells("step11_saved_values", [source])
    assert namespace["x"].grad.data == np.sin(0.5)


def test_numbers_of_earlier_steps():
    x = leaf(0.5)
    y = step.exp(x**2) ** 2
    y.backward()
    assert (str(y.data), str(x.grad.data)) == ("1.648721270700128", "3.297442541400256")
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    e = (a + b) * d
    assert repr(e) == "tensor(20., grad_fn=<MulBackward0>)"
    assert repr(e.grad_fn.next_functions) == "((<AddBackward0>, 0), (<AccumulateGrad>, 0))"
    e.backward()
    assert [t.grad.data for t in (a, b, d)] == [4, 4, 5]
    x = leaf(3.0)
    ((x + x) + x).backward()
    assert x.grad.data == 3
    x = leaf(2.0)
    s = x**2
    (s**2 + s**2).backward()
    assert x.grad.data == 64
    x = leaf([5.0, 7.0])
    y = step.unbind(x)[1] * 3
    assert repr(y.grad_fn.next_functions) == "((<UnbindBackward0>, 1), (None, 0))"
    y.backward()
    assert x.grad.data.tolist() == [0, 3]


def test_b_is_what_next_functions_says_and_f_what_is_kept():
    mg = pytest.importorskip("minigrad.viz")
    y = step.sin(leaf(0.5) * 2.0)
    graph = mg.draw(y).graph
    backward = [n for n in graph.nodes.values() if n.kind in ("grad_op", "accumulate")]
    assert sorted(n.name for n in backward) == ["AccumulateGrad", "MulBackward0", "SinBackward0"]
    y.backward()
    assert "SinBackward0" in mg.draw(y).text  # a freed graph can be drawn too


MUTANTS = {
    "nothing is freed": ("                node.saved = None\n", "                pass\n"),
    "retain_graph is ignored": ("if node.saved and not retain_graph:", "if node.saved:"),
    "retain_graph is not passed on": ("seed(self, grad), retain_graph)", "seed(self, grad))"),
    "empty memories are freed too": ("if node.saved and not retain_graph:", "if not retain_graph:"),
    "the second backward is silent": ("        if self.saved is None:", "        if False:"),
    "the version is not compared": ("if tensor.version != self.version:", "if False:"),
    "add_ does not count": ("        self.version += 1\n", ""),
    "add_ makes a new array": ("self.data += np", "self.data = self.data + np"),
    "the version is kept too late": (
        "self.data, self.version = tensor.data, tensor.version",
        "self.data, self.version = tensor.data, 0",
    ),
    "the own result is held": ("weakref.ref(tensor) if own else lambda: tensor", "lambda: tensor"),
    "an input is held weakly": (
        "weakref.ref(tensor) if own else lambda: tensor",
        "weakref.ref(tensor)",
    ),
    "a copy is kept": (
        "self.data, self.version = tensor.data,",
        "self.data, self.version = tensor.data.copy(),",
    ),
    "a kept result forgets its node": (
        "return Tensor(self.data, grad_fn=node)",
        "return Tensor(self.data)",
    ),
    "everything is kept": (" if name in reads}", "}"),
    "kept for unwanted gradients": (
        "        if target is not None:\n            reads",
        "        if True:\n            reads",
    ),
    "the result for the input": (
        "zip(node.formulas, inputs, strict=True), out=out)",
        "zip(node.formulas, [out] * 2), out=out)",
    ),
    "the input for the result": (
        "inputs, strict=True), out=out)",
        "inputs, strict=True), out=inputs[0])",
    ),
    "attributes are lost": ("node.attrs = attrs", "node.attrs = {'n': 2}"),
    "sub adds": ('x="grad", y="-grad")', 'x="grad", y="grad")'),
    "sine without slope": ('x="grad * cos(x)")', 'x="grad")'),
    "cosine without sign": ('x="-grad * sin(x)")', 'x="grad * sin(x)")'),
    "power without factor": ("grad * n * x ** (n - 1)", "grad * x ** (n - 1)"),
    "power without lowering": ("grad * n * x ** (n - 1)", "grad * n * x ** n"),
    "tanh loses a square": ("1 - tanh(x) * tanh(x)", "1 - tanh(x)"),
    "quotient": ("-grad * out / y", "-grad / y"),
    "rsub": ("return sub(other, self)", "return sub(self, other)"),
    "rdiv": ("return div(other, self)", "return div(self, other)"),
    "overwrite in the slot": ("grad if slots[slot] is None else slots[slot] + grad", "grad"),
    "the output index is lost": (
        "return (tensor.grad_fn, tensor.output_nr)",
        "return (tensor.grad_fn, 0)",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step11_saved_values", *MUTANTS[name]).startswith("killed")
