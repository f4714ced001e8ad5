"""The checkers of step 8."""

import re

import numpy as np

from ..check import Mismatch, checker, close, same


@checker(
    "8a",
    hint="x1 * x0 ** (x1 - 1) for the base, x0 ** x1 * log(x0) for the exponent, each times gy",
)
def power(Power, Variable, gradcheck):
    for base, exponent in ((2.0, 3.0), (0.5, -1.5), (1.5, 0.25)):
        a, b = Variable(np.array(base)), Variable(np.array(exponent))
        function = Power()
        close(f"{base} ** {exponent}", function(a, b).data, base**exponent)
        slopes = exponent * base ** (exponent - 1), base**exponent * np.log(base)
        gxs = function.backward(np.array(-2.0))
        if not isinstance(gxs, tuple) or len(gxs) != 2:
            raise Mismatch("what backward returns", gxs, "a tuple of two gradients")
        for i, slope in enumerate(slopes):
            close(f"the gradient {i} of {base} ** {exponent} for gy = -2", gxs[i], -2 * slope)
        gradcheck(lambda a, b: Power()(a, b), a, b)


@checker(
    "8b",
    hint="the rule of Tanh: (1 - y * y) * gy, with y the output: self.output().data. In the "
    "formulas, give exp(x) a name and use it twice",
)
def three_tanhs(ways, Variable, functions_behind):
    names = ("Tanh", "tanh_by_two_exps", "tanh_by_one_exp")
    for name, way in zip(names, ways, strict=True):
        for value in (-2.0, 0.0, 0.5, 1.0):
            x = Variable(np.array(value))
            y = way(x)
            if not isinstance(y, Variable):
                raise Mismatch(f"what {name} returns", type(y).__name__, "Variable")
            close(f"{name} at {value}", y.data, np.tanh(value))
            y = y * 3  # so that gy is 3
            y.backward()
            if x.grad is None:
                raise Mismatch(f"the gradient of {name}", None, "a number")
            close(
                f"three times the gradient of {name} at {value}",
                x.grad,
                3 * (1 - np.tanh(value) ** 2),
            )
    made = [
        [type(f).__name__ for f in functions_behind(way(Variable(np.array(0.5))))] for way in ways
    ]
    same("the number of functions of the first way", len(made[0]), 1)
    same("the number of Exp in the second way", made[1].count("Exp"), 2)
    same("the number of Exp in the third way", made[2].count("Exp"), 1)


_NODE = re.compile(r"^\s*(\w+)\s*\[(.*)\]\s*;?\s*$")
_ARROW = re.compile(r"^\s*(\w+)\s*->\s*(\w+)\s*;?\s*$")


@checker(
    "8c",
    hint="keep a dictionary from each variable and function to its number; take names from it. "
    "Arrows go from each input to its function, and from the function to its output",
)
def to_dot(to_dot, Variable):
    x = Variable(np.array(2.0), name="x")
    a = x * x
    diamond = a * 2 + a * 3
    verify_dot("x + x", to_dot(x + x), variables=2, functions={"Add": 1}, arrows=3)
    verify_dot(
        "the diamond a * 2 + a * 3",
        to_dot(diamond),
        variables=7,
        functions={"Add": 1, "Mul": 3},
        arrows=12,
    )
    first = to_dot(Variable(np.array(1.0), name="a") * Variable(np.array(1.0), name="b"))
    second = to_dot(Variable(np.array(1.0), name="a") * Variable(np.array(1.0), name="b"))
    if first != second:
        raise Mismatch(
            "the text of the same graph, made a second time",
            "another one",
            "the same: number the nodes",
        )


def verify_dot(words, text, variables, functions, arrows):
    if (
        not isinstance(text, str)
        or not re.match(r"\s*digraph\b[^{]*\{", text)
        or not text.rstrip().endswith("}")
    ):
        raise Mismatch(f"the text for {words}", text, "digraph { … }")
    lines = text[text.index("{") + 1 : text.rindex("}")].splitlines()
    nodes = [
        match
        for line in lines
        if (match := _NODE.match(line)) and match[1] not in ("node", "edge", "graph")
    ]
    edges = [match.groups() for line in lines if (match := _ARROW.match(line))]
    ids = [match[1] for match in nodes]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise Mismatch(f"the number of lines for the node {twice} of {words}", ids.count(twice), 1)
    for name, count in functions.items():
        seen = sum(f'"{name}"' in match[2] or f"={name}" in match[2] for match in nodes)
        same(f"the number of nodes {name} for {words}", seen, count)
    same(f"the number of nodes for {words}", len(nodes), variables + sum(functions.values()))
    same(f"the number of arrows for {words}", len(edges), arrows)
    for end in {end for edge in edges for end in edge} - set(ids):
        raise Mismatch(
            f"the node {end} at the end of an arrow of {words}",
            "without a line of its own",
            "one line",
        )
