"""Random programs over every registered operator, from a seed, and what must hold for each of them.

Operators are appended by slots: lists name a value twice, results overwrite inputs.  A reader that knows nothing of
Programs runs the same operators on Tensors, one after the other, with an ordinary dictionary for the names; its
gradients are those of the eager engine.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import static
from minigrad.errors import ProgramError
from minigrad.explain.programs import explain
from minigrad.primitives.registry import REGISTRY
from minigrad.viz.adapters.of_program import of_program
from tests.opinfo import RECORDS
from tests.ops import (  # noqa: F401  (they fill the table)
    records_conv,
    records_elementwise,
    records_indexing,
    records_linalg,
    records_losses,
    records_move,
    records_pool,
    records_reduce,
    records_rows,
    records_shape,
    records_statistics,
)

SIZE = 3
TYPES = sorted(RECORDS)
LINEAR = ("sum", "scale", "assign", "add", "sub", "neg", "flip", "concat", "split", "stack")
DRAWN = 64  #: one program of so many is drawn, with all its copies
DIFFERENCED = 4  #: the gradients of one of so many are held against differences of its losses
REFUSED = ("overwrites it", "has two values")  #: what a program may be refused for


class Mismatch(AssertionError):
    """Two readings of one program differ."""


@dataclass
class Written:
    """A program without a backward part, and the names there are: vectors to go on with, and all others."""

    rng: random.Random
    program: Any = field(default_factory=static.Program)
    pool: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def block(self) -> Any:
        return self.program.global_block()

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def op(self, kind: str, inputs: dict[str, Any], out: str | None = None, **attrs: Any) -> str:
        out = out or self.name()
        self.block.append_op(kind, inputs, {"out": out}, attrs)
        return out


def write(seed: int, size: int = 8) -> Written:
    """The program of a seed; its last operator makes ``loss``."""
    rng = random.Random(seed)
    made = Written(rng)
    for k in range(rng.randint(1, 3)):
        start = [round(rng.uniform(-1.2, 1.2), 3) for _ in range(SIZE)]
        static_parameter(made, f"p{k}", start)
        made.pool.append(made.op("scale", {"x": f"p{k}"}, scale=rng.choice((1.0, -2.0, 0.5))))
    for k in range(rng.randint(1, size)):
        if rng.random() < 0.6:
            linear(made, rng.choice(LINEAR))
        elif rng.random() < 0.3:
            smooth(made)
        else:
            registered(made, TYPES[(seed * 5 + k * 59) % len(TYPES)])
    parts = rng.sample(made.pool, min(len(made.pool), rng.randint(1, 3)))
    made.op("mean", {"x": made.op("sum", {"x": parts})}, "loss")
    return made


def static_parameter(made: Written, name: str, start: list[float]) -> None:
    with static.program_guard(made.program):
        static.parameter(name, start)


def target(made: Written, inputs: list[str]) -> str:
    """The name of a result: a new one, or that of a vector that is there, of an input, too."""
    kind = made.rng.random()
    if kind < 0.35:
        return made.rng.choice(inputs)
    return made.rng.choice(made.pool) if kind < 0.45 else made.name()


def linear(made: Written, kind: str) -> None:
    """An operator whose gradient needs no values: it may overwrite what it reads."""
    rng, pool = made.rng, made.pool
    a, b = rng.choice(pool[-4:]), rng.choice(pool)
    if kind == "split":
        whole = made.op("concat", {"x": [a, b]})
        outs = [target(made, [a, b]), made.name()]
        if rng.random() < 0.3:
            outs.reverse()
        made.block.append_op("split", {"x": whole}, {"out": outs}, {"num_or_sections": 2})
        pool += [out for out in outs if out not in pool]
        return
    if kind in ("sum", "stack", "concat"):
        names = [rng.choice((a, b)) for _ in range(rng.randint(1, 3))]
        if kind == "sum":
            out = made.op("sum", {"x": names}, target(made, names))
        elif kind == "stack":
            out = made.op("reduce_sum", {"x": made.op("stack", {"x": names})}, axis=0)
        else:
            flat = made.op("concat", {"x": names})
            rows = made.op("reshape", {"x": flat}, shape=(len(names), SIZE))
            out = made.op("mean", {"x": rows}, axis=0)
    elif kind in ("add", "sub"):
        out = made.op(kind, {"x": a, "y": b}, target(made, [a, b]))
    else:
        attrs = {"scale": {"scale": rng.choice((3.0, -0.5))}}.get(kind, {})
        out = made.op(kind, {"x": a}, target(made, [a]), **attrs)
    if out not in pool:
        pool.append(out)


def smooth(made: Written) -> None:
    """An operator whose gradient needs values."""
    rng, pool = made.rng, made.pool
    a, b = rng.choice(pool[-4:]), rng.choice(pool)
    kind = rng.choice(("tanh", "mul", "sigmoid", "maximum"))
    inputs = {"x": a, "y": b} if kind in ("mul", "maximum") else {"x": a}
    out = target(made, [a]) if rng.random() < 0.2 else made.name()
    made.op(kind, inputs, out)
    if out not in pool:
        pool.append(out)


def registered(made: Written, kind: str) -> None:
    """A sample of a registered operator, near the sample's numbers; what it gives is added to a vector."""
    rng, primitive = made.rng, REGISTRY[kind]
    sample = rng.choice(RECORDS[kind].samples)
    args, attrs = primitive.bind(sample.args, sample.attrs)
    attrs = {k: v for k, v in attrs.items() if k not in primitive.attrs or v != primitive.attrs[k]}
    names: list[str | None] = [_input(made, a) for a in args]
    if primitive.list_input:
        place = len(primitive.inputs) - 1
        given = {s: n for s, n in zip(primitive.inputs[:place], names, strict=False) if n}
        listed = names[place:]
        if len(listed) > 1 and rng.random() < 0.5 and np.shape(args[-1]) == np.shape(args[-2]):
            listed[-1] = listed[-2]
        inputs: dict[str, Any] = {**given, primitive.list_input: listed}
    else:
        inputs = {s: n for s, n in zip(primitive.inputs, names, strict=True) if n}
    for slot, value, name in zip(primitive.inputs, args, names, strict=False):
        if name is None and value is not None:
            attrs[slot] = value
    outputs: dict[str, Any] = {s: made.name() for s in primitive.outputs}
    if primitive.list_output:
        results = primitive.kernel(*args, **{**primitive.attrs, **attrs})
        outputs = {primitive.outputs[0]: [made.name() for _ in results]}
    elif rng.random() < 0.3:
        alike = [n for n in names if n and _overwritable(made, n, args[names.index(n)], primitive)]
        if alike:
            outputs[primitive.outputs[0]] = rng.choice(alike)
    try:
        made.block.append_op(kind, inputs, outputs, attrs)
    except mg.errors.MinigradError:  # an output of another shape than the input it would overwrite
        return
    for slot_names in outputs.values():
        for name in [slot_names] if isinstance(slot_names, str) else slot_names:
            var = made.block.vars[name]
            if var.dtype == float and 0 not in var.shape:
                small = made.op("tanh", {"x": made.op("mean", {"x": name})})
                made.pool.append(made.op("add", {"x": rng.choice(made.pool), "y": small}))


