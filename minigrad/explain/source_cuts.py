"""Where the way of a value through Python code is cut: by ``detach()``, under ``no_grad``, as plain numbers.

A graph does not remember what left it.  The code still says it: the statements that lead from some names
to others are read, without running them, and in them the expressions behind which no gradient flows.
"""

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import source_line
from .paths import TABLES

Dotted = set[str]  #: names, such as ``self.fc1``
_TURNS = 3  # of a loop that are looked at
_DEPTH = 4  # functions that call each other
#: whose code cuts nothing by mistake
_LIBRARIES = {"torch", "numpy", "minigrad", *sys.stdlib_module_names} - {"__main__"}
_RESULT = "<the result>"
_NO_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled")
#: methods and functions behind which there is no graph, and what to write
_CUTTING = {name: advice for names, advice in TABLES["cuts"].items() for name in names.split()}


class Cut(NamedTuple):
    """A place where a way is cut: ``line`` of the user's, ``what`` cuts it, and the ``repair``."""

    line: str
    what: str
    repair: str


class Statement(NamedTuple):
    """``targets`` get something made of ``value``; ``muted`` says what keeps it out of the graph.

    ``replaces``: what they were before is gone, whatever else runs.
    """

    value: ast.expr
    targets: Dotted
    muted: str
    replaces: bool = False


class Code(NamedTuple):
    """Statements of one scope, and what the names in them stand for."""

    body: list[ast.stmt]
    filename: str
    first_line: int
    namespace: dict[str, Any]
    result: str = ""  # why nothing in it is recorded
    last_line: float = math.inf  # that has run

    def line(self, node) -> str:
        """The user's line of a node."""
        return source_line(self.filename, self.first_line + node.lineno - 1)

    def walk(self, kind) -> list[Any]:
        """All nodes of a kind, of functions in the code, too."""
        return [n for s in self.body for n in ast.walk(s) if isinstance(n, kind)]

    def calls(self, name: str) -> list[ast.Call]:
        """The calls of a method or function of this name; those that ran, if any did."""
        calls = [n for n in self.walk(ast.Call) if _last(n.func) == name]
        return [c for c in calls if c.lineno <= self.last_line] or calls

    def assignments(self, target: str) -> list[ast.Assign]:
        """Those to a name, or to an attribute of that name."""
        return [
            n
            for n in self.walk(ast.Assign)
            if target in [w for t in n.targets for w in (ast.unparse(t), _last(t))]
        ]

    def statements(self) -> list[Statement]:
        """The statements that may have run: up to the last line, and those of loops around it."""
        loops = self.walk(ast.For | ast.While)
        last = self.last_line
        end = max([last, *(n.end_lineno for n in loops if n.lineno <= last <= n.end_lineno)])
        return [s for s in _statements(self.body, self.result) if s.value.lineno <= end]

    def assigned(self, name: str) -> list[Statement]:
        """The statements that assign a name."""
        return [s for s in self.statements() if name in s.targets]


def code_around(frame) -> Code:
    """The code that a frame runs: the innermost function, or the module without its functions."""
    body, first = _parsed(frame)
    if frame.f_code.co_name != "<module>":
        body = body[0].body if body and isinstance(body[0], ast.FunctionDef) else []
    namespace = {**frame.f_globals, **frame.f_locals}
    last = frame.f_lineno - first + 1
    return Code(body, frame.f_code.co_filename, first, namespace, "", last)


def code_of(function, namespace: Mapping[str, Any]) -> Code | None:
    """The body of a Python function of the user's; None if its source is not there."""
    function = inspect.unwrap(function) if callable(function) else None
    library = str(getattr(function, "__module__", "")).partition(".")[0] in _LIBRARIES
    body, first = _parsed(None if library else function)
    if not body or not isinstance(body[0], ast.FunctionDef):
        return None
    muted = _muting(body[0].decorator_list)
    known = {**namespace, **getattr(function, "__globals__", {})}
    return Code(body[0].body, function.__code__.co_filename, first, known, muted)


