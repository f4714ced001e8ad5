"""What somebody means who writes a name of another library: one line of advice each.  Keywords: `keywords`.

Names follow the array API; where another library says it differently, the error names the way it is written here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from . import told

_DEVICE = "leave it out: all arrays are NumPy's"
_CAST = "x.astype({0})"
_SMOOTH_L1 = "mg.huber(x, target), with beta mg.huber(x, target, delta=beta) / beta"

#: methods and attributes of Tensors and Variables
VALUES = {
    "view": "x.reshape(shape)", "view_as": "x.reshape(y.shape)", "resize": "x.reshape(shape)",
    "ravel": "x.flatten()", "t": "x.T", "H": "x.mT", "adjoint": "x.mT", "permute": "x.permute_dims(axes)",
    "swapdims": "x.swapaxes(axis1, axis2)", "movedim": "x.moveaxis(source, destination)",
    "unsqueeze": "x.expand_dims(axis)", "expand": "x.broadcast_to(shape)", "expand_as": "x.broadcast_to(y.shape)",
    "repeat": "x.tile(repetitions), or of each element mg.repeat(x, times)",
    "repeat_interleave": "mg.repeat(x, times, axis)", "dim": "x.ndim", "ndimension": "x.ndim", "numel": "x.size",
    "nelement": "x.size", "float": _CAST.format("np.float32"), "double": _CAST.format("float"),
    "half": _CAST.format("np.float16"), "long": _CAST.format("int"), "int": _CAST.format("int"),
    "bool": _CAST.format("bool"), "type": _CAST.format("dtype"), "type_as": _CAST.format("y.dtype"),
    "to": "x.astype(dtype); there are no devices", "cpu": _DEVICE, "cuda": _DEVICE, "device": _DEVICE,
    "is_cuda": _DEVICE, "contiguous": _DEVICE, "clamp": "x.clip(min, max)",
    "clamp_": "x.data = x.data.clip(min, max)", "copy": "x.clone()", "fill_": "x.copy_(value)",
    "rsqrt": "1 / x.sqrt()", "sigmoid_": "x.sigmoid()", "relu_": "x.relu()", "exp_": "x.exp()", "mm": "x @ y",
    "bmm": "x @ y", "mv": "x @ y", "addmm": "x + y @ z", "ger": "x.outer(y)", "eq": "x == y", "ne": "x != y",
    "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y", "masked_fill": "mg.where(mask, value, x)",
    "masked_fill_": "x[mask] = value", "masked_select": "x[mask]", "where": "mg.where(condition, x, y)",
    "gather": "x.take_along_axis(indices, axis)", "index_select": "x.take(indices, axis)",
    "scatter": "x.scatter_add(…), or x[indices] = y", "scatter_": "x[indices] = y",
    "scatter_add_": "x.scatter_add(…)", "chunk": "x.split(parts, axis)", "logical_not": "~x",
    "arccos": "x.acos()", "arcsin": "x.asin()", "arctan": "x.atan()", "arcsinh": "x.asinh()",
    "arccosh": "x.acosh()", "arctanh": "x.atanh()", "amax": "x.max(axis)", "amin": "x.min(axis)",
    "nonzero": "np.nonzero(x.data)", "new_zeros": "mg.zeros(shape, dtype=x.dtype)",
    "new_ones": "mg.ones(shape, dtype=x.dtype)", "new_tensor": "mg.tensor(values, dtype=x.dtype)",
    "lerp_": "x.copy_(x + weight * (y - x))", "addcmul_": "x.add_(value * y * z)", "addcdiv_": "x.add_(value * y / z)",
    "clip_": "x.data = x.data.clip(min, max)", "neg_": "x.mul_(-1)", "median": "np.median(x.data)",
    "normal_": "x.data = generator.normal(size=x.shape)", "uniform_": "x.data = generator.uniform(size=x.shape)",
    "at": "y = x.clone(); y[index] = value",
}  # fmt: skip

#: what Tensors have, and Variables of a Program have not
VARIABLES = {
    "backward": "static.append_backward(loss), then fetch the gradients",
    "grad": "static.append_backward(loss) returns (parameter, gradient) pairs; 'w@GRAD' can be fetched",
    "requires_grad": "static.parameter(…) makes what is trained; x.stop_gradient cuts",
    "requires_grad_": "static.parameter(…) makes what is trained; x.stop_gradient cuts",
    "detach": "x.stop_gradient = True", "grad_fn": "the operator that made it stands in print(program)",
    "tolist": "fetch it: executor.run(program, feed={…}, fetch_list=[x])",
    "data": "fetch it: executor.run(program, feed={…}, fetch_list=[x])",
}  # fmt: skip

#: functions and modules of the package
FUNCTIONS = {
    "manual_seed": "give seed=… or a generator where numbers are drawn; there is no hidden one",
    "randn": "mg.normal(…), or mg.tensor(generator.normal(size=shape))",
    "rand": "mg.uniform(…), or mg.tensor(generator.random(shape))",
    "randint": "generator.integers(low, high, shape)", "randperm": "generator.permutation(n)",
    "random": "mg.uniform(…), mg.normal(…)", "bernoulli": "generator.random(shape) < p",
    "multinomial": "generator.choice(n, p=probabilities)", "empty": "mg.zeros(shape)", "array": "mg.tensor(values)",
    "asarray": "mg.tensor(values)", "as_tensor": "mg.tensor(values)", "from_numpy": "mg.tensor(array)",
    "FloatTensor": "mg.tensor(values)", "LongTensor": "mg.tensor(values)", "is_tensor": "isinstance(x, mg.Tensor)",
    "numel": "x.size", "cat": "mg.concat(values, axis=…)", "concatenate": "mg.concat(values, axis=…)",
    "chunk": "mg.split(x, parts, axis)", "hstack": "mg.concat(values, axis=1)",
    "vstack": "mg.concat(values, axis=0)", "mm": "x @ y", "bmm": "x @ y", "mv": "x @ y",
    "repeat_interleave": "mg.repeat(x, times, axis)", "movedim": "mg.moveaxis(x, source, destination)",
    "clamp": "mg.clip(x, min=…, max=…)",
    "unsqueeze": "mg.expand_dims(x, axis)", "permute": "mg.permute_dims(x, axes)", "matrix_transpose": "x.mT",
    "gather": "mg.take_along_axis(x, indices, axis)",
    "index_select": "mg.take(x, indices, axis)", "scatter": "mg.scatter_add(…)",
    "masked_fill": "mg.where(mask, value, x)", "rsqrt": "1 / mg.sqrt(x)", "power": "mg.pow(x, y)",
    "true_divide": "mg.div(x, y)", "arctan": "mg.atan(x)", "arcsin": "mg.asin(x)", "arccos": "mg.acos(x)",
    "arcsinh": "mg.asinh(x)", "arccosh": "mg.acosh(x)", "arctanh": "mg.atanh(x)",
    "arctan2": "mg.atan2(y, x)", "absolute": "mg.abs(x)", "amax": "mg.max(x, axis)", "amin": "mg.min(x, axis)",
    "one_hot": "mg.eye(n)[indices]", "allclose": "np.allclose(x.data, y.data)",
    "swish": "mg.silu(x)", "mse_loss": "mg.mse(x, target)", "nll_loss": "mg.nll(x, target)",
    "smooth_l1_loss": _SMOOTH_L1,
    "l1_loss": "mg.abs(x - target).mean()", "float32": "np.float32",
    "float64": "np.float64", "float16": "np.float16", "int64": "np.int64", "int32": "np.int32", "long": "np.int64",
    "double": "np.float64", "bool": "np.bool_", "float": "np.float32", "half": "np.float16", "int": "np.int32",
    "Size": "tuple", "set_default_dtype": "dtype=np.float32 where values are made, or model.astype(np.float32)",
    "device": _DEVICE, "cuda": _DEVICE, "inference_mode": "mg.no_grad()",
    "autograd": "mg.grad, mg.Function, mg.gradcheck", "save": "nn.save(model, path)",
    "load": "model.load_state_dict(nn.load(path))", "compile": "static.compile(program)",
    "jit": "mg.trace(function, example), then static.compile(program)",
    "utils": "mg.data, mg.checkpoint, optim.clip_by_global_norm", "Parameter": "nn.Parameter(values)",
    "Module": "nn.Module", "Variable": "mg.tensor(values)", "set_detect_anomaly": "with mg.detect_anomaly(): …",
    "vmap": "functions take whole batches: arrays broadcast, and products are of stacks",
    "func": "mg.vjp, mg.jvp, mg.jacobian, mg.hessian, mg.hvp", "jacrev": "mg.jacobian(function, inputs)",
    "jacfwd": "mg.jacobian(function, inputs)", "full_like": "mg.full(x.shape, value, dtype=x.dtype)",
    "empty_like": "mg.zeros_like(x)", "rand_like": "mg.tensor(generator.random(x.shape))",
    "randn_like": "mg.tensor(generator.normal(size=x.shape))", "isclose": "np.isclose(x.data, y.data)",
    "nonzero": "np.nonzero(x.data)", "unique": "np.unique(x.data)", "bincount": "np.bincount(x.data)",
    "median": "np.median(x.data)", "meshgrid": "np.meshgrid(…)", "diag": "mg.diagonal(x), or mg.eye(n) * x",
    "addmm": "x + y @ z", "baddbmm": "x + y @ z", "addcmul": "x + value * y * z", "lerp": "x + weight * (y - x)",
    "linalg": "mg.norm, mg.solve, mg.inv, mg.det, mg.cholesky", "logit": "mg.log(x / (1 - x))",
    "hypot": "mg.sqrt(x * x + y * y)", "huber_loss": "mg.huber(x, target, delta)",
    "kl_div": "(target * (mg.log(target) - x)).mean()",
    "cosine_similarity": "(x * y).sum(axis) / (mg.norm(x, axis=axis) * mg.norm(y, axis=axis))",
    "scaled_dot_product_attention": "mg.softmax(q @ k.mT / width**0.5) @ v, or nn.MultiHeadAttention",
    "pi": "np.pi", "inf": "np.inf", "nan": "np.nan", "newaxis": "None", "get_default_dtype": "it is float, 64 bits",
    "numpy": "functions stand in the package: mg.sin, mg.sum", "value_and_grad": "y = function(x); mg.grad(y, x)",
    "lax": "Python's own if and while; in programs static.cond, static.while_loop, static.static_rnn",
    "custom_vjp": "mg.Function, or @mg.primitive with rules", "stop_gradient": "x.detach()", "device_put": _DEVICE,
    "GradientTape": "leave it out: requires_grad=True records; then mg.grad(y, x)", "constant": "mg.tensor(values)",
    "convert_to_tensor": "mg.tensor(values)", "to_tensor": "mg.tensor(values)", "cast": "x.astype(dtype)",
    "reduce_sum": "mg.sum(x, axis)", "reduce_mean": "mg.mean(x, axis)", "reduce_max": "mg.max(x, axis)",
    "reduce_min": "mg.min(x, axis)", "keras": "nn.Sequential, nn.Linear, optim.Adam",
}  # fmt: skip

#: layers and what is found beside them
LAYERS = {
    "functional": "functions stand in the package itself: mg.relu, mg.softmax, mg.cross_entropy",
    "ModuleList": "a plain list: what it holds is found", "ModuleDict": "a plain dict: what it holds is found",
    "ParameterList": "a plain list: what it holds is found",
    "ParameterDict": "a plain dict: what it holds is found",
    "CrossEntropyLoss": "the function mg.cross_entropy(x, target)", "MSELoss": "the function mg.mse(x, target)",
    "NLLLoss": "the function mg.nll(x, target)", "BCELoss": "the function mg.binary_cross_entropy(x, target)",
    "BCEWithLogitsLoss": "the function mg.binary_cross_entropy_with_logits(x, target)",
    "L1Loss": "mg.abs(x - target).mean()", "HuberLoss": "the function mg.huber(x, target)",
    "SmoothL1Loss": _SMOOTH_L1,
    "Conv1d": "the function mg.conv1d(x, w, b)",
    "BatchNorm1d": "nn.BatchNorm(channels)", "BatchNorm2d": "nn.BatchNorm(channels)", "Dropout2d": "nn.Dropout(p)",
    "MultiheadAttention": "nn.MultiHeadAttention", "Swish": "nn.SiLU()", "utils": "optim.clip_by_global_norm, …",
    "Upsample": "nn.ConvTranspose2d, or x.reshape, x.broadcast_to, x.reshape", "LSTMCell": "nn.LSTM(…).step",
    "GRUCell": "nn.GRU(…).step", "RNNCell": "nn.RNN(…).step", "Unflatten": "a function: lambda x: x.reshape(shape)",
    "AdaptiveAvgPool2d": "one number per channel is x.mean((2, 3)); else nn.AvgPool2d(kernel_size)",
    "PReLU": "mg.where(x > 0, x, slope * x), with slope = nn.Parameter(0.25)", "ReLU6": "x.clip(0, 6)",
    "Hardtanh": "x.clip(-1, 1)", "Mish": "x * mg.tanh(mg.softplus(x))",
    "EmbeddingBag": "nn.Embedding(words, width), then .sum(axis=1) or .mean(axis=1)",
    "GroupNorm": "mg.normalize(x.reshape(batch, groups, -1)), then x.reshape",
    "Bilinear": "mg.einsum('bi,oij,bj->bo', x, weight, y)", "KLDivLoss": "(target * (mg.log(target) - x)).mean()",
    "TransformerEncoderLayer": "a module of nn.MultiHeadAttention, nn.LayerNorm and nn.Linear",
    "DataParallel": _DEVICE, "Dense": "nn.Linear(inputs, outputs)", "Conv2D": "nn.Conv2d(channels, filters, size)",
    "BatchNormalization": "nn.BatchNorm(channels)", "LayerNormalization": "nn.LayerNorm(width)", "Layer": "nn.Module",
}  # fmt: skip

#: methods of modules
MODULES = {
    "children": "model.modules()", "named_children": "model.modules()", "named_modules": "model.modules()",
    "buffers": "model.named_tensors()", "named_buffers": "model.named_tensors()",
    "register_buffer": "self.name = mg.tensor(values)", "register_parameter": "self.name = nn.Parameter(values)",
    "add_module": "self.name = layer", "append": "model.layers.append(layer)",
    "extend": "model.layers.extend(layers)", "insert": "model.layers.insert(index, layer)",
    "apply": "for module in model.modules(): …", "to": "model.astype(dtype); there are no devices", "cpu": _DEVICE,
    "cuda": _DEVICE, "float": "model.astype(np.float32)", "double": "model.astype(float)",
    "half": "model.astype(np.float16)", "numel": "sum(p.size for p in model.parameters())",
    "register_forward_hook": "a subclass whose forward does more; tensor.register_hook sees gradients",
    "register_full_backward_hook": "tensor.register_hook(function), of a parameter or of what forward returns",
    "get_parameter": "dict(model.named_parameters())[path]",
    "get_submodule": "the attribute itself, as in model.layers[k]",
    "reset_parameters": "a new layer, with the seed it is to have",
    "num_batches_tracked": "momentum says how fast it forgets",
    "compile": "mg.trace(model, x), then static.compile(program)",
    "in_features": "layer.inputs", "out_features": "layer.outputs", "in_channels": "layer.channels",
    "out_channels": "layer.filters", "num_embeddings": "layer.words", "embedding_dim": "layer.width",
}  # fmt: skip

#: what programs are made with
PROGRAMS = {
    "placeholder": "static.data(name, shape)", "InputSpec": "static.data(name, shape)",
    "create_parameter": "static.parameter(name, values)", "Session": "static.Executor()",
    "default_main_program": "program = static.Program(), then with static.program_guard(program): …",
    "default_startup_program": "leave it out: parameters have their values from the start",
    "layers": "functions take Variables, too, as in mg.relu(x), and so do the layers of minigrad.nn",
    "nn": "functions take Variables, too, as in mg.relu(x), and so do the layers of minigrad.nn",
    "fc": "nn.Linear(inputs, outputs), called on a Variable", "CompiledProgram": "static.compile(program)",
    "scan": "static.static_rnn(…)", "fori_loop": "static.while_loop(…)", "case": "static.switch(…)",
    "save_inference_model": "program.to_json(), or static.export_onnx(program, path)",
}  # fmt: skip

OWN_OPTIMIZER = "a subclass of optim.Optimizer with a step of its own"
_NEAR = "{0} is the nearest here, or " + OWN_OPTIMIZER

#: optimizers and schedules
OPTIMIZERS = {
    "lr_scheduler": "lr=optim.cosine(…): a schedule in place of the number",
    "StepLR": "lr=optim.step_decay(rate, every, factor)", "ExponentialLR": "lr=optim.exponential(rate, factor)",
    "LinearLR": "lr=optim.linear(rate, steps, end)", "CosineAnnealingLR": "lr=optim.cosine(rate, steps, end)",
    "LambdaLR": "lr=lambda count: …, from the number of the step to the rate",
    "MultiStepLR": "lr=lambda count: …, from the number of the step to the rate",
    "OneCycleLR": "lr=optim.warmup(optim.cosine(rate, steps), first)",
    "ReduceLROnPlateau": "optimizer.lr = rate, between steps",
    "Adadelta": _NEAR.format("optim.RMSprop"),
    "NAdam": _NEAR.format("optim.Adam"), "RAdam": _NEAR.format("optim.Adam"), "Adamax": _NEAR.format("optim.Adam"),
    "Rprop": OWN_OPTIMIZER, "LBFGS": OWN_OPTIMIZER, "ASGD": OWN_OPTIMIZER, "Muon": OWN_OPTIMIZER,
    "Adafactor": OWN_OPTIMIZER,
    "clip_grad_value_": "optim.clip_by_value(…), given to the optimizer as clip=",
    "clip_grad_norm_": "optim.clip_by_global_norm(…), given to the optimizer as clip=",
}  # fmt: skip

#: attributes of optimizers
OPTIMIZER = {
    "param_groups": "optimizer.lr and optimizer.parameters; each group has an optimizer of its own",
    "add_param_group": "one optimizer for each group of parameters", "defaults": "optimizer.lr, optimizer.attrs",
}  # fmt: skip

#: what backward of a Function is handed
CONTEXT = {
    "mark_dirty": "leave it out: forward makes a new value, x + 1 in place of x.add_(1)",
    "saved_variables": "ctx.saved_tensors", "save_for_forward": "leave it out: mg.jvp uses backward",
}  # fmt: skip

#: first values of parameters
INIT = {
    "zeros_": "p.data = np.zeros(p.shape)", "ones_": "p.data = np.ones(p.shape)",
    "constant_": "p.data = np.full(p.shape, value)", "normal_": "p.data = generator.normal(mean, std, p.shape)",
    "uniform_": "p.data = generator.uniform(low, high, p.shape)",
    "xavier_uniform_": "b = (6 / (inputs + outputs)) ** 0.5; p.data = generator.uniform(-b, b, p.shape)",
    "xavier_normal_": "std = (2 / (inputs + outputs)) ** 0.5; p.data = generator.normal(0, std, p.shape)",
    "kaiming_uniform_": "b = (6 / inputs) ** 0.5, for relu; p.data = generator.uniform(-b, b, p.shape)",
    "kaiming_normal_": "std = (2 / inputs) ** 0.5, for relu; p.data = generator.normal(0, std, p.shape)",
    "eye_": "p.data = np.eye(*p.shape)", "orthogonal_": "p.data = np.linalg.qr(generator.normal(size=p.shape))[0]",
}  # fmt: skip

#: data
DATA = {
    "Dataset": "the arrays themselves: data.DataLoader((images, labels))",
    "TensorDataset": "the arrays themselves: data.DataLoader((images, labels))",
    "random_split": "data.split(data.Labelled(images, labels), held_back=0.2)",
    "Subset": "the rows of it: images[indices]",
    "Sampler": "data.DataLoader(…, seed=…); orders of your own cut the arrays: images[order[:32]]",
}  # fmt: skip


def advice(table: Mapping[str, str], name: str, home: str, known: Iterable[str]) -> str | None:
    """What a table says of a name; else the name of this module that is meant.

    >>> advice(FUNCTIONS, "cat", "mg", ["concat"]), advice(FUNCTIONS, "no_grads", "mg", ["no_grad"])
    ('mg.concat(values, axis=…)', 'mg.no_grad')
    >>> advice(FUNCTIONS, "__wrapped__", "mg", ["concat"])
    """
    if name in table or name[0] == "_":
        return table.get(name)
    spelt = {n.lower(): n for n in known}
    near = difflib.get_close_matches(name.lower(), list(spelt), n=1, cutoff=0.75)
    return f"{home}.{spelt[near[0]]}" if near else None


def missing(owner: str, name: str, advice: str | None, obj: Any = None) -> AttributeError:
    """The error for a name that an owner has not; with advice it says the user's line and the repair.

    >>> print(missing("a Tensor", "view", VALUES["view"]))
    a Tensor has no attribute 'view'
      at cell:1: print(missing("a Tensor", "view", VALUES["view"]))
      repair: x.reshape(shape)
    """
    text = f"{owner} has no attribute {name!r}"
    return AttributeError(told(text, advice) if advice else text, name=name, obj=obj)
