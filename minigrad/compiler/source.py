"""The schedule as source: one function of straight-line NumPy.

    def prepare(parameters, kernels, constants):      # runs once: names, buffers, views
        w = parameters['w']
        def step(x):                                  # runs every time
            ...
            return [loss]
        return step

Comments say which operator a call belongs to.
"""

from collections.abc import Iterable

import numpy as np

from ..grad_names import SCOPES
from ..primitives.arguments import Listed
from ..static.program.operator import Operator
from ..static.run.limits import STEP_LIMIT
from .memory import Buffer, aligned_zeros, plan, refusal, too_many_steps
from .schedule import Array, Branch, Call, Loop, Schedule
from .syntax import Identifiers, Line, Lines, clean, comment, indented, listed

_BY_NAME = (np.maximum, np.minimum)  # NumPy wants their ``out=`` by name
_USUAL = {"keepdims": False, "initial": None}  # what need not be said
#: identifiers that mean something else in the source
RESERVED = {
    "np", "parameters", "kernels", "constants", "prepare", "step", "fits", "reversed", "zip", "range", "slice", "list",
    "type", "results", "_",
}  # fmt: skip
CHANGE = "parameters change from here on; an error before leaves them as they were"


class Writer(Identifiers):
    """Turns one schedule into lines of source."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule, RESERVED)
        self.op: Operator | None = None
        self.fixed: set[Array] = set()  # Arrays whose memory is the same in every run

    def module(self) -> Lines:
        """The whole source."""
        for name, array in self.schedule.state.items():
            target = self.name(array)
            self.fixed.add(array)
            self.before.append(f"{target} = parameters[{target!r}]")
            self.table[target] = name
        for buffer in plan(self.schedule):
            self.buffer(buffer)
        feeds = [self.name(a) for a in self.schedule.feeds.values()]
        body = self.body(self.schedule.items)
        fits = self.fits(feeds)
        prepare = [
            *self.before,
            f"def step({', '.join(feeds)}):",
            *indented(body),
            f"def fits({', '.join(feeds)}):",
            *indented([f"return {fits}"]),
            "return step, fits",
        ]
        return ["def prepare(parameters, kernels, constants):", *indented(prepare)]

    def body(self, items: Listed) -> Lines:
        """The lines of a run.  Results are copied before parameters change: copying needs memory, and may fail."""
        changing = [c for c in items[-1:] if c.changed is not None and c.changed.fixed]
        lines = self.statements(items[: len(items) - len(changing)])
        values = [f"np.array({self.name(a)})" for a in self.schedule.fetched]  # of their own
        results = f"[{', '.join(values)}]"
        if not changing:
            return [*lines, f"return {results}"]
        change = [comment(CHANGE), *self.statements(changing)]
        return [*lines, f"results = {results}", *change, "return results"]

    def fits(self, feeds: Lines) -> str:
        """Whether feeds are contiguous arrays of the shapes and dtypes that this source is for."""
        tests = []
        for name, array in zip(feeds, self.schedule.feeds.values(), strict=True):
            dtype = array.dtype.name
            known = self.once(array.dtype, f"{dtype}_", f"np.dtype({dtype!r})")
            tests += [
                f"type({name}) is np.ndarray",
                f"{name}.shape == {self.value(array.shape)}",
                f"{name}.dtype is {known}",
                f"{name}.flags.c_contiguous",
            ]
        return " and ".join(tests) or "True"

    def buffer(self, buffer: Buffer) -> None:
        """Memory that is used again in every run."""
        targets: dict[str, str] = {}  # what the values are called → identifier
        for array in buffer.holds:
            wanted = clean(array.name or buffer.name)
            if wanted not in targets:
                targets[wanted] = self.name(array, buffer.name)
            self.identifiers[array] = targets[wanted]
            self.fixed.add(array)
        if len(targets) > 1:
            self.before.append(comment("one memory, used in turn"))
        like = buffer.like
        zeros = self.constant(aligned_zeros, "zeros")
        memory = f"{zeros}({self.value(like.shape)}, {like.dtype.name!r})"
        self.before.append(f"{' = '.join(targets.values())} = {memory}")
        if buffer.start:
            self.before.append(f"{next(iter(targets.values()))}.fill({buffer.start})")

    # -- calls -----------------------------------------------------------------------------

    def statements(self, items: Listed) -> Lines:
        """The lines of calls in order, each operator with its comment."""
        out: Lines = []
        silent = 0, ""  # where the last block of silenced calls ends, and how it begins
        for item in items:
            if self.hoisted(item):
                continue
            if item.op is not self.op and item.op is not None:
                self.op = item.op
                said = comment(comment_of(item.op))
                if said not in out[-6:]:
                    out.append(said)
            lines: Iterable[str] = getattr(self, type(item).__name__.lower())(item)
            if not lines:
                continue
            if item.ignores:
                ignored = ", ".join(f"{k}='ignore'" for k in item.ignores)
                head, lines = f"with np.errstate({ignored}):", indented(lines)
                if silent != (len(out), head):
                    out.append(Line.of(head, item.op))
                silent = len(out) + len(lines), head
            out += [Line.of(line, item.op) for line in lines]
        return out

    def hoisted(self, call: Call) -> bool:
        """Memory, and views of what stays, are made once, before the first run."""
        hoisted = call.kind == "view" and self.fixed.issuperset(call.reads())
        if hoisted:
            self.before += self.call(call)
            self.fixed.add(call.out)
        return hoisted or call.kind == "slab"

    def call(self, call: Call) -> Lines:
        """The lines of one call."""
        out = call.out
        place = call.into
        if place is None and isinstance(out, Array) and out in self.fixed:
            place = out
        if call.kind == "check":
            return self.check(call)
        if call.kind == "fill" and place is not None:
            value = call.args[1]
            return [] if value is None else [f"{self.name(place)}.fill({self.value(value)})"]
        if call.path == "[]=":
            x, index, value = call.args
            return [f"{self.value(x)}[{self.subscript(index)}] = {self.value(value)}"]
        called = self.called(call, place)
        if call.kind in ("write", "store") or (place is not None and call.kind == "compute"):
            return [called]
        targets = listed(map(self.name, out)) if isinstance(out, list) else self.name(out)
        return [f"{targets} = {called}"]

    def called(self, call: Call, place: Array | None) -> str:
        """The expression of one call, as one would write it: ``x[0]``, ``w.T``, ``np.add(x, y, out)``."""
        if call.kind == "opaque":
            return f"{self.constant(call.function, clean(call.path) + '_kernel')}({self.arguments(call)})"
        x, *more = call.args
        if call.kind == "fill":
            shape, value, dtype = map(self.value, call.args)
            if more[0] is None:
                return f"np.empty({shape}, {dtype})"
            return f"np.full({shape}, {value}, {dtype})"
        if call.path == "[]":
            return f"{self.value(x)}[{self.subscript(more[0])}]"
        if call.path == ".astype":
            return f"{self.value(x)}.astype({self.value(more[0])})"
        if call.function is np.transpose and not call.kwargs and all(a is None for a in more):
            return f"{self.value(x)}.T"
        path = "np.dot" if call.function is np.matmul and _is_plain_product(call) else call.path
        return f"{path}({self.arguments(call, place)})"

    def check(self, call: Call) -> Lines:
        """A condition without which the kernel raises: then it is called, and does."""
        condition, args, attrs = call.args
        refuse = refusal(call.function)
        failing = Call("opaque", refuse, args, None, attrs, path=call.path)
        name = self.constant(refuse, clean(f"{call.path}_refuses"))
        raises = f"{name}({self.arguments(failing)})"
        return [f"if not {self.value(condition)}:", *indented([raises])]

    def arguments(self, call: Call, place: Array | None = None) -> str:
        """The arguments of a call; numbers beside arrays become arrays made once."""
        args = [self.operand(call, a) for a in call.args]
        keywords = []
        for k, v in call.kwargs.items():
            if v is not _USUAL.get(k, ...):
                keywords.append(f"{k}={self.value(v)}")
        if place is not None:
            ufunc = isinstance(call.function, np.ufunc) and call.function not in _BY_NAME
            if (ufunc and not keywords) or call.function is np.dot:
                args.append(self.name(place))
            else:
                keywords.append(f"out={self.name(place)}")
        return ", ".join([*args, *keywords])

    def operand(self, call: Call, value) -> str:
        """An argument; a number beside arrays of one dtype is an array, which NumPy takes faster."""
        if type(value) not in (int, float) or not isinstance(call.function, np.ufunc):
            return self.value(value)
        dtype, *others = {a.dtype for a in call.args if isinstance(a, Array)}
        if others or not np.can_cast(np.min_scalar_type(value), dtype):
            return self.value(value)
        said = f"{value:g}".replace("-", "m").replace(".", "p")
        array = f"np.array({self.value(value)}, {dtype.name!r})"
        return self.once((repr(value), dtype), f"c{clean(said)}", array)

    # -- loops and branches ----------------------------------------------------------------

    def loop(self, item: Loop) -> Lines:
        """``while``, ``for`` over slices, ``for`` back over what the steps saved."""
        stacks = {stack: self.unique(f"{self.name(stack)}_steps") for _, stack in item.stacked}
        frames = "" if item.backward or item.frames is None else self.name(item.frames)
        lines = [f"{target} = []" for target in [frames, *stacks.values()] if target]
        lines += [f"{self.name(total)} = None" for _, total, _ in item.totals]
        starts, begins, nexts, finals = [*zip(*item.carried, strict=True)] or [()] * 4
        lines += self.assigned(begins, starts)
        body = []
        if item.go_on is not None:
            stop = f"if not np.all({self.name(item.go_on)}):"
            body = [*self.statements(item.test), stop, *indented(["break"])]
        body += self.statements(item.body)
        self.op = None
        for value, total, _ in item.totals:
            t = self.name(total)
            v = self.name(value)
            body.append(f"{t} = {v} if {t} is None else np.add({t}, {v})")
        for value, stack in item.stacked:
            body.append(f"{stacks[stack]}.append({self.name(value)})")
        if frames:
            body.append(f"{frames}.append(({listed(map(self.name, item.saved))}))")
        body += self.assigned(begins, nexts)
        lines += [self.header(item), *indented(body)]
        if item.go_on is not None:
            over = self.constant(too_many_steps, "too_many_steps")
            lines += ["else:", *indented([f"{over}({STEP_LIMIT})"])]
        lines += self.assigned(finals, begins)
        for _, total, like in item.totals:
            zeros = f"{self.name(total)} = np.zeros_like({self.name(like)})"
            lines += [f"if {self.name(total)} is None:", *indented([zeros])]
        for value, stack in item.stacked:
            lines.append(self.stacked(value, stack, stacks[stack], item.backward))
        return lines

    def header(self, item: Loop) -> str:
        """How a loop begins."""
        if item.go_on is not None:
            return f"for _ in range({STEP_LIMIT + 1}):"
        targets = []
        sources = []
        if item.backward:
            targets.append(self.unpacked(item.saved, item.frames.item.saved))
            sources.append(f"reversed({self.value(item.frames)})")
        for seq, local in item.slices:
            targets.append(self.name(local))
            sources.append(f"{self.name(seq)}[::-1]" if item.backward else self.name(seq))
        if len(targets) == 1:
            return f"for {targets[0]} in {sources[0]}:"
        return f"for {', '.join(targets)} in zip({', '.join(sources)}, strict=True):"

    def unpacked(self, pairs: Listed, saved: list[Array]) -> str:
        """The names that what a step saved has here."""
        here = {value: self.name(local) for value, local in pairs}
        names = [here.get(value, "_") for value in saved]
        return f"({listed(names)})" if pairs else "_"

    def stacked(self, value: Array, stack: Array, target: str, backward: bool) -> str:
        """The values of all steps as one array; none gives an empty one."""
        like = np.float64() if value.like is None else value.like
        order = f"{target}[::-1]" if backward else target
        empty = f"np.zeros({self.value((0, *like.shape))}, {like.dtype.name!r})"
        return f"{self.name(stack)} = np.stack({order}) if {target} else {empty}"

    def branch(self, item: Branch) -> Lines:
        """``if`` and ``else``; each side sets the results, and saves what backward reads."""
        lines = []
        for k, head in enumerate((f"if np.all({self.name(item.pred)}):", "else:")):
            body = []
            if item.backward and item.saved[k]:
                targets = self.unpacked(item.saved[k], item.frames.item.saved[k])
                body.append(f"{targets} = {self.value(item.frames)}")
            self.op = None
            body += self.statements(item.bodies[k])
            body += self.assigned([r[2] for r in item.results], [r[k] for r in item.results])
            if item.frames is not None and not item.backward:
                values = listed(map(self.name, item.saved[k]))
                body.append(f"{self.value(item.frames)} = ({values})")
            lines += [head, *indented(body)]
        self.op = None
        return lines

    def assigned(self, targets: Iterable[Array], values: Iterable[Array]) -> Lines:
        """``a, b = c, d``; nothing for nothing."""
        left = ", ".join(map(self.name, targets))
        right = ", ".join(map(self.value, values))
        return [f"{left} = {right}"] if left else []


def comment_of(op: Operator) -> str:
    """``h = mul(a, b)``, and for backward calls ``grad of: h = mul(a, b)``."""
    begin = ""
    if op.role == "backward" and op.forward_op is not None:
        begin, op = "grad of: ", op.forward_op
    args = [clean(n) for n in op.input_names[:60]]
    for k, v in op.attrs.items():
        sizes = isinstance(v, tuple) and len(v) < 5 and all(isinstance(e, int) for e in v)
        if sizes or isinstance(v, int | float):
            args.append(f"{k}={v!r}")
    outs = ", ".join(clean(n) for n in op.output_names if SCOPES not in n)
    return begin + f"{outs} = {op.type}({', '.join(args)})"[:120]


def _is_plain_product(call: Call) -> bool:
    """Two matrices of one dtype: ``np.dot`` gives the same bits as ``np.matmul`` with half the overhead."""
    place = call.out if call.into is None else call.into
    arrays = [*call.args, place]
    plain = all(isinstance(a, Array) and a.ndim == 2 and a.dtype == place.dtype for a in arrays)
    return plain and place.like.flags.c_contiguous and place.dtype.kind == "f"
