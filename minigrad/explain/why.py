"""why: where the gradient of a Tensor came from, or exactly why there is none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ..eager import backward
from ..eager.grad_fn import AccumulateGrad, Leaf, Node, no_graph_reason
from ..eager.tensor import Tensor, wrap
from ..errors import DTypeError, describe, refusal, user_frame, user_line
from ..primitives.arguments import Value
from ..viz.adapters.torch_facts import kind_of
from .explanation import Explanation, Explanations, short
from .flow import flows, trouble
from .linked import gradients_made, is_linked, is_net, paths_to
from .paths import MOST_PATHS, count_paths, followed, labels, place_of
from .rerun import nodes_below, remembered_values, rerun


def why(x: Any, output: Any = None) -> Any:
    """Where the gradient of ``x`` came from, path by path, or the exact reason why there is none.

    ``output``: the Tensor backward starts from; by default that of the last backward, as long as it is alive.
    A static Variable is explained from its program; what holds values, value by value; a net by its grad ops; a
    variable of the course's engines by its links to ``output``.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True, name="x")
    >>> y = x * x + 2 * x
    >>> y.backward()
    >>> print(mg.why(x))
    the gradient of x is 8., from 3 path(s):
                2.  by  AddBackward0[1] → MulBackward0[1]
                3.  by  AddBackward0[0] → MulBackward0[0]
                3.  by  AddBackward0[0] → MulBackward0[1]
    >>> mg.draw(mg.why(x)).graph.title  # the paths, drawn; in a page a click on any leaf follows its gradient
    'x.grad = 8 = 2 + 3 + 3'
    >>> print(mg.why(mg.tensor(1.0)))
    it has no gradient: it does not require grad; create it, or what it is computed from, with requires_grad=True
    """
    if not isinstance(x, Tensor):
        if isinstance(x, Value):
            from .programs import explain

            return explain(x)  # type: ignore[arg-type]
        if kind_of(x) in ("tensor", "module", "optimizer"):
            from .pytorch import why_torch

            return why_torch(x, output, user_frame(2))
        return _of_other(x, output)
    if output is not None and not isinstance(output, Tensor):
        raise DTypeError(
            f"the output to explain {x.name or 'a Tensor'} from is a Tensor, not {describe(output)}\n"
            f"  at {user_line()}"
        )
    name = x.name or "it"
    if x._node is None:
        return Explanation(name, reason=no_graph_reason(x))
    root, start = _root_of(output)
    if root is None and output is not None:
        return Explanation(name, reason=f"the output has no graph: {no_graph_reason(output)}")
    if root is None:
        gone = "the output the last backward started from is gone; pass yours: mg.why(x, y)"
        if x.grad is not None:
            return Explanation(name, x.grad, note=f"  ({gone})")
        never = "no backward has run through it yet; call y.backward(), or pass the output: mg.why(x, y)"
        return Explanation(name, reason=gone if backward.last_start[0] is not None else never)
    edge = x._node.node if x._node.__class__ is Leaf else x._node
    found = nodes_below(root)
    if place_of(edge)[0] not in found:
        return Explanation(
            name, reason=f"it is not on a path to the output: {root.name()} does not depend on it"
        )
    told = _traced(name, x, edge, root, start, found, output is None)
    told.start, told.leaf = root, x
    return told


def _of_other(x: Any, output: Any) -> Any:
    """The explanation of what is no Tensor: an object of the course, a net, or what holds Tensors or Variables."""
    if is_net(x):
        made = gradients_made(x)
        if not made:
            none = "none of its operators makes one; those of Backward(net) and append_backward do"
            return Explanation(x.type, reason=none)
        return Explanations(
            Explanation(name, paths=[((step,), None) for step in steps], made=True)
            for name, steps in made.items()
        )
    if is_linked(x):
        return _of_linked(x, output)
    if not (found := _parts(x)):
        raise refusal(
            f"why() found no Tensor and no Variable in {describe(x)}",
            "pass one of its values, as in mg.why(x), or mg.why(x, y) with the output y",
            DTypeError,
        )
    return Explanations(why(at, output) for at in found)


def _of_linked(x: Any, output: Any) -> Explanation:
    """Of an engine of the course: the paths; how much each gave is not known."""
    name = getattr(x, "name", None) or "it"
    grad = x.grad.data if is_linked(x.grad) else x.grad
    if output is None:
        ask = "for the paths pass the output, too: mg.why(x, y)"
        if grad is None:
            return Explanation(name, reason=f"nothing has come to its .grad yet; {ask}")
        return Explanation(name, grad, note=f"  ({ask})")
    paths = paths_to(x, output)
    if not paths:
        return Explanation(name, reason="no path leads from the output to it")
    if grad is None:
        return Explanation(
            name,
            reason="backward has not come to it by " + " or ".join(" → ".join(p) for p in paths),
        )
    return Explanation(name, grad, [(p, None) for p in paths])


def _parts(x: Any) -> list[Any]:
    """The Tensors or Variables of a Program or Block (the parameters), a module, an optimizer, a list, a dictionary."""
    held = getattr(getattr(x, "program", x), "parameters", None)
    if held is None:
        held = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    held = held() if callable(held) else held
    return [v for v in held if isinstance(v, Value) or kind_of(v) == "tensor"]


def _root_of(output: Any) -> tuple[Node | None, Any]:
    """The node backward starts from, and which of its outputs with what seed."""
    if output is None:
        ref, index, seed = backward.last_start
        root = ref() if ref is not None else None
        return root, (index, getattr(seed, "_data", seed))
    node = output._node
    node = node.accumulator(output) if node.__class__ is Leaf else node
    node, index = place_of(node)
    return node, (index, np.ones(output.shape, output.dtype))


def _traced(
    name: str,
    x: Tensor,
    edge: Any,
    root: Node,
    start: tuple[int, Any],
    found: dict[Node, Node | None],
    ran: bool,
) -> Explanation:
    """What came by each path, by running rules once more on remembered values."""
    place = place_of(edge)
    if root is place[0]:
        whole = wrap(np.asarray(start[1]))
        return _noted(Explanation(name, whole, [(("the output itself",), whole._data)]), x, ran)
    grouped, paths = False, _by_path(root, start, place, found)
    if paths is None:
        grouped, paths = True, _by_last_step(root, start, edge, place, found)
    if paths is None:
        users = [(n, k) for n in found for k, to in enumerate(n.next_functions) if to == place]
        note = "  (how much each gave is known with backward(retain_graph=True), or before backward: mg.why(x, y))"
        shown = [(_path(found, n, k), None) for n, k in users]
        return Explanation(name, x.grad, shown, note=note, grouped=True)
    if not paths:
        return Explanation(name, reason=f"a rule on the way from {root.name()} to it gave None")
    total = paths[0][1]
    for _, p in paths[1:]:
        total = total + p
    made = _noted(Explanation(name, wrap(np.asarray(total)), paths, grouped=grouped), x, ran)
    alarm, made.repair = _trouble(root, start, found, place, total)
    made.note = "\n".join(filter(None, [f"  {alarm}" * bool(alarm), made.note]))
    return made


def _trouble(
    root: Node, start: tuple[int, Any], found: Collection[Node], place: Any, total: Any
) -> tuple[str, str]:
    """What is wrong with a gradient that is 0, not finite, vanishing or exploding, and a repair."""
    if any(n.hooks is not None or (n.primitive is None and n.next_functions) for n in found):
        return "", ""  # functions of the user's would run
    with remembered_values(found) as complete:
        steps, _ = flows(root, *start, found) if complete else ([], [])
        return trouble(steps, count_paths([*found], place), place, total) if steps else ("", "")


def _by_path(
    root: Node, start: tuple[int, Any], place: Any, found: dict[Node, Any]
) -> list[tuple[tuple[str, ...], Any]] | None:
    """What each path gave; None if they are too many, or if hooks or functions of the user's would run."""
    nodes = [n for n in found if n.primitive is not None]
    foreign = any(n.hooks is not None or (n.primitive is None and n.next_functions) for n in found)
    counts = count_paths(nodes, place)
    if foreign or counts[root] > MOST_PATHS:
        return None
    with remembered_values(nodes) as complete:
        trails = followed(root, *start, place, counts) if complete else None
    if trails is None:
        return None
    return list(zip(labels([t for t, _ in trails]), [p for _, p in trails], strict=True))


