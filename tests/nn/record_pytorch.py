"""Record what PyTorch computes, as `pytorch_2_13.json`: layers with their gradients, ten steps of optimizers, schedules.

Run with a Python that has torch:  python tests/nn/record_pytorch.py
Everything is float64; weights are stored in minigrad's layout (a dense layer's is [inputs, outputs]).
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def numbers(x):
    return [round(v, 14) for v in x.reshape(-1).tolist()], list(x.shape)


def recorded(module, names, call, *inputs, **facts):
    """The state under our names, the result of ``call``, and the gradients of Σ result·cos(k)."""
    given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    state = {ours: numbers(read(module).detach()) for ours, read in names.items()}
    out = call(module, *given)
    (out * torch.cos(torch.arange(out.numel()).reshape(out.shape))).sum().backward()
    parameters = {n: p for n, p in module.named_parameters()}
    grads = {}
    for ours, read in names.items():
        of_grads = Grads(parameters)
        try:
            grads[ours] = numbers(read(of_grads))
        except AttributeError:
            continue  # a buffer
    buffers = {
        ours: numbers(read(module).detach()) for ours, read in names.items() if ours not in grads
    }
    return {
        "state": state, "inputs": [numbers(x) for x in inputs], "output": numbers(out.detach()), "grads": grads,
        "input_grads": [numbers(x.grad) for x in given if x.is_floating_point()], "buffers": buffers, **facts,
    }  # fmt: skip


class Grads:
    """A module's attributes, with gradients in place of parameters."""

    def __init__(self, parameters, path=""):
        self.parameters, self.path = parameters, path

    def __getattr__(self, name):
        path = f"{self.path}.{name}" if self.path else name
        if path in self.parameters:
            return self.parameters[path].grad
        if any(n.startswith(path + ".") for n in self.parameters):
            return Grads(self.parameters, path)
        raise AttributeError(name)


PLAIN = {"weight": lambda m: m.weight, "bias": lambda m: m.bias}
DENSE = {"weight": lambda m: m.weight.T, "bias": lambda m: m.bias}
RUNNING = {
    **PLAIN,
    "running_mean": lambda m: m.running_mean,
    "running_var": lambda m: m.running_var,
}


def shuffled(module):
    """A layer whose constants are no longer ones and zeros."""
    with torch.no_grad():
        for p in [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]:
            p.copy_(torch.rand_like(p) + 0.5)
    return module


def memory_names(both_biases):
    def bias(m):
        if isinstance(m, Grads):
            return m.bias_ih_l0
        extra = m.bias_hh_l0.clone()
        if both_biases:
            extra[2 * m.hidden_size :] = 0
        return m.bias_ih_l0 + extra

    names = {
        "weight_x": lambda m: m.weight_ih_l0.T,
        "weight_h": lambda m: m.weight_hh_l0.T,
        "bias": bias,
    }
    if both_biases:
        names["bias_n"] = lambda m: m.bias_hh_l0[-4:]
    return {f"{n}": f for n, f in names.items()}


def part(number, which):
    def read(m):
        width = 6
        rows = slice(number * width, (number + 1) * width)
        return m.in_proj_weight[rows].T if which == "weight" else m.in_proj_bias[rows]

    return read


ATTENTION = {
    **{f"{n}.{w}": part(k, w) for k, n in enumerate(("query", "key", "value")) for w in ("weight", "bias")},
    "out.weight": lambda m: m.out_proj.weight.T, "out.bias": lambda m: m.out_proj.bias,
}  # fmt: skip


def attend(**how):
    def call(m, q, k, v):
        return m(q, k, v, need_weights=False, **how)[0]

    return call


def draw(*shape):
    return torch.randn(*shape)


