"""Step 19: loops and branches, differentiated by the step's own code."""

import re
from functools import cache

import numpy as np
import pytest
from literate import cells, load, run_cells, verdict_on

step = load("step19_sub_blocks")


CELLS = cells("step19_sub_blocks")


@cache
def demonstration(name):
    """The code of the cell that defines a function, up to where it is used."""
    [source] = [source for source in CELLS if f"def {name}(" in source]
    return compile(re.split(r"\n\n\ny = ", source)[0], name, "exec")


def notebook(name):
    """A function of a demonstration cell, on the definitions under test."""
    space = dict(vars(step))
    for wanted in {"hold", name}:
        exec(demonstration(wanted), space)
    return space[name]


def block_of(parameters=(), data=()):
    block = step.Program().blocks[0]
    for names, flag in ((parameters, "persistable"), (data, "stop_gradient")):
        for name in names:
            block.create_var(name, **{flag: True})
    return block


def counted(main, state, write_body, also=()):
    """A loop of n steps: state maps a carried name to (start, following, end)."""
    main.append_op("less_than", "zero", "n", out=f"any_{len(main.ops)}")
    body = main.program.create_block(parent=main.idx)
    for name in [*state, *also]:
        body.create_var(name)
    body.create_var("i", stop_gradient=True)
    body.create_var("more", stop_gradient=True)
    write_body(body)
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")
    at = len(main.ops)
    counters = {
        "i": ("zero", "i_next", f"steps_{at}"),
        "more": (f"any_{at - 1}", "more_next", f"rest_{at}"),
    }
    return notebook("hold")(main, "while", "more", state | counters, sub_block=body)


def measured(loss, values, name, eps=1e-6):
    ends = [
        step.run(loss.block.program, values | {name: values[name] + sign * eps})[loss.name]
        for sign in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * eps)


def check_against_measured_slopes(loss, values, names):
    for name in names:
        scope = step.run(loss.block.program, values)
        np.testing.assert_allclose(
            scope[f"{name}@GRAD"], measured(loss, values, name), rtol=1e-6, atol=1e-7, err_msg=name
        )


def power(n, x=2.0, w=3.0):
    y = notebook("power")()
    step.append_backward(y)
    return y, step.run(y.block.program, {"x": x, "w": w, "n": n, "zero": 0})


# ---- the numbers of the earlier steps


def test_the_running_example():
    block = block_of("abd")
    block.append_op("add", "a", "b", out="c")
    step.append_backward(block.append_op("mul", "c", "d", out="e"))
    scope = step.run(block.program, {"a": 2.0, "b": 3.0, "d": 4.0})
    assert [scope[name] for name in ("e", "a@GRAD", "b@GRAD", "d@GRAD")] == [20, 4, 4, 5]


def test_the_chain_of_step_one_and_the_diamond():
    block = block_of("x")
    block.append_op("square", "x", out="a")
    block.append_op("exp", "a", out="b")
    step.append_backward(block.append_op("square", "b", out="y"))
    gradient = step.run(block.program, {"x": np.array(0.5)})["x@GRAD"]
    assert np.isclose(gradient, 3.297442541400256, rtol=1e-15, atol=0)
    block = block_of("x")
    block.append_op("square", "x", out="a")
    block.append_op("square", "a", out="b")
    block.append_op("square", "a", out="c")
    step.append_backward(block.append_op("add", "b", "c", out="y"))
    assert step.run(block.program, {"x": 2.0})["x@GRAD"] == 64


def test_the_two_writers_of_step_13():
    block = block_of("W", ["x1", "x2"])
    block.append_op("mul", "x1", "W", out="y1")
    block.append_op("mul", "x2", "W", out="y2")
    step.append_backward(block.append_op("add", "y1", "y2", out="y"))
    scope = step.run(block.program, {"x1": 2.0, "x2": 5.0, "W": 3.0})
    assert (scope["y"], scope["W@GRAD"]) == (21, 7)


# ---- a loop


@pytest.mark.parametrize("n", range(7))
def test_x_times_w_to_the_n(n):
    _, scope = power(n)
    assert scope["y"] == 2 * 3**n
    assert scope["x@GRAD"] == 3**n
    assert scope["w@GRAD"] == (n * 2 * 3 ** (n - 1) if n else 0)
    assert len(scope["step_scopes_1"]) == n


def test_three_steps_and_none():
    _, scope = power(3)
    assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == (54, 27, 54)
    _, scope = power(0)
    assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == (2, 1, 0)


