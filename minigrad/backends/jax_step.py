"""A program under `jax.jit`: as a pure function, traced by JAX once per set of shapes.

``xp`` is every kernel with jax.numpy in NumPy's place: most are pure functions of NumPy calls and run retargeted,
the same code with other globals.  What they fill is a `Filled`.  The rest, those that write into views, loop over
values or check them, have a counterpart in `kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf as jax_erf
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..compiler.memory import start_values
from ..compiler.step import Step
from ..compiler.tracer import Retarget
from ..errors import ProgramError, told
from ..ops.index import along
from ..ops.join import border
from ..ops.windows import lowest, pair, plan
from ..primitives.registry import REGISTRY, Primitive
from ..static.program.program import Program
from .lowering import Function, Values

_ROWS = "how many rows a mask chooses is not known while JAX traces; use where instead"
REFUSED = {"select_rows": _ROWS, "spread_rows": _ROWS, "merge_rows": _ROWS}
COUNTERPARTS: dict[str, Any] = {}


def counterpart(function: Any) -> Any:
    """Enter a function in the table under its own name."""
    COUNTERPARTS[function.__name__.rstrip("_")] = function
    return function


def zeros(shape: Any, like: Any) -> Any:
    """Zeros of a dtype."""
    return jnp.zeros(tuple(shape), jnp.asarray(like).dtype)


def floating(x: Any) -> Any:
    """What NumPy's true division makes of a dtype."""
    x = jnp.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def transposed(function: Any, shape: Any, x: Any) -> Any:
    """The transpose of a linear function of arrays of this shape, as JAX finds it."""
    x = jnp.asarray(x)
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(tuple(shape), x.dtype))(x)[0]


@counterpart
def sigmoid(x):
    return 1 / (1 + jnp.exp(jnp.negative(x)))


@counterpart
def erf(x):
    return jax_erf(x)


@counterpart
def gelu(x):
    return x * (0.5 + 0.5 * jax_erf(x * 0.5**0.5))


@counterpart
def softmax(x, *, axis=-1):
    return jax.nn.softmax(floating(x), axis)


@counterpart
def dropout(x, seed, *, p=0.5):
    """The mask is drawn by NumPy, so that one seed means one mask everywhere.

    The seed comes in words of 32 bits, and truth values go back: threads of JAX's own know no 64-bit mode.
    """

    def mask(words):
        low, high = np.asarray(words).astype(np.int64)
        return np.random.default_rng(np.ravel(low | high << 32)).random(x.shape, np.float32) >= p

    x, seed = floating(x), jnp.asarray(seed, np.int64)
    words = jnp.stack([seed, seed >> 32]).astype(jnp.uint32)
    kept = jax.pure_callback(mask, jax.ShapeDtypeStruct(x.shape, bool), words)
    return x * (kept.astype(x.dtype) / (1 - p))


@counterpart
def cross_entropy(x, target, *, axis=-1):
    rows = jax.nn.log_softmax(floating(x), axis)
    picked = jnp.take_along_axis(rows, jnp.expand_dims(target, axis), axis)
    return -jnp.sum(picked) / (picked.size or np.nan)


@counterpart
def softmax_less_target(x, target, *, axis=-1):
    hot = jax.nn.one_hot(target, x.shape[axis], axis=axis, dtype=floating(x).dtype)
    return (softmax(x, axis=axis) - hot) / max(np.size(target), 1)


@counterpart
def sgd(param, grad, learning_rate):
    return (param - learning_rate * grad).astype(param.dtype)


# -- shapes, order, recurrences ----------------------------------------------------------


@counterpart
def pad(x, *, pad_width, value=0.0):
    return jnp.pad(x, border(pad_width, x.ndim), constant_values=value)


@counterpart
def crop(x, *, pad_width):
    pairs = border(pad_width, x.ndim)
    return x[tuple([slice(a, n - b) for n, (a, b) in zip(x.shape, pairs, strict=True)])]


@counterpart
def untile(x, *, shape, repetitions):
    return transposed(lambda y: jnp.tile(y, repetitions), shape, x)


@counterpart
def recurrence(a, b, *, axis, reverse=False):
    dtype = jnp.result_type(a, b)
    rows = [jnp.moveaxis(jnp.asarray(v, dtype), axis, 0) for v in (a, b)]

    def step(state, row):
        state = row[1] + row[0] * state
        return state, state

    _, out = lax.scan(step, jnp.zeros(rows[1].shape[1:], dtype), tuple(rows), reverse=reverse)
    return jnp.moveaxis(out, 0, axis)


