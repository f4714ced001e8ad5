"""why: where the gradient of a Tensor came from, or exactly why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import DTypeError, describe
from ..registry import Primitive
from .grad_fn import REMEMBERED_BYTES, AccumulateGrad, Freed, Leaf, Node, Output, unpack
from .tensor import Tensor, wrap


@dataclass
class Explanation:
    """What `why` found: ``paths``, from the output to the value, with what each gave; or ``reason``, why there is none.

    The contributions add up to ``total``.
    """

    name: str
    total: Any = None
    paths: list[tuple[tuple[str, ...], Any]] = field(default_factory=list)
    reason: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name} has no gradient: {self.reason}"
        lines = [
            f"the gradient of {self.name} is {_short(self.total)}, from {len(self.paths)} path(s):"
        ]
        lines += [
            f"  {_short(value) if value is not None else '?':>12}  by  {' → '.join(path)}"
            for path, value in self.paths
        ]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    __repr__ = __str__

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


def _short(value: Any) -> str:
    array = np.asarray(getattr(value, "_data", value))
    return (
        np.array2string(array, precision=5, separator=", ")
        if array.size <= 8
        else f"{array.dtype}{list(array.shape)}, sum {array.sum():.5g}"
    )


def why(x: Any, output: Any = None) -> Any:
    """Where the gradient of ``x`` came from, path by path, or the exact reason why there is none.

    ``output``: the Tensor backward starts from; by default that of the last backward, as long as it is alive.
    A static Variable is explained from its program.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True, name="x")
    >>> y = x * x + 2 * x
    >>> y.backward()
    >>> print(mg.why(x))
    the gradient of x is 8., from 3 path(s):
                2.  by  AddBackward0 → MulBackward0[1]
                3.  by  AddBackward0 → MulBackward0[0]
                3.  by  AddBackward0 → MulBackward0[1]
    >>> print(mg.why(mg.tensor(1.0)))
    it has no gradient: it does not require grad; create it, or what it is computed from, with requires_grad=True
    """
    if not isinstance(x, Tensor):
        from ..registry import Value

        if isinstance(x, Value):
            from ..static.why import explain

            return explain(x)  # type: ignore[arg-type]
        raise DTypeError(f"why() explains Tensors and Variables, not {describe(x)}")
    name = x.name or "it"
    if x._node is None:
        return Explanation(name, reason=_reason_without_graph(x))
    root, seed = _root_of(output)
    if root is None:
        from . import backward

        if x.grad is not None:
            return Explanation(
                name,
                x.grad,
                [],
                note="  (the output of that backward is gone; pass it: mg.why(x, y))",
            )
        if backward.last_start[0] is not None:
            return Explanation(
                name,
                reason="the output the last backward started from is gone; keep it, or pass it: mg.why(x, y)",
            )
        return Explanation(
            name,
            reason="no backward has run through it yet; call y.backward(), or pass the output: mg.why(x, y)",
        )
    edge = x._node.ref() if x._node.__class__ is Leaf and x._node.ref is not None else x._node
    found = _nodes(root)
    if (
        edge is None
        or edge.__class__ is Leaf
        or (edge.node if edge.__class__ is Output else edge) not in found
    ):
        return Explanation(
            name, reason=f"it is not on a path to the output: {root.name()} does not depend on it"
        )
    return _traced(name, x, edge, root, seed, found)


def no_graph_reason(out: Tensor) -> str:
    """Why an output has no graph, for the error of backward."""
    return _reason_without_graph(out)


def _reason_without_graph(x: Tensor) -> str:
    cut = getattr(x, "_cut", None)
    if isinstance(cut, Primitive):
        return f"it was made by {cut.type}, which has no gradient"
    if x._data.dtype.kind != "f":
        return (
            f"it holds {x._data.dtype} numbers, and only real floating-point values have gradients"
        )
    if cut == "no_grad":
        return "it was computed under no_grad()"
    if cut == "detach":
        return "it was made by detach(), which cuts the graph"
    return (
        "it does not require grad; create it, or what it is computed from, with requires_grad=True"
    )


def _root_of(output: Any) -> tuple[Node | None, Any]:
    """The node backward starts from, and its seed."""
    from . import backward

    if output is None:
        ref, seed = backward.last_start
        return (ref() if ref is not None else None), seed
    node = output._node
    if node is None:
        return None, None
    node = node.accumulator(output) if node.__class__ is Leaf else node
    return (node.node if node.__class__ is Output else node), np.ones(output.shape, output.dtype)


def _nodes(root: Node) -> dict[Node, tuple[Node | None, int]]:
    """Every node below the root, with the first way it was reached."""
    found: dict[Node, tuple[Node | None, int]] = {root: (None, 0)}
    queue = [root]
    for node in queue:
        for k, (nxt, _) in enumerate(node.next_functions):
            if nxt is not None and nxt not in found:
                found[nxt] = (node, k)
                queue.append(nxt)
    return found


def _traced(
    name: str,
    x: Tensor,
    edge: Any,
    root: Node,
    seed: Any,
    found: dict[Node, tuple[Node | None, int]],
) -> Explanation:
    """What each node gave to this edge, by running backward once more on remembered values."""
    target = edge.node if edge.__class__ is Output else edge
    index = edge.index if edge.__class__ is Output else 0
    noted = None if root is target else _rerun(root, seed, found, [edge])
    complete = noted is not None
    parts = [
        (n, k, p) for (n, k), p in (noted or {}).items() if n.next_functions[k] == (target, index)
    ]
    note = (
        ""
        if x.is_leaf or x.grad is not None
        else "  (it is not a leaf, so .grad is not kept: call retain_grad() before backward)"
    )
    if root is target:
        return Explanation(
            name, wrap(np.asarray(seed)), [(("the output itself",), np.asarray(seed))], note=note
        )
    if not complete:
        users = [
            (n, k)
            for n in found
            for k, (m, j) in enumerate(n.next_functions)
            if m is target and j == index
        ]
        note = "  (how much each gave is known with backward(retain_graph=True), or before backward: mg.why(x, y))"
        return Explanation(name, x.grad, [(_path(found, n, k), None) for n, k in users], note=note)
    total = parts[0][2] if parts else None
    for _, _, p in parts[1:]:
        total = total + p
    return Explanation(
        name,
        None if total is None else wrap(total),
        [(_path(found, n, k), p) for n, k, p in parts],
        note=note,
    )


def _rerun(
    root: Node, seed: Any, nodes: Iterable[Node], targets: list[Any] | None
) -> dict[tuple[Node, int], Any] | None:
    """(node, slot) → what it gave, in the order of the walk; None where values are forgotten."""
    from .walk import Walk

    noted: dict[tuple[Node, int], Any] = {}

    class Noting(Walk):
        def _give(self, n: Any, g: Any, grads: Any) -> None:
            given = grads if n.outputs else list(grads)[2:]  # generic: (None, None, *gradients)
            for k, ((m, _), p) in enumerate(zip(n.next_functions, given, strict=False)):
                if p is not None and m is not None:
                    noted[n, k] = np.array(p)
            super()._give(n, g, grads)

    freed = [
        (n, s, v) for n in nodes for s in n.saved_slots if (v := getattr(n, s)).__class__ is Freed
    ]
    if seed is None or any(v.value is None for _, _, v in freed):
        return None
    walk = Noting(targets, False, nested=True)
    walk.anomaly = False
    try:
        for node, slot, value in freed:
            setattr(node, slot, value.value)
        walk.start(Output(root, 0) if not root.outputs else root, seed)
        walk.run()
    finally:
        walk.clear()
        for node, slot, value in freed:
            setattr(node, slot, value)
    return noted


def remembered(root: Node) -> dict[str, Any]:
    """What the last backward did: ``seed``, ``gradients`` (node, slot) → array, ``saved`` of a node.

    Empty when it began elsewhere, when values are large or forgotten, or when hooks would run again.
    """
    from . import backward

    start, seed = backward.last_start
    if start is None or start() is not root or getattr(seed, "nbytes", 0) > REMEMBERED_BYTES:
        return {}
    nodes = _nodes(root)
    if any(n.hooks is not None for n in nodes):
        return {}
    saved = {n: {s[7:]: _held(getattr(n, s)) for s in n.saved_slots} for n in nodes}  # _saved_x: x
    held = [v for values in saved.values() for v in values.values()]
    large = any(getattr(v, "nbytes", 0) > REMEMBERED_BYTES for v in held)
    noted = None if large else _rerun(root, seed, nodes, None)
    return {} if noted is None else {"seed": seed, "gradients": noted, "saved": saved}


def _held(value: Any) -> Any:
    """A saved value, whether freed or not."""
    return value.value if value.__class__ is Freed else unpack(value)


def _path(found: dict[Node, tuple[Node | None, int]], node: Node, slot: int) -> tuple[str, ...]:
    names = [f"{node.name()}[{slot}]" if not isinstance(node, AccumulateGrad) else node.name()]
    above = found[node][0]
    while above is not None:
        names.append(above.name())
        above = found[above][0]
    return tuple(reversed(names))
