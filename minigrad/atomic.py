"""All or nothing: files are written whole, several attributes change at once; the collector of garbage, paused."""

import gc
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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


Changes = Sequence[tuple[Any, str, Any]]  #: of attributes: (object, name, value)


def set_all(changes: Changes) -> None:
    """Set attributes; an error or an interrupt finds all of them old or all new.

    >>> from types import SimpleNamespace
    >>> one, other = SimpleNamespace(x=0), SimpleNamespace(x=0)
    >>> set_all([(one, "x", 1), (other, "x", 2)])
    >>> one.x, other.x
    (1, 2)
    """
    before = []
    try:
        for at, name, value in changes:
            before.append((at, name, getattr(at, name, MISSING)))
            setattr(at, name, value)
    except BaseException:
        for at, name, value in reversed(before):
            if value is not MISSING:
                setattr(at, name, value)
            elif hasattr(at, name):
                delattr(at, name)
        raise


MISSING = object()  #: the value of an attribute that was not there


@contextmanager
def gc_paused() -> Iterator[None]:
    """Programs and pictures are thousands of objects; looking for garbage among them costs as much as making them.

    >>> with gc_paused():
    ...     gc.isenabled()
    False
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