def _by_last_step(
    root: Node, start: tuple[int, Any], edge: Any, place: Any, found: dict[Node, Any]
) -> list[tuple[tuple[str, ...], Any]] | None:
    """What each last node on the way gave, whichever way the gradient came to it."""
    noted = rerun(root, *start, found, [edge])
    if noted is None:
        return None
    steps = [(n, k, p) for (n, k), p in noted.items() if n.next_functions[k] == place]
    return [(_path(found, n, k), p) for n, k, p in steps]


def _noted(made: Explanation, x: Tensor, ran: bool) -> Explanation:
    """A note where ``.grad`` does not hold this gradient."""
    old = x.grad
    if old is None and not x.is_leaf:
        made.note = "  (it is not a leaf, so .grad is not kept: call retain_grad() before backward)"
    elif old is None and ran:
        made.note = (
            "  (.grad is None: grad() returns gradients, backward(inputs=…) leaves others alone, "
            "zero_grad() forgets them)"
        )
    elif old is not None and not np.allclose(old._data, made.total._data, equal_nan=True):
        made.note = f"  (.grad is {short(old)}: a hook, another output or an earlier backward made the difference)"
    return made


def _path(found: dict[Node, Node | None], node: Node, slot: int) -> tuple[str, ...]:
    names = [f"{node.name()}[{slot}]" if not isinstance(node, AccumulateGrad) else node.name()]
    above = found[node]
    while above is not None:
        names.append(above.name())
        above = found[above]
    return tuple(reversed(names))
