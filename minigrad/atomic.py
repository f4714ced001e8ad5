"""All or nothing: files are written whole, and several attributes change at once."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to; it takes the place of ``path`` when it is complete and on the disk.

    Until then ``path`` is as it was: after an error, a full disk, a process that is killed. A
    killed process leaves an unfinished ``.minigrad-….part`` beside it, which may be deleted. Of a
    link, the file it leads to is replaced; a file that was there keeps its permissions.

    Errors: `OSError` where the folder is not there or takes no file, or the disk is full.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     note = Path(folder, "note.txt")
    ...     _ = note.write_text("old")
    ...     with replacing(note) as file:
    ...         _, before = file.write(b"new"), note.read_text()
    ...     before, note.read_text()
    ('old', 'new')
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        what = f"cannot save {name!r}: there is no folder {os.path.dirname(path)!r}"
        raise FileNotFoundError(f"{what}; make it first")
    part = os.path.join(folder, f".minigrad-{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(part, os.stat(target).st_mode)
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


# A signal such as Ctrl-C is seen where Python calls a function or jumps back, never within a call of a function written
# in C, and never between two statements that only store.  So everything is prepared first, and then only stored.

MOST = 64  #: attributes that one text stores; more are left to a loop in C, which is slower


def set_all(changes: Sequence[tuple[Any, str, Any]]) -> None:
    """Set attributes, given as (object, name, value); an interrupt finds all of them old or all new.

    >>> from types import SimpleNamespace
    >>> one, other = SimpleNamespace(), SimpleNamespace()
    >>> set_all([(one, "x", 1), (other, "x", 2)])
    >>> one.x, other.x
    (1, 2)
    """
    if changes:
        store(*zip(*changes, strict=True))


def store(objects: Sequence[Any], names: tuple[str, ...], values: Sequence[Any]) -> None:
    """The same, given as three columns: what every step of a training pays for.

    >>> from types import SimpleNamespace
    >>> one = SimpleNamespace()
    >>> store([one, one], ("x", "y"), [1, 2])
    >>> one.x, one.y
    (1, 2)
    """
    if 0 < len(names) <= MOST:
        try:
            return _stores(names)(objects, values)
        except AttributeError:  # one of them is new, and nothing was stored yet
            pass
    # old values live until all are set: what happens when they go may be Python code
    old = [*map(getattr, objects, names, repeat(None))]
    deque(map(setattr, objects, names, values), maxlen=0)
    del old


@lru_cache(maxsize=256)
def _stores(names: tuple[str, ...]) -> Callable[[Any, Any], None]:
    """A function that unpacks so many objects and values, and stores them in a straight line."""
    places = range(len(names))
    lines = [
        "def stores(objects, values):",
        f"{''.join(f'o{k}, ' for k in places)} = objects",
        f"{''.join(f'v{k}, ' for k in places)} = values",
        f"old = {''.join(f'o{k}.{name}, ' for k, name in enumerate(names))}",
        *(f"o{k}.{name} = v{k}" for k, name in enumerate(names)),
    ]
    namespace: dict[str, Any] = {}
    exec("\n    ".join(lines), namespace)
    return namespace["stores"]  # type: ignore[no-any-return]
