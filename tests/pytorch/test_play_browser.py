"""Players of PyTorch's graphs in a real browser: every step by key."""

from __future__ import annotations

import json

import numpy as np
import pytest

import minigrad as mg
from tests.viz import conftest

torch = pytest.importorskip("torch")

from tests.pytorch import models  # noqa: E402

pytestmark = pytest.mark.browser
browser = conftest.browser


@pytest.mark.parametrize("make", [models.mlp, models.cnn])
def test_every_step_is_told_by_key_and_nothing_goes_wrong(browser, make, tmp_path):
    torch.manual_seed(0)
    model = make()
    x = torch.randn(2, 8) if make is models.mlp else torch.randn(2, 1, 8, 8)
    loss = model(x).pow(2).mean()
    loss.backward(retain_graph=True)
    file = tmp_path / "player.html"
    mg.play(loss).save(file)
    page, wrong = browser.new_page(), []
    page.on("console", lambda m: wrong.append(m.text))
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.goto(file.as_uri())
    page.focus(".mg-player")
    said = []
    while page.get_attribute(".mg-next", "disabled") is None:
        page.keyboard.press("ArrowRight")
        said.append(page.text_content(".mg-say"))
        assert len(said) < 200
    page.close()
    assert wrong == []
    operations = [s.split()[1] for s in said if s.startswith("Backward ")]
    assert operations[0] == "MeanBackward0"
    assert sum(s.startswith("Forward ") for s in said) == len(operations)
    for name, p in model.named_parameters():
        (told,) = (s for s in said if f": model.{name}.grad = " in s)
        gave = told.rpartition(" = ")[2]
        assert gave.endswith("float32") or np.allclose(json.loads(gave), p.grad, rtol=1e-3)
