"""Derivatives of functions: vjp, jvp, jacobian, hessian, hvp.

All take a function of Tensors and the point as Tensors, arrays or numbers (one, or a tuple for
several arguments) and work at copies of the inputs, so no ``.grad`` is touched; with
``create_graph=True`` they work at Tensors that require grad themselves, such as ``model.parameters()``.  The
functions of vjp, jvp and jacobian may return a tuple of Tensors; what is one thing for one output is then a
tuple with one thing per output.
"""

from typing import Any

import numpy as np

from . import ops
from .eager.backward import discovered, grad
from .eager.mode import enable_grad
from .eager.tensor import Tensor, wrap
from .errors import DTypeError, GradError, describe, refusal, unmasked
from .primitives.arguments import Function, Listed, as_list

__minigrad_ops__ = True
Tensors = list[Tensor]


def _point(inputs, keep: bool) -> Tensors:
    values = as_list(inputs)
    if keep and all(isinstance(v, Tensor) and v.requires_grad for v in values):
        return values
    point = []
    for v in values:
        array = v._data if isinstance(v, Tensor) else np.asarray(unmasked(v))
        if array.dtype.kind != "f":
            array = array.astype(float)
        point.append(Tensor(array, requires_grad=True))
    return point


def _packed(values: Listed, given) -> Any:
    """A tuple where several were given, else the one value."""
    return tuple(values) if isinstance(given, tuple | list) else values[0]


def _vectors(v, given, like: Tensors, what: str) -> Tensors:
    """One vector for each of these Tensors, in its shape."""
    values = as_list(v) if isinstance(given, tuple | list) else [v]
    if len(values) != len(like):
        raise refusal(
            f"{what} needs {len(like)} vectors, a tuple, not {describe(v)}",
            "one vector for each, in the same order: v=(a, b)",
        )
    vectors = []
    for a, t in zip(values, like, strict=True):
        vector = a
        if a is not None and not isinstance(a, Tensor):
            vector = wrap(np.asarray(a, t.dtype))
        if vector is None or vector.shape != t.shape:
            shape = list(t.shape)
            raise refusal(
                f"the {what} vector is {describe(vector)}, it must have the shape {shape}",
                f"v=mg.ones({shape}), or another of this shape",
            )
        vectors.append(vector)
    return vectors


def _called(function: Function, xs: Tensors, inputs) -> tuple[Tensors, Any]:
    """What a function returns, as a list and as it is.

    Errors: `GradError` if it comes from these inputs and not from their copies, `DTypeError` if it is no Tensor.
    """
    value = function(*xs)
    outs = as_list(value)
    roots = [(y._node, None) for y in outs if isinstance(y, Tensor)]
    leaves = {id(end.ref()) for end in discovered(roots)[1]}
    if not leaves.isdisjoint(map(id, as_list(inputs))) and leaves.isdisjoint(map(id, xs)):
        raise refusal(
            "the function does not use its arguments, copies of the inputs, but the inputs themselves",
            "use the arguments, or create_graph=True: then they are the inputs, as a model holds them",
            GradError,
        )
    for out in outs or [None]:
        if not isinstance(out, Tensor):
            raise refusal(
                f"the function must return a Tensor or a tuple of Tensors, not {describe(out)}",
                "return what was computed from the arguments",
                DTypeError,
            )
    return outs, value


def vjp(
    function: Function, inputs: Any, v: Any = None, create_graph: bool = False
) -> tuple[Any, Any]:
    """The value of a function and vᵀJ, the product of a vector with its Jacobian: one backward.

    ``v`` has the shape of the output; it may be left out where that is one number.

    >>> import minigrad as mg
    >>> mg.vjp(lambda x: x * x, mg.tensor([1.0, 2.0]), mg.tensor([1.0, 1.0]))[1]
    tensor([2., 4.])
    """
    xs = _point(inputs, create_graph)
    with enable_grad():
        ys, value = _called(function, xs, inputs)
        one = v is None and all(y.size == 1 for y in ys)
        seeds = [None] * len(ys) if one else _vectors(v, value, ys, "vjp")
        grads = _grads(ys, seeds, xs, create_graph)
    return _values(ys, value, create_graph), _packed(grads, inputs)


