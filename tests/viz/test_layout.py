"""The layout engines: alive, replaced, timed out, or not there at all."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from minigrad.viz.graph.graph import Graph
from minigrad.viz.picture import Picture
from minigrad.viz.render import layout

needs_worker = pytest.mark.skipif(
    not layout._has_pygraphviz(), reason="pygraphviz is not installed"
)
SMALL = "digraph { a -> b }"
HARD = (
    "digraph {"
    + "".join(f"a{i} -> a{i * 7919 % 997}; a{i} -> a{i * 31 % 991};" for i in range(900))
    + "}"
)


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr(layout, "ENGINES", ())


@pytest.fixture
def worker_only(monkeypatch):
    monkeypatch.setattr(layout, "ENGINES", layout.ENGINES[:1])


def worker():
    return layout._WORKERS[os.getpid()]


def graph():
    g = Graph(title="y")
    g.edge(g.node("leaf", "x", lines=("0.5",)), g.node("op", "Square"))
    return g


@needs_worker
def test_one_worker_makes_many_pictures(worker_only):
    layout.layout(SMALL)
    before = worker().pid
    assert all(layout.layout(SMALL) for _ in range(5))
    assert worker().pid == before


@needs_worker
def test_a_worker_that_died_is_replaced(worker_only):
    layout.layout(SMALL)
    worker().kill()
    worker().wait()
    assert layout.layout(SMALL)


@needs_worker
def test_a_picture_that_takes_too_long_is_given_up_and_the_next_one_works(worker_only, monkeypatch):
    layout.layout(SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(layout, "TIME_LIMIT", 0.3)
        assert layout.layout(HARD) is None
    assert layout.layout(SMALL)


@needs_worker
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
def test_a_worker_that_has_to_wait_for_a_processor_is_not_given_up(worker_only, monkeypatch):
    layout.layout(SMALL)
    child = worker()
    monkeypatch.setattr(layout, "TIME_LIMIT", 0.5)
    child.send_signal(signal.SIGSTOP)
    goes_on = threading.Timer(1.0, child.send_signal, [signal.SIGCONT])
    goes_on.start()
    assert layout.layout(SMALL)
    assert worker() is child
    goes_on.join()


@needs_worker
def test_source_that_is_not_dot_gives_none_and_the_worker_lives_on(worker_only):
    layout.layout(SMALL)
    before = worker().pid
    assert layout.layout("digraph { a -> ") is None
    assert layout.layout(SMALL)
    assert worker().pid == before


@needs_worker
def test_a_forked_process_does_not_use_the_worker_of_its_parent(worker_only, monkeypatch):
    layout.layout(SMALL)
    parents, child = worker(), os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert layout.layout(SMALL)
    assert worker() is not parents
    assert parents.poll() is None
    layout._close()


@needs_worker
@pytest.mark.parametrize(
    ("form", "start"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("plain", b"graph")],
)
def test_every_format_is_what_it_says(form, start):
    assert layout.layout(SMALL, form).startswith(start)


@needs_worker
def test_the_same_source_gives_the_same_bytes_in_a_fresh_worker(worker_only):
    source = Picture(graph()).dot
    first = layout.layout(source)
    layout._close()
    assert layout.layout(source) == first


def test_source_beyond_the_limit_is_not_tried(monkeypatch):
    monkeypatch.setattr(layout, "ENGINES", ((lambda: True, None),))
    assert layout.layout("x" * (layout.SIZE_LIMIT + 1)) is None


def test_without_an_engine_the_picture_is_text_and_one_line_of_advice(no_engine):
    picture = Picture(graph())
    bundle = picture._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert picture.svg is None
    assert "Square(x)" in bundle["text/plain"]
    assert bundle["text/plain"].splitlines()[-1] == f"({layout.ADVICE})"


def test_without_an_engine_drawn_files_say_what_is_missing(no_engine, tmp_path):
    picture = Picture(graph())
    for name in ("a.svg", "a.png", "a.pdf"):
        with pytest.raises(RuntimeError, match="pip install pygraphviz"):
            picture.save(tmp_path / name)
    for name in ("a.txt", "a.dot", "a.html"):
        assert "Square" in picture.save(tmp_path / name).read_text(encoding="utf-8")
