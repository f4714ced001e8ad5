"""States in files: ``.safetensors`` (with the library of that name) or ``.npz``; never pickle.

A file is checked before memory is given to it: what it declares must be what was asked for, and the
sum of the declared sizes is limited.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..calls import checked
from ..errors import MinigradError, describe, refusal
from .module import Module, StateError

LIMIT = 4 * 2**30  #: bytes that a file may declare
_BROKEN = zipfile.BadZipFile, zlib.error, EOFError, SyntaxError
RATIO = 200  #: how far compression may shrink an array
_KINDS = "fiub"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@checked
def save(state: Module | Mapping[str, Any], path: str | Path) -> None:
    """Write a module's state, or a state_dict, to ``.npz`` or ``.safetensors``.

    Errors: `StateError` for another ending or for values that are no numbers, `ImportError` where the
    safetensors library is missing.

    >>> import tempfile
    >>> from minigrad import nn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(nn.Linear(3, 2), folder + "/model.npz")
    ...     list(load(folder + "/model.npz"))
    ['weight', 'bias']
    """
    if not isinstance(state, Module | Mapping):
        has = hasattr(state, "state_dict")
        advice = "nn.save(optimizer.state_dict(), path)" if has else "nn.save(model, path)"
        what = f"a module or a mapping from names to arrays is stored, not {describe(state)}"
        raise refusal(what, advice, StateError)
    values = state.state_dict() if isinstance(state, Module) else dict(state)
    arrays = {str(k): np.array(getattr(v, "_data", v), order="C") for k, v in values.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            nested = isinstance(values.get(name), Mapping)
            advice = "a file for each state" if nested else "arrays of numbers, by name"
            what = f"{name!r} is {describe(array)}: a state holds numbers"
            raise refusal(what, advice, StateError)
    if _ending(path) == ".npz":
        with Path(path).open("wb") as file, zipfile.ZipFile(file, "w") as whole:
            for name, array in arrays.items():  # no dates: the same state, the same bytes
                member = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
                with whole.open(member, "w", force_zip64=array.nbytes > 2**31 - 4096) as place:
                    np.lib.format.write_array(place, array, allow_pickle=False)
    else:
        _safetensors().save_file(arrays, str(path))


@checked
def load(path: str | Path, limit: int = LIMIT) -> dict[str, np.ndarray[Any, Any]]:
    """Read a state: ``model.load_state_dict(load("model.npz"))``.

    Errors: `StateError` for anything that is no sound file of numbers of at most ``limit`` bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": np.ones(2)}, folder + "/state.npz")
    ...     load(folder + "/state.npz")
    {'w': array([1., 1.])}
    """
    if _ending(path) == ".safetensors":
        return _load_safetensors(path, limit)
    try:
        with zipfile.ZipFile(path) as whole:
            members = whole.infolist()
            _check_members(path, members)
            declared = {m.filename[:-4]: _declared(whole, m) for m in members}
            _check_total(path, declared, limit)
            return {m.filename[:-4]: _read(whole, m) for m in members}
    except (StateError, FileNotFoundError):
        raise
    except (*_BROKEN, ValueError, OSError, RuntimeError) as error:
        raise _unsound(f"{Path(path).name} is no sound .npz file: {error}") from error


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix
    if ending not in (".npz", ".safetensors"):
        what = f"{Path(path).name!r} ends in {ending!r}; states are stored as .npz or .safetensors"
        raise refusal(what, f"{Path(path).stem}.npz", StateError)
    return ending


def _unsound(what: str) -> MinigradError:
    """The error for a file that is not what it says."""
    return refusal(what, "a file that nn.save wrote", StateError)


def _check_members(path: str | Path, members: list[zipfile.ZipInfo]) -> None:
    names = [m.filename for m in members]
    for m in members:
        if not m.filename.endswith(".npy") or names.count(m.filename) > 1:
            what = f"{Path(path).name} holds {m.filename!r}"
            raise _unsound(f"{what}: a state holds each array once, as .npy")
        if m.file_size > RATIO * max(m.compress_size, 1) + 4096:
            growth = f"from {m.compress_size} to {m.file_size} bytes"
            raise _unsound(f"{m.filename!r} grows {growth}: no honest array")


def _declared(whole: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes an array will take, from its header alone."""
    with whole.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise _unsound(f"{member.filename!r} has version {version} of the format, not 1 or 2")
        shape, _, dtype = _HEADERS[version](file)
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in _KINDS or min(shape, default=0) < 0:
            raise _unsound(f"{member.filename!r} holds {dtype}{list(shape)}: a state holds numbers")
        there = member.file_size - file.tell()
        if size != there:
            raise _unsound(f"{member.filename!r} declares {size} bytes and has {there}")
    return size


def _check_total(path: str | Path, declared: Mapping[str, int], limit: int) -> None:
    total = sum(declared.values())
    if total > limit:
        _too_large(path, f"declares {total}", limit)


def _too_large(path: str | Path, what: str, limit: int) -> NoReturn:
    what = f"{Path(path).name} {what} bytes, the limit is {limit}"
    raise refusal(what, "load(path, limit=…)", StateError)


def _read(whole: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    made: np.ndarray[Any, Any] = np.lib.format.read_array(
        io.BytesIO(whole.read(member)), allow_pickle=False
    )
    return made


def _safetensors() -> Any:
    try:
        return import_module("safetensors.numpy")
    except ImportError as error:
        repair = "pip install safetensors, or use .npz"
        raise ImportError(f"this needs the library safetensors; repair: {repair}") from error


def _load_safetensors(path: str | Path, limit: int) -> dict[str, np.ndarray[Any, Any]]:
    library = _safetensors()
    size = Path(path).stat().st_size  # nothing is compressed: what it holds is not larger
    if size > limit:
        _too_large(path, f"has {size}", limit)
    try:
        return dict(library.load_file(str(path)))
    except Exception as error:
        raise _unsound(f"{Path(path).name} is no sound .safetensors file: {error}") from error
