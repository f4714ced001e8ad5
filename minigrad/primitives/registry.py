"""The table of primitives: a NumPy function and one gradient rule per input.

Vocabulary
    primitive   a kind of operation: its kernel, its rules, the names that connect them
    kernel      the NumPy function that computes it; positional parameters are the *input slots*,
                ``*x`` a slot that holds a list, keyword-only parameters the *attrs*.  It is given arrays, and of
                several inputs also plain numbers, which take on the dtype of the others
    rule        how the gradient of one input is made.  Its *parameter names are the contract*: what eager
                saves, what the grad op of a Program reads, what may be freed.  A rule may name
                inputs and outputs (``x``, ``out``), gradients of outputs (``out_grad``), attrs, and the
                shape or dtype of an input (``x_shape``, ``x_dtype``), which keeps no array alive
    reading     rules use Python operators and primitives only, so one rule runs on arrays, on Tensors
                (and leaves a graph) and on Variables (and appends Operators)

>>> @primitive
... def cube(x):
...     return x ** 3
>>> _ = cube.grad(x=lambda x, out_grad: out_grad * 3 * x * x)
>>> float(cube(2.0)), REGISTRY["cube"].reads()
(8.0, ('x', 'out_grad'))
>>> _ = REGISTRY.pop("cube")

This module imports nothing of minigrad but its errors, what a call's arguments are, and who answers
it.
"""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from keyword import iskeyword
from types import FunctionType
from typing import Any

from ..errors import RuleError, did_you_mean, refusal
from ..errors.calls import call_error
from .arguments import LISTED, REQUIRED, Args, Attrs, ByName, Function, Listed, Names, frozen
from .dispatch import forget, public_function

REGISTRY: "dict[str, Primitive]" = {}  #: op type → primitive (the OpInfoMap of the documents)


@dataclass(slots=True, eq=False)
class Rule:
    """The gradient of ``inputs`` (several only where they share work): ``function`` and what it names."""

    inputs: Names
    function: Function
    reads: Names
    joint: bool = False


