"""Backward graphs of PyTorch written down, and objects that look like them where torch is not installed.

PYTHONPATH=. python tests/pytorch/record.py      # where torch is: writes recorded.json anew
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

FILE = Path(__file__).parent / "recorded.json"


def written(output, names):
    """What the pictures read of a graph, as lists and dictionaries."""
    fns, waiting = {}, [output.grad_fn]
    while waiting:
        fn = waiting.pop()
        if fn not in fns:
            fns[fn] = len(fns)
            waiting += [to for to, _ in fn.next_functions if to is not None]
    return [
        {
            "name": fn.name(),
            "seq": fn._sequence_nr() % 2**63,
            "next": [[fns.get(to, -1), k] for to, k in fn.next_functions],
            "shapes": [list(m.shape) for m in fn._input_metadata],
            "variable": names.get(id(getattr(fn, "variable", None)), ""),
        }
        for fn in fns
    ]


class Tensor:
    """A leaf that looks like PyTorch's: names and shapes, no numbers."""

    is_leaf = requires_grad = True
    grad = grad_fn = None
    retains_grad = is_sparse = False

    def __init__(self, name, shape):
        self.name, self.shape = name, tuple(shape)


Tensor.__module__ = "torch"


def nodes(rows):
    """The recorded nodes as objects; the first is the root."""
    made = []
    for row in rows:
        title = row["name"].rpartition("::")[2]
        fn = type(
            title,
            (),
            {
                "_sequence_nr": lambda self: self.seq,
                "name": lambda self: self.title,
                "next_functions": (),
            },
        )()
        fn.seq, fn.title = row["seq"], row["name"]
        fn._input_metadata = [
            SimpleNamespace(shape=tuple(s), dtype="torch.float32") for s in row["shapes"]
        ]
        if row["variable"]:
            fn.variable = Tensor(row["variable"], row["shapes"][0])
        made.append(fn)
    for fn, row in zip(made, rows, strict=True):
        fn.next_functions = tuple((made[to] if to >= 0 else None, k) for to, k in row["next"])
    return made


def main():
    import torch

    from tests.pytorch import models

    torch.manual_seed(0)
    idx = torch.randint(64, (2, 8))
    examples = {
        "mlp": (models.mlp(), [torch.randn(5, 8)]),
        "gpt": (models.GPT(layers=12), [idx, idx]),
    }
    recorded = {}
    for name, (model, args) in examples.items():
        names = {id(p): f"model.{n}" for n, p in model.named_parameters()}
        recorded[name] = written(model(*args).sum(), names)
    text = ",\n".join(json.dumps({k: v})[1:-1] for k, v in recorded.items())
    FILE.write_text("{" + text + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
