"""Module: functions that hold their parameters.

Vocabulary
    parameter   a Tensor that requires grad: what training changes; frozen, it stays one that can be thawed
    buffer      a Tensor that never did, such as a running mean: kept with the parameters, not trained
    path        where a Tensor is found: ``layers.0.weight``

A Module's Tensors, Modules, lists and dictionaries are found by looking at its attributes, in the
order in which they were set; attributes that begin with ``_`` are private.  Nothing is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..atomic import Changes, set_all
from ..eager.tensor import Tensor, tensor
from ..errors import DTypeError, MinigradError, describe, refusal
from ..errors.calls import CheckedConstructors, misfit
from ..errors.other_libraries import TABLES, knows_others
from ..ops.shape import Array, DType
from ..optim.optimizers import fitting_state
from ..primitives.arguments import Args, Attrs, Listed
from ..primitives.values import Operators


class StateError(MinigradError, ValueError):
    """A stored state does not fit the module.

    >>> from minigrad import nn
    >>> nn.Linear(3, 2).load_state_dict({"wieght": [1.0], "bias": [0.0, 0.0]})      # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    minigrad.nn.module.StateError: this Linear has no 'wieght'; did you mean 'weight'? Known: 'weight', 'bias'
      at ...
    """


def Parameter(data: Any, name: str | None = None, dtype: Any = None) -> Tensor:
    """A leaf Tensor that training changes; the data is copied.

    >>> Parameter([1.0, 2.0], name="w")
    tensor([1., 2.], requires_grad=True)
    """
    return tensor(data, requires_grad=True, dtype=dtype, name=name)


@knows_others("this {}", TABLES["Module"])
class Module(CheckedConstructors):
    """Base of all layers: write ``forward``, call the module.

    Called on Tensors it computes, called on Variables of a Program it appends operators, and its
    parameters become the program's parameters, named by their paths.  What an executor has trained
    comes back by ``model.load_state_dict({n: executor.scope[n] for n in model.state_dict()})``.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = Parameter(3.0)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(tensor([1.0, 2.0]))
    tensor([3., 6.], grad_fn=<MulBackward0>)
    >>> [name for name, p in scale.named_parameters()]
    ['factor']
    """

    training: bool = True
    _named = False

    def __init__(self) -> None:
        """A module that is given nothing; others have their own."""

    def __setattr__(self, name: str, value) -> None:
        trained = getattr(vars(self).get(name), "requires_grad", False)
        if trained and isinstance(value, np.ndarray | float):
            raise refusal(
                f"{name!r} of this {type(self).__name__} is trained, {describe(value)} is not",
                f"model.{name} = nn.Parameter(values), or model.{name}.data = values",
                DTypeError,
            )
        super().__setattr__(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, x): write one")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._named:
            for path, at in self.named_tensors():
                at.name = at.name or path
            self._named = True
        program = program_of([*args, *kwargs.values()])
        try:
            if program is None:
                return self.forward(*args, **kwargs)
            return self._append_to(program, args, kwargs)
        except TypeError:
            if error := misfit(self.forward, args, kwargs, f"{type(self).__name__}(…)"):
                raise error from None
            raise

    def _append_to(self, program, args: Args, kwargs: Attrs) -> Any:
        """Forward in a Program, where every Tensor of the module is a Variable."""
        places = []
        for path, home, key, at in self._places():
            if isinstance(at, Tensor):
                if isinstance(home, tuple):
                    raise refusal(f"{path!r} stands in a tuple", "a list", StateError)
                places.append((home, key, at, _variable(program, path, at)))
        try:
            for home, key, _, variable in places:  # in a Program, self.weight is a Variable
                home[key] = variable
            return self.forward(*args, **kwargs)
        finally:
            for home, key, at, _ in places:
                home[key] = at

    # -- what it holds ----------------------------------------------------------------------

    def _places(self) -> Iterator[tuple[str, Any, Any, Any]]:
        """(path, what it can be exchanged in, key there, value) for every place; what is shared has several."""
        entered = set()
        waiting: Listed = [("", None, None, self)]
        while waiting:
            path, home, key, at = waiting.pop()
            yield path, home, key, at
            if id(at) not in entered:
                entered.add(id(at))
                before = f"{path}." if path else ""
                home = vars(at) if isinstance(at, Module) else at
                waiting += [(f"{before}{k}", home, k, v) for k, v in reversed(_children(at))]

    def _inside(self, kind) -> Iterator[tuple[str, Any]]:
        """(path, object) for every Tensor or every Module inside, each once."""
        first = {}
        for path, _, _, at in self._places():
            if isinstance(at, kind) and id(at) not in first:
                first[id(at)] = path, at
        return iter(first.values())

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """(path, Tensor) for every parameter and buffer, each once."""
        return self._inside(Tensor)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(path, parameter) in the order in which the attributes were set."""
        return ((path, at) for path, at in self.named_tensors() if at.requires_grad)

    def parameters(self) -> list[Tensor]:
        """All parameters."""
        return [at for _, at in self.named_parameters()]

    def modules(self) -> list[Module]:
        """This module and all inside it."""
        return [at for _, at in self._inside(Module)]

    # -- what is done to all of it ----------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Switch everything inside to training, or with ``False`` to use; returns self."""
        set_all([(module, "training", bool(mode)) for module in self.modules()])
        return self

    def eval(self) -> Module:
        """Switch everything inside to use: no dropout, running statistics; returns self."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        set_all([(parameter, "_grad", None) for parameter in self.parameters()])

    def requires_grad_(self, wanted: bool = True) -> Module:
        """Freeze (False) or thaw all parameters inside; buffers stay buffers; returns self."""
        parameters = [at for _, at in self.named_tensors() if at.requires_grad or at._frozen]
        set_all([change for at in parameters for change in at._flow_changes(wanted)])
        return self

    def astype(self, dtype: Any) -> Module:
        """Turn all floating-point numbers inside to another dtype; returns self."""
        dtype = floating(dtype)
        floats = [at for _, at in self.named_tensors() if at.dtype.kind == "f"]
        set_all([c for at in floats for c in replaced(at, at._data.astype(dtype), None)])
        return self

    # -- state ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Array]:
        """Path → copy of the value, for all parameters and buffers."""
        return {path: np.array(at._data) for path, at in self.named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over values by path; nothing changes unless all of them fit.

        Errors: `StateError` for a missing or unknown path, another shape, or another kind of
        number.
        """
        tensors = dict(self.named_tensors())
        own = {path: at._data for path, at in tensors.items()}
        values = fitting_state(f"this {type(self).__name__}", own, state, StateError)
        set_all([c for path, at in tensors.items() for c in replaced(at, values[path], at.grad)])

    def __repr__(self) -> str:
        lines = []
        for path, module in self._inside(Module):
            facts = ", ".join(f"{k}={v!r}" for k, v in vars(module).items() if _is_fact(k, v))
            label = f"  {path}: " if path else ""
            lines.append(f"{label}{type(module).__name__}({facts})")
        return "\n".join(lines)