def test_each_step_keeps_its_own_values():
    _, scope = power(3)
    assert [s["s"] for s in scope["step_scopes_1"]] == [2, 6, 18]
    assert [s["s_next"] for s in scope["step_scopes_1"]] == [6, 18, 54]
    assert [s["s_next@GRAD"] for s in scope["step_scopes_1"]] == [9, 3, 1]
    assert [s["w@GRAD"] for s in scope["step_scopes_1"]] == [18, 18, 18]
    assert not {"s", "s_next", "@EMPTY@"} & set(scope)


def test_the_mistake_one_scope_for_all_steps():
    y, scope = power(3)
    scope["step_scopes_1"] = [scope["step_scopes_1"][-1]] * 3
    y.block.ops[-1].run(scope)
    assert scope["w@GRAD"] == 234


def test_the_lines_of_the_program():
    y, _ = power(3)
    assert re.sub(r", sub_block.*\)", ", …)", str(y.block.program)).splitlines() == [
        "block 0 (parent -1)",
        "  #0 any = less_than(x=zero, y=n)",
        "  #1 [y, count, rest], step_scopes_1 = while(x=[x, zero, any], shared=[w, n], …)",
        "  #2 y@GRAD = fill_constant(shape=(), value=1.0)",
        "  #3 x@GRAD, [w@GRAD, @EMPTY@] = while_grad(shared=[w, n], step_scopes=step_scopes_1, "
        "out_grad=y@GRAD, …)",
        "block 1 (parent 0)",
        "  #0 s_next = mul(x=s, y=w)",
        "  #1 i_next = increment(x=i)",
        "  #2 more_next = less_than(x=i_next, y=n)",
        "block 2 (parent 0)",
        "  #0 s_next@GRAD = assign(x=y@GRAD)",
        "  #1 s@GRAD, w@GRAD = mul_grad(x=s, y=w, out_grad=s_next@GRAD)",
    ]


def test_a_grad_block_has_two_links_its_parent_and_its_forward_block():
    blocks = power(1)[0].block.program.blocks
    assert [(b.parent, b.forward_block) for b in blocks] == [(-1, -1), (0, -1), (0, 1)]
    y = notebook("nested")()
    step.append_backward(y)
    assert [(b.parent, b.forward_block) for b in y.block.program.blocks] == [
        (-1, -1),
        (0, -1),
        (1, -1),
        (1, -1),
        (0, 1),
        (4, 2),
        (4, 3),
    ]


def test_the_note_which_op_a_grad_op_belongs_to_is_for_the_reader_only():
    y = notebook("nested")()
    step.append_backward(y)
    values = {"x": 2.0, "w": 1.5, "n": 6, "zero": 0, "limit": 5.0}
    before = step.run(y.block.program, values)["w@GRAD"]
    for block in y.block.program.blocks:
        for op in block.ops:
            op.forward_op = None
    assert step.run(y.block.program, values)["w@GRAD"] == before


def test_gradient_variables_are_local_to_their_grad_block():
    blocks = power(1)[0].block.program.blocks
    assert {"s_next@GRAD", "s@GRAD", "w@GRAD"} == {n for n in blocks[2].vars if "@" in n}
    assert {"y@GRAD", "x@GRAD", "w@GRAD"} == {n for n in blocks[0].vars if "@" in n}
    assert not any("@" in name for name in blocks[1].vars)


def test_a_loop_that_never_ends_says_so():
    y = notebook("power")()
    with pytest.raises(RuntimeError, match="while made 10000 steps: does 'more' ever become"):
        step.run(y.block.program, {"x": 1.0, "w": 1.0, "n": np.inf, "zero": 0})


def test_fifty_steps():
    _, scope = power(50, w=1.0)
    assert (scope["y"], scope["w@GRAD"]) == (2, 100)


def test_a_carried_value_may_be_called_like_the_data_it_starts_from():
    main = block_of("w", ["n", "zero", "s"])
    y = counted(
        main,
        {"s": ("s", "s_next", "y")},
        lambda body: body.append_op("mul", "s", "w", out="s_next"),
    )
    step.append_backward(y)
    scope = step.run(main.program, {"w": 3.0, "n": 4, "zero": 0, "s": 1.0})
    assert scope["w@GRAD"] == 4 * 3**3


