"""A program under `jax.jit`: as a pure function, traced by JAX once per set of shapes.

Every call of the schedule is the function of the same name in jax.numpy, and loops and branches are
JAX's own.  A few kernels stay whole: those JAX has an operation for, and those that NumPy writes
down as a loop.
"""

import operator
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf as jax_erf

from ..compiler.memory import start_values
from ..compiler.schedule import Array, Branch, Call, Loop
from ..compiler.step import Step
from ..compiler.tracer import Retarget
from ..errors import ProgramError, told
from ..ops.windows import pair
from ..primitives.arguments import Attrs, ByName, Function
from ..static.program.program import Program
from .replay import Replay, entering

COUNTERPARTS: dict[str, Function] = {"erf": jax_erf}


counterpart = entering(COUNTERPARTS)


def transposed(function, shape, x) -> Any:
    """The transpose of a linear function of arrays of this shape, as JAX finds it for real numbers."""
    x = jnp.asarray(x, np.result_type(x, 1.0))
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(tuple(shape), x.dtype))(x)[0]


def alike(*arrays) -> list[Any]:
    """In one dtype, that which NumPy brings them to: JAX convolves and scans no others."""
    dtype = np.result_type(*arrays)
    return [jnp.asarray(a, dtype) for a in arrays]


@counterpart
def gelu(x):
    return x * (0.5 + 0.5 * jax_erf(x * 0.5**0.5))


@counterpart
def dropout(x, seed, *, p=0.5):
    """The mask is drawn by NumPy, so that one seed means one mask everywhere.

    The seed comes in words of 32 bits, and truth values go back: threads of JAX's own know no
    64-bit mode.
    """

    def mask(words):
        low, high = np.asarray(words).astype(np.int64)
        return np.random.default_rng(np.ravel(low | high << 32)).random(x.shape, np.float32) >= p

    x, seed = jnp.asarray(x), jnp.asarray(seed, np.int64)
    words = jnp.stack([seed, seed >> 32]).astype(jnp.uint32)
    kept = jax.pure_callback(mask, jax.ShapeDtypeStruct(x.shape, bool), words)
    return x * (kept.astype(np.result_type(x, np.float16)) / (1 - p))


@counterpart
def recurrence(a, b, *, axis, reverse=False):
    def step(state, row):
        state = row[1] + row[0] * state
        return state, state

    rows = [jnp.moveaxis(v, axis, 0) for v in alike(a, b)]
    start = jnp.zeros(rows[1].shape[1:], rows[1].dtype)
    _, out = lax.scan(step, start, rows, reverse=reverse)
    return jnp.moveaxis(out, 0, axis)


@counterpart
def spread(x, *, shape, source, target):
    return transposed(lambda y: jnp.einsum(f"{target}->{source}", y), shape, x)


# -- convolutions and pools --------------------------------------------------------------


@counterpart
def conv2d(x, w, b=None, *, stride=1, padding=0, dilation=1, groups=1):
    borders = [(p, p) for p in pair(padding)]
    out = lax.conv_general_dilated(
        *alike(x, w), pair(stride), borders, rhs_dilation=pair(dilation), feature_group_count=groups
    )
    return out if b is None else out + jnp.reshape(b, (-1, 1, 1))


@counterpart
def conv2d_input(x, w, *, shape, **how):
    x, w = alike(x, w)
    return transposed(lambda image: conv2d(image, w, **how), shape, x)


@counterpart
def conv2d_weight(x, y, *, shape, **how):
    x, y = alike(x, y)
    return transposed(lambda filters: conv2d(x, filters, **how), shape, y)


#: kernels that are not taken apart into NumPy's calls
WHOLE = {*COUNTERPARTS, "conv_transpose2d"}