def _is_fact(key: str, value) -> bool:
    plain = isinstance(value, int | float | str | tuple) and not isinstance(value, bool)
    return plain and key[0] != "_" and not _children(value)


def _children(at) -> list[tuple[Any, Any]]:
    """(key, value) of what may hold parameters inside a Module, a list or a dictionary."""
    if isinstance(at, Module):
        at = {k: v for k, v in vars(at).items() if k[0] != "_"}
    listed = enumerate(at) if isinstance(at, list | tuple) else ()
    items = at.items() if isinstance(at, dict) else listed
    return [(k, v) for k, v in items if isinstance(v, Tensor | Module | list | tuple | dict)]


def replaced(at: Tensor, array: Array, grad: Tensor | None) -> Changes:
    """The changes that give a Tensor another array, and a gradient."""
    return [(at, "_grad", grad), (at, "_data", array), (at, "_exposed", False)]


def floating(dtype) -> DType:
    """The dtype of parameters."""
    try:
        kind: DType | None = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind.kind != "f":
        what = f"parameters are real floating-point numbers, not {kind or describe(dtype)}"
        raise refusal(what, "dtype=float, or dtype=np.float32", DTypeError)
    return kind


# -- Tensors of a module as Variables of a Program -------------------------------------------


def as_value(x) -> Any:
    """What a layer is called with: a Tensor or Variable as it is, anything else as a Tensor."""
    return x if isinstance(x, Operators) else tensor(x)


def program_of(values: Iterable[Any]) -> Any:
    """The Program that the first Variable among some values belongs to."""
    waiting = list(values)
    for value in waiting:  # which grows on the way
        if isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, Operators) and not isinstance(value, Tensor):
            return value.block.program
    return None


def _variable(program, path: str, at: Tensor) -> Any:
    """The Variable of a Program that stands for a Tensor of a module; one per Tensor."""
    known = program.lifted.get(id(at))
    block = program.global_block()
    if known is not None:
        return block.vars[known[1]]
    wanted = name = at.name or path
    k = 0
    while name in block.vars:
        k += 1
        name = f"{wanted}_{k}"
    program.lifted[id(at)] = (at, name)
    return program.add_persistable(name, at, trainable=at.requires_grad)