def _overwritable(made: Written, name: str, value: Any, primitive: Any) -> bool:
    var = made.block.vars[name]
    return not var.persistable and isinstance(value, np.ndarray)


def _input(made: Written, value: Any) -> str | None:
    """The name of an input: float arrays move a little with a vector, others are constants, numbers stay attrs."""
    if not isinstance(value, np.ndarray):
        return None
    if value.dtype.kind != "f":
        return str(made.program.constant(value).name)
    constant = made.program.constant(value.astype(float)).name
    if not value.size or made.rng.random() < 0.2:
        return str(constant)
    near = made.op("mean", {"x": made.op("tanh", {"x": made.rng.choice(made.pool)})})
    return made.op("add", {"x": constant, "y": made.op("scale", {"x": near}, scale=0.01)})


# -- the naive reader ----------------------------------------------------------------------


def naive(program: Any, cut: set[str], retained: list[str]) -> dict[str, Any]:
    """All values by name, as Tensors; what is cut is detached wherever it is made, gradients are clipped as asked."""
    clips = program.error_clips
    values: dict[str, Any] = {}
    for name, start in program.initial.items():
        trainable = program.global_block().vars[name].trainable and name not in cut
        values[name] = _clipped(mg.tensor(start, requires_grad=trainable), clips.get(name))
    for op in program.global_block().ops:
        p = REGISTRY[op.type]
        args: list[Any] = []
        for slot in p.inputs:
            given = [values[n] for n in op.inputs.get(slot, [])]
            args += given if slot == p.list_input else given or [op.attrs.get(slot)]
        attrs = {k: v for k, v in op.attrs.items() if k in p.attrs}
        results = p.function(*args, **attrs)
        results = list(results) if isinstance(results, tuple | list) else [results]
        if p.list_output:
            results = [results]
        for slot, result in zip(p.outputs, results, strict=True):
            for name, value in zip(
                op.outputs.get(slot, []), result if p.list_output else [result], strict=True
            ):
                value = _asked(_tensor(value), name, cut, retained)
                values[name] = _clipped(value, clips.get(name))
    return values


