"""Backward of operators and nets: the design before Programs, kept runnable.

backward     operators, nets and the scopes they run in; the grad operator of each; a step net, run once per element
"""
# ruff: noqa: F403

from ..errors.calls import check_functions
from .backward import *
from .backward import __all__

check_functions(globals(), __all__)
