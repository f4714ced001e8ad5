"""For every exercise: the stub fails, the solution passes, plausible wrong answers fail."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import textwrap
import tomllib
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from minigrad.course.build import stub
from minigrad.course.check import check, examine, find_checker, registered
from minigrad.course.diagnosis import _alike, parting
from minigrad.course.folder import find_course
from minigrad.course.judge import Mismatch
from minigrad.course.solution import find_solution, hints, is_engine, mistakes, restored, solve
from minigrad.course.steps import BEGIN, END, Step

REAL = find_course(Path(__file__).parent)
WRONG = REAL.root / "tests" / "steps" / "wrong"
STEPS = {step.name: step for step in REAL.select()}
WRITTEN = WRONG.parent / "written"
COLOUR = re.compile(r"\x1b\[\d+m")
#: A plural, or a clause, before "is …, expected …".
UNGRAMMATICAL = re.compile(
    r"^✗ \w+: (both|how many|whether|the (slots|lines|ops|op types|blocks|parameters|names|edges))\b"
    r".* is .*expected"
)


@pytest.fixture(autouse=True)
def no_tries(monkeypatch):
    """Hints begin with the first one."""
    monkeypatch.setattr(import_module("minigrad.course.check"), "_TRIES", Counter())


EXERCISES = [(name, id) for name, step in STEPS.items() for id in step.exercises]


@cache
def answers(step: Step) -> dict[str, dict[str, list[tuple]]]:
    """WRONG and RIGHT of a step, each from exercises to what `check` is given."""
    return runpy.run_path(str(WRONG / f"{step.name.split('_')[0]}.py"))


def written(step: Step) -> dict[str, list[dict[str, str]]]:
    """Answers as text, by exercise: what is wrong with each, if anything is."""
    path = WRITTEN / f"{step.name.split('_')[0]}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def told_apart() -> list[tuple[str, str, str]]:
    """Every known mistake: its step, its exercise, when it happens."""
    return [(name, id, each.when) for name, id in EXERCISES for each in mistakes(id)]


@cache
def given_to_check(step: Step, id: str) -> tuple[dict, tuple]:
    """The namespace of the solved notebook at this check, and what is handed to it."""
    namespace, handed = {}, []
    outcome(step, id, solved=True, check=lambda _, *objects: handed.append(objects), into=namespace)
    return namespace, handed[0]


def outcome(step: Step, id: str, *, solved: bool | str, check=check, into=None) -> str:
    """What the check prints when the definitions of the step and this exercise's cell have run.

    Text for ``solved`` stands where the solution stood.
    """
    cell = next(cell for cell in step.cells if cell.exercise == id)
    namespace = {} if into is None else into
    namespace["__name__"] = step.name
    path = str(step.path)
    exec(compile(step.path.read_text(), path, "exec"), namespace)
    run("import numpy as np\nimport minigrad as mg", namespace)
    for needed in demonstrations_before(step, cell):
        run(needed, namespace)
    namespace["check"] = check
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(source_of(step, cell, solved), namespace)
    return COLOUR.sub("", printed.getvalue())


def source_of(step: Step, cell, solved: bool | str) -> str:
    if isinstance(solved, bool):
        return cell.source if solved else stub(step, cell)
    head, _, rest = cell.source.partition(BEGIN)
    indent = head.rpartition("\n")[2]
    return head.rstrip() + "\n" + textwrap.indent(solved, indent) + rest.partition(END)[2]


def demonstrations_before(step: Step, cell) -> list[str]:
    """Definitions and imports of cells active in the notebook only, and parts of the engine."""
    kept = []
    for each in step.cells[: step.cells.index(cell)]:
        engine = "engine" in each.tags
        if (engine or "active-ipynb" in each.tags) and "%" not in each.source[:1]:
            tree = ast.parse(stub(step, each) if each.exercise and not engine else each.source)
            body = [
                node
                for node in tree.body
                if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))
            ]
            kept.append(ast.unparse(ast.Module(body, [])))
    return kept


def run(source: str, namespace: dict) -> None:
    exec(compile(source, "cell", "exec"), namespace)


@pytest.mark.parametrize(("name", "id"), EXERCISES)
def test_the_stub_fails_its_check(name, id):
    printed = outcome(STEPS[name], id, solved=False)
    assert f"○ {id}: your turn" in printed, printed
    assert "✓" not in printed
    assert "✗" not in printed


@pytest.mark.parametrize(("name", "id"), EXERCISES)
def test_the_solution_passes_its_check(name, id):
    printed = outcome(STEPS[name], id, solved=True)
    assert f"✓ {id} passed" in printed, printed
    assert "✗" not in printed


@pytest.mark.parametrize(("name", "id"), EXERCISES)
def test_plausible_wrong_answers_fail_their_check(name, id):
    wrong = answers(STEPS[name])["WRONG"].get(id, [])
    assert len(wrong) >= 2 or is_engine(id), f"exercise {id} has {len(wrong)} wrong answers"
    for number, objects in enumerate(wrong):
        objects = objects if isinstance(objects, tuple) else (objects,)
        with contextlib.redirect_stdout(io.StringIO()):
            verdict = examine(id, *objects)
        assert not verdict.passed, f"wrong answer {number} of {id} passes"
        assert not UNGRAMMATICAL.search(verdict.text), verdict.text
        assert "takes" not in verdict.text or "positional" not in verdict.text, verdict.text


@pytest.mark.parametrize(("name", "id"), EXERCISES)
def test_right_answers_in_other_styles_pass_their_check(name, id):
    for number, objects in enumerate(answers(STEPS[name]).get("RIGHT", {}).get(id, [])):
        verdict = examine(id, *objects)
        assert verdict.passed, f"right answer {number}: {verdict.text}"


@pytest.mark.parametrize(("name", "id", "when"), told_apart())
def test_every_known_mistake_is_refused_and_told_from_the_others(name, id, when):
    namespace, _ = given_to_check(STEPS[name], id)
    mistake = next(each for each in mistakes(id) if each.when == when)
    with restored(namespace), contextlib.redirect_stdout(io.StringIO()):
        objects = solve(find_solution(id), namespace, mistake)
        verdict = examine(id, *objects, namespace=namespace)
    assert not verdict.passed
    assert f"You get this when {when}. Hint: " in verdict.text


@pytest.mark.parametrize(("name", "id"), EXERCISES)
def test_the_known_mistakes_name_those_of_independent_answers(name, id):
    named = answers(STEPS[name]).get("NAMED", {}).get(id, [])
    namespace = given_to_check(STEPS[name], id)[0] if named else None
    for objects, when in named:
        verdict = examine(id, *objects, namespace=namespace)
        assert f"You get this when {when}" in verdict.text, verdict.text


ENGINE = [(name, id) for name, id in EXERCISES if is_engine(id)]
TEXTS = [
    (name, id, number, each["body"], each.get("when"))
    for name, id in EXERCISES
    for number, each in enumerate(written(STEPS[name]).get(id, ()))
]


@pytest.mark.parametrize(("name", "id"), ENGINE)
def test_a_part_of_the_engine_has_right_and_wrong_texts_and_is_shown_folded(name, id):
    whens = [when for _, other, _, _, when in TEXTS if other == id]
    assert whens.count(None) >= 3
    assert len(whens) - whens.count(None) >= 6
    assert any(f"<!-- solution {id} -->" in cell.source for cell in STEPS[name].cells)


@pytest.mark.parametrize(
    ("name", "id", "body", "when"),
    [(name, id, body, when) for name, id, _, body, when in TEXTS],
    ids=[
        f"{id}-{number}-{'right' if when is None else when or 'refused'}"
        for _, id, number, _, when in TEXTS
    ],
)
def test_what_learners_write_passes_or_is_told_what_is_wrong_and_an_engine_goes_on(
    name, id, body, when
):
    namespace: dict = {}
    printed = outcome(STEPS[name], id, solved=body, into=namespace)
    if when is None:
        assert f"✓ {id} passed{': the notebook goes on with yours' * is_engine(id)}" in printed
    else:
        assert printed.startswith(f"✗ {id}: "), printed
        assert (f"You get this when {when}. Hint: " if when else "Hint: ") in printed
    if when is not None and is_engine(id):
        again = find_solution(id).source.rpartition("\n")[2]
        with contextlib.redirect_stdout(io.StringIO()) as second:
            run(again, namespace)
        assert f"✓ {id} passed" in COLOUR.sub("", second.getvalue())  # on ours, from here on


OWN_WORDS = """
append_backward(loss)
if name + GRAD not in loss.block.vars:
    raise ValueError(f"{name!r} has no gradient: it does not lead to {loss.name!r}")
