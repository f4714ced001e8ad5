"""The table of primitives: what is declared, what a row of it says, and what is refused; the operators made from it."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
from contextlib import contextmanager

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import DTypeError, RuleError
from minigrad.primitives.arguments import REQUIRED
from minigrad.primitives.registry import REGISTRY
from minigrad.viz.adapters.formula import rule_formula, written
from tests.pieces import leaf


@contextmanager
def made(kernel, **options):
    """A primitive of one's own, for a while."""
    function = mg.primitive(**options)(kernel) if options else mg.primitive(kernel)
    try:
        yield function
    finally:
        REGISTRY.pop(function.primitive.type)


def third(x, y, *, by=2):
    """Something of three."""
    return x * y * by


def test_a_row_of_the_table_says_what_the_kernel_takes():
    with made(third) as function:
        row = function.primitive
        assert REGISTRY["third"] is row
        assert (row.inputs, row.attrs, row.outputs) == (("x", "y"), {"by": 2}, ("out",))
        assert (row.optional, row.list_input, row.broadcasts, row.view) == (
            frozenset(),
            None,
            False,
            False,
        )
        assert (row.function is function, row.doc, repr(row)) == (
            True,
            "Something of three.",
            "<primitive third>",
        )
        assert (function.__name__, function.__doc__) == ("third", "Something of three.")
    with made(lambda *x, axis=0: np.stack(x, axis), type="row_of") as function:
        row = function.primitive
        assert (row.inputs, row.list_input, row.attrs) == (("x",), "x", {"axis": 0})
        assert function.__name__ == "row_of"


def test_what_the_wanted_rules_read_is_told_in_the_order_of_the_declaration():
    with made(third) as function:
        function.grad(
            x=lambda y, out_grad, by, y_shape: out_grad * y * by,
            y=lambda by, out, x, out_grad: out_grad * x * by,
        )
        row = function.primitive
        assert row.differentiable == ("x", "y")
        assert row.reads() == ("x", "y", "out", "out_grad", "by", "y_shape")
        assert row.reads({"x"}) == ("y", "out_grad", "by", "y_shape")
        assert row.saved() == ("x", "y", "out")
        assert (row.saved({"x"}), row.saved({"y"}), row.saved(())) == (("y",), ("x", "out"), ())


def test_rules_of_inputs_are_declared_one_after_the_other():
    with made(third, type="other_name") as function:
        assert (function.__name__, function.primitive.type) == ("third", "other_name")
        assert function.grad(x=lambda y, out_grad: out_grad * y * 2) is function
        assert function.grad(y=lambda x, out_grad: out_grad * x * 2) is function
        assert mg.gradcheck(function, (leaf(3.0), leaf(5.0)))


def test_functions_of_the_package_that_are_made_of_others_name_the_line_of_the_user():
    x = leaf([1.0, 2.0])
    for y in (
        mg.outer(x, x),
        mg.kron(x, x),
        mg.stack([x, x]),
        x[[0]],
        2.0 - x,
        mg.mse(x, [0.0, 0.0]),
    ):
        assert "test_registry.py" in y.grad_fn.where()


def test_a_rule_for_all_inputs_runs_once():
    called = []

    def both(x, y, out_grad):
        called.append(1)
        return out_grad * y * 2, out_grad * x * 2

    with made(third) as function:
        assert function.grad(both) is both
        assert len(list(function.primitive.wanted_rules())) == 1
        x, y = leaf(3.0), leaf(5.0)
        function(x, y).backward()
        assert (float(x.grad), float(y.grad), called) == (10.0, 6.0, [1])


def test_a_rule_for_all_inputs_leaves_out_those_without_gradient():
    with made(third, nondiff=("y",)) as function:
        function.grad(lambda y, out_grad: (out_grad * y * 2,))
        assert function.primitive.differentiable == ("x",)
        x = leaf(3.0)
        function(x, leaf(5.0)).backward()
        assert float(x.grad) == 10.0


def test_a_rule_may_take_its_attrs_behind_a_star_as_the_kernel_does():
    with made(third) as function:
        function.grad(x=lambda y, out_grad, *, by: out_grad * y * by)
        x = leaf(3.0)
        function(x, 5.0, by=7).backward()
        assert float(x.grad) == 35.0
        assert mg.gradgradcheck(lambda x: function(x * x, 5.0), x)
        assert written(rule_formula(function.primitive, "x")) == "g·y·by"


