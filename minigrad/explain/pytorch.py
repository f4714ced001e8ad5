"""why, for PyTorch: where the gradient of its Tensor came from, or exactly why there is none.

Its nodes are wrapped so that `paths` reads them as this package's own.  They are called one by one,
without the engine: no hook runs, no ``.grad`` changes, nothing is freed.  What a graph cannot tell, because it
never held it, is looked for among the caller's variables and in the caller's code.
"""

import ast
import functools
import sys
from contextlib import suppress
from typing import Any

from ..errors import DTypeError, describe, refusal
from ..viz.adapters.names import caller_variables
from ..viz.adapters.of_grad_fn import walk_order
from ..viz.adapters.torch_facts import (
    inputs_of,
    is_hooked,
    kept_grad,
    kind_of,
    of_kind,
    saved_names,
    saved_values,
    storage,
    tensor_names,
    title,
)
from .paths import (
    USE,
    Explanation,
    Explanations,
    Note,
    Start,
    advice,
    because,
    count_paths,
    difference,
    flows,
    size_of,
    traced,
    uses,
)
from .source_cuts import Cut, code_around, code_of, cuts


class TorchNode:
    """A node of PyTorch, read as a `Node` of this package; ``pull`` runs it and no hook."""

    several = True  # even if it has one output

    def __init__(self, fn, seq: int) -> None:
        self.fn = fn
        self.seq = seq
        self.next_functions: tuple[tuple[TorchNode | None, int], ...] = ()
        self.specs = [None] * len(fn._input_metadata)

    def name(self) -> str:
        """``MulBackward0``."""
        return title(self.fn)

    @property
    def saved(self) -> dict[str, Any]:
        """What it keeps, by name."""
        return saved_values(self.fn)

    @property
    def slots(self) -> list[str]:
        """The names of its inputs."""
        return inputs_of(self.fn, len(self.next_functions))

    def pull(self, g) -> list[Any]:
        """The gradients of its inputs, with the shapes and dtypes of these."""
        run = self.fn.apply if hasattr(self.fn, "_forward_cls") else self.fn
        with sys.modules["torch"].no_grad():
            gave = run(*g)
            gave = gave if isinstance(gave, tuple) else (gave,)
            return [*map(_fitting, gave, self.next_functions)]


def _fitting(gradient, to: tuple[TorchNode | None, int]) -> Any:
    """A gradient as the engine hands it on: summed over broadcast axes, in the dtype of the value."""
    node, number = to
    if gradient is None or node is None:
        return gradient
    metadata = node.fn._input_metadata[number]
    if not gradient.is_sparse:
        gradient = gradient.sum_to_size(tuple(metadata.shape))
    return gradient.to(metadata.dtype)


class TorchGraph:
    """The graph below an output."""

    def __init__(self, output, end: str) -> None:
        # of a leaf, its AccumulateGrad
        root = output.grad_fn or output.view_as(output).grad_fn.next_functions[0][0]
        self.nodes = {fn: TorchNode(fn, -k) for k, fn in enumerate(walk_order([root]))}
        for fn, node in self.nodes.items():
            node.next_functions = tuple((self.nodes.get(to), k) for to, k in fn.next_functions)
        self.output = output
        self.end = end
        self.root = self.nodes[root]
        self.all = [*self.nodes.values()]
        self.leaves = {id(fn.variable): fn for fn in self.nodes if hasattr(fn, "variable")}

    def place(self, x) -> tuple[TorchNode, int] | None:
        """Where the gradient of a tensor arrives; None if it is not in the graph."""
        fn = x.grad_fn or self.leaves.get(id(x))
        return (self.nodes[fn], x.output_nr) if fn in self.nodes else None

    @functools.cached_property
    def start(self) -> Start:
        """Where backward begins, and with what."""
        seed = sys.modules["torch"].ones_like(self.output.detach())
        return {(self.root, self.output.output_nr): seed}

    @functools.cached_property
    def flown(self) -> Any:
        """One backward for all leaves at once."""
        return flows(self.start, self.all, {(n, 0) for n in self.all if not n.next_functions})

    @functools.cached_property
    def state(self) -> tuple[str, Any, str]:
        """What keeps it from running: ("stale", the node, its saved value), "hooked", "freed", "shared"; or ""."""
        if any(map(is_hooked, self.nodes)):
            return "hooked", None, ""
        freed = whole = None  # the first node that is
        for fn, node in self.nodes.items():
            own = hasattr(fn, "_forward_cls")  # a Function of the user's
            for name in ["saved_tensors"] if own else saved_names(fn):
                try:
                    value = getattr(fn, name if own else f"_saved_{name}")
                except RuntimeError as error:
                    if "second time" not in str(error):  # what freed ones say
                        return "stale", node, name
                    freed = freed or node
                else:
                    if kind_of(value) == "tensor":
                        whole = whole or node
        if freed is None:
            return "", None, ""
        shared = whole and whole.seq > freed.seq  # what backward runs first is whole
        return "shared" if shared else "freed", freed, ""


