"""The player: what it shows as text, as static frames and as a widget."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from minigrad.viz.graph.graph import Graph
from minigrad.viz.player.events import Event
from minigrad.viz.player.film import Film
from minigrad.viz.player.player import Player, play
from minigrad.viz.render import layout
from minigrad.viz.render.html import as_json
from tests.viz import sample_programs as samples
from tests.viz.needs import needs_layout

SVG = "{http://www.w3.org/2000/svg}"


def small_film(name="x", answer="9"):
    g = Graph(title="square of a number")
    x, f = g.node("leaf", name, lines=("3",)), g.node("op", "Square", lines=("y = x²",))
    y = g.node("output", "y", lines=(answer,))
    g.edge(x, f)
    g.edge(f, y)
    return Film(
        g, [Event("forward", (f.id, y.id), f"Square gives {answer}", "y = x²", {y.id: answer})]
    )


def test_the_text_of_a_player_is_the_log_of_its_events():
    text = repr(play(samples.shared_w()))
    assert text.splitlines()[0] == "Program: 6 ops, 8 grad ops"
    assert "14. Add up #13 sum takes w@GRAD@RENAME@0, w@GRAD@RENAME@1 and gives w@GRAD" in text


@needs_layout
def test_a_frame_hides_what_is_not_known_yet_and_never_moves_anything():
    film = small_film()
    before, after = film.svg(0), film.svg(1)
    assert ">—<" in before
    assert ">9<" not in before
    assert ">9<" in after
    assert shapes(before) == shapes(after)


def shapes(svg):
    return [
        (e.tag, e.get("points"), e.get("d"), e.get("cx"), e.get("cy"))
        for e in ET.fromstring(svg).iter()
        if e.tag != f"{SVG}text"
    ]


@needs_layout
def test_states_are_classes_on_nodes():
    root = ET.fromstring(small_film().svg(1))
    classes = [
        set(g.get("class").split()) for g in root.iter(f"{SVG}g") if "node" in g.get("class", "")
    ]
    assert sum("active" in c for c in classes) == 2
    assert sum("pending" in c for c in classes) == 0


@needs_layout
def test_static_frames_are_the_first_the_middle_and_the_last():
    frames = play(samples.shared_w()).film.static_frames()
    assert [words.split(".")[0] for words, _ in frames] == [
        "Step 0 of 14",
        "Step 7 of 14",
        "Step 14 of 14",
    ]
    assert play(samples.shared_w()).frames().count("<figure>") == 3


@needs_layout
def test_a_notebook_gets_the_player_its_static_frames_and_its_text():
    bundle = play(samples.shared_w())._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml", "text/html"}
    root = ET.fromstring(bundle["image/svg+xml"])
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    words = [t.text for t in root.iter(f"{SVG}text") if (t.text or "").startswith("Step ")]
    assert [w.split(".")[0] for w in words] == ["Step 0 of 14", "Step 7 of 14", "Step 14 of 14"]


def test_the_frame_of_a_player_can_be_set_and_a_wrong_one_is_named():
    player = Player(small_film())
    player.frame = 1
    assert player.frame == 1
    with pytest.raises(ValueError, match=r"no frame 7: this player has the frames 0 to 1"):
        player.frame = 7


def test_without_a_layout_engine_the_text_remains(monkeypatch, tmp_path):
    monkeypatch.setattr(layout, "ENGINES", ())
    player = Player(small_film())
    assert set(player._repr_mimebundle_()) == {"text/plain"}
    assert "Square gives 9" in player.save(tmp_path / "x.html").read_text(encoding="utf-8")


@needs_layout
def test_a_loop_shows_the_values_of_each_iteration():
    scopes = [{"t": np.array([2.0, 3.0])}, {"t": np.array([4.0, 9.0])}]
    film = play((samples.while_loop(), {"step_scopes": scopes})).film
    for iteration, words in enumerate(("[2, 3]", "[4, 9]")):
        number = next(n for n in range(len(film)) if (words,) in film.frame(n).texts.values())
        assert film.frame(number).iteration == iteration
        assert words in film.svg(number)
        assert words not in film.svg(number - 1)


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
        "import sys; from minigrad.viz.player.player import play;"
        "from minigrad.viz.graph.graph import Graph; play(Graph());"
        "assert not {'anywidget', 'ipywidgets', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
