"""The course: literate steps become notebooks, exercises check themselves, steps are compared.

>>> from minigrad.course import check          # what a notebook needs
"""

from .check import check, checker
from .judge import Mismatch, close, same
from .mine import use_mine
from .questions import why

__all__ = ["Mismatch", "check", "checker", "close", "same", "use_mine", "why"]
