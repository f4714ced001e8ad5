# %% [markdown]
# # minigrad: how gradients are made
#
# This is the start page of a course. You write a small autodiff engine, step by step, until you can
# read and change a real one of either kind: a graph that is recorded while you compute, and a
# program that is generated before you compute. You need Python and school calculus.
#
# **How to work.** Open a step below. Run the cells from the top with *Shift* + *Enter*. Where the
# text says *predict, then run*, write your guess down first: the result is there when you run. An
# exercise ends in a line `check(...)`: it turns green when your answer is right. Exercises with an
# *e*, such as 4e, ask for a part of the engine: what passes is kept in `my_engine.py` beside the
# notebooks, and later steps go on with it. After a check that passes, a question on a fresh graph
# may follow: answer it with `why(...)`. Some pictures have
# sliders, menus or buttons: move them, too. The times are for reading and running. The exercises
# take about as long again.
#
# **Where to enter.** Steps 1 to 6 are an afternoon. Step 10 stands alone. Steps 13 to 15 can be
# read after step 6, steps 17 to 19 after step 15. No later step needs 12 or 16.

# %% [markdown]
# ## Where you are

# %% tags=["active-ipynb"]
# from minigrad.course.progress import Here
#
# Here()

# %% [markdown]
# ## The steps
#
# <!-- steps -->
#
# **Beside the path**, after step 6: [forward mode, and JAX's way](forward.ipynb), in 15 minutes.
#
# **The capstone**, after step 20: train [a GPT on your engine](capstone.ipynb), bring a function of
# your own, see it in five pictures, and hunt a planted bug.

# %% [markdown]
# ## Your own function
#
# Here is the engine of step 9, ready to use. Change the expression and the numbers in the last
# cell, and run it again. You may use `+ - * / **` (the exponent is a number), `@`, `square`,
# `exp`, `.sum()` and plain numbers and arrays. (In the picture `%1` is a value without a name. Steps 2
# and 7 explain its other signs.)

# %%
import numpy as np

from steps.step09_arrays import Variable, numerical_diff

# %% tags=["active-ipynb"]
# import minigrad as mg
# from steps.step09_arrays import exp, square


# %%
def gradients(f, **numbers):
    """The result of ``f(**numbers)`` after its backward pass, its inputs, and the measured slopes.

    ``numbers`` are numbers or arrays; the slopes come from finite differences of ``f``, one number
    of one input at a time.
    """
    boxes = {
        name: Variable(np.array(given, dtype=float), name) for name, given in numbers.items()
    }
    y = f(**boxes)
    if not isinstance(y, Variable):
        raise TypeError(f"your function returned {y!r}: it has to compute with its arguments")
    measured = {
        name: numerical_diff(lambda box, name=name: f(**{**boxes, name: box}), boxes[name])
        for name in boxes
    }
    y.backward(retain_grad=True)
    return y, boxes, measured


def compare(boxes, measured):
    """A table: each gradient beside its measured slope."""
    lines = []
    for name, box in boxes.items():
        walked = "none: the result does not depend on it" if box.grad is None else shown(box.grad)
        lines += [f"{name}  backward  {walked}", f"{name}  measured  {shown(measured[name])}"]
    return "\n".join(lines)


def shown(array):
    """An array with six digits after the point."""
    return np.array2string(np.asarray(array), precision=6, suppress_small=True)


# %% tags=["active-ipynb"]
# def mine(x, w, b):                     # your function
#     return square(x * w + b) + exp(-x)
#
#
# y, boxes, measured = gradients(mine, x=0.5, w=2.0, b=-3.0)      # your numbers
# print(compare(boxes, measured))
# mg.draw(y, names={**boxes, "y": y})
