"""A name of version 0.1.0; what it held stands in `minigrad.primitives.registry`."""

raise ImportError(
    "minigrad.registry is called minigrad.primitives.registry since version 0.2.0\n"
    "  repair: from minigrad.primitives.registry import …"
)