def why_torch(x, output, frame) -> Any:
    """The explanation of a Tensor of PyTorch; of the parameters of a Module or an optimizer, one by one.

    ``output`` is what backward starts from, or a function without arguments that computes it; else the
    newest one is taken among the variables of ``frame`` that depends on ``x``.
    """
    case = Case(_frame_of(output, frame))
    if callable(output) and kind_of(output) != "tensor":
        with sys.modules["torch"].random.fork_rng(devices=[]):
            output = output()
    if output is not None and kind_of(output) != "tensor":
        what = f"the output to explain from is a Tensor of PyTorch, not {describe(output)}"
        raise refusal(what, "mg.why(w, loss)", DTypeError)
    if kind_of(x) == "tensor":
        return case.explain(x, output)
    if kind_of(x) == "optimizer":
        return Explanations(case.explain(p, output) for g in x.param_groups for p in g["params"])
    prefix = next((f"{n}." for n, m in case.modules.items() if m is x), "")
    return Explanations(case.explain(p, output, prefix + n) for n, p in x.named_parameters())


def _frame_of(output, frame) -> Any:
    """The frame, or that of a caller, whose code assigns the output: a function may be handed it."""
    at = None if output is None else frame
    while at is not None:
        names = [n for n, v in at.f_locals.items() if v is output]
        if names and any(map(code_around(at).assigned, names)):
            return at
        at = at.f_back
    return frame