def _tensor(value: Any) -> Any:
    return value if isinstance(value, mg.Tensor) else mg.tensor(value)


def _asked(value: Any, name: str, cut: set[str], retained: list[str]) -> Any:
    if name in cut:
        return value.detach()
    if name in retained:
        if not value.requires_grad:  # made of constants: asked for all the same
            return mg.tensor(value.numpy(), requires_grad=True)
        value.retain_grad()
    return value


def _clipped(value: Any, limits: tuple[float, float] | None) -> Any:
    if limits and value.requires_grad:
        value.register_hook(lambda g: g.clip(*limits))
    return value


def gradients_of(
    program: Any, targets: list[str], asked: list[str], cut: set[str]
) -> dict[str, np.ndarray | None]:
    """Name → gradient of the sum of all targets; None where none flows."""
    values = naive(program, cut, asked)
    wanting = [values[t].sum() for t in targets if values[t].requires_grad]
    if wanting:
        mg.add_n(*wanting).backward()
    found = {n: values[n].grad for n in asked}
    return {n: None if g is None else g.numpy() for n, g in found.items()}


# -- what must hold ------------------------------------------------------------------------


def check(seed: int, copied: bool = True) -> str:
    """Ask random questions about the program of a seed; returns "refused" if it may be.  Errors: `Mismatch`."""
    made = write(seed)
    rng, block = made.rng, made.block
    writes = Counter(n for op in block.ops for n in op.output_names)
    floats = [n for n in writes if block.vars[n].dtype == float]
    parameters = [v.name for v in made.program.parameters()]
    once = [n for n in floats if writes[n] == 1 and n != "loss"]
    cut = set(rng.sample(floats, min(len(floats), rng.choice((0, 0, 1, 2)))))
    cut |= {p for p in parameters if rng.random() < 0.1}
    marked = {n for n in cut if rng.random() < 0.5}
    for name in marked:
        block.vars[name].stop_gradient = True
    if rng.random() < 0.2:
        for name in rng.sample([*once, *parameters], 1):
            static.error_clip(block.vars[name], -rng.uniform(0.01, 0.5), rng.uniform(0.01, 0.5))
    asked = [*parameters, *rng.sample(once, min(len(once), 3))]
    rng.shuffle(asked)
    less = rng.sample(asked, rng.randint(1, len(asked)))
    targets = ["loss"]
    if once and rng.random() < 0.3:
        targets = rng.sample([*once, "loss"], min(len(once), 2))
    expected = gradients_of(made.program, targets, asked, cut)
    answers = []
    for names in (asked, less):
        prog = made.program.clone()
        try:
            answers.append((prog, _gradients(prog, targets, names, cut - marked)))
        except ProgramError as error:
            if not any(word in str(error) for word in REFUSED):
                raise
            continue
        prog, found = answers[-1]
        _agree(prog, {n: found[n] for n in names}, expected)
    if not answers:
        return "refused"
    prog, found = answers[0]
    drawn = seed % DRAWN == 0 and not marked  # what follows a mark looks as it did when it was made
    if copied:
        copies(prog, [g for g in found.values() if g], drawn)
    smooth_all = all(REGISTRY[op.type].rules for op in block.ops) and not made.program.error_clips
    if seed % DIFFERENCED == 0 and targets == ["loss"] and not cut and smooth_all:
        differences(prog, {n: g for n, g in found.items() if n in parameters}, rng)
    if len(answers) == 2 and targets == ["loss"] and "loss" not in cut:
        trained(made.program.clone(), parameters, expected, cut - marked)
    return "checked"


def differences(
    program: Any, gradients: dict[str, str | None], rng: random.Random, step: float = 1e-6
) -> None:
    """The slope of the loss along a random direction of the parameters, by two runs."""
    along = {p: np.array([rng.uniform(-1, 1) for _ in range(SIZE)]) for p in gradients}
    losses = []
    for sign in (1.0, -1.0):
        moved = program.clone()
        for name, direction in along.items():
            moved.initial[name] = moved.initial[name] + sign * step * direction
        losses.append(float(run(moved, ["loss"])[0]))
    slope = (losses[0] - losses[1]) / (2 * step)
    flowing = {p: g for p, g in gradients.items() if g is not None}
    values = run(program, list(flowing.values()))
    ours = sum(float((along[p] * v).sum()) for p, v in zip(flowing, values, strict=True))
    if np.isfinite(slope) and not abs(slope - ours) <= 1e-4 * max(1.0, abs(slope)):
        raise Mismatch(f"slope {ours}, by differences {slope}")


def _gradients(
    program: Any, targets: list[str], names: list[str], no_grad: set[str]
) -> dict[str, str | None]:
    var = program.global_block().var
    found = static.gradients(
        [var(t) for t in targets], [var(n) for n in names], no_grad_set=sorted(no_grad)
    )
    return {n: None if g is None else g.name for n, g in zip(names, found, strict=True)}