@counterpart
def sort(x, *, axis=-1, descending=False):
    return jnp.sort(x, axis, descending=descending)


@counterpart
def argsort(x, *, axis=-1, descending=False):
    return jnp.argsort(x, axis, stable=True, descending=descending)


@counterpart
def spread(x, *, shape, source, target):
    return transposed(lambda y: jnp.einsum(f"{target}->{source}", y), shape, x)


# -- reading and writing at places -------------------------------------------------------


@counterpart
def untake(x, indices, *, shape, axis=None):
    return transposed(lambda y: jnp.take(y, indices, axis), shape, x)


@counterpart
def index_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[(*[slice(None)] * (axis % x.ndim), indices)].add(y)


@counterpart
def scatter_add(x, indices, y, *, axis=0):
    return jnp.asarray(x).at[along(indices, x.shape, axis)].add(y)


@counterpart
def put_diagonal(x, *, shape, **axes):
    return transposed(lambda y: jnp.diagonal(y, **axes), shape, x)


# -- products, convolutions and pools ----------------------------------------------------


@counterpart
def linear(x, w, b=None):
    return jnp.matmul(x, w) if b is None else jnp.matmul(x, w) + b


@counterpart
def matmul_tn(x, y, *, shape):
    return transposed(lambda w: jnp.matmul(x, w), shape, y)


@counterpart
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    borders = [(p, p) for p in pair(padding)]
    how = {"rhs_dilation": pair(dilation), "feature_group_count": groups}
    out = lax.conv_general_dilated(x, w, pair(stride), borders, **how)
    return out if b is None else out + jnp.reshape(b, (-1, 1, 1))


@counterpart
def conv2d_input(x, w, *, shape, **how):
    return transposed(lambda image: conv2d(image, w, **how), shape, x)


@counterpart
def conv2d_weight(x, y, *, shape, **how):
    return transposed(lambda filters: conv2d(x, filters, **how), shape, y)


def _bordered(x, border, value=0):
    (p, q) = border
    return jnp.pad(x, ((0, 0), (0, 0), (p, p), (q, q)), constant_values=value)


@counterpart
def max_pool2d(x, *, kernel_size, stride=None, padding=0):
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide = _bordered(x, border, lowest(x.dtype))
    out = wide[places[0]]
    for place in places[1:]:
        out = jnp.maximum(out, wide[place])
    return out


@counterpart
def max_unpool(y, x, top, **how):
    return transposed(lambda values: max_pick(values, x, top, **how), x.shape, y)


@counterpart
def max_pick(y, x, top, *, kernel_size, stride=None, padding=0):
    places, border = plan(x.shape, kernel_size, stride, padding)
    wide, values = _bordered(x, border, lowest(x.dtype)), _bordered(y, border)
    return sum(values[place] * hit for place, hit in _winners(wide, places, top))


def _winners(x, places, top):
    free = jnp.ones(top.shape, bool)
    for place in places:
        hit = (x[place] == top) & free
        free = free & ~hit
        yield place, hit


Body = Callable[..., Any]


