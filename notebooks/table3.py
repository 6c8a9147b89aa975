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
# # Rebuffer rate of XLINK against single path, by day
# Loads `results/table3/exhibit.json`; where it is not there, `railyard run table3 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("table3")
page.heading

# %% [markdown]
# ## What is to be seen
# Time stalled over time played. The intervals are wide where stalls are rare: most plays have none.

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
