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
# # XLINK against single path, by day
# Loads `results/fig11/exhibit.json`; where it is not there, `railyard run fig11 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig11")
page.heading

# %% [markdown]
# ## What is to be seen
# The improvement in the tail is what XLINK is about: the median leaves little to win where the primary path is
# good.

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
