"""The course as a folder of static files: its notebooks in JupyterLite, Python in the reader's tab.

In: a course and an empty folder. Out: the folder, to be put on any web server. ``site.js`` starts
Pyodide there, with the packages that stand in ``pyodide-lock.json``: those of Pyodide's release
(from its own servers, or copied from a folder), and pure wheels that are served beside the page.
A kernel waits silently for a wheel that is not there, so what is needed is followed to its end.
A tab keeps no compiled modules between kernels, so what the site serves is compiled when it is made.
"""

import contextlib
import functools
import hashlib
import html
import http.server
import importlib.metadata
import json
import re
import shutil
import string
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import minigrad as mg

from .folder import UNWANTED, Course, verify_empty
from .isolated import sources
from .steps import CourseError, need

_PYODIDE = "0.27.7"
_RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{_PYODIDE}/full/"
#: what comes from npm, with the sha256 of its archive
_NPM = {
    f"pyodide@{_PYODIDE}": "89d5d952675eb08e11286e52c7238f1248ce71726e896db9703e73bef23dc343",
    "@viz-js/viz@3.31.0": "7dc0189874849cca2fed7cbe88bf334cd0e6e012db16657794a812ad6f2b8c70",
}
_CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm")
_STDLIB = "python_stdlib.zip"
_KERNEL = "@jupyterlite/pyodide-kernel-extension"
_EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", _KERNEL)
#: there when a notebook opens; matplotlib is fetched when a cell asks for it
_LOADED = (
    "minigrad", "ipywidgets", "ipykernel", "micropip", "piplite", "pyodide-kernel", "sqlite3",
)  # fmt: skip
#: the kernel installs these by itself unless they are said to be there; a notebook needs neither
_NOT_NEEDED = ("jedi", "ssl")
#: for whom wheels are chosen
_TARGET = {
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "platform_machine": "wasm32",
    "os_name": "posix",
    "python_version": "3.12",
    "python_full_version": "3.12.7",
}
Lock = dict[str, dict[str, Any]]


def build(
    course: Course, folder: Path, pyodide: Path | None = None, docs: Path | None = None
) -> None:
    """Make the site; with ``pyodide``, a folder of its release, it asks no other server for anything.

    ``docs`` is a folder of finished pages to stand beside the course.
    Raises CourseError where the folder holds anything, or something the site needs cannot be had:
    then nothing is left behind.
    """
    verify_empty(folder, "site")
    if docs and not (docs / "index.html").is_file():
        raise CourseError(f"{docs} holds no index.html; make the pages first, with sphinx-build")
    need("jupyterlite_pyodide_kernel", "making the site", extra="site")
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        release, viz = (_from_npm(name, work / f"npm{i}") for i, name in enumerate(_NPM))
        site = _lite(course, work, bool(pyodide))
        (site / "wheels").mkdir()
        here = Path(__file__).parent
        for script in (viz / "dist" / "viz-global.js", here / "site.js", here / "notice.js"):
            shutil.copy(script, site)
        lock = json.loads((release / "pyodide-lock.json").read_text())
        known: Lock = lock["packages"]
        if pyodide:
            known = {name: e for name, e in known.items() if (pyodide / e["file_name"]).is_file()}
            if "numpy" not in known:
                raise CourseError(f"{pyodide} does not hold the release {_PYODIDE} of Pyodide")
        for wheel in sorted((site / "extensions" / _KERNEL / "static" / "pypi").glob("*.whl")):
            _add(known, Path(shutil.copy(wheel, site / "wheels")), site)
        _add(known, _own_wheel(course, site / "wheels"), site)
        needed = _complete(known, [*_LOADED, "matplotlib"], site)
        if pyodide:
            known = {name: known[name] for name in sorted(needed)}
            _copy_pyodide(known, pyodide, release, site)
        shutil.copy(release / _STDLIB, site)
        _compile(known, site, release, work / "modules")
        lock["packages"] = known
        (site / "pyodide-lock.json").write_text(json.dumps(lock))
        where = "pyodide/" if pyodide else _RELEASE
        (site / "site.json").write_text(json.dumps({"pyodide": where, "packages": _LOADED}))
        if docs:
            shutil.copytree(docs, site / "docs")
        a, b, d = (mg.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
        mg.play((a + b) * d).save(site / "first.html")  # the example of the README
        (site / "index.html").write_text(_start_page(course, bool(docs)), encoding="utf-8")
        (site / ".nojekyll").touch()  # or GitHub's pages leave out folders that begin with _
        shutil.copytree(site, folder, dirs_exist_ok=True)


def serve(folder: Path, port: int) -> None:
    """Show the site on this machine, until Ctrl-C."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler(folder))
    print(f"http://127.0.0.1:{server.server_port}/ shows {folder}; Ctrl-C ends it", flush=True)
    server.serve_forever()


def handler(folder: Path) -> Any:
    """What answers requests for the files of a site; types are ours, not the machine's registry."""

    class Files(http.server.SimpleHTTPRequestHandler):
        extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
            ".js": "text/javascript",
            ".wasm": "application/wasm",
        }

        def copyfile(self, source, outputfile) -> None:
            with contextlib.suppress(ConnectionError):  # the reader has closed the page
                super().copyfile(source, outputfile)

        def log_message(self, *_words) -> None:
            """Requests are not told."""

    return functools.partial(Files, directory=str(folder))