class Case:
    """What can be looked at: the caller's variables and code, and the graphs that were read already."""

    def __init__(self, frame) -> None:
        self.code = code_around(frame)
        self.variables = caller_variables(frame)
        self.tensors = tensor_names(self.variables)
        self.optimizers = of_kind(self.variables, "optimizer")
        self.modules = of_kind(self.variables, "module")
        self.graphs: dict[Any, TorchGraph] = {}

    def explain(self, x, output, name: str = "") -> Explanation:
        """The explanation of one tensor; where ``.grad`` is there without a reason to be, that comes first."""
        name = name or self.name(x) or "it"
        if not (x.is_floating_point() or x.is_complex()):
            return because(name, "of_integers", dtype=x.dtype)
        told = self._explained(x, output, name)
        if not told.reason or not x.is_leaf or x.grad is None:
            return told
        left = f"(an earlier backward left it there: now {told.reason})"
        return Explanation(name, x.grad).remark(left, told.repair)

    def _explained(self, x, output, name: str) -> Explanation:
        if not x.requires_grad:
            return self._without_graph(x, name)
        output = self._output(x) if output is None else output
        if output is None:
            return self._alone(x, name)
        if not output.requires_grad:
            end = self.name(output) or "the output"
            told = self._without_graph(output, end)
            return because(
                name, "end_without_graph", end=end, reason=told.reason, repair=told.repair
            )
        graph = self.graph(output)
        if place := graph.place(x):
            return self._on_path(x, name, graph, place)
        checkpointed = [n.fn for n in graph.all if "CheckpointFunction" in n.name()]
        if checkpointed and x.is_leaf and x.grad is not None:
            held = "(checkpoint(…, use_reentrant=True) holds its paths: they are made in backward)"
            return Explanation(name, x.grad).remark(held)
        inside = [getattr(fn, "run_function", None) for fn in checkpointed]
        if any(p is x for f in inside for p in getattr(f, "parameters", list)()):
            return self._without_grad(x, name, graph)  # its paths are made in backward
        return self._off_path(x, name, graph)

    def name(self, x) -> str:
        """What a tensor is called: its path in a module of the caller's, or a variable there."""
        names = [n for n, t in self.tensors.items() if t is x]
        paths = [n for n in names if n.partition(".")[0] in self.modules]
        return min(paths or names, key=lambda n: n.count(".") + n.count("["), default="")

    def graph(self, output) -> TorchGraph:
        """The graph below an output, read once."""
        if output not in self.graphs:
            self.graphs[output] = TorchGraph(output, self.name(output) or "the output")
        return self.graphs[output]

    def _ends(self, *but) -> list[tuple[str, Any]]:
        """The tensors with a graph, newest first; those of one number before others."""
        others = {*map(id, but)}
        ends = [(n, t) for n, t in self.tensors.items() if t.grad_fn and id(t) not in others]
        ends.sort(key=lambda e: (e[1].numel() == 1, e[1].grad_fn._sequence_nr()), reverse=True)
        return ends[:50]

    def _output(self, x) -> Any:
        """The newest single number among the variables, first of those that depend on ``x``."""
        ends = [t for _, t in self._ends(x)]
        ends = [t for t in ends if t.numel() == 1] or ends
        return next((t for t in ends if self.graph(t).place(x)), ends[0] if ends else None)

    # a tensor without a graph

    def _without_graph(self, x, name: str) -> Explanation:
        """Why a tensor does not require a gradient."""
        if x.is_inference():
            return because(name, "inference_mode")
        if isinstance(x, sys.modules["torch"].nn.Parameter):
            line = "".join(f" ({self.code.line(n)})" for n in self._asked(False)[:1])
            return because(name, "frozen", line=line)
        for other, t in self.tensors.items():
            if t.requires_grad and storage(x) and storage(t) == storage(x):
                return because(name, "shares", other=other)
        statements = self.code.assigned(name)
        if muted := [s for s in statements if s.muted]:
            last = muted[-1]
            block = last.muted.removeprefix("with ")
            return because(name, "muted", block=block, line=self.code.line(last.value))
        if late := self._late(name):
            return because(name, "late", line=late)
        starts = {n.split(".")[0].split("[")[0] for n, t in self.tensors.items() if t.requires_grad}
        for cut in self._cuts(starts | {*self.modules}, name):
            return because(name, "cut", line=cut.line, what=cut.what, advice=cut.repair)
        if statements:
            return because(name, "of_constants", line=self.code.line(statements[-1].value))
        return because(name, "asked_for_none")

    def _late(self, end: str) -> str:
        """The line that set requires_grad, if that was only after an output had been computed."""
        asked = self._asked(True)
        last = max((n.lineno for n in self.code.assignments(end)), default=float("inf"))
        return self.code.line(asked[0]) if asked and min(n.lineno for n in asked) > last else ""

    def _asked(self, wanted: bool) -> list[Any]:
        """Where the caller's code sets requires_grad so; a call without an argument asks for it."""
        found = [*self.code.calls("requires_grad_"), *self.code.assignments("requires_grad")]
        return [n for n in found if ("False" in ast.unparse(n)) != wanted]

    def _cuts(self, starts: set[str], end: str, path: str = "") -> list[Cut]:
        """Where the caller's code, and what it calls, cut the ways from some names to an end."""
        return cuts(self.code, starts - {end}, [end] if end in self.variables else None, path)

    # a tensor that the output does not depend on

    def _off_path(self, x, name: str, graph: TorchGraph) -> Explanation:
        end = graph.end
        off = functools.partial(because, name, end=end)
        if self.graph(x).place(graph.output):
            return off("turned")
        root = max((m for m in self.modules if name.startswith(f"{m}.")), key=len, default=name)
        path = name.removeprefix(root).lstrip(".")
        if found := self._cuts({root}, end, path):
            text = "; ".join(f"{c.what} at {c.line}" for c in found[:3])
            return off("off_path_cut", cuts=text, advice=found[0].repair)
        if twin := self._twin(x, graph):
            return off("off_path_twin", relation=twin[0], other=twin[1])
        if late := self._late(end):
            return off("off_path_late", line=late)
        if unused := self._unused(self.modules.get(root), path):
            return off("off_path_unused", module=unused[0], part=unused[1])
        for other, t in self._ends(x, graph.output):
            if self.graph(t).place(x):
                return off("off_path_elsewhere", other=other)
        return off("off_path")

    def _twin(self, x, graph: TorchGraph) -> tuple[str, str] | None:
        """(what is the same, name) of a leaf in the graph that could be mistaken for this tensor."""
        for n, t in self.tensors.items():
            if id(t) not in graph.leaves or (t.shape, t.dtype) != (x.shape, x.dtype):
                continue
            if storage(x) and storage(t) == storage(x):
                return "it shares its memory with", n
            if t.numel() > 1 and bool((t == x).all()):
                return "its numbers are a copy of", n
        return None

    def _unused(self, module, path: str) -> tuple[str, str] | None:
        """(class, attribute) of the module of the user's that never mentions what holds a parameter."""
        for part in path.split("."):
            defined = [d for cls in type(module).__mro__ for d in vars(cls).items()]
            codes = [code_of(getattr(f, "fget", f), {}) for n, f in defined if n != "__init__"]
            text = "\n".join(ast.unparse(s) for c in codes if c for s in c.body)
            # f(self) may use any part, and so may super(Net, self)
            if text and not any(w in text for w in (part, "getattr", "children", "self,", "self)")):
                return type(module).__name__, part
            module = getattr(module, part, None)
        return None

    # a tensor that the output depends on

    def _on_path(self, x, name: str, graph: TorchGraph, place) -> Explanation:
        state, node, saved = graph.state
        grad = kept_grad(x)
        if state in ("stale", "shared"):
            told = because(name, state, end=graph.end, node=node.name(), saved=saved)
            if grad is None:
                return told
            failed = f"(its paths cannot be run again: {told.reason})"
            return Explanation(name, grad).remark(failed, told.repair if state == "shared" else "")
        told = Explanation(name)
        with suppress(RuntimeError, TypeError):  # of a node that does not run alone
            if not state:
                told = self._run(name, graph, place)
        if told.reason:
            return told
        if grad is None:
            missing = self._without_grad(x, name, graph)
            told.reason, told.repair = missing.reason, told.repair or missing.repair
            return told
        if told.total is None:
            told = Explanation(name, grad, uses([graph.root], graph.all, place), kind=USE)
            told.remark(*self._suspects(grad, graph, place))
        else:
            told.remark(*difference(grad, told.total, self._hook(x, name, graph)))
        return told.remark(self._not_updated(x))

    def _run(self, name: str, graph: TorchGraph, place) -> Explanation:
        """The paths with what each brings, and what is wrong with their sum."""
        flown = None if place[0].next_functions else graph.flown
        told = traced(name, graph.start, graph.all, place, (graph.end, graph.output), flown)
        if told.total is None:
            counts = count_paths(graph.all, place)
            own = [n for n in counts if hasattr(n.fn, "_forward_cls") and n.seq and counts[n]]
            if any("CheckpointFunction" in n.name() for n in own):
                return Explanation(name)  # it runs within a whole backward only
            by = (f"{n.name()} (a Function of yours)" for n in own)
            who = next(by, f"a node below {graph.root.name()}")
            return because(name, "function_gave_none", who=who)
        return told

    def _without_grad(self, x, name: str, graph: TorchGraph) -> Explanation:
        """Why there is no ``.grad`` though the output depends on the tensor."""
        made = title(x.grad_fn) if x.grad_fn else ""
        freed = graph.state[0] == "freed"  # by a backward, for sure
        runs, returned, zeroed = map(self.code.calls, ("backward", "grad", "zero_grad"))
        limited = [c for c in runs if any(k.arg == "inputs" for k in c.keywords)]
        subjects = [ast.unparse(c.func).removesuffix(".backward") for c in runs]
        elsewhere = all(self.tensors.get(s, graph.output) is not graph.output for s in subjects)
        ran = any(fn.variable.grad is not None for fn in graph.leaves.values())
        reasons = [
            ("no_leaf_of_torch", made, []),
            ("not_a_number", graph.output.numel() != 1, []),
            ("other_inputs", limited and ran, limited),
            ("returned", returned and not runs, returned),
            ("shared", runs and elsewhere and freed, []),
            ("other_output", runs and elsewhere, runs),
            ("set_to_none", ran, []),
            ("zeroed", freed and zeroed, zeroed),
            ("freed", freed, []),
            ("never_called", True, zeroed if runs else []),
        ]
        key, _, lines = next(row for row in reasons if row[1])
        line = self.code.line(lines[-1]) if lines else ""
        new = ": .to(), .cuda(), .double() and the like make a new tensor"
        copied = new * made.startswith("ToCopy")
        forgot = f", or {line} let its .grad go" * bool(line)
        node = made or (graph.state[1].name() if freed else "")
        words = {"end": graph.end, "line": line, "node": node, "copied": copied, "forgot": forgot}
        return because(name, key, count=graph.output.numel(), **words)

    def _suspects(self, grad, graph: TorchGraph, place) -> Note:
        """Why a graph cannot run again, and which of its nodes are known to make such a gradient; a repair for one."""
        note = "its nodes are not run again: saved_tensors_hooks, checkpoint or they themselves forbid it"
        if graph.state[0] == "freed":
            note = f"backward has freed the graph: {because('', 'forgotten').reason}"
        if 0 < (size := size_of(grad)) < float("inf"):
            return f"({note})", ""
        counts = count_paths(graph.all, place)
        kind, what = ("not finite", "not finite") if size else ("zero", "0")
        known = {n.name(): advice(n, kind) for n in graph.all if counts[n] and advice(n, kind)}
        where = f" On the way lie {', '.join(known)}." if known else ""
        repair = next(iter(known.values())) if len(known) == 1 else ""
        return f"({note})\n  (it is {what}.{where} mg.why before backward() tells the node)", repair

    # what .grad holds in place of the gradient, and who holds the tensor

    def _hook(self, x, name: str, graph: TorchGraph) -> str:
        """Where a hook is that may have changed a gradient."""
        if x._backward_hooks or getattr(x, "_post_accumulate_grad_hooks", None):
            return f"on {name}"
        for n, t in self.tensors.items():
            if t._backward_hooks and t.grad_fn in graph.nodes:
                return f"on {n}"
        of_module = any(n.name().startswith("BackwardHookFunction") for n in graph.all)
        return "of a module (register_full_backward_hook)" if of_module else ""

    def _not_updated(self, x) -> str:
        """A note where no optimizer among the variables changes a leaf that has a gradient."""
        groups = [(n, g) for n, held in self.optimizers.items() for g in held.param_groups]
        rates = {n: g.get("lr") for n, g in groups if any(p is x for p in g["params"])}
        if not self.optimizers or not x.is_leaf or any(rate != 0 for rate in rates.values()):
            return ""
        why = "not_updated" if rates else "not_held"
        return f"({because('it', why, optimizer=', '.join(rates or self.optimizers)).reason})"

    def _alone(self, x, name: str) -> Explanation:
        """No output is known."""
        if x.grad is not None:
            told = Explanation(name, x.grad)
            told.remark("(for its paths pass the output, too: mg.why(x, loss))")
            return told.remark(self._not_updated(x))
        for optimizer, held in self.optimizers.items():
            if held.state.get(x):
                return because(name, "used_and_zeroed", optimizer=optimizer)
        return because(name, "nothing_computed")
