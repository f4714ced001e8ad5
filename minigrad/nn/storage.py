"""States in files: ``.safetensors`` (with the library of that name) or ``.npz``; never pickle.

A file is checked before memory is given to it: what it declares must be what was asked for, and the
sum of the declared sizes is limited.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..atomic import replacing
from ..errors import MinigradError, describe, refusal
from ..static.text.literals import DTYPES
from .module import Module, StateError

LIMIT = 4 * 2**30  #: bytes that a file may declare
RATIO = 200  #: how far compression may shrink an array
LONGEST = 65_000  #: bytes of a name
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def save(state: Module | Mapping[str, Any], path: str | Path) -> None:
    """Write a module's state, or a state_dict, to ``.npz`` or ``.safetensors``.

    A file that was there is replaced when the new one is complete: after an error, a full disk or
    a process that is killed, ``path`` still holds the old state. What `load` would refuse is not
    written.

    Errors: `StateError` for another ending, for names that a file cannot hold and for values that
    are no numbers; `ImportError` where the safetensors library is missing; `OSError` where the
    folder takes no file or the disk is full.

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
    ending = _ending(path)
    values = state.state_dict() if isinstance(state, Module) else dict(state)
    arrays = {name: _numbers(name, value) for name, value in values.items()}
    if ending == ".npz":
        with replacing(path) as file, zipfile.ZipFile(file, "w") as whole:
            for name, array in arrays.items():  # no dates: the same state, the same bytes
                member = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
                with whole.open(member, "w", force_zip64=array.nbytes > 2**31 - 4096) as place:
                    np.lib.format.write_array(place, array, allow_pickle=False)
    else:
        stored = _safetensors().save(arrays)
        with replacing(path) as file:
            file.write(stored)


def _numbers(name: Any, value: Any) -> np.ndarray[Any, Any]:
    """The array to store under a name.  Errors: `StateError` for what a file cannot hold."""
    if not _is_name(name):
        what = f"{name!r:.80} is no name that a file can hold"
        raise refusal(what, "short names of plain letters", StateError)
    try:
        array = np.asarray(getattr(value, "_data", value), order="C")
    except ValueError as error:  # lists of unequal lengths
        raise refusal(f"{name!r} is no array: {error}", "arrays of numbers", StateError) from None
    if array.dtype.name not in DTYPES:
        nested = isinstance(value, Mapping)
        advice = "a file for each state" if nested else "arrays of numbers, by name"
        raise refusal(f"{name!r} is {describe(array)}: a state holds numbers", advice, StateError)
    return array


def _is_name(name: Any) -> bool:
    """Whether a file can hold this name: a short text of whole characters that files of weights do not use."""
    try:
        size = len(name.encode())
    except (
        AttributeError,
        UnicodeEncodeError,
    ):  # half of a pair of surrogates has no form in a file
        return False
    return size <= LONGEST and "\0" not in name and name != "__metadata__"


def load(path: str | Path, limit: int = LIMIT) -> dict[str, np.ndarray[Any, Any]]:
    """Read a state: ``model.load_state_dict(load("model.npz"))``.

    Errors: `StateError` for anything that is no sound file of numbers of at most ``limit`` bytes.

    >>> import tempfile
    >>> import numpy as np
    >>> from minigrad.nn import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": np.ones(2)}, folder + "/state.npz")
    ...     load(folder + "/state.npz")
    {'w': array([1., 1.])}
    """
    ending = _ending(path)
    try:
        state = _load_npz(path, limit) if ending == ".npz" else _load_safetensors(path, limit)
    except (StateError, FileNotFoundError, ImportError):
        raise
    except Exception as error:  # whatever a damaged file provokes in the readers
        what = f"{Path(path).name} is no sound {ending} file: {error or type(error).__name__}"
        raise _unsound(what) from error
    for name, array in state.items():
        if not _is_name(name):
            raise _unsound(f"{Path(path).name} holds {name!r:.80}, which is no name")
        _check_dtype(name, array.shape, array.dtype)
    return state


def _load_npz(path: str | Path, limit: int) -> dict[str, np.ndarray[Any, Any]]:
    with zipfile.ZipFile(path) as whole:
        members = whole.infolist()
        _check_members(path, members)
        total = sum(_declared(whole, m) for m in members)
        if total > limit:
            _too_large(path, f"declares {total}", limit)
        return {m.filename.removesuffix(".npy"): _read(whole, m) for m in members}


def _ending(path: str | Path) -> str:
    """The ending of a path.  Errors: `StateError` for another, or where no file can be."""
    ending = Path(path).suffix
    if ending not in (".npz", ".safetensors"):
        what = f"{Path(path).name!r} ends in {ending!r}; states are stored as .npz or .safetensors"
        raise refusal(what, f"{Path(path).stem}.npz", StateError)
    return ending


def _unsound(what: str) -> MinigradError:
    """The error for a file that is not what it says."""
    return refusal(what, "a file that nn.save wrote", StateError)


def _check_members(path: str | Path, members: list[zipfile.ZipInfo]) -> None:
    """Each array once, not more compressed than numbers can be, and all of them in the file."""
    names: set[str] = set()
    for m in members:
        if not m.filename.endswith(".npy") or m.filename in names:
            what = f"{Path(path).name} holds {m.filename!r}"
            raise _unsound(f"{what}: a state holds each array once, as .npy")
        names.add(m.filename)
        if m.file_size > RATIO * max(m.compress_size, 1) + 4096:
            growth = f"from {m.compress_size} to {m.file_size} bytes"
            raise _unsound(f"{m.filename!r} grows {growth}: no honest array")
    stored, size = sum(m.compress_size for m in members), Path(path).stat().st_size
    if stored > size:
        raise _unsound(f"{Path(path).name} has {size} bytes, its members {stored}: they overlap")


def _declared(whole: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes an array will take, from its header alone."""
    with whole.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise _unsound(f"{member.filename!r} has version {version} of the format, not 1 or 2")
        shape, _, dtype = _HEADERS[version](file)
        _check_dtype(member.filename, shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        there = member.file_size - file.tell()
        if size != there:
            raise _unsound(f"{member.filename!r} declares {size} bytes and has {there}")
    return size


def _check_dtype(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    if dtype.name not in DTYPES or min(shape, default=0) < 0:
        raise _unsound(f"{name!r} holds {dtype}{list(shape)}: a state holds numbers")


def _too_large(path: str | Path, what: str, limit: int) -> NoReturn:
    what = f"{Path(path).name} {what} bytes, the limit is {limit}"
    raise refusal(what, "load(path, limit=…)", StateError)


def _read(whole: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    with whole.open(member) as file:
        array: np.ndarray[Any, Any] = np.lib.format.read_array(file, allow_pickle=False)
        file.read()  # to the end, where the sum of the bytes is compared
    return array


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
    return dict(library.load_file(str(path)))
