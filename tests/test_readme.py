"""The README and the pages in docs keep their word: code runs, commands exist, links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from minigrad.course.cli import main
from minigrad.course.folder import find_course

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    """The code blocks of the README in one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_python_blocks_of_the_readme_run_from_the_top(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    promised = []
    for number, block in enumerate(blocks("python")):
        exec(compile(block, f"README block {number}", "exec"), namespace)
        promised += re.findall(r"^print\(.*\)\s+# ([\w(].*(?:\)|>\)))$", block, re.M)
    printed = capsys.readouterr().out
    assert promised
    for said in promised:
        assert said in printed
    assert (tmp_path / "first.svg").read_text(encoding="utf-8").startswith("<svg")


def test_each_of_the_two_commands_does_its_own_set_up():
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert "python3 -m pip install -q uv && python3 -m uv run minigrad" in commands
    assert "python3 -m pip install -q uv && python3 -m uv run pytest" in commands
    for command in commands:
        assert command.startswith(
            ("python3 -m pip install -q uv && python3 -m uv run", "python3 -m venv")
        )


def test_what_the_commands_need_is_declared():
    project = PROJECT["project"]
    assert project["scripts"]["minigrad"] == "minigrad.course.cli:main"
    assert PROJECT["dependency-groups"]["dev"] == ["minigrad[course,test]"]
    assert {"course", "test"} <= set(project["optional-dependencies"])
    assert "minigrad[course,test]".replace("minigrad", "-e '.") + "'" in README
    light = {re.split(r"[<>=;\s]", each)[0] for each in project["dependencies"]}
    assert light == {"numpy", "graphviz", "pygraphviz"}


def test_ci_runs_every_test_of_the_readmes_command():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python3 -m pip install -q uv" in ci
    measured = re.search(r'MEASURED="(.*)"', ci)[1].split()
    assert all((ROOT / path).exists() for path in measured)
    assert '-m "not browser" $MEASURED minigrad' in ci
    assert """-m "not browser" tests $(printf -- '--ignore=%s ' $MEASURED)""" in ci
    assert "pytest -m browser tests" in ci


@pytest.mark.parametrize("words", re.findall(r"`minigrad ([a-z][^`]*)`", README))
def test_every_command_that_the_readme_names_is_known(words, capsys):
    command, *_ = words.split()
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0


def test_every_step_stands_in_the_readme():
    course = find_course(ROOT)
    for number in course.paths:
        assert re.search(rf"[\s|·]{number} \w", README), number


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not re.match(r"\w+:", target):
            assert (page.parent / target).exists(), target


def test_the_version_is_one():
    import minigrad

    version = PROJECT["project"]["version"]
    assert minigrad.__version__ == version
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
