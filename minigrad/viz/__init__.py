"""Pictures: one visual language for every graph.

Adapters turn objects into a neutral `graph.Graph`; renderers turn that into something to look at.
Neither knows the other, and everything is loaded on first use.

    picture, sources, names     `draw`; which adapter draws what; what things are called
    graph, style, reading       nodes, lines and frames; the look of each; small questions

Adapters, each with the files it stands on:

    of_nodes                    linked nodes: links, watching, linked_values, linked_gradients
    of_grad_fn                  grad_fn graphs: tensors, grad_nodes
    of_program, of_net          operators that name what they read: wiring, twins, variables, spelling
    of_scope, of_module         scopes and registries; parameters
    format, formula             numbers and names; formulas, from rules and expressions

What is large is drawn small:

    fold, view                  how much is drawn; what was opened since
    labelled                    values as labels of lines
    segments, contract          repeats, each drawn as one node
    closing, opening, summary   frames closed; what is searched for; too large to draw at all

Renderers:

    text, describe              for a terminal; in words
    dot, layout                 Graphviz's language, and its engine in a child process (layout_worker);
                                labels, legend, rank and anchors write parts of it
    svg, titles                 the drawing, cleaned and named
    explorer, html              the widget of a large picture; pages that stand alone
    player, film, sheet         `play`: buttons, frames, three frames on a sheet;
                                events, building and live say what happens
    plots, paper                curves in the same colours
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {
    "draw": "picture",
    "Picture": "picture",
    "graph_of": "picture",
    "watch": "watching",
    "play": "player",
    "Graph": "graph",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # no submodule is called draw or watch: importing it would hide the function of that name
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
