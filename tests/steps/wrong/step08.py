"""Plausible wrong answers to the exercises of step 8: every one must fail its check."""

from literate import load

_step = load("step08_operators")
Variable, Function, gradcheck, exp = _step.Variable, _step.Function, _step.gradcheck, _step.exp
functions_behind, by_generation, np = _step.functions_behind, _step.by_generation, _step.np


class Power(Function):
    def forward(self, x0, x1):
        return x0**x1

    @property
    def boxes(self):
        return self.inputs[0].data, self.inputs[1].data


class ConstantExponent(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        return x1 * x0 ** (x1 - 1) * gy, 0 * gy


class LogOfExponent(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        return x1 * x0 ** (x1 - 1) * gy, x0**x1 * np.log(np.abs(x1)) * gy


class WithoutGy(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        return x1 * x0 ** (x1 - 1), x0**x1 * np.log(x0)


class OfSingleNumbers(Power):
    def backward(self, gy):
        x0, x1 = map(float, self.boxes)
        return x1 * x0 ** (x1 - 1) * gy, x0**x1 * np.log(x0) * gy


class WritesIntoGy(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        gx0 = x1 * x0 ** (x1 - 1) * gy
        gy *= x0**x1 * np.log(x0)
        return gx0, gy


class AsAList(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        return [x1 * x0 ** (x1 - 1) * gy, x0**x1 * np.log(x0) * gy]


class PowerByItsResult(Power):
    def backward(self, gy):
        x0, x1 = self.boxes
        y = self.output().data
        return gy * x1 * y / x0, gy * y * np.log(x0)


class PowerInPlainNames(Power):
    def backward(self, gy):
        base, exponent = (x.data for x in self.inputs)
        return gy * exponent * np.power(base, exponent - 1), gy * base**exponent * np.log(base)


class Tanh(Function):
    def forward(self, x):
        return np.tanh(x)

    def backward(self, gy):
        y = self.output().data
        return (1 - y * y) * gy


class TanhOfInput(Tanh):
    def backward(self, gy):
        x = self.input.data
        return (1 - x * x) * gy


class TanhWithoutGy(Tanh):
    def backward(self, gy):
        return 1 - np.tanh(self.input.data) ** 2


def first(x):
    return Tanh()(x)


def two(x):
    up, down = exp(x), exp(-x)
    return (up - down) / (up + down)


def one_and_its_inverse(x):
    up = exp(x)
    down = 1 / up
    return (up - down) / (up + down)


def one(x):
    return 1 - 2 / (exp(2 * x) + 1)


def two_without_brackets(x):
    up, down = exp(x), exp(-x)
    return up - down / up + down


def without_brackets(x):
    e = exp(2 * x)
    return 1 - 2 / e + 1


def sigmoid_instead(x):
    return 1 / (1 + exp(-x))


def out_of_the_box(x):
    up, down = np.exp(x.data), np.exp(-x.data)
    return Variable(np.asarray((up - down) / (up + down)))


def once_more_by_one(x):
    return one(x)


def by_third_formula(x):
    e = exp(x + x)
    return 1 - 2 / (1 + e)


def once_more_by_two(x):
    return one_and_its_inverse(x)


def one_squared(x):
    e = exp(x)
    return 1 - 2 / (e * e + 1)


def exp_of_a_box(x):
    up = np.exp(x)
    down = np.exp(-x)
    return (up - down) / (up + down)


def bare_numbers(x):
    return np.tanh(x.data)


def dot_of(y, name, variables_once=True):
    lines, functions = [], by_generation(y)
    met = [y, *(x for f in functions for x in f.inputs)]
    for v in dict.fromkeys(met) if variables_once else met:
        lines.append(f'  {name(v)} [label="{v.name or ""}"]')
    for f in functions:
        lines.append(f'  {name(f)} [label="{type(f).__name__}" shape=box]')
        lines += [f"  {name(x)} -> {name(f)}" for x in f.inputs]
        lines.append(f"  {name(f)} -> {name(f.output())}")
    return "\n".join(["digraph {", *lines, "}"])


def numbered():
    numbers = {}
    return lambda node: f"n{numbers.setdefault(node, len(numbers))}"


def arrows_from(y, line):
    """The right text, its arrows written by ``line(tail, head, is_input)``."""
    ids, lines, functions = numbered(), [], by_generation(y)
    for v in dict.fromkeys([y, *(x for f in functions for x in f.inputs)]):
        lines.append(f'  {ids(v)} [label="{v.name or ""}"]')
    for f in functions:
        lines.append(f'  {ids(f)} [label="{type(f).__name__}" shape=box]')
        lines += [line(ids(x), ids(f), True) for x in f.inputs]
        lines.append(line(ids(f), ids(f.output()), False))
    return "\n".join(["digraph {", *lines, "}"])


def in_quotes(y):
    return arrows_from(y, lambda tail, head, inward: f'"{tail}"->"{head}";')


class TanhInTheClass(Tanh):
    def forward(self, x):
        TanhInTheClass.y = np.tanh(x)
        return TanhInTheClass.y

    def backward(self, gy):
        return (1 - TanhInTheClass.y**2) * gy


class TanhIntoGy(Tanh):
    def backward(self, gy):
        gy *= 1 - np.tanh(self.input.data) ** 2
        return gy


class TanhOfAReference(Tanh):
    def backward(self, gy):
        return gy * (1 - self.output.data**2)


class TanhOfABox(Tanh):
    def backward(self, gy):
        return gy * (1 - self.output() ** 2)


class TanhWithoutBrackets(Tanh):
    def backward(self, gy):
        return 1 - np.tanh(self.input.data) ** 2 * gy


class TanhOfNumPyOnABox(Tanh):
    def backward(self, gy):
        return gy * (1 - np.tanh(self.input) ** 2)


WRONG = {
    "8a": [
        (ConstantExponent, Variable, gradcheck),
        (LogOfExponent, Variable, gradcheck),
        (WithoutGy, Variable, gradcheck),
        (AsAList, Variable, gradcheck),
        (OfSingleNumbers, Variable, gradcheck),
        (WritesIntoGy, Variable, gradcheck),
    ],
    "8b": [
        ((lambda x: TanhOfInput()(x), two, one), Variable, functions_behind),
        ((lambda x: TanhWithoutGy()(x), two, one), Variable, functions_behind),
        ((lambda x: TanhInTheClass()(x), two, one), Variable, functions_behind),
        ((lambda x: TanhIntoGy()(x), two, one), Variable, functions_behind),
        ((first, out_of_the_box, one), Variable, functions_behind),
        ((first, bare_numbers, one), Variable, functions_behind),
        ((first, exp_of_a_box, one), Variable, functions_behind),
        ((first, two, two), Variable, functions_behind),
        ((first, one_and_its_inverse, one_and_its_inverse), Variable, functions_behind),
        ((first, by_third_formula, by_third_formula), Variable, functions_behind),
        ((first, two, without_brackets), Variable, functions_behind),
        ((first, two, sigmoid_instead), Variable, functions_behind),
    ],
}


class PowerByPow(Power):
    def forward(self, x0, x1):
        return _step.Pow(x1)(x0)


NAMED = {
    "8a": [
        ((PowerByPow, Variable, gradcheck), "forward calls Pow, which packs a box"),
        ((ConstantExponent, Variable, gradcheck), "the exponent is taken for a constant"),
    ],
    "8b": [
        (((lambda x, cls=cls: cls()(x), two, one), Variable, functions_behind), when)
        for cls, when in (
            (TanhOfAReference, "the weak reference is not called"),
            (TanhOfABox, "the rule computes with the box y"),
            (TanhWithoutBrackets, "gy multiplies only the square"),
            (TanhOfNumPyOnABox, "a function of NumPy, such as np.exp, is called on a box"),
        )
    ]
    + [
        (((first, way, other), Variable, functions_behind), "one of the two calls the other")
        for way, other in ((once_more_by_one, one), (one_and_its_inverse, once_more_by_two))
    ]
    + [
        (
            ((first, exp_of_a_box, one), Variable, functions_behind),
            "a function of NumPy, such as np.exp, is called on a box",
        ),
        (((first, two, without_brackets), Variable, functions_behind), "brackets are missing"),
        (
            ((first, two_without_brackets, one), Variable, functions_behind),
            "all brackets are missing",
        ),
    ],
}

RIGHT = {
    "8a": [(each, Variable, gradcheck) for each in (PowerByItsResult, PowerInPlainNames)],
    "8b": [
        ((first, way, other), Variable, functions_behind)
        for way, other in ((one_and_its_inverse, one), (two, one_squared))
    ],
    "8c": [(lambda y: dot_of(y, numbered()), Variable), (in_quotes, Variable)],
}
