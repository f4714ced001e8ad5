"""why, for PyTorch: where the gradient of its Tensor came from, or exactly why there is none.

Its nodes are wrapped so that `paths` and `flow` read them as this package's own.  They are called one by one,
without the engine: no hook runs, no ``.grad`` changes, nothing is freed.  What a graph cannot tell, because it
never held it, is looked for among the caller's variables and in the caller's code.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import DTypeError, describe, refusal, source_line
from ..viz.adapters.of_grad_fn import Walk
from ..viz.adapters.torch_facts import (
    is_hooked,
    kind_of,
    of_kind,
    saved_names,
    saved_values,
    storage,
    tensor_names,
    title,
)
from .explanation import Explanation, Explanations, as_array, short
from .flow import flows, forward_trouble, size_of, trouble
from .paths import MOST_PATHS, count_paths, followed, labels
from .source_cuts import Code, Cut, called, code_around, code_of, cuts, muted_assignments

_FREED = "second time"
_PULLS, _FEWER = 1000, 100  # nodes that are run to follow the paths of one tensor, of many
_NEAR = 1e-3  #: how near two gradients of float32 must be to be the same


class TorchNode:
    """A node of PyTorch, read as a `Node` of this package; ``pull`` runs it and no hook."""

    primitive = "torch"  # not None: it may be run again

    def __init__(self, fn: Any, seq: int) -> None:
        self.fn, self.seq = fn, seq
        self.next_functions: tuple[tuple[TorchNode | None, int], ...] = ()
        self.specs: list[Any] = [None] * len(fn._input_metadata)
        self.several = len(self.specs) != 1

    def name(self) -> str:
        """``MulBackward0``."""
        return title(self.fn)

    @property
    def saved(self) -> dict[str, Any]:
        """What it keeps, by name."""
        return saved_values(self.fn)

    def pull(self, g: Any) -> list[Any]:
        """The gradients of its inputs, with the shapes and dtypes of these."""
        torch = sys.modules["torch"]
        run = self.fn.apply if hasattr(self.fn, "_forward_cls") else self.fn
        with torch.no_grad():
            given = run(*g) if isinstance(g, list) else run(g)
            return [
                gradient if gradient is None or to is None else _fitting(gradient, to.fn, number)
                for gradient, (to, number) in zip(_listed(given), self.next_functions, strict=False)
            ]


def _listed(given: Any) -> Any:
    return given if isinstance(given, tuple) else (given,)


def _fitting(gradient: Any, fn: Any, number: int) -> Any:
    """A gradient as the engine hands it on: summed over broadcast axes, in the dtype of the value."""
    metadata = fn._input_metadata[number]
    shape = tuple(metadata.shape)
    if tuple(gradient.shape) != shape and not gradient.is_sparse:
        gradient = gradient.sum_to_size(shape)
    return gradient.to(metadata.dtype)


class TorchGraph:
    """The graph below an output."""

    def __init__(self, output: Any) -> None:
        walk = Walk([_node_of(output)])
        self.root, self.index = walk.order[0], output.output_nr
        self.nodes = {fn: TorchNode(fn, -k) for k, fn in enumerate(walk.order)}
        for fn, node in self.nodes.items():
            node.next_functions = tuple((self.nodes.get(to), k) for to, k in walk.next(fn))
        self.leaves = {id(fn.variable): fn for fn in self.nodes if hasattr(fn, "variable")}

    def place(self, x: Any) -> tuple[TorchNode, int] | None:
        """Where the gradient of a tensor arrives; None if it is not in the graph."""
        fn = self.leaves.get(id(x)) if x.grad_fn is None else x.grad_fn
        return (self.nodes[fn], x.output_nr) if fn in self.nodes else None

    @functools.cached_property
    def state(self) -> tuple[str, Any, str]:
        """What keeps it from running: ("stale", the node, its saved value), "hooked", "freed", "partly"; or ""."""
        if any(map(is_hooked, self.nodes)):
            return "hooked", None, ""
        freed, whole = [], []
        for fn, node in self.nodes.items():
            own = hasattr(fn, "saved_tensors")  # a Function of the user's
            for name in ["saved_tensors"] if own else saved_names(fn):
                try:
                    value = getattr(fn, name if own else f"_saved_{name}")
                except RuntimeError as error:
                    if _FREED not in str(error):
                        return "stale", node, name
                    freed.append(node)
                else:
                    whole += [node] if kind_of(value) == "tensor" else []
        if not freed:
            return "", None, ""
        partly = whole and whole[0].seq > freed[0].seq  # what backward runs first is whole
        return "partly" if partly else "freed", freed[0], ""


def _only(root: TorchNode, place: Any, counts: Mapping[Any, int]) -> Any:
    """The nodes of the only path to a place, with the slots by which it leaves them."""
    trail, node = [], root
    while True:
        slot = next(
            k for k, to in enumerate(node.next_functions) if to == place or counts.get(to[0])
        )
        trail.append((node, slot))
        if node.next_functions[slot] == place:
            return tuple(trail)
        node = node.next_functions[slot][0]  # type: ignore[assignment]


def _node_of(x: Any) -> Any:
    """The node a tensor stands for: what made it, or the AccumulateGrad of a leaf."""
    return x.grad_fn if x.grad_fn is not None else x.view_as(x).grad_fn.next_functions[0][0]


class Answer(NamedTuple):
    """A reason with what to do about it."""

    reason: str
    repair: str = ""


def why_torch(x: Any, output: Any, frame: Any) -> Any:
    """The explanation of a Tensor of PyTorch; of the parameters of a Module or an optimizer, one by one.

    ``output`` is what backward starts from, or a function without arguments that computes it; else the
    newest one is taken among the variables of ``frame`` that depends on ``x``.
    """
    variables = {**frame.f_globals, **frame.f_locals} if frame is not None else {}
    variables = {k: v for k, v in variables.items() if not k.startswith("_")}
    kind = kind_of(x)
    case = Case(variables, frame, several=kind != "tensor")
    if callable(output) and kind_of(output) != "tensor":
        with sys.modules["torch"].random.fork_rng(devices=[]):
            output = output()
    if output is not None and kind_of(output) != "tensor":
        what = f"the output to explain from is a Tensor of PyTorch, not {describe(output)}"
        raise refusal(what, "mg.why(w, loss)", DTypeError)
    if kind == "module":
        prefix = next((n for n, m in of_kind(variables, "module").items() if m is x), "")
        several = {f"{prefix}.{n}".lstrip("."): p for n, p in x.named_parameters()}
        return Explanations(case.explain(p, output, n) for n, p in several.items())
    if kind == "optimizer":
        return Explanations(case.explain(p, output) for g in x.param_groups for p in g["params"])
    return case.explain(x, output)


class Case:
    """What can be looked at: the caller's variables and code, and the graphs that were read already."""

    def __init__(self, variables: Mapping[str, Any], frame: Any, several: bool) -> None:
        self.variables = variables
        self.tensors = tensor_names(variables)
        self.optimizers = of_kind(variables, "optimizer")
        self.code = code_around(frame) if frame is not None else Code([], "", 1, {})
        self.line = frame.f_lineno if frame is not None else 0
        self.graphs: dict[int, TorchGraph] = {}
        self.several = several  # tensors are asked for
        self.pulls = _FEWER if several else _PULLS
        self.flown: dict[int, Any] = {}

    def explain(self, x: Any, output: Any, name: str = "") -> Explanation:
        """The explanation of one tensor."""
        name = name or self.name(x) or "it"
        if not (x.is_floating_point() or x.is_complex()):
            reason = f"it holds {x.dtype} numbers, and only floating-point values have gradients"
            return Explanation(name, reason=reason, repair="x.float() before requires_grad_()")
        if not x.requires_grad:
            return self._told(name, x, self._no_grad(x, name))
        chosen = output if output is not None else self._output(x)
        if chosen is None:
            return self._alone(name, x)
        if not chosen.requires_grad:
            end = self.name(chosen) or "the output"
            answer = self._no_grad(chosen, end)
            return Explanation(
                name, reason=f"{end} has no graph: {answer.reason}", repair=answer.repair
            )
        graph = self.graph(chosen)
        place = graph.place(x)
        if place is None:
            return self._told(name, x, self._off_path(x, name, chosen, graph))
        return self._on_path(x, name, chosen, graph, place)

    def name(self, x: Any) -> str:
        """What a tensor is called: a variable of the caller's, or its path in a module there."""
        return next((n for n, t in self.tensors.items() if t is x), "")

    def graph(self, output: Any) -> TorchGraph:
        """The graph below an output, read once."""
        if id(output) not in self.graphs:
            self.graphs[id(output)] = TorchGraph(output)
        return self.graphs[id(output)]

    def _output(self, x: Any) -> Any:
        """The newest single number among the variables, first of those that depend on ``x``."""
        ends = [t for t in self.tensors.values() if t.grad_fn is not None and t is not x]
        ends = sorted(ends, key=lambda t: t.grad_fn._sequence_nr(), reverse=True)
        ends = [t for t in ends if t.numel() == 1] or ends
        return next((t for t in ends[:50] if self.graph(t).place(x)), ends[0] if ends else None)

    def _told(self, name: str, x: Any, answer: Answer) -> Explanation:
        """A reason why there is none; where ``.grad`` holds one nevertheless, that comes first."""
        grad = x.grad if x.is_leaf else None
        if grad is None:
            return Explanation(name, reason=answer.reason, repair=answer.repair)
        note = f"  (an earlier backward left it there: now {answer.reason})"
        return Explanation(name, grad, note=note, repair=answer.repair)

    # a tensor without a graph

    def _no_grad(self, x: Any, name: str) -> Answer:
        """Why a tensor does not require a gradient."""
        if x.is_inference():
            return Answer(
                "it was made under inference_mode()", "make it outside of inference_mode()"
            )
        if type(x).__name__ == "Parameter" or any(x is p for p in self._held()):
            return Answer(
                "it is frozen: requires_grad is False" + self._where_called(name, "requires_grad_"),
                f"{name}.requires_grad_(True) before the forward pass",
            )
        shared = self._shares(x)
        if shared:
            return Answer(
                f"it was cut off by detach() or .data: it shares its memory with {shared}, which has a graph",
                f"use {shared} itself where the gradient shall flow",
            )
        muted = [line for line, why in muted_assignments(self.code, name) if why]
        if muted:
            return Answer(
                f"it was made under {muted[-1]}",
                f"compute it outside of that block; to update a leaf: {name} -= … under no_grad",
            )
        late = self._late(name)
        if late:
            return Answer(late, "requires_grad_(True) before the computation")
        for cut in self._cuts_to(name):
            return Answer(f"its way is cut at {cut.line} by {cut.what}", cut.repair)
        if self._assigned(name):
            return Answer(
                f"nothing that it was computed from requires a gradient ({self._assigned(name)})",
                "requires_grad=True for what shall get one, before the computation",
            )
        return Answer(
            "requires_grad is False: it was made without requires_grad=True, or from such values, or under no_grad()",
            "requires_grad_(True) before the forward pass",
        )

    def _held(self) -> list[Any]:
        return [p for m in of_kind(self.variables, "module").values() for p in m.parameters()]

    def _shares(self, x: Any) -> str:
        """The name of a tensor with a graph whose memory this one shares."""
        memory = storage(x)
        return next(
            (
                n
                for n, t in self.tensors.items()
                if t is not x and t.requires_grad and memory and storage(t) == memory
            ),
            "",
        )

    def _cuts_to(self, name: str) -> list[Cut]:
        """The cuts in the caller's code on the ways to a name, from whatever requires a gradient."""
        starts = {n.split(".")[0].split("[")[0] for n, t in self.tensors.items() if t.requires_grad}
        starts |= set(of_kind(self.variables, "module"))
        starts |= self._users(starts)
        return cuts(self.code, starts - {name}, [name] if name in self.variables else None)

    def _users(self, names: set[str]) -> set[str]:
        """The caller's functions that use some of these names from around them."""
        codes = {
            n: getattr(inspect.unwrap(f), "__code__", None)
            for n, f in self.variables.items()
            if inspect.isfunction(f)
        }
        return {
            n
            for n, code in codes.items()
            if code is not None and names & {*code.co_names, *code.co_freevars}
        }

    def _assigned(self, name: str) -> str:
        """The caller's line that assigns a name last; empty if none does."""
        lines = [
            n
            for s in self.code.body
            for n in ast.walk(s)
            if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
        ]
        return f"line {lines[-1].lineno}: {ast.unparse(lines[-1])}"[:120] if lines else ""

    def _late(self, end: str) -> str:
        """Whether requires_grad was set only after an output had been computed."""
        made = [
            n.lineno
            for n in ast.walk(ast.Module(self.code.body, []))
            if isinstance(n, ast.Assign) and end in map(ast.unparse, n.targets)
        ]
        asked = [
            (line, c.lineno)
            for line, c in self._called("requires_grad_")
            if not any(ast.unparse(a) == "False" for a in c.args)
        ]
        asked += [
            (source_line(self.code.filename, n.lineno), n.lineno)
            for n in ast.walk(ast.Module(self.code.body, []))
            if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in n.targets)
            and ast.unparse(n.value) == "True"
        ]
        after = [line for line, at in asked if made and at > max(made)]
        late = after and len(after) == len(asked)
        return f"requires_grad was set after {end} had been computed ({after[0]})" if late else ""

    def _called(self, name: str) -> list[tuple[str, ast.Call]]:
        """The calls of this name in the caller's code so far."""
        calls = called(self.code, name)
        return [c for c in calls if c[1].lineno <= self.line] or calls

    def _where_called(self, name: str, method: str) -> str:
        lines = self._called(method)
        return f" ({lines[0][0]})" if lines else ""

    # a tensor that the output does not depend on

    def _off_path(self, x: Any, name: str, output: Any, graph: TorchGraph) -> Answer:
        end = self.name(output) or "the output"
        begin = f"it is not on a path to {end}"
        twin = self._twin(x, graph)
        for other, t in self.tensors.items():
            cut = t is not x and t.requires_grad and t.grad_fn is not None and t is not output
            if cut and self.graph(t).place(x) and (node := _reads(graph, t)):
                way = f"cut off by detach() or .data: {node} reads the memory of {other} without its graph"
                return Answer(f"{begin}: {way}{self._first_cut(name, end)}", f"use {other} itself")
        found = self._cuts(name, end)
        if found:
            text = "; ".join(f"{c.what} at {c.line}" for c in found[:3])
            return Answer(f"{begin}: the way is cut by {text}", found[0].repair)
        if twin:
            return Answer(
                f"{begin}: {twin[1]} {twin[0]}, which is another tensor",
                f"ask for {twin[0]}, or compute {end} from {name}",
            )
        late = self._late(end)
        if late:
            return Answer(f"{begin}: {late}", "requires_grad_(True) before the computation")
        unused = self._unused(x, name)
        if unused:
            return Answer(f"{begin}: {unused}", "call it in forward, or leave it out")
        elsewhere = self._elsewhere(x, output)
        if elsewhere:
            return Answer(
                f"{begin}: it belongs to another graph, that of {elsewhere}",
                f"{elsewhere}.backward(), or add both: ({end} + {elsewhere}).backward()",
            )
        constants = _constants(graph)
        more = f"; the graph begins at {', '.join(constants[:3])}" if constants else ""
        return Answer(
            f"{begin}: it was never used in what {end} is computed from, or under no_grad(), or its numbers were "
            f"copied (detach, numpy, torch.tensor){more}",
            f"compute {end} from {name} itself",
        )

    def _first_cut(self, name: str, end: str) -> str:
        found = self._cuts(name, end)
        return f" ({found[0].line})" if found else ""

    def _cuts(self, name: str, end: str) -> list[Cut]:
        """Where the caller's code, and the modules it calls, cut the ways from one name to the other."""
        modules = sorted(of_kind(self.variables, "module"), key=len, reverse=True)
        root = next((m for m in modules if name.startswith(f"{m}.")), name)
        path = name.removeprefix(root).lstrip(".")
        starts = {root} | self._users({root})
        return cuts(self.code, starts, [end] if end in self.variables else None, path)

    def _twin(self, x: Any, graph: TorchGraph) -> tuple[str, str] | None:
        """(name, what is the same) of a leaf in the graph that could be mistaken for this tensor."""
        leaves = {n: t for n, t in self.tensors.items() if id(t) in graph.leaves}
        memory = storage(x)
        for n, t in leaves.items():
            if memory and storage(t) == memory:
                return n, "it shares its memory with"
        for n, t in leaves.items():
            if t.shape == x.shape and t.dtype == x.dtype and t.numel() > 1 and bool((t == x).all()):
                return n, "its numbers are a copy of"
        return None

    def _unused(self, x: Any, name: str) -> str:
        """Whether the module that holds a parameter never mentions it outside of ``__init__``."""
        for prefix, module in of_kind(self.variables, "module").items():
            if not name.startswith(f"{prefix}."):
                continue
            at, rest = module, name.removeprefix(f"{prefix}.").split(".")
            while len(rest) and not type(at).__module__.startswith("torch."):
                code = code_of(type(at).forward, {"self": at})
                if code is None:
                    break
                methods = [f for n, f in vars(type(at)).items() if callable(f) and n != "__init__"]
                bodies = [c.body for f in methods if (c := code_of(f, {})) is not None]
                text = "\n".join(ast.unparse(s) for b in bodies for s in b)
                if rest[0] not in text and "getattr" not in text and "children" not in text:
                    return f"never used: {type(at).__name__} does not mention self.{rest[0]} outside of __init__"
                at = getattr(at, rest[0], None)
                rest = rest[1:]
        return ""

    def _elsewhere(self, x: Any, output: Any) -> str:
        """The name of another output that depends on a tensor."""
        ends = [
            (n, t) for n, t in self.tensors.items() if t.grad_fn is not None and t is not output
        ]
        ends.sort(key=lambda e: (e[1].numel() == 1, e[1].grad_fn._sequence_nr()), reverse=True)
        return next((n for n, t in ends[:50] if t is not x and self.graph(t).place(x)), "")

    # a tensor that the output depends on

    def _on_path(
        self, x: Any, name: str, output: Any, graph: TorchGraph, place: tuple[TorchNode, int]
    ) -> Explanation:
        end = self.name(output) or "the output"
        state, node, saved = graph.state
        grad = x.grad if x.is_leaf or x.retains_grad else None
        if x is output:
            total = sys.modules["torch"].ones_like(x)
            result = Explanation(name, total, [(("the output itself",), as_array(total))])
            return self._compared(result, x, name, end, output, graph, grad)
        if state == "stale":
            answer = self._stale(node, saved, end)
            if grad is None:
                return Explanation(name, reason=answer.reason, repair=answer.repair)
            changed = answer.reason.partition(", so")[0]
            return Explanation(
                name, grad, note=f"  (its paths cannot be run again: {changed}, by step() perhaps)"
            )
        if state == "partly" and node is not None and grad is None:
            return Explanation(
                name,
                reason=f"another backward has freed {node.name()}, which {end} shares with it, "
                f"so {end}.backward() fails",
                repair="add the losses and call backward() once, or retain_graph=True in the first; detach() what is "
                "carried on from step to step",
            )
        if state:
            return self._forgotten(x, name, output, graph, place, grad, state)
        try:
            result, alarm = self._traced(name, output, graph, place)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            note = f"  (its paths cannot be run one by one: {str(error).splitlines()[0][:120]})"
            return (
                Explanation(name, grad, note=note)
                if grad is not None
                else self._told(name, x, self._never(x, name, end, output, graph))
            )
        if alarm[0] and result.total is not None:
            result.note, result.repair = f"  {alarm[0]}", alarm[1]
        return self._compared(result, x, name, end, output, graph, grad)

    def _traced(
        self, name: str, output: Any, graph: TorchGraph, place: tuple[TorchNode, int]
    ) -> tuple[Explanation, tuple[str, str]]:
        """The paths with what each brings, and what is wrong with their sum."""
        torch = sys.modules["torch"]
        root, nodes = graph.nodes[graph.root], list(graph.nodes.values())
        seed = torch.ones_like(output.detach())
        counts = count_paths([n for n in nodes if n.next_functions], place)
        steps, came = self._flown(graph, root, seed, nodes, place)
        parts = [p for p in came if p[0].next_functions[p[1]] == place]
        if not parts:
            by = next(
                (n for n in nodes if n.seq and counts.get(n) and hasattr(n.fn, "_forward_cls")),
                None,
            )
            who = (
                f"{by.name()} (a Function of yours) gave None"
                if by is not None
                else f"a node below {root.name()} gave None"
            )
            return Explanation(
                name,
                reason=f"on the way {who} for its input",
                repair="return a gradient for every input in backward that needs one",
            ), ("", "")
        total = parts[0][2]
        for _, _, more in parts[1:]:
            total = total + more
        alarm = trouble(steps, counts, place, total)
        if not math.isfinite(size_of(output)):
            alarm = (
                forward_trouble(self.name(output) or "the output", size_of(output), nodes) or alarm
            )
        if counts[root] == 1:  # the whole gradient came this way
            return Explanation(
                name, total, [(*labels([_only(root, place, counts)]), as_array(total))]
            ), alarm
        if counts[root] <= MOST_PATHS and counts[root] * len(nodes) <= self.pulls:
            trails = followed(root, graph.index, seed, place, counts)
            shares = list(zip(labels([t for t, _ in trails]), [g for _, g in trails], strict=True))
            return Explanation(name, total, shares), alarm
        grouped: list[Any] = [
            ((f"{root.name()}", "…", f"{n.name()}[{k}]"), as_array(g)) for n, k, g in parts
        ]
        return Explanation(name, total, grouped[:MOST_PATHS], grouped=True), alarm

    def _flown(
        self, graph: TorchGraph, root: TorchNode, seed: Any, nodes: list[TorchNode], place: Any
    ) -> Any:
        """One backward; for all leaves at once where all are asked for."""
        if place[0].next_functions:  # the ways through a value in between lead elsewhere
            nodes = [n for n in nodes if n is not place[0]]
            return flows(root, graph.index, seed, nodes, {place})
        if not self.several:
            return flows(root, graph.index, seed, nodes, {place})
        if id(graph) not in self.flown:
            leaves = {(n, 0) for n in nodes if not n.next_functions}
            self.flown[id(graph)] = flows(root, graph.index, seed, nodes, leaves)
        return self.flown[id(graph)]

    def _compared(
        self,
        result: Explanation,
        x: Any,
        name: str,
        end: str,
        output: Any,
        graph: TorchGraph,
        grad: Any,
    ) -> Explanation:
        """The explanation beside what ``.grad`` holds: nothing, this gradient, or another one."""
        if result.reason:
            return result
        if grad is None:
            answer = self._never(x, name, end, output, graph)
            result.reason, result.repair = answer.reason, result.repair or answer.repair
            return result
        notes = [result.note] if result.note else []
        notes += self._difference(x, name, grad, result, graph)
        notes += self._unheld(x, name)
        result.note = "\n".join(notes)
        return result

    def _never(self, x: Any, name: str, end: str, output: Any, graph: TorchGraph) -> Answer:
        """Why there is no ``.grad`` though the graph is whole."""
        if x.grad_fn is not None:
            made = title(x.grad_fn)
            copied = (
                ": .to(), .cuda(), .double() and the like make a new tensor"
                if made.startswith("ToCopy")
                else ""
            )
            return Answer(
                f"it is not a leaf, {made} made it{copied}; .grad is kept for leaves only",
                f"{name}.retain_grad() before backward(), or make the leaf last: "
                f"{name} = {name}.detach().requires_grad_()",
            )
        if output.numel() != 1:
            return Answer(
                f"backward() was never called: {end} has {output.numel()} numbers, and backward() starts from one",
                f"{end}.sum().backward(), or .mean()",
            )
        returned = self._called("grad")
        if returned:
            return Answer(
                f"torch.autograd.grad returns gradients and leaves .grad alone ({returned[0][0]})",
                f"{end}.backward(), or take what grad returns",
            )
        runs = self._called("backward")
        others = [
            fn.variable for fn in graph.nodes if hasattr(fn, "variable") and fn.variable is not x
        ]
        ran = any(t.grad is not None for t in others)
        if ran and any(k.arg == "inputs" for _, c in runs for k in c.keywords):
            return Answer(
                f"backward(inputs=…) was asked for other inputs ({runs[0][0]})", "leave inputs= out"
            )
        if ran:
            return Answer(
                "backward ran, but since then its .grad was set to None", f"keep {name}.grad"
            )
        subjects = [(line, ast.unparse(c.func)) for line, c in runs]
        elsewhere = [s for s in subjects if s[1].removesuffix(".backward") != end]
        if subjects and len(elsewhere) == len(subjects):
            return Answer(
                f"backward() was never called on {end}, but on another graph: {elsewhere[0][0]}",
                f"{end}.backward()",
            )
        cleared = self._called("zero_grad")
        forgot = f", or {cleared[-1][0]} let its .grad go" if cleared and subjects else ""
        return Answer(f"backward() was never called on {end}{forgot}", f"{end}.backward()")

    def _stale(self, node: TorchNode, saved: str, end: str) -> Answer:
        """A saved value that was changed in place since."""
        raw = getattr(node.fn, f"_raw_saved_{saved}", None)
        data = getattr(raw, "data", None) if not isinstance(raw, list | tuple) else None
        kept = kind_of(data) == "tensor"
        which = next(
            (n for n, t in self.tensors.items() if kept and storage(t) == storage(data)), ""
        )
        what = f" (the memory of {which})" if which else ""
        return Answer(
            f"{node.name()} saved {saved!r}{what}, which was changed in place afterwards, so backward() fails",
            f"write {which or 'h'} = {which or 'h'} + … in place of an operation in place "
            "(+=, add_, relu_, x[i] = …), or clone() it first",
        )

    def _forgotten(
        self, x: Any, name: str, output: Any, graph: TorchGraph, place: Any, grad: Any, state: str
    ) -> Explanation:
        """The graph cannot run once more: backward freed it, or functions of the user's would run."""
        end = self.name(output) or "the output"
        if state == "hooked" and grad is None:
            answer = self._never(x, name, end, output, graph)
            return Explanation(name, reason=answer.reason, repair=answer.repair)
        users = [
            (n, k)
            for n in graph.nodes.values()
            for k, to in enumerate(n.next_functions)
            if to == place
        ]
        shown: list[Any] = [
            ((graph.nodes[graph.root].name(), "…", f"{n.name()}[{k}]"), None) for n, k in users
        ]
        if grad is None:
            if x.grad_fn is not None:
                answer = self._never(x, name, end, output, graph)
                return Explanation(name, reason=answer.reason, repair=answer.repair)
            return Explanation(name, **self._let_go(x, name, end, graph)._asdict())
        note = "  (backward has freed the graph: how much each gave is told before backward, or with retain_graph=True)"
        if state == "hooked":
            note = (
                "  (saved_tensors_hooks or checkpoint hold its values: its paths are not run again)"
            )
        notes = [note, *self._suspects(x, grad, graph, place), *self._unheld(x, name)]
        return Explanation(name, grad, shown[:MOST_PATHS], note="\n".join(notes), grouped=True)

    def _let_go(self, x: Any, name: str, end: str, graph: TorchGraph) -> Answer:
        """Backward freed the graph and came to a leaf, whose ``.grad`` is None."""
        returned, cleared = self._called("grad"), self._called("zero_grad")
        runs = self._called("backward")
        others = [
            fn.variable for fn in graph.nodes if hasattr(fn, "variable") and fn.variable is not x
        ]
        if any(t.grad is not None for t in others):
            line = next((f" ({ln})" for ln, c in runs for k in c.keywords if k.arg == "inputs"), "")
            return Answer(
                f"backward ran and left others a gradient: backward(inputs=…) was asked for others{line}, or "
                "its .grad was set to None since",
                "leave inputs= out",
            )
        if returned and not runs:
            return Answer(
                f"torch.autograd.grad returns gradients and leaves .grad alone ({returned[-1][0]})",
                f"take what it returns, or {end}.backward()",
            )
        if cleared:
            return Answer(
                f"backward ran, but zero_grad() has set it to None since ({cleared[-1][0]})",
                f"read {name}.grad between backward() and zero_grad(), or zero_grad(set_to_none=False)",
            )
        return Answer(
            "backward freed the graph, but .grad is None since: zero_grad() sets it to None, torch.autograd.grad "
            "returns gradients without keeping them",
            f"read {name}.grad right behind {end}.backward()",
        )

    # what .grad holds in place of the gradient

    def _difference(
        self, x: Any, name: str, grad: Any, result: Explanation, graph: TorchGraph
    ) -> list[str]:
        """Why ``.grad`` is not the gradient of this output, as far as the numbers tell."""
        a, b = as_array(grad), as_array(result.total)
        scale = size_of(b)
        if a.shape != b.shape or not math.isfinite(scale) or not math.isfinite(size_of(a)):
            return []
        if abs(a - b).max(initial=0) <= _NEAR * max(scale, 1e-30):
            return []
        hooked = bool(
            getattr(x, "_backward_hooks", None) or getattr(x, "_post_accumulate_grad_hooks", None)
        )
        if hooked:
            result.repair = "remove() the hook"
            return [f"  (.grad is {short(grad)}: a hook on {name} changed it)"]
        by = [
            n
            for n, t in self.tensors.items()
            if getattr(t, "_backward_hooks", None) and t.grad_fn in graph.nodes
        ]
        if by or any(n.name().startswith("BackwardHookFunction") for n in graph.nodes.values()):
            result.repair = "remove() the hook"
            where = f"on {by[0]}" if by else "of a module (register_full_backward_hook)"
            return [f"  (.grad is {short(grad)}: a hook {where} changed what passed)"]
        ratio = float((a * b).sum() / (b * b).sum()) if scale else 0.0
        alike = bool(scale) and abs(a - ratio * b).max() <= _NEAR * max(abs(ratio) * scale, 1e-30)
        whole = alike and ratio > 1.5 and abs(ratio - round(ratio)) < _NEAR
        if whole:
            result.repair = "optimizer.zero_grad() before each backward()"
            return [
                f"  (.grad is {ratio:.0f} times that: {ratio:.0f} backward passes added up without zero_grad())"
            ]
        if size_of(a) == 0:
            return ["  (.grad is 0: zero_grad(set_to_none=False) or a hook has set it so)"]
        if alike:
            advice = "clip_grad_norm_ scales gradients" if 0 < ratio < 1 else "something scaled it"
            return [
                f"  (.grad is {ratio:.4g} times that: {advice}; so do a loss scale and a division)"
            ]
        limit = size_of(a)
        if bool((abs(a - b.clip(-limit, limit)) <= _NEAR * limit).all()):
            return [f"  (.grad is that, clipped to ±{limit:.4g}: clip_grad_value_)"]
        result.repair = "optimizer.zero_grad() before each backward()"
        return [
            f"  (.grad is {short(grad)}: earlier backward passes were added to it without zero_grad(), or "
            "another output, a hook or an update in place made the difference)"
        ]

    def _unheld(self, x: Any, name: str) -> list[str]:
        """A note where no optimizer among the variables holds a leaf that has a gradient."""
        if not self.optimizers or not x.is_leaf:
            return []
        held = {
            id(p) for o in self.optimizers.values() for g in o.param_groups for p in g["params"]
        }
        if id(x) in held:
            return []
        names = ", ".join(self.optimizers)
        return [
            f"  ({names} does not hold it, so step() does not change it: pass model.parameters() once it is there)"
        ]

    def _suspects(self, x: Any, grad: Any, graph: TorchGraph, place: Any) -> list[str]:
        """Of a graph that was freed: the nodes on the way that are known to make such a gradient."""
        size = size_of(grad)
        if math.isfinite(size) and size > 0:
            return []
        kinds = (
            "Sqrt",
            "Rsqrt",
            "Log",
            "Div",
            "Pow",
            "Norm",
            "Linalg",
            "Acos",
            "Asin",
            "Exp",
            "Std",
            "Reciprocal",
            "Where",
        )
        if size == 0:
            kinds = (
                "Relu",
                "Threshold",
                "Clamp",
                "Round",
                "Floor",
                "Ceil",
                "Sign",
                "Trunc",
                "Hardtanh",
                "Sigmoid",
                "Tanh",
                "Mul",
                "Where",
            )
        counts = count_paths([n for n in graph.nodes.values() if n.next_functions], place)
        nodes = [
            n.name() for n in graph.nodes.values() if counts.get(n) and n.name().startswith(kinds)
        ]
        what = "0" if size == 0 else "not finite"
        where = f" On the way lie {', '.join(dict.fromkeys(nodes))}." if nodes else ""
        return [
            f"  (it is {what}.{where} The node that made it so is told by mg.why before backward())"
        ]

    def _alone(self, name: str, x: Any) -> Explanation:
        """No output is known."""
        if x.grad is not None:
            notes = [
                "  (for its paths pass the output, too: mg.why(x, loss))",
                *self._unheld(x, name),
            ]
            return Explanation(name, x.grad, note="\n".join(notes))
        seen = [n for n, o in self.optimizers.items() if o.state.get(x)]
        if seen:
            reason = f"{seen[0]} has used its gradient, and zero_grad() has set it to None since"
            return Explanation(name, reason=reason, repair=f"read {name}.grad before zero_grad()")
        reason = "nothing among your variables was computed from it, and no backward has come to it"
        return Explanation(name, reason=reason, repair="pass the output, too: mg.why(x, loss)")


def _reads(graph: TorchGraph, tensor: Any) -> str:
    """The node of a graph that saved the memory of a tensor, which is itself not in the graph."""
    memory = storage(tensor)
    if not memory or graph.place(tensor) is not None:
        return ""
    for fn, node in graph.nodes.items():
        try:
            saved = saved_values(fn)
        except RuntimeError:
            continue
        if any(kind_of(v) == "tensor" and storage(v) == memory for v in saved.values()):
            return node.name()
    return ""


def _constants(graph: TorchGraph) -> list[str]:
    """The nodes with an input that has no graph, each with what it saved."""
    found = []
    for node in graph.nodes.values():
        slots = [k for k, (to, _) in enumerate(node.next_functions) if to is None]
        if slots and node.next_functions:
            found.append(f"{node.name()}[{slots[0]}]")
    return found
