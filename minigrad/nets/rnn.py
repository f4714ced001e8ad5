"""RnnOp: run a step net once per element of a sequence, each step in a scope of its own.

The scopes of the steps are kept, since a parent cannot know what the backward steps will need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import did_you_mean, wrong
from ..grad_names import EMPTY, GRAD, SCOPES
from .operators import NetOp, Operator, Scope, names, places, read, write


class RnnOp(Operator):
    """A step net over time.

    ``sequences``   name in the step → the sequence whose elements (first axis) it takes
    ``memories``    name at the start of a step → (name at its end, name of the first value)
    ``outputs``     name in the step → name of all its values, stacked
    ``last``        name at the end of a step → name of its last value

    What else the step net reads is shared by all steps.
    Errors: `ProgramError` for names the step net does not have; at the run for sequences of
    different lengths.

    >>> step = NetOp([Operator("add", {"x": "h_pre", "y": "x"}, {"out": "h"})], "step")
    >>> scope = Scope({"xs": np.array([1.0, 2.0, 3.0]), "h0": 0.0})
    >>> RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"}).run(scope)
    >>> scope["hs"], float(scope["hT"])
    (array([1., 3., 6.]), 6.0)
    """

    def __init__(
        self,
        stepnet: NetOp,
        sequences: Mapping[str, str],
        memories: Mapping[str, tuple[str, str]],
        outputs: Mapping[str, str],
        last: Mapping[str, str] | None = None,
    ) -> None:
        self._begin("rnn")
        stepnet = stepnet if isinstance(stepnet, NetOp) else NetOp([stepnet], "step")
        self.stepnet = stepnet
        self.sequences, self.stacked, self.last = dict(sequences), dict(outputs), dict(last or {})
        self.starts = {pre: start for pre, (_, start) in memories.items()}
        self.memories = tuple((pre, now) for pre, (now, _) in memories.items())
        reads = stepnet.inputs["x"]
        writes = [n for _, op in places(stepnet) for n in names(op.outputs)]
        nows = [now for _, now in self.memories]
        self._check("reads", (*self.sequences, *self.starts), reads)
        self._check("writes", (*nows, *self.stacked), writes)
        self._check("carries on", self.last, nows)
        if not self.sequences:
            what = "an RnnOp needs a sequence: its length is the number of steps"
            raise wrong(what, 'sequences={"x": "xs"}: x in a step, xs outside')
        shared = [n for n in reads if n not in self.sequences and n not in self.starts]
        outside = [*self.sequences.values()], [*self.starts.values()], shared
        self.inputs = dict(zip(("x", "start", "shared"), outside, strict=True))
        out, ends = [*self.stacked.values()], [*self.last.values()]
        self.outputs = {"out": out, "last": ends, "scopes": [(out + ends + ["rnn"])[0] + SCOPES]}

    def _check(self, verb: str, wanted: Any, known: list[str]) -> None:
        for name in wanted:
            if name not in known:
                hint = did_you_mean(name, known)
                raise wrong(f"the step net {self.stepnet.type!r} never {verb} {name!r}{hint}")

    def run(self, scope: Any) -> None:
        """Run the step net once per element; keep every step's scope."""
        sequences = [read(scope, name, self) for name in self.inputs["x"]]
        lengths = dict(zip(self.inputs["x"], map(len, sequences), strict=True))
        if len({*lengths.values()}) > 1:
            what = f"sequences of an RnnOp must be equally long, not {lengths}"
            raise wrong(what, "cut or fill them up to one length")
        state = {pre: read(scope, start, self) for pre, start in self.starts.items()}
        empty = {now: np.shape(state[pre]) for pre, now in self.memories}
        steps = []
        for elements in zip(*sequences, strict=True):
            own = dict(zip(self.sequences, elements, strict=True))
            step = Scope({**own, **state}, parent=scope)
            self.stepnet.run(step)
            state = {pre: step[now] for pre, now in self.memories}
            steps.append(step)
        for inner, outer in self.stacked.items():
            none = np.zeros((0, *empty.get(inner, ())))
            write(scope, outer, np.stack([step[inner] for step in steps]) if steps else none)
        for pre, now in self.memories:
            if now in self.last:
                write(scope, self.last[now], state[pre])
        write(scope, self.outputs["scopes"][0], steps)

    @property
    def carried(self) -> list[str]:
        """Names of a step whose gradients come from outside it: outputs and ends of memories."""
        return list(dict.fromkeys([*self.stacked, *(now for _, now in self.memories)]))


