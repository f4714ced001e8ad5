"""Pictures: one visual language for every graph.

Adapters (``of_nodes``, ``of_grad_fn``, ``of_net``, ``of_program``) turn objects into a neutral
`graph.Graph`; renderers (``dot``, ``svg``, ``text``, ``player``) turn that into something to look
at. Everything is loaded on first use.
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
