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


def sigmoid_instead(x):
    return 1 / (1 + exp(-x))


def out_of_the_box(x):
    up, down = np.exp(x.data), np.exp(-x.data)
    return Variable(np.asarray((up - down) / (up + down)))


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


def by_address(y):
    return dot_of(y, lambda node: f"n{id(node)}")


def numbered():
    numbers = {}
    return lambda node: f"n{numbers.setdefault(node, len(numbers))}"


def variables_repeated(y):
    return dot_of(y, numbered(), variables_once=False)


def edges_once(y):
    return "\n".join(dict.fromkeys(dot_of(y, numbered()).splitlines()))


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


def inputs_turned(y):
    return arrows_from(
        y, lambda tail, head, inward: f"{head} -> {tail}" if inward else f"{tail} -> {head}"
    )


def outputs_turned(y):
    return arrows_from(
        y, lambda tail, head, inward: f"{tail} -> {head}" if inward else f"{head} -> {tail}"
    )


def in_quotes(y):
    return arrows_from(y, lambda tail, head, inward: f'"{tail}"->"{head}";')


def none_for_no_name(y):
    return dot_of(y, numbered()).replace('label=""', 'label="None"')


def every_variable_called_x(y):
    return dot_of(y, numbered()).replace('label=""', 'label="x"')


def without_labels(y):
    return dot_of(y, numbered()).replace('label=""', "shape=oval")


def all_inputs_from_the_first(y):
    """Right counts of everything, but a variable of no name stands where another one belongs."""
    lines = dot_of(y, numbered()).splitlines()
    nameless = [line.split()[0] for line in lines if 'label=""' in line]
    swap = {nameless[0]: nameless[-1], nameless[-1]: nameless[0]}
    ends = [line.split(" -> ") for line in lines]
    return "\n".join(
        f"  {swap.get(each[0].strip(), each[0].strip())} -> {each[1]}" if len(each) == 2 else line
        for line, each in zip(lines, ends, strict=True)
    )


def no_functions(y):
    return "\n".join(line for line in dot_of(y, numbered()).splitlines() if "shape=box" not in line)


def without_direction(y):
    return dot_of(y, numbered()).removeprefix("di")


def arrows_to_nowhere(y):
    lines = dot_of(y, numbered()).splitlines()
    to_output = [k for k, line in enumerate(lines) if "->" in line][-1]
    lines[to_output] = lines[to_output].split(" ->")[0] + " -> result"
    return "\n".join(lines)


WRONG = {
    "8a": [
        (ConstantExponent, Variable, gradcheck),
        (LogOfExponent, Variable, gradcheck),
        (WithoutGy, Variable, gradcheck),
        (AsAList, Variable, gradcheck),
    ],
    "8b": [
        ((lambda x: TanhOfInput()(x), two, one), Variable, functions_behind),
        ((lambda x: TanhWithoutGy()(x), two, one), Variable, functions_behind),
        ((first, out_of_the_box, one), Variable, functions_behind),
        ((first, bare_numbers, one), Variable, functions_behind),
        ((first, two, two), Variable, functions_behind),
        ((first, two, sigmoid_instead), Variable, functions_behind),
    ],
    "8c": [
        (by_address, Variable),
        (variables_repeated, Variable),
        (edges_once, Variable),
        (no_functions, Variable),
        (without_direction, Variable),
        (arrows_to_nowhere, Variable),
        (inputs_turned, Variable),
        (outputs_turned, Variable),
        (none_for_no_name, Variable),
        (every_variable_called_x, Variable),
        (without_labels, Variable),
        (all_inputs_from_the_first, Variable),
    ],
}

RIGHT = {
    "8a": [(each, Variable, gradcheck) for each in (PowerByItsResult, PowerInPlainNames)],
    "8b": [((first, one_and_its_inverse, one), Variable, functions_behind)],
    "8c": [(lambda y: dot_of(y, numbered()), Variable), (in_quotes, Variable)],
}
