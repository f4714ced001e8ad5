"""Derivatives of a record's *reference*, by means that share no code with the package."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad.errors import describe
from tests.opinfo import Record, Sample


def wanted(record: Record, sample: Sample) -> list[int]:
    """Where the arguments with a gradient stand: floats in slots with a rule, each object once."""
    p, found, seen = record.primitive, [], set()
    for k, (slot, a) in enumerate(zip(p.slot_names(len(sample.args)), sample.args, strict=False)):
        if (
            slot in p.rules
            and isinstance(a, np.ndarray)
            and a.dtype.kind == "f"
            and id(a) not in seen
        ):
            seen.add(id(a))
            found.append(k)
    return found


def replaced(sample: Sample, values: dict[int, Any]) -> tuple[Any, ...]:
    """The arguments with other values at some positions, and wherever the same object stood."""
    by_id = {id(sample.args[k]): v for k, v in values.items()}
    return tuple(by_id.get(id(a), a) if isinstance(a, np.ndarray) else a for a in sample.args)


def as_list(out: Any) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


def call(record: Record, sample: Sample, values: dict[int, Any]) -> list[Any]:
    """The primitive itself, on arrays or Tensors."""
    return as_list(record.primitive.function(*replaced(sample, values), **sample.attrs))


def tensors(sample: Sample, positions: list[int], requires_grad: bool = True) -> dict[int, Any]:
    return {k: mg.tensor(sample.args[k], requires_grad=requires_grad) for k in positions}


def floats(outs: list[Any]) -> list[Any]:
    return [o for o in outs if o.dtype.kind in "fc"]


def reference(record: Record, sample: Sample, values: dict[int, Any]) -> list[np.ndarray]:
    outs = as_list(record.reference(*replaced(sample, values), **sample.attrs))
    return floats([np.asarray(o) for o in outs])


def forward_mode(
    record: Record, sample: Sample, at: dict[int, Any], along: dict[int, Any]
) -> list[Any]:
    """The derivative of the reference along a direction: a complex step, or central differences."""
    if record.holomorphic:
        step = 1e-30
        outs = reference(record, sample, {k: at[k] + 1j * step * along[k] for k in at})
        return [o.imag / step for o in outs]
    step = 1e-6
    plus = reference(record, sample, {k: at[k] + step * along[k] for k in at})
    minus = reference(record, sample, {k: at[k] - step * along[k] for k in at})
    return [(p - m) / (2 * step) for p, m in zip(plus, minus, strict=True)]


def pulled(record: Record, sample: Sample, at: dict[int, Any], seeds: list[Any]) -> dict[int, Any]:
    """Our gradients as arrays, zeros where there is none."""
    leaves = {k: mg.tensor(v, requires_grad=True) for k, v in at.items()}
    outs = [o for o in floats(call(record, sample, leaves))]
    pairs = [(o, u) for o, u in zip(outs, seeds, strict=True) if o.requires_grad]
    if not pairs:
        return {k: np.zeros_like(v) for k, v in at.items()}
    grads = mg.grad(
        [o for o, _ in pairs],
        list(leaves.values()),
        [u for _, u in pairs],
        allow_unused=True,
        materialize_grads=True,
    )
    return {k: g.data for k, g in zip(leaves, grads, strict=True)}


def directions(at: dict[int, Any], rng: np.random.Generator) -> list[dict[int, Any]]:
    """Every unit vector where there are few elements, else four random directions."""
    total = sum(v.size for v in at.values())
    if total > 12:
        return [{k: rng.uniform(-1, 1, v.shape) for k, v in at.items()} for _ in range(4)]
    units = []
    for k, v in at.items():
        for place in np.ndindex(*v.shape):
            unit = {j: np.zeros(w.shape) for j, w in at.items()}
            unit[k][place] = 1.0
            units.append(unit)
    return units


def inner(a: Any, b: Any) -> float:
    return float(sum(np.sum(x * y) for x, y in zip(a, b, strict=True)))


def shown(sample: Sample) -> str:
    return f"({', '.join(describe(a) for a in sample.args)}, {sample.attrs})"
