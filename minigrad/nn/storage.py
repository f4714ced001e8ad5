"""States in files: ``.safetensors`` (with the library of that name) or ``.npz``; never pickle.

A file is checked before it is read: the sum of the sizes of its members is limited, and how far
they were packed.
"""

import zipfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import replacing
from ..errors import MinigradError, describe, refusal
from ..ops.shape import Array
from ..static.text.literals import DTYPES
from .module import Module, StateError

LIMIT = 4 * 2**30  #: bytes that a file may declare
RATIO = 200  #: how far compression may shrink arrays
LONGEST = 65_000  #: bytes of a name


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
        raise refusal(
            f"a module or a mapping from names to arrays is stored, not {describe(state)}",
            "nn.save(model, path), nn.save(optimizer.state_dict(), path)",
            StateError,
        )
    ending = _ending(path)
    values = state.state_dict() if isinstance(state, Module) else state
    arrays = {name: _numbers(name, value) for name, value in values.items()}
    if ending == ".npz":
        with replacing(path) as file, zipfile.ZipFile(file, "w") as whole:
            for name, array in arrays.items():
                # open() knows no date: the same state, the same bytes
                with whole.open(name + ".npy", "w", force_zip64=True) as place:
                    np.lib.format.write_array(place, array, allow_pickle=False)
    else:
        stored = _safetensors().save(arrays)
        with replacing(path) as file:
            file.write(stored)


def _numbers(name, value) -> Array:
    """The array to store under a name.  Errors: `StateError` for what a file cannot hold."""
    if not _is_name(name):
        what = f"{name!r:.80} is no name that a file can hold"
        raise refusal(what, "short names of plain letters", StateError)
    with suppress(ValueError):  # of lists of unequal lengths, which are no array
        value = np.asarray(getattr(value, "_data", value), order="C")
    if not isinstance(value, np.ndarray) or value.dtype.name not in DTYPES:
        what = f"{name!r} is {describe(value)}: a state holds numbers"
        raise refusal(what, "arrays of numbers, by name; a file for each state", StateError)
    return value


def _is_name(name) -> bool:
    """Whether every file can hold this name, and not for anything else."""
    stored = name.encode(errors="ignore") if isinstance(name, str) else b""  # half pairs are lost
    whole = stored.decode() == name and len(stored) <= LONGEST
    return whole and b"\0" not in stored and name != "__metadata__"


def load(path: str | Path, limit: int = LIMIT) -> dict[str, Array]:
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
        if ending == ".npz":
            state = _load_npz(path, limit)
        else:  # nothing in it is compressed
            library = _safetensors()
            _check_size(path, Path(path).stat().st_size, limit)
            state = library.load_file(str(path))
    except (StateError, FileNotFoundError, ImportError):
        raise
    except Exception as error:  # whatever a damaged file provokes in the readers
        what = f"{Path(path).name} is no sound {ending} file: {error or type(error).__name__}"
        raise _unsound(what) from error
    for name, array in state.items():
        if not _is_name(name):
            raise _unsound(f"{Path(path).name} holds {name!r:.80}, which is no name")
        if array.dtype.name not in DTYPES:
            raise _unsound(f"{name!r} is of {array.dtype}: a state holds numbers")
    return state


def _load_npz(path: str | Path, limit: int) -> dict[str, Array]:
    with zipfile.ZipFile(path) as whole:
        members = whole.infolist()
        names = Counter(m.filename for m in members)
        for name, times in names.items():
            if times > 1 or not name.endswith(".npy"):
                what = f"{Path(path).name} holds {name!r}"
                raise _unsound(f"{what}: a state holds each array once, as .npy")
        size = sum(m.file_size for m in members)
        _check_size(path, size, limit)
        there = Path(path).stat().st_size
        if size > RATIO * there:  # packed too well, or members share their bytes
            growth = f"grows from {there} to {size} bytes"
            raise _unsound(f"{Path(path).name} {growth}: no honest arrays")
        arrays = {}
        for name in names:
            with whole.open(name) as stored:
                array = np.lib.format.read_array(stored, allow_pickle=False)
            arrays[name.removesuffix(".npy")] = array
        return arrays


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


def _check_size(path: str | Path, size: int, limit: int) -> None:
    if size > limit:
        what = f"{Path(path).name} declares {size} bytes, the limit is {limit}"
        raise refusal(what, "load(path, limit=…)", StateError)


def _safetensors() -> Any:
    try:
        return import_module("safetensors.numpy")
    except ImportError as error:
        repair = "pip install safetensors, or use .npz"
        raise ImportError(f"this needs the library safetensors; repair: {repair}") from error
