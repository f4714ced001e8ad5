"""The checkers of step 8."""

import re
from collections import Counter

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


@checker("8a")
def power(Power, Variable, gradcheck):
    for base, exponent in ((2.0, 3.0), (0.5, -1.5), (1.5, 0.25)):
        a, b = Variable(np.array(base)), Variable(np.array(exponent))
        function = Power()
        y = function(a, b)
        close(f"{base} ** {exponent}", y.data, base**exponent)
        slopes = exponent * base ** (exponent - 1), base**exponent * np.log(base)
        gxs = function.backward(np.array(-2.0))
        if not isinstance(gxs, tuple) or len(gxs) != 2:
            raise Mismatch("what backward returns", gxs, "a tuple of two gradients")
        for i, slope in enumerate(slopes):
            close(f"gradient {i} of {base} ** {exponent} for gy = -2", gxs[i], -2 * slope)
        gradcheck(lambda a, b: Power()(a, b), a, b)


@checker("8b")
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
    if (count := made[1].count("Exp")) not in (1, 2):
        raise Mismatch("the number of Exp in the second way", count, "2 at most, and not none")
    same("the number of Exp in the third way", made[2].count("Exp"), 1)


_NODE = re.compile(r'^\s*"?(\w+)"?\s*\[(.*)\]\s*;?\s*$')
_ARROW = re.compile(r'^\s*"?(\w+)"?\s*->\s*"?(\w+)"?\s*(?:\[.*\])?\s*;?\s*$')
_LABEL = re.compile(r'\blabel\s*=\s*(?:"([^"]*)"|(\w+))')


@checker("8c")
def to_dot(to_dot, Variable):
    x = Variable(np.array(2.0), name="x")
    a = x * x
    verify_dot("x + x", to_dot, x + x)
    verify_dot("the diamond a * 2 + a * 3", to_dot, a * 2 + a * 3)
    base, shift = (Variable(np.array(n), name=name) for n, name in ((3.0, "base"), (1.0, "shift")))
    quotient = (base - shift) / base
    quotient.name = "q"
    verify_dot("q = (base - shift) / base", to_dot, quotient)
    first = to_dot(Variable(np.array(1.0), name="a") * Variable(np.array(1.0), name="b"))
    second = to_dot(Variable(np.array(1.0), name="a") * Variable(np.array(1.0), name="b"))
    if first != second:
        raise Mismatch(
            "the text of the same graph, made a second time",
            "another one",
            "the same: number the nodes",
        )


def verify_dot(words, to_dot, y):
    """Labels, arrows, and how they hang together, against the graph itself."""
    labels, arrows = read_dot(words, to_dot(y))
    true_labels, true_arrows = graph_of(y)
    same(f"the number of nodes for {words}", len(labels), len(true_labels))
    for label, count in sorted(Counter(true_labels.values()).items()):
        seen = list(labels.values()).count(label)
        same(f"the number of nodes labelled {label!r} for {words}", seen, count)
    same(f"the number of arrows for {words}", len(arrows), len(true_arrows))
    drawn, true = (
        Counter((names[tail], names[head]) for tail, head in each)
        for names, each in ((labels, arrows), (true_labels, true_arrows))
    )
    for tail, head in drawn - true:
        wanted = next(iter(true - drawn))
        raise Mismatch(
            f"an arrow of {words}", f"{tail!r} -> {head!r}", f"{wanted[0]!r} -> {wanted[1]!r}"
        )
    if looks(labels, arrows) != looks(true_labels, true_arrows):
        raise Mismatch(f"the graph of {words}", "tied together otherwise", "each arrow at its node")


def read_dot(words, text):
    """Labels by node, and arrows, of a text in DOT."""
    if (
        not isinstance(text, str)
        or not re.match(r"\s*digraph\b[^{]*\{", text)
        or not text.rstrip().endswith("}")
    ):
        raise Mismatch(f"the text for {words}", text, "digraph { … }")
    labels: dict[str, str] = {}
    lines = text[text.index("{") + 1 : text.rindex("}")].splitlines()
    for match in filter(None, map(_NODE.match, lines)):
        if match[1] in ("node", "edge", "graph") or _ARROW.match(match[0]):
            continue
        if match[1] in labels:
            raise Mismatch(f"the line of the node {match[1]} for {words}", "there twice", "once")
        label = _LABEL.search(match[2])
        labels[match[1]] = "no label" if label is None else label[1] or label[2] or ""
    arrows = [match.groups() for match in map(_ARROW.match, lines) if match]
    for end in sorted({end for arrow in arrows for end in arrow} - set(labels)):
        raise Mismatch(
            f"the node {end} at the end of an arrow of {words}",
            "without a line of its own",
            "one line",
        )
    return labels, arrows


def graph_of(y):
    """The same of the graph behind y."""
    labels, arrows, todo = {y: y.name or ""}, [], [y]
    while todo:
        f = todo.pop().creator
        if f is None or f in labels:
            continue
        labels[f] = type(f).__name__
        arrows += [*((x, f) for x in f.inputs), (f, f.output())]
        labels.update((x, x.name or "") for x in f.inputs)
        todo.extend(f.inputs)
    return labels, arrows


def looks(labels, arrows):
    """What each node sees around it, further in every round: equal for graphs that are one."""
    seen = dict(labels)
    for _ in labels:
        before = seen
        seen = {
            node: str(
                hash(
                    (
                        before[node],
                        *sorted("<" + before[tail] for tail, head in arrows if head == node),
                        *sorted(">" + before[head] for tail, head in arrows if tail == node),
                    )
                )
            )
            for node in labels
        }
    return sorted(seen.values())
