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
# # Examples of traces
# Loads `results/fig15/exhibit.json`; where it is not there, `railyard run fig15 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig15")
page.heading

# %% [markdown]
# ## What is to be seen
# What makes these environments hard is visible without any protocol: steps of an order of magnitude within a
# second, and outages that sometimes fall on both paths at once, because a tunnel is a tunnel for every radio.

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
