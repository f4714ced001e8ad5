"""Step 17: Program, Block, Op, Variable, and append_backward on a straight line."""

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

step = load("step17_program")

VALUES = {"a": 2.0, "b": 3.0, "d": 4.0}


def product():
    block = step.Program().blocks[0]
    for name in "abd":
        block.create_var(name, persistable=True)
    block.append_op("add", "a", "b", out="c")
    return block.append_op("mul", "c", "d", out="e")


def chain():
    block = step.Program().blocks[0]
    block.create_var("x", persistable=True)
    block.append_op("square", "x", out="a")
    block.append_op("exp", "a", out="b")
    return block.append_op("square", "b", out="y")


def layer():
    block = step.Program().blocks[0]
    block.create_var("x", (3, 2))
    block.create_var("t", (3, 2))
    block.create_var("w", (2, 2), persistable=True)
    block.append_op("matmul", "x", "w", out="p")
    block.append_op("sub", "p", "t", out="r")
    block.append_op("exp", "r", out="q")
    return block.append_op("mean", "q", out="loss")


def seed_of(name):
    return step.Operator("fill_constant", {}, {"out": f"{name}@GRAD"}, {"shape": (), "value": 1.0})


def test_the_running_example():
    loss = product()
    pairs = step.append_backward(loss)
    scope = step.run(loss.block.program, VALUES)
    assert scope["e"] == 20
    assert [scope[gradient.name] for _, gradient in pairs] == [4, 4, 5]
    assert [f"{p.name} {g.name}" for p, g in pairs] == ["a a@GRAD", "b b@GRAD", "d d@GRAD"]


def test_the_chain_of_step_one():
    loss = chain()
    [(_, gradient)] = step.append_backward(loss)
    scope = step.run(loss.block.program, {"x": np.array(0.5)})
    assert np.isclose(scope["y"], 1.648721270700128, rtol=1e-15, atol=0)
    assert np.isclose(scope[gradient.name], 3.297442541400256, rtol=1e-15, atol=0)


def test_the_lines_of_the_program():
    loss = product()
    step.append_backward(loss)
    assert str(loss.block.program).splitlines() == [
        "block 0 (parent -1)",
        "  #0 c = add(x=a, y=b)",
        "  #1 e = mul(x=c, y=d)",
        "  #2 e@GRAD = fill_constant(shape=(), value=1.0)",
        "  #3 c@GRAD, d@GRAD = mul_grad(x=c, y=d, out_grad=e@GRAD)",
        "  #4 a@GRAD, b@GRAD = add_grad(out_grad=c@GRAD)",
    ]


def test_a_grad_op_reads_only_what_its_rules_name():
    step.append_backward(chain_loss := chain())
    grads = [op for op in chain_loss.block.ops if op.type.endswith("_grad")]
    reads = [step.names(op.inputs) for op in grads]
    assert reads == [["b", "y@GRAD"], ["b", "b@GRAD"], ["x", "a@GRAD"]]


def test_every_rule_agrees_with_finite_differences():
    loss = layer()
    step.append_backward(loss)
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=loss.block.var(name).shape) for name in "xtw"}
    scope = step.run(loss.block.program, values)
    for name in values:
        expected = slopes(loss, values, name)
        np.testing.assert_allclose(scope[f"{name}@GRAD"], expected, rtol=1e-6, atol=1e-8)


def slopes(loss, values, name, eps=1e-6):
    """Central differences of the loss for every element of one value."""
    found = np.zeros_like(values[name])
    for at in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = values[name].copy()
            moved[at] += sign * eps
            ends.append(step.run(loss.block.program, values | {name: moved})[loss.name])
        found[at] = (ends[0] - ends[1]) / (2 * eps)
    return found


def test_the_rules_of_each_op_agree_with_finite_differences():
    apart = {"matmul", "rowwise_add", "split"}  # of other shapes; in the tests of 14, 15 and here
    types = {type for type, info in step.OPS.items() if info.grad} - apart
    assert len(types) == 9
    for type in types:
        check_rule(type)


def check_rule(type):
    block = step.Program().blocks[0]
    names = step.find(type).inputs
    for name in names:
        block.create_var(name, (2,), persistable=True)
    out = block.append_op(type, *names, out="out", **({"n": 3} if type == "power" else {}))
    loss = out if out.shape == () else block.append_op("reduce_sum", "out", out="loss")
    step.append_backward(loss)
    values = {name: np.array([0.7, -1.3]) * (k + 1) for k, name in enumerate(names)}
    scope = step.run(block.program, values)
    for name in names:
        expected = slopes(loss, values, name)
        np.testing.assert_allclose(scope[f"{name}@GRAD"], expected, rtol=1e-6, atol=1e-8)


