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
# # Share of samples below 50 ms of play-time left
# Loads `results/table2/exhibit.json`; where it is not there, `railyard run table2 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("table2")
page.heading

# %% [markdown]
# ## What is to be seen
# Less than 50 ms of play-time left may end in a stall. The table says by how much each setting makes such moments
# rarer.

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