def _parsed(thing) -> tuple[list[ast.stmt], int]:
    """The statements of a function or a frame, and the line of the first; none where there is no source."""
    try:
        lines, first = inspect.getsourcelines(thing)
        return ast.parse(textwrap.dedent("".join(lines))).body, max(first, 1)
    except (OSError, TypeError, SyntaxError, ValueError):
        return [], 1


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
    statements = code.statements()
    tainted = _depending(set(starts), statements)
    if ends is not None:
        statements = _leading_to(set(ends), statements)
    found = []
    for value, _, muted, _ in statements:
        line = code.line(value)
        if muted and _mentions(value, tainted):
            found.append(Cut(line, muted, "compute it outside of that block"))
        for node in ast.walk(value):
            found += _cut_at(node, tainted, line)
            if isinstance(node, ast.Call) and depth < _DEPTH:
                found += _inside(node, code, tainted, path, depth)
    return list(dict.fromkeys(found))


def _inside(call: ast.Call, code: Code, tainted: Dotted, path: str, depth: int) -> list[Cut]:
    """The cuts inside a function, method or module of the user's that is called with the value."""
    function = _resolved(call.func, code.namespace)
    owner = _resolved(getattr(call.func, "value", None), code.namespace)
    starts = set(tainted)  # what it takes from around it, too
    if forward := getattr(type(function), "forward", None):
        owner = function
        function = forward
        starts = set()
    inner = code_of(function, code.namespace)
    if inner is None:
        return []
    names = [*inspect.signature(function).parameters]
    bound = getattr(type(owner), getattr(function, "__name__", ""), None) is function
    me = names[0] if bound else ""  # mostly "self"
    inner.namespace[me] = owner
    if forward and path and _mentions(call.func, tainted):  # a part of the module is the start
        path = path.removeprefix(f"{ast.unparse(call.func)}.".partition(".")[2])
        starts = {f"{me}.{path.partition('.')[0]}"}
    elif any(_mentions(given, tainted) for given in (*call.args, *call.keywords)):
        starts |= {*names} - {me}
    elif not forward and _mentions(call.func, tainted):
        starts |= {me}
    handed = dict(zip(names[bool(me) :], call.args, strict=False))
    for name, given in (handed | {k.arg: k.value for k in call.keywords}).items():
        # f(self): what is self.fc1 here is model.fc1 there
        whole = f"{ast.unparse(given)}."
        starts |= {f"{name}.{t.removeprefix(whole)}" for t in tainted if t.startswith(whole)}
    return cuts(inner, starts, [_RESULT], path, depth + 1)


def _resolved(node: ast.expr | None, namespace: Mapping[str, Any]) -> Any:
    """What a dotted name stands for, looked up without running anything."""
    if isinstance(node, ast.Name):
        return namespace.get(node.id)
    if not isinstance(node, ast.Attribute) or (at := _resolved(node.value, namespace)) is None:
        return None
    held = {**getattr(at, "__dict__", {}), **getattr(at, "_modules", {})}
    return held.get(node.attr, inspect.getattr_static(type(at), node.attr, None))


def _cut_at(node: ast.AST, tainted: Dotted, line: str) -> Iterator[Cut]:
    """The cut that an expression is, if it stands on a way from what is tainted."""
    subject = node
    name = ""
    match node:
        case ast.Call(function, args, keywords):
            name = _last(function).lower()
            given = ", ".join(map(ast.unparse, (*args, *keywords)))
            if name in ("float", "int") and isinstance(function, ast.Name):
                name += "()"  # Python's, not the method
            if name in ("to", "type") and ("int" in given or "long" in given):
                name = "long"
            unlike = {
                "data": True,  # an attribute
                "indices": True,
                "requires_grad_": "False" not in given,
                "grad": "create_graph=" in given,
                "checkpoint": "use_reentrant=True" not in given,
            }
            name = "" if unlike.get(name) else name
        case ast.Attribute(subject, "data" | "grad" | "indices" as name):
            pass
        case ast.Compare(ops=ops):
            identity = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
            name = "" if any(isinstance(op, identity) for op in ops) else "compare"
    if name in _CUTTING and _mentions(subject, tainted):
        yield Cut(line, ast.unparse(node), _CUTTING[name])


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _muting(nodes: Iterable[ast.expr]) -> str:
    """The text of the first ``torch.no_grad()`` or its kin; empty if there is none."""
    for node in nodes:
        text = ast.unparse(node)
        if _last(getattr(node, "func", node)) in _NO_GRAPH and not text.endswith("(True)"):
            return text
    return ""