@dataclass(slots=True, eq=False)
class Primitive:
    """One row of the table."""

    type: str
    kernel: Function
    inputs: Names  # slots, in order
    attrs: Attrs  # attr → default
    parameters: Attrs  # the same of inputs and attrs
    outputs: Names = ("out",)
    list_input: str | None = None  # the slot that holds a list (always the last one)
    list_output: bool = False  # the one output slot holds a list
    optional: frozenset[str] = frozenset()  # slots that may be None
    broadcasts: bool = False  # gradients are summed back to their input's shape
    view: bool = False  # the output may share memory with the first input
    nondiff: frozenset[str] = frozenset()  # outputs through which no gradient flows
    rules: dict[str, Rule] = field(default_factory=dict)  # input → its rule
    formulas: dict[str, str] = field(default_factory=dict)  # input → its rule in school notation
    # shapes and dtypes, where running the kernel on stand-ins will not do
    infer: Function | None = None
    # a Program's grad ops, where they are not `<type>_grad`
    grad_maker: Function | None = None
    title: str = ""  # eager name of its node, without "Backward0": "Sum" for reduce_sum
    function: Any = None  # the public function: `mg.exp`
    node_class: Any = None  # of its nodes; the eager engine makes it with the first one
    doc: str = ""

    def grad(self, joint: Function | None = None, /, **rules: Any) -> Any:
        """Declare gradients: one keyword per input, or one function for all inputs that share work.

        A joint function returns one gradient per input, in order, None where there is none.  A rule
        that is one call of another primitive is given as that, and the names of what it gets:
        ``take.grad(x=(untake, "out_grad, indices, x_shape, axis"))``; it is its own formula, if no
        other stands behind it. Errors: `RuleError` for an unknown input, for both kinds of rules at
        once, or a parameter that names nothing.
        """
        if joint is not None:
            if rules:
                what = f"{self.type!r} was given one rule for all inputs, and others for {', '.join(rules)}"
                advice = "one function for all inputs, or one for each by its name"
                raise refusal(what, advice, RuleError)
            inputs = tuple(n for n in self.inputs if n not in self.nondiff)
            self._add(inputs, joint, joint=True)
            return joint
        for name, rule in rules.items():
            if name not in self.inputs:
                what = f"{self.type!r} has no input {name!r}{did_you_mean(name, self.inputs)}"
                raise refusal(what, "a rule is given by the name of its input", RuleError)
            if isinstance(rule, tuple):
                rule, names, *formula = rule
                self._add((name,), rule, names.split(", "))
                said = names.replace("_shape", ".shape").replace("out_grad", "g")
                self.formulas[name] = formula[0] if formula else f"{rule.primitive.called}({said})"
            else:
                self._add((name,), rule)
        return self.function

    def formula(self, **texts: str) -> None:
        """Say in school notation what a rule computes: ``x="out * (g - sum(out * g))"``.

        A Python expression in inputs, ``out``, attrs, the gradient ``g`` and the count ``n`` that a
        mean divides by (1 without one); `sum` and `mean` go along the axis of the op.  Pictures
        show it where the rule itself is no plain formula.
        """
        self.formulas.update(texts)

    def _add(
        self, inputs: Names, function: Function, reads: Iterable[str] = (), joint: bool = False
    ) -> None:
        """One rule for inputs; it reads what its parameters name, or ``reads``."""
        reads = tuple(reads or inspect.signature(function).parameters)
        rule = Rule(inputs, by_position(function), reads, joint)
        legal = self.legal_reads()
        for name in rule.reads:
            if legal.count(name) > 1:
                raise refusal(
                    f"the rule of {self.type!r} reads {name!r}, and that could mean two things: a parameter of the "
                    "kernel, and an output, a gradient or a shape",
                    "another name for the parameter of the kernel",
                    RuleError,
                )
            if name not in legal:
                what = f"the gradient rule of {self.type!r} for {', '.join(rule.inputs)} names {name!r}, which is"
                what += " no input, output, gradient of an output, attr, or shape of an input"
                advice = "the parameters of a rule are the names it reads"
                raise refusal(what + did_you_mean(name, legal), advice, RuleError)
        for name in rule.inputs:
            self.rules[name] = rule
        self.forget()

    def forget(self) -> None:
        """What was written for this primitive is written anew."""
        self.node_class = None
        forget(self.function)

    def legal_reads(self) -> list[str]:
        """Every name a rule of this primitive may use."""
        grads = [f"{o}_grad" for o in self.outputs]
        shapes = [f"{n}_{what}" for n in self.inputs for what in ("shape", "dtype")]
        return [*self.inputs, *self.outputs, *grads, *self.attrs, *shapes]

    def wanted_rules(self, wanted: Any = None) -> Iterable[Rule]:
        """The rules for the wanted inputs (all by default), each once, in the order of the inputs."""
        asked = [n for n in self.differentiable if wanted is None or n in wanted]
        return dict.fromkeys(self.rules[n] for n in asked)

    def reads(self, wanted: Any = None) -> Names:
        """What the rules of the wanted inputs name: inputs, outputs, gradients, attrs, shapes, in that order."""
        named = {n for rule in self.wanted_rules(wanted) for n in rule.reads}
        return tuple(n for n in self.legal_reads() if n in named)

    def saved(self, wanted: Any = None) -> Names:
        """The inputs and outputs whose *values* the wanted rules read: what backward keeps alive."""
        return tuple(n for n in self.reads(wanted) if n in self.inputs or n in self.outputs)

    def placed(self, values: Args, named: Attrs, first: int = 0) -> Listed:
        """The values of a call in the places of its parameters, from the ``first`` on; defaults where none is given."""
        places = [*self.parameters.values()][first:]
        if len(values) > len(places):
            raise self.call_error(first + len(values))
        places[: len(values)] = values
        names = [*self.parameters][first:] if named else []
        for name, value in named.items():
            k = names.index(name) if name in names else None
            if k is None or places[k] is not self.parameters[name]:
                raise self.call_error(first + len(values), name)
            places[k] = value
        return places

    def bind(self, args: Args, attrs: Attrs) -> tuple[Args, Attrs]:
        """Sort the arguments of a call into inputs and attrs: a list slot may be given a list, attrs by position.

        An ``axis`` in a list stays a list: whether that is one, NumPy says in the kernel.
        """
        n = len(self.inputs)
        given: Args = ()
        if not self.list_input:
            values = self.placed(args, attrs)
            args = single = tuple(values[:n])
            values = values[n:]
        else:
            if args and isinstance(args[0], LISTED):
                args, given = tuple(args[0]), args[1:]
            values = self.placed(given, attrs, n)
            single = (*args, REQUIRED)[: n - 1]
        for k, value in enumerate(single):
            if value is REQUIRED or (value is None and self.inputs[k] not in self.optional):
                raise self.call_error(k)
        bound = {}
        for k, (name, value) in enumerate(zip(self.attrs, values, strict=True), n):
            if value is REQUIRED:
                raise self.call_error(k)
            bound[name] = [*value] if name == "axis" and type(value) is list else frozen(value)
        return args, bound

    def call_error(self, count: int, unknown: str | None = None) -> Exception:
        """What to raise for a call with ``count`` values, or with an unknown keyword."""
        shown = [n if d is REQUIRED else f"{n}={d!r}" for n, d in self.parameters.items()]
        if self.list_input:
            shown[len(self.inputs) - 1] = f"*{self.list_input}"
        return call_error(self.called, shown, count, unknown)

    @property
    def called(self) -> str:
        """The name of its function, as users call it: ``sum`` for reduce_sum."""
        return self.kernel.__name__.removeprefix("reduce_")

    def slot_names(self, count: int) -> list[str]:
        """The slot of each of ``count`` arguments; a list slot takes all from its place on."""
        names = list(self.inputs)
        if not self.list_input:
            return names
        return names[:-1] + [names[-1]] * (count - len(names) + 1)

    @property
    def several(self) -> bool:
        """Whether it has several outputs, or a list of them."""
        return self.list_output or len(self.outputs) > 1

    @property
    def differentiable(self) -> Names:
        """The inputs that have a gradient rule, in order."""
        return tuple(n for n in self.inputs if n in self.rules)

    def __repr__(self) -> str:
        return f"<primitive {self.type}>"