return run(loss.block.program, values)[name + GRAD]
"""
WORDS_OF_THE_SCOPE = """
zeros = [op for op in program.blocks[0].ops if op.type == "fill_zeros_like"]
return f"'b@GRAD' has no value in this scope; it holds: {', '.join(values)}" if zeros else None
"""


@pytest.mark.parametrize(
    ("id", "body", "said"),
    [
        ("15b", "by_hand = NetOp([])", "by_hand is net:, expected a list of operators"),
        ("15a", "return [add('x1', 'W', 'y')]", "what three_users returns is list, expected NetOp"),
        ("16e", "return None if not steps else 1", "what comes back for the states' gradients ["),
        ("17b", OWN_WORDS, "said by slope, expected 'w' has no gradient, said by append_backward"),
        ("18a", 'predicted = "fill_constant sum"', "is 'fill_constant sum', expected ['fill"),
        ("18c", WORDS_OF_THE_SCOPE, "it holds: w, z, expected 'b@GRAD' has no value in this sco"),
    ],
)
def test_a_check_says_what_was_given_and_what_was_expected(id, body, said):
    step = next(step for step in STEPS.values() if id in step.exercises)
    assert said in outcome(step, id, solved=body.strip())


def test_a_known_mistake_in_a_list_is_drawn_where_it_parts_from_the_right_one():
    failure = Mismatch("the list", ["a", "x", 3, "d"], ["a", "b", "c", np.float64(3.0), "d"])
    graph = parting(failure).graph
    said = [(node.kind, node.name) for node in graph.nodes.values()]
    assert said == [
        ("grad_op", "a"), ("pruned", "x"), ("grad_op", "b"), ("grad_op", "c"),
        ("grad_op", "3"), ("grad_op", "d"),
    ]  # fmt: skip
    assert [each.lines for each in graph.nodes.values()][1:3] == [("yours",), ("right",)]
    assert parting(Mismatch("a number", 1.0, 2.0)) is None
    assert parting(ValueError("no list")) is None


def test_texts_are_not_the_numbers_of_a_known_mistake():
    observed = ([11.0, 5.0], (11, 5), ["11", "5"])
    mistake, *answers = (Mismatch("the list", each, [5.0, 11.0]) for each in observed)
    assert [_alike(mistake, each) for each in answers] == [True, False]


def test_where_the_solution_fails_in_the_same_way_no_mistake_is_named(monkeypatch):
    namespace, objects = given_to_check(STEPS["step12_double_backward"], "12a")
    monkeypatch.setitem(namespace, "walk", lambda *_: int("no walk"))
    said = examine("12a", *objects, namespace=namespace).text
    assert "no walk" in said
    assert "You get this when" not in said


def test_mistakes_are_tried_and_taken_back():
    name, id = ENGINE[0]
    namespace: dict = {}
    outcome(STEPS[name], id, solved=False, into=namespace)
    before = dict(namespace)
    examine(id, *[lambda *_: 1 / 0] * 3, namespace=namespace)
    assert namespace == before


@pytest.mark.parametrize("name", [path.stem for path in REAL.paths.values()])
def test_every_step_has_two_to_four_exercises_and_no_checker_is_left_over(name):
    step = STEPS[name]
    assert 2 <= len(step.exercises) <= 4
    for id in step.exercises:
        assert len(find_checker(id).hints) == len(hints(id)) == 3
        assert len(mistakes(id)) >= 6
    assert set(registered(step.exercises[0][:-1])) == set(step.exercises)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_checks_can_be_asked_why(name):
    text = "\n".join(cell.source for cell in STEPS[name].cells)
    assert "import check\n" not in text  # what passes is followed by a question: why(…)


def unrecorded(body):
    """The loop of the walk, behind the with statement."""
    return textwrap.indent(textwrap.dedent(body.strip("\n")), "    ")


def recursive(body):
    """The walk as a function that calls itself."""
    loop = "while ready:\n            node = ready.pop()"
    call = body.replace(loop, "def visit(node):").replace("ready.append(", "visit(")
    return call.rstrip() + "\n        visit(root)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (unrecorded, "the grad_fn of a gradient is a node, expected None"),
        (recursive, "the walk through 3000 nodes is a recursion"),
    ],
)
def test_a_walk_that_is_recorded_or_calls_itself_is_refused(change, said, monkeypatch):
    cell = find_solution("10e")
    head, _, rest = cell.source.partition(BEGIN)
    body, _, after = rest.partition(END)
    changed = f"{head.rstrip()}\n{change(body)}\n{after}"
    monkeypatch.setitem(globals(), "source_of", lambda *_: changed)
    assert said in outcome(STEPS["step10_grad_fn"], "10e", solved=True)
