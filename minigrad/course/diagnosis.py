"""Which known mistake an answer makes: each one is run, and compared.

A mistake is the solution with one thing wrong in it. The checker judges it as it judged the
learner's answer: where both stop at the same place with the same value, that is the mistake.
Where the value is a list, a picture shows where it parts from the right one.
"""

import contextlib
import io
import re
from typing import Any

from minigrad import viz

from ..primitives.arguments import Function
from .judge import Mismatch, agree, shown
from .solution import Mistake, Namespace, find_solution, mistakes, restored, solve

#: What else an error of Python says by chance: whose attribute, or argument, it met first.
_CHANCE = {AttributeError: r"|^'NoneType' .*|'[\w.]+' object", TypeError: r"|'[\w.]+'"}


def diagnose(
    id: str, judge: Function, failure: BaseException, namespace: Namespace | None
) -> Mistake | None:
    """The known mistake that ``judge`` refuses with the same failure, if there is one.

    Mistakes are run in the ``namespace`` of the notebook; without one nothing is tried.
    """
    cell = find_solution(id)
    if namespace is None or cell is None:
        return None
    for each in (None, *mistakes(id)):  # where the solution fails like this, it is no mistake
        try:
            with contextlib.redirect_stdout(io.StringIO()), restored(namespace):
                judge(*solve(cell, namespace, each))
        except Exception as error:
            if _alike(error, failure):
                return each
    return None


def parting(failure: BaseException) -> Any:
    """A picture of two lists, yours and the right one: where they part, and where they meet again.

    None where a failure is not about two lists, or they are too long to be read.
    """
    if not isinstance(failure, Mismatch):
        return None
    pair = failure.observed, failure.expected
    if not all(isinstance(each, list | tuple) and len(each) <= 12 for each in pair):
        return None
    yours, right = ([_short(item) for item in each] for each in pair)
    begun: list[str] = []
    while yours[:1] == right[:1] != []:
        begun.append(right.pop(0))
        del yours[0]
    ended: list[str] = []
    while yours[-1:] == right[-1:] != []:
        ended.insert(0, right.pop())
        del yours[-1]
    graph = viz.Graph(title=f"{failure.what}: where it parts")
    start = _line(graph, "grad_op", begun, [])
    one = _line(graph, "pruned", yours or ["nothing"], start, "yours")
    other = _line(graph, "grad_op", right or ["nothing"], start, "right")
    _line(graph, "grad_op", ended, [*one, *other])
    return viz.draw(graph)


def _line(graph, kind: str, items: list[str], before: list[Any], label: str = "") -> list[Any]:
    """One node after the other; the last one, or what stands before them where there is none."""
    for item in items:
        node = graph.node(kind, item, lines=(label,) if label else ())
        for each in before:
            graph.edge(each, node)
        before, label = [node], ""
    return before


def _short(item: object) -> str:
    with contextlib.suppress(TypeError, ValueError):
        return f"{float(item):.6g}"  # type: ignore[arg-type]
    return shown(item)


def _alike(one: BaseException, other: BaseException) -> bool:
    if isinstance(one, Mismatch) and isinstance(other, Mismatch):
        here, there = one.observed, other.observed
        return one.what == other.what and (agree(here, there) or shown(here) == shown(there))
    no_place = (re.sub(r"\n  at .*", "", str(each)) for each in (one, other))  # whose line it is
    chance = r"tensor\(.*?\)" + _CHANCE.get(type(one), "")
    texts = {re.sub(chance, "…", shown(text)) for text in no_place}
    return type(one) is type(other) and len(texts) == 1
