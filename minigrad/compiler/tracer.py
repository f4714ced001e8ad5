"""Recording a kernel: it is called on `Array`s, and the NumPy calls it makes become the schedule.

A kernel is ordinary NumPy code, so it is run as it stands, with Arrays for its inputs and with
``np`` standing for a NumPy whose constructors give Arrays.  What depends on shapes and attrs is
decided now.  A kernel asks for the truth of a value only to raise an error where it is false: it is
told that it is true, and the source checks that.  One that reads numbers in another way cannot be
recorded, and is called by its name when the program runs.  The calls are the same ones in the same
order, so results agree bit for bit.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from ..primitives.arguments import Args, Attrs, ByName, Function, Listed, Names
from .schedule import Array, Call, Unrecordable, arrays_in, replace_arrays, substitute

#: a kernel of more calls than this is called by its name
LIMIT = 1000

_FACTS = {np.shape, np.ndim, np.size}
_VIEWS = {
    np.reshape, np.transpose, np.swapaxes, np.expand_dims, np.squeeze, np.broadcast_to, np.moveaxis, np.flip,
    np.diagonal, np.ravel, np.lib.stride_tricks.sliding_window_view,
}  # fmt: skip
_INTO = {np.concatenate, np.stack, np.dot}  #: they take ``out=``


def is_ours(function) -> bool:
    """Whether a function is one of `minigrad.ops`."""
    return bool(function.__module__.startswith("minigrad.ops."))


def is_users(primitive, args: Args) -> bool:
    """Whether a kernel is the user's own, which is called as it is: it may do anything."""
    return not is_ours(primitive.kernel)


