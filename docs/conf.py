"""The site: README, notebooks as they are saved, pages of docs/, and the reference from docstrings.

    uv run --group docs sphinx-build -W --keep-going -c docs . docs/_build/html

The source folder is the repository itself, so links between its files are links of the site, too.
Nothing is executed but imports, nothing is downloaded, no page asks another machine for anything.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import site_parts

project = "minigrad"
author = project_copyright = "the minigrad authors"
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/reference/*.md",
    "examples/*.md",
    "notebooks/**.ipynb",
]
exclude_patterns = ["docs/_build", "**/.ipynb_checkpoints", "notebooks/**.fresh.ipynb"]

extensions = ["myst_nb", "sphinx.ext.autodoc"]
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nitpicky = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "literal"  # `x` in a docstring is code

highlight_language = "none"  # what a text does not name is text
html_math_renderer = "mathml"  # browsers draw it themselves
pygments_dark_style = "monokai"
html_theme = "furo"
html_title = "minigrad"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]


def setup(app: object) -> None:
    """Join the parts of the site that are made from the repository."""
    site_parts.connect(app)
