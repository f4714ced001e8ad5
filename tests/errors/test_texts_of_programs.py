"""What errors of programs and pictures say: the operator, the shapes, and how to go on."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import minigrad as mg
from minigrad import static
from minigrad.errors import MinigradError
from minigrad.nets import Backward
from minigrad.nets.backward import NetOp, Operator, RnnOp
from minigrad.primitives.registry import REGISTRY
from minigrad.static.text.literals import from_plain
from minigrad.viz.render import layout


def building(make):
    """``make(x)`` with data ``x`` of shape [2] in a Program."""
    with static.program_guard(static.Program()):
        return make(static.data("x", [2]))


def parsed(*lines):
    return static.parse("\n".join(("block 0:", *lines)))


def open_sum():
    program = static.Program()
    with static.program_guard(program):
        total = static.data("x", [-1]) + static.data("y", [-1])
    return program, total, {"x": np.ones(2), "y": np.ones(3)}


def interpreted():
    program, total, feed = open_sum()
    return static.Executor().run(program, feed=feed, fetch_list=[total])


def compiled():
    program, total, feed = open_sum()
    return static.compile(program, fetch=total)(**feed)


def too_large_a_class():
    program = static.Program()
    with static.program_guard(program):
        loss = mg.cross_entropy(static.data("x", [2, 3]), static.data("t", [2], "int64"))
    return static.compile(program, fetch=loss)(x=np.ones((2, 3)), t=np.array([5, 1]))


def with_attr(name, value, then):
    """A sum with an attr that nobody checked."""
    program = static.Program()
    with static.program_guard(program):
        mg.sum(static.data("x", [2]))
    program.global_block().ops[-1].attrs[name] = value
    return then(program)


def operator(**values):
    return Operator("matmul", {"x": "a", "y": "b"}, {"out": "c"}).run(values)


def broken(change):
    """A program with a branch, changed by hand, and what `verify` says of it."""
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", [2]), static.parameter("w", [1.0, 2.0])
        static.cond(mg.sum(x) > 0.0, lambda: x * w, lambda: x)
    change(program)
    static.verify(program)


def of_a_branch():
    inside = []
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [])
        static.cond(x > 0.0, lambda: inside.append(x * 2.0) or inside[0], lambda: x)
    return static.compile(program, fetch=inside)(x=1.0)


def without_start_value():
    program = static.Program()
    with static.program_guard(program):
        y = static.parameter("w", [1.0]) * 2.0
    del program.initial["w"]
    return static.compile(program, fetch=y)()


def with_primitive(kernel, then, rule=None, shape=(2,)):
    """``then(program, result)`` with a primitive of this kernel, for so long."""
    made = mg.primitive(kernel, type="strange")
    try:
        if rule is not None:
            made.grad(x=rule)
        program = static.Program()
        with static.program_guard(program):
            x = static.data("x", shape)
            x.stop_gradient = False
            y = made(x)
            if rule is not None:
                static.gradients(y, [x])
        return then(program, y)
    finally:
        REGISTRY.pop("strange")


def exported(make, shape=(2,)):
    program = static.Program()
    with static.program_guard(program):
        fetch = make(static.data("x", shape))
    return static.export_onnx(program, fetch=fetch)


#: a call and words of its error, which stand there in this order
CALLS = [
    (lambda: building(lambda x: static.gradients([x * 2.0], [x], [None, None])), "1 targets need 1 target_gradients, 2 were given"),
    (lambda: building(lambda x: x @ static.data("y", [3])), "matmul(x: float64[2], y: float64[3]) is not possible", "repair: the last axis of the first (2)"),
    (lambda: building(lambda x: mg.concat([x, static.data("y", [3, 2])])), "concat(x: float64[2], x: float64[3, 2])", "repair: all need equally many axes"),
    (lambda: building(lambda x: mg.sum(x, axis=3)), "reduce_sum(x: float64[2], axis=3) is not possible", "repair: axes go from -1 to 0"),
    (lambda: building(lambda x: x.view(3)), "a Variable has no attribute 'view'", "repair: x.reshape(shape)"),
    (lambda: building(lambda x: x.program.global_block().append_op("sin", {"y": [x]}, {"out": ["o"]})), "sin has no input slot 'y'. Known: 'x'"),
    (interpreted, "#0 add(x: float64[2], y: float64[3]) is not possible", "(2,) (3,)", "repair: sizes are compared from the right"),
    (compiled, "add(x: float64[2], y: float64[3]) is not possible", "repair: sizes are compared from the right"),
    (too_large_a_class, "cross_entropy(x, t) failed: classes from 1 to 5", "in the source, line", "repair: count classes from 0"),
    (lambda: static.Scope()["w"], "'w'"),
    (lambda: operator(a=np.ones((2, 3)), b=np.ones(2)), "matmul(x: float64[2, 3], y: float64[2]) is not possible"),
    (lambda: operator(a=np.ones((2, 3))), "'b' has no value in this scope. Known: 'a'", "read by c = matmul"),
    # stored programs, and programs that somebody changed
    (lambda: from_plain(["slice", 1]), "['slice', 1] is no slice"),
    (lambda: parsed("data x: float65[2]"), "line 2: unknown dtype 'float65'; did you mean 'float64'?"),
    (lambda: parsed("const c: float64[2] = [1.0]"), "line 2: [1.0] is no float64[2]"),
    (lambda: parsed('y = sin(x="a)'), 'line 2: x="a gives neither an input slot a name nor an attr a value'),
    (lambda: parsed("var y: float64[2]", "z = sin(x=y)"), "block 0, #0 sin: it reads 'y' before anything wrote it"),
    (lambda: with_attr("axis", object(), static.Program.to_json), "reduce_sum: an attr of type object cannot be stored"),
    (lambda: with_attr("axs", 0, static.verify), "block 0, #0: reduce_sum has no attr 'axs'; did you mean 'axis'?"),
    (lambda: broken(lambda p: setattr(p.blocks[1], "parent", 5)), "block 1 lies in block 5, grad of -1: both must come before it"),
    (lambda: broken(lambda p: setattr(p.global_block().vars["x"], "shape", (-2,))), "x: float64[-2]", "a size is -1 (any) or at least 0"),
    (lambda: broken(lambda p: setattr(p.blocks[1].vars["mul_0"], "persistable", True)), "'mul_0' is data or outlives a run, so it must be declared in block 0, not in 1"),
    (lambda: broken(lambda p: p.initial.update(nobody=np.ones(2))), "'nobody' has a start value but is no variable that outlives a run"),
    (lambda: broken(lambda p: p.initial.update(w=np.ones(3))), "the start value of Variable(w: float64[2]) is float64[3]"),
    (lambda: static.parse("# nothing"), "a program starts with 'block 0:'"),
    (lambda: parsed("block 1 in 3:"), "line 2: block 1 lies in block 3, grad of -1: both must come before it"),
    (lambda: parsed("block 1 in 0 grad of 4:"), "line 2: block 1 lies in block 0, grad of 4: both must come before it"),
    (lambda: parsed("data x: float64[2]", "sin(x)"), "line 3: sin has no name for its result"),
    (lambda: parsed("data x: float64[2] = [1.0, 2.0]"), "line 2: only a constant has a value here"),
    (lambda: building(lambda x: x.program.global_block().append_op("split", {"x": [x]}, {"out": ["a", "b", "c"]})), "split has 2 outputs, 3 names were given for them"),
    (lambda: Operator("split", {"x": "a"}, {"out": ["b", "c", "d"]}).run({"a": np.ones(4)}), "split(x: float64[4]) is not possible: 2 values for 3 names"),
    # compiled, exported, decomposed
    (of_a_branch, "'mul_0' is computed in a loop or branch, and fetched from there", "repair: return it from there"),
    (without_start_value, "the parameter 'w' has no value", "repair: give static.parameter an init"),
    (lambda: with_primitive(lambda x: x * 1.0, lambda program, y: static.decompose(program), lambda out_grad, x_shape: out_grad * x_shape[0], (-1,)), "a gradient rule computes with the shape of 'x', which has a size -1", "repair: declare the data with its full shape"),
    (lambda: static.export_onnx("program"), "export_onnx takes a Program, not str", "repair: static.export_onnx(program, path"),
    # where things are asked for
    (lambda: static.Executor().run(3), "Executor.run(program: 3)", "repair: Executor.run(program: Program, feed:"),
    (lambda: static.program_guard(3).__enter__(), "program_guard takes a Program, not 3", "repair: static.program_guard(static.Program())"),
    (lambda: building(lambda x: static.parameter("p", ["a"])), "parameter 'p' needs real numbers", "repair: an array, a Tensor or lists"),
    (lambda: building(lambda x: len(static.data("y", [-1]))), "the length of Variable 'y' [-1] is not known", "repair: declare the data with its full shape"),
    (lambda: mg.trace(lambda x: 3, np.ones(2)), "the traced function returned 3", "repair: return what is computed from the arguments"),
    (lambda: mg.trace(lambda x: x * 2.0, np.ones(2), names=["a", "b"]), "trace was given 2 name(s) for 1 example(s)", "repair: one name for each example"),
    (lambda: building(lambda x: static.minimize(3, (static.parameter("w", 1.0) * 2.0).sum())), "minimize(optimizer: 3", "'int' object has no attribute 'clip'"),
    (lambda: static.parse(3), "a program is read from a text, not from 3"),
    # control flow
    (lambda: building(lambda x: static.while_loop(lambda i: i < 3, lambda i: None, [0])), "a program computes with numbers, not with None"),
    (lambda: building(lambda x: static.if_else(x > 0, lambda r: 1.0, lambda r: 2.0, x)), "the branches of if_else return rows, not 1.0", "repair: a row for each that came in"),
    (lambda: building(lambda x: static.static_rnn(3, [x], [0.0])), "static_rnn(step: 3", "pass a function there"),
    (lambda: building(lambda x: static.if_else(x > 0, lambda r: (r, r), lambda r: r, x)), "the branches of if_else return different structures: a tuple of 2 and one value", "repair: return the same number"),
    (lambda: building(lambda x: static.if_else(x > 0, lambda r: (r, r), lambda r: [r], x)), "a tuple of 2 and a list of 1", "repair:"),
    # pictures
    (lambda: mg.draw(mg.sin(mg.tensor(1.0, requires_grad=True)), detail="ful"), "unknown detail 'ful'; known: auto, full"),
]  # fmt: skip


#: those that need onnx
EXPORTS = [
    (lambda: exported(lambda x: x[x > 0.0]), "gather has no counterpart in ONNX: how many elements a mask chooses is not known", "use where instead"),
    (lambda: exported(lambda x: mg.sum(x, axis=1), (2, 0)), "reduce_sum has no counterpart in ONNX: ONNX has no reduction over no elements"),
    (lambda: with_primitive(lambda x: np.spacing(x), lambda p, y: static.export_onnx(p, fetch=y)), "strange has no counterpart in ONNX: ONNX has no counterpart of np.spacing", "repair: other ops; or static.compile(program)"),
    (lambda: with_primitive(lambda x: x if x[0] > 0 else -x, lambda p, y: static.export_onnx(p, fetch=y)), "strange has no counterpart in ONNX: a kernel looks at a value"),
    (lambda: static.export_onnx(open_sum()[0], feed={"x": (1,), "y": (1,)}, fetch="nobody"), "fetch names 'nobody', which is no variable of the root block"),
]  # fmt: skip


if find_spec("onnx"):
    CALLS += EXPORTS


def appended(**slots):
    """An operator given slot by slot, on data ``x``."""
    return building(
        lambda x: x.program.global_block().append_op(
            slots.pop("type"), **{"inputs": {"x": x}, **slots}
        )
    )


def looping(value, body=lambda i: i + 1):
    return building(lambda x: static.while_loop(lambda i: i < 3, body, value))


def ended():
    program = static.Program()
    with static.program_guard(program):
        (i,) = static.while_loop(lambda i: i < 50, lambda i: (i + 1,), [0])
    static.Executor().run(program, fetch_list=i, step_limit=5)


def net_of_one():
    return NetOp([Operator("exp", {"x": "a"}, {"out": "b"})])


def rnn(memory=("h", "h0"), sequences=(("s", "xs"),)):
    step = NetOp([Operator("add", {"x": "s", "y": "h_pre"}, {"out": "h"})])
    return RnnOp(step, dict(sequences), {"h_pre": memory}, {"h": "hs"})


#: a call, and the repair that stands in the last line of its error
REPAIRS = [
    (lambda: building(lambda x: static.create_array(-1)), "sizes and repetitions count from 0"),
    (lambda: looping([]), "loop_vars=[0], which counts the steps"),
    (lambda: looping([0], lambda i: (i, i)), "return the next value of every loop variable, in their order"),
    (lambda: looping([0], 3), "pass a function there, as in lambda x: mg.sum(x * x)"),
    (ended, "a condition that becomes false, or Executor.run(…, step_limit=…)"),
    (lambda: building(lambda x: static.cond(x.sum() > 0, lambda: x, lambda: x.sum())), "one shape and dtype for both: reshape, broadcast_to or astype in one of them"),
    (lambda: building(lambda x: static.switch([x], lambda: x)), "compare first (x > 0), or use static.if_else for one decision per row"),
    (lambda: building(lambda x: static.if_else(x, abs, abs, x)), "mask=x > 0 with x of shape [rows]; static.cond for one decision"),
    (lambda: building(lambda x: static.static_rnn(lambda s, h: h, x, [0.0])), "return [out, …], [state, …]"),
    (lambda: building(lambda x: static.static_rnn(lambda s, h: h, [], [0.0])), "inputs=[x] with x of shape [steps, …]"),
    (lambda: building(lambda x: static.data("y", 3)), "pass a list, a tuple or an array there"),
    (lambda: building(lambda x: static.data("y", [2.5])), "static.data('y', [-1, 3])"),
    (lambda: building(lambda x: static.data("y", [2], complex)), "dtype='float64', 'float32', 'int64' or 'bool'"),
    (lambda: building(lambda x: static.error_clip(3, 0, 1)), "error_clip(variable: Variable, min: float, max: float)"),
    (lambda: building(lambda x: static.error_clip(x, 1, 0)), "static.error_clip(x, -1.0, 1.0)"),
    (lambda: building(lambda x: x + "a"), "a Variable, a number or an array of numbers"),
    (lambda: appended(type="exp", inputs=3), "Block.append_op(type: str, inputs: dict[str, Any] | None, outputs: dict[str, Any] | None, attrs: dict[str, Any] | None, role: str | None)"),
    (lambda: appended(type="exp", outputs={"out": ["a", "b"]}), "one name for 'out'"),
    (lambda: appended(type="split", outputs={"out": ["a", "a"]}, attrs={"num_or_sections": 2}), "a name of its own for each output"),
    (lambda: appended(type="split", outputs={"out": ["a"]}, attrs={"num_or_sections": 2}), "a list of 2 names"),
    (lambda: appended(type="sin_grad", inputs={}, outputs={}), 'outputs={"x_grad": "x@GRAD"}'),
    (lambda: appended(type="sin_grad", inputs={}, outputs={"x_grad": "g"}), "inputs={'x': …}, the name it has for sin"),
    (lambda: appended(type="reshape", outputs={"out": "y"}), "attrs={'shape': …}"),
    (lambda: building(lambda x: x.program.prune([])), "program.prune([loss])"),
    (lambda: building(lambda x: x.program.prune(3)), "pass a list, a tuple or an array there"),
    (lambda: building(lambda x: x.program.prune([3])), "a Variable, or its name in quotes"),
    (lambda: static.compile(3), "static.compile(program, feed, fetch)"),
    (lambda: static.Program.from_json(b"{}"), "Program.from_json(path.read_text())"),
    (lambda: static.parse(3), "static.parse(str(program))"),
    (lambda: with_attr("axis", object(), static.Program.to_json), "numbers, texts, arrays, dtypes, slices, or tuples of these"),
    (lambda: static.Executor().run(static.Program(), scope={}), "Executor.run(program: Program, feed: Mapping[str, Any] | None, fetch_list: Any, step_limit: int, check_finite: bool, scope: Scope | None, memory_limit: int)"),
    (lambda: static.Executor().run(*open_sum()[::2], memory_limit=1), "smaller shapes, or Executor.run(…, memory_limit=…)"),
    # nets
    (lambda: Operator("while", {}, {}), "static.while_loop"),
    (lambda: Operator("exp", {"x": ["a", "b"]}, {"out": "c"}), "one name for 'x'"),
    (lambda: Operator("exp", {"x": "a"}, {}), "{'out': \"c\"}"),
    (lambda: Operator("exp", ["a"], {"out": "b"}), "Operator(type: str, inputs: Mapping[str, str | Sequence[str]], outputs: Mapping[str, str | Sequence[str]], attrs: Mapping[str, Any] | None)"),
    (lambda: Operator("exp", {"x": [1.0]}, {"out": "b"}), "a Variable, or its name in quotes"),
    (lambda: net_of_one().run(3), "Operator.run(scope: Any)"),
    (lambda: NetOp(3), "pass a list, a tuple or an array there"),
    (lambda: NetOp([3]), 'NetOp([Operator("exp", {"x": "a"}, {"out": "b"})])'),
    (lambda: Backward(3), "Backward(NetOp([…])); static.append_backward(loss) in a Program"),
    (lambda: Backward(net_of_one(), 3), "pass a list, a tuple or an array there"),
    (lambda: Backward(Operator("arg_max", {"x": "a"}, {"out": "b"})), "declare one: the primitive's .grad(x=lambda out_grad: …)"),
    (lambda: RnnOp(3, {}, {}, {}), 'NetOp([Operator("exp", {"x": "a"}, {"out": "b"})])'),
    (lambda: rnn(sequences=()), 'sequences={"x": "xs"}: x in a step, xs outside'),
    (lambda: rnn().run({"xs": 1.0, "h0": 0.0}), "RnnOp.run(scope: Any)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "repair"), REPAIRS, ids=[repair for _, repair in REPAIRS])
def test_an_error_ends_with_what_to_write_instead(call, repair):
    with pytest.raises(MinigradError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(f"\n  repair: {repair}"), message
    assert "\n  at test_texts_of_programs.py:" in message


@pytest.mark.parametrize(
    ("call", "words"), [(c, w) for c, *w in CALLS], ids=[w[0] for _, *w in CALLS]
)
def test_an_error_says_these_words_in_this_order(call, words):
    with pytest.raises((MinigradError, AttributeError, KeyError, ValueError)) as caught:
        call()
    lines = str(caught.value).splitlines()  # the line here holds the words, too
    text = "\n".join(s for s in lines if "test_texts_of_programs.py:" not in s)
    places = [text.find(w) for w in words]
    assert -1 not in places, (text, words)
    assert places == sorted(places), text


def test_a_picture_without_a_layout_engine_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(layout, "layout", lambda *args: None)
    monkeypatch.setattr(layout, "available", lambda: False)
    picture = mg.draw(mg.sin(mg.tensor(1.0, requires_grad=True)))
    with pytest.raises(
        RuntimeError, match=r"cannot draw 'a\.pdf': No layout engine found: .*pip install"
    ):
        picture.save(tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())
