"""The workloads of the benchmark: gradients by hand, those of the floor and those of both engines agree."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
MODULES = ("by_hand", "floor", "floor_cnn", "models", "peers", "workloads")


@pytest.fixture
def bench(monkeypatch):
    """The modules of the benchmark, as its scripts see them, and gone afterwards."""
    if not FOLDER.exists():
        pytest.skip("the benchmark is not part of what is installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    import peers
    import workloads

    yield peers, workloads
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["W1", "W1s", "W4", "W5", "W6e", "W6l", "W8", "W8s"])
@pytest.mark.parametrize("peer", ["floor", "minigrad eager"])
def test_gradients_agree_with_those_by_hand(bench, name, peer):
    peers, workloads = bench
    expected = peers.PEERS["by hand"](workloads.make(name)).grads()
    runner = peers.PEERS[peer](workloads.make(name))
    for _ in range(2):  # buffers that are used again
        found = runner.grads()
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("name", ["W1s", "W8s"])
def test_the_compiled_step_agrees_too(bench, name):
    peers, workloads = bench
    by_hand, compiled = (
        peers.PEERS[p](workloads.make(name)) for p in ("by hand", "minigrad compiled")
    )
    for _ in range(2):
        for a, b in zip(compiled.grads(), by_hand.grads(), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("peer", ["floor", "minigrad eager"])
def test_a_step_moves_the_parameters_as_by_hand(bench, peer):
    peers, workloads = bench
    by_hand, other = (peers.PEERS[p](workloads.make("W1s")) for p in ("by hand", peer))
    for _ in range(3):
        by_hand.step()
        other.step()
    for a, b in zip(other.grads(), by_hand.grads(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())
