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
# # First-frame delivery time by primary path
# Loads `results/fig7/exhibit.json`; where it is not there, `railyard run fig7 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig7")
page.heading

# %% [markdown]
# ## What is to be seen
# Both paths are used in either case; what differs is the path of the handshake and of the first window. The
# smaller the frame, the larger the share that the handshake's round trips have in it. The second panel gives both
# paths the same rate, so that delay alone is left.

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
