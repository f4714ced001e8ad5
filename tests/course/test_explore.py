"""Interactive moments: a frame, its controls, and what is left without a kernel."""

import base64

import ipywidgets

from minigrad.course.explore import control, explore, figure, presses

WIDGET = "application/vnd.jupyter.widget-view+json"


def words(n):
    return f"{n} squared is {n * n} < {n + 1000}"


def test_the_first_frame_travels_beside_the_widget():
    bundle = explore(words, n=(1, 9))._repr_mimebundle_()
    assert bundle["text/plain"] == "1 squared is 1 < 1001"
    assert WIDGET in bundle


def test_a_moved_control_draws_the_frame_again():
    shown = explore(words, n=(1, 9, 3))
    canvas = shown.view.children[-1]
    shown.controls["n"].value = 5
    assert "5 squared is 25 &lt; 1005" in canvas.value
    assert "mg-explore" in canvas._dom_classes


def test_the_view_is_made_once():
    shown = explore(words, n=(1, 9))
    assert shown.view is shown.view


def test_a_picture_and_words_are_both_shown_and_the_picture_stays():
    class Drawing:
        def _repr_mimebundle_(self):
            return {"image/svg+xml": "<svg id='a'></svg>", "text/plain": "a drawing"}

    shown = explore(lambda n: [Drawing(), f"n is {n}"], n=(1, 2))
    bundle = shown._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"] == "a drawing\nn is 1"
    canvas = shown.view.children[-1].value
    assert "<svg id=" in canvas
    assert "n is 1" in canvas


def test_a_figure_becomes_a_png_with_its_label_as_text():
    def frame(n):
        made, axes = figure()
        axes.plot([0, n])
        made.set_label(f"a line up to {n}")
        return made

    bundle = explore(lambda: frame(2))._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == "a line up to 2"
    assert bundle["text/html"].startswith('<img alt="a line up to 2" src="data:image/png;base64,')


def test_the_same_figure_gives_the_same_bytes():
    made = [explore(lambda: figure()[0])._repr_mimebundle_()["image/png"] for _ in range(2)]
    assert made[0] == made[1]


def test_short_forms_of_controls():
    assert isinstance(control("n", (1, 9)), ipywidgets.IntSlider)
    assert control("rule", ["add", "overwrite"]).value == "add"
    slider = ipywidgets.FloatSlider(0.5)
    assert control("x", slider) is slider


def test_presses_collect_and_start_again():
    shown = explore(lambda pressed: "".join(pressed) or "nothing", pressed=presses("C", "B"))
    buttons = shown.controls["pressed"].children
    canvas = shown.view.children[-1]
    for button in (buttons[0], buttons[1], buttons[0]):
        button.click()
    assert "CBC" in canvas.value
    buttons[-1].click()
    assert "nothing" in canvas.value
