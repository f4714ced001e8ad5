"""Imports go down only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import minigrad
import minigrad.primitives

ROOT = Path(minigrad.__file__).parent

DESIGN = (ROOT.parent / "docs" / "design.md").read_text(encoding="utf-8")

#: looks of one layer at another, by name and on first use, each with its reason
ALLOWED = {
    ("eager/grad_fn.py", "explain"): "pictures ask a node what the last backward did",
    ("compiler/step.py", "backends"): "static.compile(..., backend=...) hands over",
}


#: imports inside functions, each with its reason; there are no others
LAZY = {
    ("eager.grad_fn", "explain.rerun"): "pictures ask a node what the last backward did",
    ("explain.why", "explain.programs"): "Tensors are explained without the static engine",
    ("explain.why", "explain.pytorch"): "an object of PyTorch is explained",
    ("optim.optimizers", "static.backward.minimize"): "eager training needs no static engine",
    ("compiler.step", "backends.lowering"): "another backend than NumPy is asked for by name",
    ("backends.lowering", "backends.jax_step"): "JAX is an extra",
    ("backends.lowering", "backends.onnx_model"): "ONNX is an extra",
    ("static.program.operator", "static.text.syntax"): "an Operator is shown as its text",
    ("static.program.program", "static.text.syntax"): "a Program is shown as its text",
    ("static.program.program", "static.text.json"): "its methods call functions that make Programs",
    ("static.program.program", "static.program.transform"): "the same",
    ("static.program.program", "viz"): "pictures are loaded when one is drawn",
    ("static.text.syntax", "static.program.verify"): "a text that was read is verified",
    ("viz.adapters.watching", "viz.picture"): "what was watched is drawn",
    ("viz.picture", "viz.adapters.sources"): "the adapters draw with pictures",
}


#: layers on one line that must not know each other
ALONE = {"eager", "static", "viz"}


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


def module_of(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return name.removesuffix("__init__").removesuffix(".")


MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


def modules_of(path: Path) -> set[tuple[str, bool]]:
    """The modules of the package that a file imports, and whether a function does it."""
    package = path.relative_to(ROOT).parent.parts
    found = set()

    def look(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.ImportFrom) and child.level:
                base = ".".join(package[: len(package) - child.level + 1])
                source = ".".join(filter(None, (base, child.module)))
                for alias in child.names:
                    name = ".".join(filter(None, (source, alias.name)))
                    found.add((name if name in MODULES else source, inside))
            look(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    look(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


def layers() -> list[list[str]]:
    """The drawing in docs/design.md, from the lowest line up."""
    drawing = re.search(r"Imports go down only.*?```\n(.*?)```", DESIGN, re.S)[1]
    return [re.split(r"\s{2,}", line)[0].split(", ") for line in reversed(drawing.splitlines())]


def files_of(layer: str) -> list[Path]:
    """A layer is a file, or a folder with everything in it."""
    file = ROOT / f"{layer}.py"
    return [file] if file.exists() else sorted((ROOT / layer).rglob("*.py"))


def test_no_file_imports_a_layer_above_it():
    bad, below = [], set()
    parts = {name for line in layers() for name in line}
    for line in layers():
        for layer in line:
            beside = set(line) if layer not in ALONE else {layer}
            for path in files_of(layer):
                name = path.relative_to(ROOT).as_posix()
                for other in (imports_of(path) & parts) - below - beside:
                    if (name, other) not in ALLOWED:
                        bad.append(f"{name} imports {other}: move it down, or the file up")
        below |= set(line)
    assert not bad, "\n".join(bad)


def test_imports_inside_functions_are_listed_with_their_reasons():
    inside = {(name, to) for name, path in MODULES.items() for to, lazy in modules_of(path) if lazy}
    unlisted = sorted(f"{name} imports {to}" for name, to in inside - LAZY.keys())
    assert not unlisted, f"import at the top, or give LAZY a reason: {unlisted}"


def test_files_import_each_other_in_no_circle():
    waiting = {
        name: {to for to, _ in modules_of(path) if to and to != name and (name, to) not in LAZY}
        for name, path in MODULES.items()
    }
    while free := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert not waiting, f"in a circle, or waiting for one: {sorted(waiting)}"


def test_the_drawing_names_every_part_of_the_package_once():
    drawn = [name for line in layers() for name in line]
    there = {
        path.stem
        for path in ROOT.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(drawn) == sorted(there - {"__init__"})


def test_every_file_that_design_names_exists():
    named = [
        n
        for row in re.findall(r"^\| (`.*?) \|", DESIGN, re.M)
        for n in re.findall(r"`([\w/]+(?:\.py|/))`", row)
    ]
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_design_names_every_folder_of_the_package():
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.*")
        if "__pycache__" not in path.parts
    }
    assert [name for name in sorted(folders - {"."}) if f"`{name}/" not in DESIGN] == []


def test_design_names_every_file_of_the_engines_and_the_course():
    parts = "eager", "static", "compiler", "course"
    files = [path for part in parts for path in (ROOT / part).glob("*.py")]
    names = [path.relative_to(ROOT).as_posix() for path in files if path.name != "__init__.py"]
    unnamed = sorted(name for name in names if f"`{name}`" not in DESIGN)
    assert not unnamed, f"give {', '.join(unnamed)} a row in docs/design.md"


def test_the_map_of_the_pictures_names_every_file_of_them():
    described = set(re.findall(r"\w+", minigrad.viz.__doc__))
    assert {path.stem for path in (ROOT / "viz").glob("*.py")} - {"__init__"} <= described


STATIC_ALONE = """
    from minigrad import ops
    from minigrad.static import Executor, Program, append_backward, data, parameter, program_guard

    program = Program()
    with program_guard(program):
        x, w = data("x", [2, 3]), parameter("w", np.ones((3, 1)))
        loss = ops.mean(ops.square(ops.concat([x @ w, ops.tanh(x) @ w])))
        append_backward(loss)
    x = np.arange(6.0).reshape(2, 3)
    loss, slope = Executor().run(program, {"x": x}, [loss, "w@GRAD"])
    rows = np.concatenate([x, np.tanh(x)])
    assert np.allclose(loss, np.mean(rows.sum(axis=1) ** 2))
    assert np.allclose(slope[:, 0], 2 * rows.sum(axis=1) @ rows / 4)
    assert np.allclose(ops.exp([0.0]), 1.0)
