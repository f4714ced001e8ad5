"""Where the way of a value through Python code is cut: by ``detach()``, under ``no_grad``, as plain numbers.

A graph does not remember what left it.  The code still says it: the statements that lead from some names
to others are read, without running them, and in them the expressions behind which no gradient flows.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import source_line

_DEPTH = 4  # functions that call each other
_RESULT = "<the result>"

#: methods and functions behind which there is no graph, and what to write
_CUTTING = {
    **dict.fromkeys(("detach", "detach_", "data"), "leave it out where the gradient shall flow"),
    **dict.fromkeys(
        (
            "numpy",
            "item",
            "tolist",
            "float",
            "int",
            "tensor",
            "as_tensor",
            "from_numpy",
            "Tensor",
            "new_tensor",
        ),
        "go on with the Tensor itself; plain numbers have no graph",
    ),
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "long", "byte", "bool", "multinomial", "one_hot", "int64"),
        "use a smooth stand-in, such as softmax; whole numbers have no gradient",
    ),
    **dict.fromkeys(
        ("Parameter", "deepcopy"),
        "make it once, before the forward pass: it is a new leaf each time",
    ),
}
_NO_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled")


@dataclass(frozen=True)
class Cut:
    """A place where a way is cut: ``line`` of the user's, ``what`` cuts it, and the ``repair``."""

    line: str
    what: str
    repair: str


class Code(NamedTuple):
    """Statements of one scope, and what the names in them stand for."""

    body: list[ast.stmt]
    filename: str
    first_line: int
    namespace: Mapping[str, Any]
    result: str = ""  # why nothing in it is recorded


class Statement(NamedTuple):
    """``targets`` get something made of ``value``; ``muted`` says what keeps it out of the graph."""

    targets: set[str]
    value: ast.expr
    muted: str


def code_around(frame: Any) -> Code:
    """The code that a frame runs: the innermost function, or the module without its functions."""
    filename, namespace = frame.f_code.co_filename, {**frame.f_globals, **frame.f_locals}
    tree = _parsed("".join(linecache.getlines(filename, frame.f_globals)))
    body = tree.body if tree is not None else []
    if frame.f_code.co_name != "<module>" and tree is not None:
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        line = frame.f_code.co_firstlineno
        body = next(
            (
                f.body
                for f in functions
                if line in (f.lineno, *(d.lineno for d in f.decorator_list))
            ),
            [],
        )
    return Code(body, filename, 1, namespace)


def code_of(function: Any, namespace: Mapping[str, Any]) -> Code | None:
    """The body of a Python function; None if its source is not there."""
    function = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    tree = _parsed(textwrap.dedent("".join(lines)))
    if tree is None or not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        return None
    muted = next((w for d in tree.body[0].decorator_list if (w := _muting(d))), "")
    known = {**getattr(function, "__globals__", {}), **namespace}
    return Code(tree.body[0].body, function.__code__.co_filename, first, known, muted)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def cuts(
    code: Code, starts: Iterable[str], ends: Iterable[str] | None, path: str = "", depth: int = 0
) -> list[Cut]:
    """Where ways from the names ``starts`` to the names ``ends`` are cut, in the order of the lines.

    Without ``ends``, on all ways. ``path`` is what a start holds the value under: ``"fc1.weight"``
    of the module ``model``.

    >>> code = Code(ast.parse("h = w * 2\\nk = h.detach()\\nloss = k.sum()").body, "", 1, {})
    >>> [cut.what for cut in cuts(code, ["w"], ["loss"])]
    ['h.detach()']
    """
    statements = list(_statements(code.body, code.result))
    tainted = _closure(set(starts), statements, forward=True)
    every = {t for s in statements for t in s.targets}
    needed = every if ends is None else _closure(set(ends), statements, forward=False)
    found: list[Cut] = []
    for targets, value, muted in statements:
        if not (_feeds(targets, needed) and _mentions(value, tainted)):
            continue
        line = source_line(code.filename, code.first_line + value.lineno - 1)
        if muted:
            found.append(Cut(line, muted, "compute it outside of that block"))
        for node in ast.walk(value):
            found += _cut_at(node, tainted, line)
            if isinstance(node, ast.Call) and depth < _DEPTH:
                found += _inside(node, code, tainted, path, depth)
    return list(dict.fromkeys(found))


