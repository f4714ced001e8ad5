"""Notebook files: read, write, tell whether a learner worked in one, and whether two say the same.

They are compared by content: what a picture holds, not where it stands. Text is compared exactly; an
SVG by its nodes, edges, regions and texts; other images only by being there.
"""

import hashlib
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from html import unescape
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..atomic import replacing
from ..primitives.arguments import ByName
from ..viz.graph.format import shorten
from .steps import CourseError

Notebook = ByName


def load_nbformat() -> Any:
    """The library of that name, without a grammar of web addresses that it would compile for seconds."""
    modules: ByName = sys.modules
    grammar = modules.setdefault("rfc3987_syntax", None)  # as if it were not installed
    try:
        return import_module("nbformat")
    finally:
        if grammar is None:
            del modules["rfc3987_syntax"]


def plain_text(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def fingerprint(cells: Iterable[ByName]) -> str:
    """A hash of what a learner can change: the sources of the cells; empty cells do not count."""
    filled = [(cell["cell_type"], text) for cell in cells if (text := cell["source"].strip())]
    return hashlib.sha256(json.dumps(filled).encode()).hexdigest()


def is_changed(notebook: Notebook) -> bool:
    """Whether somebody worked in this notebook since it was built."""
    return bool(facts(notebook).get("sources") != fingerprint(notebook["cells"]))


def facts(notebook: Notebook) -> ByName:
    """What its build noted in a notebook: the step, whether it is solved, a hash of its cells."""
    noted = notebook["metadata"].get("minigrad")
    return noted if isinstance(noted, dict) else {}


def write(notebook: Notebook, path: Path) -> Path:
    """Write a built notebook, never over a learner's changed one; return where it went."""
    if path.exists() and is_changed(read(path)):
        path = path.with_name(f"{path.stem}.fresh.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(dumps(notebook).encode())
    return path


def read(path: Path) -> Notebook:
    """Read a notebook.  Raises CourseError when it is not one."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        used = [notebook["metadata"].get("minigrad")]  # all that is read of it later
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])  # in one piece
            used += [cell["cell_type"], *cell["metadata"].get("tags", [])]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(
            f"not a notebook ({type(error).__name__}: {error}); move it away, or ask for it again",
            path,
        ) from None
    return dict(notebook)


def dumps(notebook: Notebook) -> str:
    """The text of a notebook file as Jupyter writes it: keys sorted, texts split into lines."""
    nbformat = load_nbformat()
    return str(nbformat.v4.writes(nbformat.from_dict(notebook))) + "\n"


def differences(old: Notebook, new: Notebook) -> list[str]:
    """What differs, one line per cell; empty when both say the same."""
    if len(old["cells"]) != len(new["cells"]):
        return [f"{len(old['cells'])} cells, now {len(new['cells'])}"]
    lines = []
    for number, cells in enumerate(zip(old["cells"], new["cells"], strict=True)):
        before, now = map(_facts, cells)
        for part in before:
            pairs = zip_longest(before[part], now[part], fillvalue="(nothing)")
            differing = [pair for pair in pairs if pair[0] != pair[1]]
            if differing:
                was, became = (shorten(plain_text(line), 160) for line in differing[0])
                lines.append(f"cell {number}: its {part}: {was!r}, now {became!r}")
                break
    return lines


def _facts(cell: ByName) -> dict[str, list[str]]:
    """What is compared of a cell, line by line, in this order."""
    return {
        "kind differs": [cell["cell_type"]],
        "source differs": cell["source"].splitlines(),
        "metadata differ": [json.dumps(cell["metadata"], sort_keys=True)],
        "outputs differ": _outputs(cell),
    }


def _outputs(cell: ByName) -> list[str]:
    """What the outputs of a cell say; only their kinds where they vary with a processor's last bits."""
    if "varies" in cell["metadata"].get("tags", ()):
        return [output["output_type"] for output in cell["outputs"]]
    facts = []
    for output in cell.get("outputs", []):
        kind = output["output_type"]
        if kind == "stream":
            facts += [output["name"], "".join(output["text"])]
        elif kind == "error":
            facts += ["error", output["ename"], output["evalue"]]
        else:
            data = output["data"]
            spare = {"image/png"} if "image/svg+xml" in data else set()  # packages come without it
            facts.append("shows")
            for mime in sorted(data.keys() - spare):
                facts += [mime, *_data_facts(mime, data[mime])]
    return "\n".join(facts).splitlines()


def svg_facts(svg: str) -> list[str]:
    """What a picture says whatever its layout: its groups with their texts; else all its texts."""
    root = ElementTree.fromstring(svg[svg.index("<svg") :])
    facts = []
    for group in root.iterfind(".//{*}g"):
        kinds = group.get("class") or ""
        if {"node", "edge", "cluster"} & set(kinds.split()):
            title = group.findtext("{*}title") or ""
            facts.append(f"{kinds} {title}: {_texts(group)}")
    return sorted(facts) or [_texts(root)]


def _data_facts(mime: str, value) -> list[str]:
    if mime.endswith("json"):
        return [json.dumps(value, sort_keys=True)]
    text = "".join(value)
    if mime == "image/svg+xml":
        return svg_facts(text)
    if mime.startswith("image/"):
        return ["an image"]
    if mime == "text/html":
        text = re.sub(r'srcdoc="([^"]*)"', lambda found: unescape(found[1]), text)
        text = re.sub('<img class="mg-still"[^>]*>', "", text)
        text = re.sub("(?s)<svg.*?</svg>", lambda found: repr(svg_facts(found[0])), text)
        text = re.sub(r"data:image/[^\"')]*", "an image", text)
    return [text]


def _texts(element: ElementTree.Element) -> str:
    return " | ".join("".join(text.itertext()) for text in element.iterfind(".//{*}text"))
