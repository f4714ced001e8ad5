# %% [markdown]
# # The sample course
#
# <!-- steps -->

# %% tags=["active-ipynb"]
# print("ready")
