"""Derivatives of functions: vjp, jvp, jacobian, hessian, hvp.

All take a function of Tensors and the point as Tensors, arrays or numbers (one, or a tuple for several arguments) and
work at copies of the inputs, so no ``.grad`` is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .eager.backward import grad
from .eager.mode import enable_grad
from .eager.tensor import Tensor, wrap
from .errors import DTypeError, ShapeError, describe

__minigrad_ops__ = True


def _point(inputs: Any, keep: bool = False) -> tuple[list[Tensor], bool]:
    several = isinstance(inputs, tuple | list)
    values = list(inputs) if several else [inputs]
    if keep and all(isinstance(v, Tensor) and v.requires_grad for v in values):
        return values, several
    made = []
    for v in values:
        data = v._data if isinstance(v, Tensor) else np.asarray(v)
        made.append(
            Tensor(data if data.dtype.kind == "f" else data.astype(float), requires_grad=True)
        )
    return made, several


def _packed(values: list[Any], several: bool) -> Any:
    return tuple(values) if several else values[0]


def _vector(v: Any, like: Tensor, what: str) -> Tensor:
    t = v if isinstance(v, Tensor) else wrap(np.asarray(v, like.dtype))
    if t.shape != like.shape:
        raise ShapeError(
            f"the {what} vector is {describe(t)}, it must have the shape {list(like.shape)}"
        )
    return t


def _out(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise DTypeError(f"the function must return a Tensor, not {describe(value)}")
    return value


def vjp(
    function: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False
) -> tuple[Tensor, Any]:
    """The value of a function and vᵀJ, the product of a vector with its Jacobian: one backward.

    ``v`` has the shape of the output; it may be left out where that is one number.

    >>> import minigrad as mg
    >>> mg.vjp(lambda x: x * x, mg.tensor([1.0, 2.0]), mg.tensor([1.0, 1.0]))[1]
    tensor([2., 4.])
    """
    xs, several = _point(inputs, create_graph)
    with enable_grad():
        y = _out(function(*xs))
        seed = None if v is None else _vector(v, y, "vjp")
        grads = (
            grad(y, xs, seed, create_graph=create_graph, materialize_grads=True)
            if y.requires_grad
            else [wrap(np.zeros_like(x._data)) for x in xs]
        )
    return y if create_graph else y.detach(), _packed(list(grads), several)


def jvp(
    function: Callable[..., Any], inputs: Any, v: Any, create_graph: bool = False
) -> tuple[Tensor, Tensor]:
    """The value of a function and Jv, the product of its Jacobian with a vector, by two backwards.

    The gradient of ``uᵀJ`` with respect to ``u`` is linear in ``u``: its own vjp with ``v`` is ``Jv``.

    >>> import minigrad as mg
    >>> mg.jvp(lambda x: x * x, mg.tensor([1.0, 2.0]), [1.0, 10.0])
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    xs, several = _point(inputs, create_graph)
    vs = [_vector(a, x, "jvp") for a, x in zip(v if several else [v], xs, strict=True)]
    with enable_grad():
        y = _out(function(*xs))
        u = Tensor(np.zeros(y.shape, y.dtype), requires_grad=True)
        if not y.requires_grad:
            return y, wrap(np.zeros_like(y._data))
        pulled = grad(y, xs, u, create_graph=True, allow_unused=True)
        pairs = [
            (p, a) for p, a in zip(pulled, vs, strict=True) if p is not None and p.requires_grad
        ]
        if not pairs:
            return y.detach(), wrap(np.zeros_like(y._data))
        (pushed,) = grad(
            [p for p, _ in pairs],
            [u],
            [a for _, a in pairs],
            create_graph=create_graph,
            materialize_grads=True,
        )
    return y if create_graph else y.detach(), pushed  # type: ignore[return-value]


def jacobian(function: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """All first derivatives: an array of shape ``output.shape + input.shape`` per input, row by row.

    >>> import minigrad as mg
    >>> mg.jacobian(lambda x: x * x, mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    xs, several = _point(inputs, create_graph)
    with enable_grad():
        y = _out(function(*xs))
        rows: list[list[Tensor]] = [[] for _ in xs]
        for k in range(y.size):
            seed = np.zeros(y.shape, y.dtype)
            seed.reshape(-1)[k] = 1
            if y.requires_grad:
                found = grad(
                    y,
                    xs,
                    wrap(seed),
                    retain_graph=True,
                    create_graph=create_graph,
                    materialize_grads=True,
                )
            else:
                found = tuple(wrap(np.zeros_like(x._data)) for x in xs)
            for row, g in zip(rows, found, strict=True):
                row.append(g)  # type: ignore[arg-type]
        made = [
            _stacked(row, y.shape + x.shape, x.dtype, create_graph)
            for row, x in zip(rows, xs, strict=True)
        ]
    return _packed(made, several)


def _stacked(rows: list[Tensor], shape: tuple[int, ...], dtype: Any, create_graph: bool) -> Tensor:
    if not rows:
        return wrap(np.zeros(shape, dtype))
    if create_graph:
        from .ops.join import stack
        from .ops.shape import reshape

        return reshape(stack(rows), shape=shape)  # type: ignore[no-any-return]
    return wrap(np.stack([r._data for r in rows]).reshape(shape))


def hessian(function: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """All second derivatives of a function that returns one number.

    For one input an array of shape ``input.shape * 2``; for several a tuple of tuples of blocks.

    >>> import minigrad as mg
    >>> mg.hessian(lambda x: x.prod(), mg.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    xs, several = _point(inputs, create_graph)

    def gradient(k: int) -> Callable[..., Tensor]:
        def of(*at: Tensor) -> Tensor:
            y = _scalar(function(*at))
            if not y.requires_grad:
                return wrap(np.zeros_like(at[k]._data))
            return grad(y, at[k], create_graph=True, materialize_grads=True)[0]  # type: ignore[return-value]

        return of

    blocks = [jacobian(gradient(k), tuple(xs), create_graph) for k in range(len(xs))]
    return tuple(blocks) if several else blocks[0][0]


def hvp(
    function: Callable[..., Any], inputs: Any, v: Any, create_graph: bool = False
) -> tuple[Tensor, Any]:
    """The value of a scalar function and its Hessian times a vector, without building the Hessian.

    >>> import minigrad as mg
    >>> mg.hvp(lambda x: (x**3).sum(), mg.tensor([1.0, 2.0]), [1.0, 1.0])
    (tensor(9.), tensor([ 6., 12.]))
    """
    xs, several = _point(inputs, create_graph)
    vs = [_vector(a, x, "hvp") for a, x in zip(v if several else [v], xs, strict=True)]
    with enable_grad():
        y = _scalar(function(*xs))
        zero = [wrap(np.zeros_like(x._data)) for x in xs]
        if not y.requires_grad:
            return y, _packed(zero, several)
        first = grad(y, xs, create_graph=True, materialize_grads=True)
        pairs = [
            (g, a) for g, a in zip(first, vs, strict=True) if g is not None and g.requires_grad
        ]
        if not pairs:
            return y.detach(), _packed(zero, several)
        second = grad(
            [g for g, _ in pairs],
            xs,
            [a for _, a in pairs],
            create_graph=create_graph,
            materialize_grads=True,
        )
    return y if create_graph else y.detach(), _packed(list(second), several)


def _scalar(value: Any) -> Tensor:
    y = _out(value)
    if y.size != 1:
        raise ShapeError(
            f"the function must return one number, it returned {describe(y)}; reduce it with .sum()"
        )
    return y
