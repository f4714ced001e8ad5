"""Control flow in functional source: blocks become inner functions, handed to ``xp``.

A function keeps nothing between calls, so a grad block cannot read the scope its forward block left behind.  What a
loop keeps are the *carried* values of every step; its backward function computes the rest of the step again, and then
runs the grad block behind it.  A branch keeps nothing.  This is checkpointing, with one checkpoint per step.

    scan       xp.scan(step, starts, sequences)              → ends, stacked outputs, kept
    while      xp.while_loop(test, step, starts, save)        → ends, kept
    cond       xp.cond(pred, yes, no)                         → results
    *_grad     xp.loop_grad(back, kept, seeds, grads, params) → gradients of starts, params, sequences
"""

from __future__ import annotations

import ast
from typing import Any

from ..compiler.syntax import Comment, assign, function, invoke, load
from ..static.program.program import EMPTY, Block, Operator
from .functional import FunctionWriter, Scope, names_of

Statements = list[ast.stmt]


def _tuple(scope: Scope, names: list[str]) -> ast.expr:
    return names_of([scope.find(n) for n in names], ast.Load())


def _unpacked(w: FunctionWriter, scope: Scope, names: list[str], source: str) -> Statements:
    """``h, c = carried``; nothing for no names."""
    if not names:
        return []
    made = names_of(["_" if n == EMPTY else w.new(scope, n) for n in names], ast.Store())
    return [ast.Assign([made], load(source))]


def _returns(*values: ast.expr) -> ast.stmt:
    return ast.Return(ast.Tuple(list(values), ast.Load()) if len(values) != 1 else values[0])


def _call(names: list[str], path: str, *args: ast.expr) -> ast.stmt:
    return ast.Assign([names_of(names, ast.Store())], invoke(path, list(args)))


def _fresh(w: FunctionWriter, stem: str) -> str:
    """An identifier for something that is no variable of the program."""
    return w.new(Scope(w.program.global_block()), stem)


