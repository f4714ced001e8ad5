"""Plausible wrong answers to the exercises of step 4: every one must fail its check."""

from literate import load

_step = load("step04_automatic_backward")
Variable, Square, Exp, square, exp, np = (
    _step.Variable,
    _step.Square,
    _step.Exp,
    _step.square,
    _step.exp,
    _step.np,
)


def recursive(v):
    return [] if v.creator is None else [*recursive(v.creator.input), type(v.creator).__name__]


def recursive_with_a_higher_limit(v):
    import sys

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        return recursive(v)
    finally:
        sys.setrecursionlimit(before)


def inserting_in_front(v):
    names = []
    while v.creator is not None:
        names.insert(0, type(v.creator).__name__)
        v = v.creator.input
    return names


def by_function(v):
    f, names = v.creator, []
    while f:
        names += [f.__class__.__name__]
        f = f.input.creator
    names.reverse()
    return names


def shouting(thing):
    if isinstance(thing, float):
        return f"{thing}: wrap it, Variable(np.array({thing}))"
    if thing.creator is None:
        return "A Leaf has no history. Call backward() on a result."


def the_last_first(v):
    names = []
    while v.creator is not None:
        names.append(type(v.creator).__name__)
        v = v.creator.input
    return names


def the_value(f, value):
    return f(Variable(np.array(value))).data


def of_the_result(f, value):
    y = f(Variable(np.array(value)))
    y.backward()
    return y.grad


def two_x(f, value):
    return 2 * value


def by_central_difference(f, value):
    up, down = f(Variable(np.array(value + 1e-5))), f(Variable(np.array(value - 1e-5)))
    return (up.data - down.data) / 2e-5


def short(thing):
    return "wrong" if isinstance(thing, float) or thing.creator is None else None


def always_the_leaf(thing):
    return "use np.array(0.5)" if isinstance(thing, float) else "a leaf has no backward()"


def value_not_quoted(thing):
    if isinstance(thing, float):
        return "that is a float: use np.array"
    return "a leaf: backward() starts at a result" if thing.creator is None else None


def never_content(thing):
    if isinstance(thing, float):
        return f"{thing} is a float: use np.array({thing})"
    return "a leaf: backward() starts at a result" if thing.creator is None else "call backward()"


def letter_by_letter(v):
    names = []
    while v.creator:
        names.extend(type(v.creator).__name__)
        v = v.creator.input
    return list(reversed(names))


def from_the_value(f, value):
    box = Variable(np.array(value))
    result = f(box)
    result.grad = box.data
    result.backward()
    return box.grad


WRONG = {
    "4a": [
        (each, Variable, Square, Exp)
        for each in (recursive, recursive_with_a_higher_limit, the_last_first, letter_by_letter)
    ],
    "4b": [
        (the_value, square, exp),
        (of_the_result, square, exp),
        (two_x, square, exp),
        (by_central_difference, square, exp),
        (from_the_value, square, exp),
    ],
    "4c": [
        (short, Variable, square),
        (always_the_leaf, Variable, square),
        (value_not_quoted, Variable, square),
        (never_content, Variable, square),
    ],
}


def of_the_box_alone(f, value):
    box = Variable(np.array(float(value)))
    f(box)
    box.backward()
    return box.grad


def box_of_a_number(f, value):
    x = Variable(value)
    f(x).backward()
    return x.grad


def array_without_a_box(f, value):
    y = f(np.array(value))
    y.backward()


def raised(thing):
    if isinstance(thing, float):
        raise ValueError(f"{thing}: use np.array({thing})")
    return "a leaf: call backward() on a result" if thing.creator is None else None


def what_backward_returns(f, value):
    return f(Variable(np.array(value))).backward()


NAMED = {
    "4a": [
        ((recursive, Variable, Square, Exp), "the function calls itself"),
        ((the_last_first, Variable, Square, Exp), "the list is not turned round"),
        ((letter_by_letter, Variable, Square, Exp), "+= adds the letters"),
    ],
    "4b": [
        ((the_value, square, exp), "the value of f is returned"),
        ((what_backward_returns, square, exp), "x.grad is not returned, or never written"),
        ((of_the_result, square, exp), "the gradient of the result is returned"),
        ((by_central_difference, square, exp), "f runs twice, to measure it"),
        ((of_the_box_alone, square, exp), "backward() is called on the box that you made"),
        ((box_of_a_number, square, exp), "the box gets a bare number"),
        ((array_without_a_box, square, exp), "f gets an array without a box"),
        ((from_the_value, square, exp), "the walk starts with the value as its seed"),
    ],
    "4c": [((raised, Variable, square), "the advice is raised")],
}

RIGHT = {
    "4a": [(inserting_in_front, Variable, Square, Exp), (by_function, Variable, Square, Exp)],
    "4c": [(shouting, Variable, square)],
}
