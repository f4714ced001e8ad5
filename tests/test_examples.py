"""The examples learn, and all engines learn the same."""

import importlib
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def percent(words):
    return float(re.search(r"([\d.]+)%", words)[1])


@pytest.mark.parametrize(("model", "steps"), [("mlp", 400), ("cnn", 250)])
def test_at_least_97_of_100_unseen_digits_are_read(example, model, steps):
    losses, words = example("digits").main(model, steps=steps)
    assert len(losses) == steps
    assert percent(words) >= 97.0


def test_a_writer_learns_which_characters_are_frequent(example):
    losses, words = example("sonnets").main(steps=12)
    assert losses[-1] < 0.9 * losses[0]
    assert words.startswith("Shall I ")


def test_a_transformer_learns_more_than_the_digits_in_order(example):
    losses, words = example("sorting").main(steps=30)
    assert losses[-1] < 0.75 * losses[0]
    assert percent(words) > 25.0


@pytest.mark.parametrize("engine", ["executor", "compiled", "jax"])
@pytest.mark.parametrize(
    ("name", "given"),
    [("digits", {"model": "mlp"}), ("digits", {"model": "cnn"}), ("sonnets", {}), ("sorting", {})],
)
def test_all_engines_learn_the_same(example, name, given, engine):
    if engine == "jax":
        pytest.importorskip("jax", reason="pip install jax")
    main = example(name).main
    eager, words = main(steps=4, **given)
    other, others_words = main(steps=4, engine=engine, **given)
    np.testing.assert_allclose(other, eager, rtol=1e-4)
    assert words == others_words


def test_an_unknown_engine_is_quoted(example):
    with pytest.raises(
        ValueError, match="engine is 'quick': give one of eager, executor, compiled, jax"
    ):
        example("digits").main(steps=1, engine="quick")


def test_an_example_runs_from_the_command_line_and_draws_its_curve(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    curve = tmp_path / "curve.png"
    monkeypatch.setattr(sys, "argv", ["digits.py", "--steps", "30", "--plot", str(curve)])
    runpy.run_path(str(EXAMPLES / "digits.py"), run_name="__main__")
    assert "in 30 steps\naccuracy on unseen digits:" in capsys.readouterr().out
    assert curve.read_bytes()[:4] == b"\x89PNG"
