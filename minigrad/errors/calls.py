"""A call that does not fit is answered with the names that are known: of a function, a method or a constructor."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from traceback import walk_tb
from types import FunctionType
from typing import Any, TypeVar

from . import DTypeError, MinigradError, op_error, told
from .other_libraries import TABLES, instead, meant

__minigrad_ops__ = True  # frames of this module are never "the user's line"
F = TypeVar("F", bound=Callable[..., Any])
_NOT_THE_USER = {"minigrad", "numpy"} | sys.stdlib_module_names


def checked(function: F) -> F:
    """The function, with an error that names its parameters where a call does not fit them.

    >>> from minigrad.ops import norm
    >>> norm([3.0, 4.0], dim=0)                                     # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.errors.DTypeError: norm() has no keyword 'dim'; did you mean 'axis'?
      it is called as norm(x, ord=2, axis=None, keepdims=False)...
    """
    if getattr(function, "is_checked", False):
        return function

    @wraps(function)
    def call(*args, **keywords) -> Any:
        try:
            return function(*args, **keywords)
        except MinigradError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError) as cause:
            title = _title(function, call, args)
            if isinstance(cause, TypeError) and (error := misfit(function, args, keywords, title)):
                raise error from None
            if _is_of_user(cause):
                raise
            # a value is of the wrong kind, and only Python or NumPy say so
            every = inspect.signature(function).parameters
            typed = {n: _typed(p) for n, p in every.items() if n not in ("self", "cls")}
            usual = f"{title}({', '.join(typed.values())})"
            values = args[len(typed) < len(every) :]
            raise op_error(title, typed, values, keywords, cause, usual) from cause

    call.is_checked = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def check_functions(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Let the functions and classes of a package say the same, where the package is put together.

    >>> space = {"half": lambda x: x / 2}
    >>> check_functions(space, ["half"])
    >>> space["half"](1, 2)                                         # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.errors.DTypeError: <lambda>() takes at most 1 value, 2 were given...
    """
    for name in names:
        value = namespace.get(name)
        if isinstance(value, type):
            check_methods(value)
        elif isinstance(value, FunctionType) and not hasattr(value, "primitive"):
            namespace[name] = call = checked(value)
            if call is not value:  # pickle looks for it there
                call.__module__ = namespace.get("__name__", value.__module__)


def check_methods(cls: type) -> None:
    """Let a class say the same of its constructor and its public methods, inherited ones included.

    What was put there from elsewhere stays as it is: a primitive answers for itself.  So does
    ``forward``, for which the module or the Function answers that calls it.
    """
    for home in cls.__mro__:
        if not home.__module__.startswith("minigrad."):
            continue
        for name, value in list(vars(home).items()):
            function = getattr(value, "__func__", value)  # of a class method, a static method
            if not isinstance(function, FunctionType) or (name[0] == "_" and name != "__init__"):
                continue
            if name != "forward" and function.__qualname__ == f"{home.__qualname__}.{name}":
                call = checked(function)
                setattr(home, name, call if function is value else type(value)(call))


def _is_of_user(cause: Exception) -> bool:
    """Whether code of the user was running where it was raised: then it is theirs, as it is."""
    ran = [frame.f_globals for frame, _ in walk_tb(cause.__traceback__)]
    homes = [str(g.get("__name__")).partition(".")[0] for g in ran if "__minigrad_ops__" not in g]
    return not _NOT_THE_USER.issuperset(homes)


class CheckedConstructors:
    """A base whose subclasses say the same of their constructors."""

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]


def misfit(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], title: str
) -> DTypeError | None:
    """What to raise if these arguments do not fit the parameters; None if they do."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **keywords)
        return None
    except TypeError:
        parameters = list(signature.parameters.values())
        count = len(args)
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
        count -= 1
    places = [p.name for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    names = [p.name for p in parameters]
    given = places[:count]
    unknown = next((k for k in keywords if k not in names or k in given), None)
    needed = [p.name for p in parameters if p.default is p.empty and count <= len(places)]
    missing = next((name for name in needed if name not in (*given, *keywords)), "")
    shown = [_shown(p) for p in parameters]
    if len(places) < len(parameters) and not any("*" in text for text in shown):
        shown.insert(len(places), "*")
    return call_error(title, shown, count, unknown, missing)


def _title(function, call, args: tuple[Any, ...]) -> str:
    """What a user called: ``norm``, ``Executor.run``, or the class that is made."""
    *owner, name = function.__qualname__.rpartition("<locals>.")[2].split(".")
    if name != "__init__":
        if owner and args and "self" in inspect.signature(function).parameters:
            owner = [type(args[0]).__name__]
        return ".".join([*owner[-1:], name])
    # or the constructor of a subclass called it
    constructed = args and type(args[0]).__init__ is call
    return type(args[0]).__name__ if constructed else owner[-1]


def _typed(parameter: inspect.Parameter) -> str:
    """A parameter with its type, without the modules of types."""
    text = str(parameter.replace(default=parameter.empty)).lstrip("*")
    return re.sub(r"\b\w+\.|'", "", text)


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as a call would show it."""
    called = getattr(parameter.default, "__name__", None)
    if called is None or parameter.default is parameter.empty:
        return str(parameter.replace(annotation=parameter.empty))
    return f"{parameter.name}={called}"


def call_error(
    name: str, parameters: Iterable[str], count: int, unknown: str | None = None, missing: str = ""
) -> DTypeError:
    """What to raise for a call with an unknown keyword, or with too many or too few values.

    ``missing`` has to be given and is not; where it is left out, that is what stands behind ``count`` values.

    >>> print(str(call_error("sum", ["x", "axis=None"], 1, "dim")).splitlines()[0])
    sum() has no keyword 'dim'; did you mean 'axis'?
    """
    parameters = list(parameters)
    known = [p.partition("=")[0].lstrip("*") for p in parameters if p[:2] != "**"]
    most = known.index("") if "" in known else len(known)  # what stands behind a * has a name
    advice = TABLES["too few values"].get(name, "") if missing or count else ""
    if unknown in known:
        advice = TABLES["too many values"].get(name, "")
        what = f"got {unknown!r} twice, by position and by name"
    elif unknown is not None:
        close = meant(unknown, known)
        advice = "" if close else instead(unknown, name)
        what = f"has no keyword {unknown!r}" + (f"; did you mean {close!r}?" if close else "")
    elif not missing and count > most:
        advice = TABLES["too many values"].get(name, "")
        what = f"takes at most {most} value{'s' * (most != 1)}, {count} {'was' if count == 1 else 'were'} given"
    else:
        what = f"needs {missing or known[count]!r}"
    what = f"{name}() {what}\n  it is called as {name}({', '.join(parameters)})"
    return DTypeError(told(what, advice))
