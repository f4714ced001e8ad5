"""from_torch: a function or a module of PyTorch becomes a Program, through ``torch.export``.

torch gives the forward graph, without changes in place; every operation in it is written in ops of this package
(`aten`).  From there on it is a Program like any other: `append_backward` makes its gradient, `draw` and `play`
show it, `compile` runs it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import operator
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ProgramError, describe, refusal
from ..ops import astype
from ..static.program.program import Program, program_guard
from ..static.program.variable import Variable
from .aten import TABLE

_RANDOM = {
    "rand", "randn", "rand_like", "randn_like", "randint", "randperm", "bernoulli", "normal", "uniform",
}  # fmt: skip


def from_torch(function: Any, *examples: Any) -> Program:
    """The Program of what a module or a function of PyTorch computes from Tensors like the examples.

    Shapes and dtypes are those of the examples.  Parameters (of the module; of modules and Tensors that the
    function uses) become parameters of their names, buffers become constants: running averages are not changed.
    The program's ``inputs`` and ``outputs`` list what is fed and returned.

    Errors: `ProgramError`, which names all operations that have no counterpart here, and where torch.export
    cannot write the function down.

    >>> import minigrad as mg
    >>> program = from_torch(torch.nn.Linear(2, 1), torch.ones(3, 2))      # doctest: +SKIP
    >>> [op.type for op in program.global_block().ops]                     # doctest: +SKIP
    ['swapaxes', 'matmul', 'add']
    """
    torch = sys.modules.get("torch")
    if torch is None or not (isinstance(function, torch.nn.Module) or callable(function)):
        what = f"from_torch takes a module or a function of PyTorch, not {describe(function)}"
        raise refusal(
            what, "static.from_torch(model, x); mg.trace(function, x) takes ours", ProgramError
        )
    if bad := [x for x in examples if not isinstance(x, torch.Tensor)]:
        what = f"the examples of from_torch are Tensors of PyTorch, not {describe(bad[0])}"
        raise refusal(what, "torch.ones(2, 3), or close over it: lambda x: f(x, 2)", ProgramError)
    exported = _exported(torch, function, examples)
    return _Translation(torch, exported).program


def _exported(torch: Any, function: Any, examples: tuple[Any, ...]) -> Any:
    """The graph of a function: functional, and with no operation that can be taken apart into known ones."""
    module = function if isinstance(function, torch.nn.Module) else _called(torch, function)
    with _quiet():
        try:
            exported = torch.export.export(module, examples, strict=False).run_decompositions({})
            parts = torch.export.default_decompositions()
            for _ in range(4):
                whole = {n.target for n in _calls(exported.graph) if _name(n) not in TABLE}
                table = {t: parts[t] for t in whole if t in parts}
                if not table:
                    break
                exported = exported.run_decompositions(table)
        except Exception as error:
            first = next(filter(None, str(error).splitlines()), type(error).__name__)
            what = f"torch.export cannot write this function down: {first}"
            advice = "no branch on values and no .item() inside; torch.where chooses by values"
            raise refusal(what, advice, ProgramError) from error
    return exported


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns of its own code, and prints the graph of what it cannot write down."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _called(torch: Any, function: Any) -> Any:
    """A function as a module that holds the modules and leaves that the function uses, by their names."""

    class Called(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *args: Any) -> Any:
            return function(*args)

    called = Called()
    called.train()
    with contextlib.suppress(TypeError):
        used = inspect.getclosurevars(inspect.unwrap(function))
        held = {**used.globals, **used.nonlocals}
        held |= {"self": function.__self__} if hasattr(function, "__self__") else {}
        for name, value in held.items():
            if isinstance(value, torch.nn.Module):
                called._modules[name] = value
            elif isinstance(value, torch.nn.Parameter):
                called._parameters[name] = value
    return called


def _calls(graph: Any) -> list[Any]:
    return [n for n in graph.nodes if n.op == "call_function" and n.target is not operator.getitem]


def _name(node: Any) -> str:
    """``addmm`` for ``aten.addmm.default``."""
    schema = getattr(node.target, "_schema", None)
    return schema.name.partition("::")[2] if schema is not None else str(node.target)


class _Translation:
    """One pass over the exported graph: a node's value is a Variable, or a Tensor of torch while it is constant."""

    def __init__(self, torch: Any, exported: Any) -> None:
        self.torch, self.exported = torch, exported
        self.program = Program()
        self.values: dict[Any, Any] = {}
        self.buffers: dict[int, str] = {}  # of constants that have a name
        outputs = self._outputs()
        needed = self._needed(outputs)
        self._refuse_unknown(needed)
        with program_guard(self.program):
            for node in exported.graph.nodes:
                if node.op == "placeholder":
                    self._placeholder(node)
                elif node in needed:
                    self.values[node] = self._call(node)
            results = [self._variable(self.values[n]) for n in outputs]
        self.program.outputs = [v.name for v in results]
        inputs = exported.graph_signature.user_inputs
        self.program.inputs = [n for n in inputs if isinstance(n, str)]

    def _outputs(self) -> list[Any]:
        names = set(self.exported.graph_signature.user_outputs)
        last = next(n for n in self.exported.graph.nodes if n.op == "output")
        return [n for n in last.args[0] if getattr(n, "name", None) in names]

    def _needed(self, outputs: list[Any]) -> set[Any]:
        """The nodes that the outputs depend on: no update of a buffer."""
        needed, waiting = set(), list(outputs)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        return needed

    def _refuse_unknown(self, needed: set[Any]) -> None:
        """What is made of constants alone torch computes itself, unless it is random."""
        constants = self.exported.graph_signature.inputs_to_buffers
        fed: set[Any] = set()
        unknown = {}
        for node in self.exported.graph.nodes:
            given = node.op == "placeholder" and node.name not in constants
            if given or not fed.isdisjoint(node.all_input_nodes):
                fed.add(node)
        for node in _calls(self.exported.graph):
            name = _name(node)
            if node in needed and name not in TABLE and (node in fed or name in _RANDOM):
                unknown[node] = ""
        if unknown:
            self._refuse(unknown)

    def _refuse(self, unknown: dict[Any, str]) -> None:
        told = {f"\n  aten.{_name(n)}{why}{_users_line(n)}": n for n, why in unknown.items()}
        what = f"these operations of the function have no counterpart here:{''.join(told)}"
        advice = "write them in operations that mg has, or leave that part in PyTorch"
        raise refusal(what, advice, ProgramError)

    def _placeholder(self, node: Any) -> None:
        signature, stored = self.exported.graph_signature, self.exported.state_dict
        block = self.program.global_block()
        if name := signature.inputs_to_parameters.get(node.name):
            value = stored[name]
            name = next(n for n, v in stored.items() if v is value)  # the first of a shared weight
            known = block.find_var(name)
            self.values[node] = self._parameter(name, value) if known is None else known
        elif name := signature.inputs_to_buffers.get(node.name):
            value = stored[name] if name in stored else self.exported.constants[name]
            self.values[node], self.buffers[id(value)] = value, name
        elif name := signature.inputs_to_lifted_tensor_constants.get(node.name):
            value = self.exported.constants[name]
            self.values[node] = self._parameter(name, value) if value.requires_grad else value
        else:
            example = node.meta["val"]
            shape, dtype = tuple(example.shape), _dtype(example.dtype)
            how = {"is_data": True, "derived_stop": True}
            self.values[node] = block.create_var(node.name, shape, dtype, **how)

    def _parameter(self, name: str, value: Any) -> Variable:
        return self.program.add_persistable(name, _array(value), bool(value.requires_grad))

    def _call(self, node: Any) -> Any:
        known = self.torch.fx.node.map_arg
        args, kwargs = known([node.args, node.kwargs], lambda n: self.values[n])
        if node.target is operator.getitem:
            return args[0][args[1]]
        if not any(isinstance(self.values[n], Variable) for n in node.all_input_nodes):
            with self.torch.no_grad(), _quiet():  # constants only: torch computes it, once
                return node.target(*args, **kwargs)
        try:
            result = TABLE[_name(node)](*self._plain(args), **self._plain(kwargs))
        except NotImplementedError as error:
            self._refuse({node: f" with {error}"})
        return self._checked(node, result)

    def _checked(self, node: Any, result: Any) -> Any:
        """The result in torch's dtype; a shape that differs is a defect here, and said."""
        expected = node.meta["val"]
        if not isinstance(result, list | tuple):
            return self._same(node, result, expected)
        pairs = zip(result, expected, strict=False)
        return [self._same(node, r, e) if isinstance(r, Variable) else r for r, e in pairs]

    def _same(self, node: Any, result: Any, expected: Any) -> Any:
        if tuple(result.shape) != tuple(expected.shape):
            what = f"aten.{_name(node)} gives {list(result.shape)} here and {list(expected.shape)} in PyTorch"
            raise refusal(what, "leave this operation in PyTorch", ProgramError)
        dtype = _dtype(expected.dtype)
        return result if result.dtype == dtype else astype(result, dtype)

    def _plain(self, value: Any) -> Any:
        """What an op of this package takes: no Tensors, dtypes or settings of torch."""
        if isinstance(value, self.torch.Tensor):
            return self._variable(value)
        if isinstance(value, list | tuple):
            return [self._plain(v) for v in value]
        if isinstance(value, dict):
            drop = ("memory_format", "layout", "device", "pin_memory", "non_blocking")
            return {k: self._plain(v) for k, v in value.items() if k not in drop}
        return _dtype(value) if isinstance(value, self.torch.dtype) else value

    def _variable(self, value: Any) -> Any:
        """A constant of torch as one here, under its name if it has one."""
        if isinstance(value, Variable):
            return value
        array = _array(value)
        if name := self.buffers.get(id(value)):
            known = self.program.global_block().find_var(name)
            return self.program.add_persistable(name, array, False) if known is None else known
        if array.ndim == 0:
            return array.item() if array.dtype.kind in "fib" else array
        return self.program.constant(array)


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().cpu()
    return np.array((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())


def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return "float32" if name == "bfloat16" else name


def _users_line(node: Any) -> str:
    """The last line of the trace that is not torch's own."""
    home = sys.modules["torch"].__path__[0]
    lines = re.findall(r'File "(.*)", line (\d+).*\n\s*(.*)', node.meta.get("stack_trace") or "")
    own = [line for line in lines if home not in line[0]]
    return ", at {}:{}: {}".format(Path(own[-1][0]).name, *own[-1][1:]) if own else ""
