"""Import modules of the package with an altered source, in a process of their own."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

Alteration = Callable[[str], str | ast.Module]


class _Loader(SourceFileLoader):
    """Loads a module from its altered source; nothing is written to or read from a cache."""

    alteration: Alteration

    def get_code(self, fullname: str) -> CodeType:
        altered = self.alteration(Path(self.path).read_text(encoding="utf-8"))
        return compile(altered, self.path, "exec")


class Altered(MetaPathFinder):
    """Put on ``sys.meta_path`` before the package is imported."""

    def __init__(self, module: str, alteration: Alteration) -> None:
        self.module, self.alteration = module, alteration

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = _Loader(fullname, spec.origin)
        loader.alteration = self.alteration
        spec.loader = loader
        return spec


def alter(module: str, alteration: Alteration) -> None:
    """From now on ``module`` is imported from its altered source; it must not be loaded yet."""
    assert module not in sys.modules, f"{module} is loaded already"
    sys.meta_path.insert(0, Altered(module, alteration))


def source_of(module: str) -> str:
    """The text of a module of the package, without importing it."""
    root = find_spec("minigrad")
    assert root is not None
    assert root.submodule_search_locations
    path = Path(root.submodule_search_locations[0]).joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")