def layers():
    plain = lambda m, x: m(x)
    yield "Linear", recorded(nn.Linear(3, 2), DENSE, plain, draw(4, 3), args=[3, 2])
    for name, options in {
        "plain": {}, "stride and padding": {"stride": 2, "padding": 1}, "groups": {"groups": 2},
        "dilation": {"dilation": 2, "padding": [2, 1]}, "two strides": {"stride": [1, 2]},
    }.items():  # fmt: skip
        kinds = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        module = nn.Conv2d(2, 4, (3, 2), **kinds)
        yield (
            f"Conv2d, {name}",
            recorded(module, PLAIN, plain, draw(2, 2, 6, 5), args=[2, 4, [3, 2]], options=options),
        )
    for name, kind, shape in (("1d", nn.BatchNorm1d, (5, 3)), ("2d", nn.BatchNorm2d, (2, 3, 2, 2))):
        module = shuffled(kind(3, momentum=0.2))
        yield (
            f"BatchNorm, {name}",
            recorded(module, RUNNING, plain, draw(*shape), args=[3], options={"momentum": 0.2}),
        )
        module = shuffled(kind(3)).eval()
        yield (
            f"BatchNorm, {name}, in use",
            recorded(module, RUNNING, plain, draw(*shape), args=[3], use=True),
        )
    yield "LayerNorm", recorded(shuffled(nn.LayerNorm(4)), PLAIN, plain, draw(2, 3, 4), args=[4])
    yield (
        "LayerNorm, eps",
        recorded(
            shuffled(nn.LayerNorm(4, eps=0.1)),
            PLAIN,
            plain,
            draw(2, 4),
            args=[4],
            options={"eps": 0.1},
        ),
    )
    words = torch.tensor([[1, 4, 1], [0, 1, 2]])
    yield (
        "Embedding",
        recorded(nn.Embedding(5, 3), {"weight": lambda m: m.weight}, plain, words, args=[5, 3]),
    )
    for name, kind in (("RNN", nn.RNN), ("LSTM", nn.LSTM), ("GRU", nn.GRU)):
        yield (
            name,
            recorded(
                kind(3, 4),
                memory_names(name == "GRU"),
                lambda m, x: m(x)[0],
                draw(5, 2, 3),
                args=[3, 4],
            ),
        )
        if name != "LSTM":
            yield f"{name}, from a state", recorded(
                kind(3, 4), memory_names(name == "GRU"), lambda m, x, h: m(x, h[None])[0],
                draw(5, 2, 3), draw(2, 4), args=[3, 4],
            )  # fmt: skip
    qkv = draw(2, 4, 6), draw(2, 5, 6), draw(2, 5, 6)
    module = nn.MultiheadAttention(6, 3, batch_first=True)
    yield "MultiHeadAttention", recorded(module, ATTENTION, attend(), *qkv, args=[6, 3])
    seen = torch.rand(4, 5) > 0.3
    seen[:, 0] = True
    module = nn.MultiheadAttention(6, 2, batch_first=True)
    yield (
        "MultiHeadAttention, mask",
        recorded(
            module,
            ATTENTION,
            attend(attn_mask=~seen),
            *qkv,
            args=[6, 2],
            how={"mask": seen.tolist()},
        ),
    )
    module = nn.MultiheadAttention(6, 2, batch_first=True)
    late = torch.triu(torch.ones(4, 4, dtype=bool), 1)
    yield (
        "MultiHeadAttention, causal",
        recorded(
            module,
            ATTENTION,
            attend(attn_mask=late),
            *[draw(2, 4, 6)] * 3,
            args=[6, 2],
            how={"causal": True},
        ),
    )
    yield "MaxPool2d", recorded(nn.MaxPool2d(3, 2, 1), {}, plain, draw(2, 2, 6, 5), args=[3, 2, 1])


