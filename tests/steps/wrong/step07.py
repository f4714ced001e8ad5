"""Plausible wrong answers to the exercises of step 7: every one must fail its check."""

import contextlib
import weakref

from literate import load

_step = load("step07_lifetime")
Variable, square, Config = _step.Variable, _step.square, _step.Config


def strong(v, f):
    v.creator = f
    f.output = lambda: v


def bare(v, f):
    v.creator = f
    f.output = v


def both_weak(v, f):
    v.creator = weakref.ref(f)
    f.output = weakref.ref(v)


@contextlib.contextmanager
def without_finally(name, value):
    before = getattr(Config, name)
    setattr(Config, name, value)
    yield
    setattr(Config, name, before)


@contextlib.contextmanager
def always_true_again(name, value):
    setattr(Config, name, value)
    try:
        yield
    finally:
        setattr(Config, name, True)


@contextlib.contextmanager
def only_recording(name, value):
    before = Config.recording
    Config.recording = value
    try:
        yield
    finally:
        Config.recording = before


@contextlib.contextmanager
def swallows(name, value):
    before = getattr(Config, name)
    setattr(Config, name, value)
    with contextlib.suppress(Exception):
        yield
    setattr(Config, name, before)


@contextlib.contextmanager
def false_is_no_value(name, value):
    before = getattr(Config, name)
    setattr(Config, name, value or before)
    try:
        yield
    finally:
        setattr(Config, name, before)


def just_again(y):
    y.backward(retain_grad=True)


def leaves_only(y):
    for f in _step.functions_behind(y):
        for x in f.inputs:
            if x.creator is None:
                x.cleargrad()
    y.backward(retain_grad=True)


def not_kept(y):
    for f in _step.functions_behind(y):
        for x in f.inputs:
            x.cleargrad()
    y.backward()


@contextlib.contextmanager
def an_attribute_called_name(name, value):
    before, Config.name = Config.name, value
    try:
        yield
    finally:
        Config.name = before


def reference_not_called(y):
    for f in _step.functions_behind(y):
        for x in f.inputs:
            x.grad = None
        f.output.cleargrad()
    y.backward(retain_grad=True)


def functions_told_to_clear(y):
    for f in _step.functions_behind(y):
        f.cleargrad()
    y.backward(retain_grad=True)


WRONG = {
    "7a": [(strong,), (bare,), (both_weak,)],
    "7b": [
        (without_finally, Config),
        (always_true_again, Config),
        (only_recording, Config),
        (swallows, Config),
        (false_is_no_value, Config),
    ],
    "7c": [
        (just_again, Variable, square),
        (leaves_only, Variable, square),
        (not_kept, Variable, square),
    ],
}

NAMED = {
    "7b": [((an_attribute_called_name, Config), "Config.name is read")],
    "7c": [
        ((each, Variable, square), "a function is told to clear, or a weak reference")
        for each in (reference_not_called, functions_told_to_clear)
    ],
}
