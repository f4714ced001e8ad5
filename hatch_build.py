"""How the packages are built: notebooks travel without what only web viewers of a repository need.

A recorded picture is there as a page and, for viewers that show none, as SVG and PNG, too: most of the bytes.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LighterNotebooks(BuildHookInterface):
    """Put copies in the place of the notebooks, in which only the best form of a picture is left."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.scratch = tempfile.TemporaryDirectory()
        shipped = "minigrad/course/shipped/" if self.target_name == "wheel" else ""
        root = Path(self.root)
        for path in sorted(root.glob("notebooks/**/*.ipynb")):
            name = path.relative_to(root)
            lighter = Path(self.scratch.name) / name
            lighter.parent.mkdir(parents=True, exist_ok=True)
            lighter.write_text(without_spare_pictures(path), encoding="utf-8")
            build_data["force_include"][str(lighter)] = f"{shipped}{name.as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.scratch.cleanup()


def without_spare_pictures(path: Path) -> str:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                data.pop("image/png", None)
            if "text/html" in data:
                page = "".join(data["text/html"])
                data["text/html"] = re.sub('<img class="mg-still"[^>]*>', "", page)
                if "<svg" in page:
                    data.pop("image/svg+xml", None)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
