"""why: where the gradient of a Tensor came from, or exactly why there is none."""

from typing import Any

import numpy as np

from ..eager import backward
from ..eager.grad_fn import no_graph_reason, place_of
from ..eager.inplace import changed_since
from ..eager.tensor import Tensor, wrap
from ..errors import DTypeError, describe, refusal, user_frame
from ..primitives.arguments import Value
from ..viz.adapters.names import Names, caller_variables
from ..viz.adapters.of_grad_fn import walk_order
from ..viz.adapters.torch_facts import kept_grad, kind_of
from .paths import USE, Explanation, Explanations, because, difference, traced, uses
from .rerun import last_start, remembered_values


def why(x: Any, output: Any = None) -> Any:
    """Where the gradient of ``x`` came from, path by path, or the exact reason why there is none.

    ``output``: the Tensor backward starts from; by default that of the last backward, as long as it is alive.
    A static Variable is explained from its program, and with the Scope of a run as ``output`` from its numbers; what
    holds values, value by value.  No hook runs.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True, name="x")
    >>> y = x * x + 2 * x
    >>> y.backward()
    >>> print(mg.why(x))
    the gradient of x is 8., from 3 paths:
                2.  by  AddBackward0[1] → MulBackward0[1]
                3.  by  AddBackward0[0] → MulBackward0[0]
                3.  by  AddBackward0[0] → MulBackward0[1]
    >>> mg.draw(mg.why(x)).graph.title  # the paths, drawn; in a page a click on any leaf follows its gradient
    'x.grad = 8 = 2 + 3 + 3'
    >>> print(mg.why(mg.tensor(1.0)))
    it has no gradient: it does not require grad; create it, or what it is computed from, with requires_grad=True
    """
    called = Names(found=caller_variables(user_frame())).known
    if isinstance(x, Tensor):
        return _of_tensor(x, called(x) or "it", output)
    if isinstance(x, Value):
        from .programs import explain

        return explain(x, output)  # type: ignore[arg-type]
    if kind_of(x) in ("tensor", "module", "optimizer"):
        from .pytorch import why_torch

        return why_torch(x, output, user_frame(2))
    if callable(named := getattr(x, "named_parameters", None)):
        return Explanations(_of_tensor(each, name, output) for name, each in named())
    if not (found := _parts(x)):
        raise refusal(
            f"why() found no Tensor and no Variable in {describe(x)}",
            "pass one of its values, as in mg.why(x), or mg.why(x, y) with the output y",
            DTypeError,
        )
    return Explanations(why(at, output) for at in found)


def _parts(x) -> list[Any]:
    """The Tensors or Variables of a Program or Block (the parameters), an optimizer, a list, a dictionary."""
    held = getattr(getattr(x, "program", x), "parameters", None)
    if held is None:
        held = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    held = held() if callable(held) else held
    return [v for v in held if isinstance(v, Value) or kind_of(v) == "tensor"]


def _of_tensor(x: Tensor, name: str, output) -> Explanation:
    if not isinstance(output, Tensor | None):
        what = f"the output to explain {name} from is a Tensor, not {describe(output)}"
        raise refusal(what, "mg.why(x, y)", DTypeError)
    if x._node is None:
        return Explanation(name, reason=no_graph_reason(x))
    grad = kept_grad(x)
    if output is None:
        start = last_start()
    elif output._node is None:
        return because(name, "output_without_graph", reason=no_graph_reason(output))
    else:
        start = {place_of(output._node): np.ones(output.shape, output.dtype)}
    if not start:
        known = grad is not None or bool(backward.last_starts)
        lost = because(name, "gone" if known else "no_backward")
        return lost if grad is None else Explanation(name, grad).remark(f"({lost.reason})")
    roots = [node for node, _ in start]
    outputs = ", ".join(n.name() for n in roots)
    nodes = walk_order(roots)
    place = place_of(x._node)
    if place not in start and not any(place in n.next_functions for n in nodes):
        below = {p for n in walk_order([place[0]]) for p in n.next_functions}
        if output is not None and not below.isdisjoint(start):
            given = Names(found=caller_variables(user_frame())).known(output) or "x"
            return because(name, "turned", end=given)
        return because(name, "not_on_a_path", node=outputs)
    with remembered_values(nodes) as complete:
        if complete:
            end = None if output is None else (output.name or "the output", output)
            told = traced(name, start, nodes, place, end)
    missing = because(name, "not_kept" if x.is_leaf else "no_leaf")
    if not complete:
        unknown = _unknown(name, nodes)
        if grad is None:
            return unknown if unknown.repair else missing.remark(f"({unknown.reason})")
        told = Explanation(name, grad, uses(roots, nodes, place), roots=roots, leaf=x, kind=USE)
        return told.remark(f"({unknown.reason})")
    if told.total is None:
        return because(name, "gave_none", node=outputs)
    told.roots, told.leaf = roots, x
    told.total = wrap(np.asarray(told.total))
    if grad is not None:
        hook = "of yours" * any(n.hooks is not None for n in nodes)
        note, repair = difference(grad, told.total, hook)
        return told.remark(note, told.repair or repair)
    return told.remark(f"({missing.reason})" * (output is None or not x.is_leaf))


def _unknown(name: str, nodes) -> Explanation:
    """Why nobody knows how much each path gave; with a repair where backward cannot run, either."""
    for n in nodes:
        for slot, *_ in changed_since(n):
            key = "changed_behind" if n.freed else "changed"
            return because(name, key, node=n.name(), saved=slot.removeprefix("_saved_"))
    return because(name, "forgotten")
