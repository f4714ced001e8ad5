"""Step 15: shared names and zeros."""

import random

import numpy as np
import pytest
from literate import load, verdict_on

step = load("step15_shared_names")


def op(type, out, **inputs):
    return step.Operator(type, inputs, {"out": out})


def net(*ops):
    return step.NetOp(ops)


def run(op, values, no_grad=(), seed="y"):
    scope = step.Scope({**values, f"{seed}@GRAD": 1.0})
    op.run(scope)
    step.backward(op, no_grad).run(scope)
    return scope


def shared():
    return net(
        op("mul", "y1", x="x1", y="W"),
        op("mul", "y2", x="x2", y="W"),
        op("add", "y", x="y1", y="y2"),
    )


def diamond():
    return net(
        op("square", "a", x="x"),
        op("square", "b", x="a"),
        op("square", "c", x="a"),
        op("add", "y", x="b", y="c"),
    )


def halves():
    return net(step.Operator("split", {"x": "x"}, {"out": ["a", "b"]}), op("square", "y", x="a"))


def lines(op):
    return [str(inner) for _, inner in step.places(net(op))]


def test_two_writers_give_two_parts_in_order_of_production_and_one_sum():
    assert lines(step.backward(shared(), {"x1", "x2"})) == [
        "y1@GRAD, y2@GRAD = add_grad(out_grad=y@GRAD)",
        "@EMPTY@, W@GRAD@RENAME@0 = mul_grad(x=x2, y=W, out_grad=y2@GRAD)",
        "@EMPTY@, W@GRAD@RENAME@1 = mul_grad(x=x1, y=W, out_grad=y1@GRAD)",
        "W@GRAD = sum(x=[W@GRAD@RENAME@0, W@GRAD@RENAME@1])",
    ]
    scope = run(shared(), {"x1": 2.0, "x2": 5.0, "W": 3.0})
    assert [scope[f"W@GRAD{part}"] for part in ("@RENAME@0", "@RENAME@1", "")] == [5.0, 2.0, 7.0]


def test_the_mistake_without_the_repair_the_last_writer_wins():
    scope = step.Scope({"x1": 2.0, "x2": 5.0, "W": 3.0, "y@GRAD": 1.0})
    shared().run(scope)
    step.mirror(shared(), set(), {"y@GRAD"}).run(scope)
    assert scope["W@GRAD"] == 2.0


def test_one_writer_gives_neither_parts_nor_a_sum():
    grads = step.backward(net(op("add", "c", x="a", y="b"), op("mul", "e", x="c", y="d")))
    assert lines(grads) == [
        "c@GRAD, d@GRAD = mul_grad(x=c, y=d, out_grad=e@GRAD)",
        "a@GRAD, b@GRAD = add_grad(out_grad=c@GRAD)",
    ]


def test_the_golden_numbers_of_the_earlier_steps():
    example = net(op("add", "c", x="a", y="b"), op("mul", "e", x="c", y="d"))
    scope = run(example, {"a": 2.0, "b": 3.0, "d": 4.0}, seed="e")
    assert (scope["e"], [scope[f"{n}@GRAD"] for n in "abd"]) == (20.0, [4.0, 4.0, 5.0])
    chain = net(op("square", "a", x="x"), op("exp", "b", x="a"), op("square", "y", x="b"))
    assert str(run(chain, {"x": np.array(0.5)})["x@GRAD"]) == "3.297442541400256"
    product = net(op("square", "p", x="x"), op("square", "q", x="w"), op("add", "y", x="p", y="q"))
    scope = run(product, {"x": 2.0, "w": 3.0})
    assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == (13.0, 4.0, 6.0)


def test_reuse_on_one_path_and_on_several():
    assert run(op("add", "y", x="x", y="x"), {"x": 3.0})["x@GRAD"] == 2
    thrice = net(op("add", "t", x="x", y="x"), op("add", "y", x="t", y="x"))
    assert run(thrice, {"x": 3.0})["x@GRAD"] == 3
    assert run(op("mul", "y", x="x", y="x"), {"x": 3.0})["x@GRAD"] == 6
    assert run(diamond(), {"x": 2.0})["x@GRAD"] == 64


def test_fifty_doublings_at_once():
    doublings = net(*[op("add", f"v{k + 1}", x=f"v{k}", y=f"v{k}") for k in range(50)])
    assert run(doublings, {"v0": 1.0}, seed="v50")["v0@GRAD"] == 2**50


def test_the_sum_stands_directly_behind_the_last_writer():
    grads = lines(step.backward(diamond()))
    assert grads[1:] == [
        "a@GRAD@RENAME@0 = square_grad(x=a, out_grad=c@GRAD)",
        "a@GRAD@RENAME@1 = square_grad(x=a, out_grad=b@GRAD)",
        "a@GRAD = sum(x=[a@GRAD@RENAME@0, a@GRAD@RENAME@1])",
        "x@GRAD = square_grad(x=x, out_grad=a@GRAD)",
    ]


