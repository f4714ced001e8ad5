"""Every colour a picture may use, and how far two of them stand apart."""

from __future__ import annotations

import math

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


#: what a colour becomes for an eye without red or green cones (Machado, Oliveira and Fernandes 2009), in linear light
_BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}  # fmt: skip
_TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
_WHITE = (0.9505, 1.0, 1.089)


def _times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def lab(colour: str, eye: str = "") -> list[float]:
    """``#RRGGBB`` in CIE L*a*b*, as an eye sees it.

    >>> [round(v) for v in lab("#FFFFFF")]
    [100, 0, 0]
    """
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    if eye:
        light = [min(1.0, max(0.0, p)) for p in _times(_BLIND[eye], light)]
    xyz = [v / w for v, w in zip(_times(_TO_XYZ, light), _WHITE, strict=True)]
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


def distance(one: str, other: str, eye: str = "") -> float:
    """How far two colours stand apart for an eye (ΔE of 1976): some 10 are seen side by side."""
    return math.dist(lab(one, eye), lab(other, eye))
