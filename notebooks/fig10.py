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
# # Thresholds of play-time left: what they buy and what they cost
# Loads `results/fig10/exhibit.json`; where it is not there, `railyard run fig10 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig10")
page.heading

# %% [markdown]
# ## What is to be seen
# (X, Y) stands for the play-time left that X % and Y % of the samples exceed. The further right on the axis of
# cost, the more is sent twice.

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
