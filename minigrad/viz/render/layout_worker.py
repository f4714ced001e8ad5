"""A child process that lays out graphs: it reads requests from standard input and writes pictures
to standard output.

It is run as a file, imports nothing of minigrad, and dies with its parent (its input ends). A
request is one line of JSON with the format and the number of bytes of DOT that follow; a reply is
one line of JSON, then the bytes of the picture.
"""

import json
import os
import sys
from typing import BinaryIO


def picture(source: str, form: str) -> bytes:
    """Lay out DOT with the Graphviz libraries inside this process."""
    import pygraphviz

    graph = pygraphviz.AGraph(string=source)  # string=: a text could be taken for a file name
    try:
        return bytes(graph.draw(prog="dot", format=form))
    finally:
        graph.close()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until the input ends."""
    picture("digraph { a }", "svg")  # the first graph of a process loses its default labels
    while line := requests.readline():
        asked = json.loads(line)
        source = requests.read(asked["bytes"]).decode()
        try:
            made, problem = picture(source, asked["format"]), ""
        except Exception as error:  # the reply says what went wrong: this process lives on
            made, problem = b"", f"{type(error).__name__}: {error}"
        replies.write(json.dumps({"bytes": len(made), "problem": problem}).encode() + b"\n" + made)
        replies.flush()


def main() -> None:
    """Keep the real output for replies; whatever the C libraries print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
