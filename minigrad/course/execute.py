"""Run notebooks in kernels of this very Python, several at a time, and clean what they print."""

import asyncio
import atexit
import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..primitives.arguments import Function
from .folder import shipped
from .mine import OFF
from .notebook import Notebook, load_nbformat, plain_text
from .steps import need

WIDGET = "application/vnd.jupyter.widget-view+json"
KERNELS = 2
#: Limits of one notebook: seconds, characters of output.
SECONDS, OUTPUT = 300.0, 20_000_000


class Failure(NamedTuple):
    """The cell that stopped a notebook: its number (from 0), and what it said."""

    cell: int
    said: str
    traceback: str

    def __str__(self) -> str:
        return f"cell {self.cell + 1}: {self.said}"


class Ran(NamedTuple):
    """An executed notebook, and what stopped it, if anything did."""

    notebook: Notebook
    failure: Failure | None


def side_by_side(each: Function, items: Sequence[Any]) -> Iterator[Any]:
    """What ``each`` makes of every notebook, `KERNELS` at a time, as it comes, beside a bar that moves on."""
    need("nbclient", "running notebooks")
    with contextlib.suppress(ImportError):  # lists its fonts: in a kernel that prints a message
        import matplotlib.font_manager  # noqa: F401
    from tqdm import tqdm

    slots = asyncio.Semaphore(KERNELS)

    async def one(item) -> Any:
        async with slots:
            return await each(item)

    with asyncio.Runner() as runner:
        tasks = [runner.get_loop().create_task(one(item)) for item in items]
        for task in (bar := tqdm(tasks, unit="notebook", disable=None, leave=False)):
            runner.run(asyncio.wait([task]))
            bar.clear()  # the caller may print
            yield task.result()


def run_all(notebooks: Sequence[Notebook], root: Path, *, go_on: bool = False) -> Iterator[Ran]:
    """Execute notebooks, with ``notebooks/`` of their root as working folder; each as it comes.

    ``go_on`` runs the cells after one that failed too.
    """
    return side_by_side(lambda each: run(each, root, go_on=go_on), notebooks)


def verdicts(notebook: Notebook) -> dict[str, str]:
    """The last line that each check printed."""
    verdict = r"(?m)^([✓✗○]) (\d{1,2}[a-z])\b.*$"
    texts = [
        plain_text(output["text"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    ]
    return {match[2]: match[0] for text in texts for match in re.finditer(verdict, text)}


async def run(notebook: Notebook, root: Path, *, go_on: bool, tries: int = 3) -> Ran:
    """Execute one notebook; what stops it is part of what it gives."""
    nbformat = load_nbformat()
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    node = nbformat.from_dict(notebook)
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    folder = root / "notebooks"
    folder.mkdir(exist_ok=True)
    reached: list[int] = []
    # A manager that knows no kernel folders has only the kernel of the running Python.
    kernel = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))

    class Client(NotebookClient):
        """Ends the kernel of a notebook that prints without an end."""

        printed = 0

        def process_message(self, msg, cell, cell_index: int) -> Any:
            self.printed += len(str(msg["content"]))
            if self.printed <= OUTPUT:
                return super().process_message(msg, cell, cell_index)
            if kernel.provisioner is not None:
                self.ending = asyncio.ensure_future(kernel.provisioner.kill())
            return None

    client = Client(
        node,
        km=kernel,
        record_timing=False,
        store_widget_state=False,
        allow_errors=go_on,
        on_cell_start=lambda cell, cell_index: reached.append(cell_index),
        shutdown_kernel="immediate",
        extra_arguments=["--IPKernelApp.log_level=40"],  # else its advice lands on our terminal
        resources={"metadata": {"path": str(folder)}},
    )
    stopped, end = None, time.monotonic() + SECONDS
    executing = client.async_execute(cleanup_kc=True, env=environment(root) | {OFF: "1"})
    try:
        await asyncio.wait_for(executing, SECONDS)
    except CellExecutionError:
        pass  # the error stands in the outputs
    except (DeadKernelError, TimeoutError) as error:  # at the limit either may come first
        text = str(error).partition("\n")[0]
        if client.printed > OUTPUT:
            text = f"it printed more than {OUTPUT:,} characters"
        elif time.monotonic() >= end:
            text = f"stopped after {SECONDS:g} seconds"
        stopped = Failure(reached[-1], f"{type(error).__name__}: {text}", "")
    except RuntimeError:  # before the kernel took its ports, another process took one of them
        if reached or tries == 1:
            raise
        atexit.unregister(client._cleanup_kernel)  # what nbclient does only for one that ran
        return await run(notebook, root, go_on=go_on, tries=tries - 1)
    executed: Notebook = json.loads(json.dumps(node))  # without the classes of nbformat
    return Ran(_cleaned(executed, root), stopped or _failure(executed))


def _failure(notebook: Notebook) -> Failure | None:
    for number, cell in enumerate(notebook["cells"]):
        if "raises-exception" in cell["metadata"].get("tags", []):
            continue
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                said = f"{output['ename']}: {output['evalue']}"
                return Failure(number, said, "\n".join(output["traceback"]))
    return None


def _cleaned(notebook: Notebook, root: Path) -> Notebook:
    notebook["metadata"]["language_info"] = {"name": "python"}
    for cell in notebook["cells"]:
        if printed := cell.get("outputs"):
            cell["outputs"] = []
            for output in printed:
                _add_output(cell["outputs"], output, root)
    return notebook


def _add_output(outputs: list[dict[str, Any]], output: dict[str, Any], root: Path) -> None:
    """Add an output without widget views, addresses and paths, unless nothing is left of it.

    Pieces of one stream are joined: where it was cut is chance.
    """
    data = output.get("data", {})
    if data.pop(WIDGET, None) is not None and set(data) <= {"text/plain"}:
        return  # only the repr of the widget is left
    for kind, value in data.items():
        if kind.startswith("text/") and "data:image/" not in value:  # pixels stay as they are
            data[kind] = _clean(value, root)
    for key in {"text", "evalue"} & set(output):
        output[key] = _clean(output[key], root)
    if "traceback" in output:
        output["traceback"] = [_clean(line, root) for line in output["traceback"]]
    stream = output.get("name")
    if outputs and stream and outputs[-1].get("name") == stream:
        outputs[-1]["text"] += output["text"]
    else:
        outputs.append(output)


def _clean(text: str, root: Path) -> str:
    text = re.sub(r"\b0x[0-9a-fA-F]{4,}", "0x…", text)
    text = re.sub(r"/\S*ipykernel_\d+/\d+\.py", "cell", text)
    for known in (root, Path.home()):
        text = text.replace(f"{known}{os.sep}", "")
    known_folder = r"(?:site-packages|minigrad|steps|lib[/\\]python3)[/\\]"
    return re.sub(rf"(?:~|/|[A-Za-z]:\\)[^\s'\"<>|:*?]*?[/\\](?={known_folder})", "", text)


def in_front(variable: str, *paths: Path) -> str:
    """A list of paths from the environment, with others in front."""
    listed = [*map(str, paths), os.environ.get(variable, "")]
    return os.pathsep.join(filter(None, listed))


def environment(root: Path) -> dict[str, str]:
    """What kernels are started with: the steps importable, no debugger's advice on stderr."""
    return {
        **os.environ,
        "PYTHONPATH": in_front("PYTHONPATH", root, shipped()),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
