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
# # Extreme mobility: subway and high-speed rail
# Loads `results/fig13/exhibit.json`; where it is not there, `railyard run fig13 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig13")
page.heading

# %% [markdown]
# ## What is to be seen
# Each column is a pair of traces; every scheme saw the same part of it. Lower is better, on a logarithmic axis.
# An open mark is a lower bound: a request was still unfinished when the run's time was over. `xlink-lean` and
# `xlink+` are this testbed's own and take no part in the comparison of the five. Kernel MPTCP needs the wall clock, so
# in the sim arena it is missing, and said to be.

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