def scan(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A recurrent operator: its body as a function of carried values and slices."""
    block = w.program.blocks[op.attrs["sub_block"]]
    name, inner = _fresh(w, f"step_{block.idx}"), Scope(block, scope)
    body = _unpacked(w, inner, op.attrs["carried"], "carried")
    body += _unpacked(w, inner, op.attrs["steps"], "slices")
    body += w.block(block, inner)
    body.append(_returns(_tuple(inner, op.attrs["next"]), _tuple(inner, op.attrs["step_out"])))
    ends, stacked = _fresh(w, "ends"), _fresh(w, "stacked")
    kept = w.new(scope, op.outputs["scopes"][0])
    seqs, starts = _tuple(scope, op.inputs["seq"]), _tuple(scope, op.inputs["x"])
    return [
        function(name, ["carried", "slices"], body),
        _call([ends, stacked, kept], "xp.scan", load(name), starts, seqs),
        *_unpacked(w, scope, op.outputs["out"], ends),
        *_unpacked(w, scope, op.outputs.get("stacked", []), stacked),
    ]


def while_loop(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A while operator: condition and body as functions of the carried values."""
    body_block = w.program.blocks[op.attrs["sub_block"]]
    cond_block = w.program.blocks[op.attrs["cond_block"]]
    test, step = _fresh(w, f"test_{cond_block.idx}"), _fresh(w, f"step_{body_block.idx}")
    carried = Scope(body_block, scope)
    asks = _unpacked(w, carried, op.attrs["carried"], "carried")
    inner = Scope(cond_block, carried)
    asks += w.block(cond_block, inner)
    asks.append(_returns(load(inner.find(op.attrs["cond"]))))
    inner = Scope(body_block, scope)
    does = _unpacked(w, inner, op.attrs["carried"], "carried")
    does += w.block(body_block, inner)
    does.append(_returns(_tuple(inner, op.attrs["next"])))
    ends, kept = _fresh(w, "ends"), w.new(scope, op.outputs["scopes"][0])
    save = ast.Constant(_is_read(w, op.outputs["scopes"][0]))
    starts = _tuple(scope, op.inputs["x"])
    return [
        function(test, ["carried"], asks),
        function(step, ["carried"], does),
        _call([ends, kept], "xp.while_loop", load(test), load(step), starts, save),
        *_unpacked(w, scope, op.outputs["out"], ends),
    ]


def _is_read(w: FunctionWriter, name: str) -> bool:
    """Whether a grad op reads what a loop keeps."""
    return any(name in op.input_names for b in w.program.blocks for op in b.ops)


def cond(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """A cond operator: its branches as functions without parameters."""
    out: Statements = []
    branches = []
    for attr, results in (("sub_block", "true_out"), ("else_block", "false_out")):
        block = w.program.blocks[op.attrs[attr]]
        name, inner = _fresh(w, f"branch_{block.idx}"), Scope(block, scope)
        body = w.block(block, inner)
        out.append(function(name, [], [*body, _returns(_tuple(inner, op.attrs[results]))]))
        branches.append(load(name))
    pred = load(scope.find(op.inputs["pred"][0]))
    found = _fresh(w, "found")
    scope.names[op.outputs["scopes"][0]] = None
    out.append(assign(found, invoke("xp.cond", [pred, *branches])))
    return out + _unpacked(w, scope, op.outputs["out"], found)


def cond_grad(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """The grad block of the branch that was taken, behind the branch itself."""
    given = op.outputs["params_grad"]
    wanted = [k for k, n in enumerate(given) if n != EMPTY]
    out: Statements = []
    branches = []
    for attr, prefix in (("sub_block", "true"), ("else_block", "false")):
        grad_block = w.program.blocks[op.attrs[attr]]
        name = _fresh(w, f"back_{grad_block.idx}")
        outer = Scope(w.program.blocks[grad_block.forward_block], scope)
        body, inner = _once_more(w, outer), Scope(grad_block, outer)
        for local, seed in zip(op.attrs[f"{prefix}_seeds"], op.inputs["out_grad"], strict=True):
            if local != EMPTY:
                inner.names[local] = scope.find(seed)
        body += w.block(grad_block, inner)
        locals_ = [op.attrs[f"{prefix}_params"][k] for k in wanted]
        out.append(function(name, [], [*body, _returns(_tuple(inner, locals_))]))
        branches.append(load(name))
    pred = load(scope.find(op.inputs["pred"][0]))
    found = _fresh(w, "found")
    out.append(assign(found, invoke("xp.cond", [pred, *branches])))
    return out + _unpacked(w, scope, [given[k] for k in wanted], found)


def _once_more(w: FunctionWriter, scope: Scope) -> Statements:
    """The forward block of a scope, computed again for the grad block behind it."""
    again = w.block(scope.block, scope)
    w.commented = None
    return [Comment("the step once more"), *again]


def loop_grad(w: FunctionWriter, op: Operator, scope: Scope) -> Statements:
    """The grad block of a loop, behind its body, as a function of one step."""
    grad_block = w.program.blocks[op.attrs["sub_block"]]
    loop = _loop_of(w, grad_block)
    name = _fresh(w, f"back_{grad_block.idx}")
    step = Scope(w.program.blocks[grad_block.forward_block], scope)
    flows = [k for k, n in enumerate(op.attrs["carried_grad"]) if n != EMPTY]
    seeds = [k for k, n in enumerate(op.attrs.get("step_out_grad", ())) if n != EMPTY]
    params = [k for k, n in enumerate(op.attrs["params_local"]) if n != EMPTY]
    slices = [k for k, n in enumerate(op.attrs.get("steps_grad", ())) if n != EMPTY]
    body = _unpacked(w, step, loop.attrs["carried"], "carried")
    body += _unpacked(w, step, loop.attrs.get("steps", []), "slices")
    body += _once_more(w, step)
    inner = Scope(grad_block, step)
    body += _unpacked(w, inner, _local(op.attrs["next_grad"], flows), "grads")
    body += _unpacked(w, inner, _local(op.attrs.get("step_out_grad"), seeds), "seeds")
    body += w.block(grad_block, inner)
    groups = (
        _local(op.attrs["carried_grad"], flows),
        _local(op.attrs["params_local"], params),
        _local(op.attrs.get("steps_grad"), slices),
    )
    body.append(_returns(*[_tuple(inner, g) for g in groups]))
    made = [_fresh(w, stem) for stem in ("starts_grad", "params_grad", "sequences_grad")]
    args = [
        load(scope.find(op.inputs["scopes"][0])),
        _tuple(scope, _local(op.inputs.get("stacked_grad"), seeds)),
        _tuple(scope, _local(op.inputs["out_grad"], flows)),
        _tuple(scope, _local(op.inputs["params"], params)),
    ]
    found = (
        ("x_grad", flows, made[0]),
        ("params_grad", params, made[1]),
        ("seq_grad", slices, made[2]),
    )
    return [
        function(name, ["grads", "carried", "slices", "seeds"], body),
        _call(made, "xp.loop_grad", load(name), *args),
        *(s for slot, ks, source in found for s in _results(w, scope, op, slot, ks, source)),
    ]


def _local(names: Any, chosen: list[int]) -> list[str]:
    return [names[k] for k in chosen]


def _results(
    w: FunctionWriter, scope: Scope, op: Operator, slot: str, chosen: list[int], source: str
) -> Statements:
    """Names for those gradients that are wanted."""
    names = _local(op.outputs.get(slot, []), chosen)
    if all(n == EMPTY for n in names):
        return []
    made = names_of([w.target(scope, n) for n in names], ast.Store())
    return [ast.Assign([made], load(source))]


def _loop_of(w: FunctionWriter, grad_block: Block) -> Operator:
    """The operator whose body a grad block belongs to."""
    return next(
        op
        for b in w.program.blocks
        for op in b.ops
        if op.attrs.get("sub_block") == grad_block.forward_block and "carried" in op.attrs
    )


CONTROL_FLOW: dict[str, Any] = {
    "recurrent": scan,
    "while": while_loop,
    "cond": cond,
    "recurrent_grad": loop_grad,
    "while_grad": loop_grad,
    "cond_grad": cond_grad,
}