def test_the_mistake_a_sum_at_the_end_comes_too_late_for_a_reader():
    late = step.mirror(diamond(), set(), {"y@GRAD"})
    late.ops[1].outputs["x_grad"] = ["a@GRAD@RENAME@0"]
    late.ops[2].outputs["x_grad"] = ["a@GRAD@RENAME@1"]
    scope = step.Scope({"x": 2.0, "y@GRAD": 1.0})
    diamond().run(scope)
    with pytest.raises(NameError, match="'a@GRAD' has no value"):
        late.run(scope)


def test_three_users_give_three_parts_and_one_sum():
    users = [op("mul", f"y{k}", x=f"x{k}", y="W") for k in (1, 2, 3)]
    grads = lines(
        step.backward(net(*users, op("add", "t", x="y1", y="y2"), op("add", "y", x="t", y="y3")))
    )
    assert sum("RENAME" in line.split(" = ")[0] for line in grads) == 3
    parts = ", ".join(f"W@GRAD@RENAME@{k}" for k in range(3))
    assert [line for line in grads if "sum(" in line] == [f"W@GRAD = sum(x=[{parts}])"]


def test_one_list_slot_that_writes_a_name_twice_gives_two_parts():
    made = net(step.Operator("split", {"x": "x"}, {"out": ["p", "p"]}))
    step.add_up(made)
    assert lines(made) == [
        "[p@RENAME@0, p@RENAME@1] = split(x=x)",
        "p = sum(x=[p@RENAME@0, p@RENAME@1])",
    ]


def test_a_missing_gradient_of_a_used_operator_is_a_zero_right_before_its_reader():
    assert lines(step.backward(halves(), {"b"})) == [
        "a@GRAD = square_grad(x=a, out_grad=y@GRAD)",
        "b@ZERO = fill_zeros_like(x=b)",
        "x@GRAD = split_grad(out_grad=[a@GRAD, b@ZERO])",
    ]
    scope = step.Scope({"x": np.arange(1.0, 5.0), "y@GRAD": np.ones(2)})
    halves().run(scope)
    step.backward(halves(), {"b"}).run(scope)
    assert scope["x@GRAD"].tolist() == [2.0, 4.0, 0.0, 0.0]


def test_the_mistake_without_zeros_the_reader_finds_nothing():
    scope = step.Scope({"x": np.arange(1.0, 5.0), "y@GRAD": np.ones(2)})
    halves().run(scope)
    with pytest.raises(NameError, match="'b@GRAD' has no value"):
        step.mirror(halves(), set(), {"y@GRAD"}).run(scope)


def test_what_leaves_the_net_gets_its_gradient_from_outside():
    assert lines(step.backward(halves())) == [
        "a@GRAD = square_grad(x=a, out_grad=y@GRAD)",
        "x@GRAD = split_grad(out_grad=[a@GRAD, b@GRAD])",
    ]


def test_a_gradient_that_is_given_from_outside_is_not_zero():
    both = net(step.Operator("split", {"x": "x"}, {"out": ["a", "b"]}))
    scope = step.Scope({"x": np.arange(4.0), "a@GRAD": np.ones(2), "b@GRAD": np.full(2, 5.0)})
    step.backward(both).run(scope)
    assert scope["x@GRAD"].tolist() == [1.0, 1.0, 5.0, 5.0]


def test_a_single_operator_without_repairs_gives_its_grad_op_at_once():
    mul = op("mul", "e", x="c", y="d")
    assert str(step.backward(mul)) == str(step.build_grad_op(mul))
    assert str(step.backward(mul, {"e"})) == "nop:"
    assert isinstance(step.backward(op("mul", "y", x="x", y="x")), step.NetOp)


def test_a_blocked_path_does_not_block_the_other_one():
    fork = net(op("square", "y", x="x"), op("exp", "z", x="x"))
    scope = step.Scope({"x": 3.0, "y@GRAD": 1.0})
    fork.run(scope)
    step.backward(fork, {"z"}).run(scope)
    assert scope["x@GRAD"] == 6.0


def test_no_gradient_shares_its_memory_with_a_part():
    scope = step.Scope({"x": np.array([2.0, 3.0]), "y@GRAD": np.ones(2)})
    thrice = net(op("add", "t", x="x", y="x"), op("add", "y", x="t", y="x"))
    thrice.run(scope)
    step.backward(thrice).run(scope)
    assert not np.shares_memory(scope["x@GRAD"], scope["y@GRAD"])
    assert scope["y@GRAD"].tolist() == [1.0, 1.0]


def test_a_name_written_twice_is_refused():
    for twice in (net(op("square", "v", x="x"), op("square", "v", x="v")), op("exp", "x", x="x")):
        with pytest.raises(ValueError, match=r"gets a second value in .*; write to a new name"):
            step.backward(twice)


