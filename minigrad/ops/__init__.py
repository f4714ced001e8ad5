"""All primitives and the functions made of them, under the names users call."""
from __future__ import annotations

from ..values import install
from .elementwise import add, cos, div, exp, log, mul, neg, relu, sin, sub, tanh
from .index import getitem, scatter, setitem
from .linalg import matmul
from .reduce import reduce_sum as sum
from .shape import broadcast_to, permute_dims, reshape, swapaxes, unbroadcast

install(globals())
