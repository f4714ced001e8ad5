"""Step 10: grad_fn, next_functions, AccumulateGrad."""

import gc
import weakref

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

step = load("step10_grad_fn")


def leaf(value):
    return step.Tensor(value, requires_grad=True)


def example():
    """The running example: its leaves, the sum and the product."""
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a + b
    return a, b, d, c, c * d


def numbers(*tensors):
    return [t.grad.data.tolist() for t in tensors]


def test_a_result_prints_the_node_that_leads_back():
    *_, e = example()
    assert repr(e) == "tensor(20., grad_fn=<MulBackward0>)"
    assert repr(leaf(4.0)) == "tensor(4., requires_grad=True)"
    assert repr(step.Tensor([1.0, 2.5])) == "tensor([1. , 2.5])"


def test_next_functions_of_the_example():
    *_, c, e = example()
    assert repr(e.grad_fn.next_functions) == "((<AddBackward0>, 0), (<AccumulateGrad>, 0))"
    assert repr(c.grad_fn.next_functions) == "((<AccumulateGrad>, 0), (<AccumulateGrad>, 0))"
    assert e.grad_fn.next_functions[0][0] is c.grad_fn
    assert [e.grad_fn.name(), c.grad_fn.name()] == ["MulBackward0", "AddBackward0"]


def test_only_an_accumulate_grad_has_a_variable():
    a, b, d, c, e = example()
    with pytest.raises(AttributeError) as caught:
        e.grad_fn.next_functions[0][0].variable
    assert str(caught.value) == "'AddBackward0' object has no attribute 'variable'"
    assert e.grad_fn.next_functions[1][0].variable is d
    assert [node.variable for node, _ in c.grad_fn.next_functions] == [a, b]


def test_the_gradients_of_the_example():
    a, b, d, c, e = example()
    e.backward()
    assert numbers(a, b, d) == [4, 4, 5]
    assert c.grad is None
    assert e.grad is None


def test_leaves_and_results():
    a, *_, e = example()
    assert a.is_leaf
    assert not e.is_leaf
    assert e.requires_grad
    assert not step.Tensor(7.0).requires_grad


def test_a_leaf_has_one_accumulate_grad_and_does_not_keep_it_alive():
    a, *_, c, _e = example()
    first, second = (node for node, _ in (a * a).grad_fn.next_functions)
    assert first is second is c.grad_fn.next_functions[0][0]
    x = leaf(1.0)
    gc.disable()
    try:
        alive = weakref.ref(x), weakref.ref(step.gradient_edge(x)[0])
        y = x * 2
        del x, y, _
        assert [each() for each in alive] == [None, None]  # no circle: freed at once
    finally:
        gc.enable()


def test_a_constant_gives_an_edge_to_nowhere():
    a = leaf(2.0)
    assert repr((a * 3).grad_fn.next_functions) == "((<AccumulateGrad>, 0), (None, 0))"
    assert repr((3 + a).grad_fn.next_functions) == "((<AccumulateGrad>, 0), (None, 0))"


def test_without_a_leaf_that_wants_a_gradient_nothing_is_recorded():
    y = step.Tensor(2.0) * 3
    assert y.grad_fn is None
    assert not y.requires_grad


def test_the_second_output_has_index_one():
    x = leaf([5.0, 7.0])
    p, q = step.unbind(x)
    y = q * 3
    assert repr(y.grad_fn.next_functions) == "((<UnbindBackward0>, 1), (None, 0))"
    assert p.grad_fn is q.grad_fn
    y.backward()
    assert numbers(x) == [[0, 3]]


def test_backward_may_begin_at_a_second_output():
    x = leaf([5.0, 7.0, 9.0])
    step.unbind(x)[2].backward()
    assert numbers(x) == [[0, 0, 1]]


def test_stack_is_the_other_way_round():
    p, q = leaf(5.0), leaf(7.0)
    step.stack(p, q * 2).backward(np.array([10.0, 100.0]))
    assert numbers(p, q) == [10, 200]