def _agree(
    program: Any, found: dict[str, str | None], expected: dict[str, np.ndarray | None]
) -> None:
    names = [n for n, g in found.items() if g is not None]
    for name, gradient in found.items():
        if (gradient is None) != (expected[name] is None):
            raise Mismatch(f"{name}: {gradient} in the program, {expected[name]} by hand")
    values = run(program, [str(found[n]) for n in names])
    for name, value in zip(names, values, strict=True):
        if not np.allclose(value, expected[name], rtol=1e-9, atol=1e-11, equal_nan=True):
            raise Mismatch(f"{name}: {value} in the program, {expected[name]} by hand")


def run(program: Any, names: list[str]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return list(static.Executor().run(program, fetch_list=names)) if names else []


def trained(
    program: Any, parameters: list[str], expected: dict[str, np.ndarray | None], no_grad: set[str]
) -> None:
    """append_backward gives pairs for the parameters that have a gradient, and a penalty is part of the loss."""
    loss = program.global_block().var("loss")
    pairs = static.append_backward(loss, no_grad_set=sorted(no_grad))
    _agree(program, dict.fromkeys(parameters) | {p.name: g.name for p, g in pairs}, expected)
    if not pairs or any(op.type == "dropout" for op in program.global_block().ops):
        return
    with static.program_guard(program):
        penalised = loss + (pairs[0][1] * pairs[0][1]).mean()
    (before,) = run(program, [penalised.name])
    (after,) = run(program.clone(for_test=True), [penalised.name])
    same(before, after, "the penalised loss, for test")


def copies(program: Any, names: list[str], drawn: bool) -> None:
    """A copy answers `why`, runs and draws as the program does."""
    variables = [
        n for n, v in program.global_block().vars.items() if not v.name.startswith("const")
    ]
    variables = variables[:: 1 + len(variables) // 12]
    answers, values = whys(program, variables), run(program, names)
    parsed = static.parse(str(program))
    parsed.initial.update(program.initial)
    every = {
        "clone": program.clone(),
        "JSON": static.Program.from_json(program.to_json()),
        "text": parsed,
    }
    for kind, copy in every.items():
        if wrong := set(whys(copy, variables).items()) ^ set(answers.items()):
            raise Mismatch(f"why, {kind}: {wrong}")
        if str(copy) != str(program):
            raise Mismatch(f"{kind}: another text")
        for a, b in zip(values, run(copy, names), strict=True):
            same(a, b, kind)
        if drawn and links(program, copy, kind) and shown(copy) != shown(program):
            raise Mismatch(f"{kind}: another picture")
    if names:
        pruned = program.prune(names)
        for a, b in zip(values, run(pruned, names), strict=True):
            same(a, b, "prune")
        for name in variables:
            variable = pruned.global_block().vars.get(name)
            if variable is None:
                continue
            was = explain(program.global_block().vars[name])
            if was.gradient in names and explain(variable).gradient != was.gradient:
                raise Mismatch(f"why after prune: {explain(variable)}, before: {was}")


def links(program: Any, copy: Any, kind: str) -> bool:
    """Whether grad ops and gradients stand beside what they do in the program; a text may leave some alone."""
    twins = twins_of(copy)
    left_alone = 0
    for what, twin in twins_of(program).items():
        if twins[what] != twin:
            left_alone += 1
            if kind != "text" or twins[what] is not None:
                raise Mismatch(f"{kind}: {what} is drawn beside {twins[what]}, not {twin}")
    return not left_alone


def twins_of(program: Any) -> dict[Any, Any]:
    """What each grad op, and each version of a gradient, stands beside in the whole picture."""
    graph = of_program(program)
    count: Counter[str] = Counter()
    place = {}
    for node in graph.nodes.values():
        count[node.name] += 1
        place[node.id] = node.data.get("place", (node.name, count[node.name]))
    backward = [n for n in graph.nodes.values() if n.side == "backward"]
    return {place[n.id]: place.get(n.twin) for n in backward}


def shown(program: Any) -> list[str]:
    """What a picture says of every node and arrow; where they stand depends on the order of declarations."""
    return sorted(re.findall(r"<title>(.*?)</title>", mg.draw(program).svg, re.DOTALL))


def whys(program: Any, names: list[str]) -> dict[str, str]:
    block = program.global_block()
    return {n: str(explain(block.vars[n])) for n in names}


def same(a: np.ndarray, b: np.ndarray, what: str) -> None:
    if np.asarray(a).tobytes() != np.asarray(b).tobytes():
        raise Mismatch(f"{what}: {a} and {b}")
