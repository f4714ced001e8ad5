"""Where things stand: Graphviz in a child process, under a time limit.

The libraries that the ``pygraphviz`` wheel carries (15 to 40 ms for a picture) run in a worker that stays alive.
Where Python runs in a browser, Viz.js does it in the page. With neither there is no layout and the caller draws in
text. No shell, no file name from a user.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from ...atomic import replacing
from ..graph.style import FONT

ADVICE = "No layout engine found: `pip install pygraphviz` for a drawn picture."
TIME_LIMIT = 10.0  # seconds for one picture
SIZE_LIMIT = 2_000_000  # characters of DOT
SMALL_PNG = "png:cairo:gd"  # 256 colours: a third of the bytes


def layout(source: str, form: str = "svg", limit: float | None = None) -> bytes | None:
    """The picture of a DOT source as bytes, or None when no engine could make it in time."""
    for found, ask in ENGINES if len(source) <= SIZE_LIMIT else ():
        if found() and (drawn := ask(source, form, TIME_LIMIT if limit is None else limit)):
            return drawn
    return None


def available() -> bool:
    """Is there a layout engine on this machine?"""
    return any(found() for found, _ in ENGINES)


class _Worker:
    """The child process with the libraries: started on first use, killed when it takes too long."""

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
        start_new_session=True,  # the interrupt of a terminal is not for it
    )


def _exchange(process: subprocess.Popen[bytes], source: bytes, form: str) -> bytes | None:
    assert process.stdin is not None
    assert process.stdout is not None
    request = json.dumps({"format": form, "bytes": len(source)})
    process.stdin.write(request.encode() + b"\n" + source)
    process.stdin.flush()
    # an empty line, from a dead worker, is a ValueError
    reply = json.loads(process.stdout.readline())
    made = process.stdout.read(reply["bytes"])
    return made if not reply["problem"] else None


def _by_page(source: str, form: str, _limit: float) -> bytes | None:
    """Viz.js in the page that Python runs in; it knows the widths of the first font of our list."""
    page: Any = importlib.import_module("minigrad_viz")  # course/site.js registers it
    first = FONT.split(",")[0]
    drawn = page.render(source.replace(FONT, first), form)
    return drawn.replace(first, FONT).encode() if isinstance(drawn, str) else None


@functools.cache
def _has_pygraphviz() -> bool:
    return bool(sys.executable) and importlib.util.find_spec("pygraphviz") is not None


def _environment() -> dict[str, str]:
    """The child's environment: the fonts that matplotlib carries, so that a picture has the same
    bytes everywhere.
    """
    found = importlib.util.find_spec("matplotlib")
    origin = found.origin if found is not None else None
    if sys.platform != "linux" or "FONTCONFIG_FILE" in os.environ or origin is None:
        return dict(os.environ)
    fonts = Path(origin).parent / "mpl-data" / "fonts" / "ttf"
    try:
        return {**os.environ, "FONTCONFIG_FILE": str(_font_settings(fonts))}
    except OSError:  # a home that cannot be written to: the fonts of the machine
        return dict(os.environ)


def _font_settings(fonts: Path) -> Path:
    """Settings that name these fonts, in the user's cache: one folder, kept, for each place of fonts."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "minigrad" / f"fonts-{hashlib.sha256(str(fonts).encode()).hexdigest()[:10]}"
    settings = folder / "fonts.conf"
    if not settings.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(settings) as file:
            file.write(
                '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">'
                f"<fontconfig><dir>{escape(str(fonts))}</dir>"
                f"<cachedir>{escape(str(folder))}</cachedir></fontconfig>".encode()
            )
    return settings


_WORKER = _Worker()
#: whether it is there, and what draws; in the order of preference
ENGINES: tuple[tuple[Callable[[], bool], Callable[[str, str, float], bytes | None]], ...] = (
    (_has_pygraphviz, _WORKER.ask),
    (lambda: importlib.util.find_spec("minigrad_viz") is not None, _by_page),
)
atexit.register(_WORKER.close)
