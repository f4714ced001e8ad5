"""The checkers of step 19."""

from ..check import checker
from ..judge import Mismatch, close, same


@checker("19e")
def run_steps_grad(run_steps_grad, run, append_backward, power, hold, Program):
    def gradients(words, y, expected, **values):
        append_backward(y)
        scope = run(y.block.program, {"zero": 0, **values})
        found = [scope.get(f"{name}@GRAD") for name in "xw"]
        found = [None if each is None else float(each) for each in found]
        same(f"the list of gradients of {words} for x and w", found, expected)

    def held(type, condition, bodies, state):
        main = (program := Program()).blocks[0]
        for name in ("x", "w"):
            main.create_var(name, persistable=True)
        for name in ("n", "zero"):
            main.create_var(name, stop_gradient=True)
        main.append_op("less_than", "zero", condition, out="any")
        blocks = {key: program.create_block(parent=0) for key in bodies}
        for key, lines in bodies.items():
            for name in state:
                blocks[key].create_var(name, stop_gradient=name != "s")
            for type_, *reads, out in lines:
                blocks[key].append_op(type_, *reads, out=out)
        return hold(main, type, "more" if type == "while" else "any", state, **blocks)

    for n, expected in ((1, [3.0, 2.0]), (3, [27.0, 54.0]), (0, [1.0, 0.0])):
        gradients(f"x * w ** {n}, a loop, at 2 and 3,", power(), expected, x=2.0, w=3.0, n=n)
    count = [("increment", "i", "i_next"), ("less_than", "i_next", "n", "more_next")]
    loop = {
        "s": ("x", "s_next", "y"),
        "i": ("zero", "i_next", "count"),
        "more": ("any", "more_next", "rest"),
    }
    body = {"sub_block": [("square", "w", "s_next"), *count]}
    for n, expected in ((2, [0.0, 6.0]), (0, [1.0, 0.0])):
        y = held("while", "n", body, loop)
        gradients(f"a loop that sets s to w² in each of {n} steps", y, expected, x=2.0, w=3.0, n=n)
    bodies = {"sub_block": [("mul", "s", "w", "result")], "else_block": [("square", "s", "result")]}
    for x, expected in ((3.0, [5.0, 3.0]), (-3.0, [-6.0, 0.0])):
        y = held("if_else", "x", bodies, {"s": ("x", "result", "y")})
        words = f"x * w if x > 0 else x², at x = {x:g} and w = 5,"
        gradients(words, y, expected, x=x, w=5.0, n=0)


@checker("19b")
def power_body(write_body, power_of_x, append_backward, run):
    y = power_of_x(write_body)
    append_backward(y)
    for n in (5, 2, 1, 0):
        values = {"x": 3.0, "n": n, "zero": 0, "one": 1.0}
        scope = run(y.block.program, values)
        close(f"x**{n} at x = 3", scope["y"], 3.0**n)
        if "x@GRAD" not in scope:
            raise Mismatch("the gradient of x", "missing", "there: some op of the body reads x")
        close(f"the gradient of x**{n} at x = 3", scope["x@GRAD"], n * 3.0 ** (n - 1))
        same(f"the number of steps for n = {n}", int(scope["count"]), n)


@checker("19c")
def parents(parents, nested, append_backward):
    y = nested()
    append_backward(y)
    blocks = y.block.program.blocks
    if not isinstance(parents, dict):
        raise Mismatch("what you give", parents, "a dict from block to parent, such as {0: -1}")
    same("the list of blocks you name", sorted(parents), list(range(len(blocks))))
    for block in blocks:
        same(f"the parent of block {block.idx}", parents[block.idx], block.parent)
