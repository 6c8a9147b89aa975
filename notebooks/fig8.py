# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # ACK_MP on the fastest or the original path
# Loads `results/fig8/exhibit.json`; where it is not there, `railyard run fig8 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig8")
page.heading

# %% [markdown]
# ## What is to be seen
# With Cubic the window of a path grows as acknowledgements come in. When those of the slow path return over the
# fast one, its round trip is shorter, and its window opens sooner. At a ratio of 1 there is no faster path, so
# the two must agree: a check of the experiment itself.

# %%
page.show()

# %% [markdown]
# ## In figures

# %%
page.tables

# %% [markdown]
# ## The paper's values beside ours

# %%
page.against_the_paper

# %% [markdown]
# ## Claims, and what became of them here

# %%
page.claims

# %%
page.provenance
