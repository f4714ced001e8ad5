"""Exercises that check themselves: one green line, or one with a red mark and a hint.

>>> from minigrad.course.judge import same
>>> @checker("0a", hint="square means times itself")
... def square_it(square):
...     same("square(3)", square(3), 9)
>>> examine("0a", lambda x: x * x)
Verdict(id='0a', passed=True, text='✓ 0a passed')
>>> print(examine("0a", lambda x: 2 * x).text)
✗ 0a: square(3) is 6, expected 9. Hint: square means times itself
"""

import importlib
import re
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..primitives.arguments import Function
from .diagnosis import diagnose, parting
from .judge import Wrong, one_line, run_cases
from .mine import is_cell, is_learners, keep
from .progress import passed
from .questions import ask_why
from .solution import Namespace, find_solution, hints, is_engine, solve, written
from .steps import CourseError

PASSED, FAILED, UNTOUCHED = "✓", "✗", "○"
#: What a terminal calls green, red and blue, by the sign that a text begins with.
_COLOURS = {PASSED: 32, FAILED: 31, "+": 32, "-": 31, "@": 36}
_ID = re.compile(r"\d{1,2}[a-z]")
#: Whose version the notebook goes on with, after an exercise that asks for a part of the engine.
YOURS, OURS = ": the notebook goes on with yours", " (Until it passes, the notebook uses ours.)"


class Checker(NamedTuple):
    """A registered checker: its function, and one hint for each wrong try."""

    function: Function
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What a check found: one line of text, without colours; a picture of a known mistake."""

    id: str
    passed: bool
    text: str
    picture: Any = field(default=None, repr=False)


_CHECKERS: dict[str, Checker] = {}
#: Wrong tries by exercise and mistake.
_TRIES: Counter[tuple[str, str]] = Counter()


def checker(id: str, *, hint: str | tuple[str, ...] = ()) -> Function:
    """Register a function ``(object, …) -> None`` as the checker of exercise ``id``.

    Several hints come one after the other: a question, a pointer, the answer. Those of the course
    stand in a file beside its checkers.

    Raises CourseError for an id that is not a number and a letter.
    """
    if not _ID.fullmatch(id):
        raise CourseError(f"{id!r} is not the id of an exercise; write the step and a letter: '3a'")

    def register(function: Function) -> Function:
        _CHECKERS[id] = Checker(function, (hint,) if isinstance(hint, str) else hint)
        return function

    return register


def check(id: str, *objects: object) -> Any:
    """Check the learner's own object: print one line, green or marked red, whatever it does.

    Returns the picture of a known mistake: where the learner's list and the right one part.

    ``objects`` are the object asked for, then the learner's classes that the checker needs.
    An exercise that nobody has tried yet gets a plain line; the same mistake once more gets the
    next hint.
    Where a part of the engine is asked for and does not pass, the solution takes its place.

    Raises CourseError where the course has no exercise of this id.
    """
    caller = sys._getframe(1)
    namespace = caller.f_globals
    verdict = examine(id, *objects, tries=_TRIES, namespace=namespace)
    text = verdict.text
    learners = verdict.passed and is_learners(caller.f_code)
    if learners:
        passed(id, Path())
    if is_engine(id):
        text += YOURS if verdict.passed else OURS
        if learners:
            keep(id, caller.f_code)
        if not verdict.passed and (cell := find_solution(id)):
            solve(cell, namespace)
    mark, colon, words = text.partition(":")  # words are read best in the page's own colour
    print(f"{coloured(mark)}{colon}{words}")
    if learners:
        ask_why(int(id[:-1]))
    return verdict.picture


def coloured(text: str) -> str:
    """Text in the colour of the sign that it begins with, if it begins with one."""
    colour = _COLOURS.get(text[:1])
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def examine(
    id: str,
    *objects: object,
    tries: Counter[tuple[str, str]] | None = None,
    namespace: Namespace | None = None,
) -> Verdict:
    """Run the checker of an exercise on the learner's objects.

    In the ``namespace`` of the notebook wrong solutions are run, to tell which one this is; a
    failure counts in ``tries``, which decide how much the hint tells.

    Raises CourseError where the course has no exercise of this id.
    """
    judge, stages = find_checker(id)
    untouched = Verdict(id, False, f"{UNTOUCHED} {id}: your turn")  # no try yet, so no hint
    if any(each is ... for each in objects):
        return untouched
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the line says what came of it
            judge(*objects)
    except (Exception, SystemExit) as error:
        if isinstance(error, NotImplementedError) and str(error) in ("", "your turn"):
            if not (called := _elsewhere(error)):
                return untouched
            error = Wrong(f"your code calls {called}, which is not written yet")
        said, when = _reason(error).rstrip("."), ""
        known = diagnose(id, judge, error, namespace)
        if known:
            when, stages = known.when, (known.question, *stages[1:])
            said += f". You get this when {when}"
        tries = Counter() if tries is None else tries
        hint = stages[min(tries[id, when], len(stages) - 1)]
        tries[id, when] += 1
        text = f"{FAILED} {id}: {said}. Hint: {one_line(hint)}"
        return Verdict(id, False, text, parting(error) if known else None)
    return Verdict(id, True, f"{PASSED} {id} passed")


def find_checker(id: str) -> Checker:
    """The checker of an exercise; those of the course are loaded on first use.

    Raises CourseError where there is none, with the ids that there are.
    """
    if id not in _CHECKERS and _ID.fullmatch(id):
        helpers = vars(importlib.import_module(f"{__package__}.checks.checkers"))
        for each, said in written(int(id[:-1])).items():
            if "cases" in said:  # its checker is a table
                takes = said["takes"].split()
                _CHECKERS[each] = Checker(partial(run_cases, helpers, takes, said["cases"]))
    if known := _CHECKERS.get(id):
        return known._replace(hints=known.hints or hints(id))
    near = ", ".join(registered(id[:-1]))
    advice = f"step {id[:-1]} has {near}" if near else "ids are a step and a letter: '3a'"
    raise CourseError(f"no exercise {id!r}; {advice}")


def registered(number: str) -> list[str]:
    """Ids of the checkers that have been loaded for a step."""
    return sorted(id for id in _CHECKERS if id[:-1] == number)


def _reason(error: BaseException) -> str:
    """What went wrong; the line that raised, where the traceback passes through the cell that checks."""
    if isinstance(error, Wrong):
        return one_line(str(error))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename in _cell_that_checks()]
    where = f" (line {lines[-1]} of your cell)" if lines else ""
    return one_line(f"your code raised {type(error).__name__}: {error}{where}")


def _elsewhere(error: BaseException) -> str:
    """The function that raised, where it stands in another cell than the one that checks."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return last.name if is_cell(last.filename) and last.filename not in _cell_that_checks() else ""


def _cell_that_checks() -> list[str]:
    cells = [frame.filename for frame in traceback.extract_stack() if is_cell(frame.filename)]
    return cells[-1:]
