# %% [markdown]
# # Step 91. A second step
# **Goal.** Grow.
# **Time.** 1 minute
# **Needs.** step 90

# %% [markdown] tags=["growth"]
# <!-- growth -->

# %%
import numpy as np


# %%
class Box:
    """A box, with another docstring."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def size(self):
        return int(self.data.size)

    def empty(self):
        return self.size() == 0


# %%
class Lid:
    def close(self):
        return "closed"


LIMIT = 3

# %% tags=["active-ipynb"]
# print(Box([]).empty())
