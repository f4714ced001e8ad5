"""What tests of pictures may use."""

from __future__ import annotations

import pytest

from minigrad.viz.render import layout
from tests import jupyter_browser


@pytest.fixture(scope="module")
def browser():
    """Chromium, for drawings: skipped where it, playwright or the layout engine is missing."""
    if not layout.available():
        pytest.skip("no layout engine")
    with jupyter_browser.browser() as running:
        yield running
