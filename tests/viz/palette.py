"""Every colour a picture may use."""

from __future__ import annotations

from minigrad.viz import style


def palette() -> frozenset[str]:
    """The colours of the tables of marks, and of texts."""
    nodes = {c for s in style.NODE_STYLES.values() for c in (s.stroke, s.fill, s.text)}
    regions = {c for s in style.REGION_STYLES.values() for c in (s.stroke, s.fill)}
    lines = {s.stroke for s in style.EDGE_STYLES.values()}
    texts = {style.TEXT, style.SMALL_TEXT, style.FAINT_TEXT, style.PAPER}
    return frozenset(nodes | regions | lines | set(style.ACTIVE_FILLS.values()) | texts)