"""
EAGER_ALONE = """
    import minigrad as mg

    x, w = np.arange(6.0).reshape(2, 3), mg.tensor(np.ones((3, 1)), requires_grad=True)
    optimizer, losses = mg.optim.SGD([w], lr=0.01), []
    for _ in range(3):
        loss = mg.mean(mg.square(mg.concat([mg.tensor(x) @ w, mg.tanh(x) @ w])))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
    (slope,) = mg.grad(mg.sum(w * w * w), w, create_graph=True)
    assert np.allclose(mg.grad(slope.sum(), w)[0].numpy(), 6 * w.detach().numpy())
"""


@pytest.mark.parametrize(
    ("absent", "code"),
    [
        (("eager", "optim", "nn"), STATIC_ALONE),
        (("static", "compiler", "backends", "nets", "tracing"), EAGER_ALONE),
    ],
    ids=["static", "eager"],
)
def test_an_engine_runs_where_the_other_cannot_be_imported(absent, code):
    # the package without the line that puts both engines into its namespace
    bare = "import types; sys.modules['minigrad'] = package = types.ModuleType('minigrad')"
    start = ["import sys", "import numpy as np"]
    if "eager" in absent:
        start += [bare, f"package.__path__ = [{str(ROOT)!r}]"]
    start += [f"sys.modules['minigrad.{name}'] = None" for name in absent]
    text = "\n".join([*start, dedent(code)])
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_variable_makes_no_fast_function_for_tensors():
    from minigrad.primitives.dispatch import FIRST_CALL

    @minigrad.primitive
    def untouched(x):
        return x * 2

    try:
        with minigrad.static.program_guard(minigrad.static.Program()):
            untouched(minigrad.static.data("x", [3]))
            assert untouched.__code__ is FIRST_CALL
        untouched(minigrad.tensor(1.0))
        assert untouched.__code__ is not FIRST_CALL
    finally:
        del minigrad.primitives.REGISTRY["untouched"]
