"""Dispatch: who answers a call.

A kernel answers for arrays, the eager engine for Tensors, the static one for Variables.  The arguments of a call say
which: each `Value` knows its engine by `apply_primitive`, and where two kinds of them meet, that of the higher
``priority`` answers.  No engine is imported from here, and none needs the other.

The function that users call starts as `FIRST_CALL`, which looks for a Value each time.  At its
first Tensor the eager engine replaces the code of this very function by a fast one, written for the
primitive; calls with Variables come back to `answer`.

`EAGER` is the only table that an import fills: what the eager engine lends to the files below it.

    apply       a call with Tensors: `Tensor.apply_primitive`; with arrays, too, which it answers faster
    leaf        how creation functions (zeros, arange, …) make a leaf
    draw        what gives random numbers: in what `checkpoint` runs again, those of the first time
    backward    what the method of that name does
"""

from collections.abc import Mapping
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AnomalyError, describe, op_error
from .arguments import LISTED, Args, Attrs, ByName, Function, Value

if TYPE_CHECKING:
    from .registry import Primitive

__minigrad_ops__ = True  # frames of this module are never "the user's line"
EAGER: dict[str, Function] = {}


def answer(primitive: "Primitive", args: Args, attrs: Attrs) -> Any:
    """The result of a call, from the engine of its arguments.

    >>> from minigrad.ops import exp
    >>> float(answer(exp.primitive, (0.0,), {}))
    1.0
    """
    if primitive.list_input and args and isinstance(args[0], LISTED):
        args = ([*args[0]], *args[1:])  # an iterator gives its values once
        inputs = args[0]
    else:
        inputs = (*args, *map(attrs.get, primitive.inputs))
    if values := [v for v in inputs if isinstance(v, Value)]:
        first = max(values, key=attrgetter("priority"))
        return first.apply_primitive(primitive, args, attrs)
    if "apply" in EAGER:
        return EAGER["apply"](primitive, args, attrs)
    args, attrs = primitive.bind(args, attrs)
    try:
        return primitive.kernel(*args, **attrs)
    except Exception as error:
        raise refused(primitive, args, attrs, error) from error


def refused(primitive: "Primitive", args: Args, attrs: Attrs, error: Exception) -> Exception:
    """What to raise where a kernel refused its arguments."""
    return op_error(primitive.type, primitive.slot_names(len(args)), args, attrs, error)


def check_finite(title: str, value, args: Mapping[str, Any], line: str, place: str = "") -> None:
    """Raise `AnomalyError` if a value holds a NaN or an infinity; ``args``: what it was made from, by name."""
    if np.isfinite(value).all():
        return
    what = "nan" if np.isnan(value).any() else "inf"
    shown = []
    for name, a in args.items():
        plain = getattr(a, "_data", a)
        shown.append(f"{name} = {describe(plain) if np.ndim(plain) else plain}")
    raise AnomalyError(
        f"{title} made {what}{place} from ({', '.join(shown)})\n  at {line}\n  this is the first op that did"
    )


def public_function(primitive: "Primitive", called: str) -> FunctionType:
    """The function users call; it has the kernel's name, or the type's where the kernel is a lambda."""
    kernel = primitive.kernel
    namespace: ByName = {
        "primitive": primitive,
        "answer": answer,
        "__name__": kernel.__module__ or called,
        "__minigrad_ops__": True,
        "__builtins__": __builtins__,
    }
    public = FunctionType(FIRST_CALL, namespace, called)
    public.__doc__ = primitive.doc
    public.__module__ = kernel.__module__
    public.__qualname__ = called
    vars(public).update(
        primitive=primitive,
        grad=primitive.grad,
        formula=primitive.formula,
        __wrapped__=kernel,  # whose signature it shows
    )
    return public


def forget(public: FunctionType) -> None:
    """Back to the first call: a rule that is added after a function was used counts from then on."""
    public.__code__ = FIRST_CALL
    public.__defaults__ = None
    public.__globals__["answer"] = answer


def _first_call(*args, **attrs) -> Any:
    return answer(primitive, args, attrs)  # type: ignore[name-defined]  # noqa: F821


#: the code of a public function that no engine has specialised yet, or whose rules have changed since
FIRST_CALL = _first_call.__code__
