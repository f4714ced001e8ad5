"""The last line of an op's error: what to do, found from the shapes and what NumPy said."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any


def repair(args: Sequence[Any], attrs: dict[str, Any], cause: Exception) -> str:
    """How to repair a call whose kernel raised ``cause``; empty if nothing is known.

    >>> import numpy as np
    >>> repair([np.zeros((2, 3)), np.zeros(2)], {}, ValueError("could not be broadcast together"))
    'sizes are compared from the right and must be equal or 1; add an axis with expand_dims'
    """
    text = str(cause)
    shapes = [tuple(s) for a in args if (s := getattr(a, "shape", None)) is not None]
    if "must be an integer array" in text or re.search("from dtype.'float.*to dtype.'int", text):
        return "indices are integers: indices.astype(int)"
    if isinstance(cause, TypeError):
        for name in ("axis", "axes"):
            if isinstance(given := attrs.get(name), list):
                return f"{name}={tuple(given)}, a tuple"
        return "pass Tensors, arrays or numbers, and attrs of the type the docstring names"
    for needle, advice in _ADVICE:
        if needle in text:
            return advice(shapes, attrs)
    return ""


#: how other libraries call a keyword → how it is called here
_ELSEWHERE = {
    "dim": ("axis", "axes", "axis1"), "dims": ("axis", "axes"), "axes": ("axis",), "axis": ("axes", "axis1"),
    "keepdim": ("keepdims",), "dim0": ("axis1",), "dim1": ("axis2", "axis1"), "dim2": ("axis2",),
    "start_dim": ("start",), "end_dim": ("end",), "ddof": ("correction",), "unbiased": ("correction",),
    "repeats": ("repetitions",), "reps": ("repetitions",), "newshape": ("shape",), "size": ("shape",),
    "shifts": ("shift",), "a_min": ("min",), "a_max": ("max",), "p": ("ord",), "sizes": ("shape",),
    "input": ("x",), "other": ("y",), "a": ("x",), "b": ("y", "bias"), "weight": ("w",), "bias": ("b",),
    "padding": ("pad_width",),
    "index": ("indices",), "ksize": ("kernel_size",), "strides": ("stride",), "labels": ("target",),
    "diagonal": ("k", "offset"),
    "split_size_or_sections": ("num_or_sections",), "indices_or_sections": ("num_or_sections",), "logits": ("x",),
    # layers
    "in_features": ("inputs",), "input_size": ("inputs",), "out_features": ("outputs",), "hidden_size": ("hidden",),
    "in_channels": ("channels",), "out_channels": ("filters",), "num_features": ("channels",),
    "num_embeddings": ("words",), "embedding_dim": ("width",), "normalized_shape": ("width",), "embed_dim": ("width",),
    "num_heads": ("heads",), "rng": ("seed", "generator"), "random_state": ("seed", "generator"),
    # optimizers, schedules, data
    "params": ("parameters",), "learning_rate": ("lr", "rate"), "lr": ("rate",), "eps": ("epsilon",),
    "epsilon": ("eps",), "alpha": ("rho",), "T_max": ("steps",), "total_iters": ("steps",), "eta_min": ("end",),
    "gamma": ("factor",), "step_size": ("every",), "max_norm": ("limit",), "clip_value": ("limit",),
    "steps": ("num",), "dataset": ("data",), "test_size": ("held_back",),
    # derivatives and programs
    "func": ("function",), "vector": ("v",), "grad": ("requires_grad", "gradient"),
    "fetch": ("fetch_list",), "fetch_list": ("fetch",),
}  # fmt: skip

OWN_OPTIMIZER = "a subclass of optim.Optimizer with a step of its own"

#: keywords of other libraries that no function here has → what to do without
_INSTEAD = {
    "inplace": "leave it out: a layer makes a new Tensor",
    "device": "leave it out: all arrays are NumPy's",
    "batch_first": "leave it out: an LSTM takes [steps, batch, inputs], x.swapaxes(0, 1); attention the batch first",
    "num_layers": "one layer each; the outputs of the first go into the second",
    "bidirectional": "a second layer, which reads mg.flip(x, axis=0)",
    "betas": "beta1=0.9, beta2=0.999",
    "maximize": "make -loss small",
    "num_workers": "leave it out: batches are cut where they are used",
    "pin_memory": "leave it out: there are no devices",
    "label_smoothing": "probabilities as the target: (1 - e) * mg.eye(n)[labels] + e / n",
    "ignore_index": "leave these rows out: x[labels != k], labels[labels != k]",
    "start_dim": "a function: lambda x: x.flatten(start, end)",
    "requires_grad": "mg.tensor(values) is kept and not trained, nn.Parameter(values) is",
    "affine": "set layer.weight = layer.bias = None",
    "elementwise_affine": "set layer.weight = layer.bias = None",
    "track_running_stats": "mg.batch_norm(x, weight, bias): always the statistics of the batch",
    "padding_idx": "mg.where((words == k)[..., None], 0.0, layer(words)), for an array of words",
    "dropout": "nn.Dropout(p), on what comes out",
    "nonlinearity": "a subclass of nn.RNN with a step of its own",
    "attn_mask": "mask=~attn_mask: here true is where a place may look",
    "key_padding_mask": "mask=~key_padding_mask[:, None, None]: here true is where a place may look",
    "need_weights": "leave it out: what comes out is one Tensor",
    "padding_mode": "mg.pad(x, pad_width) makes borders of zeros",
    "ceil_mode": "mg.pad(x, pad_width) first",
    "approximate": "leave it out: it is exact",
    "beta": "smooth L1 is huber(x, y, delta=beta) / beta, and softplus(beta * x) / beta a steeper softplus",
    "weight": "losses = …(reduction='none'); for classes w = weight[labels], (losses * w).sum() / w.sum()",
    "pos_weight": "losses = …(reduction='none'), then (losses * mg.where(target > 0, weight, 1.0)).mean()",
    "dampening": OWN_OPTIMIZER,
    "amsgrad": OWN_OPTIMIZER,
    "centered": OWN_OPTIMIZER,
    "foreach": "leave it out: it changes no number",
    "fused": "leave it out: it changes no number",
    "set_to_none": "leave it out: gradients become None",
    "strict": "model.load_state_dict({**model.state_dict(), **state}) keeps what the state has not",
    "recurse": "leave it out: everything inside is found",
    "map_location": "leave it out: there are no devices",
    "weights_only": "leave it out: a file holds arrays, never objects",
    "use_reentrant": "leave it out: there is one kind",
    "vectorize": "leave it out: rows are made one by one",
    "fast_mode": "leave it out: every entry is compared",
    "sampler": "seed=…; orders of your own cut the arrays: images[order[:32]]",
    "generator": "seed=…, a whole number",
    "decay": "lr=optim.exponential(rate, factor), or weight_decay=…",
}


def instead(keyword: str) -> str:
    """What to do without a keyword of another library; empty if nothing is known.

    >>> instead("inplace")
    'leave it out: a layer makes a new Tensor'
    """
    return _INSTEAD.get(keyword, "")


def meant(name: str, known: Iterable[str]) -> str:
    """The keyword that somebody means who writes ``name``; empty if none is near.

    >>> meant("dim", ["x", "axis"]), meant("keepdim", ["keepdims"]), meant("colour", ["axis"])
    ('axis', 'keepdims', '')
    """
    names = list(known)
    elsewhere = [n for n in _ELSEWHERE.get(name, ()) if n in names]
    near = [] if name in _INSTEAD else difflib.get_close_matches(name, names, n=1)
    return next(iter(elsewhere or near), "")


def _axes(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"axes go from {-n} to {n - 1} here" if n else "a single number has no axes"


def _order(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    n = max(map(len, shapes), default=0)
    return f"name each of the {n} axes once; swapaxes(axis1, axis2) exchanges two"


def _product(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    size = 1
    for n in shapes[0] if shapes else ():
        size *= n
    return f"the sizes must multiply to {size}; one of them may be -1"


def _matmul(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return "a matrix product needs at least one axis on each side; a number scales with *"
    x, y = shapes[0], shapes[1]
    if len(x) > 2 and len(y) == 2 and prod(x[1:]) == y[0]:
        return f"all {y[0]} numbers of an example in one row: x.flatten(start=1), nn.Flatten()"
    return (
        f"the last axis of the first ({x[-1]}) must be as long as the rows of the second "
        f"({y[-2] if len(y) > 1 else y[0]}); perhaps one of them is meant transposed (x.mT)"
    )


def _broadcast(shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> str:
    return "sizes are compared from the right and must be equal or 1; add an axis with expand_dims"


def _says(sentence: str) -> Callable[..., str]:
    return lambda shapes, attrs: sentence


_ADVICE: list[tuple[str, Callable[..., str]]] = [
    ("matmul", _matmul),
    ("not aligned", _matmul),
    ("axes don't match", _order),
    ("out of bounds for array of dimension", _axes),
    ("out of range for", _axes),
    ("cannot reshape", _product),
    ("broadcast", _broadcast),
    ("out of bounds", _says("indices count from 0, or from -1 backwards")),
    ("zero-dimensional", _says("a single number has no axis to join along; use stack")),
    ("concatenat", _says("all sizes but that of the joined axis must be equal")),
    (
        "input arrays must have same number",
        _says("all need equally many axes; add one with expand_dims"),
    ),
    ("index", _says("one index per axis: numbers, slices, None, ..., integer arrays or a mask")),
    ("repeated axis", _says("name each axis once")),
    ("zero-size array", _says("only sum, prod, any and all are defined for no elements")),
    ("negative dimensions", _says("sizes and repetitions count from 0")),
    ("same shape", _says("bring all values to one shape first")),
    ("inhomogeneous", _says("rows of a list must be equally long")),
    (
        "Singular",
        _says("the matrix has no inverse; add a small multiple of eye(n), or use another method"),
    ),
    (
        "positive definite",
        _says("the matrix must be symmetric with positive eigenvalues; try x @ x.mT + eye(n)"),
    ),
    ("Integers to negative integer powers", _says("write the base as a float: 2.0 ** -1")),
    (
        "same number of dimensions",
        _says("indices have an axis for each axis of x; add one with expand_dims"),
    ),
    ("size not equal to one", _says("only axes of length 1 can be squeezed")),
    ("einstein", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
    ("operand", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
    ("subscript", _says("one letter per axis of each operand, as in 'ij,jk->ik'")),
]
