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
# # First-frame latency with and without first-frame acceleration
# Loads `results/fig12/exhibit.json`; where it is not there, `railyard run fig12 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig12")
page.heading

# %% [markdown]
# ## What is to be seen
# Acceleration re-injects what is left of the first frame once its last packet was sent, before any other frame.

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
