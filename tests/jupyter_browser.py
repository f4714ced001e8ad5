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

#: What a control changes: everything a widget shows, but not the control itself.
SHOWN = """area => [...area.querySelectorAll('.mg-explore, .widget-html, .widget-output, img, svg')]
    .map(each => each.tagName === 'IMG' ? each.src : each.outerHTML).join()"""
WIDGETS = ".jp-OutputArea-output:is(.jupyter-widgets, :has(.jupyter-widgets))"


def unexpected_errors(lab) -> list[str]:
    """Errors below cells that are not there to show one, warnings, widgets that are not drawn."""
    found = []
    for tags, outputs in lab.outputs():
        for each in outputs:
            if each["output_type"] == "error" and "raises-exception" not in tags:
                found.append(f"{each['ename']}: {each['evalue']}")
            if each.get("name") == "stderr":
                found.append("".join(each["text"]))
    texts = [each.text_content() for each in lab.page.query_selector_all(".jp-OutputArea-output")]
    return found + [
        text for text in texts if "Error displaying widget" in text or "model not found" in text
    ]


def move_controls(page) -> list[tuple[str, bool]]:
    """Move every slider, choose, press: for each control whether the picture changed."""
    done = []
    for number, area in enumerate(page.query_selector_all(WIDGETS)):
        area.scroll_into_view_if_needed()
        for kind, acts in controls(page, area):
            changed = any(changes(page, area, act) for act in acts)
            done.append((f"{kind} of widget {number}", changed))
    return done


def controls(page, area):
    """The controls of a widget, each with the acts of which one at least must show."""
    for handle in area.query_selector_all(".noUi-handle"):
        value = handle.get_attribute("aria-valuenow")
        keys = ("ArrowRight", "ArrowLeft", "Home", "End")
        yield "slider", [lambda key=key, at=handle: press(page, at, key) for key in keys]
        put_back(page, handle, value)
    for choice in area.query_selector_all(".widget-toggle-buttons"):
        yield (
            "choice",
            [each.click for each in choice.query_selector_all("button:not(.mod-active)")],
        )
    for menu in area.query_selector_all("select"):
        values = menu.evaluate("menu => [...menu.options].map(each => each.value)")
        yield "menu", [lambda value=value, at=menu: at.select_option(value) for value in values]
    for box in area.query_selector_all("input[type=checkbox]"):
        yield "checkbox", [box.click]
    buttons = area.query_selector_all("button.jupyter-button:not(.widget-toggle-button)")
    if buttons:
        yield "buttons", [each.click for each in buttons]


def put_back(page, handle, value: str) -> None:
    """A slider moved one step goes back, so that the next control meets the first picture."""
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight"):
        if handle.get_attribute("aria-valuenow") != value:
            changes(page, page.query_selector("body"), lambda key=key: press(page, handle, key))


def step_players(page) -> list[tuple[str, bool]]:
    """Step every player by its keys: for each whether picture and words follow."""
    done = []
    for number, player in enumerate(page.query_selector_all(".mg-player:not(.mg-explorer)")):
        player.scroll_into_view_if_needed()
        said = {player.query_selector(".mg-say").text_content()}
        for key in ("ArrowRight", "ArrowRight", "End", "Home"):
            moved = changes(page, player, lambda key=key, at=player: press(page, at, key))
            done.append((f"player {number} at {key}", moved))
            said.add(player.query_selector(".mg-say").text_content())
        done.append((f"what player {number} says", len(said) >= 3))
    return done


def search_pictures(page) -> list[tuple[str, bool]]:
    """Search every picture that can be searched: for each whether it shows what it found."""
    done = []
    for number, picture in enumerate(page.query_selector_all(".mg-explorer")):
        query = picture.query_selector(".mg-query")
        query.scroll_into_view_if_needed()
        found = changes(page, picture, lambda at=query: at.fill("x"))
        done.append((f"search of picture {number}", found))
        query.fill("")
    return done


def press(page, element, key: str) -> None:
    element.focus()
    page.keyboard.press(key)


def changes(page, area, act) -> bool:
    """Whether what the area shows changes within ten seconds of the act."""
    before = area.evaluate(SHOWN)
    act()
    for _ in range(200):
        page.wait_for_timeout(50)
        if area.evaluate(SHOWN) != before:
            return True
    return False
