"""A program written in another way that means the same: other names, another order of independent operators."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from minigrad import static


def renamed(prog: static.Program) -> tuple[static.Program, dict[str, str]]:
    """The program with every variable of every block called v0, v1, … in turn; and old name → new name."""
    data = json.loads(prog.to_json())
    old = dict.fromkeys(v[0] for b in data["blocks"] for v in b["variables"])
    new = {name: f"v{k}" for k, name in enumerate(reversed(old))}
    for block in data["blocks"]:
        for variable in block["variables"]:
            variable[0] = new[variable[0]]
        for op in block["operators"]:
            for part in ("inputs", "outputs"):
                op[part] = substituted(op[part], new)
            if "sub_block" in op["attrs"]:
                op["attrs"] = substituted(op["attrs"], new)
    for part in ("inputs", "outputs"):
        data[part] = substituted(data[part], new)
    data["initial"] = {new[n]: v for n, v in data["initial"].items()}
    return static.Program.from_json(json.dumps(data)), new


def substituted(value: Any, new: dict[str, str]) -> Any:
    """Every text in lists and values of objects that is a name, replaced."""
    if isinstance(value, dict):
        return {k: substituted(v, new) for k, v in value.items()}
    if isinstance(value, list):
        return [substituted(v, new) for v in value]
    return new.get(value, value) if isinstance(value, str) else value


def permuted(prog: static.Program, rng: np.random.Generator) -> static.Program:
    """The program with the operators of its first block in another order that keeps every reader behind its writer."""
    prog = prog.clone()
    block = prog.global_block()
    waiting, ready = list(block.ops), []
    while waiting:
        free = [op for k, op in enumerate(waiting) if not any(depends(op, e) for e in waiting[:k])]
        op = free[int(rng.integers(len(free)))]
        ready.append(op)
        waiting.remove(op)
    block.ops[:] = ready
    return static.Program.from_json(prog.to_json())


def depends(later: Any, earlier: Any) -> bool:
    """Whether two operators must stay in this order."""
    reads, writes = set(later.input_names), set(later.output_names)
    before = set(earlier.output_names)
    return bool(before & (reads | writes) or writes & set(earlier.input_names))
