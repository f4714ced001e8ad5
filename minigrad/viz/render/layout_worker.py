"""A child process that lays out graphs: it reads requests from standard input and writes pictures to standard output.

It is run as a file, imports nothing of minigrad, and dies with its parent (its input ends). A
request is one line of JSON: the format, the DOT, and how many seconds of the processor it may take before
the system ends this process.  A reply is one, too: the bytes of the picture as letters, or null.
"""

import json
import os
import signal
import sys


def draw(form: str, source: str, seconds: float = 10.0) -> str:
    """Lay out DOT with the Graphviz libraries that the pygraphviz wheel carries."""
    import pygraphviz

    if hasattr(signal, "setitimer"):  # its signal ends a process, even one that computes in C
        signal.setitimer(signal.ITIMER_PROF, seconds)
    graph = pygraphviz.AGraph(string=source)  # string=: a text could be taken for a file name
    try:
        return bytes(graph.draw(prog="dot", format=form)).decode("latin-1")
    finally:
        graph.close()


def main() -> None:
    """Answer until the input ends; whatever the C libraries print goes nowhere."""
    replies = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    draw("svg", "digraph { a }")  # the first graph of a process loses its default labels
    for request in sys.stdin:
        try:
            drawn = draw(*json.loads(request))
        except Exception:  # no DOT, no such format: this process lives on
            drawn = None
        print(json.dumps(drawn), file=replies, flush=True)


if __name__ == "__main__":
    main()