def test_inside_a_block_no_gradient_is_made_for_data():
    def write_body(body):
        body.create_var("c", stop_gradient=True)
        body.append_op("mul", "s", "c", out="m")
        body.append_op("mul", "m", "d", out="k")
        body.append_op("mul", "k", "w", out="s_next")
        body.append_op("add", "c", "d", out="c_next")

    main = block_of("w", ["n", "zero", "d", "one"])
    main.append_op("less_than", "zero", "n", out="any")
    body = main.program.create_block(parent=0)
    for name, flag in (("s", False), ("i", True), ("more", True)):
        body.create_var(name, stop_gradient=flag)
    write_body(body)
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")
    y = notebook("hold")(
        main,
        "while",
        "more",
        {
            "s": ("one", "s_next", "y"),
            "c": ("one", "c_next", "c_end"),
            "i": ("zero", "i_next", "count"),
            "more": ("any", "more_next", "rest"),
        },
        sub_block=body,
    )
    step.append_backward(y)
    ops = main.program.blocks[2].ops
    written = {name for op in ops for name in step.names(op.outputs)} - {"@EMPTY@"}
    assert written == {"s_next@GRAD", "k@GRAD", "w@GRAD", "m@GRAD", "s@GRAD"}
    check_against_measured_slopes(y, {"w": 1.5, "n": 3, "zero": 0, "d": 0.5, "one": 1.0}, "w")


def test_the_start_may_be_data_while_the_carried_value_has_a_gradient():
    main = block_of("w", ["n", "zero", "one"])
    y = counted(
        main,
        {"p": ("one", "p_next", "y")},
        lambda body: body.append_op("mul", "p", "w", out="p_next"),
    )
    step.append_backward(y)
    scope = step.run(main.program, {"w": 3.0, "n": 4, "zero": 0, "one": 1.0})
    assert scope["w@GRAD"] == 4 * 3**3
    assert "one@GRAD" not in scope


def test_the_start_may_be_shared_as_well():
    main = block_of("w", ["n", "zero"])
    y = counted(
        main,
        {"p": ("w", "p_next", "y")},
        lambda body: body.append_op("mul", "p", "w", out="p_next"),
    )
    step.append_backward(y)
    scope = step.run(main.program, {"w": 3.0, "n": 4, "zero": 0})
    assert scope["w@GRAD"] == 5 * 3**4


def test_a_value_handed_on_that_is_also_read_in_the_step():
    def write_body(body):
        body.append_op("mul", "s", "w", out="s_next")
        body.append_op("add", "total", "s_next", out="total_next")

    main = block_of("wx", ["n", "zero", "nought"])
    counted(
        main,
        {"s": ("x", "s_next", "s_end"), "total": ("nought", "total_next", "total_end")},
        write_body,
    )
    loss = main.append_op("mul", "s_end", "total_end", out="loss")
    step.append_backward(loss)
    values = {"w": 1.3, "x": 0.7, "n": 4, "zero": 0, "nought": 0.0}
    check_against_measured_slopes(loss, values, "wx")


def test_a_gradient_of_the_same_name_outside_does_not_leak_in():
    main = block_of("wxs", ["n", "zero"])
    y = counted(
        main, {"s": ("x", "s_next", "y")}, lambda body: body.append_op("assign", "w", out="s_next")
    )
    loss = main.append_op("mul", y.name, "s", out="loss")
    step.append_backward(loss)
    values = {"w": 1.5, "x": 0.7, "s": 2.0, "zero": 0}
    for n, expected in ((0, (0, 2, 0.7)), (2, (2, 0, 1.5))):
        scope = step.run(main.program, values | {"n": n})
        assert [scope[f"{name}@GRAD"] for name in "wxs"] == list(expected)


def test_only_one_of_two_carried_values_is_used():
    def write_body(body):
        body.append_op("mul", "a", "b", out="a_next")
        body.append_op("add", "b", "w", out="b_next")

    main = block_of("wxv", ["n", "zero"])
    a = counted(main, {"a": ("x", "a_next", "a_end"), "b": ("v", "b_next", "b_end")}, write_body)
    step.append_backward(a)
    check_against_measured_slopes(a, {"w": 1.1, "x": 0.7, "v": 0.4, "n": 5, "zero": 0}, "wxv")


def test_two_loops_share_a_parameter_and_one_feeds_the_other():
    main = block_of("wx", ["n", "zero"])
    counted(
        main,
        {"s": ("x", "s_next", "h")},
        lambda body: body.append_op("mul", "s", "w", out="s_next"),
    )
    y = counted(
        main,
        {"t": ("h", "t_next", "y")},
        lambda body: body.append_op("sub", "t", "w", out="t_next"),
    )
    step.append_backward(y)
    check_against_measured_slopes(y, {"w": 1.2, "x": 0.8, "n": 3, "zero": 0}, "wx")


