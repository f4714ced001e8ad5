"""Step 18: gradients added up, branches removed, zeros filled, variables created."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

step = load("step18_adjustments")


def block_of(parameters=(), data=()):
    """A new block with scalar or shaped variables: "w" or ("w", (4,))."""
    block = step.Program().blocks[0]
    for names, flag in ((parameters, "persistable"), (data, "stop_gradient")):
        for name in names:
            name, shape = (name, ()) if isinstance(name, str) else name
            block.create_var(name, shape, **{flag: True})
    return block


def shared():
    block = block_of("w", "x")
    block.append_op("mul", "x", "w", out="h")
    return block.append_op("mul", "h", "w", out="y")


def diamond():
    block = block_of("x")
    block.append_op("square", "x", out="a")
    block.append_op("square", "a", out="b")
    block.append_op("square", "a", out="c")
    return block.append_op("add", "b", "c", out="y")


def towers():
    block = block_of([("w", (3,))], [("x", (3,)), ("z", (3,))])
    block.append_op("mul", "x", "w", out="h")
    block.append_op("square", "h", out="s")
    block.append_op("exp", "z", out="c")
    block.append_op("mul", "s", "c", out="m")
    return block.append_op("reduce_sum", "m", out="loss")


def half():
    block = block_of([("w", (4,))])
    block.append_op("split", "w", out="a b")
    block.append_op("square", "a", out="s")
    return block.append_op("reduce_sum", "s", out="loss")


def raw(loss):
    one = {"shape": (), "value": 1.0}
    seed = step.Operator("fill_constant", {}, {"out": f"{loss.name}@GRAD"}, one)
    ops = reversed(loss.block.ops)
    return [seed, *[step.make_grad_op(op) for op in ops if step.find(op.type).grad]]


def summed(loss):
    net = step.NetOp(raw(loss))
    step.add_up(net)
    return net.ops


def reads(op):
    return step.names(op.inputs)


def writes(op):
    return step.names(op.outputs)


def told(dropped):
    return [(op.type, reason) for op, reason in dropped]


def appended(loss, **options):
    start = len(loss.block.ops)
    step.append_backward(loss, **options)
    return [op.type for op in loss.block.ops[start:]]


def gradients(loss, values):
    step.append_backward(loss)
    return step.run(loss.block.program, values)


# ---- the numbers of the earlier steps


def test_the_running_example():
    block = block_of("abd")
    block.append_op("add", "a", "b", out="c")
    scope = gradients(block.append_op("mul", "c", "d", out="e"), {"a": 2.0, "b": 3.0, "d": 4.0})
    assert [scope[name] for name in ("e", "a@GRAD", "b@GRAD", "d@GRAD")] == [20, 4, 4, 5]


def test_the_chain_of_step_one():
    block = block_of("x")
    block.append_op("square", "x", out="a")
    block.append_op("exp", "a", out="b")
    scope = gradients(block.append_op("square", "b", out="y"), {"x": np.array(0.5)})
    assert np.isclose(scope["x@GRAD"], 3.297442541400256, rtol=1e-15, atol=0)


def test_the_two_writers_of_step_13():
    block = block_of("W", ["x1", "x2"])
    block.append_op("mul", "x1", "W", out="y1")
    block.append_op("mul", "x2", "W", out="y2")
    step.append_backward(block.append_op("add", "y1", "y2", out="y"))
    scope = step.run(block.program, {"x1": 2.0, "x2": 5.0, "W": 3.0})
    assert (scope["y"], scope["W@GRAD"]) == (21, 7)


def test_x_plus_x_is_two_and_plus_x_is_three():
    block = block_of("x")
    y = block.append_op("add", "x", "x", out="y")
    assert gradients(y, {"x": 7.0})["x@GRAD"] == 2
    block = block_of("x")
    block.append_op("add", "x", "x", out="y")
    assert gradients(block.append_op("add", "y", "x", out="z"), {"x": 7.0})["x@GRAD"] == 3


def test_the_diamond():
    assert gradients(diamond(), {"x": 2.0})["x@GRAD"] == 64


def test_b_is_a_plus_a_and_c_is_b_plus_b():
    block = block_of("a")
    block.append_op("add", "a", "a", out="b")
    assert gradients(block.append_op("add", "b", "b", out="c"), {"a": 1.0})["a@GRAD"] == 4


# ---- adding up


def test_the_mistake_the_second_writer_overwrites_the_first():
    loss = shared()
    loss.block.ops += raw(loss)
    assert step.run(loss.block.program, {"x": 3.0, "w": 5.0})["w@GRAD"] == 15


def test_a_gradient_written_twice_is_renamed_and_summed():
    loss = shared()
    scope = gradients(loss, {"x": 3.0, "w": 5.0})
    assert scope["w@GRAD"] == 30
    assert str(loss.block.program).splitlines()[4:] == [
        "  #3 h@GRAD, w@GRAD@RENAME@0 = mul_grad(x=h, y=w, out_grad=y@GRAD)",
        "  #4 @EMPTY@, w@GRAD@RENAME@1 = mul_grad(x=x, y=w, out_grad=h@GRAD)",
        "  #5 w@GRAD = sum(x=[w@GRAD@RENAME@0, w@GRAD@RENAME@1])",
    ]


def test_a_sum_stands_right_behind_the_last_writer_and_so_before_the_first_reader():
    assert appended(diamond()) == [
        "fill_constant",
        "add_grad",
        "square_grad",
        "square_grad",
        "sum",
        "square_grad",
    ]


def test_the_mistake_a_sum_at_the_end_comes_too_late():
    loss = diamond()
    added = summed(loss)
    sums = [op for op in added if op.type == "sum"]
    loss.block.ops += [*[op for op in added if op not in sums], *sums]
    with pytest.raises(NameError, match="'a@GRAD' has no value"):
        step.run(loss.block.program, {"x": 2.0})


def test_k_writers_give_k_parts_and_one_sum_of_k():
    for k in range(2, 6):
        block = block_of("w")
        names = [block.append_op("square", "w", out=f"s{i}").name for i in range(k)]
        total = names[0]
        for i, name in enumerate(names[1:]):
            total = block.append_op("add", total, name, out=f"t{i}").name
        scope = gradients(block.var(total), {"w": 3.0})
        sums = [op for op in block.ops if op.type == "sum"]
        assert [reads(op) for op in sums] == [[f"w@GRAD@RENAME@{i}" for i in range(k)]]
        assert scope["w@GRAD"] == 6 * k


def test_one_writer_needs_neither_parts_nor_sum():
    assert not any("RENAME" in name or name == "sum" for name in appended(half()))


def test_pruning_leaves_the_list_it_was_given_alone():
    ops = raw(shared())
    before = [str(op) for op in ops]
    step.remove_no_grad_branch(ops, {"x"})
    assert [str(op) for op in ops] == before


# ---- pruning


def test_rule_one_an_op_that_writes_nothing_wanted_is_dropped():
    _, dropped = step.remove_no_grad_branch(raw(towers()), {"x", "z"})
    assert told(dropped) == [("exp_grad", "nobody wants what it writes")]


def test_rule_two_an_op_that_gets_only_zeros_is_dropped_and_it_cascades():
    ops, dropped = step.remove_no_grad_branch(raw(towers()), {"x", "z", "s"})
    assert [op.type for op in ops] == ["fill_constant", "reduce_sum_grad", "mul_grad"]
    assert told(dropped[1:]) == [
        ("square_grad", "only zeros come in"),
        ("mul_grad", "only zeros come in"),
    ]


def test_an_op_that_stays_writes_only_what_is_wanted():
    ops, _ = step.remove_no_grad_branch(raw(towers()), {"x", "z"})
    assert ops[-1].outputs == {"x_grad": ["@EMPTY@"], "y_grad": ["w@GRAD"]}


def test_a_list_keeps_its_places_and_a_given_gradient_counts_as_made():
    grad = step.Operator.__new__(step.Operator)
    grad.type, grad.inputs, grad.attrs = "loop_grad", {"out_grad": ["y@GRAD"]}, {}
    grad.outputs = {"x_grad": ["a@GRAD", "b@GRAD", "c@GRAD"]}
    [left], dropped = step.remove_no_grad_branch([grad], {"b"}, given={"y@GRAD"})
    assert left.outputs == {"x_grad": ["a@GRAD", "@EMPTY@", "c@GRAD"]}
    assert not dropped
    assert step.remove_no_grad_branch([grad], {"b"})[0] == []
    block = block_of("ac")
    block.ops = [left]
    assert step.append_backward_vars(block, 0) == {"a": "a@GRAD", "c": "c@GRAD"}
    assert "@EMPTY@" not in block.vars


def test_a_blocked_parameter_has_no_pair():
    assert [p.name for p, _ in step.append_backward(towers(), no_grad_set=["w"])] == []
    assert [p.name for p, _ in step.append_backward(towers(), no_grad_set={"h"})] == []


def test_data_that_is_read_twice_leaves_no_parts_behind():
    block = block_of("w", "x")
    block.append_op("mul", "x", "w", out="h")
    assert appended(block.append_op("mul", "h", "x", out="y")) == [
        "fill_constant",
        "mul_grad",
        "mul_grad",
    ]
    assert [writes(op) for op in block.ops[3:]] == [["h@GRAD", "@EMPTY@"], ["@EMPTY@", "w@GRAD"]]


def test_a_branch_that_leads_elsewhere_leaves_no_trace():
    loss = shared()
    loss.block.append_op("square", "h", out="elsewhere")
    assert appended(loss) == ["fill_constant", "mul_grad", "mul_grad", "sum"]


def test_an_unknown_name_in_the_no_grad_set_is_an_error():
    with pytest.raises(KeyError, match="no variable 'q'"):
        step.append_backward(shared(), no_grad_set={"q"})


# ---- zeros


def test_an_unused_output_gets_a_zero_right_before_its_reader():
    loss = half()
    scope = gradients(loss, {"w": np.array([1.0, 2.0, 3.0, 4.0])})
    assert scope["w@GRAD"].tolist() == [2, 4, 0, 0]
    types = [op.type for op in loss.block.ops]
    assert types[-2:] == ["fill_zeros_like", "split_grad"]
    assert reads(loss.block.ops[-2]) == ["b"]


def test_the_mistake_without_the_zero_a_name_is_read_that_nobody_wrote():
    loss = half()
    step.append_backward(loss)
    loss.block.ops = [op for op in loss.block.ops if op.type != "fill_zeros_like"]
    with pytest.raises(NameError, match="'b@GRAD' has no value"):
        step.run(loss.block.program, {"w": np.arange(4.0)})


def test_a_part_that_is_missing_in_a_sum_is_a_zero():
    loss = shared()
    step.append_backward(loss, no_grad_set={"h"})
    scope = step.run(loss.block.program, {"x": 3.0, "w": 5.0})
    assert scope["w@GRAD"] == 15  # h counts as a constant
    assert scope["w@GRAD@RENAME@1"] == 0


# ---- variables


def test_every_gradient_gets_a_variable_in_the_shape_of_its_forward_variable():
    loss = towers()
    step.append_backward(loss)
    written = {name for op in loss.block.ops for name in writes(op)} - {"@EMPTY@"}
    assert written <= set(loss.block.vars)
    assert all(
        loss.block.vars[name].shape == loss.block.var(name.split("@")[0]).shape for name in written
    )


def test_variables_are_created_from_the_given_op_on():
    loss = shared()
    loss.block.ops += raw(loss)
    start = len(loss.block.ops) - 1
    assert step.append_backward_vars(loss.block, start) == {"x": "x@GRAD", "w": "w@GRAD"}
    assert "h@GRAD" not in loss.block.vars


def test_the_errors_of_step_17_are_still_there():
    block = block_of([("w", (3,))])
    with pytest.raises(ValueError, match="must be a scalar"):
        step.append_backward(block.append_op("square", "w", out="y"))
    loss = shared()
    with pytest.raises(ValueError, match="'x' has no gradient"):
        step.append_backward(loss, parameter_list=["x"])
    with pytest.raises(ValueError, match="already there"):
        step.append_backward(loss)


# ---- random networks against finite differences, and the picture


def network(seed):
    """A random network of 3 to 9 ops over vectors, with reuse, unused outputs and data."""
    rng = np.random.default_rng(seed)
    block = block_of([("w", (4,)), ("u", (2,))], [("x", (4,))])
    sizes = {4: ["w", "x"], 2: ["u"]}
    for k in range(rng.integers(3, 10)):
        size = int(rng.choice([2, 4]))
        pick = [str(rng.choice(sizes[size])) for _ in range(2)]
        kind = rng.integers(5)
        if kind == 0 and size == 4:
            block.append_op("split", pick[0], out=f"a{k} b{k}")
            sizes[2] += [f"a{k}", f"b{k}"]
        else:
            type = ["square", "mul", "add", "sub", "mul"][kind]
            block.append_op(type, *pick[: 1 if type == "square" else 2], out=f"v{k}")
            sizes[size].append(f"v{k}")
    block.append_op("mean", sizes[4][-1], out="mean4")
    block.append_op("mean", sizes[2][-1], out="mean2")
    return block.append_op("add", "mean4", "mean2", out="loss")


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_agree_with_finite_differences(seed):
    check_network(seed)


def test_the_first_random_networks_agree_with_finite_differences():
    for seed in range(6):
        check_network(seed)


def check_network(seed):
    loss = network(seed)
    rng = np.random.default_rng(seed)
    values = {"w": rng.uniform(-1, 1, 4), "u": rng.uniform(-1, 1, 2), "x": rng.uniform(-1, 1, 4)}
    pairs = step.append_backward(loss)
    scope = step.run(loss.block.program, values)

    def measured(name, at, eps=1e-6):
        ends = []
        for sign in (1, -1):
            moved = values[name].copy()
            moved[at] += sign * eps
            ends.append(step.run(loss.block.program, values | {name: moved})["loss"])
        return (ends[0] - ends[1]) / (2 * eps)

    for parameter, gradient in pairs:
        slopes = [measured(parameter.name, at) for at in range(len(values[parameter.name]))]
        np.testing.assert_allclose(scope[gradient.name], slopes, rtol=1e-5, atol=1e-7)
    assert "x@GRAD" not in scope
    read = {name for op in loss.block.ops for name in reads(op)}
    assert {name for name in read if "@" in name} <= set(scope)


def test_the_picture_shows_parts_sum_zeros_and_what_was_pruned():
    viz = pytest.importorskip("minigrad.viz")
    loss = shared()
    step.append_backward(loss)
    nodes = viz.draw(loss.block.program).graph.nodes.values()
    assert sum(node.kind == "renamed" for node in nodes) == 2
    assert sum(node.kind == "sum" for node in nodes) == 1
    loss = half()
    step.append_backward(loss)
    nodes = viz.draw(loss.block.program).graph.nodes.values()
    assert sorted(node.kind for node in nodes if node.kind.startswith("zero")) == ["zero", "zeros"]
    loss = towers()
    ops, dropped = step.remove_no_grad_branch(raw(loss), {"x", "z"})
    loss.block.ops += ops
    loss.block.program.pruned = [(op.type, reason, op.forward_op) for op, reason in dropped]
    nodes = viz.draw(loss.block.program, detail="pruned").graph.nodes.values()
    assert [node.name for node in nodes if node.kind == "pruned"] == ["exp_grad"]


def test_the_lists_the_notebook_shows_are_those_the_engine_makes():
    shown = [
        source
        for source in cells("step18_adjustments")
        if "def raw(loss)" in source or "def everything" in source
    ]
    helpers = [
        source.split("explore(passes")[0].replace("import minigrad as mg", "") for source in shown
    ]
    space, _ = run_cells("step18_adjustments", helpers)
    loss = space["everything"]()
    added = space["summed"](loss)
    pruned, _ = space["remove_no_grad_branch"](added, {"z"})
    space["append_backward"](loss)
    assert [str(op) for op in loss.block.ops[5:]] == [str(op) for op in pruned]


MUTANTS = {
    "parts are not counted": ('f"{name}@RENAME@{k}" for k', 'f"{name}@RENAME@0" for k'),
    "parts are not added up": ("    add_up(block)\n", ""),
    "a sum of the first part only": (
        'Operator("sum", {"x": parts}',
        'Operator("sum", {"x": parts[:1]}',
    ),
    "parts are wanted": ('name.split("@RENAME")[0] in unwanted', "name in unwanted"),
    "rule one is off": ("if not wanted:", "if False:"),
    "rule two is off": ("if gradients and len(missing) == len(gradients):", "if False:"),
    "rule two with one zero": ("if gradients and len(missing) == len(gradients):", "if missing:"),
    "no zeros": ("        for name in missing:\n", "        for name in ():\n"),
    "unwanted outputs stay": ("[-1].outputs = outputs", "[-1].outputs = op.outputs"),
    "the seed is dropped": ("if gradients and len(missing)", "if len(missing)"),
    "pruned outputs count as made": (
        '            dropped.append((op, "only',
        '            made |= set(names(op.outputs))\n            dropped.append((op, "only',
    ),
    "nothing is given": ("made, result, dropped = set(given)", "made, result, dropped = set()"),
    "places are lost": (
        "for name in listed] for slot, listed in op.outputs.items()}\n        wanted",
        "for name in listed[:1]] for slot, listed in op.outputs.items()}\n        wanted",
    ),
    "empty gets a variable": ("if name == EMPTY:", "if False:"),
    "stop_gradient ignored": ("if v.stop_gradient}", "if False}"),
    "no_grad_set ignored": ("for name in no_grad_set}", "for name in ()}"),
    "unreached ops are visited": (
        "        if needed & set(names(op.outputs)) and find(op.type).grad:\n            needed",
        "        if find(op.type).grad:\n            needed",
    ),
    "not reversed": ("for op in reversed(block.ops):", "for op in block.ops:"),
    "variables from the first op on": ("for op in block.ops[start:]:", "for op in block.ops:"),
    "variables without shape": (
        "block.create_var(name, home.var(forward).shape)",
        "block.create_var(name, ())",
    ),
    "a zero is one": ("np.zeros_like(x)", "np.ones_like(x)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_engine_dies(mutant):
    assert verdict_on(__name__, "step18_adjustments", *MUTANTS[mutant]).startswith("killed"), mutant
