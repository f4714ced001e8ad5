"""Safety: nothing from a file becomes code, and reading a stranger's program touches nothing else."""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad
from minigrad import nn

LIBRARY = importlib.util.find_spec("safetensors") is not None
PACKAGE = Path(minigrad.__file__).parent
ROOT = PACKAGE.parent

FORBIDDEN = {"eval", "exec", "compile", "__import__", "import_module"}
MODULES = {"pickle", "marshal", "shelve", "ctypes", "socket", "subprocess", "os", "runpy"}

#: (file, what) → why it is safe there; `course` runs the learner's own notebooks and is looked at apart
ALLOWED = {
    ("__init__.py", "import_module"): "modules of the package, from a table in the same file",
    ("eager/record.py", "exec"): "code whose only names from outside are checked ones of slots",
    ("eager/record.py", "compile"): "the same",
    ("eager/backward.py", "os"): "what a fork does with the lock of walks",
    ("errors/__init__.py", "os"): "paths, to find the user's line",
    ("atomic.py", "os"): "a finished file takes the place of the old one",
    (
        "static/__init__.py",
        "import_module",
    ): "modules of the package, from a table in the same file",
    ("compiler/syntax.py", "exec"): "a tree in which all names are those made there",
    ("compiler/syntax.py", "compile"): "that tree",
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
    "`touch pwned`",
    "<img src=x onerror=alert(1)>",
    "]]><script>alert(1)</script>",
    "x\nimport os\nos.remove('keep')",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:9/x",
    "%s%n%x",
    "\u202e\u0000",
    "open",
    "__import__",
    "__builtins__",
    "np",
    "None",
    "lambda: 0",
    "a" * 10_000,
)


def weights(folder: Path) -> list[str]:
    """Files of weights that lie, grow, or hold objects."""

    def npz(name: str, *members: tuple[str, bytes]) -> None:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as whole:
            for member, content in members:
                whole.writestr(member, content)

    def npy(array: np.ndarray, **lies: Any) -> bytes:
        place = io.BytesIO()
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(place, header | lies)
        return place.getvalue() + array.tobytes()

    def tensors(name: str, header: bytes, size: int | None = None, body: bytes = b"") -> None:
        length = struct.pack("<Q", len(header) if size is None else size)
        (folder / name).write_bytes(length + header + body)

    evil = pickle.dumps(Evil())
    np.savez(folder / "objects.npz", a=np.array([Evil()], dtype=object))
    npz("pickle.npz", ("a.npy", evil))
    npz("bomb.npz", ("a.npy", npy(np.zeros(4_000_000))))
    npz("terabytes.npz", ("a.npy", npy(np.ones(3), shape=(10**12,))))
    npz("negative.npz", ("a.npy", npy(np.ones(3), shape=(-3,))))
    npz("upwards.npz", ("../../up.npy", npy(np.ones(3))), ("/tmp/up.txt", b"x"))
    npz("twice.npz", ("a.npy", npy(np.ones(3))), ("a.txt", b"x"))
    npz(
        "code.npz",
        ("a.npy", b"\x93NUMPY\x01\x00\x3e\x00" + b"__import__('os').system('touch pwned')"),
    )
    (folder / "raw.npz").write_bytes(evil)
    if not LIBRARY:
        return sorted(str(p) for p in folder.glob("*.npz"))
    tensors("long.safetensors", b"{}", size=2**62)
    entry = {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}
    tensors("large.safetensors", json.dumps({"a": entry}).encode())
    (folder / "raw.safetensors").write_bytes(evil)
    tensors("deep.safetensors", b"[" * 100_000)
    return sorted(str(p) for p in folder.iterdir())


class Evil:
    """Leaves a file where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder, here = tmp_path_factory.mktemp("weights"), tmp_path_factory.mktemp("here")
    sound = tmp_path_factory.mktemp("sound")
    nn.save({"a": np.ones(3)}, sound / "m.npz")
    if LIBRARY:
        nn.save({"a": np.ones(3)}, sound / "m.safetensors")
    task = {
        "names": HOSTILE,
        "weights": weights(folder),
        "sound": [str(p) for p in sound.iterdir()],
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.hostile_child"],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        cwd=here,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return found | {"folder": str(folder), "left": [p.name for p in here.iterdir()]}


def test_a_hostile_program_is_used_in_every_way_without_a_trace(report):
    """Read, printed, stored, drawn, run, stepped through and compiled."""
    bad = [e for e in report["events"] if not harmless(*e[:2], report["folder"])]
    assert not bad, bad[:5]
    assert report["programs"] >= 150
    assert 20 <= report["refused"] < report["programs"]
    assert not report["left"]


def test_every_bad_file_of_weights_is_refused(report):
    assert len(report["weights refused"]) >= 9
    assert all(report["weights refused"])


def test_what_is_hostile_takes_neither_time_nor_memory(report):
    assert report["slowest"] < 1.0
    assert report["megabytes"] < 300


def harmless(event: str, arguments: str, weights: str) -> bool:
    """The files that were asked for may be read, and those of Python and of the package.

    Names are parsed to syntax trees that nobody runs.  Generated source is parsed, too, and what is compiled and
    run is a tree that was looked through.
    """
    if event == "compile":
        return arguments.endswith("'<unknown>')") or arguments.startswith("(<ast.Module")
    if event == "exec":
        return arguments.startswith("(<code object <module>") and 'file "<minigrad' in arguments
    own = any(str(p) in arguments for p in (PACKAGE, sys.prefix, sys.base_prefix, weights))
    return event == "open" and own and ("'r'" in arguments or "'rb'" in arguments)