def test_both_outputs_of_one_node_meet_again():
    x = leaf([5.0, 7.0])
    p, q = step.unbind(x)
    (p * q + p).backward()
    assert numbers(x) == [[8, 5]]


def test_the_engine_walks_the_edges_and_nothing_else():
    x = leaf([5.0, 7.0])
    y = step.unbind(x)[1] * 3
    node, _ = y.grad_fn.next_functions[0]
    y.grad_fn.next_functions = ((node, 0), (None, 0))
    y.backward()
    assert numbers(x) == [[3, 0]]
    other = leaf(0.0)
    y.grad_fn.next_functions = (step.gradient_edge(other), (None, 0))
    y.backward()
    assert numbers(x, other) == [[3, 0], 3]


def test_numbers_of_earlier_steps():
    x = leaf(3.0)
    (x + x).backward()
    assert numbers(x) == [2]
    x = leaf(3.0)
    ((x + x) + x).backward()
    assert numbers(x) == [3]
    x = leaf(2.0)
    s = x * x
    (s * s + s * s).backward()
    assert numbers(x) == [64]  # the diamond of step 6
    a = leaf(2.0)
    b = a + a
    (b + b).backward()
    assert numbers(a) == [4]


def test_fifty_doublings_take_one_call_per_node():
    x = y = leaf(1.0)
    for _ in range(50):
        y = y + y
    y.backward()
    assert numbers(x) == [2**50]


def test_a_node_waits_for_the_longest_way():
    """The newest node first is not enough to know: s is used early and late."""
    x = leaf(2.0)
    s = x * x
    late = s
    for _ in range(3):
        late = late * 1.0
    (s * late).backward()
    assert numbers(x) == [4 * 2.0**3]
    x = leaf(2.0)
    s = x * x
    late = (s * 1.0) * 1.0
    (late * s).backward()
    assert numbers(x) == [4 * 2.0**3]


def test_gradients_agree_with_central_differences():
    def f(x, y):
        s = x * y + x
        return s * s * y + s * 3.0

    x, y = leaf(0.7), leaf(-1.3)
    f(x, y).backward()
    eps = 1e-6
    slopes = [
        (f(step.Tensor(0.7 + eps), y).data - f(step.Tensor(0.7 - eps), y).data) / (2 * eps),
        (f(x, step.Tensor(-1.3 + eps)).data - f(x, step.Tensor(-1.3 - eps)).data) / (2 * eps),
    ]
    np.testing.assert_allclose(numbers(x, y), slopes, rtol=1e-8)


def test_gradients_accumulate_and_never_share_memory():
    a, b, *_, e = example()
    seed = np.ones(())
    e.backward(seed)
    assert not np.shares_memory(a.grad.data, b.grad.data)
    e.backward(seed)
    assert numbers(a, b) == [8, 8]
    x = leaf(1.0)
    x.backward(seed)
    assert not np.shares_memory(x.grad.data, seed)


def test_a_gradient_leaves_no_way_back_of_its_own():
    a, b, d, _, e = example()
    e.backward()
    assert [t.grad.grad_fn for t in (a, b, d)] == [None] * 3
    assert step.MODE["record"]


def test_recording_is_put_back_after_an_error():
    with pytest.raises(KeyError, match=r"tensor\(2\.\)"), step.record(False):
        raise KeyError(repr(leaf(1.0) * 2))
    assert (leaf(1.0) * 2).grad_fn is not None


def test_a_hundred_thousand_nodes_need_no_recursion():
    x = y = leaf(1.0)
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert numbers(x) == [1]
    del y


def test_the_mistake_every_path_is_walked():
    sources = cells("step10_grad_fn", "mistake")
    start = next(i for i, text in enumerate(sources) if "def walk_every_path" in text)
    _, printed = run_cells(
        "step10_grad_fn",
        [
            "a, b, d = (Tensor(n, requires_grad=True) for n in (2., 3., 4.))\ne = (a + b) * d",
            *sources[start : start + 2],
        ],
    )
    assert printed == "5 calls\ntensor(4.) tensor(4.) tensor(5.)\ntensor(1024.) 2047 calls\n"


