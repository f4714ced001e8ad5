"""A learner's notebook in a process, a folder and a copy of the package of its own.

``run_all`` is for the one who checks; ``python -m minigrad.course.isolated FOLDER`` is the other
side: it executes the one notebook of a folder there. All processes of a notebook end with it.

This keeps notebooks from disturbing each other by accident or by simple tricks. It is no wall:
what they execute has the rights of whoever starts it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import execute
from .folder import Course
from .notebook import Notebook

#: Limits of one notebook: seconds, characters of output, processes, bytes of memory of each.
SECONDS, OUTPUT, PROCESSES, MEMORY = 300.0, 10_000_000, 64, 8 << 30
_RESULT, _LONGEST_RESULT = "result.json", 1_000_000
_PACKAGE = Path(__file__).resolve().parents[1]
_BECOME_REAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux


@dataclass(frozen=True)
class Outcome:
    """What a notebook's checks said, by exercise, and what stopped it, if anything did."""

    verdicts: dict[str, str]
    failure: str | None


class Snapshot:
    """Files as they were before anything was executed."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.contents = {path: path.read_bytes() for path in paths}

    def restore(self) -> list[Path]:
        """Put back what was changed since; the files that were."""
        changed = [path for path, content in self.contents.items() if _content(path) != content]
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(self.contents[path])
        return changed


def _content(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def run_all(
    notebooks: Sequence[Notebook],
    course: Course,
    *,
    handed_in: Sequence[Path] = (),
    done: Callable[[int], None] = lambda _: None,
) -> tuple[list[Outcome], list[Path]]:
    """Execute notebooks, each alone; the outcomes, and the files that they changed and we put back.

    Watched are the package, the steps of the course and what was handed in.
    """
    package = {path: Path("minigrad") / path.relative_to(_PACKAGE) for path in _files(_PACKAGE)}
    steps = {path: Path("steps") / path.name for path in course.steps.glob("*.py")}
    snapshot = Snapshot([*package, *steps, *handed_in])
    copy = {place: snapshot.contents[path] for path, place in (package | steps).items()}
    family = _Family()

    def one(index: int) -> Outcome:
        outcome = _run(notebooks[index], copy, family)
        done(index)
        return outcome

    execute.warm_up()
    with family, ThreadPoolExecutor(execute.KERNELS) as pool:
        outcomes = list(pool.map(one, range(len(notebooks))))
    return outcomes, snapshot.restore()


def _files(package: Path) -> Iterator[Path]:
    for path in sorted(package.rglob("*")):
        parts = path.relative_to(package).parts
        if "__pycache__" not in parts and "shipped" not in parts and path.is_file():
            yield path


def _run(notebook: Notebook, copy: dict[Path, bytes], family: _Family) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="minigrad-"))
    try:
        for place, content in copy.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(content)
        (folder / "tmp").mkdir()
        (folder / "notebook.json").write_text(json.dumps(notebook), encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.getenv("PYTHONPATH")])),
            "TMPDIR": str(folder / "tmp"),
        }
        command = [sys.executable, "-m", f"{__package__}.isolated", str(folder)]
        stopped = family.run(command, folder, environment)
        return _result(folder / _RESULT, stopped)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _result(path: Path, stopped: str | None) -> Outcome:
    """What the other side wrote; it may be anything, for a notebook could write it, too."""
    try:
        with open(os.open(path, os.O_RDONLY | _NOT_A_LINK), encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("no file")
            said = json.loads(file.read(_LONGEST_RESULT))
        verdicts, failure = said["verdicts"], said["failure"]
        if not all(isinstance(each, str) for pair in verdicts.items() for each in pair):
            raise ValueError("no text")
        return Outcome(dict(verdicts), stopped or (failure if failure is None else str(failure)))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Outcome({}, stopped or "its process ended without a result")


_NOT_A_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass
class _Family:
    """The processes that we started, and those that they left to us."""

    ours: set[int] = field(default_factory=set)
    older: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> None:
        become_reaper(True)
        self.older = {pid for pid, parent in _parents().items() if parent == os.getpid()}

    def __exit__(self, *_: object) -> None:
        self._end_orphans()
        become_reaper(False)

    def run(self, command: list[str], folder: Path, environment: dict[str, str]) -> str | None:
        """Run a command to its end, or to a limit: then the limit, in words."""
        with self.lock:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.ours.add(process.pid)
        stopped, end = None, time.monotonic() + SECONDS
        try:
            while process.poll() is None and stopped is None:
                if time.monotonic() > end:
                    stopped = f"stopped after {SECONDS:g} seconds"
                elif (count := len(_descendants(process.pid))) > PROCESSES:
                    stopped = f"stopped with {count} processes; {PROCESSES} are allowed"
                else:
                    time.sleep(0.1)
        finally:
            _end(process.pid)
            process.wait()
            with self.lock:
                self.ours.discard(process.pid)
            self._end_orphans()
        return stopped

    def _end_orphans(self) -> None:
        """End what notebooks left behind: it became a child of ours when its own parent ended."""
        with self.lock:
            for pid, parent in _parents().items():
                if parent == os.getpid() and pid not in self.ours | self.older:
                    _end(pid)
                    with contextlib.suppress(OSError):
                        os.waitpid(pid, 0)


def become_reaper(on: bool) -> None:
    """Whether orphans among our descendants become our children, where the system can do that."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_BECOME_REAPER, int(on), 0, 0, 0)


def _end(root: int) -> None:
    """Kill a process and all of its descendants: first none may start another, then they go."""
    known: set[int] = set()
    while more := {root, *_descendants(root)} - known:
        for pid in more:
            _send(pid, signal.SIGSTOP)
        known |= more
    for pid in known:
        _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found, todo = set(), [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            found.add(pid)
            todo.append(pid)
    return found


def _parents() -> dict[int, int]:
    """Every running process and its parent, where the system tells (Linux)."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.parent.name)] = int(parent)
    return parents


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _execute(folder: Path) -> None:
    """The other side: execute the notebook of a folder, and write what its checks said."""
    become_reaper(True)  # so that those who look for our descendants find all of them
    _limit_memory()
    notebook: dict[str, Any] = json.loads((folder / "notebook.json").read_text(encoding="utf-8"))
    [ran] = execute.run_all([notebook], folder, go_on=True, most_output=OUTPUT)
    failure = str(ran.failure)[:1000] if ran.failure else None
    said = {"verdicts": execute.verdicts(ran.notebook), "failure": failure}
    (folder / _RESULT).write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    _execute(Path(sys.argv[1]))
