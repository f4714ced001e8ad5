"""Damaged files of weights, by a seed: their bytes, their npy headers, their zip records, their JSON.

``python -m tests.campaign weights --programs 60000`` is the long run.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import tempfile
import time
import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import nn
from tests.static.mutations import megabytes

SECONDS, MEGABYTES = 1.0, 100  #: of processor time and of memory, for one file
METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA
LIBRARY = find_spec("safetensors") is not None

TOKENS = [
    "", "-" * 9000, "(" * 300, "[" * 300, "{", "}", "'", '"', "\\", "\n", "\t", "\0", "#", "1L", "0x", "1e999", "é",
    ",", ":", "None", "True", "...", "f", "-1", "0", "9" * 30, "9" * 5000, "2", "()", "(,)", "(3", "(3,)", "(2, 2)",
    "'|O'", "'<c16'", "'<f8'", "'<f2'", "'<f16'", "'<M8[s]'", "'|V8'", "'<U3'", "'z'", "[('a', '<f8')]", "descr", "shape",
    "fortran_order", "lambda: 0", "a" * 12000, "b'<f8'", "*()", "()()", "1 2", "\\N{x}", "\ud800",
]  # fmt: skip
#: what may stand in a record of a zip file, by its first bytes: (name of the field, where, its form)
RECORDS = {
    b"PK\x03\x04": [
        (4, "H"), (6, "H"), (8, "H"), (10, "H"), (14, "I"), (18, "I"), (22, "I"), (26, "H"), (28, "H"), (30, "B"), (34, "B"),
    ],
    b"PK\x01\x02": [
        (4, "H"), (6, "H"), (8, "H"), (10, "H"), (16, "I"), (20, "I"), (24, "I"), (28, "H"), (30, "H"), (32, "H"), (34, "H"),
        (36, "H"), (38, "I"), (42, "I"), (46, "B"), (50, "B"),
    ],
    b"PK\x05\x06": [(4, "H"), (6, "H"), (8, "H"), (10, "H"), (12, "I"), (16, "I"), (20, "H")],
}  # fmt: skip
NUMBERS = [0, 1, 2, 6, 8, 9, 12, 14, 20, 45, 63, 93, 99, 0x800, 0xFFFF, 2**31, 2**32 - 1, 2**32 - 2]
NAMES = [
    "a.npy",
    "../up.npy",
    "a",
    ".npy",
    "/",
    "a/b.npy",
    "a.npy.npy",
    "é.npy",
    "a" * 70 + ".npy",
]


def arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A state of a few small arrays."""
    kinds = ["float64", "float32", "float16", "int64", "uint8", "bool", ">f8"]
    shapes = [(), (0,), (3,), (2, 3), (1, 2, 1), (50,)]
    chosen = rng.sample(["weight", "bias", "é", "a/b", "layers.0.w"], rng.randint(1, 4))
    return {n: np.ones(rng.choice(shapes), rng.choice(kinds)) for n in chosen}


def damaged_npz(rng: random.Random) -> bytes:
    """An archive with something wrong in its members, its records or its bytes."""
    members = [(name + ".npy", npy(value)) for name, value in arrays(rng).items()]
    kinds = set(rng.sample(["headers", "members", "records", "bytes"], rng.choice([1, 1, 2])))
    if "headers" in kinds:
        members = [(name, damaged_npy(content, rng)) for name, content in members]
    if "members" in kinds:
        sound = npy(np.ones(2))
        spare = rng.choice([sound, sound, b"", bytes(5000), b"\x93NUMPY", rng.randbytes(200)])
        name = rng.choice([members[0][0], rng.choice(NAMES)])
        members.insert(rng.randrange(len(members) + 1), (name, spare))
    place = io.BytesIO()
    with zipfile.ZipFile(place, "w") as whole, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that stands twice
        for name, content in members:
            whole.writestr(
                name, content, rng.choice(METHODS if rng.random() < 0.3 else METHODS[:2])
            )
    data = bytearray(place.getvalue())
    if "records" in kinds:
        for _ in range(rng.randint(1, 3)):
            damage_record(data, rng)
    return damaged_bytes(data, rng) if "bytes" in kinds else bytes(data)


def npy(value: np.ndarray) -> bytes:
    place = io.BytesIO()
    np.lib.format.write_array(place, value, version=(1, 0))
    return place.getvalue()


def damaged_npy(content: bytes, rng: random.Random) -> bytes:
    """The array with another header: other tokens in it, another length, another version."""
    size = 10 + int.from_bytes(content[8:10], "little")
    text, version, length = content[10:size].decode("latin1"), rng.choice([1, 1, 1, 2, 3]), None
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice([0, 0, 1, 3, 8, 20]))
        if rng.random() < 0.4:  # where a value stands
            word = rng.choice(["'<f8'", "False", "(", "descr", "shape"])
            start = max(text.find(word), 0)
            stop = start + len(word)
        text = text[:start] + rng.choice(TOKENS) + text[stop:]
    if rng.random() < 0.3:
        length = rng.choice([0, 1, 10, 60, 118, 60_000])
    header = text.encode("latin1" if version < 3 else "utf-8", "replace")
    length = min(len(header), 65_535) if length is None else length
    form = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(form, length) + header + content[size:]