def _run(command: list[str], purpose: str, cwd: Path | None = None) -> str:
    """What a program prints; CourseError with its last words where it fails."""
    if shutil.which(command[0]) is None:
        raise CourseError(f"{purpose} needs {command[0]}; install it first")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-4:])
        raise CourseError(f"{purpose} failed (is there a network?):\n{words}")
    return done.stdout


def _from_npm(name: str, folder: Path) -> Path:
    """A package of npm, unpacked."""
    folder.mkdir()
    command = ["npm", "pack", "--silent", f"--pack-destination={folder}", name]
    path = folder / _run(command, f"fetching {name}").split()[-1]
    _same(path, _NPM[name])
    safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from 3.11.4 on
    shutil.unpack_archive(path, folder, **safe)
    return folder / "package"


def _same(path: Path, sha256: str) -> None:
    if _sha256(path) != sha256:
        raise CourseError(f"{path.name} is not the file it should be: its sha256 is not {sha256}")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lite(course: Course, work: Path, closed: bool) -> Path:
    """JupyterLite with the course's notebooks; ``closed`` lets a kernel ask no package index."""
    shutil.copytree(course.notebooks, work / "contents", ignore=UNWANTED)
    extensions = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    options = {
        "apps": ["lab"],
        "contents": ["contents"],
        "federated_extensions": [str(extensions / name) for name in _EXTENSIONS],
        "ignore_sys_prefix": ["federated_extensions"],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "output_dir": "site",
    }
    (work / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": options}))
    there = [*_LOADED, *_NOT_NEEDED, "comm", "ipython", "pyodide_kernel"]
    kernel = {
        "pyodideUrl": "./site.js",
        "disablePyPIFallback": closed,
        "loadPyodideOptions": {"packages": there},
    }
    settings = {
        "appName": "minigrad",
        "enableServiceWorkerCache": True,
        "exposeAppInBrowser": True,  # to notice.js
        "litePluginSettings": {f"{_KERNEL}:kernel": kernel},
    }
    config = {"jupyter-lite-schema-version": 0, "jupyter-config-data": settings}
    (work / "jupyter-lite.json").write_text(json.dumps(config))
    themes = {"@jupyterlab/apputils-extension:themes": {"adaptive-theme": True}}
    (work / "overrides.json").write_text(json.dumps(themes))
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    _run(command, "building JupyterLite", cwd=work)  # its folder, with what is written above
    page = work / "site" / "lab" / "index.html"
    notice = '<script src="../notice.js"></script></head>'
    page.write_text(page.read_text().replace("</head>", notice))
    return work / "site"


def _copy_pyodide(known: Lock, source: Path, release: Path, site: Path) -> None:
    """Pyodide beside the page; each of its packages is the file that the release names."""
    (site / "pyodide").mkdir()
    for name in _CORE:
        shutil.copy(release / name, site / "pyodide")
    for entry in known.values():
        if "/" not in entry["file_name"]:  # not one of the wheels that we serve anyway
            _same(source / entry["file_name"], entry["sha256"])
            shutil.copy(source / entry["file_name"], site / "wheels")
            entry["file_name"] = f"wheels/{entry['file_name']}"


def _compile(known: Lock, site: Path, release: Path, scratch: Path) -> None:
    """Put compiled modules into what the site serves; only our own sources stay, to be read."""
    archives = {name: site / e["file_name"] for name, e in known.items() if "/" in e["file_name"]}
    archives["python"] = site / _STDLIB
    for name, archive in archives.items():
        shutil.unpack_archive(archive, scratch / name, "zip")
    program = Path(__file__).with_name("compile.js")
    _run(["node", str(program), str(release), str(scratch)], "compiling the packages")
    for name, archive in archives.items():
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as files:
            for path in sorted((scratch / name).rglob("*")):
                compiled = path.suffix == ".py" and path.with_suffix(".pyc").exists()
                if name == "minigrad" or not compiled:
                    files.write(path, path.relative_to(scratch / name))
        if name in known:
            known[name]["sha256"] = _sha256(archive)


def _own_wheel(course: Course, folder: Path) -> Path:
    """This package and the steps of the course, as a wheel."""
    installed = importlib.metadata.distribution("minigrad")
    name = f"minigrad-{installed.version}"
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, place in sources(course).items():
            archive.write(path, place)
        about = installed.read_text("METADATA") or ""
        archive.writestr(f"{name}.dist-info/METADATA", about)
        archive.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{name}.dist-info/RECORD", "")
    return wheel


def _add(known: Lock, wheel: Path, site: Path) -> None:
    """Enter a wheel that the site serves, as Pyodide enters its own."""
    from packaging.requirements import Requirement

    [about] = importlib.metadata.distributions(path=[str(wheel)])
    requirements = map(Requirement, about.requires or ())
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
    tops = {name.split("/")[0].removesuffix(".py") for name in files if ".dist-info/" not in name}
    known[_key(about.name)] = {
        "name": _key(about.name),
        "version": about.version,
        "file_name": wheel.relative_to(site).as_posix(),
        "install_dir": "site",
        "sha256": _sha256(wheel),
        "package_type": "package",
        "imports": sorted(name for name in tops if name.isidentifier()),
        "depends": [
            _key(need.name)
            for need in requirements
            if not need.marker or need.marker.evaluate(_TARGET)
        ],
        "unvendored_tests": False,
    }


def _complete(known: Lock, names: Iterable[str], site: Path) -> set[str]:
    """All that these packages need, followed to its end; what Pyodide has not is fetched from PyPI."""
    waiting, needed = list(names), set()
    while waiting:
        name = _key(waiting.pop())
        if name not in needed:
            needed.add(name)
            if name not in known:
                _add(known, _from_pypi(name, site / "wheels"), site)
            waiting += known[name]["depends"]
    return needed


def _key(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _from_pypi(name: str, folder: Path) -> Path:
    """The pure wheel of the version that is installed here, whose other half runs in the page."""
    try:
        wanted = f"{name}=={importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        wanted = name
    before = set(folder.iterdir())
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={folder}"]
    pure = ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"]
    _run([*command, *pure, "--python-version=3.12", wanted], f"fetching a pure wheel of {wanted}")
    return (set(folder.iterdir()) - before).pop()


def _start_page(course: Course, docs: bool) -> str:
    """The first page: the steps and the capstone, and the way to the documentation."""
    lines = [
        f'<li><a href="lab/index.html?path={step.name}.ipynb">{_html(step.title)}</a> '
        f"<span>{_html(step.front('Goal'))}</span></li>"
        for step in course.select()
        if step.name != "start"
    ]
    page = string.Template(Path(__file__).with_name("site.html").read_text(encoding="utf-8"))
    link = '<p><a href="docs/">The documentation</a></p>' if docs else ""
    return page.substitute(count=len(course.paths), steps="\n".join(lines), docs=link)


def _html(text: str) -> str:
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(text))
