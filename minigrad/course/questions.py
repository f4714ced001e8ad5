"""``minigrad recall``: questions on fresh random graphs, spaced over days, and the test of twelve.

For each step, in their order, one function makes a question. The answers are those of the engines of
the package: nothing here knows a rule of differentiation.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad import nets, static
from minigrad.nets.backward import operators

from ..primitives.arguments import ByName, Function, Listed
from . import progress
from .parsons import with_backward
from .steps import need

SECONDS = 180.0

#: What is asked, what is right, and what else could be said; nothing else: a number.
Asked = tuple[str, ...]
Ask = Callable[[str], str]  #: how an answer is asked for


class Question(NamedTuple):
    """What is asked, what is right, and the choices by letter, if there are any."""

    text: str
    right: str
    choices: dict[str, str]

    def __str__(self) -> str:
        return "\n".join([self.text, *(f"  {a}  {choice}" for a, choice in self.choices.items())])

    def is_right(self, said: str) -> bool:
        """Whether this is the answer: a number, a choice, or its letter."""
        if self.choices:
            return self.choices.get(said.strip().lower(), said.strip()) == self.right
        try:
            return bool(np.isclose(float(said), float(self.right)))
        except ValueError:
            return False


def _slope(y, x) -> Any:
    """The gradient of x, itself to be differentiated."""
    return mg.grad(y, [x], create_graph=True)[0]


def _computed(formula: str, **values: int) -> tuple[Any, ByName]:
    """What a formula makes of values, and these as the leaves that it is made of."""
    leaves = {name: mg.tensor(float(value), requires_grad=True) for name, value in values.items()}
    return eval(formula, {"mg": mg, "slope": _slope, **leaves}), leaves


def _gradient(formula: str, name: str, **values: int) -> str:
    """The gradient of a formula for one of the values in it, as an answer."""
    y, leaves = _computed(formula, **values)
    return f"{_slope(y, leaves[name]).item():g}"


def _backward(function: Function, parameters: Sequence[str]) -> Listed:
    """The operators of the backward part of a program that sums what a function gives."""
    return with_backward(function, dict.fromkeys(parameters, (0.5, 0.5)))[1]


def _summands(function: Function, parameter: str) -> str:
    """How many names the sum in such a backward part reads, as an answer."""
    [op] = [op for op in _backward(function, parameter) if op.type == "sum"]
    return str(len(op.input_names))


def how_far_to_move(dice: Random) -> Asked:
    x, n = dice.randint(2, 5), dice.randint(3, 5)
    slope = float(_gradient(f"x ** {n}", "x", x=x))

    def error(text: str) -> float:
        eps = float(text)
        return float(abs(((x + eps) ** n - (x - eps) ** n) / (2 * eps) - slope))

    steps = dice.sample(["1e-2", "1e-5", "1e-9", "1e-13"], 3)
    text = f"The central difference of x ** {n} at {x}: which eps comes nearest to the slope?"
    return text, min(steps, key=error), *steps


def slope_of_a_chain(dice: Random) -> Asked:
    x, formula = dice.randint(1, 4), "x"
    for form in dice.sample(["3 * ({})", "({}) ** 2", "({}) + 5"], 2):
        formula = form.format(formula)
    text = f"y = {formula}. What is the gradient of x at {x}?"
    return text, _gradient(formula, "x", x=x)


def _through(types: Sequence[str], x) -> Any:
    """What functions make of x, one after the other."""
    for type in types:
        x = getattr(mg, type)(x)
    return x


def _chain(dice: Random) -> tuple[str, list[str], list[str]]:
    """A chain in words, its functions, and who is met on the way back; the leaf is None."""
    names = dice.sample(["exp", "sin", "cos", "tanh", "sigmoid"], 4)
    node, met = _through(names, mg.tensor(0.5, requires_grad=True)).grad_fn, []
    while node.next_functions:
        met.append(node.name().removesuffix("Backward0").lower())
        node = node.next_functions[0][0]
    return "y is made of x by " + ", then ".join(names), names, [*met, "None"]


def behind_the_links(dice: Random) -> Asked:
    text, names, met = _chain(dice)
    back = dice.randint(1, 4)
    return f"{text}. What is y{'.creator.input' * back}.creator?", met[back], *names, "None"


def who_runs_first(dice: Random) -> Asked:
    text, names, met = _chain(dice)
    return f"{text}. Whose backward runs first?", met[0], *names


def used_twice(dice: Random) -> Asked:
    x, y = dice.randint(2, 6), dice.randint(2, 6)
    a, b = dice.choice("xy"), dice.choice("xy")
    shapes = ("{a} * {b} + {a}", "({a} + {b}) * {a}", "{a} * {a} + {b}", "({a} + {a}) * {b}")
    formula = dice.choice(shapes).format(a=a, b=b)
    name = dice.choice([each for each in "xy" if each in formula])
    text = f"z = {formula}, at x = {x} and y = {y}. What is {name}.grad?"
    return text, _gradient(formula, name, x=x, y=y)


def waits_for(dice: Random) -> Asked:
    uses = dice.randint(2, 5)

    def used(x) -> Any:
        a = x * 2.0
        return sum(a * float(k) for k in range(uses))

    text = f"{uses} functions use a = 2 * x. How many gradients does the maker of a wait for?"
    return text, _summands(used, "x")


def not_recorded(dice: Random) -> Asked:
    x = dice.randint(2, 5)
    formula = dice.choice(["a * x", "a + x", "a * a + x"])
    how, a = dice.choice([("as usual", "(x * x)"), ("under no_grad()", "(x * x).detach()")])
    text = f"a = x * x is computed {how}, then y = {formula}. What is x.grad at x = {x}?"
    return text, _gradient(formula.replace("a", a), "x", x=x)


def which_rule_passes(dice: Random) -> Asked:
    by_formula = {  # what learners write as the rule of y
        "x / y": ("-gy * x / y ** 2", "gy * x / y ** 2", "-gy / y ** 2", "gy / y"),
        "x * y": ("gy * x", "gy * y", "x", "gy * x * y"),
        "x - y": ("-gy", "gy", "-gy * y", "-1"),
        "x ** 2 / y": ("-gy * (x / y) ** 2", "2 * gy * x / y", "-gy * x / y ** 2", "gy * x ** 2"),
    }
    formula, rules = dice.choice([*by_formula.items()])
    x, y = dice.sample(range(2, 7), 2)
    slope, names = 7 * float(_gradient(formula, "y", x=x, y=y)), {"x": x, "y": y, "gy": 7}
    [right] = [rule for rule in rules if np.isclose(eval(rule, names), slope)]
    text = f"z = {formula}, at x = {x} and y = {y}. Which rule for y will gradcheck accept?"
    return text, right, *rules


def shape_of_a_gradient(dice: Random) -> Asked:
    rows, columns = dice.randint(2, 4), dice.randint(5, 7)
    shapes = [(columns,), (rows, 1), (1, columns), ()]
    shape = dice.choice(shapes)
    b = mg.ones(shape, requires_grad=True)
    x = np.ones((rows, columns))
    slope = _slope((b * x).sum(), b)
    text = f"y = x * b, with the shapes {(rows, columns)} and {shape}. What shape does b.grad have?"
    return text, str(slope.shape), str(x.shape), *map(str, shapes)


def behind_the_door(dice: Random) -> Asked:
    formula = dice.choice(["a * b + {}", "(a + b) * {}", "(a - b) / {}", "a * (b - {})"])
    formula = formula.format(dice.choice(["a", "b", "3"]))
    node = _computed(formula, a=2, b=5)[0].grad_fn
    names = [target.name() if target else "None" for target, _ in node.next_functions]
    at = dice.randrange(len(names))
    others = ["AddBackward0", "MulBackward0", "SubBackward0", "AccumulateGrad", "None", node.name()]
    return f"z = {formula}. What is z.grad_fn.next_functions[{at}][0]?", names[at], *others


def what_is_saved(dice: Random) -> Asked:
    forms = ["x + y", "x * y", "mg.exp(x)", "mg.log(x)", "x * 3.0", "mg.sin(x)", "x / 2.0"]
    form = dice.choice(forms)
    told = ", ".join(sorted(_computed(form, x=2, y=3)[0].grad_fn.saved)) or "nothing"
    others = ["nothing", "x", "y", "x, y", "out", "out, y"]
    return f"What does the node of {form.replace('mg.', '')} save?", told, *others


def second_derivative(dice: Random) -> Asked:
    x, n = dice.randint(1, 3), dice.randint(2, 4)
    text = f"What is the second derivative of x ** {n} at {x}?"
    return text, _gradient(f"slope(x ** {n}, x)", "x", x=x)


def slots_of_a_grad_op(dice: Random) -> Asked:
    type = dice.choice(["mul", "exp", "add", "tanh", "log"])
    backward = _backward(getattr(mg, type), "xy" if type in ("mul", "add") else "x")
    [op] = [op for op in backward if op.type == f"{type}_grad"]
    others = ["out_grad", "x, out_grad", "out, out_grad", "x, y, out_grad", "x, out, out_grad"]
    return f"Which slots does {type}_grad read?", ", ".join(op.inputs), *others


def left_of_a_network(dice: Random) -> Asked:
    last = dice.choice(["tanh", "exp", "sin"])
    ops = [
        nets.Operator("mul", {"x": "x", "y": "w"}, {"out": "h"}),
        nets.Operator("add", {"x": "h", "y": "b"}, {"out": "s"}),
        nets.Operator(last, {"x": "s"}, {"out": "y"}),
    ]

    def left(no_grad: str) -> str:
        backward = nets.NetOp([nets.Backward(nets.NetOp(ops), no_grad.split())])
        return ", ".join(op.type for op in operators(backward)) or "none"

    cases = ["x", "w", "x w", "h", "b h", "s", "x b"]
    no_grad = dice.choice(cases)
    text = f"h = x * w, s = h + b, y = {last}(s). Which grad operators are left in its backward"
    text += f" network with no_grad = {{{', '.join(no_grad.split())}}}?"
    return text, left(no_grad), *map(left, cases)


def parts_of_a_sum(dice: Random) -> Asked:
    uses = dice.randint(2, 6)

    def shared(w) -> Any:
        return sum(static.data(f"x{k}", [2]) * w for k in range(uses))

    text = f"{uses} products share w. How many names does the sum of w@GRAD read?"
    return text, _summands(shared, "w")


def back_through_time(dice: Random) -> Asked:
    T, W = dice.randint(2, 4), dice.randint(2, 3)
    names = [f"x{step}" for step in range(T)]
    h = "0"
    for name in names:
        h = f"{W} * ({h}) + {name}"
    step = dice.randrange(T)
    text = (
        f"The step net h = {W} * h + x runs {T} times. What is the gradient of the last h "
        f"for the x of step {step}, counted from 0?"
    )
    return text, _gradient(h, names[step], **dict.fromkeys(names, 1))


def last_appended(dice: Random) -> Asked:
    middle = dice.sample(["exp", "tanh", "sin"], dice.randint(0, 2))

    def model(w) -> Any:
        return _through(middle, static.data("x", [2]) * w)

    types = ["mul", *middle, "reduce_sum"]
    text = f"The operators {', '.join(types)} write the loss. Which grad op is appended last?"
    return text, _backward(model, "w")[-1].type, *[f"{type}_grad" for type in [*types, "add"]]


def what_is_pruned(dice: Random) -> Asked:
    middle = dice.choice(["exp", "tanh", "sin"])

    def types(no_grad: str) -> Counter[str]:
        def model(x, w, v) -> Any:
            a = x * w
            b = getattr(mg, middle)(a)
            c = b * v
            values = {"a": a, "b": b, "c": c, "w": w, "v": v}
            for name in no_grad:
                values[name].stop_gradient = True
            return c

        return Counter(op.type for op in _backward(model, "xwv"))

    def gone(no_grad: str) -> str:
        return ", ".join((types("") - types(no_grad)).elements()) or "none"

    cases = ["a", "b", "c", "w", "v"]  # where both engines agree: the package looks from both sides
    no_grad = dice.choice(cases)
    text = f"a = x * w, b = {middle}(a), c = b * v, loss = sum(c). Which grad ops does no_grad_set"
    return f"{text} = {{{no_grad}}} take away?", gone(no_grad), *map(gone, cases)


def gradient_through_a_loop(dice: Random) -> Asked:
    n = dice.randint(0, 3)
    formula = "2.0" + " * w" * n + " + 0.0 * w"  # the last part also for n = 0
    text = f"A while op runs y = y * w n times. From y = 2, with w = 3 and n = {n}: what is w@GRAD?"
    return text, _gradient(formula, "w", w=3)


def by_another_name(dice: Random) -> Asked:
    types = dice.sample(["exp", "sin", "tanh", "sqrt", "log"], 3)
    node_of = dice.choice(types)
    backward = _backward(lambda x: _through(types, x), "x")
    lines = {op.type: str(op) for op in backward if op.type.endswith("_grad")}
    text = f"x goes through {', '.join(types)}. Which line does what the node"
    return f"{text} {node_of.title()}Backward0 does?", lines[f"{node_of}_grad"], *lines.values()


#: the functions above by name: the first belongs to step 1, and so on
KINDS: dict[str, Function] = {
    name: make
    for name, make in list(globals().items())
    if isinstance(make, FunctionType) and make.__module__ == __name__ and name[0] != "_"
}


def kinds(last: int) -> list[str]:
    """The kinds of questions of the steps up to this one."""
    return [*KINDS][:last]


def question(kind: str, seed: int | None = None) -> Question:
    """A question of a kind; another seed, another graph; without one a fresh graph.

    >>> question("slope_of_a_chain", 0).choices
    {}
    """
    dice = Random(seed)
    text, right, *others = KINDS[kind](dice)
    wrong = [each for each in dict.fromkeys(others) if each != right]
    choices = [right, *dice.sample(wrong, min(3, len(wrong)))] if others else []
    dice.shuffle(choices)
    return Question(text, right, dict(zip("abcd", choices, strict=False)))


_OPEN: list[Question] = []


def ask_why(step: int) -> None:
    """Print a question of this step, and how to answer it."""
    for kind in kinds(step)[step - 1 :]:
        _OPEN[:] = [question(kind)]
        print(f"Say why, then see. {_OPEN[0]}\nwhy(…) says whether that is it.")


def why(said: object) -> None:
    """Answer the question that was asked last: a number, or the letter of a choice."""
    if not _OPEN:
        print("nothing was asked: a question comes with a check that passes")
    elif _OPEN[0].is_right(str(said)):
        print("✓ right")
    else:
        print(f"✗ the engine says {_OPEN[0].right}")


def due(cards: ByName, last: int, now: datetime) -> list[str]:
    """The kinds to ask now: those whose day has come, oldest first, then new ones."""
    times = {
        kind: datetime.fromisoformat(cards[kind]["due"]) if kind in cards else now
        for kind in kinds(last)
    }
    return sorted((kind for kind in times if times[kind] <= now), key=times.__getitem__)


def recall(folder: Path, last: int, ask: Ask = input) -> int:
    """Ask for three minutes what is due; the number of right answers."""
    need("fsrs", "spacing questions", extra="recall")
    import fsrs

    scheduler, state, right = fsrs.Scheduler(enable_fuzzing=False), progress.read(folder), 0
    end = time.monotonic() + SECONDS
    asked = due(state["cards"], last, datetime.now(UTC))
    for kind in asked:
        if time.monotonic() > end:
            break
        passed = _asked(kind, ask)
        known = state["cards"].get(kind)
        card = fsrs.Card.from_dict(known) if known else fsrs.Card()
        card, _ = scheduler.review_card(card, fsrs.Rating.Good if passed else fsrs.Rating.Again)
        state["cards"][kind] = card.to_dict()
        right += passed
        progress.write(folder, state)
    print(f"{right} right; more in time" if asked else "nothing is due; come back later")
    return right


def examine(folder: Path, ask: Ask = input) -> int:
    """Twelve questions of twelve kinds; the result is kept. The number of right answers."""
    state, chosen = progress.read(folder), Random().sample(kinds(20), 12)
    answers = [_asked(kind, ask, tell=False) for kind in chosen]
    state["tests"] += [{"day": f"{datetime.now(UTC):%Y-%m-%d}", "right": sum(answers), "of": 12}]
    progress.write(folder, state)
    print("; ".join(f"{each['day']}: {each['right']} of {each['of']}" for each in state["tests"]))
    return sum(answers)


def _asked(kind: str, ask: Ask, tell: bool = True) -> bool:
    asked = question(kind)
    print(f"\n{asked}")
    right = asked.is_right(ask("> "))
    if tell:
        print("✓ right" if right else f"✗ it is {asked.right}")
    return right
