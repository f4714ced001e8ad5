"""What PyTorch's objects tell about themselves, read without changing them and without importing torch.

Tensors, nodes, modules and optimizers are known by where their classes come from.  Reading a saved value can run
a hook of the user's (``saved_tensors_hooks``, ``checkpoint``): such values are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from typing import Any

_SAVED = "_saved_"


def is_torch(x: Any) -> bool:
    """Whether an object is PyTorch's, or of a class made from one of its."""
    return any(c.__module__.partition(".")[0] == "torch" for c in type(x).__mro__[:-1])


def kind_of(x: Any) -> str:
    """``"tensor"``, ``"module"``, ``"optimizer"``, ``"node"`` of PyTorch; empty for anything else."""
    cls = type(x)
    if hasattr(cls, "next_functions") and hasattr(cls, "_sequence_nr"):
        return "node"
    for c in cls.__mro__[:-1]:
        kind = _CLASSES.get((c.__module__, c.__name__))
        if kind:
            return kind
    return ""


_CLASSES = {
    ("torch", "Tensor"): "tensor",
    ("torch._tensor", "Tensor"): "tensor",
    ("torch.nn.modules.module", "Module"): "module",
    ("torch.optim.optimizer", "Optimizer"): "optimizer",
}


def of_kind(variables: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The variables that hold objects of a kind, by name; then those in lists, tuples and dictionaries."""
    found = [(name, x) for name, x in _spread(variables) if kind_of(x) == kind]
    return dict(sorted(found, key=lambda item: item[0] not in variables))


def _spread(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, x in variables.items():
        yield name, x
        if type(x) in (list, tuple):
            yield from ((f"{name}[{k}]", v) for k, v in enumerate(x[:1000]))
        elif type(x) is dict:
            yield from ((f"{name}[{k!r}]", v) for k, v in list(x.items())[:1000])
        elif type(x).__module__ == "__main__" and not is_torch(x):  # a trainer that holds them
            yield from ((f"{name}.{k}", v) for k, v in getattr(x, "__dict__", {}).items())


def tensor_names(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Name → tensor: the variables that hold one, then parameters and buffers by their paths in modules."""
    named = of_kind(variables, "tensor")
    modules = of_kind(variables, "module")
    for prefix, module in sorted(modules.items(), key=lambda m: -len(list(m[1].modules()))):
        for path, tensor in (*module.named_parameters(), *module.named_buffers()):
            named.setdefault(f"{prefix}.{path}", tensor)
    return named


def saved_names(node: Any) -> list[str]:
    """The names of the saved values of a node that are tensors, or may be."""
    return [a[len("_raw_saved_") :] for a in dir(node) if a.startswith("_raw_saved_")]


def is_hooked(node: Any) -> bool:
    """Whether reading the saved values of a node runs functions of the user's."""
    return any(_raw_hook(getattr(node, f"_raw_saved_{n}")) for n in saved_names(node))


def _raw_hook(raw: Any) -> bool:
    return any(
        getattr(r, "unpack_hook", None) is not None
        for r in (raw if isinstance(raw, (list, tuple)) else (raw,))
    )


def saved_values(node: Any) -> dict[str, Any]:
    """The saved tensors of a node by name.  Errors: `RuntimeError`, freed or changed in place since."""
    if is_hooked(node):
        return {}
    if hasattr(node, "saved_tensors"):  # a Function of the user's
        return {f"saved_tensors[{k}]": v for k, v in enumerate(node.saved_tensors)}
    values = {n: getattr(node, _SAVED + n) for n in saved_names(node)}
    known = {"self": "x", "result": "out", "output": "out"}
    return {known.get(n, n): v for n, v in values.items() if v is not None}


def attributes(node: Any) -> dict[str, Any]:
    """The other values that a node keeps: numbers, sizes, flags."""
    names = [a for a in dir(node) if a.startswith(_SAVED)]
    tensors = {*saved_names(node)}
    plain = [a[len(_SAVED) :] for a in names if a[len(_SAVED) :] not in tensors]
    return {name: _signed(getattr(node, _SAVED + name)) for name in plain}


def is_absent(node: Any, name: str) -> bool:
    """Whether an input was not given: a convolution without bias has a slot for it all the same."""
    return getattr(node, f"{_SAVED}{name}_sym_sizes_opt", True) in (None, (0,), ())


def _signed(value: Any) -> Any:
    """A negative number that PyTorch hands out without its sign, as the index of ``x[-1]``."""
    return value - 2**64 if type(value) is int and value >= 2**63 else value


@cache
def _table() -> dict[str, list[str]]:
    """Stem of a node's name → its inputs, then the formula of the gradient of each."""
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(Path(__file__).parent / "torch_nodes.ini", encoding="utf-8")
    return {k: [c.strip() for c in row.split("|")] for k, row in parser["nodes"].items()}


def stem(node: Any) -> str:
    """``Mul`` for ``MulBackward0``."""
    transposed = "Transposed" if getattr(node, f"{_SAVED}transposed", False) else ""
    return re.sub(r"Backward\d*$", "", title(node)) + transposed


def inputs_of(node: Any, count: int) -> tuple[str, ...]:
    """The names of the ``count`` inputs that have a slot in ``next_functions``."""
    named = _table().get(stem(node), [""])[0].split()[:count]
    return (*named, *(f"input {k}" for k in range(len(named), count)))


def formulas_of(node: Any, count: int) -> tuple[ast.expr | None, ...]:
    """The formula of each of ``count`` gradients; None where none is known."""
    inputs, *texts = _table().get(stem(node), [""])
    texts = texts if inputs else texts * count  # a list of inputs: the same for each
    kept = attributes(node).items()
    numbers = {name: ast.Constant(v) for name, v in kept if type(v) in (int, float)}
    known = [_with_numbers(text, numbers) for text in texts[:count]]
    return (*known, *[None] * (count - len(texts)))


def _with_numbers(text: str, numbers: Mapping[str, ast.expr]) -> ast.expr:
    """A formula of the table with the numbers that a node keeps put in."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return numbers.get(name.id, name)

    expression: ast.expr = Put().visit(ast.parse(text, mode="eval").body)
    return expression


def has_formula(node: Any) -> bool:
    """Whether the table knows a node, or nothing need be known of it."""
    return stem(node) in _table() or title(node) == "AccumulateGrad"


def kept_grad(tensor: Any) -> Any:
    """``.grad`` of a tensor, without PyTorch's warning for those that keep none."""
    if kind_of(tensor) == "tensor" and not (tensor.is_leaf or tensor.retains_grad):
        return None
    return getattr(tensor, "grad", None)


def title(node: Any) -> str:
    """The name of a node: ``AccumulateGrad`` without the namespace."""
    name: str = node.name()
    return name.rpartition("::")[2].rpartition(".")[2]


def storage(tensor: Any) -> int:
    """Where the memory of a tensor begins; 0 if it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr()) if tensor.numel() else 0
    except (RuntimeError, NotImplementedError):  # sparse, or without values
        return 0
