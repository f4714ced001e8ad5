"""Pictures: one visual language for every graph.

Objects flow in, a neutral `graph.graph.Graph` comes about, and leaves as something to look at.  No
room knows the next one but the graph, and everything is loaded on first use.

    picture         `draw` and what it returns
    graph/          the graph; values as short text; the one table of looks
    adapters/       objects → graph: what an object can do decides which adapter draws it
    fold            graph → smaller graph: what is large is drawn small, and opens
    render/         graph → DOT, SVG, words, a page
    player          graph → events → frames: `play`
    browser/        what of pictures and players runs in the browser

To change how a node looks, change its row in `graph/style.py`; what it says, in
`adapters/inside.py`.
"""

from importlib import import_module
from typing import Any

_PLACES = {
    "draw": "picture",
    "Picture": "picture",
    "graph_of": "picture",
    "watch": "adapters.watching",
    "play": "player",
    "Graph": "graph.graph",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # no submodule is called draw or watch: importing it would hide the function of that name
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