class Recorder:
    """The calls recorded so far, and how every NumPy function is recorded.

    A kernel of more than ``limit`` calls, or one of which ``opaque(primitive, args)`` is true,
    stays one call.
    """

    def __init__(self, limit: float = LIMIT, opaque: Callable[..., bool] = is_users) -> None:
        self.limit = limit
        self.opaque = opaque
        self.calls: Listed = []
        self.op: Any = None
        self.ignores: Names = ()
        self.retarget = Retarget(_RecordingNumPy(self))
        self.running: Any = None
        self.start = 0  # of the calls of the kernel that runs

    def kernel(self, primitive, args: Args, attrs: Attrs) -> Any:
        """Record a kernel; returns its result in Arrays.  Errors: `Unrecordable`, then nothing is recorded."""
        start = self.start = len(self.calls)
        self.running = (primitive, args, attrs)
        try:
            if self.opaque(primitive, args):
                raise Unrecordable("a kernel that is called as a whole")
            out = self.retarget.of(primitive.kernel)(*args, **attrs)
            if len(self.calls) - start > self.limit:
                raise Unrecordable("many calls")
            return out
        except Exception as error:
            del self.calls[start:]
            raise Unrecordable(str(error)) from error

    def check(self, condition: Array) -> bool:
        """What a kernel of ours is told when it asks whether an Array is true: it raises an error where it is not."""
        primitive, args, attrs = self.running
        if condition.size != 1 or is_users(primitive, args):
            raise Unrecordable("a kernel looks at a value")
        given = condition, args, attrs
        check = Call("check", primitive.kernel, given, op=self.op, path=primitive.type)
        self.calls.append(check)
        return True

    @contextmanager
    def into(self, calls: Listed) -> Iterator[None]:
        """What is recorded meanwhile goes into ``calls``."""
        before = self.calls, self.op
        self.calls = calls
        try:
            yield
        finally:
            self.calls, self.op = before

    # -- what kernels call -----------------------------------------------------------------

    def ufunc(self, ufunc, method: str, args: Args, kwargs: Attrs) -> Any:
        """``np.add(a, b)``, ``np.add.reduce(a)``, ``np.add.at(a, i, b)``."""
        (out,) = kwargs.pop("out", (None,))
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if method == "at":
            return self.add("write", function, args, None, kwargs)
        number = isinstance(out, Array) and not out.ndim and out.is_root and out is args[0]
        if number and len(args) == 2:
            out = None  # ``x += 1`` of a number makes a new one; ``np.exp(x, x)`` writes into it
        like = _tried(function, args, kwargs)
        into = out
        plain = method == "__call__" and ufunc.signature is None
        if out is None:
            out = Array(self, like)
        elif not isinstance(out, Array) or (out.shape, out.dtype) != (like.shape, like.dtype):
            raise Unrecordable("a result of another shape or dtype")
        elif plain and out.like.strides == like.strides and self._may_be_new(out):
            before = Array(self, out.like, out.name)  # what had the name until now
            for call in self.calls[self.start :]:
                substitute(call, {out: before})
            args = replace_arrays(args, lambda a: before if a is out else a)
            into = None
        return self.add("compute", function, args, out, kwargs, into)

    def _may_be_new(self, out: Array) -> bool:
        """Whether ``np.exp(e, e)`` may be ``f = np.exp(e)``: no view looks at ``e``; `memory.plan` undoes it."""
        results = arrays_in([call.out for call in self.calls[self.start :]])
        own = {a for a in results if a.shares(out)} == {out} and out.is_root
        return own and bool(out.ndim) and out.dtype.kind in "fiu"

    def call(self, function, args: Args, kwargs: Attrs) -> Any:
        """A NumPy function that is no ufunc."""
        if function is np.dot and all(np.ndim(a) == 2 for a in args):
            return self.ufunc(np.matmul, "__call__", args, kwargs)
        if function in _FACTS and not kwargs:
            (value,) = args
            return getattr(value, function.__name__)
        if function is np.result_type:
            return np.result_type(*replace_arrays(args, operator.attrgetter("dtype")))
        if function in (np.zeros_like, np.ones_like):
            dtype = kwargs.get("dtype") or args[0].dtype
            return self.fill(args[0].shape, dtype, int(function is np.ones_like))
        if function is np.split:
            return self.split(*args, **kwargs)
        if function in _VIEWS:
            return self._view(function, args, kwargs)
        like = _tried(function, args, kwargs)
        kind = "compute" if function in _INTO else "fresh"
        return self.add(kind, function, args, Array(self, like), kwargs)

    def _view(self, function, args: Args, kwargs: Attrs) -> Any:
        """A view; where there is none, a copy: of a reshape, in memory of the new shape."""
        source = args[0]
        view = function(source.like, *args[1:], **kwargs)
        if np.may_share_memory(view, source.like) or not view.size:
            out = Array(self, view, roots=source.roots)
            return self.add("view", function, args, out, kwargs)
        if function is not np.reshape:
            return self.add("fresh", function, args, Array(self, view), kwargs)
        out = self.fill(view.shape, view.dtype)
        self.setitem(np.reshape(out, source.shape), Ellipsis, source)
        return out

    def split(self, source, sections, axis: int = 0) -> Listed:
        """``np.split`` as slices: views, which are made once where the memory stays."""
        parts = []
        start = 0
        before = (slice(None),) * (axis % source.ndim)
        for part in np.split(source.like, sections, axis):
            stop = start + part.shape[axis]
            parts.append(source[(*before, slice(start, stop))])
            start = stop
        return parts

    def getitem(self, source: Array, index) -> Any:
        """``source[index]``."""
        looked_up = _is_looked_up(index)
        part = source.like[replace_arrays(index, _like)]
        if not isinstance(part, np.ndarray):
            index = (*index, ...) if isinstance(index, tuple) else (index, ...)
        given = source, index
        if not looked_up:
            return self._view(operator.getitem, given, {})
        return self.add("fresh", operator.getitem, given, Array(self, np.zeros_like(part)))

    def setitem(self, target: Array, index, value) -> None:
        """``target[index] = value``."""
        last = self.calls[-1] if self.calls else None
        if isinstance(value, Array) and value.shares(target) and getattr(last, "into", 0) is value:
            return  # ``a[i] += b`` writes into a view, and Python then sets ``a[i]`` to that view
        if _is_looked_up(index):
            self.add("write", operator.setitem, (target, index, value))
            return
        place = target[index] if index is not Ellipsis else target
        same = isinstance(value, Array | np.ndarray) and value.dtype == target.dtype
        safe = same or (type(value) in (int, float) and target.dtype.kind == "f")
        casting = {} if safe else {"casting": "unsafe"}
        self.add("write", np.copyto, (place, value), None, casting)

    def copy(self, source: Array) -> Any:
        """A copy in memory of its own."""
        out = Array(self, np.zeros_like(source.like))
        if source.dtype.kind in "fiu":
            return self.add("compute", np.positive, (source,), out)
        return self.add("fresh", np.array, (source,), out)

    def fill(self, shape, dtype=float, value=None) -> Any:
        """An array of one value; None leaves the elements open."""
        out = Array(self, np.zeros(shape, dtype))
        return self.add("fill", np.full, (shape, value, out.dtype), out)

    def add(self, kind: str, function, args, out=None, kwargs=None, into=None) -> Any:
        """Note a call; returns what it makes."""
        call = Call(kind, function, args, out, kwargs or {}, self.op, into, self.ignores)
        self.calls.append(call)
        return out


