"""Wrong calls of every public function and method, made from their signatures; each seed is one of them.

What must come back is one of the package's errors, with the name of the function, the way it is called and the line
of the caller; where it asks "did you mean …?", the call with that name in its place must fit.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import data, nn, optim, static
from minigrad.errors import MinigradError
from minigrad.errors.other_libraries import TABLES

SPACES = {"mg": mg, "nn": nn, "optim": optim, "static": static, "data": data}
#: what runs what it is given, writes files, or takes any call
LEFT_OUT = {
    "nn.save",
    "nn.load",
    "static.export_onnx",
    "mg.play",
    "mg.draw",
    "mg.watch",
    "LSTM.step",
    "data.progress",
}
#: decorators: without a function they wait for one
DECORATORS = {"mg.primitive", "mg.elementwise"}
VALUES: list[Callable[[], Any]] = [
    lambda: mg.tensor([[1.0, 2.0], [3.0, 4.0]]),
    lambda: mg.tensor([1.0, 2.0], requires_grad=True),
    lambda: mg.tensor(2.0),
    lambda: np.ones((2, 3)),
    lambda: np.array([1, 0]),
    lambda: np.array("text"),
    lambda: 2.0,
    lambda: -1,
    lambda: True,
    lambda: 2j,
    lambda: float("nan"),
    lambda: None,
    lambda: "text",
    lambda: b"bytes",
    lambda: [1.0, [2.0]],
    lambda: (),
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: object(),
    lambda: int,
    lambda: lambda *args: args[0] if args else None,
    lambda: slice(None),
    lambda: ...,
]


class Callee:
    """A public function, or a method with what it is a method of; and its parameters."""

    def __init__(self, title: str, function: Any, owner: Any = None) -> None:
        self.title, self.function, self.owner = title, function, owner
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        row = vars(function).get("primitive") if inspect.isfunction(function) else None
        if row is not None:
            self.names, self.starred = [*row.inputs, *row.attrs], bool(row.list_input)
        else:
            self.names = [p.name for p in parameters if "VAR" not in p.kind.name]
            self.starred = any("VAR" in p.kind.name for p in parameters)
        positional = [p for p in parameters if "POSITIONAL" in p.kind.name]
        self.most = len(self.names) if row is not None else len(positional)
        self.required = [
            p.name for p in parameters if p.default is p.empty and "VAR" not in p.kind.name
        ]
        self.named_only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)


@functools.cache
def callees() -> list[Callee]:
    """Every public function, constructor and method, in a fixed order."""
    found: dict[int, Callee] = {}
    for space, module in SPACES.items():
        for name in sorted(module.__all__):
            value, title = getattr(module, name), f"{space}.{name}"
            if not callable(value) or title in LEFT_OUT:
                continue
            if inspect.isclass(value):
                if not issubclass(value, Exception | tuple | mg.Function):
                    found.setdefault(id(value), Callee(title, value))
            else:
                found.setdefault(id(value), Callee(title, value))
    for owner in owners():
        for name in sorted(dir(type(owner))):
            static_value = inspect.getattr_static(type(owner), name)
            if name[0] == "_" or name == "forward" or not callable(static_value):
                continue
            method = getattr(owner, name)
            key = id(getattr(method, "__func__", method))
            left_out = f"{type(owner).__name__}.{name}" in LEFT_OUT
            if inspect.ismethod(method) and key not in found and not left_out:
                function = method.__func__
                if function.__qualname__.startswith("_variadic"):
                    continue  # it hands on to the function, which is looked at
                found[key] = Callee(f"{type(owner).__name__}.{name}", method, owner)
    return list(found.values())


def owners() -> Iterator[Any]:
    """One object of each class whose methods are called."""
    yield mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    program = static.Program()
    with static.program_guard(program):
        yield static.data("x", [2, 2])
    yield program
    yield program.global_block()
    yield static.Executor()
    yield static.Executor().scope
    yield nn.Sequential(nn.Linear(2, 2))
    yield nn.LSTM(2, 2)
    yield optim.Adam([mg.tensor([1.0], requires_grad=True)], lr=0.1)
    yield data.Alphabet("abc")


def misspelt(name: str, rng: random.Random) -> str:
    """The name with one slip of the finger."""
    k = rng.randrange(len(name))
    slips = [name[:k] + name[k] + name[k:], name[:k] + name[k + 1 :], name + "s", name.upper()]
    if len(name) > k + 1:
        slips.append(name[:k] + name[k + 1] + name[k] + name[k + 2 :])
    return rng.choice([s for s in slips if s.isidentifier()] or [name + "_"])


WAYS = (
    "nothing", "one too few", "one too many", "many too many", "unknown keyword", "only an unknown keyword",
    "misspelt keyword", "only a misspelt keyword", "keyword of another library", "all misspelt",
    "unknown beside good", "two unknown", "empty name", "one wrong value", "all wrong values", "all the same value",
    "values swapped", "wrong value by name", "None for all", "a list of everything",
)  # fmt: skip


def wrong_call(callee: Callee, way: str, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """The values and keywords of a wrong call; some fit after all, and may be answered by a result."""
    any_value = lambda: rng.choice(VALUES)()
    good = [any_value() for _ in callee.names if _ not in callee.named_only]
    few = good[: max(len([n for n in callee.required if n not in callee.named_only]), 0)]
    name = rng.choice(callee.names) if callee.names else "x"
    foreign = [
        k
        for k, v in TABLES["keywords"].items()
        if {*v.split(", ")} & {*callee.names} and k not in callee.names
    ]
    return {
        "nothing": lambda: ([], {}),
        "one too few": lambda: (few[:-1], {}),
        "one too many": lambda: ([*good[: callee.most], *[1.0] * (callee.most + 1 - len(good))], {}),
        "many too many": lambda: ([1.0] * (callee.most + 5), {}),
        "unknown keyword": lambda: (few, {"no_such_keyword": 1}),
        "only an unknown keyword": lambda: ([], {"no_such_keyword": 1}),
        "misspelt keyword": lambda: (few, {misspelt(name, rng): any_value()}),
        "only a misspelt keyword": lambda: ([], {misspelt(name, rng): any_value()}),
        "keyword of another library": lambda: (few, {rng.choice(foreign or [*TABLES["keywords to leave out"]]).split()[-1]: any_value()}),
        "all misspelt": lambda: ([], {misspelt(n, rng): any_value() for n in callee.names}),
        "unknown beside good": lambda: (good, {"colour": None}),
        "two unknown": lambda: (few, {"colour": 1, "taste": 2}),
        "empty name": lambda: (few, {"": 1}),
        "one wrong value": lambda: ([*few[:-1], any_value()] if few else [], {}),
        "all wrong values": lambda: (good, {}),
        "all the same value": lambda: ([any_value()] * len(good), {}),
        "values swapped": lambda: (few[::-1], {}),
        "wrong value by name": lambda: (few, {name: any_value()} if name not in callee.required else {}),
        "None for all": lambda: ([None] * len(few), {}),
        "a list of everything": lambda: ([[v() for v in VALUES]] * len(few), {}),
    }[way]()  # fmt: skip


def is_misfit(callee: Callee, args: list[Any], keywords: dict[str, Any]) -> bool:
    """Whether the call fits no signature, whatever the values are."""
    if callee.starred:
        return False
    names = callee.names
    if len(args) > callee.most or any(k not in names for k in keywords):
        return True
    given = {*names[: len(args)], *keywords}
    return any(n not in given for n in callee.required)


def check_call(callee: Callee, args: list[Any], keywords: dict[str, Any]) -> None:
    """Make the call.  Errors: `AssertionError` where another answer comes back than must."""
    here = f"{callee.title}({len(args)} values, {', '.join(map(repr, keywords))})"
    twice = {*callee.names[: len(args)]} & {*keywords}
    mode = mg.is_grad_enabled()
    try:
        callee(*args, **keywords)
    except MinigradError as error:
        text = str(error)
    except Exception as error:
        if twice and "multiple values" in str(error):
            return  # Python's own words are plain enough, and looking for it would cost each call
        raise AssertionError(f"{here}: {type(error).__name__}: {error}") from error
    else:
        assert not is_misfit(callee, args, keywords), f"{here} was accepted"
        return
    finally:
        mg.set_grad_enabled(mode)
    if not is_misfit(callee, args, keywords) or twice:
        return
    if text.startswith("there is no program to build in"):
        return  # that comes first, whatever the values are
    assert "\n  it is called as " in text, f"{here} does not say how it is called: {text}"
    assert "\n  at wrong_calls.py:" in text, f"{here} has no line of the user: {text}"
    if "did you mean" in text:
        meant = text.partition("did you mean '")[2].partition("'")[0]
        assert meant in callee.names, f"{here}: {text}"


def check(seed: int) -> None:
    """One wrong call: seeds go through all functions, each in another way, and so through all ways."""
    every = callees()
    rng = random.Random(seed)
    again, which = divmod(seed, len(every))
    callee, way = every[which], WAYS[(which + again) % len(WAYS)]
    if callee.title in DECORATORS:
        return
    args, keywords = wrong_call(callee, way, rng)
    with np.errstate(all="ignore"):
        check_call(callee, args, keywords)