def test_a_loop_over_vectors():
    main = step.Program().blocks[0]
    main.create_var("x", (3,), persistable=True)
    main.create_var("w", (3,), persistable=True)
    for name in ("n", "zero"):
        main.create_var(name, stop_gradient=True)
    main.append_op("less_than", "zero", "n", out="any")
    body = main.program.create_block(parent=0)
    body.create_var("s", (3,))
    body.create_var("i", stop_gradient=True)
    body.create_var("more", stop_gradient=True)
    body.append_op("mul", "s", "w", out="s_next")
    body.append_op("increment", "i", out="i_next")
    body.append_op("less_than", "i_next", "n", out="more_next")
    notebook("hold")(
        main,
        "while",
        "more",
        {
            "s": ("x", "s_next", "y"),
            "i": ("zero", "i_next", "count"),
            "more": ("any", "more_next", "rest"),
        },
        sub_block=body,
    )
    step.append_backward(main.append_op("reduce_sum", "y", out="loss"))
    x, w = np.array([1.0, 2.0, -1.0]), np.array([2.0, -1.0, 3.0])
    for n in (0, 3):
        scope = step.run(main.program, {"x": x, "w": w, "n": n, "zero": 0})
        np.testing.assert_allclose(scope["x@GRAD"], w**n)
        np.testing.assert_allclose(scope["w@GRAD"], n * x * w ** max(n - 1, 0))


# ---- a branch


@pytest.mark.parametrize(("x", "expected"), [(3.0, (15, 5, 3)), (-3.0, (9, -6, 0))])
def test_the_branch_not_taken_gives_zero(x, expected):
    y = notebook("branch")()
    step.append_backward(y)
    scope = step.run(y.block.program, {"x": x, "w": 5.0, "zero": 0.0})
    assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == expected


def test_both_branches():
    for x, expected in ((3.0, (15, 5, 3)), (-3.0, (9, -6, 0))):
        y = notebook("branch")()
        step.append_backward(y)
        scope = step.run(y.block.program, {"x": x, "w": 5.0, "zero": 0.0})
        assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == expected
        assert len(scope["step_scopes_1"]) == 1


def test_a_branch_without_else_is_the_identity_when_it_is_not_taken():
    main = block_of("wx", ["zero"])
    main.append_op("less_than", "zero", "x", out="positive")
    yes = main.program.create_block(parent=0)
    yes.create_var("v")
    yes.append_op("mul", "v", "w", out="result")
    y = notebook("hold")(main, "if_else", "positive", {"v": ("x", "result", "y")}, sub_block=yes)
    step.append_backward(y)
    scope = step.run(main.program, {"x": -3.0, "w": 5.0, "zero": 0.0})
    assert (scope["y"], scope["x@GRAD"], scope["w@GRAD"]) == (-3, 1, 0)


# ---- one inside the other


def test_a_branch_inside_a_loop_agrees_with_measured_slopes():
    y = notebook("nested")()
    step.append_backward(y)
    for n in range(8):
        values = {"x": 2.0, "w": 1.5, "n": n, "zero": 0, "limit": 5.0}
        check_against_measured_slopes(y, values, "xw")


def test_a_loop_inside_a_loop_agrees_with_measured_slopes():
    def inner(body):
        counted(
            body,
            {"t": ("s", "t_next", "s_next")},
            lambda deep: deep.append_op("mul", "t", "w", out="t_next"),
        )

    main = block_of("xw", ["n", "zero"])
    y = counted(
        main,
        {"s": ("x", "s_end", "y")},
        lambda body: (inner(body), body.append_op("add", "s_next", "w", out="s_end")),
    )
    step.append_backward(y)
    for n in range(4):
        check_against_measured_slopes(y, {"x": 0.9, "w": 1.1, "n": n, "zero": 0}, "xw")


