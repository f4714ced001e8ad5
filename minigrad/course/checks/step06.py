"""The checkers of step 6, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..diagnosis import mistake
from ..judge import Mismatch, same
from .step04 import deep_leaf


def diamond(x, square):
    a = square(x)
    return square(a) + square(a)


def late_branch(x, square):
    """A short way and a long way to the same sum."""
    a = square(x)
    return a + square(square(a) + a)


def doubled(x, times):
    for _ in range(times):
        x = x + x
    return x


@checker(
    "6e",
    hint=(
        "who runs first on the way back: the oldest function, or the youngest?",
        "functions_behind(y) holds each function once; sorted(…, key=…) puts them into an order",
        "return sorted(functions_behind(y), key=lambda f: f.generation, reverse=True)",
    ),
)
def by_generation_first(by_generation, Variable, square):
    x = Variable(np.array(2.0))
    graphs = {
        "square(x)": square(x),
        "the diamond": diamond(x, square),
        "a + square(square(a) + a)": late_branch(x, square),
        "10 doublings": doubled(x, 10),
    }
    for words, y in graphs.items():
        verify_order(words, y, by_generation(y))
    y = diamond(x, square)
    y.backward()
    same("the gradient of the diamond at 2 in your order", float(x.grad), 64.0)


@checker(
    "6a",
    hint=(
        "how long is the way of a leaf, and how long is that of x + (x + x)?",
        "a leaf has 0; anything else has 1 more than the longest way of its inputs",
        "return 0 if v.creator is None else 1 + max(longest_way(x) for x in v.creator.inputs)",
    ),
)
def longest_way(longest_way, Variable, square):
    x = Variable(np.array(1.0))
    graphs = {
        "a leaf": x,
        "square(x)": square(x),
        "x + x": x + x,
        "(x + x) + x": (x + x) + x,
        "the diamond": diamond(x, square),
        "a + square(square(a) + a)": late_branch(x, square),
        "x + (x + x)": x + (x + x),
        "8 doublings": doubled(x, 8),
    }
    expected = {words: y.creator.generation if y.creator else 0 for words, y in graphs.items()}
    for y in graphs.values():
        forget_generations(y)
    for words, y in graphs.items():
        same(f"the longest way of {words}", longest_way(y), expected[words])


def ways(take):
    """Ways to the leaf, where ``take`` chooses among those of the inputs."""

    def walk(v):
        return 0 if v.creator is None else 1 + take([walk(x) for x in v.creator.inputs])

    return walk


@mistake("6a", "only the first input is followed", "how many ways lead on from an addition?")
def first_input_only(longest_way, Variable, square):
    return ways(lambda lengths: lengths[0]), Variable, square


@mistake("6a", "the shortest way is taken", "which input decides when x and (x + x) meet?")
def shortest_way(longest_way, Variable, square):
    return ways(min), Variable, square


@mistake("6a", "the ways of all inputs are added", "one walk, or all walks together?")
def all_ways(longest_way, Variable, square):
    return ways(sum), Variable, square


@mistake("6a", "every function behind v is counted", "do all of them lie on one way?")
def number_of_functions(longest_way, Variable, square):
    return lambda v: len(behind(v)), Variable, square


@mistake("6a", "a leaf counts as 1", "how many functions made a leaf?")
def leaf_is_one(longest_way, Variable, square):
    return lambda v: 1 + ways(max)(v), Variable, square


@mistake("6a", "f.generation is read: the check takes it away", "what do the links say?")
def the_generation(longest_way, Variable, square):
    return lambda v: v.creator.generation if v.creator else 0, Variable, square


def behind(y):
    """The functions behind y, each once, as they are met: the last link found goes first."""
    found, todo = {}, [y]
    while todo:
        f = todo.pop().creator
        if f is not None and f not in found:
            found[f] = True
            todo.extend(f.inputs)
    return list(found)


def forget_generations(y):
    """From here on only the links tell how deep a variable lies."""
    for f in behind(y):
        vars(f).pop("generation", None)


@checker(
    "6b",
    hint=(
        "when is a function ready: when one of its users has run, or when all have?",
        "count uses over the inputs of all functions, but a leaf has no maker to count for; "
        "append f when its count is down to 0",
        "ready = [y.creator]; pop f, append it to the order, count down each x.creator, and put it "
        "into ready when its count is 0",
    ),
)
def topological(topological, Variable, square):
    x = Variable(np.array(1.0))
    graphs = {
        "square(x)": square(x),
        "x + x": x + x,
        "the diamond": diamond(x, square),
        "a + square(square(a) + a)": late_branch(x, square),
        "10 doublings": doubled(x, 10),
    }
    for y in graphs.values():
        forget_generations(y)
    for words, y in graphs.items():
        verify_order(words, y, topological(y))
    y = diamond(Variable(np.array(2.0)), square)
    y.backward(order=topological)
    leaf = y.creator.inputs[0].creator.input.creator.input
    same("the gradient of the diamond at 2 in your order", float(leaf.grad), 64.0)
    long = deep_leaf(Variable)
    for _ in range(20_000):
        long = square(long)
    same("the length of the order of a chain of 20000", len(list(topological(long))), 20_000)


def verify_order(words, y, order):
    """Every function behind y once, each after all functions that use its output."""
    if order is None:
        raise Mismatch(f"the order of {words}", None, "a list of functions")
    order = list(order)
    functions = behind(y)
    same(f"the number of functions in the order of {words}", len(order), len(functions))
    if set(order) != set(functions):
        raise Mismatch(
            f"the order of {words}", "other functions, or one twice", "every function behind y once"
        )
    place = {f: i for i, f in enumerate(order)}
    for user in order:
        for x in user.inputs:
            if x.creator is not None and place[x.creator] < place[user]:
                raise Mismatch(
                    f"in the order of {words}, number {place[x.creator]}",
                    f"a {type(x.creator).__name__} before the {type(user).__name__} that uses it",
                    "users first",
                )


def lifo(y):
    order: list[object] = []
    stack = [y.creator]
    while stack and len(order) < 5_000:
        f = stack.pop()
        order.append(f)
        stack.extend(x.creator for x in f.inputs if x.creator is not None)
    return order


def postorder(y):
    """By recursion: the makers of the inputs first, then the function; turned round."""
    order: dict[object, bool] = {}

    def visit(f):
        if f is not None and f not in order:
            for x in f.inputs:
                visit(x.creator)
            order[f] = True

    visit(y.creator)
    return list(order)[::-1]


@mistake(
    "6b", "functions stand in the order in which the links lead to them", "who waits for whom?"
)
def as_met(topological, Variable, square):
    return behind, Variable, square


@mistake("6b", "a function is put into the order once per use", "how often may each stand there?")
def once_per_use(topological, Variable, square):
    return lifo, Variable, square


@mistake("6b", "f.generation is read: the check takes it away", "what can be counted instead?")
def by_generation(topological, Variable, square):
    return lambda y: sorted(behind(y), key=lambda f: -f.generation), Variable, square


@mistake("6b", "the first function stands first: that is the order of forward", "who knows gy?")
def forward_order(topological, Variable, square):
    return lambda y: postorder(y)[::-1], Variable, square


@mistake("6b", "the order is found by recursion", "which list could hold what is still to do?")
def recursion(topological, Variable, square):
    return postorder, Variable, square


@mistake("6b", "the order is not returned", "what does a function without return give back?")
def not_returned(topological, Variable, square):
    return lambda y: None, Variable, square


@checker(
    "6c",
    hint=(
        "when does LIFO visit a function before all of its users have run?",
        "a single function is always right. Use a computed variable twice",
        "b = x + x; return b + b",
    ),
)
def smallest(smallest, Variable):
    x = Variable(np.array(3.0))
    y = smallest(x)
    if getattr(y, "creator", None) is None:
        raise Mismatch("what smallest(x) returns", y, "a variable computed from x")
    visits: list[object] = []
    functions, stack = set(), [y.creator]
    while stack and len(visits) < 10_000:
        f = stack.pop()
        visits.append(f)
        functions.add(f)
        stack.extend(v.creator for v in f.inputs if v.creator is not None)
    y.backward(order=lambda y: visits)
    lifo, x.grad = x.grad, None
    again = smallest(x)
    again.backward()
    if np.allclose(lifo, x.grad):
        raise Mismatch("the LIFO gradient", lifo, f"something else than the right one, {x.grad}")
    if len(functions) != 2:
        raise Mismatch("the number of functions", len(functions), "2: that is enough")


@mistake("6c", "a leaf is used twice: nobody made it, so nobody is called twice", "what was made?")
def twice_a_leaf(smallest, Variable):
    return lambda x: x + x, Variable


@mistake("6c", "it is the diamond, which has a function more than needed", "what if two were one?")
def the_diamond(smallest, Variable):
    def build(x):
        a = x * x
        return a * a + a * a

    return build, Variable


@mistake("6c", "a chain is built: it has one order only", "which variable has two users?")
def a_chain(smallest, Variable):
    return lambda x: (x + x) + x, Variable


@mistake("6c", "x itself is returned", "what was computed?")
def nothing_computed(smallest, Variable):
    return lambda x: x, Variable
