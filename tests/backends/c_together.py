"""Many random programs in one file of C: a compiler takes longer to start than to read one of them."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from minigrad.backends.c import build
from minigrad.backends.c import step as c_step
from minigrad.errors import ProgramError
from tests.compiler import random_steps

#: programs in one file
BATCH = 20
#: as for users: some compilers make wrong code only where they try hard
FLAGS = [*build.FLAGS]
#: An index outside of its array, or what C leaves undefined, then ends the process:
#: LD_PRELOAD=$(cc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 MINIGRAD_SANITIZE=1 python -m tests.campaign c
if os.environ.get("MINIGRAD_SANITIZE"):
    # what is undefined is so at every level, and -O0 is quickest to compile
    FLAGS += ["-O0", "-fsanitize=address,undefined,bounds-strict", "-fno-sanitize-recover=all"]
#: what a text may define outside of its functions
NAMES = re.compile(
    r"\b(?:\w+_(?:double|float|u?int\d+_t)|(?:k|part)\d+(?:_\d+)?|step|parameters|memory|feeds|loop)\b"
)


def trials(first: int, count: int) -> Iterator[str]:
    """Check programs; one line per failure."""
    for begin in range(first, first + count, BATCH):
        seeds = range(begin, min(begin + BATCH, first + count))
        try:
            steps = built_together(seeds)
        except Exception as error:
            yield f"seeds {seeds}: {type(error).__name__}: {str(error)[:300]}"
            continue
        for seed in seeds:
            try:
                random_steps.check_c(seed, steps=steps[seed])
            except Exception as error:
                yield f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0]}"


def built_together(seeds: Any) -> dict[int, list[Any]]:
    """The exact and the inexact step of every seed, compiled in two files."""
    drawn = [random_steps.draw(seed) for seed in seeds]
    each = [
        together([partial(random_steps.in_c, one, exact) for one in drawn], exact)
        for exact in (True, False)
    ]
    return dict(zip(seeds, map(list, zip(*each, strict=True)), strict=True))


def together(makes: list[Callable[[], Any]], exact: bool = True) -> list[Any]:
    """What each function makes, a step of C (or an error it raises), all compiled in one file."""
    texts: list[str] = []
    loads = mock.patch.object(c_step, "load", lambda text, exact: texts.append(text))
    with loads, mock.patch.object(c_step, "FEWEST", 0):
        steps = [made(make) for make in makes]
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(texts, exact, Path(folder))
    built = (b for step in steps if isinstance(step, c_step.CStep) for b in step._built.values())
    in_c = (b for b in built if isinstance(b, c_step.BuiltC))  # what is faster in NumPy is not
    for k, one in enumerate(in_c):
        one.function = connected(library, texts[k], k)
        one.run, one.fits = one.prepared()
    return steps


def made(make: Callable[[], Any]) -> Any:
    """A step, or the error that refuses it."""
    try:
        return make()
    except ProgramError as refused:
        return refused


def compiled(texts: list[str], exact: bool, folder: Path) -> Any:
    """The library of texts, in which every name of the k-th ends in _k."""
    parts = []
    for k, text in enumerate(texts):
        names = set(NAMES.findall(text))
        parts += [f"#define {name} {name}_of_{k}" for name in names]
        parts += [text, *(f"#undef {name}" for name in names)]
    source, library = folder / "steps.c", folder / "steps.so"
    source.write_text("\n".join(parts), encoding="ascii")
    build.run(
        [*build.compiler(), *FLAGS, *build.EXACT[exact], "-o", str(library), str(source), "-lm"]
    )
    return ctypes.CDLL(str(library))


def connected(library: Any, text: str, k: int) -> Any:
    """The k-th step, with the loops of NumPy's."""
    for name, function, ctype in build.LOOP.findall(text):
        loop = (ctypes.c_void_p * 2).in_dll(library, f"{name}_of_{k}")
        loop[:] = build.numpy_loop(function, ctype)
    function = library[f"step_of_{k}"]
    function.restype = ctypes.c_int
    return function
