"""What an installed package must do, outside the repository, with its base dependencies only.

uv build -o dist && cd /some/empty/folder && uv run --isolated --no-project --with dist/*.whl python tests/installed.py
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path


def main() -> None:
    """Compute, draw, export a player, read the data, unpack the course; all in the current folder."""
    import minigrad as mg

    assert "site-packages" in mg.__file__, f"not the installed package: {mg.__file__}"
    assert metadata.version("minigrad") == mg.__version__
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    mg.draw(y).save("y.svg")
    mg.play(y).save("y.html")
    assert Path("y.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "<script" in Path("y.html").read_text(encoding="utf-8")
    assert len(mg.data.digits().labels) == 1797
    text = ""
    try:
        x.unsqueeze(0)
    except AttributeError as error:
        text = str(error)
    assert text.endswith("repair: x.expand_dims(axis)")
    minigrad("new", "mine")
    assert "20  " in minigrad("steps", folder="mine")
    recorded = Path("mine/notebooks/solved/step03_creator_links.ipynb").read_text(encoding="utf-8")
    assert "<svg" in recorded
    assert '"image/' not in recorded, "a picture is there twice: hatch_build.py"
    print("the installed package works")


def minigrad(*words: str, folder: str = ".") -> str:
    """The command of this very Python; what it prints."""
    command = [sys.executable, "-m", "minigrad.course.cli", *words]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
