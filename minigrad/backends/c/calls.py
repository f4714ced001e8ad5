"""What each call of the schedule is in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.memory import refusal
from ...compiler.schedule import Array, Call
from ..replay import index_arrays
from .expressions import TYPES, expression, literal, neutral, table
from .nests import LONGEST_ROW, Element, Place, axes_of, looped, shown
from .page import PRODUCTS, Page, Unsayable, parts_of

#: functions and kernels of the table beside the ufuncs
NAMED = {"np.where": "where", "np.clip": "clip", "np.round": "rint", "erf": "erf", "gelu": "gelu"}
COPIES = {np.array, np.asarray, np.ndarray.astype, np.copyto}
MOVES = {
    np.roll, np.tile, np.tril, np.triu, np.flip, np.diagonal, np.moveaxis, np.swapaxes, np.transpose, np.expand_dims,
    np.concatenate, np.stack,
}  # fmt: skip
#: multiplications of a product of matrices that take less time than to call BLAS
LITTLE = 512
#: multiplications of an einsum that is written as loops
SMALL = 1 << 16
#: a sum of fewer numbers is a loop of its own: NumPy adds up so few one after the other, too
FEW = 8


class Calls(Page):
    """Calls become lines and parts."""

    def call(self, call: Call) -> None:
        """By the kind of a call, or by what its function is."""
        function, args, out = call.function, call.args, call.out
        owner = getattr(function, "__self__", None)
        if call.kind in ("view", "fill", "check"):
            getattr(self, call.kind)(call)
        elif function in PRODUCTS:
            self.product(call)
        elif isinstance(owner, np.ufunc):
            getattr(self, function.__name__)(owner, call)
        elif isinstance(function, np.ufunc) and not call.kwargs:
            types = [a.dtype if hasattr(a, "dtype") else type(a) for a in args]
            *dtypes, result = function.resolve_dtypes((*types, None))
            self.formula(call, function.__name__, args, dtypes, result)
        elif function in COPIES:
            copied = function is np.copyto
            self.line(self.place(args[0]) if copied else self.out(call), "{0}", [args[copied]])
        elif function in MOVES:
            self.moved(call)
        elif call.path in NAMED:
            dtypes = [out.dtype] * len(args)
            dtypes[0] = np.dtype(bool) if function is np.where else out.dtype
            self.formula(call, NAMED[call.path], args, dtypes, out.dtype)
        elif call.path in ("[]", "np.take", "np.take_along_axis"):
            self.line(self.out(call), "{0}", [self.looked_up(call)[0]])
        elif call.path == "[]=":
            self.write(call, "{1}")
        elif call.path == "np.einsum" and call.kind != "opaque":
            self.einsum(call, *args)
        else:
            slow = function in (np.sort, np.argsort)
            raise Unsayable(f"{call.path} has no counterpart here", slow=slow)

    def out(self, call: Call) -> Place:
        """Where the result goes."""
        return self.place(call.into) if call.into is not None else self.new(call.out)

    def formula(self, call: Call, name: str, args: Any, dtypes: list[Any], result: Any) -> None:
        """An expression of the table, on operands brought to the dtypes of its loop."""
        text, out = expression(name, dtypes[-1]), self.out(call)
        rounded = call.function is np.round and any(args[1:])
        if (
            text is None
            or call.kwargs
            or rounded
            or not {d.name for d in [*dtypes, result]} <= TYPES.keys()
        ):
            raise Unsayable(f"there is no C for {call.path} on {dtypes[-1]}")
        if table().has_option("loops", name) and result.kind == "f" and out.view.dtype == result:
            places = [self.converted(a, result).element(out.view.shape) for a in args]
            self.each(name, [*places, out.element()], out.view.shape, out.element())
        else:
            self.line(out, text, args, dtypes, result)

    def converted(self, value: Any, dtype: np.dtype[Any]) -> Place:
        """A value in memory, in a dtype."""
        place = self.place(value if isinstance(value, Array) else np.asarray(value, dtype))
        if place.view.dtype == dtype:
            return place
        out = self.member(np.empty(place.view.shape, dtype), place.name)
        self.copy(out, place)
        return out

    def view(self, call: Call) -> None:
        """Other elements of the same memory; a copy where there is no such view."""
        source, like = self.place(call.args[0]), call.args[0].like
        strided = call.function is np.lib.stride_tricks.as_strided
        if strided and like.strides != source.view.strides:
            laid_out = self.member(like)
            self.copy(laid_out, source)
            source = laid_out
        view = call.function(source.view, *call.args[1:], **call.kwargs)
        if np.may_share_memory(view, source.view) or not view.size:
            self.put(call.out, source.shown(view))
        else:
            out = self.new(call.out, view)
            self.copy(out.shown(out.view.reshape(source.view.shape)), source)

    def fill(self, call: Call) -> None:
        """Memory of one value."""
        out, value = self.new(call.out), call.args[1]
        if value is not None:
            self.line(out, "{0}", [value])

    def check(self, call: Call) -> None:
        """A condition without which the kernel raises."""
        condition, args, attrs = call.args
        place = self.place(condition)
        self.part([f"if (!{place.first})", self.fail(refusal(call.function), args, attrs)], [place])

    # -- sums over axes, and products -------------------------------------------------------------

    def reduce(self, ufunc: Any, call: Call) -> None:
        """A sum over axes, with any operator; along the innermost one NumPy's loop, which has an order of its own."""
        name, kwargs = ufunc.__name__, call.kwargs
        x = self.place(call.args[0])
        out = self.out(call)
        shape = x.view.shape
        dtype = out.view.dtype
        text = expression(name, dtype)
        if kwargs.keys() - {"axis", "keepdims", "initial", "dtype"} or text is None:
            raise Unsayable(f"{call.path} with {', '.join(kwargs)}")
        axis = kwargs.get("axis", 0)
        first = kwargs.get("initial")
        summed = tuple(range(len(shape))) if axis is None else axis if shape else ()
        given = out.view if kwargs.get("keepdims") else np.expand_dims(out.view, summed)
        to = out.shown(np.broadcast_to(given, shape)).element()
        each = x.element()
        if first is None:
            first = neutral(ufunc, dtype)
        axes = axes_of(shape, [to, each, to], each)
        if axes and dtype.kind == "f" and x.view.dtype == dtype:
            _, count, k = axes[-1]
            if count >= (LONGEST_ROW + 1 if to.strides[k] else FEW):
                self.copy(out, first)
                self.each(name, [to, each, to], shape, each)
                return
        text = text.replace("{0}", "{out}").replace("{1}", "{0}")
        self.line(out, text, [x], shape=shape, start=literal(first, dtype), to=to)

    def accumulate(self, ufunc: Any, call: Call) -> None:
        """Sums so far along an axis."""
        out = self.out(call)
        x = self.converted(call.args[0], out.view.dtype)
        axis = call.kwargs.get("axis", 0)
        x, out = (p.shown(np.moveaxis(p.view, axis, 0)) for p in (x, out))
        self.copy(out.shown(out.view[:1]), x.shown(x.view[:1]))
        before, to = (out.shown(v) for v in (out.view[:-1], out.view[1:]))
        elements = [p.element() for p in (before, x.shown(x.view[1:]), to)]
        self.each(ufunc.__name__, elements, to.view.shape, elements[-1])

    def product(self, call: Call) -> None:
        """Matrix products, of stacks, too."""
        a, b = (self.place(x) for x in call.args)
        c = self.out(call)
        if call.function is np.dot and max(a.view.ndim, b.view.ndim) > 2:
            raise Unsayable("np.dot of stacks")
        if b.view.ndim == 1:
            b, c = b.shown(b.view[:, None]), c.shown(c.view[..., None])
        if a.view.ndim == 1:
            a, c = a.shown(a.view[None]), c.shown(c.view[..., None, :])
        *batch, m, n = c.view.shape
        k, dtype = a.view.shape[-1], c.view.dtype
        little = not self.exact and m * n * k <= LITTLE
        if little or not k or dtype.kind == "b" or not a.view.dtype == b.view.dtype == dtype:
            x, y = a.shown(a.view[..., None]), b.shown(b.view[..., None, :, :])
            self.products(c, c.view[..., None, :], x, y)
            return
        wide = [p.shown(np.broadcast_to(p.view, (*batch, *p.view.shape[-2:]))) for p in (a, b, c)]
        firsts = [p.shown(p.view[..., 0, 0]).element() for p in wide] if c.view.size else []
        axes = axes_of(tuple(batch), firsts, None)
        given = [
            f"&{shown(first, axes)}, {place.strides[-2]}, {place.strides[-1]}"
            for first, place in zip(firsts, wide, strict=False)
        ]
        text = f"product_{TYPES[dtype.name]}({m}, {n}, {k}, {', '.join(given)});"
        if firsts:
            self.part(looped(axes, [text]), [a, b])

    def products(self, out: Place, to: Any, *factors: Place) -> None:
        """Products added up over the axes that ``to``, a view of ``out``, does not have."""
        if out.view.dtype.kind not in "fiu":
            raise Unsayable(f"products of {out.view.dtype}")
        shape = np.broadcast_shapes(*(p.view.shape for p in factors))
        text = "{out} + " + " * ".join(f"{{{k}}}" for k in range(len(factors)))
        into = out.shown(np.broadcast_to(to, shape)).element()
        self.line(out, text, factors, shape=shape, start="0", to=into)

    def einsum(self, call: Call, subscripts: str, *xs: Any) -> None:
        """A sum of products over named axes."""
        given, arrow, labels = subscripts.replace(" ", "").partition("->")
        if "." in subscripts:
            raise Unsayable("its axes are not all named")
        if not arrow:
            labels = "".join(sorted(c for c in set(given) - {","} if given.count(c) == 1))
        order = labels + "".join(sorted(set(given) - {*labels, ","}))
        factors, out = [], self.out(call)
        for x, said in zip(map(self.place, xs), given.split(","), strict=True):
            own = "".join(c for c in order if c in said)
            # a view, of diagonals, too
            view = np.einsum(f"{said}->{own}", x.view) if said else x.view
            axes = [slice(None) if c in said else None for c in order]
            factors.append(x.shown(view[(*axes, ...)]))
        if np.broadcast(*(p.view for p in factors)).size > SMALL:
            raise Unsayable(f"more than {SMALL:,} products are added up elsewhere", slow=True)
        self.products(out, out.view[(..., *[None] * (len(order) - len(labels)))], *factors)

    # -- elements in other places -------------------------------------------------------------------

    def moved(self, call: Call) -> None:
        """Elements in another place: the function moves numbers, which say what comes from where; 0 is a zero."""
        source, *more = call.args
        if isinstance(source, list | tuple):
            out = self.out(call)
            for part, view in zip(source, parts_of(call, out.view), strict=True):
                self.copy(out.shown(view), self.place(part))
            return
        source = self.place(source)
        numbers = np.arange(1, source.view.size + 1).reshape(source.view.shape)
        chosen = call.function(numbers, *more, **call.kwargs)
        element = self.chosen(source, np.concatenate([[0], offsets(source).ravel()])[chosen])
        out = self.out(call)
        if chosen.all():
            self.line(out, "{0}", [element])
        else:
            dtypes = out.view.dtype, np.dtype(bool)
            self.line(out, "{1} ? {0} : 0", [element, chosen != 0], dtypes)

    def chosen(self, x: Place, at: Any) -> Element:
        """Elements in places that are known: a view where they lie regularly, a table else."""
        first = int(at.flat[0]) if at.size else 0
        strides = tuple(
            int(np.diff(at, axis=k).flat[0]) if at.size and n > 1 else 0
            for k, n in enumerate(at.shape)
        )
        element = Element(x.ref, x.view.dtype, strides, first, x.at)
        if np.array_equal(grid(at.shape, strides, first), at):
            return element
        table = self.place(at.astype(np.int32)).element()
        return element._replace(strides=(0,) * at.ndim, offset=0, looked_up=((table, 0, 1),))

    def looked_up(self, call: Call) -> tuple[Element, Any]:
        """The element of ``x[index]`` for each index of the result, and its shape; ``call`` raises else."""
        x, index = self.place(call.args[0]), call.args[1]
        axis = call.kwargs.get("axis")
        if call.path == "np.take":
            if axis is None:
                x, axis = x.shown(x.view.reshape(-1)), 0
                if not np.may_share_memory(x.view, x.base):
                    raise Unsayable("take from what does not lie in one piece")
            index = (*[slice(None)] * (axis % x.view.ndim), index)
        elif call.path == "np.take_along_axis":
            axis = int(call.args[2])
            own: list[Any] = list(np.ogrid[tuple(slice(n) for n in x.view.shape)])
            own[axis] = index
            index = tuple(own)
        parts = list(index) if isinstance(index, tuple) else [index]
        places = {k: self.place(part) for k, part in enumerate(parts) if isinstance(part, Array)}
        if any(place.view.dtype.kind not in "iu" for place in places.values()):
            raise Unsayable("a mask chooses how many")
        shapes = {k: place.view.shape for k, place in places.items()}
        at, arrays = index_arrays(offsets(x), parts, shapes)
        element = self.chosen(x, at)
        for k, axis, which in arrays:
            place, length = places[k], x.view.shape[axis]
            self.check_range(place, length, call)
            up = self.chosen(place, offsets(place).ravel()[which]), length, x.strides[axis]
            element = element._replace(looked_up=(*element.looked_up, up))
        return element, at.shape

    def check_range(self, index: Place, length: int, call: Call) -> None:
        """Leave if an index points outside."""
        element = index.element()
        axes = axes_of(index.view.shape, [element], element)
        at = shown(element, axes)
        leave = self.fail(call.function, call.args, call.kwargs)
        test = looped(axes, [f"if ({at} < -{length} || {at} >= {length})", leave])
        self.part(test, [index])

    def write(self, call: Call, text: str) -> None:
        """Values into places that are looked up, one after the other: {1} is a value, {0} what is there."""
        out = self.place(call.args[0])
        element, shape = self.looked_up(call)
        text = text.replace("{0}", "{out}").replace("{1}", "{0}")
        self.line(out, text, [call.args[2]], shape=shape, start="", to=element)

    def at(self, ufunc: Any, call: Call) -> None:
        """``np.add.at``."""
        self.write(call, str(expression(ufunc.__name__, call.args[0].dtype)))


def grid(shape: Any, strides: Any, first: int) -> Any:
    """``first + i * strides[0] + j * strides[1] + …`` for every index."""
    axes = zip(np.indices(shape, sparse=True), strides, strict=True)
    return sum((index * step for index, step in axes), start=np.full(shape, first))


def offsets(place: Place) -> Any:
    """For each element its place in the member."""
    return grid(place.view.shape, place.strides, place.offset)
