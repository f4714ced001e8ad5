"""A child process that lays out graphs: it reads requests from standard input and writes pictures
to standard output.

It is run as a file, imports nothing of minigrad, and dies with its parent (its input ends). A
request is one line of JSON with the format and the number of bytes of
DOT that follow; a reply is one line of JSON, then the bytes of the picture.
"""

import json
import os
import sys
from typing import BinaryIO


def draw(source: str, form: str) -> bytes:
    """Lay out DOT with the Graphviz libraries that the pygraphviz wheel carries."""
    import pygraphviz

    graph = pygraphviz.AGraph(string=source)  # string=: a text could be taken for a file name
    try:
        return bytes(graph.draw(prog="dot", format=form))
    finally:
        graph.close()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until the input ends."""
    while line := requests.readline():
        request = json.loads(line)
        source = requests.read(request["bytes"]).decode()
        try:
            drawn, problem = draw(source, request["format"]), ""
        except Exception as error:  # the reply says what went wrong: this process lives on
            drawn, problem = b"", f"{type(error).__name__}: {error}"
        reply = json.dumps({"bytes": len(drawn), "problem": problem})
        replies.write(reply.encode() + b"\n" + drawn)
        replies.flush()


def main() -> None:
    """Keep the real output for replies; whatever the C libraries print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    draw("digraph { a }", "svg")  # the first graph of a process loses its default labels
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