def test_a_rule_may_be_the_method_of_an_object():
    class Slope:
        def of_x(self, y, out_grad):
            return out_grad * y * 2

    with made(third) as function:
        function.grad(x=Slope().of_x)
        x = leaf(3.0)
        function(x, 5.0).backward()
        assert float(x.grad) == 10.0


def test_a_rule_may_be_one_call_of_another_primitive():
    with made(third) as function:
        function.grad(x=(function, "out_grad, y, by"), y=(mg.mul, "x, out_grad"))
        x, y = leaf([1.0, 3.0]), leaf([2.0, 4.0])
        function(x, y, by=7).sum().backward()
        assert x.grad.tolist() == [14.0, 28.0]
        assert y.grad.tolist() == [1.0, 3.0]
        assert mg.gradgradcheck(lambda x: function(x * x, 5.0), x)
        assert function.primitive.reads(["x"]) == ("y", "out_grad", "by")
        assert written(rule_formula(function.primitive, "x")) == "third(g, y, by)"


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda f: f.grad(x=(f, "out_grad, why")), "names 'why'.*did you mean 'y'"),
        (lambda f: f.grad(z=lambda out_grad: out_grad), "'third' has no input 'z'"),
        (lambda f: f.grad(x=lambda outgrad: outgrad), "names 'outgrad'.*did you mean 'out_grad'"),
        (lambda f: f.grad(x=lambda y_size, out_grad: out_grad), "for x names 'y_size'"),
        (lambda f: f.grad(lambda *more: more), "for x, y names 'more'"),
        (lambda f: f.grad(x=functools.partial(lambda k, b: k, 1)), "names 'b'"),
    ],
)
def test_a_rule_that_names_nothing_is_refused(declare, words):
    with made(third) as function, pytest.raises(RuleError, match=words):
        declare(function)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (
            lambda: mg.primitive(lambda x, **k: x, type="any"),
            r"takes \*\*k\n.*\n  repair: name its attrs",
        ),
        (lambda: mg.primitive(lambda x: x), "a primitive needs a name, and '<lambda>' is none"),
        (lambda: mg.primitive(lambda x: x, type="a b"), "'a b' is none"),
        (
            lambda: mg.primitive(third, type="exp"),
            r"'exp' is registered already: minigrad.*\n.*\n  repair: .*type='exp_2'",
        ),
    ],
)
def test_a_kernel_that_cannot_be_declared_is_refused(declare, words):
    before = dict(REGISTRY)
    with pytest.raises(RuleError, match=words):
        declare()
    assert before == REGISTRY


def test_a_second_definition_is_refused_outside_of_a_notebook():
    with made(third), pytest.raises(RuleError, match="type 'third' is registered already"):
        mg.primitive(third)


def test_a_kernel_may_be_a_function_of_numpy_or_a_partial_one():
    with made(np.vectorize(lambda x: x + 1.0, excluded=()).pyfunc, type="plus_one") as function:
        assert function(2.0) == 3.0
    with made(functools.wraps(third)(functools.partial(third, by=5)), type="by_five") as function:
        function.grad(x=lambda y, out_grad: out_grad * y * 5)
        x = leaf(2.0)
        function(x, 3.0).backward()
        assert float(x.grad) == 15.0


# -- operators -----------------------------------------------------------------------------


def variable(dtype="float64"):
    program = static.Program()
    with static.program_guard(program):
        return static.data("x", [2], dtype)


