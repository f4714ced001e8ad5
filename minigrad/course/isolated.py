"""A learner's notebook in a process, a folder and a copy of the package of its own.

``run_all`` is for the one who checks; ``python -m minigrad.course.isolated FOLDER SECONDS`` is the
other side: it executes the one notebook of a folder there. All processes of a notebook end with it.

This keeps notebooks from disturbing each other by accident or by simple tricks. It is no wall:
what they execute has the rights of whoever starts it.
"""

import asyncio
import compileall
import contextlib
import ctypes
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any, NamedTuple

from . import execute
from .folder import Course
from .notebook import Notebook

#: Limits of one notebook: seconds, processes, bytes of memory of each.
SECONDS, PROCESSES, MEMORY = 300.0, 64, 8 << 30
# The other side stops its notebook in time to say what passed; we wait some seconds more for that.
_RESULT, _LONGEST_RESULT, _GRACE = "result.json", 1_000_000, 10.0
_PACKAGE = Path(__file__).resolve().parents[1]


class Outcome(NamedTuple):
    """What a notebook's checks said, by exercise, and what stopped it, if anything did."""

    verdicts: dict[str, str]
    failure: str | None


def run_all(
    notebooks: Sequence[Notebook], course: Course, handed_in: Sequence[Path]
) -> tuple[list[Outcome], list[str]]:
    """Execute notebooks, each alone; the outcomes, and notes about files they changed and we put back.

    Watched are the package, the steps of the course and what was handed in.
    """
    copy = _copy(course)
    watched = _watched(course)
    before = {path: _content(path) for path in map(Path.resolve, [*watched, *handed_in])}
    outcomes = [*execute.side_by_side(lambda notebook: _run(notebook, copy), notebooks)]
    notes = []
    for path in sorted(_watched(course) - watched):
        if path.suffix == ".pyc":  # Python makes it anew
            with contextlib.suppress(OSError):
                _remove(path)
        else:
            notes.append(f"{path} appeared while the notebooks ran; remove it, unless it is yours")
    for path, content in before.items():
        if content is None or _content(path) == content:  # None: it was no file before
            continue
        said = "was changed while the notebooks ran, and is put back"
        try:
            for each in (*reversed(path.parents), path):
                if each == path or not each.is_dir():
                    _remove(each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            said = f"was changed while the notebooks ran, and cannot be put back ({error.strerror})"
        notes.append(f"{path} {said}")
    return outcomes, notes


def _watched(course: Course) -> set[Path]:
    """The files of the package, compiled ones and those that it ships among them, and the steps."""
    every = [*_PACKAGE.rglob("*"), *course.steps.rglob("*")]
    return {path for path in every if path.is_symlink() or not path.is_dir()}


def _remove(path: Path) -> None:
    """Remove what is there, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sources(course: Course) -> dict[Path, Path]:
    """The files of this package and the steps of a course → their places in a folder of both."""
    places = {}
    for path in sorted(_PACKAGE.rglob("*")):
        place = path.relative_to(_PACKAGE.parent)
        if path.is_file() and not {"__pycache__", "shipped"} & {*place.parts}:
            places[path] = place
    for path in sorted(course.steps.glob("*.py")):
        places[path] = Path("steps", path.name)
    return places


def _copy(course: Course) -> dict[Path, bytes]:
    """The contents of the package and the steps by their places, compiled once for all notebooks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, place in sources(course).items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / place)
        compileall.compile_dir(name, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder): path.read_bytes() for path in files}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


async def _run(notebook: Notebook, copy: dict[Path, bytes]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="minigrad-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for place, content in copy.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(content)
        (folder / "tmp").mkdir()
        (folder / "notebook.json").write_text(json.dumps(notebook), encoding="utf-8")
        return _result(folder / _RESULT, await _limited(folder))


def _result(path: Path, stopped: str | None) -> Outcome:
    """What the other side wrote; it may be anything, for a notebook could write it, too."""
    try:
        with open(os.open(path, os.O_RDONLY | _NOT_A_LINK), encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("no file")
            said = json.loads(file.read(_LONGEST_RESULT))
        verdicts, failure = said["verdicts"], said["failure"]
        if not all(isinstance(each, str) for each in verdicts.values()):
            raise ValueError("no text")
        return Outcome(verdicts, stopped or (failure and str(failure)))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Outcome({}, stopped or "its process ended without a result")


_CHILD_SUBREAPER = 36  # of <sys/prctl.h>
_NOT_A_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


async def _limited(folder: Path) -> str | None:
    """Run the other side in a folder, to its end, or to a limit: then the limit, in words."""
    path, temporary = execute.in_front("PYTHONPATH", folder), str(folder / "tmp")
    end, nothing = time.monotonic() + SECONDS + _GRACE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        f"-m{__package__}.isolated",
        str(folder),
        str(SECONDS),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": temporary},
        start_new_session=True,
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
    )
    try:
        while process.returncode is None:
            if time.monotonic() > end:
                return f"stopped after {SECONDS:g} seconds"
            if (count := len(_family(process.pid, temporary))) > PROCESSES:
                return f"stopped with {count} processes; {PROCESSES} are allowed"
            await asyncio.sleep(0.3)
        code = process.returncode
        return f"its examiner ended before its time (code {code})" if code else None
    finally:
        _end(process.pid, temporary)
        await process.wait()


def _family(examiner: int, temporary: str) -> set[Any]:
    """The processes of a notebook: they descend from its examiner, or have its folder as TMPDIR."""
    import psutil  # type: ignore[import-untyped]  # ipykernel brings it

    every = psutil.process_iter(["environ"]) if temporary else ()
    family = {each for each in every if (each.info["environ"] or {}).get("TMPDIR") == temporary}
    with contextlib.suppress(psutil.Error):
        family.update(psutil.Process(examiner).children(recursive=True))
    return family


def _end(examiner: int, temporary: str = "") -> None:
    """Kill the processes of a notebook: first none may start another, then they go."""
    known: set[Any] = set()
    while more := _family(examiner, temporary) - known:
        known |= more
        for process in more:
            with contextlib.suppress(Exception):
                process.suspend()  # unless it has ended, or may not be touched
    for process in known:
        with contextlib.suppress(Exception):
            process.kill()


def _execute(folder: Path, seconds: float) -> None:
    """The other side: execute the notebook of a folder, and write what its checks said."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        # on Linux, processes whose parent has ended become children of this one
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    execute.SECONDS = seconds
    given = json.loads((folder / "notebook.json").read_text(encoding="utf-8"))
    ran = asyncio.run(execute.run(given, folder, go_on=True))
    failure = ran.failure and str(ran.failure)[:1000]
    said = {"verdicts": execute.verdicts(ran.notebook), "failure": failure}
    (folder / _RESULT).write_text(json.dumps(said), encoding="utf-8")
    _end(os.getpid())


if __name__ == "__main__":
    _execute(Path(sys.argv[1]), float(sys.argv[2]))
