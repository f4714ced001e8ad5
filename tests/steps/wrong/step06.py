"""Plausible wrong answers to the exercises of step 6: every one must fail its check."""

from literate import load

_step = load("step06_order")
Variable, square, functions_behind = _step.Variable, _step.square, _step.functions_behind


def first_input_only(v):
    return 0 if v.creator is None else 1 + first_input_only(v.creator.input)


def shortest_way(v):
    return 0 if v.creator is None else 1 + min(shortest_way(x) for x in v.creator.inputs)


def number_of_functions(v):
    return len(functions_behind(v))


def all_ways(v):
    return 0 if v.creator is None else 1 + sum(all_ways(x) for x in v.creator.inputs)


def the_generation(v):
    return v.creator.generation if v.creator else 0


def as_found(y):
    return functions_behind(y)


def lifo(y):
    order, stack = [], [y.creator]
    while stack:
        f = stack.pop()
        order.append(f)
        stack.extend(x.creator for x in f.inputs if x.creator is not None)
    return order


def first_visit_only(y):
    return list(dict.fromkeys(lifo(y)))


def oldest_first(y):
    return sorted(functions_behind(y), key=lambda f: f.generation)


def recursive_postorder(y, seen=None):
    seen = {} if seen is None else seen
    f = y.creator
    if f is not None and f not in seen:
        for x in f.inputs:
            recursive_postorder(x, seen)
        seen[f] = True
    return list(seen)[::-1]


def the_last_again_and_again(y):
    return [y.creator for _ in functions_behind(y)]


def return_forgotten(y):
    list(functions_behind(y))


def twice_a_leaf(x):
    return x + x


def the_diamond(x):
    a = square(x)
    return square(a) + square(a)


def a_chain(x):
    return square(square(x))


def reused_but_right(x):
    return (x + x) + x


def nothing_computed(x):
    return x


WRONG = {
    "6a": [
        (first_input_only, Variable, square),
        (shortest_way, Variable, square),
        (number_of_functions, Variable, square),
        (all_ways, Variable, square),
        (the_generation, Variable, square),
    ],
    "6b": [
        (as_found, Variable, square),
        (lifo, Variable, square),
        (first_visit_only, Variable, square),
        (oldest_first, Variable, square),
        (recursive_postorder, Variable, square),
        (the_last_again_and_again, Variable, square),
        (return_forgotten, Variable, square),
    ],
    "6c": [
        (twice_a_leaf, Variable),
        (the_diamond, Variable),
        (a_chain, Variable),
        (reused_but_right, Variable),
        (nothing_computed, Variable),
    ],
}
