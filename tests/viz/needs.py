"""What some tests of pictures cannot do without."""

from __future__ import annotations

import pytest

from minigrad.viz.render import layout

needs_layout = pytest.mark.skipif(not layout.available(), reason="no layout engine")
