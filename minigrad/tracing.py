"""trace: a function → a Program, by calling it on Variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ProgramError, describe
from .ops.linalg import trace as matrix_trace
from .static.program import Program, Variable, program_guard


def trace(function: Any, *examples: Any, names: Any = None) -> Any:
    """The Program that a function writes when it is called on Variables in place of the examples.

    Shapes and dtypes are those of the examples; Tensors the function uses besides become parameters (if they require
    grad) or constants.  The program's ``inputs`` and ``outputs`` list the fed and the returned variables.
    Given a matrix and no function, it is the matrix's trace, the sum of its diagonal.
    Errors: `ProgramError` where Python's control flow depends on a value.

    >>> import numpy as np
    >>> prog = trace(lambda x: (x * x).sum(), np.ones(3))
    >>> [op.type for op in prog.global_block().ops], prog.inputs, prog.outputs
    (['mul', 'reduce_sum'], ['x0'], ['reduce_sum_0'])
    """
    if not callable(function):
        return matrix_trace(function, *examples)
    program = Program()
    program.lifts_tensors = True
    labels = list(names) if names is not None else [f"x{k}" for k in range(len(examples))]
    with program_guard(program):
        block = program.global_block()
        inputs = []
        for label, example in zip(labels, examples, strict=True):
            array = np.asarray(getattr(example, "_data", example))
            inputs.append(
                block.create_var(label, array.shape, array.dtype, is_data=True, derived_stop=True)
            )
        result = function(*inputs)
    outs = list(result) if isinstance(result, list | tuple) else [result]
    for out in outs:
        if not isinstance(out, Variable):
            raise ProgramError(
                f"the traced function returned {describe(out)}: its result does not depend on its arguments"
            )
    program.inputs, program.outputs = labels, [v.name for v in outs]
    return program
