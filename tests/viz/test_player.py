"""The player: what it shows as text, as a drawing and as a page."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from minigrad.viz.player import Event, Player, play
from minigrad.viz.render import layout
from minigrad.viz.render.html import as_json
from tests.viz import sample_programs as samples
from tests.viz.needs import needs_layout
from tests.viz.replayed import frame


def small_film(name="x", answer="9"):
    g = Graph(title="square of a number")
    x, f = g.node("leaf", name, lines=("3",)), g.node("op", "Square", lines=("y = x²",))
    y = g.node("output", "y", lines=(answer,))
    g.edge(x, f)
    g.edge(f, y)
    return Player(
        Picture(g),
        [Event("forward", (f.id, y.id), f"Square gives {answer}", "y = x²", {y.id: answer})],
    )


def test_the_text_of_a_player_is_the_log_of_its_events():
    text = repr(play(samples.shared_w()))
    assert text.splitlines()[0] == "Program: 6 ops, 8 grad ops"
    assert "14. Add up #13 sum takes w@GRAD@RENAME@0, w@GRAD@RENAME@1 and gives w@GRAD" in text


def test_before_it_starts_no_gradient_and_no_result_has_a_number():
    film = play((samples.shared_w(), {"w@GRAD": 12.0, "loss": 3.0}))
    texts = frame(film, 0).texts
    assert any(n.name == "w@GRAD" and n.id in texts for n in film.graph.nodes.values())
    assert {text.rpartition("= ")[2] for lines in texts.values() for text in lines} <= {"—", ""}


@needs_layout
def test_a_notebook_gets_the_player_its_drawing_and_its_text():
    player = play(samples.shared_w())
    bundle = player._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml", "text/html"}
    assert bundle["image/svg+xml"] == player.picture.svg


def test_without_a_layout_engine_the_text_remains(monkeypatch, tmp_path):
    monkeypatch.setattr(layout, "ENGINES", ())
    player = small_film()
    assert set(player._repr_mimebundle_()) == {"text/plain"}
    assert "Square gives 9" in player.save(tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_loop_shows_the_values_of_each_iteration():
    scopes = [{"t": np.array([2.0, 3.0])}, {"t": np.array([4.0, 9.0])}]
    film = play((samples.while_loop(), {"step_scopes": scopes}))
    for iteration, words in enumerate(("[2, 3]", "[4, 9]")):
        steps = film.script["steps"]
        number = next(n for n, s in enumerate(steps) if [words] in s["shows"].values())
        assert steps[number]["iteration"] == iteration
        assert [words] in frame(film, number + 1).texts.values()
        assert [words] not in frame(film, number).texts.values()


def test_a_player_is_saved_as_html_only(tmp_path):
    with pytest.raises(ValueError, match=r"cannot save a player as 'x\.gif'"):
        play(samples.shared_w()).save(tmp_path / "x.gif")


def test_what_has_no_graph_is_refused():
    with pytest.raises(TypeError):
        play(42)


def test_the_script_is_plain_data_and_cannot_leave_its_element():
    film = small_film(name="</script><script>alert(1)</script>")
    text = as_json(film.script)
    assert "<" not in text
    assert json.loads(text)["steps"][0]["ask"] == {"node": "n2", "what": "y = ?", "answer": "9"}


def test_playing_loads_widgets_only_when_one_is_shown():
    import subprocess

    code = (
        "import sys; from minigrad.viz.player import play;"
        "from minigrad.viz.graph.graph import Graph; play(Graph());"
        "assert not {'ipywidgets', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_stands_before_a_value_keeps_to_the_rows_of_its_box():
    from minigrad.viz.player import _beside

    drawn, before = "model.0.weight.grad = [3,4] float64", "model.0.weight.grad = —"
    assert _beside(drawn, before) == [
        ("model.0.weight.grad", "model.0.weight.grad"),
        ("= [3,4] float64", "= —"),
    ]
