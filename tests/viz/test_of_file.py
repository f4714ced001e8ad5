"""Model files: an ONNX file as a picture, and what a broken, hostile or unknown file says."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad import static

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def model(nodes, weights=(), inputs=("x",), outputs=("y",)):
    """An ONNX model of these nodes; its inputs are matrices of two columns."""
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 2]) for n in inputs]
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    return helper.make_model(helper.make_graph(nodes, "g", given, made, list(weights)))


def dense():
    w = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    return model(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("LeakyRelu", ["h"], ["y"], alpha=0.25),
        ],
        [w],
    )


def test_who_made_a_model_and_its_versions_are_told():
    made = dense()
    made.producer_name, made.producer_version = "pytorch", "2.13"
    told = mg.draw(made).text
    assert (
        f"made by pytorch 2.13, ONNX IR {made.ir_version}, opset {made.opset_import[0].version}"
        in told
    )


def named(picture):
    return {n.name: n for n in picture.graph.nodes.values()}


@pytest.mark.parametrize("from_a_file", [True, False])
def test_operators_weights_shapes_and_attributes_are_told(tmp_path, from_a_file):
    made = dense()
    onnx.save(made, tmp_path / "dense.onnx")
    picture = mg.draw(tmp_path / "dense.onnx" if from_a_file else made)
    nodes = named(picture)
    assert [n for n in ("MatMul", "LeakyRelu", "x", "w", "h", "y") if n not in nodes] == []
    assert nodes["w"].kind == "leaf"
    assert "max 5" in nodes["w"].tooltip
    assert nodes["w"].data["arrays"][0][1].low[1, 2] == 5
    assert nodes["y"].kind == "output"
    assert "[rows,2]" in nodes["x"].lines[0]
    assert "alpha = 0.25" in nodes["LeakyRelu"].tooltip


def test_loops_and_branches_stand_in_frames_of_their_own(tmp_path):
    program = static.Program()
    with static.program_guard(program):
        x, w = static.data("x", ()), static.parameter("w", np.array(0.5))
        _, s = static.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * w), [0, x])
        y = static.cond(s > 0, lambda: s * w, lambda: w + x)
    file = tmp_path / "loop.onnx"
    static.export_onnx(program, file, feed={"x": ()}, fetch=[y])
    labels = " ".join(r.label for r in mg.draw(file).graph.regions.values())
    assert "loop body" in labels
    assert "then_branch" in labels
    assert "else_branch" in labels


def test_a_long_model_is_folded():
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(1000)]
    picture = mg.draw(model(nodes, inputs=["v0"], outputs=["v1000"]))
    assert len(picture.graph.nodes) < 10


def test_names_and_operators_that_nobody_knows_are_drawn_as_text():
    name = '<b>&"\\N'
    node = helper.make_node("<script>", ["x", "", name], ["y"], domain="nobody")
    assert name in named(mg.draw(model([node])))
    assert "<script>" not in (mg.draw(model([node])).svg or "")


def test_a_graph_that_goes_round_is_drawn_as_it_stands():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    assert {"Add", "Relu", "a", "b"} <= named(mg.draw(model(nodes, outputs=["b"]))).keys()


def test_too_many_operators_are_refused_before_they_are_read():
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(100_000)]
    made = model(nodes, inputs=["v0"], outputs=["v100000"])
    begun = time.perf_counter()
    with pytest.raises(OSError, match="1 to 50,000 operators, this model 100,000"):
        mg.draw(made)
    assert time.perf_counter() - begun < 2


def test_without_the_package_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"minigrad\[onnx\]"):
        mg.draw(tmp_path / "model.onnx")


def test_weights_that_are_missing_or_too_few_are_named(tmp_path):
    made = dense()
    made.graph.initializer[0].dims[0] = 10**12
    with pytest.raises(OSError, match="cannot draw 'model'"):
        mg.draw(made)
    onnx.save(
        dense(), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="w"
    )
    (tmp_path / "w").unlink()
    with pytest.raises(OSError, match=r"cannot draw 'm\.onnx'.*\n?.*w"):
        mg.draw(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("broken.onnx", b"\x08\xff\xff nothing", "broken.onnx"),
        ("empty.onnx", b"", "1 to 50,000 operators, this model 0"),
        ("model.tflite", b"", "end in .onnx"),
        ("arrays.npz", b"", "the model files that are read"),
    ],
)
def test_what_cannot_be_read_says_what_can(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(OSError, match=f"^cannot draw .*{words}"):
        mg.draw(str(tmp_path / name))


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        mg.draw(tmp_path / "none.onnx")