OPTIMIZERS = {
    "SGD": [
        {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.1, "weight_decay": 0.3}, {"lr": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 0.2},
    ],
    "Adam": [{}, {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4}, {"lr": 0.05, "weight_decay": 0.3}],
    "AdamW": [{}, {"lr": 0.05, "weight_decay": 0.3}, {"lr": 0.05, "beta1": 0.5, "beta2": 0.6, "weight_decay": 0.0}],
    "Adagrad": [{}, {"lr": 0.5, "epsilon": 1e-3}, {"lr": 0.5, "weight_decay": 0.2}],
    "RMSprop": [{}, {"lr": 0.05, "rho": 0.8, "epsilon": 1e-3}, {"lr": 0.05, "weight_decay": 0.2}],
}  # fmt: skip
START, AIM = [[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], [[0.5, 0.5, 0.5], [-1.0, 2.0, 4.0]]


def theirs(options):
    """Our names of options → PyTorch's."""
    known = dict(options)
    if "beta1" in known:
        known["betas"] = (known.pop("beta1"), known.pop("beta2"))
    if "epsilon" in known:
        known["eps"] = known.pop("epsilon")
    if "rho" in known:
        known["alpha"] = known.pop("rho")
    return known


def path(kind, options, clip=None, schedule=None):
    """The parameter after each of ten steps on Σ √(1 + (p - aim)²)."""
    p, aim = nn.Parameter(torch.tensor(START)), torch.tensor(AIM)
    optimizer = getattr(torch.optim, kind)([p], **theirs(options))
    rates = schedule(optimizer) if schedule else None
    places = []
    for _ in range(10):
        optimizer.zero_grad()
        (1 + (p - aim) ** 2).sqrt().sum().backward()
        if clip:
            clip([p])
        optimizer.step()
        if rates:
            rates.step()
        places.append(numbers(p.detach())[0])
    return places


def optimizers():
    for kind, many in OPTIMIZERS.items():
        for options in many:
            shown = {"lr": 0.001 if kind.startswith("Adam") else 0.01} | options
            if kind == "SGD" and "lr" not in options:
                continue
            yield {"kind": kind, "options": shown, "places": path(kind, shown)}


CLIPS = {
    "clip_by_value": (0.6, lambda ps: nn.utils.clip_grad_value_(ps, 0.6)),
    "clip_by_global_norm": (1.0, lambda ps: nn.utils.clip_grad_norm_(ps, 1.0)),
}
of = torch.optim.lr_scheduler
SCHEDULES = {
    "exponential": ([0.1, 0.8], lambda o: of.ExponentialLR(o, 0.8)),
    "step_decay": ([0.1, 3, 0.5], lambda o: of.StepLR(o, 3, 0.5)),
    "linear": ([0.1, 6, 0.02], lambda o: of.LinearLR(o, 1.0, 0.2, 6)),
    "cosine": ([0.1, 10, 0.01], lambda o: of.CosineAnnealingLR(o, 10, 0.01)),
}


LOSSES = [
    {}, {"weight": True}, {"ignore_index": 2}, {"label_smoothing": 0.2}, {"weight": True, "label_smoothing": 0.3},
    {"weight": True, "ignore_index": 2, "label_smoothing": 0.1}, {"weight": True, "probabilities": True},
    {"label_smoothing": 0.2, "probabilities": True},
]  # fmt: skip


def losses():
    """Cross entropy of [4, 5, 3] with classes on axis 1, and its gradient."""
    x, weight, labels = draw(4, 5, 3), torch.rand(5) + 0.1, torch.randint(0, 5, (4, 3))
    shares = torch.rand(4, 5, 3)
    facts = {
        "x": numbers(x),
        "weight": numbers(weight),
        "labels": labels.tolist(),
        "shares": numbers(shares),
    }
    cases = []
    for options in LOSSES:
        for reduction in ("mean", "sum", "none"):
            how = {n: v for n, v in options.items() if n != "probabilities"}
            how |= {"weight": weight} if "weight" in how else {}
            given = x.clone().requires_grad_()
            target = shares if options.get("probabilities") else labels
            loss = nn.functional.cross_entropy(given, target, reduction=reduction, **how)
            (loss * torch.cos(torch.arange(loss.numel()).reshape(loss.shape))).sum().backward()
            cases.append({"options": options, "reduction": reduction, "loss": numbers(loss.detach()), "grad": numbers(given.grad)})  # fmt: skip
    return {**facts, "cases": cases}


def recurrent():
    """Outputs and last states of two layers, one way and both, whose weights are a cosine of their places."""
    x = draw(4, 2, 3)
    for kind in ("RNN", "LSTM", "GRU"):
        for options in (
            {"num_layers": 2},
            {"bidirectional": True},
            {"num_layers": 2, "bidirectional": True},
        ):
            module = getattr(nn, kind)(3, 4, **options)
            with torch.no_grad():
                for name, p in module.named_parameters():
                    if name.startswith("bias"):
                        p.zero_()
                    else:
                        p.copy_(torch.cos(torch.arange(p.numel())).reshape(p.T.shape).T)
            out, last = module(x)
            states = [numbers(s.detach()) for s in (last if kind == "LSTM" else (last,))]
            yield {
                "kind": kind,
                "options": options,
                "x": numbers(x),
                "output": numbers(out.detach()),
                "states": states,
            }


SCHEDULERS = {
    "StepLR": [[3, 0.5]], "MultiStepLR": [[[2, 5, 6], 0.3]], "ExponentialLR": [[0.9]], "LinearLR": [[], [0.1, 0.9, 4]],
    "CosineAnnealingLR": [[6], [5, 0.01]],
}  # fmt: skip


def groups():
    """Two parameters in groups of their own, under every scheduler: rates and places of ten steps."""
    for kind, args in [(k, a) for k, many in SCHEDULERS.items() for a in many]:
        ps = [nn.Parameter(torch.tensor(row)) for row in START]
        optimizer = torch.optim.SGD(
            [{"params": ps[:1]}, {"params": ps[1:], "lr": 0.02, "weight_decay": 0.1}], lr=0.1
        )
        scheduler, steps = getattr(of, kind)(optimizer, *args), []
        for _ in range(10):
            optimizer.zero_grad()
            sum((1 + p**2).sqrt().sum() for p in ps).backward()
            optimizer.step()
            scheduler.step()
            steps.append([scheduler.get_last_lr(), [p.detach().tolist() for p in ps]])
        yield {"kind": kind, "args": args, "steps": steps}


def record():
    made = {
        "torch": torch.__version__,
        "layers": dict(layers()),
        "optimizers": list(optimizers()),
        "start": START,
        "aim": AIM,
        "clips": {
            n: {"limit": v, "places": path("SGD", {"lr": 0.1}, clip=c)}
            for n, (v, c) in CLIPS.items()
        },
        "schedules": {
            n: {"args": a, "places": path("SGD", {"lr": 0.1}, schedule=s)}
            for n, (a, s) in SCHEDULES.items()
        },
        "losses": losses(),
        "recurrent": list(recurrent()),
        "groups": list(groups()),
    }
    Path(__file__).with_name("pytorch_2_13.json").write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items()) + "\n}\n"
    )


if __name__ == "__main__":
    record()