def primitive(kernel: Function | None = None, /, **options: Any) -> Any:
    """Turn a NumPy function into a primitive and enter it in the registry.

    Options: ``type`` (its name in programs, the function's own by default), ``outputs`` (names, if there are several),
    ``list_output``, ``broadcasts``, ``view``, ``nondiff`` (inputs and outputs without gradient), ``infer``,
    ``grad_maker``, ``title``: those of `Primitive`.
    Returns the public function; its attribute ``grad`` takes the rules, ``primitive`` is the row of the table.
    In a notebook the cell may be run again: a function of ``__main__`` takes the place of its older version.
    Errors: `RuleError` if the type is taken, the kernel's parameters are not inputs-then-attrs, or for another option.

    A rule says the gradient of one input, in operators and primitives; the names of its parameters
    are what it reads: inputs, outputs, ``out_grad``, attrs, ``x_shape``, ``x_dtype``.

    >>> import minigrad as mg, numpy as np
    >>> from minigrad.primitives.registry import REGISTRY
    >>> @mg.primitive
    ... def powered(x, *, times=2):
    ...     return np.power(x, times)
    >>> _ = powered.grad(x=lambda x, out_grad, times: out_grad * times * x ** (times - 1))
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> mg.gradcheck(lambda x: powered(x, times=3), x), mg.gradgradcheck(powered, x)
    (True, True)
    >>> row = REGISTRY.pop("powered")
    >>> row.inputs, row.attrs
    (('x',), {'times': 2})
    """
    if kernel is None:
        return lambda k: primitive(k, **options)
    name = options.pop("type", kernel.__name__)
    if name in REGISTRY and not _same_definition(REGISTRY[name].kernel, kernel):
        where = REGISTRY[name].kernel.__module__
        what = f"a primitive of type {name!r} is registered already: {where}"
        advice = f"another name for the function, or type={name + '_2'!r}"
        raise refusal(what, advice, RuleError)
    called = kernel.__name__ if kernel.__name__.isidentifier() else name
    if not called.isidentifier():
        what = f"a primitive needs a name, and {called!r} is none"
        raise refusal(what, "def, or type=…", RuleError)
    options["outputs"] = tuple(options.get("outputs", ("out",)))
    for output in options["outputs"]:
        if not output.isidentifier() or iskeyword(output):
            what = f"{output!r} is no name for an output of {name!r}"
            raise refusal(what, "outputs=('out',): names as those of parameters", RuleError)
    options["nondiff"] = frozenset(options.get("nondiff", ()))
    doc = inspect.getdoc(kernel) or ""
    made = Primitive(name, kernel, doc=doc, **_slots(name, kernel), **options)
    REGISTRY[name] = made
    if of_package(kernel):  # such frames are never "the user's line"
        kernel.__globals__["__minigrad_ops__"] = True
    made.function = public_function(made, called)
    return made.function


