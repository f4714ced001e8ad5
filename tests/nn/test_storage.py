"""States in files."""

import contextlib
import io
import pickle
import sys
import zipfile

import numpy as np
import pytest

from minigrad import nn


def state():
    return {
        "weight": np.arange(6.0).reshape(2, 3),
        "bias": np.float32([1, 2]),
        "count": np.array(3),
    }


def same(one, two):
    assert list(one) == list(two)
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name])
        assert (value.dtype, value.shape) == (two[name].dtype, two[name].shape)


def test_a_state_comes_back_as_it_was(tmp_path):
    nn.save(state(), tmp_path / "m.npz")
    same(nn.load(tmp_path / "m.npz"), state())
    nn.save(state(), tmp_path / "again.npz")
    assert (tmp_path / "m.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()


def test_a_module_is_stored_and_loaded(tmp_path):
    one, two = nn.Linear(3, 2, seed=1), nn.Linear(3, 2, seed=2)
    nn.save(one, tmp_path / "m.npz")
    two.load_state_dict(nn.load(tmp_path / "m.npz"))
    same(one.state_dict(), two.state_dict())


def test_safetensors_come_back_as_they_were(tmp_path):
    pytest.importorskip("safetensors")
    nn.save(state(), tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    same({k: loaded[k] for k in state()}, state())
    (tmp_path / "bad.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(nn.StateError, match=r"no sound \.safetensors file"):
        nn.load(tmp_path / "bad.safetensors")


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match="pip install safetensors, or use .npz"):
        nn.save(state(), tmp_path / "m.safetensors")


@pytest.mark.parametrize("name", ["m.pkl", "m", "m.npy"])
def test_another_ending_is_refused(tmp_path, name):
    for use in (lambda: nn.save(state(), tmp_path / name), lambda: nn.load(tmp_path / name)):
        with pytest.raises(nn.StateError, match=r"stored as \.npz or \.safetensors"):
            use()


def test_what_is_no_number_is_not_stored(tmp_path):
    with pytest.raises(nn.StateError, match="a state holds numbers"):
        nn.save({"a": np.array([object()])}, tmp_path / "m.npz")


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, content in members:
            whole.writestr(name, content)


def npy(array, shape=None):
    """The bytes of an array, with a header that may lie about its shape."""
    place = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(place, header | ({"shape": shape} if shape else {}))
    return place.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("a.txt", b"x")], "holds each array once, as .npy"),
        ([("a.npy", npy(np.ones(3), (10**12,)))], "no sound .npz file"),
        ([("a.npy", npy(np.zeros(10**6)))], "grows from"),
        ([("a.npy", b"no header at all")], "no sound .npz file"),
        ([("a.npy", pickle.dumps([1, 2]))], "no sound .npz file"),
    ],
)
def test_a_file_that_lies_is_refused_before_memory_is_given(tmp_path, members, words):
    archive(tmp_path / "m.npz", members)
    with pytest.raises(nn.StateError, match=words):
        nn.load(tmp_path / "m.npz")


def test_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(nn.StateError, match="no sound .npz file: Object arrays cannot be loaded"):
        nn.load(tmp_path / "m.npz")


def test_a_file_above_the_limit_is_refused(tmp_path):
    nn.save({"a": np.random.default_rng(0).normal(size=1000)}, tmp_path / "m.npz")
    with pytest.raises(nn.StateError, match="declares 8128 bytes, the limit is 100"):
        nn.load(tmp_path / "m.npz", limit=100)


def test_broken_bytes_are_errors_of_one_kind(tmp_path):
    nn.save(state(), tmp_path / "m.npz")
    sound = (tmp_path / "m.npz").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(sound)
        for place in rng.integers(len(broken), size=rng.integers(1, 5)):
            broken[place] = rng.integers(256)
        (tmp_path / "b.npz").write_bytes(
            bytes(broken[: rng.integers(len(broken) // 2, len(broken) + 1)])
        )
        with contextlib.suppress(nn.StateError):
            nn.load(tmp_path / "b.npz")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "none.npz")
