"""Modules that need an extra are looked at for doctests only where it is installed; recorders never."""

from importlib.util import find_spec

_BACKENDS = "minigrad/static/backends"

collect_ignore = ["tests/nn/record_pytorch.py"]  # needs torch
collect_ignore_glob = [
    f"{_BACKENDS}/{package}_*.py" for package in ("jax", "onnx") if find_spec(package) is None
]
