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
# # Vanilla multipath against single path, by day
# Loads `results/fig1c/exhibit.json`; where it is not there, `railyard run fig1c --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig1c")
page.heading

# %% [markdown]
# ## What is to be seen
# A day is a mix of traces. The paper found vanilla multipath worse than single path in the tail on every day:
# more paths, and yet later, because the slowest packet decides when a request is complete.

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
