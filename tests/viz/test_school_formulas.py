"""The formulas that are declared with rules compute what the rules compute."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.activations import erf_of_array
from minigrad.ops.shape import sum_to
from minigrad.primitives.registry import REGISTRY
from tests.opinfo import RECORDS
from tests.ops import test_records as _records  # fills the table

assert _records
DECLARED = [(p.type, slot) for p in REGISTRY.values() for slot in p.formulas]


def kept(value, x, axis):
    """A result along an axis, with that axis kept, as `keepdims` does."""
    value = np.asarray(value)
    if value.ndim == np.ndim(x) or axis is ...:
        return value
    gone = list(range(np.ndim(x)) if axis is None else np.atleast_1d(axis))
    if value.ndim + len(gone) != np.ndim(x):
        return value
    return np.expand_dims(value, tuple(int(a) % np.ndim(x) for a in gone))


def words(env, attrs):
    """What the words of school notation mean."""
    x, axis = env["x"], attrs.get("axis", ...)
    along = None if axis is ... else (tuple(axis) if isinstance(axis, list) else axis)

    def softmax(z):
        e = np.exp(z - z.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def onehot(target):
        if np.shape(target) == np.shape(x):
            return target
        classes = np.arange(np.shape(x)[axis])
        return np.moveaxis(np.asarray(target)[..., None] == classes, -1, axis)

    return {
        "sum": lambda v: np.sum(v, along, keepdims=True),
        "mean": lambda v: np.mean(v, along, keepdims=True),
        "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "where": np.where, "pi": math.pi,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "Phi": lambda v: (1 + erf_of_array(v / math.sqrt(2))) / 2,
        "phi": lambda v: np.exp(-v * v / 2) / math.sqrt(2 * math.pi),
        "softmax": softmax, "onehot": onehot,
        "reshape": np.reshape, "sum_to": sum_to, "swapaxes": np.swapaxes,
        "tril": np.tril, "triu": np.triu,
    }  # fmt: skip


@pytest.mark.parametrize(("type", "slot"), DECLARED)
def test_a_declared_formula_computes_what_the_rule_computes(type, slot):
    p, rng, compared = REGISTRY[type], np.random.default_rng(0), 0
    for sample in RECORDS[type].samples:
        attrs = {**p.attrs, **sample.attrs}
        values = dict(zip(p.inputs, sample.args, strict=False))
        values = {n: np.asarray(v) for n, v in values.items()}
        if values["x"].dtype.kind != "f" or not values["x"].size:
            continue
        attrs |= {k: v for k, v in values.items() if k in p.attrs}
        out = np.asarray(p.kernel(*(values[n] for n in p.inputs), **attrs))
        grad = rng.uniform(0.5, 1.5, out.shape).astype(out.dtype)
        shapes = {f"{n}_shape": v.shape for n, v in values.items()}
        known = {**values, **attrs, **shapes, "out": out, "out_grad": grad}
        rule = p.rules[slot]
        wanted = np.asarray(rule.function(*(known[n] for n in rule.reads)))
        env = {**attrs, **values, **words(values, attrs)}
        axis = attrs.get("axis", ...)
        env |= {"g": kept(grad, values["x"], axis), "out": kept(out, values["x"], axis)}
        env["n"] = counted(p, values) / max(env["out"].size, 1)
        with np.errstate(all="ignore"):
            said = np.asarray(eval(p.formulas[slot], {"__builtins__": {}}, env))
        shape = values[slot].shape
        wanted, said = fitted(wanted, shape), fitted(said, shape)
        usual = np.isfinite(said)  # where log(x) has no value, the rule says 0
        np.testing.assert_allclose(said[usual], wanted[usual], 1e-6, 1e-9)
        compared += 1
    assert compared


def fitted(value, shape):
    """A gradient in the shape of its input: added up over what was broadcast, or spread."""
    large = np.broadcast_shapes(value.shape, shape) == value.shape
    return sum_to(value, shape) if large else np.broadcast_to(value, shape)


def counted(p, values):
    """Over how many numbers a mean goes: rows of a cross entropy, elements else."""
    if p.type == "softmax_less_target":
        return values["target"].size * values["x"].size  # its result is as large as x
    if "target" in values:
        return values["target"].size
    return np.broadcast(*values.values()).size


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x**2, "[0] g·2·x^(2 − 1) = 6"),
        (lambda x: mg.softmax(x * mg.ones(2)).sum(), "%2·(g − Σ(%2·g))"),
        (lambda x: (x * mg.ones(4)).mean(), "g / n"),
    ],
)
def test_pictures_show_declared_formulas(function, text):
    x = mg.tensor(3.0, requires_grad=True, name="x")
    y = function(x)
    y.backward()
    nodes = mg.draw(y).graph.nodes.values()
    said = [line for n in nodes for line in (*n.lines, *(port for port, _ in n.ports))]
    assert any(line.startswith(text) for line in said), said
