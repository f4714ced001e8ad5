"""Interactive moments: change an input, compute again, look.

``explore(frame, **controls)`` calls ``frame`` with the values of the controls and shows
what it returns.
With a kernel the controls move; without one (a notebook read on a web page) the first frame stays
visible, because it travels in the same bundle as the widget.

A frame returns a picture, a matplotlib figure, a text, or a list of these.
"""

import base64
import html
import io
from functools import cached_property
from typing import Any

from ..primitives.arguments import ByName, Function
from ..viz.graph.style import BLUE, GREEN, VERMILLION
from .execute import WIDGET

Bundle = dict[str, str]

#: Lines and dots of a plot have the colours of the pictures.
FORWARD, GRADIENT, LEAF = BLUE, VERMILLION, GREEN
_INK = "#808080"  # readable on white and on nearly black


class Explorer:
    """The controls, the frame they belong to, and the picture of their present values."""

    def __init__(self, frame: Function, controls: ByName) -> None:
        self.frame, self.controls = frame, controls
        self.first = self.compute()

    def compute(self) -> list[Bundle]:
        """What the frame returns for the present values of the controls, each part as texts by MIME type."""
        shown = self.frame(**{name: control.value for name, control in self.controls.items()})
        return [_bundle(part) for part in (shown if isinstance(shown, list) else [shown])]

    @cached_property
    def view(self) -> Any:
        """The widget: controls above, the picture below; made once."""
        import ipywidgets

        canvas = ipywidgets.HTML(value="".join(map(_html, self.first)))
        canvas.add_class("mg-explore")

        def redraw(_change) -> None:
            canvas.value = "".join(map(_html, self.compute()))

        for control in self.controls.values():
            control.observe(redraw, "value")
        return ipywidgets.VBox([*self.controls.values(), canvas])

    def _repr_mimebundle_(self, **_options) -> ByName:
        """The widget, and what is left without a kernel: the first picture, and all the words."""
        picture: Bundle = next((part for part in self.first if len(part) > 1), {})
        words = "\n".join(part.get("text/plain", "") for part in self.first)
        live = self.view._repr_mimebundle_()[WIDGET]
        return {**picture, "text/plain": words, WIDGET: live}


def explore(frame: Function, **controls) -> Explorer:
    """Show ``frame(**values)`` below controls that change the values.

    A control is any ipywidgets control, or the short forms of ``control``.

    >>> explore(lambda n: f"{n} squared is {n * n}", n=(1, 9)).first
    [{'text/plain': '1 squared is 1'}]
    """
    return Explorer(frame, {name: control(name, given) for name, given in controls.items()})


def control(name: str, form) -> Any:
    """A widget from its short form: ``(low, high)`` or ``(low, high, start)`` is a slider of
    integers, a list is a row of choices, anything else is taken to be a widget.

    >>> control("n", (1, 9, 4)).value, control("rule", ["add", "overwrite"]).value
    (4, 'add')
    """
    import ipywidgets

    label = name.replace("_", " ")
    wide = {"style": {"description_width": "initial"}, "layout": {"width": "28em"}}
    if isinstance(form, tuple):
        low, high, start = (*form, form[0])[:3]
        return ipywidgets.IntSlider(start, low, high, description=label, **wide)
    if isinstance(form, list):
        roomy = {**wide["style"], "button_width": "12em"}  # for 20 letters
        return ipywidgets.ToggleButtons(options=form, description=label, style=roomy)
    return form


def presses(*labels: str) -> Any:
    """Buttons whose value is the tuple of presses so far; a last button starts again.

    >>> buttons = presses("C", "B")
    >>> buttons.children[0].click(); buttons.children[1].click(); buttons.value
    ('C', 'B')
    >>> buttons.children[-1].click(); buttons.value
    ()
    """
    import ipywidgets
    import traitlets

    buttons = [ipywidgets.Button(description=label) for label in labels]
    again = ipywidgets.Button(description="start again", icon="undo")
    pressed = ipywidgets.HBox([*buttons, again])
    pressed.add_traits(value=traitlets.Tuple())

    def press(button) -> None:
        pressed.value = () if button is again else (*pressed.value, button.description)

    for button in pressed.children:
        button.on_click(press)
    return pressed


def _bundle(part) -> Bundle:
    """One picture, figure or text as texts by MIME type."""
    if isinstance(part, str):
        return {"text/plain": part}
    if not hasattr(part, "savefig"):
        return dict(part._repr_mimebundle_())
    words, pixels = part.get_label() or "a plot", io.BytesIO()
    part.savefig(pixels, format="png", dpi=110, transparent=True, metadata={"Software": None})
    png = base64.b64encode(pixels.getvalue()).decode("ascii")
    named = html.escape(words)  # for screen readers
    shown = f'<img alt="{named}" src="data:image/png;base64,{png}">'
    return {"text/html": shown, "image/png": png, "text/plain": words}


def figure(width: float = 6.0, height: float = 3.4) -> tuple[Any, Any]:
    """A matplotlib figure and its axes, transparent, readable in light and dark."""
    from matplotlib.figure import Figure

    plot = Figure(figsize=(width, height), layout="constrained")
    axes: Any = plot.add_subplot()
    axes.patch.set_alpha(0)
    axes.tick_params(colors=_INK, which="both")
    for part in (*axes.spines.values(), axes.title, axes.xaxis.label, axes.yaxis.label):
        part.set_color(_INK)
    axes.set_prop_cycle(color=[FORWARD, GRADIENT, LEAF])
    return plot, axes


def _html(part: Bundle) -> str:
    """What a part of a frame looks like inside the widget: a picture, or escaped text."""
    if drawing := part.get("image/svg+xml"):
        return f'<div style="overflow-x:auto">{drawing}</div>'
    words = html.escape(part.get("text/plain", ""))
    return part.get("text/html", f'<pre style="line-height:1.4">{words}</pre>')
