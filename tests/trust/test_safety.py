"""Safety: nothing from a file becomes code, and reading a stranger's program touches nothing else."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import minigrad

PACKAGE = Path(minigrad.__file__).parent
ROOT = PACKAGE.parent

FORBIDDEN = {"eval", "exec", "compile", "__import__", "import_module"}
MODULES = {"pickle", "marshal", "shelve", "ctypes", "socket", "subprocess", "os", "runpy"}

#: (file, what) → why it is safe there; `course` runs the learner's own notebooks and is looked at apart
ALLOWED = {
    ("__init__.py", "import_module"): "modules of the package, from a table in the same file",
    ("eager/specialise.py", "exec"): "code written from checked parameter names of kernels",
    ("eager/specialise.py", "compile"): "the same",
    ("errors.py", "os"): "paths, to find the user's line",
    (
        "static/__init__.py",
        "import_module",
    ): "modules of the package, from a table in the same file",
    (
        "static/codegen/step.py",
        "exec",
    ): "a syntax tree built from checked operators, never from text",
    ("static/codegen/syntax.py", "compile"): "that tree",
    (
        "static/backends/functional.py",
        "exec",
    ): "a syntax tree built from checked operators, never from text",
    ("nn/storage.py", "import_module"): "the library safetensors, by a name written there",
}


def uses(path: Path) -> set[str]:
    """The dangerous names that a file calls or imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            f = node.func
            owner = ast.unparse(f.value) if isinstance(f, ast.Attribute) else ""
            name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
            harmless = owner in ("json", "static", "re", "np", "self")
            if name in FORBIDDEN and not harmless:
                found.add(name)
        elif isinstance(node, ast.Import):
            found.update(a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found & (FORBIDDEN | MODULES)


#: layers that read what strangers write, or run it
LAYERS = ("*.py", "ops/*.py", "eager/*.py", "static/**/*.py", "nn/*.py", "optim/*.py")


def test_code_is_made_of_text_only_in_listed_places():
    bad = []
    for pattern in LAYERS:
        for path in sorted(PACKAGE.glob(pattern)):
            name = path.relative_to(PACKAGE).as_posix()
            bad += [f"{name} uses {u}" for u in sorted(uses(path)) if (name, u) not in ALLOWED]
    assert not bad, "\n".join(bad)


def test_every_listed_place_exists():
    for name, use in ALLOWED:
        assert use in uses(PACKAGE / name), f"{name} does not use {use} any more"


#: names and values that would do something if anything executed them
HOSTILE = (
    "__import__('os').system('touch pwned')",
    "'); import os; os.system('touch pwned'); ('",
    "{x.__class__.__mro__}",
    "${HOME}",
    "$(touch pwned)",
    "<img src=x onerror=alert(1)>",
    "x\nimport os\nos.remove('keep')",
    "../../../../etc/passwd",
    "%s%n%x",
    "a" * 10_000,
)

CHILD = """
import sys, json
import numpy as np
import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError
mg.draw, mg.trace
names = json.loads(sys.stdin.read())

def program(name):
    p = static.Program()
    with static.program_guard(p):
        x = static.data("xin", [2])
        w = static.parameter("wgt", np.ones(2))
        loss = mg.sum(mg.tanh(x * w))
        static.append_backward(loss)
    return p

base = program("x").to_json()
texts = [base.replace("xin", json.dumps(n)[1:-1]) for n in names]
texts += [base.replace("tanh", json.dumps(n)[1:-1]) for n in names]
texts += [base.replace("wgt", json.dumps(n)[1:-1]) for n in names]
def use(text):
    p = static.Program.from_json(text)
    str(p)
    mg.draw(p).text
    static.Executor().run(p, feed={p.global_block().ops[0].input_names[0]: np.ones(2)})
use(base)                                                # everything is imported now
events = []
WATCHED = ("open", "exec", "compile", "import", "socket", "subprocess", "os.", "shutil", "ctypes", "pickle")
sys.addaudithook(lambda e, a: events.append((e, str(a)[:200])) if on and e.startswith(WATCHED) else None)
on = True
refused = 0
for text in texts:
    try:
        use(text)
    except MinigradError:
        refused += 1
on = False
print(json.dumps({"events": events, "refused": refused, "texts": len(texts)}))
"""


def test_a_hostile_program_is_read_printed_drawn_and_run_without_a_trace(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    bad = [e for e in report["events"] if not harmless(*e)]
    assert not bad, bad[:5]
    assert report["refused"] >= len(HOSTILE)
    assert not list(tmp_path.iterdir())


def harmless(event: str, arguments: str) -> bool:
    """Files of the package and of Python may be read; text may be parsed to a tree that nobody runs."""
    own = str(PACKAGE) in arguments or sys.prefix in arguments or sys.base_prefix in arguments
    parsed = event == "compile" and arguments.endswith("'<unknown>')")
    return parsed or (event == "open" and own and "'r'" in arguments)
