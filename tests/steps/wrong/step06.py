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


def recursive_with_a_higher_limit(y):
    import sys

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        return recursive_postorder(y)
    finally:
        sys.setrecursionlimit(before)


def postorder_by_a_stack(y):
    seen, order, stack = set(), [], [(y.creator, False)]
    while stack:
        f, done = stack.pop()
        if done:
            order.append(f)
        elif f is not None and f not in seen:
            seen.add(f)
            stack += [(f, True), *((x.creator, False) for x in f.inputs)]
    return order[::-1]


def by_counts(y):
    from collections import Counter, deque

    users = Counter(x.creator for f in functions_behind(y) for x in f.inputs)
    ready, order = deque([y.creator]), []
    while ready:
        f = ready.popleft()
        order.append(f)
        users.subtract(x.creator for x in f.inputs)
        ready.extend({x.creator for x in f.inputs if x.creator and users[x.creator] == 0})
    return tuple(order)


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


def users_counted_once(y):
    waiting = {}
    for f in functions_behind(y):
        for maker in {x.creator for x in f.inputs}:
            waiting[maker] = waiting.get(maker, 0) + 1
    order, ready = [], [y.creator]
    while ready:
        order.append(ready.pop())
        for maker in [x.creator for x in order[-1].inputs if x.creator is not None]:
            waiting[maker] -= 1
            if waiting[maker] == 0:
                ready.append(maker)
    return order


def two_squares(x):
    first, second = square(x), square(x)
    return first + second


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
        (recursive_with_a_higher_limit, Variable, square),
        (_step.by_generation, Variable, square),
        (the_last_again_and_again, Variable, square),
        (return_forgotten, Variable, square),
        (users_counted_once, Variable, square),
    ],
    "6c": [
        (twice_a_leaf, Variable),
        (the_diamond, Variable),
        (a_chain, Variable),
        (reused_but_right, Variable),
        (nothing_computed, Variable),
    ],
}


def one_square_too_many(x):
    a = square(x)
    return a + square(a)


NAMED = {
    "6a": [
        ((first_input_only, Variable, square), "only the first input is followed"),
        ((shortest_way, Variable, square), "the shortest way is taken"),
        ((all_ways, Variable, square), "the ways of all inputs are added"),
        ((number_of_functions, Variable, square), "every function behind v is counted"),
        ((the_generation, Variable, square), "f.generation is read"),
    ],
    "6b": [
        ((as_found, Variable, square), "functions stand in the order in which"),
        ((lifo, Variable, square), "a function is put into the order once per use"),
        ((_step.by_generation, Variable, square), "f.generation is read"),
        ((recursive_postorder, Variable, square), "the order is found by recursion"),
        ((users_counted_once, Variable, square), "a function that uses an output twice"),
    ],
    "6c": [
        ((twice_a_leaf, Variable), "a leaf is used twice"),
        ((one_square_too_many, Variable), "there is one function more than needed"),
        ((nothing_computed, Variable), "x itself is returned"),
        ((two_squares, Variable), "square(x) is computed twice"),
    ],
}

RIGHT = {
    "6b": [(postorder_by_a_stack, Variable, square), (by_counts, Variable, square)],
    "6c": [(lambda x: (lambda b: b * b)(x * x), Variable)],
}
