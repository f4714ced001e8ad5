"""The player in a real browser: keys, buttons, questions, both themes, hostile names."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.picture import Picture
from minigrad.viz.player import Player, play
from tests.viz import replayed
from tests.viz import sample_programs as samples
from tests.viz.test_player import small_film

pytestmark = pytest.mark.browser

NODES = """() => [...document.querySelectorAll('g.node')].map(g => [
    g.id.split('-').pop(),
    [...g.classList],
    [...g.querySelectorAll('text')].map(t => t.textContent)])"""
PLACES = """() => [...document.querySelectorAll('g.node text')].map(
    t => { const box = t.getBBox(); return [t.textContent, box.x, box.width].join() })"""
BOXES = """() => [...document.querySelectorAll('g.node, g.edge')].map(
    g => JSON.stringify(g.querySelector('path, polygon, ellipse').getBBox()))"""


@pytest.fixture
def show(browser, tmp_path):
    """Open a player in a page; afterwards nothing may have gone wrong or left the machine."""
    errors, asked, pages = [], [], []

    def opened(player, scheme="light"):
        page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=scheme)
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.on("dialog", lambda d: (errors.append(f"dialog {d.message}"), d.dismiss()))
        page.on("console", lambda m: m.type == "error" and errors.append(m.text))
        page.on("request", lambda r: None if r.url.startswith("file:") else asked.append(r.url))
        page.goto(player.save(tmp_path / f"{len(pages)}.html").as_uri())
        page.wait_for_selector(".mg-player")
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert errors == []
    assert asked == []


def frame_of(page):
    return int(page.get_attribute(".mg-player", "data-frame"))


def test_keys_buttons_and_slider_move_through_the_frames(show):
    page = show(play(samples.shared_w()))
    page.focus(".mg-player")
    for key, frame in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 14),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert frame_of(page) == frame, key
    for button, frame in (("next", 1), ("last", 14), ("back", 13), ("first", 0)):
        page.click(f".mg-{button}")
        assert frame_of(page) == frame, button
    page.fill(".mg-range", "9")
    assert frame_of(page) == 9
    assert page.text_content(".mg-count") == "9 of 14"


def test_play_runs_to_the_end_and_space_stops_it(show):
    page = show(play(samples.shared_w()))
    page.focus(".mg-player")
    page.keyboard.press(" ")
    page.wait_for_selector('.mg-player[data-frame="1"]')
    page.keyboard.press(" ")
    assert page.get_attribute(".mg-play", "aria-label") == "play (Space)"


def test_a_click_on_a_node_jumps_to_the_step_that_wrote_it(show):
    player = play(samples.shared_w())
    page = show(player)
    node = next(n for n in player.graph.nodes.values() if n.name == "h2@GRAD")
    page.click(f'g.node[id$="-{node.id}"] text')
    assert frame_of(page) == player.first[node.id] + 1
    assert "active" in page.get_attribute(f'g.node[id$="-{node.id}"]', "class")


def test_the_browser_shows_what_the_film_says_in_every_frame(show):
    values = {"h": np.array(2.0), "loss": np.array(0.5), "w@GRAD": np.array([1.0, 2.0])}
    player = play((samples.shared_w(), values))
    page = show(player)
    page.focus(".mg-player")
    for number in range(len(player.events) + 1):
        states, texts = replayed.frame(player, number)
        said = player.events[number - 1].text if number else player.opening
        assert page.text_content(".mg-say") == said
        seen = page.evaluate(NODES)
        for node, classes, shown in seen:
            if node in states:
                assert states[node] in classes
            assert set(texts.get(node, ())) <= set(shown)
        page.keyboard.press("ArrowRight")


def test_nothing_moves_between_frames(show):
    page = show(play(samples.while_loop()))
    page.focus(".mg-player")
    before = page.evaluate(BOXES)
    page.keyboard.press("End")
    assert page.evaluate(BOXES) == before


def test_a_player_made_before_it_is_seen_writes_values_where_they_belong(show, tmp_path):
    page = show(small_film())
    page.focus(".mg-player")
    page.keyboard.press("End")
    places = page.evaluate(PLACES)
    hidden = (
        (tmp_path / "0.html").read_text().replace('<main id="shown"', '<main hidden id="shown"')
    )
    (tmp_path / "hidden.html").write_text(hidden)
    page.goto((tmp_path / "hidden.html").as_uri())
    page.evaluate("document.querySelector('main').hidden = false")
    page.focus(".mg-player")
    page.keyboard.press("End")
    assert page.evaluate(PLACES) == places


def test_prediction_hides_the_next_value_asks_and_tells(show):
    player = play((samples.shared_w(), {"h": np.array(2.0), "h2": np.array(4.0)}), prediction=True)
    page = show(player)
    page.click(".mg-next")
    assert page.text_content(".mg-question") == "h = ?"
    node = next(n for n in player.graph.nodes.values() if n.name == "h")
    assert "2" not in page.text_content(f'g.node[id$="-{node.id}"] >> css=text:last-of-type')
    assert "what comes next" in page.text_content(".mg-say")
    page.keyboard.type("2.001")
    page.keyboard.press("Enter")
    assert page.text_content(".mg-verdict") == "Right: 2."
    page.focus(".mg-player")
    page.keyboard.press("ArrowRight")
    page.fill(".mg-answer", "5")
    page.click(".mg-check")
    assert page.text_content(".mg-verdict") == "Not quite: 5 is not it. Try again, or press show."
    assert page.text_content(".mg-question") == "h2 = ?"
    page.fill(".mg-answer", "8/2")
    page.click(".mg-check")
    assert page.text_content(".mg-verdict") == "Right: 4."
    page.click(".mg-predict")
    page.click(".mg-next")
    assert not page.is_visible(".mg-ask")


def tensors():
    a = mg.tensor([1.0, 2.0], requires_grad=True, name="a")
    b = mg.tensor(3.0, requires_grad=True, name="b")
    y = (a * b).sum()
    y.name = "y"
    y.backward()
    return y


def test_prediction_asks_for_gradients_and_takes_any_right_spelling(show):
    page = show(play(tensors(), prediction=True))
    spellings = {
        "%1 = ?": "array([3., 6.])",
        "y = ?": "9,0",
        "y.grad = ?": "1.",
        "What is b.grad now?": "+3e0",
    }
    asked = []
    for _ in range(len(play(tensors()).events)):
        page.focus(".mg-player")
        page.keyboard.press("ArrowRight")
        question = page.text_content(".mg-question")
        asked.append(question)
        if question in spellings:
            page.fill(".mg-answer", "17")
            page.click(".mg-check")
            assert "Try again" in page.text_content(".mg-verdict")
            page.fill(".mg-answer", spellings[question])
            page.click(".mg-check")
            assert page.text_content(".mg-verdict").startswith("Right"), question
        else:
            page.click(".mg-show")
    assert "SumBackward0: g = ?" in asked
    assert "What is b.grad now?" in asked
    assert "MulBackward0: [0] g·b = ?" in asked


def test_prediction_tells_no_answer_before_it_is_asked(show):
    page = show(play(tensors(), prediction=True))
    words = page.evaluate("() => document.querySelector('svg.mg-picture').outerHTML")
    assert "float64 [], 9.0" not in words and "y.grad = 1" not in words
    assert not page.is_visible("details")
    page.click(".mg-predict")
    page.click(".mg-last")  # what has not run is not told without questions either
    assert "9.0" in page.evaluate("() => document.querySelector('svg.mg-picture').outerHTML")


def test_controls_caption_and_picture_are_in_one_view(show):
    page = show(play(tensors(), prediction=True))
    page.set_viewport_size({"width": 1280, "height": 800})
    heights = set()
    for key in ("Home", *["ArrowRight"] * 8, "End"):
        page.focus(".mg-player")
        page.keyboard.press(key)
        # the browser may scroll a page to what gets the focus: a place counts from the top of the page
        top, bottom = page.eval_on_selector(
            ".mg-pic",
            "e => { const b = e.getBoundingClientRect(); return [b.top + scrollY, b.bottom] }",
        )
        heights.add(top)
        assert bottom <= 800
        if page.is_visible(".mg-show"):
            page.click(".mg-show")  # an answer appears in room that was kept for it
            page.focus(".mg-player")
            heights.add(
                page.eval_on_selector(".mg-pic", "e => e.getBoundingClientRect().top + scrollY")
            )
    assert len(heights) == 1  # nothing above the picture grows or shrinks


def test_a_screen_reader_hears_every_step(show):
    page = show(play(samples.shared_w()))
    assert page.get_attribute(".mg-say", "aria-live") == "polite"
    assert page.get_attribute(".mg-player svg.mg-picture", "role").startswith("graphics-document")
    names = page.eval_on_selector_all(
        ".mg-bar button", "all => all.map(b => b.getAttribute('aria-label'))"
    )
    assert len(names) == 6
    assert all(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_loop_tells_its_iteration_in_both_themes(show, scheme):
    scopes = [{"t": np.array([2.0, 3.0])}, {"t": np.array([4.0, 9.0])}]
    page = show(play((samples.while_loop(), {"step_scopes": scopes})), scheme)
    page.focus(".mg-player")
    seen = []
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        seen.append(page.text_content(".mg-iteration"))
    assert [s for s in dict.fromkeys(seen) if s] == ["step 0 of the loop", "step 1 of the loop"]


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "]]>",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "{{7*7}}",
    "${alert(1)}",
    "\\N\\G",
    "'; alert(1); '",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_shown_and_runs_nothing(show, name):
    page = show(small_film(name, answer=name[:28]))
    page.focus(".mg-player")
    page.keyboard.press("ArrowRight")
    assert name[:28] in page.text_content(".mg-say")
    assert page.query_selector_all("img, .mg-pic script, iframe") == []


def test_a_frame_takes_at_most_fifty_milliseconds_at_four_hundred_nodes(show):
    player = play_of(samples.big_program(160))
    assert len(player.graph.nodes) >= 400
    page = show(player)
    page.focus(".mg-player")
    taken = []
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        taken.append(float(page.get_attribute(".mg-player", "data-milliseconds")))
    assert sorted(taken)[len(taken) * 9 // 10] <= 50, taken


def test_under_the_mouse_a_node_and_its_twin_light_up_without_a_rule_that_slows_every_frame(show):
    page = show(play(samples.shared_w()))
    assert ":has(" not in page.locator("svg style").first.text_content()
    page.locator("g.op.fwd[class*=' tn'] polygon").first.hover(force=True)
    assert page.locator("g.mg-lit").count() == 2
    assert page.locator("g.mg-lit.bwd").count() == 1
    page.mouse.move(0, 0)
    assert page.locator("g.mg-lit").count() == 0


def play_of(program):
    from minigrad.viz.adapters.of_program import of_program
    from minigrad.viz.player import run_events

    graph = of_program(program)
    return Player(Picture(graph), run_events(graph))