class RnnGradOp(Operator):
    """Run the backward step net in the scopes of the steps, last step first.

    Gradients of memories go from step to step; those of shared names are summed over the steps.
    ``seeds``: name in the step → name under which its gradient is given to the backward step net.

    >>> from minigrad.nets import Backward
    >>> step = NetOp([Operator("add", {"x": "h_pre", "y": "x"}, {"out": "h"})], "step")
    >>> rnn = RnnOp(step, {"x": "xs"}, {"h_pre": ("h", "h0")}, {"h": "hs"}, {"h": "hT"})
    >>> Backward(rnn).outputs["start_grad"]
    ['h0@GRAD']
    """

    def __init__(self, rnn: RnnOp, stepnet: NetOp, seeds: Mapping[str, str]) -> None:
        self._begin("rnn_grad")
        self.at(rnn)
        self.rnn, self.stepnet, self.seeds = rnn, stepnet, dict(seeds)
        self.forward_op, self.memories = rnn, rnn.memories
        self.inputs = {slot: list(rnn.inputs[slot]) for slot in ("x", "start", "shared")}
        self.inputs["scopes"] = list(rnn.outputs["scopes"])
        for slot in ("out", "last"):
            self.inputs[slot + "_grad"] = [name + GRAD for name in rnn.outputs[slot]]
        written = {n for _, op in places(stepnet) for n in names(op.outputs)}
        given = {**rnn.sequences, **{name: name for name in rnn.inputs["shared"]}}
        made = {n: v + GRAD if n + GRAD in written else EMPTY for n, v in given.items()}
        self.outputs = {
            "x_grad": [made[n] for n in rnn.sequences],
            "start_grad": [v + GRAD for v in rnn.inputs["start"]],
            "shared_grad": [made[n] for n in rnn.inputs["shared"]],
        }

    def run(self, scope: Any) -> None:
        """Walk the steps backwards."""
        rnn, steps = self.rnn, read(scope, self.inputs["scopes"][0], self)

        def values(slot: str) -> list[Any]:
            return [read(scope, name, self) for name in self.inputs[slot]]

        from_outside = dict(zip(rnn.stacked, values("out_grad"), strict=True))
        ends = dict(zip(rnn.last, values("last_grad"), strict=True))
        state = dict(zip(rnn.starts, map(_zeros, values("start")), strict=True))
        state = {pre: ends.pop(now, state[pre]) for pre, now in rnn.memories}  # each end once
        total = dict(zip(rnn.inputs["shared"], map(_zeros, values("shared")), strict=True))
        elements = dict(zip(rnn.sequences, map(_zeros, values("x")), strict=True))
        for t in reversed(range(len(steps))):
            step = steps[t]
            for name, seed in self.seeds.items():
                parts = [state[pre] for pre, now in rnn.memories if now == name]
                parts += [from_outside[name][t]] if name in from_outside else []
                write(step, seed, sum(parts[1:], start=parts[0]))
            self.stepnet.run(step)
            state = {pre: step.get(pre + GRAD, _zeros(step[pre])) for pre in state}
            total = {name: v + step.get(name + GRAD, 0.0) for name, v in total.items()}
            for name, rows in elements.items():
                rows[t] = step.get(name + GRAD, 0.0)
        for slot, values_of in (("x", elements), ("start", state), ("shared", total)):
            for name, v in zip(self.outputs[slot + "_grad"], values_of.values(), strict=True):
                write(scope, name, v)


def _zeros(value: Any) -> Any:
    return np.zeros(np.shape(value), np.result_type(value, np.float16))
