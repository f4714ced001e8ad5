"""The checkers of step 7."""

import gc
import weakref

import numpy as np

from ..check import checker
from ..judge import Mismatch, close, same


class Thing:
    """An object with links."""


@checker("7a")
def link(link):
    v, f = Thing(), Thing()
    link(v, f)
    if getattr(v, "creator", None) is not f:
        raise Mismatch("v.creator", getattr(v, "creator", None), "f itself")
    output = getattr(f, "output", None)
    if not callable(output):
        said = "v itself" if output is v else output
        raise Mismatch("f.output", said, "a weak reference, which is called to get v")
    if output() is not v:
        raise Mismatch("f.output()", output(), "v")
    probes = [weakref.ref(v), weakref.ref(f)]
    was_on = gc.isenabled()
    gc.disable()
    try:
        del v, f
        left = [probe() is not None for probe in probes]
    finally:
        if was_on:
            gc.enable()
    if any(left):
        raise Mismatch("what is left of v and f when their names are gone", "a circle", "nothing")


@checker("7b")
def using_config(using_config, Config):
    Config.some_switch = 1
    before = Config.recording
    try:
        with using_config("some_switch", 2):
            same("Config.some_switch in a block that sets it to 2", Config.some_switch, 2)
            with using_config("some_switch", 3):
                same(
                    "Config.some_switch in an inner block that sets it to 3", Config.some_switch, 3
                )
            same("Config.some_switch after an inner block, where 2 counts,", Config.some_switch, 2)
        same("Config.some_switch after the block, where it was 1,", Config.some_switch, 1)
        try:
            with using_config("some_switch", 4):
                raise KeyError("an error inside the block")
        except KeyError:
            pass
        else:
            raise Mismatch("the error raised inside the block", "swallowed", "passed on")
        same("Config.some_switch after a block that set it to 4 and failed", Config.some_switch, 1)
        with using_config("recording", False):
            same("Config.recording in a block that sets it to False", Config.recording, False)
        same("Config.recording after that block", Config.recording, before)
    finally:
        del Config.some_switch
        Config.recording = before


@checker("7c")
def fresh_backward(fresh_backward, Variable, square):
    x = Variable(np.array(3.0))
    a = x * x
    y = a * x
    y.backward(retain_grad=True)
    for _ in range(2):
        fresh_backward(y)
        close("the gradient of x³ at 3", x.grad, 27.0)
        if a.grad is None:
            raise Mismatch("the gradient in between, of a = x * x", None, 3.0)
        close("the gradient in between, of a = x * x", a.grad, 3.0)
    x = Variable(np.array(2.0))
    b = square(x)
    z = square(b) + square(b)
    for _ in range(2):
        fresh_backward(z)
        close("the gradient of the diamond at 2", x.grad, 64.0)
