"""Functions made of primitives refuse a wrong call as primitives do: with the names that are known."""

from __future__ import annotations

import inspect
from functools import wraps

from ..errors import call_error

__minigrad_ops__ = True  # frames of this module are never "the user's line"


def checked(function):
    """The function, with an error that names its parameters where a call does not fit them.

    >>> from minigrad.ops import norm
    >>> norm([3.0, 4.0], dim=0)                                     # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.errors.DTypeError: norm() has no keyword 'dim'; did you mean 'axis'?
      it is called as norm(x, ord=2, axis=None, keepdims=False)...
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args, **keywords):
        try:
            return function(*args, **keywords)
        except TypeError:
            try:
                signature.bind(*args, **keywords)
            except TypeError:
                raise _refusal(function.__name__, signature.parameters, args, keywords) from None
            raise

    return call


def _refusal(name, parameters, args, keywords):
    """The `call_error` of a call that does not fit these parameters."""
    names, positions = list(parameters), list(parameters)[: len(args)]
    unknown = [k for k in keywords if k not in parameters or k in positions]
    given = {*positions, *keywords}
    absent = [
        k
        for k, n in enumerate(names)
        if n not in given and parameters[n].default is parameters[n].empty
    ]
    count = absent[0] if absent and len(args) <= len(names) else len(args)
    return call_error(name, [_shown(p) for p in parameters.values()], count, *unknown[:1])


def _shown(parameter):
    """A parameter as a call would show it."""
    default = parameter.default
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={getattr(default, '__name__', None) or repr(default)}"