def of_package(function: Function) -> bool:
    """Whether a kernel or a rule is one of minigrad's own."""
    return (function.__module__ or "").startswith("minigrad.")


def _slots(name: str, kernel: Function) -> ByName:
    """What the parameters of a kernel say: inputs, which may be None, which is a list, and attrs."""
    inputs, attrs, parameters, list_input = [], {}, {}, None
    for p in inspect.signature(kernel).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            what = f"the kernel of {name!r} takes **{p.name}"
            raise refusal(what, "name its attrs instead, behind a *", RuleError)
        if p.kind is p.KEYWORD_ONLY:
            attrs[p.name] = parameters[p.name] = REQUIRED if p.default is p.empty else p.default
            continue
        inputs.append(p.name)
        parameters[p.name] = REQUIRED if p.default is p.empty else None
        if p.kind is p.VAR_POSITIONAL:
            list_input = p.name
    return {
        "inputs": tuple(inputs),
        "attrs": attrs,
        "parameters": parameters,
        "optional": frozenset(n for n in inputs if parameters[n] is None),
        "list_input": list_input,
    }


def by_position(function: Function) -> Function:
    """A rule or a kernel as engines call it: every parameter by its place, also those behind a ``*``."""
    if not isinstance(function, FunctionType) or not function.__code__.co_kwonlyargcount:
        return function
    code = function.__code__
    named = function.__kwdefaults__ or {}
    count = code.co_argcount + code.co_kwonlyargcount
    options = [named.get(n, REQUIRED) for n in code.co_varnames[code.co_argcount : count]]
    defaults = (*(function.__defaults__ or ()), *options)
    code = code.replace(co_argcount=count, co_kwonlyargcount=0)
    return FunctionType(
        code, function.__globals__, function.__name__, defaults, function.__closure__
    )


def _same_definition(old: Function, new: Function) -> bool:
    """Whether a cell of a notebook was run again."""
    same = old.__qualname__ == new.__qualname__ and "<" not in new.__qualname__
    return same and old.__module__ == new.__module__ == "__main__"


def elementwise(kernel: Function | None = None, /, **options: Any) -> Any:
    """`primitive` for functions that broadcast: each gradient is summed back to its input's shape.

    >>> from minigrad.primitives.registry import REGISTRY, elementwise
    >>> @elementwise
    ... def plus(x, y):
    ...     return x + y
    >>> _ = plus.grad(x=lambda out_grad: out_grad, y=lambda out_grad: out_grad)
    >>> REGISTRY.pop("plus").broadcasts
    True
    """
    return primitive(kernel, broadcasts=True, **options)
