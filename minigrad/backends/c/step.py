"""``static.compile(program, backend="c")``: a step whose function is compiled C."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...compiler.memory import Memory, aligned_zeros, start_values, too_many_steps
from ...compiler.pipeline import explained
from ...compiler.schedule import Array, replace_arrays
from ...compiler.step import Step
from ...errors import ProgramError
from ...static.program.program import Program
from .build import load
from .nests import Place
from .text import Writer

SIZES = {"double": 8, "float": 4, "bool": 1}


class CStep(Step):
    """A program compiled as C; called like a `Step`, with the same feeds, results, parameters and errors."""

    def __init__(
        self, program: Program, fetch: Any, executor: Any, exact: bool, max_steps: int | None
    ) -> None:
        super().__init__(program, fetch, executor, exact)
        self.max_steps = max_steps

    def start_memory(self, program: Program, executor: Any) -> Memory:
        """Every parameter at a multiple of 64 bytes of one block, in the order of ``struct parameters``."""
        values = start_values(program, executor)
        begins = np.cumsum(
            [0, *(-(-max(v.nbytes, 1) // 64) * 64 for v in values.values())]
        ).tolist()
        block = aligned_zeros(max(begins[-1], 64), np.uint8)
        held = {}
        for (name, value), begin in zip(values.items(), begins, strict=False):
            held[name] = block[begin : begin + value.nbytes].view(value.dtype).reshape(value.shape)
            held[name][...] = value
        return Memory(held, {"": block}, [], {})

    def built(self, program: Program) -> Any:
        return BuiltC(program, self)


class BuiltC:
    """The C for one set of shapes: ``run``; ``fits`` tells whether feeds have them."""

    def __init__(self, program: Program, step: CStep) -> None:
        writer = Writer(program, step.fetch, step.parameters, step.exact, step.max_steps)
        self.text, self.names = writer.text(), writer.table
        self.function = load(self.text, step.exact)
        self.writer = writer
        self.begins, size = {}, 0
        for name, ctype, count, _ in writer.layout["s"]:
            self.begins[f"s->{name}"] = size
            size += count * _size(ctype)
        size += -size % 64
        self.memory = aligned_zeros(max(size, 64), np.uint8)
        self.parameters = step.memory.arrays[""]
        self.parameter_places = dict(zip(
            [f"p->{n}" for n, *_ in writer.layout["p"]], step.memory.parameters.values(), strict=True
        ))  # fmt: skip
        self.feeds = tuple(writer.schedule.feeds)
        self.fed = [self.array(writer.place(a)) for a in writer.schedule.feeds.values()]
        #: whether feeds are arrays of the shapes and dtypes that this is for
        self.fits = self.test([f"feed{k}" for k in range(len(self.fed))])
        self.results = [self.array(p) for p in writer.fetched]
        self.pointers = [ctypes.c_void_p(a.ctypes.data) for a in (self.parameters, self.memory)]

    def array(self, place: Place) -> Any:
        """What NumPy sees at a place."""
        if place.ref in self.parameter_places:
            base = self.parameter_places[place.ref]
        elif place.ref in self.begins:
            begin = self.begins[place.ref]
            base = self.memory[begin : begin + place.base.nbytes].view(place.base.dtype)
        else:
            return np.array(place.view)
        flat = np.ndarray((place.base.size,), place.base.dtype, base)
        where = flat[place.offset :] if place.view.size else flat
        return np.lib.stride_tricks.as_strided(where, place.view.shape, place.view.strides)

    def test(self, names: list[str]) -> Any:
        known = {f"{n}_shape": f.shape for n, f in zip(names, self.fed, strict=True)}
        known |= {f"{n}_dtype": f.dtype for n, f in zip(names, self.fed, strict=True)}
        tests = [
            f"type({n}) is array and {n}.shape == {n}_shape and {n}.dtype is {n}_dtype"
            for n in names
        ]
        return eval(
            f"lambda {', '.join(names)}: {' and '.join(tests) or True}",
            known | {"array": np.ndarray},
        )

    def run(self, *values: Any) -> list[Any]:
        """Run it once.  C changes parameters after everything that may fail, and no signal is seen in between."""
        for place, value in zip(self.fed, values):  # noqa: B905
            place[...] = value
        failed = self.function(*self.pointers)
        if failed:
            self.fail(failed)
        return [r.copy() for r in self.results]

    def fail(self, number: int) -> None:
        """Raise what NumPy's kernel raises with the values it failed with."""
        function, args, kwargs, op = self.writer.failures[number - 1]
        try:
            if function == "steps":
                too_many_steps(*args)
            args = replace_arrays(args, self.value)
            function(*args, **replace_arrays(kwargs, self.value))
        except Exception as error:
            raise explained(error, op) from error
        raise ProgramError(f"{op!r} failed\n  at {op.source_line}")

    def value(self, array: Array) -> Any:
        return self.array(self.writer.place(array))

    def explained(self, error: Exception) -> Exception:
        return error


def _size(ctype: str) -> int:
    return SIZES.get(ctype) or int("".join(c for c in ctype if c.isdigit())) // 8
