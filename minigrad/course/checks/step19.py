"""The checkers of step 19."""

from ..check import checker
from ..judge import Mismatch, close, same


@checker("19a", hint="the branch that runs decides; what only the other branch reads gets 0.0")
def both_branches(at_3, at_minus_3, branch, append_backward, run):
    y = branch()
    append_backward(y)
    for x, answer in ((3.0, at_3), (-3.0, at_minus_3)):
        scope = run(y.block.program, {"x": x, "w": 5.0, "zero": 0.0})
        for name, given in zip(("x@GRAD", "w@GRAD"), answer, strict=True):
            close(f"{name} at x = {x:g}", given, float(scope[name]))


@checker(
    "19b",
    hint=(
        "which three values does the loop carry, and what happens to each in one turn?",
        "p is multiplied by x, i grows by one, and more asks the new i whether to go on",
        "mul of p and x, increment of i, less_than of i_next and n",
    ),
)
def power_body(write_body, power_of_x, append_backward, run):
    y = power_of_x(write_body)
    append_backward(y)
    for n in (0, 1, 2, 5):
        values = {"x": 3.0, "n": n, "zero": 0, "one": 1.0}
        scope = run(y.block.program, values)
        close(f"x**{n} at x = 3", scope["y"], 3.0**n)
        if "x@GRAD" not in scope:
            raise Mismatch("the gradient of x", "missing", "there: some op of the body reads x")
        close(f"the gradient of x**{n} at x = 3", scope["x@GRAD"], n * 3.0 ** (n - 1))
        same(f"the number of turns for n = {n}", int(scope["turns"]), n)


@checker("19c", hint="a grad block's parent is the block that holds the grad op")
def parents(parents, nested, append_backward):
    y = nested()
    append_backward(y)
    blocks = y.block.program.blocks
    if not isinstance(parents, dict):
        raise Mismatch("what you give", parents, "a dict from block to parent, such as {0: -1}")
    same("the list of blocks you name", sorted(parents), list(range(len(blocks))))
    for block in blocks:
        same(f"the parent of block {block.idx}", parents[block.idx], block.parent)