class JaxStep(Step):
    """A program compiled by JAX, called like a `Step`; what is fetched comes as JAX arrays.

    Attributes: ``source``, the program that is traced, as text; ``function``, the same as a function of
    ``(parameters, feeds)``, for `jax.jit` with shardings of your own; ``parameters``, name → JAX array, replaced in
    every run; ``history``.  A feed may be a JAX array: where it lies on several devices, so does the computation.
    An error leaves the parameters as they were.
    """

    kept = jax.Array

    @staticmethod
    def start_memory(program: Program, executor) -> Any:
        """The parameters, as JAX has them."""
        with jax.enable_x64(True):
            start = start_values(program, executor).items()
            return SimpleNamespace(parameters={n: jnp.asarray(v) for n, v in start})

    def __call__(self, *given, **feed) -> Any:
        with jax.enable_x64(True):
            return super().__call__(*given, **feed)

    def built(self, program: Program) -> Any:
        """The jitted function of a program of primitives."""
        return JaxReplay(program, self)

    @property
    def function(self) -> Function | None:
        """The function that was jitted last."""
        return self._current  # type: ignore[return-value]

    def _read_scope(self, values: ByName) -> None:
        for name, value in values.items():
            if name in self.parameters:
                self.parameters[name] = jnp.asarray(value)


