"""trace: a function → a Program, by calling it on Variables."""

from typing import Any

import numpy as np

from .eager.backward import by_seq
from .eager.mode import recorded
from .errors import ProgramError, describe, refusal
from .errors.calls import call_error
from .ops import trace as matrix_trace
from .primitives.arguments import Attrs, Function, Listed, as_list
from .static.program.program import Program, program_guard
from .static.program.variable import Variable


def trace(function: Any, *examples: Any, names: Any = None, **options: Any) -> Any:
    """The Program that a function writes when it is called on Variables in place of the examples.

    Shapes and dtypes are those of the examples; Tensors the function uses besides become parameters (if they require
    grad) or constants, and what it computes of such parameters alone becomes operators, too.  The program's
    ``inputs`` and ``outputs`` list the fed and the returned variables.
    Given a matrix and no function, it is the matrix's trace, the sum of its diagonal, with its ``offset``.
    Errors: `ProgramError` where Python's control flow depends on a value.

    >>> import numpy as np
    >>> prog = trace(lambda x: (x * x).sum(), np.ones(3))
    >>> [op.type for op in prog.global_block().ops], prog.inputs, prog.outputs
    (['mul', 'reduce_sum'], ['x0'], ['reduce_sum_0'])
    """
    if not callable(function):
        return matrix_trace(function, *examples, **options)
    if options:
        raise call_error("trace", ["function", "*examples", "names=None"], 1, next(iter(options)))
    program = Program()
    program.lifts_tensors = True
    labels = list(names) if names is not None else [f"x{k}" for k in range(len(examples))]
    if len(labels) != len(examples):
        raise refusal(
            f"trace was given {len(labels)} name(s) for {len(examples)} example(s)",
            "one name for each example, or leave names out",
            ProgramError,
        )
    note, program.derive = derivations(program)
    with program_guard(program), recorded(note):
        block = program.global_block()
        inputs = []
        for label, example in zip(labels, examples, strict=True):
            a = np.asarray(getattr(example, "_data", example))
            inputs.append(
                block.create_var(label, a.shape, a.dtype, is_data=True, derived_stop=True)
            )
        result = function(*inputs)
    outs = as_list(result)
    for out in outs:
        if not isinstance(out, Variable):
            raise refusal(
                f"the traced function returned {describe(out)}: its result does not depend on its arguments",
                "return what is computed from the arguments, several values as a tuple",
                ProgramError,
            )
    program.inputs, program.outputs = labels, [v.name for v in outs]
    program.derive = None
    return program


def derivations(program: Program) -> tuple[Function, Function]:
    """Ops on Tensors alone that a traced function runs become operators where a Variable meets what they made.

    So ``x @ w.T``, with a closed-over parameter ``w``, is a program with one parameter ``w`` and a
    permute_dims.  Returns what remembers an op, and what appends those that lead to a Tensor.
    """
    calls: dict[Any, Any] = {}  # node → what was called, its outputs

    def note(primitive, args, attrs: Attrs, outs: Listed) -> None:
        node = next(o.grad_fn for o in outs if o.grad_fn is not None)
        calls[node] = (primitive, args, attrs), outs

    def derive(tensor) -> None:
        needed = set()
        waiting = [tensor]
        for at in waiting:  # which grows on the way
            node = getattr(at, "grad_fn", None)
            call, outs = calls.get(node, (None, ()))
            if id(at) in program.lifted or node in needed or all(at is not o for o in outs):
                continue  # a leaf, done, or changed in place since
            needed.add(node)
            waiting += call[1]
        for node in sorted(needed, key=by_seq):
            call, outs = calls[node]
            variables = as_list(program.global_block().append_primitive(*call))
            for out, variable in zip(outs, variables, strict=True):
                program.lifted[id(out)] = (out, variable.name)

    return note, derive
