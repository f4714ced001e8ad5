"""Source of single calls."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from .buffers import Plan
from .identifiers import Identifiers, clean
from .runtime import refusal
from .schedule import Array, Call
from .syntax import assign, dotted, entry, invoke, load, store

_BY_NAME = (np.maximum, np.minimum)  # NumPy wants their ``out=`` by name


class CallSource(Identifiers):
    """The part of the writer that is about calls of functions."""

    plan: Plan
    kernels: dict[str, Any]  # what is called by name
    scalars: dict[Any, str]  # (number, dtype) → identifier
    bound: dict[str, str]  # "np.add.reduce" → identifier

    def call(self, call: Call) -> ast.stmt:
        """The statement of one call."""
        out = call.out
        place = call.into
        if place is None and isinstance(out, Array) and id(out) in self.plan.placed:
            place = out
        if call.kind == "fill":
            return self.fill(call, place)
        if call.kind == "check":
            return self.check(call)
        if call.path == "[]=":
            x, index, value = call.args
            target = ast.Subscript(self.value(x), self.subscript(index), ast.Store())
            return ast.Assign([target], self.value(value))
        made = self.called(call, place)
        if call.kind in ("write", "store") or (place is not None and call.kind == "compute"):
            return ast.Expr(made)
        if isinstance(out, list):
            return ast.Assign([ast.Tuple([store(self.name(a)) for a in out], ast.Store())], made)
        return assign(self.name(out), made)

    def called(self, call: Call, place: Array | None) -> ast.expr:
        """The expression of one call, as one would write it: ``x[0]``, ``w.T``, ``np.add(x, y, out)``."""
        if call.kind == "opaque":
            return ast.Call(load(self.kernel(call)), *self.arguments(call))
        if call.path == "[]":
            x, index = call.args
            return ast.Subscript(self.value(x), self.subscript(index), ast.Load())
        if call.path == ".astype":
            x, dtype = call.args
            return ast.Call(
                ast.Attribute(self.value(x), "astype", ast.Load()), [self.value(dtype)], []
            )
        x, *more = call.args
        if call.function is np.transpose and not call.kwargs and all(a is None for a in more):
            return ast.Attribute(self.value(x), "T", ast.Load())
        path = "np.dot" if call.function is np.matmul and _is_plain_product(call) else call.path
        return ast.Call(self.function(path), *self.arguments(call, place))

    def check(self, call: Call) -> ast.stmt:
        """A condition without which the kernel raises: then it is called, and does."""
        condition, expected, args, attrs = call.args
        test = self.value(condition)
        failing = Call("opaque", call.path + "_refuses", refusal(call.function), args, attrs, None)
        raises = ast.Expr(ast.Call(load(self.kernel(failing)), *self.arguments(failing)))
        return ast.If(ast.UnaryOp(ast.Not(), test) if expected else test, [raises], [])

    def fill(self, call: Call, place: Array | None) -> ast.stmt:
        """An array of one value, or memory with nothing in it yet."""
        shape, value, dtype = call.args
        if place is not None:
            if value is None:
                return ast.Pass()
            return ast.Expr(
                ast.Call(
                    ast.Attribute(self.value(place), "fill", ast.Load()), [self.value(value)], []
                )
            )
        if value is None:
            return assign(
                self.name(call.out),
                invoke(
                    "np.empty",
                    [
                        self.value(tuple(shape) if isinstance(shape, list) else shape),
                        self.value(dtype),
                    ],
                ),
            )
        return assign(
            self.name(call.out),
            invoke("np.full", [self.value(shape), self.value(value), self.value(dtype)]),
        )

    def arguments(
        self, call: Call, place: Array | None = None
    ) -> tuple[list[ast.expr], list[ast.keyword]]:
        """The arguments of a call; numbers beside arrays become arrays made once."""
        args = [self.operand(call, a) for a in call.args]
        if (
            place is not None
            and call.path.endswith(".reduce")
            and call.kwargs.keys() <= {"axis", "keepdims"}
            and len(args) == 1
        ):
            args += [self.value(call.kwargs.get("axis", 0)), ast.Constant(None), self.value(place)]
            return args + ([ast.Constant(True)] if call.kwargs.get("keepdims") else []), []
        keywords = [
            ast.keyword(k, self.value(v)) for k, v in call.kwargs.items() if not _is_default(k, v)
        ]
        if (
            place is not None
            and isinstance(call.function, np.ufunc)
            and not keywords
            and call.function not in _BY_NAME
        ) or (place is not None and call.function is np.dot):
            args.append(self.value(place))
        elif place is not None:
            keywords.append(ast.keyword("out", self.value(place)))
        return args, keywords

    def operand(self, call: Call, value: Any) -> ast.expr:
        if (
            call.kind != "compute"
            or type(value) not in (int, float)
            or not isinstance(call.function, np.ufunc)
        ):
            return self.value(value)
        dtypes = {a.dtype for a in call.args if isinstance(a, Array)}
        if len(dtypes) != 1 or not _holds(next(iter(dtypes)), value):
            return self.value(value)
        shape = call.out.shape if call.function in _BY_NAME else ()  # three times as fast on arrays
        return load(self.scalar(value, dtypes.pop(), shape))

    def scalar(self, value: float, dtype: np.dtype[Any], shape: tuple[int, ...] = ()) -> str:
        """A number as an array, usually without axes: NumPy takes it faster than a number of Python."""
        key = (repr(value), dtype, shape)
        if key not in self.scalars:
            said = f"{value:g}".replace("-", "m").replace(".", "p")
            self.scalars[key] = self.unique("c" + clean(said))
            self.before.append(
                assign(
                    self.scalars[key],
                    invoke(
                        "np.full", [self.value(shape), self.value(value), ast.Constant(dtype.name)]
                    )
                    if shape
                    else invoke("np.array", [self.value(value), ast.Constant(dtype.name)]),
                )
            )
        return self.scalars[key]

    def function(self, path: str) -> ast.expr:
        """``np.add``; methods of functions are bound once."""
        if path.count(".") < 2:
            return dotted(path)
        if path not in self.bound:
            self.bound[path] = self.unique(path[3:].replace(".", "_"))
            self.before.append(assign(self.bound[path], dotted(path)))
        return load(self.bound[path])

    def kernel(self, call: Call) -> str:
        """The identifier of a kernel that is called as it is."""
        known = next((n for n, f in self.kernels.items() if f is call.function), None)
        if known is None:
            known = self.unique(
                clean(call.path) + ("" if call.path.endswith("_refuses") else "_kernel")
            )
            self.kernels[known] = call.function
            self.before.append(assign(known, entry("kernels", known)))
        return known


def _is_default(key: str, value: Any) -> bool:
    return (key == "keepdims" and value is False) or (key == "initial" and value is None)


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    """Whether an array of this dtype can stand for a number."""
    if dtype.kind in "iu":
        return type(value) is int and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    return dtype.kind == "f"


def _is_plain_product(call: Call) -> bool:
    """Two matrices of one dtype: ``np.dot`` gives the same bits as ``np.matmul`` with half the overhead."""
    place = call.out if call.into is None else call.into
    arrays = [*call.args, place]
    plain = all(
        isinstance(a, Array) and a.like is not None and a.ndim == 2 and a.dtype == place.dtype
        for a in arrays
    )
    return plain and place.like.flags.c_contiguous and place.dtype.kind == "f"