class JaxStep(Step):
    """A program compiled by JAX, called like a `Step`; what is fetched comes as JAX arrays.

    Attributes: ``source``, the program that is traced, as text; ``function``, the same as a function of
    ``(parameters, feeds)``, for `jax.jit` with shardings of your own; ``parameters``, name → JAX array, replaced in
    every run; ``history``.  A feed may be a JAX array: where it lies on several devices, so does the computation.
    An error leaves the parameters as they were.
    """

    kept = jax.Array

    def __init__(self, program: Program, fetch: Any, executor: Any, max_steps: Any) -> None:
        super().__init__(program, fetch, executor)
        self.max_steps = max_steps

    @staticmethod
    def start_memory(program: Program, executor: Any) -> Any:
        """The parameters, as JAX has them."""
        with jax.enable_x64(True):
            start = start_values(program, executor).items()
            return SimpleNamespace(parameters={n: jnp.asarray(v) for n, v in start})

    def __call__(self, *given: Any, **feed: Any) -> Any:
        with jax.enable_x64(True):
            return super().__call__(*given, **feed)

    def built(self, program: Program) -> Any:
        """The jitted function of a program of primitives."""
        return BuiltJax(program, self)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that was jitted last."""
        return getattr(self._current, "function", None)

    def _read_scope(self) -> None:
        scope: Any = self.executor and self.executor.scope
        for name, value in scope.values.items():
            if name in self.parameters:
                self.parameters[name] = jnp.asarray(value)


class BuiltJax:
    """The jitted function for one set of shapes."""

    def __init__(self, program: Program, step: JaxStep) -> None:
        self.step, self.whole = step, Function(program, step.fetch)
        self.function = partial(self.whole, JaxSpace(step.max_steps))
        self.jitted = jax.jit(self.function)
        self.text, self.feeds = str(program), tuple(step.data)
        self.names: dict[str, str] = {}

    def fits(self, *values: Any) -> bool:
        """Feeds are looked at in every run: JAX's own stay where they are."""
        return False

    def run(self, *values: Any) -> Any:
        """Run it once; parameters are replaced when all is computed."""
        fed = {n: v for n, v in zip(self.feeds, values, strict=True) if v is not None}
        after, results = jax.block_until_ready(self.jitted(self.step.parameters, fed))
        self.step.parameters = after
        if self.step.executor is not None:
            self.step.executor.scope.values.update({n: np.array(v) for n, v in after.items()})
        return results

    def explained(self, error: Exception) -> Exception:
        """What is said of an operator that asks for values while JAX traces; other errors as they are."""
        _, ours, said = str(error).partition(
            "ProgramError: "
        )  # a callback's, with frames of JAX around it
        if ours:
            return ProgramError(said.strip())
        if not isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError):
            return error
        op: Any = self.whole.op
        what = f"{op.type} needs values that JAX does not know when it traces, such as a mask"
        advice = "mg.where(mask, x, 0.0), or run the program with static.Executor()"
        return ProgramError(told(what, advice, op.source_line))


#: primitives whose arguments JAX would bring to another common dtype than NumPy does
_PRODUCTS = ("matmul", "matmul_nt", "matmul_tn", "linear", "concat", "stack", "sum")


class JaxSpace:
    """Every primitive by its type, as a function of JAX arrays; ``max_steps`` bounds loops that are differentiated."""

    def __init__(self, max_steps: int | None = None) -> None:
        self.max_steps = max_steps
        self._functions: dict[str, Callable[..., Any]] = {}
        self._retarget = Retarget(
            JaxNumPy(),
            lambda p, inputs, attrs: self._of(p)(*inputs, **attrs),
            lambda ufunc: getattr(jnp, ufunc.__name__),
        )

    def __getattr__(self, type: str) -> Callable[..., Any]:
        return self._of(REGISTRY[type])

    def _of(self, p: Primitive) -> Callable[..., Any]:
        if p.type not in self._functions:
            self._functions[p.type] = self._function(p)
        return self._functions[p.type]

    def _function(self, p: Primitive) -> Callable[..., Any]:
        if p.type in REFUSED:
            raise ProgramError(
                f"{p.type} has no counterpart in JAX: {REFUSED[p.type]}.\n"
                f"  repair: static.compile without backend, or static.Executor()"
            )
        kernel = COUNTERPARTS.get(p.type) or self._retarget.of(p.kernel)
        aligned = p.broadcasts or p.type in _PRODUCTS

        def call(*args: Any, **attrs: Any) -> Any:
            out = kernel(*(promoted(args) if aligned else args), **attrs)
            return jax.tree.map(strongly_typed, out)

        return call

    # -- control flow ------------------------------------------------------------------------

    def cond(self, pred: Any, yes: Body, no: Body) -> Any:
        """The results of one of two functions."""
        return lax.cond(jnp.all(pred), yes, no)

    def scan(self, step: Body, starts: Values, sequences: Values) -> Any:
        """A step for each place of the sequences."""

        def one(carried: Values, slices: Values) -> Any:
            after, out = step(carried, slices)
            return _like(after, carried), (out, carried)

        ends, (stacked, carried) = lax.scan(one, starts, sequences)
        return ends, stacked, (carried, sequences, None)

    def while_loop(self, test: Body, step: Body, starts: Values, save: bool) -> Any:
        """Steps as long as the test holds."""
        if not save:
            more = lambda carried: jnp.all(test(carried))  # noqa: E731
            return lax.while_loop(more, lambda c: _like(step(c)[0], c), starts), None
        return self._bounded(test, step, starts, self.max_steps)

    def _bounded(self, test: Any, step: Any, starts: Values, limit: Any) -> Any:
        """A while loop of at most ``limit`` steps, which keeps what each of them began with."""

        def more(state: Any) -> Any:
            count, carried, _ = state
            return (count < limit) & jnp.all(test(carried))

        def one(state: Any) -> Any:
            count, carried, rows = state
            rows = tuple(r.at[count].set(c) for r, c in zip(rows, carried, strict=True))
            return count + 1, _like(step(carried)[0], carried), rows

        room = tuple(jnp.zeros((limit, *s.shape), s.dtype) for s in starts)
        count, ends, rows = lax.while_loop(more, one, (0, starts, room))
        count = jax.pure_callback(
            _ended, jax.ShapeDtypeStruct((), np.int32), count, jnp.all(test(ends)), limit
        )
        return ends, (rows, (), count)

    def loop_grad(self, back: Body, kept: Any, seeds: Values, grads: Values, params: Values) -> Any:
        """The steps backwards: gradients of the starts, of what the body reads from outside, of the sequences."""
        rows, sequences, count = kept
        totals = tuple(jnp.zeros_like(p) for p in params)

        def one(state: Any, row: Any) -> Any:
            grads, totals = state
            after, shares, slices = back(grads, *row)
            totals = tuple(t + s for t, s in zip(totals, shares, strict=True))
            return (_like(after, grads), totals), slices

        if count is None:
            (grads, totals), out = lax.scan(
                one, (grads, totals), (rows, sequences, seeds), reverse=True
            )
            return grads, totals, out

        def earlier(state: Any) -> Any:
            k, inner = state
            row = tuple(r[k - 1] for r in rows)
            return k - 1, one(inner, (row, (), ()))[0]

        _, (grads, totals) = lax.while_loop(
            lambda state: state[0] > 0, earlier, (count, (grads, totals))
        )
        return grads, totals, ()