def random_net(seed, inputs=("p", "q", "r")):
    """A net of random operators with shared names, nested at random places."""
    choose = random.Random(seed)
    known, ops = list(inputs), []
    for k in range(choose.randint(2, 9)):
        kind = choose.choice(["add", "mul", "square", "sigmoid"])
        reads = {slot: choose.choice(known[-4:]) for slot in step.OPS[kind].inputs}
        ops.append(op(kind, f"v{k}", **reads))
        known.append(f"v{k}")
    while len(ops) > 3 and choose.random() < 0.7:
        low = choose.randrange(len(ops) - 1)
        high = choose.randint(low + 1, len(ops))
        ops[low:high] = [step.NetOp(ops[low:high])]
    return step.NetOp(ops), known[-1]


@pytest.mark.parametrize("seed", range(60))
def test_random_nests_agree_with_central_differences(seed):
    made, last = random_net(seed)
    start = {"p": 0.3, "q": -0.6, "r": 0.9}
    seeds = {f"{name}@GRAD": float(name == last) for name in made.outputs["out"]}
    scope = step.Scope(start | seeds)
    made.run(scope)
    step.backward(made).run(scope)
    for name in start:
        up, down = (step.Scope(start | {name: start[name] + e}) for e in (1e-5, -1e-5))
        made.run(up)
        made.run(down)
        slope = (up[last] - down[last]) / 2e-5
        assert scope.get(f"{name}@GRAD", 0.0) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_the_pictures_are_the_two_published_figures():
    viz = pytest.importorskip("minigrad.viz")
    raw = viz.draw((shared(), step.mirror(shared(), set(), {"y@GRAD"}))).graph
    assert [n.name for n in raw.nodes.values()].count("W@GRAD") == 2
    assert not any(n.kind in ("sum", "renamed") for n in raw.nodes.values())
    graph = viz.draw((shared(), step.backward(shared()))).graph
    kinds = {n.name: n.kind for n in graph.nodes.values()}
    assert kinds["sum"] == "sum"
    assert [name for name, kind in kinds.items() if kind == "renamed"] == [
        "W@GRAD@RENAME@0",
        "W@GRAD@RENAME@1",
    ]
    assert kinds["W@GRAD"] == "leaf_gradient"


MUTANTS = {
    "nothing is added up": ("        if name == EMPTY or len(found) == 1:", "        if True:"),
    "empty is added up": (
        "        if name == EMPTY or len(found) == 1:",
        "        if len(found) == 1:",
    ),
    "a single writer is renamed": (
        "        if name == EMPTY or len(found) == 1:",
        "        if name == EMPTY:",
    ),
    "numbers from one": ("for k in range(len(found))]", "for k in range(1, len(found) + 1)]"),
    "the first part is forgotten": (
        'Operator("sum", {"x": parts}, {"out": name}))',
        'Operator("sum", {"x": parts[1:]}, {"out": name}))',
    ),
    "the sum stands before the last writer": ("home.ops.index(last) + 1,", "home.ops.index(last),"),
    "the sum stands at the end": (
        "home.ops.insert(home.ops.index(last) + 1, ",
        "home.ops.insert(len(home.ops), ",
    ),
    "the sum stands behind the first writer": (
        "home, last, _, _ = found[-1]",
        "home, last, _, _ = found[0]",
    ),
    "parts in reverse": ("zip(parts, found, strict=True)", "zip(parts[::-1], found, strict=True)"),
    "one place per slot": ("            listed[position] = part", "            listed[0] = part"),
    "nests are not entered": (
        "            waiting += [(op, inner) for inner in reversed(op.ops)]",
        "            pass",
    ),
    "nests backwards": (
        "for inner in reversed(op.ops)]\n        else:",
        "for inner in op.ops]\n        else:",
    ),
    "no zeros": ("    fill_zeros(net, given)\n", ""),
    "given is zero": ("    known = set(given)\n    for home", "    known = set()\n    for home"),
    "what was written is zero": ("        known.update(names(op.outputs))\n", ""),
    "zeros behind the reader": (
        "home.ops.insert(home.ops.index(op), fill)",
        "home.ops.insert(home.ops.index(op) + 1, fill)",
    ),
    "ones instead of zeros": ("np.zeros_like(x)", "np.ones_like(x)"),
    "the sum forgets the last": (
        'register("sum", lambda *x: sum(x))',
        'register("sum", lambda *x: sum(x[:-1]))',
    ),
    "a second value is taken": ("    if again:", "    if False:"),
    "always a net": ("return made if net.ops == [made] else net", "return net"),
    "never a net": ("return made if net.ops == [made] else net", "return made"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_dies(name):
    assert verdict_on(__name__, "step15_shared_names", *MUTANTS[name]).startswith("killed")