def test_what_is_drawn_as_backward_is_what_ran():
    loss = product()
    step.append_backward(loss)
    ran, real = [], step.Operator.run
    step.Operator.run = lambda op, scope: ran.append(step.names(op.outputs)) or real(op, scope)
    try:
        step.run(loss.block.program, VALUES)
    finally:
        step.Operator.run = real
    assert ran == [["c"], ["e"], ["e@GRAD"], ["c@GRAD", "d@GRAD"], ["a@GRAD", "b@GRAD"]]


def test_the_picture_holds_the_ops_of_the_program_and_their_twins():
    viz = pytest.importorskip("minigrad.viz")
    loss = product()
    step.append_backward(loss)
    graph = viz.draw(loss.block.program).graph
    ops = {node.number: node for node in graph.nodes.values() if node.number is not None}
    assert sorted(ops) == [0, 1, 2, 3, 4]
    assert [ops[k].kind for k in range(5)] == ["op", "op", "seed", "grad_op", "grad_op"]
    assert graph.nodes[ops[3].twin].number == 1
    assert graph.nodes[ops[4].twin].number == 0


def test_a_description_holds_no_number_and_an_execution_leaves_none_behind():
    loss = product()
    before = str(loss.block.program)
    first = step.run(loss.block.program, VALUES)
    second = step.run(loss.block.program, {"a": 1.0, "b": 1.0, "d": 7.0})
    assert (first["e"], second["e"]) == (20, 14)
    assert VALUES == {"a": 2.0, "b": 3.0, "d": 4.0}
    assert str(loss.block.program) == before
    assert not hasattr(loss, "data")


def test_the_mistake_grad_ops_in_forward_order_read_what_is_not_written():
    block = product().block
    block.ops.append(seed_of("e"))
    block.ops += [step.make_grad_op(op) for op in block.ops[:2]]
    with pytest.raises(NameError, match="'c@GRAD' has no value in this scope"):
        step.run(block.program, VALUES)


def test_the_mistake_a_metric_behind_the_loss_gets_a_grad_op_that_starves():
    block = product().block
    block.append_op("square", "e", out="m")
    block.ops += [seed_of("e"), *map(step.make_grad_op, block.ops[2::-1])]
    with pytest.raises(NameError, match="'m@GRAD' has no value in this scope"):
        step.run(block.program, VALUES)


def test_the_note_which_op_a_grad_op_belongs_to_is_for_the_reader_only():
    loss = product()
    step.append_backward(loss)
    assert [op.forward_op for op in loss.block.ops[3:]] == [loss.block.ops[1], loss.block.ops[0]]
    for op in loss.block.ops:
        op.forward_op = None
    scope = step.run(loss.block.program, VALUES)
    assert [scope[f"{name}@GRAD"] for name in "abd"] == [4, 4, 5]


def test_a_missing_value_is_named():
    with pytest.raises(NameError, match="'d' has no value in this scope; it holds: a, b, c"):
        step.run(product().block.program, {"a": 2.0, "b": 3.0})


def test_ops_that_do_not_lead_to_the_loss_are_not_visited():
    loss = product()
    loss.block.append_op("square", "c", out="beside")
    loss.block.append_op("square", "e", out="behind")
    step.append_backward(loss)
    assert [op.type for op in loss.block.ops[4:]] == ["fill_constant", "mul_grad", "add_grad"]


def test_the_grad_ops_stand_in_the_same_block_or_in_the_one_asked_for():
    loss = product()
    other = loss.block.program.create_block(parent=0)
    step.append_backward_ops(loss.block, other, [seed_of("e")])
    assert [op.type for op in other.ops] == ["fill_constant", "mul_grad", "add_grad"]
    assert [op.type for op in loss.block.ops] == ["add", "mul"]


def test_gradient_variables_have_the_shape_of_their_forward_variable():
    loss = layer()
    step.append_backward(loss)
    shapes = {name: v.shape for name, v in loss.block.vars.items()}
    assert {n: s for n, s in shapes.items() if "@" in n} == {
        f"{n}@GRAD": s for n, s in shapes.items() if "@" not in n
    }


def test_the_parameter_list_chooses_the_pairs_and_not_the_ops():
    one, every = product(), product()
    assert [p.name for p, _ in step.append_backward(one, parameter_list=["d"])] == ["d"]
    step.append_backward(every)
    assert str(one.block.program) == str(every.block.program)


def test_only_parameters_are_paired():
    assert [p.name for p, _ in step.append_backward(layer())] == ["w"]