class JaxReplay(Replay):
    """The schedule on JAX arrays, and the jitted function for one set of shapes."""

    def __init__(self, program: Program, step: JaxStep) -> None:
        super().__init__(program, step.fetch, lambda p, args: p.type in WHOLE)
        self.owner, self.jitted = step, jax.jit(self)
        self.text, self.feeds = str(program), tuple(step.data)
        self.names: dict[str, str] = {}
        self.retarget = Retarget(SimpleNamespace(**vars(np) | vars(jnp)), COUNTERPARTS)

    def fits(self, *values) -> bool:
        """Feeds are looked at in every run: JAX's own stay where they are."""
        return False

    def run(self, *values) -> Any:
        """Run it once; parameters are replaced when all is computed."""
        fed = {n: v for n, v in zip(self.feeds, values, strict=True) if v is not None}
        after, results = jax.block_until_ready(self.jitted(self.owner.parameters, fed))
        self.owner.parameters = after
        if self.owner.executor is not None:
            self.owner.executor.scope.values.update({n: np.array(v) for n, v in after.items()})
        return results

    def explained(self, error: Exception) -> Exception:
        """What is said of an operator that asks for values while JAX traces; other errors as they are."""
        # a callback's, with frames of JAX around it
        _, ours, said = str(error).partition("ProgramError: ")
        if ours:
            return ProgramError(said.strip())
        asked = isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError)
        if not asked and "immutable" not in str(error):  # what a kernel writes at a mask
            return error
        text = told(
            f"{self.op.type} needs values that JAX does not know when it traces, "
            "such as how many rows a mask chooses",
            "mg.where(mask, x, 0.0), or run the program with static.Executor(); "
            "mg.where(mask, y, x) for mg.setitem(x, y, mask)",
            self.op.source_line,
        )
        return ProgramError(text)

    # -- calls -----------------------------------------------------------------------------

    def cast(self, value, dtype) -> Any:
        """In another dtype."""
        return jnp.asarray(value, dtype)

    def fitted(self, value, array) -> Any:
        """In the shape and dtype of an Array."""
        return jnp.broadcast_to(jnp.asarray(value, array.dtype), array.shape)

    def function(self, path: str, args, kwargs: Attrs, out: Array) -> Any:
        """The function of the same name."""
        kwargs.pop("kind", None)  # JAX sorts stably
        return operator.attrgetter(path.removeprefix("np."))(jnp)(*args, **kwargs)

    def item(self, x, index) -> Any:
        """``x[index]``."""
        return jnp.asarray(x)[index]

    def replaced(self, x, index, value, add: bool = False) -> Any:
        """With a value at places, or added there."""
        return x.at[index].add(value) if add else x.at[index].set(value)

    def look(self, call: Call, source) -> Any:
        """A view as a value."""
        if call.path == "[]":
            return source[call.args[1]]
        return self.function(call.path, (source, *call.args[1:]), call.kwargs, call.out)

    def put(self, call: Call, source, value) -> Any:
        """The value that a view looks at, with what the view is now."""
        if call.path == "[]":
            return source.at[call.args[1]].set(value)
        return source.ravel().at[self.places(call)].set(value).reshape(source.shape)

    def opaque(self, call: Call, args, attrs: Attrs) -> Any:
        """A kernel as a whole: its counterpart, or its code with jax.numpy in NumPy's place."""
        kernel = COUNTERPARTS.get(call.path) or self.retarget.of(call.function)
        return kernel(*args, **attrs)

    # -- loops and branches ------------------------------------------------------------------

    def flag(self, array) -> Any:
        """A single truth value."""
        return jnp.all(self.value(array))

    def loop(self, loop: Loop) -> None:
        """JAX's own loops, and with them what each step saves; a grad op goes back over that."""
        back = loop.backward
        frames = loop.frames
        rows, count = self.value(frames) if back else ({}, None)
        starts, one = self.starts(loop), partial(self.step, loop)

        def earlier(k, state) -> Any:
            saved = jax.tree.map(lambda r: r[count - 1 - k], rows)
            return one(state, (saved, ()))[0]

        kept = None
        if count is not None:
            ends = lax.fori_loop(0, count, earlier, starts)
        elif loop.go_on is None:
            sequences = [self.value(seq) for seq, _ in loop.slices]
            forward = frames.item if back else loop
            length = len(self.value(forward.slices[0][0]))
            ends, (stacks, saved) = lax.scan(one, starts, (rows, sequences), length, reverse=back)
            self.set([stack for _, stack in loop.stacked], stacks)
            kept = saved, None
        elif frames is not None:
            ends, kept = self.bounded(loop, one, starts)
        else:
            ends = lax.while_loop(partial(self.test, loop), lambda state: one(state)[0], starts)
        self.finish(loop, ends)
        if not back:
            self.values[frames] = kept

    def bounded(self, loop: Loop, one, starts) -> Any:
        """A while loop of at most so many steps, which keeps what each of them saves."""
        limit = self.owner.max_steps
        if not limit:
            raise self.unbounded(loop)

        def more(state) -> Any:
            count, carried, _ = state
            return (count < limit) & self.test(loop, carried)

        def kept(state) -> Any:
            count, carried, rows = state
            after, (_, saved) = one(carried)
            return count + 1, after, jax.tree.map(lambda r, v: r.at[count].set(v), rows, saved)

        rows = _zeros(jax.eval_shape(one, starts)[1][1], limit)
        count, ends, rows = lax.while_loop(more, kept, (0, starts, rows))
        about = jax.ShapeDtypeStruct((), np.int32)
        count = jax.pure_callback(_ended, about, count, self.test(loop, ends), limit)
        return ends, (rows, count)

    def branch(self, branch: Branch) -> None:
        """``cond`` and its grad op; each side gives what either of them saves."""
        saved = self.saved(branch)

        def side(k: int, others: dict[int, Any]) -> Any:
            self.items(branch.bodies[k])
            results = [self.like(r[k], r[2]) for r in branch.results]
            return results, others | self.frame(saved[k])

        none: list[Any] = [{}, {}]
        for k in (0, 1):
            if saved[k]:
                _, frame = jax.eval_shape(partial(side, k, {}))
                none[k] = _zeros(frame)
        results, frames = lax.cond(
            self.flag(branch.pred), partial(side, 0, none[1]), partial(side, 1, none[0])
        )
        self.set([r[2] for r in branch.results], results)
        if not branch.backward:
            self.values[branch.frames] = frames


def _zeros(likes, *rows: int) -> Any:
    """Zeros for all that is saved, so many of each."""
    return jax.tree.map(lambda v: jnp.zeros((*rows, *v.shape), v.dtype), likes)


def _ended(count, goes_on, limit) -> Any:
    """Runs while the program does.  Errors: `ProgramError` for a loop that was cut off."""
    if goes_on:
        raise ProgramError(
            f"a while loop did not end within max_steps={int(limit)}.\n"
            f"  repair: give static.compile a larger max_steps"
        )
    return np.asarray(count, np.int32)  # threads of JAX's own know no 64-bit mode