class Filled(NDArrayOperatorsMixin):
    """An array that a kernel fills: what is written makes a new one, for which it then stands."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.value = self.value.at[index].set(value)

    def __jax_array__(self) -> Any:
        return self.value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None) -> Any:
        result = getattr(jnp, ufunc.__name__)(*map(_unfilled, inputs))
        if out is None:
            return result
        self.value = result
        return self


class JaxNumPy:
    """jax.numpy; where it has no such name, NumPy."""

    cumsum, argsort = staticmethod(np.cumsum), staticmethod(np.argsort)  # of sizes and axes

    def __getattr__(self, name: str) -> Any:
        value = getattr(jnp, name) if hasattr(jnp, name) else getattr(np, name)
        if name in ("array", "empty", "full", "zeros"):
            return lambda *args: Filled(value(*map(_unfilled, args)))
        return Applied(value) if callable(value) and not isinstance(value, type) else value

    @staticmethod
    def result_type(*values: Any) -> np.dtype[Any]:
        """NumPy's own answer, which differs from JAX's."""
        return np.result_type(*(getattr(v, "dtype", v) for v in values))

    @contextmanager
    def errstate(self, **kwargs: Any) -> Iterator[None]:
        """JAX never warns."""
        yield


class Applied:
    """A function of jax.numpy for what kernels fill, too; ``np.add.reduce`` and its kin are such functions."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*jax.tree.map(_unfilled, args), **named)

    def __getattr__(self, name: str) -> Any:
        return Applied(getattr(self.function, name))

    def at(self, out: Filled, index: Any, value: Any) -> None:
        """``out[index] += value``, where an index may repeat."""
        out.value = getattr(out.value.at[index], self.function.__name__)(value)


def _unfilled(value: Any) -> Any:
    return value.value if isinstance(value, Filled) else value


def promoted(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments in the dtype NumPy would compute in; masks stay masks."""
    kinds = {a.dtype for a in args if hasattr(a, "dtype") and a.dtype != bool}
    if len(kinds) < 2:
        return args
    common = np.result_type(*kinds)
    return tuple(a.astype(common) if hasattr(a, "dtype") and a.dtype != bool else a for a in args)


def strongly_typed(value: Any) -> Any:
    """An array whose dtype is its own, not that of a number in passing."""
    return jnp.asarray(value, jnp.asarray(value).dtype)


def _like(values: Values, before: Values) -> Values:
    """The next carried values, in the dtypes they came with."""
    return tuple(v.astype(b.dtype) for v, b in zip(map(jnp.asarray, values), before, strict=True))


def _ended(count: Any, goes_on: Any, limit: Any) -> Any:
    """Runs while the program does.  Errors: `ProgramError` for a loop that was cut off."""
    if goes_on:
        raise ProgramError(
            f"a while loop did not end within max_steps={int(limit)}.\n"
            f"  repair: give static.compile a larger max_steps"
        )
    return np.asarray(count, np.int32)  # threads of JAX's own know no 64-bit mode
