"""Step 6: the order of the backward calls."""

import random

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

import minigrad as mg

STEP = "step06_order"
step = load(STEP)


def box(value):
    return step.Variable(np.array(value))


def chain(x):
    return step.square(step.exp(step.square(x)))


def diamond(x):
    a = step.square(x)
    return step.square(a) + step.square(a)


def doubled(x, times):
    for _ in range(times):
        x = x + x
    return x


def random_graph(seed, start):
    """One random program of + and *, on duals or Variables: the same for the same seed."""
    rng = random.Random(seed)
    values = [start]
    for _ in range(rng.randrange(3, 9)):
        a, b = values[-1], rng.choice(values)
        if rng.random() < 0.5:
            a, b = b, a
        values.append(a + b if rng.random() < 0.8 else a * b)
    return values[-1] + rng.choice(values)


class Dual:
    """A number and its derivative: forward mode, an independent oracle."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)


def test_the_diamond():
    x = box(2.0)
    diamond(x).backward()
    assert x.grad == 64


def test_doubling_fifty_times_is_done_at_once():
    x = box(1.0)
    y = doubled(x, 50)
    assert len(step.by_generation(y)) == 50
    y.backward()
    assert x.grad == 2.0**50


def test_random_graphs_agree_with_forward_mode():
    for seed in range(60):
        x = box(3.0)
        y = random_graph(seed, x)
        dual = random_graph(seed, Dual(3.0, 1.0))
        y.backward()
        assert (y.data, x.grad) == (dual.value, dual.slope)


def test_users_have_run_before_the_function_they_use():
    for seed in range(60):
        order = step.by_generation(random_graph(seed, box(3.0)))
        assert len(set(order)) == len(order)
        for i, f in enumerate(order):
            assert not any(v.creator in order[:i] for v in f.inputs if v.creator is not None)


def test_the_generation_is_one_more_than_the_youngest_parent():
    x = box(1.0)
    a = x + x
    b = a + a
    assert [v.creator.generation for v in (a, b, a + b, b + x, x + x)] == [1, 2, 3, 3, 1]


def test_the_numbers_of_earlier_steps_still_hold():
    x = box(0.5)
    y = chain(x)
    y.backward()
    assert (str(y.data), str(x.grad)) == ("1.648721270700128", "3.297442541400256")
    assert str(step.numerical_diff(step.square, box(2.0))) == "4.000000000004"
    assert abs(step.numerical_diff(chain, box(0.5)) - 3.2974426293330694) < 1e-11
    a, b, d = box(2.0), box(3.0), box(4.0)
    e = (a + b) * d
    e.backward()
    assert (e.data, a.grad, b.grad, d.grad) == (20, 4, 4, 5)
    x, y = box(2.0), box(3.0)
    z = step.square(x) + step.square(y)
    z.backward()
    assert (z.data, x.grad, y.grad) == (13, 4, 6)
    for f, expected in ((lambda x: x + x, 2), (lambda x: (x + x) + x, 3)):
        x = box(3.0)
        f(x).backward()
        assert x.grad == expected


def side_by_side():
    """The cells of the notebook that define the four orders and print the table."""
    wanted = ("def diamond", "def lifo", "def recursive", "def doubled_twice")
    sources = [source for source in cells(STEP) if source.startswith(wanted)]
    return run_cells(STEP, ["import minigrad as mg", *sources])


def test_the_table_of_four_orders():
    _namespace, printed = side_by_side()
    rows = [line.split() for line in printed.splitlines()]
    assert ["x", "+", "x", "2", "2", "2", "1"] in rows
    assert ["diamond", "64", "96", "96", "32"] in rows
    assert ["b", "=", "a", "+", "a,", "c", "=", "b", "+", "b", "4", "8", "8", "1"] in rows


def test_the_mistake_the_stack_visits_once_per_way():
    namespace, printed = side_by_side()
    lifo = namespace["lifo"]
    assert printed.startswith("96.0\n")
    assert [len(lifo(doubled(box(1.0), n))) for n in (3, 6, 10)] == [7, 63, 1023]
    x = box(2.0)
    diamond(x).backward(order=lifo)
    assert x.grad == 96


def test_a_tape_read_backwards_is_right_too():
    with mg.watch(step.Function) as tape:
        x = box(2.0)
        y = diamond(x)
    y.backward(order=lambda y: [event[1] for event in reversed(tape.events)])
    assert x.grad == 64


def test_the_picture_of_the_mistake_shows_more_backward_calls_than_functions():
    namespace, _ = side_by_side()
    for order, calls in ((step.by_generation, 4), (namespace["lifo"], 5)):
        with mg.watch(step.Function) as run:
            diamond(box(2.0)).backward(order=order)
        nodes = mg.draw(run).graph.nodes.values()
        assert sum(event[0] == "backward" for event in run.events) == calls
        assert sum(node.kind == "grad_op" for node in nodes) == calls


def test_long_chains_need_no_recursion():
    x = y = box(1.0)
    for _ in range(5_000):
        y = y + x
    y.backward()
    assert x.grad == 5_001


def test_errors_of_earlier_steps_still_help():
    with pytest.raises(RuntimeError, match="leaf"):
        box(1.0).backward()
    with pytest.raises(TypeError, match=r"not the float 1\.5"):
        step.Variable(1.5)


MUTANTS = {
    "no ordering": (
        "return sorted(functions_behind(y), key=lambda f: f.generation, reverse=True)",
        "return functions_behind(y)",
    ),
    "oldest first": ("reverse=True", "reverse=False"),
    "every generation is 1": ("1 + max((f.generation for f in makers), default=0)", "1"),
    "generation of the oldest parent": ("1 + max(", "1 + min("),
    "no new generation": ("1 + max(", "max("),
    "generation counts parents": ("max((f.generation for f in makers), default=0)", "len(makers)"),
    "generation of the first parent": ("for f in makers)", "for f in makers[:1])"),
    "only first inputs are behind": ("todo.extend(f.inputs)", "todo.append(f.inputs[0])"),
    "overwrite instead of add": ("x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
    "the order given is ignored": ("(order or by_generation)(self)", "by_generation(self)"),
    "mul gives each its own value": ("return x1 * gy, x0 * gy", "return x0 * gy, x1 * gy"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, STEP, *MUTANTS[name]).startswith("killed")
