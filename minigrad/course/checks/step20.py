"""The program with a planted bug."""

from typing import Any

NUMBER, NAME = 13, "k"


def planted_bug(program) -> Any:
    """The program of step 20 with one grad operator changed: it reads the wrong value."""
    op = program.global_block().ops[NUMBER]
    op.inputs = {**op.inputs, "out": ["h"]}
    program.changed()
    return program
