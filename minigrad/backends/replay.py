"""A program as a pure function: its schedule carried out on values that never change.

The NumPy source and the C are printed from the same schedule.  Here its values are arrays that JAX
traces, or results of nodes in a graph that is being written: an Array that is written into is a new
value from then on, and so is all that shows the same memory.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..compiler.lower import Lowering, state_written_inside
from ..compiler.schedule import Array, Branch, Call, Loop, arrays_in, replace_arrays
from ..compiler.tracer import Recorder
from ..errors import ProgramError, told, wrong
from ..primitives.arguments import ByName, Listed
from ..static.program.program import Program


class Walk:
    """One way through a schedule; those who inherit know what a ``call``, ``loop`` and ``branch`` comes to."""

    op: Any = None  #: what runs, for errors

    def items(self, items: Listed) -> None:
        """Carry out calls, loops and branches."""
        for item in items:
            self.op = item.op or self.op
            getattr(self, type(item).__name__.lower())(item)


class Replay(Walk):
    """The schedule of a program, on values that never change; what they are is said by those who inherit.

    ``whole(primitive, args)`` tells which kernels stay one call: those that the backend knows by themselves.
    """

    cast: Any  #: (value, dtype): a value in a dtype
    fitted: Any  #: (value, like): a value in the dtype and the shape of something
    function: Any  #: (path, args, kwargs, like): what a function of NumPy is, ``np.add.reduce`` too
    opaque: Any  #: (call, args, kwargs): what a kernel is as a whole
    item: Any  #: (value, index): what is at places that are arrays
    replaced: Any  #: (value, index, new, add): with something else there
    look: Any  #: (call, value): a view of a value
    put: Any  #: (call, value, new): a value whose view has changed
    flag: Any  #: (array): its value as a single truth value

    def __init__(self, program: Program, fetch: list[str], whole: Callable[..., bool]) -> None:
        if names := sorted(state_written_inside(program)):
            raise wrong(
                f"a loop or branch writes the parameter {names[0]!r}: "
                "a pure function returns what it changes",
                "carry it as a loop variable, or run the program with static.Executor()",
            )
        self.recorder = Recorder(math.inf, whole)
        self.schedule = Lowering(program, fetch, recorder=self.recorder).schedule
        self.values: dict[Any, Any] = {}  # an Array → what it is now
        self.views: dict[Array, Call] = {}  # an Array → how it looks at another one
        self.seen: dict[Array, Any] = {}  # such an Array → what it looked at, and saw

    def __call__(self, parameters: ByName, feeds: ByName) -> Any:
        """The parameters afterwards, and what is fetched."""
        schedule = self.schedule
        known = parameters | feeds
        for name, array in (schedule.state | schedule.feeds).items():
            if name in known:
                self.values[array] = known[name]
        self.items(schedule.items)
        ends = {name: self.value(array) for name, array in schedule.state.items()}
        return {**parameters, **ends}, [*map(self.value, schedule.fetched)]

    # -- memory ----------------------------------------------------------------------------

    def value(self, array) -> Any:
        """What an Array is now; a view looks again where its memory has changed."""
        call = self.views.get(array)
        if call is None:
            return self.values[array]
        source = self.value(call.args[0])
        if array not in self.seen or self.seen[array][0] is not source:
            self.seen[array] = source, self.look(call, source)
        return self.seen[array][1]

    def write(self, array: Array, value) -> None:
        """Let an Array, and the memory it shows, be another value of its shape and dtype."""
        call = self.views.get(array)
        if call is None:
            self.values[array] = value
        else:
            source = call.args[0]
            self.write(source, self.put(call, self.value(source), value))

    def places(self, call: Call) -> Any:
        """Which elements of the flat source a view looks at."""
        like = call.args[0].like
        places = np.empty_like(like, np.int64)  # laid out as the source is
        places[...] = numbered(like.shape)
        return np.array(call.function(places, *call.args[1:], **call.kwargs))

    def set(self, arrays: Iterable[Array], values: Iterable[Any]) -> None:
        """Let each Array be a value."""
        for array, value in zip(arrays, values, strict=True):
            self.write(array, self.fitted(value, array))

    def like(self, array: Array, other: Array) -> Any:
        """The value of an Array, in the shape and dtype of another one."""
        return self.fitted(self.value(array), other)

    # -- calls -----------------------------------------------------------------------------

    def call(self, call: Call) -> None:
        """By the kind of a call, or by what its function is."""
        function, out = call.function, call.out
        if call.kind == "check":
            return  # no value is known that could be checked
        if call.kind == "view":
            self.views[out] = call
            self.seen.pop(out, None)
            self.value(out)  # here and now, not in the loop or branch that reads it
            return
        args, kwargs = replace_arrays((call.args, call.kwargs), self.value)
        if call.kind == "fill":
            result: Any = args[1] or 0
        elif function is np.copyto:
            out, result = call.args[0], args[1]
        elif call.kind == "write":
            out, result = call.args[0], self.replaced(*args, add=function == np.add.at)
        elif call.kind == "opaque":
            result = self.opaque(call, args, kwargs)
        elif call.path == "[]":
            result = self.item(*args)
        elif function in (np.array, np.asarray, np.positive, np.ndarray.astype):
            result = args[0]
        else:
            if isinstance(function, np.ufunc):
                args = [*map(self.cast, args, loop_dtypes(function, args))]
            elif isinstance(getattr(function, "__self__", None), np.ufunc):
                args = [self.cast(args[0], out.dtype)]
            result = self.function(call.path, args, kwargs, out)
        self.set(arrays_in(out), result if isinstance(out, list) else [result])

    # -- control flow ----------------------------------------------------------------------

    def unbounded(self, loop: Loop) -> ProgramError:
        """What is said of a while loop that is differentiated, without a limit."""
        text = told(
            "the gradient of a while loop needs the values of every step: nobody knows how many",
            'static.static_rnn; or backend="jax" or "c" with max_steps=100',
            loop.op.source_line,
        )
        return ProgramError(text)

    def starts(self, loop: Loop) -> Any:
        """What the first step of a loop is given, and totals of nothing."""
        carried = [self.like(start, begin) for start, begin, *_ in loop.carried]
        return carried + [self.fitted(0, like) for *_, like in loop.totals]

    def test(self, loop: Loop, state) -> Any:
        """Whether a while loop goes on."""
        self.set([c[1] for c in loop.carried], state)
        self.items(loop.test)
        return self.flag(loop.go_on)

    def step(self, loop: Loop, state, row=({}, ())) -> Any:
        """The body of a loop, once, with what was saved of that step and the slices of sequences.

        Returns what goes on to the next step and the totals so far; then what is stacked, and saved.
        """
        saved, slices = row
        if loop.backward:
            self.restored(loop.saved, saved)
        count = len(loop.carried)
        self.set([c[1] for c in loop.carried], state[:count])
        self.set([part for _, part in loop.slices], slices)
        self.items(loop.body)
        ends = [self.like(after, begin) for _, begin, after, _ in loop.carried]
        for total, (value, _, like) in zip(state[count:], loop.totals, strict=True):
            ends.append(self.function("np.add", [total, self.like(value, like)], {}, like))
        kept = {} if loop.backward else self.frame(loop.saved)
        return ends, ([self.value(v) for v, _ in loop.stacked], kept)

    def finish(self, loop: Loop, state) -> None:
        """What a loop leaves."""
        finals = [c[3] for c in loop.carried]
        self.set([*finals, *(total for _, total, _ in loop.totals)], state)

    def restored(self, pairs: Listed, frames) -> None:
        """What a step or a branch saved, under its names in the backward part."""
        for value, here in pairs:
            self.values[here] = frames[id(value)]

    def saved(self, branch: Branch) -> Any:
        """What each side of a branch saves; in the backward part, it is there again."""
        if not branch.backward:
            return branch.saved
        self.restored([*branch.saved[0], *branch.saved[1]], self.value(branch.frames))
        return [], []

    def frame(self, saved: list[Array]) -> dict[int, Any]:
        """What a step or a branch saves: values, and all that a loop in it saved."""
        return {id(array): self.value(array) for array in saved}


def entering(table: ByName) -> Callable[[Any], Any]:
    """What enters a function in a table under its own name."""

    def enter(function) -> Any:
        table[function.__name__] = function
        return function

    return enter


def loop_dtypes(ufunc: np.ufunc, args) -> Any:
    """What NumPy brings the operands of a ufunc to, and of what its result is."""
    types = [getattr(a, "dtype", type(a)) for a in args]
    return ufunc.resolve_dtypes((*types, None))


def numbered(shape) -> Any:
    """The numbers from 0 on, in this shape."""
    return np.arange(math.prod(shape)).reshape(shape)


def index_arrays(at, index, kinds) -> tuple[Any, Listed]:
    """Where an index looks things up in ``at``, if arrays of these kinds in it are known only later.

    Returns the elements with 0 for each array, and for each array itself, the axis it is for, and
    which element of it stands where.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    zeros = [np.zeros(np.shape(part), int) if isinstance(part, kinds) else part for part in parts]
    takes = [part is not None for part in parts]  # which of the index take an axis
    arrays = []
    for k, part in enumerate(parts):
        if isinstance(part, kinds):
            late = any(p is Ellipsis for p in parts[:k])
            axis = at.ndim - sum(takes[k:]) if late else sum(takes[:k])
            sizes, own = [*at.shape], [*zeros]
            sizes[axis] = zeros[k].size
            own[k] = numbered(zeros[k].shape)
            arrays.append((part, axis, np.indices(sizes)[axis][tuple(own)]))
    return at[tuple(zeros)], arrays


def mapped(saved, change: Callable[[Any], Any]) -> Any:
    """What a loop or a branch saves, and a loop in it, with every value changed."""
    if isinstance(saved, dict):
        return {k: mapped(v, change) for k, v in saved.items()}
    return change(saved)