_like = operator.attrgetter("like")


def _tried(function, args, kwargs) -> np.ndarray[Any, Any]:
    """An array like what a function gives, whose axes lie in memory as NumPy will lay them out."""
    values, options = replace_arrays((args, kwargs), _like)
    with np.errstate(all="ignore"):
        result = function(*values, **options)
    if not isinstance(result, np.ndarray | np.generic):
        raise Unrecordable("several results")
    if any(np.may_share_memory(result, a.like) for a in arrays_in((args, kwargs))):
        raise Unrecordable("a view by a function that may also copy")
    return np.zeros_like(result)


def _is_looked_up(index) -> bool:
    """Whether an index holds positions, not slices.  Errors: `Unrecordable` for a mask."""
    if any(a.dtype.kind == "b" for a in arrays_in(index)):
        raise Unrecordable("a mask")
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(p, Array | np.ndarray | list) for p in parts)


class _RecordingNumPy:
    """NumPy, with constructors that know Arrays."""

    def __init__(self, recorder) -> None:
        self._recorder = recorder
        self.empty = recorder.fill
        self.zeros = partial(recorder.fill, value=0)
        self.ones = partial(recorder.fill, value=1)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, value, dtype=None) -> Any:
        if isinstance(value, Array):
            return value if dtype is None else value.astype(dtype, copy=False)
        return np.asarray(value, dtype)

    def array(self, value, dtype=None) -> Any:
        if not isinstance(value, Array):
            return np.array(value, dtype)
        same = dtype in (None, value.dtype)
        return self._recorder.copy(value) if same else value.astype(dtype)

    def full(self, shape, value, dtype=None) -> Any:
        return self._recorder.fill(shape, dtype or np.result_type(value), value)

    @contextmanager
    def errstate(self, **ignored) -> Iterator[None]:
        before = self._recorder.ignores
        self._recorder.ignores = (*before, *ignored)  # kernels ask for nothing else
        try:
            yield
        finally:
            self._recorder.ignores = before


# -- Retargeting: the code of a kernel with something else in NumPy's place ----------------
#
# A kernel is ordinary Python.  A function with the same code and other globals, in which ``np`` is a recorder,
# jax.numpy or a writer of ONNX nodes, does for those what the kernel does for arrays.


class Retarget:
    """Kernels for one other NumPy: ``numpy`` stands for it; ``own``, primitives that it has kernels of its own for."""

    def __init__(self, numpy, own: ByName | None = None) -> None:
        self.numpy = numpy
        self.own = own or {}
        self._globals: dict[str, ByName] = {}  # by module

    def of(self, function) -> Any:
        """A function of ops, retargeted."""
        names = self._globals.get(function.__module__)
        if names is None:
            names = self._globals[function.__module__] = dict(function.__globals__)
            for name, value in list(names.items()):
                if value is np:
                    names[name] = self.numpy
                elif hasattr(value, "primitive"):
                    names[name] = self._primitive(value.primitive)
                elif isinstance(value, FunctionType) and is_ours(value):
                    names[name] = self.of(value)
        own = function.__name__, function.__defaults__, function.__closure__
        retargeted = FunctionType(function.__code__, names, *own)
        retargeted.__kwdefaults__ = function.__kwdefaults__
        return retargeted

    def _primitive(self, primitive) -> Function:
        def apply(*args, **attrs) -> Any:
            inputs, options = primitive.bind(args, attrs)
            kernel = self.own.get(primitive.type) or self.of(primitive.kernel)
            return kernel(*inputs, **options)

        return apply
