"""How tests are collected and spread: extras that are missing, and how many processes there are."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec

import pytest
from xdist.scheduler import LoadGroupScheduling

collect_ignore = ["tests/nn/record_pytorch.py"]  # needs torch
collect_ignore += [  # looked at for doctests only where the extra is installed
    f"minigrad/backends/{name}.py"
    for package, name in (("jax", "jax_step"), ("onnx", "onnx_model"))
    if find_spec(package) is None
]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Folders are tested by as many processes as there are processors; up to four files by this one.

    Three processes take a while to start: a file is done by then.
    """
    files = [a for a in config.args if ".py" in a]
    if len(files) == len(config.args) <= 4:
        return 0
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available else os.cpu_count() or 1


class Groups(LoadGroupScheduling):
    """Tests of a group stay together, and what is done is forgotten.

    After each test, all that a process ever had is counted again: with ten thousand tests, half a minute.
    """

    def mark_test_complete(self, node, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Groups:
    return Groups(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Where Python is to leave no bytecode in the project, the processes of this run share it elsewhere.

    Each of the hundreds that tests start would compile all that it imports, which takes longer than many tests.
    """
    if sys.dont_write_bytecode and os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        folder = os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="minigrad-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish() -> None:
    """What was collected stays: tests that ask for a garbage collection need not wait until all tests are looked at."""
    gc.collect()
    gc.freeze()
