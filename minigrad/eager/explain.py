"""Why a Tensor has, or has not, a gradient."""
from __future__ import annotations

from typing import Any


def no_graph_reason(out: Any) -> str:
    """Why an output has no graph."""
    return "none of its inputs requires grad, or it was computed under no_grad(), or it was detached"


def why(x: Any) -> Any:
    """Where the gradient of x came from."""
    raise NotImplementedError
