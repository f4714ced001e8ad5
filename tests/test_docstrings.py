"""Every public name says in one line what it is, and shows it in an example that runs."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

import minigrad as mg
from minigrad import data, nn, optim, static
from minigrad.static import net

mg.draw, mg.play, mg.watch, mg.trace  # loaded on first use


def public(owner):
    names = getattr(owner, "__all__", None) or [n for n in dir(owner) if n[0] != "_"]
    found = {n: inspect.getattr_static(owner, n) for n in sorted({*names}) if hasattr(owner, n)}
    return [n for n, at in found.items() if not inspect.ismodule(at) and described(at)]


def described(at):
    """Functions, classes and properties; plain values and slots have no docstring of their own."""
    return callable(at) or isinstance(at, property | staticmethod | classmethod)


OWNERS = {"mg": mg, "Tensor": mg.Tensor, "nn": nn, "optim": optim, "static": static, "data": data, "net": net}  # fmt: skip
NAMES = [(owner, name) for owner, at in OWNERS.items() for name in public(at)]


@pytest.mark.parametrize(("owner", "name"), NAMES, ids=[".".join(pair) for pair in NAMES])
def test_a_public_name_has_one_line_and_an_example(owner, name):
    text = inspect.getdoc(getattr(OWNERS[owner], name)) or ""
    assert text.split("\n\n")[0].strip()
    assert doctest.DocTestParser().get_examples(text), f"{owner}.{name} shows no example"


def test_the_directory_of_the_package_is_its_public_names():
    assert [n for n in dir(mg) if n[:2] != "__"] == sorted(mg.__all__)
    assert "numpy" not in dir(mg)
    assert "minigrad.ops" in sys.modules


def test_static_lists_its_names_and_answers_a_misspelt_one():
    assert [n for n in dir(mg.static) if n[:2] != "__"] == sorted(mg.static.__all__)
    with pytest.raises(
        AttributeError,
        match=r"no attribute 'append_backwards'; did you mean static.append_backward\?\n",
    ):
        mg.static.append_backwards


@pytest.mark.parametrize("name", ["T", "mT"])
def test_examples_of_properties_run(name):
    finder = doctest.DocTestParser()
    text = inspect.getattr_static(mg.Tensor, name).__doc__
    example = finder.get_doctest(text, {}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
