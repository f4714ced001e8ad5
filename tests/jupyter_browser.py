"""Headless Chromium for tests, and JupyterLab in it: one server and one page for all notebooks.

Skipped where there is no Chromium or no playwright; ``MINIGRAD_BROWSER=required`` makes that an
error.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},  # every cell stands in the page
    "docmanager-extension/plugin": {"autosave": False},
}


def chromium() -> str | None:
    """The browser of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


def missing() -> str | None:
    """Why the browser cannot be driven here."""
    if chromium() is None:
        return "no Chromium here: install the package chromium"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "no playwright here: pip install playwright (its browser download is not needed)"
    return None


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """The browser, started; the test is skipped where there is none."""
    reason = missing()
    if reason and os.environ.get("MINIGRAD_BROWSER") == "required":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield running
        running.close()


def course_copy(source: Path, folder: Path) -> Path:
    """A copy of steps and notebooks, so that the browser saves nothing into the project."""
    for part in ("steps", "notebooks"):
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(source / part, folder / part, ignore=ignored)
    return folder


def trust(root: Path, environment: dict[str, str]) -> None:
    """What the ``minigrad`` command does before it opens the course."""
    code = "from pathlib import Path; from minigrad.course import folder, launch; import sys; "
    code += "launch._trust(folder.Course(Path(sys.argv[1])))"
    subprocess.run([sys.executable, "-c", code, str(root)], env=environment, check=True)


@contextlib.contextmanager
def server(root: Path, private: Path) -> Iterator[str]:
    """The address of a JupyterLab with settings, workspaces and signatures of its own."""
    settings = private / "settings"
    for name, content in SETTINGS.items():
        path = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(private / "workspaces"),
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    trust(root, environment)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    options = [
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True",
    ]
    with (private / "log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait(process, f"http://127.0.0.1:{port}/api?token={token}", private / "log")
        yield f"http://127.0.0.1:{port}/lab?reset&token={token}"
    finally:
        process.terminate()
        process.wait(20)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=1) as answer:
            answer.read()
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab does not answer:\n{log.read_text()[-2000:]}")


class Lab:
    """The page with JupyterLab; errors and requests to other machines are collected."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.errors: list[str] = []
        self.outside: set[str] = set()
        page.on("pageerror", lambda error: self.errors.append(str(error)[:300]))
        page.on("console", self._console)
        page.on("request", self._request)
        page.goto(address, wait_until="domcontentloaded")
        page.wait_for_function("window.jupyterapp && window.jupyterapp.restored", timeout=90_000)
        page.evaluate("async () => { await window.jupyterapp.restored }")

    def command(self, name: str, **arguments: Any) -> None:
        """Start a command of JupyterLab.  What it does is seen in the page: some never return."""
        code = "([name, args]) => { window.jupyterapp.commands.execute(name, args) }"
        self.page.evaluate(code, [name, arguments])

    def theme(self, name: str) -> None:
        """Switch to ``JupyterLab Light`` or ``JupyterLab Dark``."""
        self.command("apputils:change-theme", theme=name)
        light = "true" if "Light" in name else "false"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")

    def open(self, path: str) -> None:
        """Open a notebook and wait for its cells and its kernel."""
        self.page.evaluate(OPEN, path)
        self.page.wait_for_function(f"{NOTEBOOK}.id", timeout=30_000)
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=30_000)

    def run_all(self) -> None:
        """Run all cells; the kernel is idle and the widgets are drawn afterwards."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(ALL_RAN, timeout=180_000)
        self.page.wait_for_timeout(500)

    def close(self) -> None:
        """End the kernel and close the notebook without saving it."""
        self.page.evaluate(CLOSE)

    def outputs(self) -> list[tuple[list[str], list[dict[str, Any]]]]:
        """For each code cell its tags and its outputs."""
        return self.page.evaluate(OUTPUTS)

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text[:300])

    def _request(self, request: Any) -> None:
        if request.url.startswith(("http", "ws")) and "//127.0.0.1:" not in request.url:
            self.outside.add(request.url[:200])


NOTEBOOK = "window.jupyterapp.shell.currentWidget"
OPEN = """async path => {
    const { commands, shell } = window.jupyterapp;
    const panel = await commands.execute('docmanager:open', { path });
    await panel.context.ready;
    await panel.sessionContext.ready;
    shell.activateById(panel.id); }"""
CLOSE = """async () => {
    for (const panel of [...window.jupyterapp.shell.widgets('main')]) {
        if (panel.sessionContext) await panel.sessionContext.shutdown();
        panel.dispose(); } }"""
CELLS = f"""{NOTEBOOK}.content.widgets
    .map(each => each.model).filter(model => model.type === 'code')"""
ALL_RAN = f"""() => {{ const cells = {CELLS};
    return cells.length && cells.every(cell => cell.executionState === 'idle'
        && (cell.executionCount || !cell.sharedModel.source.trim())); }}"""
OUTPUTS = f"""() => {CELLS}.map(cell => [cell.getMetadata('tags') || [], cell.outputs.toJSON()])"""
