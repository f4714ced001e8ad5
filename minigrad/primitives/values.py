"""Python's operators and methods, once, for every Value.

`OPERATORS`, `REFLECTED` and `METHODS` say which function each one is; ``ops/__init__.py`` installs
them when all functions exist. Tensors and Variables both inherit from `Operators`, so what works on
one works on the other.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, describe, refusal
from ..errors.other_libraries import TABLES
from .arguments import Function, Value, dtype_of

__minigrad_ops__ = True  # frames of this module are never "the user's line"

#: Python's operator → function of minigrad
OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div",
    "__pow__": "pow", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__getitem__": "getitem",
    "__mod__": "mod", "__floordiv__": "floor_divide",
    "__lt__": "less", "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal",
    "__eq__": "equal", "__ne__": "not_equal",
    "__invert__": "logical_not", "__and__": "logical_and", "__or__": "logical_or", "__xor__": "logical_xor",
}  # fmt: skip

#: operators that Python tries on the right operand: ``2 * x``
REFLECTED = {
    f"__r{name}__": OPERATORS[f"__{name}__"]
    for name in str.split("add sub mul truediv pow matmul mod floordiv and or xor")
}

#: functions that are methods, too, under the same name
METHODS = str.split("""
    abs sign sqrt square reciprocal exp expm1 log log1p log2 log10 logaddexp sin cos tan asin acos atan atan2 asinh
    acosh atanh sinh cosh tanh sigmoid relu leaky_relu elu softplus gelu silu erf clip nan_to_num isnan isinf
    isfinite maximum minimum floor round pow mod floor_divide add sub mul div neg sum mean prod max min var std norm
    logsumexp cumsum cumprod any all argmax argmin reshape permute_dims moveaxis transpose swapaxes expand_dims
    squeeze broadcast_to flatten split unbind tile flip roll tril triu diagonal clone matmul dot outer trace inv det
    take take_along_axis softmax log_softmax astype sort topk ceil argsort pad index_add scatter_add solve cholesky
""")


class Operators(Value):
    """A Value with Python's operators and the package's methods."""

    __slots__ = ()

    def __pos__(self) -> Any:
        return self

    @property
    def T(self) -> Any:
        """The axes in reverse order.

        >>> import minigrad as mg
        >>> mg.zeros([2, 3, 4]).T.shape
        (4, 3, 2)
        """
        return self.permute_dims()

    @property
    def mT(self) -> Any:
        """The last two axes swapped.

        >>> import minigrad as mg
        >>> mg.zeros([2, 3, 4]).mT.shape
        (2, 4, 3)
        """
        return self.swapaxes(-1, -2)

    if TYPE_CHECKING:  # given by `install`

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other) -> Any: ...
        def __neg__(self) -> Any: ...

        __sub__ = __mul__ = __truediv__ = __matmul__ = __pow__ = __mod__ = __floordiv__ = __add__
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __getitem__ = __add__
        __invert__ = __neg__


def install(functions: dict[str, Function]) -> None:
    """Give `Operators` its operators and methods; called once, when the functions are there."""
    for dunder, name in OPERATORS.items():
        setattr(Operators, dunder, _of_truth(functions[name], name))
    for dunder, name in REFLECTED.items():
        setattr(Operators, dunder, _of_truth(_swapped(functions[name]), name))
    for name in METHODS:
        setattr(Operators, name, functions[name])


def _swapped(function: Function) -> Function:
    return lambda self, other: function(other, self)


#: operators that elsewhere combine the bits of integers, and here truth values only
_OF_TRUTH = {"logical_and": "&", "logical_or": "|", "logical_xor": "^", "logical_not": "~"}


def _of_truth(function: Function, name: str) -> Function:
    """The operator of a function; of one that combines truth values, it takes nothing else."""
    if name not in _OF_TRUTH:
        return function
    sign = _OF_TRUTH[name]
    example = "~(x != 0)" if sign == "~" else f"(x != 0) {sign} …"

    def operator(self, *other) -> Any:
        for value in (self, *other):
            if not isinstance(value, bool) and dtype_of(value).kind != "b":
                what = f"{sign} takes truth values, not {describe(value)}: it does not look at bits"
                advice = f"compare first, {example}, or call mg.{name}(…), where every number but 0 counts as true"
                raise refusal(what, advice, DTypeError)
        return function(self, *other)

    return operator


#: NumPy's ufunc → the operator, or the function, that stands for it
_UFUNC_OPERATORS = {
    "add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__",
    "true_divide": "__truediv__", "remainder": "__mod__", "floor_divide": "__floordiv__",
    "power": "__pow__", "matmul": "__matmul__", "less": "__lt__", "less_equal": "__le__", "greater": "__gt__",
    "greater_equal": "__ge__", "equal": "__eq__", "not_equal": "__ne__", "maximum": "maximum", "minimum": "minimum",
    "bitwise_and": "__and__", "bitwise_or": "__or__", "bitwise_xor": "__xor__",
}  # fmt: skip
_IN_PLACE = {"add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/="}


def of_numpy(name: str) -> str:
    """What stands here for a function of NumPy.

    >>> of_numpy("arcsin"), of_numpy("exp"), of_numpy("interp")
    ('mg.asin(x)', 'mg.exp(…)', 'mg.interp(…) if it exists')
    """
    known = f"mg.{name}(…)" + " if it exists" * (name not in METHODS)
    return TABLES["minigrad"].get(name, known)


def ufunc_on_values(ufunc, method: str, inputs, kwargs, kind: type) -> Any:
    """What ``array * value`` becomes: the Value's own operator; every other ufunc is refused."""
    name = _UFUNC_OPERATORS.get(ufunc.__name__)
    out = kwargs.get("out", (None,))[0]
    if isinstance(out, np.ndarray) and inputs[0] is out:
        what = f"an array cannot be changed in place by a {kind.__name__}: np.{ufunc.__name__} does not know it"
        sign = _IN_PLACE.get(ufunc.__name__, "=")
        advice = f"with mg.no_grad(): x {sign} …, of the Tensor x itself, not of x.data; a new Tensor of "
        advice += f"an array a: a = a {sign[0]} …"
        raise refusal(what, advice, DTypeError)
    if name is None or method != "__call__" or kwargs:
        home = "np." * hasattr(np, ufunc.__name__)  # or SciPy
        what = f"{home}{ufunc.__name__} does not know {kind.__name__}s and would lose the gradient"
        advice = of_numpy(ufunc.__name__)
        advice += ", or x.detach().numpy() to leave the graph" * (kind.__name__ == "Tensor")
        raise refusal(what, advice, DTypeError)
    return getattr(Operators, name)(*inputs)