def muted_assignments(code: Code, name: str) -> list[tuple[str, str]]:
    """(the lines that assign a name, with what keeps them out of the graph; what that is, or "")."""
    return [
        (
            f"{muted.removeprefix('with ')} ({source_line(code.filename, code.first_line + value.lineno - 1)})",
            muted,
        )
        for targets, value, muted in _statements(code.body, code.result)
        if name in targets
    ]


def called(code: Code, name: str) -> list[tuple[str, ast.Call]]:
    """The calls of a method or function of this name, functions in the code included, with their lines."""
    calls = [n for s in code.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    return [
        (source_line(code.filename, code.first_line + n.lineno - 1), n)
        for n in calls
        if _last(n.func) == name
    ]


def _inside(call: ast.Call, code: Code, tainted: set[str], path: str, depth: int) -> list[Cut]:
    """The cuts inside a function, method or module of the user's that is called with the value."""
    function = _resolved(call.func, code.namespace)
    names = [n for n in _names(call.func) if any(_under(n, t) for t in tainted)]
    forward = getattr(type(function), "forward", None)
    if forward is not None:  # a module: its parts are the start, or what goes in
        if (
            type(function).__module__.startswith("torch.")
            or (inner := code_of(forward, {"self": function})) is None
        ):
            return []
        held, _, rest = path.partition(".")
        starts = {f"self.{held}"} if names and path else _parameters(forward)
        if names and path and names[0].startswith("self."):
            held = path.removeprefix(names[0].removeprefix("self.") + ".")
            starts, rest = {f"self.{held.partition('.')[0]}"}, held
            return cuts(inner, starts, [_RESULT], rest, depth + 1)
        return cuts(inner, starts, [_RESULT], path, depth + 1)
    if not inspect.isroutine(function) or (inner := code_of(function, code.namespace)) is None:
        return []
    if inner.filename.endswith(".so") or "site-packages" in inner.filename:
        return []
    starts = _parameters(function) | tainted  # what it takes from around it, too
    return cuts(inner, starts, [_RESULT], path, depth + 1)


def _parameters(function: Any) -> set[str]:
    try:
        return {*inspect.signature(function).parameters} - {"self"}
    except (TypeError, ValueError):
        return set()


def _resolved(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """What a dotted name stands for, looked up without running anything."""
    if isinstance(node, ast.Name):
        return namespace.get(node.id)
    if not isinstance(node, ast.Attribute) or (at := _resolved(node.value, namespace)) is None:
        return None
    held = {**getattr(at, "__dict__", {}), **getattr(at, "_modules", {})}
    if node.attr in held:
        return held[node.attr]
    return inspect.getattr_static(type(at), node.attr, None)


def _cut_at(node: ast.AST, tainted: set[str], line: str) -> Iterator[Cut]:
    """The cut that an expression is, if it stands on a way from what is tainted."""
    subject: Any = None
    if isinstance(node, ast.Call):
        name = _last(node.func)
        subject = node if name not in ("data",) else None
        if name == "requires_grad_" and any(
            isinstance(a, ast.Constant) and a.value is False for a in node.args
        ):
            yield Cut(line, ast.unparse(node), "leave it out: it freezes the value")
        if name in ("to", "type") and any(
            "int" in ast.unparse(a) or "long" in ast.unparse(a) for a in node.args
        ):
            name = "long"
    elif isinstance(node, ast.Attribute) and node.attr == "data":
        name, subject = "data", node.value
    elif (
        isinstance(node, ast.Compare)
        and _mentions(node, tainted)
        and not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
    ):
        yield Cut(
            line,
            ast.unparse(node),
            "a comparison has no gradient; use a smooth stand-in, such as sigmoid",
        )
        return
    else:
        return
    if subject is not None and name in _CUTTING and _mentions(subject, tainted):
        yield Cut(line, ast.unparse(node), _CUTTING[name])


def _last(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def _muting(node: ast.expr) -> str:
    """The text of ``torch.no_grad()`` and its kin; empty for anything else."""
    call = node.func if isinstance(node, ast.Call) else node
    off = not (isinstance(node, ast.Call) and node.args and ast.unparse(node.args[0]) == "True")
    return ast.unparse(node) if _last(call) in _NO_GRAPH and off else ""


def _statements(body: Iterable[ast.stmt], muted: str) -> Iterator[Statement]:
    """The statements that hand values on, through branches and loops, not through functions."""
    for s in body:
        match s:
            case ast.Expr(ast.Call(function)) if _last(function) == "set_grad_enabled":
                muted = _muting(s.value)  # from here on
            case ast.With(items, inner):
                why = next((w for i in items if (w := _muting(i.context_expr))), muted)
                yield from _statements(inner, f"with {why}" if why and why != muted else muted)
            case ast.If() | ast.For() | ast.While():
                if isinstance(s, ast.For):
                    yield Statement(_bases([s.target]), s.iter, muted)
                yield from _statements([*s.body, *s.orelse], muted)
            case ast.Try():
                handlers = [x for h in s.handlers for x in h.body]
                yield from _statements([*s.body, *handlers, *s.orelse, *s.finalbody], muted)
            case ast.Assign(targets, value):
                yield Statement(_bases(targets), value, muted)
            case ast.AugAssign(target, _, value):
                yield Statement(_bases([target]), value, muted)
            case ast.AnnAssign(target, _, ast.expr() as value):
                yield Statement(_bases([target]), value, muted)
            case ast.Return(ast.expr() as value):
                yield Statement({_RESULT}, value, muted)
            case ast.Expr(ast.Call(ast.Attribute(subject, _)) as value):
                yield Statement(_bases([subject]), value, muted)  # outs.append(h), h.add_(w)


def _bases(targets: Iterable[ast.expr]) -> set[str]:
    """The names that are assigned to; those of a subscript and of an attribute of something else's."""
    found: set[str] = set()
    for t in targets:
        if isinstance(t, ast.Tuple | ast.List):
            found |= _bases(t.elts)
        elif isinstance(t, ast.Starred | ast.Subscript):
            found |= _bases([t.value])
        elif isinstance(t, ast.Name | ast.Attribute):
            found |= set(_names(t)[:1])
    return found


def _names(node: ast.expr) -> list[str]:
    """The dotted names in an expression: ``self.fc1``, ``w``."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        inner = _names(node.value)
        plain = isinstance(node.value, ast.Name | ast.Attribute)
        return [f"{inner[0]}.{node.attr}", *inner[1:]] if plain and inner else inner
    parts = [_names(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    parts += [_names(c.value) for c in ast.iter_child_nodes(node) if isinstance(c, ast.keyword)]
    parts += [
        _names(g.iter)
        for c in ast.iter_child_nodes(node)
        if isinstance(c, ast.comprehension)
        for g in [c]
    ]
    return [n for p in parts for n in p]


def _under(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}.")


def _feeds(targets: set[str], names: set[str]) -> bool:
    return any(_under(n, t) for n in names for t in targets)


def _mentions(node: ast.expr, names: Iterable[str]) -> bool:
    return any(_under(n, t) for n in _names(node) for t in names)


def _closure(names: set[str], statements: list[Statement], forward: bool) -> set[str]:
    """The names that depend on these (``forward``), or that these depend on."""
    before = -1
    while len(names) != before:
        before = len(names)
        for targets, value, _ in statements:
            if forward and _mentions(value, names):
                names = names | targets
            elif not forward and _feeds(targets, names):
                names = names | set(_names(value))
    return names
