"""A process that uses what strangers wrote, with a witness: every audit event while it does so.

Reads {"names": …, "weights": [paths]} from its input and prints what happened as JSON.
"""

from __future__ import annotations

import encodings.cp437  # noqa: F401  (the library reads names in archives with it)
import json
import linecache
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn, static
from minigrad.errors import MinigradError
from tests.static.mutations import megabytes

WATCHED = (
    *("open", "exec", "compile", "import", "socket", "subprocess", "os.", "shutil", "ctypes"),
    *("pickle", "tempfile", "urllib", "code.__new__", "marshal", "webbrowser", "mmap"),
)


def original() -> str:
    """A stored program with its backward part, a loop, a choice, texts in attrs and in its history."""
    prog = static.Program()
    with static.program_guard(prog):
        x = static.data("xin", [2])
        w = static.parameter("wgt", np.ones(2))
        h = mg.einsum("i,i->i", mg.tanh(x * w), w)
        n, h = static.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, mg.sin(h)), [0, h])
        loss = static.cond(mg.sum(h) > 0.0, lambda: mg.sum(h), lambda: mg.mean(h))
        static.append_backward(loss)
    prog.history = ["by somebody"]
    prog.outputs = [loss.name]
    return prog.to_json()


def spoiled(text: str, name: str) -> list[str]:
    """The program with a name of a stranger in every place that holds a text."""
    quoted = json.dumps(name)[1:-1]
    places = (
        "xin",
        "wgt",
        "wgt@GRAD",
        "tanh",
        "i,i->i",
        "by somebody",
        "forward",
        "float64",
        "params",
    )
    return [text.replace(place, quoted) for place in places]


def use_program(text: str) -> None:
    """Read, print, store, draw, explain, run, step through, compile, and run what was compiled."""
    prog = static.Program.from_json(text)
    static.parse(str(prog))
    prog.to_json()
    picture = mg.draw(prog)
    assert picture.text
    assert "<svg" in picture.svg
    feed = {n: np.ones(2) for n, v in prog.global_block().vars.items() if v.is_data}
    executor = static.Executor()
    fetch = list(prog.outputs)
    executor.run(prog, feed=feed, fetch_list=fetch, step_limit=100)
    player = mg.play((prog, executor.scope))
    assert repr(player)
    assert player.events
    compiled = static.compile(prog, feed=feed, fetch=fetch)
    assert compiled.source
    compiled(**feed)


def use_weights(path: str) -> None:
    nn.load(path)


class Witness:
    """Audit hooks cannot be taken away: this one is switched."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[tuple[str, str, str]] = []
        self.subject = ""
        sys.addaudithook(self.see)

    def see(self, event: str, arguments: Any) -> None:
        if self.on and event.startswith(WATCHED):
            text = str(arguments)
            short = text if len(text) < 300 else f"{text[:200]} … {text[-60:]}"
            self.events.append((event, short, self.subject))

    def watch(self, use: Callable[[str], None], subject: str) -> tuple[bool, float]:
        """Whether it was refused with an error of the package, and the seconds it took."""
        self.subject, begin, self.on = subject[:80], time.process_time(), True
        try:
            use(subject)
            return False, time.process_time() - begin
        except (MinigradError, nn.StateError):
            return True, time.process_time() - begin
        finally:
            self.on = False


def main() -> None:
    warnings.simplefilter("ignore")
    task = json.loads(sys.stdin.read())
    text = original()
    for path in task["sound"]:
        use_weights(path)
    use_program(text)  # from here on everything is imported and read
    _ = linecache.getlines(__file__)
    witness = Witness()
    programs = [t for name in task["names"] for t in spoiled(text, name)]
    done = [witness.watch(use_program, t) for t in programs]
    weights = [witness.watch(use_weights, p) for p in task["weights"]]
    report = {
        "events": witness.events,
        "programs": len(programs),
        "refused": sum(r for r, _ in done),
        "weights refused": [r for r, _ in weights],
        "slowest": max(s for _, s in done + weights),
        "megabytes": megabytes(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
