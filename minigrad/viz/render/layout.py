"""Where things stand: Graphviz in a child process, under a time limit.

Two engines are tried: the libraries that the ``pygraphviz`` wheel carries, in a worker that stays
alive (15 to 40 ms for a picture), and the ``dot`` program. With neither there is no layout and the
caller draws in text. No shell, no file name from a user.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

ADVICE = (
    "No layout engine found: `pip install pygraphviz`, or install Graphviz (the `dot` program), "
    "for a drawn picture."
)
TIME_LIMIT = 10.0  # seconds for one picture
SIZE_LIMIT = 2_000_000  # characters of DOT
#: in the order of preference; () switches layout off
ENGINES: tuple[str, ...] = ("pygraphviz", "dot")
SMALL_PNG = "png:cairo:gd"  # 256 colours: a third of the bytes
FORMATS = ("svg", "png", "pdf", "plain", SMALL_PNG)


def layout(source: str, form: str = "svg", limit: float | None = None) -> bytes | None:
    """The picture of a DOT source as bytes, or None when no engine could make it in time.

    Raises `ValueError` for a format that is not one of `FORMATS`.
    """
    if form not in FORMATS:
        raise ValueError(f"unknown picture format {form!r}; known: {', '.join(FORMATS)}")
    if len(source) > SIZE_LIMIT:
        return None
    for engine in ENGINES:
        made = _RUN[engine](source, form, TIME_LIMIT if limit is None else limit)
        if made is not None:
            return made
    return None


def available() -> bool:
    """Is there a layout engine on this machine?"""
    return any(_FOUND[engine]() for engine in ENGINES)


class _Worker:
    """The child process with the Graphviz libraries: started on first use, killed when it takes too
    long.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0
        self.lock = threading.Lock()

    def ask(self, source: str, form: str, limit: float) -> bytes | None:
        with self.lock:
            process = self._alive()
            timer = threading.Timer(limit, process.kill)
            timer.start()
            try:
                return _exchange(process, source.encode(), form)
            except (OSError, ValueError):  # it died or was killed: the next picture starts another
                self.close()
                return None
            finally:
                timer.cancel()

    def _alive(self) -> subprocess.Popen[bytes]:
        mine = self.owner == os.getpid()  # a forked child must not share its parent's pipes
        if self.process is None or not mine or self.process.poll() is not None:
            if mine:
                self.close()
            self.process, self.owner = _start(), os.getpid()
        return self.process

    def close(self) -> None:
        """End the child process, if this process started one."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # unsent bytes to a dead process
                pass


def _start() -> subprocess.Popen[bytes]:
    worker = Path(__file__).with_name("layout_worker.py")
    # -P: the folder of the worker must not shadow modules of the standard library
    return subprocess.Popen(
        [sys.executable, "-P", str(worker)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )


def _exchange(process: subprocess.Popen[bytes], source: bytes, form: str) -> bytes | None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(
        json.dumps({"format": form, "bytes": len(source)}).encode() + b"\n" + source
    )
    process.stdin.flush()
    # an empty line, from a dead worker, is a ValueError
    reply = json.loads(process.stdout.readline())
    made = process.stdout.read(reply["bytes"])
    return made if not reply["problem"] else None


def _by_worker(source: str, form: str, limit: float) -> bytes | None:
    return _WORKER.ask(source, form, limit) if _has_pygraphviz() else None


def _by_program(source: str, form: str, limit: float) -> bytes | None:
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"-T{form}"],
            input=source.encode(),
            capture_output=True,
            timeout=limit,
            env=_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@functools.cache
def _has_pygraphviz() -> bool:
    return bool(sys.executable) and importlib.util.find_spec("pygraphviz") is not None


@functools.cache
def _environment() -> dict[str, str]:
    """The child's environment: the fonts that matplotlib carries, so that a picture has the same
    bytes everywhere.
    """
    found = importlib.util.find_spec("matplotlib")
    if (
        sys.platform != "linux"
        or "FONTCONFIG_FILE" in os.environ
        or found is None
        or found.origin is None
    ):
        return dict(os.environ)
    fonts = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf"
    return {**os.environ, "FONTCONFIG_FILE": str(_font_settings(fonts))}


def _font_settings(fonts: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="minigrad-fonts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = folder / "fonts.conf"
    settings.write_text(
        f'<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">'
        f"<fontconfig><dir>{fonts}</dir><cachedir>{folder}</cachedir></fontconfig>",
        encoding="utf-8",
    )
    return settings


_WORKER = _Worker()
atexit.register(_WORKER.close)
_RUN: dict[str, Callable[[str, str, float], bytes | None]] = {
    "pygraphviz": _by_worker,
    "dot": _by_program,
}
_FOUND: dict[str, Callable[[], bool]] = {
    "pygraphviz": _has_pygraphviz,
    "dot": lambda: shutil.which("dot") is not None,
}
