"""Keywords of other libraries: how they are called here, or what to do without."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .other_libraries import OWN_OPTIMIZER

#: how other libraries call a keyword → how it is called here
RENAMED = {
    "dim": ("axis", "axes", "axis1"),
    "dims": ("axis", "axes"),
    "axes": ("axis",),
    "axis": ("axes", "axis1"),
    "keepdim": ("keepdims",),
    "dim0": ("axis1",),
    "dim1": ("axis2", "axis1"),
    "dim2": ("axis2",),
    "start_dim": ("start",),
    "end_dim": ("end",),
    "ddof": ("correction",),
    "unbiased": ("correction",),
    "repeats": ("repetitions",),
    "reps": ("repetitions",),
    "newshape": ("shape",),
    "size": ("shape",),
    "shifts": ("shift",),
    "a_min": ("min",),
    "a_max": ("max",),
    "p": ("ord",),
    "sizes": ("shape",),
    "input": ("x",),
    "other": ("y",),
    "a": ("x",),
    "b": ("y", "bias"),
    "weight": ("w",),
    "bias": ("b",),
    "padding": ("pad_width",),
    "index": ("indices",),
    "ksize": ("kernel_size",),
    "strides": ("stride",),
    "labels": ("target",),
    "diagonal": ("k", "offset"),
    "split_size_or_sections": ("num_or_sections",),
    "indices_or_sections": ("num_or_sections",),
    "logits": ("x",),
    # layers
    "in_features": ("inputs",),
    "input_size": ("inputs",),
    "out_features": ("outputs",),
    "hidden_size": ("hidden",),
    "in_channels": ("channels",),
    "out_channels": ("filters",),
    "num_features": ("channels",),
    "num_embeddings": ("words",),
    "embedding_dim": ("width",),
    "normalized_shape": ("width",),
    "embed_dim": ("width",),
    "num_heads": ("heads",),
    "rng": ("seed", "generator"),
    "random_state": ("seed", "generator"),
    # optimizers, schedules, data
    "params": ("parameters",),
    "learning_rate": ("lr", "rate"),
    "lr": ("rate",),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "alpha": ("rho",),
    "T_max": ("steps",),
    "total_iters": ("steps",),
    "eta_min": ("end",),
    "gamma": ("factor",),
    "step_size": ("every",),
    "max_norm": ("limit",),
    "clip_value": ("limit",),
    "steps": ("num",),
    "dataset": ("data",),
    "test_size": ("held_back",),
    # derivatives and programs
    "func": ("function",),
    "vector": ("v",),
    "grad": ("requires_grad", "gradient"),
    "fetch": ("fetch_list",),
    "fetch_list": ("fetch",),
}

#: keywords of other libraries that no function here has → what to do without
INSTEAD = {
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
    "gelu approximate": "0.5 * x * (1 + mg.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))",
    "beta": "mg.huber(x, y, delta=beta) / beta",
    "softplus beta": "mg.softplus(beta * x) / beta",
    "softplus threshold": "leave it out: it is exact",
    "zeros_like dtype": "mg.zeros(x.shape, dtype=dtype)",
    "ones_like dtype": "mg.ones(x.shape, dtype=dtype)",
    "zeros_like shape": "mg.zeros(shape, dtype=x.dtype)",
    "ones_like shape": "mg.ones(shape, dtype=x.dtype)",
    "add alpha": "x + alpha * y",
    "sub alpha": "x - alpha * y",
    "Tensor.add_ alpha": "x.add_(alpha * y)",
    "Tensor.sub_ alpha": "x.sub_(alpha * y)",
    "div rounding_mode": "mg.floor_divide(x, y)",
    "round decimals": "mg.round(x * 10**decimals) / 10**decimals",
    "out": "the result itself, y = …; under mg.no_grad() also y.copy_(…)",
    "dtype": "….astype(dtype), of the result",
    "where": "mg.where(mask, result, other)",
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
    "lr_decay": "lr=lambda count: rate / (1 + count * decay)",
    "initial_accumulator_value": "for state in optimizer.state: state['moment'] += value, before the first step",
    "decay": "lr=optim.exponential(rate, factor), or weight_decay=…",
}


#: functions that are given fewer values elsewhere → what is meant
TOO_FEW = {
    "where": "np.nonzero(condition.data): the places where it holds",
    "dot": "x @ y: a product takes two values",
    "pow": "x ** 2.0",
    "clip": "mg.clip(x, min=0.0, max=1.0)",
}
#: functions that are given more values elsewhere → what is meant
TOO_MANY = {
    "maximum": "mg.maximum(mg.maximum(x, y), z)",
    "minimum": "mg.minimum(mg.minimum(x, y), z)",
    "add": "x + y + z, or mg.add_n([x, y, z])",
    "mul": "x * y * z",
    "matmul": "x @ y @ z",
    "logical_and": "x & y & z",
    "logical_or": "x | y | z",
}


def instead(keyword: str, function: str = "") -> str:
    """What to do without a keyword of another library, in this function; empty if nothing is known.

    >>> instead("inplace"), instead("beta", "softplus")
    ('leave it out: a layer makes a new Tensor', 'mg.softplus(beta * x) / beta')
    """
    return INSTEAD.get(f"{function} {keyword}", INSTEAD.get(keyword, ""))


def meant(name: str, known: Iterable[str]) -> str:
    """The keyword that somebody means who writes ``name``; empty if none is near.

    >>> meant("dim", ["x", "axis"]), meant("keepdim", ["keepdims"]), meant("colour", ["axis"])
    ('axis', 'keepdims', '')
    """
    names = list(known)
    renamed = [n for n in RENAMED.get(name, ()) if n in names]
    near = [] if name in INSTEAD else difflib.get_close_matches(name, names, n=1)
    return next(iter(renamed or near), "")