def random_program(seed):
    """Loops and branches in each other, with a random straight line inside."""
    rng = np.random.default_rng(seed)
    hold = notebook("hold")
    main = block_of("xwu", ["n", "zero", "limit"])

    def line(block, names, prefix):
        """Append 1 to 4 ops; return the name of the last."""
        names = list(names)
        for k in range(rng.integers(1, 5)):
            type = str(rng.choice(["add", "sub", "mul", "assign"]))
            pick = [str(rng.choice(names[-3:])), str(rng.choice(["w", "u", *names]))]
            out = block.append_op(type, *pick[: 1 if type == "assign" else 2], out=f"{prefix}{k}")
            names.append(out.name)
        return names[-1]

    def write(block, state, depth, prefix):
        """Append a random body that ends in a name; perhaps with a loop or a branch."""
        last = line(block, [state], f"{prefix}l")
        kind = rng.integers(3) if depth < 2 else 0
        if kind == 1:
            block.append_op("less_than", last, "limit", out=f"{prefix}small")
            held = [block.program.create_block(parent=block.idx) for _ in range(2)]
            for branch in held:
                branch.create_var(f"{prefix}v")
                result = write(branch, f"{prefix}v", depth + 1, f"{prefix}v")
                branch.append_op("assign", result, out=f"{prefix}r")
            state = {f"{prefix}v": (last, f"{prefix}r", f"{prefix}b")}
            hold(block, "if_else", f"{prefix}small", state, sub_block=held[0], else_block=held[1])
            last = line(block, [f"{prefix}b"], f"{prefix}m")
        elif kind == 2:
            start = last
            ends = []

            def body(inner):
                ends.append(write(inner, f"{prefix}s", depth + 1, f"{prefix}s"))
                inner.append_op("assign", ends[0], out=f"{prefix}e")

            counted(block, {f"{prefix}s": (start, f"{prefix}e", f"{prefix}o")}, body)
            last = line(block, [f"{prefix}o"], f"{prefix}n")
        return last

    last = write(main, "x", 0, "k")
    return main.append_op("assign", last, out="loss")


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_and_branches_agree_with_measured_slopes(seed):
    check_random(seed)


def test_the_first_random_programs_agree_with_measured_slopes():
    for seed in range(6):
        check_random(seed)


def check_random(seed):
    loss = random_program(seed)
    values = {"x": 0.31, "w": 0.73, "u": -0.57, "zero": 0, "limit": 0.2}
    pairs = step.append_backward(loss)
    for n in range(3):
        names = [parameter.name for parameter, _ in pairs]
        check_against_measured_slopes(loss, values | {"n": n}, names)


# ---- the picture


def test_the_picture_shows_every_block_and_what_is_carried():
    viz = pytest.importorskip("minigrad.viz")
    y, _ = power(3)
    graph = viz.draw(y.block.program).graph
    labels = [region.label for region in graph.regions.values()]
    assert len(labels) == 4
    assert any("block 2 (parent 0, forward block 1" in label for label in labels)
    carried = [
        (graph.nodes[e.tail].name, graph.nodes[e.head].name)
        for e in graph.edges
        if e.kind == "loop"
    ]
    assert carried == [("s_next", "s"), ("i_next", "i"), ("s@GRAD", "y@GRAD")]
    assert sum(edge.kind == "sub_block" for edge in graph.edges) == 2


def test_the_ops_of_the_picture_are_the_ops_that_ran():
    viz = pytest.importorskip("minigrad.viz")
    y, _ = power(2)
    ran, real = [], step.Operator.run
    step.Operator.run = lambda op, scope: ran.append(op) or real(op, scope)
    try:
        step.run(y.block.program, {"x": 2.0, "w": 3.0, "n": 2, "zero": 0})
    finally:
        step.Operator.run = real
    assert [op.type for op in ran] == [
        "less_than",
        *["mul", "increment", "less_than"] * 2,
        "fill_constant",
        *["assign", "mul_grad"] * 2,
    ]
    names = {
        node.name.split(" ")[0]
        for node in viz.draw(y.block.program).graph.nodes.values()
        if node.number is not None
    }
    assert names == {op.type for op in ran} | {"while", "while_grad"}


def test_the_notebook_prints_the_parts_by_hand():
    by_hand = [s for s in CELLS if "step_scopes_1" in s and "def " not in s]
    by_hand = [s for s in by_hand if "reversed" in s or "[-1]] * 3" in s]
    helpers = [s for s in CELLS if "def hold(" in s or "def power():" in s]
    space = [
        *(s.replace("mg.draw(y.block.program)", "") for s in helpers),
        "values = {'x': 2.0, 'w': 3.0, 'n': 3, 'zero': 0}",
        "scope = run(y.block.program, values)",
    ]
    _, printed = run_cells("step19_sub_blocks", [*space, *by_hand])
    assert "[18.0, 18.0, 18.0] sum: 54.0" in printed
    assert "[18.0, 54.0, 162.0] sum: 234.0" in printed
    assert "w@GRAD: 32.0  x@GRAD: 64.0" in printed


