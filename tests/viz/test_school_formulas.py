"""Every gradient rule has a formula, and the formula computes what the rule computes."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.activations import erf_of_array
from minigrad.primitives.registry import REGISTRY
from minigrad.viz.adapters.formula import rule_formula, written
from tests.opinfo import RECORDS
from tests.ops import test_records as _records  # fills the table

assert _records
SLOTS = [(p.type, slot) for p in REGISTRY.values() for slot in p.differentiable]


class Matrix(np.ndarray):
    """An array whose ``.T`` exchanges the last two axes, for stacks of matrices."""

    @property
    def T(self):
        return np.swapaxes(self, -1, -2)


def kept(value, x, axis):
    """A result along an axis, with that axis kept, as `keepdims` does."""
    value = np.asarray(value)
    if value.ndim == np.ndim(x) or axis is ...:
        return value
    gone = list(range(np.ndim(x)) if axis is None else np.atleast_1d(axis))
    if value.ndim + len(gone) != np.ndim(x):
        return value
    return np.expand_dims(value, tuple(int(a) % np.ndim(x) for a in gone))


def sum_to(value, shape):
    """Added up over what was broadcast."""
    value = np.asarray(value)
    lead = value.ndim - len(shape)
    value = value.sum(tuple(range(lead)))
    stretched = tuple(k for k, n in enumerate(shape) if n == 1 != value.shape[k])
    return value.sum(stretched, keepdims=True)


def pair(value):
    return tuple(value) if isinstance(value, tuple | list) else (value, value)


class Convolution:
    """The sum ``out[n,o,i,j] += x[n,c,i*s+u*d-p,…] * w[o,c,u,v]``, and its two ways back: term by term."""

    def __init__(self, attrs):
        names = ("stride", "padding", "dilation")
        self.s, self.p, self.d = (pair(attrs.get(n, 1)) for n in names)
        self.groups = attrs.get("groups", 1)

    def terms(self, x, w, out):
        """(index in x, index in w, index in out) of what is multiplied, window by window."""
        per, each = w[0] // self.groups, w[1]
        for u, v in np.ndindex(*w[2:]):
            for i, j in np.ndindex(*out[2:]):
                a = i * self.s[0] + u * self.d[0] - self.p[0]
                b = j * self.s[1] + v * self.d[1] - self.p[1]
                if not (0 <= a < x[2] and 0 <= b < x[3]):
                    continue
                for o in range(w[0]):
                    for c in range(each):
                        yield (..., o // per * each + c, a, b), (o, c, u, v), (..., o, i, j)

    def correlate(self, x, w, shape):
        out = np.zeros(shape)
        for a, b, c in self.terms(x.shape, w.shape, shape):
            out[c] += x[a] * w[b]
        return out

    def convolve(self, g, w, shape):
        x = np.zeros(shape)
        for a, b, c in self.terms(shape, w.shape, g.shape):
            x[a] += g[c] * w[b]
        return x

    def filters(self, x, g, shape):
        w = np.zeros(shape)
        for a, b, c in self.terms(x.shape, shape, g.shape):
            w[b] += (x[a] * g[c]).sum()
        return w


def winners(x, attrs):
    """(window, place in the image of its first largest element)."""
    for window, places in window_places(x.shape, attrs):
        best = {}
        for i, j in places:
            for n, c in np.ndindex(*x.shape[:2]):
                if (n, c) not in best or x[n, c, i, j] > x[(n, c, *best[n, c])]:
                    best[n, c] = (i, j)
        for at, place in best.items():
            yield (*at, *window), (*at, *place)


def window_places(shape, attrs):
    kernel, border = pair(attrs["kernel_size"]), pair(attrs["padding"])
    step = kernel if attrs["stride"] is None else pair(attrs["stride"])
    many = [(shape[k + 2] + 2 * border[k] - kernel[k]) // step[k] + 1 for k in (0, 1)]
    for window in np.ndindex(*many):
        starts = [w * s - p for w, s, p in zip(window, step, border, strict=True)]
        inside = [
            (starts[0] + u, starts[1] + v)
            for u, v in np.ndindex(*kernel)
            if 0 <= starts[0] + u < shape[2] and 0 <= starts[1] + v < shape[3]
        ]
        yield window, inside


def words(p, env, attrs, slot, wanted):
    """What the words of school notation mean here."""
    first = next(iter(env[n] for n in p.inputs if not isinstance(env[n], list)), None)
    x, axis = env.get("x", first), attrs.get("axis", ...)
    along = None if axis is ... else tuple(axis) if isinstance(axis, list) else axis
    shape = np.shape(wanted)
    if p.type == "cofactor":
        along = (-2, -1)
    if p.type.startswith("conv") and slot == "b":
        along = (0, 2, 3)
    folded = Convolution(attrs)

    def softmax(z):
        e = np.exp(z - z.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def onehot(target):
        if np.shape(target) == np.shape(x):
            return target
        classes = np.arange(np.shape(x)[axis])
        return np.moveaxis(np.asarray(target)[..., None] == classes, -1, axis)

    def put(g, index, axis=None):
        out = np.zeros(shape)
        if axis is not None:
            index = (*[slice(None)] * (axis % out.ndim), index)
        flat = p.type in ("take", "untake") and axis is None
        np.add.at(out.reshape(-1) if flat else out, index, g)
        return out

    def erase(g, index):
        out = np.array(g)
        out[index] = 0
        return out

    def last(index):
        order = np.full(x.shape, -1)
        order[index] = np.arange(order[index].size).reshape(order[index].shape)
        return order[index] == np.arange(order[index].size).reshape(order[index].shape)

    def put_along_axis(g, indices, axis):
        out = np.zeros(shape)
        indices = np.broadcast_to(indices, g.shape)
        for at in np.ndindex(*g.shape):
            place = [min(i, n - 1) if n == 1 else i for i, n in zip(at, shape, strict=True)]
            place[axis] = indices[at]
            out[tuple(place)] += g[at]
        return out

    def unsort(g, x):
        if not x.ndim:
            return g
        order = np.argsort(x, axis, kind="stable")
        if attrs["descending"]:
            back = np.argsort(np.flip(x, axis), axis, kind="stable")
            order = np.flip(x.shape[axis] - 1 - back, axis)
        return put_along_axis(g, order, axis)

    def cumsum(v, axis, reverse):
        v, along = (np.reshape(v, -1), 0) if axis is None else (v, axis)
        if not v.ndim:
            return v
        back = slice(None, None, -1 if reverse else 1)
        rows = np.moveaxis(v, along, 0)[back]
        return np.reshape(np.moveaxis(np.cumsum(rows, 0)[back], 0, along), shape)

    def moved(v, by, axis):
        rows, out = np.moveaxis(v, axis, 0), np.zeros(np.shape(v))
        into = np.moveaxis(out, axis, 0)
        for k in range(len(rows)):
            if 0 <= k + by < len(rows):
                into[k + by] = rows[k]
        return out

    def recurrence(a, b, axis, reverse):
        out = np.empty(b.shape)
        rows, state = np.moveaxis(out, axis, 0), 0
        for k in range(len(rows))[:: -1 if reverse else 1]:
            state = np.moveaxis(b, axis, 0)[k] + np.moveaxis(a, axis, 0)[k] * state
            rows[k] = state
        return out

    def einsum(g, others):

        subscripts = attrs["subscripts"].replace(" ", "")

        eye = np.eye(x_list[env["k"]].size).reshape(-1, *x_list[env["k"]].shape)
        slopes = []
        for unit in eye:  # linear in each operand: its slope along every element
            values = [unit if j == env["k"] else v for j, v in enumerate(x_list)]
            slopes.append(np.vdot(np.einsum(subscripts, *values), g))
        return np.reshape(slopes, x_list[env["k"]].shape)

    x_list = env["x"] if isinstance(env.get("x"), list) else []

    def part(g, k):
        before = x_list[:k]
        if p.type == "stack":
            return np.take(g, k, axis)
        sizes = [np.size(v) if axis is None else v.shape[axis] for v in before]
        mine = x_list[k].size if axis is None else x_list[k].shape[axis]
        flat = np.ravel(g) if axis is None else g
        cut = np.take(flat, np.arange(mine) + sum(sizes), axis=0 if axis is None else axis)
        return np.reshape(cut, x_list[k].shape)

    def untile(g, shape):
        out, ndim = np.zeros(shape), g.ndim
        wide = (1,) * (ndim - len(shape)) + tuple(shape)
        for at in np.ndindex(*g.shape):
            out.reshape(wide)[tuple(i % n for i, n in zip(at, wide, strict=True))] += g[at]
        return out

    def border(pad_width, ndim):
        return np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()

    def crop(g, pad_width):
        sides = border(pad_width, g.ndim)
        return g[tuple(slice(a, n - b) for n, (a, b) in zip(g.shape, sides, strict=True))]

    def put_diagonal(g, offset):
        out = np.zeros(shape)
        axes = attrs["axis1"], attrs["axis2"]
        places = np.moveaxis(out, axes, (-2, -1))
        for k in range(g.shape[-1]):
            places[..., k + max(-offset, 0), k + max(offset, 0)] = g[..., k]
        return out

    def solve(a, g):
        return np.linalg.solve(a, g)

    def fit(g, shape):
        return np.broadcast_to(
            sum_to(g, [min(n, m) for n, m in zip(shape, g.shape, strict=True)]), shape
        )

    def diagonals(g, target, source):
        return fit(np.einsum(f"{target}->{source}", g), x.shape)

    def unpool(g, image):
        out = np.zeros(image.shape)
        for window, place in winners(image, attrs):
            out[place] += g[window]
        return out

    def pick(g, image):
        out = np.zeros(shape)
        for window, place in winners(image, attrs):
            out[window] = g[place]
        return out

    def spread(g):
        out = np.zeros(shape)
        for window, places in window_places(shape, attrs):
            for place in places:
                out[(..., *place)] += g[(..., *window)]
        return out

    def window_sums(g):
        out = np.zeros(shape)
        for window, places in window_places(g.shape, attrs):
            for place in places:
                out[(..., *window)] += g[(..., *place)]
        return out

    def correlate(a, b):
        return (folded.filters if slot == "w" else folded.correlate)(a, b, shape)

    ufuncs = {t: f for t in REGISTRY if isinstance(f := getattr(np, t, None), np.ufunc)}
    return ufuncs | {
        "sum": lambda v: np.sum(v, along, keepdims=True),
        "mean": lambda v: np.mean(v, along, keepdims=True),
        "var": lambda v: np.var(v, along, keepdims=True),
        "where": np.where, "pi": math.pi,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "Phi": lambda v: (1 + erf_of_array(v / math.sqrt(2))) / 2,
        "phi": lambda v: np.exp(-v * v / 2) / math.sqrt(2 * math.pi),
        "softmax": softmax, "onehot": onehot, "put": put, "erase": erase, "last": last,
        "take": lambda v, i, axis: np.take(v, i, axis),
        "take_along_axis": lambda v, i, axis: np.take_along_axis(v, np.asarray(i), axis),
        "put_along_axis": put_along_axis, "unsort": unsort, "cumsum": cumsum,
        "shift": lambda v, axis, by: moved(v, by, axis), "recurrence": recurrence,
        "after": lambda v: moved(v, 1 if attrs["reverse"] else -1, axis),
        "before": lambda v: moved(v, -1 if attrs["reverse"] else 1, axis),
        "einsum": einsum, "part": part, "untile": untile, "crop": crop,
        "pad": lambda g, w: np.pad(g, border(w, g.ndim)),
        "tile": np.tile, "put_diagonal": put_diagonal,
        "diagonal": lambda g, offset: np.diagonal(g, offset, attrs["axis1"], attrs["axis2"]),
        "concat": lambda g, axis: np.concatenate(g, axis), "stack": np.stack,
        "inv": np.linalg.inv, "solve": solve,
        "half_tril": lambda v: np.tril(v, -1) + np.tril(v) * np.eye(v.shape[-1]) / 2,
        "symmetric": lambda v: (v + v.T) / 2,
        "fit": fit, "diagonals": diagonals,
        "unpool": unpool, "pick": pick, "spread": spread, "window_sums": window_sums,
        "convolve": lambda g, w: folded.convolve(g, w, shape), "correlate": correlate,
        "matmul_nt": lambda a, b, *_: a @ b.T, "matmul_tn": lambda a, b, *_: a.T @ b,
        "reshape": np.reshape, "broadcast_to": np.broadcast_to, "sum_to": sum_to,
        "transpose": np.transpose, "flip": np.flip, "swapaxes": np.swapaxes,
        "argsort": lambda axes: None if axes is None else np.argsort([a % len(axes) for a in axes]),
        "roll": lambda g, by, axis: np.roll(g, by.tolist(), axis),
        "tril": np.tril, "triu": np.triu,
    }  # fmt: skip


def test_every_gradient_slot_has_a_formula_that_can_be_written():
    without = [
        (type, slot)
        for type, slot in SLOTS
        if (e := rule_formula(REGISTRY[type], slot)) is None or not written(e)
    ]
    assert not without


def as_matrices(p, env):
    """Vectors of a product as matrices of one row or one column."""
    x, other = ("a", "b") if p.type == "solve" else ("x", p.inputs[1])
    if p.type in ("matmul", "linear"):
        out = env["g"]
        if env[other].ndim == 1:
            env[other], out = env[other][:, None], out[..., None]
        if env[x].ndim == 1:
            env[x], out = env[x][None], out[..., None, :]
        env["g"] = out
    if p.type == "solve" and env["out"].ndim < env["a"].ndim:
        env["g"], env["out"] = env["g"][..., None], env["out"][..., None]


PRODUCTS = ("matmul", "linear", "solve", "matmul_nt", "matmul_tn")


@pytest.mark.parametrize(("type", "slot"), SLOTS)
def test_the_formula_of_a_gradient_computes_what_its_rule_computes(type, slot):
    p, rng, compared = REGISTRY[type], np.random.default_rng(0), 0
    expression = rule_formula(p, slot)
    code = compile(ast.unparse(expression), type, "eval")
    for sample in RECORDS[type].samples:
        values, attrs = arguments(p, sample)
        held = values.get(slot)
        arrays = held if isinstance(held, list) else [held]
        if held is None or not all(a.dtype.kind == "f" and a.size for a in arrays):
            continue
        if type in ("matmul_nt", "matmul_tn") and (
            len(attrs["shape"]) < 2 or any(np.ndim(v) < 2 for v in values.values())
        ):
            continue  # vectors there are made by the products only
        outs = p.kernel(*flat(p, values), **attrs)
        outs = [np.asarray(o) for o in outs] if isinstance(outs, tuple | list) else np.asarray(outs)
        if not isinstance(outs, list) and not outs.size:
            continue
        listed = p.list_output or len(p.outputs) > 1
        grads = [np.asarray(rng.uniform(0.5, 1.5, o.shape)) for o in (outs if listed else [outs])]
        known = {**values, **attrs, **shapes(values), **named(p, outs)}
        known |= {
            f"{n}_grad": grads if p.list_output else g
            for n, g in zip(p.outputs, grads, strict=False)
        }
        rule = p.rules[slot]
        wanted = rule.function(*(known[n] for n in rule.reads))
        wanted = wanted[rule.inputs.index(slot)] if rule.joint else wanted
        for k, one in enumerate(wanted if isinstance(held, list) else [wanted]):
            one = np.asarray(one)
            env = {
                **attrs,
                **values,
                **named(p, outs),
                "g": grads if p.list_output else grads[0],
            }
            env = environment(p, env, attrs, slot, one, arrays[k], k)
            with np.errstate(all="ignore"):
                said = np.asarray(eval(code, {"__builtins__": {}}, env), dtype=float)
            shape = arrays[k].shape if isinstance(held, list) else held.shape
            if type in ("matmul", "linear") and len(shape) == 1 and slot != "b":
                said = said[..., 0, :] if slot == "x" else said[..., 0]
            if (type, slot) == ("solve", "b") and outs.ndim < values["a"].ndim:
                said = said[..., 0]
            one, said = fitted(one, shape), fitted(said, shape)
            usual = np.isfinite(said)  # where log(x) has no value, the rule says 0
            np.testing.assert_allclose(said[usual], one[usual], 1e-9, 1e-12)
            compared += usual.any()
    assert compared


def arguments(p, sample):
    args, attrs = list(sample.args), {**p.attrs, **sample.attrs}
    names = p.inputs if p.list_input is None else p.inputs[:-1]
    values = {n: None if v is None else exact(v) for n, v in zip(names, args, strict=False)}
    if p.list_input is not None:
        values[p.list_input] = [exact(v) for v in args[len(names) :]]
    return values, attrs


def exact(value):
    """An array, of float64 if of floats."""
    value = np.asarray(value)
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def flat(p, values):
    names = [n for n in p.inputs if n != p.list_input]
    return [*(values.get(n) for n in names), *(values[p.list_input] if p.list_input else ())]


def shapes(values):
    def of(v):
        return [of(a) for a in v] if isinstance(v, list) else np.shape(v)

    dtypes = {f"{n}_dtype": getattr(v, "dtype", None) for n, v in values.items()}
    return {f"{n}_shape": of(v) for n, v in values.items()} | dtypes


def named(p, outs):
    return {p.outputs[0]: outs} if len(p.outputs) == 1 else dict(zip(p.outputs, outs, strict=True))


def environment(p, env, attrs, slot, wanted, held, k):
    """Everything a formula may name."""
    axis, x = attrs.get("axis", ...), env.get("x", held)
    env = {"k": k, **env}
    for name in ("g", "out"):
        if isinstance(env.get(name), np.ndarray) and "keepdims" in attrs:
            env[name] = kept(env[name], x, axis)
    env |= words(p, env, attrs, slot, wanted)
    if p.type in PRODUCTS:
        as_matrices(p, env)
    if p.type == "det":
        env |= {n: env[n][..., None, None] for n in ("g", "out")}
    if p.type in (*PRODUCTS, "inv", "det", "cofactor", "cholesky"):
        env |= {n: v.view(Matrix) for n, v in env.items() if isinstance(v, np.ndarray)}
    if "template" in attrs:
        arrays = iter(env["index"])
        env["index"] = tuple(next(arrays) if isinstance(t, str) else t for t in attrs["template"])
    if p.type == "dropout":
        drawn = np.random.default_rng(np.ravel(env["seed"])).random(x.shape, np.float32)
        env["mask"] = drawn >= attrs["p"]
    if p.type == "roll":
        env["shift"] = np.asarray(attrs["shift"])
    if p.type == "clip":
        env["min"] = -np.inf if attrs["min"] is None else attrs["min"]
        env["max"] = np.inf if attrs["max"] is None else attrs["max"]
    env["others"] = None
    if "n" not in attrs:
        env["n"] = counted(p, env, attrs)
    return env


def counted(p, env, attrs):
    """Over how many numbers a mean goes: rows of a cross entropy, windows of a pool, elements else."""
    x = env.get("x")
    if p.type == "softmax_less_target":
        return x.size // x.shape[attrs["axis"]]
    if p.type == "cross_entropy":
        return env["target"].size
    if p.type in ("avg_pool2d", "avg_unpool"):
        return math.prod(pair(attrs["kernel_size"]))
    if p.type == "over_count":
        axis, shape = attrs["axis"], attrs["shape"]
        return (
            math.prod(shape) if axis is None else math.prod(shape[a] for a in np.atleast_1d(axis))
        )
    if attrs.get("reduction", "mean") != "mean":
        return 1
    if p.type == "mean_square_slope":
        return x.size
    inputs = [env[n] for n in p.inputs if isinstance(env.get(n), np.ndarray)]
    out = env["out"].size if isinstance(env.get("out"), np.ndarray) else 1
    try:
        return np.broadcast(*inputs).size / max(out, 1)
    except ValueError:
        return 0


def fitted(value, shape):
    """A gradient in the shape of its input: added up over what was broadcast, or spread."""
    value = np.asarray(value)
    if value.size == math.prod(shape):
        return value.reshape(shape)
    large = np.broadcast_shapes(value.shape, shape) == value.shape
    return sum_to(value, shape) if large else np.broadcast_to(value, shape)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x**2, "[0] 2·x·g = 6"),
        (lambda x: x**3, "[0] 3·x²·g = 27"),
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