def test_a_parameter_that_does_not_lead_to_the_loss_has_no_pair_and_asking_for_it_is_an_error():
    loss = product()
    loss.block.create_var("u", persistable=True)
    assert [p.name for p, _ in step.append_backward(loss)] == ["a", "b", "d"]
    again = product()
    with pytest.raises(ValueError, match="'u' has no gradient"):
        step.append_backward(again, parameter_list=["u"])


def test_a_loss_that_is_not_a_scalar_is_refused():
    block = step.Program().blocks[0]
    block.create_var("x", (3,), persistable=True)
    with pytest.raises(ValueError, match=r"'y' has shape \(3,\): append a mean or a reduce_sum"):
        step.append_backward(block.append_op("square", "x", out="y"))
    assert len(block.ops) == 1


def test_a_second_backward_part_is_refused():
    loss = product()
    step.append_backward(loss)
    with pytest.raises(ValueError, match="already there"):
        step.append_backward(loss)


def test_names_are_looked_up_in_the_parents():
    program = step.Program()
    x = program.blocks[0].create_var("x", (2,))
    inner = program.create_block(parent=program.create_block(parent=0).idx)
    assert inner.var("x") is x
    with pytest.raises(KeyError, match="no variable 'z' in block 2 or above"):
        inner.var("z")


def test_a_name_is_used_once():
    block = step.Program().blocks[0]
    block.create_var("x")
    with pytest.raises(ValueError, match="already has a variable 'x'"):
        block.create_var("x")


def test_an_unknown_op_type_and_a_missing_input_are_refused():
    block = step.Program().blocks[0]
    block.create_var("x")
    with pytest.raises(LookupError, match="unknown op type 'sqare'; known: add, add_grad, mul"):
        block.append_op("sqare", "x", out="y")
    with pytest.raises(ValueError, match="shorter"):
        block.append_op("mul", "x", out="y")


def test_nothing_shows_an_address():
    loss = product()
    step.append_backward(loss, ["a"])
    assert "0x" not in f"{loss} {loss.block.ops} {loss.block.program!r}"


def test_a_program_that_is_built_once_trains_a_line():
    training = [source for source in cells("step17_program") if "fit = Program()" in source]
    _, printed = run_cells("step17_program", training)
    assert "slope and height: [2. 1.]" in printed


MUTANTS = {
    "no reverse": ("for op in reversed(block.ops):", "for op in block.ops:"),
    "every op is visited": ("if needed & set(names(op.outputs)) and", "if"),
    "needed does not grow": ("needed |= set(names(op.inputs))", "pass"),
    "seed of two": ('    one = {"shape": (), "value": 1.0', '    one = {"shape": (), "value": 2.0'),
    "no seed": ("ops = list(seeds)", "ops = []"),
    "grad ops in the wrong block": ("target_block.ops += ops", "block.ops += ops"),
    "mul keeps its own factor": ("(out_grad * y, out_grad * x)", "(out_grad * x, out_grad * y)"),
    "sub forgets the sign": ("-out_grad", "out_grad"),
    "matmul not transposed": ("x.T @ out_grad", "x @ out_grad"),
    "exp reads its input": ("lambda out, out_grad: out * out_grad", "lambda x, out_grad: x"),
    "mean does not divide": ("out_grad / np.size(x)", "out_grad"),
    "grad op reads everything": ("for slot in reads if slot in forward}", "for slot in forward}"),
    "grad op without its forward op": ("grad_op.forward_op = op", "grad_op.forward_op = None"),
    "scalar not asked for": ("if loss.shape != ():", "if False:"),
    "pairs of every variable": ("if v.persistable]", "]"),
    "parameter_list ignored": ("wanted = parameter_list or", "wanted = None or"),
    "no error for an unreachable one": ("for name in parameter_list or ():", "for name in ():"),
    "gradient variables have no shape": ("block.var(name.removesuffix(GRAD)).shape)", "())"),
    "run writes into what it was given": (
        "scope = Scope(values)",
        "scope = values",
    ),
    "look-ups stop at the block": ("while name not in block.vars:", "while False:"),
    "second backward allowed": ("if loss.name + GRAD in block.vars:", "if False:"),
    "shapes are not those of ones": ("np.shape(ones[name])", "()"),
    "ops run out of order": (
        "program.blocks[0].run(scope)",
        "[op.run(scope) for op in reversed(program.blocks[0].ops)]",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_engine_dies(mutant):
    assert verdict_on(__name__, "step17_program", *MUTANTS[mutant]).startswith("killed"), mutant
