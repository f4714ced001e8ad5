"""A name of version 0.1.0; what it held stands in `minigrad.primitives.registry`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        "minigrad.registry is called minigrad.primitives.registry since version 0.2.0\n"
        f"  repair: from minigrad.primitives.registry import {name}"
    )
