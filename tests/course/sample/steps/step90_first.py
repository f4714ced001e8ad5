# %% [markdown]
# # Step 90. A first step
# **Goal.** Show each kind of cell once | and a pipe.
# **Time.** 1 minute
# **Needs.** nothing

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np

# %% tags=["active-ipynb"]
# from minigrad.course import check, checker, same
#
# @checker("90a", hint="twice")
# def twice(double):
#     same("double(2)", double(2), 4)
#
# @checker("90b", hint="the number of steps")
# def number(answer):
#     same("answer", answer, 90)


# %%
class Box:
    """A box."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def size(self):
        return self.data.size


# %% tags=["active-ipynb"]
# %matplotlib inline
# print(Box([1, 2, 3]).size())
# print(object())

# %% tags=["active-ipynb", "interactive"]
# import ipywidgets
# from IPython.display import SVG, display
# display(ipywidgets.IntSlider(description="n"))
# SVG('<svg xmlns="http://www.w3.org/2000/svg"><text>first frame</text></svg>')

# %% tags=["active-ipynb", "mistake", "raises-exception"]
# Box([1, 2]).sise()

# %% [markdown]
# Double a number.

# %% tags=["active-ipynb", "exercise", "ex-90a"]
# def double(x):
#     """Twice x."""
#     ### BEGIN SOLUTION
#     return 2 * x
#     ### END SOLUTION
#
#
# check("90a", double)

# %% tags=["active-ipynb", "exercise", "ex-90b"]
# ### BEGIN SOLUTION
# answer = 90
# ### END SOLUTION
# check("90b", answer)
