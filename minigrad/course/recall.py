"""``minigrad recall``: a few questions on fresh random graphs, spaced over days."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import progress
from .launch import need
from .questions import KINDS, Question

SECONDS = 180.0


def kinds(last: int) -> list[str]:
    """The kinds of questions of the steps up to this one."""
    return [*KINDS][:last]


def question(kind: str, seed: int) -> Question:
    """A question of a kind; another seed, another graph.

    >>> question("slope_of_a_chain", 0).choices
    ()
    """
    return KINDS[kind](random.Random(seed))


_OPEN: list[Question] = []


def ask_why(step: int) -> None:
    """Print a question of this step, and how to answer it."""
    for kind in kinds(step)[step - 1 :]:
        _OPEN[:] = [question(kind, random.randrange(10**9))]
        print(f"Say why, then see. {_OPEN[0]}\nwhy(…) says whether that is it.")


def why(said: object) -> None:
    """Answer the question that was asked last: a number, or the letter of a choice."""
    if not _OPEN:
        print("nothing was asked: a question comes with a check that passes")
    elif _OPEN[0].is_right(str(said)):
        print("✓ right")
    else:
        print(f"✗ the engine says {_OPEN[0].right}")


def due(cards: dict[str, Any], last: int, now: datetime) -> list[str]:
    """The kinds to ask now: those whose day has come, oldest first, then new ones."""
    times = {
        name: datetime.fromisoformat(cards[name]["due"]) for name in kinds(last) if name in cards
    }
    ready = sorted((name for name in times if times[name] <= now), key=lambda name: times[name])
    return [*ready, *(name for name in kinds(last) if name not in times)]


def recall(folder: Path, last: int, ask: Callable[[str], str] = input) -> int:
    """Ask for three minutes what is due; the number of right answers."""
    need("fsrs", "spacing questions", extra="recall")
    import fsrs

    scheduler, state, right = fsrs.Scheduler(enable_fuzzing=False), progress.read(folder), 0
    end = time.monotonic() + SECONDS
    asked = due(state["cards"], last, datetime.now(UTC))
    for kind in asked:
        if time.monotonic() > end:
            break
        passed = _asked(question(kind, random.randrange(10**9)), ask)
        known = state["cards"].get(kind)
        card = fsrs.Card.from_dict(known) if known else fsrs.Card()
        card, _ = scheduler.review_card(card, fsrs.Rating.Good if passed else fsrs.Rating.Again)
        state["cards"][kind] = card.to_dict()
        right += passed
        progress.write(folder, state)
    print(
        f"{right} right; the next ones come in time" if asked else "nothing is due; come back later"
    )
    return right


def examine(folder: Path, ask: Callable[[str], str] = input) -> int:
    """Twelve questions of twelve kinds; the result is kept. The number of right answers."""
    chosen = random.sample(kinds(20), 12)
    answers = [_asked(question(kind, random.randrange(10**9)), ask, tell=False) for kind in chosen]
    state = progress.read(folder)
    state["tests"] += [{"day": f"{datetime.now(UTC):%Y-%m-%d}", "right": sum(answers), "of": 12}]
    progress.write(folder, state)
    print("; ".join(f"{each['day']}: {each['right']} of {each['of']}" for each in state["tests"]))
    return sum(answers)


def _asked(asked: Question, ask: Callable[[str], str], tell: bool = True) -> bool:
    print(f"\n{asked}")
    right = asked.is_right(ask("> "))
    if tell:
        print("✓ right" if right else f"✗ it is {asked.right}")
    return right