MUTANTS = {
    "one scope for all steps": (
        "step = Scope(zip(carry, now, strict=True))\n        step.parent = scope",
        "step = scope\n        scope.update(zip(carry, now, strict=True))",
    ),
    "the loop makes one step": ('while op.type == "while" or not steps:', "while not steps:"),
    "the branch goes on": ('while op.type == "while" or not steps:', "while True:"),
    "what nobody wants is kept": (
        "blocks)\n        for name, value in zip(names(self.outputs), results, strict=True):\n            if name != EMPTY:",
        "blocks)\n        for name, value in zip(names(self.outputs), results, strict=True):\n            if True:",
    ),
    "a step does not look outside": (
        "            return self.parent[name]",
        "            pass",
    ),
    "a limit that is too low": ("if len(steps) == 10_000:", "if len(steps) == 20:"),
    "the condition is not asked": (
        'held = "sub_block" if step[condition] else "else_block"\n        if held',
        'held = "sub_block"\n        if held',
    ),
    "nothing is handed on": (
        "now = [step[name] for name in carry.values()]",
        "now = [step[name] for name in carry]",
    ),
    "steps are forgotten": ("        steps.append(step)", "        steps = [step]"),
    "not from the last step": ("for step in reversed(steps)", "for step in steps"),
    "backward in the outer scope": (
        "[held]].run(step)\n        flowing",
        "[held]].run(scope)\n        flowing",
    ),
    "backward in the wrong branch": (
        'held = "sub_block" if step[condition] else "else_block"\n        blocks',
        'held = "sub_block"\n        blocks',
    ),
    "carried gradients are added up": (
        "flowing = {name: step.get(name + GRAD, ",
        "flowing = {name: flowing[name] + step.get(name + GRAD, ",
    ),
    "shared gradients are overwritten": (
        "total[name] + step.get(name + GRAD, 0.0)",
        "step.get(name + GRAD, 0.0)",
    ),
    "gradients of outer scopes are taken": (
        "step.get(name + GRAD, np.zeros(np.shape(step[name])))",
        "step.get(name + GRAD, scope.get(name + GRAD, np.zeros(np.shape(step[name]))))",
    ),
    "the carried gradient stays": (
        "step.get(name + GRAD, np.zeros(np.shape(step[name])))",
        "flowing[name]",
    ),
    "shared and carried change places": (
        "[*flowing.values(), *total.values()]",
        "[*total.values(), *flowing.values()]",
    ),
    "no recursion": (
        "        append_backward_ops(block, grad_block,",
        "        append_backward_ops(Program().blocks[0], grad_block,",
    ),
    "the forward block as parent": (
        "grad_block.parent = block.idx",
        "grad_block.parent = grad_block.forward_block",
    ),
    "no forward block": ("forward_block=block.idx)", "forward_block=-1)"),
    "one grad block for both": (
        "attrs[key] = grad_block.idx",
        'attrs["sub_block"] = grad_block.idx',
    ),
    "outer stops reach inside": ("no_grad - set(own) | stopped", "no_grad | stopped"),
    "stops inside do not count": ("- set(own) | stopped", "- set(own)"),
    "outer stops do not reach inside": ("no_grad - set(own) | stopped", "stopped"),
    "counters flow": ("if not body.var(name).stop_gradient]", "]"),
    "reads of an op are not needed": ("            needed |= set(names(op.inputs))\n", ""),
    "the table forgets the grad op of a loop": ('grad=f"{kind}_grad")', "grad=None)"),
    "held blocks are not adjusted": (
        '            adjust(grad_block, 0, no_grad - set(own) | stopped, op.inputs["out_grad"])',
        "            pass",
    ),
    "nothing is given to a held block": ('| stopped, op.inputs["out_grad"])', "| stopped)"),
    "names are looked up at home": (
        "home = block if block.forward_block == -1 else blocks",
        "home = block if True else blocks",
    ),
    "assign passes nothing on": (
        '"assign_grad", lambda out_grad: out_grad)',
        '"assign_grad", lambda out_grad: 0 * out_grad)',
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_engine_dies(mutant):
    assert verdict_on(__name__, "step19_sub_blocks", *MUTANTS[mutant]).startswith("killed"), mutant
