"""What a finished page must hold to: words for pictures, links that lead somewhere, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes by which a page loads something as it opens.
LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}


class Page(HTMLParser):
    """One page: its anchors, links and pictures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = {"", "top"}
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember what the tag names and where it leads."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.found.append((tag, values))


class Site:
    """All pages of a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def pages(self) -> dict[Path, Page]:
        """Every page by its path; pages of search and code are part of the theme."""
        return {
            path: Page(path) for path in self.root.rglob("*.html") if "_static" not in path.parts
        }

    def faults(self) -> Iterator[str]:
        """Everything that is wrong, page by page."""
        for page in self.pages.values():
            for tag, values in page.found:
                for fault in self._faults(page, tag, values):
                    yield f"{page.path.relative_to(self.root)}: {fault}"

    def _faults(self, page: Page, tag: str, values: dict[str, str]) -> Iterator[str]:
        if tag == "img" and not values.get("alt", "").strip():
            yield f"picture without words: {values.get('src', '')[:80]}"
        for name in ("href", "src"):
            target = values.get(name, "")
            outside = urlsplit(target).scheme in {"http", "https"} or target.startswith("//")
            if outside and (tag, name) in LOADS and values.get("rel") != "canonical":
                yield f"loads {target} from outside"
            if not outside and target and not self._exists(page, target):
                yield f"{target} leads nowhere"

    def _exists(self, page: Page, target: str) -> bool:
        parts = urlsplit(target)
        if parts.scheme:  # data:, mailto:, javascript:
            return True
        path = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if not path.exists():
            return False
        return path not in self.pages or unquote(parts.fragment) in self.pages[path].anchors
