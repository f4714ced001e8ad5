"""Every colour a picture may use, and how far two of them stand apart."""

from __future__ import annotations

from minigrad.viz.graph import style


def palette() -> frozenset[str]:
    """The colours of the tables of marks, and of texts."""
    nodes = {c for s in style.NODE_STYLES.values() for c in (s.stroke, s.fill, s.text)}
    regions = {c for s in style.REGION_STYLES.values() for c in (s.stroke, s.fill)}
    lines = {s.stroke for s in style.EDGE_STYLES.values()}
    texts = {style.TEXT, style.SMALL_TEXT, style.FAINT_TEXT, style.PAPER}
    return frozenset(nodes | regions | lines | set(style.ACTIVE_FILLS.values()) | texts)


def luminance(colour: str) -> float:
    """Relative luminance of ``#RRGGBB`` (WCAG 2).

    >>> luminance("#FFFFFF"), luminance("#000000")
    (1.0, 0.0)
    """
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 (equal) to 21 (black on white).

    >>> round(contrast("#FFFFFF", "#000000"), 2)
    21.0
    """
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
