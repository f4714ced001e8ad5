"""Imports go down only."""
from __future__ import annotations

import ast
from pathlib import Path

import minigrad

ROOT = Path(minigrad.__file__).parent

#: what each layer may import of the package; a package stands for its files
LAYERS = {
    "repair": set(),
    "errors": {"repair"},
    "registry": {"errors"},
    "values": {"errors", "registry"},
    "ops": {"errors", "registry", "values"},
    "eager": {"errors", "registry", "values", "ops"},
    "static": {"errors", "registry", "values", "ops"},
    "functional": {"errors", "ops", "eager"},
    "check": {"errors", "eager"},
    "tracing": {"errors", "ops", "static"},
    "optim": {"errors", "registry", "ops", "eager", "static"},
    "nn": {"errors", "registry", "values", "ops", "eager", "static"},
    "data": {"errors"},
    "viz": set(),
}

#: looks of one layer at another, by name and on first use, each with its reason
ALLOWED = {
    ("eager/explain.py", "static"): "mg.why dispatches on the kind of value",
    ("static/program.py", "viz"): "a program shows itself as a picture",
    ("eager/tensor.py", "viz"): "a tensor shows itself as a picture",
}


def imports_of(path: Path) -> set[str]:
    """The top-level names of the package that a file imports."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package][: len(package) - node.level + 1]
            target = [*base, *(node.module or "").split(".")] if node.module else base
            names = [target[0]] if target and target[0] else [a.name for a in node.names]
            found.update(names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("minigrad."):
            found.add(node.module.split(".")[1])
    return found


def test_no_layer_imports_one_above_it():
    bad = []
    for layer, below in LAYERS.items():
        files = [ROOT / f"{layer}.py"] if (ROOT / f"{layer}.py").exists() else sorted((ROOT / layer).rglob("*.py"))
        for path in files:
            name = path.relative_to(ROOT).as_posix()
            for other in imports_of(path) - below - {layer}:
                if (name, other) not in ALLOWED and (ROOT / other).exists() | (ROOT / f"{other}.py").exists():
                    bad.append(f"{name} imports {other}")
    assert not bad, "\n".join(bad)
