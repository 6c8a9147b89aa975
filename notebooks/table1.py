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
# # Rebuffer rate of vanilla multipath against single path, by day
# Loads `results/table1/exhibit.json`; where it is not there, `railyard run table1 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("table1")
page.heading

# %% [markdown]
# ## What is to be seen
# The rebuffer rate is the time stalled over the time played; start-up does not count. A negative improvement is a
# deterioration.

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
