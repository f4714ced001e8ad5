"""What the site makes from the repository: its contents, the reference, words for pictures."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, ismodule, unwrap
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from site_check import Site
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: The pages of the site in the order of its menu; the README is the first.
CONTENTS = {
    "The course": [
        "notebooks/start",
        "notebooks/step*",
        "notebooks/forward",
        "notebooks/capstone",
        "docs/course",
        "docs/teachers",
    ],
    "Pictures and examples": ["docs/gallery", "docs/pictures", "examples/README"],
    "Reference": ["docs/from_pytorch", "docs/reference/*", "docs/ops", "docs/kinks"],
    "How it is made": [
        "docs/tour",
        "docs/design",
        "docs/backends",
        "docs/trust",
        "docs/benchmarks",
        "CONTRIBUTING",
        "CHANGELOG",
    ],
    "Solved notebooks": ["notebooks/solved/*"],
}
#: ``<!-- names of minigrad in minigrad.ops -->`` on a page of the reference stands for these names.
NAMES_OF = re.compile(r"^<!-- names of (\S+) in (\S+) -->$", re.M)
PAGE = 690  # points of a drawing whose words can be read in the narrowest column of the site
READABLE = 16 / 15  # pixels for a point of a wider drawing, as in a notebook
PACKAGES = (
    "minigrad",
    "minigrad.static",
    "minigrad.nets",
    "minigrad.nn",
    "minigrad.optim",
    "minigrad.data",
)


def connect(app: Any) -> None:
    """Hear of each page as it is read, and of the end."""
    app.connect("env-get-outdated", lambda *_: ["README"])  # its menu depends on what is there
    app.connect("source-read", complete)
    app.connect("doctree-read", describe_pictures)
    app.connect("env-check-consistency", miss_no_name)
    app.connect("build-finished", finish)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(formula, None), block_renderers=(formula, None)
    )


def complete(app: Any, page: str, source: list[str]) -> None:
    """Add the menu to the README, the names to a page of the reference, players to the gallery."""
    if page == "README":
        source[0] += contents(Path(app.srcdir))
    if page == "docs/gallery":
        for path in players(app):
            frames = f"(pictures/{path.stem}.svg)"
            at_work = (
                f'<iframe class="player" src="pictures/{path.name}" title="{path.stem}"></iframe>'
            )
            source[0] = source[0].replace(frames, f"{frames}\n\n{at_work}")
    shown: set[str] = set()
    source[0] = NAMES_OF.sub(lambda found: reference(*found.groups(), shown), source[0])


def contents(root: Path) -> str:
    """The menu as hidden tables of contents; a page that is not there is left out."""
    text, shown = "", set[str]()
    for caption, patterns in CONTENTS.items():
        files = [path for each in patterns for path in sorted(root.glob(f"{each}.*"))]
        pages = [
            path.relative_to(root).with_suffix("").as_posix()
            for path in files
            if path.suffix in {".md", ".ipynb"} and not path.stem.endswith(".fresh")
        ]
        pages = [page for page in dict.fromkeys(pages) if page not in shown]
        shown.update(pages)
        listed = "\n".join(f"/{page}" for page in pages)
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"
    return text


def reference(package: str, part: str, shown: set[str]) -> str:
    """The public names of a package that a part of it defines, but those shown, grouped by module."""
    groups: dict[str, list[str]] = {}
    for name in public(package):
        module = unwrap(getattr(import_module(package), name)).__module__
        if f"{module}.".startswith(f"{part}.") and f"{package}.{name}" not in shown:
            shown.add(f"{package}.{name}")
            groups.setdefault(module, []).append(name)
    return "\n".join(section(package, module, names) for module, names in groups.items())


def public(package: str) -> list[str]:
    """The names a package says are its interface; parts that are modules have pages of their own."""
    names = dict.fromkeys(import_module(package).__all__)
    return [name for name in names if not ismodule(getattr(import_module(package), name))]


def section(package: str, module: str, names: list[str]) -> str:
    """One module: what it is about, then its names."""
    title = (import_module(module).__doc__ or module).splitlines()[0].rstrip(".:")
    return f"## {title}\n\n```{{eval-rst}}\n{''.join(entries(package, names))}```\n"


def entries(package: str, names: list[str]) -> Iterator[str]:
    """The directives that show each name under the name users import."""
    for name in names:
        value = getattr(import_module(package), name)
        members = "   :members:\n" if isclass(value) else ""
        kind = "autoclass" if isclass(value) else "autofunction"
        yield f".. {kind}:: {package}.{name}\n{members}\n"


def miss_no_name(app: Any, env: Any) -> None:
    """Warn of public names without a place in the reference; an alias stands where it is from."""
    shown = env.domains.python_domain.objects
    for package in PACKAGES:
        for name in public(package):
            value = getattr(import_module(package), name)
            if {f"{package}.{name}", f"{unwrap(value).__module__}.{name}"}.isdisjoint(shown):
                logger.warning("%s.%s is on no page of docs/reference", package, name)


def describe_pictures(app: Any, doctree: nodes.document) -> None:
    """Give the pictures below cells the words that stand beside them in the notebook."""
    for bundle in doctree.findall(nodes.container):
        if bundle.get("nb_element") == "mime_bundle":
            words = words_of(bundle, Path(app.srcdir))
            for image in bundle.findall(nodes.image):
                image["alt"] = words
    for image in doctree.findall(nodes.image):
        width = width_of(Path(app.srcdir) / image["uri"].lstrip("/"))
        if width > PAGE:  # made no smaller than its words allow, and scrolled
            image["classes"].append("wide")
            image["width"] = f"{READABLE * width:.0f}px"


def width_of(path: Path) -> float:
    """The width of an SVG in points; 0 for other images."""
    head = path.read_text("utf-8")[:2000] if path.suffix == ".svg" and path.exists() else ""
    found = re.search(r'viewBox="\S+ \S+ ([\d.]+)', head)
    return float(found[1]) if found else 0.0


def words_of(bundle: nodes.container, root: Path) -> str:
    """What the SVG says of itself, else the first line of the text."""
    for image in bundle.findall(nodes.image):
        if image["uri"].endswith(".svg"):
            found = re.search(
                r"<desc[^>]*>(.*?)</desc>",
                (root / image["uri"].lstrip("/")).read_text("utf-8"),
                re.S,
            )
            if found:
                return found[1].strip()
    return next(each.astext() for each in bundle.findall(nodes.literal_block)).splitlines()[0]


def finish(app: Any, error: Exception | None) -> None:
    """The README is the page that a folder shows, players are pages; then look at all of it."""
    if error is None and app.builder.name == "html":
        out = Path(app.outdir)
        shutil.copy(out / "README.html", out / "index.html")
        (out / "docs" / "pictures").mkdir(exist_ok=True)
        for path in players(app):
            shutil.copy(path, out / "docs" / "pictures")
        browser = Path("minigrad", "viz", "browser")  # the code of all of them
        shutil.copytree(
            Path(app.srcdir) / browser,
            out / browser,
            ignore=shutil.ignore_patterns("*.html"),
            dirs_exist_ok=True,
        )
        for fault in Site(out).faults():
            logger.warning(fault)


def players(app: Any) -> list[Path]:
    """The players of the gallery, each a page of its own."""
    return sorted((Path(app.srcdir) / "docs" / "pictures").glob("*.html"))


def formula(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which needs no script."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode
