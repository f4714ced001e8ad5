"""The checkers of step 3, and the mistakes that they know."""

import numpy as np

from ..check import checker
from ..judge import Mismatch


@checker("3c")
def used_twice(used_twice, Square):
    made = used_twice()
    if not isinstance(made, (tuple, list)) or len(made) != 3:
        raise Mismatch("what used_twice() returns", made, "three boxes: x, a, y")
    x, a, y = made
    if x.creator is not None:
        raise Mismatch("the creator of x", type(x.creator).__name__, None)
    if not isinstance(y.creator, Square):
        raise Mismatch("the creator of y", y.creator, "a Square")
    if y.creator is not a.creator:
        raise Mismatch("what made a and y", "two Square objects", "one and the same")
    if not np.isclose(y.data, x.data**4):
        raise Mismatch("y", y.data, x.data**4)
    if a.creator.input is not a:
        raise Mismatch("a.creator.input", "another box", "a itself: the link that is broken")
