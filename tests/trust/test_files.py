"""Files that are written: whole or not at all, and readable.  Files of strangers: one kind of error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minigrad import nn
from minigrad.atomic import replacing
from minigrad.errors import MinigradError
from tests.trust import damaged_weights, honest_programs, killed_saves
from tests.trust.damaged_weights import LIBRARY

ROOT = Path(__file__).parents[2]
ENDINGS = [".npz", pytest.param(".safetensors", marks=pytest.mark.skipif(not LIBRARY, reason="x"))]


def test_damaged_weights_raise_the_one_error_and_nothing_else():
    assert damaged_weights.trials(0, 1500) == []


def test_an_error_in_the_middle_of_a_save_leaves_the_old_state(tmp_path):
    for seed in range(20):
        damaged_weights.broken_save(seed, tmp_path)


def test_what_is_written_is_read_whatever_numbers_stand_in_it():
    assert honest_programs.trials(0, 200) == []


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_state():
    endings = (".npz", ".safetensors") if LIBRARY else (".npz",)
    assert killed_saves.trials(0, 8, endings) == []


#: everything of the package that writes over a file, with a limit on the size of a file
FULL_DISK = """
import json, os, resource, sys
import numpy as np
import minigrad as mg
from minigrad import nn, static
from minigrad.course import notebook
from minigrad.errors import ProgramError

folder, ways = sys.argv[1], {}
x = mg.tensor(np.ones(3), requires_grad=True)
y = mg.sin(x)
for _ in range(60):
    y = mg.sin(y) * x
program = mg.trace(lambda v: v * np.arange(10_000.0).reshape(100, 100), np.ones((100, 100)))
large = {"a": np.ones(10_000)}
book = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": "a" * 50_000}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
ways["m.npz"] = lambda path: nn.save(large, path)
ways["m.safetensors"] = lambda path: nn.save(large, path)
picture = mg.draw(y)
picture.svg  # drawn by a program of its own, which the limit would hold back, too
ways["p.html"] = ways["p.dot"] = ways["p.svg"] = picture.save
ways["player.html"] = mg.play(y).save
ways["m.onnx"] = lambda path: static.export_onnx(program, path, fetch=program.outputs)
ways["n.ipynb"] = lambda path: notebook.write(book, notebook.Path(path))
result = {}
old = notebook.dumps({**book, "cells": [], "metadata": {"minigrad": {
    "sources": notebook.fingerprint([])}}}).encode()
for name, way in ways.items():
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(old)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        way(path)
        result[name] = "written"
    except ImportError as error:
        result[name] = "missing"
    except (RuntimeError, ProgramError) as error:
        absent = "cannot draw" in str(error) or "not installed" in str(error)
        result[name] = "missing" if absent else repr(error)
    except OSError as error:
        result[name] = "refused" if open(path, "rb").read() == old else "lost"
    except BaseException as error:
        result[name] = repr(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(json.dumps([result, sorted(set(os.listdir(folder)) - set(ways))]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process")
def test_on_a_full_disk_the_old_file_stays_whatever_writes(tmp_path):
    # -B: Python 3.11 would leave half of the bytecode of what is imported on the full disk
    command = [sys.executable, "-B", "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    result, left = json.loads(done.stdout.splitlines()[-1])
    assert set(result.values()) <= {"refused", "missing"}, result
    assert result["m.npz"] == result["p.html"] == result["n.ipynb"] == "refused"
    assert left == []


def test_whatever_else_writes_a_file_writes_no_file_of_the_user():
    package = ROOT / "minigrad"
    own = {
        "layout.py",
        "layout_worker.py",
        "isolated.py",
        "site.py",
        "build.py",
    }  # pipes; folders of their own
    writing = re.compile(r"\.write_text\(|\.write_bytes\(|open\(.*\"[wax]b?\"|\bsave_file\(")
    found = {
        path.name
        for path in package.rglob("*.py")
        if any(map(writing.search, path.read_text(encoding="utf-8").splitlines()))
    }
    assert found <= {"atomic.py", "storage.py"} | own  # storage: members of the archive it writes


def test_an_error_on_the_way_leaves_the_file_and_the_folder_as_they_were(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    for error in (ValueError, KeyboardInterrupt, MemoryError):
        with pytest.raises(error), replacing(path) as file:
            file.write(b"new")
            raise error
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions_and_its_link(tmp_path):
    path, link = tmp_path / "real.npz", tmp_path / "link.npz"
    nn.save({"a": np.ones(1)}, path)
    path.chmod(0o640)
    link.symlink_to(path)
    nn.save({"a": np.zeros(1)}, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert nn.load(path)["a"] == 0
    usual, new = tmp_path / "usual.txt", tmp_path / "new.txt"
    usual.write_text("")
    with replacing(new):
        pass
    assert new.stat().st_mode == usual.stat().st_mode


#: states that no file can hold
UNFIT = {
    "half a pair": ({"a\ud800": 1.0}, "is no name"),
    "a long name": ({"a" * 65_001: 1.0}, "is no name"),
    "a zero": ({"a\0b": 1.0}, "is no name"),
    "what the format uses": ({"__metadata__": 1.0}, "is no name"),
    "a number for a name": ({1: 1.0, "1": 2.0}, "1 is no name that a file can hold"),
    "no name": ({None: 1.0}, "is no name"),
    "complex numbers": ({"a": np.ones(2, complex)}, "a state holds numbers"),
    "more digits than files have": ({"a": np.ones(2, "longdouble")}, "a state holds numbers"),
    "dates": ({"a": np.zeros(2, "M8[s]")}, "a state holds numbers"),
    "objects": ({"a": object()}, "a state holds numbers"),
    "lists of unequal lengths": ({"a": [[1.0], [1.0, 2.0]]}, "a list of 2: a state holds numbers"),
    "a state in a state": ({"a": {"b": 1.0}}, "a state holds numbers"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("what", UNFIT)
def test_what_no_file_can_hold_is_refused_before_anything_is_written(what, ending, tmp_path):
    state, words = UNFIT[what]
    path = tmp_path / f"m{ending}"
    nn.save({"old": np.ones(1)}, path)
    before = path.read_bytes()
    with pytest.raises(nn.StateError, match=words) as caught:
        nn.save({"first": np.ones(2)} | state, path)
    assert "at test_files.py:" in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["", "a/b", "../a", ".", "a.npy", "é😀", "a\n", "a" * 65_000, " "])
def test_every_other_name_comes_back(name, ending, tmp_path):
    nn.save({name: np.arange(3), "b": np.float16(2)}, tmp_path / f"m{ending}")
    assert nn.load(tmp_path / f"m{ending}")[name].tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_a_path_that_no_file_can_have_is_refused(name, ending, tmp_path):
    for use in (lambda p: nn.save({"a": 1.0}, p), nn.load):
        with pytest.raises(MinigradError, match="null byte|surrogates not allowed"):
            use(f"{tmp_path}/{name}{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_there_but_cannot_be_read_is_the_one_error(ending, tmp_path):
    (tmp_path / f"link{ending}").symlink_to(tmp_path / f"link{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(nn.StateError, match="is no sound"):
            nn.load(tmp_path / f"{name}{ending}")


@pytest.mark.skipif(not LIBRARY, reason="safetensors")
def test_complex_numbers_of_another_writer_are_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.ones(2, np.complex64)}, tmp_path / "m.safetensors")
    with pytest.raises(nn.StateError, match="a state holds numbers"):
        nn.load(tmp_path / "m.safetensors")
