"""The learner's engine: what passed its check, kept in one file, and put to work in later steps."""

import ast
import contextlib
import inspect
import linecache
import os
import re
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..atomic import replacing
from .growth import definitions
from .solution import Namespace, find_solution

FILE = "my_engine.py"
#: Set where notebooks run for somebody else: they neither write nor use anybody's engine.
OFF = "MINIGRAD_ENGINE_OFF"
_TITLE = "# Your engine: the parts that passed their checks.  use_mine() puts them to work.\n"


def is_cell(filename: str) -> bool:
    """Whether code of this file stands in a cell of a notebook."""
    return "ipykernel" in filename or filename.startswith("<ipython")


def is_learners(code: CodeType) -> bool:
    """Whether a learner runs this code in a notebook of their own."""
    return OFF not in os.environ and is_cell(code.co_filename)


def keep(id: str, code: CodeType) -> None:
    """Note what the cell that this code belongs to defines, as the part ``id`` of the engine."""
    source = "".join(linecache.getlines(code.co_filename))
    definitions = [ast.get_source_segment(source, each) or "" for each in _definitions(source)]
    parts = _parts() | {id: "\n\n\n".join(definitions) + "\n"}
    order = sorted(parts, key=lambda id: (int(id[:-1]), id))
    text = "\n\n".join(f"# %% {each}\n{parts[each]}" for each in order)
    with replacing(Path(FILE)) as file:
        file.write(f"{_TITLE}\n{text}".encode())


def use_mine(module: ModuleType | None = None) -> None:
    """Replace the functions of a module (default: of this notebook) by the learner's own.

    Only where the course's function is still the one that was asked for: one that has grown since
    stays as it is.  One line says what was replaced.
    """
    namespace = sys._getframe(1).f_globals if module is None else vars(module)
    replaced = []
    for id, source in ({} if OFF in os.environ else _parts()).items():
        cell = find_solution(id)
        asked = [each.code for each in definitions(cell.source if cell else "").values()]
        own = [name for name in definitions(source) if _code(namespace.get(name)) in asked]
        if own:
            try:
                names = _Part(namespace, compile(source, f"{FILE}, {id}", "exec"))
            except Exception as error:  # it uses a value of its notebook
                print(f"{id} stays ours: {error}")
                continue
            namespace.update({name: names[name] for name in own})
        replaced += [f"{name} ({id})" for name in own]
    print(f"yours: {', '.join(replaced)}" if replaced else "the engine here is ours so far")


class _Part(Namespace):
    """What a part defines, helpers too; any other name is that of the notebook."""

    # While the part runs it holds the notebook's names: a class body looks them up without `__missing__`.
    def __init__(self, notebook: Namespace, code: CodeType) -> None:
        super().__init__(notebook)
        self.notebook = notebook
        exec(code, self)
        for name in [name for name in notebook if self[name] is notebook[name]]:
            del self[name]

    def __missing__(self, name: str) -> Any:
        return self.notebook[name]


def _definitions(source: str) -> Iterator[ast.stmt]:
    """What a source defines at its top: functions, and what they may use: imports, literals, values."""
    source = re.sub(r"(?m)^[%!].*$", "", source)
    used = _used(symtable.symtable(source, FILE, "exec"))
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Assign):
            with contextlib.suppress(ValueError):
                if not used & {*map(ast.unparse, node.targets)}:
                    ast.literal_eval(node.value)
                yield node


def _used(table: symtable.SymbolTable) -> set[str]:
    """The names that functions look up outside of themselves."""
    inner = table.get_children()
    own = {each.get_name() for child in inner for each in child.get_symbols() if each.is_global()}
    return own.union(*map(_used, inner))


def _code(thing: object) -> str:
    """What a function says, without its docstring; nothing for anything else, or without a source."""
    if not isinstance(thing, FunctionType):
        return ""
    try:
        return "".join(each.code for each in definitions(inspect.getsource(thing)).values())
    except (OSError, SyntaxError):
        return ""


def _parts() -> Namespace:
    """What the file holds, by exercise."""
    path = Path(FILE)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.findall(r"^# %% (\d+[a-z])\n(.*?)(?=^# %% |\Z)", text, re.M | re.S)
    return {id: source.strip() + "\n" for id, source in parts}
