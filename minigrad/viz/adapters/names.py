"""What things are called: a name given to `draw`, the object's own, or the variable of the caller
that holds it.
"""

import ast
import functools
import inspect
import itertools
import linecache
from collections.abc import Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any

from ...errors import user_frame
from .formula import OPERATORS

Variables = Mapping[str, Any]


class Names:
    """Finds and remembers one name per object; an object without one is ``%1``, ``%2``, … in the
    order of asking.
    """

    def __init__(self, given: Variables | None = None, found: Variables | None = None) -> None:
        given, found = given or {}, found or {}
        self._given, self._found = _by_identity(given), _by_identity(found)
        #: by id, each with its object: an id is only good while that lives
        self._unnamed: dict[int, tuple[Any, str]] = {}
        self.variables = {**given, **found, **given}  # given ones first

    def also(self, found: Variables) -> None:
        """Names for what has none yet."""
        self._found = _by_identity(found) | self._found

    def __call__(self, thing) -> str:
        """The name of one object."""
        unnamed = (thing, f"%{len(self._unnamed) + 1}")
        return self.known(thing) or self._unnamed.setdefault(id(thing), unnamed)[1]

    def known(self, thing) -> str:
        """The name of one object, or an empty text: given, its own, the caller's, in this order."""
        given = self._given.get(id(thing))
        if given is not None:
            return given
        own = getattr(thing, "name", None)
        if isinstance(own, str) and own:
            return own
        return self._found.get(id(thing), "")

    def is_module(self, name: str, code: CodeType) -> bool:
        """Whether a name, of the caller's or where code was written, is a module's, as ``mg``."""
        meanings = (self.variables.get(name), getattr(_home(code), name, None))
        return name in ("mg", "minigrad") or any(isinstance(x, ModuleType) for x in meanings)


def _by_identity(variables: Variables) -> dict[int, str]:
    names: dict[int, str] = {}
    for name, thing in variables.items():
        names.setdefault(id(thing), name)
        held = getattr(type(thing), "_data", None) and thing._data  # what a node saves of a Tensor
        if held is not None and not isinstance(held, (int, float)):
            names.setdefault(id(held), name)
    return names


# ---- What an operation was called with, as it stands on the user's line ----


def operands(node, names: Names) -> dict[str, str]:
    """Input → what stands for it where the operation of a node was written; empty where that is
    not to be seen: ``{"x": "h", "y": "1"}`` for ``h + 1``.
    """
    primitive, code = getattr(node, "primitive", None), getattr(node, "code", None)
    if primitive is None or not isinstance(code, CodeType):
        return {}
    try:
        tree = ast.parse(f"({_written(code, node.lasti)})", mode="eval").body
    except (SyntaxError, ValueError, IndexError):
        return {}
    keywords: list[ast.keyword] = []
    match tree:
        case ast.BinOp(left, sign, right) if isinstance(sign, OPERATORS.get(primitive.type, ())):
            parts = [left, right]
        case ast.Call(ast.Name(primitive.type), parts, keywords):
            pass
        case ast.Call(ast.Attribute(owner, primitive.type), parts, keywords):
            named = isinstance(owner, ast.Name) and names.is_module(owner.id, code)
            parts = parts if named else [owner, *parts]
        case _:
            return {}
    if any(isinstance(part, ast.Starred) for part in parts):
        return {}
    inputs = dict(zip(primitive.inputs, parts, strict=False))
    inputs |= {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
    return {slot: ast.unparse(part) for slot, part in inputs.items()}


_home = functools.lru_cache(maxsize=1024)(inspect.getmodule)  # of code


def _written(code: CodeType, instruction: int) -> str:
    """The expression of an instruction.  Errors: `IndexError`, the file is shorter now."""
    place: Any = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,))
    if None in place:
        return ""
    line, last, start, end = place
    source = "".join(linecache.getlines(code.co_filename)[line - 1 : last])
    span = ast.Pass(lineno=1, end_lineno=last - line + 1, col_offset=start, end_col_offset=end)
    return ast.get_source_segment(source, span) or ""


def caller_variables(frame: FrameType | None = None) -> dict[str, Any]:
    """The variables of a frame, or of the user's innermost one: locals, then globals.

    Names that start with an underscore are left out: notebooks keep old results under them.
    """
    frame = frame or user_frame()
    if frame is None:
        return {}
    known = {**frame.f_locals, **frame.f_globals, **frame.f_locals}
    return {k: v for k, v in known.items() if not k.startswith("_")}