def _statements(body: Iterable[ast.AST], muted: str, always: bool = True) -> Iterator[Statement]:
    """The statements that hand values on, through branches and loops, not through functions.

    Those of a loop come several times: each turn reads what the one before has left.
    """
    for s in body:
        match s:
            case ast.Expr(ast.Call(function)) if _last(function) == "set_grad_enabled":
                muted = _muting([s.value])  # from here on
            case ast.With(items, inner):
                why = _muting(i.context_expr for i in items)
                yield from _statements(inner, f"with {why}" if why else muted, always)
            case ast.If() | ast.For() | ast.While() | ast.Try() | ast.ExceptHandler():
                for _ in range(_TURNS if isinstance(s, ast.For | ast.While) else 1):
                    if isinstance(s, ast.For):
                        yield Statement(s.iter, _bases([s.target]), muted)
                    for part in ("body", "handlers", "orelse", "finalbody"):
                        yield from _statements(getattr(s, part, ()), muted, False)
            case ast.Assign(targets, value):
                whole = all(isinstance(t, ast.Name | ast.Tuple) for t in targets)
                yield Statement(value, _bases(targets), muted, whole and always)
            case ast.AugAssign(target, _, value) | ast.AnnAssign(target, _, ast.expr() as value):
                yield Statement(value, _bases([target]), muted)
            case ast.Return(ast.expr() as value):
                yield Statement(value, {_RESULT}, muted)
            case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(at, "data") | at)) as value):
                yield Statement(value, _bases([at]), muted)  # outs.append(h), h.data.copy_(w)


def _bases(targets: Iterable[ast.expr]) -> Dotted:
    """The names that are assigned to; those of a subscript, too."""
    found = set()
    for t in targets:
        if isinstance(t, ast.Tuple | ast.List):
            found |= _bases(t.elts)
        elif isinstance(t, ast.Starred | ast.Subscript):
            found |= _bases([t.value])
        else:
            found.add(ast.unparse(t))
    return found


def _names(node: ast.AST) -> Dotted:
    """The dotted names in an expression: ``self.fc1``, ``self``, ``w``."""
    return {ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}


def _feeds(targets: Iterable[str], names: Dotted) -> bool:
    """Whether one of the names is a target, or an attribute of one."""
    return any(f"{n}.".startswith(f"{t}.") for n in names for t in targets)


def _mentions(node: ast.AST, names: Iterable[str]) -> bool:
    return _feeds(names, _names(node))


def _depending(names: Dotted, statements: list[Statement]) -> Dotted:
    """The names that depend on these; what a loop hands from name to name, one a turn, too."""
    before: Dotted = set()
    while names != before:
        before = names
        for value, targets, *_ in statements:
            if _mentions(value, names):
                names = names | targets
    return names


def _leading_to(ends: Dotted, statements: list[Statement]) -> list[Statement]:
    """The statements that the last values of these names come from."""
    leading = []
    for statement in reversed(statements):
        value, targets, _, replaces = statement
        if _feeds(targets, ends):
            leading.append(statement)
            if replaces:
                ends = {n for n in ends if not _feeds(targets, {n})}
            ends = ends | _names(value)
    return leading[::-1]