def test_operators_stand_on_both_sides_of_arrays_and_numbers():
    x = mg.tensor([1.0, 2.0])
    a = np.array([4.0, 8.0])
    for made_, expected in (
        (a - x, [3.0, 6.0]), (x - a, [-3.0, -6.0]), (a / x, [4.0, 4.0]), (a**x, [4.0, 64.0]), (a % x, [0.0, 0.0]),
        (a // x, [4.0, 4.0]), (a @ x, 20.0), (a < x, [False, False]), (a >= x, [True, True]), (a == x, [False, False]),
        (a != x, [True, True]), (9.0 - x, [8.0, 7.0]), (2.0**x, [2.0, 4.0]), (np.maximum(a, x), [4.0, 8.0]),
        (np.minimum(a, x), [1.0, 2.0]), (np.minimum(x, a), [1.0, 2.0]), (np.float64(9.0) - x, [8.0, 7.0]),
    ):  # fmt: skip
        assert isinstance(made_, mg.Tensor) and made_.tolist() == expected
    assert (~(x > 1.5)).tolist() == [True, False]
    assert (
        (True & (x > 1.5)).tolist()
        == (np.array([True, True]) & (x > 1.5)).tolist()
        == [False, True]
    )
    assert x.T.shape == (2,) and mg.zeros([2, 3, 4]).mT.shape == (2, 4, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.add(x, 1.0, out=np.zeros(2)), "np.add does not know Tensors(?s:.*)detach"),
        (lambda x: np.add.reduce(x), "np.add does not know Tensors"),
        (lambda x: np.exp(x), r"repair: mg.exp\(…\), or x.detach\(\).numpy\(\)"),
        (lambda x: np.arcsin(x), r"np.arcsin does not know (?s:.*)mg.asin\(x\)"),
        (lambda x: np.spacing(x), r"mg.spacing\(…\) if it exists"),
        (lambda x: np.exp(variable()), r"np.exp does not know Variables(?s:.*)repair: mg.exp\(…\)$"),
        (lambda x: x & 1, "& takes truth values, not float64"),
        (lambda x: (x > 1.0) | 3, "| takes truth values, not 3"),
        (lambda x: ~variable(), r"~ takes truth values(?s:.*)~\(x != 0\)"),
        (lambda x: 2 ^ (x > 1.0), r"\^ takes truth values, not 2(?s:.*)\(x != 0\) \^ …, or call mg.logical_xor"),
    ],
)  # fmt: skip
def test_what_would_lose_a_gradient_or_look_at_bits_is_refused(call, words):
    with pytest.raises(DTypeError, match=words.replace("| takes", r"\| takes")):
        call(leaf([1.0, 2.0]))


def test_variables_take_truth_values_and_arrays_on_either_side():
    x = variable("bool")
    with static.program_guard(x.block.program):
        for made_ in (x & x, ~x, np.array([True, False]) | x, True ^ x):
            assert isinstance(made_, static.Variable) and made_.dtype == np.bool_


# -- ops of one's own --------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch):
    """`mg.primitive` and `mg.elementwise` whose rows leave the table after the test."""
    before = set(REGISTRY)
    yield mg.primitive
    for name in set(REGISTRY) - before:
        REGISTRY.pop(name)


def from_text(text, **names):
    exec(text, names)
    return names["op"]


#: names that the engine's own code uses, or Python, or this test
NAMES = re.findall(
    r"\w+",
    """
    Value Leaf Tensor isinstance primitive dict list REQUIRED AccumulateGrad GRAD FREED ndarray NodeClass t m n f s h g
    d0 e0 g0 x0 a0 x1 t_ m_ _new _kernel _mode _attrs _call_error _own more unknown more_ unknown_ out_ error kept rule_0
    self hooks freed values shapes title __builtins__ __minigrad_ops__ __class__ np
    """,
)


@pytest.mark.parametrize("name", NAMES)
def test_an_input_an_attr_or_a_function_may_have_any_name(own, name):
    kernel = from_text(f"def op({name}, other, *, k=2.0):\n return {name} * other * k", np=np)
    op = own(kernel, type="op_of_input")
    rule = from_text(f"def op({name}, out_grad, k): return out_grad * {name} * k")
    first = from_text("def op(other, out_grad, k): return out_grad * other * k")
    op.grad(**{name: first, "other": rule})
    x, y = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([3.0, 4.0], requires_grad=True)
    assert op(**{name: x}, other=y, k=3.0).tolist() == [9.0, 24.0]
    assert mg.gradcheck(op, (x, y)) and mg.gradgradcheck(op, (x, y))
    kernel = from_text(f"def op(x, *, {name}=2.0): return x * {name}")
    op = own(kernel, type="op_of_attr")
    op.grad(x=from_text(f"def op({name}, out_grad): return out_grad * {name}"))
    assert op(x, **{name: 5.0}).tolist() == [5.0, 10.0] and op(x).tolist() == [2.0, 4.0]
    assert mg.gradcheck(lambda x: op(x, **{name: 5.0}), x)
    kernel.__name__ = name
    op = own(kernel, type="op_of_name")
    assert op(x).tolist() == [2.0, 4.0] and op.__name__ == name


