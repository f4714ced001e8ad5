"""What PyTorch's objects tell about themselves, read without changing them and without importing torch.

Tensors, nodes, modules and optimizers are known by where their classes come from.  Reading a saved value can run
a hook of the user's (``saved_tensors_hooks``, ``checkpoint``): such values are left alone.
"""

import ast
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from .formula import parsed
from .names import Variables

_SAVED = "_saved_"


def kind_of(x) -> str:
    """``"tensor"``, ``"module"``, ``"optimizer"``, ``"node"`` of PyTorch; empty for anything else."""
    if is_node(x):
        return "node"
    kinds = (_CLASSES.get((c.__module__, c.__name__)) for c in type(x).__mro__)
    return next(filter(None, kinds), "")


def is_node(x) -> bool:
    """Whether an object is a node of PyTorch's backward graph."""
    return hasattr(type(x), "next_functions") and hasattr(type(x), "_sequence_nr")


_CLASSES = {
    ("torch", "Tensor"): "tensor",
    ("torch.nn.modules.module", "Module"): "module",
    ("torch.optim.optimizer", "Optimizer"): "optimizer",
}


def of_kind(variables: Variables, kind: str) -> dict[str, Any]:
    """The variables that hold objects of a kind, by name; then those in lists, tuples and dictionaries."""
    every = dict(variables)
    for name, x in variables.items():
        if type(x) in (list, tuple):
            every |= {f"{name}[{k}]": v for k, v in enumerate(x[:1000])}
        elif type(x) is dict:
            every |= {f"{name}[{k!r}]": v for k, v in list(x.items())[:1000]}
        elif type(x).__module__ == "__main__" and not kind_of(x):  # a trainer that holds them
            every |= {f"{name}.{k}": v for k, v in getattr(x, "__dict__", {}).items()}
    return {name: x for name, x in every.items() if kind_of(x) == kind}


def largest_modules(variables: Variables) -> list[tuple[str, Any]]:
    """The variables that hold modules, those that hold most of them first."""
    modules = of_kind(variables, "module").items()
    return sorted(modules, key=lambda each: -len(list(each[1].modules())))


def tensor_names(variables: Variables) -> dict[str, Any]:
    """Name → tensor: the variables that hold one, then parameters and buffers by their paths in modules."""
    named = of_kind(variables, "tensor")
    for prefix, module in largest_modules(variables):
        for path, tensor in (*module.named_parameters(), *module.named_buffers()):
            named.setdefault(f"{prefix}.{path}", tensor)
    return named


def saved_names(node) -> list[str]:
    """The names of the saved values of a node that are tensors, or may be."""
    return [a.removeprefix("_raw_saved_") for a in dir(node) if a.startswith("_raw_saved_")]


def is_hooked(node) -> bool:
    """Whether reading the saved values of a node runs functions of the user's."""
    for name in saved_names(node):
        try:
            raw = getattr(node, f"_raw_saved_{name}")
        except RuntimeError:  # a Function of the user's that has been freed
            continue
        parts = raw if isinstance(raw, (list, tuple)) else [raw]
        if any(getattr(part, "unpack_hook", None) is not None for part in parts):
            return True
    return False


def saved_values(node) -> dict[str, Any]:
    """The saved tensors of a node by name.  Errors: `RuntimeError`, freed or changed in place since."""
    if is_hooked(node):
        return {}
    if hasattr(node, "_forward_cls"):  # a Function of the user's
        return {f"saved_tensors[{k}]": v for k, v in enumerate(node.saved_tensors)}
    values = {n: getattr(node, _SAVED + n) for n in saved_names(node)}
    known = {"self": "x", "result": "out", "output": "out"}
    return {known.get(n, n): v for n, v in values.items() if v is not None}


def attributes(node) -> dict[str, Any]:
    """The other values that a node keeps: numbers, sizes, flags."""
    names = {a.removeprefix(_SAVED) for a in dir(node) if a.startswith(_SAVED)}
    values = {}
    for name in sorted(names.difference(saved_names(node))):
        value = getattr(node, _SAVED + name)
        if type(value) is int and value >= 2**63:
            value -= 2**64  # PyTorch hands it out without its sign, as the index of ``x[-1]``
        values[name] = value
    return values


def is_absent(node, name: str) -> bool:
    """Whether an input was not given: a convolution without bias has a slot for it all the same."""
    return getattr(node, f"{_SAVED}{name}_sym_sizes_opt", True) in (None, (0,), ())


@cache
def _table() -> dict[str, list[str]]:
    """Stem of a node's name → its inputs, then the formula of the gradient of each."""
    path = Path(__file__).with_name("torch_nodes.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def stem(node) -> str:
    """``Mul`` for ``MulBackward0``."""
    transposed = "Transposed" if getattr(node, f"{_SAVED}transposed", False) else ""
    return re.sub(r"Backward\d*$", "", title(node)) + transposed


def inputs_of(node, count: int) -> list[str]:
    """The names of the ``count`` inputs that have a slot in ``next_functions``."""
    return filled(_table().get(stem(node), [""])[0].split(), count)


def filled(names: Iterable[str], count: int) -> list[str]:
    """The names of ``count`` inputs; those that have none are ``input 0``, ``input 1``, …"""
    known = [*names][:count]
    return known + [f"input {k}" for k in range(len(known), count)]


def formulas_of(node, count: int) -> list[ast.expr | None]:
    """The formula of each of ``count`` gradients; None where none is known."""
    inputs, *texts = _table().get(stem(node), [""])
    texts = texts if inputs else texts * count  # a list of inputs: the same for each
    return [*map(parsed, texts), *[None] * count][:count]


def numbers_of(node) -> dict[str, Any]:
    """The numbers that a node keeps, as they stand in its formulas."""
    return {name: v for name, v in attributes(node).items() if type(v) in (int, float)}


def has_formula(node) -> bool:
    """Whether the table knows a node, or nothing need be known of it."""
    return stem(node) in _table() or title(node) == "AccumulateGrad"


def kept_grad(tensor) -> Any:
    """``.grad`` of a tensor, without PyTorch's warning for those that keep none."""
    if kind_of(tensor) == "tensor" and not (tensor.is_leaf or tensor.retains_grad):
        return None
    return getattr(tensor, "grad", None)


def title(node) -> str:
    """The name of a node of any backward graph, PyTorch's without its namespace: ``MulBackward0``."""
    name = getattr(node, "name", None)
    if callable(name):
        name = name()
    name = name if isinstance(name, str) and name else type(node).__name__
    return name.rpartition("::")[2].rpartition(".")[2]


def storage(tensor) -> int:
    """Where the memory of a tensor begins; 0 if it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr()) if tensor.numel() else 0
    except (RuntimeError, NotImplementedError):  # sparse, or without values
        return 0