def test_the_mistake_a_gradient_that_is_recorded():
    *_, e = example()
    to_c, to_d = e.grad_fn(step.Tensor(1.0))
    assert repr((to_c, to_d)) == (
        "(tensor(4., grad_fn=<MulBackward0>), tensor(5., grad_fn=<MulBackward0>))"
    )


def test_bad_input_is_named():
    with pytest.raises(RuntimeError, match=r"from tensor\(7\.\): it depends on no tensor"):
        step.Tensor(7.0).backward()
    with pytest.raises(RuntimeError, match=r"shape \(2,\): say how .*np.ones\(\(2,\)\)"):
        (leaf([1.0, 2.0]) * 2).backward()
    with pytest.raises(ValueError, match=r"\(2,\) for a value of shape \(\) at <AccumulateGrad>"):
        (leaf(1.0) * step.Tensor([1.0, 2.0])).backward(np.ones(2))
    with pytest.raises(ValueError, match=r"\(3,\) for a value of shape \(2,\) at <MulBackward0>"):
        (leaf([1.0, 2.0]) * 2).backward(np.ones(3))


def test_b_is_what_next_functions_says():
    mg = pytest.importorskip("minigrad.viz")
    *_, e = example()
    graph = mg.draw(e).graph
    backward = [n for n in graph.nodes.values() if n.kind in ("grad_op", "accumulate")]
    assert sorted(n.name for n in backward) == sorted(
        node.name() for node in step.count_edges(e.grad_fn)
    )
    ids = {n.id for n in backward}
    drawn = [edge for edge in graph.edges if edge.tail in ids and edge.head in ids]
    assert len(drawn) == sum(step.count_edges(e.grad_fn).values())


MUTANTS = {
    "the output index is lost": (
        "return (tensor.grad_fn, tensor.output_nr)",
        "return (tensor.grad_fn, 0)",
    ),
    "outputs are not numbered": ("output_nr=i)", "output_nr=0)"),
    "a new AccumulateGrad for every use": ("    if node is None:   ", "    if True:  "),
    "the leaf holds its node": ("weakref.ref(node)", "(lambda: node)"),
    "constants get an edge": ("    if not tensor.requires_grad:\n        return (None, 0)\n", ""),
    "overwrite at the leaf": (
        "(zero if self.variable.grad is None else self.variable.grad) + grad",
        "zero + grad",
    ),
    "the first gradient is not copied": (
        "(zero if self.variable.grad is None else self.variable.grad) + grad",
        "grad if self.variable.grad is None else self.variable.grad + grad",
    ),
    "overwrite in the slot": ("grad if slots[slot] is None else slots[slot] + grad", "grad"),
    "no waiting": ("counts[target] += 1", "counts[target] = 1"),
    "recorded while walking": (
        "with record(False):\n        deliver",
        "with record(True):\n        deliver",
    ),
    "the switch is ignored": ('wanted = MODE["record"] and any', "wanted = any"),
    "the switch is not put back": ('        MODE["record"] = before', "        pass"),
    "put back without finally": (
        "    try:\n        yield\n    finally:\n        MODE",
        "    if True:\n        yield\n        MODE",
    ),
    "constants are recorded": ("if wanted else None", "if True else None"),
    "factors swapped": ("return grad * y, grad * x", "return grad * x, grad * y"),
    "plus forgets one": ("return grad, grad", "return grad, grad * 0"),
    "saved the sum": ("MulBackward0(x, y, x=x, y=y)", "MulBackward0(x, y, x=y, y=y)"),
    "no seed": ("Tensor(np.ones_like(tensor.data)) if", "Tensor(np.zeros_like(tensor.data)) if"),
    "the seed is dropped": ("else as_tensor(grad)", "else Tensor(np.ones_like(tensor.data))"),
    "empty slots are ones": ("Tensor(np.zeros(shape)) if got", "Tensor(np.ones(shape)) if got"),
    "results are leaves": ("return self.grad_fn is None\n", "return not self.requires_grad\n"),
    "the shape is not looked at": ("if grad.data.shape != expected:", "if False:"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step10_grad_fn", *MUTANTS[name]).startswith("killed")