@pytest.mark.parametrize("word", [*keyword.kwlist, *dir(builtins)][::7])
def test_a_function_named_by_a_word_of_python(own, word):
    def kernel(x):
        return x * 2.0

    kernel.__name__ = word
    assert own(kernel, type=f"named_{word}")(mg.tensor([1.0])).tolist() == [2.0]


class Surprise:
    """A default whose text would do something if anything executed it."""

    ran: list[str] = []

    def __repr__(self):
        return "__import__('tests.primitives.test_registry').eager.test_own_ops.Surprise.ran.append('x')"


@pytest.mark.parametrize(
    "default",
    [np.nan, np.inf, -np.inf, np.float32(2), np.dtype("f4"), np.float64, Surprise(), Surprise,
     "'", "x\ny", (), {"a": [1]}, None, ..., slice(1), lambda: 0, np.zeros(2)],
    ids=lambda default: type(default).__name__,
)  # fmt: skip
def test_a_default_is_handed_over_and_never_text(own, default):
    seen = []
    op = own(lambda x, *, fill=default: seen.append(fill) or x * 2.0, type="with_a_default")
    op.grad(x=lambda out_grad, fill: seen.append(fill) or out_grad * 2.0)
    x = mg.tensor([1.0], requires_grad=True)
    op(x).sum().backward()
    assert all(value is default for value in seen) and len(seen) == 2
    assert x.grad.tolist() == [2.0] and not Surprise.ran
    assert op(x, 7.0).tolist() == [2.0] and seen[-1] == 7.0


def test_a_rule_that_hands_on_one_of_several_is_called(own):
    op = own(lambda x, *, k=1.0: x + k, type="plus_k")
    op.grad(x=lambda out_grad, k: out_grad)
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    op(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


class Doubling:
    def __call__(self, out_grad):
        return out_grad * 2.0


@pytest.mark.parametrize(
    "rule",
    [
        Doubling(),
        functools.partial(lambda out_grad, by: out_grad * by, by=2.0),
        Doubling().__call__,
    ],
)
def test_a_rule_is_anything_that_can_be_called(own, rule):
    op = own(lambda x: x * 2.0, type="doubled")
    try:
        op.grad(x=rule)
    except RuleError:  # a parameter that names nothing, as that of a partial function
        return
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    assert mg.gradcheck(op, x)


def test_a_kernel_that_looks_like_a_function_of_numpy_is_not_taken_for_it(own):
    class other:
        exp = staticmethod(lambda x: np.asarray(x) + 100.0)

    kernel = from_text("def op(x): return other.exp(x)", other=other, np=np)
    op = own(kernel, type="of_another_module")
    assert op(mg.tensor([1.0])).tolist() == [101.0]


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (lambda out, k: out * k, lambda out, out_grad: out_grad * out),
        (lambda k, x_shape=2: k * x_shape, None),
        (lambda k, out_grad: k * out_grad, lambda out_grad: out_grad),
    ],
)
def test_a_name_that_could_mean_two_things_is_refused(own, kernel, rule):
    op = own(kernel, type="ambiguous")
    if rule is None:
        return
    with pytest.raises(RuleError, match=r"could mean two things(.|\n)*repair"):
        op.grad(k=rule)


def test_an_input_named_as_the_output_is_right_where_no_rule_reads_it(own):
    op = own(lambda out: out * 2.0, type="doubled_out")
    op.grad(out=lambda out_grad: out_grad * 2.0)
    assert mg.gradcheck(op, mg.tensor([1.0, 2.0], requires_grad=True))


@pytest.mark.parametrize("output", ["a b", "class", "x; import os", ""])
def test_an_output_has_a_name(own, output):
    with pytest.raises(RuleError, match=r"no name for an output(.|\n)*repair"):
        own(lambda x: (x, x), type="misnamed", outputs=("out", output))


def test_a_required_attr_behind_an_optional_input(own):
    op = own(lambda x, y=None, *, k, j=np.nan: x * k, type="scaled_by")
    op.grad(x=lambda out_grad, k: out_grad * k)
    x = mg.tensor([1.0], requires_grad=True)
    assert op(x, k=3.0).tolist() == [3.0]
    with pytest.raises(TypeError, match="k"):
        op(x)
    assert REGISTRY["scaled_by"].attrs["k"] is REQUIRED