def _grads(ys: Tensors, seeds: Listed, xs: Tensors, create_graph: bool) -> Listed:
    """The gradients of outputs with seeds; zeros where nothing leads to an input."""
    seeded = [(y, seed) for y, seed in zip(ys, seeds, strict=True) if y.requires_grad]
    if not seeded or not xs:
        return [wrap(np.zeros_like(x._data)) for x in xs]
    roots, given = zip(*seeded, strict=True)
    return list(grad(roots, xs, given, create_graph=create_graph, materialize_grads=True))


def _values(ys: Tensors, given, create_graph: bool) -> Any:
    return _packed([y if create_graph else y.detach() for y in ys], given)


def jvp(function: Function, inputs: Any, v: Any, create_graph: bool = False) -> tuple[Any, Any]:
    """The value of a function and Jv, the product of its Jacobian with a vector, by two backwards.

    The gradient of ``uᵀJ`` with respect to ``u`` is linear in ``u``: its own vjp with ``v`` is
    ``Jv``.

    >>> import minigrad as mg
    >>> mg.jvp(lambda x: x * x, mg.tensor([1.0, 2.0]), [1.0, 10.0])
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    xs = _point(inputs, create_graph)
    vs = _vectors(v, inputs, xs, "jvp")
    with enable_grad():
        ys, value = _called(function, xs, inputs)
        us = [
            Tensor(np.zeros(y.shape, y.dtype if y.requires_grad else float), requires_grad=True)
            for y in ys
        ]
        pulled = _grads(ys, us, xs, True)
        pushed = _grads(pulled, vs, us, create_graph)
    return _values(ys, value, create_graph), _packed(pushed, value)


def jacobian(function: Function, inputs: Any, create_graph: bool = False) -> Any:
    """All first derivatives: an array of shape ``output.shape + input.shape`` per input, row by row.

    >>> import minigrad as mg
    >>> mg.jacobian(lambda x: x * x, mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    xs = _point(inputs, create_graph)
    with enable_grad():
        ys, value = _called(function, xs, inputs)
        blocks = [_packed(rows_of_jacobian(y, xs, create_graph), inputs) for y in ys]
    return _packed(blocks, value)


def rows_of_jacobian(y: Tensor, xs: Tensors, create_graph: bool) -> Tensors:
    """The Jacobian of one output by every input, a row at a time."""
    if not (y.requires_grad and y.size):
        return [wrap(np.zeros(y.shape + x.shape, x.dtype)) for x in xs]
    places = np.arange(y.size).reshape(y.shape)
    rows = [
        grad(y, xs, places == k, True, create_graph, materialize_grads=True) for k in range(y.size)
    ]
    return [ops.stack(c).reshape(y.shape + c[0].shape) for c in zip(*rows, strict=True)]


def hessian(function: Function, inputs: Any, create_graph: bool = False) -> Any:
    """All second derivatives of a function that returns one number.

    For one input an array of shape ``input.shape * 2``; for several a tuple of tuples of blocks.

    >>> import minigrad as mg
    >>> mg.hessian(lambda x: x.prod(), mg.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    xs = _point(inputs, create_graph)
    with enable_grad():
        _, gradient = _gradient(function, xs, inputs)
        blocks = [_packed(rows_of_jacobian(g, xs, create_graph), inputs) for g in gradient]
    return _packed(blocks, inputs)


def _gradient(function: Function, xs: Tensors, inputs) -> tuple[Tensor, Tensors]:
    """The value of a function that returns one number, and its gradient, which has a graph of its own."""
    (y, *more), result = _called(function, xs, inputs)
    if more or y.size != 1:
        shown = describe(result if more else y)
        raise refusal(
            f"the function must return one number, it returned {shown}", "reduce it with .sum()"
        )
    return y, _grads([y], [None], xs, True)


def hvp(function: Function, inputs: Any, v: Any, create_graph: bool = False) -> tuple[Any, Any]:
    """The value of a scalar function and its Hessian times a vector, without building the Hessian.

    >>> import minigrad as mg
    >>> mg.hvp(lambda x: (x**3).sum(), mg.tensor([1.0, 2.0]), [1.0, 1.0])
    (tensor(9.), tensor([ 6., 12.]))
    """
    xs = _point(inputs, create_graph)
    vs = _vectors(v, inputs, xs, "hvp")
    with enable_grad():
        y, gradient = _gradient(function, xs, inputs)
        products = _grads(gradient, vs, xs, create_graph)
    return _values([y], None, create_graph), _packed(products, inputs)
