"""gradcheck and gradgradcheck: our gradients against central differences."""

from typing import Any

import numpy as np

from .eager.backward import grad
from .eager.mode import enable_grad
from .eager.tensor import Tensor, wrap
from .errors import DTypeError, GradError, describe, refusal
from .functional import rows_of_jacobian
from .primitives.arguments import Args, Function, as_list

__minigrad_ops__ = True


def gradcheck(
    function: Function,
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradient of every argument with central differences, entry by entry.

    ``inputs``: float64 Tensors that require grad (others are held fixed).  Returns True, or raises `GradError` that
    names the worst entry, the ratio of the two numbers, and whether a kink is suspected there.
    The inputs themselves are moved and put back, so a model may be checked at its own parameters.

    >>> import minigrad as mg
    >>> mg.gradcheck(lambda x, y: x * y, (mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)))
    True
    >>> model = mg.nn.Linear(3, 2)
    >>> mg.gradcheck(lambda *parameters: model(mg.ones([4, 3])), model.parameters())
    True
    """
    points = as_list(inputs)
    varied = _with_grad(inputs)
    if not varied:
        raise refusal(
            "gradcheck: none of the inputs requires grad, there is nothing to check",
            "mg.tensor(…, requires_grad=True)",
            GradError,
        )
    for t in varied:
        if t.dtype != np.float64:
            raise refusal(
                f"gradcheck needs float64, {describe(t)} is too coarse for differences of {eps}",
                "inputs of dtype=float, model.astype(float)",
                DTypeError,
            )
    with enable_grad():
        outs = as_list(function(*points))
    for o, out in enumerate(outs):
        if not isinstance(out, Tensor) or out.dtype.kind != "f":
            continue
        for k, x in enumerate(varied):
            (rows,) = rows_of_jacobian(out, [x], create_graph=False)
            ours = rows._data.reshape(out.size, x.size)
            theirs, kinks = _numeric_jacobian(function, points, x, o, eps)
            bad = ~(np.abs(ours - theirs) <= atol + rtol * np.abs(theirs))
            if bad.any():
                if raise_exception:
                    raise GradError(_verdict(ours, theirs, kinks, bad, o, k, x, out))
                return False
    return True


def gradgradcheck(
    function: Function,
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """`gradcheck` of the gradient itself: are second derivatives right?

    >>> import minigrad as mg
    >>> mg.gradgradcheck(lambda x: x**3, mg.tensor([1.0, 2.0], requires_grad=True))
    True
    """
    points = as_list(inputs)
    rng = np.random.default_rng(0)
    with enable_grad():
        outs = _with_grad(function(*points))
    seeds = [wrap(rng.uniform(0.5, 1.5, o.shape)).requires_grad_() for o in outs]

    def first(*args) -> Args:
        at, vs = args[: len(points)], args[len(points) :]
        ys = _with_grad(function(*at))
        return grad(ys, _with_grad(at), list(vs), create_graph=True, materialize_grads=True)

    return gradcheck(first, (*points, *seeds), eps, atol, rtol, raise_exception)


def _with_grad(values) -> list[Tensor]:
    return [t for t in as_list(values) if isinstance(t, Tensor) and t.requires_grad]


def _numeric_jacobian(
    function, points: list[Any], x: Tensor, o: int, eps: float
) -> tuple[Any, Any]:
    """Central differences, and where the one-sided slopes disagree (a kink)."""
    start = x._data
    flat = np.array(start, float).reshape(-1)

    def at(step) -> Any:  # x itself is moved: the function may be a model that holds it
        x._data = (flat + step).reshape(start.shape)
        try:
            with enable_grad():
                return np.ravel(np.asarray(as_list(function(*points))[o]._data)).astype(float)
        finally:
            x._data = start

    middle = at(0.0)[:, None]
    up, down = np.zeros((2, middle.size, flat.size))
    for k, step in enumerate(eps * np.eye(flat.size)):
        up[:, k], down[:, k] = at(step), at(-step)
    left, right = (middle - down) / eps, (up - middle) / eps
    kinks = np.abs(left - right) > 1e-2 * (1 + np.abs(left) + np.abs(right))
    return (up - down) / (2 * eps), kinks


def _verdict(ours, theirs, kinks, bad, o: int, k: int, x: Tensor, out: Tensor) -> str:
    error = np.where(bad, np.nan_to_num(np.abs(ours - theirs), nan=np.inf), -1)
    j, i = divmod(int(error.argmax()), error.shape[1])
    a, b = ours[j, i], theirs[j, i]
    hint = "the gradient rule is wrong here"
    ratio = f", ratio {a / b:.6g}" if b else ""
    if kinks[j, i]:
        hint = "the slopes left and right of this point differ: a kink, move the point"
    elif not out.requires_grad:
        hint = "the output has no graph: an op without a rule, detach() or no_grad() cut it"
    elif b and abs(a / b + 1) < 1e-3:
        hint = "the sign is wrong"
    where_out = [*map(int, np.unravel_index(j, out.shape))]
    where_in = [*map(int, np.unravel_index(i, x.shape))]
    name = f" ({x.name})" if x.name else ""
    return (
        f"gradcheck failed: d output {o}{where_out} / d input {k}{name}{where_in}: ours {a:.9g}, "
        f"central difference {b:.9g}{ratio}.\n"
        f"  {int(bad.sum())} of {bad.size} entries differ; {hint}"
    )
