"""Where things stand: Graphviz in a child process, under a limit of time.

The libraries that the ``pygraphviz`` wheel carries (15 to 40 ms for a picture) run in a worker that
stays alive. Where Python runs in a browser, Viz.js does it in the page. With neither there is no
layout and the caller draws in text. No shell, no file name from a user.
"""

import atexit
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..graph.style import FONT

ADVICE = "No layout engine found: `pip install pygraphviz` for a drawn picture."
TIME_LIMIT = 10.0  # seconds of a processor for one picture: a busy machine gets the same pictures
SIZE_LIMIT = 2_000_000  # characters of DOT
_HERE = Path(__file__).parent
SMALL_PNG = "png:cairo:gd"  # 256 colours: a third of the bytes


def layout(source: str, form: str = "svg") -> bytes | None:
    """The picture of a DOT source as bytes, or None when no engine could make it in time."""
    for found, ask in ENGINES if len(source) <= SIZE_LIMIT else ():
        if found() and (drawn := ask(source, form)):
            return drawn
    return None


def available() -> bool:
    """Is there a layout engine on this machine?"""
    return any(found() for found, _ in ENGINES)


_LOCK = threading.Lock()
#: by the process that started it: a forked child must not share its parent's pipes
_WORKERS: dict[int, subprocess.Popen[str]] = {}


def _by_worker(source: str, form: str) -> bytes | None:
    """The child process with the libraries: started on first use, killed when it takes too long."""
    with _LOCK:
        worker = _WORKERS.get(os.getpid())
        if worker is None or worker.poll() is not None:
            _close()
            # -P: the folder of the worker must not shadow modules of the standard library
            worker = _WORKERS[os.getpid()] = subprocess.Popen(
                [sys.executable, "-P", str(_HERE / "layout_worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # the interrupt of a terminal is not for it
                **_fonts(),
            )
        # ten times as long by the clock: for a worker that waits, or where processors have no such limit
        timer = threading.Timer(10 * TIME_LIMIT, worker.kill)
        timer.start()
        try:
            print(json.dumps([form, source, TIME_LIMIT]), file=worker.stdin, flush=True)
            drawn = json.loads(worker.stdout.readline()) if worker.stdout else None
        except (OSError, ValueError):  # it died or was killed: the next picture starts another
            _close()
            return None
        finally:
            timer.cancel()
    return drawn.encode("latin-1") if drawn else None


@atexit.register
def _close() -> None:
    """End the child process, if this process started one."""
    if worker := _WORKERS.pop(os.getpid(), None):
        with suppress(OSError), worker:  # unsent bytes to a dead process
            worker.kill()


def _by_page(source: str, form: str) -> bytes | None:
    """Viz.js in the page that Python runs in; it knows the widths of the first font of our list."""
    page = importlib.import_module("minigrad_viz")  # course/site.js registers it
    first = FONT.split(",")[0]
    drawn = page.render(source.replace(FONT, first), form)
    return drawn.replace(first, FONT).encode() if isinstance(drawn, str) else None


def _has_pygraphviz() -> bool:
    return bool(sys.executable) and importlib.util.find_spec("pygraphviz") is not None


def _fonts() -> dict[str, Any]:
    """Where the child runs: among the fonts that matplotlib carries, which `fonts.conf` has it use."""
    origin = getattr(importlib.util.find_spec("matplotlib"), "origin", None)
    if sys.platform != "linux" or "FONTCONFIG_FILE" in os.environ or origin is None:
        return {}
    return {
        "cwd": Path(origin).parent / "mpl-data" / "fonts" / "ttf",
        "env": os.environ | {"FONTCONFIG_FILE": str(_HERE / "fonts.conf")},
    }


#: whether it is there, and what draws; in the order of preference
ENGINES = (
    (_has_pygraphviz, _by_worker),
    (lambda: importlib.util.find_spec("minigrad_viz") is not None, _by_page),
)