def damage_record(data: bytearray, rng: random.Random) -> None:
    """Set one field of one record of a zip file to a number that may not fit."""
    sign = rng.choice(list(RECORDS))
    starts = [k for k in range(len(data) - 4) if data[k : k + 4] == sign]
    start = rng.choice(starts or [0])
    offset, form = rng.choice(RECORDS[sign])
    size = struct.calcsize(form)
    number = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(len(data) + 10)
    if start + offset + size <= len(data):
        struct.pack_into("<" + form, data, start + offset, number % 2 ** (8 * size))


def damaged_bytes(data: bytearray, rng: random.Random) -> bytes:
    """Some bytes are others, or the end is gone."""
    for _ in range(rng.randint(0, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randint(len(data) // 2, len(data))] if rng.random() < 0.3 else data)


def damaged_safetensors(rng: random.Random) -> bytes:
    """A file whose header says something else than there is."""
    from safetensors.numpy import save

    sound = save(arrays(rng))
    size = int.from_bytes(sound[:8], "little")
    header, body = json.loads(sound[8 : 8 + size]), sound[8 + size :]
    kind = rng.random()
    if kind < 0.2:
        return damaged_bytes(bytearray(sound), rng)
    if kind < 0.35:
        number = rng.choice([*NUMBERS, 2**62, 2**64 - 1, len(sound)])
        return struct.pack("<Q", number) + sound[8:]
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(header))
        entry = header[name] if isinstance(header[name], dict) else {}
        field = rng.choice(["dtype", "shape", "data_offsets", "more"])
        values = [
            "C64", "BF16", "F8_E4M3", "U8", "I64", "X", 0, None, [], [0, 0], [0, 8], [8, 0], [2**62, 2**62], [-1], [1.5],
            [0, len(body)], {}, [[]], "", [1] * 70,
        ]  # fmt: skip
        header[rng.choice([name, name, "__metadata__", "", "a\0b"])] = {
            **entry,
            field: rng.choice(values),
        }
    text = json.dumps(header)
    if kind > 0.85:
        word = rng.choice(["[" * 200_000, "NaN", '"a":1,"a":2', "\\ud800", "\0", "9" * 5000, "}"])
        place = rng.randrange(len(text) + 1)
        text = text[:place] + word + text[place:]
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw + body


def trial(seed: int, folder: Path) -> bool:
    """Load one damaged file; whether it was a state all the same, which can then be stored, too."""
    rng = random.Random(seed)
    is_npz = not LIBRARY or rng.random() < 0.8
    path = folder / ("m.npz" if is_npz else "m.safetensors")
    path.write_bytes(damaged_npz(rng) if is_npz else damaged_safetensors(rng))
    start = time.process_time()
    try:
        state = nn.load(path)
    except nn.StateError:
        state = None
    assert time.process_time() - start < SECONDS, "loading took too long"
    if state is None:
        return False
    if is_npz:
        names = zipfile.ZipFile(path).namelist()
        assert sorted(names) == sorted(n + ".npy" for n in state), "a member is not in the state"
    nn.save(state, path)
    again = nn.load(path)
    assert state.keys() == again.keys(), "another state came back"
    for name, value in state.items():
        np.testing.assert_array_equal(value, again[name])
    return True


def broken_save(seed: int, folder: Path) -> None:
    """An error while a state is saved over an older one: that stays, and nothing else."""
    rng = random.Random(seed)
    path = folder / "m.npz"
    old, new = {"a": np.zeros(9), "b": np.zeros(2)}, {"a": np.ones(9), "b": np.ones(2)}
    nn.save(old, path)
    write, left = np.lib.format.write_array, rng.randrange(2)
    problem = rng.choice([OSError(28, "No space left on device"), KeyboardInterrupt()])

    def fail(*args: Any, **more: Any) -> None:
        nonlocal left
        if not left:
            raise problem
        left -= 1
        write(*args, **more)

    np.lib.format.write_array = fail
    try:
        with contextlib.suppress(type(problem)):
            nn.save(new, path)
    finally:
        np.lib.format.write_array = write
    stored = nn.load(path)
    assert all((stored[n] == old[n]).all() for n in old), "the old state is gone"
    assert list(folder.glob("*.npz")) == [path]


def check(seed: int) -> None:
    """One damaged file and one save that fails."""
    with tempfile.TemporaryDirectory() as folder:
        broken_save(seed, Path(folder))
        trial(seed, Path(folder))


def trials(first: int, count: int) -> list[str]:
    """Several damaged files; one line per failure."""
    bad = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            before = megabytes()
            try:
                trial(seed, Path(folder))
            except BaseException as error:  # the library of safetensors is not written in Python
                if isinstance(error, KeyboardInterrupt):
                    raise
                bad.append(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            if megabytes() - before > MEGABYTES:
                bad.append(f"seed {seed}: {megabytes() - before:.0f} MB")
    return bad
