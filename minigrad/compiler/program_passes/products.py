"""Products of all steps of an unrolled network, made at once: for speed, at the price of the last bits.

    matmul(x[0], w), matmul(x[1], w), …     one product of all rows of x with w
    sum([matmul_tn(x0, g0), …])             one product of all rows of x and all rows of g

One large product is faster than many small ones, and adds the same numbers in another order.
"""

from __future__ import annotations

from typing import Any

from ...static.program.operator import Operator
from ...static.program.program import Program
from .names import Rewriting

#: so many products are made one
ENOUGH = 3
#: products whose sum is one: type, and how many axes the factors have
SUMMED = (("matmul_tn", [2, 2]), ("unbroadcast", [2]))


def batch_products(program: Program) -> Program:
    """A copy in which such products of the root are one.

    >>> import minigrad as mg
    >>> from minigrad import static
    >>> prog = static.Program()
    >>> with static.program_guard(prog):
    ...     x, w, h = static.data("x", [4, 5, 2]), static.data("w", [2, 2]), static.data("h", [5, 2])
    ...     for k in range(4):
    ...         h = mg.tanh(x[k] @ w) * h
    >>> [static.compile(prog, fetch=h, exact=exact).source.count("np.dot") for exact in (True, False)]
    [4, 1]
    """
    batched = program.clone()
    _inputs_of_all_steps(Rewriting(batched.global_block()))
    _Sums(batched.global_block()).run()
    batched.history.append("batch_products")
    batched.changed()
    return batched


def _inputs_of_all_steps(root: Rewriting) -> None:
    """One product in front of all, where every step of a sequence meets the same weight."""
    groups: dict[Any, dict[int, Operator]] = {}
    for op in root.block.ops:
        step = root.makers.get(op.inputs["x"][0]) if op.type in ("matmul", "linear") else None
        k = None if step is None or step.type != "getitem" else step.attrs.get("index")
        if step is not None and type(k) is int and op.output_names[0] in root.makers:
            x, *weights = *step.input_names, *op.input_names[1:]
            if (len(root.shape(x)), len(root.shape(weights[0]))) == (3, 2):
                groups.setdefault((x, *weights), {})[k % root.shape(x)[0]] = op
    for (x, *weights), steps in groups.items():
        places = [root.block.ops.index(op) for op in steps.values()]
        between = root.block.ops[min(places) : max(places)]
        changed = {n for op in between for n in op.output_names}
        fixed = changed.isdisjoint([x, *weights]) and not any(op.sub_blocks for op in between)
        if fixed and ENOUGH <= len(steps) == root.shape(x)[0]:
            root.block.ops[min(places) : min(places)] = _one_product(root, x, weights, steps)


def _one_product(
    root: Rewriting, x: str, weights: list[str], steps: dict[int, Operator]
) -> list[Operator]:
    """All rows of a sequence times a weight; each step then takes its part."""
    origin = next(iter(steps.values()))
    length, rows, columns = root.shape(x)
    out = root.shape(weights[0])[1]
    flat = root.reshape(origin, x, (length * rows, columns))
    inputs = dict(zip(origin.inputs, [flat.output_names, *([w] for w in weights)], strict=True))
    product = root.add(origin, origin.type, inputs, origin.attrs, (length * rows, out))
    whole = root.reshape(origin, product.output_names[0], (length, rows, out))
    for k, op in steps.items():
        op.type, op.inputs, op.attrs = "getitem", {"x": whole.output_names}, {"index": k}
    return [flat, product, whole]


class _Sums(Rewriting):
    """One product behind all, where a weight's gradient is the sum of one product per step."""

    def run(self) -> None:
        self.operators: list[Operator] = []
        self.joined: dict[tuple[str, ...], list[str]] = {}  # names → the name of all their rows
        for op in self.block.ops:
            if op.type == "sum" and op.output_names[0] in self.makers:
                for kind, axes in SUMMED:
                    self.sum_of(op, kind, axes)
            self.operators.append(op)
        self.block.ops = self.operators

    def sum_of(self, op: Operator, kind: str, axes: list[int]) -> None:
        """Let the products of one kind be one term of the sum."""
        products = {
            name: maker
            for name in reversed(op.inputs["x"])  # from the first step to the last
            if (maker := self.makers.get(name)) is not None
            and maker.type == kind
            and [len(self.shape(n)) for n in maker.input_names] == axes
        }
        if len(products) < ENOUGH:
            return
        slots = next(iter(products.values())).inputs
        factors = zip(*(p.input_names for p in products.values()), strict=True)
        inputs = {s: self.rows(op, names) for s, names in zip(slots, factors, strict=True)}
        shape = self.shape(op.output_names[0])
        self.operators.append(self.add(op, kind, inputs, {"shape": shape}, shape))
        rest = [n for n in op.inputs["x"] if n not in products]
        op.inputs["x"] = [*self.operators[-1].output_names, *rest]

    def rows(self, origin: Operator, names: tuple[str, ...]) -> list[str]:
        """All rows of matrices, one below the other: of all steps of a sequence, or joined."""
        names = tuple(map(self.source, names))
        if names not in self.joined:
            shape = (sum(self.shape(n)[0] for n in names), self.shape(names[0])[1])
            steps = [op for n in names if (op := self.makers.get(n)) and op.type == "getitem"]
            x = steps[0].input_names[0] if len(steps) == len(names) else ""
            if (
                x
                and all(op.input_names == [x] for op in steps)
                and ([op.attrs.get("index") for op in steps] == list(range(self.shape(x)[0])))
            ):
                op = self.reshape(origin, x, shape)
            else:
                op = self.add(origin, "concat", {"x": [*names]}, {}, shape)
            self.operators.append(op)
            self.joined[names] = op.output_names
        return self.joined[names]

    def source(self, name: str) -> str:
        """What a name is a copy of, or itself."""
        op = self.makers.get(name)
        while op is not None and op.type == "assign":
            name = op.input_names[0]
            op = self.makers.get(name)
        return name
