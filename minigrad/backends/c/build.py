"""C text becomes a library that Python calls: compiled once, kept in the user's cache folder.

A file is named by a hash of everything that decides what it does (text, flags, compiler, processor)
and by a hash of itself; so a damaged one is never loaded, and two processes may write the same one.
"""

import atexit
import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...errors import MinigradError, wrong
from .expressions import DTYPES

FLAGS = [
    "-std=c99", "-O3", "-march=native", "-shared", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math",
    "-Werror=implicit-function-declaration", "-fno-tree-slp-vectorize",  # in which GCC 12 adds up wrong elements, too
]  # fmt: skip
#: with ``exact`` no product and sum become one; without, sums may be added up in another order
EXACT = {
    True: ["-ffp-contract=off"],
    False: ["-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros"],
}
#: how a text declares a loop of NumPy's: its name, the function, the type
LOOP = re.compile(r"^loop (numpy_(\w+?)_(double|float|u?int\d+_t)) =", re.M)
PATIENCE = 300.0  #: seconds for one text


def load(text: str, exact: bool) -> Any:
    """The function ``step`` of a text.  Errors: `ProgramError` if there is no compiler, or it fails."""
    cc = compiler()
    command = [*cc, *FLAGS, *EXACT[exact]]
    about = os.stat(cc[0])
    facts = [text, *command, str(about.st_mtime_ns), str(about.st_size), processor()]
    name = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]
    for folder in folders():
        for path in sorted(folder.glob(f"{name}-*.so")):
            if path.stem == f"{name}-{_digest(path)}":
                return connected(path, text)
        with contextlib.suppress(OSError):
            return connected(_compiled(command, text, folder, name), text)
    raise wrong(
        "there is no folder in which compiled C could be kept",
        "set XDG_CACHE_HOME or TMPDIR to a folder with room that may be written to",
    )


def compiler() -> list[str]:
    """The command of the C compiler: ``CC``, or the system's.  Errors: `ProgramError` with what to install."""
    asked = shlex.split(os.environ.get("CC", ""))
    for command in [asked] if asked else [["cc"], ["gcc"], ["clang"]]:
        if path := shutil.which(command[0]):
            return [path, *command[1:]]
    what = f'backend="c" needs a C compiler, and {asked[0] if asked else "cc"} is not there'
    raise wrong(what, "apt install gcc, or on a Mac: xcode-select --install")


@cache
def processor() -> str:
    """What this machine's processor can do: code for another one would not run."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.machine()} {platform.processor()}"


def folders() -> list[Path]:
    """Where compiled files may lie: the user's cache, or a folder of this process."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = []
    for own in (False, True):
        with contextlib.suppress(OSError, RuntimeError):
            folder = _own_folder() if own else Path(root) / "minigrad" / "c"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = folder.stat()
            mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if mine and not about.st_mode & 0o022 and os.access(folder, os.W_OK):
                found.append(folder)
    return found


@cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="minigrad-c-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _compiled(command: list[str], text: str, folder: Path, name: str) -> Path:
    """Compile into a folder of its own beside, then move."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, library = Path(work, "step.c"), Path(work, "step.so")
        source.write_text(text, encoding="ascii")
        run([*command, "-o", str(library), str(source), "-lm"])
        if not library.exists():
            raise _failed(command, "it made no file")
        target = folder / f"{name}-{_digest(library)}.so"
        os.replace(library, target)
    return target


def run(command: list[str]) -> None:
    """Run the compiler.  Errors: `ProgramError` if it fails or hangs, OSError if the folder is full."""
    how: Any = {"capture_output": True, "text": True, "errors": "replace", "timeout": PATIENCE}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, **how)
    except subprocess.TimeoutExpired:
        raise _failed(command, f"it was not done after {PATIENCE:.0f} seconds") from None
    except OSError as error:
        raise _failed(command, str(error)) from None
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(done.stderr)
        lines = done.stderr.splitlines() or [f"it ended with {done.returncode}"]
        raise _failed(command, min(lines, key=lambda line: "error" not in line.lower())[:200])


def _failed(command: list[str], why: str) -> MinigradError:
    return wrong(
        f"the C compiler {command[0]} failed: {why}",
        "set CC to a compiler of C99 (gcc, clang), or compile without backend",
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def connected(path: Path, text: str) -> Any:
    """The function of a library, with the loops of NumPy's that its text asks for."""
    library = ctypes.CDLL(str(path))
    for name, function, ctype in LOOP.findall(text):
        (ctypes.c_void_p * 2).in_dll(library, name)[:] = numpy_loop(function, ctype)
    if "int one_thread" in text:
        ctypes.c_int.in_dll(library, "one_thread").value = one_thread()
    function = library.step
    function.restype = ctypes.c_int  # given pointers it needs no argtypes, and is faster
    return function


def one_thread() -> bool:
    """Whether NumPy's BLAS has one thread: by the variables it reads, or the processors there are."""
    asked = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    return (asked or str(os.cpu_count())) == "1"


@cache
def numpy_loop(name: str, ctype: str) -> list[Any]:
    """The function that NumPy runs on the elements of an array, and what it is called with beside them.

    A ufunc has a table of them, one for each row of its ``types``, at a place that NumPy's headers
    promise; where something else is there, there is none.
    """
    ufunc, code = getattr(np, name), DTYPES[ctype].char
    types, wanted = ufunc.types, f"{code * ufunc.nin}->{code}"
    if sys.implementation.name == "cpython" and wanted in types:
        header = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
        promised = (header.nin, header.nout, header.rows) == (ufunc.nin, ufunc.nout, len(types))
        if promised and header.loops and header.data:
            table, row = ctypes.c_void_p * len(types), types.index(wanted)
            return [table.from_address(t)[row] for t in (header.loops, header.data)]
    return [None, None]


class _Ufunc(ctypes.Structure):
    """The beginning of ``PyUFuncObject`` in numpy/ufuncobject.h."""

    _fields_: ClassVar = [
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        *((name, ctypes.c_void_p) for name in ("loops", "data")),
        ("rows", ctypes.c_int),
    ]
